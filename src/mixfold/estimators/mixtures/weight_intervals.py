"""Confidence intervals of the weights of a fitted mixture, or the reason why there are none."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit

from mixfold.contracts import Array, Block
from mixfold.engine.random import RowKeys
from mixfold.families.projection import ProjectedGaussian
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.models.mixtures.rows import without_empty_rows
from mixfold.models.mixtures.standard_errors import (
    Likelihood,
    NotIdentified,
    deviates,
    logit_errors,
    logit_steps,
    observed_information,
    profile_intervals,
)

# passes over the rows of one limit of a profile, about; products that a page may wait for
_PASSES_OF_LIMIT, _MOST_PRODUCTS = 40, 5e9
# standard errors of a logit beyond which the likelihood is no parabola, and its curvature no guide
_SMALL = 0.2
# standard errors between the fit and the maximum of the likelihood: of its rows, of some of them
_NEAR, _NEAR_BY_CHANCE = 0.5, 4.0


@dataclass(frozen=True, slots=True)
class Intervals:
    """Limits (K,) of 95 % intervals; NaN where there is none, and why in ``reason``.

    ``unidentified`` are the components without which BIC would be no worse; ``local`` says that the
    fit is no maximum of the likelihood, so that another start may give other components.
    """

    low: Array
    high: Array
    reason: str = ""
    unidentified: list[int] = field(default_factory=list)
    local: bool = False

    @classmethod
    def none(cls, size: int, reason: str) -> Intervals:
        nothing = np.full(size, np.nan)
        return cls(nothing, nothing, reason)


def weight_intervals(
    mixture: Any, block: Block, total_weight: float | None = None
) -> Intervals | None:
    """95 % intervals of the weights of a mixture, by the likelihood of its rows without any prior.

    If the rows are those of the fit, intervals are where the profile likelihood is high enough;
    of some of them, or of other rows, the curvature of the likelihood is used where it suffices.

    Parameters
    ----------
    mixture : a fitted mixture
    block : Block
        The rows that were fitted, or a sample of them.
    total_weight : float, optional
        Weight of all rows of the fit, if ``block`` has some of them; None: these are all.

    Returns
    -------
    Intervals or None
        None if weights are not estimated: fixed ones, a single component, no mixture.
    """
    found = _free_mixture(mixture)
    if found is None:
        return None
    model, params, used = found
    size = len(mixture.weights_)
    block = without_empty_rows(block)
    likelihood = Likelihood(model, params, block, RowKeys(0))
    n_parameters = len(likelihood.point)
    products, solving = float(block.n_rows) * n_parameters, float(n_parameters) ** 3
    try:
        if total_weight is None:
            matrices = 4 + 4 * len(used)  # of second derivatives
            passes = matrices * n_parameters + 4 * len(used) * _PASSES_OF_LIMIT
            if max(products * passes, matrices * solving) <= _MOST_PRODUCTS:
                return _by_profile(likelihood, used, size)
        if max(products * 2 * n_parameters, solving) > _MOST_PRODUCTS:
            return Intervals.none(size, f"of {n_parameters:,} parameters they would take too long")
        return _by_curvature(likelihood, used, size, total_weight)
    except NotIdentified as reason:
        return replace(Intervals.none(size, str(reason)), local=True)


def _free_mixture(mixture: Any) -> tuple[Mixture, MixtureParams, Array] | None:
    """The model without priors at the fit, of the components in use; None if it is none."""
    params = getattr(mixture, "_params", None)
    if params is None or not hasattr(mixture, "weights_") or not hasattr(mixture, "_model"):
        return None
    model = mixture._model(mixture.n_features_in_)
    if not isinstance(model, Mixture) or mixture.__dict__.get("_draws"):
        return None
    if not (model.has_prior or model.can_extrapolate) or not model.mixing.n_free(2):
        return None
    plain, point = model.plug_in(params)
    if isinstance(plain.family, ProjectedGaussian):  # a plane that clusters share has no gradient
        return None
    active = getattr(mixture, "active_", None)
    used = np.flatnonzero(point.weights > 0 if active is None else active)
    whole = isinstance(point, MixtureParams) and len(point.weights) == len(mixture.weights_)
    if len(used) < 2 or not whole:  # groups that are mixtures themselves have other weights
        return None
    if len(used) < len(point.weights):
        weights = point.weights[used] / point.weights[used].sum()
        point = MixtureParams(weights, plain.family.select(point.components, used))
        plain = replace(plain, n_components=len(used), family=plain.family.restricted(used))
    return plain, point, used


def _by_profile(likelihood: Likelihood, used: Array, size: int) -> Intervals:
    found = profile_intervals(likelihood)
    low, high = np.full(size, np.nan), np.full(size, np.nan)
    low[used], high[used] = found.low, found.high
    unknown = used[~found.identified].tolist()
    reason = "BIC is no worse with one of these components fewer" if unknown else ""
    return Intervals(low, high, reason, unknown)


def _by_curvature(
    likelihood: Likelihood, used: Array, size: int, total_weight: float | None
) -> Intervals:
    """Of the fit's weights on the scale of logits, with the information of all rows of the fit."""
    weight = float(likelihood.block.weights().sum())
    scale = 1.0 if total_weight is None else total_weight / weight
    weights, information = likelihood.params.weights, observed_information(likelihood)
    of_rows = logit_errors(information, weights)
    errors = of_rows / np.sqrt(scale)
    steps = logit_steps(information, likelihood(likelihood.point)[1], weights)
    near = np.abs(steps) <= (_NEAR if total_weight is None else _NEAR_BY_CHANCE) * of_rows
    sure = (errors <= _SMALL) & near
    cutoffs = deviates(errors, weights, weight * scale)
    margin = cutoffs * np.where(sure, errors, np.nan)
    low, high = np.full(size, np.nan), np.full(size, np.nan)
    low[used], high[used] = expit(logit(weights) - margin), expit(logit(weights) + margin)
    reason = (
        ""
        if sure.all()
        else "components overlap, and the profile likelihood needs the rows of the fit, and not "
        "too many of them"
    )
    return Intervals(low, high, reason)
