"""The choice of how much labels count: each formula against the long way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from mixfold import SupervisedPPCA
from mixfold.math.simplex_codes import simplex_codes
from mixfold.models.outputs import emphasis
from mixfold.models.outputs.emphasis import LabelledRows, fit_scatter, fold_rows
from mixfold.models.outputs.gaussian_predictions import discriminant

CODES = simplex_codes(3)


def draw(n: int = 90, labelled: int = 30, r: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Centred rows on their principal axes, and classes, -1 where unknown."""
    rng = np.random.default_rng(3)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, r)) * [3.0, 2.0, 1.0, 0.7, 0.5] + 2 * CODES[y] @ rng.normal(size=(2, r))
    X -= X.mean(axis=0)
    X = X @ np.linalg.svd(X, full_matrices=False)[2].T
    known = y.copy()
    known[rng.permutation(n)[labelled:]] = -1
    return X, known


def describe(X: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> LabelledRows:
    h = np.ones(len(y)) if weights is None else weights
    known = y >= 0
    prior = np.bincount(y[known], h[known]) / h[known].sum()
    center = h @ X / h.sum()
    variances = h @ (X - center) ** 2 / h.sum()
    return LabelledRows(
        X[known] - center, y[known], h[known], variances, float(h.sum()), CODES, prior
    )


# ------------------------------------------------ fits in coordinates


def log_density(fit: emphasis.ScatterFits, X: np.ndarray, y: np.ndarray, u: float) -> float:
    """Sum of the log densities of rows with their outputs, by normals of all columns at once."""
    W, V = fit.loadings[0], fit.output_loadings[0]
    noise = np.concatenate([np.full(len(W), fit.noise[0]), np.full(len(V), fit.output_noise[0])])
    both = np.vstack([W, V])
    covariance = both @ both.T + np.diag(noise)
    mean = np.concatenate([fit.means[0], fit.output_means[0]])
    known, r = y >= 0, len(W)
    joint = np.hstack([X[known], CODES[y[known]]])
    seen = multivariate_normal(mean, covariance).logpdf(joint).sum()
    alone = multivariate_normal(mean[:r], covariance[:r, :r]).logpdf(X[~known]).sum()
    return float(seen + u * alone)


@pytest.mark.parametrize("u", [1.0, 0.1])
def test_the_objective_rises_and_is_the_log_density_of_rows_and_outputs(u: float) -> None:
    X, y = draw()
    rows = fold_rows(describe(X, y), np.ones((y >= 0).sum(), bool))
    noises = np.array([0.3])
    long = fit_scatter(rows, 2, noises, u, steps=41)
    assert (np.diff(long.objectives[:, 0]) > -1e-9).all()
    # the last objective is that of the parameters one step before
    one, two = (fit_scatter(rows, 2, noises, u, steps=k) for k in (5, 20))
    told = [long.objectives[k, 0] for k in (5, 20)]
    true = [log_density(fit, X, y, u) for fit in (one, two)]
    np.testing.assert_allclose(np.diff(true), np.diff(told), rtol=1e-9)


def test_the_fit_is_stationary_for_all_that_is_learned() -> None:
    X, y = draw()
    rows = fold_rows(describe(X, y), np.ones((y >= 0).sum(), bool))
    fit = fit_scatter(rows, 2, np.array([0.3]), 0.3, steps=3000)
    parts = [fit.loadings, fit.means, fit.output_loadings, fit.output_means, fit.output_noise]
    shapes, cuts = [p.shape for p in parts], np.cumsum([p.size for p in parts])[:-1]

    def objective(vector: np.ndarray) -> float:
        W, m, V, c, v = (p.reshape(s) for p, s in zip(np.split(vector, cuts), shapes, strict=True))
        trial = emphasis.ScatterFits(W, m, fit.noise, V, c, v, fit.objectives)
        return log_density(trial, X, y, 0.3)

    at = np.concatenate([p.ravel() for p in parts])
    assert np.abs(approx_fprime(at, objective, 1e-6)).max() < 2e-2
    away = at * 1.01
    assert np.abs(approx_fprime(away, objective, 1e-6)).max() > 1


def test_the_fit_is_that_of_the_estimator_with_that_noise() -> None:
    X, y = draw()
    rows = fold_rows(describe(X, y), np.ones((y >= 0).sum(), bool))
    fit = fit_scatter(rows, 2, np.array([0.3]), 1.0, steps=2000)
    model = SupervisedPPCA(2, input_noise=0.3, tol=1e-12, max_iter=5000).fit(X, y)
    ours = fit.loadings[0] @ fit.loadings[0].T
    np.testing.assert_allclose(ours, model.loadings_ @ model.loadings_.T, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(fit.output_noise[0], model.output_noise_variance_[0], rtol=1e-4)


def test_a_weight_of_two_is_a_row_twice() -> None:
    X, y = draw()
    h = np.ones(len(y))
    h[::4] = 2
    twice = np.repeat(np.arange(len(y)), h.astype(int))
    weighted, repeated = describe(X, y, h), describe(X[twice], y[twice])
    for known in (weighted.classes != 1, np.ones(len(weighted.classes), bool)):
        again = np.repeat(known, weighted.weights.astype(int))
        one = fit_scatter(fold_rows(weighted, known), 2, np.array([0.3, 1.0]), 0.1, steps=5)
        two = fit_scatter(fold_rows(repeated, again), 2, np.array([0.3, 1.0]), 0.1, steps=5)
        np.testing.assert_allclose(one.objectives, two.objectives, rtol=1e-9)
        np.testing.assert_allclose(one.output_loadings, two.output_loadings, atol=1e-9)


def test_each_noise_of_several_is_fitted_alone() -> None:
    X, y = draw()
    rows = fold_rows(describe(X, y), np.ones((y >= 0).sum(), bool))
    both = fit_scatter(rows, 2, np.array([0.3, 2.0]), 0.1, steps=7)
    alone = fit_scatter(rows, 2, np.array([2.0]), 0.1, steps=7)
    np.testing.assert_allclose(both.loadings[1], alone.loadings[0], rtol=1e-10)
    np.testing.assert_allclose(both.output_noise[1], alone.output_noise[0], rtol=1e-10)


# ------------------------------------------------ the discriminant and its calibration


def test_slope_and_intercept_are_the_gain_of_the_density_of_a_code() -> None:
    rng = np.random.default_rng(5)
    V = rng.normal(size=(2, 2))
    spread, prior = V @ V.T * 0.2 + 0.1 * np.eye(2), V @ V.T + 0.1 * np.eye(2)
    means = rng.normal(size=(4, 2))
    slope, intercept = discriminant(CODES, means, spread, prior)
    before = multivariate_normal(np.zeros(2), prior).logpdf(CODES)
    after = np.array([multivariate_normal(m, spread).logpdf(CODES) for m in means])
    gain = after - before
    both = slope + intercept
    np.testing.assert_allclose(both - both[:, :1], gain - gain[:, :1], rtol=1e-10)
    np.testing.assert_allclose(slope, means @ np.linalg.inv(spread) @ CODES.T)


def test_calibration_maximises_the_penalised_likelihood() -> None:
    rng = np.random.default_rng(6)
    slopes, intercepts = 8 * rng.normal(size=(60, 3)), rng.normal(size=(60, 3))
    prior, weights = np.log([0.2, 0.3, 0.5]), rng.uniform(0.5, 2, size=60)
    odds = prior + 0.2 * slopes + 0.5 * intercepts
    share = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    classes = np.array([rng.choice(3, p=p) for p in share])

    def value(a: float, b: float) -> float:
        odds = prior + a * slopes + b * intercepts
        own = odds[np.arange(60), classes] - np.log(np.exp(odds).sum(axis=1))
        return float(weights @ own - 0.5 * (a - 1) ** 2 - 0.5 * (b - 1) ** 2) / weights.sum()

    score, a, b = emphasis.calibrate(slopes, intercepts, prior, classes, weights)
    assert abs(score - value(a, b)) < 1e-12
    steps = [(1e-2, 0), (-1e-2, 0), (0, 1e-2), (0, -1e-2)]
    assert all(value(a + i, b + j) < score for i, j in steps)
    assert 0.05 < a < 0.5  # eight times too sure, as drawn


# ------------------------------------------------ the choice


def test_folds_hold_out_each_row_once_and_never_the_only_one_of_its_class() -> None:
    classes = np.array([0] * 7 + [1] * 2 + [2])
    folds = emphasis.split_folds(classes)
    assert (folds[:, -1] == -1).all()
    assert (folds[:, :-1] >= 0).all()
    for once in folds:
        counts = np.bincount(once[:7], minlength=5)
        assert counts.max() - counts.min() <= 1
        assert len(set(once[7:9])) == 2
    assert len({tuple(once) for once in folds}) == len(folds)
    np.testing.assert_array_equal(folds, emphasis.split_folds(classes))


def test_the_choice_is_the_best_of_what_was_tried() -> None:
    X, y = draw()
    rows = describe(X, y)
    chosen, tried = emphasis.choose_emphasis(rows, 2, 0.2)
    best = max(tried, key=lambda trial: trial.score)
    assert chosen.weight == pytest.approx(best.noise / 0.2)
    assert (chosen.unlabelled, chosen.slope) == (best.unlabelled, best.slope)
    assert {trial.unlabelled for trial in tried} == {1.0, 0.1, 0.01}


def test_held_out_rows_are_scored_by_a_fit_without_their_labels() -> None:
    X, y = draw()
    rows = describe(X, y)
    _, tried = emphasis.choose_emphasis(rows, 2, 0.2)
    folds = emphasis.split_folds(rows.classes)
    slopes, intercepts = np.zeros((2, *folds.shape, 3))
    for once, slope_of, intercept_of in zip(folds, slopes, intercepts, strict=True):
        for k in range(once.max() + 1):
            fit = fit_scatter(fold_rows(rows, once != k), 2, np.array([0.2]), 1.0, steps=20)
            out = once == k
            slope, intercept = fit.discriminants(rows.coordinates[out], CODES)
            slope_of[out], intercept_of[out] = slope[0], intercept[0]
    found = emphasis.calibrate(
        slopes.reshape(-1, 3), intercepts.reshape(-1, 3), np.log(rows.prior),
        np.tile(rows.classes, len(folds)), np.tile(rows.weights, len(folds)) / len(folds),
    )  # fmt: skip
    assert tried[0].score == pytest.approx(found[0])


def test_without_unlabelled_rows_their_weight_is_not_tried() -> None:
    X, y = draw(labelled=90)
    _, tried = emphasis.choose_emphasis(describe(X, y), 2, 0.2)
    assert {trial.unlabelled for trial in tried} == {1.0}
