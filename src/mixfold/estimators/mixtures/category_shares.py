"""Columns that hold codes, by the shares of their codes: a mean of codes means nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import xlogy

from mixfold.contracts import Array


def category_shares(model: Any) -> dict[int, Array]:
    """Probability of each code in each component or class, (K, C) by the position of the column.

    Columns are those of the families 'categorical' and 'bernoulli' (codes 0 and 1). Empty for
    models without such columns.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import BernoulliMixture
    >>> X = np.repeat([[0, 1], [1, 1]], 50, axis=0)
    >>> shares = category_shares(BernoulliMixture(1).fit(X))
    >>> shares[0].round(2)
    array([[0.5, 0.5]])
    """
    classes = getattr(model, "estimators_", None)
    if isinstance(classes, list) and classes and hasattr(model, "priors_"):
        return _shares_of_classes(classes)
    if not hasattr(model, "_family_setting") or not hasattr(model, "_params"):
        return {}
    mixture = model._model(model.n_features_in_)
    family, components = mixture.row_family, mixture.point_components(model._params)
    if hasattr(family, "live"):
        parts = list(family.live(components))
    else:
        parts = [(family, np.arange(model.n_features_in_), components)]
    found: dict[int, Array] = {}
    for part, columns, params in parts:
        if part.name == "categorical":
            shares = [np.asarray(one) for one in part.describe(params)["probabilities"]]
        elif part.name == "bernoulli":
            ones = np.clip(params.frame.leave(params.means), 0.0, 1.0)
            shares = [np.stack([1 - p, p], axis=1) for p in ones.T]
        else:
            continue
        found |= {int(j): one for j, one in zip(columns, shares, strict=True)}
    return found


def _shares_of_classes(classes: list[Any]) -> dict[int, Array]:
    """Of a classifier: those of each class are the mean over the components of its mixture."""
    if any(one is None for one in classes):  # not seen yet
        return {}
    each = [category_shares(one) for one in classes]
    common = set(each[0]).intersection(*each)
    found = {}
    for j in sorted(common):
        parts = [
            np.asarray(one.weights_, float) @ shares[j]
            for one, shares in zip(classes, each, strict=True)
        ]
        size = max(len(part) for part in parts)
        found[j] = np.stack([np.pad(part, (0, size - len(part))) for part in parts])
    return found


def information_of_codes(shares: Array, weights: Array) -> float:
    """Mutual information of a column of codes (K, C) and the groups, in bits.

    Examples
    --------
    >>> information_of_codes(np.eye(2), np.array([0.5, 0.5]))
    1.0
    >>> information_of_codes(np.full((2, 3), 1 / 3), np.array([0.5, 0.5]))
    0.0
    """
    parts = weights / weights.sum()
    within = parts @ xlogy(shares, shares).sum(axis=1)
    together = parts @ shares
    return max(0.0, float(within - xlogy(together, together).sum()) / float(np.log(2)))


def information_of_numbers(means: Array, deviations: Array, weights: Array) -> Array:
    """Mutual information (D,) of columns and the groups, in bits, if groups are normal there.

    Means and deviations are (K, D). The integral over a column is Gauss-Hermite's.
    """
    parts = weights / weights.sum()
    nodes, masses = np.polynomial.hermite_e.hermegauss(24)
    masses = masses / masses.sum()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = means[:, None] + deviations[:, None] * nodes[:, None]  # (K, nodes, D)
        apart = (z[:, :, None] - means) / deviations
        logs = np.log(parts)[:, None] - 0.5 * apart**2 - np.log(deviations)
        total = np.logaddexp.reduce(logs, axis=2)
        own = -0.5 * nodes[:, None] ** 2 - np.log(deviations)[:, None]
        nats = np.einsum("k,i,kid->d", parts, masses, own - total)
    bits: Array = np.nan_to_num(nats / np.log(2), posinf=0.0, neginf=0.0)
    return np.maximum(bits, 0.0)
