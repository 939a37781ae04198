"""Fits of more and more components, until more of them are no better for a while."""

from __future__ import annotations

import math

from mixfold.estimators.mixtures.splitting import can_split
from mixfold.estimators.search.candidates import Setting
from mixfold.estimators.search.fits import (
    Fitted,
    Worker,
    _describe,
    _fit_setting,
    _grow_one,
    _measure,
    _raise_if_none,
)
from mixfold.estimators.search.results import CRITERIA
from mixfold.estimators.search.rows import Rows


def fit_until_worse(
    found: list[Setting],
    rows: Rows,
    worker: Worker,
    *,
    criterion: str,
    patience: int,
    split: bool,
    n_effective: float | None,
    allow_degenerate: bool,
) -> list[Fitted]:
    """The fits of each kind, from few components to many.

    A kind ends when the last ``patience`` sizes were no better than the best before them. What was
    not fitted is not in the list.
    """
    groups: dict[int, list[Setting]] = {}
    for setting in found:
        groups.setdefault(setting.group, []).append(setting)

    def grow(group: list[Setting]) -> list[Fitted]:
        fits: list[Fitted] = []
        small: Fitted | None = None
        best, since = math.inf, 0
        for setting in group:
            fit = _fit_setting(setting, rows, worker)
            if (
                split
                and small is not None
                and fit.model is not None
                and can_split(setting.estimator)
            ):
                fit = _grow_one(fit, small, rows, worker)
            fit = _measure(fit, rows, n_effective)
            fits.append(fit)
            worker.say(f"fit: {_describe(fit)}")
            small = fit if fit.sound else small
            loss = _loss(fit, criterion, allow_degenerate)
            best, since = (loss, 0) if loss < best else (best, since + 1)
            if since >= patience and math.isfinite(best):
                break
        return fits

    fits = [fit for group in worker.run(grow, ((g,) for g in groups.values())) for fit in group]
    _raise_if_none(fits)
    return fits


def _loss(fit: Fitted, criterion: str, allow_degenerate: bool) -> float:
    """The criterion, the lower the better; infinite for a fit that cannot win."""
    column, sign = CRITERIA[criterion]
    if fit.model is None or not (fit.sound or allow_degenerate):
        return math.inf
    value = sign * fit.facts[column]
    return value if math.isfinite(value) else math.inf
