"""Mixture from outside: every family, every inference, tables of many kinds, mistakes."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import mixfold
from mixfold import (
    BayesianGaussianMixture,
    BernoulliMixture,
    CategoricalMixture,
    Mixture,
    MultinomialMixture,
    PoissonMixture,
)
from mixfold.contracts import Array, Block
from mixfold.estimators.mixtures import chains
from mixfold.estimators.mixtures.general_mixture import LEGAL
from mixfold.families.bayes.known_covariance import KnownCovariance
from mixfold.families.bayes.normal_gamma import BayesTiedDiagonal
from mixfold.families.bayes.normal_wishart import BayesFull
from mixfold.families.exponential import Poisson
from mixfold.families.product import product_of
from tests.families.exponential.examples import EXAMPLES, rows_of

LABELS = np.repeat([0, 1, 2], [100, 70, 40])
N = LABELS.size
unfinished = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT: dict[str, Any] = {"n_chains": 2, "n_draws": 15, "burn_in": 15}


def _reals() -> np.ndarray:
    centres = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
    return centres[LABELS] + np.random.default_rng(0).standard_normal((N, 2))


def _counts() -> np.ndarray:
    rates = np.array([[2.0, 20.0, 5.0], [15.0, 2.0, 5.0], [2.0, 5.0, 25.0]])
    return np.random.default_rng(1).poisson(rates[LABELS]).astype(float)


def _trials() -> np.ndarray:
    shares = np.array([[0.05, 0.4, 0.1], [0.3, 0.05, 0.1], [0.05, 0.1, 0.5]])
    return np.random.default_rng(1).binomial(60, shares[LABELS]).astype(float)


def _yes(columns: int = 12) -> np.ndarray:
    share = np.array([[0.1], [0.9], [0.5]]).repeat(columns, axis=1)
    share[2, ::2], share[2, 1::2] = 0.05, 0.95
    return (np.random.default_rng(2).random((N, columns)) < share[LABELS]).astype(float)


def _codes() -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.where(rng.random((N, 10)) < 0.85, LABELS[:, None], rng.integers(0, 3, (N, 10))) * 1.0


TABLES: dict[str, tuple[np.ndarray, dict[str, Any]]] = {
    "full": (_reals(), {}),
    "tied": (_reals(), {}),
    "diag": (_reals(), {}),
    "spherical": (_reals(), {}),
    "tied-diag": (_reals(), {}),
    "tied-spherical": (_reals(), {}),
    "known": (_reals(), {"covariance": 1.0}),
    "bernoulli": (_yes(), {}),
    "binomial": (_trials(), {"trials": 60}),
    "poisson": (_counts(), {}),
    "exponential": (np.random.default_rng(4).exponential(20.0 ** LABELS[:, None], (N, 6)), {}),
    "gamma": (np.random.default_rng(5).gamma(4.0, 6.0 ** LABELS[:, None], (N, 3)), {"shape": 4.0}),
    "multinomial": (_counts(), {}),
    "categorical": (_codes(), {}),
}
families = pytest.mark.parametrize("name", TABLES)
linear = pytest.mark.parametrize("name", ["bernoulli", "binomial", "poisson", "multinomial"])


def _mixture(name: Any, n_components: int = 3, **other: Any) -> Mixture:
    options = (TABLES[name][1] or None) if isinstance(name, str) else None
    return Mixture(name, n_components, family_options=options, random_state=0, **other)


# ------------------------------------------------ every family


@unfinished
@families
@pytest.mark.parametrize("inference", LEGAL)
def test_clusters_are_found(name: str, inference: str) -> None:
    X = TABLES[name][0]
    if inference == "collapsed" and name.startswith("tied"):
        with pytest.raises(ValueError, match=r"tied|share"):
            _mixture(name, inference=inference, **SHORT).fit(X)
        return
    more = {} if inference in ("em", "vb") else SHORT
    fitted = _mixture(name, 6 if inference == "vb" else 3, inference=inference, **more).fit(X)
    assert adjusted_rand_score(LABELS, fitted.predict(X)) > 0.85
    assert fitted.weights_.sum() == pytest.approx(1)
    if inference == "vb":
        assert fitted.effective_components_ == 3
        assert (np.diff(fitted.weights_) <= 1e-12).all()
        assert (np.diff(fitted.lower_bounds_) >= -1e-9).all()
    np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1, rtol=1e-10)
    assert np.isfinite(fitted.score_samples(X)).all()
    rows, labels = fitted.sample(300)
    assert rows.shape == (300, X.shape[1])
    assert np.mean(fitted.predict(rows) == labels) > 0.8
    assert np.isfinite(fitted.bic(X))


@unfinished
@pytest.mark.parametrize("inference", LEGAL)
def test_every_legal_pair_is_taken_and_every_other_refused(inference: str) -> None:
    X = _counts()
    for weights in ("ml", "fixed", "dirichlet", "stick-breaking"):
        given: Any = [0.5, 0.3, 0.2] if weights == "fixed" else weights
        mixture = _mixture("poisson", weights=given, inference=inference, max_iter=30, **SHORT)
        if weights in LEGAL[inference]:
            mixture.fit(X)
            if weights == "fixed" and inference != "gibbs":
                np.testing.assert_allclose(mixture.weights_, [0.5, 0.3, 0.2])
        else:
            with pytest.raises(ValueError, match=f"inference='{inference}' goes with weights"):
                mixture.fit(X)


@pytest.mark.parametrize("weights", ["dirichlet", "stick-breaking"])
def test_alpha_controls_the_number_of_components(weights: str) -> None:
    X = _reals()
    options = {"weights": weights, "inference": "vb", "merge_split": False}
    used = [
        _mixture("diag", 30, alpha=alpha, **options).fit(X).effective_components_
        for alpha in (1e-3, 300.0)
    ]
    if weights == "dirichlet":
        assert used[0] < 8 and used[1] > used[0] + 8, used
    learned = _mixture("diag", 30, alpha="learn", **options).fit(X)
    assert 0 < learned.alpha_ < 30 and learned.alpha_ != 1.0


def test_more_components_than_rows() -> None:
    X = _counts()[::30]
    assert _mixture("poisson", 20, inference="vb").fit(X).weights_.shape == (20,)
    with pytest.raises(ValueError, match="n_samples >= n_components"):
        _mixture("poisson", 20).fit(X)


# ------------------------------------------------ presets


@pytest.mark.parametrize(
    ("preset", "name"),
    [
        (BernoulliMixture, "bernoulli"),
        (PoissonMixture, "poisson"),
        (MultinomialMixture, "multinomial"),
        (CategoricalMixture, "categorical"),
    ],
)
def test_presets_are_mixtures_of_their_family(preset: Any, name: str, tmp_path: Path) -> None:
    X = TABLES[name][0]
    wanted = Mixture(name, 3, random_state=0).fit(X)
    got = preset(3, random_state=0).fit(X)
    np.testing.assert_array_equal(got.predict_proba(X), wanted.predict_proba(X))
    assert "family" not in got.get_params()
    got.save(tmp_path / "model.mixfold")
    back = mixfold.load(tmp_path / "model.mixfold")
    assert type(back) is preset
    np.testing.assert_array_equal(back.score_samples(X), got.score_samples(X))


# ------------------------------------------------ columns of many kinds


def _people(missing: float = 0.1) -> pd.DataFrame:
    X = np.column_stack([_reals(), _counts()[:, 0], _yes(1), _codes()[:, 0]])
    X[np.random.default_rng(6).random(X.shape) < missing] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 0.0
    return pd.DataFrame(X, columns=["height", "weight", "visits", "smokes", "region"])


KINDS = {
    "full": ["weight", "height"],
    "poisson": "visits",
    "bernoulli": ["smokes"],
    "categorical": ["region"],
}


@unfinished
@pytest.mark.parametrize("inference", ["em", "vb", "gibbs"])
def test_columns_by_name(inference: str, tmp_path: Path) -> None:
    frame = _people()
    more = SHORT if inference == "gibbs" else {}
    fitted = Mixture(KINDS, 3, inference=inference, random_state=0, **more).fit(frame)
    assert adjusted_rand_score(LABELS, fitted.predict(frame)) > 0.9
    filled = fitted.impute(frame)
    assert not np.isnan(np.asarray(filled)).any()
    region = np.asarray(filled)[:, 4]
    assert set(np.unique(region)) <= {0.0, 1.0, 2.0}
    # another order of the columns is the same table
    turned = frame[frame.columns[::-1]]
    if inference != "gibbs":
        np.testing.assert_array_equal(fitted.predict(turned[frame.columns]), fitted.predict(frame))
    fitted.save(tmp_path / "m.mixfold")
    back = mixfold.load(tmp_path / "m.mixfold")
    np.testing.assert_array_equal(back.predict_proba(frame), fitted.predict_proba(frame))
    assert back.get_params()["family"] == KINDS


def test_columns_by_position_are_the_same() -> None:
    frame = _people()
    by_name = Mixture(KINDS, 3, inference="vb", random_state=0).fit(frame)
    places = {"full": [1, 0], "poisson": [2], "bernoulli": 3, "categorical": [4]}
    by_place = Mixture(places, 3, inference="vb", random_state=0).fit(frame.to_numpy())
    np.testing.assert_array_equal(
        by_name.predict_proba(frame), by_place.predict_proba(frame.to_numpy())
    )


# ------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"family": "poison"}, ValueError, "no family 'poison'; choose one of: full"),
        ({"family": 3}, TypeError, "family must be a name"),
        ({"family": {"full": [0, 1]}}, ValueError, "column 2 has no family"),
        ({"family": {"full": [0, 1], "diag": [1, 2]}}, ValueError, "column 1 has several"),
        ({"family": {"full": [0, 1, 7]}}, ValueError, "for column 7; there are 3 columns"),
        ({"family": {"full": ["a"]}}, ValueError, "'a', but the data have no names"),
        (
            {"family_options": {"trials": 3}},
            ValueError,
            "'poisson' has no setting 'trials'; it has",
        ),
        ({"prior": 3.0}, TypeError, "prior must be None, 'default' or a dict, got 3.0"),
        ({"prior": {"a": -1.0}}, ValueError, "a.* positive"),
        ({"weights": "sticks"}, ValueError, "goes with weights 'ml'.*got 'sticks'"),
        ({"weights": [0.5, 0.5]}, ValueError, "fixed for 2 components"),
        ({"weights": [0.5, 0.6, 0.2]}, ValueError, "sum to one"),
        ({"alpha": 0.0}, ValueError, "alpha"),
        ({"alpha": "auto"}, ValueError, "alpha"),
        ({"batch_size": 50}, ValueError, "batch_size is for inference 'vb' and for MAP"),
        ({"learn_prior": True}, ValueError, "learn_prior .*needs inference='vb'"),
        ({"inference": "mcmc"}, ValueError, "inference"),
    ],
    ids=str,
)
def test_mistakes(options: dict[str, Any], error: type[Exception], message: str) -> None:
    settings = {"family": "poisson", "n_components": 3, **options}
    with pytest.raises(error, match=message):
        Mixture(**settings).fit(_counts())


def test_unknown_names_and_unused_settings() -> None:
    frame = _people(0.0)
    with pytest.raises(ValueError, match=r"column 'age'; the columns are \['height'"):
        Mixture({**KINDS, "poisson": ["age"]}, 3).fit(frame)
    with pytest.raises(
        ValueError, match=r"family_options names 'gamma', which the family does not"
    ):
        Mixture(KINDS, 3, family_options={"gamma": {"shape": 2.0}}).fit(frame)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("poisson", 1.5, "column 'b' must hold counts.*row 150 has 1.5"),
        ("bernoulli", 2.0, "column 'b' must hold 0 and 1.*row 150 has 2"),
        ("exponential", -1.0, "column 'b' must.*row 150 has -1"),
        ("categorical", -2.0, "column 'b' must.*row 150 has -2"),
    ],
)
def test_entries_outside_the_support_are_named(name: str, value: float, message: str) -> None:
    X = np.ones((N, 2))
    X[::2] = 0.0 if name in ("bernoulli", "categorical") else 3.0
    X[150, 1] = value
    with pytest.raises(ValueError, match=message):
        Mixture(name, 2).fit(pd.DataFrame(X, columns=["a", "b"]))


@unfinished
def test_samplers_refuse_what_they_cannot_take() -> None:
    X = _counts()
    with pytest.raises(ValueError, match=r"sample_weight must be 0 or 1, row 2 has 0\.5"):
        _mixture("poisson", inference="gibbs", **SHORT).fit(
            X, sample_weight=np.where(np.arange(N) == 2, 0.5, 1.0)
        )
    with pytest.raises(ValueError, match="cannot learn from a stream"):
        _mixture("poisson", inference="gibbs", **SHORT).partial_fit(X)
    with pytest.raises(ValueError, match="draws no partitions; use 'gibbs' or 'collapsed'"):
        _mixture("poisson").fit(X).posterior_similarity()


# ------------------------------------------------ sampling fits


@unfinished
@pytest.mark.parametrize("inference", ["gibbs", "collapsed"])
def test_what_chains_leave_behind(inference: str, tmp_path: Path) -> None:
    X = _counts()
    fitted = _mixture("poisson", inference=inference, **SHORT).fit(X)
    assert adjusted_rand_score(LABELS, fitted.labels_) > 0.9
    sizes = np.bincount(fitted.labels_)
    assert (np.diff(sizes) <= 0).all() and fitted.n_clusters_ == len(sizes)
    similarity = fitted.posterior_similarity()
    assert similarity.shape == (N, N) and (np.diagonal(similarity) == 1).all()
    assert similarity[LABELS == 0][:, LABELS == 1].mean() < 0.1
    for name, draws in fitted.traces_.items():
        assert draws.shape == (2, 15) and name in fitted.diagnostics_
    fitted.save(tmp_path / "m.mixfold")
    back = mixfold.load(tmp_path / "m.mixfold")
    assert back.get_params() == fitted.get_params()
    np.testing.assert_array_equal(back.labels_, fitted.labels_)
    np.testing.assert_array_equal(back.posterior_similarity(), similarity)
    assert back.diagnostics_ == fitted.diagnostics_
    for ask in ("predict_proba", "score_samples"):
        np.testing.assert_array_equal(getattr(back, ask)(X), getattr(fitted, ask)(X))
    again = _mixture("poisson", inference=inference, n_jobs=1, **SHORT).fit(X)
    np.testing.assert_array_equal(again.labels_, fitted.labels_)


@unfinished
@pytest.mark.parametrize("inference", ["gibbs", "collapsed"])
def test_chains_keep_known_components_and_their_numbers(inference: str, tmp_path: Path) -> None:
    X = _counts()
    known = np.where(np.arange(N) % 4 == 0, 2 - LABELS, -1)
    fitted = _mixture("poisson", 3, inference=inference, **SHORT).fit(X, component_labels=known)
    np.testing.assert_array_equal(fitted.labels_[known >= 0], known[known >= 0])
    assert np.mean(fitted.predict(X) == 2 - LABELS) > 0.95
    # a component that was skipped by the labels is there, and may be empty
    apart = np.where(known == 1, 4, -1)
    fitted = _mixture("poisson", 5, inference=inference, **SHORT).fit(X, component_labels=apart)
    assert (fitted.labels_[apart == 4] == 4).all()
    assert fitted.n_clusters_ == len(set(fitted.labels_))
    fitted.save(tmp_path / "m.mixfold")
    back = mixfold.load(tmp_path / "m.mixfold")
    np.testing.assert_array_equal(back.predict(X), fitted.predict(X))


def test_chains_that_have_not_mixed_are_told() -> None:
    with pytest.warns(ConvergenceWarning, match=r"have not mixed: .*R-hat.*Raise burn_in"):
        fitted = _mixture("poisson", inference="gibbs", n_chains=2, n_draws=4, burn_in=0).fit(
            _counts()
        )
    assert not fitted.converged_


@unfinished
def test_ctrl_c_in_a_later_chain_keeps_the_earlier_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    mixture = _mixture("poisson", inference="gibbs", **SHORT)
    whole = chains.sample_chain

    def interrupted(task: Any, start: Any, sweeps: Any, number: int, *more: Any) -> Any:
        if number == 1:
            raise KeyboardInterrupt
        return whole(task, start, sweeps, number, *more)

    monkeypatch.setattr(chains, "sample_chain", interrupted)
    try:
        mixture.fit(_counts())
    except KeyboardInterrupt:
        pytest.fail("Ctrl-C lost the first chain")
    assert mixture.stop_reason_ == "interrupted"
    assert mixture.traces_["log_joint"].shape == (1, 15)


@unfinished
def test_time_budget_of_chains() -> None:
    fitted = _mixture(
        "poisson", inference="gibbs", n_chains=2, n_draws=100_000, burn_in=3, time_budget=0.4
    ).fit(_counts())
    assert fitted.stop_reason_ == "time_budget" and len(fitted.labels_) == N
    hasty = _mixture("poisson", inference="gibbs", n_chains=2, time_budget=1e-9).fit(_counts())
    assert hasty.stop_reason_ == "time_budget" and hasty.n_iter_ == 1 and not hasty.converged_


# ------------------------------------------------ sides, streams, going on


@unfinished
@families
@pytest.mark.parametrize("inference", ["em", "vb"])
def test_weights_and_known_components(name: str, inference: str) -> None:
    X = TABLES[name][0]
    weight = np.arange(N) % 3.0
    options = {"inference": inference, "max_iter": 15, "tol": 0, "merge_split": False}
    one = _mixture(name, **options).fit(X, sample_weight=weight)
    two = _mixture(name, **options).fit(X.repeat(weight.astype(int), axis=0))
    assert one.lower_bound_ == pytest.approx(two.lower_bound_, rel=1e-8)
    known = np.where(np.arange(N) % 5 == 0, 2 - LABELS, -1)
    fitted = _mixture(name, inference=inference, merge_split=True).fit(X, component_labels=known)
    assert np.mean(fitted.predict(X) == 2 - LABELS) > 0.9


@unfinished
@pytest.mark.parametrize("name", ["poisson", "diag", "categorical"])
@pytest.mark.parametrize("total", [None, N * 3.0], ids=["seen", "population"])
def test_streams(name: str, total: float | None) -> None:
    X = TABLES[name][0]
    rng = np.random.default_rng(0)
    stream = _mixture(name, 5, inference="vb", total_weight=total)
    for _ in range(3):
        stream.partial_fit(X[rng.permutation(N)])
    assert stream.counts_.sum() == pytest.approx(3 * N)
    assert adjusted_rand_score(LABELS, stream.predict(X)) > 0.9


def test_one_batch_is_batch_vb() -> None:
    X = _counts()
    options = {"inference": "vb", "merge_split": False, "warm_start": True, "tol": 0.0}
    with pytest.warns(ConvergenceWarning):
        wanted = _mixture("poisson", 5, max_iter=21, **options).fit(X)
    got = _mixture("poisson", 5, total_weight=float(N), **options).partial_fit(X)
    np.testing.assert_allclose(got.rates_, wanted.rates_, rtol=1e-9)
    np.testing.assert_allclose(got.weights_, wanted.weights_, rtol=1e-9)


@unfinished
def test_warm_start_and_checkpoint(tmp_path: Path) -> None:
    X = _counts()
    mixture = _mixture("poisson", 6, inference="vb", warm_start=True, max_iter=5)
    first = mixture.fit(X).evidence_bound_
    assert mixture.fit(X).evidence_bound_ >= first
    path = tmp_path / "fit.mixfold"
    options = {"inference": "vb", "tol": 1e-10, "checkpoint": path}
    cut = _mixture("poisson", 6, time_budget=1e-6, **options).fit(X)
    assert cut.stop_reason_ == "time_budget" and path.exists()
    done = _mixture("poisson", 6, **options).fit(X)
    wanted = _mixture("poisson", 6, inference="vb", tol=1e-10).fit(X)
    assert done.evidence_bound_ == pytest.approx(wanted.evidence_bound_, rel=1e-8)
    assert not path.exists()


def test_a_family_may_be_an_object() -> None:
    X = _counts()
    got = Mixture(Poisson(a=2.0, b=0.5), 3, prior="default", random_state=0).fit(X)
    wanted = Mixture("poisson", 3, prior={"a": 2.0, "b": 0.5}, random_state=0).fit(X)
    np.testing.assert_allclose(got.rates_, wanted.rates_, rtol=1e-9)


# ------------------------------------------------ sparse rows, clusters


@linear
@pytest.mark.parametrize("inference", ["em", "vb"])
def test_sparse_rows_are_dense_rows(name: str, inference: str) -> None:
    X = TABLES[name][0]
    dense = _mixture(name, inference=inference).fit(X)
    thin = _mixture(name, inference=inference).fit(sparse.csr_array(X))
    assert thin.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-6)
    np.testing.assert_allclose(
        dense.score_samples(sparse.csr_array(X)), dense.score_samples(X), rtol=1e-8
    )


@unfinished
@pytest.mark.parametrize("name", ["poisson", "multinomial"])
def test_wide_sparse_rows_are_never_made_dense(name: str) -> None:
    """2000 x 200 000 entries would take 3.2 GB; a block of 1000 such rows 1.6 GB."""
    rng = np.random.default_rng(0)
    n, D, filled = 2000, 200_000, 20
    rows = np.repeat(np.arange(n), filled)
    half = np.where(rows % 2 == 0, 0, D // 2)
    X = sparse.csr_array(
        (np.ones(n * filled), (rows, half + rng.integers(0, 400, n * filled))), shape=(n, D)
    )
    X.data[:] = 1.0
    X.sum_duplicates()
    X.data[:] = 1.0
    tracemalloc.start()
    fitted = Mixture(name, 2, max_iter=5, init_params="random_from_data", random_state=0).fit(X)
    labels = fitted.predict(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**9
    assert adjusted_rand_score(np.arange(n) % 2, labels) > 0.9


@unfinished
def test_a_cluster_gives_the_same_fit(client: Any) -> None:
    X = _people().to_numpy(copy=True)
    X[np.isnan(X[:, :2]).all(axis=1), 0] = 1.0
    places = {"full": [1, 0], "poisson": [2], "bernoulli": 3, "categorical": [4]}
    lazy = da.from_array(X, chunks=((1, 100, 109), (5,)), name=False)
    for more in ({"inference": "vb"}, {"inference": "gibbs", **SHORT, "n_draws": 3, "burn_in": 2}):
        options = {"random_state": 0, "max_iter": 6, "merge_split": False, **more}
        wanted = Mixture(places, 3, **options).fit(X)
        there = Mixture(places, 3, executor=client, **options).fit(lazy)
        np.testing.assert_allclose(
            there.predict_proba(lazy), wanted.predict_proba(X), rtol=1e-7, atol=1e-12
        )
        if more["inference"] == "gibbs":
            np.testing.assert_array_equal(there.labels_, wanted.labels_)
    # and the drop-in of scikit-learn's
    wanted, there = (
        BayesianGaussianMixture(3, max_iter=4, random_state=0, executor=where).fit(rows[:, :2])
        for where, rows in (("threads", X), (client, lazy))
    )
    np.testing.assert_allclose(there.means_, wanted.means_, rtol=1e-8)
    assert there.evidence_bound_ == pytest.approx(wanted.evidence_bound_, rel=1e-10)


@pytest.mark.parametrize("inference", ["em", "vb", "gibbs"])
@unfinished
def test_entries_without_meaning_are_refused_after_the_fit(inference: str) -> None:
    frame = pd.DataFrame({"visits": _counts()[:, 0], "plays": _yes()[:, 0], "code": _codes()[:, 0]})
    kinds = {"poisson": ["visits"], "bernoulli": ["plays"], "categorical": ["code"]}
    options = SHORT if inference == "gibbs" else {}
    fitted = _mixture(kinds, 2, inference=inference, **options).fit(frame)
    bad = {"visits": (1.5, "whole numbers"), "plays": (2.0, "0 and 1"), "code": (7.0, "codes")}
    for column, (value, words) in bad.items():
        wrong = frame.copy()
        wrong.loc[3, column] = value
        for ask in (fitted.predict, fitted.predict_proba, fitted.score_samples, fitted.impute):
            with pytest.raises(ValueError, match=rf"'{column}' .*{words}.*row 3 has {value:g}"):
                ask(wrong)


@pytest.mark.parametrize("inference", ["em", "vb"])
def test_entries_without_meaning_are_refused_in_a_stream(inference: str) -> None:
    stream = _mixture("poisson", 2, inference=inference).partial_fit(_counts())
    before = stream.rates_.copy()
    with pytest.raises(ValueError, match=r"column 0 must hold counts.*row 0 has -1\."):
        stream.partial_fit(np.full((3, 3), -1.0))
    np.testing.assert_array_equal(stream.rates_, before)


@pytest.mark.parametrize("inference", ["em", "vb"])
def test_parameters_of_several_families_by_name(inference: str, tmp_path: Path) -> None:
    X = np.column_stack([_reals(), _counts()[:, 0], _codes()[:, :2]])
    kinds = {"poisson": [2], "full": range(2), "categorical": [3, 4]}
    fitted = _mixture(kinds, 3, inference=inference).fit(X)
    found = fitted.parameters_
    assert set(found) == set(kinds)
    np.testing.assert_allclose(found["full"]["means"], fitted.means_[:, :2])
    np.testing.assert_array_equal(found["full"]["covariances"], fitted.covariances_)
    np.testing.assert_allclose(found["poisson"]["rates"], fitted.means_[:, [2]])
    assert [p.shape for p in found["categorical"]["probabilities"]] == [(3, 3)] * 2
    fitted.save(tmp_path / "m.mixfold")  # a range of columns is written as a list
    back = mixfold.load(tmp_path / "m.mixfold")
    np.testing.assert_array_equal(back.parameters_["poisson"]["rates"], found["poisson"]["rates"])
    np.testing.assert_array_equal(back.predict_proba(X), fitted.predict_proba(X))
    given = fitted.condition([2], [3.0])
    assert set(given.parameters_) == {"full", "categorical"}


@pytest.mark.parametrize("name", [*EXAMPLES, "full", "known", "tied-diag", "product"])
def test_objects_of_families_are_data_of_a_file(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rows_of(EXAMPLES[name], 60, 3, rng) if name in EXAMPLES else rng.normal(size=(60, 3))
    made: dict[str, Any] = {
        "full": BayesFull(precision=0.5),
        "known": KnownCovariance(covariance=[1.0, 2.0, 0.5]),
        "tied-diag": BayesTiedDiagonal(),
        "product": product_of([(BayesFull(), [0, 2]), ("diag", [1])]),
    }
    family = EXAMPLES[name].plain if name in EXAMPLES else made[name]
    inference = "vb" if "expected" in family.readings else "em"
    fitted = _mixture(family, 2, inference=inference).fit(X)
    fitted.save(tmp_path / "m.mixfold")
    back = mixfold.load(tmp_path / "m.mixfold")
    assert repr(back.family) == repr(family) and type(back.family) is type(family)
    np.testing.assert_array_equal(back.score_samples(X), fitted.score_samples(X))
    if not family.takes_missing:
        return
    whole, alone = X[:1], np.where(np.arange(3) == 1, X[:1], np.nan)
    point = _mixture(family, 2).fit(X)  # conditionals are those of the point estimate
    given = point.condition([1], X[0, [1]])
    wanted = point.score_samples(whole) - point.score_samples(alone)
    np.testing.assert_allclose(given.score_samples(X[:1, [0, 2]]), wanted, rtol=1e-8)


@unfinished
def test_a_class_that_files_do_not_know_is_named(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Mine(Poisson):
        pass

    fitted = _mixture(Mine(), 2).fit(_counts())
    with pytest.raises(TypeError, match=r"the class Mine, which files do not know. Decorate"):
        fitted.save(tmp_path / "m.mixfold")
    assert not (tmp_path / "m.mixfold").exists()
    # the sampler is that of its law: of a class that is derived from another one as well
    chains_of_mine = _mixture(Mine(), 2, inference="collapsed", **SHORT).fit(_counts())
    same = _mixture(Poisson(), 2, inference="collapsed", **SHORT).fit(_counts())
    np.testing.assert_array_equal(chains_of_mine.labels_, same.labels_)


@unfinished
def test_a_refit_of_another_kind_leaves_nothing_of_the_first() -> None:
    mixture = _mixture("full", 3, inference="gibbs", **SHORT).fit(_reals())
    mixture.set_params(family="poisson", inference="vb").fit(_counts())
    assert not {"labels_", "traces_", "covariances_", "_label_draws"} & set(vars(mixture))
    mixture.set_params(inference="em").fit(_counts())
    assert not {"evidence_bound_", "alpha_", "active_", "counts_"} & set(vars(mixture))
    mixture.set_params(family="full", inference="gibbs").fit(_reals())
    assert not {"rates_", "evidence_bound_", "n_passes_"} & set(vars(mixture))


def test_settings_that_changed_after_the_fit_are_told() -> None:
    mixture = _mixture("poisson", 2, inference="vb").fit(_counts())
    mixture.set_params(inference="em")
    for ask in (mixture.predict, mixture.score_samples, mixture.impute, mixture.score):
        with pytest.raises(ValueError, match=r"was fitted with other settings .*; fit it again"):
            ask(_counts())


@unfinished
def test_rows_without_weight_do_not_dilute_the_objective_of_chains() -> None:
    X, weight = _counts(), np.repeat([1.0, 0.0], [150, N - 150])
    options = {"inference": "gibbs", **SHORT}
    weighed = _mixture("poisson", 3, **options).fit(X, sample_weight=weight)
    alone = _mixture("poisson", 3, **options).fit(X[:150])
    assert weighed.lower_bound_ == pytest.approx(alone.lower_bound_, rel=0.02)


def test_chains_tell_of_a_time_budget() -> None:
    with pytest.warns(ConvergenceWarning) as told:
        cut = _mixture("poisson", 2, inference="gibbs", time_budget=1e-6).fit(_counts())
    assert cut.stop_reason_ == "time_budget"
    assert any("time_budget was used up after" in str(w.message) for w in told)


def test_only_variational_fits_have_a_bound_of_the_evidence() -> None:
    assert not hasattr(_mixture("full", 2, prior="default").fit(_reals()), "evidence_bound_")
    assert _mixture("full", 2, inference="vb").fit(_reals()).evidence_bound_ < 0


# sticks that stand in another order are another maximum
@pytest.mark.parametrize(("weights", "rel"), [("dirichlet", 1e-6), ("stick-breaking", 5e-3)])
def test_a_warm_start_goes_on_under_the_settings_of_now(weights: str, rel: float) -> None:
    X = _reals()
    new = {"alpha": 3.0, "prior": {"precision": 5.0}}
    options = {"weights": weights, "inference": "vb", "tol": 1e-9, "init_params": "kmeans"}
    warm = _mixture("full", 3, warm_start=True, **options).fit(X)
    other = warm.evidence_bound_
    warm.set_params(**new).fit(X)
    wanted = _mixture("full", 3, **options, **new).fit(X)
    assert warm.alpha_ == 3.0
    assert warm._params.prior.precision == wanted._params.prior.precision == 5.0
    assert warm.evidence_bound_ == pytest.approx(wanted.evidence_bound_, rel=rel)
    assert abs(warm.evidence_bound_ - other) > 1


@pytest.mark.parametrize("inference", ["em", "vb"])
def test_a_warm_start_of_another_kind_is_a_new_one(inference: str) -> None:
    X = _counts()
    warm = _mixture("poisson", 3, inference=inference, warm_start=True).fit(X)
    for family in ("diag", "poisson", "multinomial"):
        again = warm.set_params(family=family).fit(X)
        assert adjusted_rand_score(LABELS, again.predict(X)) > 0.9
    codes = _mixture("categorical", 3, inference=inference, warm_start=True).fit(_codes())
    more = np.where(_codes() == 2, 4.0, _codes())
    assert codes.fit(more).probabilities_[0].shape == (3, 5)
    stream = _mixture("poisson", 3, inference=inference).partial_fit(X)
    with pytest.raises(ValueError, match="family or inference changed since the last batch"):
        stream.set_params(family="diag").partial_fit(X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prior": np.ones(3)}, r"prior must be None, 'default' or a dict, got array"),
        ({"family_options": [1]}, r"family_options must be None or a dict.*got \[1\]"),
        (
            {"family": {"poisson": [0, 1, 2]}, "family_options": {"exposure": 2}},
            r"family_options has a dict for each family.*for 'exposure' it has 2",
        ),
        ({"family": {"poisson": [0, 1.7], "full": [2]}}, r"names or positions.*got 1\.7"),
    ],
)
def test_settings_of_the_wrong_kind(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Mixture(**{"family": "poisson", **settings}).fit(_counts())


def test_a_column_without_a_family_is_named() -> None:
    table = pd.DataFrame(_counts(), columns=["a", "b", "c"])
    with pytest.raises(ValueError, match="column 'c' has no family"):
        Mixture({"poisson": ["a", "b"]}).fit(table)


@pytest.mark.parametrize("inference", ["em", "vb"])
def test_scores_leave_out_rows_without_weight_or_entries(inference: str) -> None:
    X = _counts()
    fitted = _mixture("poisson", 3, inference=inference).fit(X)
    wanted, weight = fitted.score(X[:50]), np.repeat([1.0, 0.0], [50, N - 50])
    odd = np.where(weight[:, None] > 0, X, -1.0)
    assert fitted.score(odd, sample_weight=weight) == pytest.approx(wanted, rel=1e-12)
    long = np.resize(np.where(weight[:, None] > 0, 0.0, -1.0), (20_000, 3))  # whole blocks of them
    long[-50:] = X[:50]
    late = np.arange(20_000) >= 19_950
    assert fitted.score(long, sample_weight=late * 1.0) == pytest.approx(wanted, rel=1e-12)
    empty = np.concatenate([X[:50], np.full((30, 3), np.nan)])
    assert fitted.score(empty) == pytest.approx(wanted, rel=1e-12)
    with pytest.raises(ValueError, match="no row of positive weight with an observed entry"):
        fitted.score(np.full((4, 3), np.nan))


def test_criteria_after_a_learned_prior(rng: np.random.Generator) -> None:
    """They are of the density at the point estimate, which has no prior to learn."""
    counts = np.concatenate([rng.poisson(3, (60, 2)), rng.poisson(20, (60, 2))]).astype(float)
    mixture = Mixture("poisson", 3, inference="vb", learn_prior=True, random_state=0).fit(counts)
    assert np.isfinite(mixture.bic(counts))
    assert mixture.aic(counts) < mixture.bic(counts)


# ------------------------------------------------ free parameters


@pytest.mark.parametrize("weights", ["free", "fixed"])
@pytest.mark.parametrize(
    "family", ["full", "tied", "diag", "spherical", "tied-diag", "poisson", "bernoulli", "mixed"]
)
def test_free_parameters_are_the_rank_of_the_density(family: str, weights: str) -> None:
    """Directions in which the density of rows can move, with weights that may move or not."""
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 3)) + 3.0 * z[:, None] * [1, -1, 0.5]
    chosen: Any = family
    if family in ("poisson", "bernoulli"):
        X = rng.poisson(np.array([[1.0, 5.0, 2.0, 4.0], [5.0, 1.0, 3.0, 2.0]])[z]).astype(float)
        X = X if family == "poisson" else (X > 2).astype(float)
    if family == "mixed":
        X = np.column_stack([X, rng.poisson(2 + 3 * z)])
        chosen = {"full": [0, 1], "diag": [2], "poisson": [3]}
    given: Any = "ml" if weights == "free" else [0.4, 0.6]
    model = Mixture(chosen, 2, weights=given, random_state=0).fit(X)
    mixture = model._model(X.shape[1])
    params = model._params
    part = mixture.family.coordinates(params.components)
    free = np.zeros(2 if weights == "free" else 0)
    block = Block(X)

    def densities(vector: Array) -> Array:
        own = params.weights * np.exp(np.append(vector[: free.size], np.zeros(2 - free.size)))
        components = mixture.family.from_coordinates(params.components, vector[free.size :])
        reading = replace(
            mixture.prepare(replace(params, components=components)),
            log_weights=np.log(own / own.sum()),
        )
        return np.asarray(mixture.log_row_density(reading, (), block))

    vector = np.concatenate([free, part])
    steps = 1e-5 * np.eye(vector.size)
    jacobian = [(densities(vector + s) - densities(vector - s)) / 2e-5 for s in steps]
    values = np.linalg.svd(np.array(jacobian), compute_uv=False)
    rank = int((values > 1e-6 * values[0]).sum())
    if family == "bernoulli":  # 2^4 patterns tell no more than 15 directions
        assert rank <= 15
    assert model._n_parameters() == rank
    assert model.bic() == pytest.approx(-2 * model.score_samples(X).sum() + rank * np.log(300))
