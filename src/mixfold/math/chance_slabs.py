"""How many rows chance puts between two parallel planes that are very near each other."""

from __future__ import annotations

from math import e, log, sqrt

# share of the rows of a standard normal within two standard deviations of a thin slab, in units of
# its own standard deviation: the density at the middle times the width
_SHARE = 1.6


def rows_of_chance(n_rows: float, n_features: int, variance: float) -> float:
    """Rows that the best placed slab of this variance holds though rows have no structure.

    Rows are standard normal in ``n_features`` columns. A plane goes through any D of them; each of
    the others is then near it with the share p of rows that a slab in the middle has. By the union
    bound over the choices of D rows, and Chernoff's bound of a binomial tail, no slab holds more
    than D + m rows as soon as m ln(m / (e n p)) exceeds ln C(n, D), which is at most
    D (ln(n / D) + 1). A component that is as thin as that, and has more rows, is no accident.

    Parameters
    ----------
    n_rows : float
        Number of rows n.
    n_features : int
        Number of columns D.
    variance : float
        Of the slab across, relative to that of the rows.

    Examples
    --------
    >>> from mixfold.math.chance_slabs import rows_of_chance
    >>> rows_of_chance(1000, 2, 1e-6)
    15.0
    """
    if n_rows <= n_features:
        return float(n_rows)
    choices = n_features * (log(n_rows / n_features) + 1)
    expected = e * n_rows * min(1.0, _SHARE * sqrt(variance))
    low, high = expected, expected + choices + n_rows
    for _ in range(60):  # m ln(m / expected) grows with m
        middle = 0.5 * (low + high)
        low, high = (middle, high) if middle * log(middle / expected) < choices else (low, middle)
    return float(min(n_rows, n_features + round(high)))
