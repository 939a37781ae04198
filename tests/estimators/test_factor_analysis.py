"""FactorAnalysis from outside: at least scikit-learn's, and what that one cannot do."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.decomposition import FactorAnalysis as TheirFactorAnalysis

import mixfold
from mixfold import DegenerateWarning, FactorAnalysis
from mixfold.math.rotations import oblimin, quartimax, varimax

ROTATIONS = ["varimax", "quartimax", "promax", "oblimin"]
ROTATE = {"varimax": varimax, "quartimax": quartimax, "oblimin": oblimin}


@pytest.fixture
def table(rng) -> np.ndarray:
    """Two factors, each behind three columns of seven, in unequal units."""
    factors = rng.normal(size=(300, 2))
    loadings = [[1, 0.8, 0.9, 0, 0, 0, 0.5], [0, 0, 0, 1, -0.7, 0.8, 0.5]]
    noise = rng.normal(size=(300, 7)) * [0.4, 0.6, 0.5, 0.5, 0.6, 0.4, 0.7]
    return (factors @ loadings + noise) * 3.0 ** np.arange(7) + np.arange(7)


def _holes(X: np.ndarray, rng: np.random.Generator, share: float = 0.2) -> np.ndarray:
    return np.where(rng.random(X.shape) < share, np.nan, X)


def _units(analysis: FactorAnalysis) -> np.ndarray:
    """Standard deviations of the columns, in which differences are measured."""
    return np.sqrt(analysis.get_covariance().diagonal())


def require_same(got: FactorAnalysis, wanted: FactorAnalysis, atol: float) -> None:
    unit = _units(wanted)
    gap = (got.get_covariance() - wanted.get_covariance()) / unit / unit[:, None]
    assert np.abs(gap).max() < atol
    assert np.abs((got.mean_ - wanted.mean_) / unit).max() < atol
    assert np.abs((got.noise_variance_ - wanted.noise_variance_) / unit**2).max() < atol


# ------------------------------------------------ against scikit-learn


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
@pytest.mark.filterwarnings("ignore:FactorAnalysis did not converge")  # theirs
@pytest.mark.parametrize("seed", range(20))
def test_likelihood_is_at_least_theirs(seed):
    rng = np.random.default_rng(seed)
    n_features = int(rng.integers(5, 13))
    d = int(rng.integers(1, n_features // 3 + 1))
    loadings = rng.normal(size=(d, n_features))
    noise = rng.normal(size=(80, n_features)) * rng.uniform(0.1, 2, n_features)
    X = (rng.normal(size=(80, d)) @ loadings + noise) * rng.uniform(0.1, 10, n_features)
    ours = FactorAnalysis(d).fit(X)
    theirs = TheirFactorAnalysis(d, tol=1e-6, max_iter=2000, svd_method="lapack").fit(X)
    assert ours.converged_
    # theirs has no floor under the noise, ours one of a millionth of the variance
    assert ours.score(X) >= theirs.score(X) - 1e-5
    assert ours.loglike_[-1] == pytest.approx(80 * ours.score(X), rel=1e-8)


@pytest.mark.parametrize("rotation", [None, "varimax", "quartimax"])
def test_loadings_are_theirs(table, rotation):
    X = table / table.std(axis=0)
    ours = FactorAnalysis(2, rotation=rotation, tol=1e-13).fit(X)
    theirs = TheirFactorAnalysis(2, rotation=rotation, tol=1e-10, max_iter=5000).fit(X)
    np.testing.assert_allclose(ours.noise_variance_, theirs.noise_variance_, atol=1e-4)
    np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), atol=1e-4)
    np.testing.assert_allclose(ours.get_precision(), np.linalg.inv(ours.get_covariance()))
    product = ours.components_ @ theirs.components_.T
    turn = product / np.linalg.norm(ours.components_, axis=1)[:, None]
    turn /= np.linalg.norm(theirs.components_, axis=1)
    # the same factors but for their order and signs
    match = np.abs(turn).argmax(axis=1)
    assert sorted(match) == [0, 1]
    signs = np.sign(turn[[0, 1], match])[:, None]
    np.testing.assert_allclose(ours.components_, signs * theirs.components_[match], atol=1e-3)
    latents = signs.T * theirs.transform(X)[:, match]
    np.testing.assert_allclose(ours.transform(X), latents, atol=5e-3)


def test_the_density_is_that_of_the_dense_gaussian(table, rng):
    analysis = FactorAnalysis(2).fit(table)
    C = analysis.loadings_ @ analysis.loadings_.T + np.diag(analysis.noise_variance_)
    np.testing.assert_allclose(analysis.get_covariance(), C, rtol=1e-9)
    dense = multivariate_normal(analysis.mean_, C).logpdf(table)
    np.testing.assert_allclose(analysis.score_samples(table), dense, rtol=1e-9)
    assert analysis.lower_bound_ == pytest.approx(dense.mean(), abs=1e-9)
    n_free = 7 + (14 - 1) + 7
    assert analysis.bic() == pytest.approx(-2 * dense.sum() + n_free * np.log(300), rel=1e-9)
    X = _holes(table, rng)
    seen = ~np.isnan(X[:20])
    marginal = [
        multivariate_normal(analysis.mean_[s], C[np.ix_(s, s)]).logpdf(x[s])
        for x, s in zip(X, seen, strict=False)
    ]
    np.testing.assert_allclose(analysis.score_samples(X[:20]), marginal, rtol=1e-9)


def test_the_maximum_is_one(table):
    """At the maximum the model has the variances of the data, and no gradient."""
    analysis = FactorAnalysis(2, tol=1e-13).fit(table)
    S, C = np.cov(table.T, bias=True), analysis.get_covariance()
    np.testing.assert_allclose(C.diagonal(), S.diagonal(), rtol=1e-5)
    P = np.linalg.inv(C)
    slope = (P - P @ S @ P) @ analysis.loadings_ * _units(analysis)[:, None]
    assert np.abs(slope).max() < 1e-4


# ------------------------------------------------ rotations


@pytest.mark.parametrize("rotation", [None, *ROTATIONS])
def test_a_rotation_changes_the_factors_only(table, rotation, rng):
    plain = FactorAnalysis(2).fit(table)
    turned = FactorAnalysis(2, rotation=rotation).fit(table)
    phi = turned.factor_correlations_
    np.testing.assert_allclose(phi.diagonal(), 1.0)
    C = turned.loadings_ @ phi @ turned.loadings_.T + np.diag(turned.noise_variance_)
    np.testing.assert_allclose(C, plain.get_covariance(), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(turned.get_covariance(), plain.get_covariance())
    np.testing.assert_array_equal(turned.components_, turned.loadings_.T)
    oblique = rotation in ("promax", "oblimin")
    assert (abs(phi[0, 1]) > 1e-3) == oblique
    assert turned.score(table) == pytest.approx(plain.score(table), rel=1e-12)
    # one set of latent coordinates in all answers
    Z, covariance = turned.transform(table, return_cov=True)
    rows = Z @ turned.loadings_.T + turned.mean_
    np.testing.assert_allclose(turned.inverse_transform(Z), rows, rtol=1e-9)
    np.testing.assert_allclose(turned.reconstruct(table), rows, rtol=1e-9)
    np.testing.assert_allclose(turned.latent_covariance_, covariance, atol=1e-10)
    W, noise = turned.loadings_, turned.noise_variance_
    posterior = np.linalg.inv(np.linalg.inv(phi) + (W.T / noise) @ W)
    np.testing.assert_allclose(covariance, posterior, atol=1e-8)
    expected = (table - turned.mean_) / noise @ W @ posterior
    np.testing.assert_allclose(Z, expected, atol=1e-7)
    # total covariance of the latents: that of the prior
    np.testing.assert_allclose(np.cov(Z.T, bias=True) + covariance, phi, atol=1e-3)
    each = turned.transform(_holes(table, rng), return_cov=True)[1]
    assert each.shape == (300, 2, 2)


@pytest.mark.parametrize("rotation", ROTATIONS)
def test_rotated_factors_are_simple(table, rotation):
    analysis = FactorAnalysis(2, rotation=rotation).fit(table / table.std(axis=0))
    sizes = np.abs(analysis.loadings_)
    first = sizes[0].argmax()
    assert (sizes[:3, first] > 0.6).all() and (sizes[3:6, first] < 0.2).all()
    assert (sizes[3:6, 1 - first] > 0.6).all() and (sizes[:3, 1 - first] < 0.2).all()


@pytest.mark.parametrize("rotation", [None, *ROTATIONS])
def test_units_do_not_turn_the_factors(table, rotation, rng):
    """Loadings follow the units of their columns; factors, their order and signs do not."""
    units = np.array([1, 1e-3, 50, 1e4, 1, 7, 0.2])
    one = FactorAnalysis(2, rotation=rotation, tol=1e-13).fit(table)
    other = FactorAnalysis(2, rotation=rotation, tol=1e-13).fit(table * units)
    sd = _units(one)[:, None]
    np.testing.assert_allclose(other.loadings_ / units[:, None] / sd, one.loadings_ / sd, atol=1e-5)
    np.testing.assert_allclose(other.factor_correlations_, one.factor_correlations_, atol=1e-5)
    np.testing.assert_allclose(other.transform(table * units), one.transform(table), atol=1e-4)


@pytest.mark.parametrize("rotation", ["varimax", "quartimax", "oblimin"])
def test_a_rotation_is_that_of_the_correlations(table, rotation):
    """In any units the loadings are those of scaled columns, times the standard deviations."""
    sd = table.std(axis=0)[:, None]
    raw = FactorAnalysis(2, rotation=rotation, tol=1e-13).fit(table)
    scaled = ROTATE[rotation](FactorAnalysis(2, tol=1e-13).fit(table / sd.T).loadings_)
    np.testing.assert_allclose(raw.loadings_ / sd, scaled.loadings, atol=1e-5)
    np.testing.assert_allclose(raw.factor_correlations_, scaled.correlations, atol=1e-5)


def test_columns_without_variance_are_not_rotated(table):
    """A column that never varies loads on nothing, and the others turn as without it."""
    same = np.column_stack([table, np.full(300, 5.0)])
    with pytest.warns(DegenerateWarning):
        wide = FactorAnalysis(2, rotation="oblimin", tol=1e-13).fit(same)
    plain = FactorAnalysis(2, rotation="oblimin", tol=1e-13).fit(table)
    sd = _units(plain)[:, None]
    np.testing.assert_allclose(wide.loadings_[:7] / sd, plain.loadings_ / sd, atol=1e-5)
    assert np.isfinite(wide.loadings_).all() and np.abs(wide.loadings_[7]).max() < 1e-6


def test_one_factor_is_not_rotated(table):
    plain, turned = (FactorAnalysis(1, rotation=r).fit(table) for r in (None, "oblimin"))
    np.testing.assert_array_equal(plain.loadings_, turned.loadings_)
    np.testing.assert_array_equal(turned.factor_correlations_, [[1.0]])


def test_projections_are_weighted_by_the_noise(table):
    analysis = FactorAnalysis(2, rotation="promax").fit(table)
    W, noise = analysis.loadings_, analysis.noise_variance_
    deviation = table - analysis.mean_
    weighted = np.linalg.solve((W.T / noise) @ W, (W.T / noise) @ deviation.T)
    expected = (W @ weighted).T + analysis.mean_
    np.testing.assert_allclose(analysis.reconstruct(table, "weighted"), expected, rtol=1e-8)
    Z = analysis.transform(table)
    np.testing.assert_allclose(analysis.inverse_transform(Z, "weighted"), expected, rtol=1e-7)
    plain = (W @ np.linalg.lstsq(W, deviation.T, rcond=None)[0]).T + analysis.mean_
    np.testing.assert_allclose(analysis.reconstruct(table, "least-squares"), plain, rtol=1e-8)


# ------------------------------------------------ what data may be


def test_missing_entries_do_not_matter_much(table, rng):
    X = _holes(table, rng, 0.15)
    holed, whole = FactorAnalysis(2).fit(X), FactorAnalysis(2).fit(table)
    assert holed.converged_ and (np.diff(holed.lower_bounds_) > -1e-9).all()
    require_same(holed, whole, 0.15)
    hidden = np.isnan(X)
    unit = table.std(axis=0)
    error = ((holed.impute(X) - table) / unit)[hidden]
    assert np.sqrt(np.mean(error**2)) < 0.8
    assert np.array_equal(holed.impute(X)[~hidden], X[~hidden])


def test_a_fit_with_one_hole_is_nearly_the_one_without(table):
    X = table.copy()
    X[0, 0] = np.nan
    require_same(FactorAnalysis(2).fit(X), FactorAnalysis(2).fit(table), 0.01)


def test_moments_and_rows_give_the_same(table):
    """Complete data are read once, and few rows stand for them: no other maximum."""
    fast = FactorAnalysis(2, tol=1e-12).fit(table)
    slow = mixfold.MixtureOfFactorAnalyzers(1, 2, tol=1e-12, max_iter=5000).fit(table)
    assert fast.lower_bound_ == pytest.approx(slow.lower_bound_, abs=1e-8)
    np.testing.assert_allclose(slow.noise_variance_[0], fast.noise_variance_, rtol=1e-3)
    np.testing.assert_allclose(slow.means_[0], fast.mean_, rtol=1e-9)


def test_weights_are_repetitions(table, rng):
    weight = rng.integers(0, 3, len(table))
    for X, atol in ((table, 1e-6), (_holes(table, rng), 1e-3)):
        weighted = FactorAnalysis(2, tol=1e-11).fit(X, sample_weight=weight)
        repeated = FactorAnalysis(2, tol=1e-11).fit(X.repeat(weight, axis=0))
        require_same(weighted, repeated, atol)
        assert weighted.bic() == pytest.approx(repeated.bic(), rel=1e-7)
        assert weighted.score(X, sample_weight=weight) == pytest.approx(weighted.lower_bound_)


@pytest.mark.parametrize("holes", [False, True])
def test_units_do_not_matter(table, rng, holes):
    X = _holes(table, rng) if holes else table
    scale = np.array([1e-6, 1e4, 1, 1, 1e-2, 7, 1])
    one, other = FactorAnalysis(2).fit(X), FactorAnalysis(2).fit(X * scale)
    np.testing.assert_allclose(other.noise_variance_, one.noise_variance_ * scale**2, rtol=1e-3)
    np.testing.assert_allclose(other.transform(X * scale), one.transform(X), atol=1e-3)
    shift = np.log(scale).sum() if not holes else (np.log(scale) * ~np.isnan(X)).sum() / len(X)
    assert other.lower_bound_ == pytest.approx(one.lower_bound_ - shift, abs=1e-6)


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
def test_units_of_collinear_columns_do_not_matter(rng, unit):
    X = rng.normal(size=(50, 1)) * [1.0, 2.0, -3.0] * unit
    analysis = FactorAnalysis(1).fit(X)
    np.testing.assert_allclose(analysis.get_covariance(), np.cov(X.T, bias=True), rtol=1e-4)
    assert (analysis.noise_variance_ <= 1.1e-6 * X.var(axis=0)).all()


def test_an_offset_of_1e8_changes_nothing(table):
    X = (table / table.std(axis=0)).round(6)
    near, far = FactorAnalysis(2).fit(X), FactorAnalysis(2).fit(X + 1e8)
    require_same(far, _shifted(near, 1e8), 1e-4)


def _shifted(analysis: FactorAnalysis, by: float) -> FactorAnalysis:
    analysis.mean_ = analysis.mean_ + by
    return analysis


def test_sparse_is_dense(rng):
    factors = rng.normal(size=(300, 2))
    X = factors @ rng.normal(size=(2, 8)) + 0.5 * rng.normal(size=(300, 8))
    X = np.where(rng.random(X.shape) < 0.5, 0.0, X)
    thin = sparse.csr_array(X)
    thin.data[::7] = 0.0  # zeros that are stored
    X = thin.toarray()
    dense, ours = FactorAnalysis(1).fit(X), FactorAnalysis(1).fit(thin)
    require_same(ours, dense, 1e-7)
    np.testing.assert_allclose(ours.transform(thin), dense.transform(X), atol=1e-6)


def test_float32_stays_float32(table):
    X = (table / table.std(axis=0)).astype(np.float32)
    analysis = FactorAnalysis(2, rotation="oblimin").fit(X)
    for name in (
        "mean_", "components_", "loadings_", "noise_variance_", "factor_correlations_",
        "latent_covariance_",
    ):  # fmt: skip
        assert getattr(analysis, name).dtype == np.float32, name
    for answer in (analysis.transform(X), analysis.reconstruct(X), analysis.sample(2)):
        assert answer.dtype == np.float32
    require_same(analysis, FactorAnalysis(2).fit(X.astype(float)), 1e-3)


def test_fewer_rows_than_columns(rng):
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 50)) + 0.5 * rng.normal(size=(30, 50))
    ours, theirs = FactorAnalysis(2).fit(X), TheirFactorAnalysis(2, tol=1e-6).fit(X)
    assert ours.score(X) >= theirs.score(X) - 1e-5
    assert ours.transform(X).shape == (30, 2)


# ------------------------------------------------ degenerate tables


def test_heywood_cases_are_reported(rng):
    X = rng.normal(size=(200, 1)) + 0.5 * rng.normal(size=(200, 4))
    X = np.column_stack([X, X[:, 0]])  # a column twice: one factor explains both wholly
    with pytest.warns(DegenerateWarning, match="Heywood"):
        analysis = FactorAnalysis(1).fit(X)
    assert list(analysis.heywood_) == [0, 4]
    assert analysis.events_[0].kind == "floor"
    np.testing.assert_allclose(analysis.noise_variance_[[0, 4]] / X[:, 0].var(), 1e-6, rtol=1e-3)
    assert np.isfinite(analysis.score(X))
    with pytest.warns(DegenerateWarning, match="floor of 0.01"):
        higher = FactorAnalysis(1, noise_floor=0.01).fit(X)
    assert higher.noise_variance_[0] == pytest.approx(0.01 * X[:, 0].var(), rel=1e-3)
    assert not FactorAnalysis(1).fit(X[:, :4]).heywood_.size


def test_a_constant_column_has_no_loading(table):
    X = np.column_stack([table, np.full(len(table), 7.0)])
    with pytest.warns(DegenerateWarning):
        analysis = FactorAnalysis(2).fit(X)
    without = FactorAnalysis(2).fit(table)
    assert list(analysis.heywood_) == [7] and analysis.mean_[7] == pytest.approx(7)
    np.testing.assert_allclose(analysis.loadings_[7], 0.0, atol=1e-6)
    np.testing.assert_allclose(analysis.loadings_[:7], without.loadings_, rtol=1e-2, atol=1e-2)


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
def test_more_factors_than_can_be_identified(rng):
    X = rng.normal(size=(100, 5))
    with pytest.warns(UserWarning, match=r"n_components=3 factors of 5 columns .*identify \(2\)"):
        FactorAnalysis(3).fit(X)
    assert FactorAnalysis(None).fit(X).n_components_ == 2
    assert FactorAnalysis(None).fit(X[:, :2]).n_components_ == 1


@pytest.mark.parametrize("rotation", [None, "promax"])
def test_without_factors_columns_are_independent(table, rng, rotation, tmp_path):
    for X in (table, _holes(table, rng)):
        analysis = FactorAnalysis(0, rotation=rotation, tol=1e-10).fit(X)
        np.testing.assert_allclose(analysis.mean_, np.nanmean(X, axis=0), rtol=1e-6)
        np.testing.assert_allclose(analysis.noise_variance_, np.nanvar(X, axis=0), rtol=1e-6)
        assert analysis.transform(X).shape == (300, 0) and analysis.loadings_.shape == (7, 0)
        np.testing.assert_allclose(analysis.reconstruct(X)[5], analysis.mean_)
        np.testing.assert_allclose(analysis.inverse_transform(np.empty((2, 0)))[1], analysis.mean_)
        analysis.save(tmp_path / "m.mixfold")
        assert mixfold.load(tmp_path / "m.mixfold").score(X) == analysis.score(X)


# ------------------------------------------------ streams and files


@pytest.mark.parametrize("sizes", [[1, 299], [3, 5, 292], [100] * 3, [25] * 11 + [24, 1]])
def test_batches_of_any_size_give_the_fit(table, sizes):
    whole, stream = FactorAnalysis(2, tol=1e-12).fit(table), FactorAnalysis(2, tol=1e-12)
    for batch in np.split(table, np.cumsum(sizes)[:-1]):
        stream.partial_fit(batch)
    require_same(stream, whole, 1e-5)
    assert stream.lower_bound_ == pytest.approx(whole.lower_bound_, abs=1e-8)
    assert stream.n_iter_ == len(sizes)


def test_a_stream_goes_on_with_holes_after_a_file(table, rng, tmp_path):
    X = np.concatenate([table] * 4)
    rng.shuffle(X)
    stream = FactorAnalysis(2, rotation="varimax", random_state=0)
    for batch in np.array_split(X[:600], 3):
        stream.partial_fit(batch)
    stream.save(tmp_path / "s.mixfold")
    loaded = mixfold.load(tmp_path / "s.mixfold")
    np.testing.assert_allclose(loaded.loadings_, stream.loadings_, rtol=1e-12)
    for batch in np.array_split(_holes(X[600:], rng), 4):
        stream.partial_fit(batch)
        loaded.partial_fit(batch)
    require_same(loaded, stream, 1e-9)
    require_same(stream, FactorAnalysis(2).fit(X), 0.15)
    assert stream.n_iter_ == loaded.n_iter_ == 7


def test_names_pipelines_and_clones(table):
    frame = pd.DataFrame(table, columns=list("abcdefg"))
    analysis = FactorAnalysis(2).set_output(transform="pandas").fit(frame)
    expected = ["factoranalysis0", "factoranalysis1"]
    assert list(analysis.transform(frame).columns) == expected
    parameters = FactorAnalysis(3, rotation="promax", tol=1e-4).get_params()
    assert clone(FactorAnalysis(3, rotation="promax", tol=1e-4)).get_params() == parameters


def test_samples_have_the_covariance_of_the_model(table):
    analysis = FactorAnalysis(2, rotation="oblimin").fit(table)
    X = analysis.sample(40000, random_state=1)
    unit = _units(analysis)
    gap = (np.cov(X.T) - analysis.get_covariance()) / unit / unit[:, None]
    assert np.abs(gap).max() < 6 * np.sqrt(2 / 40000)
    assert np.abs((X.mean(axis=0) - analysis.mean_) / unit).max() < 6 / np.sqrt(40000)
