"""The estimator of deep belief networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

import mixfold
from mixfold import RBM, DeepBeliefNetwork
from mixfold.models.networks.belief.learner import UpDownLearner
from mixfold.models.networks.boltzmann.learner import RBMLearner


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X / 16, y


QUICK: dict[str, Any] = {"batch_size": 20, "max_epochs": 15, "random_state": 0}


@pytest.fixture(scope="module")
def greedy(digits: Any) -> DeepBeliefNetwork:
    X, y = digits
    return DeepBeliefNetwork((80, 80), fine_tune=None, **QUICK).fit(X[:1200], y[:1200])


@pytest.mark.parametrize("how", ["up-down", "discriminative", "both"])
def test_tuning_makes_it_better(how: str, digits: Any, greedy: DeepBeliefNetwork) -> None:
    X, y = digits
    tuned = DeepBeliefNetwork((80, 80), fine_tune=how, fine_tune_epochs=15, **QUICK)
    tuned.fit(X[:1200], y[:1200])
    np.testing.assert_array_equal(tuned.recognition_weights_[0].shape, (64, 80))
    before, after = greedy.score(X[1200:], y[1200:]), tuned.score(X[1200:], y[1200:])
    assert before > 0.8
    # up-down raises a bound of the law of rows and classes, not the share of right answers
    assert after > (0.85 if how == "up-down" else before)
    names = ["layer 1", "layer 2"]
    names += ["up-down", "discriminative"] if how == "both" else [how]
    assert tuned.n_epochs_ == {**dict.fromkeys(names, 15), "chains": 10}
    proba = tuned.predict_proba(X[:50])
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(tuned.predict(X[:50]), proba.argmax(axis=1))


def test_classes_that_are_generated_are_recognised(digits: Any, greedy: DeepBeliefNetwork) -> None:
    X, y = digits
    wanted = np.repeat(np.arange(10), 10)
    drawn = greedy.generate(wanted, 100, random_state=0)
    assert drawn.shape == (100, 64)
    assert drawn.min() >= 0 and drawn.max() <= 1
    assert (greedy.predict(drawn) == wanted).mean() > 0.5
    judge = RBM(60, batch_size=20, max_epochs=15, random_state=1).fit(X[1200:], y[1200:])
    assert (judge.predict(drawn) == wanted).mean() > 0.4
    assert not np.isin(drawn, (0, 1)).all()
    bits, label = greedy.sample(20, 3, random_state=0)
    assert np.isin(bits, (0, 1)).all()
    assert (label == 3).all()
    with pytest.raises(ValueError, match="11 is no known class"):
        greedy.generate(11)
    with pytest.raises(ValueError, match="n_steps must be an int >= 1; got 0"):
        greedy.generate(1, n_steps=0)
    one = greedy.generate(1, 2, n_steps=3, probabilities=False, random_state=5)
    np.testing.assert_array_equal(
        one, greedy.generate(1, 2, n_steps=3, probabilities=False, random_state=5)
    )


def test_chains_that_persist_go_on_at_the_top(digits: Any, greedy: DeepBeliefNetwork) -> None:
    X, y = digits
    without = DeepBeliefNetwork((80, 80), fine_tune=None, chain_epochs=0, **QUICK)
    without.fit(X[:1200], y[:1200])
    # only the top has changed, and it still tells classes
    np.testing.assert_array_equal(greedy.recognition_weights_[0], without.recognition_weights_[0])
    assert not np.array_equal(greedy.top_weights_, without.top_weights_)
    assert greedy.score(X[1200:], y[1200:]) > without.score(X[1200:], y[1200:]) - 0.03
    assert "chains" not in without.n_epochs_


def test_chains_begin_in_their_class(greedy: DeepBeliefNetwork, digits: Any) -> None:
    X, y = digits
    means = np.array([X[y == c].mean(axis=0) for c in range(10)])
    drawn = greedy.generate(np.repeat(np.arange(10), 30), 300, n_steps=1, random_state=0)
    drawn = drawn.reshape(10, 30, 64).mean(axis=1)
    distances = ((drawn[:, None] - means) ** 2).sum(axis=2)
    assert (distances.argmin(axis=1) == np.arange(10)).mean() > 0.8


def test_layers_are_machines_of_the_units_below(digits: Any) -> None:
    X, y = digits
    deep = DeepBeliefNetwork((10, 20), fine_tune=None, max_epochs=2, random_state=0).fit(X, y)
    first = DeepBeliefNetwork((10,), fine_tune=None, max_epochs=2, chain_epochs=0, random_state=0)
    first.fit(X)
    np.testing.assert_array_equal(deep.recognition_weights_[0], first.top_weights_)
    np.testing.assert_array_equal(deep.recognition_weights_[0].T, deep.generative_weights_[0])
    assert deep.transform(X).shape == (len(X), 20)
    assert list(deep.get_feature_names_out()[:1]) == ["deepbeliefnetwork0"]


def test_bounds_of_densities(digits: Any) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])[y]
    X = np.where(rng.random(X.shape) < 0.1, 1 - X, X).astype(float)
    how = {"batch_size": 20, "max_epochs": 30, "fine_tune_epochs": 10, "random_state": 0}
    model = DeepBeliefNetwork((6, 6), **how).fit(X, y)
    V = ((np.arange(64)[:, None] >> np.arange(6)) & 1).astype(float)
    bounds = model.score_samples(V, n_draws=200)
    assert logsumexp(bounds) < 0.02
    assert logsumexp(bounds) > -1
    assert model.log_partition().exact
    given = model.score_samples(V, y=np.zeros(64, int), n_draws=200)
    assert (given < bounds + 0.05).all()
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())
    found = model.log_partition("ais", n_temperatures=300)
    assert abs(found.value - model.log_partition().value) < 4 * found.error
    assert ((model.reconstruct(X) - X) ** 2).mean() < 0.15
    whole = model.predict_proba(X)
    parts = [model.predict_proba(X[:1]), model.predict_proba(X[1:70]), model.predict_proba(X[70:])]
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-9)
    with pytest.raises(ValueError, match="known in every row"):
        model.score_samples(V, y=np.full(64, -1))


def test_equal_sizes_begin_tied(digits: Any) -> None:
    X, _ = digits
    rows = (X[:300, :16] > 0.5).astype(float)
    how = {"max_epochs": 0, "chain_epochs": 0, "fine_tune": None, "random_state": 0}
    one = DeepBeliefNetwork((8,), **how).fit(rows)
    two = DeepBeliefNetwork((8, 16), **how).fit(rows)
    np.testing.assert_array_equal(two.top_weights_, one.top_weights_.T)
    # the law, and so the mean bound, is that of the machine alone
    assert two.score(rows) == pytest.approx(one.score(rows), abs=0.05)


# ------------------------------------------------ how a fit ends


def test_the_seed_decides(digits: Any) -> None:
    X, y = digits
    for tune in ("up-down", "discriminative"):
        how = {"fine_tune": tune, "max_epochs": 1, "fine_tune_epochs": 1}
        one, two, other = (
            DeepBeliefNetwork((6, 5), random_state=seed, **how).fit(X, y).predict_proba(X)
            for seed in (1, 1, 2)
        )
        np.testing.assert_array_equal(one, two)
        assert not np.array_equal(one, other)


@pytest.mark.parametrize("at", [20, 70, 130, 150])
def test_an_interrupted_fit_goes_on_to_the_same_bits(
    at: int, digits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = digits
    how = {
        "max_epochs": 3, "fine_tune_epochs": 3, "validation_fraction": 0.1, "random_state": 3,
    }  # fmt: skip
    whole = DeepBeliefNetwork((6, 5), **how).fit(X, y)
    steps, count = {c: c.step for c in (RBMLearner, UpDownLearner)}, iter(range(10**6))

    def interrupted(self: Any, *args: Any) -> Any:
        if next(count) == at:
            raise KeyboardInterrupt
        return steps[type(self)](self, *args)

    for kind in steps:
        monkeypatch.setattr(kind, "step", interrupted)
    path = tmp_path / "fit"
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        stopped = DeepBeliefNetwork((6, 5), checkpoint=path, **how).fit(X, y)
    assert stopped.stop_reason_ == "interrupted"
    assert stopped.predict(X).shape == y.shape
    monkeypatch.undo()
    model = DeepBeliefNetwork((6, 5), checkpoint=path, **how).fit(X, y)
    assert not path.exists()
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
    assert model.validation_scores_ == whole.validation_scores_


def test_a_time_budget_leaves_a_network(digits: Any) -> None:
    X, y = digits
    with pytest.warns(ConvergenceWarning, match="time_budget"):
        model = DeepBeliefNetwork((6, 5), time_budget=1e-9, random_state=0).fit(X, y)
    assert model.n_epochs_ == {"layer 1": 0}
    assert model.generate(3, 2).shape == (2, 64)


# ------------------------------------------------ data, streams, files


def test_real_columns_and_rows_without_labels(digits: Any) -> None:
    X, y = digits
    real = 100 + 7 * X
    some = np.where(np.arange(len(y)) % 2, y, -1)
    model = DeepBeliefNetwork(
        (30, 30), visible="gaussian", batch_size=20, max_epochs=20, fine_tune_epochs=2,
        random_state=0,
    )  # fmt: skip
    model.fit(real, some, sample_weight=np.where(y == 0, 2.0, 1.0))
    assert model.score(real, y) > 0.5
    drawn = model.generate(np.arange(10), 10, random_state=0)
    assert np.abs(drawn.mean() - real.mean()) < 3
    plain = DeepBeliefNetwork((6, 5), max_epochs=1, fine_tune_epochs=1, random_state=0).fit(X)
    assert not hasattr(plain, "predict")
    assert np.isfinite(plain.score_samples(X[:5])).all()
    with pytest.raises(ValueError, match="'discriminative' needs labels"):
        DeepBeliefNetwork((6,), fine_tune="discriminative").fit(X)
    labelled = DeepBeliefNetwork(
        (6, 5), fine_tune="discriminative", max_epochs=1, fine_tune_epochs=1,
        validation_fraction=0.2, random_state=0,
    )  # fmt: skip
    assert len(labelled.fit(X, some).validation_scores_["discriminative"]) == 1


def test_more_rows_are_learned_by_passes(digits: Any) -> None:
    X, y = digits
    model = DeepBeliefNetwork(
        (40, 40), fine_tune=None, batch_size=20, max_epochs=15, random_state=0
    )
    model.partial_fit(X[:600], y[:600], classes=np.arange(10))
    before = model.predict_log_proba(X)[np.arange(len(y)), y].mean()
    kept = model.top_weights_.copy()
    for _ in range(4):
        model.partial_fit(X[600:], y[600:])
    after = model.predict_log_proba(X)[np.arange(len(y)), y].mean()
    assert after > before
    assert not np.array_equal(kept, model.top_weights_)


@pytest.mark.parametrize("tune", ["up-down", "discriminative"])
def test_files_hold_all_that_answers_need(tune: str, digits: Any, tmp_path: Path) -> None:
    X, y = digits
    how = {"fine_tune": tune, "max_epochs": 1, "fine_tune_epochs": 1, "random_state": 0}
    model = DeepBeliefNetwork((6, 5), **how).fit(X, y.astype(str))
    model.save(tmp_path / "model")
    loaded = mixfold.load(tmp_path / "model")
    for method in ("predict", "predict_proba", "transform", "score_samples"):
        np.testing.assert_array_equal(getattr(loaded, method)(X), getattr(model, method)(X))
    np.testing.assert_array_equal(
        loaded.generate("3", 2, random_state=0), model.generate("3", 2, random_state=0)
    )
    assert loaded.get_params() == model.get_params()


def test_mistakes_are_told(digits: Any) -> None:
    X, y = digits
    for wrong in ((), (0,), 5, ("a",), (5.5,)):
        with pytest.raises(ValueError, match="'hidden' parameter of DeepBeliefNetwork"):
            DeepBeliefNetwork(wrong).fit(X, y)
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        DeepBeliefNetwork((5,)).fit(16 * X, y)
    gaps = X.copy()
    gaps[2, 2] = np.nan
    with pytest.raises(ValueError, match="DeepBeliefNetwork needs complete rows"):
        DeepBeliefNetwork((5,)).fit(gaps, y)


def test_odd_data_are_learned_from(digits: Any) -> None:
    X, _ = digits
    how = {"max_epochs": 1, "fine_tune_epochs": 1, "random_state": 0}
    one_class = DeepBeliefNetwork((5, 4), **how).fit(X[:30], np.ones(30, int))
    np.testing.assert_array_equal(one_class.predict(X[:5]), 1)
    single = DeepBeliefNetwork((5, 4), fine_tune="both", **how).fit(X[:1], [7])
    np.testing.assert_array_equal(single.predict(X[:5]), 7)
