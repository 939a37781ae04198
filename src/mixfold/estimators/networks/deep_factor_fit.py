"""The fit of a stack: what its settings mean, growth, and training of the whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from mixfold.engine.progress import Progress
from mixfold.engine.random import seed_from
from mixfold.estimators.networks.deep_factor_generation import (
    DeepGeneration,
    TopSources,
    top_sources,
)
from mixfold.estimators.networks.deep_factor_growth import (
    Fitting,
    Grown,
    LayerPlan,
    grow,
    stack_of,
    with_stack,
)
from mixfold.estimators.networks.deep_factor_joint import tune_jointly
from mixfold.estimators.networks.deep_factor_rows import TrainingRows
from mixfold.estimators.networks.deep_factor_tuning import Tell, Tuned, TuningPlan, tune_recognition
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.estimators.shell.fitting import checkpoint_of
from mixfold.models.networks.joint import Penalties

_STOPPED = {
    "time_budget": "time_budget was used up",
    "interrupted": "the fit was interrupted",
}


class DeepFitting(DeepGeneration):
    """``_fit``, for an estimator that has the parameters of :class:`DeepFactorNetwork`."""

    loss_curve_: list[float]
    stop_reason_: str
    n_iter_: int

    def _fit(self, rows: TrainingRows, plans: list[LayerPlan], began: float) -> None:
        checkpoint, saved = checkpoint_of(self), None
        if checkpoint is not None:
            saved = checkpoint.read()
            checkpoint.compare(saved, rows.fingerprint())
        seed = seed_from(self.random_state) if saved is None else saved.seed
        budget = float("inf") if self.time_budget is None else self.time_budget
        progress = Progress(int(self.verbose), self.verbose_interval)
        fitting = Fitting(rows, seed, began + budget, progress, checkpoint, self._options())
        grown = saved or Grown(seed)
        if checkpoint is not None:
            checkpoint.write(grown)  # the seed, which layers that are gone on with must share
        with progress:
            grown = self._trained(fitting, plans, grown)
        if checkpoint is not None:
            checkpoint.finish(replace(grown, reason=self.stop_reason_))
        if self.stop_reason_ in _STOPPED:
            what = _STOPPED[self.stop_reason_]
            warn(f"{what}; what was learned so far is kept", ConvergenceWarning)

    def _trained(self, fitting: Fitting, plans: list[LayerPlan], grown: Grown) -> Grown:
        def tell(now: Grown) -> None:
            if fitting.checkpoint is not None:
                fitting.checkpoint.offer(now)

        layers, grown = grow(fitting, plans, grown, self.classes_, tell)
        self.layers_, self._stack = layers, stack_of(layers)
        self.network_, self.loss_curve_ = None, []
        self.stop_reason_ = grown.reason or layers[-1].stop_reason_
        self.n_iter_ = sum(layer.n_iter_ for layer in layers)
        self._dtype, self._stream = fitting.rows.source.dtype.name, (fitting.seed, 0)
        self.__dict__.pop("_priors", None)
        tuned = None if grown.reason else self._tuned(fitting, grown, tell)
        if tuned is not None:
            self.loss_curve_, self.stop_reason_ = list(tuned.curve), tuned.reason
            self.n_iter_ += tuned.n_iter
        self._top = self._kept_sources(fitting.rows, grown, tuned)
        return grown

    def _tuned(self, fitting: Fitting, grown: Grown, tell: Tell) -> Tuned | None:
        """The training of the whole; its result takes its place in the estimator."""
        if self.fine_tune is None:
            return None
        if self.fine_tune == "recognition":
            if not fitting.rows.labelled.any():
                return None
            tuned = tune_recognition(
                fitting, self._stack, len(self.classes_), self._tuning_plan(), grown, tell
            )
            self.network_ = tuned.result
            return tuned
        gamma = self._per_layer("gamma")[-1]
        alpha, beta = self._per_layer("alpha"), self._per_layer("beta")
        tuned = tune_jointly(
            fitting, self._stack, self.fine_tune, Penalties(alpha, beta, gamma), self.max_iter,
            self.tol, grown, tell,
        )  # fmt: skip
        self._stack = tuned.result
        self.layers_ = with_stack(self.layers_, self._stack)
        return tuned

    def _kept_sources(
        self, rows: TrainingRows, grown: Grown, tuned: Tuned | None
    ) -> TopSources | None:
        if rows.labels is None or grown.sources is None:
            return None
        known = rows.labelled
        moved = None if tuned is None else tuned.top
        sources = grown.sources[known] if moved is None else moved
        return top_sources(sources, rows.labels[known], rows.weights[known], grown.seed)

    # ------------------------------------------------ settings

    def _per_layer(self, name: str) -> tuple[Any, ...]:
        value, depth = getattr(self, name), len(self.hidden)
        if not isinstance(value, tuple | list):
            return (value if value is None else float(value),) * depth
        if len(value) != depth:
            raise ValueError(
                f"The {name!r} parameter of DeepFactorNetwork must be one value, or one for each "
                f"of the {depth} layers of hidden={self.hidden}. Got {value!r} instead."
            )
        return tuple(None if one is None else float(one) for one in value)

    def _plans(self) -> list[LayerPlan]:
        depth = len(self.hidden)
        kinds: list[Any] = ["auto" if self.supervised == "each" else False] * depth
        kinds[-1] = "auto" if self.supervised else "after"
        parts = (self._per_layer(name) for name in ("alpha", "beta", "gamma", "sigma2"))
        return [
            LayerPlan(int(size), *each)
            for size, *each in zip(self.hidden, *parts, kinds, strict=True)
        ]

    def _options(self) -> dict[str, Any]:
        """What all layers share."""
        common = ("link", "verbose", "verbose_interval", "executor", "n_jobs")
        return {**{name: getattr(self, name) for name in common}, **(self.layer_options or {})}

    def _tuning_plan(self) -> TuningPlan:
        names = TuningPlan.__dataclass_fields__
        return TuningPlan(**{name: getattr(self, name) for name in names})

    def _check_layer_options(self) -> None:
        """Training of the whole by 'decoder' or 'map' keeps neither signs nor missing biases."""
        options = self.layer_options or {}
        kept = [name for name in ("nonneg_codebook", "nonneg_classifier") if options.get(name)]
        kept += [] if options.get("fit_bias", True) else ["fit_bias"]
        if kept and self.fine_tune in ("decoder", "map"):
            raise ValueError(
                f"layer_options[{kept[0]!r}]={options[kept[0]]!r} is not kept by "
                f"fine_tune={self.fine_tune!r}; use fine_tune='recognition' or None"
            )

    def _warn_of_lines(self) -> None:
        if self.link == "identity" and len(self.hidden) > 1:
            warn(
                f"layers of link='identity' collapse into one: hidden={self.hidden} can say no "
                f"more than one layer of {min(self.hidden)} sources; set link='tanh', or one size",
                DegenerateWarning,
            )
