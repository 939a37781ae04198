"""KernelPCA(gamma='learn', n_components='learn'): what is found, in which data, and mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.mixture import GaussianMixture

import mixfold
from mixfold import KernelPCA
from mixfold.contracts import Array


def clusters(
    number: int, columns: int, spread: float, rng: np.random.Generator, rows: int = 200
) -> Array:
    """Round clusters whose means span ``number`` - 1 directions."""
    means = 4 * np.eye(number, columns)
    return np.asarray(
        means[rng.integers(number, size=rows)] + spread * rng.normal(size=(rows, columns))
    )


def learn(X: Array, **settings: Any) -> KernelPCA:
    given = {"n_components": "learn", "gamma": "learn", "random_state": 0, **settings}
    return KernelPCA(**given).fit(X)


@pytest.mark.parametrize("number", [3, 5])
@pytest.mark.parametrize("spread", [0.3, 0.5])
def test_round_clusters_have_one_axis_less_than_clusters(
    number: int, spread: float, rng: np.random.Generator
) -> None:
    model = learn(clusters(number, 6, spread, rng))
    assert model.n_components_ == number - 1
    # neighbours in a cluster are alike, clusters are not
    assert np.exp(-model.gamma_ * 2 * 6 * spread**2) > 0.5 > np.exp(-model.gamma_ * 32)


def test_a_plane_is_found_at_the_smoothest_kernel(rng: np.random.Generator) -> None:
    X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 8)) + 0.3 * rng.normal(size=(300, 8))
    model = learn(X)
    assert model.n_components_ in (2, 3)
    assert model.gamma_ <= 4 * model.selection_["gamma"].min()


def test_rings_have_a_narrow_kernel_and_more_axes_than_columns(rng: np.random.Generator) -> None:
    turn, radius = rng.uniform(0, 7, 500), rng.choice([1.0, 3.0], 500)
    X = radius[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    X += 0.1 * rng.normal(size=X.shape)
    model = learn(X)
    assert model.n_components_ > 5
    assert 0.3 < model.gamma_ < 3
    law = model.score_samples([[0.0, 2.0], [0.0, 0.0], [6.0, 6.0]])  # on no ring
    assert law.max() < np.median(model.score_samples(X))
    # what was tried, and what was taken
    tried = model.selection_
    chosen = (tried["gamma"] == model.gamma_) & (tried["n_components"] == model.n_components_)
    best = tried["score"].argmin()
    assert chosen.sum() == 1
    assert tried["score"][chosen][0] <= tried["score"][best] + tried["std_error"][best]


def test_the_width_does_not_depend_on_the_number_of_axes_that_are_kept(
    rng: np.random.Generator,
) -> None:
    X = clusters(4, 5, 0.4, rng)
    free, two = learn(X), learn(X, n_components=2)
    assert two.gamma_ == free.gamma_
    assert two.n_components_ == 2
    np.testing.assert_allclose(two.eigenvalues_, free.eigenvalues_[:2], rtol=1e-8)
    # and the number alone, for a width that is given
    given = learn(X, gamma=free.gamma_)
    assert given.n_components_ == free.n_components_
    assert set(given.selection_["gamma"]) == {free.gamma_}
    assert KernelPCA(2).fit(X).selection_ is None


def test_units_order_blocks_and_files_change_nothing(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    X = clusters(3, 4, 0.5, rng)
    model = learn(X)
    large = learn(1000 * X + 7)
    assert large.n_components_ == model.n_components_
    np.testing.assert_allclose(large.gamma_, model.gamma_ / 1e6, rtol=1e-6)
    turned = learn(np.column_stack([X, np.ones(len(X)), X @ [1.0, 1.0, 0.0, 0.0]])[:, :5])
    np.testing.assert_allclose(turned.gamma_, model.gamma_, rtol=1e-9)  # a constant column
    np.save(tmp_path / "rows.npy", X)
    from_file = learn(tmp_path / "rows.npy", n_jobs=2)
    assert (from_file.gamma_, from_file.n_components_) == (model.gamma_, model.n_components_)
    model.save(tmp_path / "model")
    loaded = mixfold.load(tmp_path / "model")
    assert loaded.gamma == "learn"
    for name, values in model.selection_.items():
        np.testing.assert_array_equal(loaded.selection_[name], values)
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


def test_weights_landmarks_and_repeated_rows(rng: np.random.Generator) -> None:
    X = clusters(3, 4, 0.5, rng)
    weight = rng.integers(0, 3, len(X)).astype(float)
    weighted = learn(X, landmarks=100).fit(X, sample_weight=weight)
    assert weighted.n_components_ == 2
    # rows that stand many times do not draw the kernel to themselves
    again = learn(np.vstack([X, X]))
    plain = learn(X)
    assert again.gamma_ < 3 * plain.gamma_


def test_cultivars_of_wine_are_groups_in_the_space_that_is_found() -> None:
    table = load_wine()
    X = (table.data - table.data.mean(axis=0)) / table.data.std(axis=0)
    model = learn(X)
    assert 3 <= model.n_components_ <= 8
    groups = GaussianMixture(3, covariance_type="tied", random_state=0, n_init=3).fit_predict(
        model.transform(X)[:, :3]
    )
    counts = np.array([np.bincount(table.target[groups == k], minlength=3) for k in range(3)])
    assert counts.max(axis=1).sum() >= 165  # of 178


# ------------------------------------------------ mistakes


@pytest.mark.parametrize(
    "kernel",
    ["linear", "poly", "laplacian", "cosine", pytest.param(lambda A, B: A @ B.T, id="function")],
)
@pytest.mark.parametrize("name", ["gamma", "n_components"])
def test_other_kernels_have_no_width_to_learn(
    kernel: Any, name: str, rng: np.random.Generator
) -> None:
    with pytest.raises(ValueError, match=f"{name}='learn' compares densities of rows by the RBF"):
        KernelPCA(**{name: "learn"}, kernel=kernel).fit(rng.normal(size=(30, 2)))


def test_a_kernel_matrix_has_no_width(rng: np.random.Generator) -> None:
    X = rng.normal(size=(30, 2))
    with pytest.raises(ValueError, match=r"gamma='learn' compares .* got kernel='precomputed'"):
        KernelPCA(kernel="precomputed", gamma="learn").fit(X @ X.T)


def test_rows_that_cannot_tell(rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, 3))
    with pytest.raises(ValueError, match=r"at least 20 different rows .* got 10"):
        learn(np.repeat(X[:10], 4, axis=0))
    with pytest.raises(ValueError, match="at most 2000 columns; X has 2001"):
        learn(rng.normal(size=(30, 2001)))
    with pytest.raises(ValueError, match="a kernel needs complete rows"):
        learn(np.where(np.arange(120).reshape(40, 3) == 7, np.nan, X))
    with pytest.raises(ValueError, match="'learn' holds rows out, which a stream has not seen"):
        KernelPCA(gamma="learn").partial_fit(X)


@pytest.mark.parametrize("landmarks", [None, 60])
def test_a_stream_goes_on_with_what_was_learned(landmarks: Any, rng: np.random.Generator) -> None:
    X = clusters(3, 3, 0.5, rng, 160)
    model = learn(X[:100], landmarks=landmarks)
    gamma, size = model.gamma_, model.n_components_
    model.partial_fit(X[100:])
    assert (model.gamma_, model.n_components_) == (gamma, size)
    if landmarks is None:
        whole = KernelPCA(size, gamma=gamma).fit(X)
        np.testing.assert_allclose(model.eigenvalues_, whole.eigenvalues_, rtol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [{"gamma": v} for v in (0, -1.0, "Learn")] + [{"n_components": v} for v in ("all", 0)],
    ids=str,
)
def test_settings_that_mean_nothing(settings: dict[str, Any], rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match=f"The '{next(iter(settings))}' parameter of KernelPCA"):
        KernelPCA(**settings).fit(rng.normal(size=(30, 2)))


def test_rows_with_holes_are_not_learned_from() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[::7, 1] = np.nan
    with pytest.raises(ValueError, match=r"Give gamma and n_components numbers with missing="):
        KernelPCA(2, gamma="learn", missing="expected").fit(X)
    with pytest.raises(ValueError, match=r"Fill them first, for example by mixfold\.PPCA"):
        KernelPCA(2, gamma="learn").fit(X)
    KernelPCA(2, gamma=0.5, missing="expected").fit(X)
