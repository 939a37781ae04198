"""How much is lost when a row is replaced by its latents, its component or its reconstruction.

Pure functions on arrays: what a fitted model answers (``predict_proba``, ``transform``,
``reconstruct``) goes in, a number comes out. None of them looks at a label.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.math.cooccurrence import (
    first_words,
    joint_documents,
    normalised_information,
    pair_mean,
)

# Rows of probabilities may come from float32 arithmetic.
_SUM_TOLERANCE = 1e-4
# Entries of a float64 temporary; keeps 60000 images from being copied whole.
_PIECE = 1 << 20


def reduction_risk(
    probabilities: Any,
    latents: Any,
    covariances: Any,
    *,
    sample_weight: Any = None,
    per_row: bool = False,
) -> float | Array:
    r"""Expected squared error of the expected latents: the risk of reducing a row to them.

    Given a row x, its latents follow a mixture of Gaussians with weights r_k (how probable
    component k is), means m_k and covariances R_k. Its mean z = sum_k r_k m_k is the best single
    point, and

    .. math:: risk(x) = E |latents - z|^2 = \sum_k r_k (trace R_k + |m_k - z|^2).

    Parameters
    ----------
    probabilities : array-like of shape (n, K)
        Of the components given a row: ``predict_proba(X)``. A column of ones for PPCA and factor
        analysis.
    latents : array-like of shape (n, K, d)
        Posterior means in each component: ``transform(X, per_component=True)``.
    covariances : array-like of shape (K, d, d) or (n, K, d, d)
        Posterior covariances of the latents: ``latent_covariances_``, the same for all complete
        rows, or those of each row if some have missing entries.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows in the average; all one by default. Not with ``per_row``.
    per_row : bool, default False
        Return the risk of each row instead of their average divided by d.

    Returns
    -------
    float, or ndarray of shape (n,)
        The average risk per latent dimension (0: the latents are known exactly; 1: no better
        than the standard normal prior), or with ``per_row`` the risks as in the formula, which
        are *not* divided by d.

    Examples
    --------
    One latent that is known up to a variance of 0.1, in one of two components that disagree:

    >>> import numpy as np
    >>> latents = np.array([[[1.0], [-1.0]], [[2.0], [-2.0]]])
    >>> covariances = np.full((2, 1, 1), 0.1)
    >>> reduction_risk([[1.0, 0.0], [0.5, 0.5]], latents, covariances, per_row=True)
    array([0.1, 4.1])
    >>> round(reduction_risk([[1.0, 0.0], [0.5, 0.5]], latents, covariances), 12)
    2.1
    """
    share = _probabilities(probabilities)
    means = _finite("latents", latents, (3,), "(n, K, d)")
    spread = _finite("covariances", covariances, (3, 4), "(K, d, d) or (n, K, d, d)")
    _check_latents(share, means, spread)
    centre = np.einsum("nk,nkd->nd", share, means)
    traces = np.einsum("...ii->...", spread)
    risk = (share * traces).sum(axis=1)
    for k in range(share.shape[1]):  # one component at a time: no second array of (n, K, d)
        gap = means[:, k] - centre
        risk += share[:, k] * np.einsum("nd,nd->n", gap, gap)
    if per_row:
        return _refuse_weights(risk, sample_weight)
    return _average(risk, sample_weight) / means.shape[2]


def clustering_risk(
    probabilities: Any, *, log: bool = False, sample_weight: Any = None, per_row: bool = False
) -> float | Array:
    """Probability that a row is not of the component it is assigned to.

    It is the sum of the probabilities of all *other* components, not one minus the largest, so
    that a risk of 1e-300 is told from 0.

    Parameters
    ----------
    probabilities : array-like of shape (n, K)
        Of the components given a row: ``predict_proba(X)``; or, with ``log``, their logarithms.
    log : bool, default False
        ``probabilities`` holds natural logarithms (-inf is probability 0). Use it for float32
        data, where probabilities below 1e-45 are rounded to 0.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows in the average; all one by default. Not with ``per_row``.
    per_row : bool, default False
        Return the risk of each row instead of their average.

    Returns
    -------
    float, or ndarray of shape (n,)
        Between 0 (always 0 for a single component) and 1 - 1/K.

    Examples
    --------
    >>> float(clustering_risk([[0.75, 0.25], [1.0, 1e-30]], per_row=True)[1])
    1e-30
    >>> clustering_risk([[0.75, 0.25], [1.0, 0.0]])
    0.125
    >>> print(f"{clustering_risk([[0.0, -690.0]], log=True):.2g}")
    2.2e-300
    """
    share = _from_logs(probabilities) if log else _probabilities(probabilities)
    chosen = share.argmax(axis=1)[:, None] == np.arange(share.shape[1])
    risk = np.where(chosen, 0.0, share).sum(axis=1)
    return _refuse_weights(risk, sample_weight) if per_row else _average(risk, sample_weight)


def signal_to_error_ratio(
    X: Any, X_hat: Any, *, sample_weight: Any = None, per_row: bool = False
) -> float | Array:
    r"""How large rows are against the error of their reconstruction, in decibel.

    .. math:: SER = 20 \log_{10} mean_n ( |x_n| / |x_n - \hat x_n| )

    The norms are of the rows as they are, *not* centred, and the average is of ratios: it differs
    from the ratio of averages and from the average of decibels.

    Parameters
    ----------
    X : array-like of shape (n, D)
        The rows. NaN entries are left out of both norms.
    X_hat : array-like of shape (n, D)
        Their reconstructions, say ``reconstruct(X)``. What it holds where X is NaN does not
        matter.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows in the average; all one by default. Not with ``per_row``.
    per_row : bool, default False
        Return 20 log10 of the ratio of each row instead of that of their average.

    Returns
    -------
    float, or ndarray of shape (n,)
        A row without any error has an infinite ratio (also if it is zero everywhere), and then
        the average is ``inf``, too. A zero row with an error has ratio 0 (``-inf`` with
        ``per_row``). A row without a single entry has no ratio: NaN with ``per_row``, and left
        out of the average.

    Examples
    --------
    >>> X, X_hat = [[3.0, 4.0], [0.0, 2.0]], [[3.0, 3.5], [0.2, 2.0]]
    >>> signal_to_error_ratio(X, X_hat)
    20.0
    >>> signal_to_error_ratio([[3.0, float("nan"), 4.0]], [[3.0, 7.0, 3.5]])
    20.0
    """
    rows, rebuilt = _matrix("X", X), _matrix("X_hat", X_hat)
    if rows.shape != rebuilt.shape:
        raise ValueError(
            f"X_hat must have the shape of X, {rows.shape}; got {rebuilt.shape}. "
            "Pass the reconstructions of the same rows and columns."
        )
    ratios = np.empty(len(rows))
    step = max(1, _PIECE // max(1, rows.shape[1]))
    for first in range(0, len(rows), step):
        piece = slice(first, first + step)
        ratios[piece] = _ratios(rows[piece], rebuilt[piece], first)
    if per_row:
        return _decibel(_refuse_weights(ratios, sample_weight))
    return float(_decibel(np.array(_average(ratios, sample_weight))))


def _ratios(X: Array, X_hat: Array, first: int) -> Array:
    """|x| / |x - x_hat| of each row over the entries of x that are there; NaN if none is."""
    X = X.astype(float)  # differences of unsigned integers would wrap around
    known = ~np.isnan(X)
    for name, bad in (("X", np.isinf(X)), ("X_hat", known & ~np.isfinite(X_hat))):
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise ValueError(
                f"{name} must be finite where X is known; row {first + row}, column {column} is "
                f"{(X if name == 'X' else X_hat)[row, column]}. Only X may hold NaN, for an entry "
                "that is missing."
            )
    signal = np.linalg.norm(np.where(known, X, 0.0), axis=1)
    noise = np.linalg.norm(np.where(known, X - X_hat, 0.0), axis=1)
    ratios = np.full(len(X), np.inf)
    np.divide(signal, noise, out=ratios, where=noise > 0)
    ratios[~known.any(axis=1)] = np.nan
    return ratios


def _decibel(ratios: Array) -> Array:
    with np.errstate(divide="ignore"):  # a zero row: -inf
        return np.asarray(20 * np.log10(ratios))


def _average(values: Array, sample_weight: Any) -> float:
    """Weighted average; rows without a value (NaN) or without weight do not take part."""
    weight = np.ones(len(values)) if sample_weight is None else _weights(sample_weight, len(values))
    used = (weight > 0) & ~np.isnan(values)
    if not used.any():
        raise ValueError(
            f"There is nothing to average: none of the {len(values)} rows has both a positive "
            "sample_weight and a known entry. Pass at least one such row."
        )
    return float(np.average(values[used], weights=weight[used]))


def _refuse_weights(values: Array, sample_weight: Any) -> Array:
    if sample_weight is not None:
        raise ValueError(
            "sample_weight is for the average over rows, and per_row=True asks for none. "
            "Leave one of the two out."
        )
    return values


def _weights(sample_weight: Any, n_rows: int) -> Array:
    weight = _finite("sample_weight", sample_weight, (1,), "(n,)")
    if len(weight) != n_rows:
        raise ValueError(
            f"sample_weight must have one entry for each of the {n_rows} rows; got {len(weight)}."
        )
    if (weight < 0).any():
        raise ValueError(
            f"sample_weight must not be negative; got {weight.min()} in row {weight.argmin()}. "
            "Use 0 to leave a row out."
        )
    return weight


def _numbers(name: str, value: Any, ndims: tuple[int, ...], shape: str) -> Array:
    """``value`` as an array of numbers with as many axes as it should have."""
    if hasattr(value, "toarray"):
        raise TypeError(f"{name} must be a dense array; got a sparse one. Pass {name}.toarray().")
    array = np.asarray(value)
    if array.dtype == object:  # a table with columns of several types
        with contextlib.suppress(TypeError, ValueError):
            array = array.astype(float)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold real numbers; got dtype {array.dtype}. "
            "Encode or drop the columns that are not numeric."
        )
    if array.ndim not in ndims:
        raise ValueError(f"{name} must have shape {shape}; got {array.shape}.")
    return array


def _matrix(name: str, value: Any) -> Array:
    return _numbers(name, value, (2,), "(n, D)")


def _finite(name: str, value: Any, ndims: tuple[int, ...], shape: str) -> Array:
    array = _numbers(name, value, ndims, shape).astype(float, copy=False)
    if not np.isfinite(array).all():
        place = tuple(map(int, np.argwhere(~np.isfinite(array))[0]))
        raise ValueError(
            f"{name} must be finite; entry {place} is {array[place]}. "
            "Check the model and the rows that it comes from."
        )
    return array


def _probabilities(value: Any) -> Array:
    share = _finite("probabilities", value, (2,), "(n, K)")
    if (share < 0).any():
        row, column = np.argwhere(share < 0)[0]
        raise ValueError(
            f"probabilities must not be negative; row {row}, column {column} is "
            f"{share[row, column]}. Pass predict_proba(X), or log=True if these are logarithms."
        )
    _check_sums(share.sum(axis=1), "sum to 1")
    return share


def _from_logs(value: Any) -> Array:
    logs = _numbers("probabilities", value, (2,), "(n, K)").astype(float)
    bad = ~(logs <= _SUM_TOLERANCE)  # also NaN
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"probabilities must hold logarithms, at most 0; row {row}, column {column} is "
            f"{logs[row, column]}. Pass predict_log_proba(X), or log=False for probabilities."
        )
    share = np.asarray(np.exp(logs))
    _check_sums(share.sum(axis=1), "have exponentials that sum to 1")
    return share


def _check_sums(totals: Array, rule: str) -> None:
    wrong = np.flatnonzero(np.abs(totals - 1) > _SUM_TOLERANCE)
    if wrong.size:
        raise ValueError(
            f"The rows of probabilities must {rule}; row {wrong[0]} gives {totals[wrong[0]]:.6g}. "
            "Pass what predict_proba or predict_log_proba returns, with all components."
        )


def _check_latents(share: Array, means: Array, covariances: Array) -> None:
    n, components, size = means.shape
    if share.shape != (n, components):
        raise ValueError(
            f"latents must have shape (n, K, d) with (n, K) = {share.shape} as in probabilities; "
            f"got {means.shape}. Pass transform(X, per_component=True)."
        )
    if size == 0:
        raise ValueError("latents must have at least one dimension (d >= 1); got d = 0.")
    expected = (n, components, size, size)
    if covariances.shape not in (expected, expected[1:]):
        raise ValueError(
            f"covariances must have shape {expected[1:]} (one for each component) or {expected} "
            f"(also for each row), to fit latents; got {covariances.shape}."
        )


# ------------------------------------------------------------------ topics


def npmi_coherence(
    topics_or_words: Any, X: Any, n_words: int = 10, *, per_topic: bool = False
) -> float | Array:
    r"""Whether the words of a topic occur in the same documents: normalised mutual information.

    .. math:: npmi(i, j) = \ln \frac{p_{ij}}{p_i p_j} / (-\ln p_{ij})

    p_i is the share of documents that have word i, p_ij of those that have both. The coherence of
    a topic is the average over the pairs of its first words: 1 if they always come together, 0 if
    by chance, -1 if never. It goes along with what people think of topics (Lau, Newman and
    Baldwin, 2014). Measure it on documents that were not learned from.

    Parameters
    ----------
    topics_or_words : array-like of shape (K, D), or list of lists of int
        Weights of the words in each topic (``topics_``), or columns of X, first word first
        (``top_words(10, range(D))``).
    X : sparse matrix or array-like of shape (n, D)
        Counts; only whether a word occurs matters. Documents without a word do not count.
    n_words : int, default 10
        First words of a topic that are looked at; at least two.
    per_topic : bool, default False
        Return the coherence of each topic instead of their average.

    Returns
    -------
    float, or ndarray of shape (K,)
        Pairs with a word that never occurs in X are left out; NaN if a topic has no other pairs,
        which the average leaves out.

    Examples
    --------
    >>> X = [[1, 2, 0, 0], [3, 1, 0, 0], [0, 0, 1, 1], [0, 0, 2, 1]]
    >>> npmi_coherence([[0, 1], [2, 3]], X, n_words=2)
    1.0
    >>> npmi_coherence([[0, 2], [0, 1]], X, n_words=2, per_topic=True)
    array([-1.,  1.])
    """
    counts = X if hasattr(X, "tocsr") else _finite("X", X, (2,), "(n, D)")
    words = first_words(topics_or_words, counts.shape[1], n_words)
    used, places = np.unique(np.concatenate(words), return_inverse=True)
    joint, documents = joint_documents(counts, used)
    if documents == 0:
        raise ValueError("X has no document with a word; pass counts of words in documents.")
    npmi = normalised_information(joint, documents)
    ends = np.cumsum([len(row) for row in words])[:-1]
    values = np.array([pair_mean(npmi[np.ix_(row, row)]) for row in np.split(places, ends)])
    return values if per_topic else _average(values, None)
