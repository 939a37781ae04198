"""Private copies of the tree, in which tests run and files are changed.

A copy keeps the times of its files: numba compares them with those in its caches, so that kernels
compiled in one copy are ready in another. Beside a copy stands what stands beside the tree.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_LEFT_OUT = {
    ".git", ".venv", "build", "dist", "_build", "gallery", "generated", "node_modules",
    ".pytest_cache", ".mypy_cache", ".ruff_cache", ".import_linter_cache", ".hypothesis",
}  # fmt: skip
_BESIDE = "shared"


def copy_tree(root: Path, folder: Path, compiled_python: bool) -> Path:
    """A copy in ``folder/tree``; without the compiled Python its paths are surely the new ones."""
    folder.mkdir(parents=True, exist_ok=True)
    tree = folder / "tree"
    shutil.copytree(root, tree, ignore=_ignored(compiled_python), symlinks=True)
    beside = root.parent / _BESIDE
    if beside.exists() and not (folder / _BESIDE).exists():
        (folder / _BESIDE).symlink_to(beside.resolve())
    return tree


def _ignored(compiled_python: bool) -> Callable[[str, list[str]], set[str]]:
    def ignore(_: str, names: list[str]) -> set[str]:
        out = {name for name in names if name in _LEFT_OUT or name.endswith(".egg-info")}
        if not compiled_python:
            out |= {name for name in names if name.endswith((".pyc", ".pyo"))}
        return out

    return ignore


def python_files(tree: Path, *folders: str) -> dict[str, str]:
    """{path from the tree: text}."""
    paths = sorted(p for folder in folders for p in (tree / folder).rglob("*.py"))
    return {p.relative_to(tree).as_posix(): p.read_text(encoding="utf-8") for p in paths}


def update_tests(root: Path, tree: Path) -> None:
    """Bring the tests of a copy, and what configures them, up to date."""
    shutil.rmtree(tree / "tests")
    shutil.copytree(root / "tests", tree / "tests", ignore=_ignored(False))
    for name in ("pyproject.toml", "conftest.py"):
        if (root / name).exists():
            shutil.copy2(root / name, tree / name)


def environment(tree: Path, *paths: Path) -> dict[str, str]:
    """Of a process that tests the copy with one thread and leaves nothing elsewhere."""
    env = dict(os.environ)
    env["PYTHONPATH"] = os.pathsep.join(map(str, [*paths, tree / "src", tools()]))
    env |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    for name in ("NUMBA_CACHE_DIR", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST"):
        env.pop(name, None)
    temporary = tree.parent / "tmp"
    temporary.mkdir(exist_ok=True)
    env["TMPDIR"] = str(temporary)
    env["HYPOTHESIS_STORAGE_DIRECTORY"] = str(temporary / "hypothesis")
    return env


def tools() -> Path:
    return Path(__file__).resolve().parents[1]


def kernel_caches(tree: Path, file: str) -> list[Path]:
    """What numba keeps of the kernels of a file."""
    path = tree / file
    return [
        p
        for p in sorted((path.parent / "__pycache__").glob(f"{path.stem}.*"))
        if p.suffix in (".nbi", ".nbc")
    ]


@contextmanager
def changed(tree: Path, file: str, text: str, recompiled: Iterable[str]) -> Iterator[None]:
    """The copy with another text of one file, and without kernels of some; as before afterwards."""
    path = tree / file
    original, times = path.read_bytes(), path.stat()
    aside = tree.parent / "aside"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    moved: list[tuple[Path, Path]] = []
    files = sorted({file, *recompiled})
    for name in files:
        for cache in [*kernel_caches(tree, name), *_compiled_python(tree, name)]:
            kept = aside / str(len(moved))
            cache.rename(kept)
            moved.append((cache, kept))
    try:
        path.write_text(text, encoding="utf-8")
        yield
    finally:
        path.write_bytes(original)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        for name in files:
            for cache in [*kernel_caches(tree, name), *_compiled_python(tree, name)]:
                cache.unlink()
        for cache, kept in moved:
            kept.rename(cache)


def _compiled_python(tree: Path, file: str) -> list[Path]:
    path = tree / file
    name = f"{path.stem}.{sys.implementation.cache_tag}"
    return sorted((path.parent / "__pycache__").glob(f"{name}*.pyc"))
