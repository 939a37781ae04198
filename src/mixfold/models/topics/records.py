"""Parameters of topic models, and what is summed over documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Stats, record


@record
@dataclass(frozen=True, slots=True)
class TopicParams:
    """Topics (K, D), the prior of a document (K,), and the smoothing of the topics.

    LDA: topics are the parameters of a Dirichlet posterior, the others those of Dirichlet priors.
    pLSI: topics are probabilities; prior and smoothing are tokens added to each topic of a
    document and to each word of a topic.
    """

    topics: Array
    prior: Array
    smoothing: float


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


def counts_of(block: Block) -> Counts:
    """A block of counts; what is not a count is an error."""
    X = block.X if sparse.issparse(block.X) else sparse.csr_array(block.X)
    data = np.asarray(X.data, np.float64)
    if not block.complete or np.isnan(data).any():
        raise ValueError(
            f"rows {block.rows.start} to {block.rows.stop - 1} of X lack entries (NaN); counts "
            "must be complete: put 0 where a word does not occur"
        )
    if (data < 0).any():
        raise ValueError(
            f"Negative values in data: X holds {data.min():g} in rows {block.rows.start} to "
            f"{block.rows.stop - 1}; counts are 0 or more"
        )
    lengths = np.asarray(X.sum(axis=1), np.float64).ravel()
    return Counts(X.indptr, X.indices, data, block.weights() * (lengths > 0), lengths, X)
