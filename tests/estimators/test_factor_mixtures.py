"""MixtureOfPPCA and MixtureOfFactorAnalyzers from outside."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from mixfold import (
    PPCA,
    DegenerateWarning,
    FactorAnalysis,
    GaussianMixture,
    MixtureOfFactorAnalyzers,
    MixtureOfPPCA,
)

MIXTURES = [MixtureOfPPCA, MixtureOfFactorAnalyzers]
TIED = [(), ("loadings",), ("noise",), ("loadings", "noise")]
both = pytest.mark.parametrize("mixture", MIXTURES)
every_tie = pytest.mark.parametrize("tied", TIED, ids=["own", "loadings", "noise", "both"])


@pytest.fixture
def labels(rng) -> np.ndarray:
    return rng.choice(3, 300, p=[0.4, 0.35, 0.25])


@pytest.fixture
def table(rng, labels) -> np.ndarray:
    """Three flat clusters in ten columns, each with two factors of its own."""
    W, means = rng.normal(size=(3, 10, 2)), 2.5 * rng.normal(size=(3, 10))
    z, noise = rng.normal(size=(300, 2)), rng.normal(size=(300, 10)) * np.linspace(0.64, 0.96, 10)
    return np.einsum("nij,nj->ni", W[labels], z) + means[labels] + noise


def _holes(X: np.ndarray, rng: np.random.Generator, share: float = 0.2) -> np.ndarray:
    return np.where(rng.random(X.shape) < share, np.nan, X)


def _covariances(fitted: MixtureOfPPCA | MixtureOfFactorAnalyzers) -> np.ndarray:
    W = fitted.loadings_
    noise = fitted.noise_variance_
    if noise.ndim == 1:
        noise = np.repeat(noise[:, None], W.shape[1], axis=1)
    return W @ W.transpose(0, 2, 1) + np.stack([np.diag(row) for row in noise])


def _log_joint(fitted: MixtureOfPPCA | MixtureOfFactorAnalyzers, X: np.ndarray) -> np.ndarray:
    """Log weight plus log density of the seen entries, by dense matrices: (n, K)."""
    out = np.zeros((len(X), len(fitted.weights_)))
    parts = zip(fitted.weights_, fitted.means_, _covariances(fitted), strict=True)
    for k, (weight, mean, C) in enumerate(parts):
        for n, x in enumerate(X):
            s = ~np.isnan(x)
            density = multivariate_normal(mean[s], C[np.ix_(s, s)]).logpdf(x[s]) if s.any() else 0
            out[n, k] = np.log(weight) + density
    return out


def _matched(means: np.ndarray, others: np.ndarray) -> list[int]:
    """Which of the others is nearest to each mean: components have no order of their own."""
    distance = ((means[:, None] - others) ** 2 / means.var(axis=0)).sum(axis=-1)
    order = distance.argmin(axis=1).tolist()
    assert sorted(order) == list(range(len(means)))
    return order


# ------------------------------------------------ against models that are known


def test_one_component_is_factor_analysis(table, rng):
    for X in (table, _holes(table, rng)):
        one = MixtureOfFactorAnalyzers(1, 2, tol=1e-9).fit(X)
        same = FactorAnalysis(2, tol=1e-9).fit(X)
        assert one.lower_bound_ == pytest.approx(same.lower_bound_, abs=1e-6)
        np.testing.assert_allclose(_covariances(one)[0], same.get_covariance(), atol=5e-3)
        np.testing.assert_allclose(one.transform(X), same.transform(X), atol=5e-3)
        assert one.bic() == pytest.approx(same.bic(), abs=1e-2)


def test_one_component_is_ppca(table, rng):
    for X in (table, _holes(table, rng)):
        one = MixtureOfPPCA(1, 2, tol=1e-10).fit(X)
        same = PPCA(2, tol=1e-10).fit(X)
        assert one.lower_bound_ == pytest.approx(same.lower_bound_, abs=1e-6)
        np.testing.assert_allclose(_covariances(one)[0], same.get_covariance(), atol=1e-3)
        np.testing.assert_allclose(one.latent_covariances_[0], same.latent_covariance_, atol=1e-4)
        np.testing.assert_allclose(one.reconstruct(X), same.reconstruct(X), atol=1e-3)
        assert one.bic() == pytest.approx(same.bic(), abs=1e-2)


@both
def test_without_factors_it_is_a_plain_mixture(table, mixture):
    kind = "spherical" if mixture is MixtureOfPPCA else "diag"
    means = np.stack([table[:100].mean(axis=0), table[100:].mean(axis=0)])
    start = dict(tol=1e-9, max_iter=5000, random_state=0)
    plain = GaussianMixture(2, covariance_type=kind, means_init=means, **start).fit(table)
    ours = mixture(2, 0, **start).fit(table)
    assert ours.loadings_.shape == (2, 10, 0)
    best = GaussianMixture(2, covariance_type=kind, **start).fit(table)
    assert ours.lower_bound_ == pytest.approx(max(plain.lower_bound_, best.lower_bound_), abs=1e-4)
    assert ours._n_parameters() == best._n_parameters()


@both
@every_tie
def test_known_components_are_found_despite_holes(rng, mixture, tied):
    y = rng.choice(3, 500, p=[0.4, 0.35, 0.25])
    W = np.repeat(rng.normal(size=(1, 8, 2)), 3, axis=0)
    W = W if "loadings" in tied else W + rng.normal(size=(3, 8, 2))
    means = 2.5 * rng.normal(size=(3, 8))
    scale = np.full((3, 8), 0.4)
    if mixture is MixtureOfFactorAnalyzers:
        scale = scale * np.linspace(0.6, 1.4, 8)
    if "noise" not in tied:
        scale = scale * np.array([[0.7], [1.0], [1.3]])
    X = np.einsum("nij,nj->ni", W[y], rng.normal(size=(500, 2))) + means[y]
    X = _holes(X + scale[y] * rng.normal(size=X.shape), rng)
    ours = mixture(3, 2, tied=tied, random_state=0).fit(X)
    assert ours.converged_ and (np.diff(ours.lower_bounds_) > -1e-9).all()
    assert adjusted_rand_score(y, ours.predict(X)) > 0.93
    order = _matched(means, ours.means_)
    np.testing.assert_allclose(ours.means_[order], means, atol=0.6)
    truth = scale**2 if mixture is MixtureOfFactorAnalyzers else scale[:, 0] ** 2
    assert np.median(np.abs(np.log(ours.noise_variance_[order] / truth))) < 0.3
    assert (ours.loadings_[0] == ours.loadings_[1]).all() == ("loadings" in tied)
    assert (ours.noise_variance_[0] == ours.noise_variance_[1]).all() == ("noise" in tied)


@both
@every_tie
def test_numbers_of_parameters(table, mixture, tied):
    ours = mixture(3, 2, tied=tied, max_iter=0, random_state=0).fit(table)
    loadings = 10 * 2 - 1
    columns = 10 if mixture is MixtureOfFactorAnalyzers else 1
    expected = 2 + 3 * 10 + loadings * (1 if "loadings" in tied else 3)
    assert ours._n_parameters() == expected + columns * (1 if "noise" in tied else 3)


@both
@every_tie
def test_answers_are_those_of_the_dense_mixture(table, rng, mixture, tied):
    ours = mixture(3, 2, tied=tied, random_state=0, max_iter=60, tol=1e-3).fit(table)
    X = np.concatenate([table[:25], _holes(table[25:50], rng)])
    joint = _log_joint(ours, X)
    total = logsumexp(joint, axis=1)
    np.testing.assert_allclose(ours.score_samples(X), total, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours.predict_proba(X), np.exp(joint - total[:, None]), atol=1e-9)
    np.testing.assert_allclose(ours.predict_log_proba(X), joint - total[:, None], atol=1e-6)
    assert np.array_equal(ours.predict(X), joint.argmax(axis=1))
    assert ours.score(X) == pytest.approx(total.mean(), rel=1e-9)


@both
def test_criteria(table, mixture):
    ours = mixture(3, 2, random_state=0).fit(table)
    joint = _log_joint(ours, table)
    total = logsumexp(joint, axis=1)
    resp = np.exp(joint - total[:, None])
    entropy = -np.sum(resp * np.where(resp > 0, joint - total[:, None], 0.0))
    bic = -2 * total.sum() + ours._n_parameters() * np.log(len(table))
    assert ours.bic() == pytest.approx(bic, rel=1e-6) == ours.bic(table)
    assert ours.icl() == pytest.approx(bic + 2 * entropy, rel=1e-6) == ours.icl(table)
    assert ours.aic() == pytest.approx(-2 * total.sum() + 2 * ours._n_parameters(), rel=1e-6)
    least = min((mixture(k, 2, random_state=0).fit(table).bic(), k) for k in (1, 2, 3))
    assert least[1] == 3


# ------------------------------------------------ factors


@both
def test_numbers_of_factors_may_differ(table, mixture):
    ours = mixture(3, [0, 1, 2], random_state=0).fit(table)
    assert ours.loadings_.shape == (3, 10, 2)
    sizes = (ours.loadings_**2).sum(axis=1) > 0
    assert sizes.sum(axis=1).tolist() == [0, 1, 2]
    columns = 10 if mixture is MixtureOfFactorAnalyzers else 1
    assert ours._n_parameters() == 2 + 30 + (0 + 10 + 19) + 3 * columns
    assert ours.transform(table).shape == (300, 2)
    own = ours.transform(table, per_component=True)
    assert not own[:, 0].any() and not own[:, 1, 1].any() and own[:, 2].all()
    np.testing.assert_allclose(ours.latent_covariances_[0], np.eye(2))
    same = mixture(3, np.array([0, 1, 2]), random_state=0).fit(table)
    np.testing.assert_array_equal(same.loadings_, ours.loadings_)


@both
@every_tie
def test_latents_are_those_of_bayes(table, rng, mixture, tied):
    ours = mixture(3, 2, tied=tied, random_state=0, max_iter=60, tol=1e-3).fit(table)
    X = np.concatenate([table[:30], _holes(table[30:50], rng)])
    noise = np.broadcast_to(ours.noise_variance_.reshape(3, -1), (3, 10))
    own = ours.transform(X, per_component=True)
    for k in range(3):
        W, psi = ours.loadings_[k], noise[k]
        whole = np.linalg.inv(np.eye(2) + (W.T / psi) @ W)
        np.testing.assert_allclose(ours.latent_covariances_[k], whole, atol=1e-10)
        for n, x in enumerate(X):
            s = ~np.isnan(x)
            V = W[s].T / psi[s]
            z = np.linalg.solve(np.eye(2) + V @ W[s], V @ (x - ours.means_[k])[s])
            np.testing.assert_allclose(own[n, k], z, atol=1e-7)
    resp = ours.predict_proba(X)
    Z = ours.transform(X)
    np.testing.assert_allclose(Z, np.einsum("nk,nkd->nd", resp, own), atol=1e-9)
    rows = np.einsum("kij,nkj->nki", ours.loadings_, own) + ours.means_
    expected = np.einsum("nk,nki->ni", resp, rows)
    np.testing.assert_allclose(ours.reconstruct(X), expected, atol=1e-8)
    best = resp.argmax(axis=1)
    hard = ours.inverse_transform(Z, components=best)
    np.testing.assert_allclose(ours.reconstruct(X, "hard"), hard, atol=1e-8)
    manual = np.einsum("nij,nj->ni", ours.loadings_[best], Z) + ours.means_[best]
    np.testing.assert_allclose(hard, manual, atol=1e-8)
    filled = ours.impute(X)
    lacks = np.isnan(X)
    np.testing.assert_allclose(filled[lacks], expected[lacks], atol=1e-8)
    assert np.array_equal(filled[~lacks], X[~lacks])


@both
def test_projections(table, rng, mixture):
    ours = mixture(3, 2, random_state=0).fit(table)
    X = np.concatenate([table[:20], _holes(table[20:30], rng)])
    noise = np.broadcast_to(ours.noise_variance_.reshape(3, -1), (3, 10))
    metrics = {"least-squares": np.ones((3, 10))}
    if mixture is MixtureOfFactorAnalyzers:
        metrics["weighted"] = 1 / np.sqrt(noise)
    for method, unit in metrics.items():
        got = ours.reconstruct(X, method)
        for n, (x, k) in enumerate(zip(X, ours.predict(X), strict=True)):
            s = ~np.isnan(x)
            A, b = ours.loadings_[k][s] * unit[k][s, None], (x - ours.means_[k])[s] * unit[k][s]
            z = np.linalg.lstsq(A, b, rcond=None)[0]
            np.testing.assert_allclose(
                got[n], ours.loadings_[k] @ z + ours.means_[k], rtol=1e-6, atol=1e-6
            )


@both
def test_rows_of_latents(table, mixture):
    ours = mixture(3, 2, random_state=0).fit(table)
    Z = np.array([[0.0, 0.0], [1.0, -2.0]])
    each = np.einsum("kij,nj->nki", ours.loadings_, Z) + ours.means_
    np.testing.assert_allclose(ours.inverse_transform(Z, components=1), each[:, 1], rtol=1e-9)
    mixed = ours.inverse_transform(Z, components=[2, 0])
    np.testing.assert_allclose(mixed, each[[0, 1], [2, 0]], rtol=1e-9)
    expected = np.einsum("k,nki->ni", ours.weights_, each)
    np.testing.assert_allclose(ours.inverse_transform(Z), expected, rtol=1e-9)


@both
def test_tied_loadings_have_one_set_of_axes(table, mixture):
    ours = mixture(3, 2, tied=("loadings",), random_state=0, tol=1e-3).fit(table)
    own = ours.transform(table, per_component=True)
    rows = np.einsum("ij,nkj->nki", ours.loadings_[0], own) + ours.means_
    resp = ours.predict_proba(table)
    np.testing.assert_allclose(
        ours.reconstruct(table), np.einsum("nk,nki->ni", resp, rows), atol=1e-8
    )


# ------------------------------------------------ what data may be


@both
def test_weights_are_repetitions(table, rng, mixture):
    weight = rng.integers(0, 3, len(table))
    for X in (table, _holes(table, rng)):
        settings = dict(tol=1e-9, max_iter=3000, random_state=0)
        weighted = mixture(3, 1, **settings).fit(X, sample_weight=weight)
        repeated = mixture(3, 1, **settings).fit(X.repeat(weight, axis=0))
        assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, abs=1e-6)
        order = _matched(weighted.means_, repeated.means_)
        np.testing.assert_allclose(repeated.means_[order], weighted.means_, atol=1e-2)
        assert weighted.bic() == pytest.approx(repeated.bic(), rel=1e-6)
        assert weighted.score(X, sample_weight=weight) == pytest.approx(weighted.lower_bound_)


@both
@every_tie
def test_sparse_is_dense(table, rng, mixture, tied):
    X = np.where(rng.random(table.shape) < 0.3, 0.0, table)
    thin = sparse.csr_array(X)
    thin.data[::6] = 0.0  # zeros that are stored
    X = thin.toarray()
    settings = dict(tied=tied, random_state=0, tol=1e-3)
    dense, ours = mixture(2, 1, **settings).fit(X), mixture(2, 1, **settings).fit(thin)
    assert ours.lower_bound_ == pytest.approx(dense.lower_bound_, abs=1e-6)
    order = _matched(dense.means_, ours.means_)
    np.testing.assert_allclose(ours.means_[order], dense.means_, atol=1e-4)
    np.testing.assert_allclose(ours.transform(thin), dense.transform(X), atol=1e-3)


def test_units_do_not_matter_to_factor_analysers(table):
    scale = np.array([1e-5, 1e3, 1, 1, 0.1, 20, 1, 1, 1, 3])
    one = MixtureOfFactorAnalyzers(3, 2, random_state=0).fit(table)
    other = MixtureOfFactorAnalyzers(3, 2, random_state=0).fit(table * scale)
    assert adjusted_rand_score(one.predict(table), other.predict(table * scale)) == 1
    order = _matched(one.means_ * scale, other.means_)
    np.testing.assert_allclose(other.means_[order], one.means_ * scale, rtol=1e-3)
    shift = np.log(scale).sum()
    assert other.lower_bound_ == pytest.approx(one.lower_bound_ - shift, abs=1e-5)


@both
def test_an_offset_of_1e8_changes_nothing(table, mixture):
    X = table.round(6)
    near = mixture(3, 2, random_state=0).fit(X)
    far = mixture(3, 2, random_state=0).fit(X + 1e8)
    assert adjusted_rand_score(near.predict(X), far.predict(X + 1e8)) == 1
    order = _matched(near.means_, far.means_ - 1e8)
    np.testing.assert_allclose(_covariances(far)[order], _covariances(near), rtol=1e-3, atol=1e-3)


@both
def test_float32_stays_float32(table, mixture):
    X = table.astype(np.float32)
    ours = mixture(3, 2, random_state=0).fit(X)
    for name in ("weights_", "means_", "loadings_", "noise_variance_", "latent_covariances_"):
        assert getattr(ours, name).dtype == np.float32, name
    for answer in (ours.transform(X), ours.reconstruct(X), ours.predict_proba(X)):
        assert answer.dtype == np.float32
    exact = mixture(3, 2, random_state=0).fit(table)
    assert adjusted_rand_score(exact.predict(table), ours.predict(X)) > 0.99


@both
def test_more_columns_than_rows(rng, mixture):
    y = np.repeat([0, 1], 40)
    X = rng.normal(size=(80, 1)) * rng.normal(size=300) + 0.5 * rng.normal(size=(80, 300))
    X = X + 2 * y[:, None] * rng.normal(size=300)
    ours = mixture(2, 1, random_state=0).fit(X)
    assert adjusted_rand_score(y, ours.predict(X)) == 1
    assert ours.transform(X).shape == (80, 1)


# ------------------------------------------------ fits


@both
def test_known_components_are_kept(table, labels, mixture):
    known = np.where(np.arange(300) < 60, (labels + 1) % 3, -1)
    ours = mixture(3, 2, random_state=0).fit(table, component_labels=known)
    assert adjusted_rand_score(labels, ours.predict(table)) > 0.95
    assert np.mean(ours.predict(table) == (labels + 1) % 3) > 0.95
    frame = pd.DataFrame(table, columns=list("abcdefghij")).assign(group=known)
    by_name = mixture(3, 2, random_state=0).fit(frame, component_labels="group")
    np.testing.assert_allclose(by_name.means_, ours.means_, rtol=1e-6)


@both
@pytest.mark.parametrize("init", ["kmeans", "subspaces", "k-means++", "random_from_data"])
def test_every_start_leads_somewhere(table, mixture, init):
    one = mixture(3, 2, init_params=init, random_state=1).fit(table)
    again = mixture(3, 2, init_params=init, random_state=1).fit(table)
    np.testing.assert_array_equal(one.means_, again.means_)
    many = mixture(3, 2, init_params=init, n_init=4, random_state=1).fit(table)
    assert many.lower_bound_ >= one.lower_bound_ - 1e-9
    assert many.lower_bound_ == pytest.approx(many.score(table), abs=1e-9)


@both
def test_components_that_cross_are_told_apart(rng, mixture):
    """Two lines through one point: k-means on the rows cannot see them."""
    t = 3 * rng.normal(size=(400, 1))
    y = np.repeat([0, 1], 200)
    X = t * np.where(y[:, None] == 0, [1.0, 1, 0, 0], [0.0, 0, 1, -1])
    X = X + 0.1 * rng.normal(size=X.shape)
    ours = mixture(2, 1, init_params="subspaces", random_state=0).fit(X)
    assert adjusted_rand_score(y, ours.predict(X)) > 0.85


@both
def test_warm_starts_go_on(table, mixture):
    settings = dict(init_params="random_from_data", tol=1e-9, random_state=0)
    with pytest.warns(UserWarning, match="did not converge"):
        ours = mixture(3, 2, warm_start=True, max_iter=2, **settings).fit(table)
    before = ours.lower_bound_
    ours.set_params(max_iter=3000).fit(table)
    assert ours.converged_ and ours.lower_bound_ > before
    steps = ours.n_iter_
    assert ours.fit(table).n_iter_ < steps
    ours.set_params(n_factors=1, tol=1e-3).fit(table)  # another shape begins anew
    assert ours.loadings_.shape == (3, 10, 1)


@both
def test_acceleration_finds_the_same_maximum(table, mixture):
    settings = dict(tol=1e-9, max_iter=5000, random_state=0)
    fits = [mixture(3, 2, acceleration=a, **settings).fit(table) for a in ("auto", "squarem", None)]
    for fitted in fits:
        assert fitted.converged_ and (np.diff(fitted.lower_bounds_) > -1e-9).all()
        assert fitted.lower_bound_ == pytest.approx(fits[-1].lower_bound_, abs=1e-6)


@both
def test_few_rows_for_many_components_are_told_of(rng, mixture):
    X = rng.normal(size=(40, 6))
    with pytest.warns(DegenerateWarning, match="see events_"):
        ours = mixture(8, 4, random_state=0).fit(X)
    assert {event.kind for event in ours.events_} - {"floor"}
    assert ours.weights_.sum() == pytest.approx(1) and np.isfinite(ours.score(X))


@both
def test_duplicated_rows_do_not_end_a_fit(mixture):
    X = np.repeat(np.eye(3), 6, axis=0)
    with pytest.warns(DegenerateWarning, match="floor"):
        ours = mixture(2, 1, random_state=0).fit(X)
    assert np.isfinite(ours.score(X)) and np.isfinite(ours.transform(X)).all()


@both
def test_names_and_clones(table, mixture):
    frame = pd.DataFrame(table, columns=list("abcdefghij"))
    ours = mixture(3, 2, random_state=0).set_output(transform="pandas").fit(frame)
    name = mixture.__name__.lower()
    assert list(ours.transform(frame).columns) == [f"{name}0", f"{name}1"]
    settings = clone(mixture(2, [1, 2], tied=("noise",))).get_params()
    assert settings["n_factors"] == [1, 2] and settings["tied"] == ("noise",)
    np.testing.assert_allclose(
        mixture(3, 2, random_state=0).fit_predict(table), ours.predict(frame)
    )
