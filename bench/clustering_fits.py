"""The methods that cluster labelled tables, and the stages of the comparison, one table at a time.

Each stage can be called by itself, on any tables::

    from bench.clustering_data import DRAWN, draw
    from bench.clustering_fits import likelihoods, partitions_given

    partitions_given([draw(name) for name in DRAWN], seeds=(0,), methods=("mixfold",))
    likelihoods([draw("bent/rings")], seeds=(0, 1))

CPU seconds are those of the process: start it with a single thread, as ``bench.jobs`` does.
"""

from __future__ import annotations

import importlib.util
import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.clustering_data import NOISE, Labelled, draw, load, n_clusters
from bench.clustering_scores import best, scores
from bench.problems import Array

SEEDS = (0, 1, 2)
FOLLOW = {"tol": 1e-9, "max_iter": 20_000}  # how another library's solution is followed to its end
DEGENERATE = ("floor", "drop")  # events of a component without a variance or rows of its own


@dataclass(frozen=True)
class Partition:
    labels: Array
    log_likelihood: float | None = None  # mean of the rows

    @property
    def n_clusters(self) -> int:
        return len(np.unique(self.labels))


Fit = Callable[[Array, int, int], Partition]  # rows, clusters (not used if unknown), seed


@dataclass(frozen=True)
class Method:
    fit: Fit
    seeded: bool = True
    missing: str | None = None  # why it cannot be run here


def _mixture(model: Any, X: Array) -> Partition:
    model.fit(X)
    return Partition(np.asarray(model.predict(X)), float(model.score(X)))


def plain(X: Array, k: int, seed: int) -> Partition:
    from mixfold import GaussianMixture

    return _mixture(GaussianMixture(k, random_state=seed, n_jobs=1), X)


def scikit_learn(n_init: int) -> Fit:
    def fit(X: Array, k: int, seed: int) -> Partition:
        from sklearn.mixture import GaussianMixture

        return _mixture(GaussianMixture(k, n_init=n_init, random_state=seed), X)

    return fit


def combined(X: Array, k: int, seed: int) -> Partition:
    return _combine(X, k, seed)


def genie(X: Array, k: int, seed: int) -> Partition:
    import genieclust  # type: ignore[import-not-found]

    return Partition(genieclust.Genie(n_clusters=k).fit_predict(X))


def search(X: Array, k: int, seed: int) -> Partition:
    from mixfold import MixtureSearch

    found = MixtureSearch(random_state=seed).fit(X)
    return Partition(np.asarray(found.predict(X)), float(found.best_estimator_.score(X)))


def combined_auto(X: Array, k: int, seed: int) -> Partition:
    return _combine(X, "auto", seed)


def _combine(X: Array, n_clusters: int | str, seed: int) -> Partition:
    import mixfold

    kind = getattr(mixfold, "MixtureClustering")  # noqa: B009 (see _without_clustering)
    model = kind(n_clusters, random_state=seed).fit(X)
    return Partition(np.asarray(model.labels_), float(np.mean(model.score_samples(X))))


def smallest_bic(X: Array, k: int, seed: int) -> Partition:
    """scikit-learn with its default settings, 1 to 9 components, four types of covariances."""
    from sklearn.mixture import GaussianMixture

    fits = [
        GaussianMixture(size, covariance_type=kind, random_state=seed).fit(X)
        for kind in ("full", "tied", "diag", "spherical")
        for size in range(1, min(9, len(X)) + 1)
    ]
    model = min(fits, key=lambda fit: fit.bic(X))
    return Partition(model.predict(X), float(model.score(X)))


def hdbscan(min_cluster_size: int) -> Fit:
    def fit(X: Array, k: int, seed: int) -> Partition:
        from sklearn.cluster import HDBSCAN

        # its noise, label -1, counts as one cluster
        return Partition(HDBSCAN(min_cluster_size=min_cluster_size, copy=True).fit_predict(X))

    return fit


def _without_clustering() -> str | None:
    import mixfold

    there = hasattr(mixfold, "MixtureClustering")
    return None if there else "this mixfold has no MixtureClustering"


