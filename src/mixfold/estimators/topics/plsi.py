"""Probabilistic latent semantic indexing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import xlogy

from mixfold.contracts import Array, Block
from mixfold.engine.budget import Deadline
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.topics.topic_model import (
    Corpus,
    TopicEstimator,
    fit_documents,
    look_at_documents,
)
from mixfold.math.topic_sweeps import word_major
from mixfold.models.topics.lda import TopicReading
from mixfold.models.topics.plsi import PLSIModel, fold
from mixfold.models.topics.records import TopicParams, counts_of
from mixfold.models.topics.starts import random_topics

# sweeps of a document that is asked about
SWEEPS = 500


class PLSI(TopicEstimator):
    """Documents as mixtures of topics, by maximum likelihood.

        P(word j | document n) = sum_k theta_nk topics_kj

    The same as factorising the counts into non-negative matrices by the I-divergence: a step of EM
    is a joint multiplicative step of both factors. There is no model of new documents; they are
    folded in: their shares are fitted with the topics held, which has one maximum. For the same
    reason there is nothing to draw documents from (no ``sample``): use
    :class:`LatentDirichletAllocation`, whose shares have a distribution.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    smoothing : float, default=0.0
        Tokens added to each word of each topic, so that no word is impossible: without it a new
        document with a word that was never seen has probability zero.
    doc_smoothing : float, default=0.0
        Tokens added to each topic of each document.
    tempering : float, default=1.0
        Exponent of theta and topics in the topic of a token; less than 1 fits less closely.
    sweeps : int, default=1
        Steps of the shares of a document for one of the topics; 1 is EM.
    tol : float, default=1e-3
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is that of the log-likelihood per token.
    max_iter : int, default=300
        Largest number of iterations.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited: by threads of this process or by the workers of a Dask cluster.
        Rows are documents. On a cluster shares of documents are not kept between passes; they are
        folded in anew.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned.
    checkpoint : path, default=None
        File to which a long fit writes its state now and then; the same call made again after an
        interruption goes on from it and ends in the same result.

    Attributes
    ----------
    topics_, components_ : ndarray of shape (n_components, n_features)
        Probabilities of the words.
    topic_shares_ : ndarray of shape (n_components,)
        Shares of the topics in the tokens of the fit; None if ``max_iter=0``.
    n_documents_, n_tokens_ : float
        Of the fit, by weight; documents without a word do not count.
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`GaussianMixture`; the log-likelihood is per token.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Hofmann. Probabilistic latent semantic indexing. SIGIR 1999.
    .. [2] Ding, Li, Peng. On the equivalence between non-negative matrix factorization and
       probabilistic latent semantic indexing. Computational Statistics & Data Analysis 52, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import PLSI
    >>> X = np.array([[4, 3, 0, 0], [3, 5, 0, 0], [0, 0, 4, 4], [0, 0, 2, 5], [2, 2, 2, 3]])
    >>> model = PLSI(2, smoothing=0.01, random_state=0).fit(X)
    >>> model.transform(X).round(1).max(axis=1)
    array([1. , 1. , 1. , 1. , 0.6])
    >>> from mixfold.plots import plot_topics
    >>> panels = plot_topics(model, n_words=4)
    """

    _constraints: ClassVar[rule.Constraints] = {
        "n_components": (rule.integer(1),),
        "smoothing": (rule.number(0),),
        "doc_smoothing": (rule.number(0),),
        "tempering": (rule.number(0, open_end=True),),
        "sweeps": (rule.integer(1),),
    }
    _params: TopicParams

    def __init__(
        self,
        n_components: int = 10,
        *,
        smoothing: float = 0.0,
        doc_smoothing: float = 0.0,
        tempering: float = 1.0,
        sweeps: int = 1,
        tol: float = 1e-3,
        max_iter: int = 300,
        random_state: Any = None,
        verbose: int = 0,
        verbose_interval: int = 10,
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_components = n_components
        self.smoothing = smoothing
        self.doc_smoothing = doc_smoothing
        self.tempering = tempering
        self.sweeps = sweeps
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget
        self.checkpoint = checkpoint

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
        model = self._start_model(corpus)
        result = fit_documents(self, model, corpus, deadline)
        self._publish(result, corpus)
        return self

    def _start_model(self, corpus: Corpus) -> PLSIModel:
        """The model that the engine fits, from random topics."""
        rng = np.random.default_rng(corpus.seed % 2**63)
        words = corpus.words.words + float(self.smoothing)
        topics = random_topics(words, self.n_components, rng)
        extra = np.full(self.n_components, float(self.doc_smoothing))
        first = TopicParams(topics, extra, float(self.smoothing))
        return PLSIModel(first, self.sweeps, 0.0, float(self.tempering))

    def _publish_params(self) -> None:
        self.topics_ = self.components_ = self._params.topics
        self.topic_shares_ = self._params.shares

    def _make_reading(self) -> TopicReading:
        return TopicReading(word_major(self._params.topics), self._params.prior)

    def _make_shares_task(self, tol: float) -> Callable[[Block], Array]:
        return partial(_fold_in, self._make_reading(), tol)

    def _make_bounds_task(self) -> Callable[[Block], Array]:
        return partial(_log_likelihood, self._make_reading())


def _fold_in(reading: TopicReading, tol: float, block: Block) -> Array:
    """Shares of topics of each document, fitted with the topics held."""
    theta = np.full((block.n_rows, len(reading.prior)), 1.0 / len(reading.prior))
    counts = counts_of(block)
    fold(reading, counts, theta, np.zeros(reading.words.shape), SWEEPS, tol)
    return theta


def _log_likelihood(reading: TopicReading, block: Block) -> Array:
    """Of the words of documents that were folded in; -inf with a word that no topic has."""
    theta = _fold_in(reading, 1e-6, block)
    X = counts_of(block).matrix
    out = np.zeros(block.n_rows)
    for i in range(block.n_rows):
        row = slice(X.indptr[i], X.indptr[i + 1])
        # a stored zero is no word: 0 ln 0 = 0
        out[i] = xlogy(X.data[row], reading.words[X.indices[row]] @ theta[i]).sum()
    return out
