"""Tables with reference labelings: batteries of a benchmark suite in files, or drawn here."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.problems import Array

BATTERIES = ("wut", "graves", "uci")
NOISE = 0  # the label of rows that are clustered with the rest and left out of the score


@dataclass(frozen=True)
class Labelled:
    """Rows, and one or more reference labelings of them with labels 1, 2, ... (0 is noise)."""

    name: str  # battery/set
    X: Array
    labelings: tuple[Array, ...]

    @property
    def battery(self) -> str:
        return self.name.split("/")[0]

    @property
    def sizes(self) -> list[int]:
        """Numbers of clusters of the labelings, each once, in increasing order."""
        return sorted({n_clusters(labels) for labels in self.labelings})


def n_clusters(labels: Array) -> int:
    return len(np.unique(labels[labels != NOISE]))


def standardised(X: Array) -> Array:
    """Without columns of variance zero, centred, divided by one number for all columns.

    As in the suite, that number is the standard deviation of all entries as they are recorded, not
    of centred ones. It matters to scikit-learn, which adds the same ``reg_covar`` in any units.
    """
    X = np.asarray(X, float)
    X = X[:, X.min(axis=0) < X.max(axis=0)]
    return np.asarray((X - X.mean(axis=0)) / X.std(ddof=1))


# ------------------------------------------------------------------ files


def has_batteries(folder: Path | None) -> bool:
    return folder is not None and (folder / "clustering").is_dir()


def names_in(folder: Path) -> list[str]:
    """``battery/set`` of every set in ``folder/clustering``, battery by battery."""
    found = [
        f"{battery}/{path.name.removesuffix('.data.gz')}"
        for battery in BATTERIES
        for path in sorted((folder / "clustering" / battery).glob("*.data.gz"))
    ]
    if not found:
        raise FileNotFoundError(
            f"{str(folder / 'clustering')!r} must hold NAME.data.gz in folders "
            f"{', '.join(BATTERIES)}, and has none; leave the folder out to use drawn tables"
        )
    return found


def read(folder: Path, name: str) -> Labelled:
    """One set and its labelings.

    Raises
    ------
    FileNotFoundError
        If the set has no labeling.
    ValueError
        If a labeling has not one label for each row.
    """
    place = folder / "clustering" / name
    X = np.loadtxt(f"{place}.data.gz", ndmin=2)
    files = sorted(place.parent.glob(f"{place.name}.labels*.gz"), key=_number)
    if not files:
        raise FileNotFoundError(f"{name} has no reference labeling {place.name}.labels0.gz")
    labelings = tuple(np.loadtxt(path, dtype=int, ndmin=1) for path in files)
    for path, labels in zip(files, labelings, strict=True):
        if len(labels) != len(X):
            raise ValueError(
                f"{path.name} must have a label for each of the {len(X)} rows of {name}, "
                f"and has {len(labels)}"
            )
    return Labelled(name, standardised(X), labelings)


def _number(path: Path) -> int:
    found = re.search(r"\.labels(\d+)\.gz$", path.name)
    return int(found[1]) if found else -1


def published(folder: Path | None) -> dict[str, dict[str, float]]:
    """Scores of other methods by set and column, from the table in ``CLUSTERING.md`` if any.

    A dash is no score; the line of means is left out.
    """
    path = None if folder is None else folder / "CLUSTERING.md"
    if path is None or not path.is_file():
        return {}
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ]
    head = next((row for row in rows if row[0] == "set"), None)
    if head is None:
        return {}
    return {
        row[0]: {
            column: float(cell)
            for column, cell in zip(head[1:], row[1:], strict=True)
            if cell not in ("", "-")
        }
        for row in rows
        if "/" in row[0]
    }


# ------------------------------------------------------------------ drawn tables
#
# Each function takes a generator and the number of rows, and returns rows and labels. Rules of
# the library are settled on these tables, so that the batteries in files stay a test.

Draw = Callable[[np.random.Generator, int], tuple[Array, Array]]


def _shares(n: int, *shares: float) -> list[int]:
    counts = [max(5, round(n * share / sum(shares))) for share in shares]
    counts[int(np.argmax(counts))] += n - sum(counts)
    return counts


def _stack(*groups: Array) -> tuple[Array, Array]:
    labels = np.repeat(np.arange(1, len(groups) + 1), [len(group) for group in groups])
    return np.concatenate(groups), labels


def _normal(rng: np.random.Generator, n: int, mean: list[float], cov: list[list[float]]) -> Array:
    return rng.multivariate_normal(mean, cov, size=n)


def _arc(
    rng: np.random.Generator, n: int, centre: tuple[float, float], radius: float,
    angles: tuple[float, float], noise: float,
) -> Array:  # fmt: skip
    """Rows along an arc; the angles are in turns."""
    turn = 2 * np.pi * rng.uniform(*angles, n)
    points = np.column_stack([np.cos(turn), np.sin(turn)])
    return np.asarray(centre) + radius * points + noise * rng.normal(size=(n, 2))


def _line(rng: np.random.Generator, n: int, start: Array, end: Array) -> Array:
    return np.asarray(start) + rng.random((n, 1)) * (np.asarray(end) - np.asarray(start))


def overlapping(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Four Gaussians with covariances of their own that touch each other."""
    a, b, c, d = _shares(n, 1, 1, 1, 1)
    return _stack(
        _normal(rng, a, [0, 0], [[1.0, 0.6], [0.6, 1.0]]),
        _normal(rng, b, [3.2, 0], [[0.4, 0.0], [0.0, 1.6]]),
        _normal(rng, c, [0.5, 3.2], [[2.0, -0.5], [-0.5, 0.5]]),
        _normal(rng, d, [4.0, 4.2], [[0.6, 0.0], [0.0, 0.6]]),
    )


