"""Supervised factor models that go on: warm starts, batches of a stream, acceleration."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import mixfold
from mixfold import MixtureOfFactorModels, SupervisedMixtureOfPPCA, SupervisedPPCA
from mixfold.contracts import Array

Make = Callable[..., Any]
MODELS: dict[str, tuple[Make, str]] = {
    "SupervisedPPCA, numbers": (lambda **k: SupervisedPPCA(2, solver="em", **k), "numbers"),
    "SupervisedPPCA, classes": (lambda **k: SupervisedPPCA(2, solver="em", **k), "classes"),
    "SupervisedPPCA, closed form": (lambda **k: SupervisedPPCA(2, **k), "all numbers"),
    "SupervisedMixtureOfPPCA": (lambda **k: SupervisedMixtureOfPPCA(2, 2, **k), "numbers"),
    "MixtureOfFactorModels": (lambda **k: MixtureOfFactorModels(2, 2, **k), "classes"),
    "MixtureOfFactorModels, own": (
        lambda **k: MixtureOfFactorModels(2, 2, classifier="per_component", ridge=0.1, **k),
        "classes",
    ),
}
ONE_START = {"SupervisedMixtureOfPPCA": "k-means++", "MixtureOfFactorModels": "thesis"}
BY_EM = [name for name in MODELS if "closed" not in name]


def table(kind: str, n: int = 400, seed: int = 0, groups: int = 1) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    fixed = np.random.default_rng(3)
    W, V = fixed.normal(size=(2, 6)), fixed.normal(size=(2, 2))
    z = rng.normal(size=(n, 2))
    X = z @ W + 2.0 + 0.3 * rng.normal(size=(n, 6))
    X += 6.0 * rng.integers(groups, size=n)[:, None]
    if kind == "classes":
        y = np.where(z[:, 0] + 0.2 * rng.normal(size=n) > 0, 1, 0)
        y[::3] = -1
        return X, y
    y = 10.0 * (z @ V) + 100.0 + rng.normal(size=(n, 2))
    if kind == "numbers":
        y[::3] = np.nan
        y[1::5, 0] = np.nan
    return X, y


def density(model: Any, X: Any, y: Array) -> float:
    return float(model.score_samples(X, y).mean())


# ------------------------------------------------ warm starts


@pytest.mark.filterwarnings("ignore:component 0 lost its rows:mixfold.DegenerateWarning")
@pytest.mark.parametrize("name", BY_EM)
def test_a_warm_start_goes_on(name: str) -> None:
    make, kind = MODELS[name]
    X, y = table(kind)
    # several starts race for no more passes than max_iter allows: a fit that is cut may choose
    # another one, and go on to another maximum. With one start both are the same climb
    start = {"init_params": ONE_START[name.split(",")[0]]} if "Mixture" in name else {}
    whole = make(random_state=0, warm_start=True, **start).fit(X, y)
    steps, bound = whole.n_iter_, whole.lower_bound_
    again = whole.fit(X, y)
    assert again.converged_ and again.n_iter_ == 0 and again.lower_bound_ == bound
    part = make(random_state=0, warm_start=True, max_iter=max(steps // 2, 1), **start)
    with pytest.warns(ConvergenceWarning):
        part.fit(X, y)
    before = part.lower_bound_
    part.set_params(max_iter=1000).fit(X, y)
    assert part.lower_bound_ > before
    assert part.lower_bound_ == pytest.approx(bound, abs=1e-3)


@pytest.mark.parametrize("name", BY_EM)
def test_a_warm_start_on_other_rows_begins_with_the_same_density(name: str) -> None:
    """Units of y and the frame of the rows are others, the model that is begun with is not."""
    make, kind = MODELS[name]
    more = {} if "FactorModels" in name else {"output_noise": "each"}
    X, y = table(kind)
    model = make(random_state=0, warm_start=True, **more).fit(X, y)
    before = model.score_samples(X, y)
    chosen = X[:, 0] > 0
    some = X[chosen], y[chosen]
    model.set_params(max_iter=0).fit(*some)  # visited, and left as it is
    np.testing.assert_allclose(model.score_samples(X, y), before, rtol=1e-9)
    model.set_params(max_iter=1000).fit(*some)
    cold = make(random_state=0, **more).fit(*some)
    assert model.lower_bound_ > cold.lower_bound_ - 0.05


def test_another_y_begins_anew() -> None:
    X, y = table("classes")
    for make in (MODELS["SupervisedPPCA, classes"][0], MODELS["MixtureOfFactorModels"][0]):
        model = make(random_state=0, warm_start=True).fit(X, y)
        other = np.where(y < 0, y, y + 5)  # classes 5 and 6
        fresh = make(random_state=0).fit(X, other)
        model.fit(X, other)
        np.testing.assert_array_equal(model.loadings_, fresh.loadings_)
        np.testing.assert_array_equal(model.classes_, [5, 6])
    more = SupervisedPPCA(2, solver="em", random_state=0, warm_start=True).fit(X, y)
    more.set_params(n_components=3).fit(X, y)
    assert more.loadings_.shape == (6, 3)


def test_with_a_kernel_each_fit_begins_anew() -> None:
    X, y = table("classes", 60)
    settings: dict[str, Any] = {"kernel": "rbf", "solver": "em", "random_state": 0}
    model = SupervisedPPCA(2, warm_start=True, **settings).fit(X, y).fit(X[:50], y[:50])
    fresh = SupervisedPPCA(2, **settings).fit(X[:50], y[:50])
    np.testing.assert_array_equal(model.transform(X), fresh.transform(X))


# ------------------------------------------------ streams


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("lacks", [False, True])
def test_a_stream_comes_near_the_fit_of_all_rows(name: str, lacks: bool) -> None:
    """Also where entries lack from the second batch on only."""
    make, kind = MODELS[name]
    X, y = table(kind, 2000)
    if lacks:
        X[200:][np.random.default_rng(5).random((1800, 6)) < 0.1] = np.nan
    new, labels = table(kind, 500, seed=9)
    whole = make(random_state=0).fit(X, y)
    stream = make(random_state=0)
    for start in range(0, len(X), 200):
        stream.partial_fit(X[start : start + 200], y[start : start + 200])
    first = make(random_state=0).partial_fit(X[:200], y[:200])
    assert stream.n_iter_ == 10
    assert density(stream, new, labels) > density(whole, new, labels) - 0.06
    assert density(stream, new, labels) > density(first, new, labels) - 0.01
    assert stream.score(new, labels) > whole.score(new, labels) - 0.03


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_stream_goes_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    make, kind = MODELS[name]
    X, y = table(kind)
    stream = make(random_state=0).partial_fit(X[:100], y[:100]).partial_fit(X[100:150], y[100:150])
    stream.save(tmp_path / "stream.mixfold")
    other = mixfold.load(tmp_path / "stream.mixfold")
    for model in (stream, other):
        model.partial_fit(X[150:], y[150:])
    np.testing.assert_array_equal(stream.score_samples(X, y), other.score_samples(X, y))
    np.testing.assert_array_equal(stream.predict(X), other.predict(X))


@pytest.mark.parametrize("name", MODELS)
def test_batches_may_be_without_y_sparse_or_weighted(name: str, tmp_path: Path) -> None:
    make, kind = MODELS[name]
    X, y = table(kind)
    stream = make(random_state=0).partial_fit(X[:100], y[:100])
    unknown = np.full(50, -1) if kind == "classes" else np.full((50, 2), np.nan)
    stream.save(tmp_path / "stream.mixfold")
    one, two, dense, rows, some, halves = (
        mixfold.load(tmp_path / "stream.mixfold") for _ in range(6)
    )
    one.partial_fit(X[100:150])
    two.partial_fit(X[100:150], unknown)
    np.testing.assert_array_equal(one.score_samples(X), two.score_samples(X))
    dense.partial_fit(X[150:200], y[150:200])
    rows.partial_fit(sparse.csr_array(X[150:200]), y[150:200])
    np.testing.assert_allclose(rows.score_samples(X), dense.score_samples(X), rtol=1e-7)
    weight = np.tile([1.0, 0.0], 25)
    some.partial_fit(X[200:250], y[200:250], sample_weight=weight)
    halves.partial_fit(X[200:250:2], y[200:250:2])
    np.testing.assert_allclose(some.score_samples(X), halves.score_samples(X), rtol=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SupervisedPPCA(2, random_state=0),
        lambda: SupervisedMixtureOfPPCA(2, 2, random_state=0),
        lambda: MixtureOfFactorModels(1, 2, random_state=0),
    ],
)
def test_classes_that_come_later_are_named_at_first(make: Callable[[], Any]) -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(900, 2))
    X = z @ np.random.default_rng(3).normal(size=(2, 6)) + 0.3 * rng.normal(size=(900, 6))
    y = np.where(z[:, 0] > 0.3, 2, np.where(z[:, 1] > 0, 1, 0))
    late = np.concatenate([np.flatnonzero(y[:300] < 2), np.arange(300, 900)])
    X, y = X[late], y[late]
    stream = make()
    for start in range(0, len(X), 150):
        stream.partial_fit(X[start : start + 150], y[start : start + 150], classes=[2, 1, 0])
    np.testing.assert_array_equal(stream.classes_, [0, 1, 2])
    assert stream.score(X, y) > 0.75
    assert np.mean(stream.predict(X[y == 2]) == 2) > 0.3
    with pytest.raises(ValueError, match="7 is no known class"):
        stream.partial_fit(X[:5], np.full(5, 7))
    with pytest.raises(ValueError, match=r"begin with rows of at least two of the classes"):
        make().partial_fit(X[y == 1][:60], y[y == 1][:60], classes=[0, 1])
    with pytest.raises(ValueError, match="at least two classes"):
        make().partial_fit(X[y == 1][:60], y[y == 1][:60])


def test_the_frequencies_of_classes_are_those_of_the_stream() -> None:
    X, y = table("classes", 900)
    known = y >= 0
    X, y = X[known], y[known]
    stream = SupervisedPPCA(2, random_state=0)
    for start in range(0, 600, 100):
        stream.partial_fit(X[start : start + 100], y[start : start + 100])
    np.testing.assert_allclose(stream._coding.prior, np.bincount(y[:600]) / 600)


@pytest.mark.parametrize("kind", ["classes", "all numbers", "numbers"])
@pytest.mark.parametrize("lacks", [False, True])
@pytest.mark.parametrize("noise", ["shared", "each"])
def test_one_factor_model_streams_to_the_fit_of_all_rows(
    kind: str, lacks: bool, noise: str
) -> None:
    """All rows are kept, complete ones as their moments: one pass ends at the same maximum."""
    X, y = table(kind, 1500)
    if lacks:
        X[1200:][np.random.default_rng(5).random((300, 6)) < 0.1] = np.nan
    settings: dict[str, Any] = {"output_noise": noise, "tol": 1e-7, "random_state": 0}
    whole = SupervisedPPCA(2, solver="em", **settings).fit(X, y)
    stream = SupervisedPPCA(2, **settings)
    for start in range(0, len(X), 100):
        stream.partial_fit(X[start : start + 100], y[start : start + 100])
    # (looked at last when they were an eighth fewer)
    assert density(stream, X, y) == pytest.approx(density(whole, X, y), abs=1e-3)
    assert stream.score(X, y) == pytest.approx(whole.score(X, y), abs=0.01)
    if kind == "classes" and not lacks:
        assert len(stream._kept.X) <= 2 * (7 + 6) + 100  # of labelled rows and of others


@pytest.mark.parametrize("name", ["SupervisedMixtureOfPPCA", "MixtureOfFactorModels"])
def test_five_passes_end_at_a_maximum_of_all_rows(name: str) -> None:
    """The maximum of a fit of all rows, also where one noise belongs to the units of the outputs.

    These are learned again with the rows: those of the first hundred are not theirs.
    """
    make, kind = MODELS[name]
    X, y = table(kind, 600, groups=2)
    stream, rng = make(random_state=0), np.random.default_rng(0)
    for _ in range(5):
        order = rng.permutation(len(X))
        for start in range(0, len(X), 100):
            rows = order[start : start + 100]
            stream.partial_fit(X[rows], y[rows])
    assert len(stream._kept.X) == len(X)
    np.testing.assert_array_equal(stream._kept.weight, 5.0)
    before = density(stream, X, y)
    assert density(make(random_state=0).fit(X, y), X, y) == pytest.approx(before, abs=1e-3)
    stream.set_params(warm_start=True).fit(X, y)
    assert density(stream, X, y) == pytest.approx(before, abs=1e-3)


@pytest.mark.parametrize("name", ["SupervisedMixtureOfPPCA", "MixtureOfFactorModels"])
def test_a_stream_of_many_rows_goes_on_by_steps(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Rows that are too many are forgotten, the sums over them are not; a file holds none."""
    monkeypatch.setattr("mixfold.engine.kept_rows.MOST_NUMBERS", 5000)
    make, kind = MODELS[name]
    X, y = table(kind, 2000, groups=2)
    stream, near = make(random_state=0), 0.0
    for start in range(0, len(X), 100):
        stream.partial_fit(X[start : start + 100], y[start : start + 100])
        if start == 500:
            near = density(stream, X, y)
            assert stream._kept is not None
    assert stream._kept is None and stream._schedule.weight == 2000
    assert density(stream, X, y) > near - 0.01
    stream.save(tmp_path / "stream.mixfold")
    assert (tmp_path / "stream.mixfold").stat().st_size < 8 * X.size
    mixfold.load(tmp_path / "stream.mixfold").partial_fit(X[:50], y[:50])


