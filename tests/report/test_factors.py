"""Pages of factor models: every number has one name, and loadings are correlations or not."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from mixfold import ICA, PPCA, FactorAnalysis
from mixfold.cli.parts import parts_table


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    """Two correlated factors, four columns each, of unit variance."""
    rng = np.random.default_rng(0)
    z = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 500)
    W = np.zeros((8, 2))
    W[:4, 0] = W[4:, 1] = [0.9, 0.8, 0.7, 0.6]
    X = z @ W.T + 0.6 * rng.normal(size=(500, 8))
    return X / X.std(axis=0)


UNITS = np.array([1.0, 3.0, 0.5, 1.0, 1.0, 2.0, 1.0, 1.0])


def text_of(found, section: str) -> str:
    return " ".join(found.words[section].split())


def test_explained_and_kept_have_names_of_their_own(page, table) -> None:
    model = FactorAnalysis(2, random_state=0).fit(table * UNITS)
    found = page(model, table * UNITS)
    variance = (model.loadings_**2).sum(axis=1) + model.noise_variance_
    communality = 1 - model.noise_variance_ / variance
    factors, residuals = text_of(found, "factors"), text_of(found, "residuals")
    assert (
        f"explain {communality.mean():.1%} of the variance of a column on average, by"
    ) in factors
    X = table * UNITS
    kept = 1 - ((X - model.reconstruct(X)) ** 2).sum(axis=0) / ((X - X.mean(axis=0)) ** 2).sum(
        axis=0
    )
    assert f"keep {kept.mean():.1%} of the variance of a column on average (R²)" in residuals
    assert "This differs from the communality" in residuals
    for j in range(8):  # both stand side by side, each under its name
        assert f"x{j} {kept[j]:.1%} {communality[j]:.1%}" in residuals
    assert "R² of reconstruction communality" in residuals


def test_loadings_are_correlations_of_columns_and_factors(page, table) -> None:
    X = table * UNITS
    model = FactorAnalysis(2, rotation="varimax", random_state=0).fit(X)
    scale = np.sqrt((model.loadings_**2).sum(axis=1) + model.noise_variance_)
    words = text_of(page(model, X), "factors")
    for j in range(8):
        own = " ".join(f"{v:.2f}" for v in model.loadings_[j] / scale[j])
        assert f"x{j} {own}".replace("-0.00", "0.00").replace("-", "\u2212") in words
    assert "correlations of the columns with the factors" in words
    assert "Correlations of the factors" not in words
    # by simulation: the correlation of a column with a factor of the model
    rng = np.random.default_rng(1)
    z = rng.normal(size=(200_000, 2))
    noise = rng.normal(size=(200_000, 8)) * np.sqrt(model.noise_variance_)
    drawn = z @ model.loadings_.T + noise
    found = np.corrcoef(drawn.T, z.T)[:8, 8:]
    np.testing.assert_allclose(model.loadings_ / scale[:, None], found, atol=0.01)


def test_correlations_of_oblique_factors_are_shown(page, table) -> None:
    model = FactorAnalysis(2, rotation="oblimin", random_state=0).fit(table)
    correlation = model.factor_correlations_[0, 1]
    assert abs(correlation) > 0.2
    words = text_of(page(model, table), "factors")
    assert f"Correlations of the factors factor 1 factor 2 factor 1 1.00 {correlation:.2f}" in words
    assert "They are not correlations and may exceed one" in words
    common = np.diag(model.loadings_ @ model.factor_correlations_ @ model.loadings_.T)
    communality = common / (common + model.noise_variance_)
    for part in communality:
        assert f"{part:.1%}" in words
    text = StringIO()
    Console(file=text, width=160).print(parts_table(model))
    terminal = " ".join(text.getvalue().split())
    assert f"correlations of factors 1 and 2: {correlation:.2f}" in terminal
    assert "loadings are in units of the columns" in terminal


def test_units_do_not_change_the_table_of_rotated_loadings(page, table) -> None:
    wide = table * np.array([1, 1, 1, 1, 1, 100.0, 1, 1])
    found = []
    for rows in (table, wide):
        model = FactorAnalysis(2, rotation="oblimin", tol=1e-10, random_state=0).fit(rows)
        found.append(text_of(page(model, rows), "factors"))
    assert found[0] == found[1]


def test_axes_and_factors_of_ppca(page, table) -> None:
    model = PPCA(2).fit(table)
    words = text_of(page(model, table), "factors")
    assert f"have {model.explained_variance_ratio_.sum():.1%} of the total variance" in words
    common = (model.loadings_**2).sum()
    own = common / (common + 8 * model.noise_variance_)
    assert f"without it, the factors explain {own:.1%}" in words


def test_sources_are_correlations_of_columns_and_sources(page) -> None:
    rng = np.random.default_rng(0)
    X = rng.laplace(size=(400, 3)) @ [[1.0, 0.4, 0.2], [0.5, 3.0, -0.3], [0.1, 0.6, 1.0]] + 5
    model = ICA(random_state=0).fit(X)
    found = page(model, X)
    words = text_of(found, "factors")
    assert "3 independent sources bring 100% of the total variance" in words
    scale = np.sqrt((model.mixing_**2).sum(axis=1))
    for j in range(3):
        own = " ".join(f"{v:.2f}" for v in model.mixing_[j] / scale[j])
        assert f"x{j} {own}".replace("-", "\u2212") in words
    # and what is read off the rows is much the same
    seen = np.corrcoef(X.T, model.transform(X).T)[:3, 3:]
    assert np.allclose(seen, model.mixing_ / scale[:, None], atol=0.15)
    assert "Reconstructed rows are the rows themselves" in text_of(found, "residuals")
