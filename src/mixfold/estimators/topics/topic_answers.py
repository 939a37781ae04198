"""What is asked of a topic model besides shares of topics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block
from mixfold.engine.random import seed_from
from mixfold.estimators.shell import constraints as rule
from mixfold.models.topics.records import counts_of
from mixfold.models.topics.use import Complete

_METHODS = {"method": (rule.one_of(["completion", "bound"]),)}
_WORDS = {"n_words": (rule.integer(0),)}
_DRAWS = {"length": (rule.number(0),)}


class TopicAnswers:
    """Perplexities, words and draws; needs ``topics_``, ``_shares`` and ``_bounds``."""

    topics_: Array

    def score_samples(self, X: Any) -> Array:
        """Log probability of the words of each document in their order, or a lower bound of it."""
        check_is_fitted(self)
        return self._stacked(X, self._bounds())  # type: ignore[attr-defined]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean of ``score_samples`` per token: minus the log of the perplexity by 'bound'."""
        total, tokens = self._bound_totals(X, sample_weight)
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
            total, tokens = self._bound_totals(X, sample_weight)
            return float(np.exp(-total / tokens))
        source: Any = self._open(X, reset=False, weight=sample_weight)  # type: ignore[attr-defined]
        task = Complete(self._shares(1e-5), self.topics_, seed_from(random_state))  # type: ignore[attr-defined]
        found = self._executor(source).map_reduce(task, source)  # type: ignore[attr-defined]
        if found.tokens == 0:
            raise ValueError(
                "no document has two tokens, of which one could be predicted from the other"
            )
        return float(np.exp(-found.log_probability / found.tokens))

    def _bound_totals(self, X: Any, weight: Any) -> tuple[float, float]:
        check_is_fitted(self)
        task = partial(_totals, self._bounds())  # type: ignore[attr-defined]
        parts = list(self._rows(X, task, weight=weight))  # type: ignore[attr-defined]
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
        names = self._names(vocabulary)
        order = np.argsort(-self.topics_, axis=1, kind="stable")[:, :n_words]
        return [[names[j] for j in row] for row in order]

    def _names(self, vocabulary: Any) -> list[Any]:
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
        shares = self.transform(X)  # type: ignore[attr-defined]
        parts = list(self._rows(X, _margins))  # type: ignore[attr-defined]
        lengths = np.concatenate([rows for rows, _ in parts])
        words = np.sum([columns for _, columns in parts], axis=0)
        used, names = words > 0, self._names(vocabulary)
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


def check_draws(model: Any, n_samples: Any, length: Any) -> None:
    """Whether ``sample`` can draw so many documents of such a length."""
    check_is_fitted(model)
    rule.check_count("n_samples", n_samples)
    rule.check(type(model).__name__ + ".sample", {"length": length}, _DRAWS)


def _totals(bounds: Callable[[Block], Array], block: Block) -> Array:
    counts = counts_of(block)
    return np.array([counts.weight @ bounds(block), counts.weight @ counts.lengths])


def _margins(block: Block) -> tuple[Array, Array]:
    counts = counts_of(block)
    return counts.lengths, np.asarray(counts.matrix.sum(axis=0), np.float64).ravel()
