"""Latent Dirichlet allocation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from mixfold.contracts import Array, Block, Source
from mixfold.engine import loop
from mixfold.engine.batches import BatchSource, hold_rows, join_blocks, split_block
from mixfold.engine.budget import Deadline
from mixfold.engine.executors.threads import ThreadExecutor
from mixfold.engine.loop import Fit, Plan
from mixfold.engine.online import HELD, Online
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.random import RowKeys, seed_from
from mixfold.engine.schedules import Stepwise, learn_batch
from mixfold.engine.sources import open_source
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.fitting import note_order, order_of
from mixfold.estimators.topics.topic_model import (
    START_STEPS,
    Corpus,
    TopicEstimator,
    check_draws,
    check_words,
    first_priors,
    fit_documents,
    look_at_documents,
    start_by_plsi,
    stored_params,
)
from mixfold.math.topic_sweeps import word_major
from mixfold.models.topics.lda import LDAModel, TopicReading, infer, outside
from mixfold.models.topics.records import TopicParams, counts_of
from mixfold.models.topics.starts import count_words, dirichlet_topics
from mixfold.models.topics.streams import SparseBlocks, TopicStream, mean_document

# sweeps of a document that is asked about
SWEEPS = 200
# steps of LDA on the documents that a stream begins with, and when some more have come
FIRST_STEPS, MORE_STEPS = 20, 2
# documents that a stream is begun with, and for each topic
LEAST_START, START_OF_TOPIC = 2000, 200
# how many times more of them there are when the start is made anew, or all are learned again
GROWTH, SOME_GROWTH = 1.5, 1.1


@dataclass(frozen=True, slots=True)
class HeldDocuments:
    """The first documents of a stream, which are learned as one corpus while they are few.

    They are learned again once there are ``next_steps`` of them, from a new start once there are
    ``next_start``.
    """

    documents: Block | None = None
    next_start: int = 1
    next_steps: int = 1


class LatentDirichletAllocation(TopicEstimator):
    """Topics of words; each document has shares of them.

        theta_n ~ Dirichlet(doc_topic_prior),  topic_k ~ Dirichlet(topic_word_prior)
        each token of document n:  z ~ theta_n,  word ~ topic_z

    Variational Bayes, from a start by pLSI, with both priors learned: the prior of the shares one
    number for each topic, that of words one for all. Steps of the fit never lower the bound. What
    is found of each document is remembered beside it (8 K bytes each) until the next pass.

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
        as 16384 of them, or documents of 2^23 different words in all, are held at a time, by
        threads of this process. At the end of a pass the documents of all its batches count alike.
    init : {'plsi', 'random'}, default='plsi'
        Where the topics begin.
    batch_size : int, default=512
        Rows between two updates of the parameters. Rows are documents; only 'online' has such
        batches.
    learning_decay : float, default=0.7
        Step t of 'online' and of ``partial_fit`` weighs (learning_offset + t)^-learning_decay.
    learning_offset : float, default=10.0
        The larger, the less the first steps weigh.
    total_samples : float, default=None
        Documents of the whole stream, for ``partial_fit``; None counts those seen so far.
    tol : float, default=1e-3
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is in nats per token: 0.001 is a tenth of a percent
        of the perplexity. 'online' estimates gains on a sample of the documents; it also stops
        when the gain of a pass is within its sampling error.
    max_iter : int, default=1000
        Largest number of iterations. One is a pass over the documents; corpora need some tens,
        documents without structure hundreds.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited: by threads of this process or by the workers of a Dask cluster.
        Rows are documents.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned.
    checkpoint : path, default=None
        File to which a long fit writes its state now and then; the same call made again after an
        interruption goes on from it and ends in the same result.

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
        As in :class:`GaussianMixture`; the bound is per token. 'online' counts passes, the last of
        which finds the bound of all documents; differences to it are estimated by the sample.
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
    >>> from mixfold.plots import plot_topics
    >>> panels = plot_topics(model, n_words=6)
    """

    _streams_go_on: ClassVar[bool] = True
    _constraints: ClassVar[rule.Constraints] = {
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
    _schedule: Stepwise
    _held: HeldDocuments | None  # of a stream that has not brought enough of them for a start

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
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature. Rows are documents.

        Returns
        -------
        self
        """
        self._check_parameters()
        source = self._open(X, reset=True, weight=sample_weight)
        deadline = Deadline.after(self.time_budget)
        corpus = look_at_documents(self, source)
        if self.learning_method == "online":
            result = self._fit_online(corpus, deadline)
        else:
            first = stored_params(self) or self._find_start(corpus, deadline)
            result = fit_documents(self, self._make_model(first), corpus, deadline)
        self._held = None  # of an unfinished stream
        self._publish(result, corpus)
        return self

    def _fit_online(self, corpus: Corpus, deadline: Deadline) -> Fit:
        """Stochastic steps over all documents, from the topics of a sample of them."""
        source, documents = corpus.source, SparseBlocks(corpus.source)
        sampled: Any = source if hasattr(source, "partitions") else documents
        pilot = draw_pilot(sampled, corpus.executor, HELD, corpus.seed)
        first = stored_params(self)
        if first is None:
            first = self._learn_first(self._gather(pilot.block, corpus.seed), deadline).params
        schedule = Online(
            batch_size=int(self.batch_size),
            decay=float(self.learning_decay),
            offset=float(self.learning_offset),
            total_weight=corpus.words.documents,
        )
        # documents that are held to be mixed are in this process
        here = replace(corpus, source=documents, executor=ThreadExecutor(self.n_jobs))
        model = self._make_model(first).for_batches()
        return fit_documents(self, model, here, deadline, pilot=pilot, online=schedule)

    def _find_start(self, corpus: Corpus, deadline: Deadline) -> TopicParams:
        """Topics by pLSI or by chance, with the priors that are given or to be learned."""
        rng, K = np.random.default_rng(corpus.seed % 2**63), self.n_components
        steps = START_STEPS if self.init == "plsi" else 0
        topics = start_by_plsi(corpus, K, rng, deadline, steps)
        prior, b = first_priors(K, self.doc_topic_prior, self.topic_word_prior)
        return dirichlet_topics(topics, corpus.n_tokens, prior, b)

    def _make_model(self, first: TopicParams) -> LDAModel:
        return LDAModel(
            first,
            learn_prior=isinstance(self.doc_topic_prior, str),
            learn_smoothing=isinstance(self.topic_word_prior, str),
        )

    def _publish_params(self) -> None:
        topics = self._params.topics
        self.topics_ = np.asarray(topics / topics.sum(axis=1, keepdims=True))
        self.components_ = topics
        self.doc_topic_prior_ = self._params.prior
        self.topic_word_prior_ = self._params.smoothing

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
        first = not hasattr(self, "_params")
        source = self._open(X, reset=first, weight=sample_weight)
        deadline = Deadline.after(self.time_budget)
        if first:
            self._held = HeldDocuments()
            self._stream = (seed_from(self.random_state), 0)
        for documents in hold_rows(SparseBlocks(source), int(self.batch_size)):
            if not self._learn_held(source, documents, deadline):
                self._learn_batch(source, documents)
        return self

    def _learn_held(self, source: Source, fresh: Block, deadline: Deadline) -> bool:
        """Hold documents while they are few, and learn all that are held if they are many more.

        Whether they were learned.
        """
        held: HeldDocuments | None = getattr(self, "_held", None)
        if held is None:
            return False
        known = [] if held.documents is None else [held.documents]
        documents = join_blocks([*known, fresh])
        # topics of fewer documents fit their words too closely
        rows, enough = documents.n_rows, max(LEAST_START, START_OF_TOPIC * self.n_components)
        self._held = held = replace(held, documents=documents)
        if rows < min(held.next_steps, enough):
            return False
        corpus = self._gather(documents, self._stream[0])
        check_words(corpus.words, self.n_components)
        if rows >= min(held.next_start, enough):
            result = self._learn_first(corpus, deadline)
            held = replace(held, next_start=int(GROWTH * rows))
        else:
            plan = Plan(tol=0.0, max_iter=MORE_STEPS, n_candidates=1, seed=corpus.seed)
            result = loop.fit(self._make_model(self._params), corpus.source, corpus.executor, plan)
        self._publish(result, replace(corpus, source=source), quiet=True)
        self._schedule = self._begin_schedule(result.params, corpus)
        few = replace(held, next_steps=int(SOME_GROWTH * rows))
        self._held = None if rows >= enough else few
        return True

    def _learn_batch(self, source: Source, documents: Block) -> None:
        """A stochastic step, of a stream whose length may be unknown."""
        settings = self._step_settings()
        if hasattr(self, "_schedule"):
            schedule = replace(self._schedule, **settings)
        else:  # after fit
            each = mean_document(self._params, self.n_documents_, self.n_tokens_)
            schedule = Stepwise(
                each, self.n_documents_ / self.batch_size, weight=self.n_documents_, **settings
            )
        batch = BatchSource(source, split_block(documents))
        learned = learn_batch(
            self._make_model(self._params).for_batches(),
            self._params,
            schedule,
            batch,
            ThreadExecutor(self.n_jobs),
            total_weight=None if self.total_samples is None else float(self.total_samples),
            order=order_of(self, batch, new=False),
        )
        if learned.stats.documents > 0:
            note_order(self, learned)
        self._params, self._schedule = learned.params, learned.schedule
        self.n_documents_ += learned.stats.documents
        self.n_tokens_ += learned.stats.tokens
        self.n_iter_ = int(self._schedule.n_batches)
        if learned.stats.documents > 0:
            self.lower_bound_ = learned.stats.bound / max(learned.stats.tokens, 1e-300)
            self._publish_params()

    def _step_settings(self) -> dict[str, float]:
        return {
            "decay": float(self.learning_decay),
            "delay": float(self.learning_offset),
            "batch_size": float(self.batch_size),
        }

    def _begin_schedule(self, params: TopicParams, corpus: Corpus) -> Stepwise:
        """The statistics that stochastic steps go on from."""
        model = self._make_model(params)
        task = partial(model.expect, model.prepare(params), rng=RowKeys(0, 0))
        stats = corpus.executor.map_reduce(task, corpus.source)
        return Stepwise(**self._step_settings()).blend(stats, stats.documents)

    # ------------------------------------------------ the start of 'online' and of a stream

    def _gather(self, documents: Block, seed: int) -> Corpus:
        """Documents in memory as a corpus."""
        threads, known = (
            ThreadExecutor(self.n_jobs),
            open_source(documents.X, weight=documents.weight),
        )
        return Corpus(known, threads, threads.map_reduce(count_words, known), seed)

    def _learn_first(self, corpus: Corpus, deadline: Deadline) -> Fit:
        """The few steps on documents in memory that stochastic steps begin with."""
        if corpus.words.documents == 0:
            raise ValueError("X has too few documents with a word for learning_method='online'")
        first = self._find_start(corpus, deadline)
        plan = Plan(tol=0.0, max_iter=FIRST_STEPS, n_candidates=1, seed=corpus.seed,
                    time_budget=deadline.seconds_left)  # fmt: skip
        return loop.fit(self._make_model(first), corpus.source, corpus.executor, plan)

    # ------------------------------------------------ asking

    def _make_reading(self) -> TopicReading:
        return TopicReading(word_major(self.topics_), self._params.prior)

    def _make_shares_task(self, tol: float) -> Callable[[Block], Array]:
        return partial(_infer_shares, self._make_reading(), tol)

    def _make_bounds_task(self) -> Callable[[Block], Array]:
        return partial(_infer_bounds, self._make_reading())

    def _check_state(self) -> None:
        schedule: Any = getattr(self, "_schedule", None)
        if isinstance(schedule, TopicStream):
            self._schedule = Stepwise(schedule.stats, schedule.steps, weight=schedule.documents)
        super()._check_state()

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
        p = shares @ self.topics_
        p /= p.sum(axis=1, keepdims=True)  # one, but for rounding
        words = [rng.multinomial(n, each) for n, each in zip(lengths, p, strict=True)]
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
