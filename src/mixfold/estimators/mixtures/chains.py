"""Fitting by sampling: chains, their diagnostics, and the partition they agree on."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, Context, Executor, Source
from mixfold.engine.chain import Chain, Sweeps, sample_chain
from mixfold.engine.loop import Fit
from mixfold.engine.progress import Progress
from mixfold.engine.random import RowKeys
from mixfold.engine.state import Task
from mixfold.estimators.mixtures.bayes import BayesEstimator, prepare_point
from mixfold.estimators.mixtures.collapsed_runs import collapsed_chain
from mixfold.estimators.shell.base import warn
from mixfold.math.chains import summary
from mixfold.math.partitions import canonical, point_partition, similarity
from mixfold.models.mixtures.bayes_mixture import TRACES, BayesMixture, BayesParams
from mixfold.models.mixtures.inference import INFERENCES

# labels of draws may take this much, posteriors that densities are averaged over are this many
LABEL_BYTES, AVERAGED = 2**28, 50
_POINT = INFERENCES["em"]


# what only chains leave, and what they do not
_OF_CHAINS = ("labels_", "n_clusters_", "traces_", "diagnostics_", "_draws", "_label_draws")
_OF_CLIMBS = ("evidence_bound_", "n_passes_", "_schedule", "_climb")


class SamplingEstimator(BayesEstimator):
    """Base of estimators that can be fitted by Gibbs sampling."""

    def _samples(self) -> bool:
        return self.inference in ("gibbs", "collapsed")

    def _fit(self, source: Source, max_iter: int | None = None) -> Any:
        if not self._samples():
            return super()._fit(source, max_iter)
        if max_iter is not None:
            raise ValueError(
                f"inference={self.inference!r} visits all rows again and again and cannot learn "
                "from a stream; use inference='vb' for partial_fit"
            )
        return self._fit_chains(source)

    def _fit_chains(self, source: Source) -> None:
        executor, seed, pilot = self._survey(source)
        self._check_unit_weights(executor, source)
        model = self._model(source.n_features)
        assert isinstance(model, BayesMixture)
        model = self._informed(model, source, executor, pilot, seed)
        task = Task(model, source, executor, pilot, seed)
        chains = self._run(task, pilot.total_rows)
        labels = np.concatenate([chain.labels for chain in chains])
        rng = np.random.default_rng([seed % 2**63, 9])
        # a draw itself: single-row moves would make clusters of undecided rows
        partition = point_partition(labels, refine=False, rng=rng)
        self.labels_ = _by_size(partition)
        if self._labelled:
            known = np.concatenate(list(executor.map_rows(_known, source)))
            self.labels_ = _with_known(self.labels_, known)
        for name in _OF_CLIMBS:
            self.__dict__.pop(name, None)
        self._kept_kind = self._kind()
        self._label_draws = labels
        self._draws = _thinned([p for chain in chains for p in chain.params], AVERAGED)
        self._params = self._of_partition(task, self.labels_)
        self._dtype, self._stream = source.dtype.name, (seed, 0)
        self._publish_chains(chains)
        self._publish_params()

    def _keep(self, result: Fit, source: Source, seed: int, quiet: bool) -> None:
        for name in _OF_CHAINS:
            self.__dict__.pop(name, None)
        super()._keep(result, source, seed, quiet)

    def _run(self, task: Task, n_rows: int) -> list[Chain]:
        budget = float("inf") if self.time_budget is None else self.time_budget
        sweeps = Sweeps(self.n_draws, self.burn_in, self.thin)
        bytes_ = 2 * n_rows * self.n_draws * self.n_chains
        stride = max(1, -(-bytes_ // LABEL_BYTES))
        chains: list[Chain] = []
        with Progress(int(self.verbose), self.verbose_interval) as progress:
            for number in range(self.n_chains):
                deadline = time.monotonic() + budget / self.n_chains
                watch = partial(_told, progress, sweeps.n_sweeps, 100 * self.verbose_interval)
                plan = replace(sweeps, label_stride=stride, deadline=deadline)
                try:
                    chains.append(self._chain(task, plan, number, watch))
                except KeyboardInterrupt:
                    if not chains:  # nothing was drawn yet
                        raise
                    chains[-1] = replace(chains[-1], reason="interrupted")
                if chains[-1].reason == "interrupted":
                    break
        return chains

    def _chain(self, task: Task, sweeps: Sweeps, number: int, watch: Any) -> Chain:
        if self.inference == "collapsed":
            return collapsed_chain(task, sweeps, number, watch, process=self._is_process())
        rng = np.random.default_rng([task.seed % 2**63, number, 4])
        assert task.pilot is not None
        start = task.model.initialise(task.pilot, rng, number)
        return sample_chain(task, start, sweeps, number, watch)

    def _is_process(self) -> bool:
        """Whether the number of components is not bounded."""
        return self.weights == "stick-breaking"

    def _check_unit_weights(self, executor: Executor, source: Source) -> None:
        for row in executor.map_rows(_weighed_row, source):
            if row is not None:
                raise ValueError(
                    f"inference={self.inference!r} draws one component for each row: sample_weight "
                    f"must be 0 or 1, row {row[0]} has {row[1]:g}. Repeat the row, or use "
                    "inference='vb'"
                )

    def _of_partition(self, task: Task, labels: Array) -> BayesParams:
        """The posterior when the rows are known to be divided like this."""
        n_clusters = int(labels.max()) + 1
        assert isinstance(task.model, BayesMixture) and task.pilot is not None
        model = replace(task.model, n_components=n_clusters, learn_prior=False)
        start = model.initialise(task.pilot, np.random.default_rng(0))
        reading = replace(model, inference=_POINT).prepare(start)
        given = partial(_expect_given, model, reading, labels)
        stats = task.executor.map_reduce(given, task.source)
        context = Context(task.pilot, np.random.default_rng(0))
        fixed: BayesParams = model.update(start, stats, context).params
        return fixed

    # ------------------------------------------------ results

    def _publish_chains(self, chains: list[Chain]) -> None:
        shortest = min(len(chain.traces) for chain in chains)
        traces = np.stack([chain.traces[:shortest] for chain in chains])
        known = [i for i in range(len(TRACES)) if not np.isnan(traces[..., i]).any()]
        self.traces_ = {TRACES[i]: traces[..., i] for i in known}
        self.diagnostics_ = {name: summary(draws) for name, draws in self.traces_.items()}
        self.n_clusters_ = len(np.unique(self.labels_))
        self.n_iter_ = min(chain.n_sweeps for chain in chains)
        reasons = {chain.reason for chain in chains} - {"done"}
        self.stop_reason_ = reasons.pop() if reasons else "done"
        self.events_, self.lower_bounds_, self._total = [], [], None
        # rows without weight or entries are in no component
        self.lower_bound_ = float(traces[..., 0].mean()) / float(self._params.counts.sum())
        self._tell_chains()

    def _tell_chains(self) -> None:
        """Warn of chains that were cut or have not mixed."""
        if self.stop_reason_ != "done":
            budget = self.stop_reason_ == "time_budget"
            what = "time_budget was used up" if budget else "the fit was interrupted"
            wanted = Sweeps(self.n_draws, self.burn_in, self.thin).n_sweeps
            warn(
                f"{what} after {self.n_iter_} of {wanted} sweeps of a chain; the draws so far are "
                "kept",
                ConvergenceWarning,
            )
        poor = [
            f"{name} (R-hat {d.r_hat:.2f}, effective draws {d.ess:.0f})"
            for name, d in self.diagnostics_.items()
            if not d.reliable
        ]
        self.converged_ = not poor
        if poor:
            warn(
                f"the chains have not mixed: {', '.join(poor)}. Raise burn_in and n_draws; "
                "diagnostics_ and traces_ tell more",
                ConvergenceWarning,
            )

    def _declared_shape(self) -> tuple[int, int]:
        if not self._samples():
            return super()._declared_shape()
        return int(self.labels_.max()) + 1, self.n_features_in_

    def _check_state(self) -> None:
        super()._check_state()
        if self._samples():  # not stored: they follow from the traces
            self.diagnostics_ = {name: summary(draws) for name, draws in self.traces_.items()}

    def _averaged(self) -> tuple[BayesParams, ...]:
        return self._draws if self._samples() else super()._averaged()

    def posterior_similarity(self) -> Array:
        """How often two training rows were in the same component, over the draws: (n, n)."""
        check_is_fitted(self)
        if not self._samples():
            raise ValueError(
                f"inference={self.inference!r} draws no partitions; use 'gibbs' or 'collapsed'"
            )
        return similarity(self._label_draws)

    def _reading(self) -> Any:
        check_is_fitted(self)
        if not self._samples():
            return super()._reading()
        model = self._model(self.n_features_in_)
        assert isinstance(model, BayesMixture)
        return prepare_point(model, self._params)


def _by_size(labels: Array) -> Array:
    """Labels from 0 in order of decreasing size."""
    labels = canonical(labels)
    counts = np.bincount(labels)
    rank = np.empty(len(counts), np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return rank[labels]


def _known(block: Block) -> Array:
    """The known components of the rows, -1 where they are not known."""
    return np.full(block.n_rows, -1) if block.y is None else np.asarray(block.y, np.int64)


def _with_known(labels: Array, known: Array) -> Array:
    """Clusters of rows of known components have their numbers, the others what is left."""
    names = np.full(labels.max() + 1, -1)
    names[labels[known >= 0]] = known[known >= 0]
    left = np.setdiff1d(np.arange(names.size + known.max() + 1), names)
    names[names < 0] = left[: np.count_nonzero(names < 0)]
    return names[labels]


def _thinned(draws: list[BayesParams], most: int) -> tuple[BayesParams, ...]:
    chosen = np.unique(np.linspace(0, len(draws) - 1, min(most, len(draws))).astype(int))
    return tuple(draws[i] for i in chosen)


def _told(
    progress: Progress, total: int, interval: int, number: int, sweep: int, trace: Array
) -> None:
    line = f"chain {number + 1}  sweep {sweep + 1} of {total}  components {trace[1]:.0f}"
    progress.say(f"{line}  log joint {trace[0]:.2f}", (sweep + 1) % interval == 0)


def _weighed_row(block: Block) -> tuple[int, float] | None:
    """The first row whose weight is neither 0 nor 1."""
    if block.weight is None:
        return None
    odd = np.flatnonzero((block.weight != 0) & (block.weight != 1))
    return (block.start + int(odd[0]), float(block.weight[odd[0]])) if odd.size else None


def _expect_given(model: BayesMixture, reading: Any, labels: Array, block: Block) -> Any:
    """Statistics of rows with known components."""
    known = replace(block, y=labels[block.rows])
    return replace(model, inference=_POINT).expect(reading, known, RowKeys(0))
