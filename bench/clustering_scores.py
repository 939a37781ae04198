"""How well a partition meets reference labelings: 1 is perfect, 0 what chance or one group gets."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score

from bench.clustering_data import NOISE
from bench.problems import Array


def normalised_accuracy(labels: Any, found: Any) -> float | None:
    """Normalised clustering accuracy (Gagolewski 2022): recall of matched clusters, less chance.

    Each reference cluster is matched with a cluster of its own so that the sum of recalls is
    largest; their mean over the K reference clusters is carried from 1/K..1 to 0..1. Clusters
    large and small count alike. Where there are more clusters than references, those left over
    match nothing (then it can be below 0); where there are fewer, so do the references left over.

    Returns
    -------
    float, or None if there is only one reference cluster
    """
    _, rows = np.unique(labels, return_inverse=True)
    _, columns = np.unique(found, return_inverse=True)
    counts = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(counts, (rows, columns), 1)
    if len(counts) == 1:
        return None
    recall = counts / counts.sum(axis=1, keepdims=True)
    total = recall[linear_sum_assignment(recall, maximize=True)].sum()
    return float((total - 1) / (len(recall) - 1))


def scores(labels: Array, found: Array) -> dict[str, float | None]:
    """Adjusted Rand index and normalised accuracy of the rows that are no noise."""
    known = labels != NOISE
    return {
        "ari": float(adjusted_rand_score(labels[known], found[known])),
        "nca": normalised_accuracy(labels[known], found[known]),
    }


def best(of_labelings: list[dict[str, float | None]]) -> dict[str, float | None]:
    """The score of a set: each measure at its best over the labelings."""
    return {
        key: max((s[key] for s in of_labelings if s[key] is not None), default=None)
        for key in of_labelings[0]
    }
