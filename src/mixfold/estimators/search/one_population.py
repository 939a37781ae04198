"""Whether the groups that a search found are the skewness, tails or bend of one population.

A skewed column is fitted by several Gaussians, however many rows there are. So one Gaussian after a
change of scale, one t distribution, and one group along a parabola are compared with the choice of
the search, by BIC of the same rows in the same units. One Gaussian without any of that is compared,
too: spheres, and components whose columns are independent, describe the correlations and units of
one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from mixfold.contracts import Array, Block
from mixfold.engine.pilot import draw_pilot
from mixfold.estimators.factors.factor_mixture import FactorMixture
from mixfold.estimators.mixtures.gaussian_mixture import GaussianMixture
from mixfold.estimators.search.fits import is_degenerate
from mixfold.estimators.search.rows import Rows
from mixfold.estimators.shell import predictions
from mixfold.families.component import dense_rows
from mixfold.families.gaussian import GaussianFamily
from mixfold.math.power_transforms import IDENTITY, Transform, best_transform, quantile_skewness
from mixfold.math.student import fit_student

# rows that are looked at, a sample of larger tables; and columns, at most
_MOST_ROWS, _MOST_COLUMNS = 20_000, 100
# a difference in BIC that is very strong evidence (Kass and Raftery, 1995)
_STRONG = 10.0
_SHOWN = 3
# of the quantiles of a column that is worth a change of scale
_LEAST_SKEWNESS = 0.15
# degrees of freedom beyond which a t distribution has no heavy tails
_HEAVY = 30.0
# share of the rows that may have the same value in a column
_MOST_TIES = 0.1
# longest axes between which the direction of a bent group may lie, and how many are tried
_AXES, _ANGLES = 3, 24
# groups of changed columns that are tried, at most
_MOST_GROUPS = 4


@dataclass(frozen=True, slots=True)
class OnePopulation:
    """Fewer groups, of another shape than a component's, that explain the rows better."""

    n_groups: int
    sentence: str


def describe_one_population(model: Any, rows: Rows, n_effective: float | None = None) -> list[str]:
    """A sentence if fewer groups, of another shape, explain the rows better; or none."""
    found = find_one_population(model, rows, n_effective)
    return [] if found is None else [found.sentence]


def find_one_population(
    model: Any,
    rows: Rows,
    n_effective: float | None = None,
    *,
    margin: float = _STRONG,
    most_groups: int = _MOST_GROUPS,
) -> OnePopulation | None:
    """One group (or some, fewer than the model has) that is skewed, bent or has heavy tails, if its
    BIC is lower than that of the components by more than ``margin``: by default very strong
    evidence that it explains the rows better."""
    size = getattr(model, "n_components", 1)
    if size < 2 or not hasattr(model, "_n_parameters") or not _is_of_numbers(model):
        return None
    if model.n_features_in_ > _MOST_COLUMNS:
        return None
    X, weight, names = _look(model, rows)
    if len(X) < 10 * X.shape[1]:
        return None
    if n_effective is not None:
        weight = weight * n_effective / weight.sum()
    price = float(np.log(weight.sum()))
    if price <= 0:
        return None
    mixture, reading = model._reading()
    scores = predictions.log_density(mixture, reading, Block(X, complete=False))
    if not np.isfinite(scores).all():
        return None
    groups = float(-2 * weight @ scores) + model._n_parameters() * price

    kept = _modelled_columns(model)
    X, names = X[:, kept], [names[d] for d in kept]
    found = _skewness(X, weight, names, price, min(size - 1, most_groups), size)
    if not np.isnan(X).any() and not any(_has_ties(x, weight) for x in X.T):
        found += _heavy_tails(X, weight, price, size)
        found += _bent(X, weight, price, size)
    plain = _fewer_groups(X, weight, [IDENTITY] * X.shape[1], price, 1)[1]
    # what is not Gaussian of one group
    found = [one for one in found if one.bic < plain - margin]
    if not found:
        if X.shape[1] == 1 or "full" in (
            getattr(model, n, "") for n in ("covariance_type", "family")
        ):
            return None  # the table of the search has it, if it was asked for
        claim = f"The {size} groups describe how the columns of one vary together: one Gaussian"
        claim += " with covariance_type='full' has"
        found = [_Claim(plain, 1, claim, "Use that and search again")]
    best = min(found, key=lambda one: one.bic)
    if not best.bic < groups - margin:
        return None
    return OnePopulation(
        best.n_groups,
        f"{best.words} BIC {best.bic:.6g} against {groups:.6g} of the {size} groups"
        f"{' (very strong evidence)' if best.bic < groups - _STRONG else ''}. {best.remedy}",
    )


