"""Training by mini-batches in RBM and DeepBeliefNetwork: rules of parameters, plan, warnings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mixfold.contracts import Array
from mixfold.engine.budget import Deadline
from mixfold.engine.epochs import EpochPlan, Training
from mixfold.estimators.networks.visible_rows import VISIBLE
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import DegenerateWarning, warn

# epochs before momentum is at its full size, and its size until then
SLOW_EPOCHS, SLOW_MOMENTUM = 5, 0.5

BATCH_RULES: rule.Constraints = {
    "visible": (rule.one_of(VISIBLE),),
    "learning_rate": (rule.one_of(["auto"]), rule.number(0, open_end=True)),
    "n_steps": (rule.integer(1),),
    "momentum": (rule.number(0),),
    "l2": (rule.number(0),),
    "batch_size": (rule.integer(1),),
    "max_epochs": (rule.integer(0),),
    "validation_fraction": (rule.nothing(), rule.share()),
    "patience": (rule.nothing(), rule.integer(1)),
}


def plan_epochs(estimator: Any, seed: int, deadline: Deadline) -> EpochPlan:
    """What the parameters say about epochs."""
    return EpochPlan(
        estimator.max_epochs,
        estimator.batch_size,
        estimator.patience,
        seed=seed,
        deadline=deadline,
    )


def warn_if_training_stopped_early(reports: Sequence[Training]) -> None:
    """Warn of weights that ran away, and of a fit that was cut short."""
    for report in reports:
        if report.reason == "trouble":
            warn(
                f"training stopped after {report.epoch} epochs: {report.trouble}", DegenerateWarning
            )
        elif report.reason in ("time_budget", "interrupted"):
            what = (
                "time_budget was used up"
                if report.reason == "time_budget"
                else "the fit was interrupted"
            )
            warn(
                f"{what} after {report.epoch} epochs; what was learned so far is kept",
                ConvergenceWarning,
            )


def check_weights_finite(arrays: Iterable[Array], rate: str) -> None:
    """Refuse to keep weights that are no numbers: nothing can be asked of them."""
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError(
            f"training has diverged: weights are no longer finite; lower {rate} or l2, or divide "
            "the columns of X by their standard deviations"
        )
