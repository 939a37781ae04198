"""Mixtures of factor models that learn how many components and factors there are."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

import mixfold
from mixfold import MixtureOfFactorAnalyzers, MixtureOfPPCA

MIXTURES = [MixtureOfPPCA, MixtureOfFactorAnalyzers]
of_both = pytest.mark.parametrize("mixture", MIXTURES)
SIZES = (1, 2, 3)


def planted(
    mixture: Any, seed: int, sizes: tuple[int, ...] = SIZES, n: int = 100, D: int = 10
) -> tuple[np.ndarray, np.ndarray]:
    """Groups of n rows, of so many factors each, and which group a row is of."""
    rng = np.random.default_rng(seed)
    noise = np.full(D, 0.25)
    parts = []
    for d in sizes:
        if mixture is MixtureOfFactorAnalyzers:
            noise = 0.25 * rng.uniform(0.5, 2, D)
        rows = rng.normal(size=(n, d)) @ rng.normal(size=(d, D)) + 2 * rng.normal(size=D)
        parts.append(rows + rng.normal(size=rows.shape) * np.sqrt(noise))
    order = rng.permutation(n * len(sizes))
    return np.concatenate(parts)[order], np.repeat(np.arange(len(sizes)), n)[order]


def learned(mixture: Any, K: int = 6, **settings: Any) -> Any:
    return mixture(K, None, inference="vb", random_state=0, **settings)


def found(fitted: Any) -> list[int]:
    return sorted(fitted.n_factors_[fitted.active_].tolist())


@of_both
def test_a_fit_that_ends_before_factors_are_dropped_can_be_drawn_from(mixture: Any) -> None:
    X = np.random.default_rng(0).normal(size=(76, 6))
    weights = np.random.default_rng(1).random(76) * 1e-15  # factors vanish, one by one
    fitted = mixture(3, 2, inference="vb", tied=("noise",), time_budget=1e-3, random_state=0)
    fitted.fit(X, sample_weight=weights)
    assert fitted.loadings_.shape[2] == fitted.n_factors_.max()
    rows, _ = fitted.sample(5)
    assert np.isfinite(rows).all()
    rows[0, 0] = np.nan
    assert np.isfinite(fitted.impute(rows, method="draw")).all()


@of_both
def test_both_numbers_are_found(mixture: Any) -> None:
    X, groups = planted(mixture, 0)
    fitted = learned(mixture).fit(X)
    assert fitted.converged_
    assert found(fitted) == list(SIZES)
    assert fitted.effective_components_ == 3
    labels = fitted.predict(X)
    assert all(len(np.unique(labels[groups == g])) == 1 for g in range(3))
    # published in units of the data, empty columns last, components by size
    assert fitted.loadings_.shape == (6, 10, 3)
    used = (fitted.loadings_ != 0).any(axis=1)
    assert (used.sum(axis=1) == fitted.n_factors_).all()
    assert (np.diff(fitted.counts_) <= 1e-9).all()
    assert fitted.transform(X).shape == (300, 3)
    assert np.isfinite(fitted.score_samples(X)).all()
    # the bound of the log evidence is below the log-likelihood at the expected parameters
    assert fitted.evidence_bound_ < fitted.score(X) * len(X)
    assert fitted.evidence_bound_ == pytest.approx(fitted.lower_bound_ * len(X))


@pytest.mark.slow
@of_both
def test_planted_numbers_of_twenty_seeds(mixture: Any) -> None:
    right = 0
    for seed in range(20):
        X, _ = planted(mixture, seed, (1, 2, 3, 5), n=200, D=12)
        right += found(learned(mixture, 10).fit(X)) == [1, 2, 3, 5]
    assert right >= 18


def test_many_components_are_not_given_up_for_factors_that_would_go() -> None:
    """Of 16 clusters and 63 factors each, races of starts once went on with 8 (bound 110,100)."""
    rng = np.random.default_rng(0)
    X = load_digits().data
    X = (X + rng.random(X.shape)) / 17
    fitted = learned(MixtureOfFactorAnalyzers, 16, merge_split=False).fit(X)
    assert fitted.effective_components_ > 12
    assert fitted.evidence_bound_ > 113_000


@of_both
def test_a_component_that_begins_with_too_few_factors_gets_more(mixture: Any) -> None:
    """Eight factors of 40 rows, which begin with one for each five rows of a cluster."""
    X, _ = planted(mixture, 0, (8, 2), n=40, D=20)
    few = learned(mixture, 2, merge_split=False).fit(X)
    fitted = learned(mixture, 2).fit(X)
    assert max(found(few)) < 8 == max(found(fitted))
    assert fitted.evidence_bound_ > few.evidence_bound_ + 10


@of_both
def test_criteria_count_what_is_used(mixture: Any) -> None:
    X, _ = planted(mixture, 0)
    fitted = learned(mixture).fit(X)
    # which group gets how many factors is a matter of the start, if the numbers are given
    orders = itertools.permutations(fitted.n_factors_[:3].tolist())
    plain = [mixture(3, list(order), random_state=0).fit(X) for order in orders]
    assert fitted._n_parameters() == plain[0]._n_parameters()
    assert fitted.bic(X) == pytest.approx(min(one.bic(X) for one in plain), rel=0.02)


@of_both
def test_missing_entries_are_integrated_out(mixture: Any) -> None:
    X, _ = planted(mixture, 1)
    rng = np.random.default_rng(0)
    holes = rng.random(X.shape) < 0.1
    fitted = learned(mixture, 4).fit(np.where(holes, np.nan, X))
    assert found(fitted) == list(SIZES)
    filled = fitted.impute(np.where(holes, np.nan, X))
    wrong = np.sqrt(np.mean((filled[holes] - X[holes]) ** 2))
    assert wrong < 0.6 * X[holes].std()


@of_both
def test_weights_are_repetitions(mixture: Any) -> None:
    X, _ = planted(mixture, 2, n=60)
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    settings = {"merge_split": False, "max_iter": 30, "tol": 0.0}
    with pytest.warns(UserWarning):
        weighted = learned(mixture, 4, **settings).fit(X, sample_weight=weight)
        repeated = learned(mixture, 4, **settings).fit(np.repeat(X, weight, axis=0))
    assert found(weighted) == found(repeated)
    assert weighted.evidence_bound_ == pytest.approx(repeated.evidence_bound_, rel=1e-6)


@of_both
def test_known_components_and_sparse_rows(mixture: Any) -> None:
    X, groups = planted(mixture, 3, n=60)
    fitted = learned(mixture, 3).fit(X, component_labels=groups)
    assert (fitted.predict(X) == groups).all()
    assert fitted.n_factors_.tolist() == list(SIZES)
    thin = np.where(np.abs(X) > 1, X, 0.0)
    dense = learned(mixture, 3, max_iter=60).fit(thin)
    assert learned(mixture, 3, max_iter=60).fit(
        sparse.csr_array(thin)
    ).evidence_bound_ == pytest.approx(dense.evidence_bound_, rel=1e-6)


@of_both
@pytest.mark.parametrize("holes", [False, True])
def test_streams_refine_what_the_first_batch_has_found(mixture: Any, holes: bool) -> None:
    X, _ = planted(mixture, 0, n=200)
    if holes:
        X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
    fitted = learned(mixture, 5)
    for part in np.array_split(X, 3):
        fitted.partial_fit(part)
    assert found(fitted) == list(SIZES)
    assert fitted.counts_.sum() == pytest.approx(len(X), rel=1e-6)
    assert not hasattr(fitted, "evidence_bound_")
    assert fitted.score(X) > learned(mixture, 5).fit(X).score(X) - 0.3


@of_both
def test_warm_starts_files_and_conditionals(mixture: Any, tmp_path: Path) -> None:
    X, _ = planted(mixture, 0)
    fitted = learned(mixture, warm_start=True).fit(X)
    fitted.save(tmp_path / "model.mixfold")
    again = mixfold.load(tmp_path / "model.mixfold")
    assert again.n_factors_.tolist() == fitted.n_factors_.tolist()
    assert again.counts_.tolist() == fitted.counts_.tolist()
    np.testing.assert_array_equal(again.score_samples(X), fitted.score_samples(X))
    bound = fitted.evidence_bound_
    again.fit(X)
    assert again.n_iter_ < 20
    assert again.evidence_bound_ == pytest.approx(bound, rel=1e-6)
    # a posterior of complete rows goes on with others
    holed = X.copy()
    holed[::7, 0] = np.nan
    assert found(again.fit(holed)) == list(SIZES)

    rest = fitted.condition([0, 3], X[0, [0, 3]])
    joint, known = fitted.score_samples(X[:1]), np.full((1, 10), np.nan)
    known[0, [0, 3]] = X[0, [0, 3]]
    left = np.delete(X[:1], [0, 3], axis=1)
    assert rest.score_samples(left) == pytest.approx(joint - fitted.score_samples(known))


def test_a_refit_by_em_leaves_nothing_of_the_posterior() -> None:
    X, _ = planted(MixtureOfPPCA, 0)
    fitted = learned(MixtureOfPPCA).fit(X)
    fitted.set_params(inference="em", n_factors=2, n_components=3).fit(X)
    for name in ("counts_", "active_", "effective_components_", "alpha_", "evidence_bound_"):
        assert not hasattr(fitted, name)
    assert fitted.n_factors_.tolist() == [2, 2, 2]


def test_a_stick_breaking_prior_with_a_learned_concentration() -> None:
    X, _ = planted(MixtureOfPPCA, 0)
    fitted = learned(MixtureOfPPCA, weights="stick-breaking", alpha="learn").fit(X)
    assert found(fitted) == list(SIZES)
    assert 0 < fitted.alpha_ < 10


def test_all_factors_in_use_are_told() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 26)) @ rng.normal(size=(26, 40)) + 0.1 * rng.normal(size=(300, 40))
    assert learned(MixtureOfPPCA, 1).fit(X).n_factors_ == [26]
    X[0, 0] = np.nan
    with pytest.warns(UserWarning, match="use all 24 factors"):
        learned(MixtureOfPPCA, 1, max_iter=20).fit(X)


@of_both
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_factors": None}, "n_factors=None means"),
        ({"weights": "dirichlet"}, "by inference='em' the weights are free"),
        ({"prior": {"noise_shape": 1.0}}, "prior is that of inference='vb'"),
        ({"inference": "vb", "tied": ("loadings",)}, "loadings of its own"),
        ({"inference": "vb", "acceleration": "quasi-newton"}, "needs slopes"),
        ({"inference": "vb", "weights": "some"}, "goes with weights"),
        ({"inference": "vb", "n_factors": 10}, "n_factors=10 must be less than"),
        ({"inference": "vb", "prior": {"relevance_rate": 0.0}}, "must be positive"),
        ({"inference": "vb", "prior": {"noise_variance": -1.0}}, "must be positive"),
        ({"inference": "vb", "prior": {"noise_shape": np.inf}}, "must be one finite number"),
        ({"inference": "vb", "prior": {"noise_shape": [1.0, 2.0]}}, "must be one finite number"),
        ({"inference": "vb", "prior": {"mean": [0.0, 1.0]}}, "has 2 numbers and X has 10"),
        ({"inference": "vb", "prior": {"rate": 1.0}}, "no setting 'rate'"),
        ({"inference": "vb", "prior": {"mean": "zero"}}, "must hold numbers"),
        ({"inference": "vb", "alpha": 0.0}, "alpha"),
        ({"inference": "vb", "alpha": "much"}, "alpha"),
    ],
)
def test_mistakes_are_named(mixture: Any, settings: dict[str, Any], words: str) -> None:
    X, _ = planted(mixture, 0, n=20)
    with pytest.raises(ValueError, match=words):
        mixture(2, **{"n_factors": 2, **settings}).fit(X)


def test_a_prior_that_is_no_dict() -> None:
    with pytest.raises(TypeError, match="prior must be None or a dict"):
        MixtureOfPPCA(2, 2, inference="vb", prior=1.0).fit(np.eye(5))