class _Claim(NamedTuple):
    """Fewer groups that were tried: BIC, how many they are, and what to say of them."""

    bic: float
    n_groups: int
    words: str
    remedy: str


def _skewness(
    X: Array, weight: Array, names: list[str], price: float, most: int, size: int
) -> list[_Claim]:
    """Gaussians after a change of scale of the columns that are skewed."""
    transforms = [_transform_of(X[:, d], weight) for d in range(X.shape[1])]
    changed = [d for d, t in enumerate(transforms) if t is not IDENTITY]
    if not changed:
        return []
    fewest, value = _fewer_groups(X, weight, transforms, price, most)
    words = [transforms[d].name.format(names[d]) for d in changed[:_SHOWN]]
    more = f" and {len(changed) - _SHOWN} more columns" if len(changed) > _SHOWN else ""
    few = "one Gaussian has" if fewest == 1 else f"{fewest} Gaussians have"
    claim = (
        f"The {size} groups describe the skewness of {'one' if fewest == 1 else 'fewer'}: "
        f"with {', '.join(words)}{more}, {few}"
    )
    return [_Claim(value, fewest, claim, "Make that change and search again")]


def _bent(X: Array, weight: Array, price: float, size: int) -> list[_Claim]:
    """One group along a parabola: rows on a stretch of some direction, Gaussian about the curve."""
    total, D = weight.sum(), X.shape[1]
    if D < 2:
        return []
    centred = X - weight @ X / total
    spread = np.sqrt(weight @ centred**2 / total)
    if not (spread > 0).all():
        return []
    values, axes = np.linalg.eigh(
        (centred / spread * weight[:, None]).T @ (centred / spread) / total
    )
    if not values[0] > 0:
        return []
    white = centred / spread @ (axes / np.sqrt(values))[:, ::-1]
    log_slope = np.log(spread).sum() + 0.5 * np.log(values).sum()
    # three of each curve, a covariance about them, the direction, and the ends of the stretch
    free = 3 * (D - 1) + D * (D - 1) / 2 + (D - 1) + 2
    best = min(
        _lowest(partial(_curve_cost, white, weight, i, j))
        for i in range(min(D, _AXES))
        for j in range(i)
    )
    value = float(2 * (best + total * log_slope) + free * price)
    claim = f"The {size} groups are pieces of one that is long or bent: one along a parabola has"
    return [_Claim(value, 1, claim, "Treat them as one group")] if np.isfinite(value) else []


def _lowest(cost: Callable[[float], float]) -> float:
    """The least value over half a turn: on a grid, and then beside its lowest point."""
    step = np.pi / _ANGLES
    start = step * int(np.argmin([cost(step * k) for k in range(_ANGLES)]))
    found = minimize_scalar(cost, bounds=(start - step, start + step), method="bounded")
    return float(found.fun)


def _curve_cost(white: Array, weight: Array, i: int, j: int, angle: float) -> float:
    """Minus the log-likelihood of rows about a parabola, along a direction between two axes."""
    total, D = weight.sum(), white.shape[1]
    along = np.cos(angle) * white[:, i] + np.sin(angle) * white[:, j]
    across = white.copy()
    across[:, j] = np.cos(angle) * white[:, j] - np.sin(angle) * white[:, i]
    across = np.delete(across, i, axis=1)
    curve = np.column_stack([np.ones_like(along), along, along**2])
    root = np.sqrt(weight)[:, None]
    off = across - curve @ np.linalg.lstsq(root * curve, root * across, rcond=None)[0]
    volume = np.linalg.slogdet((off * weight[:, None]).T @ off / total)[1]
    # rows lie evenly along the direction, or are a Gaussian there, of variance one
    length = min(np.log(np.ptp(along)), 0.5 * (1 + np.log(2 * np.pi)))
    return float(total * (length + 0.5 * ((D - 1) * (1 + np.log(2 * np.pi)) + volume)))


