"""Responsibilities from log joint densities (log-sum-exp), their entropies, and draws."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array


def normalise(log_joint: Array) -> tuple[Array, Array]:
    """Row-wise log-sum-exp and softmax of (n, K). -inf marks what is impossible.

    A row that is impossible everywhere gets a log-sum of -inf and equal shares.
    """
    top = log_joint.max(axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    share = np.exp(log_joint - top)
    total = share.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        log_total = (np.log(total) + top)[:, 0]
    impossible = total[:, 0] == 0
    if impossible.any():
        share[impossible], total[impossible] = 1.0, log_joint.shape[1]
    share /= total
    return log_total, share


def log_normalised(log_joint: Array) -> Array:
    """Logarithms of the shares that ``normalise`` gives, exact where those underflow."""
    impossible = np.isneginf(log_joint).all(axis=1, keepdims=True)
    possible = np.where(impossible, 0.0, log_joint) if impossible.any() else log_joint
    return np.asarray(possible - normalise(possible)[0][:, None])


def log_shares(scores: Array) -> Array:
    """Logarithms of the softmax of finite scores (n, K), which sum to one however large they are.

    Scores less their log-sum-exp keep its rounding: with scores of 1e15 that is a tenth.
    """
    top = scores.max(axis=1, keepdims=True)
    below = scores - top
    log_total = np.log(np.exp(below).sum(axis=1, keepdims=True))
    return np.asarray(np.where(np.abs(top) > 1e6, below - log_total, scores - (log_total + top)))


def entropies(resp: Array) -> Array:
    """-sum_k r ln r of each row."""
    logs = np.log(resp, out=np.zeros_like(resp), where=resp > 0)
    return np.asarray(-(resp * logs).sum(axis=1))


def clamp(log_joint: Array, labels: Array | None) -> Array:
    """-inf everywhere but at the known label of a row; labels < 0 are unknown."""
    if labels is None:
        return log_joint
    known = labels >= 0
    allowed = np.arange(log_joint.shape[1]) == labels[:, None]
    return np.where(allowed | ~known[:, None], log_joint, -np.inf)


def choose(shares: Array, uniforms: Array) -> Array:
    """One index per row of (n, K) shares, by inversion of uniforms (n,)."""
    cumulative = np.cumsum(shares, axis=1)
    return np.asarray((uniforms[:, None] * cumulative[:, -1:] > cumulative).sum(axis=1))
