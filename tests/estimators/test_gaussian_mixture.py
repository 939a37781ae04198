"""GaussianMixture from outside: what it takes, what it answers, what it refuses."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score

import mixfold
from mixfold import DegenerateWarning, GaussianMixture
from mixfold.families import GAUSSIAN

KINDS = list(GAUSSIAN)
# entries are hidden at random: a few rows have none left, of which a fit tells
pytestmark = pytest.mark.filterwarnings("ignore:.*have no observed entry")


@pytest.fixture
def table(rng) -> np.ndarray:
    """Two clusters in three correlated columns."""
    A = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, -0.7], [0.0, 0.0, 1.0]])
    return np.concatenate([rng.normal(size=(150, 3)) @ A, rng.normal(size=(90, 3)) @ A + [5, 0, 3]])


def _holes(X: np.ndarray, rng: np.random.Generator, share: float = 0.15) -> np.ndarray:
    return np.where(rng.random(X.shape) < share, np.nan, X)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_repetitions(table, rng, kind):
    X = _holes(table, rng)
    weight = rng.integers(0, 3, len(X))
    weighted = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X, sample_weight=weight)
    repeated = GaussianMixture(2, covariance_type=kind, random_state=0).fit(
        X.repeat(weight, axis=0)
    )
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-6)
    np.testing.assert_allclose(weighted.covariances_, repeated.covariances_, rtol=1e-5, atol=1e-7)
    assert weighted.bic() == pytest.approx(repeated.bic(), rel=1e-9)
    assert weighted.score(X, sample_weight=weight) == pytest.approx(weighted.lower_bound_)


def test_known_components_are_kept(table, rng):
    labels = np.full(len(table), -1)
    labels[:20], labels[-20:] = 1, 0
    mixture = GaussianMixture(2, random_state=0).fit(table, component_labels=labels)
    assert mixture.means_[0, 0] > mixture.means_[1, 0]
    swapped = np.where(labels >= 0, 1 - labels, -1)
    other = GaussianMixture(2, random_state=0).fit(table, component_labels=swapped)
    np.testing.assert_allclose(other.means_, mixture.means_[::-1], rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_imputed_entries_are_conditional_expectations(table, rng, kind):
    X = _holes(table, rng, 0.3)
    mixture = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    filled = mixture.impute(X)
    seen = ~np.isnan(X)
    assert np.array_equal(filled[seen], X[seen])
    row = int(np.flatnonzero(seen.sum(axis=1) == 2)[0])
    known = np.flatnonzero(seen[row])
    rest = mixture.condition(known, X[row, known])
    expected = rest.weights_ @ rest.means_
    np.testing.assert_allclose(filled[row, ~seen[row]], expected, rtol=1e-8)


def test_imputed_draws_have_the_conditional_spread(table, rng):
    mixture = GaussianMixture(2, random_state=0).fit(table)
    rows = np.tile([[1.0, np.nan, np.nan]], (20000, 1))
    drawn = mixture.impute(rows, method="draw", random_state=3)[:, 1:]
    rest = mixture.condition(0, 1.0)
    mean = rest.weights_ @ rest.means_
    spread = sum(
        w * (c + np.outer(m - mean, m - mean))
        for w, m, c in zip(rest.weights_, rest.means_, rest.covariances_, strict=True)
    )
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=6 * np.sqrt(spread.max() / 20000))
    np.testing.assert_allclose(np.cov(drawn.T), spread, atol=0.15)
    again = mixture.impute(rows[:7], method="draw", random_state=3)
    assert np.array_equal(again[:, 1:], drawn[:7])


@pytest.mark.parametrize("kind", KINDS)
def test_conditional_times_marginal_is_joint(table, kind):
    mixture = GaussianMixture(2, covariance_type=kind, random_state=0).fit(table)
    rest = mixture.condition([0], [2.0])
    at = np.array([[2.0, 1.0, 0.5], [2.0, -1.0, 3.0]])
    joint = mixture.score_samples(at)
    conditional = rest.score_samples(at[:, 1:])
    marginal = mixture.score_samples(np.array([[2.0, np.nan, np.nan]]))
    np.testing.assert_allclose(joint - conditional, marginal[0], rtol=1e-9)


def test_log_probabilities_do_not_underflow(table):
    mixture = GaussianMixture(2, random_state=0).fit(table)
    far = np.array([[1e3, 1e3, 1e3]])
    logs = mixture.predict_log_proba(far)
    assert np.isfinite(logs).all() and logs.min() < -1e4
    np.testing.assert_allclose(
        np.exp(mixture.predict_log_proba(table)), mixture.predict_proba(table)
    )


def test_density_against_scipy(table):
    mixture = GaussianMixture(2, random_state=0).fit(table)
    expected = sum(
        w * multivariate_normal(m, c).pdf(table)
        for w, m, c in zip(mixture.weights_, mixture.means_, mixture.covariances_, strict=True)
    )
    np.testing.assert_allclose(mixture.score_samples(table), np.log(expected), rtol=1e-10)


def test_every_kind_of_table_gives_the_same_fit(table, rng, tmp_path):
    X = _holes(table, rng)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    arrow = pa.Table.from_pandas(frame)
    pq.write_table(arrow, tmp_path / "x.parquet", row_group_size=50)
    frame.to_csv(tmp_path / "x.csv", index=False)
    np.save(tmp_path / "x.npy", X)
    sources = [
        X, np.asfortranarray(X), frame, pl.from_pandas(frame), arrow, tmp_path / "x.parquet",
        str(tmp_path / "x.csv"), tmp_path / "x.npy", np.load(tmp_path / "x.npy", mmap_mode="r"),
    ]  # fmt: skip
    fits = [GaussianMixture(2, random_state=0).fit(source) for source in sources]
    for source, fitted in zip(sources, fits, strict=True):
        np.testing.assert_allclose(fitted.means_, fits[0].means_, rtol=1e-7)
        np.testing.assert_allclose(
            fitted.predict_proba(source), fits[0].predict_proba(X), rtol=1e-5, atol=1e-9
        )
    assert list(fits[5].feature_names_in_) == ["a", "b", "c"]


def test_columns_of_a_file_are_found_by_name(table, tmp_path):
    frame = pd.DataFrame(table, columns=["a", "b", "c"])
    mixture = GaussianMixture(2, random_state=0).fit(frame)
    frame[["c", "b", "a"]].assign(extra=1.0).to_parquet(tmp_path / "other.parquet")
    assert np.array_equal(mixture.predict(tmp_path / "other.parquet"), mixture.predict(frame))


def test_weights_by_column_name(table, rng, tmp_path):
    weight = rng.integers(1, 4, len(table)).astype(float)
    pd.DataFrame(table, columns=["a", "b", "c"]).assign(w=weight).to_parquet(tmp_path / "w.parquet")
    by_name = GaussianMixture(2, random_state=0).fit(tmp_path / "w.parquet", sample_weight="w")
    by_array = GaussianMixture(2, random_state=0).fit(table, sample_weight=weight)
    assert list(by_name.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_allclose(by_name.means_, by_array.means_, rtol=1e-7)


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_sparse_is_dense(rng, kind):
    X = np.where(rng.random((300, 6)) < 0.6, 0.0, rng.normal(3, 1, (300, 6)))
    dense = GaussianMixture(2, covariance_type=kind, reg_covar=1e-3, random_state=0)
    thin = GaussianMixture(2, covariance_type=kind, reg_covar=1e-3, random_state=0)
    dense.fit(X)
    thin.fit(sparse.csr_array(X))
    np.testing.assert_allclose(thin.means_, dense.means_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        thin.score_samples(sparse.csc_matrix(X)), dense.score_samples(X), rtol=1e-6
    )


def test_float32_stays_float32(table):
    mixture = GaussianMixture(2, random_state=0).fit(table.astype(np.float32))
    exact = GaussianMixture(2, random_state=0).fit(table)
    for name in ("means_", "covariances_", "weights_", "precisions_cholesky_"):
        assert getattr(mixture, name).dtype == np.float32
    assert mixture.predict_proba(table.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(mixture.means_, exact.means_, atol=2e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_is_the_same(table, rng, tmp_path, kind):
    X = _holes(table, rng)
    mixture = GaussianMixture(2, covariance_type=kind, random_state=0)
    mixture.fit(pd.DataFrame(X, columns=["a", "b", "c"]))
    mixture.save(tmp_path / "m.mixfold")
    loaded = mixfold.load(tmp_path / "m.mixfold")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    assert np.array_equal(loaded.predict_proba(frame), mixture.predict_proba(frame))
    assert loaded.get_params() == mixture.get_params()
    assert loaded.lower_bounds_ == mixture.lower_bounds_ and loaded.bic() == mixture.bic()
    assert np.array_equal(loaded.sample(5)[0], mixture.sample(5)[0])


def test_a_stream_of_batches_reaches_the_fit(rng):
    X = np.concatenate([rng.normal(0, 1, (6000, 2)), rng.normal(5, 1, (3000, 2))])
    rng.shuffle(X)
    whole = GaussianMixture(2, random_state=0).fit(X)
    stream = GaussianMixture(2, random_state=0)
    for batch in np.array_split(X, 40):
        stream.partial_fit(batch)
    order, other = np.argsort(whole.means_[:, 0]), np.argsort(stream.means_[:, 0])
    np.testing.assert_allclose(stream.means_[other], whole.means_[order], atol=0.15)
    np.testing.assert_allclose(stream.weights_[other], whole.weights_[order], atol=0.03)
    assert stream.score(X) > whole.score(X) - 0.01


def test_a_loaded_stream_goes_on(rng, tmp_path):
    batches = np.array_split(rng.normal(size=(900, 2)), 9)
    one, other = GaussianMixture(2, random_state=0), GaussianMixture(2, random_state=0)
    for batch in batches[:4]:
        one.partial_fit(batch)
        other.partial_fit(batch)
    other.save(tmp_path / "s.mixfold")
    other = mixfold.load(tmp_path / "s.mixfold")
    for batch in batches[4:]:
        one.partial_fit(batch)
        other.partial_fit(batch)
    assert np.array_equal(one.means_, other.means_)


def test_rows_with_nothing_observed_say_nothing(table):
    empty = np.full((10, 3), np.nan)
    with pytest.warns(UserWarning, match="10 of the 250 rows have no observed entry"):
        with_them = GaussianMixture(2, random_state=0).fit(np.concatenate([table, empty]))
    without = GaussianMixture(2, random_state=0).fit(table)
    np.testing.assert_allclose(with_them.means_, without.means_, rtol=1e-6)
    assert with_them.bic() == pytest.approx(without.bic(), rel=1e-9)
    np.testing.assert_allclose(with_them.predict_proba(empty), np.tile(with_them.weights_, (10, 1)))
    np.testing.assert_allclose(with_them.score_samples(empty), 0.0, atol=1e-12)


def test_a_constant_column_is_no_obstacle(table):
    X = np.column_stack([table, np.full(len(table), 7.0)])
    with pytest.warns(DegenerateWarning):
        mixture = GaussianMixture(2, random_state=0).fit(X)
    without = GaussianMixture(2, random_state=0).fit(table)
    assert adjusted_rand_score(mixture.predict(X), without.predict(table)) == 1


BAD = [
    (dict(n_components=0), {}, "'n_components' parameter of GaussianMixture must be an int >= 1"),
    (dict(covariance_type="round"), {}, "must be one of 'full', 'tied'"),
    (dict(tol=-1), {}, "'tol' parameter of GaussianMixture must be a number >= 0"),
    (dict(acceleration="warp"), {}, "'acceleration' parameter"),
    (dict(time_budget=0), {}, "'time_budget' parameter"),
    (dict(n_components=300), {}, "n_components = 300, n_samples = 240"),
    (dict(weights_init=[0.5, 0.6]), {}, "should be normalized, but got sum"),
    (dict(weights_init=[1.5, -0.5]), {}, r"min value -0.50000, max value 1.50000"),
    ({}, dict(sample_weight=-np.ones(240)), "weight"),
    ({}, dict(sample_weight=np.zeros(240)), "weight is zero in every row"),
    ({}, dict(sample_weight=np.ones(3)), "weight"),
    ({}, dict(component_labels=np.full(240, 2)), "between -1 .* row 0 has 2"),
    ({}, dict(component_labels=np.zeros(3, int)), "y"),
]


@pytest.mark.parametrize(("parameters", "sides", "message"), BAD, ids=lambda v: str(v)[:40])
def test_bad_parameters_are_named(table, parameters, sides, message):
    with pytest.raises(ValueError, match=message):
        GaussianMixture(**{"n_components": 2, **parameters}).fit(table, **sides)


def test_bad_data_are_named(table, tmp_path):
    with pytest.raises(ValueError, match="0 sample"):
        GaussianMixture().fit(np.empty((0, 3)))
    with pytest.raises(ValueError, match="minimum of 2"):
        GaussianMixture().fit(table[:1])
    with pytest.raises(ValueError, match="columns without any observed entry: 1"):
        GaussianMixture().fit(np.where(np.arange(3) == 1, np.nan, table))
    with pytest.raises(ValueError, match=r"row 4.*inf|inf.*row 4|infinity"):
        GaussianMixture().fit(np.where(np.arange(240)[:, None] == 4, np.inf, table))
    with pytest.raises((TypeError, ValueError), match="'name'"):
        GaussianMixture().fit(pd.DataFrame({"x": [1.0, 2.0, 3.0], "name": ["a", "b", "c"]}))
    with pytest.raises(FileNotFoundError, match=r"nothing\.parquet"):
        GaussianMixture().fit(tmp_path / "nothing.parquet")
    mixture = GaussianMixture().fit(table)
    with pytest.raises(ValueError, match=r"2 features.*3 features"):
        mixture.predict(table[:, :2])
    with pytest.raises(ValueError, match="method must be 'mean' or 'draw'"):
        mixture.impute(table, method="median")
    with pytest.raises(ValueError, match="out of range"):
        mixture.condition(3, 0.0)
    with pytest.raises(ValueError, match="at least one of the 3 columns must remain"):
        mixture.condition([0, 1, 2], [0, 0, 0])


def test_warnings_come_after_all_is_published(rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 2))
    X[0] = np.nan
    mixture = GaussianMixture(2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="no observed entry"):
            mixture.fit(X)
    assert mixture.means_.shape == (2, 2) and mixture.n_iter_ >= 1
