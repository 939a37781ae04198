"""Files that scikit-learn can give are the files that the tables read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest

from papers import mlit_table
from papers.frame.data import MAKERS, check_data, load_arrays, obtain
from papers.frame.experiment import DataFile
from papers.frame.registry import EXPERIMENTS
from papers.shared import mnist_digits


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data home of our own, and no network."""
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    serve(monkeypatch, {})
    return tmp_path / "mixfold"


def serve(monkeypatch: pytest.MonkeyPatch, sets: dict[tuple[str, int], tuple]) -> list[str]:
    """OpenML with these sets only; the names that were asked for."""
    asked: list[str] = []

    def fetch(name: str, *, version: int, as_frame: bool, parser: str) -> SimpleNamespace:
        asked.append(name)
        if (name, version) not in sets:
            raise URLError("no way out")
        data, target = sets[name, version]
        return SimpleNamespace(data=data, target=np.asarray(target, dtype=object))

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    return asked


def wanted(*names: str, optional: bool = False) -> tuple[DataFile, ...]:
    return tuple(DataFile(name, "rows", "somebody", optional) for name in names)


def test_rows_that_scikit_learn_ships_are_those_of_the_file(
    home: Path, shared_data: Callable[[str], Path]
) -> None:
    given = mlit_table.load_set("WDBC", shared_data("wdbc.csv").parent)
    made = mlit_table.load_set("WDBC", check_data("t", wanted("wdbc.csv"), None))
    np.testing.assert_array_equal(made.X, given.X)
    np.testing.assert_array_equal(made.y, given.y)


def test_images_are_read_by_the_tables_of_digits(
    home: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    X = rng.integers(0, 256, (12, 784))
    asked = serve(monkeypatch, {("mnist_784", 1): (X.astype(float), list("012345678901"))})
    folder = check_data("t", (mnist_digits.FILE,), None)
    found, digits, n_train = load_arrays(folder / "mnist.npz", ("X", "y", "n_train"))
    np.testing.assert_array_equal(found, X)
    assert (found.dtype, digits.tolist(), int(n_train)) == (np.uint8, [*range(10), 0, 1], 60_000)
    check_data("t", (mnist_digits.FILE,), None)
    assert asked == ["mnist_784"]  # once


def test_labels_and_classes_keep_their_rows(
    home: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    X, Y = rng.normal(size=(4, 3)), rng.random((4, 2)) < 0.5
    serve(monkeypatch, {
        ("yeast", 4): (X, np.where(Y, "TRUE", "FALSE")),
        ("vehicle", 1): (X, ["van", "bus", "van", "opel"]),
        ("optdigits", 1): (X.round() + 5, list("0123")),
    })  # fmt: skip
    folder = obtain(wanted("yeast.npz", "vehicle.csv", "optdigits.npz")).folder
    found, labels = load_arrays(folder / "yeast.npz", ("X", "y"))
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(labels, Y)
    lines = (folder / "vehicle.csv").read_text(encoding="utf-8").splitlines()
    assert [line.rsplit(",", 1)[1] for line in lines] == ["class", "van", "bus", "van", "opel"]
    numbers = [[float(v) for v in line.split(",")[:-1]] for line in lines[1:]]
    np.testing.assert_array_equal(numbers, X)
    assert load_arrays(folder / "optdigits.npz", ("y",))[0].tolist() == [0, 1, 2, 3]


def test_without_a_network_it_is_said(home: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"--data DIR[\s\S]*downloaded: URLError.*no way"):
        check_data("t", wanted("mnist.npz"), None)
    assert list(home.iterdir()) == []  # nothing that could be taken for data


def test_a_table_can_do_without_a_file_that_is_not_had(home: Path) -> None:
    folder = check_data("t", wanted("vehicle.csv", "wdbc.csv", optional=True), None)
    assert [path.name for path in folder.iterdir()] == ["wdbc.csv"]


def test_nothing_is_downloaded_where_a_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = serve(monkeypatch, {})
    with pytest.raises(FileNotFoundError, match=r"not in the folder"):
        check_data("t", wanted("mnist.npz"), tmp_path)
    assert asked == []


def test_every_download_serves_a_table() -> None:
    read = {file.name for entry in EXPERIMENTS.values() for file in entry.load().data}
    assert set(MAKERS) <= read
