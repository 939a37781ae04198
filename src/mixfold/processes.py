"""Draws from a Dirichlet process DP(alpha, base), in three ways that share one law.

A draw of DP(alpha, base) is a discrete law G with infinitely many atoms, themselves draws of
``base``. A sample from G has ties: it clusters. The Polya urn and the Chinese restaurant process
give the sample with G integrated out; stick-breaking makes G itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy.special import psi

from mixfold.contracts import Array
from mixfold.engine.random import seed_from

__all__ = ["Sticks", "chinese_restaurant", "expected_tables", "polya_urn", "stick_breaking"]

Base = Callable[[int, np.random.Generator], Any]
# sticks are kept in memory: beyond this many the urn is the way
MAX_STICKS = 50_000_000


def polya_urn(n: int, alpha: float, base: Any, random_state: Any = None) -> tuple[Array, Array]:
    """A sample of size n from a random law drawn from DP(alpha, base).

    Value i is a new draw of ``base`` with probability alpha / (alpha + i - 1), otherwise a copy
    of one of the i - 1 earlier values, chosen uniformly.

    Parameters
    ----------
    n : int
        Number of values, at least 1.
    alpha : float
        Concentration, positive: the larger, the more distinct values.
    base : callable or frozen scipy distribution
        ``base(size, rng)`` returns ``size`` independent draws, an array of shape (size, ...).
    random_state : None, int, numpy RandomState or Generator, default None

    Returns
    -------
    values : ndarray of shape (n, ...)
    tables : int ndarray of shape (n,)
        Which values are the same: 0, 1, ... in order of appearance.

    References
    ----------
    D. Blackwell, J. B. MacQueen (1973). Ferguson distributions via Polya urn schemes. Annals of
    Statistics 1, 353-355.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from mixfold.processes import polya_urn
    >>> values, tables = polya_urn(1000, alpha=10.0, base=norm(), random_state=0)
    >>> values.shape, len(set(values.tolist())) == len(set(tables.tolist()))
    ((1000,), True)
    """
    rng = np.random.default_rng(seed_from(random_state))
    tables = _seats(_integer("n", n, 1), _positive("alpha", alpha), rng)
    return _atoms(base, int(tables.max()) + 1, rng)[tables], tables


def chinese_restaurant(n: int, alpha: float, random_state: Any = None) -> tuple[Array, Array]:
    """A random partition of n rows: the ties of a sample from DP(alpha, base), for any base.

    Customer i sits down at a table where N_k others sit with probability
    N_k / (alpha + i - 1), and at a new one with probability alpha / (alpha + i - 1).

    Parameters
    ----------
    n : int
        Number of customers, at least 1.
    alpha : float
        Concentration, positive: the larger, the more tables.
    random_state : None, int, numpy RandomState or Generator, default None

    Returns
    -------
    tables : int ndarray of shape (n,)
        The table of each customer: 0, 1, ... in order of appearance.
    counts : int ndarray of shape (number of tables,)
        Customers per table.

    References
    ----------
    J. Pitman (2006). Combinatorial stochastic processes. Springer, section 3.1.

    Examples
    --------
    >>> from mixfold.processes import chinese_restaurant
    >>> tables, counts = chinese_restaurant(50, alpha=2.0, random_state=1)
    >>> int(tables[0]), int(counts.sum()), len(counts) == len(set(tables.tolist()))
    (0, 50, True)
    """
    rng = np.random.default_rng(seed_from(random_state))
    tables = _seats(_integer("n", n, 1), _positive("alpha", alpha), rng)
    return tables, np.bincount(tables)


class Sticks(NamedTuple):
    """A law drawn from a Dirichlet process, as far as it was needed, and a sample from it.

    Attributes
    ----------
    atoms : ndarray of shape (K, ...)
    weights : ndarray of shape (K,)
        In order of breaking; 1 - sum is what was not broken any more.
    labels : int ndarray of shape (n,)
        The sample is ``atoms[labels]``.

    Examples
    --------
    Two draws: with a larger ``alpha`` more of the stick is left for later atoms.

    >>> import matplotlib.pyplot as plt
    >>> from mixfold.processes import stick_breaking
    >>> for alpha in (2.0, 10.0):
    ...     drawn = stick_breaking(0, alpha, lambda n, rng: rng.normal(size=n), 0, eps=1e-3)
    ...     line = plt.plot(drawn.weights.cumsum(), ".-", label=f"alpha = {alpha:g}")
    >>> names = plt.xlabel("atom, by order of breaking"), plt.ylabel("weight up to this atom")
    >>> legend = plt.legend()
    """

    atoms: Array
    weights: Array
    labels: Array


def stick_breaking(
    n: int, alpha: float, base: Any, random_state: Any = None, *, eps: float | None = None
) -> Sticks:
    """A law drawn from DP(alpha, base), and a sample of size n from it.

    A stick of length one is broken again and again: atom k takes a share V_k ~ Beta(1, alpha) of
    what is left. It goes on until every one of the n values has its atom and, if ``eps`` is
    given, until less than ``eps`` is left. Nothing is truncated: the sample is exact.

    Parameters
    ----------
    n : int
        Size of the sample; 0 with ``eps`` for the law alone.
    alpha : float
        Concentration, positive. About alpha * ln(n) or alpha * ln(1 / eps) atoms are made.
    base : callable or frozen scipy distribution
        ``base(size, rng)`` returns ``size`` independent draws, an array of shape (size, ...).
    random_state : None, int, numpy RandomState or Generator, default None
    eps : float, optional
        Between 0 and 1.

    Returns
    -------
    Sticks
        The named tuple (atoms, weights, labels).

    References
    ----------
    J. Sethuraman (1994). A constructive definition of Dirichlet priors. Statistica Sinica 4,
    639-650.

    Examples
    --------
    >>> from mixfold.processes import stick_breaking
    >>> law = stick_breaking(0, 3.0, lambda size, rng: rng.normal(size=size), 0, eps=1e-3)
    >>> bool(0.999 < law.weights.sum() <= 1), law.atoms.shape == law.weights.shape
    (True, True)
    >>> draw = stick_breaking(5, 3.0, lambda size, rng: rng.normal(size=(size, 2)), 0)
    >>> draw.atoms[draw.labels].shape
    (5, 2)

    A draw is discrete: few atoms have most of the weight.

    >>> import matplotlib.pyplot as plt
    >>> lines = plt.stem(law.atoms, law.weights, markerfmt=" ")
    >>> names = plt.xlabel("atom"), plt.ylabel("weight")
    """
    n, alpha = _integer("n", n, 0), _positive("alpha", alpha)
    if eps is None and n == 0:
        raise ValueError("n must be at least 1 when eps is not given, got 0. Give n or eps.")
    if eps is not None and not 0 < _positive("eps", eps) < 1:
        raise ValueError(f"eps must lie between 0 and 1, got {eps}. A usual choice is 1e-6.")
    rng = np.random.default_rng(seed_from(random_state))
    # Position u on the stick as -ln(1 - u): there, breaks are a Poisson process of rate alpha.
    positions = rng.standard_exponential(n)
    furthest = max(positions.max(initial=0.0), 0.0 if eps is None else -math.log(eps))
    breaks = _breaks(furthest, alpha, rng)
    left = np.concatenate([[0.0], breaks[:-1]])
    weights = np.exp(-left) * -np.expm1(left - breaks)
    labels = np.searchsorted(breaks, positions, side="right")
    return Sticks(_atoms(base, len(breaks), rng), weights, labels)


def expected_tables(n: int, alpha: float) -> float:
    """Expected number of distinct values among n: alpha (psi(alpha + n) - psi(alpha)).

    Parameters
    ----------
    n : int
        Size of the sample, at least 1.
    alpha : float
        Concentration of the Dirichlet process, positive.

    Returns
    -------
    float

    Examples
    --------
    >>> from mixfold.processes import expected_tables
    >>> round(expected_tables(10000, 10.0), 1), round(expected_tables(10000, 10000.0), 1)
    (69.6, 6931.7)
    """
    n, alpha = _integer("n", n, 1), _positive("alpha", alpha)
    if alpha < 1e4:
        return float(alpha * (psi(alpha + n) - psi(alpha)))
    # the difference would lose its digits: Stirling's series, term by term
    total = alpha + n
    second = (1 / alpha - 1 / total) * (1 / alpha + 1 / total)
    return alpha * (math.log1p(n / alpha) + n / (2 * alpha * total) + second / 12)


def _seats(n: int, alpha: float, rng: np.random.Generator) -> Array:
    """Tables of n customers: each copies a uniform earlier one, or opens a table."""
    earlier = np.arange(n)
    opens = rng.random(n) * (alpha + earlier) < alpha
    opens[0] = True
    # (for the first customer, who opens, the number drawn is not used)
    copied = rng.integers(0, np.maximum(earlier, 1))
    leader = np.where(opens, earlier, copied)
    # every jump doubles the distance, and leaders lead themselves
    while not opens[leader].all():
        leader = leader[leader]
    return (np.cumsum(opens) - 1)[leader]


def _breaks(furthest: float, alpha: float, rng: np.random.Generator) -> Array:
    """-ln of what is left after each break, until beyond ``furthest``."""
    expected = alpha * furthest
    if expected > MAX_STICKS:
        raise ValueError(
            f"alpha must be smaller for stick-breaking: alpha={alpha} needs about {expected:.2g} "
            f"sticks, more than {MAX_STICKS}. Use polya_urn, which makes only the atoms it "
            "returns, or a larger eps."
        )
    size = int(expected + 4 * math.sqrt(expected)) + 4
    breaks = np.cumsum(rng.standard_exponential(size) / alpha)
    while breaks[-1] <= furthest:
        more = np.cumsum(rng.standard_exponential(size) / alpha)
        breaks = np.concatenate([breaks, breaks[-1] + more])
    return np.asarray(breaks[: np.searchsorted(breaks, furthest, side="right") + 1])


def _atoms(base: Any, size: int, rng: np.random.Generator) -> Array:
    """``size`` draws of the base measure."""
    if hasattr(base, "rvs"):
        # scipy drops the axis of a single multivariate draw: never ask for one
        drawn = np.asarray(base.rvs(size=max(size, 2), random_state=rng))[:size]
    elif callable(base):
        drawn = np.asarray(base(size, rng))
    else:
        raise TypeError(
            "base must be a callable (size, rng) -> draws or a frozen scipy distribution, got "
            f"{base!r}. An example is scipy.stats.norm()."
        )
    if drawn.ndim == 0 or len(drawn) != size:
        raise ValueError(
            f"base must return an array of shape (size, ...), got the shape {drawn.shape} for "
            f"size {size}"
        )
    return drawn


def _integer(name: str, value: Any, least: int) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)


def _positive(name: str, value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not 0 < float(value) < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value}")
    return float(value)
