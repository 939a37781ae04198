"""A missing or damaged data file is named, with what it should be."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from papers.frame.data import check_data, load_arrays
from papers.frame.experiment import DataFile

FILES = (
    DataFile("a.npz", "arrays X and y", "the database of A"),
    DataFile("b.csv", "a table", "the package B"),
)


def test_the_folder_is_given_back_if_all_is_there(tmp_path: Path) -> None:
    for file in FILES:
        (tmp_path / file.name).write_bytes(b"")
    assert check_data("t", FILES, tmp_path) == tmp_path


def test_a_table_without_data_needs_no_folder() -> None:
    assert check_data("t", (), None) == Path()


def test_only_what_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"")
    (tmp_path / "b.csv").mkdir()  # not a file
    with pytest.raises(FileNotFoundError) as error:
        check_data("t", FILES, tmp_path)
    text = str(error.value)
    for part in ("t needs", repr(str(tmp_path)), "b.csv: a table", "from the package B"):
        assert part in text
    assert "a.npz" not in text


def test_no_folder_or_one_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"--data DIR or .*MIXFOLD_DATA") as error:
        check_data("t", FILES, None)
    assert "a.npz" in str(error.value) and "b.csv" in str(error.value)
    with pytest.raises(FileNotFoundError, match=r"nowhere' does not exist"):
        check_data("t", FILES, tmp_path / "nowhere")


def test_arrays_come_in_the_order_asked_for(tmp_path: Path) -> None:
    X, y = np.arange(6.0).reshape(3, 2), np.array([1, 2, 1])
    np.savez(tmp_path / "a.npz", X=X, y=y, more=X)
    found = load_arrays(tmp_path / "a.npz", ("y", "X"))
    np.testing.assert_array_equal(found[0], y)
    np.testing.assert_array_equal(found[1], X)


def test_a_missing_array_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.ones(2), labels=np.ones(2))
    with pytest.raises(ValueError, match=r"a.npz' must hold .* X, y; it lacks y and has X, labels"):
        load_arrays(tmp_path / "a.npz", ("X", "y"))


def _pickled() -> bytes:
    content = io.BytesIO()
    np.savez(content, X=np.array([{"a": 1}], dtype=object), y=np.ones(1))
    return content.getvalue()


def _cut() -> bytes:
    content = io.BytesIO()
    np.savez(content, X=np.ones(1000), y=np.ones(1))
    return content.getvalue()[:500]


def _single() -> bytes:
    content = io.BytesIO()
    np.save(content, np.ones(3))
    return content.getvalue()


@pytest.mark.parametrize("content", [b"", b"text", _cut(), _single(), _pickled()])
def test_a_damaged_or_unsafe_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"a.npz' cannot be read .* obtain it again"):
        load_arrays(tmp_path / "a.npz", ("X", "y"))
