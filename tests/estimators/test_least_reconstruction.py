"""Classes by the model that rebuilds a row best."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import mixfold
from mixfold import (
    PPCA,
    FactorAnalysis,
    GaussianMixture,
    MatrixFactorization,
    MixtureClassifier,
    MixtureOfPPCA,
)
from mixfold.contracts import Array


@pytest.fixture(scope="module")
def digits() -> tuple[Array, Array]:
    X, y = load_digits(n_class=4, return_X_y=True)
    return np.asarray(X[:400]), np.asarray(y[:400])


def errors_of_pca(X: Array, y: Array, asked: Array, size: int) -> Array:
    """Mean squared errors (n, C), by eigenvectors of the covariance of each class."""
    columns = []
    for label in np.unique(y):
        rows = X[y == label]
        mean = rows.mean(axis=0)
        _, vectors = np.linalg.eigh(np.cov(rows.T))
        U = vectors[:, -size:]
        rest = (asked - mean) - (asked - mean) @ U @ U.T
        columns.append((rest**2).mean(axis=1))
    return np.stack(columns, axis=1)


def test_the_class_is_that_of_the_nearest_plane(digits: tuple[Array, Array]) -> None:
    X, y = digits
    model = MixtureClassifier(PPCA(6), decision="reconstruction").fit(X[:300], y[:300])
    wanted = errors_of_pca(X[:300], y[:300], X[300:], 6)
    np.testing.assert_allclose(model.reconstruction_errors(X[300:]), wanted, atol=1e-7)
    np.testing.assert_array_equal(model.predict(X[300:]), wanted.argmin(axis=1))
    assert model.score(X[300:], y[300:]) > 0.95
    theirs = MixtureClassifier(PCA(6), decision="reconstruction").fit(X[:300], y[:300])
    np.testing.assert_allclose(theirs.reconstruction_errors(X[300:]), wanted, atol=1e-7)


@pytest.mark.parametrize(
    "estimator",
    [FactorAnalysis(3), MixtureOfPPCA(2, 3), MatrixFactorization(4, max_iter=20)],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.filterwarnings("ignore:Heywood")
def test_any_model_that_rebuilds_rows_will_do(
    digits: tuple[Array, Array], estimator: Any, tmp_path: Path
) -> None:
    X, y = digits
    model = MixtureClassifier(estimator, decision="reconstruction", random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    model.save(tmp_path / "m")
    again = mixfold.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_missing_entries_do_not_count(digits: tuple[Array, Array]) -> None:
    X, y = digits
    model = MixtureClassifier(PPCA(6), decision="reconstruction").fit(X[:300], y[:300])
    holed = X[300:].copy()
    holed[:, ::3] = np.nan
    seen = ~np.isnan(holed[0])
    errors = model.reconstruction_errors(holed)
    for c, one in enumerate(model.estimators_):
        A = one.components_.T[seen]
        rest = holed[:, seen] - one.mean_[seen]
        z = np.linalg.lstsq(A, rest.T, rcond=None)[0]
        np.testing.assert_allclose(errors[:, c], ((rest - (A @ z).T) ** 2).mean(axis=1), atol=1e-7)
    assert model.score(holed, y[300:]) > 0.9


def test_tables_and_sparse_rows_are_rebuilt_as_arrays_are(digits: tuple[Array, Array]) -> None:
    X, y = digits
    X = X[:, 20:30]
    wanted = MixtureClassifier(PPCA(3), decision="reconstruction", novelty=0.1).fit(X, y)
    frame = pd.DataFrame(X, columns=list("abcdefghij"))
    for rows in (frame, sparse.csr_array(X)):
        model = MixtureClassifier(PPCA(3), decision="reconstruction", novelty=0.1).fit(rows, y)
        np.testing.assert_allclose(
            model.reconstruction_errors(rows), wanted.reconstruction_errors(X), atol=1e-8
        )


def test_rows_that_no_class_rebuilds_are_novel(digits: tuple[Array, Array]) -> None:
    X, y = digits
    model = MixtureClassifier(PPCA(6), decision="reconstruction", novelty=0.01).fit(X, y)
    assert model.is_novel(X).mean() < 0.03
    mixed = np.random.default_rng(0).permuted(X, axis=1)
    assert model.is_novel(mixed).mean() > 0.95
    assert (model.predict(mixed) == -1).mean() > 0.95


def test_a_class_not_yet_seen_rebuilds_nothing(digits: tuple[Array, Array]) -> None:
    X, y = digits
    model = MixtureClassifier(PPCA(3), decision="reconstruction")
    model.partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    assert (model.reconstruction_errors(X)[:, 2] == np.inf).all()
    assert set(model.predict(X)) <= {0, 1}


def test_errors_are_no_probabilities(digits: tuple[Array, Array]) -> None:
    X, y = digits
    model = MixtureClassifier(PPCA(3), decision="reconstruction").fit(X, y)
    for name in ("predict_proba", "predict_log_proba", "score_samples"):
        assert not hasattr(model, name)
    with pytest.raises(ValueError, match=r"priors.*decision='reconstruction'.*got priors='emp"):
        MixtureClassifier(PPCA(3), decision="reconstruction", priors="empirical").fit(X, y)
    with pytest.raises(TypeError, match=r"decision='reconstruction'.*reconstruct.*GaussianMixture"):
        MixtureClassifier(GaussianMixture(), decision="reconstruction").fit(X, y)
    with pytest.raises(ValueError, match="'decision' parameter"):
        MixtureClassifier(PPCA(3), decision="nearest").fit(X, y)
    with pytest.raises(AttributeError, match="decision='reconstruction'"):
        MixtureClassifier(PPCA(3)).fit(X, y).reconstruction_errors(X)
