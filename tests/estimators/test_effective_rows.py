"""What weights and copies of rows mean for criteria, and how to say what else they mean."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mixfold import (
    PPCA,
    BayesianGaussianMixture,
    FactorAnalysis,
    GaussianMixture,
    GaussianPCP,
    Mixture,
    MixtureOfPPCA,
    MixtureSearch,
)
from mixfold.contracts import Block
from mixfold.estimators.shell.effective_rows import describe_copies, hash_rows

SIZES = {"n_components": (1, 2, 3, 4, 5), "random_state": 0}


def two_groups(n=150):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)) + 5 * rng.integers(0, 2, (n, 1))


@pytest.mark.parametrize("factor", [1000.0, 0.001])
def test_weights_that_are_no_frequencies_are_told_of_and_n_effective_mends_it(factor):
    X = two_groups()
    weight = np.full(len(X), factor)
    plain = MixtureSearch(GaussianMixture(), **SIZES).fit(X)
    assert plain.best_params_ == {"n_components": 2}
    assert plain.notes_ == []
    with pytest.warns(UserWarning, match="weights of the 150 rows add up to"):
        scaled = MixtureSearch(GaussianMixture(), **SIZES).fit(X, sample_weight=weight)
    assert scaled.best_params_["n_components"] > 2
    assert "n_effective=150" in scaled.notes_[0]
    mended = MixtureSearch(GaussianMixture(), n_effective=150, **SIZES).fit(X, sample_weight=weight)
    assert mended.best_params_ == plain.best_params_
    np.testing.assert_allclose(mended.results_["bic"], plain.results_["bic"], rtol=1e-6)
    assert mended.notes_ == []


def test_copies_of_all_rows_are_told_of():
    X = two_groups(100)[:, :1].repeat(20, axis=0)
    with pytest.warns(UserWarning, match=r"Every row occurs 20 times.*n_effective=100"):
        MixtureSearch(GaussianMixture(), n_components=(1, 2), random_state=0).fit(X)
    # a few answers that many rows share are no copies
    some = np.random.default_rng(1).integers(0, 3, (500, 4)).astype(float)
    search = MixtureSearch(GaussianMixture(), n_components=1, random_state=0).fit(some)
    assert search.notes_ == []


def copied(rng, X, share):
    """The rows, and one or two copies of a share of them, in another order."""
    again = X[: int(share * len(X))]
    return rng.permutation(np.concatenate([X, again, again[::2]]))


def test_a_table_of_which_most_rows_are_copies_is_told_of():
    rng = np.random.default_rng(0)
    X = two_groups(200)
    rows = copied(rng, X, 0.6)
    with pytest.warns(UserWarning, match=rf"% of the rows are equal.*n_effective={len(X)}\b"):
        search = MixtureSearch(GaussianMixture(), n_components=1, random_state=0).fit(rows)
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    share = counts[counts > 1].sum() / len(rows)
    assert search.notes_[0].startswith(f"{share:.0%} of the rows")
    assert f"({len(X)} of {len(rows)} rows are different)" in search.notes_[0]


COPIED = {
    "measured": lambda rng: rng.normal(size=(200, 2)),
    "rounded": lambda rng: np.round(rng.normal(size=(200, 3)), 4),
    "with a code": lambda rng: np.column_stack(
        [rng.integers(0, 3, 200), np.round(rng.lognormal(size=200), 5)]
    ),
    "with holes": lambda rng: np.where(
        rng.random((200, 3)) < 0.05, np.nan, rng.normal(size=(200, 3))
    ),
}
NATURAL = {
    "codes": lambda rng: rng.integers(0, 6, (2000, 3)),
    "counts": lambda rng: rng.poisson(3, (3000, 2)),
    "negative binomial": lambda rng: rng.negative_binomial(1, 0.05, (3000, 1)),
    "rounded": lambda rng: np.round(rng.normal(size=(3000, 2)), 1),
    "one rounded column": lambda rng: np.round(rng.normal(size=(5000, 1)), 2),
    "age and year of birth": lambda rng: (
        rng.integers(18, 90, (1000, 1)) * [1.0, -1.0] + [0.5, 2000.5]
    ),
    "zeros": lambda rng: rng.exponential(size=(500, 2)) * (rng.random((500, 1)) < 0.2),
    "zip codes and their state": lambda rng: np.stack(
        [z := rng.choice(rng.integers(1000, 99999, 300), 2000), z // 10000], axis=1
    ),
    "few copies": lambda rng: copied(rng, rng.normal(size=(400, 2)), 0.1),
    "shares of ten answers": lambda rng: rng.binomial(10, rng.beta(2, 2, (2000, 2))) / 10,
}


@pytest.mark.parametrize("kind", COPIED)
def test_copies_are_seen(kind):
    rng = np.random.default_rng(0)
    X = np.asarray(copied(rng, COPIED[kind](rng), 0.8), dtype=float)
    assert "of the rows are equal" in describe_copies(hash_rows(Block(X)), lambda: X)


@pytest.mark.parametrize("kind", NATURAL)
def test_rows_that_are_equal_by_nature_are_no_copies(kind):
    for seed in range(5):
        X = np.asarray(NATURAL[kind](np.random.default_rng(seed)), dtype=float)
        assert describe_copies(hash_rows(Block(X)), lambda X=X: X) is None


def test_criteria_of_a_model_take_the_number_of_rows_by_name():
    X = two_groups()
    model = GaussianMixture(2, random_state=0).fit(X)
    small = np.full(len(X), 0.5)
    for name in ("bic", "aic", "icl"):
        ask = getattr(model, name)
        assert ask(X, small, n_effective=150) == pytest.approx(ask(X), rel=1e-9)
        assert ask(X, n_effective=150) == pytest.approx(ask(), rel=1e-9)
        with pytest.raises(ValueError, match="n_effective is the number of independent rows"):
            ask(X, n_effective=0)
    with pytest.warns(UserWarning, match="parameters cost nothing"):
        model.bic(X, np.full(len(X), 0.001))


LEARNING = [
    PPCA("bic"),
    PPCA("ard"),
    FactorAnalysis("ard"),
    MixtureOfPPCA(3, None, inference="vb", random_state=0),
    Mixture("diag", 3, inference="vb", random_state=0),
    BayesianGaussianMixture(3, random_state=0),
    GaussianPCP(3, 1, random_state=0),
]


def noisy_factor(n=200):
    rng = np.random.default_rng(1)
    return rng.normal(size=(n, 1)) * 2 + rng.normal(size=(n, 4))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", LEARNING, ids=repr)
def test_fits_that_learn_a_size_tell_of_weights_and_copies_too(model):
    X = noisy_factor()
    weight = np.full(len(X), 1000.0)
    with pytest.warns(UserWarning, match="weights of the 200 rows add up to 200000.*their mean"):
        clone(model).fit(X, sample_weight=weight)
    with pytest.warns(UserWarning, match="Every row occurs 20 times.*remove the copies"):
        clone(model).fit(X[:50].repeat(20, axis=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        clone(model).fit(X, sample_weight=weight / weight.mean())
        clone(model).fit(X[:50])


def test_weights_change_the_number_that_ppca_learns_and_their_mean_mends_it():
    X = noisy_factor()
    plain = PPCA("ard").fit(X).n_components_
    with pytest.warns(UserWarning, match="more weight favours more"):
        assert PPCA("ard").fit(X, sample_weight=np.full(200, 1e4)).n_components_ > plain
    assert PPCA("ard").fit(X, sample_weight=np.ones(200)).n_components_ == plain == 1


def test_copies_are_told_of_whatever_chooses():
    X = two_groups(40).repeat(5, axis=0)
    with pytest.warns(UserWarning, match="criterion='held-out' takes copies for 5 times"):
        MixtureSearch(
            GaussianMixture(), n_components=(1, 2), criterion="held-out", random_state=0
        ).fit(X)
