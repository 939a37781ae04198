"""The picture of the discriminant: regions of the right class, borders, points and colours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.datasets import load_iris

from mixfold import MixtureOfFactorModels, SupervisedPPCA
from mixfold.plots import plot_discriminant

from .test_latents import coloured, legend, rows, two_groups

X, SPECIES = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"], dtype=object)[SPECIES]
TWO = np.where(SPECIES == 2, 1, 0)


def region(ax: Any, at: np.ndarray) -> np.ndarray:
    """The class number of the region at points (n, 2) of the plane."""
    (image,) = ax.images
    left, right, low, high = image.get_extent()
    grid = np.asarray(image.get_array())
    column = np.round((at[:, 0] - left) / (right - left) * (grid.shape[1] - 1)).astype(int)
    row = np.round((at[:, 1] - low) / (high - low) * (grid.shape[0] - 1)).astype(int)
    return grid[row, column]


def drawn(ax: Any, model: Any, X: Any, labels: Any = None, **options: Any) -> tuple[Any, list[Any]]:
    """The points and borders of a picture on ``ax``."""
    assert plot_discriminant(model, X, labels, ax=ax, **options) is ax
    return ax.collections[0], list(ax.collections[1:])


def vertices(border: Any) -> np.ndarray:
    return np.concatenate([path.vertices for path in border.get_paths()])


@pytest.mark.parametrize("kind", [SupervisedPPCA, MixtureOfFactorModels])
def test_points_lie_in_the_region_of_their_prediction(kind: Any) -> None:
    model = (kind(2) if kind is SupervisedPPCA else kind(1, 2)).fit(X, NAMES)
    ax = Figure().subplots()
    points, borders = drawn(ax, model, X)
    Z, predicted = model.transform(X), model.predict(X)
    # (points nearer to a border than a step of the grid may be on its other side)
    assert np.mean(model.classes_[region(ax, Z)] == predicted) > 0.98
    assert coloured(points) == {
        to_rgb(f"C{c}"): rows(Z[predicted == name], 0, 1) for c, name in enumerate(model.classes_)
    }
    assert len(borders) == 2
    assert legend(ax) == [*model.classes_, "discriminant"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("factor 1", "factor 2")


def test_the_border_of_two_classes_is_where_the_probit_is_one_half() -> None:
    model = MixtureOfFactorModels(1, 3).fit(X, TWO)
    ax = Figure().subplots()
    _, (border,) = drawn(ax, model, X, TWO, factors=(2, 0))
    line = vertices(border)
    scores = line[:, 1] * model.coef_[0, 0] + model.intercept_[0]  # along the first axis alone
    np.testing.assert_allclose(scores, 0, atol=1e-6)
    assert np.ptp(line[:, 0]) == pytest.approx(np.ptp(ax.get_xlim()))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("factor 3", "factor 1")
    assert ax.get_title(loc="left") == ""


def test_other_factors_are_at_the_mean_of_the_rows() -> None:
    model = SupervisedPPCA(3).fit(X, TWO)
    some = X[SPECIES != 0]
    ax = Figure().subplots()
    _, (border,) = drawn(ax, model, some, factors=(0, 1))
    line = vertices(border)
    at = np.c_[line, np.full(len(line), model.transform(some)[:, 2].mean())]
    # the row at these expected factors: they are shrunk from those that rebuild it
    Z = np.linalg.solve(np.eye(3) - model.latent_covariance_, at.T).T
    np.testing.assert_allclose(model.decision_function(model.inverse_transform(Z)), 0, atol=1e-5)
    assert ax.get_title(loc="left") == "other factors at their mean"


def test_true_labels_colour_the_points_and_unknown_ones_are_grey() -> None:
    model = SupervisedPPCA(2).fit(X, NAMES)
    given = NAMES.copy()
    given[::2] = None
    given[SPECIES == 0] = "lily"  # no class of the model, and no row of setosa
    ax = Figure().subplots()
    points, _ = drawn(ax, model, X, given)
    Z, found = model.transform(X), coloured(points)
    assert found[to_rgb("0.75")] == rows(Z[given == None], 0, 1)  # noqa: E711
    for number, name in ((1, "versicolor"), (2, "virginica"), (3, "lily")):
        assert found[to_rgb(f"C{number}")] == rows(Z[given == name], 0, 1)
    assert legend(ax) == [*model.classes_, "lily", "unlabelled", "discriminant"]


def test_labels_that_became_floats_are_the_classes() -> None:
    model = SupervisedPPCA(2).fit(X, TWO)
    given = TWO.astype(float)
    given[::3] = np.nan
    ax = Figure().subplots()
    drawn(ax, model, X, given)
    assert legend(ax) == ["0", "1", "unlabelled", "discriminant"]


def test_a_class_that_is_called_minus_one_is_one() -> None:
    signs = np.where(TWO, 1.0, -1.0)
    model = SupervisedPPCA(2).fit(X, signs)
    assert model.classes_.tolist() == [-1.0, 1.0]
    ax = Figure().subplots()
    points, _ = drawn(ax, model, X, signs)
    assert coloured(points)[to_rgb("C0")] == rows(model.transform(X)[signs < 0], 0, 1)
    assert legend(ax) == ["-1", "1", "discriminant"]


def test_one_component_has_its_rows_factors_and_border(rng: np.random.Generator) -> None:
    rows_of, _, classes = two_groups(rng)
    model = MixtureOfFactorModels(2, 2, classifier="per_component", random_state=0)
    model.fit(rows_of, np.minimum(classes, 1))
    with pytest.raises(ValueError, match="component must be given"):
        drawn(Figure().subplots(), model, rows_of)
    mine = model.predict_component(rows_of) == 1
    own = model.transform(rows_of, per_component=True)[mine, 1]
    points, (border,) = drawn(Figure().subplots(), model, rows_of, component=1)
    assert {tuple(map(float, at)) for at in points.get_offsets()} == rows(own, 0, 1)
    scores = vertices(border) @ model.coef_[1, 0] + model.intercept_[1, 0]
    np.testing.assert_allclose(scores, 0, atol=1e-6)


def test_a_border_out_of_view_is_no_border() -> None:
    model = MixtureOfFactorModels(1, 2).fit(X, np.where(SPECIES == 0, 0, 1))
    ax = Figure().subplots()
    _, borders = drawn(ax, model, X[SPECIES == 0])
    assert borders == [] and legend(ax) == ["0", "1"]
    assert (region(ax, model.transform(X[SPECIES == 0])) == 0).all()


def test_the_view_and_the_aspect_are_those_of_the_points() -> None:
    model = SupervisedPPCA(2).fit(X, NAMES)
    ax = Figure().subplots()
    ax.set_aspect("equal")
    drawn(ax, model, X, max_points=100, colors=["red", "green", "blue"])
    assert ax.get_aspect() == 1
    assert (*ax.get_xlim(), *ax.get_ylim()) == tuple(ax.images[0].get_extent())
    assert ax.get_title(loc="right") == "100 of 150 rows drawn"
    assert [to_rgb(c) for c in ax.images[0].get_cmap().colors] == [
        to_rgb(c) for c in ("red", "green", "blue")
    ]
