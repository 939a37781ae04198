"""Fits of more and more components, until more of them are no better for a while.

Where a mixture can be started from a smaller one, sizes are first grown: each from the one before,
a component split in two, which costs a fifth of a fit with starts of its own. These are then made
where they may decide: at the best size and at those beside it that are near, of each kind that is
near the best one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from mixfold.estimators.mixtures.splitting import can_split
from mixfold.estimators.search.candidates import Setting
from mixfold.estimators.search.fits import (
    Fitted,
    Worker,
    better_fit,
    describe_fit,
    fit_setting,
    fit_split,
    measure,
    raise_if_none,
)
from mixfold.estimators.search.results import CRITERIA
from mixfold.estimators.search.rows import Rows


@dataclass(frozen=True, slots=True)
class Growth:
    """When a search ends, and by which numbers fits are compared."""

    criterion: str
    patience: int
    split: bool
    n_effective: float | None
    allow_degenerate: bool

    def loss(self, fit: Fitted) -> float:
        """The criterion, the lower the better; infinite for a fit that cannot win."""
        column, sign = CRITERIA[self.criterion]
        if fit.model is None or not (fit.sound or self.allow_degenerate):
            return math.inf
        value = sign * fit.facts[column]
        return value if math.isfinite(value) else math.inf


@dataclass
class _Kind:
    """The fits of a kind so far, from few components to many, and which had starts of their own."""

    settings: list[Setting]
    rows: Rows
    worker: Worker
    growth: Growth
    fits: list[Fitted] = field(default_factory=list)
    own: set[int] = field(default_factory=set)

    def losses(self) -> list[float]:
        return [self.growth.loss(fit) for fit in self.fits]

    def best(self) -> int:
        """The best fit, the smallest of equals."""
        losses = self.losses()
        return losses.index(min(losses))

    def cost(self) -> float:
        """What the parameters of a component cost by BIC, at the best size; a fit that is behind by
        more would not be made up for by better starts."""
        fit = self.fits[self.best()]
        cost = (fit.facts["bic"] + 2 * fit.facts["log_likelihood"]) / fit.setting.n_components
        return cost if math.isfinite(cost) else math.inf

    def grow(self) -> None:
        """Fit larger sizes until the last ones were no better than the best before them."""
        while len(self.fits) < len(self.settings) and not self._has_ended():
            at = len(self.fits)
            self._keep(at, self._grow_from_smaller(at) or self._fit_own(at))

    def _has_ended(self) -> bool:
        losses = self.losses()
        if not losses or not math.isfinite(min(losses)):
            return False
        return len(losses) - 1 - losses.index(min(losses)) >= self.growth.patience

    def settle(self) -> bool:
        """Give the best size, and those beside it that are near, starts of their own; whether any
        had none."""
        best, losses = self.best(), self.losses()
        limit = losses[best] + self.cost()
        missing = [
            i
            for i in (best, best - 1, best + 1)
            if 0 <= i < len(losses)
            and i not in self.own
            # a split may end in a spike where other starts do not
            and (losses[i] <= limit or not self.fits[i].sound)
        ]
        for i in missing:
            fit = better_fit(self._fit_own(i), self.fits[i])
            self._keep(i, fit)
            if fit.start == "own":
                self._grow_again(i + 1)
        return bool(missing)

    def _grow_again(self, i: int) -> None:
        """A size that may have become better with the one before it."""
        if not 0 < i < len(self.fits):
            return
        fit = self._grow_from_smaller(i)
        if fit is not None:
            self._keep(i, better_fit(self.fits[i], fit))

    def _grow_from_smaller(self, i: int) -> Fitted | None:
        small = next((fit for fit in reversed(self.fits[:i]) if fit.sound), None)
        if small is None or not self.growth.split or not can_split(self.settings[i].estimator):
            return None
        fit = fit_split(self.settings[i], small, self.rows, self.worker)
        return None if fit.model is None else fit

    def _fit_own(self, i: int) -> Fitted:
        self.own.add(i)
        return fit_setting(self.settings[i], self.rows, self.worker)

    def _keep(self, i: int, fit: Fitted) -> None:
        fit = measure(fit, self.rows, self.growth.n_effective)
        self.fits[i : i + 1] = [fit]
        self.worker.say(f"fit: {describe_fit(fit)}")


def fit_until_worse(
    found: list[Setting], rows: Rows, worker: Worker, growth: Growth
) -> list[Fitted]:
    """The fits of each kind, from few components to many.

    A kind ends when the last ``patience`` sizes were no better than the best before them. What was
    not fitted is not in the list.
    """
    groups: dict[int, list[Setting]] = {}
    for setting in found:
        groups.setdefault(setting.group, []).append(setting)
    kinds = [_Kind(group, rows, worker, growth) for group in groups.values()]
    for _ in worker.run(_Kind.grow, ((kind,) for kind in kinds)):
        pass
    for _ in worker.run(_settle, ((kind,) for kind in _near_best(kinds))):
        pass
    fits = [fit for kind in kinds for fit in kind.fits]
    raise_if_none(fits)
    return fits


def _settle(kind: _Kind) -> None:
    while kind.settle():
        kind.grow()


def _near_best(kinds: list[_Kind]) -> list[_Kind]:
    """The best kind, and those that are behind it by less than a component costs."""
    leading = min(min(kind.losses()) for kind in kinds)
    return [kind for kind in kinds if min(kind.losses()) - kind.cost() <= leading]
