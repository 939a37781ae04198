"""Codes that never occur are no parameters; columns of rare categories are told of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import mixfold
from mixfold import CategoricalMixture, Mixture, MixtureClassifier, MixtureSearch, load
from mixfold.families.exponential.categorical import Categorical

QUICK = {"random_state": 0, "max_iter": 50, "tol": 1e-4}


def answers(n=1500, K=6, D=5, codes=6):
    """Answers of six classes of people to five questions, coded 0 to 5."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(codes, 0.15), size=(K, D))
    group = rng.integers(K, size=n)
    return np.stack([[rng.choice(codes, p=p[k, d]) for d in range(D)] for k in group]).astype(float)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_other_codes_for_the_same_answers_change_no_count_and_no_choice():
    X = answers()
    odd = X + 1
    odd[odd[:, 2] == 6, 2] = 999
    plain = CategoricalMixture(6, **QUICK).fit(X)
    model = CategoricalMixture(6, **QUICK).fit(odd)
    assert plain._n_parameters() == 6 * 5 * 5 + 5
    assert model._n_parameters() == plain._n_parameters()
    np.testing.assert_allclose(model.bic(), plain.bic(), rtol=1e-6)
    assert model.probabilities_[2].shape == (6, 1000)
    sizes = {"n_components": (4, 5, 6, 7), "random_state": 0}
    searches = [MixtureSearch(CategoricalMixture(**QUICK), **sizes).fit(T) for T in (X, odd)]
    assert searches[0].best_params_ == searches[1].best_params_ == {"n_components": 6}


@pytest.mark.parametrize("inference", ["em", "vb"])
def test_priors_do_not_spread_over_codes_that_never_occur(inference):
    X = answers(400, 2, 3, 3)
    far = X.copy()
    far[X[:, 0] == 2, 0] = 80
    settings = {"inference": inference, "prior": "default", **QUICK}
    plain = Mixture("categorical", 2, **settings).fit(X)
    model = Mixture("categorical", 2, **settings).fit(far)
    np.testing.assert_allclose(model.lower_bound_, plain.lower_bound_, atol=1e-3)
    np.testing.assert_allclose(model.weights_, plain.weights_, atol=1e-2)


def test_the_density_of_a_code_that_never_occurred_and_files(tmp_path):
    X = answers(300, 2, 3, 3)
    X[X[:, 0] == 1, 0] = 5
    model = CategoricalMixture(2, **QUICK).fit(X)
    row = np.array([[3.0, np.nan, np.nan]])  # 3 and 4 did not occur, 5 did
    np.testing.assert_allclose(model.score_samples(row), np.log(1e-12), atol=1e-3)
    with pytest.raises(ValueError, match="codes of its 6 categories"):
        model.score_samples(np.array([[6.0, 0.0, 0.0]]))
    model.save(tmp_path / "m.mixfold")
    again = mixfold.load(tmp_path / "m.mixfold")
    assert again._n_parameters() == model._n_parameters() == 2 * (2 + 2 + 2) + 1
    assert model.condition([1], [0.0])._n_parameters() == 2 * (2 + 2) + 1


def test_categories_that_the_user_numbers_are_all_counted():
    X = answers(300, 2, 3, 3)
    model = CategoricalMixture(2, family_options={"n_categories": 5}, **QUICK).fit(X)
    assert model._n_parameters() == 2 * 3 * 4 + 1


def test_mixed_tables_and_streams():
    X = answers(300, 2, 3, 3)
    X[:, 1] += 4
    table = np.column_stack([np.random.default_rng(1).normal(size=300), X])
    model = Mixture({"diag": [0], "categorical": [1, 2, 3]}, 2, **QUICK).fit(table)
    assert model._n_parameters() == 2 * (2 + 3 * 2) + 1
    stream = CategoricalMixture(2, **QUICK).partial_fit(X)  # a later batch may have the others
    assert stream._n_parameters() == 2 * (2 + 6 + 2) + 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_column_of_rare_categories_is_told_of():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 3, 600), rng.integers(10_000, 30_000, 600)]).astype(float)
    with pytest.warns(UserWarning, match=r"column 1 has [\d,]+ categories, .* leave"):
        CategoricalMixture(2, random_state=0, max_iter=3, tol=1).fit(X)
    rare = np.column_stack([X[:, 0], rng.integers(0, 30, 600)])
    CategoricalMixture(2, random_state=0, max_iter=200, tol=1e-2).fit(rare)  # 20 rows each: fine


