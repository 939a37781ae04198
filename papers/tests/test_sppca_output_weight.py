"""Few labels that count for more: the claims by hand, and small splits of the real tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from mixfold import SupervisedPPCA
from papers import sppca_output_weight as experiment
from papers.frame.run import show_nothing
from papers.frame.table import Cell
from papers.shared.labelled_sets import SETS, Labelled

pytestmark = pytest.mark.slow  # a table, run small


def make_cells(name: str, pca: tuple[float, ...], auto: tuple[float, ...]) -> list[Cell]:
    values = {"PCA, 1-NN": pca, "auto, predict": auto, "auto, 1-NN": auto}
    return [Cell(name, column, value) for column, value in values.items()]


def test_claims_are_about_differences_on_the_same_splits() -> None:
    # better by 0.1 on every split, whatever the splits do
    good = make_cells("A", (0.2, 0.4, 0.6), (0.1, 0.3, 0.51))
    near, most, *_ = experiment.check_claims(good)
    assert near.holds and most.holds
    # worse by 0.01, with a standard error of 0.03
    unsure = make_cells("B", (0.2, 0.4, 0.6), (0.24, 0.44, 0.55))
    near, most, *_ = experiment.check_claims(unsure)
    assert near.holds and not most.holds
    # worse by 0.05 on every split
    bad = make_cells("C", (0.2, 0.4, 0.6), (0.25, 0.45, 0.651))
    near, most, *_ = experiment.check_claims(good + unsure + bad)
    assert not near.holds and not most.holds
    near, most, *_ = experiment.check_claims([*good, *make_cells("D", (0.3, 0.5), (0.2, 0.41))])
    assert near.holds and most.holds


def test_errors_are_those_of_the_rows_without_label(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    y = np.repeat(np.arange(4), 30)
    X = rng.normal(size=(120, 30)) * np.linspace(1.5, 0.3, 30)
    X[:, 10:14] += 2 * np.eye(4)[y]
    monkeypatch.setattr(experiment, "DIM", 8)
    train = np.concatenate([np.arange(c * 30, c * 30 + 4) for c in range(4)])
    test = np.setdiff1d(np.arange(120), train)
    scores = PCA(8, svd_solver="full").fit_transform(X)
    outcome = experiment.measure_split(Labelled("groups", X, y), scores, (train, test), 200)
    nearest = KNeighborsClassifier(1).fit(scores[train], y[train])
    assert outcome.errors["PCA, 1-NN"] == pytest.approx(1 - nearest.score(scores[test], y[test]))
    known = np.full(120, -1)
    known[train] = y[train]
    model = SupervisedPPCA(8, output_weight="auto", max_iter=200, random_state=0).fit(X, known)
    assert outcome.errors["auto, predict"] == pytest.approx(1 - model.score(X[test], y[test]))
    assert (outcome.weight, outcome.unlabelled) == (
        model.output_weight_,
        model.unlabelled_weight_,
    )


def test_few_labels_of_faces_and_digits(
    shared_data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ORL", "Digits"):
        folder = shared_data(SETS[name].file.name).parent
    monkeypatch.setattr(experiment, "QUICK", experiment.Size({"ORL": 3, "Digits": 3}, 60))
    table = experiment.run(folder, True, 0, show_nothing)
    for name, gain in (("ORL", 0.03), ("Digits", 0.0)):
        pca, auto = table.cell(name, "PCA, 1-NN"), table.cell(name, "auto, predict")
        once = table.cell(name, "once, predict")
        assert pca is not None and auto is not None and once is not None
        assert auto.ours < pca.ours - gain + 0.02
        assert auto.ours < once.ours + 0.03
    assert sum("output_weight_" in note for note in table.notes) == 2
