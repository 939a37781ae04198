"""Blocks of few rows are visited by numpy, as the kernels visit them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mixfold import contracts
from mixfold.contracts import Array, Block
from mixfold.families.factor import complete
from mixfold.math import assignment, lifted, pooled
from mixfold.math.centres import Centres
from mixfold.math.compiled import Kernel
from mixfold.math.frame import Frame

N, D, K = 200, 4, 3


def block_of(seed: int, dtype: Any = float, missing: bool = False) -> Block:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    X[:5] += 1e7  # far rows, whose shares are not to be trusted
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    labels = np.where(rng.random(N) < 0.2, rng.integers(0, K, N), -1)
    weight = rng.integers(0, 3, N).astype(float)
    return Block(X.astype(dtype), y=labels, weight=weight, complete=not missing)


def frame_of(seed: int) -> Frame:
    rng = np.random.default_rng(seed)
    return Frame(rng.normal(size=D), rng.uniform(0.5, 2, D))


def by_both(monkeypatch: pytest.MonkeyPatch, visit: Any, block: Block) -> tuple[Any, Any]:
    """What numpy makes of the block, twice, and what the kernels make of it."""
    first, again = visit(block), visit(block)
    np.testing.assert_equal(fields(first), fields(again))  # what is known changes nothing
    with monkeypatch.context() as patch:
        patch.setattr(contracts, "SMALL_BLOCK", 0)
        return first, visit(replace(block))


def fields(sums: Any) -> list[Any]:
    if isinstance(sums, tuple):
        return [part for each in sums for part in fields(each)]
    if hasattr(sums, "__dataclass_fields__"):
        return [part for name in sums.__dataclass_fields__ for part in fields(getattr(sums, name))]
    return [sums]


def check(found: Any, wanted: Any, rtol: float) -> None:
    mine, theirs = fields(found), fields(wanted)
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        size = np.abs(np.nan_to_num(b)).max(initial=1.0)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * size)


def quadratic(seed: int, n_features: int) -> Array:
    """A negative form, so that densities fall."""
    rng = np.random.default_rng(seed)
    theta = 0.1 * rng.normal(size=(K, n_features))
    theta[:, 1 + D :] = -0.05 * rng.random((K, n_features - 1 - D))
    return theta


@pytest.mark.parametrize("trusted", [-np.inf, -1e3])
@pytest.mark.parametrize("kind", ["product", "square", "seen"])
def test_lifted_sums(monkeypatch: pytest.MonkeyPatch, kind: str, trusted: float) -> None:
    features = {
        "product": lifted.product_features, "square": lifted.square_features,
        "seen": lifted.seen_square_features,
    }[kind](D)  # fmt: skip
    block, frame = block_of(1, missing=kind == "seen"), frame_of(2)
    theta = quadratic(3, len(features.left))
    if kind == "product":  # products of different columns have signs
        theta[:, 1 + D :] = 0
        theta[:, [5, 9, 12, 14]] = -0.05

    def visit(rows: Block) -> Any:
        return lifted.lifted_pass(rows, frame, features, theta, trusted)

    found, wanted = by_both(monkeypatch, visit, block)
    check(found, wanted, 1e-9)
    assert (len(found.left_out) > 0) == (trusted > -np.inf)
    scores = by_both(
        monkeypatch, lambda rows: lifted.lifted_scores(rows, frame, features, theta), block
    )
    check(*scores, 1e-12)


def test_another_frame_is_noticed() -> None:
    block, features = block_of(1), lifted.square_features(D)
    theta = quadratic(3, len(features.left))
    one = lifted.lifted_scores(block, frame_of(2), features, theta)
    other = lifted.lifted_scores(block, frame_of(4), features, theta)
    np.testing.assert_allclose(
        other, lifted.lifted_scores(replace(block), frame_of(4), features, theta), rtol=1e-14
    )
    assert not np.allclose(one, other)


@pytest.mark.parametrize("trusted", [-np.inf, -1e3])
def test_pooled_sums(monkeypatch: pytest.MonkeyPatch, trusted: float) -> None:
    rng = np.random.default_rng(5)
    theta, whiten = rng.normal(size=(K, 1 + D)), np.linalg.qr(rng.normal(size=(D, D)))[1]
    visits = by_both(
        monkeypatch,
        lambda rows: pooled.pooled_pass(rows, frame_of(2), theta, whiten, trusted),
        block_of(6),
    )
    check(*visits, 1e-9)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nearest_centres(monkeypatch: pytest.MonkeyPatch, missing: bool, dtype: Any) -> None:
    block = block_of(7, dtype, missing)
    points = np.random.default_rng(8).normal(size=(K, D))
    points[2] = points[0]  # ties
    centres = Centres(frame_of(9), points)
    tolerance = 1e-12 if dtype == np.float64 else 1e-6
    check(*by_both(monkeypatch, lambda rows: assignment.assign(rows, centres), block), tolerance)
    labels = by_both(monkeypatch, lambda rows: assignment.nearest(rows, centres), block)
    np.testing.assert_array_equal(labels[0][0], labels[1][0])
    assert not (labels[0][0] == 2).any()
    distances = by_both(
        monkeypatch, lambda rows: assignment.squared_distances(rows, centres), block
    )
    check(*distances, tolerance)


def test_factor_components(monkeypatch: pytest.MonkeyPatch) -> None:
    from mixfold import MixtureOfFactorAnalyzers

    X = np.random.default_rng(10).normal(size=(N, D))
    model = MixtureOfFactorAnalyzers(2, 2, random_state=0, n_jobs=1).fit(X)
    _, reading = model._reading()
    block = replace(block_of(11), y=None)
    for visit in (
        lambda rows: complete.lifted_pass(rows, reading.components, reading.log_weights),
        lambda rows: complete.lifted_scores(rows, reading.components),
    ):
        check(*by_both(monkeypatch, visit, block), 1e-8)


# ------------------------------------------------ what is loaded when


def test_kernels_are_functions_that_pickle_and_compile_once() -> None:
    kernel = lifted._scores
    assert isinstance(kernel, Kernel) and pickle.loads(pickle.dumps(kernel)) is kernel
    assert kernel.dispatcher() is kernel.dispatcher()


def test_nothing_heavy_is_imported_for_a_small_fit() -> None:
    """What scikit-learn itself imports is its own affair."""
    code = (
        "import sys, numpy as np, sklearn.mixture, sklearn.cluster, sklearn.decomposition\n"
        "before = set(sys.modules)\n"
        "from mixfold import GaussianMixture, KMeans, PPCA, FactorAnalysis\n"
        "X = np.random.default_rng(0).normal(size=(150, 4))\n"
        "for model in (GaussianMixture(2), KMeans(2), PPCA(2), FactorAnalysis(2)):\n"
        "    model.fit(X)\n"
        "GaussianMixture(2).fit(X).predict(X[:1])\n"
        "heavy = {'numba', 'llvmlite', 'matplotlib', 'dask', 'distributed', 'typer', 'polars',"
        " 'pandas', 'pyarrow', 'rich', 'safetensors'}\n"
        "print(sorted(heavy & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", done.stdout
