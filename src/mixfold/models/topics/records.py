"""Parameters of topic models, and what is summed over documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, NotNegative, Stats, record

# What sums of counts and their logarithms can be computed with: more is no number of words.
LARGEST_COUNT, SHORTEST_DOCUMENT = 1e30, 1e-100
# of one document, times its weight: ln Gamma of sums of them is still a number
MOST_TOKENS = 1e40
# Shares of words below 1e-300 underflow. A smaller count is none: it says nothing of a document,
# whose counts sum to far more, and a word of which all topics lose sight would be impossible.
SMALLEST_COUNT = 1e-200


@record
@dataclass(frozen=True, slots=True)
class TopicParams:
    """Topics (K, D), the prior of a document (K,), and the smoothing of the topics.

    LDA: topics are the parameters of a Dirichlet posterior, the others those of Dirichlet priors.
    pLSI: topics are probabilities; prior and smoothing are tokens added to each topic of a
    document and to each word of a topic; ``shares`` (K,) of the topics in the tokens that they were
    learned from, None for those of a start.
    """

    topics: NotNegative
    prior: NotNegative
    smoothing: float
    shares: Array | None = None


@record
@dataclass(frozen=True)
class TopicSums(Stats):
    """``words`` (D, K): tokens of each word by topic; ``logs`` (K + 1,): sums over documents of
    psi(gamma_k) and, last, of psi(sum gamma). ``documents`` and ``tokens`` are weights, ``sweeps``
    counts the inner steps."""

    words: Array
    logs: Array
    bound: float
    documents: float
    tokens: float
    sweeps: float


@dataclass(frozen=True, slots=True)
class Counts:
    """The documents of a block: CSR parts, weights, lengths. No entry is negative or missing."""

    indptr: Array
    indices: Array
    data: Array
    weight: Array
    lengths: Array
    matrix: Any


def _refuse(X: Any, data: Array, start: int) -> None:
    """Say which entry is no count, and what to do."""
    missing, negative = np.isnan(data), data < 0
    large = data > LARGEST_COUNT
    wrong = missing if missing.any() else negative if negative.any() else large
    first = int(np.argmax(wrong))
    row = start + int(np.searchsorted(X.indptr, first, side="right")) - 1
    where = f"row {row}, column {X.indices[first]} (both counted from 0)"
    if missing.any():
        raise ValueError(
            f"X lacks the entry (NaN) of {where}; counts must be complete: put 0 where a word does "
            "not occur"
        )
    if negative.any():
        raise ValueError(
            f"Negative values in data: X holds {data[first]:g} in {where}; counts are 0 or more"
        )
    raise ValueError(
        f"X holds {data[first]:g} in {where}; counts are finite and at most {LARGEST_COUNT:g}. "
        "Divide X by a constant, or put 0 if the entry is a mistake"
    )


def counts_of(block: Block) -> Counts:
    """A block of counts; what is not a count is an error."""
    X = block.X if sparse.issparse(block.X) else sparse.csr_array(block.X)
    data = np.asarray(X.data, np.float64)
    if not ((data >= 0) & (data <= LARGEST_COUNT)).all():
        _refuse(X, data, block.start)
    lengths = np.asarray(X.sum(axis=1), np.float64).ravel()
    short = (lengths > 0) & (lengths < SHORTEST_DOCUMENT)
    if short.any():
        row = int(np.argmax(short))
        raise ValueError(
            f"the counts of row {block.start + row} (from 0) sum to {lengths[row]:g}; a document "
            f"that is not empty must have at least {SHORTEST_DOCUMENT:g}. Multiply X by a constant"
        )
    small = (data > 0) & (data < SMALLEST_COUNT)
    if small.any():
        data = np.where(small, 0.0, data)
        X = type(X)((data, X.indices, X.indptr), shape=X.shape)
    weight = block.weights() * (lengths > 0)
    with np.errstate(over="ignore"):
        tokens = weight * lengths
    if tokens.max(initial=0.0) > MOST_TOKENS:
        row = int(np.argmax(tokens))
        raise ValueError(
            f"row {block.start + row} (from 0) counts for {tokens[row]:g} tokens (its "
            f"sample_weight of {weight[row]:g} times the sum of its counts), and the most is "
            f"{MOST_TOKENS:g}. Divide sample_weight or X by a constant"
        )
    return Counts(X.indptr, X.indices, data, weight, lengths, X)
