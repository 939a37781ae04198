"""Projections by many labels: who sees what, how they are judged, and what is claimed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import sparse
from scipy.linalg import eigh
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.svm import SVC

from papers import morp
from papers.frame.run import reproduce
from papers.frame.table import Cell

pytestmark = pytest.mark.slow  # a published table, run small


@pytest.fixture(scope="module")
def rows() -> morp.Tagged:
    """Labels that depend on directions of little variance, in 60 columns; more of them than rows
    of a fold, so that the inverse form exists."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 60)) * np.linspace(3, 0.4, 60)
    hidden = X[:, 40:46] @ rng.normal(size=(6, 10)) + 0.3 * rng.normal(size=(200, 10))
    return morp.Tagged(X, (hidden > 0.5).astype(int))


@pytest.fixture
def about() -> morp.TagFile:
    return morp.TagFile(morp.GENES, (200, 60, 10), {"kernel": "linear"}, 0.5)


def _division(data: morp.Tagged, seed: int = 0) -> morp.Division:
    return morp.divide(data.Y.shape, 1, np.random.default_rng(seed))[0]


# ------------------------------------------------ who sees what


def test_rows_and_labels_are_divided_once() -> None:
    found = morp.divide((103, 47), morp.FOLDS, np.random.default_rng(0))
    assert sorted(np.concatenate([d.train for d in found])) == list(range(103))
    for division in found:
        assert len(division.known) == 33 and len(division.new) == 14
        assert sorted([*division.known, *division.new]) == list(range(47))
        assert sorted([*division.train, *division.unseen]) == list(range(103))
        np.testing.assert_array_equal(division.known, found[0].known)
        lessons = list(division.lessons(morp.FOLDS))
        assert len(lessons) == 5 and len(list(division.lessons(2))) == 2
        for train, test in lessons:
            assert sorted([*train, *test]) == sorted(division.unseen)
            assert len(train) < len(test) / 3
    other = morp.divide((103, 47), 1, np.random.default_rng(1))
    assert len(other) == 1 and set(other[0].known) != set(found[0].known)


@pytest.mark.parametrize("name", morp.PROJECTIONS)
def test_a_projection_sees_its_rows_and_labels_only(
    name: str, rows: morp.Tagged, about: morp.TagFile
) -> None:
    division = _division(rows)
    seen = rows.Y[np.ix_(division.train, division.known)]
    Z = morp.project(name, about, rows.X, division.train, seen, 5)
    assert Z.shape == (200, 5)
    others = rows.X.copy()
    others[division.unseen] = np.random.default_rng(0).normal(size=(len(division.unseen), 60))
    again = morp.project(name, about, others, division.train, seen, 5)
    np.testing.assert_allclose(again[division.train], Z[division.train], atol=1e-9)
    shuffled = np.random.default_rng(1).permutation(seen)
    moved = morp.project(name, about, rows.X, division.train, shuffled, 5)
    assert np.allclose(moved, Z) == (name == morp.PRINCIPAL)


@pytest.mark.parametrize("name", morp.PROJECTIONS)
def test_few_axes_are_the_first_of_many(name: str, rows: morp.Tagged, about: morp.TagFile) -> None:
    division = _division(rows)
    seen = rows.Y[np.ix_(division.train, division.known)]
    many, few = (morp.project(name, about, rows.X, division.train, seen, d) for d in (6, 2))
    np.testing.assert_allclose(many[:, :2], few, atol=1e-8 * np.abs(few).max())


def test_projections_solve_their_equations(rows: morp.Tagged, about: morp.TagFile) -> None:
    """Dense matrices of the columns, which the estimators do not form."""
    division = _division(rows)
    train = division.train
    seen = rows.Y[np.ix_(train, division.known)]
    X = rows.X - rows.X[train].mean(axis=0)
    F = X[train] / np.linalg.norm(X[train])
    Y = seen - seen.mean(axis=0)
    Y = Y / np.linalg.norm(Y)
    C = F.T @ F
    both = 0.5 * C @ C + 0.5 * F.T @ Y @ Y.T @ F
    _, axes = eigh(both, C + 0.3 / len(train) * np.eye(60))
    _, plain = eigh(C)
    expected = {morp.MAX: axes, morp.PRINCIPAL: plain}
    for name, vectors in expected.items():
        Z = morp.project(name, about, rows.X, train, seen, 4)
        for mine, theirs in zip(Z.T, (X @ vectors[:, ::-1]).T, strict=False):
            assert abs(np.corrcoef(mine, theirs)[0, 1]) > 1 - 1e-9, name


def test_kernel_cca_has_as_many_axes_as_the_labels_have_ranks(
    rows: morp.Tagged, about: morp.TagFile
) -> None:
    division = _division(rows)
    seen = rows.Y[np.ix_(division.train, division.known)].copy()
    seen[:, 1] = 0  # no training row has this label
    seen[:, 2] = 1 - seen[:, 3]
    Z = morp.project(morp.CORRELATED, about, rows.X, division.train, seen, 50)
    assert Z.shape == (200, 5)


