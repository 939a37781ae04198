"""Model files whose parts do not fit each other are refused when they are loaded, not later."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mixfold
from mixfold import store

RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(0, 1, (40, 4)), RNG.normal(4, 1, (40, 4))])
Y = np.repeat([0, 1], 40)
COUNTS = RNG.poisson(3.0, (40, 5)).astype(float)

MODELS: dict[str, Callable[[], Any]] = {
    "mixture": lambda: mixfold.GaussianMixture(2, random_state=0).fit(X),
    "stream": lambda: mixfold.GaussianMixture(2, random_state=0).partial_fit(X).partial_fit(X),
    "kmeans": lambda: mixfold.KMeans(2, random_state=0).fit(X),
    "ppca": lambda: mixfold.PPCA(2).fit(X),
    "ppca stream": lambda: mixfold.PPCA(2).partial_fit(X),
    "supervised": lambda: mixfold.SupervisedPPCA(1, random_state=0).fit(X, Y),
    "kernel": lambda: mixfold.SupervisedPPCA(1, kernel="rbf", random_state=0).fit(X, Y),
    "classifier": lambda: mixfold.MixtureClassifier(
        mixfold.GaussianMixture(2), random_state=0
    ).fit(X, Y),
    "topics": lambda: mixfold.LatentDirichletAllocation(2, max_iter=5, random_state=0).fit(COUNTS),
    "named topics": lambda: mixfold.PLSI(2, max_iter=5, random_state=0).fit(
        pd.DataFrame(COUNTS, columns=list("abcde"))
    ),
    "categories": lambda: mixfold.CategoricalMixture(2, max_iter=5, random_state=0).fit(COUNTS),
    "vb categories": lambda: mixfold.CategoricalMixture(
        2, inference="vb", max_iter=5, random_state=0
    ).fit(COUNTS),
    "vb": lambda: mixfold.BayesianGaussianMixture(2, max_iter=5, random_state=0).fit(X),
    "counts": lambda: mixfold.PoissonMixture(2, random_state=0).fit(COUNTS),
    "kernel pca": lambda: mixfold.KernelPCA(2, random_state=0).fit(X),
    "rbm": lambda: mixfold.RBM(3, max_epochs=1, random_state=0).fit((X > 2).astype(float)),
    "rbm classes": lambda: mixfold.RBM(3, max_epochs=1, random_state=0).fit(
        (X > 2).astype(float), Y
    ),
    "beliefs": lambda: mixfold.DeepBeliefNetwork(
        (3, 2), max_epochs=1, fine_tune_epochs=1, chain_epochs=1, random_state=0
    ).fit((X > 2).astype(float), Y),
    "factorization": lambda: mixfold.MatrixFactorization(2, max_iter=3, random_state=0).fit(X, Y),
}  # fmt: skip


def put(value: Any, path: list[str], change: Callable[[Any], Any]) -> Any:
    """A tree in which what ``path`` leads to was changed."""
    if not path:
        return change(value)
    first, *rest = path
    if isinstance(value, dict):
        return {**value, first: put(value[first], rest, change)}
    if isinstance(value, list | tuple):
        items = list(value)
        items[int(first)] = put(items[int(first)], rest, change)
        return type(value)(items)
    return replace(value, **{first: put(getattr(value, first), rest, change)})


LIES: list[tuple[str, str, Callable[[Any], Any]]] = [
    # shapes
    ("mixture", "state _params components frame scale", lambda a: a[:-1]),
    ("mixture", "state _params components scatter", lambda a: a[:1]),
    ("mixture", "state _params components frame origin", lambda a: a[None]),
    ("mixture", "state n_features_in_", lambda n: n + 1),
    ("kernel", "state _target classes", lambda a: a[:1]),
    ("topics", "state _params prior", lambda a: a[:0]),
    ("counts", "state _params components means", lambda a: a[:, :-1]),
    ("stream", "state _schedule stats counts", lambda a: np.concatenate([a, a])),
    ("ppca stream", "state _moments sums origin", lambda a: a[:-1]),
    ("rbm", "state _learned params hidden", lambda a: a[:-1]),
    ("named topics", "state feature_names_in_", lambda names: names[:2]),
    ("named topics", "state feature_names_in_", lambda names: [*names, "more"]),
    ("rbm classes", "state _beginnings", lambda a: a[:1]),
    ("categories", "state _occurring 1", lambda a: a[0]),
    ("categories", "state _params components theta", lambda a: a[:, :-1]),
    ("vb categories", "state _params components a", lambda a: a[:, :-1]),
    # signs, and what is no number
    ("mixture", "state _params components frame scale", lambda a: 1e-200 * a),
    ("vb", "state _params components frame scale", lambda a: 1e-308 * a),
    ("mixture", "state _params weights", lambda a: -a),
    ("mixture", "state _params weights", lambda a: 2 * a),
    ("mixture", "state _params components frame scale", lambda a: -a),
    ("mixture", "state _params components means", lambda a: a * np.nan),
    ("kmeans", "state _params frame scale", lambda a: 0 * a),
    ("kmeans", "state _params centres", lambda a: np.where(a == a.max(), np.inf, a)),
    ("ppca", "state _params components noise", lambda a: -a),
    ("supervised", "state _coding prior", lambda a: 0 * a),
    ("topics", "state _params topics", lambda a: -a),
    ("classifier", "state priors_", lambda a: 0 * a),
    ("classifier", "state estimators_ 0 state _params weights", lambda a: -a),
    # not positive definite
    ("mixture", "state _params components scatter", lambda a: -a),
    # parameters
    ("mixture", "parameters n_components", lambda n: 5),
    ("mixture", "parameters random_state", lambda n: "seven"),
    ("mixture", "parameters executor", lambda n: "nowhere"),
    ("mixture", "parameters n_jobs", lambda n: False),
    # what a stream that goes on from a fit needs
    ("topics", "state n_tokens_", lambda n: None),
    ("topics", "state _params topics", lambda a: (0 * a).astype(int)),
    ("factorization", "state _origin", lambda a: a[:-1]),
    ("factorization", "state _params steps", lambda a: a[:0]),
    ("factorization", "state _params layer classifier", lambda a: a[None]),
    ("beliefs", "state _params top hidden", lambda a: a > 0),
    ("kernel pca", "state _seed", lambda a: "seven"),
    ("kernel pca", "state _total_weight", lambda a: "a"),
    ("mixture", "parameters checkpoint", lambda a: "a" * 300),
    # types of fields
    ("mixture", "state _params components means", lambda a: a.tolist()),
    ("kernel pca", "state _projector axes values", lambda a: None),
    ("kmeans", "state _params frame", lambda a: None),
]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    for name, make in MODELS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # brief fits
            model = make()
        model.save(folder / name)
    return {name: folder / name for name in MODELS}


@pytest.mark.parametrize(("name", "where", "change"), LIES, ids=[f"{a} {b}" for a, b, _ in LIES])
def test_a_lie_is_found_at_load(
    files: dict[str, Path], tmp_path: Path, name: str, where: str, change: Callable[[Any], Any]
) -> None:
    kind = store.describe(files[name])["kind"]
    tree = put(store.read(files[name]), where.split(), change)
    path = tmp_path / "lie.mixfold"
    store.write(path, kind, tree)
    with pytest.raises(store.ModelFileError):
        mixfold.load(path)


@pytest.mark.parametrize("name", MODELS)
def test_a_file_that_tells_the_truth_loads_and_is_left_as_it_is(
    files: dict[str, Path], name: str, tmp_path: Path
) -> None:
    before = np.random.get_state()[1].copy()  # type: ignore[index]
    model = mixfold.load(files[name])
    assert np.array_equal(before, np.random.get_state()[1])  # type: ignore[index]
    model.save(tmp_path / "again")
    assert store.describe(tmp_path / "again") == store.describe(files[name])


def test_a_model_of_a_cluster_loads_where_there_is_none(tmp_path: Path) -> None:
    model = MODELS["mixture"]().set_params(executor="dask")
    model.save(tmp_path / "far")
    assert mixfold.load(tmp_path / "far").executor == "dask"


def test_parameters_that_are_no_table_are_refused(files: dict[str, Path], tmp_path: Path) -> None:
    tree = store.read(files["kmeans"])
    store.write(tmp_path / "lie", "KMeans", {**tree, "parameters": 7})
    with pytest.raises(store.ModelFileError, match="no table of names"):
        mixfold.load(tmp_path / "lie")
