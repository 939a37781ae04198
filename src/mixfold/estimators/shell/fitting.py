"""Fitting by the engine, whatever the model: whole data sets, and batches of a stream."""

from __future__ import annotations

import zlib
from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Context, Executor, Pilot, Source
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.checkpoints import Checkpoint
from mixfold.engine.loop import Fit, Plan, fit, pilot_size
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.progress import Progress
from mixfold.engine.random import RowKeys, seed_from
from mixfold.engine.schedules import Stepwise
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import MixfoldEstimator

# steps on the first batch of a stream
FIRST_BATCH_STEPS = 20
# parameters that may change between a fit and the one that goes on from its checkpoint
_FREE = ("checkpoint", "executor", "n_jobs", "verbose", "verbose_interval", "time_budget")


# rules of the parameters that every fit by acceleration has
FITTING_RULES: rule.Constraints = {
    "tol": (rule.number(0),),
    "max_iter": (rule.integer(0),),
    "warm_start": (rule.boolean(),),
    "verbose": (rule.integer(0), rule.boolean()),
    "verbose_interval": (rule.integer(1),),
    "acceleration": (rule.nothing(), rule.one_of(["auto", *ACCELERATIONS])),
    "time_budget": (rule.nothing(), rule.number(0, open_end=True)),
    "checkpoint": (rule.nothing(), rule.path()),
}


class FittingEstimator(MixfoldEstimator):
    """Base of estimators that climb an objective: subclasses say of which model."""

    # the parameter that says how many components there are
    _size_name: ClassVar[str] = "n_components"

    @property
    def _size(self) -> int:
        return int(getattr(self, self._size_name))

    @abstractmethod
    def _model(self, n_features: int) -> Any: ...

    @abstractmethod
    def _plan(self, seed: int, max_iter: int | None = None) -> Plan: ...

    @abstractmethod
    def _publish_params(self) -> None: ...

    def _publish_batch(self, model: Any, stats: Any) -> None:
        """What is known after a batch of a stream, from its statistics; by default nothing."""

    def _informed(
        self, model: Any, source: Source, executor: Executor, pilot: Pilot, seed: int
    ) -> Any:
        """The model with a start that needs passes over the data; by default none does."""
        return model

    def _continued(self, model: Any, pilot: Pilot) -> dict[str, Any]:
        """How the engine goes on from an earlier fit; by default it does not."""
        return {}

    # ------------------------------------------------ a data set

    def _fit(self, source: Source, max_iter: int | None = None) -> Fit:
        executor, seed, pilot = self._survey(source)
        model = self._model(source.n_features)
        result = self._climbed(model, source, executor, pilot, self._plan(seed, max_iter))
        # a first batch need not converge: others follow
        self._keep(result, source, seed, quiet=max_iter is not None)
        return result

    def _survey(self, source: Source) -> tuple[Executor, int, Pilot]:
        """Where the rows are visited, the seed, and a sample of the rows, once they are checked."""
        executor = self._executor(source)
        seed = seed_from(self.random_state)
        checkpoint = self._checkpoint()
        if checkpoint is not None:
            seed = checkpoint.seed(seed)
        pilot = draw_pilot(source, executor, pilot_size(source, self._size), seed)
        self._check_columns(pilot)
        self._look(pilot)
        self._check_rows(pilot.total_rows)
        return executor, seed, pilot

    def _look(self, pilot: Pilot) -> None:
        """What a model has to know about the data before it is made; by default nothing."""

    def _climbed(
        self, model: Any, source: Source, executor: Executor, pilot: Pilot, plan: Plan
    ) -> Fit:
        return fit(
            self._informed(model, source, executor, pilot, plan.seed),
            source,
            executor,
            plan,
            pilot=pilot,
            checkpoint=self._checkpoint(),
            progress=Progress(int(self.verbose), self.verbose_interval),
            **self._continued(model, pilot),
        )

    def _keep(self, result: Fit, source: Source, seed: int, quiet: bool) -> None:
        self._params = result.params
        self._dtype = source.dtype.name
        self._stream = (seed, 0)
        self.__dict__.pop("_schedule", None)
        self._publish_params()
        self._publish_fit(result, quiet)

    def _check_rows(self, n_rows: int) -> None:
        if n_rows < self._size:
            raise ValueError(
                f"{self._too_few_rows(n_rows)} Lower {self._size_name} or give more rows of "
                "positive weight."
            )

    def _too_few_rows(self, n_rows: int) -> str:
        """What scikit-learn says of fewer rows than components."""
        name = self._size_name
        return f"Expected n_samples >= {name} but got {name} = {self._size}, n_samples = {n_rows}."

    def _checkpoint(self) -> Checkpoint | None:
        return checkpoint_of(self)

    # ------------------------------------------------ a stream

    def _stream_model(self, n_features: int) -> Any:
        """The model whose statistics of successive batches may be blended."""
        return self._model(n_features)

    def _learn_batch(self, source: Source, first: bool) -> None:
        """One step of the stepwise schedule; the parameters come from a fit or an earlier batch."""
        model = self._stream_model(self.n_features_in_)
        keys = RowKeys(self._stream[0], 0)
        task = partial(model.expect, model.prepare(self._params), rng=keys)
        stats = self._executor(source).map_reduce(task, source)
        if model.total_weight(stats) == 0:
            return
        total = self._scheduled(model, stats, first)
        context = Context(None, np.random.default_rng(self._stream[0] % 2**63))
        self._publish_batch(model, stats)
        self._params = model.update(self._params, total, context).params
        self.n_iter_ = self._schedule.n_batches
        self._publish_params()

    def _scheduled(self, model: Any, stats: Any, first: bool) -> Any:
        """Statistics that stand for the whole stream, after those of one more batch."""
        batch = model.normalised(stats)
        self._schedule: Any = Stepwise(batch) if first else self._schedule.blend(batch)
        return self._schedule.stats


def checkpoint_of(estimator: Any) -> Checkpoint | None:
    """The file that an estimator names by its parameter ``checkpoint``, None if it does not."""
    if estimator.checkpoint is None:
        return None
    values = estimator.get_params(deep=False).items()
    return Checkpoint(estimator.checkpoint, {k: _told(v) for k, v in values if k not in _FREE})


def _told(value: Any) -> str:
    """A parameter in a form that differs where the parameter does; arrays print in part only."""
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return type(value).__name__  # the seed that was drawn from it is stored
    if isinstance(value, str) or np.ndim(value) == 0:
        return repr(value)
    array = np.ascontiguousarray(value)
    return f"array {array.shape} {array.dtype} {zlib.crc32(array.tobytes()):08x}"
