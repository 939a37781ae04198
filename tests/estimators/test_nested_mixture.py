"""NestedMixture: the density, the cells, what a fit promises, any kind of table."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import mixfold
from mixfold import DegenerateWarning, GaussianMixture, NestedMixture, store
from mixfold.contracts import Array
from mixfold.families import GAUSSIAN


def groups(n: int = 200, seed: int = 3) -> tuple[Array, Array]:
    """Three groups far apart, of two Gaussians each that overlap a little; and who is who."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0, 0], [40, 0, 0], [0, 40, 0]])
    gaps = np.array([[0.0, 4, 2], [3, 0, 3], [4, 2, 0]])
    leaf = rng.integers(6, size=n * 3)
    X = centres[leaf // 2] + (leaf % 2)[:, None] * gaps[leaf // 2]
    shapes = np.eye(3) + 0.3 * rng.standard_normal((6, 3, 3))
    return X + np.einsum("nde,ne->nd", shapes[leaf], rng.standard_normal((len(X), 3))), leaf


@pytest.fixture(scope="module")
def fitted() -> tuple[NestedMixture, Array, Array]:
    X, leaf = groups()
    return NestedMixture(3, 2, random_state=0).fit(X), X, leaf


# ------------------------------------------------ the model


def test_the_density_is_the_sum_over_cells_and_leaves(fitted: Any) -> None:
    model, X, _ = fitted
    total = []
    for k in range(3):
        leaves = np.flatnonzero(model.leaf_cells_ == k)
        inner = [
            np.log(b) + multivariate_normal(model.means_[leaf], model.covariances_[leaf]).logpdf(X)
            for b, leaf in zip(model.subweights_[k], leaves, strict=True)
        ]
        total.append(np.log(model.weights_[k]) + logsumexp(inner, axis=0))
    joint = np.array(total).T
    log_density = logsumexp(joint, axis=1)
    np.testing.assert_allclose(model.score_samples(X), log_density, rtol=1e-9)
    assert model.lower_bound_ == pytest.approx(log_density.mean(), rel=1e-10)
    log_shares = joint - log_density[:, None]
    np.testing.assert_allclose(model.predict_log_proba(X), log_shares, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), np.exp(log_shares), atol=1e-10)
    np.testing.assert_array_equal(model.predict(X), joint.argmax(axis=1))


