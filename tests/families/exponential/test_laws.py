"""Every law for a mixture of each linear family: dense and sparse, with missing entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from mixfold.contracts import Block
from mixfold.families.exponential import EXPONENTIAL_FAMILIES
from mixfold.models.mixtures.mixture import Mixture, MixtureParams
from mixfold.testing import Case, laws

from .conftest import FAMILIES, SPARSE, WITH_NAN, table
from .examples import EXAMPLES, D, K, N

VARIANTS = [
    *[(name, "complete") for name in FAMILIES],
    *[(name, "with NaN") for name in WITH_NAN],
    *[(name, "sparse") for name in SPARSE],
    *[(name, "single") for name in ("bernoulli", "gamma", "multinomial")],
]
# finite differences of a float32 objective are rounding; the law of purity compares dense tables
LEFT_OUT = {"single": ("gradient",), "sparse": ("pure functions",)}


def _case(name: str, kind: str) -> Case:
    holes = kind == "with NaN" or (kind == "sparse" and name in WITH_NAN)
    X: Any = table(name, missing=0.12 if holes else 0.0)
    if kind == "sparse":
        X = csr_array(X)
    rng = np.random.default_rng(5)
    weight, y = rng.uniform(0.5, 2, N), np.where(rng.random(N) < 0.1, 1, -1)
    if kind == "single":
        return Case(Mixture(K, FAMILIES[name]), X.astype(np.float32), weight, y, rtol=3e-5)
    return Case(Mixture(K, FAMILIES[name]), X, weight, y)


@pytest.mark.parametrize(("name", "kind"), VARIANTS)
def test_laws_of_models(name: str, kind: str) -> None:
    case = _case(name, kind)
    for law, holds in laws.MODEL_LAWS.items():
        if law not in LEFT_OUT.get(kind, ()):
            holds(case)
    laws.labels_clamp(case, K)


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_rows_teach_what_dense_rows_do(name: str) -> None:
    holed = table(name, 0.12 if name in WITH_NAN else 0.0)
    model, weight = Mixture(K, FAMILIES[name]), np.linspace(0.1, 2, N)
    dense, sparse = Case(model, holed, weight), Case(model, csr_array(holed), weight)
    a, b = dense.after(4), sparse.after(4)
    np.testing.assert_allclose(a.components.theta, b.components.theta, rtol=1e-9, atol=1e-9)
    assert dense.objective(a) == pytest.approx(sparse.objective(b), rel=1e-12)
    x, y = (c.model.log_joint(c.model.prepare(a), c.block) for c in (dense, sparse))
    np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_fast_pass_is_the_general_one(name: str) -> None:
    """By tiles, with responsibilities as an array, and by the kernels."""
    case = _case(name, "with NaN" if name in WITH_NAN else "complete")
    params = case.after(2)
    reading, block = case.model.prepare(params), case.block
    fused = case.stats(params)
    weight = np.where(np.isnan(block.X).all(axis=1), 0.0, block.weights())
    tile = Block(block.X, y=block.y, weight=weight, complete=False)
    general = case.model._expect_tile(reading, tile, case.keys)  # type: ignore[attr-defined]
    for field in ("log_likelihood", "entropy", "weight"):
        assert getattr(fused, field) == pytest.approx(getattr(general, field), rel=1e-11)
    for field in ("count", "first", "base"):
        a, b = getattr(fused.components, field), getattr(general.components, field)
        np.testing.assert_allclose(a + 0 * b, b + 0 * a, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", WITH_NAN)
def test_a_missing_column_is_no_column(name: str) -> None:
    case = _case(name, "with NaN")
    params = case.after(2)
    family, column = FAMILIES[name], 1
    rest = family.columns(params.components, np.delete(np.arange(D), column))
    reduced = MixtureParams(params.weights, rest)
    laws.missing_column(case, params, Mixture(K, family), reduced, column)


@pytest.mark.parametrize("name", FAMILIES)
def test_sampler_of_a_mixture(name: str) -> None:
    """Against the density of its own draws, and against the means that the components state."""
    case, family = _case(name, "complete"), FAMILIES[name]
    params, model = case.after(3), Mixture(K, family)
    X, labels = model.sample(params, 20_000, np.random.default_rng(3))
    family.check(Block(X), None)
    for k in range(K):
        mine = X[labels == k]
        error = 6 * mine.std(axis=0) / np.sqrt(len(mine)) + 1e-9
        # a total of trials is a whole number, its mean is not
        slack = 0.5 / params.components.means[k].sum() if name == "multinomial" else 0.0
        period = EXAMPLES[name].period
        apart = mine - params.components.means[k]
        if period is not None:  # the laws are symmetric about their directions
            apart = np.mod(apart + period / 2, period) - period / 2
        gap = np.abs(apart.mean(axis=0))
        assert (gap <= error + slack * params.components.means[k]).all()
    # cross-entropy: E[ln p] is greatest at the parameters that made the draws
    own = model.log_joint(model.prepare(params), Block(X))
    shaken = family.from_coordinates(
        params.components,
        family.coordinates(params.components) + 0.5 * np.random.default_rng(1).standard_normal(
            family.coordinates(params.components).size
        ),
    )  # fmt: skip
    other = model.log_joint(model.prepare(MixtureParams(params.weights, shaken)), Block(X))
    gain = np.logaddexp.reduce(own, axis=1) - np.logaddexp.reduce(other, axis=1)
    assert gain.mean() > 6 * gain.std() / np.sqrt(len(gain))


@pytest.mark.parametrize("name", FAMILIES)
def test_both_samplers_have_one_distribution(name: str) -> None:
    """Rows by inversion of normals against rows of the generator: means and products."""
    family = FAMILIES[name]
    components = _case(name, "complete").after(2).components
    labels = np.zeros(20_000, int)
    rng = np.random.default_rng(2)
    normals = rng.standard_normal((len(labels), family.normals_per_row(D)))
    a, b = family.sample(components, labels, normals), family.draw_rows(components, labels, rng)
    family.check(Block(a), None)
    for x, y in ((a, b), (a**2, b**2), (a * a[:, ::-1], b * b[:, ::-1])):
        error = np.hypot(x.std(axis=0), y.std(axis=0)) / np.sqrt(len(x))
        assert (np.abs(x.mean(axis=0) - y.mean(axis=0)) <= 6 * error + 1e-12).all()


def test_all_families_are_registered() -> None:
    """A family without an example would go untested: see ``examples.py``."""
    assert {example.family.name for example in EXAMPLES.values()} == set(EXPONENTIAL_FAMILIES)
    assert all(example.plain.name == example.family.name for example in EXAMPLES.values())
