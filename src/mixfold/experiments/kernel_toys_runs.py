"""Points of the plane as source 004 draws them, and kernel models of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.engine.climb import climb
from mixfold.engine.executors.threads import ThreadExecutor
from mixfold.engine.state import Climb, Rules, Task
from mixfold.experiments.em_kpca_runs import span_error
from mixfold.math.kernels import RbfKernel
from mixfold.models.kernel.centred import CentredGram
from mixfold.models.kernel.em import Combinations, KernelEM
from mixfold.models.kernel.gram import Gram

# three round groups of figures 4.2, 5.2 and 5.4
CENTRES, DEVIATION, EACH, GAMMA = ((-0.5, -0.2), (0.0, 0.6), (0.5, 0.0)), 0.1, 30, 10.0
# of EM in figure 5.2
NOISE, AXES = 0.01, 3
# points of the third group that come at a time in figure 5.4
BATCH = 10
# four groups of figures 7.3 and 7.4, of which opposite ones are a class
CORNER, WIDE, OF_A_CORNER, WIDTH, OUTERMOST = 2.0, 0.5, 25, 0.5, 5
KERNEL_NOISE = 1e-3
# figure 7.2: points of a class, those with a label, and noises that are held
OF_A_CLASS, LABELLED, HELD = 100, 10, (0.1, 0.02)


def three_groups(rng: np.random.Generator) -> Array:
    """Ninety points, group by group."""
    return np.concatenate([rng.normal(centre, DEVIATION, (EACH, 2)) for centre in CENTRES])


def crossed_groups(rng: np.random.Generator) -> tuple[Array, Array]:
    """A hundred points around the corners of a square; classes 0 and 1 on its diagonals."""
    corners = np.array(list(product((-CORNER, CORNER), repeat=2)))
    X = np.concatenate([rng.normal(corner, WIDE, (OF_A_CORNER, 2)) for corner in corners])
    return X, np.repeat((corners.prod(axis=1) > 0).astype(int), OF_A_CORNER)


def outermost(X: Array) -> Array:
    """The points of each corner that are farthest from the middle."""
    far = np.abs(X).sum(axis=1).reshape(-1, OF_A_CORNER)
    best = np.argsort(far, axis=1)[:, -OUTERMOST:]
    return np.sort((best + OF_A_CORNER * np.arange(len(far))[:, None]).ravel())


def two_classes(rng: np.random.Generator) -> tuple[Array, Array]:
    """Two wide classes y = -1, 1, one above the other."""
    y = np.repeat([-1.0, 1.0], OF_A_CLASS)
    return np.column_stack([rng.normal(0.5 * y, 1.5), rng.normal(y, 0.4)]), y


# ------------------------------------------------ kernel PCA


def principal(X: Array, d: int, gamma: float = GAMMA) -> Any:
    """Kernel PCA of some points."""
    from mixfold.estimators.kernel_pca import KernelPCA

    return KernelPCA(d, gamma=gamma, solver="dense", n_jobs=1).fit(X)


def groups_apart(scores: Array) -> bool:
    """Whether every point is nearest to the mean of its own group."""
    means = scores.reshape(len(CENTRES), EACH, -1).mean(axis=1)
    nearest = ((scores[:, None, :] - means) ** 2).sum(axis=2).argmin(axis=1)
    return bool((nearest == np.repeat(np.arange(len(CENTRES)), EACH)).all())


@dataclass(frozen=True, slots=True)
class Turned:
    """Where EM is after some steps: the best axes of its span, as values on some points.

    ``error`` is the sine of the largest angle to the span of the exact eigenvectors.
    """

    steps: int
    error: float
    values: Array


def em_steps(X: Array, steps: Iterable[int], seed: int, points: Array) -> list[Turned]:
    """Plain EM from random latents, looked at after some numbers of steps."""
    kernel, executor = RbfKernel(GAMMA), ThreadExecutor(1)
    gram = CentredGram(Gram(X, kernel, executor, 1e9))
    model = KernelEM(gram, AXES, NOISE, gram.trace(), len(X) - 1)
    start = model.started(np.random.default_rng(seed).standard_normal((len(X), AXES)))
    asked, found = set(steps), {0: start}

    def watch(state: Climb) -> None:
        made = len(state.trace) - 1  # steps to the best point; the next one may be chosen already
        if made in asked and isinstance(state.best, Combinations):
            found[made] = state.best

    task = Task(model, gram.gram.strips, executor, None, seed)
    climb(task, Climb(start), Rules(tol=0.0, max_iter=max(asked)), watch)
    exact = np.linalg.eigh(gram.times(np.eye(len(X))))[1][:, -AXES:]
    K = gram.centre().rows(kernel.block(points, X))
    return [_turned(gram, n, found[n].B, exact, K) for n in sorted(asked & set(found))]


def _turned(gram: CentredGram, steps: int, B: Array, exact: Array, K: Array) -> Turned:
    Q = np.linalg.qr(B)[0]
    values, turn = np.linalg.eigh(Q.T @ gram.times(Q))
    V = (Q @ turn)[:, ::-1]
    V *= np.sign(V[np.abs(V).argmax(axis=0), np.arange(AXES)])
    return Turned(steps, span_error(B, exact), K @ V / np.sqrt(np.maximum(values[::-1], 1e-12)))


def grown(X: Array) -> list[Any]:
    """Incremental kernel PCA: two groups, then the third a few points at a time."""
    from mixfold.estimators.kernel_pca import KernelPCA

    models, first = [], len(X) - EACH
    for last in range(first, len(X) + 1, BATCH):
        model = KernelPCA(AXES, gamma=GAMMA, solver="krylov", tol=1e-8, n_jobs=1, random_state=0)
        model.partial_fit(X[:first])
        for start in range(first, last, BATCH):
            model.partial_fit(X[start : start + BATCH])
        models.append(model)
    return models


# ------------------------------------------------ with outputs


def kernel_supervised(X: Array, y: Array) -> Any:
    """Supervised kernel PPCA with both noises held; y is -1 where it is not known."""
    from mixfold import SupervisedPPCA

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so small noises are slow to converge under
        return SupervisedPPCA(
            AXES, kernel="rbf", gamma=WIDTH, task="classification", input_noise=KERNEL_NOISE,
            output_noise=KERNEL_NOISE, n_jobs=1, random_state=0,
        ).fit(X, y)  # fmt: skip


def split_right(axis: Array, y: Array) -> float:
    """The share of points on the right side of the best threshold of an axis."""
    ones = np.cumsum(y[np.argsort(axis)] == 1)
    left = np.arange(1, len(y) + 1)
    right = (left - ones) + (ones[-1] - ones)  # zeros to the left of it, ones to the right
    return float(max(right.max(), (len(y) - right).max()) / len(y))


def some_labelled(y: Array, rng: np.random.Generator) -> Array:
    """A few points of each class, drawn."""
    drawn = [rng.permutation(np.flatnonzero(y == c))[:LABELLED] for c in (-1, 1)]
    return np.concatenate(drawn)


def directions(X: Array, y: Array, known: Array) -> dict[str, Array]:
    """Unit vectors of the plane on which one factor lies, noises free and held; name to (2,)."""
    from mixfold import PPCA

    half = np.full(len(y), np.nan)
    half[known] = y[known]
    found = {"PCA": PPCA(1).fit(X).components_[0]}
    held: dict[str, Any] = {"input_noise": HELD[0], "output_noise": HELD[1]}
    for name, noises in (("", {}), (", noises held", held)):
        found[f"SPPCA, all labelled{name}"] = _direction(X, y, noises)
        found[f"SPPCA, labelled points only{name}"] = _direction(X[known], y[known], noises)
        found[f"S2PPCA{name}"] = _direction(X, half, noises)
    return {name: w / np.linalg.norm(w) for name, w in found.items()}


def _direction(X: Array, y: Array, noises: dict[str, Any]) -> Array:
    from mixfold import SupervisedPPCA

    model = SupervisedPPCA(1, task="regression", standardize=False, max_iter=5000, tol=1e-7,
                           n_jobs=1, random_state=0, **noises)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(model.fit(X, y).components_[0])


def to_first_axis(direction: Array) -> float:
    """The angle to the first coordinate, in degrees from 0 to 90."""
    return float(np.degrees(np.arctan2(abs(direction[1]), abs(direction[0]))))
