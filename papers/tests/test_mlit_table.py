"""Table 4 of Piccardi et al. (2011): its data, its choices, and a small rerun of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from papers import mlit_table
from papers.frame.run import reproduce
from papers.mlit_table import SETS, Labelled, find_sets, load_set

pytestmark = pytest.mark.slow  # a published table, run small


@pytest.fixture
def groups(rng: np.random.Generator) -> Labelled:
    """Two classes that differ in an axis of small variance."""
    y = np.arange(100) % 2
    X = rng.normal(size=(100, 4)) * [4.0, 2.0, 0.4, 0.4] + 1.0
    X[:, 2] += 0.9 * y
    return Labelled("groups", X, y)


# ------------------------------------------------ data


def test_missing_entries_are_medians(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["a,b,kind", "1,2,x", "3,NA,y", "5,4,x", "7,9,y"]
    (tmp_path / "vehicle.csv").write_text("\n".join(lines), encoding="utf-8")
    known = SETS["Vehicle"]
    small = type(known)(known.file, (4, 2), 2)
    monkeypatch.setitem(SETS, "Vehicle", small)
    data = load_set("Vehicle", tmp_path)
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4], [5, 4], [7, 9]])
    assert data.y.tolist() == [0, 1, 0, 1] and data.majority == 0.5
    monkeypatch.setitem(SETS, "Vehicle", known)
    with pytest.raises(ValueError, match="got 4 rows, 2 columns and 2 classes"):
        load_set("Vehicle", tmp_path)
    (tmp_path / "vehicle.csv").write_text("a,b\n1,2,x\nword,3,y\n", encoding="utf-8")
    with pytest.raises(ValueError, match="cannot be read"):
        load_set("Vehicle", tmp_path)
    (tmp_path / "vehicle.csv").write_text("a,b\n", encoding="utf-8")
    with pytest.raises(ValueError, match="it is empty"):
        load_set("Vehicle", tmp_path)


def test_sets_that_are_not_there_are_told(tmp_path: Path) -> None:
    (tmp_path / "wdbc.csv").write_text("", encoding="utf-8")
    found, notes = find_sets(("Vehicle", "WDBC"), tmp_path)
    assert found == ("WDBC",) and notes == (
        "Vehicle is left out: vehicle.csv is not in the data folder.",
    )
    (tmp_path / "wdbc.csv").unlink()
    (tmp_path / "vehicle.csv").write_text("", encoding="utf-8")  # not of the quick variant
    with pytest.raises(FileNotFoundError, match=r"wdbc\.csv"):
        reproduce(mlit_table.EXPERIMENT, tmp_path, quick=True)


def test_the_files_are_those_of_the_table(shared_data: Callable[[str], Path]) -> None:
    majorities = {"Vehicle": 218 / 846, "WDBC": 357 / 569, "WPBC": 151 / 198}
    for name, share in majorities.items():
        data = load_set(name, shared_data(SETS[name].file.name).parent)
        assert data.majority == pytest.approx(share) and np.isfinite(data.X).all()
    digits = load_set("OpticDigit", shared_data("optdigits.npz").parent)
    assert digits.X.shape == (5620, 64) and len(np.unique(digits.y)) == 10


# ------------------------------------------------ runs


def test_folds_are_stratified_and_differ_by_repeat(groups: Labelled) -> None:
    first, again, other = (mlit_table.split_in_folds(groups.y, 0, repeat) for repeat in (0, 0, 1))
    tests = np.concatenate([test for _, test in first])
    assert sorted(tests) == list(range(100))
    assert all(np.bincount(groups.y[test]).tolist() == [10, 10] for _, test in first)
    assert all((a[1] == b[1]).all() for a, b in zip(first, again, strict=True))
    assert any((a[1] != b[1]).any() for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("method", mlit_table.METHODS)
def test_held_out_rows_do_not_choose(groups: Labelled, method: str) -> None:
    """Another label on the held-out rows changes their accuracies and nothing that is chosen."""
    grid = mlit_table.Grid((1.0, 10.0), ("smallest",), 2)
    settings = (
        grid.settings()
        if method in mlit_table.METHODS[:2]
        else (mlit_table.Setting(False), mlit_table.Setting(True))
    )
    case = mlit_table.Case(method, None if method == "GMM" else 2, 1, settings, grid.steps)
    [(train, test), *_] = mlit_table.split_in_folds(groups.y, 0, 0)
    truth = mlit_table.measure_settings(groups, case, train, test, 0)
    lies = groups.y.copy()
    lies[test] = 1 - lies[test]
    turned = mlit_table.measure_settings(Labelled("lies", groups.X, lies), case, train, test, 0)
    assert truth.inside == turned.inside and truth.iterates == turned.iterates
    for held, other in zip(truth.held, turned.held, strict=True):
        np.testing.assert_allclose(held, 1 - other)
    assert truth.honest == pytest.approx(1 - turned.honest)
    assert len(truth.held) == len(settings) and truth.honest > 0.5
    assert len(truth.held[0]) == (3 if method in mlit_table.METHODS[:2] else 1)


def test_the_best_of_the_reported_folds() -> None:
    outcomes = [
        mlit_table.Outcome((np.array([0.5, 0.9]), np.array([0.6, 0.6, 0.6])), (0.4, 0.7), (1, 2)),
        mlit_table.Outcome((np.array([0.7, 0.5]), np.array([0.6, 0.8])), (0.6, 0.5), (0, 0)),
    ]
    curves = mlit_table.average_by_setting(outcomes)
    np.testing.assert_allclose(curves[0], [0.6, 0.7])
    np.testing.assert_allclose(curves[1], [0.6, 0.7])  # up to the shorter of the two
    assert mlit_table.find_best(curves) == (0, 1)
    assert [outcome.honest for outcome in outcomes] == [0.6, 0.7]


def test_every_published_value_has_its_place() -> None:
    assert set(mlit_table.PUBLISHED) == set(SETS) == set(mlit_table.FULL.grids)
    assert all(set(by) == set(mlit_table.METHODS) for by in mlit_table.PUBLISHED.values())
    for name, method in mlit_table.LEAST:
        published = mlit_table.PUBLISHED[name][method][0]
        assert published is not None and mlit_table.LEAST[name, method] < published


# ------------------------------------------------ real data


def test_a_small_rerun(shared_data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shared_data("wdbc.csv").parent
    monkeypatch.setattr(mlit_table, "METHODS", ("MLiT (N)", "GMM"))
    monkeypatch.setattr(mlit_table, "QUICK", mlit_table.Size({"WDBC": mlit_table._FEW}, 1))
    found = reproduce(mlit_table.EXPERIMENT, folder, quick=True).table
    assert found.rows == ("WDBC, MLiT (N), d = 18, K = 1", "WDBC, GMM, K = 2")
    assert all(check.holds for check in found.checks) and len(found.checks) == 2
    cell = found.cell(found.rows[0], mlit_table.INSIDE.name)
    assert cell is not None and cell.ours > 94
    assert found.draw is not None
    figure = Figure(layout="constrained")
    found.draw(figure)
    assert [ax.get_title() for ax in figure.axes] == ["WDBC", "standardised, scale 1, init largest"]
