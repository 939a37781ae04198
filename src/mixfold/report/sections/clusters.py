"""Section: which components make each cluster, and the tree by which they were merged."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.report.formatting import count, number, plural
from mixfold.report.markup import join
from mixfold.report.section import Note, Section
from mixfold.report.subject import Subject
from mixfold.report.tables import table

_SHOWN = 20
_NAMED = 12


def clusters(subject: Subject) -> Section | None:
    """How many components each cluster is made of, and the last merges."""
    model = subject.asked
    tree = getattr(model, "tree_", None)
    of = getattr(model, "cluster_of_component_", None)
    if tree is None or of is None:
        return None
    n, K = int(model.n_clusters_), len(of)
    lead = (
        f"{plural(n, 'cluster')} made of {plural(K, 'component')}. Components are one cluster "
        "where rows of one are often taken for rows of the other; the probability of a cluster is "
        "the sum of those of its components."
    )
    rows = [
        [f"cluster {k}", number(model.weights_[k]), count(np.sum(of == k)), _members(of, k)]
        for k in range(min(n, _SHOWN))
    ]
    head = ["cluster", "weight", "components", "which"]
    parts = [table(head, rows, f"Clusters{_first(n)}", text=(0, 3))]
    if K > 1:
        parts.append(_merges(tree, n))
    notes = tuple(Note(f"{words}.") for words in getattr(model, "notes_", ()))
    return Section("clusters", "Clusters made of components", lead, join(parts), notes)


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
