"""Eigenpairs of a centred kernel matrix, by the solver that a user chose or that suits its size."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Executor, Pilot, Source
from mixfold.engine.executors import resolve_executor
from mixfold.engine.loop import Plan, fit
from mixfold.engine.progress import Progress
from mixfold.math.kernels import Kernel, LinearKernel
from mixfold.math.krylov import Eigenpairs
from mixfold.models.factors.spectral import Spectrum, from_moments
from mixfold.models.kernels.axes import (
    NEGLIGIBLE,
    SOLVERS,
    KernelAxes,
    has_variance,
    kernel_axes,
    known_scores,
)
from mixfold.models.kernels.centred import CentredGram
from mixfold.models.kernels.em import KernelEM, ritz
from mixfold.models.kernels.gram import FactoredGram, GivenGram, Gram
from mixfold.models.kernels.primal import FeatureMoments, PrimalAxes, primal_axes

# order of a matrix that is decomposed in full without a second thought, and of the largest one
SMALL, LARGEST = 800, 2**14
# columns of a block when products with a kernel matrix cost no more than their columns
_NARROW = 24
# residuals that products in a type can reach, relative to their eigenvalue
_REACHED = {"float64": 1e-13, "float32": 1e-5}
# and those that rounding leaves, relative to the largest one
_ROUNDING = {"float64": 1e-13, "float32": 1e-6}
# a filter of the Chebyshev solver is this many products
_PRODUCTS = 8


@dataclass(frozen=True, slots=True)
class Settings:
    """How axes are looked for; ``size`` None means all of them."""

    solver: str
    size: int | None
    noise: float | None
    tol: float
    max_iter: int
    seed: int
    time_budget: float | None
    verbose: int


@dataclass(frozen=True, slots=True)
class Solved:
    """Axes, the scores (N, d) of the known rows, and how they were found.

    ``lost`` axes have less variance than the noise that was given.
    """

    axes: KernelAxes
    scores: Array
    solver: str
    n_iter: int
    passes: int
    reason: str
    worst: float
    lost: int


def make_gram(
    X: Any, kernel: Kernel | None, solver: str, executor: Executor, cache_bytes: float
) -> Gram:
    """The kernel matrix of rows X, or X itself if there is no kernel."""
    if kernel is None:
        return GivenGram(X, executor)
    if isinstance(kernel, LinearKernel) and solver != "em":
        return FactoredGram(X, kernel, executor)
    return Gram(X, kernel, executor, cache_bytes)


def gram_executor(executor: Any, n_jobs: int | None, n_rows: int) -> Executor:
    """Where tiles are visited: threads are given out by the size of the kernel matrix."""
    return resolve_executor(executor, n_jobs, _Square(n_rows, n_rows))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Square:
    n_samples: int
    n_features: int


def solve(
    gram: CentredGram, dimension: int | None, settings: Settings, start: Array | None = None
) -> Solved:
    """The leading axes of all rows; ``start`` (N, m) has directions to begin with."""
    n = gram.size
    size = n if settings.size is None else min(settings.size, n)
    solver = _chosen(settings, n, size)
    watch = _Watch(settings)
    try:
        if solver == "em":
            pairs, reason = _by_em(gram, size, dimension, settings, start)
        else:
            with watch.progress:
                pairs = _by_products(solver, gram, size, settings, start, watch)
            reason = "converged" if pairs.converged else watch.reason
    except _NoVariance:
        pairs, reason = Eigenpairs(np.empty(0), np.empty((n, 0)), 1, True), "converged"
    lost = 0 if settings.noise is None else int((pairs.values <= n * settings.noise).sum())
    if solver == "em" and lost:  # what the noise has swallowed has no direction left
        kept = slice(0, len(pairs.values) - lost)
        pairs = replace(pairs, values=pairs.values[kept], vectors=pairs.vectors[:, kept])
    axes = kernel_axes(gram, pairs, dimension, settings.noise)
    found = known_scores(axes)
    return Solved(axes, found, solver, pairs.passes, gram.passes, reason, watch.worst, lost)


def _chosen(settings: Settings, n: int, size: int) -> str:
    solver = settings.solver
    if solver == "auto":
        many = 4 * (size + 10) > n
        whole = settings.size is None
        solver = "dense" if whole or n <= SMALL or (many and n <= LARGEST) else "krylov"
    if solver == "dense" and n > LARGEST:
        raise ValueError(
            f"the kernel matrix of {n} rows is too large to be decomposed as a whole (at most "
            f"{LARGEST} rows); give a number n_components and solver='auto', or landmarks"
        )
    return solver


def _by_products(
    solver: str,
    gram: CentredGram,
    size: int,
    settings: Settings,
    start: Array | None,
    watch: _Watch,
) -> Eigenpairs:
    how: dict[str, Any] = {}
    passes = settings.max_iter
    if solver == "krylov" and gram.gram.is_kept and start is None:
        # an iteration is worth as many columns as there are axes
        how["width"] = _NARROW
        passes = max(passes, -(-passes * (size + 10) // _NARROW))
    if solver == "chebyshev":
        how["rounding"] = _ROUNDING[_kind(gram)]
        passes = 1 + _PRODUCTS * passes
    rng = np.random.default_rng(settings.seed % 2**63)
    return SOLVERS[solver](
        _Times(gram), gram.size, size, rng, tol=max(settings.tol, _reached(gram)),
        max_passes=max(passes, 1), start=start, watch=watch, **how,
    )  # fmt: skip


def _kind(gram: CentredGram) -> str:
    return "float32" if gram.gram.X.dtype == np.float32 else "float64"


def _reached(gram: CentredGram) -> float:
    return _REACHED[_kind(gram)]


def _by_em(
    gram: CentredGram,
    size: int,
    dimension: int | None,
    settings: Settings,
    start: Array | None,
) -> tuple[Eigenpairs, str]:
    """The steps of EM in the loop that all models share, then exact axes of what they span."""
    n = gram.size
    rng = np.random.default_rng(settings.seed % 2**63)
    B = rng.standard_normal((n, size))
    if start is not None:
        B[:, : start.shape[1]] = start[:, :size]
    # one product tells how many axes there can be, and a noise that none of them falls below
    first = ritz(gram, B, 0, False)
    if not has_variance(gram):
        raise _NoVariance
    real = max(1, int((first.values > NEGLIGIBLE * max(gram.trace(), 0.0)).sum()))
    noise = settings.noise or 0.5 * float(first.values[real - 1]) / n or 1.0
    space, tol = dimension or max(n - 1, real, 1), max(settings.tol, _reached(gram))
    model = KernelEM(gram, real, noise, gram.trace(), space, tol)
    plan = Plan(
        tol=0.0, max_iter=settings.max_iter, n_candidates=1, seed=settings.seed,
        time_budget=settings.time_budget,
    )  # fmt: skip
    result = fit(
        model, gram.gram.strips, gram.gram.executor, plan, pilot=_no_pilot(gram),
        start=model.started(np.sqrt(n) * first.vectors[:, :real]),
        progress=Progress(settings.verbose),
    )  # fmt: skip
    gram.passes += result.n_passes
    pairs = replace(ritz(gram, result.params.B, 0, result.converged), passes=result.n_iter)
    return pairs, result.reason


def _no_pilot(gram: CentredGram) -> Pilot:
    """The model starts from its own kernel matrix."""
    nothing = np.zeros(0)
    return Pilot(Block(gram.gram.X[:1]), gram.size, float(gram.size), nothing, nothing, nothing)


class _NoVariance(Exception):
    """All rows have the same features."""


@dataclass(frozen=True, slots=True)
class _Times:
    """Products, the first of which tells whether there is anything to find."""

    gram: CentredGram

    def __call__(self, Q: Array) -> Array:
        product = self.gram.times(Q)
        if self.gram.passes == 1 and not has_variance(self.gram):
            raise _NoVariance
        return product


class _Watch:
    """Tells how far a solver is, and ends it in time."""

    def __init__(self, settings: Settings) -> None:
        self.progress = Progress(settings.verbose)
        budget = settings.time_budget
        self._deadline = np.inf if budget is None else time.monotonic() + budget
        self.worst = np.inf
        self.reason = "max_iter"

    def __call__(self, passes: int, worst: float) -> bool:
        self.worst = worst
        late = time.monotonic() >= self._deadline
        if late:
            self.reason = "time_budget"
        self.progress.say(f"product {passes}  largest relative residual {worst:.1e}", True)
        return late


def copy_if_shared(X: Any, source: Source) -> Any:
    """Rows that nobody else can change."""
    if sparse.issparse(X):
        return X
    views = X.base is not None or X is getattr(source, "_X", None)
    return np.array(X, order="C") if views else X


def axes_of_moments(
    sums: FeatureMoments, plain: bool, size: int, dimension: int | None, noise: float | None
) -> tuple[PrimalAxes, Spectrum]:
    """Axes of all rows that the moments stand for."""
    spectrum = from_moments(sums.moments, size)
    diagonal = None if plain else sums.diagonal / sums.weight
    return primal_axes(spectrum, diagonal, dimension, noise), spectrum
