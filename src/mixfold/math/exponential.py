"""``exp`` for arguments <= 0."""

from __future__ import annotations

import math

# below this the result would be a denormal number
LOWEST = -708.0


def exp_nonpositive(value: float) -> float:
    """exp(value) for value <= 0; exactly 0 from -708 (float32: -87) down: no denormals.

    Kernels compile ``vector_exponential`` in its place.
    """
    return math.exp(value) if value > LOWEST else 0.0
