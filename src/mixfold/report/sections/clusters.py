"""Section: which components make each cluster, and the tree by which they were merged."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from mixfold.report.formatting import count, join_words, number, plural, share
from mixfold.report.markup import join
from mixfold.report.section import Note, Section
from mixfold.report.subject import Subject
from mixfold.report.tables import table

_SHOWN = 20
_NAMED = 12
# components of which it is said how many rows they have
_FEW = 6
# what a fit says of one component after the other
_OF_COMPONENT = re.compile(r"component (\d+) has about ([\d,.]+) rows(.*)", re.DOTALL)


def clusters(subject: Subject) -> Section | None:
    """How many components each cluster is made of, and the last merges."""
    model = subject.asked
    tree = getattr(model, "tree_", None)
    of = getattr(model, "cluster_of_component_", None)
    if tree is None or of is None:
        return None
    n, K = int(model.n_clusters_), len(of)
    lead = (
        f"{plural(n, 'cluster')} made of {plural(K, 'component')}. {_rule(model)} The probability "
        "of a cluster is the sum of those of its components."
    )
    rows = [
        [f"cluster {k}", share(float(model.weights_[k])), count(np.sum(of == k)), _members(of, k)]
        for k in range(min(n, _SHOWN))
    ]
    head = ["cluster", "weight", "components", "which"]
    parts = [table(head, rows, f"Clusters{_first(n)}", text=(0, 3))]
    if K > 1:
        parts.append(_merges(tree, n))
    notes = tuple(Note(words) for words in _told(list(getattr(model, "notes_", ()))))
    return Section("clusters", "Clusters made of components", lead, join(parts), notes)


def _rule(model: Any) -> str:
    """Which merges are made."""
    if model.threshold is not None:
        return (
            "Components are merged while rows of one are taken for rows of the other with a "
            f"probability above {number(model.threshold)} (misclassification probability)."
        )
    if model.n_clusters not in (None, "auto"):
        return (
            "Those components are merged first whose rows are most often taken for rows of the "
            "other (misclassification probability), until as many clusters are left as were asked "
            "for."
        )
    return (
        "Components are merged unless the rows prove that the density dips between them; those are "
        "merged first whose rows are most often taken for rows of the other (misclassification "
        "probability; that of a merge is at most that of the one before)."
    )


def _told(notes: list[str]) -> list[str]:
    """Sentences; what is said of several components is said once, with all of them."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for words in notes:
        found = _OF_COMPONENT.match(words)
        number_, rows, rest = found.groups() if found else ("", "", words)
        kinds.setdefault(rest, []).append((number_, rows))
    told = []
    for rest, own in kinds.items():
        if own[0][0]:
            names = [f"{k} (about {rows})" if len(own) <= _FEW else k for k, rows in own]
            one = "component" if len(own) == 1 else "components"
            has = "has" if len(own) == 1 else "have"
            rest = f"{one} {join_words(names, _NAMED)} {has} rows{rest}"
            rest = rest if len(own) == 1 else rest.replace("its ", "their ")
        told.append(f"{rest[0].upper()}{rest[1:]}.")
    return told


def _merges(tree: Any, n_clusters: int) -> Any:
    """The merges from the last on: what would be left with fewer clusters, or with more."""
    K = tree.n_components
    rows = []
    for t in range(K - 2, max(K - 2 - _SHOWN, -1), -1):
        left = K - 1 - t
        made = "made" if left >= n_clusters else "not made"
        rows.append([count(left), count(left + 1), number(tree.level[t]), made])
    head = ["clusters after", "before", "misclassification probability", "merge"]
    return table(head, rows, f"Merges, the last first{_first(K - 1)}", text=(3,))


def _members(of: Any, k: int) -> str:
    own = np.flatnonzero(of == k)
    more = f" and {len(own) - _NAMED} more" if len(own) > _NAMED else ""
    return ", ".join(str(c) for c in own[:_NAMED]) + more


def _first(n: int) -> str:
    return f", {_SHOWN} of {n}" if n > _SHOWN else ""
