"""Latent Dirichlet allocation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Array, Block, Executor, Source
from mixfold.engine.loop import Fit, Plan
from mixfold.engine.random import seed_from
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.topics.topic_answers import check_draws
from mixfold.estimators.topics.topic_model import START_STEPS, TOPIC_RULES, TopicEstimator
from mixfold.estimators.topics.topic_streams import StreamedTopics
from mixfold.math.topic_sweeps import word_major
from mixfold.models.topics.lda import LDAModel, TopicReading, infer, outside
from mixfold.models.topics.memory import Memory
from mixfold.models.topics.records import TopicParams, counts_of
from mixfold.models.topics.starts import WordSums, dirichlet_topics

# sweeps of a document that is asked about
SWEEPS = 200


class LatentDirichletAllocation(StreamedTopics, TopicEstimator):
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

    def _started(
        self, source: Source, executor: Executor, words: WordSums, rng: np.random.Generator
    ) -> LDAModel:
        steps = START_STEPS if self.init == "plsi" else 0
        topics = self._first_topics(source, executor, words, rng, steps)
        K = self.n_components
        learned = isinstance(self.doc_topic_prior, str)
        prior = np.full(K, min(1.0, 5.0 / K) if learned else float(self.doc_topic_prior))
        b = 0.05 if isinstance(self.topic_word_prior, str) else float(self.topic_word_prior)
        return self._lda(dirichlet_topics(topics, float(words.words.sum()), prior, b))

    def _lda(self, first: TopicParams) -> LDAModel:
        return LDAModel(
            first,
            learn_prior=isinstance(self.doc_topic_prior, str),
            learn_smoothing=isinstance(self.topic_word_prior, str),
            memory=Memory(),
        )

    def _fitted(
        self, source: Source, executor: Executor, words: WordSums, plan: Plan, began: float
    ) -> Fit:
        if self.learning_method == "online":
            return self._fit_online(source, executor, words, plan.seed)
        return super()._fitted(source, executor, words, plan, began)

    def _publish_params(self) -> None:
        super()._publish_params()
        self.doc_topic_prior_ = self._params.prior
        self.topic_word_prior_ = self._params.smoothing

    # ------------------------------------------------ asking

    def _topics(self) -> Array:
        topics = self._params.topics
        return np.asarray(topics / topics.sum(axis=1, keepdims=True))

    def _published_components(self) -> Array:
        return self._params.topics

    def _reading(self) -> TopicReading:
        return TopicReading(word_major(self._topics()), self._params.prior)

    def _shares(self, tol: float) -> Callable[[Block], Array]:
        return partial(_shares, self._reading(), tol)

    def _bounds(self) -> Callable[[Block], Array]:
        return partial(_bounds, self._reading())

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


def _posteriors(reading: TopicReading, block: Block, tol: float) -> tuple[Array, Array]:
    """Dirichlets of the documents, and the part of the bound that is of their tokens."""
    counts = counts_of(replace(block, weight=None))
    gamma = np.ones((block.n_rows, len(reading.prior)))
    inside, _ = infer(reading, counts, gamma, np.zeros(reading.words.shape), SWEEPS, tol)
    return gamma, inside


def _shares(reading: TopicReading, tol: float, block: Block) -> Array:
    gamma, _ = _posteriors(reading, block, tol)
    return np.asarray(gamma / gamma.sum(axis=1, keepdims=True))


def _bounds(reading: TopicReading, block: Block) -> Array:
    gamma, inside = _posteriors(reading, block, 1e-5)
    return np.asarray(inside + outside(gamma, reading.prior))
