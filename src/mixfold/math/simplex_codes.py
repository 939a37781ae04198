"""Codes of classes as the corners of a regular simplex about zero."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array


def simplex_codes(n_classes: int) -> Array:
    """Orthonormal contrasts Q (C, C - 1): Q'Q = I, Q'1 = 0; row c is the code of class c.

    All codes are equally long and equally far from each other, as those of the unit vectors are,
    without the direction in which these do not vary.

    Examples
    --------
    >>> from mixfold.math.simplex_codes import simplex_codes
    >>> Q = simplex_codes(3)
    >>> (Q @ Q.T).round(3)
    array([[ 0.667, -0.333, -0.333],
           [-0.333,  0.667, -0.333],
           [-0.333, -0.333,  0.667]])
    """
    steps = np.arange(1, n_classes)
    Q = np.triu(np.ones((n_classes, n_classes - 1)))
    Q[steps, steps - 1] = -steps
    return Q / np.sqrt(steps * (steps + 1.0))
