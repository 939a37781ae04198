"""Signs of axes, which data do not determine: the entry of largest modulus is positive."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array


def signs(columns: Array) -> Array:
    """What to multiply the columns of (..., D, d) by, as (..., 1, d); 1 where there is no row."""
    if columns.size == 0:
        return np.ones((*columns.shape[:-2], 1, columns.shape[-1]))
    where = np.abs(columns).argmax(axis=-2)[..., None, :]
    return np.where(np.take_along_axis(columns, where, axis=-2) < 0, -1.0, 1.0)


def fix_signs(columns: Array) -> Array:
    """The columns, each turned so that its entry of largest modulus is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.math.signs import fix_signs
    >>> fix_signs(np.array([[0.6], [-0.8]])).ravel()
    array([-0.6,  0.8])
    """
    return np.asarray(columns * signs(columns))