def test_rows_that_come_twice_are_one_of_mean_labels() -> None:
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1e-13]])
    Y = np.array([[1, 0], [1, 1], [0, 0]])
    for table in (X, sparse.csr_array(X)):
        found, means, counts = morp.merge_equal_rows(table, Y)
        found = found.toarray() if sparse.issparse(found) else found
        order = np.argsort(found[:, 0])
        np.testing.assert_allclose(found[order], [[0, 1], [1, 0]], atol=1e-12)
        assert means[order].tolist() == [[1, 1], [0.5, 0]] and counts[order].tolist() == [1, 2]


# ------------------------------------------------ judging


def test_measures_are_those_of_scikit_learn(rng: np.random.Generator) -> None:
    truth = (rng.random((80, 6)) < 0.3).astype(int)
    scores = np.round(truth + rng.normal(size=(80, 6)) - 0.5, 1)  # ties, too
    told = (scores > 0).astype(int)
    expected = f1_score(truth, told, average="macro"), roc_auc_score(truth, scores)
    np.testing.assert_allclose(morp.score_labels(truth, scores), expected, rtol=1e-12)
    # a label that no row has is left out; one that was never learned is a matter of chance
    truth[:, 0], scores[:, 1] = 0, -1.0
    f1 = f1_score(truth[:, 2:], told[:, 2:], average="macro") * 4 / 5
    auc = (roc_auc_score(truth[:, 2:], scores[:, 2:]) * 4 + 0.5) / 5
    np.testing.assert_allclose(morp.score_labels(truth, scores), (f1, auc), rtol=1e-12)


def test_machines_are_those_of_scikit_learn(rows: morp.Tagged) -> None:
    train, test = np.arange(0, 80), np.arange(80, 200)
    Y = rows.Y[:, :4].copy()
    Y[train, 3] = 0
    found = morp.learn_labels(partial(morp._compute_products, rows.X), Y, train, test)
    scores = [
        SVC(kernel="linear", C=morp.PENALTY).fit(rows.X[train], y[train])
        .decision_function(rows.X[test]) for y in Y.T[:3]
    ]  # fmt: skip
    expected = morp.score_labels(Y[test], np.column_stack([*scores, np.full(len(test), -1.0)]))
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_kernels_are_those_of_the_projections() -> None:
    X = np.random.default_rng(0).normal(size=(12, 4))
    a, b = np.arange(5), np.arange(5, 12)
    distances = ((X[a][:, None] - X[b][None]) ** 2).sum(axis=2)
    found = morp._compare_rows(X, {"kernel": "rbf", "gamma": 0.3}, a, b)
    np.testing.assert_allclose(found, np.exp(-0.3 * distances))
    found = morp._compare_rows(sparse.csr_array(X), {"kernel": "linear"}, a, b)
    np.testing.assert_allclose(found, X[a] @ X[b].T)


def test_methods_are_judged_at_one_scale(rng: np.random.Generator) -> None:
    Z, train = rng.normal(size=(30, 3)), np.arange(10)
    found = morp.scale_to_equal_length(Z, train)
    assert np.mean((found[train] ** 2).sum(axis=1)) == pytest.approx(1)
    np.testing.assert_allclose(morp.scale_to_equal_length(1e6 * Z, train), found)


def test_a_fold_has_every_method_and_labels_help(rows: morp.Tagged, about: morp.TagFile) -> None:
    outcomes = []
    for seed in range(3):
        trial = morp.Trial(about, _division(rows, seed), (2, 6), 2)
        outcomes.append(morp.measure_fold(rows, trial))
    places = {(name, d) for name in morp.PROJECTIONS for d in (2, 6)} | {(morp.RAW, 0)}
    assert set(outcomes[0]) == {(s, *place) for s in morp.SETTINGS for place in places}

    def f1(setting: str, name: str) -> float:
        return float(np.mean([outcome[setting, name, 6][0] for outcome in outcomes]))

    # the labels are where principal axes are not, and new ones in the same place
    for name in (morp.MAX, morp.INVERSE):
        assert f1("I", name) > f1("I", morp.PRINCIPAL) + 0.1
        assert f1("II", name) > f1("II", morp.PRINCIPAL) + 0.03


# ------------------------------------------------ claims


# F1 and AUC at the last d
MEANS = {
    "I": {
        morp.RAW: (0.489, 0.958), morp.PRINCIPAL: (0.421, 0.913), morp.CORRELATED: (0.484, 0.933),
        morp.MAX: (0.491, 0.939), morp.INVERSE: (0.496, 0.942),
    },
    "II": {
        morp.RAW: (0.338, 0.958), morp.PRINCIPAL: (0.400, 0.911), morp.CORRELATED: (0.394, 0.902),
        morp.MAX: (0.431, 0.917), morp.INVERSE: (0.429, 0.909),
    },
}  # fmt: skip


