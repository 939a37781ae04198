"""Sheets of codebooks, of generated images and of mistakes show the numbers they claim to show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from mixfold.plots import plot_codebook, plot_generated, plot_misclassified

SHAPE = (3, 5)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Figures that were made by pyplot are closed after a test."""
    yield
    plt.close("all")


def texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def drawn(ax: Any) -> np.ndarray:
    return np.array([np.asarray(image.get_array()).ravel() for image in ax.images])


def layer(entries: np.ndarray) -> Any:
    return SimpleNamespace(components_=entries)


# ------------------------------------------------------------------ codebooks


@pytest.mark.parametrize("scale", ["own", "shared"])
def test_units_of_both_signs_have_zero_in_the_middle(rng: np.random.Generator, scale: Any) -> None:
    A = rng.normal(size=(7, 15)) * np.arange(1, 8)[:, None]
    ax = plot_codebook(A, SHAPE, scale=scale)
    np.testing.assert_array_equal(drawn(ax), A)
    ends = np.abs(A).max(axis=1) if scale == "own" else np.full(7, np.abs(A).max())
    np.testing.assert_allclose([image.get_clim() for image in ax.images], np.c_[-ends, ends])
    assert np.ptp(ax.images[0].to_rgba(np.zeros((1, 1)))[0, 0, :3]) < 0.02  # neutral


def test_parts_begin_with_black(rng: np.random.Generator) -> None:
    A = rng.random((4, 15))
    A[2] = 0  # a unit that is switched off
    ax = plot_codebook(layer(A), SHAPE, units=[2, 0])
    np.testing.assert_array_equal(drawn(ax), A[[2, 0]])
    assert [image.get_clim() for image in ax.images] == [(0, 1), (0, A[0].max())]
    assert ax.images[1].cmap.name == "gray"
    ax.figure.canvas.draw()


def test_higher_units_are_seen_through_the_layers_below(rng: np.random.Generator) -> None:
    books = [rng.normal(size=size) for size in ((6, 15), (4, 6), (2, 4))]
    stack = SimpleNamespace(layers_=[layer(A) for A in books])
    np.testing.assert_array_equal(drawn(plot_codebook(stack, SHAPE)), books[0])
    np.testing.assert_allclose(drawn(plot_codebook(stack, SHAPE, layer=2)), books[1] @ books[0])
    net = SimpleNamespace(generative_weights_=books[:2], top_weights_=books[2].T)
    np.testing.assert_allclose(
        drawn(plot_codebook(net, SHAPE, layer=3)), books[2] @ books[1] @ books[0]
    )
    whole = books[2] @ books[1] @ books[0]
    np.testing.assert_allclose(drawn(plot_codebook(stack, SHAPE, layer=3)), whole)


# ------------------------------------------------------------------ generated images


def test_a_row_for_each_class(rng: np.random.Generator) -> None:
    images = {"one": rng.random((4, 15)), "two": rng.random((2, 15))}
    ax = plot_generated(images, SHAPE, n=3, ax=Figure().subplots())
    assert texts(ax) == ["one", "two"] and plt.get_fignums() == []
    np.testing.assert_array_equal(drawn(ax), [*images["one"][:3], *images["two"]])
    tops = [image.get_extent()[3] for image in ax.images]
    assert tops[0] == tops[2] < tops[3] == tops[4]
    assert {image.get_clim() for image in ax.images} == {(0, 1)}
    own = plot_generated(images, SHAPE, scale="own")
    assert own.images[4].get_clim() == (images["two"][0].min(), images["two"][0].max())


def test_models_are_asked_for_every_class() -> None:
    def generate(label: int, n: int, prior: str) -> np.ndarray:
        return np.full((n, 15), label / 10 + (prior == "mixture") / 100)

    model = SimpleNamespace(classes_=np.array([3, 5]), generate=generate)
    ax = plot_generated(model, SHAPE, n=2, prior="mixture")
    np.testing.assert_allclose(drawn(ax)[:, 0], [0.31, 0.31, 0.51, 0.51])
    assert texts(ax) == ["3", "5"]
    sample = SimpleNamespace(
        classes_=["a"], sample=lambda n, label: (np.zeros((n, 15)), np.full(n, label))
    )
    assert len(plot_generated(sample, SHAPE, n=6).images) == 6


# ------------------------------------------------------------------ mistakes


def test_mistakes_have_both_classes_and_the_surest_come_first(rng: np.random.Generator) -> None:
    X, y = rng.random((6, 15)), np.array([0, 1, 2, 3, 4, 5])
    guess = np.array([0, 7, 2, 8, 9, 5])
    ax = plot_misclassified(X, y, guess, SHAPE)
    np.testing.assert_array_equal(drawn(ax), X[[1, 3, 4]])
    assert texts(ax) == ["1 → 7", "3 → 8", "4 → 9"]
    ax = plot_misclassified(X, y, guess, SHAPE, probability=[1, 0.5, 1, 0.9, 0.7, 1], n=2)
    np.testing.assert_array_equal(drawn(ax), X[[3, 4]])
    assert texts(ax) == ["3 → 8  90%", "4 → 9  70%"]


def test_classes_may_be_names(rng: np.random.Generator) -> None:
    ax = plot_misclassified(rng.random((2, 15)), ["cat", "dog"], ["cat", "cat"], SHAPE)
    assert texts(ax) == ["dog → cat"]


# ------------------------------------------------------------------ what cannot be drawn

A = np.ones((2, 15))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: plot_codebook(A, (4, 4)), ValueError, "16 pixels, but the codebook has 15"),
        (lambda: plot_codebook(A, SHAPE, units=[2]), ValueError, "from 0 to 1; got 2"),
        (lambda: plot_codebook(A, SHAPE, units=[]), ValueError, "no unit to draw"),
        (lambda: plot_codebook(A, SHAPE, layer=2), ValueError, "from 1 to 1; got 2"),
        (lambda: plot_codebook(A, SHAPE, scale="log"), ValueError, "got 'log'"),  # type: ignore[arg-type]
        (lambda: plot_codebook(SimpleNamespace(), SHAPE), TypeError, "got SimpleNamespace"),
        (lambda: plot_codebook(A * np.nan, SHAPE), ValueError, "no finite numbers"),
        (lambda: plot_generated({}, SHAPE), ValueError, "at least one class"),
        (lambda: plot_generated({0: A}, SHAPE, n=0), ValueError, "n must be at least 1"),
        (lambda: plot_generated({0: A}, SHAPE, prior="x"), TypeError, "prior: options are for"),
        (lambda: plot_generated({0: A}, (4, 4)), ValueError, "images of class 0 has 15"),
        (lambda: plot_generated(A, SHAPE), TypeError, "fitted to classes .* got ndarray"),
        (lambda: plot_misclassified(A, [0, 1], [0, 1], SHAPE), ValueError, "no mistake to draw"),
        (lambda: plot_misclassified(A, [0], [0, 1], SHAPE), ValueError, r"y must .* got shape \(1"),
        (lambda: plot_misclassified(A, [0, 1], [1, 1], SHAPE, n=0), ValueError, "at least 1"),
        (
            lambda: plot_misclassified(A, [0, 1], [1, 1], SHAPE, probability=0.5),
            ValueError,
            "probability must be one for each of the 2 rows",
        ),
    ],
)
def test_mistakes_are_named(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
    assert plt.get_fignums() == []