def test_cells_are_the_groups_and_leaves_their_parts(fitted: Any) -> None:
    model, X, leaf = fitted
    assert adjusted_rand_score(leaf // 2, model.predict(X)) == 1.0
    assert adjusted_rand_score(leaf, model.predict_leaf(X)) > 0.8
    assert model.weights_.sum() == pytest.approx(1)
    assert all(share.sum() == pytest.approx(1) for share in model.subweights_)
    np.testing.assert_allclose(
        model.leaf_weights_, np.concatenate(model.subweights_) * model.weights_[model.leaf_cells_]
    )


def test_the_cell_is_not_that_of_the_best_leaf() -> None:
    """Two leaves of 0.3 in one cell against one of 0.4: the cell of the two is more probable."""
    X, _ = groups(40)
    model = NestedMixture(2, [2, 1], random_state=0).fit(X)
    two = int(np.argmax(np.bincount(model.leaf_cells_)))
    weights = np.where(model.leaf_cells_ == two, 0.3, 0.4)
    components = model._params.components
    same = type(components)(components.frame, 0 * components.means, 0 * components.scatter + EYE)
    model._params = type(model._params)(weights, same)
    row = np.zeros((1, 3))
    assert model.predict(row)[0] == two
    assert model.leaf_cells_[model.predict_leaf(row)[0]] != two
    np.testing.assert_allclose(model.predict_proba(row)[0, two], 0.6)


EYE = np.eye(3)


def test_flatten_is_the_same_density(fitted: Any) -> None:
    model, X, _ = fitted
    flat = model.flatten()
    assert type(flat) is GaussianMixture and flat.n_components == 6
    np.testing.assert_array_equal(flat.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(flat.predict(X), model.predict_leaf(X))
    np.testing.assert_array_equal(flat.weights_, model.leaf_weights_)
    for name in ("bic", "aic"):
        assert getattr(flat, name)() == getattr(model, name)()
        assert getattr(model, name)(X) == pytest.approx(getattr(model, name)())
    # as many parameters as the tree has: K - 1 and K' - 1 in each cell make L - 1 weights
    free = (model.bic() - model.aic()) / (np.log(len(X)) - 2)
    assert free == pytest.approx(2 + 3 * 1 + 6 * (3 + 6))
    assert flat.condition(0, 1.0).means_.shape == (6, 2)


def test_draws_have_the_shares_of_the_cells(fitted: Any) -> None:
    model, X, _ = fitted
    n = 4000
    rows, cells = model.sample(n, random_state=1)
    np.testing.assert_array_equal(model.predict(rows), cells)  # the groups are far apart
    shares = np.bincount(cells, minlength=3) / n
    assert (np.abs(shares - model.weights_) < 6 * np.sqrt(0.25 / n)).all()
    error = np.sqrt(np.var(model.score_samples(rows)) / n + np.var(model.score_samples(X)) / len(X))
    assert abs(model.score(rows) - model.score(X)) < 6 * error
    again = model.sample(n, random_state=1)
    np.testing.assert_array_equal(again[0], rows)


# ------------------------------------------------ the fit


def test_the_fit_without_refinement_is_that_of_each_cell_by_hand() -> None:
    X, _ = groups()
    model = NestedMixture(3, 2, refine=False, random_state=0).fit(X)
    top = GaussianMixture(3, random_state=0).fit(X)
    labels = top.predict(X)
    total = 0.0
    for k in range(3):
        cell = GaussianMixture(2, n_init=3, random_state=0).fit(X[labels == k])
        total += (labels == k).sum() * (cell.lower_bound_ + np.log(top.weights_[k]))
    # cells are so far apart that a row owes nothing to the others
    assert model.lower_bound_ == pytest.approx(total / len(X), abs=1e-6)
    assert model.lower_bound_ == model.unrefined_bound_
    assert model.lower_bounds_ == [] and model.converged_ and model.n_iter_ > 3
    np.testing.assert_allclose(model.weights_, np.sort(top.weights_)[::-1], rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "n_layers"), [*((kind, 2) for kind in sorted(GAUSSIAN)), ("full", 3), ("tied-diag", 3)]
)
def test_refinement_only_raises_the_likelihood(kind: str, n_layers: int) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3)) + rng.integers(2, size=(200, 1))
    options: dict[str, Any] = {
        "covariance_type": kind, "n_layers": n_layers, "init_params": "k-means++", "random_state": 1
    }  # fmt: skip
    model = NestedMixture(2, 2, **options).fit(X)
    assert model.n_leaves_ == 2**n_layers and model.paths_.shape == (2**n_layers, n_layers)
    bounds = [model.unrefined_bound_, *model.lower_bounds_]
    assert (np.diff(bounds) >= -1e-9).all()
    assert bounds[-1] > bounds[0] + 1e-4, "clusters that overlap leave something to refine"
    before = NestedMixture(2, 2, refine=False, **options).fit(X)
    assert before.lower_bound_ == pytest.approx(model.unrefined_bound_, rel=1e-12)
    # and EM has nothing left to do
    flat = model.flatten().set_params(warm_start=True).fit(X)
    assert flat.lower_bound_ == pytest.approx(model.lower_bound_, abs=1e-5)


def test_one_layer_is_a_gaussian_mixture() -> None:
    X, _ = groups()
    model = NestedMixture(3, n_layers=1, random_state=0).fit(X)
    flat = GaussianMixture(3, random_state=0).fit(X)
    assert model.lower_bound_ == pytest.approx(flat.lower_bound_, abs=1e-8)
    np.testing.assert_allclose(np.sort(model.weights_), np.sort(flat.weights_), rtol=1e-5)
    assert [len(share) for share in model.subweights_] == [1, 1, 1]


def test_sizes_by_cell_go_by_weight() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(n, 2)) + 30 * k for k, n in enumerate((50, 200, 100))])
    model = NestedMixture(3, [3, 2, 1], random_state=0).fit(X)
    assert [len(share) for share in model.subweights_] == [3, 2, 1]
    np.testing.assert_allclose(model.weights_, np.array([200, 100, 50]) / 350, atol=1e-3)


def test_a_cell_has_no_more_leaves_than_distinct_rows() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    X[50:] = [[100, 100], [101, 99]] * 5
    with pytest.warns(DegenerateWarning):
        model = NestedMixture(2, 4, random_state=0).fit(X)
    assert [len(share) for share in model.subweights_] == [4, 2]
    assert "cell 1: has 2 distinct rows and so 2 components" in [e.message for e in model.events_]


