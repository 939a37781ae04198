"""The stopping rule: extrapolate the gain that remains, instead of testing the last step only.

EM converges linearly. A slow fit makes small steps long before it is done, and a rule on the last
step stops it far from the optimum. With gains g_1, g_2 of two successive plain steps and the
ratio rho = g_2 / g_1, what remains is about g_2 (rho + rho^2 + ...) = g_2 rho / (1 - rho).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# tentative steps whose gains are taken together
STEPS_TOGETHER = 4


def remaining_gain(values: Sequence[float], tentative: bool = False) -> float:
    """What the objective is projected to gain beyond the last of its values.

    ``values`` come from successive plain steps; fewer than three say nothing (infinity). The
    larger of the last two ratios is used, so one lucky step does not end a fit. Growing gains (a
    plateau is being left) project to infinity. Gains of ``tentative`` steps rise and fall with
    their lengths, so that those of a few steps are taken together.
    """
    if tentative:
        values = values[::-STEPS_TOGETHER][::-1]
    gains = np.diff(np.asarray(values[-4:], dtype=float))
    if len(gains) < 2:
        return float("inf")
    last = float(gains[-1])
    if last <= rounding(values[-1]):
        return 0.0
    with np.errstate(over="ignore"):  # after a step that gained nothing
        ratios = gains[1:] / np.maximum(gains[:-1], np.finfo(float).tiny)
    ratio = float(ratios.max())
    return last * ratio / (1 - ratio) if ratio < 1 else float("inf")


def rounding(objective: float) -> float:
    """Differences of the objective below this are noise of its summation."""
    return 1e-13 * (1.0 + abs(objective))


def fell(previous: float, objective: float, single: bool) -> bool:
    """Whether the objective fell beyond the rounding of its summation.

    ``single``: the arithmetic may have been float32, whose objectives were measured to be wrong by
    up to 1e-6 of their size.
    """
    slack = 1e-5 if single else 1e-9
    return objective < previous - slack * (1.0 + abs(previous))
