"""Corpora for topic models: drawn ones, halves of documents, and a Parquet file of documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

from bench.problems import Array

# concentrations of topics in documents, and of words in topics: with many more words to a topic
# nothing can be learned from so few tokens, and no time to a perplexity means anything
SHARES, WORDS = 0.05, 0.02


def drawn(n: int, n_words: int, n_topics: int, length: float, seed: int = 0) -> tuple[Any, float]:
    """Documents of LDA with Poisson lengths (CSR), and the perplexity of what they come from."""
    rng = np.random.default_rng([seed, n, n_words])
    topics = rng.dirichlet(np.full(n_words, WORDS), n_topics)
    shares = rng.dirichlet(np.full(n_topics, SHARES), n)
    rows, total = [], 0.0
    for each, size in zip(shares, rng.poisson(length, n), strict=True):
        law = each @ topics
        row = rng.multinomial(size, law / law.sum())
        used = np.flatnonzero(row)
        total += float(row[used] @ np.log(law[used]))
        rows.append(sparse.csr_array(row[None].astype(float)))
    X = sparse.csr_array(sparse.vstack(rows))
    return X, float(np.exp(-total / X.sum()))


def halves(X: Any, seed: int = 0) -> tuple[Any, Any]:
    """The tokens of each document in two halves, drawn without replacement."""
    rng = np.random.default_rng(seed)
    X = sparse.csr_array(X)
    first = np.empty(X.nnz)
    for i in range(X.shape[0]):
        row = slice(X.indptr[i], X.indptr[i + 1])
        counts = X.data[row].astype(np.int64)
        first[row] = rng.multivariate_hypergeometric(counts, counts.sum() // 2, method="marginals")
    # each with places of its own, since those of zeros are taken out
    parts = [
        sparse.csr_array((d, X.indices.copy(), X.indptr.copy()), shape=X.shape)
        for d in (first, X.data - first)
    ]
    for part in parts:
        part.eliminate_zeros()
    return parts[0], parts[1]


def completion(shares: Array, topics: Array, asked: Any) -> float:
    """Perplexity of the tokens asked for; the same code for every library."""
    asked = sparse.coo_array(asked)
    total = 0.0
    for part in np.array_split(np.arange(asked.nnz), max(1, asked.nnz // 20_000)):
        rows, words = asked.row[part], asked.col[part]
        law = np.einsum("nk,nk->n", shares[rows], topics.T[words])
        total += float(asked.data[part] @ np.log(law))
    return float(np.exp(-total / asked.sum()))


def unigram(train: Any, asked: Any) -> float:
    words = np.asarray(train.sum(axis=0), float).ravel() + 0.1
    return float(np.exp(-(asked @ np.log(words / words.sum())).sum() / asked.sum()))


# ------------------------------------------------ a file of documents


def write_parquet(path: Path, X: Any, group: int) -> None:
    """A row for each document: lists of its words (columns of X) and of their counts."""
    X = sparse.csr_array(X)
    schema = pa.schema([("words", pa.list_(pa.int32())), ("counts", pa.list_(pa.float32()))])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, X.shape[0], group):
            part = X[start : start + group]
            ends = pa.array(part.indptr.astype(np.int32))
            columns = [
                pa.ListArray.from_arrays(ends, pa.array(part.indices.astype(np.int32))),
                pa.ListArray.from_arrays(ends, pa.array(part.data.astype(np.float32))),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=group)


def read_batches(path: str, n_words: int, size: int) -> Iterator[Any]:
    """The documents of such a file as CSR, so many at a time."""
    for batch in pq.ParquetFile(path).iter_batches(batch_size=size):
        words, counts = batch.column("words"), batch.column("counts")
        ends = words.offsets.to_numpy() - words.offsets[0].as_py()
        parts = (counts.flatten().to_numpy(), words.flatten().to_numpy(), ends)
        yield sparse.csr_array(parts, shape=(batch.num_rows, n_words))
