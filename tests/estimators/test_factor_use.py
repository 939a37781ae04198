"""Factor models in use: files, conditioning, streams, time limits, and mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score

import mixfold
from mixfold import (
    PPCA,
    DegenerateWarning,
    FactorAnalysis,
    MixtureOfFactorAnalyzers,
    MixtureOfPPCA,
    store,
)
from mixfold.contracts import Array

MIXTURES = [MixtureOfPPCA, MixtureOfFactorAnalyzers]
NAMES = list("abcdefgh")
MODELS = [
    PPCA(2),
    PPCA(0.8, center=False),
    PPCA(2, solver="em"),
    FactorAnalysis(2),
    FactorAnalysis(2, rotation="oblimin"),
    MixtureOfPPCA(2, 2, random_state=0),
    MixtureOfPPCA(2, [1, 2], tied=("noise",), random_state=0),
    MixtureOfFactorAnalyzers(2, 2, random_state=0),
    MixtureOfFactorAnalyzers(2, 1, tied=("loadings", "noise"), random_state=0),
]
models = pytest.mark.parametrize("model", MODELS, ids=lambda m: " ".join(repr(m).split()))
mixtures = pytest.mark.parametrize("mixture", MIXTURES)
single = pytest.mark.parametrize("model", [PPCA, FactorAnalysis])


@pytest.fixture
def table(rng: np.random.Generator) -> Array:
    """Two clusters of 100 rows in eight columns, with two factors each: no Heywood case."""
    plan = np.kron(np.eye(2), np.ones(4))
    W = plan * [1.0, 0.9, 1.1, 1.0, 1.0, -0.9, 1.1, -1.0] + 0.3 * rng.normal(size=(2, 2, 8))
    z, noise = rng.normal(size=(200, 2)), 0.8 * rng.normal(size=(200, 8))
    return np.asarray(np.concatenate([z[:100] @ W[0], z[100:] @ W[1] + 3 * plan[0] - 1]) + noise)


@pytest.fixture
def holes(table: Array, rng: np.random.Generator) -> Array:
    return np.where(rng.random(table.shape) < 0.2, np.nan, table)


# ------------------------------------------------ files


@models
@pytest.mark.parametrize("lacking", [False, True], ids=["complete", "missing"])
def test_saved_and_loaded_is_the_same(
    table: Array, holes: Array, tmp_path: Path, model: Any, lacking: bool
) -> None:
    frame = pd.DataFrame(holes if lacking else table, columns=NAMES)
    fitted = mixfold.load(_saved(model.fit(frame), tmp_path))
    assert type(fitted) is type(model) and fitted.get_params() == model.get_params()
    assert list(fitted.feature_names_in_) == NAMES
    for ask in ("transform", "score_samples", "reconstruct", "impute"):
        assert np.array_equal(getattr(fitted, ask)(frame), getattr(model, ask)(frame)), ask
    public = {n for n in vars(model) if n.endswith("_") and not n.startswith("_")}
    for name in public:
        assert np.array_equal(
            np.asarray(getattr(fitted, name), object), np.asarray(getattr(model, name), object)
        ), name
    assert fitted.bic() == model.bic()
    one, other = fitted.sample(5), model.sample(5)
    pairs = zip(one, other, strict=True) if isinstance(one, tuple) else [(one, other)]
    assert all(np.array_equal(a, b) for a, b in pairs)


def _saved(model: Any, folder: Path) -> Path:
    model.save(folder / "m.mixfold")
    return folder / "m.mixfold"


@models
def test_a_file_that_contradicts_itself_is_refused(
    table: Array, tmp_path: Path, model: Any
) -> None:
    model.fit(table)
    model.n_features_in_ = 5
    with pytest.raises(store.ModelFileError, match=r"m\.mixfold"):
        mixfold.load(_saved(model, tmp_path))


@models
def test_every_kind_of_table_gives_the_same_fit(
    table: Array, holes: Array, tmp_path: Path, model: Any
) -> None:
    frame = pd.DataFrame(holes, columns=NAMES)
    frame.to_parquet(tmp_path / "x.parquet")
    frame.to_csv(tmp_path / "x.csv", index=False)
    np.save(tmp_path / "x.npy", holes)
    wanted = model.fit(holes).transform(holes)
    for source in (frame, tmp_path / "x.parquet", str(tmp_path / "x.csv"), tmp_path / "x.npy"):
        np.testing.assert_allclose(model.fit(source).transform(source), wanted, atol=1e-6)
    complete = pd.DataFrame(table, columns=NAMES)
    complete.to_csv(tmp_path / "x.csv", index=False)  # how many rows is not known before
    wanted = model.fit(table).transform(table)
    got = model.fit(tmp_path / "x.csv").transform(complete)
    np.testing.assert_allclose(got, wanted, atol=1e-5)


# ------------------------------------------------ conditioning


@mixtures
@pytest.mark.parametrize("tied", [(), ("loadings",), ("loadings", "noise")])
def test_conditional_times_marginal_is_joint(
    table: Array, tmp_path: Path, mixture: type, tied: tuple[str, ...]
) -> None:
    fitted = mixture(2, 2, tied=tied, random_state=0).fit(table)
    rest = fitted.condition([1, 4], [0.5, 2.0])
    assert type(rest) is mixture and rest.loadings_.shape == (2, 6, 2)
    rows = table[:4].copy()
    rows[:, [1, 4]] = [0.5, 2.0]
    known = np.where(np.isin(np.arange(8), [1, 4]), rows, np.nan)
    others = np.delete(rows, [1, 4], axis=1)
    joint = fitted.score_samples(rows) - fitted.score_samples(known)
    np.testing.assert_allclose(rest.score_samples(others), joint, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(rest.predict_proba(others), fitted.predict_proba(rows), atol=1e-8)
    means = np.delete(fitted.reconstruct(rows), [1, 4], axis=1)
    np.testing.assert_allclose(rest.reconstruct(others), means, atol=1e-8)
    filled = np.delete(fitted.impute(known[:1]), [1, 4], axis=1)[0]
    np.testing.assert_allclose(rest.weights_ @ rest.means_, filled, atol=1e-8)
    with pytest.raises(ValueError, match="not kept: give X"):
        rest.bic()
    again = mixfold.load(_saved(rest, tmp_path))
    np.testing.assert_array_equal(again.transform(others), rest.transform(others))


@mixtures
def test_columns_are_known_by_name(table: Array, mixture: type) -> None:
    fitted = mixture(2, 2, random_state=0).fit(pd.DataFrame(table, columns=NAMES))
    rest = fitted.condition(["e", "b"], [2.0, 0.5])
    assert list(rest.feature_names_in_) == list("acdfgh")
    np.testing.assert_allclose(rest.means_, fitted.condition([1, 4], [0.5, 2.0]).means_)
    with pytest.raises(ValueError, match=r"unknown column 'z'; the columns are \['a'"):
        fitted.condition("z", 0.0)


@mixtures
def test_conditioning_on_nearly_everything(table: Array, mixture: type) -> None:
    fitted = mixture(2, 2, random_state=0).fit(table)
    rest = fitted.condition(list(range(7)), table[0, :7])
    assert rest.means_.shape == (2, 1)
    lacking = np.where(np.arange(8) < 7, table[:1], np.nan)
    expected = fitted.impute(lacking)[0, 7]
    assert float((rest.weights_ @ rest.means_)[0]) == pytest.approx(expected)
    assert np.isfinite(rest.sample(5)[0]).all()


@mixtures
def test_draws_have_the_conditional_spread(table: Array, mixture: type) -> None:
    fitted = mixture(2, 2, random_state=0).fit(table)
    rows = np.tile(np.where(np.arange(8) < 6, table[100], np.nan), (20000, 1))
    drawn = fitted.impute(rows, method="draw", random_state=1)[:, 6:]
    rest = fitted.condition(list(range(6)), table[100, :6])
    X, _ = rest.sample(20000, random_state=2)
    spread = X.std(axis=0)
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.06 * spread.max())
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(X.T), atol=0.06 * spread.max() ** 2)


@mixtures
def test_samples_are_of_the_model(table: Array, mixture: type) -> None:
    fitted = mixture(2, 2, random_state=0).fit(table)
    X, labels = fitted.sample(30000, random_state=0)
    share = np.bincount(labels) / 30000
    np.testing.assert_allclose(share, fitted.weights_, atol=6 * np.sqrt(0.25 / 30000))
    noise = np.broadcast_to(fitted.noise_variance_.reshape(2, -1), (2, 8))
    for k in range(2):
        mine = X[labels == k]
        C = fitted.loadings_[k] @ fitted.loadings_[k].T + np.diag(noise[k])
        bound = 6 / np.sqrt(len(mine))
        np.testing.assert_allclose(mine.mean(axis=0), fitted.means_[k], atol=bound * C.max() ** 0.5)
        np.testing.assert_allclose(np.cov(mine.T), C, atol=1.5 * bound * C.max())


# ------------------------------------------------ streams


@mixtures
@pytest.mark.parametrize("lacking", [False, True], ids=["complete", "missing"])
def test_a_stream_of_batches_finds_the_components(
    rng: np.random.Generator, mixture: type, lacking: bool
) -> None:
    y = rng.integers(0, 2, 3000)
    W = rng.normal(size=(2, 8, 2))
    X = np.einsum("nij,nj->ni", W[y], rng.normal(size=(3000, 2))) + 3 * y[:, None]
    X = X + 0.5 * rng.normal(size=X.shape)
    data = np.where(rng.random(X.shape) < 0.15, np.nan, X) if lacking else X
    whole, stream = mixture(2, 2, random_state=0).fit(data), mixture(2, 2, random_state=0)
    for batch in np.array_split(data, 15):
        stream.partial_fit(batch)
    assert stream.n_iter_ == 15
    assert adjusted_rand_score(y, stream.predict(X)) > 0.9
    assert stream.score(X) > whole.score(X) - 0.1
    with pytest.raises(ValueError, match="not kept: give X"):
        stream.icl()


@mixtures
def test_a_loaded_stream_goes_on(table: Array, holes: Array, tmp_path: Path, mixture: type) -> None:
    one, other = (mixture(2, 1, random_state=0) for _ in range(2))
    for stream in (one, other):
        stream.partial_fit(table[::2])
    other = mixfold.load(_saved(other, tmp_path))
    for batch in np.array_split(holes[1::2], 4):
        one.partial_fit(batch)
        other.partial_fit(batch)
    np.testing.assert_array_equal(one.means_, other.means_)
    np.testing.assert_array_equal(one.loadings_, other.loadings_)


@mixtures
def test_a_stream_keeps_its_shape(table: Array, mixture: type) -> None:
    stream = mixture(2, 1, random_state=0).partial_fit(table)
    for changed in ({"n_factors": 2}, {"n_components": 3}):
        other = mixture(2, 1, random_state=0).partial_fit(table).set_params(**changed)
        with pytest.raises(ValueError, match=r"n_components or n_factors changed.*clone"):
            other.partial_fit(table)
    with pytest.raises(ValueError, match=r"3 features.*8 features"):
        stream.partial_fit(table[:, :3])


# ------------------------------------------------ limits of time, checkpoints

FITS = [
    PPCA(2, solver="em"),
    FactorAnalysis(2),
    MixtureOfPPCA(2, 2, random_state=0, init_params="k-means++"),
    MixtureOfFactorAnalyzers(2, 2, random_state=0, init_params="k-means++"),
]
fits = pytest.mark.parametrize("model", FITS, ids=lambda m: type(m).__name__)


@fits
@pytest.mark.filterwarnings("ignore:Best performing:sklearn.exceptions.ConvergenceWarning")
def test_a_fit_out_of_time_goes_on_from_its_checkpoint(
    table: Array, tmp_path: Path, model: Any
) -> None:
    settings = {**model.get_params(), "tol": 0, "max_iter": 30}
    path = tmp_path / "fit.ckpt"
    whole = type(model)(**settings).fit(table)
    with pytest.warns(ConvergenceWarning, match="time_budget was used up"):
        short = type(model)(**settings | {"checkpoint": path, "time_budget": 1e-6}).fit(table)
    assert short.stop_reason_ == "time_budget" and not short.converged_ and path.exists()
    with pytest.raises(ValueError, match=r"another fit: noise_floor differ.*Delete the file"):
        type(model)(**settings | {"checkpoint": path, "noise_floor": 1e-3}).fit(table)
    again = type(model)(**settings | {"checkpoint": path}).fit(table)
    assert not path.exists()
    np.testing.assert_array_equal(again.loadings_, whole.loadings_)
    assert again.lower_bounds_ == whole.lower_bounds_


@pytest.mark.parametrize("model", [PPCA(2), FactorAnalysis(2)], ids=lambda m: type(m).__name__)
def test_warm_starts_go_on(holes: Array, model: Any) -> None:
    settings = {**model.get_params(), "warm_start": True, "tol": 1e-9}
    fitted = type(model)(**settings).fit(holes)
    steps, before = fitted.n_iter_, fitted.lower_bound_
    fitted.fit(holes)
    assert fitted.n_iter_ < steps and fitted.lower_bound_ >= before - 1e-9
    fitted.set_params(n_components=3).fit(holes)
    assert fitted.loadings_.shape == (8, 3) and fitted.lower_bound_ > before


# ------------------------------------------------ rows with nothing observed


@models
def test_empty_rows_have_the_latents_of_the_prior(table: Array, model: Any) -> None:
    X = np.concatenate([table, np.full((5, 8), np.nan)])
    with pytest.warns(UserWarning, match="5 of the 205 rows have no observed entry"):
        with_them = type(model)(**{**model.get_params(), "tol": 1e-9}).fit(X)
    without = type(model)(**{**model.get_params(), "tol": 1e-9}).fit(table)
    assert with_them.lower_bound_ == pytest.approx(without.lower_bound_, abs=1e-5)
    assert with_them.bic() == pytest.approx(without.bic(), abs=0.1)
    with pytest.warns(UserWarning, match="5 of the rows have no observed entry") as told:
        Z = with_them.transform(X)
    assert len(told) == 1
    np.testing.assert_allclose(Z[200:], 0.0, atol=1e-12)
    np.testing.assert_allclose(with_them.score_samples(X)[200:], 0.0, atol=1e-12)
    mean = with_them.impute(X[200:])[0]
    expected = with_them.mean_ if hasattr(with_them, "mean_") else None
    if expected is None:
        expected = with_them.weights_ @ with_them.means_
    np.testing.assert_allclose(mean, expected, rtol=1e-8)


def test_empty_rows_that_weigh(table: Array) -> None:
    X = np.concatenate([table, np.full((2, 8), np.nan)])
    weight = np.r_[np.full(200, 0.5), 3.0, 0.0]
    with pytest.warns(UserWarning, match=r"rows of weight 3 \(all rows together weigh 103\)"):
        PPCA(2).fit(X, sample_weight=weight)
    with pytest.warns(UserWarning, match="rows of weight 3 "):
        MixtureOfPPCA(2, 1, random_state=0).fit(X, sample_weight=weight)


def test_empty_rows_of_one_posterior_have_the_prior_covariance(table: Array) -> None:
    with pytest.warns(UserWarning, match="1 of the rows"):
        _, covariances = (
            PPCA(2)
            .fit(table)
            .transform(np.concatenate([table[:1], np.full((1, 8), np.nan)]), return_cov=True)
        )
    np.testing.assert_allclose(covariances[1], np.eye(2), atol=1e-12)


# ------------------------------------------------ mistakes

TOO_MANY = r"n_components=9 must be at most min\(n_samples, n_features\).*n_features = 8; lower"
BAD_SETTINGS: list[tuple[Any, str]] = [
    (PPCA(0), "'n_components' parameter of PPCA must be None or an int >= 1 .* Got 0 instead"),
    (PPCA(-1), "'n_components' parameter of PPCA .* Got -1 instead"),
    (PPCA(1.5), "'n_components' parameter of PPCA .* up to 1.0. Got 1.5 instead"),
    (PPCA("many"), "one of 'bic', 'mle', 'ard' .* Got 'many' instead"),
    (PPCA(True), "Got True instead"),
    (PPCA(9), TOO_MANY),
    (PPCA(9, solver="em"), TOO_MANY),
    (PPCA(2, solver="svd"), "'solver' parameter of PPCA must be one of 'auto'.*Got 'svd'"),
    (PPCA(2, center="yes"), "'center' parameter of PPCA must be True or False. Got 'yes'"),
    (FactorAnalysis(-1), "'n_components' parameter of FactorAnalysis .* Got -1 instead"),
    (FactorAnalysis(0.9), "'n_components' parameter of FactorAnalysis .* Got 0.9 instead"),
    (FactorAnalysis("bic"), "Got 'bic' instead"),
    (FactorAnalysis(9), TOO_MANY),
    (FactorAnalysis(2, rotation="twist"), "'rotation' .* one of 'varimax'.* Got 'twist'"),
    (FactorAnalysis(2, noise_floor=-1), "'noise_floor' .* a number >= 0. Got -1"),
]
for _mixture in MIXTURES:
    _name = _mixture.__name__
    BAD_SETTINGS += [
        (_mixture(0, 1), f"'n_components' parameter of {_name} must be an int >= 1. Got 0"),
        (_mixture(201, 1), "n_components = 201, n_samples = 200. Lower n_components"),
        (
            _mixture(2, -1),
            f"'n_factors' parameter of {_name} must be None or an int >= 0, .* Got -1",
        ),
        (_mixture(2, 1.5), "'n_factors' .* Got 1.5"),
        (_mixture(2, "two"), "'n_factors' .* Got 'two'"),
        (_mixture(2, []), r"'n_factors' .* Got \[\]"),
        (_mixture(2, [1, -2]), r"'n_factors' .* Got \[1, -2\]"),
        (_mixture(2, [1, 2, 3]), "n_factors .* one for each of the 2 components; got 3 numbers"),
        (_mixture(2, 9), "n_factors=9 must not exceed .* n_features = 8; lower n_factors"),
        (_mixture(2, [1, 9]), "n_factors=9 must not exceed"),
        (_mixture(2, 1, tied="noise"), r"'tied' .* some of \('loadings', 'noise'\). Got 'noise'"),
        (_mixture(2, 1, tied=("means",)), r"'tied' .* Got \('means',\)"),
        (_mixture(2, [1, 2], tied=("loadings",)), r"tied loadings have one number .*\(1, 2\)"),
        (_mixture(2, 1, init_params="grid"), "'init_params' .* one of 'kmeans'.* Got 'grid'"),
    ]


@pytest.mark.parametrize(("model", "message"), BAD_SETTINGS, ids=lambda v: repr(v)[:60])
def test_bad_settings_are_named(table: Array, model: Any, message: str) -> None:
    for call in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=message):
            call(table)


@models
def test_bad_data_are_named(table: Array, tmp_path: Path, model: Any) -> None:
    def refused(message: str, X: Any, **sides: Any) -> None:
        with pytest.raises(ValueError, match=message):
            model.fit(X, **sides)

    refused("0 sample.* minimum of 2", table[:0])
    refused("1 sample.* minimum of 2", table[:1])
    unseen = np.where(np.arange(8) == 2, np.nan, table)
    refused("columns without any observed entry: 2. Remove", unseen)
    frame = pd.DataFrame(unseen, columns=NAMES)
    refused("columns without any observed entry: 'c'. Remove", frame)
    refused("infinity", np.where(table == table[3, 3], np.inf, table))
    refused("X holds text, such as '1.5'.*astype", np.full((9, 2), "1.5"))
    refused("column 'b' has type .*'x'.*convert", frame.assign(b="x"))
    refused("the weight of row 4 .* is -2.0", table, sample_weight=np.where(_at(4), -2.0, 1.0))
    refused("weight is zero in every row", table, sample_weight=np.zeros(200))
    refused("weight has 3 entries, the data have 200 rows", table, sample_weight=np.ones(3))
    with pytest.raises(FileNotFoundError, match=r"nothing\.parquet"):
        model.fit(tmp_path / "nothing.parquet")
    with pytest.raises(NotFittedError, match="not fitted yet"):
        type(model)().transform(table)
    model.fit(table)
    with pytest.raises(ValueError, match=r"3 features.*8 features"):
        model.transform(table[:, :3])
    size = model.transform(table).shape[1]
    for Z, message in (
        (np.zeros((2, size + 1)), f"Z must have one column per factor, {size}; got {size + 1}"),
        (np.full((1, size), np.nan), "Z contains NaN"),
        (np.zeros(size), "2D array, got 1D"),
    ):
        with pytest.raises(ValueError, match=message):
            model.inverse_transform(Z)
    with pytest.raises(ValueError, match=r"method must be one of posterior.*; got 'median'"):
        model.reconstruct(table, "median")
    with pytest.raises(ValueError, match="method must be 'mean' or 'draw', got 'median'"):
        model.impute(table, "median")
    with pytest.raises(ValueError, match=r"'n_samples': .* int >= 1; got 0"):
        model.sample(0)


def _at(row: int) -> Array:
    return np.arange(200) == row


@single
def test_a_method_of_other_models_is_refused(table: Array, model: type) -> None:
    fitted = model(2).fit(table)
    with pytest.raises(ValueError, match=r"method must be one of posterior.*; got 'hard'"):
        fitted.reconstruct(table, "hard")
    with pytest.raises(ValueError, match=r"'posterior' or '(least-squares|weighted)', got 'hard'"):
        fitted.inverse_transform(np.zeros((1, 2)), "hard")


def test_solvers_that_need_complete_data_say_so(holes: Array) -> None:
    for solver in ("covariance", "gram", "randomized"):
        with pytest.raises(ValueError, match=rf"solver='{solver}' needs complete .* or 'em'"):
            PPCA(2, solver=solver).fit(holes)


@mixtures
def test_components_given_by_a_user_are_checked(table: Array, mixture: type) -> None:
    fitted, Z = mixture(2, 1, random_state=0).fit(table), np.zeros((3, 1))
    words = r"components must be a whole number from 0 to n_components - 1 = 1, .* 3 rows of Z"
    for components, got in (
        ([0, 1], r"int64 of shape \(2,\)"),
        ("a", r"<U1 of shape \(\)"),
        ([0.5, 1, 0], r"float64 of shape \(3,\)"),
        ([0, 1, 2], "2"),
        (-1, "-1"),
    ):
        with pytest.raises(ValueError, match=f"{words}; got {got}"):
            fitted.inverse_transform(Z, components=components)
    for labels, message in (
        (np.full(200, 2), "component_labels must lie between -1 .* row 0 has 2"),
        (["a"] * 200, "component_labels must be whole numbers"),
        (np.zeros(3, int), "3 entries"),
    ):
        with pytest.raises(ValueError, match=message):
            mixture(2, 1).fit(table, component_labels=labels)


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
@models
def test_integers_and_booleans_are_numbers(table: Array, model: Any) -> None:
    counts = pd.DataFrame((10 * table).astype(int), columns=NAMES)
    counts["a"] = table[:, 0] > 0
    flags = pd.DataFrame(table > np.median(table, axis=0), columns=NAMES)
    for data in (counts, flags, counts.to_numpy(dtype=np.int16), flags.to_numpy()):
        got, wanted = model.fit(data).transform(data), data.astype(float)
        np.testing.assert_allclose(got, model.fit(wanted).transform(wanted), atol=1e-9)


@single
def test_few_rows(table: Array, model: type) -> None:
    with pytest.raises(
        ValueError, match=r"n_components=3 .* n_samples = 2 rows of positive weight"
    ):
        model(3).fit(table[:2])
    with pytest.raises(
        ValueError, match=r"n_components=2 .* n_samples = 1 rows of positive weight"
    ):
        model(2).fit(table, sample_weight=np.where(_at(1), 1.0, 0.0))


@mixtures
def test_few_rows_for_a_mixture(table: Array, mixture: type) -> None:
    with pytest.raises(ValueError, match=r"n_factors=3 must be less than .* n_samples = 3; lower"):
        mixture(1, 3).fit(table[:3])
    with pytest.warns(DegenerateWarning, match="see events_"):
        fitted = mixture(2, 3, random_state=0).fit(table[:6])
    assert fitted.events_ and np.isfinite(fitted.score(table))


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
@models
def test_collinear_and_constant_columns(rng: np.random.Generator, model: Any) -> None:
    X = rng.normal(size=(100, 2))
    X = np.column_stack([X, X[:, 0] + X[:, 1], 2 * X[:, 0], X[:, 1], np.full(100, 3.0)])
    fitted = model.fit(X)
    assert np.isfinite(fitted.score(X)) and np.isfinite(fitted.transform(X)).all()
    assert np.isfinite(fitted.loadings_).all() and (np.asarray(fitted.noise_variance_) > 0).all()
    X[::9, 2] = np.nan
    fitted = model.fit(X)
    assert np.isfinite(fitted.score(X))
    truth = X[::9, 0] + X[::9, 1]
    assert np.sqrt(np.mean((fitted.impute(X)[::9, 2] - truth) ** 2)) < 1.2 * truth.std()


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
@models
def test_sparse_tables_with_holes(table: Array, model: Any) -> None:
    X = np.where(table < 0, 0.0, table)
    X[::5, 3] = np.nan
    np.testing.assert_allclose(
        model.fit(sparse.csr_array(X)).transform(sparse.csr_array(X)),
        model.fit(X).transform(X),
        atol=1e-5,
    )


@pytest.mark.parametrize(
    "estimator",
    [
        PPCA(2),
        PPCA(2, solver="gram"),
        PPCA(2, solver="randomized"),
        FactorAnalysis(1),
        MixtureOfPPCA(2),
        MixtureOfFactorAnalyzers(2),
    ],
    ids=repr,
)
def test_values_too_large_to_be_squared_are_told_of(estimator):
    X = np.random.default_rng(0).normal(size=(50, 5))
    X[3, 2] = 1e200
    with pytest.raises(ValueError, match="too large to be squared"):
        estimator.fit(X)
