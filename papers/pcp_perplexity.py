"""Yu (2006), table 9.1: perplexity of unseen documents under pLSI, LDA and PCP."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln, logsumexp, psi

import mixfold
from mixfold.contracts import Array
from papers.frame.experiment import Experiment, Progress
from papers.frame.table import Best, Cell, Check, Column, Table, Tolerance
from papers.shared.pcp_corpora import (
    CORPORA,
    FILES,
    QUICK_SHARE,
    Corpus,
    find_corpora,
    load_corpus,
    split_held_out,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# ------------------------------------------------ published values
# What Yu (2006) prints in table 9.1.

TOPICS = (5, 10, 20, 30, 40, 50)

# table 9.1: a perplexity for each of TOPICS
PUBLISHED = {
    "Reuters": {
        "pLSI": (1995, 1422, 1226, 1131, 1128, 1103),
        "LDA": (1143, 892, 678, 599, 562, 533),
        "PCP": (1076, 882, 670, 592, 555, 527),
    },
    "Newsgroup": {
        "pLSI": (2171, 2018, 1943, 1868, 1867, 1924),
        "LDA": (2083, 1933, 1782, 1674, 1550, 1513),
        "PCP": (2039, 1871, 1752, 1643, 1524, 1493),
    },
}
# ------------------------------------------------ fits
# Perplexities of unseen documents under pLSI, LDA and PCP, each as Yu (2006) asks for it.

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


def measure_unigram(train: Any, test: Any) -> float:
    """Perplexity of the frequencies of words, which know nothing about a document."""
    words = np.asarray(train.sum(axis=0), float).ravel() + SMOOTHING
    return _compute_perplexity(test @ np.log(words / words.sum()), test)


def measure_method(method: str, train: Any, test: Any, n_topics: int, seed: int) -> Outcome:
    """Fit to the training documents, ask about the others; the seed is of the halves, too."""
    return _MEASURES[method](train, test, n_topics, seed)


def _measure_plsi(train: Any, test: Any, n_topics: int, seed: int) -> Outcome:
    """Ended as in the source: with all steps its topics are better than that."""
    settings: dict[str, Any] = {"smoothing": SMOOTHING, "tol": 0.0, "random_state": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged is meant
        found = mixfold.PLSI(n_topics, max_iter=STEPS, **settings).fit(train)
        steps = count_steps(found.lower_bounds_)
        if steps < STEPS:
            found = mixfold.PLSI(n_topics, max_iter=steps, **settings).fit(train)
    return Outcome(
        average_over_documents(found, train, test), found.perplexity(test, random_state=seed)
    )


def count_steps(bounds: Any) -> int:
    """Steps until one gains less than 0.01 %; all of them if each gains more.

    Examples
    --------
    >>> count_steps([-8.0, -7.0, -6.9, -6.8999, -6.5])
    4
    """
    values = np.asarray(bounds, float)
    small = np.diff(values) < STOP * np.abs(values[:-1])
    return int(small.argmax()) + 2 if small.any() else len(values)


def average_over_documents(model: Any, train: Any, test: Any) -> float:
    """Perplexity of pLSI: a new document has the topics of a training document, drawn by length."""
    lengths = np.asarray(train.sum(axis=1), float).ravel()
    used = np.flatnonzero(lengths)
    shares = model.transform(train[used])
    log_weights = np.log(lengths[used] / lengths.sum())
    scores = [
        test @ np.log(shares[rows] @ model.topics_).T + log_weights[rows]
        for rows in _iterate_panels(len(used))
    ]
    return _compute_perplexity(logsumexp(np.hstack(scores), axis=1), test)


def _iterate_panels(n: int) -> Iterator[slice]:
    return (slice(i, min(i + PANEL, n)) for i in range(0, n, PANEL))


def _measure_lda(train: Any, test: Any, n_topics: int, seed: int) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a limit of passes is near enough
        model = mixfold.LatentDirichletAllocation(n_topics, random_state=seed).fit(train)
    return Outcome(model.perplexity(test, "bound"), model.perplexity(test, random_state=seed))


def _measure_pcp(train: Any, test: Any, n_topics: int, seed: int) -> Outcome:
    """A cluster for each training document to begin with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mixfold.PCP(
            n_topics, "documents", document_concentration=None, random_state=seed
        ).fit(train)
    return Outcome(
        model.perplexity(test, "bound"),
        model.perplexity(test, random_state=seed),
        model.n_clusters_,
    )


