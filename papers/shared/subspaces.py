"""How far one subspace is from another; asked by the tables em-kpca and kernel-toys."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array


def measure_span_error(found: Array, exact: Array) -> float:
    """Sine of the largest angle from the span of ``exact`` to that of ``found``, (N, d) each.

    Examples
    --------
    >>> round(measure_span_error(np.eye(3)[:, :1], np.array([[0.8], [0.6], [0.0]])), 6)
    0.6
    """
    Q, exact = np.linalg.qr(found)[0], np.linalg.qr(exact)[0]
    return min(1.0, float(np.linalg.norm(exact - Q @ (Q.T @ exact), 2)))
