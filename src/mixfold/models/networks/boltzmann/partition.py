"""Partition functions: by enumeration of the smaller side, or by annealed importance sampling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import logsumexp

from mixfold.contracts import Array, record
from mixfold.math.softmax import normalise
from mixfold.models.networks.boltzmann.energy import draw_labels, free_energy, hidden_drive
from mixfold.models.networks.boltzmann.records import RBMParams
from mixfold.models.networks.boltzmann.units import Units, bits, sigmoid, softplus

# units on a side whose states are enumerated, and states at a time
ENUMERABLE = 20
STATES = 2**14


@record
@dataclass(frozen=True, slots=True)
class LogPartition:
    """ln Z; its standard error and effective sample size are 0 and inf where it is exact."""

    value: float
    error: float = 0.0
    ess: float = float("inf")

    @property
    def exact(self) -> bool:
        return self.error == 0.0 and self.ess == float("inf")


def enumerable(units: Units, params: RBMParams) -> bool:
    """Whether one side has few enough units; real columns have no states to count."""
    n_visible, n_hidden, _ = params.shape
    return n_hidden <= ENUMERABLE or (units.countable and n_visible <= ENUMERABLE)


def exact(units: Units, params: RBMParams) -> LogPartition:
    """ln Z by enumeration."""
    params = params.astype(np.dtype(np.float64))
    n_visible, n_hidden, _ = params.shape
    if n_hidden <= n_visible or not units.countable:
        parts = [_over_hidden(units, params, h) for h in states(n_hidden)]
    else:
        parts = [-free_energy(units, params, v) for v in states(n_visible)]
    return LogPartition(float(logsumexp([logsumexp(part) for part in parts])))


def _over_hidden(units: Units, params: RBMParams, h: Array) -> Array:
    """ln of the sum over visible units and labels of exp(-E), for each hidden state."""
    found = h @ params.hidden + units.log_sum(params.visible, h @ params.weights.T)
    if len(params.label_bias):
        found += normalise(h @ params.label_weights.T + params.label_bias)[0]
    return np.asarray(found)


def states(n: int) -> Iterator[Array]:
    """All 2^n states of n bits, some at a time."""
    for first in range(0, 2**n, STATES):
        numbers = np.arange(first, min(first + STATES, 2**n))
        yield ((numbers[:, None] >> np.arange(n)) & 1).astype(float)


# ------------------------------------------------ annealed importance sampling


def temperatures(n: int) -> Array:
    """n + 1 values from 0 to 1, closer to each other near 1, where the machine comes to life."""
    shares = np.array([0.0, 0.5, 4.5, 14.5]) / 14.5
    return np.asarray(np.interp(np.linspace(0, 1, n + 1), shares, [0.0, 0.5, 0.9, 1.0]))


def estimate_by_annealing(
    units: Units, params: RBMParams, base: Array, rng: np.random.Generator, n_chains: int = 100,
    betas: Array | None = None,
) -> LogPartition:  # fmt: skip
    """ln Z by annealed importance sampling (Neal, 2001; Salakhutdinov and Murray, 2008).

    Parameters
    ----------
    base : ndarray of shape (D,)
        Visible biases of the machine without weights where the chains begin.
    betas : ndarray
        Rising from 0 to 1; by default a thousand temperatures.

    Returns
    -------
    LogPartition
        On average the estimate of Z, not of ln Z, is right: a short run gives too low an ln Z.
    """
    betas = temperatures(1000) if betas is None else betas
    n_classes = len(params.label_bias)
    start = units.log_sum(base, np.zeros((1, len(base))))[0]
    start += len(params.hidden) * np.log(2) + np.log(max(n_classes, 1))
    v = units.draw(np.tile(base.astype(params.dtype), (n_chains, 1)), rng)
    labels = draw_labels(np.full((n_chains, n_classes), 1 / max(n_classes, 1), params.dtype), rng)
    weights = np.zeros(n_chains)
    for before, now in pairwise(betas.tolist()):
        drive = hidden_drive(params, v, labels)
        own = units.weigh(v, params.visible) - units.weigh(v, base) + labels @ params.label_bias
        gain = softplus(now * drive) - softplus(before * drive)
        weights += (now - before) * own + gain.sum(axis=1, dtype=np.float64)
        v, labels = _step_at_temperature(units, params, base, drive, now, rng)
    return _average_weights(weights, float(start))


def _step_at_temperature(
    units: Units, params: RBMParams, base: Array, drive: Array, beta: float,
    rng: np.random.Generator,
) -> tuple[Array, Array]:  # fmt: skip
    """Hidden units, then visible ones and labels, of the machine at this temperature."""
    h = bits(sigmoid(beta * drive), rng)
    back = h @ params.weights.T
    back *= beta
    back += (beta * params.visible + (1 - beta) * base).astype(params.dtype)
    scores = beta * (h @ params.label_weights.T + params.label_bias)
    labels = normalise(scores)[1] if scores.shape[1] else scores
    return units.draw(back, rng), draw_labels(labels, rng)


def _average_weights(weights: Array, start: float) -> LogPartition:
    n, top = len(weights), weights.max()
    scaled = np.exp(weights - top)
    mean = scaled.mean()
    error = float(scaled.std(ddof=1) / (np.sqrt(n) * mean)) if n > 1 else float("inf")
    ess = float(scaled.sum() ** 2 / (scaled**2).sum())
    return LogPartition(start + float(top + np.log(mean)), error, ess)
