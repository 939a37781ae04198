"""Parameters and additive statistics of factor components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, NotNegative, Stats, constant, record
from mixfold.math.frame import Frame


@record
@dataclass(frozen=True, slots=True)
class FactorParams:
    """K factor components in frame coordinates.

    ``means`` (K, D), ``loadings`` (K, D, d), ``noise`` variances (K, D). What components share is
    repeated; a component with fewer than d factors has columns of zeros.
    """

    frame: Frame
    means: Array
    loadings: Array
    noise: NotNegative

    @property
    def n_components(self) -> int:
        return int(self.means.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.means.shape[1])

    @property
    def n_factors(self) -> int:
        return int(self.loadings.shape[2])


@record
@dataclass(frozen=True)
class Latents(Stats):
    """Sums over rows of r, r E[z], r E[zz'], with any leading shape."""

    count: Array
    first: Array
    second: Array


@record
@dataclass(frozen=True)
class FactorSums(Stats):
    """Everything an M step needs, with deviations x - ``origin`` (K, D) of the seen entries.

    ``first`` (K, D) sums r x, ``squares`` (K, D) r x^2 (spread evenly over columns that share a
    noise variance), ``cross`` (K, D, d) r x E[z]'. Latents are summed over ``rows`` (all of
    them), over ``whole`` rows (nothing missing), and entry by entry (K, D) over the ``seen``
    entries of the other rows; ``seen`` has no entries, (K, 0), in a fit to a table without holes.
    """

    first: Array
    squares: Array
    cross: Array
    rows: Latents
    whole: Latents
    seen: Latents
    origin: Array = constant()  # noqa: RUF009 (it makes a field)


def no_latents(n_components: int, n_entries: int | None, n_factors: int) -> Latents:
    """Sums over nothing: per component, or per component and entry."""
    lead = (n_components,) if n_entries is None else (n_components, n_entries)
    shape = (*lead, n_factors)
    return Latents(np.zeros(lead), np.zeros(shape), np.zeros((*shape, n_factors)))


def change_origin(sums: FactorSums, origin: Array) -> FactorSums:
    """The same sums about another origin."""
    shift = sums.origin - origin
    count, z = entry_counts(sums)
    return FactorSums(
        sums.first + count * shift,
        sums.squares + shift * (2 * sums.first + count * shift),
        sums.cross + shift[..., None] * z,
        sums.rows,
        sums.whole,
        sums.seen,
        np.broadcast_to(origin, shift.shape),
    )


def entry_counts(sums: FactorSums) -> tuple[Array, Array]:
    """Sums of r and of r E[z] per component and entry, (K, 1 or D) and (K, 1 or D, d)."""
    count, z = sums.whole.count[:, None], sums.whole.first[:, None]
    if sums.seen.count.shape[1]:
        return count + sums.seen.count, z + sums.seen.first
    return count, z


def entries(sums: FactorSums) -> Latents:
    """Latents per component and entry, (K, 1 or D, ...): one entry stands for all if none lacks."""
    count, z = entry_counts(sums)
    second = sums.whole.second[:, None]
    return Latents(count, z, second + sums.seen.second if sums.seen.count.shape[1] else second)