def _places(gap: float = 0.1, dims: tuple[int, ...] = morp.DIMS) -> morp.Places:
    """Cells of one table; MORP is above kernel PCA by ``gap`` at each d but the last."""
    spread = np.array([-0.02, 0.0, 0.02, 0.01, -0.01])
    cells = {}
    for setting in morp.SETTINGS:
        for j, measure in enumerate(morp.MEASURES):
            for method in morp.METHODS:
                for d in dims:
                    mean = MEANS[setting][method][j]
                    if d != dims[-1] and method in (morp.MAX, morp.INVERSE):
                        mean = MEANS[setting][morp.PRINCIPAL][j] + gap
                    values = tuple(mean + spread)
                    cell = Cell(f"{setting}, d = {d}", f"{method} {measure}", values)
                    cells["Reuters", setting, measure, method, d] = cell
    return morp.Places(cells, ("Reuters",), dims, {"Reuters": 1e-7})


def test_orders_are_judged_repeat_by_repeat() -> None:
    mean, error = morp.compare_pairs((0.5, 0.7, 0.6), (0.4, 0.5, 0.3))
    assert mean == pytest.approx(0.2) and error == pytest.approx(0.1 / np.sqrt(3))
    assert np.isnan(morp.compare_pairs((0.5,), (0.4,))[1])


def test_what_holds_and_what_does_not() -> None:
    near = {check.claim: check for check in morp.check_claims(_places())}
    assert len(near) == 10
    first = "Reuters, setting I: F1 of MORP max is clearly above that of kernel PCA at every d"
    assert near[first].holds
    worse = {check.claim: check for check in morp.check_claims(_places(gap=-0.01))}
    assert not worse[first].holds and "-0.010" in worse[first].detail


def test_axes_far_from_those_of_scikit_learn_are_told() -> None:
    places = _places()
    same = morp.check_claims(places)[0]
    assert same.holds and "scikit-learn" in same.claim and "1e-07" in same.detail
    apart = morp.check_claims(replace(places, apart={"Reuters": 0.01}))[0]
    assert not apart.holds


def test_axes_are_those_of_scikit_learn(rows: morp.Tagged, about: morp.TagFile) -> None:
    trial = morp.Trial(about, _division(rows, 0), (2, 6), 2)
    assert morp.measure_axes_apart(rows, trial) < 1e-6


def test_the_picture_has_a_panel_for_each_setting_and_measure() -> None:
    from papers.morp import STYLES, draw

    figure = Figure(layout="constrained")
    draw(figure, _places())
    assert len(figure.axes) == 4 and set(STYLES) == set(morp.METHODS)
    for ax in figure.axes:
        assert ax.get_ylabel() and "Reuters, setting" in ax.get_title()
        assert len(ax.lines) == len(morp.METHODS)
    line = figure.axes[0].lines[morp.METHODS.index(morp.MAX)]
    assert line.get_label() == morp.MAX
    np.testing.assert_allclose(line.get_ydata(), [0.521, 0.521, 0.521, 0.491])


# ------------------------------------------------ data


def test_another_file_is_refused(tmp_path: Path) -> None:
    X = np.ones((2417, 103))
    np.savez(tmp_path / morp.GENES.name, X=X, y=np.ones((2417, 13), int))
    with pytest.raises(ValueError, match=r"y of shape \(2417, 14\); got .*13\)\. Obtain it again"):
        morp.load_tagged("Yeast", tmp_path)
    np.savez(tmp_path / morp.GENES.name, X=X, y=np.ones((2417, 14), int))
    assert np.allclose(np.linalg.norm(morp.load_tagged("Yeast", tmp_path).X, axis=1), 1)


def test_texts_as_published_at_known_labels(
    shared_data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The other table is absent, which is told."""
    path = shared_data(morp.TEXTS.name)
    (tmp_path / path.name).symlink_to(path.resolve())
    monkeypatch.setattr(morp, "QUICK", morp.Size({"Reuters": 3, "Yeast": 3}, 1, 1))
    table = reproduce(morp.EXPERIMENT, tmp_path, quick=True).table
    assert len(table.rows) == 8 and any("yeast.npz" in note for note in table.notes)
    judged = {check.claim: check.holds for check in table.checks}
    must = [claim for claim in judged if "scikit-learn" in claim or "at every d" in claim]
    assert len(must) == 3 and all(judged[claim] for claim in must), table.checks
    for column in ("raw F1", "raw AUC"):
        values = {table.cell(row, column).values for row in table.rows if " I," in row}  # type: ignore[union-attr]
        assert len(values) == 1, "all columns, whatever d is"
