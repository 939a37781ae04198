"""Latent Dirichlet allocation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from mixfold.contracts import Array, Block, Executor, Source
from mixfold.engine.checkpoints import Checkpoint, Progressed
from mixfold.engine.executors.threads import ThreadExecutor
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.memoised import BatchSource
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.progress import Progress
from mixfold.engine.random import RowKeys, seed_from
from mixfold.engine.sources import open_source
from mixfold.engine.state import Climb
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.fitting import checkpoint_of
from mixfold.estimators.topics.topic_model import (
    START_STEPS,
    TOPIC_RULES,
    Corpus,
    TopicEstimator,
    check_draws,
    check_words,
    first_priors,
    start_by_plsi,
)
from mixfold.math.topic_sweeps import word_major
from mixfold.models.topics.lda import LDAModel, TopicReading, infer, outside, topic_term
from mixfold.models.topics.memory import Memory
from mixfold.models.topics.records import TopicParams, TopicSums, counts_of
from mixfold.models.topics.starts import count_words, dirichlet_topics
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

# sweeps of a document that is asked about
SWEEPS = 200
# steps of LDA on the documents that a stream begins with, and when some more have come
FIRST_STEPS, MORE_STEPS = 20, 2
# documents that a stream is begun with, and for each topic
LEAST_START, START_OF_TOPIC = 2000, 200
# how many times more of them there are when the start is made anew, or all are learned again
GROWTH, SOME_GROWTH = 1.5, 1.1


class LatentDirichletAllocation(TopicEstimator):
    """Topics of words; each document has shares of them.

        theta_n ~ Dirichlet(doc_topic_prior),  topic_k ~ Dirichlet(topic_word_prior)
        each token of document n:  z ~ theta_n,  word ~ topic_z

    Variational Bayes, from a start by pLSI, with both priors learned: the prior of the shares one
    number for each topic, that of words one for all. Steps of the fit never lower the bound while
    documents are kept in memory between them.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    doc_topic_prior : 'learn' or float, default='learn'
        Concentration of the shares; a number is kept, the same for all topics. Where documents do
        not differ the best one is infinite: its sum is held at ten times the tokens of a document
        (or ten times the topics), with a warning.
    topic_word_prior : 'learn' or float, default='learn'
        Concentration of the words of a topic.
    learning_method : {'batch', 'online'}, default='batch'
        'online' takes a step after each ``batch_size`` documents (stochastic), from a start by a
        sample: for corpora of which a pass is long. Documents are visited in random order, as far
        as 16384 of them are held at a time.
    init : {'plsi', 'random'}, default='plsi'
        Where the topics begin.
    batch_size : int, default=512
        Documents of a step of 'online'.
    learning_decay : float, default=0.7
        Step t of 'online' and of ``partial_fit`` weighs (learning_offset + t)^-learning_decay.
    learning_offset : float, default=10.0
        The larger, the less the first steps weigh.
    total_samples : float, default=None
        Documents of the whole stream, for ``partial_fit``; None counts those seen so far.
    tol : float, default=1e-3
        The fit ends when the gain of all steps to come is projected to be less, in nats per token:
        0.001 is a tenth of a percent of the perplexity. 'online' ends when a pass gains less.
    max_iter : int, default=1000
        Passes over the documents; corpora need some tens, documents without structure hundreds.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    verbose : int, default=0
        1 reports progress, 2 every iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the documents are visited.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned.
    checkpoint : path, default=None
        File in which the fit is kept and from which it goes on if interrupted.

    Attributes
    ----------
    topics_ : ndarray of shape (n_components, n_features)
        Probabilities of the words.
    components_ : ndarray of shape (n_components, n_features)
        Parameters of the Dirichlet posterior of the topics, as in scikit-learn.
    doc_topic_prior_ : ndarray of shape (n_components,)
    topic_word_prior_ : float
    n_documents_, n_tokens_ : float
        Of the fit, by weight; documents without a word do not count.
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`GaussianMixture`; the bound is per token. 'online' counts passes.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Blei, Ng, Jordan. Latent Dirichlet allocation. JMLR 3, 2003.
    .. [2] Hoffman, Blei, Wang, Paisley. Stochastic variational inference. JMLR 14, 2013.
    .. [3] Minka. Estimating a Dirichlet distribution. 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import LatentDirichletAllocation
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.poisson([3, 3, 3, 0, 0, 0], (50, 6)),
    ...                rng.poisson([0, 0, 0, 3, 3, 3], (50, 6))])
    >>> model = LatentDirichletAllocation(2, random_state=0).fit(X)
    >>> sorted(sorted(int(j) for j in topic) for topic in model.top_words(3))
    [[0, 1, 2], [3, 4, 5]]
    >>> model.transform(X).shape, bool(model.perplexity(X) < 4)
    ((100, 2), True)
    """

    _constraints: ClassVar[rule.Constraints] = {
        **TOPIC_RULES,
        "n_components": (rule.integer(1),),
        "doc_topic_prior": (rule.one_of(["learn"]), rule.number(0, open_end=True)),
        "topic_word_prior": (rule.one_of(["learn"]), rule.number(0, open_end=True)),
        "learning_method": (rule.one_of(["batch", "online"]),),
        "init": (rule.one_of(["plsi", "random"]),),
        "batch_size": (rule.integer(1),),
        "learning_decay": (rule.number(0.5, open_end=True),),
        "learning_offset": (rule.number(0),),
        "total_samples": (rule.nothing(), rule.number(0, open_end=True)),
    }
    _params: TopicParams
    _early: Block | None  # documents that a stream holds until they are enough for a start
    _schedule: TopicStream

    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: Any = "learn",
        topic_word_prior: Any = "learn",
        learning_method: str = "batch",
        init: str = "plsi",
        batch_size: int = 512,
        learning_decay: float = 0.7,
        learning_offset: float = 10.0,
        total_samples: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: int = 0,
        verbose_interval: int = 10,
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.learning_method = learning_method
        self.init = init
        self.batch_size = batch_size
        self.learning_decay = learning_decay
        self.learning_offset = learning_offset
        self.total_samples = total_samples
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget
        self.checkpoint = checkpoint

    # ------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the topics of documents.

        Parameters
        ----------
        X : sparse matrix, array-like, table, path or Dask collection
            Counts of words (columns) in documents (rows): numbers from 0 on, not necessarily whole.
            Documents without a word are left out of the fit.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the document, weight 0 leaving it out.

        Returns
        -------
        self
        """
        self._check_parameters()
        source = self._open(X, reset=True, weight=sample_weight)
        began = time.monotonic()
        corpus = self._survey(source)
        if self.learning_method == "online":
            result = self._fit_online(corpus)
        else:
            result = self._run(self._start_model(corpus), corpus, began)
        self._publish(result, corpus)
        return self

    def _start_model(self, corpus: Corpus) -> LDAModel:
        """The model that the engine fits, from topics by pLSI or by chance."""
        rng, K = np.random.default_rng(corpus.seed % 2**63), self.n_components
        steps = START_STEPS if self.init == "plsi" else 0
        topics = start_by_plsi(corpus, K, rng, self.time_budget, steps)
        prior, b = first_priors(K, self.doc_topic_prior, self.topic_word_prior)
        return self._make_model(dirichlet_topics(topics, corpus.n_tokens, prior, b))

    def _make_model(self, first: TopicParams) -> LDAModel:
        return LDAModel(
            first,
            learn_prior=isinstance(self.doc_topic_prior, str),
            learn_smoothing=isinstance(self.topic_word_prior, str),
            memory=Memory(),
        )

    def _publish_params(self) -> None:
        topics = self._params.topics
        self.topics_ = np.asarray(topics / topics.sum(axis=1, keepdims=True))
        self.components_ = topics
        self.doc_topic_prior_ = self._params.prior
        self.topic_word_prior_ = self._params.smoothing

    # ------------------------------------------------ learning_method='online'

    def _fit_online(self, corpus: Corpus) -> Fit:
        """Stochastic steps over all documents, several times, from a start by a sample."""
        source, seed, budget = corpus.source, corpus.seed, self.time_budget
        deadline = time.monotonic() + (float("inf") if budget is None else budget)
        checkpoint = checkpoint_of(self)
        rows: Any = source if hasattr(source, "partitions") else SparseBlocks(source)
        pilot = draw_pilot(rows, corpus.executor, SHUFFLED, seed)
        before = None
        if checkpoint is not None:
            before = checkpoint.read()
            checkpoint.check(before, pilot)
        if before is not None and before.climb is not None:
            state = replace(before.climb, reason="")
        else:
            state = self._start_online(pilot.block, seed)
        with Progress(int(self.verbose), self.verbose_interval) as progress:
            while not state.reason:
                state = self._pass_online(corpus, state, deadline)
                progress.report(0, state)
                if checkpoint is not None:
                    checkpoint.offer(Progressed(seed, 0, state, None))
        if checkpoint is not None:
            _finish_checkpoint(checkpoint, Progressed(seed, 0, state, state))
        return _make_fit(state, pilot)

    def _start_online(self, sample: Block, seed: int) -> Climb:
        """Topics of a sample, and the statistics that stochastic steps go on from."""
        threads = ThreadExecutor(self.n_jobs)
        known = open_source(sample.X, weight=sample.weight)
        words = threads.map_reduce(count_words, known)
        if words.documents == 0:
            raise ValueError("X has too few documents with a word for learning_method='online'")
        some = Corpus(known, threads, words, seed)
        result = self._learn_first(some)
        return Climb(result.params, memo=self._make_schedule(result, some))

    def _pass_online(self, corpus: Corpus, state: Climb, deadline: float) -> Climb:
        """A stochastic step for each batch of all documents, in random order."""
        if self.max_iter == 0:
            return replace(
                state, best=state.params, reason="max_iter", trace=(-np.inf,), weight=1.0
            )
        threads, words = ThreadExecutor(self.n_jobs), corpus.words
        rng = np.random.default_rng([corpus.seed % 2**63, state.n_passes])
        params, stream, bound, tokens, late = state.params, state.memo, 0.0, 0.0, False
        for batch in shuffled(corpus.source, int(self.batch_size), rng):
            rows = BatchSource(corpus.source, batch)
            stats, stream, params = self._step(rows, threads, stream, params, words.documents)
            bound, tokens = bound + stats.bound, tokens + stats.tokens
            late = time.monotonic() >= deadline
            if late:
                break
        value = bound / max(tokens, 1e-300) + topic_term(params) / corpus.n_tokens
        trace = (*state.trace, value)
        done = state.n_passes + 1
        state = replace(state, params=params, best=params, memo=stream, weight=1.0, trace=trace,
                        n_iter=done, n_passes=done)  # fmt: skip
        return replace(state, reason="time_budget" if late else self._why_ended(state))

    def _why_ended(self, state: Climb) -> str:
        gain = state.trace[-1] - state.trace[-2] if len(state.trace) > 1 else np.inf
        if gain < self.tol:
            return "converged"
        return "max_iter" if state.n_passes >= self.max_iter else ""

    # ------------------------------------------------ a stream

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
        self._check_parameters()
        fresh = not hasattr(self, "_params")
        source = self._open(X, reset=fresh, weight=sample_weight)
        if fresh:
            self._early, self._due, self._next = None, 1, 1
            self._stream = (seed_from(self.random_state), 0)
        for block in held(source, int(self.batch_size)):
            self._learn_block(source, block, fresh)
            fresh = False
        return self

    def _learn_block(self, source: Source, block: Block, fresh: bool) -> None:
        """Hold the documents while they are few, and learn all that are held; else a step."""
        early = getattr(self, "_early", None)
        if fresh or early is not None:
            self._early = joined([early, block]) if early is not None else block
            if self._early.n_rows >= min(self._next, self._enough()):
                self._learn_held(source, self._early)
                return
        self._learn_batch(source, block)

    def _enough(self) -> int:
        """Documents that a start needs: topics of fewer fit their words too closely."""
        return max(LEAST_START, START_OF_TOPIC * self.n_components)

    def _learn_held(self, source: Source, early: Block) -> None:
        """Learn the documents that are held: from a new start, if they have become many more."""
        rows, seed = early.n_rows, self._stream[0]
        threads, known = ThreadExecutor(self.n_jobs), open_source(early.X, weight=early.weight)
        words = threads.map_reduce(count_words, known)
        check_words(words, self.n_components)
        corpus = Corpus(known, threads, words, seed)
        if rows >= min(self._due, self._enough()):
            result = self._learn_first(corpus)
            self._due = int(GROWTH * rows)
        else:
            plan = Plan(tol=0.0, max_iter=MORE_STEPS, n_candidates=1, seed=seed)
            result = fit(self._make_model(self._params), known, threads, plan)
        schedule = self._make_schedule(result, corpus)
        self._publish(result, replace(corpus, source=source), quiet=True)
        self._schedule = schedule
        self._next = int(SOME_GROWTH * rows)
        self._early = None if rows >= self._enough() else early

    def _learn_batch(self, source: Source, block: Block) -> None:
        """A stochastic step, of a stream whose length may be unknown."""
        if not hasattr(self, "_schedule"):  # after fit
            self._schedule = stream_of(
                self._params, self.n_documents_, self.n_tokens_, float(self.batch_size)
            )
        batch = BatchSource(source, parts(block))
        total = None if self.total_samples is None else float(self.total_samples)
        stats, self._schedule, self._params = self._step(
            batch, ThreadExecutor(self.n_jobs), self._schedule, self._params, total
        )
        self.n_documents_ += stats.documents
        self.n_tokens_ += stats.tokens
        self.n_iter_ = int(self._schedule.steps)
        if stats.documents > 0:
            self.lower_bound_ = stats.bound / max(stats.tokens, 1e-300)
            self._publish_params()

    # ------------------------------------------------ what 'online' and a stream share

    def _learn_first(self, corpus: Corpus) -> Fit:
        """The few steps on documents in memory that stochastic steps begin with."""
        plan = Plan(tol=0.0, max_iter=FIRST_STEPS, n_candidates=1, seed=corpus.seed,
                    time_budget=self.time_budget)  # fmt: skip
        return fit(self._start_model(corpus), corpus.source, corpus.executor, plan)

    def _make_schedule(self, result: Fit, corpus: Corpus) -> TopicStream:
        """The statistics that stochastic steps go on from."""
        model = self._make_model(result.params)
        task = partial(model.expect, model.prepare(result.params), rng=RowKeys(0, 0))
        stats = corpus.executor.map_reduce(task, corpus.source)
        return TopicStream(per_document(stats), stats.documents, stats.documents / self.batch_size)

    def _step(
        self, batch: Any, executor: Executor, stream: TopicStream, params: Any,
        total: float | None,
    ) -> tuple[TopicSums, TopicStream, Any]:  # fmt: skip
        """One stochastic step; ``total`` None: the documents seen so far are all there are."""
        model = self._make_model(params).of_batches()
        task = partial(model.expect, model.prepare(params), rng=RowKeys(0, 0))
        stats = executor.map_reduce(task, batch)
        if stats.documents == 0:
            return stats, stream, params
        size, decay, offset = self.batch_size, self.learning_decay, self.learning_offset
        rate = stream.rate(stats, size, decay, offset)
        stream = stream.blend(stats, rate, size)
        whole = stream.stats.scale(stream.documents if total is None else total)
        return stats, stream, model.stochastic(params, whole, stats, rate)

    # ------------------------------------------------ asking

    def _make_reading(self) -> TopicReading:
        return TopicReading(word_major(self.topics_), self._params.prior)

    def _make_shares_task(self, tol: float) -> Callable[[Block], Array]:
        return partial(_infer_shares, self._make_reading(), tol)

    def _make_bounds_task(self) -> Callable[[Block], Array]:
        return partial(_infer_bounds, self._make_reading())

    def sample(
        self, n_samples: int = 1, length: float = 100, random_state: Any = None
    ) -> tuple[Array, Array]:
        """Draw documents with a Poisson number of tokens.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Counts.
        shares : ndarray of shape (n_samples, n_components)
            Of the topics.
        """
        check_draws(self, n_samples, length)
        rng = np.random.default_rng(seed_from(random_state) % 2**63)
        shares = rng.dirichlet(self._params.prior, n_samples)
        lengths = rng.poisson(length, n_samples)
        words = [rng.multinomial(n, p) for n, p in zip(lengths, shares @ self.topics_, strict=True)]
        return np.array(words), shares


