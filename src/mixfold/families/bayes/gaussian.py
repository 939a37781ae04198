"""What the Gaussian families with conjugate priors share: settings of the prior, points, frames."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Array
from mixfold.families.bayes.prior_settings import check_mean, check_weight
from mixfold.families.bayes.records import NormalPosterior, NormalPrior
from mixfold.families.conjugate import ConjugateFamily
from mixfold.families.gaussian import GaussianFamily, GaussianParams, Moments, share
from mixfold.math.frame import Frame


@dataclass(frozen=True)
class ConjugateGaussian(ConjugateFamily, GaussianFamily):
    """Settings of the prior are in data coordinates; None stands for what the data suggest.

    Parameters
    ----------
    mean : array (D,), optional
        By default the mean of all rows.
    precision : float
        beta_0: how many rows the prior of a mean is worth.
    degrees : float, optional
        nu_0; by default D, or 1 where columns are independent. Columns with variances of their own
        may differ in this and in ``precision``, as arrays (D,).
    scatter : array, optional
        W_0^-1; by default degrees * precision * covariance of all rows.
    """

    mean: Any = None
    precision: Any = 0.01
    degrees: Any = None
    scatter: Any = None

    # whether columns may have settings of their own: those with precisions of their own
    _per_column: ClassVar[bool] = False

    # ------------------------------------------------ what a shape of covariance says

    @abstractmethod
    def _check_scatter(self, n_features: int) -> Array:
        """The setting ``scatter`` as an array; an error if it is none of a prior."""

    @abstractmethod
    def _least_degrees(self, n_features: int) -> float:
        """Degrees of freedom must exceed this."""

    @abstractmethod
    def _usual_degrees(self, n_features: int) -> float: ...

    @abstractmethod
    def _enter_scatter(self, scatter: Array, frame: Frame) -> Array:
        """The scatter of one component, from data to frame coordinates."""

    def leave_scatter(self, scatter: Array, frame: Frame) -> Array:
        """The scatter of one component, from frame to data coordinates."""
        return self._enter_scatter(scatter, Frame(frame.origin, 1 / frame.scale))

    @abstractmethod
    def _total_scatter(self, total: Moments) -> Array:
        """Covariance of all rows in the shape of one component, raised to the floor."""

    # ------------------------------------------------ prior

    def prior(self, frame: Frame, total: Moments) -> NormalPrior:
        size = frame.origin.size
        deviation, _ = share(total)
        mean = (total.origin + deviation)[0]
        if self.mean is not None:
            mean = frame.enter(check_mean(self.mean, size))
        own, least = self._per_column, self._least_degrees(size)
        usual = self._usual_degrees(size) if self.degrees is None else self.degrees
        degrees = check_weight(usual, "degrees", size, own, least)
        precision = check_weight(self.precision, "precision", size, own, 0.0)
        if self.scatter is None:
            scatter = degrees * precision * self._total_scatter(total)
        else:
            scatter = self._enter_scatter(self._check_scatter(size), frame)
        return NormalPrior(mean, precision, degrees, scatter)

    def describe_prior(self, prior: NormalPrior, frame: Frame) -> dict[str, Any]:
        return {
            "mean": frame.leave(prior.mean),
            "precision": _as_setting(prior.precision),
            "degrees": _as_setting(prior.degrees),
            "scatter": _as_setting(self.leave_scatter(prior.scatter, frame)),
        }

    def change_frame_of_prior(self, prior: NormalPrior, old: Frame, new: Frame) -> NormalPrior:
        scatter = self._enter_scatter(prior.scatter, _ratio(old, new))
        return replace(prior, mean=new.enter(old.leave(prior.mean)), scatter=scatter)

    # ------------------------------------------------ posterior

    def point(self, posterior: NormalPosterior) -> GaussianParams:
        return GaussianParams(posterior.frame, posterior.means, posterior.scatter)

    def keep_posterior(self, posterior: NormalPosterior, which: Array) -> NormalPosterior:
        params = self.select(self.point(posterior), which)
        own = posterior.scatter.ndim > 0 and params.scatter is not posterior.scatter
        return NormalPosterior(
            posterior.frame,
            params.means,
            posterior.precision[which],
            posterior.degrees[which] if own else posterior.degrees,
            params.scatter,
        )

    def change_frame_of_posterior(
        self, posterior: NormalPosterior, frame: Frame
    ) -> NormalPosterior:
        params = self.change_frame(self.point(posterior), frame)
        return replace(posterior, frame=frame, means=params.means, scatter=params.scatter)


def _as_setting(value: Any) -> Any:
    """One number, or one for each column."""
    return float(value) if np.ndim(value) == 0 else np.asarray(value)


def _ratio(old: Frame, new: Frame) -> Frame:
    """The frame that leads from coordinates of the old one to those of the new one."""
    return Frame((new.origin - old.origin) / old.scale, new.scale / old.scale)
