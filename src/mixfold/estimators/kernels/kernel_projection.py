"""How the axes of a kernel model are fitted to a whole data set, and what is published of them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite

from mixfold.contracts import Array, Source
from mixfold.engine.random import seed_from
from mixfold.engine.sources.array import ArraySource
from mixfold.engine.sources.sparse import SparseSource
from mixfold.estimators.kernels.kernel_fits import (
    Settings,
    Solved,
    axes_of_moments,
    copy_if_shared,
    gram_executor,
    make_gram,
    solve,
)
from mixfold.estimators.kernels.kernel_maps import (
    KERNEL_RULES,
    Coordinates,
    draw_given_map,
    draw_landmarks,
    kernel_of,
    landmarks_are_rows,
    select_weighted_square,
)
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import DegenerateWarning, MixfoldEstimator, warn
from mixfold.models.factors.spectral import ORDINARY
from mixfold.models.kernels.axes import eigenvectors
from mixfold.models.kernels.centred import CentredGram
from mixfold.models.kernels.known import KnownRows, collect_rows
from mixfold.models.kernels.law import AxesLaw
from mixfold.models.kernels.maps import PlainMap, landmark_map
from mixfold.models.kernels.primal import primal_axes
from mixfold.models.kernels.projectors import (
    DualProjector,
    PrimalProjector,
    Projector,
    spread_columns,
)

_SOLVERS = ("auto", "krylov", "chebyshev", "dense", "em", "primal")
_POSITIVE = rule.number(0, open_end=True)
_ROWS = rule.Rule("rows (an array with as many columns as X)", landmarks_are_rows)


def _is_share(value: Any) -> bool:
    return _POSITIVE.holds(value) and value <= 1


class KernelProjection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MixfoldEstimator):
    """Base of kernel PCA: fitting by products with the kernel matrix, or in coordinates."""

    _projector: Projector
    _constraints: ClassVar[rule.Constraints] = {
        **KERNEL_RULES,
        "n_components": (rule.nothing(), rule.integer(1)),
        "landmarks": (rule.nothing(), rule.integer(1), _ROWS),
        "solver": (rule.one_of(_SOLVERS),),
        "scale": (rule.one_of(["scores", "latent", "white"]),),
        "noise_variance": (rule.nothing(), _POSITIVE),
        "tol": (rule.number(0),),
        "max_iter": (rule.integer(1),),
        "cache_size": (rule.number(0),),
        "forgetting": (rule.Rule("a number above 0 and up to 1", _is_share),),
        "warm_start": (rule.boolean(),),
        "verbose": (rule.integer(0), rule.boolean()),
        "time_budget": (rule.nothing(), _POSITIVE),
    }  # fmt: skip

    def _open(self, X: Any, **how: Any) -> Source:
        if self.kernel == "precomputed" and isinstance(X, np.ndarray):
            assert_all_finite(X, input_name="X")  # it cannot be filled, whatever its shape
        return super()._open(X, **how)

    # ------------------------------------------------ choices

    def _check_choices(self) -> None:
        """Refuse parameters that do not go together."""
        primal = self.landmarks is not None or self.kernel == "linear"
        if self.solver == "primal" and not primal:
            raise ValueError(
                "solver='primal' works in coordinates of the features, which need kernel='linear' "
                f"or landmarks; got kernel={self.kernel!r} and landmarks=None"
            )
        if self.landmarks is not None and self.solver not in ("auto", "primal"):
            raise ValueError(
                "landmarks are a model in coordinates, fitted by solver='primal' (or 'auto'); got "
                f"solver={self.solver!r}. Leave landmarks=None for a solver of the kernel matrix."
            )
        if self.kernel == "precomputed" and landmarks_are_rows(self.landmarks):
            raise ValueError(
                "with kernel='precomputed' there are no rows, so landmarks must be a number of "
                "them; got an array"
            )

    def _is_primal(self) -> bool:
        in_coordinates = self.kernel == "linear" and self.solver in ("auto", "primal")
        return self.landmarks is not None or in_coordinates

    def _by_rows(self, source: Source) -> bool:
        """Whether the matrix of all rows is used: also where it is much smaller than that of the
        columns, and the rows are at hand."""
        if not self._is_primal():
            return True
        at_hand = isinstance(source, ArraySource | SparseSource)
        wide = source.n_features > max(ORDINARY, source.n_samples or source.n_features)
        return self.landmarks is None and self.solver == "auto" and at_hand and wide

    def _kernel_of(self, X: Any) -> Any:
        if self.kernel == "precomputed":
            return None
        return kernel_of(self.kernel, self.gamma, self.degree, self.coef0, X)

    def _settings(self) -> Settings:
        return Settings(
            self.solver, None if self.n_components is None else int(self.n_components),
            self.noise_variance, float(self.tol), int(self.max_iter), self._seed,
            self.time_budget, int(self.verbose),
        )  # fmt: skip

    # ------------------------------------------------ the kernel matrix

    def _fit_rows(self, source: Source) -> Array | None:
        """By the kernel matrix of all rows; their scores, if all of them have weight."""
        rows = collect_rows(source, self._executor(source))
        if self.kernel == "precomputed":
            rows = select_weighted_square(rows)
        kernel = self._kernel_of(rows.X)
        start = None
        if self.warm_start and self._has_rows(rows.X.shape[0]):
            start = eigenvectors(self._projector.axes)  # type: ignore[arg-type]
        solved = self._solve(rows.X, kernel, rows.weight, start)
        self._total_weight = rows.total
        axes, kept = solved.axes, None
        if kernel is None:
            axes = spread_columns(axes, rows.chosen)
        else:
            kept = KnownRows.of(copy_if_shared(rows.X, source))
        self._take(DualProjector(kernel, kept, axes), solved)
        return solved.scores if rows.chosen.all() else None

    def _has_rows(self, n: int) -> bool:
        known = getattr(self, "_projector", None)
        if not isinstance(known, DualProjector) or len(known.axes.values) == 0:
            return False
        return len(known.axes.coefficients) == n

    def _solve(self, X: Any, kernel: Any, weight: Array | None, start: Array | None) -> Solved:
        visitor = gram_executor(self.executor, self.n_jobs, X.shape[0])
        gram = make_gram(X, kernel, self.solver, visitor, 1e6 * float(self.cache_size))
        dimension = None if kernel is None else kernel.dimension(X.shape[1])
        return solve(CentredGram(gram, weight), dimension, self._settings(), start)

    def _take(self, projector: Projector, solved: Solved) -> None:
        self.solver_, self.n_iter_, self.n_passes_ = solved.solver, solved.n_iter, solved.passes
        self.stop_reason_ = solved.reason
        self._publish(projector)
        self._warn(solved.lost, solved.worst)

    # ------------------------------------------------ coordinates

    def _fit_coordinates(self, source: Source) -> None:
        executor = self._executor(source)
        kernel, features = self._features(source)
        rows = Coordinates(source, executor, features, kernel)
        size = self._size(features.size)
        dimension = None if kernel is None else kernel.dimension(source.n_features)
        noise = self.noise_variance
        if rows.by_moments(size):
            self._moments = rows.moments()
            axes, spectrum = axes_of_moments(self._moments, rows.plain, size, dimension, noise)
        else:
            spectrum = rows.spectrum(size, np.random.default_rng(self._seed % 2**63))
            diagonal = None if rows.plain else rows.diagonal(spectrum.weight) / spectrum.weight
            axes = primal_axes(spectrum, diagonal, dimension, noise)
        self.solver_, self.n_iter_, self.n_passes_ = "primal", 1, spectrum.passes
        self.stop_reason_ = "converged" if spectrum.converged else "max_iter"
        self._publish(PrimalProjector(kernel, features, axes))
        self._warn(0 if noise is None else int((axes.variances <= noise).sum()), np.inf)

    def _size(self, largest: int) -> int:
        return largest if self.n_components is None else min(int(self.n_components), largest)

    def _features(self, source: Source) -> tuple[Any, Any]:
        """The kernel, and the map into coordinates."""
        executor = self._executor(source)
        if self.landmarks is None:
            return self._kernel_of(np.zeros((1, source.n_features))), PlainMap(source.n_features)
        if self.kernel == "precomputed":
            rows = collect_rows(source, executor)
            select_weighted_square(rows)
            return None, draw_given_map(rows, int(self.landmarks), self._seed)
        landmarks = draw_landmarks(source, executor, self.landmarks, self._seed)
        kernel = self._kernel_of(landmarks)
        return kernel, landmark_map(kernel, landmarks)

    # ------------------------------------------------ results

    def _begin(self) -> None:
        """What is forgotten, and drawn anew, where a fit begins."""
        self._seed = seed_from(self.random_state)
        for name in ("_moments", "_buffer", "_batches"):
            self.__dict__.pop(name, None)

    def _publish(self, projector: Projector) -> None:
        self._projector = projector
        self.__dict__.pop("_pre_images", None)
        axes: AxesLaw = projector.axes
        trace = float(axes.trace)  # type: ignore[attr-defined]
        self.n_components_ = len(axes.values)
        self.eigenvalues_ = axes.values
        self.explained_variance_ = axes.variances
        self.explained_variance_ratio_ = axes.values / trace if trace > 0 else axes.values
        self.noise_variance_ = float(axes.noise)
        self.gamma_ = getattr(projector.kernel, "gamma", None)  # type: ignore[attr-defined]
        self.converged_ = self.stop_reason_ == "converged"

    def _warn(self, lost: int, worst: float) -> None:
        """What a user should know of a fit."""
        if self.n_components_ == 0 and not lost:
            warn(
                "the rows do not differ in this kernel: there is no axis (n_components_ is 0). "
                "Give rows that differ, or another kernel or gamma.",
                DegenerateWarning,
            )
        if lost:
            warn(
                f"{lost} of the axes have no more variance than noise_variance="
                f"{self.noise_variance!r}, so their latents are zero; give a smaller one (or None)",
                DegenerateWarning,
            )
        if not self.converged_:
            reached = f"; the largest relative residual is {worst:.1e}" if worst < np.inf else ""
            warn(
                f"the axes are less exact than asked for ({self.stop_reason_} was reached after "
                f"{self.n_iter_} iterations{reached}): increase max_iter, tol or time_budget, or "
                "ask for fewer n_components",
                ConvergenceWarning,
            )
