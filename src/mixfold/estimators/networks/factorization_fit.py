"""How a matrix factorisation is fitted: labels, sessions, batches of a stream."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Executor, Pilot, Source
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.progress import Progress
from mixfold.engine.sources import open_source
from mixfold.engine.sources.targets import OutputSource, sides_beside, split_target
from mixfold.estimators.networks import factorization_setup as setup
from mixfold.estimators.networks.factorization_answers import FactorizationAnswers
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.estimators.shell.fitting import FittingEstimator
from mixfold.estimators.shell.targets import Target, learned
from mixfold.math.links import Link
from mixfold.models.networks.factorization.codes import CodeProblem
from mixfold.models.networks.factorization.memory import CodeMemory
from mixfold.models.networks.factorization.model import FactorModel
from mixfold.models.networks.factorization.records import (
    FactorizationParams,
    FactorizationSums,
    Layer,
)
from mixfold.models.networks.factorization.starts import GAUGE_ROWS, regauged
from mixfold.models.networks.factorization.sums import dense_rows
from mixfold.models.networks.factorization.use import Encoder

# passes of the session that fits the classifier alone
HEAD_PASSES = 100
# inference of new rows: the largest change of a code in the last sweep
TOL = 1e-10


class FittedFactorization(FactorizationAnswers, FittingEstimator):
    """Sessions of a fit: all together, then what labels may not have seen."""

    _shares: Array
    _origin: Array
    _sigma2: float
    _seen: float

    # ------------------------------------------------ labels

    def _training_source(self, X: Any, y: Any, weight: Any) -> Source:
        """X with class numbers beside it, once it is known what y is."""
        columns, given = None, _as_weights(X, weight)
        if isinstance(y, str):
            y, columns = split_target(X, y, weight)
        elif isinstance(X, Source):
            beside = sides_beside(X)
            y, given = beside.y if y is None else y, beside.weight
        labels = self._learned_labels(y, given)
        if columns is not None:
            X = open_source(X, columns=columns, weight=weight, y=labels)
            return self._open(X, reset=True)
        if isinstance(X, Source):
            source = self._open(X, reset=True, weight=weight)
            return source if labels is None else OutputSource(source, labels)
        return self._open(X, reset=True, weight=weight, y=labels)

    def _learned_labels(self, y: Any, weight: Array | None) -> Array | None:
        if self.supervised is False or y is None:
            if y is None and self.supervised in (True, "after"):
                raise ValueError(
                    f"supervised={self.supervised!r}: this {type(self).__name__} requires y to be "
                    "passed, but the target y is None; set supervised='auto' to learn without"
                )
            self._target = None
            return None
        self._target, labels = learned(y, "classification", weight)
        if weight is None or len(weight) != len(labels):
            weight = np.ones(len(labels))
        known = labels >= 0
        counts = np.bincount(labels[known], weight[known], minlength=len(self._target.classes))
        self._shares = counts / counts.sum()
        return labels

    # ------------------------------------------------ a data set

    def _fit(self, source: Source, max_iter: int | None = None) -> Fit:
        began = time.monotonic()
        executor, seed, pilot = self._survey(source)
        link = setup.link_of(self)
        guided = self._target is not None and self.supervised != "after"
        setup.check_signs(self, link, guided)
        setup.warn_of_void(self)
        start = setup.start_of(self, link, source, executor, pilot, seed)
        self._sigma2 = setup.balance_of(self, start, self._target is not None)
        layer = self._bounded(start)
        if guided:
            positive = self.solver == "multiplicative"
            layer = setup.headed_layer(layer, self._shares, positive)
        model = setup.model_of(self, link, layer, self._sigma2, self.batch_size is None)
        plan = self._scaled_plan(start, seed, max_iter)
        result = fit(
            model, source, executor, plan, pilot=pilot, checkpoint=self._checkpoint(),
            progress=Progress(int(self.verbose), self.verbose_interval),
        )  # fmt: skip
        result = replace(result, params=self._regauged(result.params, link, pilot, start))
        result = self._with_head(model, result, source, executor, pilot, plan, began)
        self._origin = model.origin
        self._keep(result, source, seed, quiet=max_iter is not None)
        return result

    def _look(self, pilot: Pilot) -> None:
        lowest = float(np.nanmin(pilot.minimum))
        if lowest < 0 and (self.nonneg_codebook or self.init == "nndsvd"):
            raise ValueError(
                f"Negative values in data: X holds {lowest:g}, which nonneg_codebook=True (and "
                "init='nndsvd') cannot have; shift the columns, or free the codebook"
            )

    def _check_rows(self, n_rows: int) -> None:
        if self.n_components >= min(n_rows, self.n_features_in_):
            warn(
                f"n_components={self.n_components} is at least min(n_samples, n_features), with "
                f"n_samples = {n_rows} rows of positive weight and n_features = "
                f"{self.n_features_in_}: rows can be given back exactly; lower it, or raise alpha",
                DegenerateWarning,
            )

    def _bounded(self, start: setup.Start) -> Layer:
        radius = setup.radius_of(self, start)
        norms = np.linalg.norm(start.layer.codebook, axis=1, keepdims=True)
        codebook = start.layer.codebook * np.minimum(1.0, radius / np.maximum(norms, 1e-300))
        return replace(start.layer, codebook=codebook, radius=radius)

    def _scaled_plan(self, start: setup.Start, seed: int, max_iter: int | None) -> Plan:
        """``tol`` is relative to what a model without sources costs in a row."""
        cost = 0.5 * start.total / self._sigma2
        if self._target is not None:
            cost += float(np.log(len(self._target.classes)))
        plan = self._plan(seed, max_iter)
        return replace(plan, tol=self.tol * max(cost, float(np.finfo(float).tiny)))

    def _plan(self, seed: int, max_iter: int | None = None) -> Plan:
        return Plan(
            tol=self.tol,
            max_iter=self.max_iter if max_iter is None else max_iter,
            n_candidates=1,
            time_budget=self.time_budget,
            batch_size=self.batch_size,
            acceleration=ACCELERATIONS["squarem"] if self._creeps() else None,
            seed=seed,
        )

    def _creeps(self) -> bool:
        """Whether steps are many and alike: scales trade slowly against each other, signs bind, or
        a classifier is learned from sums.

        Free layers need few steps; the published rules and batches are left as they are.
        """
        if self.solver != "proximal" or self.batch_size is not None:
            return False
        signs = self.nonneg_codebook or self.nonneg_sources or self.link == "saturating"
        afar = self._target is not None and self.executor != "threads"
        return bool(signs or afar or self.alpha > 0 or self.beta > 0)

    def _regauged(
        self, params: FactorizationParams, link: Link, pilot: Pilot, start: setup.Start
    ) -> FactorizationParams:
        """Rows of the codebook of one norm, where nothing but a habit says which."""
        fixed = self.alpha > 0 or self.beta > 0 or np.isfinite(params.layer.radius)
        moves = start.one_sided and link.centre != 0
        if self.gauge is None or fixed or moves:
            return params
        rows = dense_rows(pilot.block.X)[:GAUGE_ROWS]
        weight = pilot.block.weights()[:GAUGE_ROWS]
        problem = CodeProblem(params.layer.without_head(), link, 0.0, self._sigma2, 1e-4, 200)
        layer = regauged(params.layer, problem.solve(rows), weight, link, start.one_sided)
        return replace(params, layer=layer)

    def _with_head(
        self, model: FactorModel, result: Fit, source: Source, executor: Executor, pilot: Pilot,
        plan: Plan, began: float,
    ) -> Fit:  # fmt: skip
        """The classifier fitted to codes as new rows will have them, if that is wanted."""
        if self._target is None or not (self.reencode or self.supervised == "after"):
            return result
        layer = result.params.layer
        if layer.classifier is None:
            layer = setup.headed_layer(layer, self._shares, False)
        if plan.time_budget is not None:
            left = plan.time_budget - (time.monotonic() - began)
            plan = replace(plan, time_budget=max(left, 1e-6))
        tol = self.tol * float(np.log(len(self._shares)))
        plan = replace(plan, tol=tol, max_iter=HEAD_PASSES, batch_size=None)
        head = replace(setup.head_model(model, layer), by_rows=True)
        found = fit(head, source, executor, plan, pilot=pilot)
        return replace(result, params=replace(result.params, layer=found.params.layer),
                       n_passes=result.n_passes + found.n_passes)  # fmt: skip

    # ------------------------------------------------ a stream

    def _model(self, n_features: int) -> FactorModel:
        """Of a stream: codes are not remembered, and labels move them only if they may."""
        link, layer = setup.link_of(self), self._params.layer
        model = setup.model_of(self, link, layer, self._sigma2, False)
        guided = self.supervised != "after" and not self.reencode
        return replace(model, origin=self._origin, guided=guided, memory=CodeMemory(0))

    def _scheduled(self, model: Any, stats: Any, first: bool) -> FactorizationSums:
        """Penalties weigh against all rows that were seen."""
        self._seen += stats.weight
        total: FactorizationSums = super()._scheduled(model, stats, first)
        return total.scale(self._seen)

    def _publish_batch(self, model: Any, stats: Any) -> None:
        self.lower_bound_ = model.objective(self._params, stats) / stats.weight

    def _known_labels(self, y: Any, classes: Any, weight: Array | None) -> Array | None:
        """Class numbers of a batch; the first one says which classes there are."""
        if not hasattr(self, "_params"):
            if classes is None or y is None or self.supervised is False:
                return self._learned_labels(y, weight)
            self._target = Target("classification", np.unique(np.asarray(classes)), 1, True)
            self._shares = np.full(len(self._target.classes), 1.0 / len(self._target.classes))
        if y is None or self.supervised is False:
            return None
        if self._target is None:
            raise ValueError(
                "y is given, but the first batch (or the fit) had no labels, so that there is no "
                "classifier; begin with a batch that has some, and classes=..., or leave y out"
            )
        return self._target.encoded(y)

    def _encoder(self) -> Encoder:
        return Encoder(
            self._params.layer, setup.link_of(self), float(self.alpha), self._sigma2, TOL
        )


def _as_weights(X: Any, weight: Any) -> Array | None:
    """Weights of the rows as an array, as far as they can be read; the source will check them."""
    if weight is None:
        return None
    values = np.asarray(split_target(X, weight)[0] if isinstance(weight, str) else weight)
    usable = values.ndim == 1 and values.dtype.kind in "fiub"
    return values.astype(float) if usable and (values >= 0).all() else None
