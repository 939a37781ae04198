"""Notes about columns: constant ones, and one whose scale dominates the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from mixfold.contracts import Array
from mixfold.estimators.mixtures.set_aside import constants_set_aside
from mixfold.report.capabilities import is_in_kernel_space, units_matter
from mixfold.report.formatting import join_words, share, short
from mixfold.report.section import Note
from mixfold.report.subject import Subject

# a column with more of the variance of all leaves little to see of the others
_MOST = 0.9
_NAMED = 4
# probability of negative values from which on it is told
_IMPOSSIBLE = 0.02


def column_notes(subject: Subject) -> list[Note]:
    """Notes about columns of numbers; pixels at an edge and rare words are as they are."""
    if subject.look is None or subject.image is not None or hasattr(subject.model, "topics_"):
        return []
    return [
        *_not_modelled(subject), *_constant(subject), *_drowning(subject), *_impossible(subject),
    ]  # fmt: skip


def _not_modelled(subject: Subject) -> list[Note]:
    """Columns of a table that its schema sets aside."""
    aside = [] if subject.schema is None else [c for c in subject.schema if not c.used]
    if not aside:
        return []
    names = [f"'{short(c.name, 24)}' ({c.describe()})" for c in aside]
    are = "is no column" if len(aside) == 1 else "are no columns"
    return [
        Note(
            f"{join_words(names, _NAMED)} {are} of the model: set aside by the schema.",
            serious=False,
        )
    ]


def _constant(subject: Subject) -> list[Note]:
    assert subject.look is not None
    columns = subject.look.columns
    same = (columns.minimum == columns.maximum) & (columns.observed > 1)
    same[constants_set_aside(subject.model)[0]] = False  # an event of the fit tells of these
    names = [f"'{short(subject.names[j], 24)}'" for j in np.flatnonzero(same)]
    if not names:
        return []
    one = len(names) == 1
    holds, leave = ("holds", "Leave it out") if one else ("hold", "Leave them out")
    text = f"{join_words(names, _NAMED)} {holds} the same value in all rows: no information."
    return [Note(text, leave)]


def _impossible(subject: Subject) -> list[Note]:
    """Columns without negative entries to which Gaussians give a good part of negative ones."""
    assert subject.look is not None
    found = _gaussian_margins(subject.model)
    if found is None:
        return []
    weights, means, deviations = found
    with np.errstate(invalid="ignore", divide="ignore"):
        below = weights @ norm.cdf(-means / np.where(deviations > 0, deviations, np.nan))
    positive = (subject.look.columns.minimum >= 0) & (below > _IMPOSSIBLE)
    positive &= [j not in subject.codes for j in range(len(below))]
    order = [int(j) for j in np.argsort(-below, kind="stable") if positive[j]]
    within = " within components" if len(weights) > 1 else ""
    if not order:
        return []
    names = [f"{short(subject.names[j], 40)} ({share(float(below[j]))})" for j in order]
    text = (
        "The model gives probability to negative values of columns that have none: "
        f"{join_words(names, _NAMED)}. They end at zero or are skewed, and the model takes them "
        f"for normal{within}."
    )
    return [Note(text, "Fit their logarithm or square root, or a family of positive numbers")]


def _gaussian_margins(model: Any) -> tuple[Array, Array, Array] | None:
    """Weights (K,), means and deviations (K, D) of the columns; None if they are not Gaussian."""
    if is_in_kernel_space(model):
        return None
    if hasattr(model, "loadings_") and np.ndim(model.loadings_) == 2 and hasattr(model, "mean_"):
        loadings = np.asarray(model.loadings_, float)
        mean = np.asarray(model.mean_, float)
        noise = np.asarray(getattr(model, "noise_variance_", np.nan), float)
        related = getattr(model, "factor_correlations_", None)
        common = loadings * (loadings if related is None else loadings @ related)
        if mean.shape != (len(loadings),) or noise.ndim > 1:
            return None
        return np.ones(1), mean[None], np.sqrt(common.sum(axis=1) + noise)[None]
    means, weights = getattr(model, "means_", None), getattr(model, "weights_", None)
    covariances = getattr(model, "covariances_", None)
    kind = getattr(model, "covariance_type", None)
    if means is None or weights is None or covariances is None or not isinstance(kind, str):
        return None
    means, found = np.asarray(means, float), np.asarray(covariances, float)
    size, width = means.shape
    if np.shape(weights) != (size,):  # of groups that are mixtures themselves
        return None
    if kind == "full":
        variance = np.diagonal(found, axis1=1, axis2=2)
    elif kind == "tied":
        variance = np.broadcast_to(np.diagonal(found), (size, width))
    elif kind == "diag":
        variance = found
    else:  # one deviation for columns in all units says nothing about a column
        return None
    return np.asarray(weights, float), means, np.sqrt(variance)


def _drowning(subject: Subject) -> list[Note]:
    """Of models to which units matter: a column that has nearly all of the variance."""
    assert subject.look is not None
    variance = np.nan_to_num(subject.look.columns.deviation) ** 2
    total = float(variance.sum())
    if len(variance) < 2 or not 0 < total < np.inf or not units_matter(subject.model):
        return []
    largest = int(variance.argmax())
    part = float(variance[largest]) / total
    if part <= _MOST:
        return []
    text = (
        f"'{short(subject.names[largest], 24)}' has {share(part)} of the variance of all columns. "
        "This model depends on the units of the columns, so the other columns hardly count."
    )
    return [Note(text, "Divide each column by its standard deviation before the fit")]
