"""Topics of documents that come in batches: stochastic steps, and where they begin."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from mixfold.contracts import Block, Executor, Source
from mixfold.engine.checkpoints import Checkpoint, Progressed
from mixfold.engine.executors.threads import ThreadExecutor
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.memoised import BatchSource
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.progress import Progress
from mixfold.engine.random import RowKeys, seed_from
from mixfold.engine.sources import open_source
from mixfold.engine.state import Climb
from mixfold.models.topics.lda import LDAModel, topic_term
from mixfold.models.topics.records import TopicSums
from mixfold.models.topics.starts import WordSums, count_words
from mixfold.models.topics.streams import (
    SHUFFLED,
    SparseBlocks,
    TopicStream,
    held,
    joined,
    parts,
    per_document,
    shuffled,
    stream_of,
)

# steps of LDA on the documents that a stream begins with, and when some more have come
FIRST_STEPS, MORE_STEPS = 20, 2
# documents that a stream is begun with, and for each topic
LEAST_START, START_OF_TOPIC = 2000, 200
# how many times more of them there are when the start is made anew, or all are learned again
GROWTH, SOME_GROWTH = 1.5, 1.1


class StreamedTopics:
    """``learning_method='online'`` and ``partial_fit`` of LatentDirichletAllocation."""

    _params: Any
    _early: Block | None
    _schedule: TopicStream

    def _enough(self) -> int:
        """Documents that a start needs: topics of fewer fit their words too closely."""
        return max(LEAST_START, START_OF_TOPIC * self.n_components)  # type: ignore[attr-defined]

    # ------------------------------------------------ batches as they come

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more documents, by steps of stochastic variational inference.

        The first documents (2000, or 200 for each topic if that is more) are held, and learned as
        one corpus: topics that begin with few documents fit them too closely for ever. Later ones
        are seen and forgotten. What is held is not saved to a file. After ``fit`` the stream goes
        on from there.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.

        Returns
        -------
        self
        """
        self._check_parameters()  # type: ignore[attr-defined]
        fresh = not hasattr(self, "_params")
        source = self._open(X, reset=fresh, weight=sample_weight)  # type: ignore[attr-defined]
        if fresh:
            self._early, self._due, self._next = None, 1, 1
            self._stream = (seed_from(self.random_state), 0)  # type: ignore[attr-defined]
        for block in held(source, int(self.batch_size)):  # type: ignore[attr-defined]
            self._take(source, block, fresh)
            fresh = False
        return self

    def _take(self, source: Source, block: Block, fresh: bool) -> None:
        if fresh or getattr(self, "_early", None) is not None:
            self._early = block if fresh else joined([self._early, block])  # type: ignore[list-item]
            if self._early.n_rows >= min(self._next, self._enough()):
                self._begin(source)
                return
        stats = self._batch_step(source, block)
        if stats.documents > 0:
            self._publish_batch(None, stats)  # type: ignore[attr-defined]
            self._publish_params()  # type: ignore[attr-defined]

    def _begin(self, source: Source) -> None:
        """Learn the documents that are held: from a new start, if they have become many more."""
        early: Any = self._early
        rows = early.n_rows
        known = open_source(early.X, weight=early.weight)
        executor = ThreadExecutor(self.n_jobs)  # type: ignore[attr-defined]
        words = executor.map_reduce(count_words, known)
        self._check_words(words)  # type: ignore[attr-defined]
        if rows >= min(self._due, self._enough()):
            result = self._first_fit(known, executor, words, self._stream[0])
            self._due = int(GROWTH * rows)
        else:
            plan = Plan(tol=0.0, max_iter=MORE_STEPS, n_candidates=1, seed=self._stream[0])
            result = fit(self._lda(self._params), known, executor, plan)  # type: ignore[attr-defined]
        self.n_documents_, self.n_tokens_ = words.documents, float(words.words.sum())
        schedule = self._schedule_of(result, known, executor)
        self._keep(result, source, self._stream[0], quiet=True)  # type: ignore[attr-defined]
        self._schedule = schedule
        self._next = int(SOME_GROWTH * rows)
        self._early = None if rows >= self._enough() else early

    def _first_fit(self, source: Source, executor: Executor, words: WordSums, seed: int) -> Fit:
        rng = np.random.default_rng(seed % 2**63)
        model = self._started(source, executor, words, rng)  # type: ignore[attr-defined]
        plan = Plan(tol=0.0, max_iter=FIRST_STEPS, n_candidates=1, seed=seed,
                    time_budget=self.time_budget)  # type: ignore[attr-defined] # fmt: skip
        return fit(model, source, executor, plan)

    def _schedule_of(self, result: Fit, source: Source, executor: Executor) -> TopicStream:
        """The statistics that stochastic steps go on from."""
        model = self._lda(result.params)  # type: ignore[attr-defined]
        task = partial(model.expect, model.prepare(result.params), rng=RowKeys(0, 0))
        stats = executor.map_reduce(task, source)
        steps = stats.documents / self.batch_size  # type: ignore[attr-defined]
        return TopicStream(per_document(stats), stats.documents, steps)

    def _batch_step(self, source: Source, block: Block) -> TopicSums:
        """A stochastic step, of a stream whose length may be unknown."""
        if not hasattr(self, "_schedule"):  # after fit
            self._schedule = stream_of(
                self._params,
                self.n_documents_,
                self.n_tokens_,
                float(self.batch_size),  # type: ignore[attr-defined]
            )
        stream = self._schedule
        executor = ThreadExecutor(self.n_jobs)  # type: ignore[attr-defined]
        batch = BatchSource(source, parts(block))
        total = self.total_samples  # type: ignore[attr-defined]
        stats, self._schedule, self._params = self._step(
            batch, executor, stream, self._params, None if total is None else float(total)
        )
        self.n_documents_ += stats.documents
        self.n_tokens_ += stats.tokens
        self.n_iter_ = int(self._schedule.steps)
        return stats

    def _step(
        self, batch: Any, executor: Executor, stream: TopicStream, params: Any,
        total: float | None,
    ) -> tuple[TopicSums, TopicStream, Any]:  # fmt: skip
        """``total`` None: the documents seen so far are all there are."""
        model: LDAModel = self._lda(params).of_batches()  # type: ignore[attr-defined]
        task = partial(model.expect, model.prepare(params), rng=RowKeys(0, 0))
        stats = executor.map_reduce(task, batch)
        if stats.documents == 0:
            return stats, stream, params
        size, decay, offset = self.batch_size, self.learning_decay, self.learning_offset  # type: ignore[attr-defined]
        rate = stream.rate(stats, size, decay, offset)
        stream = stream.blend(stats, rate, size)
        whole = stream.stats.scale(stream.documents if total is None else total)
        return stats, stream, model.stochastic(params, whole, stats, rate)

    # ------------------------------------------------ passes over a corpus

    def _fit_online(self, source: Source, executor: Executor, words: WordSums, seed: int) -> Fit:
        """Stochastic steps over all documents, several times, from a start by a sample."""
        budget = self.time_budget  # type: ignore[attr-defined]
        deadline = time.monotonic() + (float("inf") if budget is None else budget)
        saved: Checkpoint | None = self._checkpoint()  # type: ignore[attr-defined]
        rows: Any = source if hasattr(source, "partitions") else SparseBlocks(source)
        pilot = draw_pilot(rows, executor, SHUFFLED, seed)
        before = saved.read() if saved else None
        if saved:
            saved.check(before, pilot)
        if before is not None and before.climb is not None:
            state = replace(before.climb, reason="")
        else:
            state = self._online_start(pilot.block, seed)
        with Progress(int(self.verbose), self.verbose_interval) as progress:  # type: ignore[attr-defined]
            while not state.reason:
                state = self._online_pass(source, state, words, seed, deadline)
                progress.report(0, state)
                if saved:
                    saved.offer(Progressed(seed, 0, state, None))
        if saved:
            _leave(saved, Progressed(seed, 0, state, state))
        return _as_fit(state, pilot)

    def _online_start(self, sample: Block, seed: int) -> Climb:
        few = ThreadExecutor(self.n_jobs)  # type: ignore[attr-defined]
        known = open_source(sample.X, weight=sample.weight)
        words = few.map_reduce(count_words, known)
        if words.documents == 0:
            raise ValueError("X has too few documents with a word for learning_method='online'")
        result = self._first_fit(known, few, words, seed)
        return Climb(result.params, memo=self._schedule_of(result, known, few))

    def _online_pass(
        self, source: Source, state: Climb, words: WordSums, seed: int, deadline: float
    ) -> Climb:
        if self.max_iter == 0:  # type: ignore[attr-defined]
            return replace(
                state, best=state.params, reason="max_iter", trace=(-np.inf,), weight=1.0
            )
        few = ThreadExecutor(self.n_jobs)  # type: ignore[attr-defined]
        rng = np.random.default_rng([seed % 2**63, state.n_passes])
        params, stream, bound, tokens, late = state.params, state.memo, 0.0, 0.0, False
        for batch in shuffled(source, int(self.batch_size), rng):  # type: ignore[attr-defined]
            rows = BatchSource(source, batch)
            stats, stream, params = self._step(rows, few, stream, params, words.documents)
            bound, tokens = bound + stats.bound, tokens + stats.tokens
            late = time.monotonic() >= deadline
            if late:
                break
        value = bound / max(tokens, 1e-300) + topic_term(params) / float(words.words.sum())
        trace = (*state.trace, value)
        done = state.n_passes + 1
        state = replace(state, params=params, best=params, memo=stream, weight=1.0, trace=trace,
                        n_iter=done, n_passes=done)  # fmt: skip
        return replace(state, reason="time_budget" if late else self._ended(state))

    def _ended(self, state: Climb) -> str:
        gain = state.trace[-1] - state.trace[-2] if len(state.trace) > 1 else np.inf
        if gain < self.tol:  # type: ignore[attr-defined]
            return "converged"
        return "max_iter" if state.n_passes >= self.max_iter else ""  # type: ignore[attr-defined]


def _leave(saved: Checkpoint, progressed: Progressed) -> None:
    """The file stays where the fit was ended from outside."""
    if progressed.best is not None and progressed.best.reason == "time_budget":
        saved.write(progressed)
    saved.finish(progressed)


def _as_fit(state: Climb, pilot: Any) -> Fit:
    trace = np.asarray([state.trace[0], *state.trace])  # one value for each pass, and a start
    return Fit(
        state.params, float(trace[-1]), state.weight, 0.0, trace, state.n_iter, state.n_passes,
        state.reason, 0.0, state.events, pilot, state,
    )  # fmt: skip
