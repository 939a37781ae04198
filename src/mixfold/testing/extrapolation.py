"""Laws of acceleration: unconstrained coordinates, correct gradients, a metric."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array, Metric
from mixfold.testing.case import Case
from mixfold.testing.compare import require, require_same
from mixfold.testing.oracles import gradient_by_differences
from mixfold.testing.shrinking import shrinks


@shrinks
def coordinates_round_trip(case: Case, n_steps: int = 2) -> None:
    """Parameters -> vector -> parameters, and any small change of the vector is allowed."""
    model, params = case.model, case.after(n_steps)
    vector = model.coordinates(params)
    require(vector.ndim == 1, "coordinates round trip", f"coordinates of shape {vector.shape}")
    back = model.from_coordinates(params, vector)
    require(back is not None, "coordinates round trip", "no parameters for their own coordinates")
    require_same("coordinates round trip", back, params, 1e-10, "params")
    rng = np.random.default_rng(case.seed)
    moved = model.from_coordinates(params, vector + 0.01 * rng.standard_normal(vector.shape))
    require(moved is not None, "coordinates are free", "no parameters close by")
    again = model.coordinates(model.from_coordinates(params, model.coordinates(moved)))
    require_same("coordinates round trip", again, model.coordinates(moved), 1e-10, "vector")
    gap = case.objective(moved) - case.objective(params)
    require(
        bool(np.isfinite(gap)) and gap != 0, "coordinates are free", f"the objective moved {gap}"
    )


@shrinks
def gradient(case: Case, n_steps: int = 1, rtol: float = 1e-5) -> None:
    """The gradient agrees with finite differences of the objective, coordinate by coordinate."""
    model, params = case.model, case.after(n_steps)
    derivatives = model.derivatives(params, case.stats(params))
    if derivatives is None:
        return
    slope, metric = derivatives
    vector = model.coordinates(params)
    wanted = gradient_by_differences(
        lambda v: case.objective(model.from_coordinates(params, v)), vector
    )
    size = float(np.abs(wanted).max())
    require(size > 1e-3, "gradient", "the case is at a stationary point, which shows nothing")
    worst = int(np.abs(slope - wanted).argmax())
    gap = abs(float(slope[worst] - wanted[worst]))
    message = f"coordinate {worst}: {slope[worst]:.8g}, by differences {wanted[worst]:.8g}"
    require(gap <= rtol * size, "gradient", message)
    _positive_definite(metric, len(vector), case.seed)


def _positive_definite(metric: Metric, size: int, seed: int) -> None:
    """``metric.solve`` is linear, symmetric and positive."""
    inverse = np.stack([metric.solve(unit) for unit in np.eye(size)], axis=1)
    rng = np.random.default_rng(seed)
    direction: Array = rng.standard_normal(size)
    scale = np.abs(inverse).max()
    require_same(
        "metric is linear", metric.solve(direction) / scale, inverse @ direction / scale, 1e-9
    )
    require_same("metric is symmetric", inverse / scale, inverse.T / scale, 1e-12)
    # in its own scale: the units of the coordinates differ by orders
    root = np.sqrt(np.maximum(np.diagonal(inverse), np.finfo(float).tiny))
    least = float(np.linalg.eigvalsh(inverse / root[:, None] / root)[0])
    require(least > 1e-12, "metric is positive", f"smallest eigenvalue {least:.3g}")
