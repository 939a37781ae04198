"""SupervisedPPCA(output_weight='auto'): what is chosen, and that it goes with all the rest."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import mixfold
from mixfold import SupervisedPPCA
from mixfold.contracts import Block
from mixfold.engine.sources import open_source


def draw(n: int = 400, each: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of four classes in wide directions and many narrow ones, classes, and few labels."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 4
    X = rng.normal(size=(n, 40)) * (0.3 * np.arange(1, 41) ** -0.25)
    X[:, :12] += rng.normal(size=(n, 12)) * 0.6
    X[:, :4] += 2.0 * np.eye(4)[y]
    known = np.full(n, -1)
    for c in range(4):
        rows = rng.permutation(np.flatnonzero(y == c))[:each]
        known[rows] = c
    return X, y, known


class SmallBlocks:
    """Rows in three blocks."""

    def __init__(self, rows: np.ndarray) -> None:
        self._source = open_source(rows)
        self.n_samples, self.n_features = rows.shape
        self.feature_names, self.dtype = None, rows.dtype

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        return self._source.blocks(170)


X, Y, KNOWN = draw()


def fit(**settings: object) -> SupervisedPPCA:
    return SupervisedPPCA(12, output_weight="auto", random_state=0, **settings).fit(X, KNOWN)


MODEL = fit()


def test_classes_of_rows_without_label_are_told_better() -> None:
    gains = []
    for seed in range(4):
        rows, y, known = draw(seed=seed)
        plain = SupervisedPPCA(12, random_state=0).fit(rows, known)
        chosen = SupervisedPPCA(12, output_weight="auto", random_state=0).fit(rows, known)
        assert chosen.output_weight_ > 1
        hidden = known < 0
        gains.append(chosen.score(rows[hidden], y[hidden]) - plain.score(rows[hidden], y[hidden]))
        found = [
            -np.mean(model.predict_log_proba(rows[hidden])[np.arange(hidden.sum()), y[hidden]])
            for model in (plain, chosen)
        ]
        assert found[1] < found[0]
    assert np.mean(gains) > 0.02


def test_a_number_is_published_as_it_is() -> None:
    model = SupervisedPPCA(2, output_weight=2.0, output_noise=0.1).fit(X, KNOWN)
    assert model.output_weight_ == 2
    assert model.unlabelled_weight_ == 1
    assert SupervisedPPCA(2).fit(X, KNOWN).output_weight_ == 1


def test_steps_are_those_with_that_noise_and_those_weights() -> None:
    """The weight of rows without label is a sample weight, the weight of outputs a noise."""
    steps = {"warm_start": True, "max_iter": 3, "acceleration": None, "tol": 1e-12}
    weights = np.where(KNOWN >= 0, 1.0, 0.3)
    ours = fit()
    ours._emphasis = replace(ours._emphasis, unlabelled=0.3)
    held, even = (
        SupervisedPPCA(12, input_noise=ours.noise_variance_, random_state=0).fit(X, KNOWN)
        for _ in range(2)
    )
    held._params = even._params = ours._params
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours.set_params(**steps).fit(X, KNOWN)
        held.set_params(**steps).fit(X, KNOWN, sample_weight=weights)
        even.set_params(**steps).fit(X, KNOWN)
    assert ours.n_iter_ == held.n_iter_ == 3
    assert ours.lower_bound_ * len(X) == pytest.approx(held.lower_bound_ * weights.sum())
    for name in ("mean_", "loadings_", "output_loadings_", "output_noise_variance_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(held, name), atol=1e-9)
    assert np.abs(ours.loadings_ - even.loadings_).max() > 1e-6


def test_probabilities_are_those_of_the_model_where_nothing_is_scaled() -> None:
    """Also of rows that lack entries, each of which has a spread of its own."""
    rows = X[:20].copy()
    rows[::3, 5:9] = np.nan
    model = fit()
    model._emphasis = replace(model._emphasis, slope=1.0, intercept=1.0)
    scaled = model.predict_proba(rows)
    model._emphasis = None
    model.output_weight = 1.0
    np.testing.assert_allclose(scaled, model.predict_proba(rows), rtol=1e-7, atol=1e-12)


def test_the_choice_depends_on_the_rows_alone(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    frame["y"] = KNOWN
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    others = [
        SupervisedPPCA(12, output_weight="auto", random_state=7).fit(X, KNOWN),
        SupervisedPPCA(12, output_weight="auto", n_jobs=2).fit(sparse.csr_array(X), KNOWN),
        SupervisedPPCA(12, output_weight="auto").fit(path, "y"),
        SupervisedPPCA(12, output_weight="auto").fit(SmallBlocks(X), KNOWN),
    ]
    for other in others:
        assert other.output_weight_ == pytest.approx(MODEL.output_weight_)
        assert other.unlabelled_weight_ == MODEL.unlabelled_weight_
        rows = frame.drop(columns="y") if hasattr(other, "feature_names_in_") else X
        np.testing.assert_allclose(other.predict_proba(rows), MODEL.predict_proba(X), atol=1e-3)


def test_rows_of_weight_zero_are_left_out() -> None:
    rng = np.random.default_rng(1)
    odd = np.vstack([X, 100 * rng.normal(size=(10, 40))])
    y = np.concatenate([KNOWN, np.arange(10) % 4])
    weights = np.r_[np.ones(len(X)), np.zeros(10)]
    model = SupervisedPPCA(12, output_weight="auto").fit(odd, y, sample_weight=weights)
    assert model.output_weight_ == pytest.approx(MODEL.output_weight_)
    np.testing.assert_allclose(model.predict_proba(X), MODEL.predict_proba(X), atol=1e-3)


def test_all_rows_labelled_take_the_closed_form() -> None:
    model = SupervisedPPCA(12, output_weight="auto").fit(X, Y)
    assert model.solver_ == "profile"
    assert model.unlabelled_weight_ == 1
    assert model.score(X, Y) > 0.9


def test_a_kernel_goes_with_it() -> None:
    model = SupervisedPPCA(6, kernel="rbf", gamma=0.02, output_weight="auto").fit(X, KNOWN)
    assert model.output_weight_ >= 1
    assert model.score(X, Y) > 0.5


def test_a_file_holds_the_choice(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "model")
    loaded = mixfold.load(tmp_path / "model")
    assert loaded.output_weight_ == MODEL.output_weight_
    assert loaded.unlabelled_weight_ == MODEL.unlabelled_weight_
    np.testing.assert_array_equal(loaded.predict_proba(X), MODEL.predict_proba(X))


def test_a_warm_start_keeps_the_choice() -> None:
    model = SupervisedPPCA(12, output_weight="auto", warm_start=True, max_iter=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, KNOWN)
        first = model.output_weight_
        again = KNOWN.copy()
        again[np.flatnonzero(KNOWN >= 0)[:2]] = -1
        model.fit(X, again)
    assert model.output_weight_ == first
    assert model.n_iter_ <= 2


def test_another_setting_forgets_the_choice() -> None:
    model = fit()
    model.set_params(output_weight=1.0).fit(X, KNOWN)
    plain = SupervisedPPCA(12, random_state=0).fit(X, KNOWN)
    assert model.output_weight_ == 1
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


NUMBERS = X[:, 0] + np.random.default_rng(2).normal(size=len(X))


@pytest.mark.parametrize("y", [NUMBERS, (X[:, :2] > 0).astype(int)])
def test_numbers_and_labels_count_once(y: np.ndarray) -> None:
    model = SupervisedPPCA(3, output_weight="auto", random_state=0).fit(X, y)
    plain = SupervisedPPCA(3, random_state=0).fit(X, y)
    assert model.output_weight_ == 1
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))


def test_information_criteria_are_there_for_a_likelihood_only() -> None:
    assert MODEL.output_weight_ > 1
    with pytest.raises(AttributeError) as told:
        MODEL.bic()
    assert "maximises no likelihood" in str(told.value.__cause__)
    numbers = SupervisedPPCA(3, output_weight="auto", random_state=0).fit(X, NUMBERS)
    assert np.isfinite(numbers.bic())


# ------------------------------------------------ what is refused


def test_a_weight_must_be_a_positive_number_or_auto() -> None:
    for wrong in (0.0, -1.0, "automatic", None):
        with pytest.raises((ValueError, TypeError), match="output_weight"):
            SupervisedPPCA(2, output_weight=wrong).fit(X, KNOWN)
    with pytest.raises((ValueError, TypeError), match="output_weight"):
        mixfold.SupervisedMixtureOfPPCA(2, output_weight="auto").fit(X, KNOWN)


def test_a_given_noise_leaves_nothing_to_choose() -> None:
    with pytest.raises(ValueError, match="leave input_noise=None, or set output_weight"):
        SupervisedPPCA(2, output_weight="auto", input_noise=0.1).fit(X, KNOWN)


def test_missing_entries_are_refused_with_a_remedy_that_works() -> None:
    holes = X.copy()
    holes[::7, 3] = np.nan
    with pytest.raises(ValueError, match=r"PPCA\(n_components\)\.fit\(X\)\.impute\(X\)"):
        SupervisedPPCA(12, output_weight="auto").fit(holes, KNOWN)
    filled = mixfold.PPCA(12).fit(holes).impute(holes)
    assert SupervisedPPCA(12, output_weight="auto").fit(filled, KNOWN).output_weight_ > 1


def test_a_stream_is_refused_with_a_remedy_that_works() -> None:
    with pytest.raises(AttributeError) as told:
        SupervisedPPCA(12, output_weight="auto").partial_fit(X, KNOWN)
    assert "noise_variance_ as input_noise" in str(told.value.__cause__)
    stream = SupervisedPPCA(12, output_weight=1.0, input_noise=MODEL.noise_variance_)
    stream.partial_fit(X, KNOWN)
    assert stream.noise_variance_ == pytest.approx(MODEL.noise_variance_)


def test_one_label_of_each_class_cannot_tell() -> None:
    _, _, single = draw(each=1)
    with pytest.warns(UserWarning, match="a class with two labelled rows"):
        model = SupervisedPPCA(3, output_weight="auto").fit(X, single)
    assert model.output_weight_ == 1


def test_more_factors_than_columns_are_refused_as_ever() -> None:
    with pytest.raises(ValueError, match="n_components=50 must be at most"):
        SupervisedPPCA(50, output_weight="auto").fit(X, KNOWN)
