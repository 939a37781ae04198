"""A model file is written in full or not at all."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from mixfold import store
from mixfold.store import ModelWriteError, atomic


def test_replaces_in_place_and_keeps_permissions(path: Path) -> None:
    store.write(path, "Example", [1])
    path.chmod(0o640)
    store.write(path, "Example", [2])
    assert store.read(path) == [2]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(path.parent) == [path.name]


def test_new_files_follow_the_umask(path: Path) -> None:
    umask = os.umask(0o027)
    try:
        store.write(path, "Example", [1])
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_symbolic_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(path)
    store.write(link, "Example", [1])
    assert link.is_symlink() and store.read(path) == [1]


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_failure_at_any_step_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    store.write(path, "Example", ["old"])

    def fail(*args: Any) -> None:
        raise error

    if step == "write":
        monkeypatch.setattr(atomic, "open", lambda fd, mode: FullFile(fd, error), raising=False)
    else:
        monkeypatch.setattr(atomic.os, step, fail)
    wanted = ModelWriteError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(wanted) as caught:
        store.write(path, "Example", ["new"] * 100)
    monkeypatch.undo()
    if isinstance(error, OSError):
        assert caught.value.errno == errno.ENOSPC
        assert "free some space" in str(caught.value) and str(path) in str(caught.value)
    assert os.listdir(path.parent) == [path.name]
    assert store.read(path) == ["old"]


class FullFile:
    """A file on a disk that fills up after some bytes."""

    def __init__(self, descriptor: int, error: BaseException) -> None:
        self.descriptor, self.error = descriptor, error

    def __enter__(self) -> FullFile:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.descriptor)

    def write(self, content: bytes) -> None:
        os.write(self.descriptor, content[:50])
        raise self.error


@pytest.mark.skipif(
    sys.platform == "win32",
    reason="needs POSIX: limits the size of files",
)
def test_disk_that_is_really_full(path: Path) -> None:
    store.write(path, "Example", ["old"])
    script = """
        import os, resource, sys
        import numpy as np
        from mixfold import store
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            store.write(sys.argv[1], "Example", np.zeros(10000))
        except store.ModelWriteError as error:
            print("errno", error.errno, error)
    """
    source = os.fspath(Path(store.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), os.fspath(path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert f"errno {errno.EFBIG}" in done.stdout and "could not be written" in done.stdout
    assert os.listdir(path.parent) == [path.name]
    assert store.read(path) == ["old"]


@pytest.mark.parametrize(
    ("place", "words"),
    [("missing/model", "create its folder"), ("", "name of a file"), ("f/model", "folder")],
)
def test_places_that_cannot_be_written(tmp_path: Path, place: str, words: str) -> None:
    (tmp_path / "f").write_bytes(b"")
    with pytest.raises(ModelWriteError, match=words):
        store.write(tmp_path / place, "Example", [1])
    assert os.listdir(tmp_path) == ["f"]


def test_leftovers_of_killed_writers_are_removed_and_nothing_else(path: Path) -> None:
    store.write(path, "Example", [1])
    ours = [path.with_name(f".{path.name}.{digits}.tmp") for digits in ("0123456789ab", "f" * 12)]
    others = [
        path.with_name(name)
        for name in (
            f".{path.name}.tmp",
            f".{path.name}.0123456789ab.tmp.txt",
            f".{path.name}.0123456789aB.tmp",
            f".{path.name}2.0123456789ab.tmp",
            f".x{path.name}.0123456789ab.tmp",
        )
    ]
    for file in ours + others:
        file.write_text("x")
    store.remove_leftovers(path)
    assert sorted(path.parent.iterdir()) == sorted([path, *others])
    store.remove_leftovers(path.parent / "no folder" / "file")


def test_a_killed_writer_leaves_a_file_that_is_found(path: Path) -> None:
    program = """
        import os, signal, sys
        from mixfold import store
        from mixfold.store import atomic
        atomic.os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
        store.write(sys.argv[1], "Example", [2])
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(path)], check=False)
    assert len(os.listdir(path.parent)) == 1 and not path.exists()
    store.remove_leftovers(path)
    assert not os.listdir(path.parent)
