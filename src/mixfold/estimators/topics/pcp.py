"""PCP: clusters of documents and topics of words, learned together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClusterMixin

from mixfold.contracts import Array, Block, Event, Executor, Source
from mixfold.engine.loop import Plan, fit
from mixfold.engine.schedules import Stepwise
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.estimators.topics.pcp_answers import PCPAnswers, labels
from mixfold.estimators.topics.topic_model import TOPIC_RULES, TopicEstimator
from mixfold.models.topics.lda import LDAModel
from mixfold.models.topics.pcp import Inference, PCPModel
from mixfold.models.topics.pcp_mean_field import DocumentTopics, MeanField
from mixfold.models.topics.pcp_records import PCPParams
from mixfold.models.topics.pcp_structured import Structured
from mixfold.models.topics.records import counts_of
from mixfold.models.topics.starts import WordSums, clustered, dirichlet_topics, document_topics

# steps of LDA before documents are clustered by their topics
LDA_STEPS = 40
# times that clusters which say the same are merged at the end of a climb
MERGERS = 5
# steps on the first batch of a stream
FIRST_STEPS = 20

# topics of documents, by the first row of a block, of each start
Beginnings = tuple[dict[int, Array], ...]
# how cluster and topics of a document are inferred
INFERENCES: dict[str, Callable[[Beginnings], Inference]] = {
    "structured": lambda beginnings: Structured(),
    "mean_field": lambda beginnings: MeanField(DocumentTopics(beginnings)),
}


class PCP(ClusterMixin, PCPAnswers, TopicEstimator):
    """Clusters of documents and topics of words, learned together.

        pi ~ Dirichlet(alpha / M),  theta_m ~ Dirichlet(cluster_topic_prior)
        document n is of cluster c ~ pi;  each of its tokens:  z ~ theta_c,  word ~ topic_z

    A mixture of M clusters whose tables of words have rank K: documents say which topics go
    together, and topics which documents do. With a small ``alpha`` clusters that are not needed
    become empty and are dropped, and (up to 100) clusters that say the same are merged, so that
    their number is learned. Where M <= K any M distributions of words are possible, and the model
    is a plain mixture of unigrams (:class:`MultinomialMixture`): the projection helps where M > K.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    n_clusters : int or 'documents', default=20
        Number of clusters M to begin with; 'documents' gives each document its own.
    alpha : float, default=1.0
        Concentration of all clusters together.
    cluster_topic_prior : 'learn' or float, default='learn'
        Concentration of the topics of a cluster.
    topic_word_prior : 'learn' or float, default='learn'
        Concentration of the words of a topic.
    inference : {'structured', 'mean_field'}, default='structured'
        'structured' infers cluster and topics of a document jointly; 'mean_field' as if they were
        independent, which is what the paper does: for comparison, its clusters are worse. With more
        than 200 clusters a document is compared with all of them in every fifth pass, and with its
        50 best in between.
    n_init : int, default=1
        Starts (LDA, then k-means of documents); that with the best bound is kept.
    learning_decay : float, default=0.7
        ``partial_fit``: the rate of step t is (learning_offset + t) ** -learning_decay.
    learning_offset : float, default=10.0
    total_samples : float, default=1000000.0
        ``partial_fit``: documents of the whole stream.
    tol : float, default=0.01
        The fit ends when the gain of all steps to come is projected to be less, per document.
    max_iter : int, default=300
        Passes over the documents.
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
        Parameters of the Dirichlet posterior of the topics.
    weights_ : ndarray of shape (n_clusters_,)
        Shares of the clusters that are left, largest first.
    cluster_topics_ : ndarray of shape (n_clusters_, n_components)
        Shares of the topics in each cluster.
    n_clusters_ : int
        Clusters that are left.
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
    """

    _constraints: ClassVar[rule.Constraints] = {
        **TOPIC_RULES,
        "n_components": (rule.integer(1),),
        "n_clusters": (rule.integer(1), rule.one_of(["documents"])),
        "alpha": (rule.number(0, open_end=True),),
        "cluster_topic_prior": (rule.one_of(["learn"]), rule.number(0, open_end=True)),
        "topic_word_prior": (rule.one_of(["learn"]), rule.number(0, open_end=True)),
        "inference": (rule.one_of([*INFERENCES]),),
        "n_init": (rule.integer(1),),
        "learning_decay": (rule.number(0.5, open_end=True),),
        "learning_offset": (rule.number(0),),
        "total_samples": (rule.number(0, open_end=True),),
    }
    _params: PCPParams

    def __init__(
        self,
        n_components: int = 10,
        n_clusters: Any = 20,
        *,
        alpha: float = 1.0,
        cluster_topic_prior: Any = "learn",
        topic_word_prior: Any = "learn",
        inference: str = "structured",
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
        self.cluster_topic_prior = cluster_topic_prior
        self.topic_word_prior = topic_word_prior
        self.inference = inference
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

    def _started(
        self, source: Source, executor: Executor, words: WordSums, rng: np.random.Generator
    ) -> PCPModel:
        begun = [self._start(source, executor, words, rng) for _ in range(self.n_init)]
        beginnings = tuple(by_topic for _, by_topic in begun)
        return self._pcp(tuple(params for params, _ in begun), beginnings)

    def _pcp(self, starts: tuple[PCPParams, ...], beginnings: Beginnings = ()) -> PCPModel:
        return PCPModel(
            starts,
            INFERENCES[self.inference](beginnings),
            learn_prior=isinstance(self.cluster_topic_prior, str),
            learn_smoothing=isinstance(self.topic_word_prior, str),
        )

    def _plan(self, seed: int, max_iter: int | None = None) -> Plan:
        return replace(super()._plan(seed, max_iter), n_init=self.n_init, moves=MERGERS)

    def _start(
        self, source: Source, executor: Executor, words: WordSums, rng: np.random.Generator
    ) -> tuple[PCPParams, dict[int, Array]]:
        """Topics by LDA, then clusters of documents by their topics."""
        topics = self._first_topics(source, executor, words, rng)
        prior, b = self._priors()
        first = dirichlet_topics(topics, float(words.words.sum()), prior, b)
        lda = LDAModel(first, isinstance(self.cluster_topic_prior, str),
                       isinstance(self.topic_word_prior, str))  # fmt: skip
        plan = Plan(tol=self.tol, max_iter=LDA_STEPS, n_candidates=1, time_budget=self.time_budget)
        found = fit(lda, source, executor, plan).params
        by_topic = document_topics(lda, found, source, executor)
        weight = np.concatenate(list(executor.map_rows(_weights, source)))
        used = weight > 0
        size = self._affordable(int(used.sum()))
        rows = np.concatenate(list(by_topic.values()))[used]
        params = clustered(rows, weight[used], found, float(self.alpha), size, rng)
        return params, by_topic

    def _affordable(self, documents: int) -> int:
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

    def _priors(self) -> tuple[Array, float]:
        K, given = self.n_components, self.cluster_topic_prior
        prior = np.full(K, min(1.0, 5.0 / K) if isinstance(given, str) else float(given))
        b = 0.05 if isinstance(self.topic_word_prior, str) else float(self.topic_word_prior)
        return prior, b

    def _keep(self, result: Any, source: Source, seed: int, quiet: bool) -> None:
        ordered = result.params.ordered()
        others = tuple(e for e in result.events if e.kind != "pruned")
        events = (*others, *_learned(ordered, result.n_iter))
        super()._keep(replace(result, params=ordered, events=events), source, seed, quiet)
        task = partial(labels, self._reading())
        self.labels_ = np.concatenate(list(self._executor(source).map_rows(task, source)))

    def _tell(self, fit: Any) -> None:
        """Clusters that were dropped are what one hopes for: no warning."""
        super()._tell(replace(fit, events=tuple(e for e in fit.events if e.kind != "pruned")))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit; the cluster of each document."""
        return self.fit(X, y, sample_weight).labels_

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
            self._fit(source, FIRST_STEPS)
        self._learn_batch(source, first)
        return self

    def _stream_model(self, n_features: int) -> PCPModel:
        return self._pcp(()).of_batches(float(self.total_samples))

    def _scheduled(self, model: PCPModel, stats: Any, first: bool) -> Any:
        batch = model.normalised(stats)
        if first:
            self._schedule = Stepwise(batch, 1, self.learning_decay, self.learning_offset)
        else:
            self._schedule = self._schedule.blend(batch)
        return self._schedule.stats


def _learned(params: PCPParams, iteration: int) -> tuple[Event, ...]:
    """How many clusters are left, in one event: they go one by one, and in two ways."""
    first, left = params.n_clusters, len(params.weights)
    message = f"{first - left} of {first} clusters became empty or were merged; {left} are left"
    return (Event("pruned", message, iteration),) if left < first else ()


def _weights(block: Block) -> Array:
    return counts_of(block).weight
