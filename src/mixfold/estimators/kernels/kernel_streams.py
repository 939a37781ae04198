"""Kernel PCA by batches: all rows kept and solved again from where it was, or bounded memory.

``KernelPCA.partial_fit`` calls ``learn_batch`` and publishes what it gives back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Source, record
from mixfold.engine.schedules import Accumulated
from mixfold.engine.sources import open_source
from mixfold.estimators.kernels.kernel_fits import (
    FittedAxes,
    FittedProjector,
    Settings,
    axes_of_moments,
    count_below_noise,
    make_kernel,
    plain_map,
    solve_rows,
)
from mixfold.estimators.shell.kernel_features import (
    Coordinates,
    check_landmarks,
    landmarks_are_rows,
)
from mixfold.models.factors.spectral import ORDINARY
from mixfold.models.kernels.axes import scores_of_known_rows
from mixfold.models.kernels.known_rows import Collected, KnownRows, collect_rows, stack_blocks
from mixfold.models.kernels.maps import landmark_map
from mixfold.models.kernels.primal import FeatureMoments
from mixfold.models.kernels.projectors import DualProjector, PrimalProjector


@record
@dataclass(frozen=True, slots=True)
class WaitingRows:
    """Rows of a stream that has not brought enough for its landmarks yet, and their weights."""

    rows: KnownRows
    weight: Array


@dataclass(frozen=True, slots=True)
class Earlier:
    """What the fit or the batches before have left: the axes, and what they were made of.

    That is the rows that the projector keeps, of this weight in all; or moments of coordinates,
    and rows that wait for landmarks. Each is None where there is none.
    """

    projector: FittedProjector | None
    total_weight: float | None
    moments: FeatureMoments | None
    waiting: WaitingRows | None


def learn_batch(
    settings: Settings, source: Source, earlier: Earlier, forgetting: float
) -> FittedAxes:
    """The axes of all batches so far, of which ``source`` is the latest."""
    if _keeps_sums(settings, earlier, source.n_features):
        return _add_to_sums(settings, source, earlier, forgetting)
    if forgetting < 1:
        raise ValueError(
            f"forgetting={forgetting!r} needs sums that can be multiplied: landmarks, or "
            "the linear kernel. Without them all rows are kept; give forgetting=1.0"
        )
    return _add_to_rows(settings, source, earlier)


def is_weightless(weight: Any) -> bool:
    """Whether no row of a batch counts."""
    return not isinstance(weight, str) and not np.any(np.asarray(weight, dtype=float) > 0)


def _keeps_sums(settings: Settings, earlier: Earlier, n_features: int) -> bool:
    """Whether sums of coordinates are kept, instead of all rows."""
    if isinstance(earlier.projector, PrimalProjector):
        return True
    if settings.expected:
        return False
    return settings.in_coordinates and (settings.landmarks is not None or n_features <= ORDINARY)


def _cannot_go_on() -> ValueError:
    return ValueError(
        "this stream cannot go on: parameters (landmarks, kernel or solver) changed since the "
        "last batch, or the fit before it kept no sums (many columns). Clone the estimator and "
        "give all batches to partial_fit."
    )


# ------------------------------------------------------------------ all rows


def _add_to_rows(settings: Settings, source: Source, earlier: Earlier) -> FittedAxes:
    """The axes of the rows that were kept and of the new ones, by the kernel matrix of both."""
    rows = collect_rows(source, settings.executor_of(source), settings.expected)
    known = earlier.projector
    if known is None:
        kernel, start = make_kernel(settings, rows), None
        X, weight = _copy(rows.X), rows.weights()
    elif isinstance(known, DualProjector) and known.rows is not None:
        kernel = known.kernel
        assert earlier.total_weight is not None
        X, weight, start = _join(known, known.rows, earlier.total_weight, rows)
    else:
        raise _cannot_go_on()
    even = bool((weight == weight[0]).all())
    solved = solve_rows(settings, X, kernel, None if even else weight, start)
    projector = DualProjector(kernel, KnownRows.of(X), solved.axes)
    return solved.fitted(projector, None, {"_total_weight": float(weight.sum())})


def _join(
    known: DualProjector, kept: KnownRows, total_weight: float, rows: Collected
) -> tuple[Any, Array, Array | None]:
    """All rows, their weights, and where the solver begins."""
    old = kept.matrix
    fresh = _convert_like(rows.X, old)
    weight = np.concatenate([total_weight * known.axes.centre.shares, rows.weights()])
    start = None
    if len(known.axes.values):
        scores = np.concatenate([scores_of_known_rows(known.axes), known.scores(fresh)])
        start = np.sqrt(weight)[:, None] * scores
    return stack_blocks([old, fresh]), weight, start


# ------------------------------------------------------------------ sums


def _add_to_sums(
    settings: Settings, source: Source, earlier: Earlier, forgetting: float
) -> FittedAxes:
    """The axes of moments, to which those of the new rows are added."""
    known = earlier.projector
    state: dict[str, Any] = {}
    if known is None or earlier.waiting is not None:
        # the map is made, or made anew: all rows so far are seen through it
        kernel, features, source, state = _gather(settings, source, earlier, forgetting)
        rows = Coordinates(source, settings.executor_of(source), features, kernel)
        moments = rows.moments()
    else:
        if not isinstance(known, PrimalProjector) or earlier.moments is None:
            raise _cannot_go_on()
        kernel, features = known.kernel, known.features
        rows = Coordinates(source, settings.executor_of(source), features, kernel)
        known_sums = Accumulated(earlier.moments, forgetting=float(forgetting))
        moments = known_sums.blend(rows.moments(earlier.moments)).total()
    axes, _ = axes_of_moments(
        moments, rows.plain, settings.size_within(features.size),
        kernel.dimension(source.n_features), settings.noise,
    )  # fmt: skip
    return FittedAxes(
        PrimalProjector(kernel, features, axes), "primal", 1, 1, "converged",
        lost=count_below_noise(axes, settings.noise), state={**state, "_moments": moments},
    )  # fmt: skip


def _gather(
    settings: Settings, source: Source, earlier: Earlier, forgetting: float
) -> tuple[Any, Any, Source, dict[str, Any]]:
    """The kernel, the map as far as it is known, the rows it has not seen, and those that wait."""
    if settings.landmarks is None:
        return *plain_map(settings, source.n_features), source, {}
    if landmarks_are_rows(settings.landmarks):
        landmarks = check_landmarks(settings.landmarks, source)
        kernel = settings.kernel.make(landmarks)
        return kernel, landmark_map(kernel, landmarks), source, {}
    rows = collect_rows(source, settings.executor_of(source))
    X, weight = _copy(rows.X), rows.weights()
    if earlier.projector is None or earlier.waiting is None:
        kernel = settings.kernel.make(X)
    else:
        kernel = earlier.projector.kernel
        old = earlier.waiting.rows.matrix
        X = stack_blocks([old, _convert_like(X, old)])
        weight = np.concatenate([forgetting * earlier.waiting.weight, weight])
    enough = X.shape[0] >= int(settings.landmarks)
    waiting = None if enough else WaitingRows(KnownRows.of(X), weight)
    features = landmark_map(kernel, X[: int(settings.landmarks)])
    return kernel, features, open_source(X, weight=weight), {"_buffer": waiting}


def _copy(X: Any) -> Any:
    return X if sparse.issparse(X) else np.array(X, order="C")


def _convert_like(X: Any, old: Any) -> Any:
    """A batch in the type of the earlier rows: dense or CSR, single or double precision."""
    if sparse.issparse(old):
        return sparse.csr_array(X).astype(old.dtype)
    dense = X.toarray() if sparse.issparse(X) else X
    return np.asarray(dense, dtype=old.dtype)
