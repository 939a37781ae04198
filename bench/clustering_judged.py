"""Tables by which ``n_clusters="auto"`` is judged: shapes and draws by which no rule was chosen."""

from __future__ import annotations

import numpy as np

from bench.clustering_data import Draw, Labelled, standardised
from bench.problems import Array

# ------------------------------------------------------------------ parts


def _blob(rng: np.random.Generator, n: int, at: list[float], spread: Array | float = 1.0) -> Array:
    return np.asarray(at) + np.asarray(spread) * rng.normal(size=(n, len(at)))


def _turned(X: Array, degrees: float) -> Array:
    turn = np.deg2rad(degrees)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    return np.asarray(X @ rotation.T)


def _ring(rng: np.random.Generator, n: int, radius: float, noise: float, share: float = 1) -> Array:
    turn = 2 * np.pi * share * rng.random(n)
    radii = radius + noise * rng.normal(size=n)
    return np.column_stack([radii * np.cos(turn), radii * np.sin(turn)])


def _path(rng: np.random.Generator, n: int, corners: list[list[float]], noise: float) -> Array:
    """Rows along a broken line, evenly by length."""
    points = np.asarray(corners, float)
    legs = np.linalg.norm(np.diff(points, axis=0), axis=1)
    leg = rng.choice(len(legs), size=n, p=legs / legs.sum())
    on = points[leg] + rng.random((n, 1)) * (points[leg + 1] - points[leg])
    return np.asarray(on + noise * rng.normal(size=(n, 2)))


def _disc(rng: np.random.Generator, n: int, at: list[float], radius: float) -> Array:
    turn = 2 * np.pi * rng.random(n)
    radii = radius * np.sqrt(rng.random(n))
    return np.asarray(at) + np.column_stack([radii * np.cos(turn), radii * np.sin(turn)])


def _stack(*groups: Array) -> tuple[Array, Array]:
    labels = np.repeat(np.arange(1, len(groups) + 1), [len(group) for group in groups])
    return np.concatenate(groups), labels


# ------------------------------------------------------------------ Gaussians that overlap


