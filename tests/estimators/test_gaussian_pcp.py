"""GaussianPCP from outside: PPCA with groups, whose number may be learned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score as rand
from sklearn.metrics import normalized_mutual_info_score as information
from sklearn.mixture import GaussianMixture

import mixfold
from mixfold import PPCA, DegenerateWarning, GaussianPCP
from mixfold.testing import laws

D = 8


@pytest.fixture
def groups(rng) -> tuple[np.ndarray, np.ndarray]:
    """Three groups on a plane behind eight columns."""
    y = np.arange(240) % 3
    centres = np.array([[0.0, 6.0], [5.0, -3.0], [-5.0, -3.0]])
    plane = np.linalg.qr(rng.normal(size=(D, 2)))[0]
    Z = centres[y] + rng.normal(size=(240, 2)) * [1.0, 0.6]
    return Z @ plane.T + 0.4 * rng.normal(size=(240, D)) + np.arange(D), y


def _angle(A: np.ndarray, B: np.ndarray) -> float:
    """Sine of the largest angle between the spans of two sets of orthonormal rows."""
    return float(np.linalg.norm(A - (A @ B.T) @ B, 2))


# ------------------------------------------------ against other models


@pytest.mark.parametrize("update", ["procrustes", "regress"])
def test_one_cluster_is_ppca(groups, update):
    X, _ = groups
    ppca = PPCA(2).fit(X)
    pcp = GaussianPCP(1, 2, inference="em", update=update, tol=1e-10).fit(X)
    assert pcp.lower_bound_ == pytest.approx(ppca.lower_bound_, abs=1e-9)
    assert pcp.noise_variance_ == pytest.approx(ppca.noise_variance_, rel=1e-6)
    for name in ("mean_", "components_", "loadings_"):
        np.testing.assert_allclose(getattr(pcp, name), getattr(ppca, name), atol=1e-5)
    np.testing.assert_allclose(pcp.transform(X), ppca.transform(X), atol=1e-5)
    np.testing.assert_allclose(pcp.reconstruct(X), ppca.reconstruct(X), atol=1e-5)
    np.testing.assert_allclose(pcp.score_samples(X), ppca.score_samples(X), atol=1e-5)
    np.testing.assert_allclose(pcp.explained_variance_ratio_, ppca.explained_variance_ratio_)
    assert pcp.bic() == pytest.approx(ppca.bic(), abs=1e-5)


@pytest.mark.parametrize("inference", ["vb", "em"])
def test_published_numbers_are_the_density(groups, inference):
    X, _ = groups
    pcp = GaussianPCP(3, 2, inference=inference, random_state=0).fit(X)
    W, noise = pcp.loadings_, pcp.noise_variance_
    logs = [
        np.log(w) + multivariate_normal(m, W @ S @ W.T + noise * np.eye(D)).logpdf(X)
        for w, m, S in zip(pcp.weights_, pcp.means_, pcp.covariances_, strict=True)
    ]
    np.testing.assert_allclose(pcp.score_samples(X), logsumexp(logs, axis=0), rtol=1e-8)
    assert pcp.score(X) == pytest.approx(logsumexp(logs, axis=0).mean(), rel=1e-9)
    np.testing.assert_allclose(pcp.latent_means_ @ W.T + pcp.mean_, pcp.means_, atol=1e-9)
    np.testing.assert_allclose(pcp.components_ @ pcp.components_.T, np.eye(2), atol=1e-10)
    lengths = np.linalg.norm(W, axis=0)
    np.testing.assert_allclose(pcp.components_.T * lengths, W, atol=1e-9)
    assert lengths[0] > lengths[1] and (np.diff(pcp.weights_) <= 0).all()
    n_free = 2 + 3 * 2 + 3 * 3 + D * 2 + D + 1 - 4 - 2
    assert pcp.bic(X) == pytest.approx(-480 * pcp.score(X) + n_free * np.log(240), rel=1e-10)
    assert pcp.icl(X) >= pcp.bic(X)
    if inference == "em":
        assert pcp.lower_bound_ == pytest.approx(pcp.score(X), rel=1e-9)
        assert pcp.bic() == pytest.approx(pcp.bic(X), rel=1e-9)
    else:
        assert pcp.lower_bound_ < pcp.score(X)
        with pytest.raises(ValueError, match="give X"):
            pcp.bic()


def test_latents_have_mean_zero_and_rows_come_back(groups):
    X, y = groups
    pcp = GaussianPCP(3, 2, inference="em", random_state=0).fit(X)
    Z = pcp.transform(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(pcp.inverse_transform(Z), pcp.reconstruct(X), atol=1e-9)
    assert np.sqrt(np.mean((pcp.reconstruct(X) - X) ** 2)) < 0.4
    assert rand(y, pcp.predict(X)) > 0.98
    np.testing.assert_allclose(pcp.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(pcp.predict_log_proba(X)), pcp.predict_proba(X))
    assert pcp.get_feature_names_out().tolist() == ["gaussianpcp0", "gaussianpcp1"]


# ------------------------------------------------ what it is for


@pytest.mark.parametrize("inference", ["vb", "em"])
def test_groups_hidden_behind_a_long_axis_and_noise_are_found(rng, inference):
    """Groups lie across an axis along which all rows vary more, in forty noisy columns."""
    y = np.arange(300) % 3
    plane = np.linalg.qr(rng.normal(size=(40, 2)))[0]
    Z = np.column_stack([4 * rng.normal(size=300), 2.2 * (y - 1) + 0.2 * rng.normal(size=300)])
    X = Z @ plane.T + 0.5 * rng.normal(size=(300, 40))
    theirs = KMeans(3, n_init=10, random_state=0).fit_predict(PCA(2).fit_transform(X))
    ours = GaussianPCP(3, 2, inference=inference, tol=1e-3, random_state=0).fit(X)
    assert rand(y, theirs) < 0.2
    assert rand(y, ours.predict(X)) > 0.85
    assert ours.noise_variance_ == pytest.approx(0.25, rel=0.05)


@pytest.mark.parametrize("n_clusters", [3, 6, 12])
def test_the_number_of_clusters_is_learned(groups, n_clusters):
    X, y = groups
    pcp = GaussianPCP(n_clusters, 2, random_state=0).fit(X)
    assert pcp.effective_components_ == pcp.active_.sum() == 3
    assert rand(y, pcp.predict(X)) > 0.98
    assert pcp.counts_.sum() == pytest.approx(240)
    assert pcp.evidence_bound_ == pytest.approx(240 * pcp.lower_bound_)
    np.testing.assert_array_less(0, np.diff(pcp.lower_bounds_) + 1e-9)
    one = GaussianPCP(1, 2, random_state=0).fit(X)
    assert one.evidence_bound_ < pcp.evidence_bound_ - 50


@pytest.mark.slow
def test_digits_are_told_apart_at_least_as_well_as_on_principal_axes(shared_data):
    with np.load(shared_data("optdigits.npz")) as data:
        X, y = data["X"][-1797:].astype(float), data["y"][-1797:]
    scores = PCA(10).fit_transform(X)
    theirs = [GaussianMixture(10, random_state=s).fit_predict(scores) for s in range(3)]
    # as far as means of three starts go
    fits = [GaussianPCP(10, 10, inference="em", tol=1e-3, random_state=s) for s in range(3)]
    ours = [pcp.fit_predict(X) for pcp in fits]
    for measure, reference in ((rand, 0.734), (information, 0.812)):
        mean = np.mean([measure(y, labels) for labels in ours])
        assert mean > np.mean([measure(y, labels) for labels in theirs])
        assert mean == pytest.approx(reference, abs=0.03)
    assert 0.05 < _angle(fits[0].components_, PCA(10).fit(X).components_) < 0.5


# ------------------------------------------------ tables as they are


@pytest.mark.parametrize("inference", ["vb", "em"])
def test_weights_are_repetitions(groups, rng, inference):
    X, _ = groups
    weight = rng.integers(0, 3, len(X))
    settings = {"inference": inference, "acceleration": None, "max_iter": 60, "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        heavy = GaussianPCP(3, 2, **settings, tol=0).fit(X, sample_weight=weight)
        repeated = GaussianPCP(3, 2, **settings, tol=0).fit(np.repeat(X, weight, axis=0))
    for name in ("weights_", "means_", "loadings_", "covariances_", "noise_variance_"):
        np.testing.assert_allclose(
            getattr(heavy, name), getattr(repeated, name), rtol=1e-6, atol=1e-7
        )


@pytest.mark.parametrize("inference", ["vb", "em"])
def test_sparse_is_dense(rng, inference):
    S = sparse.random_array((150, 20), density=0.2, rng=rng, format="csr")
    S = sparse.csr_array(S.multiply(1 + 4 * (np.arange(150) % 2)[:, None]))
    settings = {"inference": inference, "acceleration": None, "max_iter": 20, "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        thin = GaussianPCP(2, 2, **settings, tol=0).fit(S)
        full = GaussianPCP(2, 2, **settings, tol=0).fit(S.toarray())
    for name in ("weights_", "means_", "loadings_", "noise_variance_"):
        np.testing.assert_allclose(getattr(thin, name), getattr(full, name), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(thin.transform(S), full.transform(S.toarray()), atol=1e-6)


def test_sparse_rows_are_never_made_dense(rng, monkeypatch):
    S = sparse.random_array((120, 40), density=0.1, rng=rng, format="csr")

    whole = sparse.csr_array.toarray

    def refuse(X: sparse.csr_array, *how: object, **more: object) -> np.ndarray:
        assert X.shape[1] < 40, "made dense"
        return whole(X, *how, **more)

    # the columns are many: the covariance of the start would be dense by right, products are not
    monkeypatch.setattr("mixfold.models.factors.spectral.choose_solver", lambda *_: "randomized")
    for name in ("toarray", "todense"):
        monkeypatch.setattr(sparse.csr_array, name, refuse)
    pcp = GaussianPCP(2, 2, tol=1e-2, random_state=0).fit(S)
    assert pcp.predict(S).shape == (120,)
    assert pcp.transform(S).shape == (120, 2)


def test_float32_is_close_to_float64(groups):
    X, _ = groups
    double = GaussianPCP(3, 2, random_state=0).fit(X)
    single = GaussianPCP(3, 2, random_state=0).fit(X.astype(np.float32))
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert single.means_.dtype == np.float32
    np.testing.assert_allclose(single.means_, double.means_, atol=1e-2)
    assert single.lower_bound_ == pytest.approx(double.lower_bound_, rel=1e-5)


def test_known_clusters_keep_their_numbers(groups):
    X, y = groups
    labels = np.where(np.arange(240) < 30, y, -1)
    pcp = GaussianPCP(5, 2, random_state=0).fit(X, component_labels=labels)
    assert (pcp.predict(X) == y).mean() > 0.98
    with pytest.raises(ValueError, match="component_labels must lie between"):
        GaussianPCP(2, 2).fit(X, component_labels=labels)


# ------------------------------------------------ missing entries


@pytest.fixture
def holes(groups, rng) -> np.ndarray:
    """The groups with a fifth of the entries missing; every row shows one."""
    X = groups[0].copy()
    hidden = rng.random(X.shape) < 0.2
    hidden[hidden.all(axis=1), 0] = False
    X[hidden] = np.nan
    return X


@pytest.mark.parametrize("update", ["procrustes", "regress"])
def test_one_cluster_is_ppca_also_where_entries_are_missing(holes, update):
    ppca = PPCA(2, tol=1e-11).fit(holes)
    pcp = GaussianPCP(1, 2, inference="em", update=update, tol=1e-11, max_iter=5000).fit(holes)
    assert pcp.lower_bound_ == pytest.approx(ppca.lower_bound_, abs=1e-8)
    assert pcp.noise_variance_ == pytest.approx(ppca.noise_variance_, rel=1e-4)
    for name in ("mean_", "components_"):
        np.testing.assert_allclose(getattr(pcp, name), getattr(ppca, name), atol=1e-3)
    np.testing.assert_allclose(pcp.impute(holes), ppca.impute(holes), atol=1e-2)


@pytest.mark.parametrize("inference", ["vb", "em"])
def test_published_numbers_are_the_density_of_the_seen_entries(holes, inference):
    pcp = GaussianPCP(3, 2, inference=inference, random_state=0).fit(holes)
    W, noise = pcp.loadings_, pcp.noise_variance_
    wanted = np.empty(len(holes))
    for n, x in enumerate(holes):
        seen = np.flatnonzero(~np.isnan(x))
        logs = [
            np.log(w)
            + multivariate_normal(
                m[seen], (W @ S @ W.T)[np.ix_(seen, seen)] + noise * np.eye(len(seen))
            ).logpdf(x[seen])
            for w, m, S in zip(pcp.weights_, pcp.means_, pcp.covariances_, strict=True)
        ]
        wanted[n] = logsumexp(logs)
    np.testing.assert_allclose(pcp.score_samples(holes), wanted, rtol=1e-8)
    if inference == "em":
        assert pcp.lower_bound_ == pytest.approx(wanted.mean(), rel=1e-9)
    np.testing.assert_array_less(0, np.diff(pcp.lower_bounds_) + 1e-9)


@pytest.mark.parametrize("inference", ["vb", "em"])
def test_groups_are_found_and_entries_filled_where_some_are_missing(groups, holes, inference):
    X, y = groups
    n_clusters = 6 if inference == "vb" else 3
    pcp = GaussianPCP(n_clusters, 2, inference=inference, random_state=0).fit(holes)
    assert pcp.effective_components_ == 3
    assert rand(y, pcp.predict(holes)) > 0.95
    assert pcp.noise_variance_ == pytest.approx(0.16, rel=0.15)
    filled, hidden = pcp.impute(holes), np.isnan(holes)
    np.testing.assert_array_equal(filled[~hidden], holes[~hidden])
    error = np.sqrt(np.mean((filled - X)[hidden] ** 2))
    column = np.sqrt(np.mean((X - np.nanmean(holes, axis=0))[hidden] ** 2))
    assert error < 0.5 < 0.4 * column
    drawn = pcp.impute(holes, method="draw", random_state=0)
    assert 0.3 < np.std((drawn - filled)[hidden]) < 0.7
    np.testing.assert_allclose(pcp.inverse_transform(pcp.transform(holes)), pcp.reconstruct(holes))
    whole = GaussianPCP(n_clusters, 2, inference=inference, random_state=0).fit(X)
    assert _angle(pcp.components_, whole.components_) < 0.1


def test_weights_labels_and_sparse_rows_go_with_missing_entries(groups, holes, rng):
    _, y = groups
    weight = rng.integers(0, 3, len(holes))
    settings = {"acceleration": None, "max_iter": 40, "tol": 0, "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        heavy = GaussianPCP(3, 2, **settings).fit(holes, sample_weight=weight)
        repeated = GaussianPCP(3, 2, **settings).fit(np.repeat(holes, weight, axis=0))
        thin = GaussianPCP(3, 2, **settings).fit(sparse.csr_array(holes), sample_weight=weight)
    for name in ("weights_", "means_", "noise_variance_"):
        for other in (repeated, thin):
            np.testing.assert_allclose(
                getattr(heavy, name), getattr(other, name), rtol=1e-5, atol=1e-6
            )
    np.testing.assert_allclose(
        thin.predict_proba(sparse.csr_array(holes)), heavy.predict_proba(holes), atol=1e-5
    )
    labels = np.where(np.arange(240) < 30, y, -1)
    known = GaussianPCP(3, 2, random_state=0).fit(holes, component_labels=labels)
    assert (known.predict(holes) == y).mean() > 0.95


def test_new_rows_may_lack_entries_and_rows_without_any_say_nothing(groups):
    X, _ = groups
    pcp = GaussianPCP(3, 2, random_state=0).fit(X)
    rows = X[:4].copy()
    rows[0, 3] = np.nan
    rows[1] = np.nan
    np.testing.assert_allclose(pcp.predict_proba(rows)[1], pcp.predict_proba(rows * np.nan)[1])
    np.testing.assert_allclose(pcp.score_samples(rows)[1], 0, atol=1e-9)
    np.testing.assert_array_equal(pcp.transform(rows)[2:], pcp.transform(X[:4])[2:])
    np.testing.assert_allclose(pcp.impute(rows)[1], pcp.weights_ @ pcp.means_, rtol=0.05)
    X = X.copy()
    X[7] = np.nan
    with pytest.warns(UserWarning, match="1 of the 240 rows have no observed entry"):
        pcp = GaussianPCP(3, 2, random_state=0).fit(X)
    assert pcp.counts_.sum() == pytest.approx(239)


def test_a_column_without_entries_is_refused(groups):
    X = groups[0].copy()
    X[:, 3] = np.nan
    with pytest.raises(ValueError, match=r"without any observed entry: 'c3'"):
        GaussianPCP(3, 2).fit(pd.DataFrame(X, columns=[f"c{j}" for j in range(D)]))


# ------------------------------------------------ streams


def _batches(rng, n_batches: int, size: int = 200, lacking: float = 0.0):
    """Rows of three groups on a plane, a batch at a time, and all of them."""
    centres = np.array([[0.0, 6.0], [5.0, -3.0], [-5.0, -3.0]])
    plane = np.linalg.qr(rng.normal(size=(D, 2)))[0]
    y = rng.integers(0, 3, n_batches * size)
    X = (centres[y] + rng.normal(size=(len(y), 2))) @ plane.T + 0.4 * rng.normal(size=(len(y), D))
    X[rng.random(X.shape) < lacking] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 0.0
    return np.split(X + np.arange(D), n_batches), X + np.arange(D), y


@pytest.mark.parametrize("lacking", [0.0, 0.2])
@pytest.mark.parametrize("inference", ["vb", "em"])
def test_a_stream_comes_close_to_a_fit_of_all_rows(rng, inference, lacking):
    batches, X, y = _batches(rng, 15, lacking=lacking)
    n_clusters = 5 if inference == "vb" else 3
    settings = {"inference": inference, "random_state": 0}
    stream = GaussianPCP(n_clusters, 2, **settings)
    for batch in batches:
        stream.partial_fit(batch)
    whole = GaussianPCP(n_clusters, 2, **settings).fit(X)
    assert stream.score(X) == pytest.approx(whole.score(X), abs=0.02)
    assert rand(y, stream.predict(X)) > 0.9
    assert _angle(stream.components_, whole.components_) < 0.05
    assert stream.noise_variance_ == pytest.approx(whole.noise_variance_, rel=0.05)
    assert stream.counts_.sum() == pytest.approx(len(X))
    assert stream.n_iter_ == 15
    assert not hasattr(stream, "evidence_bound_")
    with pytest.raises(ValueError, match="give X"):
        stream.bic()


def test_a_stream_goes_on_after_its_file(rng, tmp_path):
    batches, X, _ = _batches(rng, 4)
    stream = GaussianPCP(3, 2, random_state=0).partial_fit(batches[0]).partial_fit(batches[1])
    stream.save(tmp_path / "stream.mixfold")
    again = mixfold.load(tmp_path / "stream.mixfold")
    lacking = batches[2].copy()
    lacking[::3, 1] = np.nan  # the first that lacks entries
    for one in (stream, again):
        one.partial_fit(lacking).partial_fit(batches[3])
    np.testing.assert_array_equal(stream.predict_proba(X), again.predict_proba(X))
    assert stream.counts_.sum() == pytest.approx(800)


def test_a_stream_does_not_change_its_shape(rng):
    batches, X, _ = _batches(rng, 2)
    stream = GaussianPCP(3, 2, random_state=0).partial_fit(batches[0])
    for name, value in {"n_clusters": 4, "n_components": 1, "inference": "em"}.items():
        other = GaussianPCP(3, 2, random_state=0).partial_fit(batches[0])
        with pytest.raises(ValueError, match="changed since the last batch"):
            other.set_params(**{name: value}).partial_fit(batches[1])
    with pytest.raises(ValueError, match="expecting 8 features"):
        stream.partial_fit(X[:, :3])
    # a fit begins anew
    assert stream.fit(X).counts_.sum() == pytest.approx(len(X))


def test_what_a_stream_is_fitted_to_may_not_matter_in_cuts(rng):
    """A batch with labels and weights: rows of weight zero are absent."""
    batches, _, y = _batches(rng, 2)
    labels, weight = np.split(y, 2), np.ones(200)
    weight[:50] = 0
    one = GaussianPCP(3, 2, random_state=0).partial_fit(batches[0], component_labels=labels[0])
    other = GaussianPCP(3, 2, random_state=0).partial_fit(batches[0], component_labels=labels[0])
    one.partial_fit(batches[1], sample_weight=weight, component_labels=labels[1])
    other.partial_fit(batches[1][50:], component_labels=labels[1][50:])
    np.testing.assert_allclose(one.means_, other.means_, rtol=1e-9)
    assert (one.predict(batches[1]) == labels[1]).mean() > 0.95


# ------------------------------------------------ where rows are


def test_dask_rows_are_rows(holes):
    import dask.array as da

    settings = {"n_clusters": 3, "n_components": 2, "random_state": 0}
    one = GaussianPCP(**settings).fit(holes)
    other = GaussianPCP(**settings).fit(da.from_array(holes, chunks=(70, D)))
    np.testing.assert_allclose(one.means_, other.means_, rtol=1e-6)
    assert one.lower_bound_ == pytest.approx(other.lower_bound_, rel=1e-9)


def test_an_interrupted_fit_goes_on_from_its_checkpoint(holes, tmp_path):
    settings = {"inference": "em", "tol": 1e-9, "random_state": 0}
    whole = GaussianPCP(3, 2, **settings).fit(holes)
    file = tmp_path / "half.checkpoint"
    with pytest.warns(ConvergenceWarning):
        GaussianPCP(3, 2, **settings, checkpoint=file, time_budget=1e-3).fit(holes)
    again = GaussianPCP(3, 2, **settings, checkpoint=file).fit(holes)
    np.testing.assert_allclose(again.lower_bound_, whole.lower_bound_, rtol=1e-10)


def test_a_file_is_a_table(groups, tmp_path):
    X, _ = groups
    np.save(tmp_path / "x.npy", X)
    one = GaussianPCP(3, 2, random_state=0).fit(tmp_path / "x.npy")
    other = GaussianPCP(3, 2, random_state=0).fit(X)
    np.testing.assert_allclose(one.means_, other.means_, rtol=1e-8)


def test_the_command_line_fits_and_applies_it(groups, tmp_path, capsys):
    table = tmp_path / "x.csv"
    pd.DataFrame(groups[0], columns=[f"c{j}" for j in range(D)]).to_csv(table, index=False)
    for inference in ("vb", "em"):
        model = tmp_path / f"{inference}.mixfold"
        words = (
            f"fit {table} --model gaussian-pcp --components 4 --factors 2 --seed 0 --out {model}"
        )
        assert _mixfold([*words.split(), "--set", f"inference={inference}"]) == 0
        assert "components in use" in capsys.readouterr().out
        assert mixfold.load(model).n_components == 2


def _mixfold(words: list[str]) -> int:
    from mixfold.cli import main

    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(ended.value.code or 0)


# ------------------------------------------------ draws, files, settings


@pytest.mark.parametrize("inference", ["vb", "em"])
def test_draws_have_the_density(groups, inference):
    X, _ = groups
    pcp = GaussianPCP(3, 2, inference=inference, random_state=0).fit(X)

    def draw(n: int, rng: np.random.Generator) -> np.ndarray:
        return pcp.sample(n, random_state=rng)[0]

    laws.sampler_slopes(draw, pcp.score_samples, n=4000)
    drawn, labels = pcp.sample(4000, random_state=1)
    means = np.stack([drawn[labels == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(means, pcp.means_, atol=0.25)
    share = np.bincount(labels, minlength=3) / 4000
    np.testing.assert_allclose(share, pcp.weights_, atol=0.05)


@pytest.mark.parametrize("inference", ["vb", "em"])
def test_a_fit_survives_its_file(groups, tmp_path, inference):
    X, _ = groups
    pcp = GaussianPCP(3, 2, inference=inference, random_state=0).fit(X)
    pcp.save(tmp_path / "pcp.mixfold")
    again = mixfold.load(tmp_path / "pcp.mixfold")
    for ask in ("predict_proba", "transform", "score_samples", "reconstruct"):
        np.testing.assert_array_equal(getattr(again, ask)(X), getattr(pcp, ask)(X))
    assert again.effective_components_ == pcp.effective_components_
    assert again.lower_bound_ == pcp.lower_bound_


def test_a_warm_start_goes_on(groups):
    X, _ = groups
    pcp = GaussianPCP(3, 2, warm_start=True, random_state=0).fit(X)
    before = pcp.lower_bound_
    pcp.fit(X)
    assert pcp.n_iter_ < 20
    assert pcp.lower_bound_ >= before - 1e-9


def test_a_warm_start_goes_to_other_rows_in_other_units(groups):
    X, _ = groups
    pcp = GaussianPCP(3, 2, warm_start=True, random_state=0).fit(X[:120] * 10 + 3)
    lacking = X[120:] * 10 + 3
    lacking[::4, 2] = np.nan
    pcp.fit(lacking)
    fresh = GaussianPCP(3, 2, random_state=0).fit(lacking)
    assert pcp.lower_bound_ == pytest.approx(fresh.lower_bound_, abs=1e-3)
    # without a step the density stays what it was, in the frame of the other rows
    kept = pcp.score_samples(X)
    pcp.set_params(max_iter=0).fit(X[:60] * 2)
    np.testing.assert_allclose(pcp.score_samples(X), kept, rtol=1e-6)


@pytest.mark.parametrize("inference", ["vb", "em"])
def test_files_of_earlier_versions_answer_as_they_did(inference):
    """Clusters stood inside of the plane; the numbers beside them were written by that version."""
    folder = Path(__file__).parent / "earlier_files"
    pcp = mixfold.load(folder / f"gaussian-pcp-{inference}.file")
    with np.load(folder / f"gaussian-pcp-{inference}.npz") as wanted:
        X = wanted["X"]
        for name in wanted.files:
            if name != "X":
                found = getattr(pcp, name)
                found = found(X) if callable(found) else found
                np.testing.assert_allclose(found, wanted[name], rtol=1e-10, atol=1e-12)
    assert pcp.sample(3, random_state=0)[0].shape == (3, 5)
    assert pcp.set_params(warm_start=True).fit(X + 0.1).n_iter_ > 0


def test_axes_do_not_depend_on_the_start(groups):
    X, _ = groups
    one, other = (
        GaussianPCP(3, 2, init_params="k-means++", tol=1e-11, random_state=s).fit(X) for s in (0, 1)
    )
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-6)
    np.testing.assert_allclose(one.means_, other.means_, atol=1e-5)


def test_more_clusters_than_rows_need_priors(rng):
    X = rng.normal(size=(6, 4))
    assert GaussianPCP(20, 1, random_state=0).fit(X).weights_.shape == (20,)
    with pytest.raises(ValueError, match="n_samples >= n_clusters"):
        GaussianPCP(20, 1, inference="em").fit(X)


def test_rows_on_a_plane_reach_the_floor(rng):
    X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 5))
    with pytest.warns(DegenerateWarning, match="noise reached the floor"):
        pcp = GaussianPCP(2, 2, inference="em", random_state=0).fit(X)
    assert np.isfinite(pcp.score(X))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"update": "regress"}, "update='procrustes'"),
        ({"n_components": 9}, "n_features = 8"),
        ({"degrees_of_freedom_prior": 0.5}, "must exceed n_components - 1 = 1, got 0.5"),
        ({"alpha": 0}, "'alpha' parameter"),
        ({"inference": "gibbs"}, "one of 'vb', 'em'"),
    ],
)
def test_settings_that_cannot_be_are_refused(groups, settings, words):
    with pytest.raises(ValueError, match=words):
        GaussianPCP(3, **settings).fit(groups[0])


def test_latents_of_another_size_are_refused(groups):
    pcp = GaussianPCP(3, 2, random_state=0).fit(groups[0])
    with pytest.raises(ValueError, match="one column per latent, 2; got 3"):
        pcp.inverse_transform(np.zeros((1, 3)))
