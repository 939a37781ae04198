"""What a classifier of densities makes of y and of priors."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from mixfold.contracts import Array, Source
from mixfold.engine.sources import open_source
from mixfold.engine.sources.targets import sides_beside, split_target
from mixfold.estimators.mixtures.class_rows import ClassRows, is_in_memory


def class_rows(
    owner: Any, X: Any, y: Any, weight: Any, reset: bool = True
) -> tuple[ClassRows, Array]:
    """The rows of ``fit`` with class numbers, and the classes."""
    in_memory = is_in_memory(X)
    if isinstance(y, str):
        y, columns = split_target(X, y, weight)
        X = open_source(X, columns=columns, weight=weight)
        weight = None
    source = owner._open(X, reset=reset, weight=weight)
    if y is None and isinstance(X, Source):
        y = sides_beside(X).y
    classes, labels = np.unique(_known(owner, y), return_inverse=True)
    if source.n_samples is not None and source.n_samples != len(labels):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has "
            f"{source.n_samples} rows and y {len(labels)}; give one entry per row, in the same "
            "order"
        )
    weights = _weights(source)
    if weights is not None and (weights == 0).any():
        classes, labels = _without_lost(classes, labels, weights)
    return ClassRows(source, labels, weights, in_memory), classes


def _known(owner: Any, y: Any) -> Array:
    if y is None:
        raise ValueError(
            f"This {type(owner).__name__} estimator requires y to be passed, but the target y is "
            "None; give the class of each row"
        )
    given = np.asarray(y)
    gaps = given.dtype.kind in "Of" and any(map(_is_gap, given.ravel().tolist()))
    if gaps:
        raise ValueError(
            "Input y contains NaN: every row needs a class; leave rows without one out, or use "
            "MixtureOfFactorModels or SupervisedPPCA, which learn from them"
        )
    check_classification_targets(y)
    return np.asarray(column_or_1d(y, warn=True))


def _is_gap(label: Any) -> bool:
    """None, NaN, or the missing value of pandas, which cannot be compared."""
    return label is None or type(label).__name__ in ("NAType", "NaTType") or label != label


def _weights(source: Source) -> Array | None:
    parts = [block.weight for block in source.blocks()]
    return None if parts[0] is None else np.concatenate([p for p in parts if p is not None])


def _without_lost(classes: Array, labels: Array, weights: Array) -> tuple[Array, Array]:
    """Classes of which some row has a weight; rows of the others, which weigh nothing, go along."""
    kept = np.bincount(labels, weights) > 0
    if not kept.any():
        raise ValueError("all sample weights are zero: give at least one row a positive weight")
    numbers = np.cumsum(kept) - 1
    return classes[kept], np.where(kept[labels], numbers[labels], 0)


def class_numbers(values: Array, classes: Array) -> Array:
    """Where classes are in the list of all; an unknown one is an error."""
    numbers = np.searchsorted(classes, values)
    found = classes[np.minimum(numbers, len(classes) - 1)] == values
    if not np.all(found):
        raise ValueError(
            f"{values[~found].tolist()[0]!r} is no known class; the classes are "
            f"{', '.join(map(repr, classes.tolist()))} (partial_fit takes all of them in its first "
            "call, classes=...)"
        )
    return numbers


def check_density(estimator: Any) -> None:
    """Refuse what cannot be the density of a class."""
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"estimator must be an estimator, such as mixfold.GaussianMixture(2); got {estimator!r}"
        )
    if not hasattr(estimator, "score_samples"):
        raise TypeError(
            f"estimator must have score_samples, the log density of rows; {estimator!r} has not. "
            "Use a mixture or a factor model"
        )
    if not getattr(estimator, "_densities_compare", True):
        raise TypeError(
            f"the densities of {estimator!r} are of features in as many dimensions as a class has "
            "rows, and do not compare classes; use a mixture or a factor model, or SupervisedPPCA "
            "with this kernel"
        )


def check_novelty_label(given: Any, label: Any, classes: Array) -> None:
    """Rows that are novel must not look like those of a class, unless it was named for them."""
    if given is None and label in classes.tolist():
        raise ValueError(
            f"novel rows would be called {label!r}, which is a class of y; name them by "
            "novelty_label"
        )


def check_settings(settings: Any, classes: Array, estimator: Any) -> None:
    """``{class: {parameter: value}}``, of parameters that may differ by class."""
    if settings is None:
        return
    if not isinstance(settings, dict) or not all(isinstance(v, dict) for v in settings.values()):
        raise TypeError(f"settings must be {{class: {{parameter: value}}}}; got {settings!r}")
    unknown = [c for c in settings if c not in set(classes.tolist())]
    if unknown:
        raise ValueError(
            f"settings names {unknown[0]!r}, which is no class of y; the classes are "
            f"{', '.join(map(repr, classes.tolist()))}"
        )
    shared = getattr(estimator, "_same_in_all_classes", ())
    for label, own in settings.items():
        apart = [name for name in own if name in shared]
        if apart:
            raise ValueError(
                f"settings gives class {label!r} its own {apart[0]}, but the scores of "
                f"{type(estimator).__name__} compare only classes that share {', '.join(shared)}"
            )


def priors_of(priors: Any, classes: Array, weight: Array) -> Array:
    """Probabilities of the classes."""
    priors = named_priors(priors, classes)
    if isinstance(priors, str):
        values = weight if priors == "empirical" else np.ones(len(classes))
    elif isinstance(priors, dict):
        lacking = [c for c in classes.tolist() if c not in priors]
        if lacking or len(priors) != len(classes):
            raise ValueError(
                f"priors must name each class once; the classes are {classes.tolist()}, and it "
                f"names {list(priors)}"
            )
        values = _numbers([priors[c] for c in classes.tolist()])
    else:
        values = _numbers(priors)
    if values.shape != classes.shape or not (values >= 0).all() or not 0 < values.sum() < np.inf:
        raise ValueError(
            f"priors must be {len(classes)} numbers >= 0, one for each class, not all zero; got "
            f"{priors!r}"
        )
    return values / values.sum()


def named_priors(priors: Any, classes: Array) -> Any:
    """A pandas Series that is named by classes, such as value_counts, as a dict; else its values.

    Whatever is no Series stays as it is.
    """
    if isinstance(priors, dict) or not hasattr(priors, "index") or callable(priors.index):
        return priors
    names, values = np.asarray(priors.index).tolist(), np.asarray(priors)
    named = not set(names).isdisjoint(classes.tolist())
    return dict(zip(names, values.tolist(), strict=True)) if named else values


def _numbers(priors: Any) -> Array:
    try:
        return np.asarray(priors, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"priors must be numbers >= 0, one for each class; got {priors!r}"
        ) from None
