"""Laws of units: results do not depend on the scale of columns or on unobserved columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Model
from mixfold.families.gaussian import GaussianFamily, GaussianParams
from mixfold.math.frame import Frame
from mixfold.testing.case import Case, with_complete_flag
from mixfold.testing.compare import require_same
from mixfold.testing.shrinking import shrinks


@shrinks
def equivariance(case: Case, shift: Array, scale: Array, n_steps: int = 3) -> None:
    """Data in other units: the same start and steps, the objective moved by the logs of scales.

    ``shift`` and ``scale`` (D,) make x * scale + shift; let ``scale`` be constant for families that
    treat columns alike (spheres).
    """
    X = np.asarray(case.X)
    seen = case.block.weights() @ ~np.isnan(X)
    jacobian = float(seen @ np.log(scale))
    moved = replace(case, X=(X * scale + shift).astype(X.dtype))
    ours, theirs = case.start(), moved.start()
    for step in range(n_steps):
        a, b = case.stats(ours), moved.stats(theirs)
        here = case.model.objective(ours, a)
        there = moved.model.objective(theirs, b) + jacobian
        what = f"objective after {step} steps"
        require_same("shift and scale", there, here, 100 * case.rtol, what)
        ours = case.update(ours, a, step + 1).params
        theirs = moved.update(theirs, b, step + 1).params


def missing_column(
    case: Case, params: Any, reduced: Model[Any, Any, Any], rest: Any, column: int
) -> None:
    """A column that is NaN in every row counts for nothing.

    Parameters
    ----------
    params : parameters of ``case.model``
    reduced : Model
        The same model of the other columns.
    rest : parameters of ``reduced``
        ``params`` without the column.
    """
    block = case.block
    X = np.asarray(block.X).copy()
    X[:, column] = np.nan
    hidden = replace(block, X=X, complete=False)
    others = with_complete_flag(replace(block, X=np.delete(X, column, axis=1)))
    without = replace(case, model=reduced, X=others.X)
    ours, theirs = case.stats(params, hidden), without.stats(rest, others)
    pairs = [
        ("objective", case.model.objective(params, ours), reduced.objective(rest, theirs)),
        ("entropy", case.model.entropy(ours), reduced.entropy(theirs)),
        ("weight", case.model.total_weight(ours), reduced.total_weight(theirs)),
    ]
    for what, got, wanted in pairs:
        require_same("a missing column is no column", got, wanted, case.rtol, what)


def without_column(family: GaussianFamily, params: GaussianParams, column: int) -> GaussianParams:
    """Gaussian components of the other columns: marginals, in any family."""
    frame, scatter = params.frame, params.scatter
    # which axes run over columns, whatever the sizes
    shape = family.scatter_shape(1, 2)
    for axis in [i for i, size in enumerate(shape) if size == 2]:
        scatter = np.delete(scatter, column, axis=axis)
    rest = Frame(np.delete(frame.origin, column), np.delete(frame.scale, column))
    return GaussianParams(rest, np.delete(params.means, column, axis=1), scatter)
