"""The generative topographic mapping against a textbook implementation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import logsumexp

import mixfold
from mixfold import GTM
from mixfold.contracts import Array

SMALL: dict[str, Any] = dict(n_points=6, n_basis=3)


@pytest.fixture
def bent(rng: np.random.Generator) -> Array:
    """A sheet that is bent in three dimensions."""
    u, v = rng.uniform(-1, 1, (2, 150))
    X = np.column_stack([2 * u, v, u**2 - 0.5 * v])
    return np.asarray(X + 0.1 * rng.normal(size=X.shape))


def basis_of(n_points: int, n_basis: int, d: int, width: float = 1.0) -> tuple[Array, Array]:
    """Latent points (K, d) and phi at them (K, M), written out."""

    def grid(n: int) -> Array:
        axis = [-1 + 2 * i / (n - 1) for i in range(n)]
        if d == 1:
            return np.array([[a] for a in axis])
        return np.array([[a, b] for a in axis for b in axis])

    Z, C = grid(n_points), grid(n_basis)
    s = width * 2 / (n_basis - 1)
    radial = [[np.exp(-((z - c) ** 2).sum() / (2 * s**2)) for c in C] for z in Z]
    return Z, np.column_stack([np.ones(len(Z)), radial])


def textbook(X: Array, phi: Array, W: Array, variance: float, steps: int) -> Any:
    """EM of Bishop, Svensen and Williams, entries that are missing left out; the last E step."""
    seen = ~np.isnan(X)
    filled = np.where(seen, X, 0.0)
    for _ in range(steps + 1):
        means = phi @ W
        gaps = (filled[:, None] - means) ** 2 * seen[:, None]
        sizes = seen.sum(axis=1)[:, None]
        log_p = -0.5 * (gaps.sum(axis=2) / variance + sizes * np.log(2 * np.pi * variance))
        total = logsumexp(log_p, axis=1)
        R = np.exp(log_p - total[:, None])
        found = W, variance, float(np.mean(total - np.log(len(phi)))), R
        columns = []
        for j in range(X.shape[1]):
            G = np.diag(R.T @ seen[:, j])
            columns.append(np.linalg.solve(phi.T @ G @ phi, phi.T @ R.T @ filled[:, j]))
        W = np.stack(columns, axis=1)
        gaps = (filled[:, None] - phi @ W) ** 2 * seen[:, None]
        variance = float((R[:, :, None] * gaps).sum() / seen.sum())
    return found


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("lacking", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("d", [1, 2])
def test_steps_are_those_of_the_textbook(
    bent: Array, d: int, lacking: bool, rng: np.random.Generator
) -> None:
    X = np.where(rng.random(bent.shape) < 0.15, np.nan, bent) if lacking else bent
    X = X[~np.isnan(X).all(axis=1)]
    first = GTM(d, max_iter=1, tol=0, **SMALL).fit(X)
    Z, phi = basis_of(6, 3, d)
    np.testing.assert_allclose(first.latent_points_, Z, atol=1e-12)
    np.testing.assert_allclose(phi @ first.mapping_, first.means_, atol=1e-9)
    later = GTM(d, max_iter=6, tol=0, **SMALL).fit(X)
    W, variance, bound, R = textbook(X, phi, first.mapping_, first.noise_variance_, 5)
    np.testing.assert_allclose(later.means_, phi @ W, atol=1e-6)
    np.testing.assert_allclose(later.noise_variance_, variance, rtol=1e-6)
    np.testing.assert_allclose(later.lower_bound_, bound, atol=1e-7)
    np.testing.assert_allclose(later.responsibilities(X), R, atol=1e-6)
    np.testing.assert_allclose(later.transform(X), R @ Z, atol=1e-6)
    np.testing.assert_allclose(later.reconstruct(X), R @ phi @ W, atol=1e-6)
    assert (np.diff(later.lower_bounds_) > -1e-10).all()


def test_the_start_is_the_plane_of_the_principal_axes(bent: Array) -> None:
    model = GTM(2, n_points=8, n_basis=7, width=1.5, max_iter=0).fit(bent)
    centred = bent - bent.mean(axis=0)
    _, lengths, axes = np.linalg.svd(centred / np.sqrt(len(bent)), full_matrices=False)
    surface = model.means_ - bent.mean(axis=0)
    off = surface - surface @ axes[:2].T @ axes[:2]
    assert np.abs(off).max() < 1e-8
    np.testing.assert_allclose((surface @ axes[:2].T).std(axis=0), lengths[:2], rtol=0.02)


def test_the_density_is_that_of_its_mixture(bent: Array) -> None:
    model = GTM(2, **SMALL).fit(bent)
    wanted = logsumexp(
        [stats.multivariate_normal(m, model.noise_variance_).logpdf(bent) for m in model.means_],
        axis=0,
    ) - np.log(36)
    np.testing.assert_allclose(model.score_samples(bent), wanted, atol=1e-8)
    draws = model.sample(40_000, random_state=0)
    np.testing.assert_allclose(draws.mean(axis=0), model.means_.mean(axis=0), atol=0.03)
    spread = np.cov(model.means_.T, bias=True) + model.noise_variance_ * np.eye(3)
    np.testing.assert_allclose(np.cov(draws.T), spread, atol=0.05)
    total = model.score_samples(bent).sum()
    assert np.isclose(model.bic(), -2 * total + (10 * 3 + 1) * np.log(150))


def test_the_end_is_a_maximum(bent: Array) -> None:
    model = GTM(1, n_points=8, n_basis=3, tol=1e-12, max_iter=3000).fit(bent)
    _, phi = basis_of(8, 3, 1)

    def likelihood(W: Array, variance: float) -> float:
        parts = [stats.multivariate_normal(m, variance).logpdf(bent) for m in phi @ W]
        return float(logsumexp(parts, axis=0).mean())

    best = likelihood(model.mapping_, model.noise_variance_)
    for index in np.ndindex(model.mapping_.shape):
        step = np.zeros_like(model.mapping_)
        step[index] = 1e-3
        for moved in (model.mapping_ + step, model.mapping_ - step):
            assert likelihood(moved, model.noise_variance_) < best + 1e-9
    for factor in (0.999, 1.001):
        assert likelihood(model.mapping_, factor * model.noise_variance_) < best + 1e-9


def test_a_curve_is_followed_in_order(rng: np.random.Generator) -> None:
    t = rng.uniform(-2.2, 2.2, 300)
    X = np.column_stack([np.sin(t), np.cos(t), 0.3 * t]) + 0.03 * rng.normal(size=(300, 3))
    model = GTM(1, n_points=60, n_basis=8).fit(X)
    assert abs(stats.spearmanr(model.transform(X)[:, 0], t)[0]) > 0.99
    assert np.sqrt(model.noise_variance_) < 0.05
    plane = mixfold.PPCA(1).fit(X)
    assert model.score(X) > plane.score(X) + 1
    holed = X.copy()
    holed[::2, 1] = np.nan
    again = GTM(1, n_points=60, n_basis=8).fit(holed)
    error = np.abs(again.impute(holed)[::2, 1] - X[::2, 1])
    assert np.median(error) < 0.06


def test_weights_are_repetitions_and_zero_is_absence(bent: Array) -> None:
    weight = np.tile([0.0, 1.0, 2.0], 50)
    rows = np.repeat(bent, weight.astype(int), axis=0)
    one, other = GTM(2, **SMALL).fit(bent, sample_weight=weight), GTM(2, **SMALL).fit(rows)
    np.testing.assert_allclose(one.means_, other.means_, atol=1e-5)
    np.testing.assert_allclose(one.lower_bound_, other.lower_bound_, atol=1e-6)


def test_order_type_and_kind_of_table_do_not_matter(bent: Array, tmp_path: Path) -> None:
    model = GTM(2, **SMALL).fit(bent)
    turned = GTM(2, **SMALL).fit(bent[::-1])
    np.testing.assert_allclose(turned.transform(bent), model.transform(bent), atol=1e-5)
    moved = GTM(2, **SMALL).fit(1e3 * bent + 5e3)
    np.testing.assert_allclose(moved.transform(1e3 * bent + 5e3), model.transform(bent), atol=1e-5)
    for rows, digits in ((sparse.csr_array(bent), 1e-6), (bent.astype(np.float32), 1e-2)):
        other = GTM(2, **SMALL).fit(rows)
        np.testing.assert_allclose(other.transform(rows), model.transform(bent), atol=digits)
    model.save(tmp_path / "m")
    again = mixfold.load(tmp_path / "m")
    np.testing.assert_array_equal(again.transform(bent), model.transform(bent))
    np.testing.assert_array_equal(again.mapping_, model.mapping_)


def test_a_surface_of_more_directions_than_columns_is_refused(bent: Array) -> None:
    for learn in (GTM(3).fit, GTM(3).partial_fit):
        with pytest.raises(ValueError, match=r"n_components=3 .*n_features = 2.*Lower n_comp"):
            learn(bent[:, :2])
    GTM(2, **SMALL).fit(bent[:, :2])


def test_latents_go_back_to_the_surface(bent: Array) -> None:
    model = GTM(2, **SMALL).fit(bent)
    np.testing.assert_allclose(
        model.inverse_transform(model.latent_points_), model.means_, atol=1e-9
    )
    with pytest.raises(ValueError, match="Z must have one column per latent, 2; got 1"):
        model.inverse_transform([[0.5]])


def test_a_stream_comes_close_to_a_fit(bent: Array) -> None:
    whole = GTM(2, **SMALL).fit(bent)
    stream = GTM(2, **SMALL)
    for _ in range(6):
        for batch in np.array_split(bent, 3):
            stream.partial_fit(batch)
    assert stream.score(bent) > whole.score(bent) - 0.15
    with pytest.raises(ValueError, match="n_points changed since the last batch"):
        stream.set_params(n_points=7).partial_fit(bent)


def test_rows_on_the_surface_itself_touch_the_floor() -> None:
    X = np.outer(np.linspace(-1, 1, 30), [1.0, 2.0])
    with pytest.warns(mixfold.DegenerateWarning):
        model = GTM(1, n_points=30, n_basis=29, noise_floor=1e-3, max_iter=500).fit(X)
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_components": 4}, "'n_components' parameter of GTM must be an int from 1 to 3. Got 4"),
        ({"n_points": 1}, "'n_points' parameter"),
        ({"n_basis": 1}, "'n_basis' parameter"),
        ({"width": 0.0}, "'width' parameter of GTM must be a number > 0"),
        ({"n_points": 3, "n_basis": 4}, "n_basis=4 must not exceed n_points=3.*Lower n_basis"),
        ({"n_points": 101}, "make 10201 components, and the limit is 10000; lower n_points"),
    ],
)
def test_bad_settings(bent: Array, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        GTM(**settings).fit(bent)


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_the_digits_are_mapped_with_their_kinds_together(
    digits: tuple[Array, Array],
) -> None:
    from sklearn.model_selection import cross_val_score
    from sklearn.neighbors import KNeighborsClassifier

    X, y = digits
    curved = GTM(2, n_points=15, n_basis=6, max_iter=60, tol=1e-3).fit_transform(X)
    flat = mixfold.PPCA(2).fit_transform(X)
    neighbours = KNeighborsClassifier(7)
    curved_score, flat_score = (cross_val_score(neighbours, Z, y).mean() for Z in (curved, flat))
    assert curved_score > flat_score


@pytest.fixture(scope="module")
def digits() -> tuple[Array, Array]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return np.asarray(X[:600]), np.asarray(y[:600])