_MEASURES: dict[str, Callable[[Any, Any, int, int], Outcome]] = {
    PLSI: _measure_plsi,
    LDA: _measure_lda,
    PCP: _measure_pcp,
}


def _compute_perplexity(logs: Array, X: Any) -> float:
    return float(np.exp(-np.sum(logs) / X.sum()))


# ------------------------------------------------ table

HALVES = {method: f"{method} half" for method in METHODS}
CLUSTERS = "clusters"
# up to so many topics a start may end some per cent from another one
FEW = 10
_NEAR = Tolerance(relative=0.1)
_HALF = (
    "half of the tokens of a test document are predicted from the other half; no published value"
)
COLUMNS = (
    Column(
        PLSI,
        "test documents whole, each with the topics of a training document drawn by its length; "
        f"{SMOOTHING:g} tokens added to each word of a topic",
        tolerance=_NEAR,
        form=".0f",
        best=Best.lower,
    ),
    Column(
        LDA,
        "bound of test documents, each seen as a whole",
        tolerance=_NEAR,
        form=".0f",
        best=Best.lower,
    ),
    Column(
        PCP,
        "bound of test documents, each seen as a whole; posteriors of clusters and topics held",
        tolerance=_NEAR,
        form=".0f",
        best=Best.lower,
    ),
    *(Column(name, _HALF, form=".0f") for name in HALVES.values()),
    Column(CLUSTERS, "those that PCP has left of one for each training document", form=".0f"),
)
WHY = (
    "topics of scikit-learn's LDA on the same split give the same (see the claims), and documents "
    "and words are not those of the source; values as low as the published are reached where the "
    "Dirichlet terms are left out of the bound, which then is none."
)
NOTES = (
    "The first three columns follow the source and compare unlike things: bounds that see the "
    "whole document (LDA, PCP), which are not equally tight, and an average over training "
    "documents (pLSI). No model should be preferred for them. Completion asks the same "
    "of all three (columns 'half'): prefer by that.",
    "The source takes a lower bound of the test set for PCP, which may mean two things: clusters "
    "of the training documents held, or new ones inferred for the test documents. The first stands "
    "here; the second is higher.",
    "Documents and words are not those of the source (Reuters 3948 x 7665, Newsgroup 3888 x "
    "8396): agreement within 10 % is all that can be asked for.",
    "Not as published: pLSI is not the worst, a little smoothing is enough; and on Reuters "
    "perplexities near 530 at K = 50 are reached only where the Dirichlet terms are left out of "
    "the bound of LDA, which then is none.",
    "pLSI ends, as in the source, with the first step that gains less than 0.01 %. Steps beyond "
    "that still lower its perplexity by some per cent.",
)


@dataclass(frozen=True, slots=True)
class Size:
    """Numbers of topics, starts where these are few, and of how many documents one is taken."""

    topics: tuple[int, ...]
    few_starts: int
    share: int

    def starts(self, n_topics: int) -> int:
        """Where topics are many, starts are alike (LDA, K = 50: within 1 %)."""
        return self.few_starts if n_topics <= FEW else 1


FULL = Size(TOPICS, 3, 1)
QUICK = Size((5, 10), 1, QUICK_SHARE)


