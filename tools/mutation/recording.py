"""The pytest plug-in of the recording run: which blocks each test runs, and how long it takes.

What a wider fixture, the import of a test file or a cached function did is done for every test
that uses it. Each process writes one file with a line per test.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any, TextIO

import pytest

from mutation import tracer


class Recording:
    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._by_fixture: dict[Any, set[int]] = defaultdict(set)
        self._by_file: dict[str, set[int]] = defaultdict(set)
        self._seconds = 0.0
        self._outcome = "passed"

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: Any) -> Generator[None, Any, Any]:
        with tracer.region() as hits:
            report = yield
        if hasattr(collector, "path") and collector.path.is_file():
            self._by_file[str(collector.path)] |= hits
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        with tracer.region() as hits:
            result = yield
        if fixturedef.scope != "function":
            self._by_fixture[fixturedef] |= hits
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, Any]:
        report = yield
        self._seconds += report.duration
        if report.outcome != "passed":
            self._outcome = report.outcome
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Generator[None, Any, Any]:
        self._seconds, self._outcome = 0.0, "passed"
        with tracer.region() as hits:
            result = yield
        hits = hits | self._by_file[str(item.path)] | self._of_fixtures(item)
        line = {
            "test": item.nodeid,
            "seconds": round(self._seconds, 4),
            "outcome": self._outcome,
            "hits": packed(hits),
        }
        self._out.write(json.dumps(line) + "\n")
        self._out.flush()
        return result

    def _of_fixtures(self, item: Any) -> set[int]:
        info = getattr(item, "_fixtureinfo", None)
        used = [d for defs in info.name2fixturedefs.values() for d in defs] if info else []
        request = getattr(item, "_request", None)
        used += list(getattr(request, "_fixture_defs", {}).values())
        return set().union(*(self._by_fixture.get(d, set()) for d in used))

    def pytest_sessionfinish(self) -> None:
        self._out.write(json.dumps({"at_import": packed(tracer.at_import())}) + "\n")
        self._out.flush()


def packed(hits: set[int]) -> str:
    """The hexadecimal digits of sum 2**block."""
    bits = bytearray(max(hits, default=0) // 8 + 1)
    for block in hits:
        bits[block // 8] |= 1 << block % 8
    return f"{int.from_bytes(bits, 'little'):x}"


def pytest_configure(config: pytest.Config) -> None:
    folder = Path(tracer.settings()["out"])
    out = (folder / f"tests-{os.getpid()}.jsonl").open("w", encoding="utf-8")
    config.pluginmanager.register(Recording(out), "mutants-recording")
