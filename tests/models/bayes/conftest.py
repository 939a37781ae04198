"""Every conjugate family with a table for it, and every prior of the weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Array
from mixfold.families.bayes.known_covariance import KnownCovariance
from mixfold.families.bayes.normal_gamma import (
    BayesDiagonal,
    BayesSpherical,
    BayesTiedDiagonal,
    BayesTiedSpherical,
)
from mixfold.families.bayes.normal_wishart import BayesFull, BayesTied
from mixfold.families.conjugate import ConjugateFamily
from mixfold.families.exponential import (
    Bernoulli,
    Binomial,
    Categorical,
    Exponential,
    Gamma,
    Multinomial,
    Poisson,
)
from mixfold.families.product import Part, ProductFamily
from mixfold.mixing.dirichlet import SymmetricDirichlet
from mixfold.mixing.fixed import FixedWeights
from mixfold.mixing.free import FreeWeights
from mixfold.mixing.protocol import Mixing
from mixfold.mixing.sticks import StickBreaking
from mixfold.testing.tables import clustered_table
from tests.families.exponential.examples import EXAMPLES, Example, rows_of

Table = Callable[[int, float], Array]


def _counts(n: int, seed: int = 0) -> Array:
    """Three groups of rows of small counts."""
    rng = np.random.default_rng(seed)
    rates = np.array([[1.0, 4.0, 2.0], [5.0, 1.0, 2.5], [2.0, 2.0, 6.0]])
    return rng.poisson(rates[rng.integers(0, 3, n)]).astype(float)


def _holed(X: Array, missing: float) -> Array:
    X[np.random.default_rng(5).random(X.shape) < missing] = np.nan
    return X


def _reals(n: int, missing: float) -> Array:
    X = clustered_table(max(n, 12), 3, 3, seed=3)[-n:]
    return _holed(X, missing)


def _mixed(n: int, missing: float) -> Array:
    """Two numbers that go together, one alone, a count, yes or no, a code."""
    counts = _counts(n)
    parts = [_reals(n, 0.0), counts[:, :1], counts[:, 1:2] > 2, counts[:, 2:] % 3]
    return _holed(np.concatenate(parts, axis=1).astype(float), missing)


_PRODUCT = ProductFamily(
    (
        Part((0, 2), BayesFull()),
        Part((1,), BayesDiagonal()),
        Part((3,), Poisson()),
        Part((4,), Bernoulli()),
        Part((5,), Categorical(n_categories=3)),
    )
)

FAMILIES: dict[str, tuple[ConjugateFamily, Table]] = {
    "full": (BayesFull(), _reals),
    "tied": (BayesTied(), _reals),
    "diag": (BayesDiagonal(), _reals),
    "tied-diag": (BayesTiedDiagonal(), _reals),
    "spherical": (BayesSpherical(), _reals),
    "tied-spherical": (BayesTiedSpherical(), _reals),
    "known": (KnownCovariance(covariance=np.array([0.5, 1.0, 4.0])), _reals),
    "bernoulli": (Bernoulli(), lambda n, missing: _holed(1.0 * (_counts(n) > 2), missing)),
    "binomial": (Binomial(trials=20), lambda n, missing: _holed(_counts(n), missing)),
    "poisson": (Poisson(), lambda n, missing: _holed(_counts(n), missing)),
    "exponential": (Exponential(), lambda n, missing: _holed(_counts(n) + 0.5, missing)),
    "gamma": (Gamma(shape=2.0), lambda n, missing: _holed(_counts(n) + 0.5, missing)),
    "categorical": (
        Categorical(n_categories=3),
        lambda n, missing: _holed(_counts(n) % 3, missing),
    ),
    "multinomial": (Multinomial(), lambda n, missing: _counts(n)),
    "product": (_PRODUCT, _mixed),
}


def _example_table(example: Example) -> Table:
    def rows(n: int, missing: float) -> Array:
        return _holed(rows_of(example, n, 3, np.random.default_rng(0)), missing)

    return rows


for _name, _example in EXAMPLES.items():
    if isinstance(_example.plain, ConjugateFamily):
        FAMILIES.setdefault(_name, (_example.plain, _example_table(_example)))
# families with a bound of the evidence, and those that have a mode of the posterior alone
BOUNDED = [name for name, (family, _) in FAMILIES.items() if "expected" in family.readings]
MODE_ONLY = [name for name in FAMILIES if name not in BOUNDED]
# families whose evidence has a closed form, and those that have one where rows lack entries
CLOSED = [name for name, (family, _) in FAMILIES.items() if "draw" in family.readings]
CLOSED_WITH_HOLES = [
    name for name in CLOSED if FAMILIES[name][0].takes_missing and not FAMILIES[name][0].augments
]

MIXINGS: dict[str, Callable[[int], Mixing[Any]]] = {
    "dirichlet": lambda K: SymmetricDirichlet(1.5),
    "dirichlet, alpha learned": lambda K: SymmetricDirichlet(1.5, True),
    "sticks": lambda K: StickBreaking(0.8),
    "sticks in order": lambda K: StickBreaking(0.8, reorder=True),
    "sticks, alpha learned": lambda K: StickBreaking(0.8, True, reorder=True),
    "fixed": lambda K: FixedWeights(np.arange(1, K + 1) / (K * (K + 1) / 2)),
    "ml": lambda K: FreeWeights(),
}


@pytest.fixture(scope="session")
def conjugate() -> dict[str, tuple[ConjugateFamily, Table]]:
    return FAMILIES


@pytest.fixture(scope="session")
def mixings() -> dict[str, Callable[[int], Mixing[Any]]]:
    return MIXINGS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Arguments of these names stand for every family, and for every prior of the weights."""
    names = {
        "family_name": BOUNDED,
        "mode_name": MODE_ONLY,
        "closed_name": [*CLOSED, *(f"{name} with NaN" for name in CLOSED_WITH_HOLES)],
        "drawn_name": CLOSED,
        "mixing_name": list(MIXINGS),
    }
    for argument, values in names.items():
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, values)
