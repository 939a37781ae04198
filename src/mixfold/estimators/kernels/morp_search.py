"""The choice of beta (and of the regularization) of MORP by rows that a fit has not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from numbers import Real
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, ParameterGrid

from mixfold.contracts import Array, Executor, Source
from mixfold.estimators.kernels.kernel_views import Reweighted, ViewChoice, exact_scores
from mixfold.models.kernels.linear_readout import fit_readout
from mixfold.models.kernels.morp import MorpAxes
from mixfold.models.kernels.views import ThinSVD

# shares of the outputs that are tried unasked
BETAS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99)


def candidates(grid: Any) -> list[dict[str, Any]]:
    """The settings that are tried: all pairs of ``beta`` and ``regularization``."""
    grid = {"beta": list(BETAS)} if grid is None else grid
    known = {"beta", "regularization"}
    if not isinstance(grid, dict) or "beta" not in grid or not set(grid) <= known:
        raise ValueError(
            "cv_grid must be a dict of lists with the key 'beta' and perhaps 'regularization'; got "
            f"{grid!r}"
        )
    for name, most in (("beta", 1.0), ("regularization", np.inf)):
        _check_numbers(name, grid.get(name, [0.0]), most)
    return list(ParameterGrid({name: list(values) for name, values in grid.items()}))


def _check_numbers(name: str, values: Any, most: float) -> None:
    numbers = list(values) if isinstance(values, Iterable) else []
    if not numbers or not all(isinstance(v, Real) and 0 <= float(v) <= most for v in numbers):
        rule = "from 0 to 1" if most == 1 else ">= 0"
        raise ValueError(f"{name} in cv_grid must be numbers {rule}, in a list; got {values!r}")


def search(
    source: Source,
    executor: Executor,
    view: ViewChoice,
    solve: Callable[..., MorpAxes],
    outputs: list[Array],
    weight: Array,
    tried: list[dict[str, Any]],
    cv: Any,
    ridge: float,
) -> dict[str, Any]:
    """Held-out R^2 of the coded outputs, for each setting and fold.

    The rows of a fold are decomposed once for all settings: a setting costs no more than its own
    small eigenproblem.
    """
    folds = [
        (_mask_weight(weight, train), _mask_weight(weight, test))
        for train, test in _folds(cv, outputs[0], view.seed)
    ]
    if not all(inside.any() for inside, _ in folds):
        raise ValueError(
            "cv leaves a fold without a row of positive weight to learn from: only "
            f"{np.count_nonzero(weight)} of {len(weight)} rows have one; set beta, or give "
            "weight to more rows"
        )
    scores = []
    for inside, outside in folds:
        thin: ThinSVD = view.thin(Reweighted(source, inside), executor)[0]
        axes = [solve(thin, **settings).weights for settings in tried]
        Z = exact_scores(source, executor, thin.reader(np.hstack(axes)))
        parts = np.split(Z, np.cumsum([R.shape[1] for R in axes])[:-1], axis=1)
        scores.append([_r2_outside(part, outputs, inside, outside, ridge) for part in parts])
    return _table(tried, np.array(scores))


def _folds(cv: Any, first: Array, seed: int) -> Iterator[tuple[Array, Array]]:
    if hasattr(cv, "split"):
        return iter(cv.split(first, first))
    if isinstance(cv, list | tuple):
        return iter(cv)
    if len(first) < cv:
        raise ValueError(
            f"cv={cv} folds need as many rows at least, got {len(first)}; set cv to fewer folds"
        )
    return iter(KFold(int(cv), shuffle=True, random_state=seed % 2**32).split(first))


def _mask_weight(weight: Array, rows: Array) -> Array:
    out = np.zeros_like(weight)
    out[rows] = weight[rows]
    return out


def _r2_outside(
    Z: Array, outputs: list[Array], inside: Array, outside: Array, ridge: float
) -> float:
    """R^2 of the outputs of the rows outside, of several sets its mean."""
    found = []
    for Y in outputs:
        guess = fit_readout(Z, Y, inside, ridge)(Z)
        plain = fit_readout(np.zeros((len(Z), 1)), Y, inside, ridge).intercept
        known = ~np.isnan(Y) & ~np.isnan(guess)
        errors, spread = (
            float((outside[:, None] * np.where(known, (Y - other) ** 2, 0.0)).sum())
            for other in (guess, plain)
        )
        found.append(1 - errors / spread if spread > 0 else 0.0)
    return float(np.mean(found))


def _table(tried: list[dict[str, Any]], scores: Array) -> dict[str, Any]:
    """As scikit-learn's searches publish theirs."""
    mean = scores.mean(axis=0)
    return {
        "params": tried,
        **{f"param_{name}": [one[name] for one in tried] for name in tried[0]},
        **{f"split{i}_test_score": row for i, row in enumerate(scores)},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=0),
        "rank_test_score": (mean[None, :] > mean[:, None] + 1e-12).sum(axis=1) + 1,
    }
