"""Kernel PCA: all solvers against dense decompositions, scikit-learn and explicit features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import subspace_angles
from scipy.stats import multivariate_normal
from sklearn.decomposition import KernelPCA as ScikitKernelPCA
from sklearn.metrics.pairwise import laplacian_kernel, pairwise_kernels

import mixfold
from mixfold import DegenerateWarning, KernelPCA
from mixfold.contracts import Array
from mixfold.estimators.shell import kernel_features

KERNELS: dict[str, dict[str, Any]] = {
    "rbf": {"gamma": 0.3},
    "poly": {"gamma": 0.5, "degree": 3, "coef0": 1.0},
    "laplacian": {"gamma": 0.3},
    "cosine": {},
    "linear": {},
}
kernels = pytest.mark.parametrize("kernel", KERNELS)
kinds = pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])


@pytest.fixture
def rows(rng: np.random.Generator) -> Array:
    """Rows in three clumps, of columns of different variance, some entries zero."""
    X = rng.normal(size=(450, 6)) * [3.0, 2.0, 1.5, 1.0, 0.7, 0.5]
    X[:150, 0] += 6
    X[150:300, 1] -= 5
    X[rng.random(X.shape) < 0.2] = 0.0
    return X


def products(A: Array, B: Array, kernel: str) -> Array:
    if kernel == "laplacian":
        return np.asarray(laplacian_kernel(A, B, **KERNELS[kernel]))
    return np.asarray(pairwise_kernels(A, B, metric=kernel, **KERNELS[kernel]))


def dense(X: Array, kernel: str, weight: Array | None = None) -> tuple[Array, Array]:
    """Eigenpairs of the centred kernel matrix, in decreasing order."""
    n = len(X)
    H = np.eye(n) - np.full((n, n), 1 / n)
    values, vectors = np.linalg.eigh(H @ products(X, X, kernel) @ H)
    return values[::-1], vectors[:, ::-1]


def model(kernel: str, d: int = 3, **how: Any) -> KernelPCA:
    return KernelPCA(
        d, kernel=kernel, **{"tol": 1e-10, "random_state": 0, **KERNELS[kernel], **how}
    )


# ------------------------------------------------ solvers


@kernels
@kinds
@pytest.mark.parametrize("solver", ["krylov", "chebyshev", "dense", "em"])
def test_solvers_agree_with_a_dense_decomposition(
    solver: str, kernel: str, kind: Any, rows: Array
) -> None:
    how = {"max_iter": 3000} if solver == "em" else {}
    fitted = model(kernel, solver=solver, **how).fit(kind(rows))
    values, vectors = dense(rows, kernel)
    assert fitted.converged_ and fitted.solver_ == solver and fitted.stop_reason_ == "converged"
    np.testing.assert_allclose(fitted.eigenvalues_, values[:3], rtol=1e-8)
    assert np.sin(subspace_angles(fitted.eigenvectors_, vectors[:, :3])[0]) < 1e-6
    np.testing.assert_allclose(
        fitted.explained_variance_ratio_.sum(), values[:3].sum() / values.sum()
    )
    np.testing.assert_allclose(fitted.explained_variance_, values[:3] / len(rows))


@kernels
@kinds
def test_batches_of_any_size_agree_with_a_dense_decomposition(
    kernel: str, kind: Any, rows: Array
) -> None:
    values, vectors = dense(rows, kernel)
    whole = model(kernel, solver="krylov").fit(kind(rows))
    assert whole.n_passes_ < 40
    for cuts in ([200], [1, 2, 3, 130, 131, 440]):
        stream = model(kernel, solver="krylov")
        for batch in np.split(rows, cuts):
            stream.partial_fit(kind(batch))
        assert stream.converged_ and len(stream.eigenvectors_) == len(rows)
        np.testing.assert_allclose(stream.eigenvalues_, values[:3], rtol=1e-8)
        assert np.sin(subspace_angles(stream.eigenvectors_, vectors[:, :3])[0]) < 1e-6
        np.testing.assert_allclose(stream.transform(rows[:9]), whole.transform(rows[:9]), atol=1e-7)


@kernels
@pytest.mark.parametrize("solver", ["auto", "krylov"])
def test_scikit_learn_projects_the_same(
    kernel: str, solver: str, rows: Array, rng: np.random.Generator
) -> None:
    new = rng.normal(size=(40, 6))
    theirs = ScikitKernelPCA(4, kernel="precomputed").fit(products(rows, rows, kernel))
    ours = model(kernel, 4, solver=solver).fit(rows)
    Z = ours.transform(new)
    expected = theirs.transform(products(new, rows, kernel))
    expected *= np.sign((Z * expected).sum(axis=0))  # neither knows the sign
    np.testing.assert_allclose(Z, expected, atol=1e-7 * np.abs(expected).max())
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)


@kernels
@kinds
@pytest.mark.parametrize("solver", ["auto", "krylov"])
def test_rows_of_the_fit_are_projected_like_others(
    kernel: str, solver: str, kind: Any, rows: Array
) -> None:
    fitted = model(kernel, solver=solver)
    Z = fitted.fit_transform(kind(rows))
    scale = np.abs(Z).max()
    np.testing.assert_allclose(fitted.transform(kind(rows)), Z, atol=1e-8 * scale)
    one_by_one = np.concatenate([fitted.transform(kind(rows[i : i + 1])) for i in range(5)])
    np.testing.assert_allclose(one_by_one, Z[:5], atol=1e-8 * scale)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-8 * scale)
    np.testing.assert_allclose(Z.T @ Z, np.diag(fitted.eigenvalues_), atol=1e-7 * scale**2)


def test_signs_do_not_depend_on_the_start(rows: Array) -> None:
    for seed in range(3):
        Z = model("rbf", solver="krylov", random_state=seed).fit_transform(rows)
        assert np.all(Z[np.abs(Z).argmax(axis=0), range(3)] > 0)


@pytest.mark.parametrize("executor", [{"n_jobs": 1}, {"n_jobs": 3}])
def test_threads_do_not_matter(executor: dict[str, Any], rng: np.random.Generator) -> None:
    X = rng.normal(size=(2500, 3))
    plain = KernelPCA(3, random_state=0, n_jobs=2).fit(X)
    other = KernelPCA(3, random_state=0, **executor).fit(X)
    np.testing.assert_array_equal(plain.transform(X[:50]), other.transform(X[:50]))


@pytest.mark.parametrize("cache_size", [0, 3, 1000])
def test_tiles_that_are_not_kept_change_nothing(
    cache_size: float, rng: np.random.Generator
) -> None:
    X = rng.normal(size=(2500, 3))
    fitted = KernelPCA(3, random_state=0, cache_size=cache_size, tol=1e-9).fit(X)
    reference = KernelPCA(3, random_state=0, tol=1e-9).fit(X)
    np.testing.assert_allclose(fitted.eigenvalues_, reference.eigenvalues_, rtol=1e-11)


# ------------------------------------------------ coordinates


@kinds
def test_primal_equals_dual_for_the_linear_kernel(kind: Any, rows: Array) -> None:
    primal = model("linear").fit(kind(rows))
    dual = model("linear", solver="krylov").fit(kind(rows))
    assert primal.solver_ == "primal" and not hasattr(primal, "eigenvectors_")
    np.testing.assert_allclose(primal.eigenvalues_, dual.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(primal.noise_variance_, dual.noise_variance_, rtol=1e-9)
    Z, other = primal.transform(kind(rows)), dual.transform(kind(rows))
    np.testing.assert_allclose(Z, other * np.sign((Z * other).sum(axis=0)), atol=1e-7)
    densities = primal.score_samples(kind(rows)), dual.score_samples(kind(rows))
    np.testing.assert_allclose(*densities, rtol=1e-9)
    np.testing.assert_allclose(
        primal.inverse_transform(Z), dual.inverse_transform(other), atol=1e-7
    )


def monomials(X: Array) -> Array:
    """Features whose products are (0.5 a'b + 1)^2."""
    n, D = X.shape
    squares = [
        X[:, i] * X[:, j] * (1 if i == j else 2**0.5) for i in range(D) for j in range(i + 1)
    ]
    return np.column_stack([np.ones(n), X, 0.5 * np.array(squares).T])


def test_explicit_features_of_the_polynomial_kernel(rows: Array) -> None:
    how: dict[str, Any] = {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0, "tol": 1e-10}
    by_kernel = KernelPCA(4, **how).fit(rows)
    by_features = KernelPCA(4, kernel="linear").fit(monomials(rows))
    np.testing.assert_allclose(by_kernel.eigenvalues_, by_features.eigenvalues_, rtol=1e-9)
    Z, other = by_kernel.transform(rows), by_features.transform(monomials(rows))
    np.testing.assert_allclose(Z, other * np.sign((Z * other).sum(axis=0)), atol=1e-7)
    np.testing.assert_allclose(by_kernel.noise_variance_, by_features.noise_variance_, rtol=1e-9)


@pytest.mark.parametrize("noise_variance", [None, 0.3, 12.0])
@pytest.mark.parametrize("solver", ["krylov", "primal"])
@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
def test_log_density_is_that_of_a_gaussian_in_explicit_features(
    solver: str, noise_variance: float | None, rows: Array, rng: np.random.Generator
) -> None:
    """12.0 is more than the variance of some of the axes."""
    d, new = 5, rng.normal(size=(20, 6))
    landmarks = len(rows) if solver == "primal" else None
    fitted = KernelPCA(
        d, kernel="poly", degree=2, gamma=0.5, landmarks=landmarks, solver=solver, tol=1e-11,
        noise_variance=noise_variance,
    ).fit(rows)  # fmt: skip
    F, F_new = monomials(rows), monomials(new)
    values, axes = np.linalg.eigh(np.cov(F.T, bias=True))
    size = F.shape[1]
    noise = values[: size - d].mean() if noise_variance is None else noise_variance
    excess = np.maximum(values[-d:] - noise, 0.0)
    assert (noise_variance != 12.0) or (excess == 0).any()
    covariance = noise * np.eye(size) + (axes[:, -d:] * excess) @ axes[:, -d:].T
    law = multivariate_normal(F.mean(axis=0), covariance)
    np.testing.assert_allclose(fitted.score_samples(new), law.logpdf(F_new), rtol=1e-7)
    np.testing.assert_allclose(fitted.score(new), law.logpdf(F_new).mean(), rtol=1e-7)
    about = F_new - F.mean(axis=0)
    rest = about - about @ axes[:, -d:] @ axes[:, -d:].T
    np.testing.assert_allclose(fitted.reconstruction_error(new), (rest**2).sum(axis=1), rtol=1e-7)
    # latents are posterior means of the same law
    W = axes[:, -d:] * np.sqrt(excess)
    means = about @ W @ np.linalg.inv(W.T @ W + noise * np.eye(d))
    Z = fitted.set_params(scale="latent").transform(new)[:, ::-1]
    np.testing.assert_allclose(np.abs(Z), np.abs(means), atol=1e-7)


def test_whitened_scores_have_unit_variance(rows: Array) -> None:
    Z = model("rbf", scale="white").fit_transform(rows)
    np.testing.assert_allclose(np.cov(Z.T, bias=True), np.eye(3), atol=1e-8)


@kernels
@kinds
def test_all_rows_as_landmarks_are_exact(
    kernel: str, kind: Any, rows: Array, rng: np.random.Generator
) -> None:
    new = kind(rng.normal(size=(30, 6)))
    exact = model(kernel).fit(kind(rows))
    for landmarks in (len(rows), kind(rows)):
        fitted = model(kernel, landmarks=landmarks).fit(kind(rows))
        assert fitted.solver_ == "primal"
        np.testing.assert_allclose(fitted.eigenvalues_, exact.eigenvalues_, rtol=1e-8)
        Z, other = fitted.transform(new), exact.transform(new)
        np.testing.assert_allclose(Z, other * np.sign((Z * other).sum(axis=0)), atol=1e-6)
        np.testing.assert_allclose(fitted.noise_variance_, exact.noise_variance_, rtol=1e-8)
        np.testing.assert_allclose(fitted.score_samples(new), exact.score_samples(new), rtol=1e-6)


def test_few_landmarks_come_near(rows: Array) -> None:
    exact = model("rbf", gamma=0.02).fit(rows)
    errors = []
    for m in (20, 60, 200):
        fitted = model("rbf", gamma=0.02, landmarks=m).fit(rows)
        Z, other = fitted.transform(rows), exact.transform(rows)
        errors.append(np.sin(subspace_angles(Z, other)[0]))
        assert fitted.explained_variance_ratio_.sum() <= exact.explained_variance_ratio_.sum()
    assert errors[0] > errors[1] > errors[2] and errors[2] < 1e-3


@kernels
def test_a_stream_with_landmarks_is_one_fit_with_these_landmarks(kernel: str, rows: Array) -> None:
    whole = model(kernel, landmarks=rows[:80]).fit(rows)
    for cuts in ([200], [1, 2, 3, 79, 81, 440], [80]):
        stream = model(kernel, landmarks=80)
        for batch in np.split(rows, cuts):
            stream.partial_fit(batch)
        assert stream._buffer is None
        np.testing.assert_allclose(stream.eigenvalues_, whole.eigenvalues_, rtol=1e-8)
        np.testing.assert_allclose(stream.transform(rows), whole.transform(rows), atol=1e-6)
        np.testing.assert_allclose(stream.score_samples(rows), whole.score_samples(rows), rtol=1e-6)
    few = model(kernel, landmarks=80).partial_fit(rows[:30])  # until there are enough: exact
    exact = model(kernel).fit(rows[:30])
    np.testing.assert_allclose(few.eigenvalues_, exact.eigenvalues_, rtol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_many_landmarks_are_not_summed_up(
    kernel: str, rows: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    summed = model(kernel, landmarks=rows[:150]).fit(rows)
    monkeypatch.setattr(kernel_features, "ORDINARY", 10)
    visited = model(kernel, landmarks=rows[:150]).fit(rows)
    assert hasattr(summed, "_moments") and not hasattr(visited, "_moments")
    np.testing.assert_allclose(visited.eigenvalues_, summed.eigenvalues_, rtol=1e-8)
    densities = visited.score_samples(rows), summed.score_samples(rows)
    np.testing.assert_allclose(*densities, rtol=1e-5)
    with pytest.raises(ValueError, match="kept no sums"):
        visited.partial_fit(rows)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_forgetting_is_weighing_less(kernel: str, rows: Array) -> None:
    """In the rows that wait for enough landmarks, too."""
    batches = np.split(rows, [10, 30, 100, 250])
    stream = model(kernel, landmarks=None if kernel == "linear" else 50, forgetting=0.5)
    for batch in batches:
        stream.partial_fit(batch)
    weight = np.concatenate([np.full(len(b), 0.5 ** (4 - i)) for i, b in enumerate(batches)])
    landmarks = None if kernel == "linear" else rows[:50]
    whole = model(kernel, landmarks=landmarks).fit(rows, sample_weight=weight)
    np.testing.assert_allclose(stream.explained_variance_, whole.explained_variance_, rtol=1e-8)
    np.testing.assert_allclose(stream.transform(rows), whole.transform(rows), atol=1e-7)


# ------------------------------------------------ EM


def test_em_climbs_and_says_which_axes_the_noise_takes(rows: Array) -> None:
    values = dense(rows, "rbf")[0] / len(rows)
    noise = (values[2] + values[3]) / 2
    with pytest.warns(DegenerateWarning, match="2 of the axes have no more variance"):
        fitted = model("rbf", 5, solver="em", noise_variance=noise, max_iter=3000).fit(rows)
    assert fitted.n_components_ == 3 and fitted.noise_variance_ == noise
    np.testing.assert_allclose(fitted.explained_variance_, values[:3], rtol=1e-6)
    with pytest.warns(DegenerateWarning, match="2 of the axes have no more variance"):
        exact = model("rbf", 5, noise_variance=noise, scale="latent").fit(rows)
    assert exact.n_components_ == 5
    assert np.all(exact.transform(rows)[:, 3:] == 0)


# ------------------------------------------------ a share of the variance


@pytest.mark.parametrize("share", [0.3, 0.8, 0.95, 1.0])
@pytest.mark.parametrize(
    "settings",
    [
        {"gamma": 0.5},
        {"gamma": 0.5, "solver": "krylov"},
        {"gamma": 0.5, "landmarks": 60},
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 2},
    ],
    ids=str,
)
def test_a_share_takes_the_fewest_axes_that_hold_it(share: float, settings: dict[str, Any]) -> None:
    rows = np.random.default_rng(0).normal(size=(90, 4)) * [3, 2, 1, 0.5]
    whole = KernelPCA(None, random_state=0, **{**settings, "solver": "auto"}).fit(rows)
    held = np.cumsum(whole.explained_variance_ratio_)
    reached = held >= share - 1e-12
    wanted = int(reached.argmax()) + 1 if reached.any() else len(held)
    found = KernelPCA(share, random_state=0, **settings).fit(rows)
    assert found.n_components_ == wanted or (
        abs(held[-1] - share) < 1e-9 and abs(found.explained_variance_ratio_.sum() - share) < 1e-9
    )
    fixed = KernelPCA(found.n_components_, random_state=0, **settings).fit(rows)
    np.testing.assert_allclose(found.transform(rows), fixed.transform(rows), atol=1e-5)
    np.testing.assert_allclose(found.noise_variance_, fixed.noise_variance_, rtol=1e-6, atol=1e-12)


def test_a_share_holds_in_streams_and_files(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(90, 4)) * [3, 2, 1, 0.5]
    for settings in ({"gamma": 0.1}, {"gamma": 0.1, "landmarks": 40}, {"kernel": "linear"}):
        stream = KernelPCA(0.7, random_state=0, **settings)
        for batch in np.array_split(rows, 3):
            stream.partial_fit(batch)
        ratio = stream.explained_variance_ratio_
        assert ratio.sum() >= 0.7 - 1e-9 > ratio[:-1].sum()
        stream.save(tmp_path / "m")
        again = mixfold.load(tmp_path / "m")
        assert again.n_components == 0.7
        np.testing.assert_array_equal(again.transform(rows), stream.transform(rows))


@pytest.mark.parametrize("bad", [0.0, 1.5, -0.1, 0, True])
def test_what_is_no_share(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"'n_components' parameter.*a share of the variance"):
        KernelPCA(bad).fit(np.eye(4))
