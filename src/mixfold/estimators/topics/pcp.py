"""PCP: clusters of documents and topics of words, learned together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, Event, Source
from mixfold.engine import loop
from mixfold.engine.budget import Deadline
from mixfold.engine.loop import Fit, Plan
from mixfold.engine.random import seed_from
from mixfold.engine.schedules import Stepwise, learn_batch
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.estimators.shell.fitting import note_order, order_of, warn_about_fit
from mixfold.estimators.topics.topic_model import (
    Corpus,
    TopicEstimator,
    check_draws,
    first_priors,
    fit_documents,
    look_at_documents,
    start_by_plsi,
)
from mixfold.math.dirichlet import log_draw
from mixfold.math.softmax import normalise
from mixfold.models.topics.lda import LDAModel
from mixfold.models.topics.pcp import Inference, PCPModel
from mixfold.models.topics.pcp_fewer import begin_with_fewer
from mixfold.models.topics.pcp_mean_field import MeanField
from mixfold.models.topics.pcp_own_shares import OwnShares
from mixfold.models.topics.pcp_records import PCPParams, PCPReading, expected_reading
from mixfold.models.topics.pcp_structured import Structured, scores
from mixfold.models.topics.records import counts_of
from mixfold.models.topics.starts import (
    dirichlet_topics,
    document_topics,
    random_clusters,
    start_clusters,
)

# steps of LDA before documents are clustered by their topics
LDA_STEPS = 40
# times that clusters which say the same are merged at the end of a climb
MERGERS = 5
# steps on the first batch of a stream
FIRST_STEPS = 20

# how cluster and topics of a document are inferred
INFERENCES: dict[str, Inference] = {"structured": Structured(), "mean_field": MeanField()}


class PCP(ClusterMixin, TopicEstimator):
    """Clusters of documents and topics of words, learned together.

        pi ~ Dirichlet(alpha / M),  theta_m ~ Dirichlet(cluster_topic_prior)
        document n is of cluster c ~ pi, and has shares theta_n ~ Dirichlet(s theta_c);
        each of its tokens:  z ~ theta_n,  word ~ topic_z

    A mixture of latent Dirichlet allocations that share their topics: documents say which topics go
    together, and topics which documents do. Clusters that are not needed become empty and are
    dropped, and (up to 100) clusters that say the same are merged, so that their number is learned.
    A large M stands for a Dirichlet process over the priors of documents: an infinite mixture of
    latent Dirichlet allocations. With one cluster it is :class:`LatentDirichletAllocation`.

    In the paper all documents of a cluster have its shares, theta_n = theta_c
    (``document_concentration=None``). Documents of one kind are not as alike as that, and the more
    words they have the less: what they differ in is made up by more clusters, of which none is
    dropped on texts. Where M <= K any M distributions of words are possible then, and the model is
    a plain mixture of unigrams (:class:`MultinomialMixture`).

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    n_clusters : int or 'documents', default=20
        Number of clusters M to begin with; 'documents' gives each document its own.
    alpha : float or 'learn', default=1.0
        Concentration of all clusters together. Small values keep fewer clusters.
    document_concentration : 'auto', 'learn', float or None, default='auto'
        s, the concentration of the shares of documents around those of their cluster; None gives
        documents the shares of their cluster. 'auto' is 'learn', or None by 'mean_field'. What is
        learned is at least 1: below, documents would have a topic each rather than be alike.
    cluster_topic_prior : 'learn' or float, default='learn'
        Concentration of the topics of a cluster.
    topic_word_prior : 'learn' or float, default='learn'
        Concentration of the words of a topic.
    inference : {'structured', 'mean_field'}, default='structured'
        'structured' infers cluster and topics of a document jointly; 'mean_field' as if they were
        independent, which is what the paper does: for comparison, its clusters are worse, and
        documents have the shares of their cluster. There, with more than 200 clusters, 'structured'
        compares a document with all of them in every fifth pass, and with its 50 best in between.
    init_params : {'kmeans', 'random'}, default='kmeans'
        How rows are first shared among the components. 'kmeans' is LDA, then k-means of documents
        by their topics; 'random' draws topics and clusters.
    n_init : int, default=1
        Starts that are followed to the end; the best is kept. The best is that with the highest
        bound.
    learning_decay : float, default=0.7
        ``partial_fit``: the rate of step t is (learning_offset + t) ** -learning_decay.
    learning_offset : float, default=10.0
    total_samples : float, default=1000000.0
        ``partial_fit``: documents of the whole stream.
    tol : float, default=0.01
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is that of the bound per document.
    max_iter : int, default=300
        Largest number of iterations. One is a pass over the documents.
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
        Parameters of the Dirichlet posterior of the topics.
    weights_ : ndarray of shape (n_clusters_,)
        Shares of the clusters that are left, largest first.
    cluster_topics_ : ndarray of shape (n_clusters_, n_components)
        Shares of the topics in each cluster.
    n_clusters_ : int
        Clusters that are left.
    alpha_ : float
    document_concentration_ : float or None
    labels_ : ndarray of shape (n_samples,)
        Cluster of each document of the fit.
    cluster_topic_prior_ : ndarray of shape (n_components,)
    topic_word_prior_ : float
    n_documents_, n_tokens_ : float
        Of the fit, by weight; documents without a word do not count.
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`GaussianMixture`; the bound is per document.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Yu, Yu, Tresp, Kriegel. A probabilistic clustering-projection model for discrete data.
       PKDD 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import PCP
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.poisson([3, 3, 3, 0, 0, 0], (50, 6)),
    ...                rng.poisson([0, 0, 0, 3, 3, 3], (50, 6))])
    >>> model = PCP(2, 5, random_state=0).fit(X)
    >>> model.n_clusters_
    2
    >>> len(set(model.labels_[:50])), len(set(model.labels_))
    (1, 2)
    >>> from mixfold.plots import plot_cluster_topics
    >>> ax = plot_cluster_topics(model)
    """

    _streams_go_on: ClassVar[bool] = True
    _constraints: ClassVar[rule.Constraints] = {
        "n_components": (rule.integer(1),),
        "n_clusters": (rule.integer(1), rule.one_of(["documents"])),
        "alpha": (rule.one_of(["learn"]), rule.number(0, open_end=True)),
        "document_concentration": (
            rule.one_of(["auto", "learn"]),
            rule.number(0, open_end=True),
            rule.nothing(),
        ),
        "cluster_topic_prior": (rule.one_of(["learn"]), rule.number(0, open_end=True)),
        "topic_word_prior": (rule.one_of(["learn"]), rule.number(0, open_end=True)),
        "inference": (rule.one_of([*INFERENCES]),),
        "init_params": (rule.one_of(["kmeans", "random"]),),
        "learning_decay": (rule.number(0.5, open_end=True),),
        "learning_offset": (rule.number(0),),
        "total_samples": (rule.number(0, open_end=True),),
    }
    _params: PCPParams
    _schedule: Stepwise

    def __init__(
        self,
        n_components: int = 10,
        n_clusters: Any = 20,
        *,
        alpha: Any = 1.0,
        document_concentration: Any = "auto",
        cluster_topic_prior: Any = "learn",
        topic_word_prior: Any = "learn",
        inference: str = "structured",
        init_params: str = "kmeans",
        n_init: int = 1,
        learning_decay: float = 0.7,
        learning_offset: float = 10.0,
        total_samples: float = 1e6,
        tol: float = 0.01,
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
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.document_concentration = document_concentration
        self.cluster_topic_prior = cluster_topic_prior
        self.topic_word_prior = topic_word_prior
        self.inference = inference
        self.init_params = init_params
        self.n_init = n_init
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
        model = self._start_model(corpus, deadline)
        result = fit_documents(self, model, corpus, deadline, n_init=self.n_init, moves=MERGERS)
        self._publish_clusters(result, corpus)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit; the cluster of each document."""
        return self.fit(X, y, sample_weight).labels_

    def _start_model(self, corpus: Corpus, deadline: Deadline) -> PCPModel:
        """The model that the engine fits, with ``n_init`` starts."""
        rng = np.random.default_rng(corpus.seed % 2**63)
        starts = [self._find_start(corpus, rng, deadline) for _ in range(self.n_init)]
        return self._make_model(tuple(starts))

    def _make_model(self, starts: tuple[PCPParams, ...]) -> PCPModel:
        shared = starts[0].concentration is None  # a file of an earlier version knows no other
        return PCPModel(
            starts,
            INFERENCES[self.inference] if shared else OwnShares(),
            learn_prior=isinstance(self.cluster_topic_prior, str),
            learn_smoothing=isinstance(self.topic_word_prior, str),
            learn_alpha=isinstance(self.alpha, str),
            learn_concentration=isinstance(self.document_concentration, str),
        )

    def _choose_concentration(self) -> str | float | None:
        """'learn', a number, or None where documents have the shares of their cluster."""
        given: str | float | None = self.document_concentration
        if given == "auto":
            return None if self.inference == "mean_field" else "learn"
        return given

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.inference == "mean_field" and self._choose_concentration() is not None:
            raise ValueError(
                "inference='mean_field' is of documents that have the shares of their cluster, got "
                f"document_concentration={self.document_concentration!r}; give "
                "document_concentration=None, or inference='structured'"
            )
        if isinstance(self.alpha, str) and self.n_clusters == 1:
            raise ValueError(
                "alpha='learn' needs n_clusters of 2 or more, got n_clusters=1, of which no alpha "
                "is likelier than another; give alpha=1.0"
            )

    def _find_start(
        self, corpus: Corpus, rng: np.random.Generator, deadline: Deadline
    ) -> PCPParams:
        """Topics by LDA, then clusters of documents by their topics; or all at random."""
        source, executor = corpus.source, corpus.executor
        alpha = 1.0 if isinstance(self.alpha, str) else float(self.alpha)
        concentration = self._choose_concentration()
        prior, b = first_priors(self.n_components, self.cluster_topic_prior, self.topic_word_prior)
        if self.init_params == "random":
            topics = start_by_plsi(corpus, self.n_components, rng, deadline, steps=0)
            first = dirichlet_topics(topics, corpus.n_tokens, prior, b)
            size = self._limit_clusters(_count_documents(corpus))
            return random_clusters(first, corpus.n_tokens, corpus.words.documents, alpha, size,
                                   rng, concentration)  # fmt: skip
        topics = start_by_plsi(corpus, self.n_components, rng, deadline)
        first = dirichlet_topics(topics, corpus.n_tokens, prior, b)
        lda = LDAModel(first, isinstance(self.cluster_topic_prior, str),
                       isinstance(self.topic_word_prior, str))  # fmt: skip
        plan = Plan(tol=self.tol, max_iter=LDA_STEPS, n_candidates=1,
                    time_budget=deadline.seconds_left)  # fmt: skip
        found = loop.fit(lda, source, executor, plan).params
        by_topic = document_topics(found, source, executor)
        weight = np.concatenate(list(executor.map_rows(_weights, source)))
        used = weight > 0
        size = self._limit_clusters(int(used.sum()))
        by_topic, weight = by_topic[used], weight[used]
        start = start_clusters(by_topic, weight, found, alpha, size, rng, concentration)
        if concentration is None:
            return start
        learn = isinstance(self.cluster_topic_prior, str), isinstance(concentration, str)
        return begin_with_fewer(start, by_topic, weight, *learn)

    def _limit_clusters(self, documents: int) -> int:
        """The number of clusters; more than documents cannot be told apart."""
        if isinstance(self.n_clusters, str):
            return documents
        if self.n_clusters > documents:
            warn(
                f"n_clusters={self.n_clusters} are more than the {documents} documents that have "
                f"words; {documents} are used",
                DegenerateWarning,
            )
        return min(int(self.n_clusters), documents)

    def _publish_clusters(self, result: Fit, corpus: Corpus, quiet: bool = False) -> None:
        """Publish a fit, the largest cluster first, with the cluster of each document."""
        ordered = result.params.order_by_size()
        others = tuple(e for e in result.events if e.kind != "pruned")
        events = (*others, *_report_pruned(ordered, result.n_iter))
        self._publish(replace(result, params=ordered, events=events), corpus, quiet=True)
        if not quiet:  # clusters that were dropped are what one hopes for: no warning
            warn_about_fit(replace(result, events=others), self.max_iter)
        task = partial(_find_labels, self._make_reading())
        self.labels_ = np.concatenate(list(corpus.executor.map_rows(task, corpus.source)))

    def _publish_params(self) -> None:
        params = self._params
        topics = params.words.topics
        self.topics_ = np.asarray(topics / topics.sum(axis=1, keepdims=True))
        self.components_ = topics
        self.weights_ = params.weights / params.weights.sum()
        self.cluster_topics_ = params.centres / params.centres.sum(axis=1, keepdims=True)
        self.n_clusters_ = len(params.weights)
        self.cluster_topic_prior_ = params.words.prior
        self.topic_word_prior_ = params.words.smoothing
        self.alpha_ = params.alpha
        self.document_concentration_ = params.concentration

    # ------------------------------------------------ a stream

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch of documents, by a step of stochastic variational inference.

        The first batch makes the start, also after ``fit``, and 'documents' are those of it: let it
        have some hundreds of them. Clusters are neither dropped nor merged afterwards, and keep
        their places: columns of ``predict_proba`` mean the same in every batch. Some may become
        empty (``weights_``), or say the same; only ``fit`` learns their number.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.

        Returns
        -------
        self
        """
        self._check_parameters()
        first = not hasattr(self, "_schedule")
        source = self._open(X, reset=first, weight=sample_weight)
        if first:
            deadline = Deadline.after(self.time_budget)
            corpus = look_at_documents(self, source)
            model = self._start_model(corpus, deadline)
            result = fit_documents(self, model, corpus, deadline, n_init=self.n_init,
                                   moves=MERGERS, max_iter=FIRST_STEPS)  # fmt: skip
            self._publish_clusters(result, corpus, quiet=True)  # it need not converge
        self._learn_batch(source, first)
        return self

    def _learn_batch(self, source: Source, first: bool) -> None:
        """One stochastic step; the parameters come from a fit or an earlier batch."""
        settings = {"decay": self.learning_decay, "delay": self.learning_offset}
        learned = learn_batch(
            self._make_model((self._params,)).for_batches(float(self.total_samples)),
            self._params,
            Stepwise(**settings) if first else self._schedule,
            source,
            self._executor(source),
            seed=self._stream[0],
            order=order_of(self, source, new=first),
        )
        stats = learned.stats
        if stats.documents == 0:
            return
        note_order(self, learned)
        self._params, self._schedule = learned.params, learned.schedule
        self.lower_bound_ = stats.bound / max(stats.tokens, 1e-300)
        self.n_iter_ = int(self._schedule.n_batches)
        self._publish_params()

    # ------------------------------------------------ asking, by the E step

    def _make_reading(self) -> PCPReading:
        reading = expected_reading(self._params)
        return reading if self._params.concentration is not None else reading.with_tables()

    def _make_shares_task(self, tol: float) -> Callable[[Block], Array]:
        params = self._params
        means = params.centres / params.centres.sum(axis=1, keepdims=True)
        return partial(_expect_topics, self._make_reading(), means)

    def _make_bounds_task(self) -> Callable[[Block], Array]:
        return partial(_bound_documents, self._make_reading())

    def predict(self, X: Any) -> Array:
        """The most probable cluster of each document."""
        check_is_fitted(self)
        return self._concatenate_rows(X, partial(_find_labels, self._make_reading()))

    def predict_proba(self, X: Any) -> Array:
        """Probability of each cluster given the document, (n_samples, n_clusters_)."""
        check_is_fitted(self)
        return self._concatenate_rows(X, partial(_find_memberships, self._make_reading()))

    def sample(
        self, n_samples: int = 1, length: float = 100, random_state: Any = None
    ) -> tuple[Array, Array]:
        """Draw documents with a Poisson number of tokens, at the expected parameters.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Counts.
        clusters : ndarray of shape (n_samples,)
        """
        check_draws(self, n_samples, length)
        rng = np.random.default_rng(seed_from(random_state) % 2**63)
        clusters = rng.choice(self.n_clusters_, n_samples, p=self.weights_)
        shares = self.cluster_topics_[clusters]
        if self.document_concentration_ is not None:
            shares = np.exp(log_draw(self.document_concentration_ * shares, rng))
        words = shares @ self.topics_
        words /= words.sum(axis=1, keepdims=True)  # one, but for rounding
        lengths = rng.poisson(length, n_samples)
        drawn = [rng.multinomial(n, own) for n, own in zip(lengths, words, strict=True)]
        return np.array(drawn), clusters

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # for checks that read predict_proba
        tags.classifier_tags = ClassifierTags(multi_class=self.n_clusters != 2)
        return tags


def _report_pruned(params: PCPParams, iteration: int) -> tuple[Event, ...]:
    """How many clusters are left, in one event: they go one by one, and in two ways."""
    first, left = params.n_clusters, len(params.weights)
    stay = "is" if left == 1 else "are"
    message = f"{first - left} of {first} clusters became empty or were merged; {left} {stay} left"
    return (Event("pruned", message, iteration),) if left < first else ()


def _weights(block: Block) -> Array:
    return counts_of(block).weight


def _count_documents(corpus: Corpus) -> int:
    """Rows that have words and weight."""
    return sum(int((w > 0).sum()) for w in corpus.executor.map_rows(_weights, corpus.source))


def _find_labels(reading: PCPReading, block: Block) -> Array:
    """The most probable cluster of each document of a block."""
    return np.asarray(np.argmax(_find_memberships(reading, block), axis=1))


def _find_memberships(reading: PCPReading, block: Block) -> Array:
    counts = counts_of(block)
    if reading.concentration is not None:
        return OwnShares().infer(reading, counts).memberships
    return normalise(scores(reading, counts.matrix))[1]


def _expect_topics(reading: PCPReading, means: Array, block: Block) -> Array:
    """Expected shares of topics; ``means`` (M, K) are those of the clusters."""
    s = reading.concentration
    if s is None:
        return np.asarray(_find_memberships(reading, block) @ means)
    counts = counts_of(block)
    found = OwnShares().infer(reading, counts)
    tokens = found.tokens + s * (found.memberships @ means)
    return np.asarray(tokens / (s + counts.lengths)[:, None])


def _bound_documents(reading: PCPReading, block: Block) -> Array:
    counts = counts_of(block)
    if reading.concentration is not None:
        return OwnShares().infer(reading, counts).bounds
    return np.asarray(normalise(scores(reading, counts.matrix))[0])
