"""The shell of topic models: counts in any form, topics, perplexities."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, Executor, Source
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.progress import Progress
from mixfold.engine.random import seed_from
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.estimators.shell.fitting import FITTING_RULES, FittingEstimator
from mixfold.estimators.topics.topic_answers import TopicAnswers
from mixfold.models.topics.plsi import PLSIModel
from mixfold.models.topics.records import TopicParams
from mixfold.models.topics.starts import WordSums, count_words, random_topics

# steps of pLSI that other models begin with
START_STEPS = 30
# tokens added to each word of a topic meanwhile, so that none is impossible
START_SMOOTHING = 0.01
# relative changes of an objective that inner loops of documents leave open
INNER = 1e-5

TOPIC_RULES: rule.Constraints = {
    name: rules
    for name, rules in FITTING_RULES.items()
    if name not in ("acceleration", "warm_start")
}


class TopicEstimator(
    TopicAnswers, ClassNamePrefixFeaturesOutMixin, TransformerMixin, FittingEstimator
):
    """Base of PLSI, LatentDirichletAllocation and PCP.

    A subclass says what is fitted once the words are counted (``_started``), which parameters are
    topics (``_topics``), and answers for blocks of documents (``_shares``, ``_bounds``).
    """

    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_dtype", "_stream", "_schedule", "converged_",
        "stop_reason_", "n_iter_", "n_passes_", "lower_bound_", "lower_bounds_", "events_",
        "n_documents_", "n_tokens_",
    )  # fmt: skip

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
        self._fit(source)
        return self

    def _fit(self, source: Source, max_iter: int | None = None) -> Fit:
        began, executor = time.monotonic(), self._executor(source)
        seed, saved = seed_from(self.random_state), self._checkpoint()
        seed = saved.seed(seed) if saved else seed
        words = executor.map_reduce(count_words, source)
        self._check_words(words)
        result = self._fitted(source, executor, words, self._plan(seed, max_iter), began)
        self.n_documents_, self.n_tokens_ = words.documents, float(words.words.sum())
        self._keep(_settled(result), source, seed, quiet=max_iter is not None)
        return result

    def _fitted(
        self, source: Source, executor: Executor, words: WordSums, plan: Plan, began: float
    ) -> Fit:
        """Started, then climbed; the start takes part of the time there is."""
        rng = np.random.default_rng(plan.seed % 2**63)
        model = self._started(source, executor, words, rng)
        if plan.time_budget is not None:
            left = plan.time_budget - (time.monotonic() - began)
            plan = replace(plan, time_budget=max(left, 1e-6))
        return fit(
            model, source, executor, plan,
            checkpoint=self._checkpoint(),
            progress=Progress(int(self.verbose), self.verbose_interval),
        )  # fmt: skip

    def _check_words(self, words: WordSums) -> None:
        if words.documents == 0:
            raise ValueError("X has no document with a word (and a positive weight)")
        if self.n_components > words.words.sum():
            warn(
                f"n_components={self.n_components} topics are more than the "
                f"{words.words.sum():g} tokens of all documents",
                DegenerateWarning,
            )

    @abstractmethod
    def _started(
        self, source: Source, executor: Executor, words: WordSums, rng: np.random.Generator
    ) -> Any:
        """The model that the engine fits, with its start."""

    def _first_topics(
        self, source: Source, executor: Executor, words: WordSums, rng: np.random.Generator,
        steps: int = START_STEPS,
    ) -> Array:  # fmt: skip
        """Probabilities of words (K, D): a few steps of pLSI from random topics."""
        topics = random_topics(words.words + START_SMOOTHING, self.n_components, rng)
        if steps == 0:
            return topics
        first = TopicParams(topics, np.zeros(self.n_components), START_SMOOTHING)
        plan = Plan(
            tol=0.0, max_iter=steps, n_candidates=1, seed=int(rng.integers(2**62)),
            time_budget=self.time_budget,
        )  # fmt: skip
        started: TopicParams = fit(PLSIModel(first), source, executor, plan).params
        return started.topics

    def _plan(self, seed: int, max_iter: int | None = None) -> Plan:
        return Plan(
            tol=self.tol,
            max_iter=self.max_iter if max_iter is None else max_iter,
            n_candidates=1,
            time_budget=self.time_budget,
            seed=seed,
        )

    def _model(self, n_features: int) -> Any:
        return None  # made once the words are counted

    def _publish_batch(self, model: Any, stats: Any) -> None:
        self.lower_bound_ = stats.bound / max(stats.tokens, 1e-300)

    def _publish_params(self) -> None:
        self.topics_ = self._topics()
        self.components_ = self._published_components()

    # ------------------------------------------------ asking

    @abstractmethod
    def _topics(self) -> Array:
        """Probabilities of words (K, D)."""

    def _published_components(self) -> Array:
        return self.topics_

    @abstractmethod
    def _shares(self, tol: float) -> Callable[[Block], Array]:
        """What gives the expected shares of topics (n, K) of a block; picklable."""

    @abstractmethod
    def _bounds(self) -> Callable[[Block], Array]:
        """What gives the log probability of each document, or a bound of it; picklable."""

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def transform(self, X: Any) -> Array:
        """Expected shares of the topics in each document, (n_samples, n_components)."""
        check_is_fitted(self)
        return self._stacked(X, partial(_shaped, self._shares(1e-5)))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, then transform the same documents."""
        return self.fit(X, y, sample_weight).transform(X)

    def _check_state(self) -> None:
        if self._topics().shape != (self.n_components, self.n_features_in_):
            raise ValueError("parameters of another shape than the settings declare")
        self._publish_params()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def _settled(result: Fit) -> Fit:
    """Without falls that inner loops explain: they end when a document hardly moves any more."""
    trace = np.asarray(result.trace)
    falls = np.maximum(trace[:-1] - trace[1:], 0.0)
    if (falls > INNER * (1.0 + np.abs(trace[:-1]))).any():
        return result
    return replace(result, events=tuple(e for e in result.events if e.kind != "fall"))


def _shaped(task: Callable[[Block], Array], block: Block) -> Array:
    return task(block).astype(block.X.dtype, copy=False)
