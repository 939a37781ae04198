"""Scatter of latents: the right points, colours and ellipses, and a sample of too many."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.decomposition import FactorAnalysis

from mixfold import MixtureOfFactorModels, SupervisedMixtureOfPPCA, SupervisedPPCA
from mixfold.plots import plot_latents

N, K = 90, 3


def mixture(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """A model whose latents are the columns of X, and whose components go by the first."""
    centres = np.array([[-4.0, 0.0, 1.0], [0.0, 3.0, 0.0], [5.0, -2.0, 2.0]])
    X = centres[np.arange(N) % K] + rng.normal(size=(N, 3)) @ rng.normal(size=(3, 3)) * 0.2
    model = SimpleNamespace(
        weights_=np.full(K, 1 / K),
        transform=lambda X: np.asarray(X),
        predict=lambda X: np.abs(np.asarray(X)[:, :1] - centres[:, 0]).argmin(axis=1),
    )
    return model, X


def drawn(ax: Any, model: Any, X: Any, **options: Any) -> tuple[Any, list[Any]]:
    """The points and ellipses of a picture on ``ax``."""
    assert plot_latents(model, X, ax=ax, **options) is ax
    return ax.collections[0], list(ax.patches)


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def coloured(points: Any) -> dict[tuple[float, ...], set[tuple[float, float]]]:
    """The points of each colour."""
    found: dict[tuple[float, ...], set[tuple[float, float]]] = {}
    for colour, (x, y) in zip(points.get_facecolors(), points.get_offsets(), strict=True):
        found.setdefault(tuple(colour[:3]), set()).add((float(x), float(y)))
    return found


def rows(X: np.ndarray, *columns: int) -> set[tuple[float, ...]]:
    return {tuple(map(float, row)) for row in X[:, list(columns)]}


def test_points_have_the_colour_of_their_component(rng: np.random.Generator) -> None:
    model, X = mixture(rng)
    ax = Figure().subplots()
    points, _ = drawn(ax, model, X, factors=(2, 0))
    found = coloured(points)
    assert len(found) == K
    for k in range(K):
        assert found[to_rgb(f"C{k}")] == rows(X[model.predict(X) == k], 2, 0)
    assert legend(ax) == ["component 0", "component 1", "component 2", "2 standard deviations"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("factor 3", "factor 1")
    assert ax.get_title(loc="right") == ""


def mahalanobis(ellipse: Any, points: np.ndarray) -> np.ndarray:
    """Distances of the outline of an ellipse from the mean of points, by their covariance."""
    angles = np.linspace(0, 2 * np.pi, 9)
    outline = ellipse.get_patch_transform().transform(np.c_[np.cos(angles), np.sin(angles)])
    gap = outline - points.mean(axis=0)
    return np.sqrt(np.einsum("ni,ij,nj->n", gap, np.linalg.inv(np.cov(points.T)), gap))


def test_ellipses_are_mean_and_covariance_of_the_rows_of_a_component(
    rng: np.random.Generator,
) -> None:
    model, X = mixture(rng)
    _, ellipses = drawn(Figure().subplots(), model, X, radius=1.5)
    assert len(ellipses) == K
    for k, ellipse in enumerate(ellipses):
        np.testing.assert_allclose(mahalanobis(ellipse, X[model.predict(X) == k, :2]), 1.5)
        assert to_rgb(ellipse.get_edgecolor()) == to_rgb(f"C{k}")
        assert ellipse.get_facecolor()[3] == 0


def test_labels_colour_the_points_and_components_keep_their_ellipses(
    rng: np.random.Generator,
) -> None:
    model, X = mixture(rng)
    labels = np.where(np.arange(N) < 50, "young", "old")
    ax = Figure().subplots()
    points, ellipses = drawn(ax, model, X, labels=labels)
    found = coloured(points)
    assert found[to_rgb("C0")] == rows(X[50:], 0, 1)
    assert found[to_rgb("C1")] == rows(X[:50], 0, 1)
    for k, ellipse in enumerate(ellipses):
        np.testing.assert_allclose(mahalanobis(ellipse, X[model.predict(X) == k, :2]), 2)
        assert to_rgb(ellipse.get_edgecolor()) == (0, 0, 0)
    assert legend(ax) == ["old", "young", "components, 2 standard deviations"]


def test_labels_have_ellipses_if_there_is_no_mixture(rng: np.random.Generator) -> None:
    _, X = mixture(rng)
    model = FactorAnalysis(2, random_state=0).fit(X)
    labels = np.arange(N) % 3
    _, ellipses = drawn(Figure().subplots(), model, X, labels=labels)
    for k, ellipse in enumerate(ellipses):
        np.testing.assert_allclose(mahalanobis(ellipse, model.transform(X)[labels == k]), 2)
    ax = Figure().subplots()
    _, (single,) = drawn(ax, model, X)
    np.testing.assert_allclose(mahalanobis(single, model.transform(X)), 2)
    assert legend(ax) == ["2 standard deviations"]


@pytest.mark.parametrize(
    "labels",
    [
        [-1, 7, 10] * 30,
        [np.nan, 7.0, 10.0] * 30,
        np.array([None, "a", 3] * 30, dtype=object),
    ],
)
def test_rows_without_a_label_are_grey(rng: np.random.Generator, labels: Any) -> None:
    model, X = mixture(rng)
    del model.weights_
    ax = Figure().subplots()
    points, ellipses = drawn(ax, model, X, labels=labels)
    assert coloured(points)[to_rgb("0.75")] == rows(X[::3], 0, 1)
    assert len(ellipses) == 2
    assert legend(ax)[2] == "unlabelled"


def test_missing_labels_of_pandas_are_unknown(rng: np.random.Generator) -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install 'mixfold[tables]'")
    model, X = mixture(rng)
    labels = pandas.array([pandas.NA, 1, 2] * 30, dtype="Int64")
    points, _ = drawn(Figure().subplots(), model, X, labels=labels)
    assert coloured(points)[to_rgb("0.75")] == rows(X[::3], 0, 1)


def test_one_component_alone(rng: np.random.Generator) -> None:
    model, X = mixture(rng)
    mine = model.predict(X) == 1
    ax = Figure().subplots()
    points, (ellipse,) = drawn(ax, model, X, component=1)
    assert coloured(points) == {to_rgb("C1"): rows(X[mine], 0, 1)}
    np.testing.assert_allclose(mahalanobis(ellipse, X[mine, :2]), 2)
    assert legend(ax) == ["component 1", "2 standard deviations"]


def test_many_rows_are_sampled_and_the_plot_says_so(rng: np.random.Generator) -> None:
    model, _ = mixture(rng)
    X = rng.normal(size=(100_000, 2)) @ np.array([[2.0, 1.0], [0.0, 0.5]])
    ax = Figure().subplots()
    points, ellipses = drawn(ax, model, X, max_points=5000)
    shown = np.asarray(points.get_offsets())
    assert len(shown) == 5000
    assert rows(shown, 0, 1) <= rows(X, 0, 1)
    assert ax.get_title(loc="right") == "5,000 of 100,000 rows drawn"
    for k, ellipse in enumerate(ellipses):  # of all rows
        np.testing.assert_allclose(mahalanobis(ellipse, X[model.predict(X) == k]), 2)
    again, _ = drawn(Figure().subplots(), model, X, max_points=5000)
    np.testing.assert_array_equal(again.get_offsets(), shown)
    other, _ = drawn(Figure().subplots(), model, X, max_points=5000, random_state=1)
    assert not np.array_equal(np.asarray(other.get_offsets()), shown)


def test_groups_of_one_or_two_rows_have_no_ellipse(rng: np.random.Generator) -> None:
    _, X = mixture(rng)
    model = SimpleNamespace(transform=lambda X: X)
    labels = np.array(["a"] * 2 + ["b"] * (N - 3) + ["c"])
    points, ellipses = drawn(Figure().subplots(), model, X, labels=labels)
    assert len(points.get_offsets()) == N
    assert [to_rgb(e.get_edgecolor()) for e in ellipses] == [to_rgb("C1")]


def test_the_legend_names_the_largest_of_many_groups(rng: np.random.Generator) -> None:
    labels = np.repeat(np.arange(30), np.arange(1, 31))
    X = rng.normal(size=(len(labels), 2))
    ax = Figure().subplots()
    points, _ = drawn(ax, SimpleNamespace(transform=lambda X: X), X, labels=labels)
    assert legend(ax)[:21] == [*map(str, range(10, 30)), "and 10 more"]
    assert len(coloured(points)) == 30


def test_given_colours_are_used(rng: np.random.Generator) -> None:
    model, X = mixture(rng)
    colors = ["red", (0, 0.5, 0), "#0000ff"]
    points, ellipses = drawn(Figure().subplots(), model, X, colors=colors)
    assert set(coloured(points)) == {to_rgb(c) for c in colors}
    assert [to_rgb(e.get_edgecolor()) for e in ellipses] == [to_rgb(c) for c in colors]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"factors": (0, 3)}, r"from 0 to 2; got \(0, 3\)"),
        ({"factors": (0,)}, "two positions"),
        ({"factors": (-1, 0)}, r"got \(-1, 0\)"),
        ({"labels": [0, 1]}, r"each of the 90 rows; got an array of shape \(2,\)"),
        ({"component": 3}, "from 0 to 2; got 3"),
        ({"colors": ["red"]}, "each of the 3 groups; got 1"),
        ({"max_points": 0}, "max_points must be at least 1; got 0"),
    ],
)
def test_mistakes_are_named(
    rng: np.random.Generator, options: dict[str, Any], message: str
) -> None:
    model, X = mixture(rng)
    with pytest.raises(ValueError, match=message):
        drawn(Figure().subplots(), model, X, **options)


def test_a_single_factor_and_an_empty_component_are_named(rng: np.random.Generator) -> None:
    model, X = mixture(rng)
    with pytest.raises(ValueError, match="needs two factors"):
        drawn(Figure().subplots(), model, X[:, :1])
    with pytest.raises(ValueError, match="none of the rows is of component 2"):
        drawn(Figure().subplots(), model, X[X[:, 0] < 0], component=2)


def two_groups(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of two far groups with three classes in each, the groups and the classes."""
    group = np.arange(120) % 2
    z = rng.normal(size=(120, 2))
    axes = rng.normal(size=(2, 5, 2))
    X = np.einsum("nij,nj->ni", axes[group], z) + 30.0 * group[:, None]
    return X + 0.1 * rng.normal(size=X.shape), group, np.digitize(z[:, 0], [-0.5, 0.5])


