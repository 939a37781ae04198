"""Sheets of images show the numbers they were given, each in its place and on its scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.decomposition import PCA

from mixfold.metrics import signal_to_error_ratio
from mixfold.plots import plot_factors, plot_images, plot_reconstructions

SHAPE = (3, 5)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Figures that were made by pyplot are closed after a test."""
    yield
    plt.close("all")


def texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def box(image: Any) -> tuple[float, float, float, float]:
    """Left, right, top and bottom; y runs down."""
    left, right, bottom, top = image.get_extent()
    return left, right, top, bottom


def grid(ax: Any) -> list[tuple[int, int]]:
    """(row, column) of each image, read off where it is drawn."""
    boxes = [box(image) for image in ax.images]
    tops, lefts = sorted({b[2] for b in boxes}), sorted({b[0] for b in boxes})
    return [(tops.index(b[2]), lefts.index(b[0])) for b in boxes]


# ------------------------------------------------------------------ images


def test_images_hold_the_rows_in_reading_order(rng: np.random.Generator) -> None:
    X = rng.normal(size=(7, 15))
    ax = plot_images(X, SHAPE, columns=3)
    assert grid(ax) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0)]
    for row, image in zip(X, ax.images, strict=True):
        drawn = np.asarray(image.get_array())
        assert drawn.shape == SHAPE
        assert drawn[1, 2] == row[1 * 5 + 2]
        np.testing.assert_array_equal(drawn.ravel(), row)


def test_images_keep_their_proportions_apart_and_in_view(rng: np.random.Generator) -> None:
    ax = plot_images(rng.normal(size=(6, 15)), SHAPE, columns=3, titles=list("abcdef"))
    (x0, x1), (y1, y0) = ax.get_xlim(), ax.get_ylim()
    boxes = [box(image) for image in ax.images]
    for left, right, top, bottom in boxes:
        assert (bottom - top) / (right - left) == pytest.approx(3 / 5)
        assert x0 <= left < right <= x1 + 1e-9 and y0 <= top < bottom <= y1 + 1e-9
    for (_, right, *_), (left, *_) in pairwise(boxes[:3]):
        assert left > right
    assert boxes[3][2] > boxes[0][3]
    assert ax.get_aspect() == 1


def test_pixels_stored_column_by_column(rng: np.random.Generator) -> None:
    image = rng.normal(size=SHAPE)
    ax = plot_images(image.T.reshape(1, -1), SHAPE, order="F")
    np.testing.assert_array_equal(ax.images[0].get_array(), image)


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        ("shared", [(-1, 9), (-1, 9)]),
        ("own", [(0, 4), (-1, 9)]),
        ((-5, 20), [(-5, 20), (-5, 20)]),
    ],
)
def test_scales(scale: Any, expected: list[tuple[float, float]]) -> None:
    X = np.array([[0, 1, np.nan, 4], [-1, 9, 3, 3]])
    ax = plot_images(X, (2, 2), scale=scale)
    assert [image.get_clim() for image in ax.images] == expected


def test_missing_pixels_have_a_colour_of_their_own() -> None:
    ax = plot_images([[0.0, np.nan], [np.nan, np.nan]], (1, 2), scale="own")
    colours = ax.images[0].to_rgba(ax.images[0].get_array())
    red, green, blue, opaque = colours[0, 1]
    assert red > green > blue and opaque == 1
    assert np.ptp(colours[0, 0, :3]) == 0  # known pixels are grey
    assert ax.images[1].get_clim() == (0, 1)


def test_titles_stand_above_their_images_and_do_not_overlap(rng: np.random.Generator) -> None:
    names = [f"a long title {i}" for i in range(4)]
    ax = plot_images(rng.normal(size=(4, 15)), SHAPE, titles=names, columns=2)
    ax.figure.canvas.draw()
    assert texts(ax) == names
    extents = [text.get_window_extent() for text in ax.texts]
    for text, image in zip(extents, ax.images, strict=True):
        picture = image.get_window_extent()
        assert text.y0 >= picture.y1
        assert text.x0 < (picture.x0 + picture.x1) / 2 < text.x1
    for a in extents:
        assert not any(a.overlaps(b) for b in extents if b is not a)
        assert not any(a.overlaps(i.get_window_extent()) for i in ax.images)


def test_figures_are_the_callers_or_of_a_fitting_size(rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, 15))
    given = Figure().subplots()
    assert plot_images(X, SHAPE, ax=given) is given
    assert plt.get_fignums() == []
    few, many = plot_images(X[:2], SHAPE, columns=2), plot_images(X, SHAPE, columns=40)
    assert len(plt.get_fignums()) == 2
    assert few.figure.get_figwidth() < many.figure.get_figwidth() < 15


# ------------------------------------------------------------------ factors


