"""Groups that are the skewness or the tails of one population are told of, with evidence."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from mixfold import GaussianMixture, Mixture, MixtureOfFactorAnalyzers, MixtureSearch
from mixfold.estimators.search.one_population import _bent, find_one_population
from mixfold.estimators.search.rows import Rows

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SIZES = {"n_components": range(1, 6), "random_state": 0}


def people(n=1200):
    """Log-normal incomes and normal ages of one population."""
    rng = np.random.default_rng(0)
    return pd.DataFrame({"income": rng.lognormal(10, 0.8, n), "age": rng.normal(45, 12, n)})


def search(X, **settings):
    return MixtureSearch(GaussianMixture(), **SIZES, **settings).fit(X)


def test_a_skewed_column_is_named_with_the_change_after_which_one_group_is_enough():
    X = people()
    found = search(X)
    assert found.best_params_["n_components"] > 1
    (note,) = found.notes_
    assert "with the logarithm of 'income', one Gaussian has BIC" in note
    assert note in found.summary()
    # the evidence is that of the changed table, in the units of the table
    changed = X.assign(income=np.log(X.income))
    again = search(changed)
    assert again.best_params_ == {"n_components": 1}
    assert again.notes_ == []
    one, groups = map(float, re.findall(r"BIC ([\d.]+) against ([\d.]+)", note)[0])
    assert one == pytest.approx(again.best_score_ + 2 * np.log(X.income).sum(), rel=1e-4)
    assert groups == pytest.approx(found.best_score_, rel=1e-4)


def test_missing_entries_weights_and_a_warning():
    X = people().to_numpy().copy()
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    with pytest.warns(UserWarning, match="the logarithm of column 0, one Gaussian"):
        search(X)
    weight = np.random.default_rng(2).integers(1, 3, len(X))
    weighed = MixtureSearch(GaussianMixture(), **SIZES).fit(people(), sample_weight=weight)
    assert "the logarithm of 'income'" in weighed.notes_[0]


@pytest.mark.parametrize("columns", [1, 2])
def test_heavy_tails_are_told_of(columns):
    X = np.random.default_rng(3).standard_t(2, size=(1200, columns))
    found = search(X)
    assert found.best_params_["n_components"] > 1
    (note,) = [words for words in found.notes_ if "heavy tails of one" in words]
    freedom = float(re.findall(r"([\d.]+) degrees of freedom", note)[0])
    assert 1.6 < freedom < 2.4


def test_groups_that_are_groups_are_left_alone():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 2)) + 6 * rng.integers(0, 3, (600, 1))
    found = search(X)
    assert found.best_params_ == {"n_components": 3}
    assert found.notes_ == []
    # neither skewed nor heavy: what a search divides is flat, and one
    (note,) = search(rng.random((600, 2))).notes_
    assert "pieces of one that is long or bent" in note


def test_two_skewed_groups_are_two():
    rng = np.random.default_rng(5)
    X = np.exp(rng.normal(size=(1200, 2)) * 0.5 + 3 * rng.integers(0, 2, (1200, 1)))
    found = search(X)
    assert found.best_params_["n_components"] > 2
    assert "2 Gaussians have BIC" in found.notes_[0]


def test_the_command_and_the_report_say_so(tmp_path, capsys):
    from mixfold.cli.app import main

    people(600).to_csv(tmp_path / "people.csv", index=False)
    page = tmp_path / "report.html"
    try:
        main(["select", str(tmp_path / "people.csv"), "-k", "1:4", "--seed", "0",
              "--report", str(page)])  # fmt: skip
    except SystemExit as end:
        assert not end.code
    assert "one Gaussian has BIC" in " ".join(capsys.readouterr().out.split())
    assert "one Gaussian has BIC" in page.read_text()


@pytest.mark.parametrize("covariance_type", ["spherical", "diag"])
def test_groups_of_correlated_columns_are_not_called_heavy_tails(covariance_type):
    # one Gaussian, which spheres cut into pieces
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(300, 5))
    estimator = GaussianMixture(covariance_type=covariance_type, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = MixtureSearch(estimator, n_components=range(1, 4)).fit(X)
        assert search.best_params_["n_components"] > 1
        (note,) = search.notes_
        assert "how the columns of one vary together" in note
        assert f"{GaussianMixture(1).fit(X).bic(X):.6g} against" in note
        # and the remedy finds one
        remedy = MixtureSearch(GaussianMixture(random_state=0), n_components=range(1, 4)).fit(X)
    assert remedy.best_params_["n_components"] == 1 and not remedy.notes_


def test_mixtures_of_factor_models_notice_skewness_and_codes_are_no_numbers():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.exp(rng.normal(size=600)), rng.normal(size=(600, 2))])
    mixed = Mixture({"full": [0, 1], "categorical": [2]}, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        factors = MixtureOfFactorAnalyzers(n_factors=1, random_state=0)
        found = MixtureSearch(factors, n_components=range(1, 4)).fit(X)
        assert any("with the logarithm of column 0, one Gaussian" in n for n in found.notes_)
        # a density of numbers is not compared with one of numbers and codes
        codes = np.column_stack([X[:, :2], rng.integers(0, 3, 600)])
        found = MixtureSearch(mixed, n_components=range(1, 4)).fit(codes)
    assert not any("BIC" in note for note in found.notes_)


def bent(n=500, turn=0.3):
    rng = np.random.default_rng(5)
    angle = 2 * np.pi * rng.uniform(0, turn, n)
    arc = np.column_stack([np.cos(angle), np.sin(angle)])
    return arc + 0.1 * rng.normal(size=(n, 2))


def test_a_bent_group_is_told_of_in_any_units():
    X = bent()
    model = GaussianMixture(4, random_state=0).fit(X)
    found = find_one_population(model, Rows(X), margin=-np.inf)
    assert "one along a parabola" in found.sentence and found.n_groups == 1
    turned = X @ np.array([[3.0, 1.0], [-200.0, 500.0]])
    other = find_one_population(
        GaussianMixture(4, random_state=0).fit(turned), Rows(turned), margin=-np.inf
    )
    # a linear map changes every density by the same factor
    change = 2 * len(X) * np.log(abs(np.linalg.det([[3.0, 1.0], [-200.0, 500.0]])))
    numbers = [float(re.findall(r"has BIC (-?[\d.e+]+)", f.sentence)[0]) for f in (found, other)]
    assert numbers[1] - numbers[0] == pytest.approx(change, rel=1e-3)


def test_the_parabola_is_a_density_whose_likelihood_is_right():
    """By hand: evenly along one column, Gaussian about 1 + 2 t - 3 t^2 in the other."""
    rng = np.random.default_rng(6)
    t = rng.uniform(-1, 1, 4000)
    X = np.column_stack([t, 1 + 2 * t - 3 * t**2 + 0.2 * rng.normal(size=4000)])
    price = np.log(len(X))
    (claim,) = _bent(X, np.ones(len(X)), price, 5)
    off = X[:, 1] - np.polyval(np.polyfit(t, X[:, 1], 2), t)
    by_hand = -len(X) * (np.log(np.ptp(t)) + 0.5 * (np.log(2 * np.pi * off.var()) + 1))
    # two ends, one direction, three of the curve, one variance
    assert claim.bic == pytest.approx(-2 * by_hand + 7 * price, abs=15)
    assert claim.bic <= -2 * by_hand + 7 * price + 1e-6 * len(X)


def test_two_gaussians_that_overlap_are_not_called_bent():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(600, 2)) + np.outer(np.arange(600) % 2, [3.5, 0])
    model = GaussianMixture(2, random_state=0).fit(X)
    assert find_one_population(model, Rows(X), margin=0.0) is None