def test_a_batch_that_is_refused_leaves_the_stream_as_it_was() -> None:
    X, y = table("classes")
    for name in ("SupervisedPPCA, classes", "MixtureOfFactorModels"):
        stream = MODELS[name][0](random_state=0).partial_fit(X[:200], y[:200])
        before = stream.score_samples(X, y)
        bad = y[200:300].copy()
        bad[7] = 4
        with pytest.raises(ValueError, match=r"4 is no known class.*first call.*classes="):
            stream.partial_fit(X[200:300], bad)
        with pytest.raises(ValueError, match=r"classes=\[0, 1, 4\] are not those of the first"):
            stream.partial_fit(X[200:300], y[200:300], classes=[0, 1, 4])
        np.testing.assert_array_equal(stream.score_samples(X, y), before)
        stream.partial_fit(X[200:300], y[200:300], classes=[1, 0])
        assert stream.n_iter_ == 2


def test_y_may_be_a_column_of_each_batch() -> None:
    X, y = table("classes")
    rows = pd.DataFrame(X, columns=list("abcdef")).assign(kind=np.where(y < 0, None, y))
    stream, plain = (SupervisedPPCA(2, random_state=0) for _ in range(2))
    for start in (0, 200):
        stream.partial_fit(rows[start : start + 200], "kind")
        plain.partial_fit(X[start : start + 200], y[start : start + 200])
    np.testing.assert_allclose(stream.loadings_, plain.loadings_)
    assert list(stream.feature_names_in_) == list("abcdef")


