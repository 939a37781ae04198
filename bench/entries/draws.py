"""Rows for the table of all models, where no other comparison draws such; seeds are fixed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.entries.record import Data, parted
from bench.factor_data import groups, spread
from bench.problems import Array, Problem, draw, truth
from bench.topic_data import drawn

TEST = 1000  # rows that judge
Draw = Callable[[int], Data]


def gaussian(shape: Problem) -> Draw:
    """Rows of a mixture of this shape, whatever its number of rows."""
    return lambda n: Data(draw(of_size(shape, n)))


def of_size(shape: Problem, n: int) -> Problem:
    return Problem(**{**shape.plain(), "n": n})


def parted_gaussian(shape: Problem) -> Draw:
    """The same, with rows that judge."""
    return lambda n: parted(draw(of_size(shape, n + TEST)), n)


def spread_out(d: int, n_factors: int) -> Draw:
    """One factor model; its factors stand out from the noise."""
    strengths = np.linspace(2.0, 1.0, n_factors)
    return lambda n: Data(spread(n, d, strengths, noise=1.0))


def unmixed(d: int) -> Draw:
    """Independent Laplace sources of a known mixing matrix, which is ``test``."""

    def make(n: int) -> Data:
        rng = np.random.default_rng(0)
        mixing = rng.normal(size=(d, d)) + 2 * np.eye(d)
        return Data(rng.laplace(size=(n, d)) @ mixing.T, test=mixing)

    return make


def factor_groups(d: int, k: int, n_factors: int) -> Draw:
    return lambda n: parted(groups(n + TEST, d, k, n_factors), n)


def plane(d: int, k: int, n_axes: int) -> Draw:
    """Groups that lie in one plane of so many axes, with noise in all columns."""

    def make(n: int) -> Data:
        rng = np.random.default_rng(0)
        axes = np.linalg.qr(rng.normal(size=(d, n_axes)))[0]
        centres = 4 * rng.normal(size=(k, n_axes))
        Z = centres[_labels(rng, n + TEST, k)] + rng.normal(size=(n + TEST, n_axes))
        return parted(Z @ axes.T + 0.5 * rng.normal(size=(n + TEST, d)), n)

    return make


# ------------------------------------------------ counts, bits, codes


def _labels(rng: np.random.Generator, n: int, k: int) -> Array:
    return rng.integers(k, size=n)


def poisson(d: int, k: int) -> Draw:
    def make(n: int) -> Data:
        rng = np.random.default_rng(0)
        rates = rng.gamma(2.0, 2.0, size=(k, d))
        return parted(rng.poisson(rates[_labels(rng, n + TEST, k)]).astype(float), n)

    return make


def bits(d: int, k: int) -> Draw:
    """Groups of rows of zeros and ones."""

    def make(n: int) -> Data:
        rng = np.random.default_rng(0)
        chances = rng.beta(0.4, 0.8, size=(k, d))
        own = chances[_labels(rng, n + TEST, k)]
        return parted((rng.random(own.shape) < own).astype(np.float32), n)

    return make


def codes(d: int, k: int, n_values: int) -> Draw:
    """Groups of rows of codes 0, 1, ..."""

    def make(n: int) -> Data:
        rng = np.random.default_rng(0)
        limits = np.cumsum(rng.dirichlet(np.full(n_values, 0.5), size=(k, d)), axis=2)
        own = limits[_labels(rng, n + TEST, k)]
        codes = (rng.random((n + TEST, d, 1)) > own[:, :, :-1]).sum(axis=2)
        return parted(codes.astype(float), n)

    return make


def texts(n_words: int, n_topics: int, length: int) -> Draw:
    """Documents of LDA, sparse."""
    return lambda n: parted(drawn(n + TEST // 4, n_words, n_topics, length)[0], n)


def parts(d: int, n_parts: int) -> Draw:
    """Sums of a few non-negative patterns, with a little noise."""

    def make(n: int) -> Data:
        rng = np.random.default_rng(0)
        patterns = rng.gamma(0.3, 1.0, size=(n_parts, d))
        sources = rng.gamma(0.5, 1.0, size=(n, n_parts))
        return Data(np.maximum(sources @ patterns + 0.1 * rng.normal(size=(n, d)), 0))

    return make


# ------------------------------------------------ rows with classes or outputs


def classes(shape: Problem, n_classes: int) -> Draw:
    """Each component of a mixture is a part of one class."""

    def make(n: int) -> Data:
        known, rng = truth(shape), np.random.default_rng(0)
        labels = _labels(rng, n + TEST, shape.k)
        noise = rng.normal(size=(n + TEST, 1, shape.d))
        X = (noise @ known.transforms[labels])[:, 0] + known.centres[labels]
        return parted(X, n, labels % n_classes)

    return make


def digits(n_classes: int = 10, side: int = 12) -> Draw:
    """Bits of images: a few strokes for each class, each of them moved, with pixels turned over."""

    def make(n: int) -> Data:
        rng = np.random.default_rng(0)
        shapes = rng.random((n_classes, side, side)) < 0.12
        shapes = shapes | np.roll(shapes, 1, 1) | np.roll(shapes, 1, 2)
        y = _labels(rng, n + TEST, n_classes)
        moved = rng.integers(-1, 2, size=(2, n + TEST))
        rows = (np.arange(side)[None] - moved[0][:, None]) % side
        columns = (np.arange(side)[None] - moved[1][:, None]) % side
        X = shapes[y[:, None, None], rows[:, :, None], columns[:, None, :]]
        X = X ^ (rng.random(X.shape) < 0.05)
        return parted(X.reshape(n + TEST, -1).astype(np.float32), n, y)

    return make


def outputs(d: int, n_factors: int, n_outputs: int, bent: bool = False) -> Draw:
    """Columns and outputs that share their factors.

    ``bent``: outputs are linear in the absolute factors, which keep away from zero: a group of rows
    for each sign, with a law of its own.
    """

    def make(n: int) -> Data:
        rng = np.random.default_rng(0)
        # first what does not depend on the number of rows, so that it is one problem
        to_x, to_y = rng.normal(size=(n_factors, d)), rng.normal(size=(n_factors, n_outputs))
        z = rng.normal(size=(n + TEST, n_factors))
        if bent:
            z += 2 * np.sign(z)
        X = z @ to_x + rng.normal(size=(n + TEST, d))
        y = (np.abs(z) if bent else z) @ to_y
        return parted(X, n, y + 0.5 * rng.normal(size=y.shape))

    return make
