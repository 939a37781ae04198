"""ICA: planted sources beside FastICA, densities by quadrature, gradients, laws, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.integrate import quad
from scipy.special import logsumexp
from sklearn.decomposition import PCA, FastICA

import mixfold
from mixfold import ICA
from mixfold.engine.sources import open_source
from mixfold.math.source_densities import SOURCES

MIXING = np.array([[2.0, -0.5, 0.3], [0.4, 1.0, 0.9], [-1.0, 0.2, 0.7]])


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).laplace(size=(3000, 3)) @ MIXING.T + [1.0, 0.0, -9.0]


def amari(P) -> float:
    """0 if P is a scaled permutation, at most 1."""
    P, n = np.abs(P), len(P)
    rows, columns = P / P.max(axis=1, keepdims=True), P / P.max(axis=0)
    return float((rows.sum() + columns.sum() - 2 * n) / (2 * n * (n - 1)))


# ------------------------------------------------ densities of sources


@pytest.mark.parametrize("name", SOURCES)
def test_densities_of_sources(name) -> None:
    """Mass and variance one by quadrature, weights by differences, bounds that are bounds."""
    p = SOURCES[name]
    moments = [2 * quad(lambda s, k=k: s**k * np.exp(p.log_density(np.array(s))), 0, 40,
                        points=[1e-3, 0.1, 1, 5], limit=400)[0] for k in (0, 2)]  # fmt: skip
    np.testing.assert_allclose(moments, 1.0, atol=2e-5)
    s = np.array([-3.0, -0.2, 0.05, 1.0, 8.0])
    slope = (p.log_density(s + 1e-6) - p.log_density(s - 1e-6)) / 2e-6
    np.testing.assert_allclose(p.weight(s) * s, -slope, rtol=1e-5)
    assert np.isfinite(p.weight(np.zeros(1))).all() and np.isfinite(p.log_density(1e8 * s)).all()
    grid = np.linspace(-6, 6, 2001)
    for at in (0.0, 0.3, -2.0):
        w, ground = p.weight(np.array(at)), p.log_density(np.array(at))
        bound = ground - 0.5 * w * (grid**2 - at**2)
        assert (bound <= p.log_density(grid) + 1e-12).all()
    drawn = p.sample((20_000,), np.random.default_rng(0))
    known = {"laplace": stats.laplace(scale=0.5**0.5), "cosh": stats.hypsecant(scale=2 / np.pi),
             "logistic": stats.logistic(scale=3**0.5 / np.pi)}[name]  # fmt: skip
    assert stats.kstest(drawn, known.cdf).pvalue > 1e-4
    np.testing.assert_allclose(p.log_density(s), known.logpdf(s), atol=1e-3)


# ------------------------------------------------ what it must be equal to


@pytest.mark.parametrize("sources", SOURCES)
def test_planted_sources_are_found_as_by_fastica(X, sources) -> None:
    model = ICA(sources=sources, random_state=0).fit(X)
    peer = FastICA(whiten="unit-variance", random_state=0).fit(X)
    assert amari(model.components_ @ MIXING) < max(1.1 * amari(peer.components_ @ MIXING), 0.02)
    assert amari(PCA(3).fit(X).components_ @ MIXING) > 0.2
    np.testing.assert_allclose(model.components_ @ model.mixing_, np.eye(3), atol=1e-9)
    size = (model.mixing_**2).sum(axis=0)
    assert (np.diff(size) <= 0).all() and (
        model.mixing_.max(axis=0) > -model.mixing_.min(axis=0)
    ).all()
    assert (np.diff(model.lower_bounds_) >= -1e-9).all() and model.converged_


def test_the_density_is_that_of_a_change_of_variables(X) -> None:
    model = ICA(sources="logistic", random_state=0).fit(X)
    S = (X - model.mean_) @ model.components_.T
    np.testing.assert_allclose(model.transform(X), S, atol=1e-9)
    one = stats.logistic(scale=3**0.5 / np.pi).logpdf(S).sum(axis=1)
    wanted = one + np.linalg.slogdet(model.components_)[1]
    np.testing.assert_allclose(model.score_samples(X), wanted, rtol=1e-9)
    np.testing.assert_allclose(model.score(X), model.lower_bound_, rtol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(S), X, atol=1e-9)


def test_fewer_sources_than_columns_are_a_density_too() -> None:
    """Mass one by quadrature; and draws have the model's own entropy."""
    rng = np.random.default_rng(1)
    X = rng.laplace(size=(500, 1)) @ [[1.0, 0.5]] + 0.3 * rng.normal(size=(500, 2))
    model = ICA(1, sources="cosh").fit(X)
    x, y = np.linspace(-14, 14, 1401), np.linspace(-8, 8, 1201)
    table = np.column_stack([g.ravel() for g in np.meshgrid(x, y)])
    mass = np.exp(model.score_samples(table)).sum() * (x[1] - x[0]) * (y[1] - y[0])
    np.testing.assert_allclose(mass, 1.0, atol=1e-3)
    rows = model.sample(20_000, random_state=0)
    np.testing.assert_allclose(np.cov(rows.T), np.cov(X.T), atol=0.12)
    # a marginal by a sum over sources
    grid = np.linspace(-30, 30, 6001)
    a, mean = model.mixing_[:, 0], model.mean_
    across = np.array([-a[1], a[0]]) / np.linalg.norm(a)
    along = ((X[:5] - mean) @ a) / (a @ a)
    density = stats.hypsecant(scale=2 / np.pi)
    by_hand = density.logpdf(along) - 0.5 * np.log(a @ a) + stats.norm(
        scale=model.noise_variance_**0.5).logpdf((X[:5] - mean) @ across)  # fmt: skip
    np.testing.assert_allclose(model.score_samples(X[:5]), by_hand, rtol=1e-8)
    assert abs(logsumexp(density.logpdf(grid)) + np.log(0.01)) < 1e-3


