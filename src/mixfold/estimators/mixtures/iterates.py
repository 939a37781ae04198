"""The iterate that classifies best, of an algorithm that has no maximum to go to.

``MixtureClassifier`` chooses it by cross-validation; all classes use that of the same number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv

from mixfold.contracts import Array
from mixfold.estimators.mixtures.class_rows import ClassRows

FitClasses = Callable[[Array], list[Any]]


def score_iterates(
    rows: ClassRows, fit: FitClasses, log_priors: Array, splits: list[tuple[Array, Array]]
) -> Array:
    """Accuracy of each iterate in each fold, (folds, iterates).

    ``fit`` takes a mask of the rows that may be seen and gives the models of all classes. Fits of
    different lengths are compared up to the shortest.
    """
    found = []
    for seen, held in splits:
        models = fit(_mask(seen, len(rows.labels)))
        mask = _mask(held, len(rows.labels))
        X, weight = rows.to_score(mask)
        found.append(_staged_accuracy(models, X, rows.labels[mask], log_priors, weight))
    shortest = min(len(one) for one in found)
    return np.stack([one[:shortest] for one in found])


def make_splits(cv: Any, rows: ClassRows, seed: int) -> list[tuple[Array, Array]]:
    """Rows to fit and rows held out; none if some class has a single row that counts."""
    if not isinstance(cv, int):
        pairs = check_cv(cv, rows.labels, classifier=True).split(rows.labels, rows.labels)
        return list(pairs)
    counting = np.arange(len(rows.labels))
    if rows.weights is not None:
        counting = np.flatnonzero(rows.weights > 0)
    labels = rows.labels[counting]
    folds = min(cv, int(np.bincount(labels).min()))
    if folds < 2:
        return []
    split = StratifiedKFold(folds, shuffle=True, random_state=seed % 2**32).split(labels, labels)
    return [(counting[seen], counting[held]) for seen, held in split]


def check_splits(splits: list[tuple[Array, Array]], rows: ClassRows, classes: Array) -> None:
    """Every class must be fitted in every fold."""
    for number, (seen, _) in enumerate(splits):
        lacking = np.flatnonzero(
            rows.weigh_classes(len(classes), _mask(seen, len(rows.labels))) == 0
        )
        if lacking.size:
            raise ValueError(
                f"cv leaves no row of class {classes.tolist()[lacking[0]]!r} to fit in fold "
                f"{number}, and the iterate is chosen by folds; use stratified folds such as "
                "cv=5, or give the density an iterate"
            )


def _mask(rows: Array, size: int) -> Array:
    mask = np.zeros(size, bool)
    mask[rows] = True
    return mask


def _staged_accuracy(
    models: list[Any], X: Any, labels: Array, log_priors: Array, weight: Array | None
) -> Array:
    """Share of the rows that each iterate puts into their class, (iterates,)."""
    scores = staged_scores(models, X, log_priors)
    return np.average(scores.argmax(axis=0) == labels, axis=1, weights=weight)


def staged_scores(models: list[Any], X: Any, log_priors: Array) -> Array:
    """Log score with prior of each class by each iterate, (classes, iterates, n)."""
    stages = [model.staged_score_samples(X) for model in models]
    shortest = min(len(one) for one in stages)
    return np.stack([one[:shortest] + prior for one, prior in zip(stages, log_priors, strict=True)])


def best_iterate(accuracies: Array) -> int:
    """The first one with the highest mean."""
    return int(np.argmax(accuracies.mean(axis=0)))