def run(data_folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
    """Fit every model for every number of topics, and ask about the documents held out."""
    size = QUICK if quick else FULL
    names, gone = find_corpora(data_folder)
    tasks = [(name, n_topics, method) for name in names for n_topics in size.topics
             for method in METHODS]  # fmt: skip
    splits = {name: _split_corpus(load_corpus(name, data_folder), size, seed) for name in names}
    outcomes: dict[tuple[str, int, str], list[Outcome]] = {}
    for done, (name, n_topics, method) in enumerate(tasks):
        progress(done, len(tasks), f"{name}, {method}, K = {n_topics}")
        outcomes[name, n_topics, method] = [
            measure_method(method, *splits[name], n_topics, seed + start)
            for start in range(size.starts(n_topics))
        ]
    references = {name: measure_reference(*split, seed) for name, split in splits.items()}
    progress(len(tasks), len(tasks), "done")
    unigrams = {name: measure_unigram(*split) for name, split in splits.items()}
    return _make_table(outcomes, unigrams, references, size, gone)


def _split_corpus(corpus: Corpus, size: Size, seed: int) -> tuple[Any, Any]:
    """Documents to learn from, and the tenth that is held out."""
    if size.share > 1:
        corpus = corpus.some(size.share, np.random.default_rng([seed, 1]))
    train, test = split_held_out(len(corpus.y), np.random.default_rng(seed))
    return corpus.X[train], corpus.X[test]


# ------------------------------------------------ cells and settings


def _make_table(
    outcomes: Mapping[tuple[str, int, str], list[Outcome]],
    unigrams: dict[str, float],
    references: Mapping[str, Reference],
    size: Size,
    gone: tuple[str, ...],
) -> Table:
    cells = [cell for place, found in outcomes.items() for cell in _make_cells(*place, found)]
    order = [column.name for column in COLUMNS]
    rows = list(dict.fromkeys(cell.row for cell in cells))
    cells.sort(key=lambda cell: (rows.index(cell.row), order.index(cell.column)))
    curves = Curves({(c.row, c.column): c for c in cells}, size.topics, unigrams)
    settings = _list_settings(size, unigrams)
    picture = partial(draw, curves=curves)
    judged = check_claims(curves, references)
    return Table(COLUMNS, tuple(cells), judged, settings, (*NOTES, *gone), picture)


def _make_cells(name: str, n_topics: int, method: str, found: list[Outcome]) -> list[Cell]:
    row = Curves.row(name, n_topics)
    theirs = PUBLISHED[name][method][TOPICS.index(n_topics)]
    cells = [
        Cell(row, method, tuple(one.whole for one in found), theirs, why=WHY),
        Cell(row, HALVES[method], tuple(one.completion for one in found)),
    ]
    left = tuple(float(one.clusters) for one in found if one.clusters is not None)
    return [*cells, Cell(row, CLUSTERS, left)] if left else cells


def _list_settings(size: Size, unigrams: Mapping[str, float]) -> tuple[tuple[str, str], ...]:
    taken = "all" if size.share == 1 else f"one of {size.share}"
    return (
        ("topics K", ", ".join(map(str, size.topics))),
        ("starts", f"{size.few_starts} up to K = {FEW}, else 1; the same split"),
        ("documents", taken),
        ("PCP", "structured inference, as many clusters as training documents to begin with"),
        ("perplexity of frequencies of words", _describe_unigrams(unigrams)),
    )


def _describe_unigrams(unigrams: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.0f}" for name, value in unigrams.items())


# ------------------------------------------------ claims
# What is claimed of table 9.1, and whether it holds.

# how far the perplexity of LDA may be from that under topics of scikit-learn, and from the same
# bound by the source's equations; the number of topics that is asked about
NEAR, SAME_BOUND, SAME_TOPICS = 0.03, 1e-3, 10


@dataclass(frozen=True, slots=True)
class Curves:
    """Cells by row and column, the numbers of topics, the perplexity of words alone by corpus."""

    cells: Mapping[tuple[str, str], Cell]
    topics: tuple[int, ...]
    unigrams: Mapping[str, float]

    @staticmethod
    def row(name: str, n_topics: int) -> str:
        return f"{name}, K = {n_topics}"

    def cell(self, name: str, n_topics: int, column: str) -> Cell:
        return self.cells[self.row(name, n_topics), column]

    def places(self) -> Iterator[tuple[str, int]]:
        return ((name, n_topics) for name in self.unigrams for n_topics in self.topics)


def check_claims(curves: Curves, references: Mapping[str, Reference]) -> tuple[Check, ...]:
    """All claims; ``references`` are of each corpus."""
    found = [_check_below_lda(curves), _check_not_worst(curves), _check_below_unigram(curves)]
    for name, reference in references.items():
        found += _check_reference(name, reference)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Reference:
    """Perplexities of unseen documents: of the class, of its topics by the source's equations, and
    of the topics that scikit-learn's LDA learns, by the same equations."""

    ours: float
    by_equations: float
    scikit: float


def measure_reference(train: Any, test: Any, seed: int) -> Reference:
    """LDA of the class beside numpy and scikit-learn, on the same documents."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a limit of passes is near enough
        model = mixfold.LatentDirichletAllocation(SAME_TOPICS, random_state=seed).fit(train)
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    bounds = compute_document_bounds(test, topics, np.asarray(model.doc_topic_prior_))
    return Reference(
        model.perplexity(test, "bound"),
        _compute_perplexity(bounds, test),
        measure_by_scikit(train, test, seed),
    )


def measure_by_scikit(train: Any, test: Any, seed: int) -> float:
    """The perplexity of unseen documents under the topics that scikit-learn's LDA learns."""
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        SAME_TOPICS, learning_method="batch", max_iter=100, random_state=seed
    ).fit(train)
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    bounds = compute_document_bounds(test, topics, np.full(SAME_TOPICS, model.doc_topic_prior_))
    return _compute_perplexity(bounds, test)


