"""What a fitted mixture says about itself: the numbers by which settings are compared."""

from __future__ import annotations

import math
from typing import Any

from mixfold.estimators.search.search_rows import Rows

NUMBERS = ("log_likelihood", "n_parameters", "bic", "aic", "icl", "bound")
NOTHING = dict.fromkeys(NUMBERS, math.nan)


def is_variational(model: Any) -> bool:
    """Whether the objective of a fit bounds the evidence: a likelihood does not."""
    params = model.get_params(deep=False)
    return params.get("inference") == "vb" or "weight_concentration_prior_type" in params


def is_by_likelihood(model: Any) -> bool:
    """Whether a fit is at a maximum of the likelihood, or of one with a prior beside it."""
    params = model.get_params(deep=False)
    return params.get("inference", "em") == "em" and not is_variational(model)


def facts(model: Any, rows: Rows) -> dict[str, float]:
    """Likelihood and criteria of the rows that were fitted, NaN for what a model does not have.

    With priors the likelihood is that of the density with parameters at their point.
    """
    found = _criteria(model, rows) if hasattr(model, "_totals") else _asked(model)
    return {**found, "bound": _bound(model) if is_variational(model) else math.nan}


def _criteria(model: Any, rows: Rows) -> dict[str, float]:
    """All in one pass, or in none where the fit has kept its sums."""
    kept = getattr(model, "_total", None) is not None
    total, weight, entropy = model._totals(None) if kept else model._totals(rows.X, rows.weight)
    free = float(model._n_parameters())
    bic = -2 * total + free * math.log(weight)
    return {
        "log_likelihood": total,
        "n_parameters": free,
        "bic": bic,
        "aic": -2 * total + 2 * free,
        "icl": bic + 2 * entropy if hasattr(model, "icl") else math.nan,
    }


def _asked(model: Any) -> dict[str, float]:
    free = float(model._n_parameters()) if hasattr(model, "_n_parameters") else math.nan
    names = ("bic", "aic", "icl")
    found = {n: float(getattr(model, n)()) if hasattr(model, n) else math.nan for n in names}
    return {"log_likelihood": free - found["aic"] / 2, "n_parameters": free, **found}


def _bound(model: Any) -> float:
    """The bound for all rows, and for all the numberings of components that are as good as ours.

    Components without rows are alike, and sticks have an order: they are not counted.
    """
    bound, size = float(model.evidence_bound_), int(model.n_components)
    if not _exchangeable(model):
        return bound
    return bound + math.lgamma(size + 1) - math.lgamma(size - model.effective_components_ + 1)


def _exchangeable(model: Any) -> bool:
    params = model.get_params(deep=False)
    kind = params.get("weight_concentration_prior_type", params.get("weights"))
    return isinstance(kind, str) and kind in ("auto", "dirichlet", "ml", "dirichlet_distribution")
