"""The laws of models on tables of many sizes, drawn anew for each seed: part of `make test-all`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Array
from mixfold.families import GAUSSIAN
from mixfold.families.factor import DiagonalNoise, FactorFamily, IsotropicNoise
from mixfold.models.mixtures.mixture import Mixture
from mixfold.testing import Case, laws
from mixfold.testing.tables import clustered_table
from tests.families.exponential.examples import EXAMPLES, rows_of

pytestmark = pytest.mark.slow
# of seed 2 the clusters are far apart: the first step arrives, and a gradient of zero shows nothing
seeds = pytest.mark.parametrize("seed", [0, 1, 3, 4, 5, 6, 7, 8])
FACTOR = {
    "isotropic": FactorFamily(factors=(1,), noise=IsotropicNoise()),
    "diagonal": FactorFamily(factors=(1,), noise=DiagonalNoise()),
}


def sizes(seed: int) -> tuple[np.random.Generator, int, int, int, float]:
    """Rows, columns, components and the share of missing entries."""
    rng = np.random.default_rng(seed)
    n, D, K = int(rng.integers(80, 260)), int(rng.integers(3, 7)), int(rng.integers(2, 5))
    return rng, n, D, K, float(rng.choice([0.0, 0.05, 0.3]))


def check(model: Any, X: Array, rng: np.random.Generator, K: int) -> None:
    weight = rng.choice([0.5, 1.0, 3.0], len(X)) if rng.random() < 0.7 else None
    y = np.where(rng.random(len(X)) < 0.1, 1, -1) if rng.random() < 0.5 else None
    laws.check_model(Case(model, X, weight, y, rtol=1e-9), n_labels=K)


@seeds
@pytest.mark.parametrize("name", GAUSSIAN)
def test_gaussian(name: str, seed: int) -> None:
    rng, n, D, K, missing = sizes(seed)
    X = clustered_table(n, D, K, missing=missing, seed=seed)
    check(Mixture(K, GAUSSIAN[name]()), X, rng, K)


@seeds
@pytest.mark.parametrize("name", FACTOR)
def test_factors(name: str, seed: int) -> None:
    rng, n, D, K, missing = sizes(seed)
    X = clustered_table(n, D, K, missing=missing, seed=seed)
    check(Mixture(K, replace(FACTOR[name], has_missing=bool(missing))), X, rng, K)


@seeds
@pytest.mark.parametrize("name", EXAMPLES)
def test_counts_codes_and_times(name: str, seed: int) -> None:
    rng, n, D, K, missing = sizes(seed)
    example = EXAMPLES[name]
    X = rows_of(example, n, D, rng, K)
    if example.plain.takes_missing:
        X[rng.random(X.shape) < missing] = np.nan
    check(Mixture(K, example.plain), X, rng, K)
