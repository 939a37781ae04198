"""How kernel PCA finds its axes in a whole data set: by the kernel matrix, or in coordinates.

KernelPCA hands its parameters over as ``Settings`` and gets ``FittedAxes`` back, from
``fit_by_kernel_matrix`` or ``fit_in_coordinates``; batches of a stream are in ``kernel_streams``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Executor, Pilot, Source
from mixfold.engine.budget import Deadline
from mixfold.engine.executors import resolve_executor
from mixfold.engine.loop import Plan, fit
from mixfold.engine.progress import Progress
from mixfold.engine.sources.array import ArraySource
from mixfold.engine.sources.sparse import SparseSource
from mixfold.estimators.kernels.kernel_holes import learn_expected_kernel
from mixfold.estimators.shell.kernel_features import (
    Coordinates,
    KernelChoice,
    draw_landmark_map,
    landmarks_are_rows,
    select_weighted_square,
)
from mixfold.math.kernels import Kernel, LinearKernel
from mixfold.math.krylov import Eigenpairs
from mixfold.models.factors.spectral import ORDINARY, Spectrum, from_moments
from mixfold.models.kernels.axes import (
    NEGLIGIBLE,
    SOLVERS,
    KernelAxes,
    eigenvectors,
    has_variance,
    kernel_axes,
    scores_of_known_rows,
)
from mixfold.models.kernels.centred import CentredGram
from mixfold.models.kernels.em import KernelEM, ritz
from mixfold.models.kernels.gram import FactoredGram, GivenGram, Gram
from mixfold.models.kernels.known_rows import Collected, KnownRows, collect_rows
from mixfold.models.kernels.maps import FeatureMap, PlainMap
from mixfold.models.kernels.primal import FeatureMoments, PrimalAxes, primal_axes
from mixfold.models.kernels.projectors import DualProjector, PrimalProjector, spread_columns

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
# axes that are tried first where a share of the variance is asked for, and rounding of that share
_FIRST_AXES, _SHARE_ROUNDING = 20, 1e-12

FittedProjector = DualProjector | PrimalProjector


@dataclass(frozen=True, slots=True)
class Settings:
    """The parameters of KernelPCA on which a fit depends.

    ``size`` None means all axes; a float is the share of the variance that they are to hold. What
    is 'learn' becomes a number before a fit (``kernel_width``). ``expected``: whether rows may have
    holes, and the kernel is its expectation (``kernel_holes``).
    """

    kernel: KernelChoice
    landmarks: Any
    solver: str
    size: int | float | str | None
    noise: float | None
    tol: float
    max_iter: int
    cache_bytes: float
    seed: int
    time_budget: float | None
    verbose: int
    executor: Any
    n_jobs: int | None
    expected: bool = False

    @property
    def in_coordinates(self) -> bool:
        """Whether parameters ask for a covariance of coordinates, rather than a kernel matrix."""
        by_columns = self.kernel.is_linear and self.solver in ("auto", "primal")
        return self.landmarks is not None or by_columns

    def executor_of(self, source: Source) -> Executor:
        """Where the rows of a source are visited."""
        return resolve_executor(self.executor, self.n_jobs, source)

    def size_within(self, largest: int) -> int:
        """The number of axes, of which there are so many at most."""
        assert not isinstance(self.size, float | str), "see fit_to_share and kernel_width"
        return largest if self.size is None else min(self.size, largest)


@dataclass(frozen=True, slots=True)
class FittedAxes:
    """What a fit or a batch has found, for KernelPCA to publish.

    ``worst`` is the largest relative residual, where it is known; ``lost`` axes have less variance
    than the noise that was given; ``scores`` are those of the rows, where they are at hand.
    ``state`` is what the next batch goes on from: attributes of the estimator, by name.
    """

    projector: FittedProjector
    solver: str
    n_iter: int
    n_passes: int
    reason: str
    worst: float = np.inf
    lost: int = 0
    scores: Array | None = None
    state: dict[str, Any] = field(default_factory=dict)


def refuse_contradictions(kernel: Any, landmarks: Any, solver: str) -> None:
    """Refuse parameters of KernelPCA that do not go together."""
    if solver == "primal" and landmarks is None and kernel != "linear":
        raise ValueError(
            "solver='primal' works in coordinates of the features, which need kernel='linear' "
            f"or landmarks; got kernel={kernel!r} and landmarks=None"
        )
    if landmarks is not None and solver not in ("auto", "primal"):
        raise ValueError(
            "landmarks are a model in coordinates, fitted by solver='primal' (or 'auto'); got "
            f"solver={solver!r}. Leave landmarks=None for a solver of the kernel matrix."
        )
    if kernel == "precomputed" and landmarks_are_rows(landmarks):
        raise ValueError(
            "with kernel='precomputed' there are no rows, so landmarks must be a number of "
            "them; got an array"
        )


def fit_to_share(settings: Settings, run: Callable[[Settings], FittedAxes]) -> FittedAxes:
    """The fewest axes that hold the share ``settings.size`` of the variance of the features.

    A number of axes is fitted by ``run``, and doubled until they hold it or there are no more.
    """
    if not isinstance(settings.size, float):
        return run(settings)
    deadline, size = Deadline.after(settings.time_budget), _FIRST_AXES

    def fit_axes(number: int) -> FittedAxes:
        return run(replace(settings, size=number, time_budget=deadline.seconds_left))

    while True:
        found = fit_axes(size)
        axes = found.projector.axes
        held = np.cumsum(axes.values) >= (settings.size - _SHARE_ROUNDING) * float(axes.trace)
        if held.any():
            needed = int(held.argmax()) + 1
            return found if needed == len(axes.values) else fit_axes(needed)
        if len(axes.values) < size or found.reason == "time_budget":
            return found
        size *= 2


def uses_kernel_matrix(settings: Settings, source: Source) -> bool:
    """Whether the matrix of all rows is used.

    That is also where it is much smaller than that of the columns, and the rows are at hand.
    """
    if settings.expected or not settings.in_coordinates:
        return True
    at_hand = isinstance(source, ArraySource | SparseSource)
    wide = source.n_features > max(ORDINARY, source.n_samples or source.n_features)
    return settings.landmarks is None and settings.solver == "auto" and at_hand and wide


# ------------------------------------------------------------------ by the kernel matrix


def fit_by_kernel_matrix(
    settings: Settings, source: Source, earlier: FittedProjector | None
) -> FittedAxes:
    """By the kernel matrix of all rows, from the axes of an earlier fit if it had as many rows.

    The scores are those of all rows, unless some of them have no weight.
    """
    rows = collect_rows(source, settings.executor_of(source), settings.expected)
    if settings.kernel.is_precomputed:
        rows = select_weighted_square(rows)
    kernel = None if settings.kernel.is_precomputed else make_kernel(settings, rows)
    start = _start_from(earlier, rows.X.shape[0])
    solved = solve_rows(settings, rows.X, kernel, rows.weight, start)
    if kernel is None:
        projector = DualProjector(None, None, spread_columns(solved.axes, rows.chosen))
    else:
        kept = KnownRows.of(_copy_if_shared(rows.X, source))
        projector = DualProjector(kernel, kept, solved.axes)
    scores = solved.scores if rows.chosen.all() else None
    return solved.fitted(projector, scores, {"_total_weight": rows.total})


def make_kernel(settings: Settings, rows: Collected) -> Kernel:
    """The kernel of these rows, or its expectation where they may have holes."""
    if settings.expected:
        return learn_expected_kernel(settings.kernel, rows)
    return settings.kernel.make(rows.X)


def _start_from(earlier: FittedProjector | None, n_rows: int) -> Array | None:
    """The eigenvectors of an earlier fit, if it was of as many rows."""
    if not isinstance(earlier, DualProjector) or len(earlier.axes.values) == 0:
        return None
    return eigenvectors(earlier.axes) if len(earlier.axes.coefficients) == n_rows else None


def _copy_if_shared(X: Any, source: Source) -> Any:
    """Rows that nobody else can change."""
    if sparse.issparse(X):
        return X
    views = X.base is not None or X is getattr(source, "_X", None)
    return np.array(X, order="C") if views else X


# ------------------------------------------------------------------ in coordinates


def fit_in_coordinates(settings: Settings, source: Source) -> FittedAxes:
    """By the covariance of coordinates: those of landmarks, or the columns of X."""
    executor = settings.executor_of(source)
    kernel, features = _choose_map(settings, source, executor)
    rows = Coordinates(source, executor, features, kernel)
    size = settings.size_within(features.size)
    dimension = None if kernel is None else kernel.dimension(source.n_features)
    state: dict[str, Any] = {}
    if rows.by_moments(size):
        state["_moments"] = rows.moments()
        axes, spectrum = axes_of_moments(
            state["_moments"], rows.plain, size, dimension, settings.noise
        )
    else:
        spectrum = rows.spectrum(size, np.random.default_rng(settings.seed % 2**63))
        diagonal = None if rows.plain else rows.diagonal(spectrum.weight) / spectrum.weight
        axes = primal_axes(spectrum, diagonal, dimension, settings.noise)
    return FittedAxes(
        PrimalProjector(kernel, features, axes), "primal", 1, spectrum.passes,
        "converged" if spectrum.converged else "max_iter",
        lost=count_below_noise(axes, settings.noise), state=state,
    )  # fmt: skip


def _choose_map(
    settings: Settings, source: Source, executor: Executor
) -> tuple[Kernel | None, FeatureMap]:
    """The kernel, and the map into coordinates."""
    if settings.landmarks is None:
        return plain_map(settings, source.n_features)
    return draw_landmark_map(settings.kernel, source, executor, settings.landmarks, settings.seed)


def plain_map(settings: Settings, n_features: int) -> tuple[Kernel, FeatureMap]:
    """The linear kernel, whose coordinates are the columns."""
    return settings.kernel.make(np.zeros((1, n_features))), PlainMap(n_features)


def axes_of_moments(
    sums: FeatureMoments, plain: bool, size: int, dimension: int | None, noise: float | None
) -> tuple[PrimalAxes, Spectrum]:
    """Axes of all rows that the moments stand for."""
    spectrum = from_moments(sums.moments, size)
    diagonal = None if plain else sums.diagonal / sums.weight
    return primal_axes(spectrum, diagonal, dimension, noise), spectrum


def count_below_noise(axes: PrimalAxes, noise: float | None) -> int:
    """How many axes have no more variance than the noise that was given."""
    return 0 if noise is None else int((axes.variances <= noise).sum())


# ------------------------------------------------------------------ eigenpairs of a kernel matrix


@dataclass(frozen=True, slots=True)
class Solved:
    """Axes, the scores (N, d) of the known rows, and how they were found, as in ``FittedAxes``."""

    axes: KernelAxes
    scores: Array
    solver: str
    n_iter: int
    passes: int
    reason: str
    worst: float
    lost: int

    def fitted(
        self, projector: DualProjector, scores: Array | None, state: dict[str, Any]
    ) -> FittedAxes:
        """What is published, once it is known how new rows are projected."""
        return FittedAxes(
            projector, self.solver, self.n_iter, self.passes, self.reason, self.worst, self.lost,
            scores, state,
        )  # fmt: skip


def solve_rows(
    settings: Settings, X: Any, kernel: Kernel | None, weight: Array | None, start: Array | None
) -> Solved:
    """The leading axes of rows X, or of the kernel matrix X if there is no kernel.

    ``start`` (N, m) has directions to begin with.
    """
    # threads are given out by the size of the kernel matrix
    square = _Square(X.shape[0], X.shape[0])
    executor = resolve_executor(settings.executor, settings.n_jobs, square)
    gram = _make_gram(X, kernel, settings, executor)
    dimension = None if kernel is None else kernel.dimension(X.shape[1])
    return _solve(CentredGram(gram, weight), dimension, settings, start)


@dataclass(frozen=True, slots=True)
class _Square:
    """The size of a kernel matrix, in place of a source of so many rows."""

    n_samples: int
    n_features: int


def _make_gram(X: Any, kernel: Kernel | None, settings: Settings, executor: Executor) -> Gram:
    if kernel is None:
        return GivenGram(X, executor)
    if isinstance(kernel, LinearKernel) and settings.solver != "em":
        return FactoredGram(X, kernel, executor)
    return Gram(X, kernel, executor, settings.cache_bytes)


def _solve(
    gram: CentredGram, dimension: int | None, settings: Settings, start: Array | None
) -> Solved:
    n = gram.size
    size = settings.size_within(n)
    solver = _choose_solver(settings, n, size)
    watch = _Watch(settings)
    try:
        if solver == "em":
            pairs, reason = _solve_by_em(gram, size, dimension, settings, start)
        else:
            with watch.progress:
                pairs = _solve_by_products(solver, gram, size, settings, start, watch)
            reason = "converged" if pairs.converged else watch.reason
    except _NoVariance:
        pairs, reason = Eigenpairs(np.empty(0), np.empty((n, 0)), 1, True), "converged"
    lost = 0 if settings.noise is None else int((pairs.values <= n * settings.noise).sum())
    if solver == "em" and lost:  # what the noise has swallowed has no direction left
        kept = slice(0, len(pairs.values) - lost)
        pairs = replace(pairs, values=pairs.values[kept], vectors=pairs.vectors[:, kept])
    axes = kernel_axes(gram, pairs, dimension, settings.noise)
    found = scores_of_known_rows(axes)
    return Solved(axes, found, solver, pairs.passes, gram.passes, reason, watch.worst, lost)


def _choose_solver(settings: Settings, n: int, size: int) -> str:
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


def _solve_by_products(
    solver: str,
    gram: CentredGram,
    size: int,
    settings: Settings,
    start: Array | None,
    watch: _Watch,
) -> Eigenpairs:
    """By products of the kernel matrix with blocks of vectors."""
    how: dict[str, Any] = {}
    passes = settings.max_iter
    if solver == "krylov" and gram.gram.is_kept and start is None:
        # an iteration is worth as many columns as there are axes
        how["width"] = _NARROW
        passes = max(passes, -(-passes * (size + 10) // _NARROW))
    if solver == "chebyshev":
        how["rounding"] = _ROUNDING[_precision(gram)]
        passes = 1 + _PRODUCTS * passes
    rng = np.random.default_rng(settings.seed % 2**63)
    return SOLVERS[solver](
        _Times(gram), gram.size, size, rng, tol=max(settings.tol, _reachable(gram)),
        max_passes=max(passes, 1), start=start, watch=watch, **how,
    )  # fmt: skip


def _precision(gram: CentredGram) -> str:
    return "float32" if gram.gram.X.dtype == np.float32 else "float64"


def _reachable(gram: CentredGram) -> float:
    """The smallest residual that products in this precision have."""
    return _REACHED[_precision(gram)]


def _solve_by_em(
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
    space, tol = dimension or max(n - 1, real, 1), max(settings.tol, _reachable(gram))
    model = KernelEM(gram, real, noise, gram.trace(), space, tol)
    plan = Plan(
        tol=0.0, max_iter=settings.max_iter, n_candidates=1, seed=settings.seed,
        time_budget=settings.time_budget,
    )  # fmt: skip
    result = fit(
        model, gram.gram.strips, gram.gram.executor, plan, pilot=_no_pilot(gram),
        start=model.start_from_latents(np.sqrt(n) * first.vectors[:, :real]),
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
        self._deadline = Deadline.after(settings.time_budget)
        self.worst = np.inf
        self.reason = "max_iter"

    def __call__(self, passes: int, worst: float) -> bool:
        self.worst = worst
        late = self._deadline.has_passed
        if late:
            self.reason = "time_budget"
        self.progress.say(f"product {passes}  largest relative residual {worst:.1e}", True)
        return late
