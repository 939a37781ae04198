"""Documents clustered in several ways, and how well that agrees with their classes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

import mixfold
from mixfold.contracts import Array

NMF, MEANS, MEAN_FIELD, PCP = "NMF", "LDA + k-means", "PCP mean field", "PCP"
UNIGRAMS, ALONE = "unigrams", "unigrams alone"
METHODS = (NMF, MEANS, MEAN_FIELD, PCP, UNIGRAMS, ALONE)
# those whose clusters do not depend on a number of topics besides
WITHOUT_TOPICS = (NMF, ALONE)
# tokens added to each word of a cluster, and documents shared by all clusters
SMOOTHING, EXTRA = 1.0, 1.0
STEPS, STOP = 500, 1e-7
# the case study: topics, clusters to begin with
CASE = (50, 20)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Agreement with the classes, and the objective by which starts are compared."""

    nmi: float
    objective: float


@dataclass(frozen=True, slots=True)
class Case:
    """Documents by cluster (N, M), largest cluster first, and the words of its main topics."""

    memberships: Array
    words: tuple[tuple[str, ...], ...]


def agreement(y: Array, labels: Array) -> float:
    """Mutual information over the larger of the two entropies."""
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(y, labels, average_method="max"))


def outcomes(X: Any, y: Array, n_topics: int, seed: int) -> Iterator[tuple[str, Outcome]]:
    """All methods with topics; the mixture of unigrams begins with the clusters by k-means."""
    n_clusters = len(np.unique(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a limit of steps is near enough
        lda = mixfold.LatentDirichletAllocation(n_topics, random_state=seed).fit(X)
        labels = by_topics(lda.transform(X), n_clusters, seed)
        yield MEANS, Outcome(agreement(y, labels), lda.lower_bound_)
        for name, inference in ((MEAN_FIELD, "mean_field"), (PCP, "structured")):
            model = mixfold.PCP(n_topics, n_clusters, inference=inference, random_state=seed).fit(X)
            yield name, Outcome(agreement(y, model.labels_), model.lower_bound_)
    memberships, objective = unigrams(X, labels, n_clusters)
    yield UNIGRAMS, Outcome(agreement(y, memberships.argmax(axis=1)), objective)


def topicless(X: Any, y: Array, seed: int) -> Iterator[tuple[str, Outcome]]:
    """Methods that have a number of clusters only."""
    n_clusters = len(np.unique(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nmf = mixfold.PLSI(n_clusters, random_state=seed).fit(X)
        shares = nmf.transform(X)
        yield NMF, Outcome(agreement(y, shares.argmax(axis=1)), nmf.lower_bound_)
        alone = mixfold.MultinomialMixture(n_clusters, prior="default", random_state=seed).fit(X)
    yield ALONE, Outcome(agreement(y, alone.predict(X)), alone.lower_bound_)


def by_topics(shares: Array, n_clusters: int, seed: int) -> Array:
    """k-means of the roots of shares, which is Hellinger's distance; the best of ten starts."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "openmp"):  # so few columns: threads would wait for each other
        found: Array = KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(np.sqrt(shares))
    return found


def unigrams(X: Any, labels: Array, n_clusters: int) -> tuple[Array, float]:
    """Memberships and penalised log-likelihood of a mixture of unigrams, by EM from labels."""
    R = np.eye(n_clusters)[labels]
    objective = -np.inf
    for _ in range(STEPS):
        words = np.asarray(X.T @ R) + SMOOTHING
        words /= words.sum(axis=0)
        weights = (R.sum(axis=0) + EXTRA / n_clusters) / (len(R) + EXTRA)
        scores = np.asarray(X @ np.log(words)) + np.log(weights)
        each = logsumexp(scores, axis=1, keepdims=True)
        before, objective = objective, float(each.sum() + SMOOTHING * np.log(words).sum())
        objective += EXTRA / n_clusters * float(np.log(weights).sum())
        R = np.exp(scores - each)
        if objective - before < STOP * abs(objective):
            break
    return R, objective


# ------------------------------------------------ the case study


def case_study(X: Any, words: tuple[str, ...], seed: int, n_words: int = 5) -> Case:
    """Many clusters to begin with; the documents say how many they need."""
    n_topics, n_clusters = CASE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mixfold.PCP(
            n_topics, n_clusters, cluster_topic_prior=1.0 / n_topics, random_state=seed
        ).fit(X)
    memberships = model.predict_proba(X)
    order = np.argsort(-memberships.sum(axis=0), kind="stable")
    top = model.top_words(n_words, list(words))
    main = model.cluster_topics_[order].argmax(axis=1)
    return Case(memberships[:, order], tuple(tuple(top[k]) for k in main))
