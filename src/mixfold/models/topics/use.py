"""What is asked of topics once they are known: shares, scores, halves of documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Stats
from mixfold.models.topics.records import counts_of

# tokens of a document from which numpy draws
_MOST_DRAWN = 1e9


@dataclass(frozen=True)
class Completed(Stats):
    """Log probability and number of the tokens that were predicted, and documents left out."""

    log_probability: float
    tokens: float
    skipped: float


def split_documents(block: Block, seed: int) -> tuple[Any, Any]:
    """The tokens of each document in two halves, drawn without replacement.

    The draw of a document depends on the seed and on its number among all, not on blocks. Counts
    that are not whole, or so many that chance does not matter, are halved as they are.
    """
    X = sparse.csr_array(counts_of(block).matrix)
    first = np.empty(X.nnz)
    for i in range(X.shape[0]):
        row = slice(X.indptr[i], X.indptr[i + 1])
        rng = np.random.default_rng([seed % 2**63, block.start + i])
        first[row] = _half(X.data[row], rng)
    one = sparse.csr_array((first, X.indices, X.indptr), shape=X.shape)
    other = sparse.csr_array((X.data - first, X.indices, X.indptr), shape=X.shape)
    return one, other


def _half(counts: Array, rng: np.random.Generator) -> Array:
    whole = np.rint(counts)
    if not np.array_equal(whole, counts) or whole.sum() >= _MOST_DRAWN:
        return np.asarray(counts / 2)
    colors = whole.astype(np.int64)
    total = int(colors.sum())
    if total == 0:
        return np.zeros(len(counts))
    return rng.multivariate_hypergeometric(colors, total // 2, method="marginals").astype(float)


@dataclass(frozen=True, slots=True)
class Complete:
    """Predict the second half of each document from its first; picklable.

    ``shares`` gives the expected shares of topics (n, K) of the documents of a block.
    """

    shares: Callable[[Block], Array]
    topics: Array
    seed: int

    def __call__(self, block: Block) -> Completed:
        given, asked = split_documents(block, self.seed)
        lengths = np.asarray(given.sum(axis=1)).ravel()
        weight = block.weights() * (lengths > 0)
        theta = self.shares(replace(block, X=given))
        total = tokens = 0.0
        for i in np.flatnonzero(weight):
            row = slice(asked.indptr[i], asked.indptr[i + 1])
            p = theta[i] @ self.topics[:, asked.indices[row]]
            x = asked.data[row] * weight[i]
            with np.errstate(divide="ignore"):
                total += float(x[x > 0] @ np.log(p[x > 0]))
            tokens += float(x.sum())
        return Completed(total, tokens, float((lengths == 0).sum()))