@pytest.mark.parametrize("sources", SOURCES)
def test_the_gradient_is_zero(X, sources) -> None:
    """Of the mean log-likelihood in the unmixing matrix: by formula, and by differences."""
    model = ICA(sources=sources, tol=1e-12, max_iter=2000, random_state=0).fit(X)
    S, p = model.transform(X), SOURCES[sources]
    score = p.weight(S) * S
    np.testing.assert_allclose(score.T @ S / len(X), np.eye(3), atol=2e-4)

    def likelihood(B):
        s = (X - model.mean_) @ B.T
        return p.log_density(s).sum(axis=1).mean() + np.linalg.slogdet(B)[1]

    for h, d in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[h, d] = 1e-5
        B = model.components_
        assert abs(likelihood(B + step) - likelihood(B - step)) / 2e-5 < 5e-3
    away = model.components_ + 0.05 * np.random.default_rng(0).normal(size=(3, 3))
    assert likelihood(away) < model.lower_bound_


# ------------------------------------------------ laws


def test_weights_blocks_and_forms_of_data_do_not_matter(X) -> None:
    X = X[:400]
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    one = ICA(random_state=0, tol=1e-10).fit(X, sample_weight=weight)
    two = ICA(random_state=0, tol=1e-10).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(one.lower_bound_, two.lower_bound_, rtol=1e-9)
    np.testing.assert_allclose(one.components_, two.components_, atol=1e-4)
    np.testing.assert_allclose(one.score(X, sample_weight=weight), one.lower_bound_, rtol=1e-9)

    class Cut:
        """The same rows in small blocks."""

        def __init__(self, source):
            self._source = source

        def __getattr__(self, name):
            return getattr(self.__dict__["_source"], name)

        def blocks(self, max_rows=None):
            return self._source.blocks(37)

    plain = ICA(2, random_state=0).fit(X)
    for rows in (Cut(open_source(X)), sparse.csr_array(X)):
        other = ICA(2, random_state=0).fit(rows)
        np.testing.assert_allclose(other.components_, plain.components_, atol=1e-6)
    np.testing.assert_allclose(ICA(2, random_state=0).fit(X + 1e6).lower_bound_,
                               plain.lower_bound_, rtol=1e-6)  # fmt: skip
    single = ICA(2, random_state=0).fit(X.astype("f4"))
    assert single.components_.dtype == np.float32 == single.transform(X.astype("f4")).dtype
    np.testing.assert_allclose(single.lower_bound_, plain.lower_bound_, rtol=1e-4)


def test_a_file_remembers(X, tmp_path) -> None:
    model = ICA(2, n_init=2, random_state=0).fit(X)
    model.sample(3)
    model.save(tmp_path / "one.mixfold")
    loaded = mixfold.load(tmp_path / "one.mixfold")
    np.testing.assert_array_equal(loaded.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(loaded.sample(9), model.sample(9))
    assert not np.array_equal(model.sample(3), model.sample(3))


def test_uniform_sources_are_not_found(X) -> None:
    """As the docstring says: their tails are lighter than a normal distribution's."""
    flat = np.random.default_rng(0).uniform(-1, 1, (3000, 3)) @ MIXING.T
    with pytest.warns(UserWarning, match="FastICA for sources with light tails"):
        model = ICA(random_state=0).fit(flat)
    assert amari(model.components_ @ MIXING) > 0.1


# ------------------------------------------------ what is refused


def test_what_has_no_sources_is_refused(X) -> None:
    holed = X[:50].copy()
    holed[0, 0] = np.nan
    with pytest.raises(ValueError, match="so that sources are not determined"):
        ICA().fit(holed)
    with pytest.raises(ValueError, match="X has missing entries"):
        ICA().fit(X[:50]).transform(holed)
    with pytest.raises(ValueError, match="there are at most 3"):
        ICA(4).fit(X)
    with pytest.raises(ValueError, match="vary along 2 axes only"):
        ICA(3).fit(X[:, [0, 1, 1]])
    assert ICA().fit(X[:, [0, 1, 1]]).n_components_ == 2
    with pytest.raises(ValueError, match="all rows are the same"):
        ICA().fit(np.ones((5, 2)))
    with pytest.raises(ValueError, match="'sources' parameter of ICA must be one of"):
        ICA(sources="uniform").fit(X)
    with pytest.raises(ValueError, match="one column for each of the 3 sources"):
        ICA().fit(X[:50]).inverse_transform(X[:, :2])


@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_sources_without_heavy_tails_are_told_of(kind: str) -> None:
    rng = np.random.default_rng(0)
    draw = {"normal": rng.normal, "uniform": rng.uniform}[kind]
    X = draw(size=(500, 3)) @ rng.normal(size=(3, 3))
    with pytest.warns(UserWarning, match="sources 0, 1, 2 have no heavier tails than a normal"):
        ICA(random_state=0).fit(X)


@pytest.mark.parametrize("sources", ["laplace", "logistic", "cosh"])
def test_one_normal_source_beside_others_is_found_without_a_word(sources: str) -> None:
    rng = np.random.default_rng(0)
    S = np.column_stack([rng.normal(size=1000), rng.laplace(size=(1000, 2))])
    found = ICA(sources=sources, random_state=0).fit_transform(S @ rng.normal(size=(3, 3)))
    match = np.abs(np.corrcoef(S.T, found.T)[:3, 3:])
    assert match.max(axis=1).min() > 0.97
