"""What the workers do for topic models: fits, passes, a stream, each with its clocks."""

from __future__ import annotations

import gc
import importlib.util
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from bench import peak
from bench.problems import Array
from bench.topic_data import completion, read_batches

LIBRARIES = ("mixfold", "scikit-learn", "gensim", "tomotopy")
# passes after which scikit-learn looks whether it has converged
LOOK = 10
# passes that are tried, in this order, until the perplexity is reached
PASSES = (1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 30, 40, 60, 80, 100)


def installed(library: str) -> bool:
    return importlib.util.find_spec({"scikit-learn": "sklearn"}.get(library, library)) is not None


def load(path: str) -> Any:
    return sparse.csr_array(sparse.load_npz(path))


def converged(
    threads: int | None, train: str, given: str, asked: str, n_topics: int, most: int
) -> dict[str, float]:
    """scikit-learn's batch LDA until it finds that it has converged.

    Every tenth pass it looks at its perplexity of the training documents, and ends when that has
    fallen by less than 0.1 (its default). What looking takes is measured apart and not counted.
    """
    X = load(train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _peer(2, 2, threads).fit(X[:50])
        model = _peer(n_topics, most, threads).set_params(evaluate_every=LOOK)
        clocks = np.array(timed(lambda: model.fit(X)))
        clocks -= model.n_iter_ // LOOK * np.array(timed(lambda: model.perplexity(X)))
    shares = model.transform(load(given))
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    return {"cpu": float(clocks[0]), "wall": float(clocks[1]), "passes": model.n_iter_,
            "perplexity": completion(shares, topics, load(asked))}  # fmt: skip


def _peer(n_topics: int, passes: int, threads: int | None) -> Any:
    from sklearn.decomposition import LatentDirichletAllocation

    return LatentDirichletAllocation(
        n_topics, learning_method="batch", max_iter=passes, random_state=0,
        n_jobs=-1 if threads is None else threads,
    )  # fmt: skip


def until(
    threads: int | None, train: str, given: str, asked: str, n_topics: int, target: float,
    repeats: int,
) -> dict[str, float]:  # fmt: skip
    """Whole fits of ours with more and more passes; clocks of the first that is good enough.

    The start counts. If none is good enough the last one is told, and its perplexity says so.
    """
    X, shown, hidden = load(train), load(given), load(asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _own(2, 2, threads).fit(X[:50]).transform(shown[:5])
        for passes in PASSES:
            model = _own(n_topics, passes, threads)
            cpu, wall = timed(lambda model=model: model.fit(X))  # type: ignore[misc]
            reached = completion(model.transform(shown), model.topics_, hidden)
            if reached <= target:
                break
        for _ in range(repeats - 1):
            again = timed(lambda: model.fit(X))
            cpu, wall = min(cpu, again[0]), min(wall, again[1])
    return {"cpu": cpu, "wall": wall, "passes": passes, "perplexity": reached}


def _own(n_topics: int, passes: int, threads: int | None) -> Any:
    from mixfold import LatentDirichletAllocation

    return LatentDirichletAllocation(
        n_topics, max_iter=passes, tol=0.0, random_state=0, n_jobs=threads
    )


def timed(task: Callable[[], Any]) -> tuple[float, float]:
    """CPU and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    task()
    return time.process_time() - cpu, time.perf_counter() - wall


# ------------------------------------------------ passes


def per_pass(
    threads: int | None, library: str, train: str, n_topics: int, steps: int, repeats: int
) -> dict[str, float] | None:
    """(time of 1 + n passes - time of 1) / n, in CPU and wall seconds; None: not installed."""
    if not installed(library.split(":")[0]):
        return None
    X, fit = load(train), _FITS[library]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(X[:50], 2, 2, threads)()
        clocks = {
            n: np.min([timed(fit(X, n_topics, n, threads)) for _ in range(repeats)], axis=0)
            for n in (1, 1 + steps)
        }
    cpu, wall = (clocks[1 + steps] - clocks[1]) / steps
    return {"cpu": float(cpu), "wall": float(wall)}


def _fit_own(X: Any, n_topics: int, passes: int, threads: int | None) -> Callable[[], Any]:
    return lambda: _own(n_topics, passes, threads).fit(X)


def _fit_peer(X: Any, n_topics: int, passes: int, threads: int | None) -> Callable[[], Any]:
    return lambda: _peer(n_topics, passes, threads).fit(X)


def _fit_pcp(X: Any, n_topics: int, passes: int, threads: int | None) -> Callable[[], Any]:
    from mixfold import PCP

    clusters = min(100, X.shape[0])
    return lambda: PCP(
        n_topics,
        clusters,
        document_concentration=None,
        max_iter=passes,
        tol=0.0,
        random_state=0,
        n_jobs=threads,
    ).fit(X)


def _fit_gensim(X: Any, n_topics: int, passes: int, threads: int | None) -> Callable[[], Any]:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    corpus = list(Sparse2Corpus(sparse.csc_matrix(X.T)))
    words = {j: str(j) for j in range(X.shape[1])}
    return lambda: LdaModel(
        corpus, num_topics=n_topics, id2word=words, passes=passes, random_state=0,
        eval_every=None, update_every=0,
    )  # fmt: skip


def _fit_tomotopy(X: Any, n_topics: int, passes: int, threads: int | None) -> Callable[[], Any]:
    import tomotopy

    documents = [
        [str(j) for j in np.repeat(row.indices, row.data.astype(int))]
        for row in (X[[i]] for i in range(X.shape[0]))
    ]

    def run() -> None:
        model = tomotopy.LDAModel(k=n_topics, seed=1)
        for document in documents:
            model.add_doc(document)
        model.train(passes, workers=threads or 0)

    return run


_FITS: dict[str, Callable[[Any, int, int, int | None], Callable[[], Any]]] = {
    "mixfold": _fit_own,
    "scikit-learn": _fit_peer,
    "gensim": _fit_gensim,
    "tomotopy": _fit_tomotopy,
    "mixfold:PCP": _fit_pcp,
}


# ------------------------------------------------ a stream


def stream(
    threads: int | None, path: str, n_words: int, n_topics: int, batch: int, total: int,
    given: str, asked: str,
) -> dict[str, float]:  # fmt: skip
    """One pass over a Parquet file by ``partial_fit``: MB above the start of the work, seconds.

    A fit of a few documents comes first: what importing and compiling take is told apart.
    """
    from mixfold import LatentDirichletAllocation

    settings: dict[str, Any] = {"random_state": 0, "n_jobs": threads}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few = LatentDirichletAllocation(2, total_samples=50, **settings)
        few.partial_fit(next(read_batches(path, n_words, 50)))
        del few
        gc.collect()
        peak.forget()
        before = peak.now()
        model = LatentDirichletAllocation(n_topics, total_samples=total, **settings)

        def learn() -> None:
            for X in read_batches(path, n_words, batch):
                model.partial_fit(X)

        cpu, wall = timed(learn)
        used, whole = peak.peak() - before, peak.peak()
    shares: Array = model.transform(load(given))
    return {"cpu": cpu, "wall": wall, "peak": used / 1e6, "whole": whole / 1e6,
            "perplexity": completion(shares, model.topics_, load(asked))}  # fmt: skip
