"""Columns that are constant, or exact affine functions of other columns, and what follows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array, record
from mixfold.math.frame import LEAST_SCALE

# beyond this many columns only constant ones are looked for
_MOST_COLUMNS = 500
# rows of a sample per column that are enough to propose a rule, which all rows then have to obey
_ROWS_PER_COLUMN = 4
# standard deviations that a column may be away from what the others say, beside rounding
_TOLERANCE = 1e-8


@record
@dataclass(frozen=True, slots=True)
class DependentColumns:
    """Columns ``aside`` that the columns ``kept`` determine: x[aside] = offset + C x[kept].

    Attributes
    ----------
    kept : int ndarray of shape (k,)
    aside : int ndarray of shape (a,)
    offset : ndarray of shape (a,)
    coefficients : ndarray of shape (a, k)
        C; a constant column has a row of zeros.
    scale : ndarray of shape (a,)
        Standard deviations of the columns; those of the others together for a constant one.
    """

    kept: Array
    aside: Array
    offset: Array
    coefficients: Array
    scale: Array

    @property
    def n_features(self) -> int:
        return len(self.kept) + len(self.aside)

    def remaining(self, X: Array) -> Array:
        """The kept columns; an entry that is missing there, but follows from the others, is not."""
        rest = X[:, self.kept]
        missing = np.isnan(rest)
        if not missing.any():
            return rest
        for column, offset, row in zip(self.aside, self.offset, self.coefficients, strict=True):
            used = np.flatnonzero(row)
            seen = ~np.isnan(X[:, column])
            lacking = np.isnan(rest[:, used])
            for n in np.flatnonzero(seen & (lacking.sum(axis=1) == 1)):
                d = used[int(np.argmax(lacking[n]))]
                others = used[used != d]
                known = offset + row[others] @ rest[n, others]
                rest[n, d] = (X[n, column] - known) / row[d]
        return rest

    def expand(self, rest: Array) -> Array:
        """All columns of rows of which the kept ones are given."""
        X = np.empty((len(rest), self.n_features), dtype=rest.dtype)
        X[:, self.kept] = rest
        X[:, self.aside] = self.offset + rest @ self.coefficients.T
        return X

    def deviations(self, X: Array) -> Array:
        """How far the columns set aside are from what the others say; 0 where that is unknown."""
        return np.asarray(np.nan_to_num(X[:, self.aside] - self._predicted(X), nan=0.0))

    def obeyed(self, X: Array) -> Array:
        """Which of the rules (a,) all rows obey, up to the rounding of their entries.

        A rule that would lose something is not obeyed: a sum that is seen where two of its terms
        are missing.
        """
        rounding = 64 * np.finfo(X.dtype).eps
        rest = np.nan_to_num(X[:, self.kept].astype(float))
        size = np.abs(self.offset) + np.abs(rest) @ np.abs(self.coefficients.T)
        allowed = _TOLERANCE * self.scale + rounding * size
        holds = np.abs(self.deviations(X)) <= allowed
        missing = np.isnan(X)
        if missing.any():
            unknown = missing[:, self.kept].astype(float) @ (self.coefficients != 0).T
            holds &= missing[:, self.aside] | (unknown <= 1)
        return np.asarray(holds.all(axis=0))

    def only(self, which: Array) -> DependentColumns | None:
        """Without the rules that do not hold: their columns are kept. None if no rule is left."""
        if not which.any():
            return None
        back = self.aside[~which]
        kept = np.sort(np.concatenate([self.kept, back]))
        coefficients = np.zeros((int(which.sum()), len(kept)))
        coefficients[:, np.searchsorted(kept, self.kept)] = self.coefficients[which]
        return DependentColumns(
            kept, self.aside[which], self.offset[which], coefficients, self.scale[which]
        )

    def within(self, columns: Array, n_features: int) -> DependentColumns:
        """The same rules in a table of more columns, of which these are the numbers ``columns``."""
        aside = columns[self.aside]
        kept = np.setdiff1d(np.arange(n_features), aside)
        coefficients = np.zeros((len(aside), len(kept)))
        coefficients[:, np.searchsorted(kept, columns[self.kept])] = self.coefficients
        return DependentColumns(kept, aside, self.offset, coefficients, self.scale)

    def given(self, known: Array, values: Array) -> tuple[Array, DependentColumns | None] | None:
        """What is known of the kept columns where ``known`` ones have ``values``, and the rules
        among the others.

        The values (k,) are NaN for those that vary yet. None instead of rules if there are none.
        None instead of both if no column varies, or if a value ties columns that do: a sum.
        """
        row = np.full(self.n_features, np.nan)
        row[known] = values
        for _ in self.aside:
            row[self.kept] = self.remaining(row[None])[0]
        rest = row[self.kept]
        free = np.isnan(rest)
        told = np.isin(self.aside, known)
        if not free.any() or self.coefficients[np.ix_(told, free)].any():
            return None
        others = np.setdiff1d(np.arange(self.n_features), known)
        follows = np.setdiff1d(self.kept[~free], known)  # from a column that was set aside
        aside = np.concatenate([self.aside[~told], follows])
        if not aside.size:
            return rest, None
        settled = self.coefficients[:, ~free] @ rest[~free]
        common = float(np.sqrt(np.mean(self.scale**2)))
        rules = DependentColumns(
            np.searchsorted(others, self.kept[free]),
            np.searchsorted(others, aside),
            np.concatenate([(self.offset + settled)[~told], row[follows]]),
            np.concatenate(
                [self.coefficients[np.ix_(~told, free)], np.zeros((len(follows), free.sum()))]
            ),
            np.concatenate([self.scale[~told], np.full(len(follows), common)]),
        )
        return rest, rules

    def same(self, other: DependentColumns | None) -> bool:
        """Whether the same columns are set aside."""
        return other is not None and np.array_equal(self.aside, other.aside)

    def _predicted(self, X: Array) -> Array:
        rest = X[:, self.kept].astype(float)
        out = np.tile(self.offset, (len(X), 1))
        for j, row in enumerate(self.coefficients):
            used = np.flatnonzero(row)
            out[:, j] += rest[:, used] @ row[used]
        return out


def propose_dependent_columns(
    X: Array, minimum: Array, maximum: Array, some: Array | None = None
) -> DependentColumns | None:
    """Columns of a sample that are constant, or affine functions of columns before them.

    Whether all rows obey has to be verified. None if there is no such column, or nothing else.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        A sample of the rows; NaN is missing.
    minimum, maximum : ndarray of shape (D,)
        Of all rows.
    some : int ndarray, optional
        Columns that are looked at, in rising order; the others are kept.
    """
    if some is not None and len(some) < X.shape[1]:
        found = _propose(X[:, some], minimum[some], maximum[some])
        return None if found is None else found.within(some, X.shape[1])
    found = _propose(X, minimum, maximum)
    return found if found is not None and found.kept.size else None


def _propose(X: Array, minimum: Array, maximum: Array) -> DependentColumns | None:
    rounding = 8 * np.finfo(X.dtype).eps * np.maximum(np.abs(minimum), np.abs(maximum))
    constant = maximum - minimum <= rounding
    # a column that varies, but not in the sample, is not known well enough to be judged
    shown = np.nanmax(X, axis=0, initial=-np.inf) > np.nanmin(X, axis=0, initial=np.inf)
    varied = np.flatnonzero(~constant & shown)
    copies, coefficients, offsets, scales = _affine_columns(X[:, varied])
    if not constant.any() and not copies.size:
        return None
    free = np.setdiff1d(np.arange(len(varied)), copies)
    kept = np.sort(np.concatenate([varied[free], np.flatnonzero(~constant & ~shown)]))
    wide = np.zeros((len(copies), len(kept)))
    wide[:, np.searchsorted(kept, varied[free])] = coefficients
    aside = np.concatenate([np.flatnonzero(constant), varied[copies]])
    # (of numbers that cannot be squared: as frames have it)
    common = float(np.linalg.norm(scales) / np.sqrt(len(scales))) if len(scales) else 1.0
    common = common if common > LEAST_SCALE else 1.0
    flat = int(constant.sum())
    order = np.argsort(aside)
    return DependentColumns(
        kept,
        aside[order],
        np.concatenate([(minimum[constant] + maximum[constant]) / 2, offsets])[order],
        np.concatenate([np.zeros((flat, len(kept))), wide])[order],
        np.concatenate([np.full(flat, common), scales[copies]])[order],
    )


def _affine_columns(X: Array) -> tuple[Array, Array, Array, Array]:
    """Columns that others determine, coefficients, offsets; standard deviations of all columns."""
    n_columns = X.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        scale = np.nanstd(X.astype(float), axis=0) if n_columns else np.ones(0)
    nothing = np.empty(0, int), np.empty((0, n_columns)), np.empty(0), scale
    if not 1 < n_columns <= _MOST_COLUMNS or not (np.isfinite(scale) & (scale > 0)).all():
        return nothing
    rows = np.flatnonzero(~np.isnan(X).any(axis=1))
    wanted = _ROWS_PER_COLUMN * n_columns + 200
    if len(rows) < 2 * (n_columns + 1):  # any column of a short table is a function of the others
        return nothing
    rows = rows[np.linspace(0, len(rows) - 1, min(wanted, len(rows))).astype(int)]
    sample = X[rows].astype(float)
    centre = sample.mean(axis=0)
    U = (sample - centre) / scale
    gram = U.T @ U / len(U)
    if np.linalg.eigvalsh(gram)[0] > 1e-9:  # the usual case
        return nothing
    if len(np.unique(sample, axis=0)) < 2 * (n_columns + 1):  # the same for few different rows
        return nothing
    copies = _dependent(U)
    if not copies.size:
        return nothing
    free = np.setdiff1d(np.arange(n_columns), copies)
    coefficients = np.zeros((len(copies), len(free)))
    for j, copy in enumerate(copies):
        found = np.linalg.lstsq(U[:, free], U[:, copy], rcond=None)[0]
        used = np.abs(found) > 1e-7
        if used.any():
            found = np.linalg.lstsq(U[:, free[used]], U[:, copy], rcond=None)[0]
            coefficients[j, used] = [
                float(f"{c:.12g}") for c in found * scale[copy] / scale[free[used]]
            ]
    offsets = centre[copies] - coefficients @ centre[free]
    size = np.abs(centre[copies]) + np.abs(coefficients) @ np.abs(centre[free]) + scale[copies]
    offsets = np.where(np.abs(offsets) < 1e-11 * size, 0.0, offsets)
    return copies, coefficients, offsets, scale


def _dependent(U: Array) -> Array:
    """Columns that are linear in those before them, up to rounding: Gram-Schmidt, twice."""
    basis = np.empty((len(U), 0))
    found = []
    for d in range(U.shape[1]):
        residual = U[:, d].copy()
        for _ in range(2):
            residual -= basis @ (basis.T @ residual)
        size = np.linalg.norm(U[:, d])
        if size == 0:  # it varies in other rows only
            continue
        if np.linalg.norm(residual) <= _TOLERANCE * size:
            found.append(d)
        else:
            basis = np.column_stack([basis, residual / np.linalg.norm(residual)])
    return np.array(found, dtype=int)
