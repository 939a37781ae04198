"""The width of the RBF kernel and the number of axes of KernelPCA, learned from a sample of rows.

``gamma='learn'`` and ``n_components='learn'`` become numbers here, before anything is fitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Source
from mixfold.engine.pilot import draw_pilot
from mixfold.estimators.kernels.kernel_fits import Settings
from mixfold.models.factors.spectral_sums import MissingEntries
from mixfold.models.kernels.width import Widths, score_widths

LEARN = "learn"
# rows of the sample (of many columns fewer), columns it may have, folds, axes that are tried
_ROWS, _FEWER_ROWS, _MANY_COLUMNS, _MOST_COLUMNS = 500, 300, 100, 2000
_FOLDS, _MOST_AXES, _LEAST_ROWS = 5, 100, 20
# (or its inverse) beyond which powers of squared distances may be no numbers
_LEAST_SQUARE = 1e-60
# widths that are tried, over the median squared distance of the rows
_WIDTHS = 2.0 ** np.arange(-6, 7)


@dataclass(frozen=True, slots=True)
class Learned:
    """Settings with numbers in place of what was to be learned, and how these were found."""

    settings: Settings
    tried: dict[str, Array]


def is_to_learn(value: Any) -> bool:
    """Whether a parameter is the word that asks for it to be learned."""
    return isinstance(value, str) and value == LEARN


def asks_to_learn(settings: Settings) -> bool:
    """Whether the width or the number of axes are to be learned."""
    return is_to_learn(settings.kernel.gamma) or is_to_learn(settings.size)


def refuse_to_learn(kernel: Any, gamma: Any, n_components: Any) -> None:
    """Refuse what has no width that can be learned."""
    asked = [name for name, value in (("gamma", gamma), ("n_components", n_components))
             if is_to_learn(value)]  # fmt: skip
    if asked and kernel != "rbf":
        raise ValueError(
            f"{asked[0]}='learn' compares densities of rows by the RBF kernel; got kernel="
            f"{kernel!r}. Give {asked[0]} a number, or kernel='rbf'"
        )


def learn_settings(settings: Settings, source: Source) -> Learned:
    """By the held-out score of a uniform sample of the rows (``models.kernels.width``)."""
    if source.n_features > _MOST_COLUMNS:
        raise ValueError(
            f"'learn' compares densities of at most {_MOST_COLUMNS} columns; X has "
            f"{source.n_features}. Give gamma and n_components numbers, or reduce the columns "
            "first, by mixfold.PPCA(100), say"
        )
    X, weight = _distinct_rows(settings, source)
    with np.errstate(over="ignore", invalid="ignore"):
        typical = _typical_square(X)
    if not _LEAST_SQUARE < typical < 1 / _LEAST_SQUARE:
        raise ValueError(
            f"'learn' compares densities, and the median squared distance of two rows is "
            f"{typical:g}: powers of it are no numbers. Multiply X by a number, so that distances "
            "are about 1"
        )
    chosen = settings.kernel.gamma
    if is_to_learn(chosen):
        gammas = _WIDTHS / typical
    else:
        gammas = np.array([settings.kernel.make(X).gamma])  # type: ignore[attr-defined]
        if not gammas[0] * typical < 1 / _LEAST_SQUARE:
            raise ValueError(
                f"gamma={gammas[0]:g} makes every row a cluster of its own: the median squared "
                f"distance of two rows is {typical:g}. Use gamma='learn' or 'scale'"
            )
    folds = _part(len(X), settings.seed)
    size = min(_MOST_AXES, len(X) - max(len(out) for out in folds) - 1)
    widths = score_widths(gammas, _span(X), weight, folds, size)
    if not np.isfinite(widths.score).any():
        raise ValueError(
            "'learn' found no axis along which the features of the rows differ with gamma="
            f"{gammas[0]:g}, where the median squared distance of two rows is {typical:g}. Learn "
            "gamma, too (gamma='learn'), or scale X"
        )
    best = widths.choose()
    kernel = replace(settings.kernel, gamma=float(widths.gamma[best]))
    learned = replace(settings, kernel=kernel)
    if is_to_learn(settings.size):
        learned = replace(learned, size=int(widths.n_axes[best]))
    return Learned(learned, _table(widths))


def _distinct_rows(settings: Settings, source: Source) -> tuple[Array, Array]:
    """The rows of a sample and their weights; of equal rows one has those of all."""
    size = _ROWS if source.n_features <= _MANY_COLUMNS else _FEWER_ROWS
    pilot = draw_pilot(source, settings.executor_of(source), size, settings.seed)
    if not pilot.block.complete and np.isnan(_values(pilot.block.X)).any():
        if settings.expected:
            raise ValueError(
                "'learn' compares densities of complete rows, and X contains NaN. Give gamma and "
                "n_components numbers with missing='expected', or learn them from the rows that "
                "lack nothing"
            )
        raise MissingEntries("some rows lack entries")
    X = pilot.block.X.toarray() if sparse.issparse(pilot.block.X) else pilot.block.X
    distinct, where = np.unique(np.asarray(X, np.float64), axis=0, return_inverse=True)
    if len(distinct) < _LEAST_ROWS:
        raise ValueError(
            f"'learn' holds rows out, for which at least {_LEAST_ROWS} different rows of positive "
            f"weight are needed; got {len(distinct)}. Give gamma and n_components numbers"
        )
    return distinct, np.bincount(where.ravel(), pilot.block.weights())


def _values(X: Any) -> Array:
    return np.asarray(X.data if sparse.issparse(X) else X)


def _typical_square(X: Array) -> float:
    """The median squared distance of two rows."""
    about = X - X.mean(axis=0)
    squares = (about**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * about @ about.T
    return float(np.median(distances[np.triu_indices(len(X), 1)]))


def _span(X: Array) -> Array:
    """Coordinates of the rows in the plane in which they lie: distances are the same."""
    U, lengths, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    kept = lengths > 1e-10 * lengths[0]
    return np.asarray(U[:, kept] * lengths[kept])


def _part(n: int, seed: int) -> list[Array]:
    """Row numbers of each fold; each row is in one of them."""
    order = np.random.default_rng(seed % 2**63).permutation(n)
    return [np.sort(part) for part in np.array_split(order, _FOLDS)]


def _table(widths: Widths) -> dict[str, Array]:
    return {
        "gamma": widths.gamma, "n_components": widths.n_axes, "score": widths.score,
        "std_error": widths.error, "noise_variance": widths.noise,
    }  # fmt: skip
