"""Risks and ratios against brute force: numerical integration, sampling, big integers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, sparse, stats

from mixfold.metrics import clustering_risk, reduction_risk, signal_to_error_ratio

N, K, D = 6, 3, 2


def posterior(rng: np.random.Generator, d: int = D) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities, means and covariances of the latents of N rows under K components."""
    A = rng.normal(size=(N, K, d, d))
    return (
        rng.dirichlet(np.ones(K), size=N),
        rng.normal(size=(N, K, d)),
        0.2 * A @ A.swapaxes(-1, -2) + 0.01 * np.eye(d),
    )


# ------------------------------------------------------------------ reduction


def test_reduction_risk_is_the_variance_of_the_posterior_by_quadrature(
    rng: np.random.Generator,
) -> None:
    share, means, covariances = posterior(rng, d=1)
    risks = reduction_risk(share, means, covariances, per_row=True)
    for n in range(N):
        parts = [stats.norm(means[n, k, 0], np.sqrt(covariances[n, k, 0, 0])) for k in range(K)]

        def moment(f: Callable[[float], float], n: int = n, parts: list[Any] = parts) -> float:
            def integrand(z: float) -> float:
                return f(z) * sum(r * p.pdf(z) for r, p in zip(share[n], parts, strict=True))

            value, _ = integrate.quad(integrand, -15, 15, limit=400, points=means[n, :, 0])
            return float(value)

        centre = moment(lambda z: z)
        np.testing.assert_allclose(risks[n], moment(lambda z, c=centre: (z - c) ** 2), rtol=1e-6)


def test_reduction_risk_is_the_mean_squared_error_of_draws(rng: np.random.Generator) -> None:
    share, means, covariances = posterior(rng)
    covariances = covariances[0]  # one for each component, all rows alike
    risks = reduction_risk(share, means, covariances, per_row=True)
    draws = 40_000
    for n in range(N):
        which = rng.choice(K, size=draws, p=share[n])
        noise = np.linalg.cholesky(covariances)[which] @ rng.normal(size=(draws, D, 1))
        latents = means[n, which] + noise[..., 0]
        errors = ((latents - share[n] @ means[n]) ** 2).sum(axis=1)
        assert abs(errors.mean() - risks[n]) < 6 * errors.std() / np.sqrt(draws)


def test_reduction_risk_averages_rows_and_dimensions(rng: np.random.Generator) -> None:
    share, means, covariances = posterior(rng)
    risks = reduction_risk(share, means, covariances, per_row=True)
    assert reduction_risk(share, means, covariances) == pytest.approx(sum(risks) / N / D)
    counts = np.array([2, 0, 1, 0, 3, 1])
    repeated = [np.repeat(a, counts, axis=0) for a in (share, means, covariances)]
    weighted = reduction_risk(share, means, covariances, sample_weight=counts)
    assert weighted == pytest.approx(reduction_risk(*repeated))


def test_covariances_of_components_serve_all_rows(rng: np.random.Generator) -> None:
    share, means, covariances = posterior(rng)
    each = np.broadcast_to(covariances[0], covariances.shape)
    np.testing.assert_allclose(
        reduction_risk(share, means, covariances[0], per_row=True),
        reduction_risk(share, means, each, per_row=True),
    )


def test_reduction_risk_of_latents_far_from_zero_keeps_its_digits(
    rng: np.random.Generator,
) -> None:
    share, means, covariances = posterior(rng)
    means = np.round(means * 64) / 64  # so that the shift is exact
    np.testing.assert_allclose(
        reduction_risk(share, means + 2.0**30, covariances, per_row=True),
        reduction_risk(share, means, covariances, per_row=True),
        rtol=1e-5,
    )


def test_the_prior_has_risk_one() -> None:
    assert reduction_risk(np.ones((4, 1)), np.zeros((4, 1, 5)), np.eye(5)[None]) == 1.0


# ------------------------------------------------------------------ clustering


def test_clustering_risk_is_how_often_a_drawn_component_is_another(
    rng: np.random.Generator,
) -> None:
    share = rng.dirichlet(np.ones(4), size=5)
    risks = clustering_risk(share, per_row=True)
    draws = 40_000
    for row, risk in zip(share, risks, strict=True):
        wrong = np.mean(rng.choice(4, size=draws, p=row) != np.argmax(row))
        assert abs(wrong - risk) < 6 * np.sqrt(risk * (1 - risk) / draws)