@pytest.mark.parametrize("kind", [MixtureOfFactorModels, SupervisedMixtureOfPPCA])
def test_components_of_supervised_mixtures_are_not_their_classes(
    rng: np.random.Generator, kind: Any
) -> None:
    X, group, classes = two_groups(rng)
    model = kind(2, 2, random_state=0).fit(X, classes)
    found = model.predict_component(X)
    assert len({*zip(found, group, strict=True)}) == 2  # the groups, in some order
    ax = Figure().subplots()
    points, ellipses = drawn(ax, model, X)
    Z = model.transform(X)
    assert coloured(points) == {to_rgb(f"C{k}"): rows(Z[found == k], 0, 1) for k in range(2)}
    for k, ellipse in enumerate(ellipses):
        np.testing.assert_allclose(mahalanobis(ellipse, Z[found == k]), 2)
    assert legend(ax) == ["component 0", "component 1", "2 standard deviations"]
    _, ellipses = drawn(Figure().subplots(), model, X, labels=classes)
    assert len(ellipses) == 2


def test_one_component_is_drawn_at_its_own_factors(rng: np.random.Generator) -> None:
    X, group, classes = two_groups(rng)
    X = X - 30.0 * group[:, None] + rng.normal(size=X.shape)  # the groups lie upon each other
    model = MixtureOfFactorModels(2, 2, random_state=0).fit(X, classes)
    mine = model.predict_component(X) == 1
    own = model.transform(X, per_component=True)[mine, 1]
    assert 3 < mine.sum() < 117 and np.abs(own - model.transform(X)[mine]).max() > 0.1
    points, _ = drawn(Figure().subplots(), model, X, component=1)
    assert coloured(points) == {to_rgb("C1"): rows(own, 0, 1)}


@pytest.mark.parametrize(
    "model", [MixtureOfFactorModels(1, 2), SupervisedMixtureOfPPCA(1, 2), SupervisedPPCA(2)]
)
def test_a_single_component_is_one_group(rng: np.random.Generator, model: Any) -> None:
    X, _, classes = two_groups(rng)
    model.fit(X, np.array(["a", "b", "c"])[classes])
    ax = Figure().subplots()
    points, (single,) = drawn(ax, model, X)
    Z = model.transform(X)
    assert coloured(points) == {to_rgb("C0"): rows(Z, 0, 1)}
    np.testing.assert_allclose(mahalanobis(single, Z), 2)
    assert legend(ax) == ["2 standard deviations"]
    _, ellipses = drawn(Figure().subplots(), model, X, labels=classes)
    assert len(ellipses) == 3


def test_whole_numbers_that_are_floats_have_no_point_in_the_legend(
    rng: np.random.Generator,
) -> None:
    X = rng.normal(size=(90, 2))
    ax = Figure().subplots()
    model = SimpleNamespace(transform=lambda X: X)
    drawn(ax, model, X, labels=np.array([7.0, 10.0, np.nan] * 30))
    assert legend(ax)[:3] == ["7", "10", "unlabelled"]