def mixture(rng: np.random.Generator, K: int = 3, d: int = 2) -> Any:
    return SimpleNamespace(
        weights_=np.array([0.5, 0.125, 0.375])[:K],
        means_=rng.normal(5, 1, size=(K, 15)),
        loadings_=rng.normal(size=(K, 15, d)) * np.arange(1, K + 1)[:, None, None],
    )


def test_factors_of_a_mixture_are_a_row_for_each_component(rng: np.random.Generator) -> None:
    model = mixture(rng)
    ax = plot_factors(model, SHAPE)
    assert grid(ax) == [(k, j) for k in range(3) for j in range(3)]
    for k in range(3):
        mean, *factors = (np.asarray(i.get_array()) for i in ax.images[3 * k : 3 * k + 3])
        np.testing.assert_array_equal(mean.ravel(), model.means_[k])
        np.testing.assert_array_equal([f.ravel() for f in factors], model.loadings_[k].T)
    rows = ["component 0\n50.0%", "component 1\n12.5%", "component 2\n37.5%"]
    assert texts(ax) == [*rows, "mean", "factor 1", "factor 2"]


@pytest.mark.parametrize("scale", ["own", "shared"])
def test_zero_is_in_the_middle_of_the_colours_of_a_factor(
    rng: np.random.Generator, scale: Any
) -> None:
    model = mixture(rng)
    ax = plot_factors(model, SHAPE, scale=scale)
    factors = [image for i, image in enumerate(ax.images) if i % 3]
    ends = np.abs(model.loadings_).max(axis=1).ravel()
    if scale == "shared":
        ends[:] = ends.max()
    np.testing.assert_allclose([image.get_clim() for image in factors], np.c_[-ends, ends])
    assert np.ptp(factors[0].to_rgba(np.zeros((1, 1)))[0, 0, :3]) < 0.02  # neutral
    means = [image.get_clim() for i, image in enumerate(ax.images) if i % 3 == 0]
    assert means == [(model.means_.min(), model.means_.max())] * 3


def test_components_and_factors_can_be_chosen(rng: np.random.Generator) -> None:
    model = mixture(rng)
    ax = plot_factors(model, SHAPE, components=[2, 0], factors=[1])
    shown = np.array([np.asarray(image.get_array()).ravel() for image in ax.images])
    W, mu = model.loadings_, model.means_
    np.testing.assert_array_equal(shown, [mu[2], W[2, :, 1], mu[0], W[0, :, 1]])
    assert texts(ax) == ["component 2\n37.5%", "component 0\n50.0%", "mean", "factor 2"]


def test_single_models_have_one_row_and_no_label(rng: np.random.Generator) -> None:
    model = SimpleNamespace(mean_=np.zeros(15), loadings_=rng.normal(size=(15, 2)))
    model.loadings_[:, 1] = 0  # a factor that is switched off
    ax = plot_factors(model, SHAPE)
    assert grid(ax) == [(0, 0), (0, 1), (0, 2)]
    assert texts(ax) == ["mean", "factor 1", "factor 2"]
    assert ax.images[2].get_clim() == (-1, 1)
    ax.figure.canvas.draw()  # a constant mean is no trouble


def test_factors_of_scikit_learn_are_its_components(rng: np.random.Generator) -> None:
    pca = PCA(2).fit(rng.normal(size=(30, 15)))
    ax = plot_factors(pca, SHAPE)
    shown = [np.asarray(image.get_array()).ravel() for image in ax.images]
    np.testing.assert_array_equal(shown, [pca.mean_, *pca.components_])


def test_components_may_differ_in_their_number_of_factors(rng: np.random.Generator) -> None:
    model = mixture(rng)
    model.loadings_ = [rng.normal(size=(15, d)) for d in (1, 0, 2)]
    ax = plot_factors(model, SHAPE)
    assert grid(ax) == [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (2, 2)]
    assert texts(ax)[3:] == ["mean", "factor 1", "factor 2"]


# ------------------------------------------------------------------ reconstructions


def test_reconstructions_stand_below_their_originals_with_their_ratio(
    rng: np.random.Generator,
) -> None:
    X = rng.normal(size=(5, 15))
    X_hat = X + 0.1 * rng.normal(size=X.shape)
    ax = plot_reconstructions(X, X_hat, SHAPE, columns=3)
    places = [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 0), (3, 0), (2, 1), (3, 1)]
    assert grid(ax) == places
    for i in range(5):
        above, below = ax.images[2 * i : 2 * i + 2]
        np.testing.assert_array_equal(np.asarray(above.get_array()).ravel(), X[i])
        np.testing.assert_array_equal(np.asarray(below.get_array()).ravel(), X_hat[i])
        assert above.get_clim() == below.get_clim() == (X[i].min(), X[i].max())
    ratios = signal_to_error_ratio(X, X_hat, per_row=True)
    assert isinstance(ratios, np.ndarray)
    labels = ["original", "reconstruction"] * 2
    assert texts(ax) == [*labels, *(f"{ratio:.1f} dB" for ratio in ratios)]
    feet = [box(image)[3] for image in ax.images]
    tops = [box(image)[2] for image in ax.images]
    assert tops[6] - feet[1] > tops[1] - feet[0] - 1e-9  # bands are set apart


