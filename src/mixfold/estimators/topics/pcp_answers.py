"""What is asked of clusters of documents and topics of words, once they are known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block
from mixfold.engine.random import seed_from
from mixfold.estimators.topics.topic_answers import check_draws
from mixfold.math.softmax import normalise
from mixfold.models.topics.pcp_records import PCPParams, PCPReading, plug_in_reading
from mixfold.models.topics.pcp_structured import scores
from mixfold.models.topics.records import counts_of


class PCPAnswers:
    """Memberships, topics, probabilities and draws, all with posterior means plugged in."""

    _params: PCPParams
    topics_: Array

    def _publish_params(self) -> None:
        super()._publish_params()  # type: ignore[misc]
        params = self._params
        self.weights_ = params.weights / params.weights.sum()
        self.cluster_topics_ = params.centres / params.centres.sum(axis=1, keepdims=True)
        self.n_clusters_ = len(params.weights)
        self.cluster_topic_prior_ = params.words.prior
        self.topic_word_prior_ = params.words.smoothing

    def _topics(self) -> Array:
        topics = self._params.words.topics
        return np.asarray(topics / topics.sum(axis=1, keepdims=True))

    def _published_components(self) -> Array:
        return self._params.words.topics

    def _reading(self) -> PCPReading:
        return plug_in_reading(self._params).with_tables()

    def _shares(self, tol: float) -> Callable[[Block], Array]:
        return partial(_expected_topics, self._reading())

    def _bounds(self) -> Callable[[Block], Array]:
        return partial(_log_predictive, self._reading())

    def predict(self, X: Any) -> Array:
        """The most probable cluster of each document."""
        check_is_fitted(self)
        return self._stacked(X, partial(labels, self._reading()))  # type: ignore[attr-defined]

    def predict_proba(self, X: Any) -> Array:
        """Probability of each cluster given the document, (n_samples, n_clusters_)."""
        check_is_fitted(self)
        return self._stacked(X, partial(_memberships, self._reading()))  # type: ignore[attr-defined]

    def sample(
        self, n_samples: int = 1, length: float = 100, random_state: Any = None
    ) -> tuple[Array, Array]:
        """Draw documents with a Poisson number of tokens.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Counts.
        clusters : ndarray of shape (n_samples,)
        """
        check_draws(self, n_samples, length)
        rng = np.random.default_rng(seed_from(random_state) % 2**63)
        clusters = rng.choice(self.n_clusters_, n_samples, p=self.weights_)
        words = self.cluster_topics_ @ self.topics_
        lengths = rng.poisson(length, n_samples)
        drawn = [rng.multinomial(n, words[c]) for n, c in zip(lengths, clusters, strict=True)]
        return np.array(drawn), clusters

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        # for checks that read predict_proba
        tags.classifier_tags = ClassifierTags(multi_class=self.n_clusters != 2)  # type: ignore[attr-defined]
        return tags


def labels(reading: PCPReading, block: Block) -> Array:
    """The most probable cluster of each document of a block."""
    return np.argmax(scores(reading, counts_of(block).matrix), axis=1)


def _memberships(reading: PCPReading, block: Block) -> Array:
    return normalise(scores(reading, counts_of(block).matrix))[1]


def _expected_topics(reading: PCPReading, block: Block) -> Array:
    return np.asarray(_memberships(reading, block) @ reading.shares)


def _log_predictive(reading: PCPReading, block: Block) -> Array:
    logs = normalise(scores(reading, counts_of(block).matrix))[0]
    return np.asarray(logs)
