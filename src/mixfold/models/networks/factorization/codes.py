"""Codes of rows given a layer: a convex problem in phi for each row.

    |x - phi codebook - bias|^2 / (2 sigma2) + alpha sum |f^-1(phi)| - ln softmax_y(phi V + v)

over the box of the map; missing entries of x, and labels that are unknown, have no term.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.math.convex_codes import sweep_codes
from mixfold.math.free_codes import free_codes
from mixfold.math.link_functions import Link
from mixfold.math.missing import patterns_of
from mixfold.models.networks.factorization.records import Layer

# the largest change of a code in the last sweep, and the most sweeps
TOL, SWEEPS = 1e-9, 2000


@dataclass(frozen=True, slots=True)
class CodeProblem:
    """What all rows share; the problem is multiplied by sigma2, which may be very small."""

    layer: Layer
    link: Link
    alpha: float
    sigma2: float
    tol: float = TOL
    most: int = SWEEPS

    def solve(self, X: Array, y: Array | None = None, start: Array | None = None) -> Array:
        """Codes (n, H) of rows X (n, D), dense; NaN is missing, y < 0 unknown.

        The answer does not depend on ``start`` (n, H), unless the codebook is singular.
        """
        centred = np.asarray(X, float) - self.layer.bias
        return self.solve_centred(centred, y, start, not np.isnan(centred).any())

    def solve_centred(
        self, centred: Array, y: Array | None, start: Array | None, complete: bool
    ) -> Array:
        """The same of rows less the bias; ``complete``: no entry is missing."""
        phi = np.full((len(centred), self.layer.n_codes), self.link.centre)
        if start is not None:
            phi[:] = start
        if complete:
            self._alike(centred, self.layer.codebook, y, phi, start is not None)
            return phi
        groups = patterns_of(centred)
        for p, lacks in enumerate(groups.missing):
            rows = groups.order[groups.start[p] : groups.start[p + 1]]
            seen = np.flatnonzero(~lacks)
            some = phi[rows]
            labels = None if y is None else y[rows]
            self._alike(
                centred[np.ix_(rows, seen)], self.layer.codebook[:, seen], labels, some,
                start is not None,
            )  # fmt: skip
            phi[rows] = some
        return phi

    def _alike(self, X: Array, codebook: Array, y: Array | None, phi: Array, started: bool) -> None:
        """Rows that lack the same entries, which are left out; into ``phi``."""
        gram, linear = codebook @ codebook.T, X @ codebook.T
        if y is None or self.layer.classifier is None:
            self._rows(gram, linear, None, phi, np.arange(len(X)), started)
            return
        labels = np.asarray(y, np.int64)
        self._rows(gram, linear, labels, phi, np.flatnonzero(labels >= 0), started)
        self._rows(gram, linear, None, phi, np.flatnonzero(labels < 0), started)

    def _rows(
        self, gram: Array, linear: Array, labels: Array | None, phi: Array, rows: Array,
        started: bool,
    ) -> None:  # fmt: skip
        if not rows.size:
            return
        head = self.layer.head()
        if self.alpha == 0.0:
            known = None if labels is None else labels[rows]
            free = free_codes(linear[rows], gram, head, known, self.sigma2)
            if free is not None:
                inside = ((free >= self.link.lower) & (free <= self.link.upper)).all(axis=1)
                phi[rows[inside]] = free[inside]
                rows, free = rows[~inside], free[~inside]
                if not started:
                    phi[rows] = np.clip(free, self.link.lower, self.link.upper)
        self._swept(gram, linear, labels, phi, rows)

    def _swept(
        self, gram: Array, linear: Array, labels: Array | None, phi: Array, rows: Array
    ) -> None:
        if not rows.size:
            return
        some = np.clip(phi[rows], self.link.lower, self.link.upper)
        sweep_codes(
            some, linear[rows], gram, self.layer.head(), None if labels is None else labels[rows],
            self.sigma2, self.alpha * self.sigma2, self.link, self.tol, self.most,
        )  # fmt: skip
        phi[rows] = some


def codes(
    layer: Layer, link: Link, X: Array, alpha: float, sigma2: float, y: Array | None = None,
    start: Array | None = None, tol: float = TOL,
) -> Array:  # fmt: skip
    """Codes phi (n, H) of the rows of X (n, D); see ``CodeProblem.solve``.

    Parameters
    ----------
    layer : Layer
    link : Link
    X : ndarray of shape (n, D)
        Dense; NaN is a missing entry.
    alpha, sigma2 : float
        Weight of the costs, and the balance; without labels only their product matters.
    y : int ndarray of shape (n,), optional
        Class numbers, -1 where unknown; None: no label is looked at.
    start : ndarray of shape (n, H), optional
        Codes to begin with: faster, not another answer.
    tol : float
        Largest change of a code in the last sweep over its row.
    """
    return CodeProblem(layer, link, alpha, sigma2, tol).solve(X, y, start)