def unequal(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Blobs of very unequal size and spread."""
    a, b, c = _shares(n, 20, 4, 1)
    return _stack(
        _normal(rng, a, [0, 0], [[2.0, 0.0], [0.0, 2.0]]),
        _normal(rng, b, [5.0, 1.0], [[0.2, 0.1], [0.1, 0.3]]),
        _normal(rng, c, [2.5, 5.0], [[0.05, 0.0], [0.0, 0.05]]),
    )


def inside(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A narrow Gaussian inside a wide one."""
    a, b = _shares(n, 3, 1)
    return _stack(
        _normal(rng, a, [0, 0], [[9.0, 0.0], [0.0, 9.0]]),
        _normal(rng, b, [0.5, 0.3], [[0.02, 0.0], [0.0, 0.02]]),
    )


def one_group(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A single Gaussian: nothing to tell apart."""
    return _stack(_normal(rng, n, [0, 0], [[3.0, 1.0], [1.0, 1.0]]))


def many_columns(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Five Gaussians in twenty columns, of which six tell them apart."""
    counts = _shares(n, 3, 2, 2, 1, 1)
    means = np.zeros((5, 20))
    means[:, :6] = 2.2 * rng.normal(size=(5, 6))
    scales = rng.uniform(0.7, 1.3, size=(5, 20))
    return _stack(
        *(m + s * rng.normal(size=(k, 20)) for m, s, k in zip(means, scales, counts, strict=True))
    )


def rounded(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Three Gaussians recorded to one digit, with a column of two values beside them."""
    a, b, c = _shares(n, 2, 1, 1)
    X, labels = _stack(
        _normal(rng, a, [0, 0, 0], np.diag([0.3, 1.0, 1.0]).tolist()),
        _normal(rng, b, [3, 0, 2], np.diag([0.5, 0.3, 1.0]).tolist()),
        _normal(rng, c, [0, 4, -1], np.diag([0.2, 0.4, 0.5]).tolist()),
    )
    chance = np.array([0.0, 0.1, 0.9, 0.5])[labels]
    return np.column_stack([X.round(1), rng.random(n) < chance]), labels


def rings(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Two rings around each other."""
    a, b = _shares(n, 1, 2)
    return _stack(_arc(rng, a, (0, 0), 1.0, (0, 1), 0.07), _arc(rng, b, (0, 0), 2.2, (0, 1), 0.1))


def nested(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A blob inside a ring."""
    a, b = _shares(n, 1, 3)
    return _stack(
        _normal(rng, a, [0, 0], [[0.1, 0.0], [0.0, 0.1]]), _arc(rng, b, (0, 0), 2.0, (0, 1), 0.12)
    )


def bananas(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Two half circles that reach into each other."""
    a, b = _shares(n, 1, 1)
    return _stack(
        _arc(rng, a, (0, 0), 1.0, (0, 0.5), 0.08), _arc(rng, b, (1, 0.4), 1.0, (0.5, 1), 0.08)
    )


def bent_and_round(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A wide arc, two blobs above it and a small one beside it."""
    a, b, c, d = _shares(n, 4, 2, 2, 1)
    return _stack(
        _arc(rng, a, (0, 0), 3.0, (0.55, 0.95), 0.15),
        _normal(rng, b, [-1.2, 1.0], [[0.15, 0.0], [0.0, 0.15]]),
        _normal(rng, c, [1.2, 1.0], [[0.15, 0.0], [0.0, 0.15]]),
        _normal(rng, d, [4.5, 1.5], [[0.03, 0.0], [0.0, 0.2]]),
    )


def spirals(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Two arms of a spiral, three quarters of a turn each."""
    arms = []
    for k, count in enumerate(_shares(n, 1, 1)):
        t = np.sqrt(rng.uniform(0.05, 1, count))
        turn = np.pi * (1.5 * t + k)
        points = 3 * t[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
        arms.append(points + 0.1 * rng.normal(size=(count, 2)))
    return _stack(*arms)


def segments(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Exact line segments: two that cross and two beside them."""
    a, b, c, d = _shares(n, 2, 2, 1, 1)
    return _stack(
        _line(rng, a, [0, 0], [2, 2]),
        _line(rng, b, [0, 2], [2, 0]),
        _line(rng, c, [3, 0], [3, 2]),
        _line(rng, d, [3.5, 0], [4.5, 2]),
    )


def zigzag(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Broken lines: two of two legs, and a leg by itself."""
    corners = np.array([[0, 0], [1, 2], [2, 0], [3.4, 0], [4.4, 2], [5.4, 0], [6.8, 0], [7.8, 2]])
    legs, counts = ((0, 1), (1, 2), (3, 4), (4, 5), (6, 7)), _shares(n, 1, 1, 1, 1, 1)
    groups = [
        _line(rng, k, corners[a], corners[b]) + 0.12 * rng.normal(size=(k, 2))
        for (a, b), k in zip(legs, counts, strict=True)
    ]
    return np.concatenate(groups), np.repeat([1, 1, 2, 2, 3], counts)


def one_bent(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A single arc of a random angle."""
    return _stack(_arc(rng, n, (0, 0), 1.0, (0, rng.uniform(0.25, 0.6)), rng.uniform(0.08, 0.25)))


def one_skewed(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A single group, skewed in both columns."""
    return _stack(np.exp(0.7 * _normal(rng, n, [0, 0], [[1.0, 0.4], [0.4, 1.0]])))


def one_with_tails(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A single group with the tails of a t distribution of three degrees of freedom."""
    z = _normal(rng, n, [0, 0], [[1.0, 0.5], [0.5, 1.0]])
    return _stack(z / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3))


def one_flat(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A single group of constant density in a rectangle."""
    return _stack(rng.random((n, 2)) * [2.0, 1.0])


def close(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Three round Gaussians, two and a half standard deviations apart: hardly a dip."""
    a, b, c = _shares(n, 1, 1, 1)
    places = 2.5 * np.array([[0, 0], [1, 0], [0.5, 0.87]])
    return _stack(*(m + rng.normal(size=(k, 2)) for m, k in zip(places, (a, b, c), strict=True)))


def species(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Three long Gaussians in four columns: one apart, two that overlap as species do."""
    a, b, c = _shares(n, 1, 1, 1)
    shape = 0.7 * np.ones((4, 4)) + 0.3 * np.eye(4)
    means = ([-4.0, 2.0, -5.0, -5.0], [0.0, 0.0, 0.0, 0.0], [1.0, 0.4, 2.0, 2.2])
    return _stack(
        *(_normal(rng, k, m, shape.tolist()) for m, k in zip(means, (a, b, c), strict=True))
    )


def _with_noise(
    rng: np.random.Generator, X: Array, labels: Array, n: int, wide: float
) -> tuple[Array, Array]:
    low, high = X.min(axis=0), X.max(axis=0)
    middle, half = (low + high) / 2, wide * (high - low) / 2
    extra = middle + half * rng.uniform(-1, 1, size=(n, X.shape[1]))
    return np.concatenate([X, extra]), np.concatenate([labels, np.full(n, NOISE)])


def blobs_in_noise(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Three Gaussians, and a fifth of the rows anywhere."""
    noise = n // 5
    a, b, c = _shares(n - noise, 3, 2, 1)
    X, labels = _stack(
        _normal(rng, a, [0, 0], [[0.5, 0.3], [0.3, 0.5]]),
        _normal(rng, b, [4, 0], [[0.2, 0.0], [0.0, 0.6]]),
        _normal(rng, c, [2, 4], [[0.3, 0.0], [0.0, 0.1]]),
    )
    return _with_noise(rng, X, labels, noise, 1.1)


def bananas_in_noise(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Half circles, and a tenth of the rows anywhere."""
    return _with_noise(rng, *bananas(rng, n - n // 10), n // 10, 1.1)


def zigzag_in_noise(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Broken lines, and a sixth of the rows anywhere."""
    return _with_noise(rng, *zigzag(rng, n - n // 6), n // 6, 1.1)


def nested_with_outliers(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A blob inside a ring, and some rows far away."""
    far = max(5, n // 50)
    return _with_noise(rng, *nested(rng, n - far), far, 4.0)


# battery/set: how it is drawn, rows
DRAWN: dict[str, tuple[Draw, int]] = {
    "gaussian/overlapping": (overlapping, 800),
    "gaussian/unequal": (unequal, 1000),
    "gaussian/inside": (inside, 800),
    "gaussian/one_group": (one_group, 500),
    "gaussian/close": (close, 900),
    "gaussian/species": (species, 240),
    "gaussian/many_columns": (many_columns, 900),
    "gaussian/rounded": (rounded, 600),
    "bent/rings": (rings, 900),
    "bent/nested": (nested, 800),
    "bent/bananas": (bananas, 600),
    "bent/bent_and_round": (bent_and_round, 900),
    "bent/spirals": (spirals, 800),
    "bent/segments": (segments, 900),
    "bent/zigzag": (zigzag, 300),
    "one/bent": (one_bent, 500),
    "one/skewed": (one_skewed, 500),
    "one/tails": (one_with_tails, 500),
    "one/flat": (one_flat, 500),
    "noise/zigzag": (zigzag_in_noise, 300),
    "noise/blobs": (blobs_in_noise, 800),
    "noise/bananas": (bananas_in_noise, 800),
    "noise/nested": (nested_with_outliers, 800),
}


def draw(name: str, quick: bool = False, seed: int = 0) -> Labelled:
    """A table of DRAWN; another seed gives other rows, ``quick`` a quarter of them."""
    how, n = DRAWN[name]
    rng = np.random.default_rng([seed, *name.encode()])
    X, labels = how(rng, n // 4 if quick else n)
    order = rng.permutation(len(X))
    return Labelled(name, standardised(X[order]), (labels[order],))


# ------------------------------------------------------------------ either


def choose(folder: Path | None, quick: bool) -> tuple[Path | None, list[str]]:
    """The folder that holds batteries, or None for drawn tables, and the names of the sets."""
    if quick or folder is None or not has_batteries(folder):
        return None, list(DRAWN)
    return folder, names_in(folder)


def load(folder: Path | str | None, name: str, quick: bool = False) -> Labelled:
    """A set of ``choose``."""
    return draw(name, quick) if folder is None else read(Path(folder), name)
