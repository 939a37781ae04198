"""The estimator of restricted Boltzmann machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError

import mixfold
from mixfold import RBM, DegenerateWarning
from mixfold.models.networks.boltzmann.learner import RBMLearner


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X / 16, y


def _bars(n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two patterns of six bits, each bit wrong one time in ten."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])[y]
    return np.where(rng.random(X.shape) < 0.1, 1 - X, X).astype(float), y


SHORT: dict[str, Any] = {"batch_size": 20, "max_epochs": 30, "random_state": 0}


def test_digits_are_told_apart_and_labels_help(digits: Any) -> None:
    X, y = digits
    model = RBM(100, batch_size=20, max_epochs=40, random_state=0).fit(X[:1200], y[:1200])
    assert model.score(X[1200:], y[1200:]) > 0.87
    proba = model.predict_proba(X[:50])
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(np.log(proba), model.predict_log_proba(X[:50]))
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X[:50]))


def test_rows_without_labels_teach_too() -> None:
    X, y = _bars(400)
    some = np.where(np.arange(400) < 40, y, -1)
    model = RBM(8, **SHORT).fit(X, some)
    assert model.score(X, y) > 0.95
    np.testing.assert_array_equal(model.classes_, [0, 1])


def test_densities_sum_to_one_and_match_their_labels() -> None:
    X, y = _bars()
    model = RBM(7, **SHORT).fit(X, y)
    V = ((np.arange(64)[:, None] >> np.arange(6)) & 1).astype(float)
    logs = model.score_samples(V)
    np.testing.assert_allclose(logsumexp(logs), 0, atol=1e-6)
    by_label = np.stack([model.score_samples(V, np.full(64, k)) for k in (0, 1)], axis=1)
    np.testing.assert_allclose(logsumexp(by_label, axis=1), logs)
    np.testing.assert_allclose(by_label - logs[:, None], model.predict_log_proba(V), atol=1e-9)
    np.testing.assert_allclose(-model.free_energy(V) - model.log_partition().value, logs)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())
    assert model.score(X) > np.log(2**-6) + 1  # than knowing nothing


def test_real_columns_have_densities_in_their_own_units() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + 3 * rng.integers(0, 2, (300, 1))
    far = X * [1e-3, 50.0] + [1e4, -7.0]
    plain = RBM(4, visible="gaussian", learning_rate=0.05, **SHORT).fit(X)
    moved = RBM(4, visible="gaussian", learning_rate=0.05, **SHORT).fit(far)
    gap = moved.score_samples(far) - plain.score_samples(X)
    np.testing.assert_allclose(gap, -np.log(1e-3 * 50), atol=1e-3)
    grid = np.stack(np.meshgrid(*[np.linspace(-7, 10, 120)] * 2), axis=-1).reshape(-1, 2)
    mass = np.exp(plain.score_samples(grid)).sum() * (17 / 119) ** 2
    np.testing.assert_allclose(mass, 1, atol=0.01)
    law = np.exp(plain.score_samples(grid))
    drawn = plain.sample(4000, n_steps=50, random_state=0)[0]
    error = drawn.std(axis=0) / np.sqrt(4000)
    assert (np.abs(drawn.mean(axis=0) - law @ grid / law.sum()) < 6 * error).all()
    rows = moved.sample(200, n_steps=50, random_state=0)[0]
    assert (np.abs(rows - far.mean(axis=0)) < 6 * far.std(axis=0)).all()
    assert len(np.unique(rows[:, 0])) == 200  # not rounded to single precision far from zero


def test_annealed_densities_are_near_the_exact_ones(digits: Any) -> None:
    X, y = digits
    model = RBM(12, batch_size=20, max_epochs=10, random_state=0).fit(X, y)
    exact = model.log_partition("exact")
    found = model.log_partition("ais", n_temperatures=500)
    assert 0 < found.error < 0.3
    assert abs(found.value - exact.value) < 4 * found.error
    assert model.log_partition() == exact
    assert model.log_partition("ais", 5, 20) == model.log_partition("ais", 5, 20)
    assert model.log_partition("ais", 5, 20, random_state=3) != model.log_partition("ais", 5, 20)
    with pytest.raises(ValueError, match="'auto', 'exact' or 'ais'; got 'best'"):
        model.log_partition("best")
    large = RBM(30, max_epochs=0, random_state=0).fit(X)
    with pytest.raises(ValueError, match="at most 20 hidden units"):
        large.log_partition("exact")


@pytest.mark.parametrize("visible", ["bernoulli", "gaussian"])
def test_answers_do_not_depend_on_blocks(visible: str, digits: Any) -> None:
    X, y = digits
    model = RBM(15, visible=visible, max_epochs=3, random_state=0).fit(X, y)
    parts = [X[:1], X[1:100], X[100:]]
    for method in ("score_samples", "predict_proba", "transform", "reconstruct", "free_energy"):
        whole = getattr(model, method)(X)
        pieces = np.concatenate([getattr(model, method)(part) for part in parts])
        np.testing.assert_allclose(pieces, whole, rtol=1e-9, atol=1e-9, err_msg=method)
    np.testing.assert_array_equal(np.concatenate([model.predict(p) for p in parts]),
                                  model.predict(X))  # fmt: skip


def test_seeds_and_other_seeds(digits: Any) -> None:
    X, y = digits
    for how in ({}, {"persistent": True}, {"visible": "gaussian"}, {"n_steps": 3}):
        one, two, other = (
            RBM(5, max_epochs=2, random_state=seed, **how).fit(X, y).components_
            for seed in (1, 1, 2)
        )
        np.testing.assert_array_equal(one, two)
        assert not np.array_equal(one, other)


def test_persistent_chains_learn_the_density() -> None:
    X, _ = _bars(400)
    how = {**SHORT, "max_epochs": 100}
    model = RBM(5, persistent=True, **how).fit(X)
    plain = RBM(5, max_epochs=0, random_state=0).fit(X)
    # two patterns of bits that err one time in ten
    best = np.log(0.5) - 6 * (0.1 * np.log(10) + 0.9 * np.log(10 / 9))
    assert plain.score(X) < best - 1.2
    assert model.score(X) > best - 0.3


def test_weights_of_zero_leave_rows_out_and_weights_count(digits: Any) -> None:
    X, y = digits
    weight = np.where(np.arange(len(X)) < 300, 2.0, 0.0)
    labels = np.where(weight > 0, y, 77)  # nobody sees these
    one = RBM(6, max_epochs=2, random_state=0).fit(X, labels, weight)
    two = RBM(6, max_epochs=2, random_state=0).fit(X[:300], y[:300])
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.classes_, np.arange(10))
    Z, z = _bars(300)
    # (one step from a row stays near it, and cannot tell how much mass is elsewhere)
    how = {**SHORT, "n_steps": 10, "max_epochs": 50}
    V = ((np.arange(64)[:, None] >> np.arange(6)) & 1).astype(float)
    for weight in (np.ones(300), np.where(z == 1, 9.0, 1.0)):
        model = RBM(5, **how).fit(Z, z, weight)
        mass = np.exp(model.score_samples(V, np.ones(64, int))).sum()
        assert abs(mass - np.average(z, weights=weight)) < 0.12
    with pytest.raises(ValueError, match="weight"):
        RBM(5).fit(Z, z, np.zeros(300))


def test_draws_and_classes_held() -> None:
    X, y = _bars(400)
    model = RBM(8, **SHORT).fit(X, np.array(["left", "right"])[y])
    drawn, label = model.sample(500, n_steps=100, random_state=0)
    assert set(np.unique(drawn)) <= {0, 1}
    assert set(label) == {"left", "right"}
    right, label = model.sample(300, "right", n_steps=100, random_state=0)
    assert (label == "right").all()
    assert right[:, 3:].mean() > 0.75 > 0.25 > right[:, :3].mean()
    _, label = model.sample(2, np.array(["left", "right"]), n_steps=5, random_state=0)
    np.testing.assert_array_equal(label, ["left", "right"])
    np.testing.assert_array_equal(model.sample(4, random_state=3)[0],
                                  model.sample(4, random_state=3)[0])  # fmt: skip
    with pytest.raises(ValueError, match="'up' is no known class; the classes are 'left', 'right'"):
        model.sample(2, "up")
    with pytest.raises(ValueError, match="one for each of the 3 rows"):
        model.sample(3, np.array(["left", "right"]))
    with pytest.raises(ValueError, match="n_samples must be an int >= 1; got 0"):
        model.sample(0)


def test_gibbs_begins_at_the_rows_and_reconstruction_is_close() -> None:
    X, _ = _bars(300)
    model = RBM(8, **SHORT).fit(X)
    assert ((model.reconstruct(X) - X) ** 2).mean() < 0.12
    moved = model.gibbs(X, 2, random_state=0)
    assert moved.shape == X.shape
    assert np.corrcoef(moved[:, 0], X[:, 0])[0, 1] > 0.3
    assert model.sample(3, n_steps=2, random_state=0)[1] is None


# ------------------------------------------------ how a fit ends


def test_validation_keeps_the_best_epoch(digits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = digits
    told = iter([0.0, 2.0, 1.0, 1.5, 1.2, 9.0])
    monkeypatch.setattr(RBMLearner, "score", lambda *_: next(told))
    model = RBM(5, max_epochs=6, validation_fraction=0.2, patience=3, random_state=0).fit(X, y)
    assert (model.stop_reason_, model.n_epochs_, model.best_epoch_) == ("patience", 5, 2)
    assert model.validation_scores_ == [0.0, 2.0, 1.0, 1.5, 1.2]
    monkeypatch.undo()
    scores = RBM(5, max_epochs=4, validation_fraction=0.2, random_state=0).fit(X).validation_scores_
    assert len(scores) == 4
    assert scores[-1] > scores[0]


def test_an_interrupted_fit_goes_on_to_the_same_bits(
    digits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = digits
    how = {"max_epochs": 6, "validation_fraction": 0.1, "persistent": True, "random_state": 3}
    whole = RBM(6, **how).fit(X, y)
    step, count = RBMLearner.step, iter(range(10**6))

    def interrupted(*args: Any) -> Any:
        if next(count) == 40:
            raise KeyboardInterrupt
        return step(*args)

    path = tmp_path / "fit"
    monkeypatch.setattr(RBMLearner, "step", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted after 2 epochs"):
        RBM(6, checkpoint=path, **how).fit(X, y)
    monkeypatch.undo()
    assert path.exists()
    with pytest.raises(ValueError, match="n_components differ"):
        RBM(7, checkpoint=path, **how).fit(X, y)
    with pytest.raises(ValueError, match="other data"):
        RBM(6, checkpoint=path, **how).fit(X[:-1], y[:-1])
    model = RBM(6, checkpoint=path, **how).fit(X, y)
    assert not path.exists()
    np.testing.assert_array_equal(model.components_, whole.components_)
    np.testing.assert_array_equal(model._learned.chains, whole._learned.chains)
    assert model.validation_scores_ == whole.validation_scores_


def test_the_time_budget_ends_it(digits: Any) -> None:
    X, y = digits
    with pytest.warns(ConvergenceWarning, match="time_budget was used up after 0 epochs"):
        model = RBM(5, time_budget=1e-9, random_state=0).fit(X, y)
    assert model.stop_reason_ == "time_budget"
    assert model.n_batches_ == 1


def test_weights_that_run_away_are_told(digits: Any) -> None:
    X, y = digits
    with pytest.warns(DegenerateWarning, match=r"stopped after \d+ epochs: .* lower learning_rate"):
        model = RBM(5, learning_rate=300.0, random_state=0).fit(X, y)
    assert model.stop_reason_ == "trouble"


def test_progress(digits: Any, capsys: pytest.CaptureFixture[str]) -> None:
    X, _ = digits
    RBM(3, max_epochs=2, verbose=1, random_state=0).fit(X)
    assert "RBM  epoch 1 of 2" in capsys.readouterr().err


# ------------------------------------------------ streams and files


def test_batches_of_a_stream() -> None:
    X, y = _bars(600)
    model = RBM(8, batch_size=20, random_state=0)
    for start in [*range(0, 600, 60)] * 5:
        part = slice(start, start + 60)
        model.partial_fit(X[part], y[part], classes=[0, 1])
    assert model.score(X, y) > 0.95
    assert model.n_epochs_ == 50
    again = RBM(8, batch_size=20, random_state=0)
    for start in [*range(0, 600, 60)] * 5:
        part = slice(start, start + 60)
        again.partial_fit(X[part], y[part], classes=[0, 1])
    np.testing.assert_array_equal(again.components_, model.components_)
    with pytest.raises(ValueError, match="7 is no known class; the classes are 0, 1"):
        model.partial_fit(X[:3], [0, 1, 7])


def test_files_hold_all_that_answers_need(digits: Any, tmp_path: Path) -> None:
    X, y = digits
    table = pd.DataFrame(X, columns=[f"p{i}" for i in range(64)])
    for how in ({}, {"visible": "gaussian"}, {"persistent": True}):
        model = RBM(9, max_epochs=2, random_state=0, **how).fit(table, y.astype(str))
        path = tmp_path / "model"
        model.save(path)
        loaded = mixfold.load(path)
        for method in ("predict", "score_samples", "transform"):
            np.testing.assert_array_equal(
                getattr(loaded, method)(table), getattr(model, method)(table)
            )
        assert loaded.get_params() == model.get_params()
        np.testing.assert_array_equal(
            loaded.partial_fit(table, y.astype(str)).components_,
            model.partial_fit(table, y.astype(str)).components_,
        )


def test_names_of_columns_and_of_labels(digits: Any, tmp_path: Path) -> None:
    X, y = digits
    table = pd.DataFrame(X[:300], columns=[f"p{i}" for i in range(64)])
    table["digit"] = y[:300]
    by_name = RBM(5, max_epochs=2, random_state=0).fit(table, "digit")
    by_array = RBM(5, max_epochs=2, random_state=0).fit(table.drop(columns="digit"), y[:300])
    np.testing.assert_array_equal(by_name.components_, by_array.components_)
    assert by_name.score(table, "digit") == by_array.score(table, y[:300])
    table.to_parquet(tmp_path / "t.parquet")
    from_file = RBM(5, max_epochs=2, random_state=0).fit(tmp_path / "t.parquet", "digit")
    np.testing.assert_array_equal(from_file.components_, by_array.components_)
    assert list(by_name.get_feature_names_out()[:2]) == ["rbm0", "rbm1"]


# ------------------------------------------------ mistakes and odd data


def test_mistakes_are_told() -> None:
    X, y = _bars(20)
    with pytest.raises(ValueError, match=r"column 2 must lie between 0 and 1.*row 4 has 255"):
        bad = X.copy()
        bad[4, 2] = 255
        RBM(3).fit(bad)
    model = RBM(3, max_epochs=1, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"row 1 has -1.*visible='gaussian'"):
        model.transform(np.array([[1.0, 1, 1, 0, 0, 0], [0, -1, 0, 0, 0, 0]]))
    gaps = X.copy()
    gaps[3, 1] = np.nan
    with pytest.raises(
        ValueError, match=r"contains NaN: column 1, row 3\. RBM needs complete rows"
    ):
        RBM(3).fit(gaps)
    with pytest.raises(ValueError, match="contains NaN"):
        model.score_samples(gaps)
    table = pd.DataFrame(gaps, columns=list("abcdef"))
    with pytest.raises(ValueError, match="column 'b', row 3"):
        RBM(3).fit(table)
    with pytest.raises(ValueError, match="inconsistent numbers of samples: X has 20 rows and y 5"):
        RBM(3).fit(X, y[:5])
    with pytest.raises(ValueError, match=r"y holds 0\.5"):
        RBM(3).fit(X, np.full(20, 0.5))
    with pytest.raises(ValueError, match="classes have one column"):
        RBM(3).fit(X, np.zeros((20, 2), int))
    with pytest.warns(DataConversionWarning):
        RBM(3, max_epochs=1).fit(X, y[:, None])
    for wrong in ({"visible": "poisson"}, {"learning_rate": 0}, {"batch_size": 0}, {"n_steps": 0}):
        with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter of RBM"):
            RBM(3, **wrong).fit(X)


def test_without_labels_there_are_no_classes() -> None:
    X, y = _bars(20)
    model = RBM(3, max_epochs=1, random_state=0)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X)
    assert len(model.classes_) == 0
    for method in ("predict", "predict_proba", "predict_log_proba"):
        assert not hasattr(model, method)
    with pytest.raises(AttributeError, match="fitted without labels"):
        model.sample(2, 1)
    with pytest.raises(AttributeError, match="fitted without labels"):
        model.score_samples(X, y)
    assert np.isfinite(model.score(X, y))
    assert len(RBM(3, max_epochs=1).fit(X, np.full(20, -1)).classes_) == 0


def test_odd_data_are_learned_from() -> None:
    X, _ = _bars(20)
    X[:, 0], X[:, 5] = 0.0, 1.0  # columns that never change
    one_class = RBM(4, max_epochs=2, random_state=0).fit(X, np.full(20, "only"))
    np.testing.assert_array_equal(one_class.predict(X), ["only"] * 20)
    np.testing.assert_allclose(one_class.predict_proba(X), 1)
    single = RBM(4, max_epochs=2, validation_fraction=0.5, random_state=0).fit(X[:1], [3])
    assert np.isfinite(single.score_samples(X)).all()
    for model in (RBM(4, max_epochs=2), RBM(4, max_epochs=2, visible="gaussian")):
        model.set_params(random_state=0).fit(X)
        assert np.isfinite(model.score_samples(X)).all()
    wide = RBM(30, max_epochs=2, random_state=0).fit(X)  # more units than rows and columns
    assert np.isfinite(wide.score_samples(X)).all()
    constant = RBM(3, visible="gaussian", max_epochs=2, random_state=0).fit(np.ones((5, 2)))
    assert np.isfinite(constant.score_samples(np.ones((2, 2)))).all()


def test_single_precision_stays_single(digits: Any) -> None:
    X, y = digits
    model = RBM(5, max_epochs=1, random_state=0).fit(X, y)
    single = X[:20].astype(np.float32)
    for method in ("transform", "predict_proba", "reconstruct"):
        found = getattr(model, method)(single)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, getattr(model, method)(X[:20]), atol=1e-5)


@pytest.mark.parametrize("kind", [RBM, mixfold.DeepBeliefNetwork])
def test_rows_whose_label_is_unknown_do_not_count_in_a_score(kind: Any) -> None:
    X, y = _bars()
    size: Any = 8 if kind is RBM else (8, 6)
    model = kind(size, max_epochs=2, random_state=0).fit(X, y)
    some = np.arange(len(y)) % 3 > 0
    known = model.score(X[some], y[some])
    assert model.score(X, np.where(some, y, -1)) == known
    names = np.array([f"class {label}" for label in y], object)
    named = kind(size, max_epochs=2, random_state=0).fit(X, names)
    assert named.score(X, np.where(some, names, None)) == known
    with pytest.raises(ValueError, match="no known entry"):
        model.score(X, np.full(len(y), -1))