def _codes_by_class() -> tuple[np.ndarray, np.ndarray]:
    """Codes 0 to 2 in column 0, of which class 'a' has no 2; 4 is in class 'b' of column 1 only."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, (80, 2)).astype(float)
    X[40:, 0] = rng.integers(1, 3, 40)
    X[40:, 1] += 3
    return X, np.repeat(["a", "b"], 40)


def test_the_classes_of_a_classifier_have_the_same_categories(tmp_path: Path) -> None:
    X, y = _codes_by_class()
    model = MixtureClassifier(CategoricalMixture(1), random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    # p(x | class) are products of shares, a code that a class lacks has next to none
    share = [(X[y == "a", 0] == code).mean() for code in (0, 1)]
    np.testing.assert_allclose(
        np.exp(model.estimators_[0].score_samples([[0, np.nan], [1, np.nan]])), share, atol=1e-6
    )
    assert model.estimators_[0].score_samples([[2, np.nan]])[0] < np.log(1e-6)
    path = tmp_path / "x.npy"
    np.save(path, X)
    of_file = MixtureClassifier(CategoricalMixture(1), random_state=0).fit(path, y)
    np.testing.assert_allclose(of_file.predict_proba(path), model.predict_proba(X), atol=1e-9)
    file = tmp_path / "m.mixfold"
    model.save(file)
    np.testing.assert_array_equal(load(file).predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="whole numbers from 0 to 2; row 0 has 3"):
        model.predict([[3.0, 0.0]])


def test_a_class_that_comes_late_in_a_stream_has_the_categories_of_earlier_ones() -> None:
    X, y = _codes_by_class()
    model = MixtureClassifier(CategoricalMixture(1), random_state=0)
    model.partial_fit(X[40:], y[40:], classes=["a", "b"])
    model.partial_fit(X[:40], y[:40])
    assert model.score(X, y) > 0.95


def test_a_second_fit_of_a_classifier_forgets_the_categories_of_the_first() -> None:
    X, y = _codes_by_class()
    model = MixtureClassifier(CategoricalMixture(1), random_state=0).fit(X, y)
    model.fit(np.minimum(X, 1), y)
    with pytest.raises(ValueError, match="from 0 to 1"):
        model.predict(X)


def test_columns_of_counts_do_not_learn_from_other_classes() -> None:
    X, y = _codes_by_class()
    X[40:, 1] = 90.0
    both = Mixture({"categorical": [0], "negative-binomial": [1]}, 1, random_state=0)
    model = MixtureClassifier(both).fit(X, y)
    alone = clone(both).fit(X[y == "a"])
    counts = [[np.nan, 0.0], [np.nan, 3.0]]
    np.testing.assert_allclose(
        model.estimators_[0].score_samples(counts), alone.score_samples(counts), rtol=1e-9
    )


# ------------------------------------------------ columns of counts that are zero throughout


def _two_kinds_of_counts(family):
    rng = np.random.default_rng(0)
    rates = np.array([[1.0, 6.0, 3.0], [6.0, 1.0, 3.0]])[rng.integers(0, 2, 300)]
    X = rng.poisson(rates).astype(float)
    return (X > 2).astype(float) if family == "bernoulli" else np.minimum(X, 20)


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("poisson", None),
        ("bernoulli", None),
        ("binomial", {"trials": 20}),
        ("multinomial", None),
        ("negative-binomial", None),
        ("negative-binomial", {"dispersion": 0.5}),
    ],
)
def test_columns_that_are_zero_throughout_are_no_parameters(family, options, tmp_path):
    X = _two_kinds_of_counts(family)
    if family == "multinomial":
        X[:, 0] += 1  # a row without words has no total
    wide = np.column_stack([X, np.zeros((len(X), 2))])
    settings = {"n_components": 2, "family_options": options, "random_state": 0}
    plain, model = Mixture(family, **settings).fit(X), Mixture(family, **settings).fit(wide)
    assert model._n_parameters() == plain._n_parameters()
    assert model.bic() == pytest.approx(plain.bic(), abs=1e-4)
    model.save(tmp_path / "m.mixfold")
    assert load(tmp_path / "m.mixfold").bic(wide) == pytest.approx(model.bic(wide), rel=1e-12)
    # later batches may hold what the first does not
    each = {"poisson": 1, "bernoulli": 1, "binomial": 1, "multinomial": 1}.get(family)
    each = (1 if options else 2) if each is None else each
    stream = Mixture(family, **settings).partial_fit(wide)
    assert stream._n_parameters() == plain._n_parameters() + 2 * each * 2


def test_columns_of_one_other_value():
    X = np.random.default_rng(1).poisson(2.0, (200, 2)).astype(float)
    wide = np.column_stack([X, np.zeros(200), np.full(200, 3.0)])
    # a rate of 3 is within its range and could be another; a share of 1 is at the end of it
    assert Mixture("poisson", 1, random_state=0).fit(wide)._n_parameters() == 3
    assert Mixture("bernoulli", 1, random_state=0).fit(wide > 2)._n_parameters() == 2


def test_a_mixed_table_with_a_column_of_zeros():
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=(200, 2)), rng.poisson(3, 200), np.zeros(200)])
    mixed = Mixture({"full": [0, 1], "poisson": [2, 3]}, random_state=0).fit(X)
    plain = Mixture({"full": [0, 1], "poisson": [2]}, random_state=0).fit(X[:, :3])
    assert mixed._n_parameters() == plain._n_parameters() == 6
    given = mixed.condition(0, 0.5)
    assert given._n_parameters() == 3


def test_starts_do_not_pay_for_codes_that_no_row_has() -> None:
    """A zip code: the points of a start have the categories of the rows, not all up to 99,999."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (60, 2)).astype(float)
    X[:, 0] = 1000 * X[:, 0] + 90_000
    X[3, 1] = np.nan
    family = Categorical(n_categories=(100_000, 5))
    points = family.points(X)
    assert points.shape == (60, 10)
    for d, own in enumerate(np.split(points, [5], axis=1)):
        codes = np.unique(X[:, d][~np.isnan(X[:, d])])
        expected = np.where(np.isnan(X[:, [d]]), np.nan, X[:, [d]] == codes)
        np.testing.assert_array_equal(own, expected)
    few = Categorical(n_categories=(7, 5)).points(np.nan_to_num(X) % 5)
    assert few.shape == (60, 12)  # small tables begin as before
