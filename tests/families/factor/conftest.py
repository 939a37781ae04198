"""Every kind of factor component by its code, and components of each with nothing symmetric."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from mixfold.families.factor import (
    DiagonalNoise,
    FactorFamily,
    FactorParams,
    IsotropicNoise,
    OwnLoadings,
    TiedLoadings,
)
from mixfold.math.frame import Frame

Typical = Callable[..., FactorParams]
Dense = Callable[[FactorParams], tuple[np.ndarray, np.ndarray]]


def _families() -> dict[str, FactorFamily]:
    """Letters: loadings Common or Unlike, noise of components likewise, noise of columns."""
    return {
        f"{loads}{among}{within}": FactorFamily(
            factors=(2,) if loads == "C" else (2, 1, 2),
            noise=(IsotropicNoise if within == "C" else DiagonalNoise)(among == "C"),
            loadings=TiedLoadings() if loads == "C" else OwnLoadings(),
        )
        for loads, among, within in product("UC", repeat=3)
    }


FAMILIES = _families()


@pytest.fixture(params=sorted(FAMILIES))
def family(request: pytest.FixtureRequest) -> FactorFamily:
    return FAMILIES[request.param]


def _typical(
    family: FactorFamily, n_components: int, n_features: int, seed: int = 0, noise: float = 1.0,
    origin: np.ndarray | None = None,
) -> FactorParams:  # fmt: skip
    rng = np.random.default_rng(seed)
    own = np.resize(family.factors, n_components)
    size = max(family.factors)
    loadings = rng.normal(size=(n_components, n_features, size))
    loadings = np.where(np.arange(size) < own[:, None, None], loadings, 0.0)
    if family.loadings.tied:
        loadings = np.repeat(loadings[:1], n_components, axis=0)
    shape = (n_components, n_features)
    psi = family.noise.drop_copies(noise * rng.uniform(0.2, 2.0, shape))
    origin = 10 * rng.normal(size=n_features) if origin is None else origin
    scale = rng.uniform(0.5, 3.0, n_features)
    if not family.scales_columns:
        scale = np.full(n_features, scale[0])
    means = np.zeros(shape) if family.fixed_means else rng.normal(size=shape)
    if family.fixed_means:
        origin = np.zeros(n_features)
    return FactorParams(Frame(origin, scale), means, loadings, family.noise.spread(psi, shape))


@pytest.fixture(scope="session")
def typical() -> Typical:
    """``typical(family, K, D, seed, noise, origin)``: parameters in a frame of their own."""
    return _typical


def _dense(params: FactorParams) -> tuple[np.ndarray, np.ndarray]:
    W, scale = params.loadings, params.frame.scale
    covariances = W @ np.swapaxes(W, 1, 2) + params.noise[:, :, None] * np.eye(W.shape[1])
    return params.frame.leave(params.means), covariances * np.multiply.outer(scale, scale)


@pytest.fixture(scope="session")
def dense() -> Dense:
    """Means (K, D) and covariances (K, D, D) in data coordinates."""
    return _dense
