"""Bootstrap likelihood-ratio test of one mixture against a larger one."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array
from mixfold.engine.random import seed_from
from mixfold.estimators.mixtures.splitting import can_split
from mixfold.estimators.search.fits import Worker, better, fit_from, is_by_likelihood
from mixfold.estimators.search.rows import Rows

# rows of one drawn table: more would not fit into memory
_MOST_ROWS = 10**8


@dataclass(frozen=True, slots=True)
class LikelihoodRatioTest:
    """Result of :func:`bootstrap_lrt`.

    Attributes
    ----------
    statistic : float
        Twice the difference of the log-likelihoods, for the data.
    p_value : float
        Share of the tables, the data among them, whose statistic is as large. Small: the data
        speak for the larger mixture.
    simulated : ndarray
        The statistic of each table that was drawn from the smaller mixture, ascending.
    n_failed : int
        Tables to which one of the mixtures could not be fitted; they are left out.
    """

    statistic: float
    p_value: float
    simulated: Array
    n_failed: int = 0


def bootstrap_lrt(
    small: Any,
    large: Any,
    X: Any,
    n_bootstrap: int = 99,
    random_state: Any = None,
    *,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> LikelihoodRatioTest:
    """Does a larger mixture explain the data better than chance would let it?

    Twice the gain in log-likelihood has no known distribution, because a smaller mixture lies on
    the edge of a larger one. So it is simulated: tables are drawn from the smaller mixture, with
    the missing entries of the data, and both mixtures are fitted to each [1]_.

    Parameters
    ----------
    small, large : estimator
        Two mixtures by maximum likelihood, the second with more parameters, such as
        ``GaussianMixture(2)`` and ``GaussianMixture(3)``. One that is fitted already is taken as
        the fit to X.
    X : array-like, sparse matrix, table or path
        As in ``fit``.
    n_bootstrap : int, default=99
        Tables to draw. The smallest p-value that can be found is 1 / (n_bootstrap + 1).
    random_state : int, RandomState, Generator or None, default=None
        Same seed, same result, for any ``n_jobs``.
    sample_weight : array-like of shape (n_samples,) or str, default=None
        A row of weight 2 is two rows: as many are drawn as the weights add up to.
    n_jobs : int, default=None
        Tables that are fitted at the same time; None is one, by all cores.

    Returns
    -------
    LikelihoodRatioTest

    References
    ----------
    .. [1] McLachlan. On bootstrapping the likelihood ratio test statistic for the number of
       components in a normal mixture. Applied Statistics 36, 1987.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import GaussianMixture, bootstrap_lrt
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> X[:80] += 5
    >>> one, two = GaussianMixture(1), GaussianMixture(2)
    >>> bootstrap_lrt(one, two, X, n_bootstrap=9, random_state=0).p_value
    0.1
    """
    _check(small, large, n_bootstrap)
    worker = Worker.of(n_jobs, seed_from(random_state))
    rows = Rows(X, sample_weight)
    with worker.quiet():
        small, large = _both(small, large, rows, worker)
        statistic = _statistic(small, large, rows)
        draws = _Drawn.like(small, rows)
        tasks = ((small, large, draws, worker, number) for number in range(n_bootstrap))
        found = list(worker.run(_simulate_statistic, tasks))
    values = np.sort([value for value in found if isinstance(value, float)])
    if values.size == 0:
        raise ValueError(
            f"none of the {n_bootstrap} tables drawn from {type(small).__name__} could be fitted; "
            f"the first failed with: {found[0]}"
        )
    beyond = int(np.sum(values >= statistic))
    p_value = (1 + beyond) / (1 + values.size)
    return LikelihoodRatioTest(statistic, p_value, values, n_bootstrap - values.size)


def check_testable(name: str, estimator: Any) -> None:
    """Raise unless an estimator has a likelihood at its maximum, and rows can be drawn from it."""
    needed = ("fit", "sample", "aic", "_n_parameters")
    if isinstance(estimator, type) or not all(hasattr(estimator, part) for part in needed):
        raise TypeError(
            f"{name} must be a mixture of mixfold, such as GaussianMixture(2), for a bootstrap "
            f"test; got {estimator!r}"
        )
    if not is_by_likelihood(estimator):
        raise ValueError(
            f"{name} must be fitted by maximum likelihood, which a bootstrap test compares; got "
            f"{estimator!r}. Use inference='em' or GaussianMixture, or compare bounds"
        )


def _check(small: Any, large: Any, n_bootstrap: Any) -> None:
    check_testable("small", small)
    check_testable("large", large)
    if not isinstance(n_bootstrap, Integral) or isinstance(n_bootstrap, bool) or n_bootstrap < 1:
        raise ValueError(f"n_bootstrap must be an int >= 1, such as 99; got {n_bootstrap!r}")


def _both(small: Any, large: Any, rows: Rows, worker: Worker) -> tuple[Any, Any]:
    """Both mixtures fitted, the larger one also from the smaller where it takes a start."""
    if not _is_fitted(small):
        small = rows.fit(worker.ready(small))
    if not _is_fitted(large):
        large = _larger(large, small, rows, worker)
    return small, large


def _larger(large: Any, small: Any, rows: Rows, worker: Worker) -> Any:
    model = rows.fit(worker.ready(large))
    kinds = (getattr(e, "covariance_type", None) for e in (small, large))
    if can_split(large) and len(set(kinds)) == 1 and small.n_components < large.n_components:
        other = fit_from(worker.ready(large), small, rows, small.lower_bound_)
        model = other if better(other, model) else model
    return model


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _statistic(small: Any, large: Any, rows: Rows) -> float:
    counts = [float(model._n_parameters()) for model in (small, large)]
    if counts[0] >= counts[1]:
        raise ValueError(
            f"large must have more parameters than small; got {counts[1]:g} and {counts[0]:g}. "
            "Exchange them, or raise n_components of large"
        )
    costs = [float(model.aic(rows.X, rows.weight)) for model in (small, large)]
    return (costs[0] - 2 * counts[0]) - (costs[1] - 2 * counts[1])


@dataclass(frozen=True, slots=True)
class _Drawn:
    """How tables like the data are drawn: so many rows, with missing entries as in the data."""

    n_rows: int
    missing: Array | None
    shares: Array | None

    @classmethod
    def like(cls, model: Any, rows: Rows) -> _Drawn:
        source = model._open(rows.X, reset=False, weight=rows.weight)
        holes, weights, complete = [], [], True
        for block in source.blocks():
            weights.append(block.weights())
            complete &= block.complete
            holes.append(_missing(block.X))
        weight = np.concatenate(weights)
        missing = None if complete else np.concatenate(holes)
        if rows.weight is None:
            return cls(len(weight), missing, None)
        n_rows = max(1, round(weight.sum()))
        if n_rows > _MOST_ROWS:
            raise ValueError(
                f"the bootstrap draws as many rows as the weights sum to, {n_rows:g}, more than "
                f"{_MOST_ROWS:g}; divide sample_weight by a constant, so that it counts rows"
            )
        return cls(n_rows, missing, weight / weight.sum())

    def draw(self, model: Any, seed: int) -> Array:
        X = np.asarray(model.sample(self.n_rows, random_state=seed)[0])
        if self.missing is not None:
            holes = self.missing
            if self.shares is not None:
                rng = np.random.default_rng([seed, 1])
                holes = holes[rng.choice(len(holes), self.n_rows, p=self.shares)]
            X = np.where(holes, np.nan, X)
        return X


def _missing(X: Any) -> Array:
    if sparse.issparse(X) and not np.isnan(X.data).any():
        return np.zeros(X.shape, dtype=bool)
    missing: Array = np.isnan(X.toarray() if sparse.issparse(X) else X)
    return missing


def _simulate_statistic(small: Any, large: Any, draws: _Drawn, worker: Worker, number: int) -> Any:
    """The statistic of one table drawn from the smaller mixture, or why there is none."""
    words = np.random.SeedSequence([worker.seed % 2**63, number]).generate_state(2, np.uint32)
    seed = int(words[0]) << 31 | int(words[1]) >> 1
    try:
        rows = Rows(draws.draw(small, seed))
        own = Worker(worker.n_jobs, seed)
        first, second = (clone(m).set_params(random_state=None) for m in (small, large))
        return _statistic(*_both(first, second, rows, own), rows)
    except (ValueError, ArithmeticError) as failure:
        return failure
