"""A sampler against its own density, within six standard errors of the Monte Carlo mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mixfold.contracts import Array
from mixfold.testing.compare import require

Sampler = Callable[[int, np.random.Generator], Array]
LogDensity = Callable[[Array], Array]
_ERRORS = 6.0


def _within(law: str, what: str, draws: Array, wanted: Array | float) -> None:
    """The mean of draws (n, ...) is ``wanted``, within six standard errors."""
    mean = draws.mean(axis=0)
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    off = np.abs(mean - wanted) - _ERRORS * error
    at = np.unravel_index(int(np.argmax(off)), off.shape)
    target = np.broadcast_to(wanted, mean.shape)[at]
    message = f"{what} {at}: {mean[at]:.5g} +- {error[at]:.2g}, wanted {target:.5g}"
    require(bool((off <= 1e-12 * (1 + np.abs(mean))).all()), law, message)


def sampler_moments(
    sample: Sampler, mean: Array, covariance: Array, n: int = 20_000, seed: int = 0
) -> None:
    """Draws have the mean (D,) and the covariance (D, D) that the model states."""
    X = sample(n, np.random.default_rng(seed))
    _within("sampler has its moments", "mean", X, mean)
    centred = X - mean
    _within(
        "sampler has its moments", "covariance", centred[:, :, None] * centred[:, None], covariance
    )


def sampler_slopes(
    sample: Sampler, log_density: LogDensity, n: int = 20_000, seed: int = 0, step: float = 1e-4
) -> None:
    """Stein's identities: E[d ln p] = 0 and E[x d ln p'] = -I hold for the density p of the draws.

    They hold for no other smooth density, so this asks for no moments; ``step`` is for
    differences of ``log_density``, relative to the spread of the draws.
    """
    X = sample(n, np.random.default_rng(seed))
    centre, spread = X.mean(axis=0), X.std(axis=0)
    slope = np.empty_like(X)
    for column, size in enumerate(step * spread):
        ahead, behind = X.copy(), X.copy()
        ahead[:, column] += size
        behind[:, column] -= size
        slope[:, column] = (log_density(ahead) - log_density(behind)) / (2 * step)
    U = (X - centre) / spread
    _within("sampler has its density", "mean slope", slope, 0.0)
    _within(
        "sampler has its density",
        "slope moment",
        U[:, :, None] * slope[:, None],
        -np.eye(X.shape[1]),
    )


def sampler_entropy(
    sample: Sampler, log_density: LogDensity, wanted: float, n: int = 20_000, seed: int = 0
) -> None:
    """The mean log density of the draws is ``wanted`` (in closed form, or by quadrature)."""
    X = sample(n, np.random.default_rng(seed))
    _within("sampler has its entropy", "mean log density", log_density(X)[:, None], wanted)
