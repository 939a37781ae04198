"""Starts of factor mixtures with labels: clusters that are not classes, and one classifier."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold.contracts import Array, Pilot
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.sources import open_source
from mixfold.families.factor import FactorFamily
from mixfold.families.factor.noise import DiagonalNoise, IsotropicNoise
from mixfold.models.outputs import label_predictions, label_starts
from mixfold.models.outputs.label_starts import LABEL_STARTS
from mixfold.models.outputs.labelled import LabelledModel
from mixfold.models.outputs.probit_labels import ProbitLabels

D = 6


def crossed(n_classes: int = 2, n: int = 240) -> tuple[Array, Array, Array]:
    """Classes far apart, in two groups that are less so: k-means finds the classes."""
    rng = np.random.default_rng(0)
    group, y = rng.integers(2, size=n), rng.integers(n_classes, size=n)
    X = rng.normal(size=(n, D))
    X[:, 0] += 6.0 * group
    X[:, 1 : 1 + n_classes] += 12.0 * (y[:, None] == np.arange(n_classes))
    return X, y, group


def test_missing_entries_are_filled_with_the_mean_of_their_cluster() -> None:
    U = np.array([[1.0, 5.0], [3.0, 9.0], [10.0, 0.0], [14.0, 2.0]])
    missing = np.array([[False, False], [False, True], [True, False], [False, False]])
    weight = np.array([1.0, 2.0, 1.0, 3.0])
    resp = weight[:, None] * np.repeat(np.eye(2), 2, axis=0)
    table = label_starts.Table(None, U, missing, weight, np.full(4, -1))  # type: ignore[arg-type]
    filled = label_starts._fill_by_cluster(table, resp)
    np.testing.assert_allclose(filled, [[1.0, 5.0], [3.0, 5.0], [14.0, 0.0], [14.0, 2.0]])
    complete = label_starts.Table(None, U, np.zeros((4, 2), bool), weight, np.full(4, -1))  # type: ignore[arg-type]
    np.testing.assert_array_equal(label_starts._fill_by_cluster(complete, resp), U)


def model_of(K: int, d: int, labels: ProbitLabels, diagonal: bool = False) -> LabelledModel:
    noise = DiagonalNoise() if diagonal else IsotropicNoise()
    family = FactorFamily(factors=(d,), noise=noise, expand=False, has_missing=True)
    return LabelledModel(K, family, labels, LABEL_STARTS["balanced"])


def pilot_of(X: Array, y: Array, weight: Array | None = None) -> Pilot:
    return draw_pilot(open_source(X, y=y, weight=weight), ThreadExecutor(1), 1000, 0)


def accuracy(model: LabelledModel, params: object, X: Array, y: Array) -> float:
    from mixfold.contracts import Block

    reading = model.prepare(params)  # type: ignore[arg-type]
    rows = label_predictions.rows(model, reading, Block(X))
    logs = label_predictions.log_probabilities(model, reading, rows, "data")
    return float((logs.argmax(axis=1) == y).mean())


def components(model: LabelledModel, params: object, X: Array) -> Array:
    from mixfold.contracts import Block

    reading = model.prepare(params)  # type: ignore[arg-type]
    return label_predictions.rows(model, reading, Block(X)).log_shares.argmax(axis=1)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_balanced_start_clusters_groups_not_classes(n_classes: int) -> None:
    X, y, group = crossed(n_classes)
    model = model_of(2, 3, ProbitLabels(n_classes, ridge=1e-2))
    pilot, rng = pilot_of(X, y), np.random.default_rng(0)
    params = LABEL_STARTS["balanced"](model, pilot, rng, 0)
    found = components(model, params, X)
    assert max(np.mean(found == group), np.mean(found != group)) > 0.95
    assert accuracy(model, params, X, y) > 0.9
    raw = LABEL_STARTS["kmeans"](model, pilot, np.random.default_rng(0), 0)
    mixed = components(model, raw, X)
    assert max(np.mean(mixed == group), np.mean(mixed != group)) < 0.8


def test_two_classes_start_along_the_first_axis() -> None:
    X, y, _ = crossed()
    model = model_of(2, 3, ProbitLabels(ridge=1e-2))
    params = LABEL_STARTS["balanced"](model, pilot_of(X, y), np.random.default_rng(0), 0)
    weights = params.outputs.weights[0, 0]
    assert weights[0] > 0
    np.testing.assert_allclose(weights[1:], 0, atol=1e-12)


def test_a_reflection_takes_the_first_axis_to_a_direction() -> None:
    w = np.array([0.3, -2.0, 1.1])
    H = label_starts.reflection(w)
    np.testing.assert_allclose(H @ H.T, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(H[:, 0], w / np.linalg.norm(w), atol=1e-14)
    for still in (np.zeros(3), np.array([2.0, 0.0, 0.0])):
        np.testing.assert_allclose(label_starts.reflection(still), np.eye(3))


def test_procrustes_finds_the_turn_of_class_means() -> None:
    rng = np.random.default_rng(0)
    reference = rng.normal(size=(5, 3))
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    means = reference @ Q.T
    means[2] = np.nan  # a class that this component does not hold
    turns = label_starts.aligning([object(), object()], [means, reference], 5)  # type: ignore[list-item]
    np.testing.assert_allclose(turns[0], Q, atol=1e-10)
    np.testing.assert_allclose(turns[1], np.eye(3), atol=1e-10)


@pytest.mark.parametrize("name", sorted(LABEL_STARTS))
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_starts_have_the_shapes_of_the_model(name: str, own: bool, n_classes: int) -> None:
    X, y, _ = crossed(n_classes, 60)
    X[3, 2] = np.nan
    y[::4] = -1
    model = model_of(3, 2, ProbitLabels(n_classes, own=own), diagonal=own)
    params = LABEL_STARTS[name](model, pilot_of(X, y), np.random.default_rng(1), 1)
    scores = 1 if n_classes == 2 else n_classes
    assert params.outputs.weights.shape == (3 if own else 1, scores, 2)
    assert params.components.loadings.shape == (3, D, 2)
    assert np.isfinite(params.components.loadings).all()
    assert (params.components.noise > 0).all()
    assert params.weights.sum() == pytest.approx(1)


def test_the_start_of_the_source() -> None:
    X, y, _ = crossed(n=80)
    model = model_of(2, 4, ProbitLabels())
    params = LABEL_STARTS["thesis"](model, pilot_of(X, y), np.random.default_rng(0), 0)
    np.testing.assert_allclose(params.outputs.weights, 0.5)
    np.testing.assert_allclose(params.outputs.biases, 0)
    np.testing.assert_allclose(params.weights, 0.5)
    means = params.components.frame.leave(params.components.means)
    distance = np.abs(X[None] - means[:, None]).sum(axis=2).min(axis=1)
    np.testing.assert_allclose(distance, 0, atol=1e-9)
    other = LABEL_STARTS["thesis"](model, pilot_of(X, y), np.random.default_rng(1), 1)
    assert not np.allclose(other.components.loadings, params.components.loadings)


def test_repeated_rows_and_weights_start_alike() -> None:
    X, y, _ = crossed(3, 60)
    weight = np.random.default_rng(0).integers(1, 4, size=60)
    model = model_of(2, 2, ProbitLabels(3))
    times = np.repeat(np.arange(60), weight)
    heavy = LABEL_STARTS["balanced"](
        model, pilot_of(X, y, weight.astype(float)), np.random.default_rng(0), 0
    )
    many = LABEL_STARTS["balanced"](
        model, pilot_of(X[times], y[times]), np.random.default_rng(0), 0
    )
    np.testing.assert_allclose(heavy.components.loadings, many.components.loadings, atol=1e-9)
    np.testing.assert_allclose(heavy.outputs.weights, many.outputs.weights, atol=1e-9)


def test_no_labels_and_single_classes_are_no_obstacle() -> None:
    X, y, _ = crossed(n=50)
    model = model_of(2, 2, ProbitLabels())
    none = LABEL_STARTS["balanced"](
        model, pilot_of(X, np.full(50, -1)), np.random.default_rng(0), 0
    )
    np.testing.assert_allclose(none.outputs.weights, 0)
    X[y == 1] += 50.0  # each cluster of the rows as they are holds one class
    raw = LABEL_STARTS["kmeans"](model, pilot_of(X, y), np.random.default_rng(0), 0)
    assert np.isfinite(raw.outputs.weights).all()


def test_rows_of_no_known_class_are_clustered_about_the_mean_of_all() -> None:
    X, y, _ = crossed()
    y[:40] = -1
    X[3, 2] = np.nan
    weight = np.random.default_rng(1).random(len(X)) + 0.5
    table = label_starts.sample_table(model_of(2, 1, ProbitLabels()), pilot_of(X, y, weight))
    found = label_starts.about_classes(table)
    free = (table.y < 0) & ~table.missing.any(axis=1)
    centre = table.weight @ table.U / table.weight.sum()
    np.testing.assert_allclose(found[free], table.U[free] - centre)
    own = table.y == 1
    np.testing.assert_allclose(table.weight[own] @ found[own], 0.0, atol=1e-9)
    assert (found[table.missing] == 0).all()