def compute_document_bounds(X: Any, topics: Array, alpha: Array, steps: int = 500) -> Array:
    """Lower bounds of ln p (N,) of documents given topics (K, V), by the source's equations.

    The words' topics are at their optimum given the shares, which are Dirichlet.
    """
    bounds = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        words, counts = X[i].indices, X[i].data
        given = topics[:, words]
        gamma = alpha + counts.sum() / len(alpha)
        for _ in range(steps):
            weights = np.exp(psi(gamma) - psi(gamma.sum()))
            total = weights @ given
            new = alpha + weights * (given @ (counts / total))
            if np.abs(new - gamma).max() < 1e-6 * counts.sum():
                break
            gamma = new
        log_shares = psi(gamma) - psi(gamma.sum())
        gap = gammaln(gamma.sum()) - gammaln(gamma).sum() - gammaln(alpha.sum())
        gap += gammaln(alpha).sum() + (gamma - alpha) @ log_shares
        bounds[i] = counts @ np.log(np.exp(log_shares) @ given) - gap
    return bounds


def _check_reference(name: str, found: Reference) -> list[Check]:
    same = found.ours / found.by_equations - 1
    other = found.ours / found.scikit - 1
    return [
        Check(
            f"{name}: the bound of LDA is that of the source's equations, within 0.1 %",
            abs(same) <= SAME_BOUND,
            f"perplexities {found.ours:.1f} and {found.by_equations:.1f}",
        ),
        Check(
            f"{name}: topics of scikit-learn's LDA have the same perplexity, within 3 %",
            abs(other) <= NEAR,
            f"ours {found.ours:.0f}, theirs {found.scikit:.0f}, K = {SAME_TOPICS}",
        ),
    ]


def _check_below_lda(curves: Curves) -> Check:
    gaps = {
        curves.row(*place): curves.cell(*place, PCP).ours / curves.cell(*place, LDA).ours
        for place in curves.places()
    }
    won = sum(gap < 1 for gap in gaps.values())
    detail = f"in {won} of {len(gaps)} rows, as published (all); the ratio is "
    detail += f"{min(gaps.values()):.3f} to {max(gaps.values()):.3f}"
    return Check("the bound of PCP is below that of LDA", won == len(gaps), detail)