def test_tiny_clustering_risks_are_kept() -> None:
    share = np.array([[1e-300, 1.0, 2e-300], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(clustering_risk(share, per_row=True), [3e-300, 0.0], rtol=1e-14)
    assert clustering_risk(share) == pytest.approx(1.5e-300, abs=0, rel=1e-14)
    with np.errstate(divide="ignore"):
        logs = np.log(share)
    assert clustering_risk(logs, log=True) == pytest.approx(1.5e-300, abs=0, rel=1e-12)


def test_logarithms_of_float32_still_tell_tiny_risks() -> None:
    logs = np.array([[0.0, -300.0]], dtype=np.float32)
    assert np.exp(logs)[0, 1] == 0.0
    assert clustering_risk(logs, log=True) == pytest.approx(np.exp(-300.0), abs=0)


def test_ties_and_single_components() -> None:
    np.testing.assert_allclose(clustering_risk([[0.25] * 4], per_row=True), [0.75])
    assert clustering_risk([[1.0], [1.0]]) == 0.0


def test_clustering_risk_takes_weights() -> None:
    assert clustering_risk([[0.5, 0.5], [0.9, 0.1]], sample_weight=[1, 3]) == pytest.approx(0.2)


# ------------------------------------------------------------------ signal to error


def test_the_ratio_averages_ratios_of_norms_in_exact_arithmetic() -> None:
    """Pythagorean rows, so that every norm is rational."""
    X = np.array([[3, 4, 0], [0, 5, 12], [8, 0, 15]], dtype=np.uint8)
    X_hat = np.array([[3, 4, 1], [3, 5, 8], [8, 6, 7]], dtype=np.uint8)
    ratios = [Fraction(5, 1), Fraction(13, 5), Fraction(17, 10)]
    expected = 20 * np.log10(float(sum(ratios) / 3))
    assert signal_to_error_ratio(X, X_hat) == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(
        signal_to_error_ratio(X, X_hat, per_row=True), 20 * np.log10([5, 2.6, 1.7])
    )
    weighted = 20 * np.log10((3 * 5 + 1.7) / 4)
    assert signal_to_error_ratio(X, X_hat, sample_weight=[3, 0, 1]) == pytest.approx(weighted)


def test_missing_entries_count_in_neither_norm(rng: np.random.Generator) -> None:
    X, X_hat = rng.normal(size=(2, 5, 8))
    holes = rng.random(X.shape) < 0.4
    gapped = np.where(holes, np.nan, X)
    rows = [
        signal_to_error_ratio(x[~hole][None], hat[~hole][None])
        for x, hat, hole in zip(X, X_hat, holes, strict=True)
    ]
    np.testing.assert_allclose(signal_to_error_ratio(gapped, X_hat, per_row=True), rows)
    spoilt = np.where(holes, np.nan, X_hat)  # what stands there does not matter
    assert signal_to_error_ratio(gapped, spoilt) == signal_to_error_ratio(gapped, X_hat)


def test_rows_without_error_signal_or_entries() -> None:
    X = np.array([[1.0, 2.0], [0.0, 0.0], [0.0, 0.0], [np.nan, np.nan], [6.0, 8.0]])
    X_hat = np.array([[1.0, 2.0], [0.0, 0.0], [0.0, 1.0], [4.0, 5.0], [6.0, 7.0]])
    np.testing.assert_array_equal(
        signal_to_error_ratio(X, X_hat, per_row=True), [np.inf, np.inf, -np.inf, np.nan, 20.0]
    )
    assert signal_to_error_ratio(X, X_hat) == np.inf
    # Ratios 0 and 10, the empty row left out; an infinite ratio without weight does no harm.
    assert signal_to_error_ratio(X[2:], X_hat[2:]) == pytest.approx(20 * np.log10(5))
    ratio = signal_to_error_ratio(X, X_hat, sample_weight=[0, 0, 0, 1, 1])
    assert ratio == pytest.approx(20.0)


def test_many_rows_are_read_in_pieces(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = rng.normal(size=(50, 7)).astype(np.float32)
    X_hat = X + rng.normal(size=X.shape)
    whole = signal_to_error_ratio(X, X_hat, per_row=True)
    monkeypatch.setattr("mixfold.metrics._PIECE", 21)
    np.testing.assert_array_equal(signal_to_error_ratio(X, X_hat, per_row=True), whole)
    X_hat[41, 3] = np.nan
    with pytest.raises(ValueError, match="row 41, column 3 is nan"):
        signal_to_error_ratio(X, X_hat)


def test_faces_rebuilt_from_principal_axes_have_the_known_ratio(
    rng: np.random.Generator, shared_data: Callable[[str], Path]
) -> None:
    """Two people, random halves of the images, six axes: 17.32 dB."""
    with np.load(shared_data("head_pose_48x64.npz"), allow_pickle=False) as file:
        faces = file["X"][np.isin(file["y"], (9, 11))].astype(float)
    ratios = []
    for _ in range(4):
        held_out = rng.permutation(len(faces)) % 2 == 0
        mean = faces[~held_out].mean(axis=0)
        axes = np.linalg.svd(faces[~held_out] - mean, full_matrices=False)[2][:6]
        test = faces[held_out]
        ratios.append(signal_to_error_ratio(test, mean + (test - mean) @ axes.T @ axes))
    assert np.mean(ratios) == pytest.approx(17.32, abs=0.1)


# ------------------------------------------------------------------ mistakes

HALF = [[0.5, 0.5]]
Z, R = np.zeros((1, 2, 3)), np.zeros((2, 3, 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: clustering_risk([[0.5, 0.4]]), ValueError, "sum to 1; row 0 gives 0.9"),
        (lambda: clustering_risk([[-0.5, 1.5]]), ValueError, "row 0, column 0 is -0.5.*log=True"),
        (lambda: clustering_risk([[0.5, np.nan]]), ValueError, r"entry \(0, 1\) is nan"),
        (lambda: clustering_risk([0.5, 0.5]), ValueError, r"shape \(n, K\); got \(2,\)"),
        (lambda: clustering_risk(HALF, log=True), ValueError, "at most 0; row 0, column 0 is 0.5"),
        (lambda: clustering_risk([[-9.0, -9.0]], log=True), ValueError, "row 0 gives 0.000246"),
        (lambda: clustering_risk([[np.nan, 0.0]], log=True), ValueError, "column 0 is nan"),
        (lambda: clustering_risk(np.empty((0, 2))), ValueError, "none of the 0 rows"),
        (lambda: clustering_risk(sparse.eye_array(2)), TypeError, "toarray"),
        (lambda: clustering_risk([["a", "b"]]), TypeError, "probabilities must hold real numbers"),
        (lambda: clustering_risk(HALF, sample_weight=[1, 1]), ValueError, "each of the 1 rows"),
        (lambda: clustering_risk(HALF, sample_weight=[-1]), ValueError, "got -1.0 in row 0"),
        (lambda: clustering_risk(HALF, sample_weight=[0]), ValueError, "nothing to average"),
        (
            lambda: clustering_risk(HALF, sample_weight=[1], per_row=True),
            ValueError,
            "Leave one of the two out",
        ),
        (lambda: reduction_risk(HALF, Z[:, 0], R), ValueError, r"\(n, K, d\); got \(1, 3\)"),
        (lambda: reduction_risk(HALF, Z[:, :1], R), ValueError, r"\(n, K\) = \(1, 2\)"),
        (lambda: reduction_risk(HALF, Z, R[:1]), ValueError, r"covariances .* got \(1, 3, 3\)"),
        (lambda: reduction_risk(HALF, Z[..., :0], R[:, :0, :0]), ValueError, "got d = 0"),
        (lambda: signal_to_error_ratio(HALF, [[1.0]]), ValueError, r"shape of X, \(1, 2\)"),
        (lambda: signal_to_error_ratio([[np.inf, 1]], HALF), ValueError, "X must be finite.*inf"),
        (lambda: signal_to_error_ratio(HALF, [[1, np.nan]]), ValueError, "X_hat must be finite"),
        (lambda: signal_to_error_ratio([[np.nan]], [[1]]), ValueError, "nothing to average"),
    ],
)
def test_mistakes_are_named(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
