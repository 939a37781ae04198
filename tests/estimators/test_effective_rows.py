"""What weights and copies of rows mean for criteria, and how to say what else they mean."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold import GaussianMixture, MixtureSearch

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
