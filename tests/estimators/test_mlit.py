"""Mixtures under transformations as an estimator: scores, iterates, rows of any kind, files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

import mixfold
from mixfold import DegenerateWarning, MLiT
from mixfold.contracts import Array, Block, Context
from mixfold.engine.executors import resolve_executor
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.sources import open_source
from mixfold.models.mixtures.mlit.model import TransformedMixture
from mixfold.models.mixtures.mlit.rules import Orthonormal
from mixfold.models.mixtures.mlit.starts import cluster_start

MODELS = [
    MLiT(2, 2, max_iter=8, scale=3.0),
    MLiT(2, 2, "constrained", max_iter=4, scale=6.0),
    MLiT(2, 2, "orthonormal", max_iter=30, random_state=0),
]
models = pytest.mark.parametrize("model", MODELS, ids=lambda m: m.method)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def table(n: int = 240, D: int = 5, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    centres = 3 * rng.normal(size=(2, D))
    X = centres[rng.integers(2, size=n)] + rng.normal(size=(n, D)) @ rng.normal(size=(D, D)) / 2
    return np.asarray(X + 1)


def like(model: MLiT, **changes: Any) -> MLiT:
    return MLiT(**{**model.get_params(), **changes})


def parts(model: MLiT) -> list[Array]:
    return [model.weights_, model.transforms_, model.means_, model.covariances_]


def require_same(got: MLiT, wanted: MLiT, tol: float = 1e-7) -> None:
    for a, b in zip(parts(got), parts(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol * np.abs(b).max())
    assert got.n_iter_ == wanted.n_iter_
    np.testing.assert_allclose(got.lower_bounds_, wanted.lower_bounds_, rtol=1e-8)


# ------------------------------------------------ answers


@models
def test_answers_are_those_of_the_formula(model: MLiT) -> None:
    X = table()
    fit = like(model).fit(X)
    offset = np.zeros(2)
    if fit.method == "orthonormal":
        offset = np.array([-fit.ridge / 2 * np.trace(np.linalg.inv(c)) for c in fit.covariances_])
    joint = np.stack([
        np.log(fit.weights_[k]) + offset[k]
        + multivariate_normal(fit.means_[k], fit.covariances_[k]).logpdf(X @ fit.transforms_[k].T)
        for k in range(2)
    ], axis=1)  # fmt: skip
    log_f = logsumexp(joint, axis=1)
    np.testing.assert_allclose(fit.score_samples(X), log_f, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(fit.predict_proba(X), np.exp(joint - log_f[:, None]), atol=1e-8)
    np.testing.assert_array_equal(fit.predict(X), joint.argmax(axis=1))
    assert fit.score(X) == pytest.approx(log_f.mean())
    weight = np.arange(len(X))
    assert fit.score(X, sample_weight=weight) == pytest.approx(np.average(log_f, weights=weight))
    Z = fit.transform(X)
    for k in range(2):
        mine = fit.predict(X) == k
        np.testing.assert_allclose(Z[mine], X[mine] @ fit.transforms_[k].T)
    np.testing.assert_array_equal(like(model).fit_transform(X), Z)
    assert list(fit.get_feature_names_out()) == ["mlit0", "mlit1"]


def test_it_is_the_loop_of_the_source() -> None:
    """One component: E and M steps written out, from the start to the last step."""
    X, scale, ridge = table(), 2.0, 0.01
    fit = MLiT(1, 3, scale=scale, ridge=ridge, max_iter=6).fit(X)
    vectors = np.linalg.eigh(np.cov(X.T))[1][:, ::-1][:, :3]
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), range(3)])
    omega, A, a = scale * vectors.T / np.sqrt(3), X.T @ X, X.sum(axis=0)
    for t in range(7):
        fit.use_iterate(t)
        Z = X @ omega.T
        np.testing.assert_allclose(fit.transforms_[0], omega, atol=1e-7)
        np.testing.assert_allclose(fit.means_[0], Z.mean(axis=0), atol=1e-7)
        spread = np.cov(Z.T, bias=t > 0) + ridge * np.eye(3)  # of the start by N - 1
        np.testing.assert_allclose(fit.covariances_[0], spread, atol=1e-7)
        mean = Z.mean(axis=0)
        for j in range(5):
            others = sum(omega[:, i] * A[i, j] for i in range(5) if i != j)
            omega[:, j] = (mean * a[j] - others) / A[j, j]
        omega *= scale / np.linalg.norm(omega)


def test_methods_keep_what_they_promise() -> None:
    X = table()
    normal = MLiT(2, 2, scale=3.0, max_iter=5).fit(X)
    for t in range(normal.n_iterates_):
        normal.use_iterate(t)
        np.testing.assert_allclose(np.linalg.norm(normal.transforms_, axis=(1, 2)), 3.0)
    held = MLiT(2, 2, "constrained", scale=6.0, max_iter=5, tol=0.0).fit(X)
    for t in range(held.n_iterates_):
        held.use_iterate(t)
        np.testing.assert_allclose(np.abs(held.transforms_).sum(axis=1), 6 / 5)
    flat = MLiT(2, 2, "orthonormal", max_iter=100, random_state=0).fit(X)
    assert (np.diff([flat.start_score_, *flat.lower_bounds_]) > -1e-10).all()
    assert flat.converged_ and flat.n_iterates_ == 1
    for omega in flat.transforms_:
        np.testing.assert_allclose(omega @ omega.T, np.eye(2), atol=1e-10)


def test_one_orthonormal_component_has_the_axes_of_least_variance() -> None:
    X = table()
    fit = MLiT(1, 2, "orthonormal").fit(X)
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    np.testing.assert_allclose(np.abs(fit.transforms_[0] @ vectors[:, :2]), np.eye(2), atol=1e-8)
    np.testing.assert_allclose(np.diagonal(fit.covariances_[0]), values[:2] + 0.01)


def test_several_starts_of_the_orthonormal_method() -> None:
    """One start of k-means ended anywhere; those that race end where the best of six ends."""
    rng = np.random.default_rng(3)
    turns = [np.linalg.qr(rng.normal(size=(6, 6)))[0] for _ in range(3)]
    spread = np.array([3.0, 2.0, 2.0, 1.0, 0.2, 0.1])
    X = np.concatenate([rng.normal(size=(60, 6)) * spread @ turn for turn in turns])
    settings: dict[str, Any] = {"max_iter": 100, "tol": 1e-7}
    raced = [
        MLiT(3, 2, "orthonormal", random_state=seed, **settings).fit(X).lower_bound_
        for seed in range(3)
    ]
    assert min(raced) > max(_single_start(X, seed) for seed in range(6)) - 1e-4
    first, best = (
        MLiT(3, 2, "orthonormal", n_init=n, random_state=0, **settings).fit(X) for n in (1, 3)
    )
    assert best.lower_bound_ >= first.lower_bound_ == raced[0]


def _single_start(X: np.ndarray, seed: int) -> float:
    """The mean score after steps from the clusters of one draw."""
    rule, rng = Orthonormal(), np.random.default_rng(seed)
    source = open_source(X)
    pilot = draw_pilot(source, resolve_executor("threads", 1, source), 5000, seed)
    model = TransformedMixture(
        rule, 0.01, cluster_start(rule, 3, 2, 0.01, pilot, rng), X.mean(axis=0), keep=False
    )
    params = model.initialise(pilot, rng)
    for step in range(1, 101):
        stats = model.expect(model.prepare(params), Block(X), None)
        params = model.update(params, stats, Context(pilot, rng, step)).params
    return float(stats.score / len(X))


# ------------------------------------------------ iterates


def test_iterates() -> None:
    X = table()
    fit = MLiT(2, 2, max_iter=6).fit(X)
    assert fit.n_iterates_ == 7 and fit.iterate_ == 6 and fit.n_iter_ == 6
    stages = fit.staged_score_samples(X)
    assert stages.shape == (7, len(X))
    np.testing.assert_allclose(stages.mean(axis=1), [fit.start_score_, *fit.lower_bounds_])
    np.testing.assert_allclose(fit.score_samples(X), stages[6])
    for t in (0, 3):
        np.testing.assert_allclose(fit.use_iterate(t).score_samples(X), stages[t])
        assert fit.iterate_ == t
        early = MLiT(2, 2, max_iter=6, iterate=t).fit(X)
        np.testing.assert_allclose(early.score_samples(X), stages[t])
        short = MLiT(2, 2, max_iter=t).fit(X)
        np.testing.assert_allclose(short.transforms_, early.transforms_)
    assert MLiT(2, 2, max_iter=6, iterate=99).fit(X).iterate_ == 6
    with pytest.raises(ValueError, match=r"must be from 0 to 6; got 7"):
        fit.use_iterate(7)


def test_one_column_in_a_step() -> None:
    X = table()
    fit = MLiT(1, 2, "constrained", scale=5.0, columns_per_iter=1, max_iter=5, tol=0.0).fit(X)
    before = fit.use_iterate(0).transforms_[0]
    for t in range(1, 6):
        now = fit.use_iterate(t).transforms_[0]
        assert set(np.flatnonzero((now != before).any(axis=0))) <= {t - 1}
        before = now


def test_a_constrained_fit_ends_where_nothing_moves() -> None:
    fit = MLiT(1, 2, "constrained", scale=5.0, max_iter=500, tol=1e-3).fit(table())
    assert fit.converged_ and fit.n_iter_ < 500


# ------------------------------------------------ rows of any kind


class Cut:
    """The rows of a table in a given number of blocks."""

    def __init__(self, X: Array, n_blocks: int) -> None:
        source = open_source(X)
        self.n_samples, self.n_features = X.shape
        self.feature_names, self.dtype = source.feature_names, source.dtype
        [self._whole] = source.blocks(len(X))
        self._edges = np.linspace(0, len(X), n_blocks + 1).astype(int).tolist()

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        return (self._whole.part(first, last) for first, last in pairwise(self._edges))


@models
def test_blocks_and_executors_do_not_matter(model: MLiT, tmp_path: Path) -> None:
    X = table()
    wanted = like(model).fit(X)
    for n_blocks in (1, 7, 100):
        require_same(like(model).fit(Cut(X, n_blocks)), wanted)
    require_same(like(model, n_jobs=2).fit(Cut(X, 7)), wanted)
    lazy = da.from_array(X, chunks=(50, 5))
    require_same(like(model).fit(lazy), wanted)
    np.testing.assert_allclose(wanted.score_samples(lazy), wanted.score_samples(X))
    names = [f"c{j}" for j in range(5)]
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table(dict(zip(names, X.T, strict=True))), path, row_group_size=37)
    of_file = like(model).fit(path)
    require_same(of_file, wanted)
    assert list(of_file.feature_names_in_) == names
    np.testing.assert_allclose(of_file.score_samples(path), wanted.score_samples(X))


@models
def test_weights_are_repeats(model: MLiT) -> None:
    X = table(120)
    weight = np.random.default_rng(3).integers(0, 4, 120)
    weighted = like(model).fit(X, sample_weight=weight)
    repeated = like(model).fit(np.repeat(X, weight, axis=0))
    if model.method != "orthonormal":
        require_same(weighted, repeated)
    else:  # k-means draws its centres anew
        assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-4)
    one = MLiT(1, 2, "orthonormal")
    require_same(
        like(one).fit(X, sample_weight=weight), like(one).fit(np.repeat(X, weight, axis=0))
    )


@models
def test_single_precision(model: MLiT) -> None:
    X = table().astype(np.float32)
    fit, double = like(model).fit(X), like(model).fit(X.astype(float))
    assert fit.transforms_.dtype == fit.score_samples(X).dtype == fit.transform(X).dtype == "f4"
    np.testing.assert_allclose(fit.score_samples(X), double.score_samples(X), rtol=1e-3, atol=1e-3)


@models
def test_saved_and_loaded(model: MLiT, tmp_path: Path) -> None:
    X = table()
    fit = like(model).fit(X)
    if fit.n_iterates_ > 1:
        fit.use_iterate(1)
    fit.save(tmp_path / "fit.mixfold")
    again = mixfold.load(tmp_path / "fit.mixfold")
    assert again.get_params() == fit.get_params()
    assert again.iterate_ == fit.iterate_ and again.n_iterates_ == fit.n_iterates_
    np.testing.assert_array_equal(again.score_samples(X), fit.score_samples(X))
    np.testing.assert_array_equal(again.staged_score_samples(X), fit.staged_score_samples(X))
    np.testing.assert_array_equal(again.transform(X), fit.transform(X))


@models
def test_a_fit_goes_on_from_its_checkpoint(model: MLiT, tmp_path: Path) -> None:
    X, path = table(), tmp_path / "fit.ckpt"
    model = like(model, max_iter=12, tol=0.0, n_components=1)
    wanted = like(model).fit(X)
    with pytest.warns(ConvergenceWarning, match="time_budget"):
        short = like(model, checkpoint=path, time_budget=1e-6).fit(X)
    assert short.n_iter_ < wanted.n_iter_ and path.exists()
    again = like(model, checkpoint=path).fit(X)
    for a, b in zip(parts(again), parts(wanted), strict=True):
        np.testing.assert_array_equal(a, b)
    assert again.n_iterates_ == wanted.n_iterates_ and not path.exists()


# ------------------------------------------------ edges


@models
def test_missing_entries_are_refused_with_a_remedy(model: MLiT) -> None:
    X = table()
    fit = like(model).fit(X)
    X[3, 1] = np.nan
    for ask in (like(model).fit, fit.score_samples, fit.transform):
        with pytest.raises(ValueError, match=r"contains NaN: MLiT needs complete rows.*impute"):
            ask(X)


def test_more_dimensions_than_columns_are_refused() -> None:
    with pytest.raises(ValueError, match=r"n_dims=6 must be at most .* n_features = 5"):
        MLiT(1, 6).fit(table())


@models
def test_as_many_dimensions_as_columns(model: MLiT) -> None:
    fit = like(model, n_dims=5, n_components=1).fit(table())
    assert np.isfinite(fit.score_samples(table())).all()


def test_few_rows_and_constant_columns_are_told() -> None:
    X = table()
    with pytest.warns(DegenerateWarning, match=r"weight 3 cannot tell a covariance in n_dims=4"):
        MLiT(1, 4, max_iter=2).fit(X[:3])
    X[:, 2] = 7.0
    with pytest.warns(DegenerateWarning, match="some columns are constant"):
        MLiT(1, 2, init="smallest", max_iter=2).fit(X)
    with pytest.warns(DegenerateWarning, match="some columns are constant"):
        MLiT(1, 2, "orthonormal").fit(X)
    X[:, 2] = 0.0
    for method in ("normalized", "constrained", "orthonormal"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateWarning)
            fit = MLiT(2, 2, method, max_iter=5, random_state=0).fit(X)
        assert np.isfinite(fit.score_samples(X)).all()


def test_without_a_ridge_singular_rows_are_told() -> None:
    X = table()
    X[:, 2] = X[:, 1]
    with pytest.raises(ValueError, match=r"component 0 is singular .*ridge"):
        MLiT(1, 2, init="smallest", ridge=0.0).fit(X)


def test_a_component_that_is_lost_is_told_and_comes_back() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)) @ rng.normal(size=(6, 6)) + 3
    with pytest.warns(DegenerateWarning, match="component 1 was left by all rows"):
        fit = MLiT(2, 3).fit(X)
    assert [event.kind for event in fit.events_] == ["empty"]
    lost = fit.events_[0].iteration
    assert MLiT(2, 3, iterate=lost - 1).fit(X).events_ == fit.events_  # not before: no warning
    assert fit.use_iterate(lost).weights_[1] > 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "best"}, "method"), ({"scale": 0.0}, "scale"), ({"init": "middle"}, "init"),
        ({"shift": 0}, "shift"), ({"ridge": -1.0}, "ridge"), ({"iterate": -1}, "iterate"),
        ({"columns_per_iter": 0}, "columns_per_iter"), ({"n_dims": 0}, "n_dims"),
    ],
)  # fmt: skip
def test_parameters_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MLiT(**options).fit(table())


def test_the_documents_say_that_it_is_no_density() -> None:
    fit = MLiT().fit(table())
    for name in ("sample", "bic", "aic"):
        assert not hasattr(fit, name)
    assert "not a density" in str(MLiT.__doc__) and "rank one" in str(MLiT.__doc__)