def _infer_posteriors(reading: TopicReading, block: Block, tol: float) -> tuple[Array, Array]:
    """Dirichlets of the documents, and the part of the bound that is of their tokens."""
    counts = counts_of(replace(block, weight=None))
    gamma = np.ones((block.n_rows, len(reading.prior)))
    inside, _ = infer(reading, counts, gamma, np.zeros(reading.words.shape), SWEEPS, tol)
    return gamma, inside


def _infer_shares(reading: TopicReading, tol: float, block: Block) -> Array:
    gamma, _ = _infer_posteriors(reading, block, tol)
    return np.asarray(gamma / gamma.sum(axis=1, keepdims=True))


def _infer_bounds(reading: TopicReading, block: Block) -> Array:
    gamma, inside = _infer_posteriors(reading, block, 1e-5)
    return np.asarray(inside + outside(gamma, reading.prior))


def _finish_checkpoint(checkpoint: Checkpoint, progressed: Progressed) -> None:
    """The file stays where the fit was ended from outside."""
    if progressed.best is not None and progressed.best.reason == "time_budget":
        checkpoint.write(progressed)
    checkpoint.finish(progressed)


def _make_fit(state: Climb, pilot: Any) -> Fit:
    trace = np.asarray([state.trace[0], *state.trace])  # one value for each pass, and a start
    return Fit(
        state.params, float(trace[-1]), state.weight, 0.0, trace, state.n_iter, state.n_passes,
        state.reason, 0.0, state.events, pilot, state,
    )  # fmt: skip