def test_several_reconstructions_are_named(rng: np.random.Generator) -> None:
    X = rng.normal(size=(2, 15))
    hats = {"few": X + 1, "many": X + 0.1}
    ax = plot_reconstructions(X, hats, SHAPE, scale=(0, 1))
    assert grid(ax) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]
    assert texts(ax)[:3] == ["original", "few", "many"]
    np.testing.assert_array_equal(ax.images[5].get_array(), hats["many"][1].reshape(SHAPE))
    assert {image.get_clim() for image in ax.images} == {(0, 1)}


def test_labels_of_rows_stay_inside_the_figure(rng: np.random.Generator) -> None:
    X = rng.normal(size=(3, 15))
    ax = plot_reconstructions(X, {"a rather long name": X + 1}, SHAPE)
    ax.figure.canvas.draw()
    assert min(text.get_window_extent().x0 for text in ax.texts) >= 0
    first = ax.images[0].get_window_extent()
    assert all(text.get_window_extent().x1 <= first.x0 for text in ax.texts[:2])


def test_eigenfaces_of_real_frames(shared_data: Callable[[str], Path], tmp_path: Path) -> None:
    """The sheet of a real model is drawn to a file; the mean face is lighter than its surround."""
    with np.load(shared_data("frey_face.npz"), allow_pickle=False) as file:
        faces = file["X"][::5].astype(float)
    ax = plot_factors(PCA(6, random_state=0).fit(faces), (28, 20))
    mean = np.asarray(ax.images[0].get_array())
    assert mean[4:24, 5:15].mean() > mean[:, :1].mean()
    ax.figure.savefig(tmp_path / "faces.png")
    assert (tmp_path / "faces.png").stat().st_size > 5000


# ------------------------------------------------------------------ mistakes

X = np.zeros((2, 15))
ONE = SimpleNamespace(mean_=np.zeros(15), loadings_=np.zeros((15, 2)))
MANY = mixture(np.random.default_rng(0))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: plot_images(X, (4, 4)), ValueError, "4 x 4 is 16 pixels, but images has 15"),
        (lambda: plot_images(X[0], SHAPE), ValueError, r"images\[None\]"),
        (lambda: plot_images(X[:0], SHAPE), ValueError, "no image to draw"),
        (lambda: plot_images(X, (15,)), ValueError, r"\(height, width\).*got \(15,\)"),  # type: ignore[arg-type]
        (lambda: plot_images(X, (-3, -5)), ValueError, "at least 1"),
        (lambda: plot_images(X, SHAPE, titles=["a"]), ValueError, "each of the 2 images; got 1"),
        (lambda: plot_images(X, SHAPE, columns=0), ValueError, "columns must be at least 1"),
        (lambda: plot_images(X, SHAPE, scale="log"), ValueError, "got 'log'"),  # type: ignore[arg-type]
        (lambda: plot_images(X, SHAPE, scale=(2, 1)), ValueError, "low < high"),
        (lambda: plot_images(X, SHAPE, order="A"), ValueError, "order must be"),  # type: ignore[arg-type]
        (lambda: plot_images(sparse.csr_array(X), SHAPE), TypeError, "toarray"),
        (lambda: plot_factors(ONE, (5, 5)), ValueError, "25 pixels, but the loadings"),
        (lambda: plot_factors(ONE, SHAPE, components=[0]), ValueError, "for mixtures"),
        (lambda: plot_factors(ONE, SHAPE, factors=[2]), ValueError, "from 0 to 1; got 2"),
        (lambda: plot_factors(ONE, SHAPE, scale="log"), ValueError, "scale"),  # type: ignore[arg-type]
        (lambda: plot_factors(MANY, SHAPE, components=[3]), ValueError, "from 0 to 2; got 3"),
        (lambda: plot_factors(MANY, SHAPE, components=[]), ValueError, "no image to draw"),
        (lambda: plot_factors(SimpleNamespace(), SHAPE), TypeError, "got SimpleNamespace"),
        (lambda: plot_reconstructions(X, X[:1], SHAPE), ValueError, r"shape of X, \(2, 15\)"),
        (lambda: plot_reconstructions(X, {}, SHAPE), ValueError, "X_hat is empty"),
        (
            lambda: plot_reconstructions(X, {"a": X[:, :4]}, SHAPE),
            ValueError,
            r"X_hat \(a\) has 4 columns",
        ),
    ],
)
def test_mistakes_are_named(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
    assert plt.get_fignums() == []