def test_a_cell_without_rows_stays_as_it_is() -> None:
    """A component that is the most probable one nowhere: a broad one under a narrow one."""
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(size=(380, 1)), 1.3 * rng.normal(size=(20, 1))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(40):
            options: dict[str, Any] = {"random_state": seed, "init_params": "random"}
            top = GaussianMixture(2, max_iter=1, **options).fit(X)
            if len(np.unique(top.predict(X))) == 1:
                model = NestedMixture(2, 2, max_iter=1, **options).fit(X)
                break
        else:
            pytest.fail("no start gave a cell without rows")
    assert sorted(len(share) for share in model.subweights_) == [1, 2]
    assert any("has no rows and stays one component" in e.message for e in model.events_)
    assert np.isfinite(model.score_samples(X)).all()


def test_a_cell_that_lacks_a_column_is_not_split() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(120, 3))
    X[60:] += 50
    X[60:, 2] = np.nan
    with pytest.warns(DegenerateWarning, match="has no entry in column 2"):
        model = NestedMixture(2, 2, refine=False, random_state=0).fit(X)
    assert sorted(len(share) for share in model.subweights_) == [1, 2]
    top = GaussianMixture(2, random_state=0).fit(X)
    row = [[50, 50, np.nan]]
    whole = top.covariances_[top.predict(row)[0]]
    np.testing.assert_allclose(model.covariances_[model.predict_leaf(row)[0]], whole, rtol=1e-6)


def test_the_floor_is_that_of_the_whole_table() -> None:
    """A cell of tiny spread: its floor is not tiny too, so that cells can be compared."""
    rng = np.random.default_rng(6)
    X = np.concatenate([rng.normal(size=(80, 2)), 100 + 1e-7 * rng.normal(size=(80, 2))])
    with pytest.warns(DegenerateWarning, match="floor"):
        model = NestedMixture(2, 2, random_state=0).fit(X)
    least = min(np.linalg.eigvalsh(c / X.std(axis=0) / X.std(axis=0)[:, None])[0]
                for c in model.covariances_)  # fmt: skip
    assert least == pytest.approx(1e-6, rel=1e-3)
    assert model.lower_bound_ >= model.unrefined_bound_ - 1e-9


# ------------------------------------------------ tables


def test_weights_are_repetitions() -> None:
    X, _ = groups(60)
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[0] = 0.0
    times = rng.integers(0, 4, len(X))
    times[0] = 1
    with pytest.warns(UserWarning, match="have no observed entry") if hollow(X, times) else calm():
        weighted = NestedMixture(3, 2, random_state=0).fit(X, sample_weight=times)
        repeated = NestedMixture(3, 2, random_state=0).fit(np.repeat(X, times, axis=0))
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-9)
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, rtol=1e-6)
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-5, atol=1e-5)
    assert weighted.bic() == pytest.approx(repeated.bic(), rel=1e-9)


def hollow(X: Array, times: Array) -> bool:
    return bool((np.isnan(X).all(axis=1) & (times > 0)).any())


def calm() -> Any:
    return warnings.catch_warnings()


