"""Whether the groups that a search found are the skewness, or the tails, of one population.

A skewed column is fitted by several Gaussians, however many rows there are. So one Gaussian after a
change of scale, and one t distribution, are compared with the choice of the search, by BIC of the
same rows in the same units. One Gaussian without any of that is compared, too: spheres, and
components whose columns are independent, describe the correlations and units of one.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

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
# groups of changed columns that are tried, at most
_MOST_GROUPS = 4


def describe_one_population(model: Any, rows: Rows, n_effective: float | None = None) -> list[str]:
    """A sentence if one group, skewed or with heavy tails, explains the rows better; or none."""
    size = getattr(model, "n_components", 1)
    if size < 2 or not hasattr(model, "_n_parameters") or not _is_of_numbers(model):
        return []
    if model.n_features_in_ > _MOST_COLUMNS:
        return []
    X, weight, names = _look(model, rows)
    if len(X) < 10 * X.shape[1]:
        return []
    if n_effective is not None:
        weight = weight * n_effective / weight.sum()
    price = float(np.log(weight.sum()))
    if price <= 0:
        return []
    mixture, reading = model._reading()
    scores = predictions.log_density(mixture, reading, Block(X, complete=False))
    if not np.isfinite(scores).all():
        return []
    groups = float(-2 * weight @ scores) + model._n_parameters() * price

    kept = _modelled_columns(model)
    X, names = X[:, kept], [names[d] for d in kept]
    transforms = [_transform_of(X[:, d], weight) for d in range(X.shape[1])]
    changed = [d for d, t in enumerate(transforms) if t is not IDENTITY]
    found = []
    if changed:
        fewest, value = _fewer_groups(X, weight, transforms, price, min(size - 1, _MOST_GROUPS))
        words = [transforms[d].name.format(names[d]) for d in changed[:_SHOWN]]
        more = f" and {len(changed) - _SHOWN} more columns" if len(changed) > _SHOWN else ""
        few = "one Gaussian has" if fewest == 1 else f"{fewest} Gaussians have"
        found.append(
            (
                value,
                f"The {size} groups describe the skewness of {'one' if fewest == 1 else 'fewer'}: "
                f"with {', '.join(words)}{more}, {few}",
                "Make that change and search again",
            )
        )
    if not np.isnan(X).any() and not any(_has_ties(x, weight) for x in X.T):
        found += _heavy_tails(X, weight, price, size)
    plain = _fewer_groups(X, weight, [IDENTITY] * X.shape[1], price, 1)[1]
    found = [one for one in found if one[0] < plain - _STRONG]  # what is not Gaussian of one group
    if not found:
        if X.shape[1] == 1 or "full" in (
            getattr(model, n, "") for n in ("covariance_type", "family")
        ):
            return []  # the table of the search has it, if it was asked for
        claim = f"The {size} groups describe how the columns of one vary together: one Gaussian"
        found = [(plain, f"{claim} with covariance_type='full' has", "Use that and search again")]
    lowest, claim, remedy = min(found)
    if not lowest < groups - _STRONG:
        return []
    return [
        f"{claim} BIC {lowest:.6g} against {groups:.6g} of the {size} groups (very strong "
        f"evidence). {remedy}"
    ]


def _is_of_numbers(model: Any) -> bool:
    """Whether the density is one of Gaussians in all columns, not of codes or counts."""
    if isinstance(model, FactorMixture):
        return True
    family = getattr(model._reading()[0], "family", None) if hasattr(model, "covariances_") else 0
    return family is None or isinstance(family, GaussianFamily)


def _heavy_tails(X: Array, weight: Array, price: float, size: int) -> list[tuple[float, str, str]]:
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
            (
                value,
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