def three_apart(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Two round Gaussians, three standard deviations apart."""
    return _stack(_blob(rng, n // 2, [0, 0]), _blob(rng, n - n // 2, [3, 0]))


def three_and_a_half_apart(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Three Gaussians, three and a half standard deviations apart, one with half the rows."""
    return _stack(
        _blob(rng, 2 * n // 5, [0, 0]), _blob(rng, 2 * n // 5, [3.5, 0]),
        _blob(rng, n // 5, [1.75, 3.03]),
    )  # fmt: skip


def crossed(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Two long Gaussians that cross each other off their middles."""
    a = _turned(_blob(rng, n // 2, [0, 0], np.array([3.0, 0.4])), 20)
    b = _turned(_blob(rng, n - n // 2, [2.5, 0], np.array([3.0, 0.4])), 110)
    return _stack(a, b)


def wide_and_narrow(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A narrow Gaussian on the flank of one three times as wide."""
    return _stack(_blob(rng, 2 * n // 3, [0, 0], 3.0), _blob(rng, n // 3, [5.5, 0], 1.0))


def five_columns(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Four Gaussians in five columns with correlations of their own."""
    groups = []
    for k in range(4):
        at = 3.2 * np.eye(5)[k] + rng.normal(size=5) * 0.3
        mix = np.eye(5) + 0.35 * rng.normal(size=(5, 5))
        groups.append(at * 1.3 + rng.normal(size=(n // 4, 5)) @ mix / np.sqrt(1.6))
    return _stack(*groups)


# ------------------------------------------------------------------ groups that are no Gaussians


def moons(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Two half moons, thick and near to each other."""
    a = _ring(rng, n // 2, 1.0, 0.11, 0.5)
    b = -_ring(rng, n - n // 2, 1.0, 0.11, 0.5) + np.array([1.0, 0.5])
    return _stack(a, b)


def three_rings(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Three rings around each other."""
    return _stack(
        _ring(rng, n // 6, 1.0, 0.1), _ring(rng, n // 3, 2.1, 0.1), _ring(rng, n // 2, 3.2, 0.1)
    )


def horseshoe(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A blob within three quarters of a ring."""
    return _stack(_ring(rng, 2 * n // 3, 2.5, 0.2, 0.75), _blob(rng, n // 3, [0.2, 0.2], 0.5))


def corners(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Two right angles, one within the other."""
    return _stack(
        _path(rng, 3 * n // 5, [[0, 4], [0, 0], [4, 0]], 0.15),
        _path(rng, 2 * n // 5, [[1.2, 4], [1.2, 1.2], [4, 1.2]], 0.15),
    )


def frame(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A triangle of lines around a blob, and a disc beside it."""
    return _stack(
        _path(rng, n // 2, [[-3, -2], [3, -2], [0, 3], [-3, -2]], 0.12),
        _blob(rng, n // 4, [0, -0.3], 0.35), _disc(rng, n // 4, [5, 0], 1.0),
    )  # fmt: skip


def discs(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Two discs and a square of even density with narrow gaps."""
    square = np.array([1.0, 2.3]) + 2.0 * (rng.random((n // 3, 2)) - 0.5)
    return _stack(_disc(rng, n // 3, [0, 0], 1.0), _disc(rng, n // 3, [2.3, 0], 1.0), square)


def skewed_pair(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Two groups whose columns are skewed."""
    a, b = np.exp(0.6 * rng.normal(size=(n // 2, 2))), np.exp(0.6 * rng.normal(size=(n // 2, 2)))
    return _stack(a, np.array([7.0, 3.0]) - b * np.array([1.0, -1.0]))


# ------------------------------------------------------------------ a single group


def one_normal(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """One Gaussian in three columns."""
    return _stack(rng.normal(size=(n, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0.7], [0, 0, 1.0]]))


def one_disc(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A disc of even density."""
    return _stack(_disc(rng, n, [0, 0], 1.0))


def one_ring(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A ring with nothing in it."""
    return _stack(_ring(rng, n, 1.0, 0.12))


def one_corner(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A right angle."""
    return _stack(_path(rng, n, [[0, 3], [0, 0], [3, 0]], 0.25))


def one_wave(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """One and a half waves of a sine."""
    x = 3 * np.pi * rng.random(n)
    return _stack(np.column_stack([x / 2, np.sin(x)]) + 0.2 * rng.normal(size=(n, 2)))


def one_skewed(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Three columns of gamma distributions, one correlated with another."""
    z = rng.gamma(2.0, size=(n, 3))
    z[:, 1] += 0.5 * z[:, 0]
    return _stack(z)


def one_laplace(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Laplace distributions of two columns, turned."""
    return _stack(_turned(rng.laplace(size=(n, 2)) * np.array([2.0, 1.0]), 30))


# kind/shape: how it is drawn, rows
JUDGED: dict[str, tuple[Draw, int]] = {
    "overlap/three_apart": (three_apart, 500),
    "overlap/three_and_a_half": (three_and_a_half_apart, 600),
    "overlap/crossed": (crossed, 500),
    "overlap/wide_and_narrow": (wide_and_narrow, 600),
    "overlap/five_columns": (five_columns, 600),
    "bent/moons": (moons, 500),
    "bent/three_rings": (three_rings, 900),
    "bent/horseshoe": (horseshoe, 600),
    "bent/corners": (corners, 600),
    "bent/frame": (frame, 800),
    "bent/discs": (discs, 600),
    "bent/skewed_pair": (skewed_pair, 500),
    "one/normal": (one_normal, 400),
    "one/disc": (one_disc, 500),
    "one/ring": (one_ring, 500),
    "one/corner": (one_corner, 500),
    "one/wave": (one_wave, 500),
    "one/skewed": (one_skewed, 500),
    "one/laplace": (one_laplace, 500),
}


def draw_judged(name: str, seed: int, quick: bool = False) -> Labelled:
    """A table of JUDGED in random order, ``quick`` with a third of the rows."""
    how, n = JUDGED[name]
    rng = np.random.default_rng([2020, seed, *name.encode()])
    X, labels = how(rng, n // 3 if quick else n)
    order = rng.permutation(len(X))
    return Labelled(name, standardised(X[order]), (labels[order],))
