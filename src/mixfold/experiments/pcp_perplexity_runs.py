"""Perplexities of unseen documents under pLSI, LDA and PCP, each as the source asks for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

import mixfold
from mixfold.contracts import Array

PLSI, LDA, PCP = "pLSI", "LDA", "PCP"
METHODS = (PLSI, LDA, PCP)
# tokens added to each word of a topic of pLSI, and to each word of the unigram
SMOOTHING = 0.1
# the source ends a fit when a step gains less than this share; pLSI is tried for so many steps
STOP, STEPS = 1e-4, 200
# documents whose words are compared at a time
PANEL = 256


@dataclass(frozen=True, slots=True)
class Outcome:
    """Perplexities by the source's protocol and by completion; clusters that PCP has left."""

    whole: float
    completion: float
    clusters: int | None = None


def unigram(train: Any, test: Any) -> float:
    """Perplexity of the frequencies of words, which know nothing about a document."""
    words = np.asarray(train.sum(axis=0), float).ravel() + SMOOTHING
    return _perplexity(test @ np.log(words / words.sum()), test)


def measured(method: str, train: Any, test: Any, n_topics: int, seed: int) -> Outcome:
    """Fit to the training documents, ask about the others; the seed is of the halves, too."""
    return _MEASURES[method](train, test, n_topics, seed)


def _plsi(train: Any, test: Any, n_topics: int, seed: int) -> Outcome:
    """Ended as in the source: with all steps its topics are better than that."""
    settings: dict[str, Any] = {"smoothing": SMOOTHING, "tol": 0.0, "random_state": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged is meant
        found = mixfold.PLSI(n_topics, max_iter=STEPS, **settings).fit(train)
        steps = stopped(found.lower_bounds_)
        if steps < STEPS:
            found = mixfold.PLSI(n_topics, max_iter=steps, **settings).fit(train)
    return Outcome(averaged(found, train, test), found.perplexity(test, random_state=seed))


def stopped(bounds: Any) -> int:
    """Steps until one gains less than 0.01 %; all of them if each gains more.

    Examples
    --------
    >>> stopped([-8.0, -7.0, -6.9, -6.8999, -6.5])
    4
    """
    values = np.asarray(bounds, float)
    small = np.diff(values) < STOP * np.abs(values[:-1])
    return int(small.argmax()) + 2 if small.any() else len(values)


def averaged(model: Any, train: Any, test: Any) -> float:
    """Perplexity of pLSI: a new document has the topics of a training document, drawn by length."""
    lengths = np.asarray(train.sum(axis=1), float).ravel()
    used = np.flatnonzero(lengths)
    shares = model.transform(train[used])
    log_weights = np.log(lengths[used] / lengths.sum())
    scores = [
        test @ np.log(shares[rows] @ model.topics_).T + log_weights[rows]
        for rows in _panels(len(used))
    ]
    return _perplexity(logsumexp(np.hstack(scores), axis=1), test)


def _panels(n: int) -> Iterator[slice]:
    return (slice(i, min(i + PANEL, n)) for i in range(0, n, PANEL))


def _lda(train: Any, test: Any, n_topics: int, seed: int) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a limit of passes is near enough
        model = mixfold.LatentDirichletAllocation(n_topics, random_state=seed).fit(train)
    return Outcome(model.perplexity(test, "bound"), model.perplexity(test, random_state=seed))


def _pcp(train: Any, test: Any, n_topics: int, seed: int) -> Outcome:
    """A cluster for each training document to begin with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mixfold.PCP(n_topics, "documents", random_state=seed).fit(train)
    return Outcome(
        model.perplexity(test, "bound"),
        model.perplexity(test, random_state=seed),
        model.n_clusters_,
    )


_MEASURES: dict[str, Callable[[Any, Any, int, int], Outcome]] = {PLSI: _plsi, LDA: _lda, PCP: _pcp}


def _perplexity(logs: Array, X: Any) -> float:
    return float(np.exp(-np.sum(logs) / X.sum()))
