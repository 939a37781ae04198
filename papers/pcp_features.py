"""Yu (2006), figure 9.4: topics as features of a classifier, by the number of labelled texts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import mixfold
from mixfold.contracts import Array
from papers.frame.experiment import Experiment, Progress
from papers.frame.table import Cell, Check, Column, Table
from papers.shared.pcp_corpora import FILES, QUICK_SHARE, find_corpora, load_corpus

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOPICS, SIZES = 10, (10, 20, 50, 100, 200)
# documents of a category that are left to ask, at least
LEAST_ASKED = 5
PLSI, LDA, PCP = "pLSI", "LDA", "PCP"
METHODS = (PLSI, LDA, PCP)
COLUMNS = tuple(
    Column(
        f"n = {n}", f"right of the other documents, {n} labelled, mean over categories", form=".3f"
    )
    for n in SIZES
)
NOTES = (
    "The source has curves without numbers. Its PCP has as many clusters as documents to begin "
    "with; ours has 50, of which those that are not needed are lost.",
    "Features are the expected shares of topics of a document (transform), learned without labels "
    "from all documents; a linear machine of their roots learns each category against the others, "
    "from as many documents of it as of others.",
)


@dataclass(frozen=True, slots=True)
class Size:
    """Draws of labelled documents; one document of so many; clusters of PCP."""

    repeats: int
    share: int
    clusters: int


FULL, QUICK = Size(50, 1, 50), Size(10, QUICK_SHARE, 20)


def run(data_folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
    """Fit the three models to each corpus, and classify by what they give."""
    size = QUICK if quick else FULL
    names, gone = find_corpora(data_folder)
    total = len(names) * len(METHODS)
    values: dict[tuple[str, str], Array] = {}
    for i, name in enumerate(names):
        corpus = load_corpus(name, data_folder)
        if size.share > 1:
            corpus = corpus.some(size.share, np.random.default_rng([seed, 94]))
        for j, method in enumerate(METHODS):
            progress(i * len(METHODS) + j, total, f"{name}, {method}")
            features = np.sqrt(fit_features(method, corpus.X, size.clusters, seed))
            values[name, method] = measure(features, corpus.y, size.repeats, seed)
    progress(total, total, "done")
    cells = [
        Cell(f"{name}, {method}", column.name, tuple(mine[:, j].tolist()))
        for (name, method), mine in values.items()
        for j, column in enumerate(COLUMNS)
    ]
    settings = (("draws of labelled documents", str(size.repeats)), ("topics", str(TOPICS)))
    checks = check_claims(values)
    notes = (*NOTES, *gone)
    return Table(COLUMNS, tuple(cells), checks, settings, notes, partial(draw, values))


def fit_features(method: str, X: Any, clusters: int, seed: int) -> Array:
    """Shares of topics (N, K) of all documents."""
    models: Mapping[str, Any] = {
        PLSI: mixfold.PLSI(TOPICS, random_state=seed),
        LDA: mixfold.LatentDirichletAllocation(TOPICS, random_state=seed),
        PCP: mixfold.PCP(TOPICS, clusters, document_concentration=None, random_state=seed),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a limit of steps is near enough
        return np.asarray(models[method].fit(X).transform(X))


def measure(Z: Array, y: Array, repeats: int, seed: int) -> Array:
    """Shares of right documents (repeats, sizes), means over categories that have enough.

    Draws are the same for every method.
    """
    from sklearn.svm import LinearSVC

    classes = np.unique(y)
    found = np.full((repeats, len(SIZES), len(classes)), np.nan)
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        for c, label in enumerate(classes):
            own, others = (rng.permutation(np.flatnonzero(m)) for m in (y == label, y != label))
            for j, n in enumerate(SIZES):
                if min(len(own), len(others)) < n // 2 + LEAST_ASKED:
                    continue
                train = np.concatenate([own[: n // 2], others[: n // 2]])
                test = np.setdiff1d(np.arange(len(y)), train)
                machine = LinearSVC(C=10.0, dual=False).fit(Z[train], y[train] == label)
                # as many of the category as of the others count
                right = machine.predict(Z[test]) == (y[test] == label)
                mine = y[test] == label
                found[repeat, j, c] = (right[mine].mean() + right[~mine].mean()) / 2
    return np.asarray(np.nanmean(found, axis=2))


def check_claims(values: Mapping[tuple[str, str], Array]) -> tuple[Check, ...]:
    """What the source reads off its figure."""
    checks = []
    for name in dict.fromkeys(name for name, _ in values):
        mine = {method: values[name, method] for method in METHODS}
        grows = all(np.all(np.diff(v.mean(axis=0)) > 0) for v in mine.values())
        told = "; ".join(
            f"{m} {v[:, 0].mean():.3f} to {v[:, -1].mean():.3f}" for m, v in mine.items()
        )
        checks.append(Check(f"{name}: more labelled documents, more right ones", grows, told))
        for other in (PLSI, LDA):
            checks.append(_check_above(name, mine[PCP], mine[other], other))
    return tuple(checks)


def _check_above(name: str, ours: Array, theirs: Array, other: str) -> Check:
    gaps = (ours - theirs).mean(axis=1)  # draw by draw, over all sizes
    error = gaps.std(ddof=1) / np.sqrt(len(gaps))
    claim = f"{name}: topics of PCP tell the categories better than those of {other}"
    return Check(claim, bool(gaps.mean() > 2 * error), f"by {gaps.mean():+.3f} ± {error:.3f}")


def draw(values: Mapping[tuple[str, str], Array], figure: Figure) -> None:
    """A panel for each corpus, a curve for each model."""
    names: Sequence[str] = list(dict.fromkeys(name for name, _ in values))
    figure.set_size_inches(5.5 * len(names), 4)
    for ax, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for j, method in enumerate(METHODS):
            mine = values[name, method]
            ax.errorbar(SIZES, mine.mean(axis=0), mine.std(axis=0, ddof=1), marker="o", ms=4,
                        color=f"C{j}", capsize=2, label=method)  # fmt: skip
        ax.set(title=name, xlabel="labelled documents", ylabel="right")
        ax.legend(fontsize=8, frameon=False)
        ax.spines[["top", "right"]].set_visible(False)


EXPERIMENT = Experiment(
    name="pcp-features",
    title="Topics as features of a classifier",
    source="Yu 2006",
    place="figure 9.4",
    protocol=(
        "Two corpora of labelled documents. pLSI, LDA and PCP with ten topics are fitted to all "
        "documents without labels; for each category a linear machine learns from n documents, "
        "half of them of the category, and tells the others, n from 10 to 200, by many draws. "
        "Documents of the category and others count the same."
    ),
    data=FILES,
    run=run,
)
