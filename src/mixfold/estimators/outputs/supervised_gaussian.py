"""The shell of factor models with Gaussian outputs, as far as they are fitted."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

import numpy as np

from mixfold.contracts import Array, Event
from mixfold.engine.acceleration import ACCELERATIONS, Acceleration
from mixfold.engine.loop import Fit, Plan
from mixfold.estimators.outputs.output_predictions import OutputPredictions
from mixfold.estimators.outputs.supervised import SUPERVISED_RULES, SupervisedEstimator
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.estimators.shell.output_coding import class_coding, number_coding
from mixfold.estimators.shell.targets import TASKS
from mixfold.families.factor import FactorFamily, IsotropicNoise
from mixfold.models.outputs.gaussian_model import GaussianModel
from mixfold.models.outputs.gaussian_outputs import GaussianOutputs
from mixfold.models.outputs.gaussian_starts import GaussianStart


class GaussianOutputEstimator(OutputPredictions):
    """Base of SupervisedPPCA and SupervisedMixtureOfPPCA."""

    _constraints: ClassVar[rule.Constraints] = {
        **SUPERVISED_RULES,
        "n_components": (rule.integer(1),),
        "task": (rule.one_of(TASKS),),
        "output_noise": (rule.one_of(["shared", "each"]), rule.number(0, open_end=True)),
        "input_noise": (rule.nothing(), rule.number(0, open_end=True)),
        "output_weight": (rule.number(0, open_end=True),),
        "coding": (rule.one_of(["contrast", "one-of-c"]),),
        "standardize": (rule.one_of(["auto"]), rule.boolean()),
        "noise_floor": (rule.number(0),),
        "n_init": (rule.integer(1),),
        "acceleration": (rule.nothing(), rule.one_of(["auto", "squarem"])),
    }
    _stored: ClassVar[tuple[str, ...]] = (*SupervisedEstimator._stored, "_coding")

    # the least noise of the outputs, of their mean variance
    _output_floor: ClassVar[float] = 1e-10

    @property
    def _task(self) -> str:
        return str(self.task)

    @property
    @abstractmethod
    def _n_factors(self) -> int:
        """Latent dimension d."""

    # ------------------------------------------------ the model

    def _family(self) -> FactorFamily:
        return FactorFamily(
            floor=max(float(self.noise_floor), 1e-14),
            factors=(self._n_factors,),
            noise=IsotropicNoise(held=self.input_noise is not None),
            holes=getattr(self, "_holes", False),
            expand=False,
        )

    def _output_view(self) -> GaussianOutputs:
        given = isinstance(self.output_noise, str)
        return GaussianOutputs(
            weight=float(self.output_weight),
            each=self.output_noise == "each",
            fixed_noise=None if given else float(self.output_noise),
            floor=self._output_floor * (float(self._coding.variances.mean()) or 1.0),
            n_outputs=len(self._coding.means),
            units=None if self._target.task == "classification" else tuple(self._coding.scale),
        )

    def _joint(self, n_features: int) -> GaussianModel:
        return GaussianModel(
            self._n_mixed, self._family(), self._output_view(), start=self._first_start()
        )

    def _first_start(self) -> GaussianStart:
        noise = None if self.input_noise is None else float(self.input_noise)
        return GaussianStart(self._coding.means, self._coding.variances, noise)

    def _acceleration(self) -> Acceleration | None:
        return None if self.acceleration is None else ACCELERATIONS["squarem"]

    def _plan(self, seed: int, max_iter: int | None = None) -> Plan:
        return replace(super()._plan(seed, max_iter), acceleration=self._acceleration())

    # ------------------------------------------------ targets as outputs

    def _learn_scale(self, encoded: Array, weight: Array) -> None:
        if self._target.task == "classification":
            n_classes, plain = len(self._target.classes), self.coding == "one-of-c"
            self._coding = class_coding(encoded, weight, n_classes, plain)
        else:
            self._coding = number_coding(encoded, weight, self._standardized)

    @property
    def _standardized(self) -> bool:
        if self.standardize == "auto":
            return self._target.task == "regression"
        return bool(self.standardize)

    def _outputs(self, encoded: Array) -> Array:
        if self._target.task != "classification":
            return np.asarray((encoded - self._coding.center) / self._coding.scale)
        return np.where((encoded >= 0)[:, None], self._coding.codes[encoded], np.nan)

    @property
    def _is_likelihood(self) -> bool:
        return bool(self.output_weight == 1)

    # ------------------------------------------------ results

    def _tell(self, fit: Fit) -> None:
        self._tell_noise()
        super()._tell(fit)

    def _tell_noise(self) -> None:
        noise, floor = self._params.outputs.noise, self._output_view().floor
        if isinstance(self.output_noise, str) and (noise <= floor * (1 + 1e-9)).any():
            self.events_.append(Event("floor", _NO_OUTPUT_NOISE, self.n_iter_))
            if self._n_mixed == 1:  # components that have one class each are what one hopes for
                warn(f"{_NO_OUTPUT_NOISE}; see events_", DegenerateWarning)

    def _publish_outputs(self) -> None:
        if self._target.task != "regression":
            self.classes_ = self._target.classes
        outputs, coding = self._turned().outputs, self._coding
        scale = coding.scale if self._target.task != "classification" else np.ones(1)
        shift = coding.center if self._target.task != "classification" else np.zeros(1)
        one = self._single
        self.output_loadings_ = one(outputs.loadings * np.broadcast_to(
            scale, outputs.means.shape)[..., None]).astype(self._dtype)  # fmt: skip
        self.output_mean_ = one(outputs.means * scale + shift).astype(self._dtype)
        self.output_noise_variance_ = one(outputs.noise * scale**2).astype(self._dtype)
        self.n_outputs_ = self._target.n_outputs

    def _single(self, values: Array) -> Array:
        """What a model of one component publishes of a stack."""
        return values


_NO_OUTPUT_NOISE = (
    "the noise of the outputs reached its floor: the factors explain them wholly; use fewer "
    "n_components, or set output_noise to a number"
)
