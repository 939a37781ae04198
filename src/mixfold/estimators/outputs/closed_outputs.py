"""The shell of Gaussian outputs as far as a fit has a closed form, which is tried first."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Array, Event, Source
from mixfold.engine.random import seed_from
from mixfold.estimators.outputs.supervised_gaussian import GaussianOutputEstimator
from mixfold.estimators.shell import constraints as rule
from mixfold.models.factors.spectral_sums import MissingEntries
from mixfold.models.outputs import profile

# order of a matrix that may be decomposed a hundred times, unasked and if asked for
_QUICK, _LARGEST = 400, 2000


class ClosedOutputs(GaussianOutputEstimator):
    """Base of a model of one component, whose maximum ``solver='profile'`` finds without steps."""

    _constraints: ClassVar[rule.Constraints] = {
        **GaussianOutputEstimator._constraints,
        "solver": (rule.one_of(["auto", "profile", "em"]),),
    }
    _stored: ClassVar[tuple[str, ...]] = (*GaussianOutputEstimator._stored, "solver_")

    def _learned_outputs(self, y: Any, weight: Array | None) -> Array:
        outputs = super()._learned_outputs(y, weight)
        weighs = np.ones(len(outputs), bool)
        if weight is not None and len(weight) == len(outputs):
            weighs = weight > 0
        self._whole = not np.isnan(outputs[weighs]).any()
        return outputs

    def _fit(self, source: Source, max_iter: int | None = None) -> Any:
        if self._closed(source):
            try:
                return self._fit_closed(source)
            except MissingEntries:
                if self.solver == "profile":
                    raise ValueError(
                        "solver='profile' needs complete rows, and X has missing entries; use "
                        "solver='auto' or 'em'"
                    ) from None
        self.solver_ = "em"
        return super()._fit(source, max_iter)

    def _closed(self, source: Source) -> bool:
        """Whether the closed form is asked for, or can be had quickly."""
        if self.solver == "em":
            return False
        lacks = []
        if not self._whole:
            lacks.append("every output of every row")
        if self.output_noise == "each":
            lacks.append("one noise for all outputs")
        size = profile.order(source, len(self._coding.means))
        searched = self._views(source).searched
        if self.solver == "profile" and searched and size > _LARGEST:
            lacks.append(f"min(n_samples, n_features + n_outputs) up to {_LARGEST} ({size} here)")
        if self.solver == "profile" and lacks:
            raise ValueError(f"solver='profile' needs {' and '.join(lacks)}; use solver='em'")
        # outputs that count more than once, with a noise to learn: the highest maximum is no use
        spike = self.output_weight > 1 and isinstance(self.output_noise, str)
        quick = not spike and (size <= _QUICK or not searched)
        return not lacks and (quick or self.solver == "profile")

    def _views(self, source: Source) -> profile.Views:
        outputs = self._output_view()
        return profile.Views(
            source.n_features,
            outputs.n_outputs,
            self._n_factors,
            outputs.weight,
            None if self.input_noise is None else float(self.input_noise),
            outputs.fixed_noise,
            max(float(self.noise_floor), 1e-14),
            outputs.floor,
        )

    def _fit_closed(self, source: Source) -> None:
        if source.n_samples is not None:
            self._check_rows(source.n_samples)
        seed = seed_from(self.random_state)
        views, rng = self._views(source), np.random.default_rng(seed % 2**63)
        solved = profile.solve(source, self._executor(source), views, rng)
        units = self._output_view().units
        per_row = solved.objective
        if units is not None:
            per_row -= views.weight * float(np.log(units).sum())
        self._holes, self._climb, self._params = False, None, solved.params
        self._dtype, self._stream = source.dtype.name, (seed, 0)
        self._total = (per_row * solved.weight, solved.weight, 0.0)
        self.solver_ = "profile"
        self.events_: list[Event] = []
        self.lower_bound_, self.lower_bounds_ = per_row, [per_row]
        self.n_iter_, self.n_passes_ = 1, solved.passes
        self.converged_, self.stop_reason_ = True, "converged"
        self._publish_params()
        self._tell_noise()
