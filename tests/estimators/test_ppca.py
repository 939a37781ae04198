"""PPCA from outside: PCA with a likelihood, for tables with holes, weights and batches."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixfold
from mixfold import PPCA, DegenerateWarning

SOLVERS = ["auto", "covariance", "gram", "randomized"]


@pytest.fixture
def table(rng) -> np.ndarray:
    """Three latents of unequal strength behind eight columns far from zero."""
    latents = rng.normal(size=(200, 3)) * [3.0, 2.0, 1.0]
    axes = np.linalg.qr(rng.normal(size=(8, 3)))[0]
    return latents @ axes.T + 0.3 * rng.normal(size=(200, 8)) + np.arange(8) * 5


def _holes(X: np.ndarray, rng: np.random.Generator, share: float = 0.2) -> np.ndarray:
    return np.where(rng.random(X.shape) < share, np.nan, X)


def _angle(A: np.ndarray, B: np.ndarray) -> float:
    """Sine of the largest angle between the spans of two sets of orthonormal rows."""
    return float(np.linalg.norm(A - (A @ B.T) @ B, 2))


# ------------------------------------------------ against PCA


@pytest.mark.parametrize("solver", SOLVERS)
def test_it_is_pca(table, solver):
    ours = PPCA(3, solver=solver, random_state=0).fit(table)
    theirs = PCA(3, svd_solver="full").fit(table)
    to_ml = (len(table) - 1) / len(table)
    assert ours.solver_ == ("covariance" if solver == "auto" else solver)
    np.testing.assert_allclose(ours.mean_, theirs.mean_, rtol=1e-12)
    np.testing.assert_allclose(ours.components_, theirs.components_, atol=1e-6)
    np.testing.assert_allclose(ours.components_ @ ours.components_.T, np.eye(3), atol=1e-10)
    np.testing.assert_allclose(ours.explained_variance_, theirs.explained_variance_ * to_ml)
    np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_)
    assert ours.noise_variance_ == pytest.approx(theirs.noise_variance_ * to_ml, rel=1e-9)
    np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance() * to_ml, atol=1e-6)
    np.testing.assert_allclose(ours.get_precision(), np.linalg.inv(ours.get_covariance()))


@pytest.mark.parametrize("solver", SOLVERS)
def test_least_squares_is_the_projection_of_pca(table, solver):
    ours = PPCA(2, solver=solver, random_state=0).fit(table)
    theirs = PCA(2, svd_solver="full").fit(table)
    expected = theirs.inverse_transform(theirs.transform(table))
    np.testing.assert_allclose(ours.reconstruct(table, "least-squares"), expected, atol=1e-5)
    Z = ours.transform(table)
    np.testing.assert_allclose(ours.inverse_transform(Z, "least-squares"), expected, atol=1e-5)
    assert np.abs(ours.inverse_transform(Z) - expected).max() > 0.01  # the prior draws it inwards


def test_the_density_is_that_of_the_dense_gaussian(table):
    ppca = PPCA(3).fit(table)
    dense = multivariate_normal(ppca.mean_, ppca.get_covariance())
    np.testing.assert_allclose(ppca.score_samples(table), dense.logpdf(table), rtol=1e-10)
    assert ppca.score(table) == pytest.approx(dense.logpdf(table).mean(), rel=1e-12)
    assert ppca.lower_bound_ == pytest.approx(ppca.score(table), rel=1e-10)
    n_free = 8 + (8 * 3 - 3) + 1
    assert ppca.bic() == pytest.approx(-400 * ppca.score(table) + n_free * np.log(200), rel=1e-10)
    assert ppca.aic(table) == pytest.approx(-400 * ppca.score(table) + n_free * 2, rel=1e-10)


def test_the_latents_are_those_of_bayes(table):
    ppca = PPCA(3).fit(table)
    W, noise = ppca.loadings_, ppca.noise_variance_
    posterior = np.linalg.inv(np.eye(3) + W.T @ W / noise)
    Z, covariance = ppca.transform(table, return_cov=True)
    np.testing.assert_allclose(covariance, posterior, atol=1e-12)
    np.testing.assert_allclose(ppca.latent_covariance_, posterior, atol=1e-12)
    np.testing.assert_allclose(Z, (table - ppca.mean_) @ W @ posterior / noise, atol=1e-9)
    np.testing.assert_allclose(ppca.inverse_transform(Z), ppca.reconstruct(table), atol=1e-9)
    np.testing.assert_allclose(ppca.inverse_transform(Z), Z @ W.T + ppca.mean_, atol=1e-9)


def test_latents_of_rows_with_holes_have_covariances_of_their_own(table, rng):
    X = _holes(table, rng)
    ppca = PPCA(2).fit(table)
    Z, covariances = ppca.transform(X, return_cov=True)
    assert covariances.shape == (200, 2, 2)
    for row in range(5):
        seen = ~np.isnan(X[row])
        W = ppca.loadings_[seen]
        posterior = np.linalg.inv(np.eye(2) + W.T @ W / ppca.noise_variance_)
        expected = posterior @ W.T @ (X[row] - ppca.mean_)[seen] / ppca.noise_variance_
        np.testing.assert_allclose(covariances[row], posterior, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(Z[row], expected, rtol=1e-8)


# ------------------------------------------------ EM


@pytest.mark.parametrize("center", [True, False])
def test_em_reaches_the_closed_form(table, center):
    exact = PPCA(3, center=center).fit(table)
    em = PPCA(3, center=center, solver="em", tol=1e-12, max_iter=5000).fit(table)
    assert em.solver_ == "em" and em.converged_
    assert _angle(em.components_, exact.components_) < 1e-6
    assert em.lower_bound_ == pytest.approx(exact.lower_bound_, abs=1e-6)
    assert em.noise_variance_ == pytest.approx(exact.noise_variance_, rel=1e-6)
    np.testing.assert_allclose(em.explained_variance_, exact.explained_variance_, rtol=1e-5)


def test_missing_entries_are_integrated_out(table, rng):
    X = _holes(table, rng)
    ppca = PPCA(3, tol=1e-10).fit(X)
    seen, C = ~np.isnan(X), ppca.get_covariance()
    expected = [
        multivariate_normal(ppca.mean_[s], C[np.ix_(s, s)]).logpdf(x[s])
        for x, s in zip(X, seen, strict=True)
        if s.any()
    ]
    np.testing.assert_allclose(ppca.score_samples(X)[seen.any(axis=1)], expected, rtol=1e-9)
    # stationary: no turn of the axes, scale of the noise or shift of the mean does better
    for name, change in (("noise_variance_", 1.05), ("mean_", 1.001)):
        other = PPCA(3).fit(table)
        values = {"mean_": ppca.mean_, "noise_variance_": ppca.noise_variance_}
        values[name] = values[name] * change
        D = ppca.loadings_ @ ppca.loadings_.T + values["noise_variance_"] * np.eye(8)
        total = sum(
            multivariate_normal(values["mean_"][s], D[np.ix_(s, s)]).logpdf(x[s])
            for x, s in zip(X, seen, strict=True)
            if s.any()
        )
        assert total < np.sum(expected), name
        assert _angle(ppca.components_, other.components_) < 0.1
    assert ppca.noise_variance_ == pytest.approx(0.09, rel=0.1)


def test_hidden_entries_are_found_again(table, rng):
    X = _holes(table, rng)
    ppca = PPCA(3).fit(X)
    filled, hidden = ppca.impute(X), np.isnan(X)
    assert np.array_equal(filled[~hidden], X[~hidden])
    error = np.sqrt(np.mean((filled - table)[hidden] ** 2))
    of_means = np.sqrt(np.mean((np.nanmean(X, axis=0) - table)[hidden] ** 2))
    assert error < 0.4 * of_means
    known = np.flatnonzero(~hidden[0])
    C = ppca.get_covariance()
    slope = np.linalg.solve(C[np.ix_(known, known)], C[known]).T
    expected = ppca.mean_ + slope @ (X[0, known] - ppca.mean_[known])
    np.testing.assert_allclose(filled[0], expected, rtol=1e-7)


def test_draws_have_the_conditional_spread(table):
    ppca = PPCA(2).fit(table)
    rows = np.tile(np.where(np.arange(8) < 5, table[0], np.nan), (20000, 1))
    drawn = ppca.impute(rows, method="draw", random_state=3)[:, 5:]
    C = ppca.get_covariance()
    slope = np.linalg.solve(C[:5, :5], C[:5, 5:]).T
    mean = ppca.mean_[5:] + slope @ (table[0, :5] - ppca.mean_[:5])
    spread = C[5:, 5:] - slope @ C[:5, 5:]
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=6 * np.sqrt(spread.max() / 20000))
    np.testing.assert_allclose(np.cov(drawn.T), spread, atol=0.05 * spread.max())
    again = ppca.impute(rows[:7], method="draw", random_state=3)
    assert np.array_equal(again[:, 5:], drawn[:7])


def test_samples_have_the_covariance_of_the_model(table):
    ppca = PPCA(2).fit(table)
    X = ppca.sample(40000, random_state=1)
    C = ppca.get_covariance()
    bound = 6 * np.sqrt(C.diagonal().max() / 40000)
    np.testing.assert_allclose(X.mean(axis=0), ppca.mean_, atol=bound)
    np.testing.assert_allclose(np.cov(X.T), C, atol=6 * np.sqrt(2 / 40000) * C.max())
    assert not np.array_equal(ppca.sample(3), ppca.sample(3))


# ------------------------------------------------ forms of data


def _sparse_with_zeros(X: np.ndarray) -> sparse.csr_array:
    """CSR that stores a fifth of its zeros."""
    thin = sparse.csr_array(np.where(X == 0, 1.0, X))
    thin.data[np.flatnonzero(X.ravel() == 0)] = 0.0
    keep = (X.ravel() != 0) | (np.arange(X.size) % 5 == 0)
    rows, columns = np.divmod(np.flatnonzero(keep), X.shape[1])
    return sparse.csr_array((thin.data[keep], (rows, columns)), shape=X.shape)


@pytest.mark.parametrize("solver", [*SOLVERS, "em"])
@pytest.mark.parametrize("center", [True, False])
def test_sparse_is_dense(rng, solver, center):
    X = np.where(rng.random((120, 9)) < 0.7, 0.0, rng.normal(3, 1, (120, 9)) * np.arange(1, 10))
    thin = _sparse_with_zeros(X)
    assert (thin.data == 0).sum() > 50 and np.array_equal(thin.toarray(), X)
    dense = PPCA(2, solver=solver, center=center, random_state=0, tol=1e-9).fit(X)
    ours = PPCA(2, solver=solver, center=center, random_state=0, tol=1e-9).fit(thin)
    assert ours.solver_ == dense.solver_
    np.testing.assert_allclose(ours.loadings_, dense.loadings_, atol=1e-5)
    np.testing.assert_allclose(ours.mean_, dense.mean_, atol=1e-10)
    np.testing.assert_allclose(ours.transform(thin), dense.transform(X), atol=1e-5)
    np.testing.assert_allclose(ours.score_samples(thin), dense.score_samples(X), rtol=1e-6)
    np.testing.assert_allclose(ours.reconstruct(thin), dense.reconstruct(X), atol=1e-4)


@pytest.mark.parametrize("solver", [*SOLVERS, "em"])
def test_weights_are_repetitions(table, rng, solver):
    weight = rng.integers(0, 3, len(table))
    weighted = PPCA(3, solver=solver, random_state=0).fit(table, sample_weight=weight)
    repeated = PPCA(3, solver=solver, random_state=0).fit(table.repeat(weight, axis=0))
    np.testing.assert_allclose(weighted.mean_, repeated.mean_, rtol=1e-9)
    np.testing.assert_allclose(weighted.get_covariance(), repeated.get_covariance(), atol=1e-5)
    assert weighted.bic() == pytest.approx(repeated.bic(), rel=1e-8)
    assert weighted.score(table, sample_weight=weight) == pytest.approx(weighted.lower_bound_)


def test_weights_with_holes_are_repetitions(table, rng):
    X, weight = _holes(table, rng), rng.integers(0, 3, len(table))
    weighted = PPCA(2, tol=1e-10).fit(X, sample_weight=weight)
    repeated = PPCA(2, tol=1e-10).fit(X.repeat(weight, axis=0))
    np.testing.assert_allclose(weighted.get_covariance(), repeated.get_covariance(), atol=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_axes_about_zero(table, solver):
    ppca = PPCA(3, center=False, solver=solver, random_state=0).fit(table)
    values, vectors = np.linalg.eigh(table.T @ table / len(table))
    assert not ppca.mean_.any()
    assert _angle(ppca.components_, vectors[:, :-4:-1].T) < 1e-5
    np.testing.assert_allclose(ppca.explained_variance_, values[:-4:-1], rtol=1e-8)
    np.testing.assert_allclose(
        ppca.explained_variance_ratio_, values[:-4:-1] / values.sum(), rtol=1e-8
    )
    assert ppca.noise_variance_ == pytest.approx(values[:-3].mean(), rel=1e-6)
    assert ppca._n_parameters() == PPCA(3).fit(table)._n_parameters() - 8


def test_axes_about_zero_with_holes(table, rng):
    ppca = PPCA(2, center=False).fit(_holes(table, rng))
    assert not ppca.mean_.any()
    exact = PPCA(2, center=False).fit(table)
    assert _angle(ppca.components_, exact.components_) < 0.05


@pytest.mark.parametrize("solver", [*SOLVERS, "em"])
def test_float32_stays_float32(table, solver):
    X = table.astype(np.float32)
    ppca = PPCA(3, solver=solver, random_state=0).fit(X)
    exact = PPCA(3).fit(table)
    for name in ("mean_", "components_", "loadings_", "explained_variance_", "latent_covariance_"):
        assert getattr(ppca, name).dtype == np.float32, name
    for answer in (ppca.transform(X), ppca.reconstruct(X), ppca.score_samples(X), ppca.sample(2)):
        assert answer.dtype == np.float32
    np.testing.assert_allclose(ppca.get_covariance(), exact.get_covariance(), atol=2e-3)


@pytest.mark.parametrize("solver", [*SOLVERS, "em"])
def test_an_offset_of_1e8_changes_nothing(rng, solver):
    X = (rng.normal(size=(150, 2)) @ rng.normal(size=(2, 5)) + rng.normal(size=(150, 5))).round(6)
    near = PPCA(2, solver=solver, random_state=0).fit(X)
    far = PPCA(2, solver=solver, random_state=0).fit(X + 1e8)
    np.testing.assert_allclose(far.get_covariance(), near.get_covariance(), rtol=1e-4, atol=1e-5)


def test_integers_and_booleans_are_numbers(table):
    counts, flags = (table * 10).astype(int), table > np.median(table, axis=0)
    mixed = pd.DataFrame({"n": counts[:, 0], "flag": flags[:, 3], "x": table[:, 6]})
    for data in (counts, flags, mixed):
        same = PPCA(1).fit(np.asarray(data, dtype=float))
        np.testing.assert_allclose(PPCA(1).fit(data).components_, same.components_, rtol=1e-12)


# ------------------------------------------------ how many axes


def test_the_number_of_axes_is_chosen(table):
    ratios = PCA().fit(table).explained_variance_ratio_.cumsum()
    for share in (0.5, 0.9, 0.97, 0.999):
        ppca = PPCA(share).fit(table)
        assert ppca.n_components_ == int((ratios < share).sum()) + 1
        assert ppca.explained_variance_ratio_.sum() >= share
        assert ppca.transform(table).shape == (200, ppca.n_components_)
    assert PPCA(1.0).fit(table).n_components_ == 8
    assert PPCA("bic").fit(table).n_components_ == 3
    assert PPCA("mle").fit(table).n_components_ == 3 == PCA("mle").fit(table).n_components_
    every = PPCA().fit(table)
    assert every.n_components_ == 7
    np.testing.assert_allclose(every.get_covariance(), np.cov(table.T, bias=True), atol=1e-9)


def test_bic_is_the_least_of_all_fits(table):
    bics = [PPCA(d).fit(table).bic() for d in range(1, 8)]
    assert int(np.argmin(bics)) + 1 == PPCA("bic").fit(table).n_components_ == 3


def test_the_number_of_axes_is_chosen_with_holes(table, rng):
    X = _holes(table, rng, 0.1)
    assert PPCA("bic").fit(X).n_components_ == 3
    ppca = PPCA(0.97).fit(X)
    assert ppca.n_components_ == PPCA(0.97).fit(table).n_components_
    assert ppca.explained_variance_ratio_.sum() >= 0.97 and ppca.converged_
    with pytest.raises(ValueError, match=r"'mle' needs complete data.*use 'bic'"):
        PPCA("mle").fit(X)


@pytest.mark.parametrize("rule", [0.97, "bic"])
def test_a_search_speaks_of_its_result_only(table, rng, rule):
    X = np.concatenate([_holes(table, rng, 0.1), np.full((2, 8), np.nan)])
    with pytest.warns(UserWarning, match="2 of the 202 rows") as told:
        PPCA(rule).fit(X)
    assert len(told) == 1


def test_fewer_rows_than_columns(rng):
    X = rng.normal(size=(12, 30)) @ np.diag(np.linspace(3, 0.1, 30))
    ours, theirs = PPCA().fit(X), PCA(svd_solver="full").fit(X)
    assert ours.n_components_ == 10  # of rank 11
    assert _angle(ours.components_, theirs.components_[:10]) < 1e-8
    assert PPCA(0.8).fit(X).n_components_ == PCA(0.8, svd_solver="full").fit(X).n_components_


def test_as_many_axes_as_columns(table):
    ppca = PPCA(8).fit(table)
    S = np.cov(table.T, bias=True)
    np.testing.assert_allclose(ppca.get_covariance(), S, atol=2e-6 * np.trace(S) / 8)
    assert 0 < ppca.noise_variance_ <= 1.01e-6 * np.trace(S) / 8
    np.testing.assert_allclose(ppca.reconstruct(table, "least-squares"), table, rtol=1e-9)
    assert np.isfinite(ppca.score(table))


def test_frey_faces_need_203_axes(shared_data):
    with np.load(shared_data("frey_face.npz")) as file:
        name = max(file.files, key=lambda key: file[key].size)
        X = file[name].reshape(len(file[name]), -1).astype(float)
    assert X.shape == (1965, 560)
    ppca = PPCA(0.99).fit(X)
    assert ppca.n_components_ == 203
    assert ppca.explained_variance_ratio_[:-1].sum() < 0.99 <= ppca.explained_variance_ratio_.sum()
    assert PPCA(0.99, center=False).fit(X).n_components_ == 10
    assert PPCA(0.99, center=False).fit(X).explained_variance_ratio_[0] > 0.9


# ------------------------------------------------ degenerate tables


def test_rows_that_are_all_the_same():
    X = np.tile([1.0, 2.0, 3.0], (10, 1))
    with pytest.warns(DegenerateWarning, match="leave no noise"):
        ppca = PPCA(1).fit(X)
    np.testing.assert_allclose(ppca.mean_, [1, 2, 3])
    np.testing.assert_allclose(ppca.reconstruct(X), X)
    assert ppca.noise_variance_ > 0 and np.isfinite(ppca.score(X))
    np.testing.assert_allclose(ppca.loadings_, 0, atol=1e-12)
    with pytest.warns(DegenerateWarning, match="leave no noise"):
        assert PPCA().fit(X).n_components_ == 1
    for rule in (0.9, "bic", "mle"):
        with pytest.raises(ValueError, match=r"all rows are the same.*whole number"):
            PPCA(rule).fit(X)


def test_collinear_columns(rng):
    X = rng.normal(size=(60, 1)) * [1.0, 2.0, -3.0]
    with pytest.warns(DegenerateWarning, match="leave no noise"):
        ppca = PPCA(2).fit(X)
    np.testing.assert_allclose(ppca.reconstruct(X, "least-squares"), X, atol=1e-9)
    np.testing.assert_allclose(np.abs(ppca.components_[0]), np.array([1, 2, 3]) / np.sqrt(14))
    X[::7, 1] = np.nan
    with pytest.warns(DegenerateWarning, match="floor"):
        holed = PPCA(1).fit(X)
    assert holed.events_[0].kind == "floor"
    np.testing.assert_allclose(holed.impute(X)[::7, 1], 2 * X[::7, 0], atol=0.01)


# ------------------------------------------------ streams


@pytest.mark.parametrize(
    ("spec", "sizes"),
    [(3, [1, 1, 198]), (3, [7] * 28 + [4]), (0.9, [50] * 4), ("bic", [2, 198]), (None, [150, 50])],
)
def test_batches_of_any_size_give_the_fit(table, spec, sizes):
    whole, stream = PPCA(spec).fit(table), PPCA(spec)
    for batch in np.split(table, np.cumsum(sizes)[:-1]):
        stream.partial_fit(batch)
    assert stream.n_components_ == whole.n_components_
    np.testing.assert_allclose(stream.mean_, whole.mean_, rtol=1e-10)
    np.testing.assert_allclose(stream.get_covariance(), whole.get_covariance(), atol=1e-9)
    assert stream.bic() == pytest.approx(whole.bic(), rel=1e-9)
    assert stream.n_iter_ == len(sizes)


def test_batches_may_weigh_and_be_sparse_and_uncentred(table, rng):
    weight = rng.integers(0, 3, len(table))
    whole, stream = PPCA(2, center=False).fit(table, sample_weight=weight), PPCA(2, center=False)
    for rows in np.array_split(np.arange(200), 6):
        stream.partial_fit(sparse.csr_array(table[rows]), sample_weight=weight[rows])
    np.testing.assert_allclose(stream.get_covariance(), whole.get_covariance(), rtol=1e-9)


def test_a_stream_goes_on_with_holes(table, rng):
    """Moments cannot be kept any longer; what was learned from the complete batches stays."""
    X = np.concatenate([table] * 6)
    rng.shuffle(X)
    stream = PPCA(3)
    for batch in np.array_split(X[:600], 6):
        stream.partial_fit(batch)
    before = stream.get_covariance()
    for batch in np.array_split(_holes(X[600:], rng), 6):
        stream.partial_fit(batch)
    assert stream.n_iter_ == 12
    whole = PPCA(3).fit(X)
    assert not np.allclose(stream.get_covariance(), before, atol=1e-6)
    assert _angle(stream.components_, whole.components_) < 0.1
    assert stream.noise_variance_ == pytest.approx(whole.noise_variance_, rel=0.1)
    assert stream.score(X) > whole.score(X) - 0.05
    with pytest.raises(ValueError, match="not kept: give X"):
        stream.bic()


def test_a_stream_that_begins_with_holes(table, rng):
    X = np.concatenate([table] * 4)
    rng.shuffle(X)
    stream = PPCA(3, random_state=0)
    for batch in np.array_split(_holes(X, rng), 8):
        stream.partial_fit(batch)
    assert stream.solver_ == "em" and stream.n_iter_ == 8
    assert _angle(stream.components_, PPCA(3).fit(X).components_) < 0.1


@pytest.mark.parametrize("holes", [False, True])
def test_a_loaded_stream_goes_on(table, rng, tmp_path, holes):
    X = _holes(table, rng) if holes else table
    one, other = PPCA(2, random_state=0), PPCA(2, random_state=0)
    for batch in np.array_split(X[:100], 4):
        one.partial_fit(batch)
        other.partial_fit(batch)
    other.save(tmp_path / "s.mixfold")
    other = mixfold.load(tmp_path / "s.mixfold")
    for batch in np.array_split(X[100:], 4):
        one.partial_fit(batch)
        other.partial_fit(batch)
    np.testing.assert_allclose(other.get_covariance(), one.get_covariance(), rtol=1e-10)
    assert other.n_iter_ == one.n_iter_ == 8
    fresh = other.fit(table)  # a fit forgets the stream
    np.testing.assert_allclose(fresh.get_covariance(), PPCA(2).fit(table).get_covariance())


def test_a_stream_refuses_other_columns_and_sizes(table):
    stream = PPCA(2).partial_fit(table)
    with pytest.raises(ValueError, match=r"3 features.*8 features"):
        stream.partial_fit(table[:, :3])
    with pytest.raises(ValueError, match=r"all rows are the same.*whole number"):
        PPCA(0.9).partial_fit(table[:1])


# ------------------------------------------------ scikit-learn


def test_tables_come_back_as_tables(table):
    frame = pd.DataFrame(table, columns=list("abcdefgh"))
    ppca = PPCA(2).set_output(transform="pandas").fit(frame)
    Z = ppca.transform(frame)
    assert list(Z.columns) == list(ppca.get_feature_names_out()) == ["ppca0", "ppca1"]
    np.testing.assert_allclose(Z, PPCA(2).fit(table).transform(table), atol=1e-9)
    assert list(ppca.feature_names_in_) == list("abcdefgh")
    other = frame[list("hgfedcba")].assign(extra=1.0)
    np.testing.assert_array_equal(ppca.transform(other), Z)


def test_it_works_inside_scikit_learn(table):
    pipeline = make_pipeline(StandardScaler(with_std=False), PPCA())
    search = GridSearchCV(pipeline, {"ppca__n_components": [1, 2, 3, 5]}, cv=3).fit(table)
    assert search.best_params_ == {"ppca__n_components": 3}
    np.testing.assert_allclose(
        search.best_estimator_.fit_transform(table), search.best_estimator_.transform(table)
    )
    assert clone(PPCA(0.5, center=False)).get_params() == PPCA(0.5, center=False).get_params()


def test_a_fit_says_how_it_ended(table, rng):
    exact = PPCA(3).fit(table)
    assert exact.converged_ and exact.stop_reason_ == "converged" and exact.events_ == []
    assert exact.n_iter_ == 1 and exact.lower_bounds_ == [exact.lower_bound_]
    em = PPCA(3).fit(_holes(table, rng))
    assert em.converged_ and len(em.lower_bounds_) == em.n_iter_ > 1
    assert (np.diff(em.lower_bounds_) > -1e-9).all()
    with pytest.warns(UserWarning, match="did not converge"):
        assert not PPCA(3, max_iter=1).fit(_holes(table, rng)).converged_
