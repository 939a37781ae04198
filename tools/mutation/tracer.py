"""Which blocks of our files run, recorded by an import hook in the process that runs tests.

``start`` is called from a ``sitecustomize`` of the recording run, before anything of ours is
imported; so the processes that tests start are seen too. They write each block to a file when it
first runs, under the name of the test that started them.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.machinery
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from mutation.blocks import HIT, instrumented

# A file with {"root", "package", "first": {file: number of its first block}, "out": folder}
SETTINGS = "MUTANTS_TRACE"

_regions: list[set[int]] = [set()]
_at_import: set[int] = set()
_original_cache = functools.lru_cache


def settings() -> dict[str, Any]:
    return dict(json.loads(Path(os.environ[SETTINGS]).read_text(encoding="utf-8")))


def start() -> None:
    """Record from now on."""
    told = settings()
    setattr(builtins, HIT, _hit)
    sys.meta_path.insert(0, _Finder(told["package"], Path(told["root"]), told["first"]))
    functools.lru_cache = _replaying_cache(told["root"])
    if "PYTEST_CURRENT_TEST" in os.environ:
        _write_to(told["out"])
    os.register_at_fork(after_in_child=lambda: _write_to(told["out"]))


def at_import() -> set[int]:
    """Blocks that ran while one of our modules was imported, for whomever."""
    return _at_import


@contextmanager
def region() -> Iterator[set[int]]:
    """What runs inside; it has run in the enclosing region too."""
    inner: set[int] = set()
    _regions.append(inner)
    try:
        yield inner
    finally:
        _leave(inner)
        _regions[-1] |= inner


def _leave(inner: set[int]) -> None:
    """Not always the last one: threads import modules too."""
    _regions[:] = [other for other in _regions if other is not inner]


def replay(hits: set[int]) -> None:
    """As if these blocks ran now."""
    _regions[-1].update(hits)


def _hit(block: int) -> None:
    _regions[-1].add(block)


def _write_to(folder: str) -> None:
    """The hits of this process go to a file, each once."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    if not test:
        return
    out = os.open(Path(folder) / f"child-{os.getpid()}.txt", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.write(out, f"{test}\n".encode())
    seen: set[int] = set()

    def hit(block: int) -> None:
        if block not in seen:
            seen.add(block)
            os.write(out, f"{block}\n".encode())

    setattr(builtins, HIT, hit)


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, first: int) -> None:
        super().__init__(name, path)
        self._first = first

    def get_code(self, fullname: str) -> CodeType:
        text = self.get_data(self.path).decode()
        return compile(
            instrumented(ast.parse(text), self._first), self.path, "exec", dont_inherit=True
        )

    def exec_module(self, module: ModuleType) -> None:
        mine: set[int] = set()
        _regions.append(mine)
        try:
            super().exec_module(module)
        finally:
            _leave(mine)
            _at_import.update(mine)


class _Finder:
    def __init__(self, package: str, root: Path, first: dict[str, int]) -> None:
        self._package, self._root, self._first = package, root, first

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.split(".")[0] != self._package:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or not spec.origin:
            return spec
        origin = Path(spec.origin)
        if origin.is_relative_to(self._root):
            first = self._first.get(origin.relative_to(self._root).as_posix())
            if first is not None:
                spec.loader = _Loader(name, spec.origin, first)
        return spec


def _replaying_cache(root: str) -> Callable[..., Any]:
    """lru_cache for our functions: a remembered result counts as computed again."""

    def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
        if callable(maxsize):
            return wrap(maxsize, _original_cache(maxsize))
        return lambda function: wrap(function, _original_cache(maxsize, typed)(function))

    def wrap(function: Any, cached: Any) -> Any:
        code = getattr(function, "__code__", None)
        if code is None or not code.co_filename.startswith(root):
            return cached
        known: set[int] = set()

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with region() as hits:
                result = cached(*args, **kwargs)
            known.update(hits)
            replay(known)
            return result

        call.cache_clear, call.cache_info = cached.cache_clear, cached.cache_info  # type: ignore[attr-defined]
        return call

    return lru_cache