def _without_genie() -> str | None:
    there = importlib.util.find_spec("genieclust") is not None
    return None if there else "genieclust is not installed: pip install 'mixfold[bench]'"


def given_methods() -> dict[str, Method]:
    """Methods that are told the number of clusters."""
    return {
        "mixfold": Method(plain),
        "scikit-learn": Method(scikit_learn(1)),
        "scikit-learn, 10 starts": Method(scikit_learn(10)),
        "combined": Method(combined, missing=_without_clustering()),
        "Genie": Method(genie, seeded=False, missing=_without_genie()),
    }


def unknown_methods() -> dict[str, Method]:
    """Methods that find the number of clusters."""
    return {
        "MixtureSearch": Method(search),
        "MixtureClustering": Method(combined_auto, missing=_without_clustering()),
        "scikit-learn, BIC": Method(smallest_bic),
        "HDBSCAN 5": Method(hdbscan(5), seeded=False),
        "HDBSCAN 15": Method(hdbscan(15), seeded=False),
    }


# ------------------------------------------------------------------ stages


class Kept:
    """Figures that are written to a file as they come, so that an interrupted run can go on.

    A line for each fit. Without a path nothing is kept.
    """

    def __init__(self, path: Path | str | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._known: dict[tuple[Any, ...], Any] = {}
        if self._path is not None and self._path.is_file():
            for line in self._path.read_text(encoding="utf-8").splitlines():
                try:
                    key, figures = json.loads(line)
                except ValueError:  # the last line of a run that was killed while it wrote
                    continue
                self._known[tuple(key)] = figures

    def ask(self, make: Callable[[], dict[str, Any]], *key: str | int) -> dict[str, Any]:
        """What is kept under the key, else what ``make`` gives."""
        if key not in self._known:
            self._known[key] = make()
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(f"\n{json.dumps([key, self._known[key]])}")
        return dict(self._known[key])


def partitions_given(
    tables: Sequence[Labelled],
    seeds: Sequence[int] = SEEDS,
    methods: Sequence[str] | None = None,
    kept: Path | str | None = None,
) -> list[dict[str, Any]]:
    """Scores of each table and method where the number of clusters is that of the labeling."""
    return _compare(tables, given_methods(), seeds, methods, True, Kept(kept))


def partitions_unknown(
    tables: Sequence[Labelled],
    seeds: Sequence[int] = SEEDS,
    methods: Sequence[str] | None = None,
    kept: Path | str | None = None,
) -> list[dict[str, Any]]:
    """Scores of each table and method where the number of clusters is not told."""
    return _compare(tables, unknown_methods(), seeds, methods, False, Kept(kept))


def _compare(
    tables: Sequence[Labelled],
    known: dict[str, Method],
    seeds: Sequence[int],
    methods: Sequence[str] | None,
    given: bool,
    kept: Kept,
) -> list[dict[str, Any]]:
    which = "given" if given else "unknown"
    asked = {
        name: method
        for name, method in known.items()
        if method.missing is None and (methods is None or name in methods)
    }
    return [
        {
            **_facts(table),
            "methods": {
                name: [
                    kept.ask(
                        partial(_score, table, method, seed, given), which, table.name, name, seed
                    )
                    for seed in (seeds if method.seeded else seeds[:1])
                ]
                for name, method in asked.items()
            },
        }
        for table in tables
    ]


def _facts(table: Labelled) -> dict[str, Any]:
    n, d = table.X.shape
    return {"set": table.name, "n": n, "d": d, "k": table.sizes}


def _score(table: Labelled, method: Method, seed: int, given: bool) -> dict[str, Any]:
    """The best score over the labelings; a fit that fails has found nothing (score 0)."""
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is not converged shows in the figures
            fits = {k: method.fit(table.X, k, seed) for k in (table.sizes if given else [0])}
    except Exception as error:
        return {"ari": 0.0, "nca": 0.0, "cpu": time.process_time() - began,
                "error": f"{type(error).__name__}: {error}"}  # fmt: skip
    cpu = time.process_time() - began
    pairs = [(labels, fits[n_clusters(labels) if given else 0]) for labels in table.labelings]
    return {
        **best([scores(labels, fit.labels) for labels, fit in pairs]),
        "cpu": cpu,
        "clusters": [fit.n_clusters for fit in fits.values()],
        "log_likelihood": [fit.log_likelihood for fit in fits.values()],
    }


def likelihoods(
    tables: Sequence[Labelled], seeds: Sequence[int] = SEEDS, kept: Path | str | None = None
) -> list[dict[str, Any]]:
    """mixfold's default fit, scikit-learn's best of ten followed to convergence by mixfold, and
    what the reference labeling is followed to."""
    store = Kept(kept)
    return [
        {
            **_facts(table), "k": k, "seed": seed,
            **store.ask(partial(_likelihood, table.X, k, seed), "likelihood", table.name, k, seed),
            **store.ask(partial(_of_reference, table, k), "reference", table.name, k),
        }
        for table in tables
        for k in table.sizes
        for seed in seeds
    ]  # fmt: skip


def _of_reference(table: Labelled, k: int) -> dict[str, Any]:
    """The highest likelihood to which EM climbs from a labeling of ``k`` clusters as it is."""
    from mixfold import GaussianMixture

    found = []
    for labels in table.labelings:
        if n_clusters(labels) != k:
            continue
        groups = [table.X[labels == name] for name in np.unique(labels[labels != NOISE])]
        model = GaussianMixture(
            k, weights_init=[len(rows) / sum(map(len, groups)) for rows in groups],
            means_init=[rows.mean(axis=0) for rows in groups],
            precisions_init=[_precision(rows) for rows in groups], n_jobs=1, **FOLLOW,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(model.fit(table.X))
    best_fit = max(found, key=lambda model: model.score(table.X))
    return {"reference": float(best_fit.score(table.X)),
            "reference_degenerate": is_degenerate(best_fit)}  # fmt: skip


def _precision(rows: Array) -> Array:
    """Of a covariance that can be inverted, also of segments and of columns with one value."""
    covariance = np.atleast_2d(np.cov(rows, rowvar=False, bias=True))
    ridge = 1e-6 * max(float(np.trace(covariance)) / len(covariance), 1e-12)
    values, axes = np.linalg.eigh(covariance)
    root = axes / np.sqrt(np.maximum(values, 0.0) + ridge)
    return np.asarray(root @ root.T)  # symmetric to the last bit, which an inverse need not be


def _likelihood(X: Array, k: int, seed: int) -> dict[str, Any]:
    """Both have the same floor and are judged by the same code."""
    from sklearn.mixture import GaussianMixture as Peer

    from mixfold import GaussianMixture

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        own = GaussianMixture(k, random_state=seed, n_jobs=1).fit(X)
        own_cpu = time.process_time() - began
        began = time.process_time()
        peer = Peer(k, n_init=10, random_state=seed).fit(X)
        peer_cpu = time.process_time() - began
        followed = GaussianMixture(
            k, weights_init=peer.weights_, means_init=peer.means_, precisions_init=peer.precisions_,
            random_state=seed, n_jobs=1, **FOLLOW,
        ).fit(X)  # fmt: skip
    return {
        "ours": float(own.score(X)), "theirs": float(followed.score(X)),
        "as_it_stopped": float(peer.score(X)), "passes": int(own.n_passes_),
        "our_cpu": own_cpu, "their_cpu": peer_cpu, "followed_converged": bool(followed.converged_),
        "our_degenerate": is_degenerate(own), "their_degenerate": is_degenerate(followed),
    }  # fmt: skip


def is_degenerate(model: Any) -> bool:
    return any(event.kind in DEGENERATE for event in model.events_)


# ------------------------------------------------------------------ jobs


def stage(
    threads: int | None,
    which: str,
    folder: str | None,
    names: list[str],
    quick: bool,
    seeds: list[int],
    kept: str | None = None,
) -> list[dict[str, Any]]:
    """A stage on some tables, after each method has compiled and loaded what it needs."""
    run = {f.__name__: f for f in (partitions_given, partitions_unknown, likelihoods)}[which]
    run([draw("bent/bananas", quick=True)], seeds[:1])
    return run([load(folder, name, quick) for name in names], seeds, kept=kept)