def _check_not_worst(curves: Curves) -> Check:
    lower = [
        curves.cell(*place, PLSI).ours
        < max(curves.cell(*place, method).ours for method in (LDA, PCP))
        for place in curves.places()
    ]
    detail = f"in {sum(lower)} of {len(lower)} rows; published: it is, in all"
    return Check("smoothed pLSI is not the worst", all(lower), detail)


def _check_below_unigram(curves: Curves) -> Check:
    most = {
        name: max(cell.ours for (row, column), cell in curves.cells.items()
                  if row.startswith(f"{name},") and column in METHODS)
        for name in curves.unigrams
    }  # fmt: skip
    holds = all(most[name] < curves.unigrams[name] for name in most)
    detail = "; ".join(f"{n}: at most {most[n]:.0f} of {curves.unigrams[n]:.0f}" for n in most)
    return Check("every model is below frequencies of words", holds, detail)


# ------------------------------------------------ picture
# Table 9.1 drawn: perplexity by the number of topics.

COLOURS = {PLSI: "#6b8e23", LDA: "#c8553d", PCP: "#1f5fa8"}


def draw(figure: Figure, curves: Curves) -> None:
    """A row for each way to ask, a column for each corpus."""
    names = list(curves.unigrams)
    figure.set_size_inches(3.9 * len(names) + 1.6, 6.8)
    axes = figure.subplots(2, len(names), squeeze=False, sharex=True, sharey="col")
    for (above, below), name in zip(axes.T, names, strict=True):
        _draw_whole(above, curves, name)
        _draw_completion(below, curves, name)
        above.set_title(name, fontsize=11)
        below.set_xlabel("topics K", fontsize=9)
    axes[0][0].set_ylabel("perplexity, asked as in the source", fontsize=9)
    axes[1][0].set_ylabel("perplexity by completion", fontsize=9)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=9)


def _draw_whole(ax: Axes, curves: Curves, name: str) -> None:
    for method, colour in COLOURS.items():
        ours = [curves.cell(name, k, method).ours for k in curves.topics]
        ax.plot(curves.topics, ours, "o-", ms=4.5, color=colour, label=method)
        theirs = PUBLISHED[name][method]
        known = [theirs[TOPICS.index(k)] for k in curves.topics]
        ax.plot(curves.topics, known, "D--", ms=4, lw=0.9, mfc="none", color=colour, alpha=0.7,
                label=f"{method}, published")  # fmt: skip
    _finish_axes(ax, curves, name)


def _draw_completion(ax: Axes, curves: Curves, name: str) -> None:
    for method, colour in COLOURS.items():
        ours = [curves.cell(name, k, f"{method} half").ours for k in curves.topics]
        ax.plot(curves.topics, ours, "o-", ms=4.5, color=colour)
    _finish_axes(ax, curves, name)


def _finish_axes(ax: Axes, curves: Curves, name: str) -> None:
    ax.axhline(curves.unigrams[name], color="#707070", ls=":", label="frequencies of words")
    ax.set_xticks(curves.topics)
    ax.grid(axis="y", color="0.9", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)


EXPERIMENT = Experiment(
    name="pcp-perplexity",
    title="Perplexity of unseen documents: pLSI, LDA and PCP",
    source="Yu 2006",
    place="table 9.1",
    protocol=(
        "Counts of words of two corpora, Reuters and Newsgroup. One document of ten is held out, "
        "the others train pLSI, LDA (both priors learned) and PCP, which begins with a cluster "
        "for each of them. Perplexity is the exponential of minus the mean log probability of a "
        "test token, tokens in their order. Each model is asked in the source's way, beside which "
        "published values stand, and by completion of documents, which is the same for all. "
        f"Corpora: {', '.join(f'{n} {a.shape[0]} x {a.shape[1]}' for n, a in CORPORA.items())}; "
        "one whose file is absent is left out."
    ),
    data=FILES,
    run=run,
)
