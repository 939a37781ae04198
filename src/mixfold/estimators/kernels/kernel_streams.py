"""Kernel PCA by batches: all rows kept and solved again from where it was, or bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.metaestimators import available_if

from mixfold.contracts import Array, Source, record
from mixfold.engine.sources import open_source
from mixfold.estimators.kernels.kernel_fits import axes_of_moments
from mixfold.estimators.kernels.kernel_maps import (
    Coordinates,
    check_landmarks,
    explain_missing_entries,
    landmarks_are_rows,
)
from mixfold.estimators.kernels.kernel_projection import KernelProjection
from mixfold.models.factors.spectral import ORDINARY
from mixfold.models.kernels.axes import known_scores
from mixfold.models.kernels.known import Collected, KnownRows, collect_rows, stacked
from mixfold.models.kernels.maps import PlainMap, landmark_map
from mixfold.models.kernels.projectors import DualProjector, PrimalProjector


@record
@dataclass(frozen=True, slots=True)
class WaitingRows:
    """Rows of a stream that has not brought enough for its landmarks yet, and their weights."""

    rows: KnownRows
    weight: Array


def computes_kernel(model: Any) -> bool:
    """Whether k(x, x) can be computed: what is asked of rows beside the axes needs it."""
    return bool(model.kernel != "precomputed")


class KernelStream(KernelProjection):
    """``partial_fit``."""

    @available_if(computes_kernel)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch, of any size.

        Without landmarks all rows are kept (of the last ``fit``, too): the new ones are projected
        on the axes so far and the solver goes on from there, on the kernel matrix of all rows. The
        result is that of one fit to all of them.

        With landmarks (or the linear kernel and at most 2000 columns) memory is bounded: only sums
        of squares and products of coordinates are kept. If ``landmarks`` is a number, the first
        rows of the stream become the landmarks; until there are enough, rows are kept and the
        model is that of all of them. ``forgetting`` below 1 multiplies what was learned before
        with each batch.

        What the kernel takes from the data (``gamma``) is taken from the first batch.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``; a kernel matrix (kernel='precomputed') has no batches.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._check_choices()
        begun = hasattr(self, "_projector")
        if begun and sample_weight is not None and _weightless(sample_weight):
            return self
        source = self._open(X, reset=not begun, weight=sample_weight)
        if not begun:
            self._begin()
        with explain_missing_entries():
            if self._streams_moments(source.n_features):
                self._add_moments(source, begun)
            else:
                self._refuse_forgetting()
                self._add_rows(source, begun)
        self._batches = getattr(self, "_batches", 0) + 1
        return self

    def _streams_moments(self, n_features: int) -> bool:
        if isinstance(getattr(self, "_projector", None), PrimalProjector):
            return True
        return self._is_primal() and (self.landmarks is not None or n_features <= ORDINARY)

    def _refuse_forgetting(self) -> None:
        if self.forgetting < 1:
            raise ValueError(
                f"forgetting={self.forgetting!r} needs sums that can be multiplied: landmarks, or "
                "the linear kernel. Without them all rows are kept; give forgetting=1.0"
            )

    # ------------------------------------------------ all rows

    def _add_rows(self, source: Source, begun: bool) -> None:
        rows = collect_rows(source, self._executor(source))
        known = getattr(self, "_projector", None)
        if not begun:
            kernel, start = self._kernel_of(rows.X), None
            X, weight = _copied(rows.X), rows.weights()
        elif isinstance(known, DualProjector) and known.rows is not None:
            kernel = known.kernel
            X, weight, start = self._joined(known, rows)
        else:
            raise self._changed()
        even = bool((weight == weight[0]).all())
        solved = self._solve(X, kernel, None if even else weight, start)
        self._total_weight = float(weight.sum())
        self._quietly(DualProjector(kernel, KnownRows.of(X), solved.axes), solved)

    def _joined(self, known: DualProjector, rows: Collected) -> tuple[Any, Array, Array | None]:
        """All rows, their weights, and where the solver begins."""
        assert known.rows is not None
        old = known.rows.matrix
        fresh = _alike(rows.X, old)
        shares = known.axes.centre.shares
        weight = np.concatenate([self._total_weight * shares, rows.weights()])
        start = None
        if len(known.axes.values):
            scores = np.concatenate([known_scores(known.axes), known.scores(fresh)])
            start = np.sqrt(weight)[:, None] * scores
        return stacked([old, fresh]), weight, start

    def _quietly(self, projector: DualProjector, solved: Any) -> None:
        """A stream that has only begun need not have any axis."""
        self.solver_, self.n_iter_, self.n_passes_ = solved.solver, solved.n_iter, solved.passes
        self.stop_reason_ = solved.reason
        self._publish(projector)
        if self.n_components_:
            self._warn(solved.lost, solved.worst)

    def _changed(self) -> ValueError:
        return ValueError(
            "this stream cannot go on: parameters (landmarks, kernel or solver) changed since the "
            "last batch, or the fit before it kept no sums (many columns). Clone the estimator and "
            "give all batches to partial_fit."
        )

    # ------------------------------------------------ sums

    def _add_moments(self, source: Source, begun: bool) -> None:
        waiting: WaitingRows | None = getattr(self, "_buffer", None)
        if not begun or waiting is not None:
            kernel, features, source = self._gathered(source, waiting)
            rows = Coordinates(source, self._executor(source), features, kernel)
            self._moments = rows.moments()
        else:
            known = self._projector
            if not isinstance(known, PrimalProjector) or not hasattr(self, "_moments"):
                raise self._changed()
            kernel, features = known.kernel, known.features
            rows = Coordinates(source, self._executor(source), features, kernel)
            batch = rows.moments(self._moments)
            earlier = self._moments
            if self.forgetting < 1:
                earlier = earlier.scale(float(self.forgetting))
            self._moments = earlier + batch
        dimension = kernel.dimension(source.n_features)
        size, noise = self._size(features.size), self.noise_variance
        axes, _ = axes_of_moments(self._moments, rows.plain, size, dimension, noise)
        self.solver_, self.n_iter_, self.n_passes_ = "primal", 1, 1
        self.stop_reason_ = "converged"
        self._publish(PrimalProjector(kernel, features, axes))
        lost = 0 if noise is None else int((axes.variances <= noise).sum())
        if self.n_components_:
            self._warn(lost, np.inf)

    def _gathered(self, source: Source, waiting: WaitingRows | None) -> tuple[Any, Any, Source]:
        """The kernel, the map as far as it is known, and the rows it has not seen."""
        if self.landmarks is None:
            kernel = self._kernel_of(np.zeros((1, source.n_features)))
            return kernel, PlainMap(source.n_features), source
        if landmarks_are_rows(self.landmarks):
            landmarks = check_landmarks(self.landmarks, source)
            kernel = self._kernel_of(landmarks)
            return kernel, landmark_map(kernel, landmarks), source
        rows = collect_rows(source, self._executor(source))
        X, weight = _copied(rows.X), rows.weights()
        if waiting is None:
            kernel = self._kernel_of(X)
        else:
            kernel = self._projector.kernel  # type: ignore[attr-defined]
            old = waiting.rows.matrix
            X = stacked([old, _alike(X, old)])
            weight = np.concatenate([self.forgetting * waiting.weight, weight])
        enough = X.shape[0] >= int(self.landmarks)
        self._buffer = None if enough else WaitingRows(KnownRows.of(X), weight)
        features = landmark_map(kernel, X[: int(self.landmarks)])
        return kernel, features, open_source(X, weight=weight)


def _copied(X: Any) -> Any:
    return X if sparse.issparse(X) else np.array(X, order="C")


def _alike(X: Any, old: Any) -> Any:
    """A batch in the type of the earlier rows: dense or CSR, single or double precision."""
    if sparse.issparse(old):
        return sparse.csr_array(X).astype(old.dtype)
    dense = X.toarray() if sparse.issparse(X) else X
    return np.asarray(dense, dtype=old.dtype)


def _weightless(weight: Any) -> bool:
    return not isinstance(weight, str) and not np.any(np.asarray(weight, dtype=float) > 0)
