"""Memory maps: copies, memory, broken files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixfold.engine.sources import open_source


def test_mapped_blocks_are_copies_and_changes_of_a_private_map_survive(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((4096, 8)))
    private = np.load(tmp_path / "x.npy", mmap_mode="c")
    private[2000] = 5.0
    for _ in range(2):
        rows = np.concatenate([block.X for block in open_source(private).blocks(512)])
        assert (rows[2000] == 5.0).all()
    shared = np.load(tmp_path / "x.npy", mmap_mode="r+")
    shared[7] = 3.0
    for block in open_source(shared).blocks():
        assert not np.shares_memory(block.X, shared)
    assert (shared[7] == 3.0).all()


_PEAK = """
import sys, numpy as np
from mixfold.engine.sources import open_source
import mixfold.engine.sources.files  # readers are imported where they are needed
if sys.argv[2] == "map":
    data = np.load(sys.argv[1], mmap_mode="r")
else:
    data = sys.argv[1]
for block in open_source(np.ones((9, 4))).blocks(): pass
def peak():
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmHWM"))
before = peak()
total = sum(float(block.X.sum()) for _ in range(2) for block in open_source(data).blocks())
print(total, (peak() - before) / 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux (/proc)")
@pytest.mark.parametrize(("kind", "order"), [("path", "C"), ("map", "C"), ("map", "F")])
def test_a_mapped_file_does_not_fill_the_memory(kind: str, order: Any, tmp_path: Path) -> None:
    X = np.ones((500_000, 25), order=order)  # 95 MB
    np.save(tmp_path / "x.npy", X)
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, str(tmp_path / "x.npy"), kind],
        capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    total, grown = (float(word) for word in done.stdout.split())
    assert total == 2 * X.size
    assert grown < 40.0


def test_broken_npy_files(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.ones((100, 4)))
    whole = path.read_bytes()
    for content in (b"", b"hello, this is text", whole[:1000]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"x.npy is not a .npy file .*truncated"):
            open_source(path)
    np.savez(tmp_path / "y.npz", a=np.ones(3))
    (tmp_path / "y.npz").rename(path)
    with pytest.raises(ValueError, match="archive of arrays"):
        open_source(path)
    np.save(path, np.array([{}, 1], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="array of numbers"):
        open_source(path)