def test_missing_entries_cost_little() -> None:
    X, leaf = groups()
    rng = np.random.default_rng(1)
    gappy = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    gappy[np.isnan(gappy).all(axis=1), 0] = 0.0
    model = NestedMixture(3, 2, random_state=0).fit(gappy)
    cells = model.predict(X)
    assert adjusted_rand_score(leaf // 2, cells) > 0.98
    assert not np.isnan(model.impute(gappy)).any()


def test_any_blocks_files_and_names(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas", reason="needs pandas: pip install 'mixfold[tables]'")
    X, _ = groups(400)
    weight = np.random.default_rng(0).integers(1, 3, len(X)).astype(float)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "w": weight, "c": X[:, 2]})
    frame.to_csv(tmp_path / "table.csv", index=False)
    np.save(tmp_path / "rows.npy", X)
    options: dict[str, Any] = {"init_params": "k-means++", "random_state": 0}
    wanted = NestedMixture(3, 2, n_jobs=1, **options).fit(X, sample_weight=weight)
    for data, side in (
        (frame, "w"),
        (tmp_path / "table.csv", "w"),
        (tmp_path / "rows.npy", weight),
    ):
        got = NestedMixture(3, 2, n_jobs=2, **options).fit(data, sample_weight=side)
        np.testing.assert_allclose(got.means_, wanted.means_, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(got.leaf_weights_, wanted.leaf_weights_, rtol=1e-7)
        np.testing.assert_array_equal(got.predict(data), wanted.predict(X))
    assert list(NestedMixture(2).fit(frame, sample_weight="w").feature_names_in_) == list("abc")


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")  # zeros are a group
def test_sparse_rows_and_single_precision() -> None:
    X, _ = groups(100)
    X[np.abs(X) < 1] = 0
    wanted = NestedMixture(3, 2, covariance_type="diag", random_state=0).fit(X)
    got = NestedMixture(3, 2, covariance_type="diag", random_state=0).fit(sparse.csr_array(X))
    assert got.lower_bound_ == pytest.approx(wanted.lower_bound_, rel=1e-8)
    small = NestedMixture(3, 2, random_state=0).fit(X.astype(np.float32))
    assert small.means_.dtype == small.weights_.dtype == small.subweights_[0].dtype == np.float32
    assert small.predict_proba(X.astype(np.float32)).dtype == np.float32


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_cluster_gives_the_same_fit(client: Any) -> None:
    da = pytest.importorskip("dask.array", reason="needs Dask: pip install 'mixfold[dask]'")
    X, _ = groups(700)
    # cells stand one after the other: some partitions have no row of a cell
    X = X[np.argsort(X[:, 0])]
    options: dict[str, Any] = {"max_iter": 5, "init_params": "k-means++", "random_state": 0}
    wanted = NestedMixture(3, 2, **options).fit(X)
    lazy = da.from_array(X, chunks=((1, 900, 299, 900), (3,)), name=False)
    got = NestedMixture(3, 2, executor=client, **options).fit(lazy)
    np.testing.assert_allclose(got.means_, wanted.means_, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(got.predict(lazy), wanted.predict(X))


# ------------------------------------------------ files, limits, mistakes


def test_a_file_gives_the_same_estimator(fitted: Any, tmp_path: Path) -> None:
    model, X, _ = fitted
    model.save(tmp_path / "nested.mixfold")
    loaded = mixfold.load(tmp_path / "nested.mixfold")
    assert type(loaded) is NestedMixture and loaded.get_params() == model.get_params()
    for name in ("predict_proba", "predict_leaf", "score_samples"):
        np.testing.assert_array_equal(getattr(loaded, name)(X), getattr(model, name)(X))
    assert loaded.bic() == model.bic() and loaded.unrefined_bound_ == model.unrefined_bound_
    np.testing.assert_array_equal(loaded.paths_, model.paths_)
    np.testing.assert_array_equal(loaded.flatten().covariances_, model.covariances_)


@pytest.mark.parametrize(
    "paths",
    [np.zeros((6, 2), int), np.zeros((5, 2), int), np.arange(6)[::-1, None] // 2 * [1, 1]],
    ids=["cells that are missing", "a leaf that is missing", "another order"],
)
def test_a_file_whose_parts_do_not_fit_is_refused(
    fitted: Any, tmp_path: Path, paths: Array
) -> None:
    model, _, _ = fitted
    tree = {"parameters": model._plain_parameters(), "state": {**model._state(), "paths_": paths}}
    store.write(tmp_path / "bad.mixfold", "NestedMixture", tree)
    with pytest.raises(store.ModelFileError, match="no tree"):
        mixfold.load(tmp_path / "bad.mixfold")


def test_a_budget_is_for_all_of_it() -> None:
    X, _ = groups(600)
    with pytest.warns(ConvergenceWarning, match="time_budget was used up"):
        model = NestedMixture(3, 3, time_budget=1e-6, tol=0, random_state=0).fit(X)
    assert model.stop_reason_ == "time_budget" and not model.converged_
    assert model.n_leaves_ == 9 and np.isfinite(model.score(X))


def test_too_few_iterations_are_told() -> None:
    X, _ = groups()
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model = NestedMixture(3, 2, max_iter=2, tol=1e-12, random_state=0).fit(X)
    assert model.stop_reason_ == "max_iter"


def test_an_interrupt_returns_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from mixfold.models.mixtures.fixed_frame import FramedMixture

    X, _ = groups()
    calls = []
    whole = FramedMixture.expect

    def expect(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(self.n_components)
        if len(calls) == 60:
            raise KeyboardInterrupt
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(FramedMixture, "expect", expect)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = NestedMixture(3, 2, tol=0, n_jobs=1, init_params="random", random_state=0).fit(X)
    assert model.stop_reason_ == "interrupted"
    assert len(calls) < 70, "the other cells get a pass each"
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_subcomponents": 0}, r"'n_subcomponents'.*an int >= 1 or a list of ints >= 1.*Got 0"),
        ({"n_subcomponents": [2, 0]}, r"'n_subcomponents'.*one for each.*Got \[2, 0\]"),
        ({"n_subcomponents": [2, 1, 1]}, r"'n_subcomponents'.*Got 3 of them for n_components=2"),
        ({"n_layers": 0}, r"'n_layers'.*an int >= 1"),
        ({"refine": "yes"}, r"'refine'.*True or False"),
        ({"covariance_type": "round"}, r"'covariance_type'.*one of"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NestedMixture(2, **options).fit(np.zeros((10, 2)))
