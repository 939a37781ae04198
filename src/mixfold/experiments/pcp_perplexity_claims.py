"""What is claimed of table 9.1, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mixfold.experiments import pcp_perplexity_runs as runs
from mixfold.experiments import pcp_published as published
from mixfold.experiments.table import Cell, Check

# how far a perplexity may be from that of other code, and for how many cells that must hold
NEAR, SHARE = 0.03, 0.9


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


def checks(curves: Curves, whole: bool) -> tuple[Check, ...]:
    """All claims; other code is compared with only where all documents were taken (``whole``)."""
    found = [_below_lda(curves), _not_worst(curves), _below_unigram(curves)]
    if whole:
        found += [_near(curves, name) for name in curves.unigrams]
    return tuple(found)


def _near(curves: Curves, name: str) -> Check:
    """Beside other code, each perplexity as a share of that of frequencies on the same split."""
    gaps = {}
    scale = published.REFERENCE_UNIGRAM[name] / curves.unigrams[name]
    for column, theirs in published.REFERENCE_PERPLEXITY[name].items():
        for n_topics, value in zip(published.REFERENCE_TOPICS, theirs, strict=True):
            if n_topics in curves.topics:
                ours = curves.cell(name, n_topics, column).ours
                gaps[f"{column} K = {n_topics}"] = ours * scale / value - 1
    above = [f"{place} {gap:+.1%}" for place, gap in gaps.items() if gap > NEAR]
    below = [f"{place} {gap:+.1%}" for place, gap in gaps.items() if gap < -NEAR]
    near = len(gaps) - len(above) - len(below)
    told = f"{near} of {len(gaps)}, {min(gaps.values()):+.1%} to {max(gaps.values()):+.1%}"
    for word, places in (("above", above), ("below", below)):
        told += f"; {word}: {', '.join(places) or 'none'}"
    claim = f"{name}: nine perplexities of ten are within {NEAR:.0%} of those of other code"
    return Check(claim.replace("%", " %"), near >= SHARE * len(gaps), told.replace("%", " %"))


def _below_lda(curves: Curves) -> Check:
    gaps = {
        curves.row(*place): curves.cell(*place, runs.PCP).ours / curves.cell(*place, runs.LDA).ours
        for place in curves.places()
    }
    won = sum(gap < 1 for gap in gaps.values())
    detail = f"in {won} of {len(gaps)} rows, as published (all); the ratio is "
    detail += f"{min(gaps.values()):.3f} to {max(gaps.values()):.3f}"
    return Check("PCP (plug-in) is below the bound of LDA", won == len(gaps), detail)


def _not_worst(curves: Curves) -> Check:
    lower = [
        curves.cell(*place, runs.PLSI).ours
        < max(curves.cell(*place, method).ours for method in (runs.LDA, runs.PCP))
        for place in curves.places()
    ]
    detail = f"in {sum(lower)} of {len(lower)} rows; published: it is, in all"
    return Check("smoothed pLSI is not the worst", all(lower), detail)


def _below_unigram(curves: Curves) -> Check:
    most = {
        name: max(cell.ours for (row, column), cell in curves.cells.items()
                  if row.startswith(f"{name},") and column in runs.METHODS)
        for name in curves.unigrams
    }  # fmt: skip
    holds = all(most[name] < curves.unigrams[name] for name in most)
    detail = "; ".join(f"{n}: at most {most[n]:.0f} of {curves.unigrams[n]:.0f}" for n in most)
    return Check("every model is below frequencies of words", holds, detail)
