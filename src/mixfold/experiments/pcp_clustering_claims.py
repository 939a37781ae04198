"""What is claimed of table 9.2, and whether it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from mixfold.experiments import pcp_clustering_runs as runs
from mixfold.experiments import pcp_published as published
from mixfold.experiments.pcp_clustering_picture import Assigned
from mixfold.experiments.table import Cell, Check

# share of cells that are within one standard deviation by chance alone
SHARE = 2 / 3
# share of documents in a cluster that is mostly of their class
PURE = 0.8


@dataclass(frozen=True, slots=True)
class Found:
    """What every start of every method gave on a corpus, by method and number of topics."""

    name: str
    n_classes: int
    outcomes: dict[tuple[str, int], list[runs.Outcome]]

    def add(self, method: str, n_topics: int, outcome: runs.Outcome) -> None:
        self.outcomes.setdefault((method, n_topics), []).append(outcome)

    @property
    def topics(self) -> list[int]:
        return sorted({n_topics for _, n_topics in self.outcomes})

    def cell(self, method: str, n_topics: int) -> Cell:
        values = tuple(one.nmi for one in self.outcomes[method, n_topics])
        return Cell(f"{self.name}, K = {n_topics}", method, values)

    def tuned(self, method: str) -> tuple[int, float]:
        """The number of topics, and its best start by objective, that agree best with classes."""
        chosen = {
            n_topics: max(found, key=lambda one: one.objective).nmi
            for (other, n_topics), found in self.outcomes.items()
            if other == method
        }
        best = max(chosen, key=lambda n_topics: chosen[n_topics])
        return best, chosen[best]


def checks(found: Sequence[Found], assigned: Assigned | None, whole: bool) -> tuple[Check, ...]:
    """All claims; other code is compared with only where all documents were taken (``whole``)."""
    judged = [_best(one) for one in found]
    judged += [_structured(one) for one in found]
    judged += [_baseline(one) for one in found]
    if whole:
        judged += [_near(one) for one in found]
    return (*judged, _pure(assigned)) if assigned is not None else tuple(judged)


def _best(found: Found) -> Check:
    scores = {m: found.tuned(m)[1] for m in (runs.NMF, runs.MEANS, runs.PCP)}
    holds = max(scores, key=lambda method: scores[method]) == runs.PCP
    detail = ", ".join(f"{method} {value:.3f}" for method, value in scores.items())
    claim = f"{found.name}: PCP is above NMF and LDA + k-means, K tuned"
    return Check(claim, holds, f"{detail}; published: it is")


def _structured(found: Found) -> Check:
    gaps = _gaps(found, runs.PCP, runs.MEAN_FIELD)
    claim = f"{found.name}: structured inference is above the source's mean field, over all K"
    return Check(claim, float(np.mean(list(gaps.values()))) > 0, _told(gaps))


def _baseline(found: Found) -> Check:
    gaps = _gaps(found, runs.UNIGRAMS, runs.PCP)
    claim = f"{found.name}: a mixture of unigrams begun with the clusters of LDA + k-means is no "
    claim += "worse than PCP, over all K"
    return Check(claim, float(np.mean(list(gaps.values()))) >= 0, _told(gaps))


def _gaps(found: Found, one: str, other: str) -> dict[int, float]:
    return {k: found.cell(one, k).ours - found.cell(other, k).ours for k in found.topics}


def _told(gaps: dict[int, float]) -> str:
    each = ", ".join(f"K = {k} {gap:+.3f}" for k, gap in gaps.items())
    return f"difference of mean NMI: {each}"


def _near(found: Found) -> Check:
    """Our standard deviation over starts, at least the typical one: a few may agree by chance."""
    typical = median(found.cell(*place).spread for place in found.outcomes)
    apart = {}
    for method, theirs in published.REFERENCE_NMI[found.name].items():
        for n_topics, mean in theirs.items():
            k = found.tuned(method)[0] if n_topics == published.TUNED else n_topics
            if (method, k) in found.outcomes:
                cell = found.cell(method, k)
                gap = cell.ours - mean
                apart[f"{method} K = {k} {gap:+.3f}"] = abs(gap) > max(cell.spread, typical)
    near = sum(not far for far in apart.values())
    detail = f"{near} of {len(apart)}; not " + ", ".join(
        place for place, far in apart.items() if far
    )
    claim = f"{found.name}: two mean NMI of three are within a standard deviation of other code"
    told = detail if near < len(apart) else f"all of {len(apart)}"
    return Check(claim, near >= SHARE * len(apart), told)


def _pure(assigned: Assigned) -> Check:
    share = float(assigned.by_class().max(axis=0).sum()) / len(assigned.y)
    largest = assigned.owners()[: len(assigned.classes)]
    detail = f"{share:.0%} of documents, {assigned.memberships.shape[1]} clusters left; the "
    detail += f"{len(largest)} largest are of {len(set(largest.tolist()))} groups"
    claim = f"case study: {PURE:.0%} of documents are in clusters that are mostly of their group"
    return Check(claim.replace("%", " %"), share >= PURE, detail.replace("%", " %"))
