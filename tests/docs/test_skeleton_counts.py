"""The skeletons of families of counts: with a conjugate prior, and without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

import mixfold
from mixfold import Mixture
from mixfold.contracts import Block
from mixfold.families.exponential import Poisson
from mixfold.models.mixtures.mixture import Mixture as MixtureModel
from mixfold.models.mixtures.mixture import MixtureParams
from mixfold.testing import Case, laws
from tests.docs.skeletons import load_skeleton

Geometric: Any = load_skeleton("count_family").Geometric
TruncatedPoisson: Any = load_skeleton("family_without_prior").TruncatedPoisson
N, D, K = 150, 3, 2
FAMILIES: dict[str, Any] = {"geometric": Geometric(), "truncated-poisson": TruncatedPoisson()}


def _rows(name: str, n: int = N, missing: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(4)
    rates = np.array([[2.0, 9.0, 3.0], [7.0, 1.0, 12.0]])[rng.integers(K, size=n)]
    if name == "geometric":
        X = rng.geometric(1 / (1 + rates)).astype(float) - 1
    else:
        X = stats.poisson.ppf(rng.uniform(np.exp(-rates), 1), rates)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def _law(name: str, params: Any) -> Any:
    """The distribution of the entries of each component, by scipy."""
    means = params.means
    if name == "geometric":
        return lambda k, x: stats.geom.logpmf(x, 1 / (1 + means[k]), loc=-1)
    rates = np.exp(params.theta)
    return lambda k, x: stats.poisson.logpmf(x, rates[k]) - np.log1p(-np.exp(-rates[k]))


@pytest.mark.parametrize("missing", [0.0, 0.15], ids=["complete", "with NaN"])
@pytest.mark.parametrize("name", FAMILIES)
def test_laws(name: str, missing: float) -> None:
    rng = np.random.default_rng(5)
    y = np.where(rng.random(N) < 0.1, 1, -1)
    model = MixtureModel(K, FAMILIES[name])
    case = Case(model, _rows(name, missing=missing), rng.uniform(0.5, 2, N), y)
    laws.check_model(case, n_labels=K)


@pytest.mark.parametrize("name", FAMILIES)
def test_density_sampler_and_quantiles(name: str) -> None:
    family, X = FAMILIES[name], _rows(name)
    params = Case(MixtureModel(K, family), X).after(3)
    own, law = params.components, _law(name, params.components)
    found = family.log_density(Block(X), family.mode(own))
    wanted = np.stack([law(k, X).sum(axis=1) for k in range(K)], axis=1)
    np.testing.assert_allclose(found, wanted, rtol=1e-10)
    labels, rng = np.zeros(20_000, int), np.random.default_rng(0)
    drawn = family.draw_rows(own, labels, rng)
    inverted = family.sample(own, labels, rng.standard_normal((len(labels), D)))
    support = np.arange(60.0)[1 if name == "truncated-poisson" else 0 :, None]
    for rows in (drawn, inverted):
        family.check(Block(rows), None)
        error = rows.std(axis=0) / np.sqrt(len(rows))
        assert (np.abs(rows.mean(axis=0) - own.means[0]) < 6 * error).all()
    chances = np.exp(law(0, support))
    share = (drawn[:, None] == support).mean(axis=0)
    assert (np.abs(share - chances) < 6 * np.sqrt(chances / len(drawn)) + 1e-9).all()


def test_the_m_step_without_a_prior_is_the_maximum() -> None:
    X = _rows("truncated-poisson")
    fitted = Mixture(TruncatedPoisson(), 1, tol=1e-10).fit(X)
    np.testing.assert_allclose(fitted.means_[0], X.mean(axis=0), rtol=1e-9)
    for shift in (-1e-3, 1e-3):
        rates = fitted.rates_[0] * np.exp(shift)
        worse = stats.poisson.logpmf(X, rates) - np.log1p(-np.exp(-rates))
        assert worse.sum(axis=1).mean() < fitted.score(X)


@pytest.mark.parametrize("name", FAMILIES)
def test_an_object_of_a_family_does_what_its_name_would(name: str, tmp_path: Path) -> None:
    X = _rows(name, missing=0.1)
    fitted = Mixture(FAMILIES[name], K, random_state=0).fit(X)
    fitted.save(tmp_path / "m.mixfold")
    back = mixfold.load(tmp_path / "m.mixfold")
    assert back.family == FAMILIES[name]
    np.testing.assert_array_equal(back.score_samples(X), fitted.score_samples(X))
    given = fitted.condition([1], [3.0])
    assert given.family == FAMILIES[name] and given.n_features_in_ == 2
    whole = Mixture(FAMILIES[name], K, random_state=0).partial_fit(X[:80]).partial_fit(X[80:])
    assert np.isfinite(whole.score(X))
    assert not np.isnan(fitted.impute(X)).any()


def test_the_conjugate_one_has_every_inference() -> None:
    X = _rows("geometric", n=80)
    bayes = Mixture(Geometric(), 4, inference="vb", random_state=0).fit(X)
    assert np.diff(bayes.lower_bounds_).min() >= -1e-12
    short: dict[str, Any] = {"n_draws": 40, "burn_in": 20, "n_chains": 2, "random_state": 0}
    for inference in ("gibbs", "collapsed"):
        with pytest.warns(UserWarning):  # so few sweeps have not mixed
            chains = Mixture(Geometric(), 3, inference=inference, **short).fit(X)
        assert chains.n_clusters_ >= 1
    assert np.isfinite(Mixture(Geometric(), 2, random_state=0).fit(csr_array(X)).score(X))


@pytest.mark.parametrize(
    "settings",
    [
        {"inference": "vb"},
        {"inference": "gibbs"},
        {"inference": "collapsed"},
        {"prior": "default"},
        {"weights": "dirichlet"},
    ],
)
def test_without_a_prior_the_others_are_refused(settings: dict[str, Any]) -> None:
    X = _rows("truncated-poisson")
    rule = r"'truncated-poisson' has no conjugate prior.*Use inference='em'.*poisson"
    with pytest.raises(ValueError, match=rule):
        Mixture(TruncatedPoisson(), K, **settings).fit(X)
    with pytest.raises(ValueError, match="has its settings already; family_options and prior"):
        Mixture(Poisson(), K, family_options={"exposure": 2.0}).fit(X)


def test_components_given_a_column(tmp_path: Path) -> None:
    """A table of two kinds, one of them from outside of the package."""
    X = np.column_stack([_rows("truncated-poisson"), np.random.default_rng(0).normal(size=N)])
    family = mixfold.families.product.product_of([(TruncatedPoisson(), [0, 1, 2]), ("diag", [3])])
    fitted = Mixture(family, K, random_state=0).fit(X)
    assert set(fitted.parameters_) == {"truncated-poisson", "diag"}
    model = MixtureModel(K, family)
    reading = model.prepare(MixtureParams(fitted.weights_, fitted._params.components))
    np.testing.assert_allclose(
        np.logaddexp.reduce(model.log_joint(reading, Block(X)), axis=1), fitted.score_samples(X)
    )
    fitted.save(tmp_path / "m.mixfold")
    back = mixfold.load(tmp_path / "m.mixfold")
    np.testing.assert_array_equal(back.predict(X), fitted.predict(X))
    assert set(back.condition([3], [0.0]).parameters_) == {"truncated-poisson"}
