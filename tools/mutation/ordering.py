"""The pytest plug-in of a mutant's run: certain tests in a certain order, each within its time.

MUTANTS_TESTS names a file of [test, seconds that it may take] pairs. To the file that
MUTANTS_LOG names, a line is written when a test starts, when one fails and when all have ended.
A test that takes too long ends the process, whatever it is doing.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

TESTS, LOG, MEMORY = "MUTANTS_TESTS", "MUTANTS_LOG", "MUTANTS_MEMORY"


class Ordering:
    def __init__(self, allowed: dict[str, float], log: Path) -> None:
        self._allowed = allowed
        self._log = log.open("a", encoding="utf-8")
        self._nowhere = open(os.devnull, "w")  # noqa: SIM115

    def _tell(self, what: str, test: str = "") -> None:
        self._log.write(json.dumps([what, test]) + "\n")
        self._log.flush()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        yield  # after every other plug-in has shuffled
        found = {item.nodeid: item for item in items}
        chosen = [found[test] for test in self._allowed if test in found]
        rest = [item for item in items if item.nodeid not in self._allowed]
        if rest:
            config.hook.pytest_deselected(items=rest)
        items[:] = chosen

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._tell("start", item.nodeid)
        allowed = self._allowed[item.nodeid]
        faulthandler.dump_traceback_later(allowed, exit=True, file=self._nowhere)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._tell("failed", report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell("failed", f"collection of {report.nodeid}")

    def pytest_sessionfinish(self) -> None:
        self._tell("end")


def pytest_configure(config: pytest.Config) -> None:
    memory = int(os.environ.get(MEMORY, "0"))
    if memory:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    allowed = dict(json.loads(Path(os.environ[TESTS]).read_text(encoding="utf-8")))
    config.pluginmanager.register(Ordering(allowed, Path(os.environ[LOG])), "mutants-ordering")
