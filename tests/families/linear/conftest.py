"""Every linear family by name, with a table that it can have produced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from mixfold.contracts import Block
from mixfold.families.linear import (
    Bernoulli,
    Binomial,
    Categorical,
    Exponential,
    Gamma,
    LinearFamily,
    Multinomial,
    Poisson,
)
from mixfold.families.linear.records import LinearMoments
from mixfold.math.frame import plain_frame

N, D, K = 120, 4, 3
TRIALS, EXPOSURE = np.array([3, 5, 7, 2]), np.array([1.0, 2.0, 0.5, 1.0])
SHAPE, CATEGORIES = np.array([1.0, 2.5, 0.5, 3.0]), (2, 3, 4, 3)

FAMILIES: dict[str, LinearFamily] = {
    "bernoulli": Bernoulli(a=0.7, b=1.3),
    "binomial": Binomial(trials=TRIALS, a=[0.5, 1.0, 2.0, 0.9]),
    "poisson": Poisson(exposure=EXPOSURE, a=1.5),
    "exponential": Exponential(),
    "gamma": Gamma(shape=SHAPE, a=0.8, b=[1.0, 2.0, 3.0, 4.0]),
    "multinomial": Multinomial(concentration=[0.5, 1.0, 2.0, 0.7]),
    "categorical": Categorical(n_categories=CATEGORIES, concentration=0.6),
}
WITH_NAN = [name for name in FAMILIES if name != "multinomial"]
SPARSE = [name for name in FAMILIES if name not in ("exponential", "gamma")]
PAIRS = ["bernoulli", "binomial", "poisson", "exponential", "gamma"]


def table(name: str, missing: float = 0.0, n: int = N, seed: int = 0) -> np.ndarray:
    """Rows of three unequal clusters; with missing entries, two rows lack all of them."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, (K, D))[rng.choice(K, n, p=[0.5, 0.3, 0.2])]
    draws: dict[str, Any] = {
        "bernoulli": lambda: rng.random((n, D)) < p,
        "binomial": lambda: rng.binomial(TRIALS, p),
        "poisson": lambda: rng.poisson(8 * p),
        "exponential": lambda: rng.exponential(8 * p),
        "gamma": lambda: rng.gamma(SHAPE, 8 * p),
        "multinomial": lambda: rng.multinomial(
            rng.integers(1, 20, n), p / p.sum(axis=1, keepdims=True)
        ),
        "categorical": lambda: np.minimum(rng.binomial(3, p), np.array(CATEGORIES) - 1),
    }
    X = draws[name]().astype(float)
    if missing:
        X[rng.random(X.shape) < missing] = np.nan
        X[[n // 3, n // 2]] = np.nan
    return X


@dataclass(frozen=True)
class Sample:
    """A family, rows, weighted responsibilities, and everything that follows from them."""

    family: Any
    X: np.ndarray
    resp: np.ndarray

    @property
    def frame(self) -> Any:
        return plain_frame(self.X.shape[1])

    def moments(self, resp: np.ndarray | None = None, X: Any = None) -> LinearMoments:
        resp = self.resp if resp is None else resp
        X = self.X if X is None else X
        values = X.data if isinstance(X, csr_array) else X
        params = self.family.from_rows(self.frame, self.X, None, self.resp)
        reading = self.family.mode(params)
        scores = self.family.scores(Block(X, complete=not np.isnan(values).any()), reading)
        return self.family.moments(scores, resp, reading)

    @property
    def prior(self) -> Any:
        return self.family.prior(self.frame, self.moments(self.resp.sum(axis=1, keepdims=True)))

    @property
    def posterior(self) -> Any:
        return self.family.posterior(self.moments(), self.prior, self.frame)


def sample_of(name: str, missing: float = 0.0, n: int = N, n_components: int = K) -> Sample:
    X = table(name, missing, n)
    rng = np.random.default_rng(7)
    resp = rng.dirichlet(np.full(n_components, 0.4), n) * rng.uniform(0.5, 2, (n, 1))
    return Sample(FAMILIES[name], X, resp)


@pytest.fixture(params=list(FAMILIES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def sample(name: str) -> Sample:
    return sample_of(name, missing=0.1 if name in WITH_NAN else 0.0)
