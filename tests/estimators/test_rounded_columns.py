"""Tables whose columns are recorded in steps, have two values, or lie on exact lines."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mixfold import DegenerateWarning, GaussianMixture, MixtureSearch, load

KINDS = ["full", "tied", "diag", "spherical", "tied-diag", "tied-spherical"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [1.0, 0.5])
def test_no_variance_is_less_than_that_of_the_rounding(kind: str, step: float) -> None:
    X = np.round(np.random.default_rng(0).normal(size=(300, 2)) / step) * step
    model = GaussianMixture(5, covariance_type=kind, random_state=0).fit(X)
    covariances = np.asarray(model.covariances_)
    if covariances.ndim >= 2 and kind in ("full", "tied"):
        least = np.linalg.eigvalsh(covariances).min()
    else:
        least = covariances.min()
    assert least >= step**2 / (2 * np.pi) * (1 - 1e-9)
    assert not model.events_


def test_the_floor_follows_each_column() -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(0, 2, 400), rng.normal(size=400), rng.integers(0, 9, 400)])
    model = GaussianMixture(4, covariance_type="diag", random_state=0).fit(X)
    assert (model.covariances_[:, 0] >= 1 / (2 * np.pi) - 1e-12).all()
    assert (model.covariances_[:, 2] >= 1 / (2 * np.pi) - 1e-12).all()
    full = GaussianMixture(4, random_state=0).fit(X)
    floor = np.diag([1 / (2 * np.pi), 0, 1 / (2 * np.pi)])
    assert all(np.linalg.eigvalsh(one - floor).min() > -1e-9 for one in full.covariances_)


def test_a_number_means_what_it_meant() -> None:
    X = np.round(np.random.default_rng(0).normal(size=(300, 1)))
    with pytest.warns(DegenerateWarning, match="1e-06"):
        model = GaussianMixture(4, reg_covar=1e-6, random_state=0).fit(X)
    assert model.covariances_.min() == pytest.approx(1e-6 * X.var(), rel=1e-6)
    with pytest.raises(ValueError, match="'auto'"):
        GaussianMixture(reg_covar="none").fit(X)


@pytest.mark.parametrize("factor", [1e-6, 1e4])
def test_units_do_not_matter(factor: float) -> None:
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.integers(0, 2, 200), rng.normal(size=200)]) + rng.normal(size=(1, 2))
    one = GaussianMixture(3, random_state=0).fit(X)
    other = GaussianMixture(3, random_state=0).fit(X * [factor, 1])
    assert one.lower_bound_ - np.log(factor) == pytest.approx(other.lower_bound_, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_rounded_normals_are_one_group(seed: int) -> None:
    X = np.round(np.random.default_rng(seed).normal(size=(300, 2)) * 0.7)
    search = MixtureSearch(GaussianMixture(), n_components=range(1, 6), random_state=0).fit(X)
    assert search.best_params_["n_components"] == 1
    assert not search.results_["degenerate"].any()


def test_a_column_of_two_values_beside_groups() -> None:
    rng = np.random.default_rng(3)
    group = rng.integers(0, 3, 400)
    X = np.column_stack(
        [rng.normal(size=400) + 6 * group, rng.choice([0.48, 1.0], 400, p=[0.9, 0.1])]
    )
    search = MixtureSearch(GaussianMixture(), n_components=range(1, 7), random_state=0).fit(X)
    assert search.best_params_["n_components"] == 3
    assert adjusted_rand_score(group, search.predict(X)) > 0.95


def _cross(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    t = rng.normal(size=(2, 300))
    rows = np.concatenate([np.stack([t[0], t[0]]), np.stack([t[1], -t[1]])], axis=1).T
    return rows, np.repeat([0, 1], 300)


def test_rows_on_lines_are_groups() -> None:
    X, line = _cross(np.random.default_rng(4))
    with pytest.warns(DegenerateWarning, match="rows without spread"):
        search = MixtureSearch(GaussianMixture(), n_components=range(1, 5), random_state=0).fit(X)
    assert search.best_params_["n_components"] == 2
    assert adjusted_rand_score(line, search.predict(X)) > 0.95
    events = search.best_estimator_.events_
    assert {e.kind for e in events} == {"thin"} and len(events) == 2


def test_a_spike_on_a_few_rows_is_refused_with_a_word() -> None:
    X = np.random.default_rng(5).normal(size=(30, 6))  # seven rows or fewer have no volume here
    with pytest.warns(UserWarning, match="would have a better BIC .* was refused"):
        search = MixtureSearch(GaussianMixture(), n_components=[1, 5], random_state=0).fit(X)
    assert search.best_params_["n_components"] == 1
    assert any("allow_degenerate=True" in words for words in search.notes_)
    search.set_params(allow_degenerate=True)
    with pytest.warns(DegenerateWarning):
        search.fit(X)
    assert search.results_["degenerate"][search.best_index_]


def test_streams_and_files_keep_the_floor(tmp_path) -> None:
    X = np.round(np.random.default_rng(6).normal(size=(400, 2)))
    model = GaussianMixture(4, covariance_type="diag", random_state=0)
    for part in np.array_split(X, 4):
        model.partial_fit(part)
    model.save(tmp_path / "model.mixfold")
    again = load(tmp_path / "model.mixfold")
    again.partial_fit(X[:50])
    assert again.covariances_.min() >= 1 / (2 * np.pi) - 1e-12


def test_a_search_tries_kinds_of_covariance_by_default() -> None:
    rng = np.random.default_rng(7)
    stretch = np.array([[3.0, 2.9], [0, 0.4]])
    X = np.concatenate([rng.normal(size=(60, 2)) @ stretch + [0, 4 * k] for k in range(4)])
    search = MixtureSearch(n_components=range(1, 6), random_state=0).fit(X)
    assert set(search.results_["param_covariance_type"]) == {"full", "tied", "diag", "tied-diag"}
    assert search.best_params_ == {"n_components": 4, "covariance_type": "tied"}
