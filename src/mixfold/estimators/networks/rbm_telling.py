"""What is said of training by mini-batches when it has ended otherwise than planned."""

from __future__ import annotations

from collections.abc import Sequence

from sklearn.exceptions import ConvergenceWarning

from mixfold.engine.epochs import Training
from mixfold.estimators.shell.base import DegenerateWarning, warn


def tell_training(reports: Sequence[Training]) -> None:
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
