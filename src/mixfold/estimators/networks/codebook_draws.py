"""Rows put together from the patterns of a codebook: one of each group of similar patterns."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from mixfold.contracts import Array
from mixfold.engine.random import seed_from
from mixfold.estimators.mixtures.kmeans import KMeans
from mixfold.estimators.shell import constraints as rule


@dataclass(frozen=True, slots=True)
class CodebookDraws:
    """Result of :func:`sample_codebook`.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    patterns : int ndarray of shape (n_samples, n_groups)
        Which pattern each row has of each group.
    groups : int ndarray of shape (n_patterns,)
        The group of each pattern.
    """

    X: Array
    patterns: Array
    groups: Array


def sample_codebook(
    model: Any,
    n_samples: int = 1,
    groups: Any = 5,
    *,
    amounts: Any = None,
    random_state: Any = None,
) -> CodebookDraws:
    """Rows put together from patterns of a codebook, one of each group of similar ones.

    The patterns are grouped by k-means. A row is the sum of one pattern of each group, drawn with
    equal probabilities, so that no part of it is there twice (table 3.2 of [1]_). Nothing is
    learned of which patterns go together, and there are no more than the product of the sizes of
    the groups of different rows: :class:`LatentDensity` draws from what is learned. It shows what
    the patterns of a codebook are: parts that can be exchanged, or not.

    Parameters
    ----------
    model : estimator or array-like of shape (n_patterns, n_features)
        Fitted, with ``components_`` (:class:`MatrixFactorization`, scikit-learn's NMF), or the
        codebook itself. A ``bias_`` (or ``mean_``) is added to the rows.
    n_samples : int, default=1
    groups : int or array-like of shape (n_patterns,), default=5
        Number of groups that k-means makes, and so of patterns in a row; at most that of the
        patterns. Or the group of each pattern, as any numbers.
    amounts : array-like of shape (n_patterns,), default=None
        How much of each pattern a row gets that has it. None is 1. The scale of a codebook is
        often arbitrary, so give what is usual, the mean of the codes of rows that have it, say.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the groups and the draws.

    Returns
    -------
    CodebookDraws

    References
    ----------
    .. [1] Arngren. Modelling cognitive representations. Master thesis, Technical University of
       Denmark, 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mixfold import MatrixFactorization, sample_codebook
    >>> X, y = load_digits(return_X_y=True)
    >>> twos = X[y == 2]
    >>> parts = MatrixFactorization(16, link="identity", nonneg_codebook=True, nonneg_sources=True,
    ...                             fit_bias=False, tol=1e-2, random_state=0).fit(twos)
    >>> codes = parts.codes(twos)
    >>> usual = (codes**2).sum(axis=0) / codes.sum(axis=0)  # the mean, weighted by the codes
    >>> drawn = sample_codebook(parts, 10, groups=6, amounts=usual, random_state=0)
    >>> drawn.X.shape, drawn.patterns.shape, len(drawn.groups)
    ((10, 64), (10, 6), 16)
    """
    codebook, bias = _read_codebook(model)
    rule.check_count("n_samples", n_samples)
    scale = _check_amounts(amounts, len(codebook))
    seed = seed_from(random_state)
    found = _find_groups(groups, scale[:, None] * codebook, seed)
    members = [np.flatnonzero(found == k) for k in range(found.max() + 1)]
    rng = np.random.default_rng([seed % 2**63, 13])
    patterns = np.column_stack([rng.choice(one, n_samples) for one in members])
    rows = bias + (scale[patterns][:, :, None] * codebook[patterns]).sum(axis=1)
    return CodebookDraws(rows, patterns, found)


def _find_groups(groups: Any, patterns: Array, seed: int) -> Array:
    """The group of each pattern, 0 .. n_groups - 1: as given, or by k-means."""
    if np.ndim(groups):
        given = np.asarray(groups)
        if given.shape != (len(patterns),):
            raise ValueError(
                f"groups must be a number, or one entry for each of the {len(patterns)} patterns; "
                f"got an array of shape {given.shape}"
            )
        return np.unique(given, return_inverse=True)[1]
    rule.check_count("groups", groups)
    if groups > len(patterns):
        raise ValueError(
            f"groups must be at most the number of patterns, {len(patterns)}; got {groups}"
        )
    if groups == len(patterns):
        return np.arange(len(patterns))
    with warnings.catch_warnings():
        # few patterns in a group, and columns of one unit whose variances differ, are no fault here
        warnings.simplefilter("ignore")
        means = KMeans(groups, n_init=10, random_state=seed % 2**31).fit(patterns)
    found = np.unique(means.predict(patterns), return_inverse=True)[1]
    if found.max() + 1 < groups:
        raise ValueError(
            f"the patterns are {found.max() + 1} groups of equal ones, so groups={groups} cannot "
            f"be made; lower groups to {found.max() + 1}"
        )
    return np.asarray(found)


def _read_codebook(model: Any) -> tuple[Array, Any]:
    if isinstance(model, type) or not (hasattr(model, "components_") or np.ndim(model) == 2):
        raise TypeError(
            "model must be a fitted model with components_, such as MatrixFactorization, or a "
            f"matrix with a pattern in each row; got {type(model).__name__}"
        )
    codebook = check_array(getattr(model, "components_", model), dtype=np.float64)
    bias = getattr(model, "bias_", getattr(model, "mean_", None))
    return codebook, 0.0 if bias is None else np.asarray(bias, float)


def _check_amounts(amounts: Any, n_patterns: int) -> Array:
    if amounts is None:
        return np.ones(n_patterns)
    values = rule.as_numbers(amounts, "amounts")
    if values.shape != (n_patterns,) or not np.isfinite(values).all():
        raise ValueError(
            f"amounts must be {n_patterns} finite numbers, one for each pattern; got an array of "
            f"shape {values.shape}"
        )
    return np.asarray(values)