def _is_of_numbers(model: Any) -> bool:
    """Whether the density is one of Gaussians in all columns, not of codes or counts."""
    if isinstance(model, FactorMixture):
        return True
    family = getattr(model._reading()[0], "family", None) if hasattr(model, "covariances_") else 0
    return family is None or isinstance(family, GaussianFamily)


def _heavy_tails(X: Array, weight: Array, price: float, size: int) -> list[_Claim]:
    """BIC of one t distribution, and of one for each column, and what to say of them."""
    joint = fit_student(X, weight)
    columns = [fit_student(X[:, [d]], weight) for d in range(X.shape[1])]
    found = []
    for laws in ([joint], columns):
        fitted = [law for law in laws if law is not None]
        if len(fitted) < len(laws) or min(law.freedom for law in fitted) > _HEAVY:
            continue
        value = sum(-2 * law.log_likelihood + law.n_parameters * price for law in fitted)
        least = min(law.freedom for law in fitted)
        one = len(laws) == 1
        what = "a t distribution" if one else "a t distribution for each column"
        found.append(
            _Claim(
                value,
                1,
                f"The {size} groups describe the heavy tails of one: {what}, with "
                f"{'' if one else 'at least '}{least:.2g} degrees of freedom, has",
                "Treat them as one group",
            )
        )
    return found


def _has_ties(x: Array, weight: Array) -> bool:
    """Whether many rows share a value of a column: a law that is narrow there would look good."""
    _, which = np.unique(x, return_inverse=True)
    return bool(np.bincount(which, weight).max() > _MOST_TIES * weight.sum())


def _look(model: Any, rows: Rows) -> tuple[Array, Array, list[str]]:
    """All rows of a small table or a sample of a large one, their weights, names of columns."""
    source = model._open(rows.X, reset=False, weight=rows.weight)
    pilot = draw_pilot(source, model._executor(source), _MOST_ROWS, 0)
    block = pilot.block
    X = np.asarray(dense_rows(block.X), dtype=float)
    known = ~np.isnan(X).all(axis=1)
    names = getattr(model, "feature_names_in_", None)
    words = [f"column {d}" if names is None else repr(str(names[d])) for d in range(X.shape[1])]
    # a sample stands for all rows
    weight = block.weights()[known] * pilot.total_weight / block.weights().sum()
    return X[known], weight, words


def _modelled_columns(model: Any) -> Array:
    aside = getattr(model, "_dependent", None)
    return np.arange(model.n_features_in_) if aside is None else np.asarray(aside.kept)


def _transform_of(x: Array, weight: Array) -> Transform:
    seen = ~np.isnan(x)
    values = x[seen]
    if _has_ties(values, weight[seen]):  # no change of scale makes answers or counts normal
        return IDENTITY
    if abs(quantile_skewness(values, weight[seen])) < _LEAST_SKEWNESS:
        return IDENTITY
    return best_transform(values, weight[seen])


def _fewer_groups(
    X: Array, weight: Array, transforms: list[Transform], price: float, most: int
) -> tuple[int, float]:
    """The number of Gaussians of the lowest BIC for the changed columns, and that BIC.

    It is that of a density of the columns themselves.
    """
    changed, slope, parameters = X.copy(), 0.0, 0
    for d, transform in enumerate(transforms):
        seen = ~np.isnan(X[:, d])
        changed[seen, d] = transform.apply(X[seen, d])
        slope += float(weight[seen] @ transform.log_slope(X[seen, d]))
        parameters += transform.n_parameters
    found = (1, np.inf)
    for size in range(1, most + 1):
        model = GaussianMixture(size, random_state=0, max_iter=100)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(changed, sample_weight=weight)
        total, _, _ = model._totals(None)
        value = -2 * (total + slope) + (model._n_parameters() + parameters) * price
        if value < found[1] and (size == 1 or not is_degenerate(model)):
            found = (size, value)
    return found
