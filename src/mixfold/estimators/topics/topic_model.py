"""What topic models share: a look at the words, a run of the engine, answers about documents."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, Executor, Pilot, Source
from mixfold.engine import loop
from mixfold.engine.budget import Deadline
from mixfold.engine.loop import Fit, Plan
from mixfold.engine.progress import Progress
from mixfold.engine.random import seed_from
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import DegenerateWarning, MixfoldEstimator, warn
from mixfold.estimators.shell.fitting import (
    checkpoint_of,
    forget_stream,
    publish_convergence,
    warn_about_fit,
)
from mixfold.estimators.shell.predictions import match_dtype
from mixfold.models.topics.plsi import PLSIModel
from mixfold.models.topics.records import TopicParams, counts_of
from mixfold.models.topics.starts import WordSums, count_words, random_topics
from mixfold.models.topics.use import Complete

# steps of pLSI that other models begin with
START_STEPS = 30
# tokens added to each word of a topic meanwhile, so that none is impossible
START_SMOOTHING = 0.01
# relative changes of an objective that inner loops of documents leave open
INNER = 1e-5
# entries of topics beyond which more topics than tokens are refused: each array has 2 GB
MOST_IDLE_ENTRIES = 2**28

_METHODS = {"method": (rule.one_of(["completion", "bound"]),)}
_WORDS = {"n_words": (rule.integer(0),)}
_DRAWS = {"length": (rule.number(0),)}


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents to learn from, and what one pass over them tells before a model is made."""

    source: Source
    executor: Executor
    words: WordSums
    seed: int

    @property
    def n_tokens(self) -> float:
        return float(self.words.words.sum())


class TopicEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MixfoldEstimator):
    """Base of PLSI, LatentDirichletAllocation and PCP.

    They differ in ``fit``, in what is published of the parameters (``_publish_params``) and in how
    topics of new documents are inferred (``_make_shares_task``, ``_make_bounds_task``).
    """

    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_dtype", "_stream", "_schedule", "converged_",
        "stop_reason_", "n_iter_", "n_passes_", "lower_bound_", "lower_bounds_", "events_",
        "n_documents_", "n_tokens_",
    )  # fmt: skip

    # parameters that all of them have
    n_components: int
    tol: float
    max_iter: int
    random_state: Any
    verbose: int
    verbose_interval: int
    topics_: Array

    @abstractmethod
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the topics of documents."""

    @abstractmethod
    def _publish_params(self) -> None:
        """Set ``topics_``, ``components_`` and the like from ``_params``, after a fit or a load."""

    @abstractmethod
    def _make_shares_task(self, tol: float) -> Callable[[Block], Array]:
        """What gives the expected shares of topics (n, K) of a block; picklable."""

    @abstractmethod
    def _make_bounds_task(self) -> Callable[[Block], Array]:
        """What gives the log probability of each document, or a bound of it; picklable."""

    # ------------------------------------------------ results

    def _publish(self, result: Fit, corpus: Corpus, quiet: bool = False) -> None:
        """Set all that a fit leaves behind; ``quiet`` without warnings, for batches of a stream."""
        self.n_documents_, self.n_tokens_ = corpus.words.documents, corpus.n_tokens
        self._params = result.params
        self._dtype = corpus.source.dtype.name
        self._stream = (corpus.seed, 0)
        forget_stream(self)
        self._publish_params()
        publish_convergence(self, result)
        if not quiet:
            warn_about_fit(result, self.max_iter)

    # ------------------------------------------------ answers about documents

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def transform(self, X: Any) -> Array:
        """Expected shares of the topics in each document, (n_samples, n_components)."""
        check_is_fitted(self)
        return self._concatenate_rows(X, partial(_keep_dtype, self._make_shares_task(1e-5)))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, then transform the same documents."""
        return self.fit(X, y, sample_weight).transform(X)

    def score_samples(self, X: Any) -> Array:
        """Log probability of the words of each document in their order, or a lower bound of it."""
        check_is_fitted(self)
        return self._concatenate_rows(X, self._make_bounds_task())

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean of ``score_samples`` per token: minus the log of the perplexity by 'bound'."""
        total, tokens = self._sum_bounds(X, sample_weight)
        return total / tokens

    def perplexity(self, X: Any, method: str = "completion", sample_weight: Any = None,
                   random_state: Any = 0) -> float:  # fmt: skip
        """How many words the model hesitates between, on average: the lower the better.

        Parameters
        ----------
        X : as in ``fit``
        method : {'completion', 'bound'}, default='completion'
            'completion': half of the tokens of each document are shown, the other half is
            predicted: a fair comparison of any two models. 'bound': exp of minus the bound per
            token; the whole document is seen, and bounds of two kinds of models are not equally
            tight: do not compare them.
        sample_weight : as in ``fit``
        random_state : int, RandomState, Generator or None, default=0
            Which half is shown.

        Returns
        -------
        float
        """
        rule.check(type(self).__name__ + ".perplexity", {"method": method}, _METHODS)
        check_is_fitted(self)
        if method == "bound":
            total, tokens = self._sum_bounds(X, sample_weight)
            return float(np.exp(-total / tokens))
        source: Any = self._open(X, reset=False, weight=sample_weight)
        task = Complete(self._make_shares_task(1e-5), self.topics_, seed_from(random_state))
        found = self._executor(source).map_reduce(task, source)
        if found.tokens == 0:
            raise ValueError(
                "no document has two tokens, of which one could be predicted from the other"
            )
        return float(np.exp(-found.log_probability / found.tokens))

    def _sum_bounds(self, X: Any, weight: Any) -> tuple[float, float]:
        """Log probability of all documents, or a bound of it, and their tokens, by weight."""
        check_is_fitted(self)
        task = partial(_sum_block, self._make_bounds_task())
        parts = list(self._rows(X, task, weight=weight))
        total, tokens = np.sum(parts, axis=0)
        if tokens == 0:
            raise ValueError("X has no document with a word (and a positive weight)")
        return float(total), float(tokens)

    def top_words(self, n_words: int = 10, vocabulary: Any = None) -> list[list[Any]]:
        """The most probable words of each topic, most probable first.

        Parameters
        ----------
        n_words : int, default=10
        vocabulary : sequence of str, optional
            Names of the columns; None takes ``feature_names_in_``, or the numbers of the columns.
        """
        check_is_fitted(self)
        rule.check(type(self).__name__ + ".top_words", {"n_words": n_words}, _WORDS)
        names = self._name_words(vocabulary)
        order = np.argsort(-self.topics_, axis=1, kind="stable")[:, :n_words]
        return [[names[j] for j in row] for row in order]

    def _name_words(self, vocabulary: Any) -> list[Any]:
        """Names of the columns, for ``top_words`` and ``to_pyldavis``."""
        n = self.topics_.shape[1]
        if vocabulary is None:
            return list(getattr(self, "feature_names_in_", range(n)))
        names = list(vocabulary)
        if len(names) != n:
            raise ValueError(
                f"vocabulary must name the {n} columns of the fit; got {len(names)} names"
            )
        return names

    def to_pyldavis(self, X: Any, vocabulary: Any = None) -> dict[str, Any]:
        """Arguments of ``pyLDAvis.prepare``: ``pyLDAvis.prepare(**model.to_pyldavis(X, words))``.

        Documents and words that do not occur in X are left out, as pyLDAvis demands.
        """
        shares = self.transform(X)
        parts = list(self._rows(X, _count_margins))
        lengths = np.concatenate([rows for rows, _ in parts])
        words = np.sum([columns for _, columns in parts], axis=0)
        used, names = words > 0, self._name_words(vocabulary)
        if not used.any():
            raise ValueError("X has no document with a word")
        topics = self.topics_[:, used]
        absent = np.flatnonzero(topics.sum(axis=1) == 0)
        if absent.size:
            raise ValueError(
                f"no word of topic {absent[0]} occurs in X, so that it has no place in the map; "
                "give the documents of the fit"
            )
        return {
            "topic_term_dists": topics / topics.sum(axis=1, keepdims=True),
            "doc_topic_dists": shares[lengths > 0],
            "doc_lengths": lengths[lengths > 0],
            "vocab": [str(name) for name, one in zip(names, used, strict=True) if one],
            "term_frequency": words[used],
        }

    # ------------------------------------------------ files and scikit-learn

    def _check_state(self) -> None:
        topics = getattr(self._params, "topics", None)
        if isinstance(topics, np.ndarray) and topics.ndim and not topics.sum(axis=-1).all():
            raise ValueError("a topic has no words")
        self._publish_params()
        if self.topics_.shape != (self.n_components, self.n_features_in_):
            raise ValueError("parameters of another shape than the settings declare")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


# ------------------------------------------------ the steps of a fit


def look_at_documents(estimator: TopicEstimator, source: Source) -> Corpus:
    """Count the words of the documents; an error where there are none."""
    executor, seed = estimator._executor(source), seed_from(estimator.random_state)
    checkpoint = checkpoint_of(estimator)
    if checkpoint is not None:
        seed = checkpoint.seed(seed)
    words = executor.map_reduce(count_words, source)
    check_words(words, estimator.n_components)
    return Corpus(source, executor, words, seed)


def fit_documents(
    estimator: TopicEstimator, model: Any, corpus: Corpus, deadline: Deadline,
    pilot: Pilot | None = None, **settings: Any,
) -> Fit:  # fmt: skip
    """Fit a model by the engine, in what is left of the time budget.

    ``settings`` are those of the plan that differ from the parameters of the estimator; ``pilot``
    is a sample of the documents, if one was drawn.
    """
    plan = Plan(tol=estimator.tol, max_iter=estimator.max_iter, n_candidates=1,
                time_budget=deadline.seconds_left, seed=corpus.seed)  # fmt: skip
    result = loop.fit(
        model, corpus.source, corpus.executor, replace(plan, **settings), pilot=pilot,
        checkpoint=checkpoint_of(estimator),
        progress=Progress(int(estimator.verbose), estimator.verbose_interval),
    )  # fmt: skip
    return _drop_small_falls(result)


def stored_params(estimator: TopicEstimator) -> Any:
    """Parameters that the fit in ``checkpoint`` goes on with; None if there is nothing stored."""
    checkpoint = checkpoint_of(estimator)
    stored = None if checkpoint is None else checkpoint.read()
    return None if stored is None or stored.climb is None else stored.climb.params


def check_words(words: WordSums, n_components: int) -> None:
    """Raise if there is nothing to learn, warn if there is too little for so many topics."""
    if words.documents == 0:
        raise ValueError("X has no document with a word (and a positive weight)")
    if n_components > words.words.sum():
        if n_components * len(words.words) > MOST_IDLE_ENTRIES:
            raise ValueError(
                f"n_components={n_components} topics of {len(words.words)} words are more than the "
                f"{words.words.sum():g} tokens of all documents can tell apart, and than fit into "
                f"memory; choose n_components <= {max(1, int(words.words.sum()))}"
            )
        warn(
            f"n_components={n_components} topics are more than the "
            f"{words.words.sum():g} tokens of all documents",
            DegenerateWarning,
        )


def first_priors(
    n_components: int, topic_prior: str | float, word_prior: str | float
) -> tuple[Array, float]:
    """Where the concentrations of topics (K,) and of words begin: as given, or to be learned."""
    K = n_components
    prior = np.full(K, min(1.0, 5.0 / K) if isinstance(topic_prior, str) else float(topic_prior))
    return prior, 0.05 if isinstance(word_prior, str) else float(word_prior)


def start_by_plsi(
    corpus: Corpus, n_components: int, rng: np.random.Generator, deadline: Deadline,
    steps: int = START_STEPS,
) -> Array:  # fmt: skip
    """Probabilities of words (K, D): a few steps of pLSI from random topics."""
    topics = random_topics(corpus.words.words + START_SMOOTHING, n_components, rng)
    if steps == 0:
        return topics
    first = TopicParams(topics, np.zeros(n_components), START_SMOOTHING)
    plan = Plan(
        tol=0.0, max_iter=steps, n_candidates=1, seed=int(rng.integers(2**62)),
        time_budget=deadline.seconds_left,
    )  # fmt: skip
    started: TopicParams = loop.fit(PLSIModel(first), corpus.source, corpus.executor, plan).params
    return started.topics


def check_draws(model: Any, n_samples: Any, length: Any) -> None:
    """Whether ``sample`` can draw so many documents of such a length."""
    check_is_fitted(model)
    rule.check_count("n_samples", n_samples)
    rule.check(type(model).__name__ + ".sample", {"length": length}, _DRAWS)


# ------------------------------------------------ for plots and the command line


def topic_shares(model: Any) -> Array | None:
    """Shares of the topics in the tokens of the fit, (K,); None if no step of it was made.

    Posteriors of topics are counts of tokens on top of a prior. Topics by maximum likelihood are
    probabilities only: the shares are kept beside them.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import LatentDirichletAllocation
    >>> X = np.array([[4, 4, 0, 0]] * 40 + [[0, 0, 4, 4]] * 10)
    >>> model = LatentDirichletAllocation(2, random_state=0).fit(X)
    >>> np.sort(topic_shares(model)).round(1)
    array([0.2, 0.8])
    """
    prior = getattr(model, "topic_word_prior_", None)
    if prior is None:
        return getattr(model, "topic_shares_", None)
    tokens = np.maximum(model.components_ - prior, 0.0).sum(axis=1)
    total = tokens.sum()
    return np.asarray(tokens / total) if total > 0 else np.full(len(tokens), 1.0 / len(tokens))


def _drop_small_falls(result: Fit) -> Fit:
    """Without falls that inner loops explain: they end when a document hardly moves any more."""
    trace = np.asarray(result.trace)
    falls = np.maximum(trace[:-1] - trace[1:], 0.0)
    if (falls > INNER * (1.0 + np.abs(trace[:-1]))).any():
        return result
    return replace(result, events=tuple(e for e in result.events if e.kind != "fall"))


def _keep_dtype(task: Callable[[Block], Array], block: Block) -> Array:
    return match_dtype(task(block), block)


def _sum_block(bounds: Callable[[Block], Array], block: Block) -> Array:
    counts = counts_of(block)
    return np.array([counts.weight @ bounds(block), counts.weight @ counts.lengths])


def _count_margins(block: Block) -> tuple[Array, Array]:
    """Tokens of each document and of each word."""
    counts = counts_of(block)
    return counts.lengths, np.asarray(counts.matrix.sum(axis=0), np.float64).ravel()