def test_what_cannot_be_streamed_says_why() -> None:
    X, y = table("classes")
    for model, words in (
        (SupervisedPPCA(2, kernel="rbf"), r"kernel='rbf'.*Use kernel=None"),
        (MixtureOfFactorModels(1, 2, tradeoff=2.0), "tradeoff=2.0.*Use fit"),
        (MixtureOfFactorModels(1, 2, label_solver="gradient"), "label_solver='gradient'.*Use fit"),
    ):
        assert not hasattr(model, "partial_fit")
        with pytest.raises(AttributeError) as error:
            model.partial_fit(X, y)
        assert re.search(words, str(error.value.__cause__ or error.value))
    numbers = table("numbers")[1]
    with pytest.raises(ValueError, match=r"classes are for task='classification'"):
        SupervisedPPCA(2, task="regression").partial_fit(X, numbers, classes=[0, 1])
    with pytest.raises(ValueError, match="requires y"):
        SupervisedPPCA(2).partial_fit(X)
    stream = SupervisedMixtureOfPPCA(2, 2, random_state=0).partial_fit(X, y)
    with pytest.raises(ValueError, match="clone the estimator"):
        stream.set_params(n_components=3).partial_fit(X, y)


# ------------------------------------------------ acceleration


@pytest.mark.parametrize("name", BY_EM)
def test_accelerated_fits_end_at_least_as_high(name: str) -> None:
    make, kind = MODELS[name]
    X, y = table(kind, groups=2)
    plain = make(random_state=0, acceleration=None, tol=1e-6, max_iter=3000).fit(X, y)
    for rule in ("quasi-newton", "squarem"):
        quick = make(random_state=0, acceleration=rule, tol=1e-6, max_iter=3000).fit(X, y)
        assert quick.lower_bound_ > plain.lower_bound_ - 1e-4
        assert quick.n_passes_ < max(plain.n_passes_, 40)
        assert (np.diff(quick.lower_bounds_) >= -1e-9).all()
