"""Samples of the families of ``examples``, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from mixfold.contracts import Block
from mixfold.families.conjugate import ConjugateFamily
from mixfold.families.exponential import LinearFamily
from mixfold.families.exponential.pair import PairFamily
from mixfold.families.exponential.records import LinearMoments
from mixfold.families.exponential.simplex import SimplexFamily
from mixfold.math.frame import plain_frame

from .examples import EXAMPLES, D, K, N

FAMILIES: dict[str, LinearFamily] = {name: example.family for name, example in EXAMPLES.items()}
WITH_NAN = [name for name, family in FAMILIES.items() if family.takes_missing]
SPARSE = [name for name, family in FAMILIES.items() if family.takes_sparse]
PAIRS = [name for name, family in FAMILIES.items() if isinstance(family, PairFamily)]
SHARES = [name for name, family in FAMILIES.items() if isinstance(family, SimplexFamily)]
# families that have a conjugate prior and a posterior, and those with a mode of it alone
CONJUGATE = [name for name, family in FAMILIES.items() if "expected" in family.readings]
MODE_ONLY = [
    name
    for name, family in FAMILIES.items()
    if isinstance(family, ConjugateFamily) and "expected" not in family.readings
]
# families whose posterior is exact, and can be drawn from
DRAWN = [name for name, family in FAMILIES.items() if "draw" in family.readings]


def table(name: str, missing: float = 0.0, n: int = N, seed: int = 0) -> np.ndarray:
    """Rows of three unequal clusters; with missing entries, two rows lack all of them."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, (K, D))[rng.choice(K, n, p=[0.5, 0.3, 0.2])]
    X = np.asarray(EXAMPLES[name].draw(FAMILIES[name], p, rng), float)
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

    def moments(
        self, resp: np.ndarray | None = None, X: Any = None, reading: Any = None
    ) -> LinearMoments:
        resp = self.resp if resp is None else resp
        X = self.X if X is None else X
        values = X.data if isinstance(X, csr_array) else X
        if reading is None:
            params = self.family.from_rows(self.frame, self.X, None, self.resp)
            reading = self.family.mode(self.family.select(params, np.arange(resp.shape[1]) % K))
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
