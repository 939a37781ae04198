"""Priors of mixing weights by name, and which of them go with which inference."""

from __future__ import annotations

from typing import Any

from mixfold.estimators.shell import constraints as rule
from mixfold.mixing.dirichlet import SymmetricDirichlet
from mixfold.mixing.fixed import FixedWeights
from mixfold.mixing.free import FreeWeights
from mixfold.mixing.protocol import Mixing
from mixfold.mixing.sticks import StickBreaking

# which priors of the weights go with which inference, the usual one first
LEGAL: dict[str, tuple[str, ...]] = {
    "em": ("ml", "fixed", "dirichlet", "stick-breaking"),
    "vb": ("dirichlet", "stick-breaking", "fixed", "ml"),
    "gibbs": ("dirichlet", "stick-breaking", "fixed"),
    "collapsed": ("stick-breaking", "dirichlet"),
}


def name_weights(weights: Any, inference: str) -> str:
    """Which prior of the weights is meant."""
    if not isinstance(weights, str):
        name = "fixed"
    elif weights == "auto":
        name = LEGAL[inference][0]
    else:
        name = weights
    if name not in LEGAL[inference]:
        raise ValueError(
            f"inference={inference!r} goes with weights "
            f"{', '.join(map(repr, LEGAL[inference]))} ('fixed' is an array of shares); got "
            f"{weights!r}"
        )
    return name


def mixing_of(weights: Any, alpha: Any, inference: str) -> Mixing[Any]:
    """The prior of the weights that the settings mean; ``alpha`` may be 'learn'."""
    name = name_weights(weights, inference)
    if name == "fixed":
        return FixedWeights(rule.as_numbers(weights, "weights").tolist())
    if name == "ml":
        return FreeWeights()
    learn = isinstance(alpha, str)
    number = 1.0 if learn else float(alpha)
    if name == "dirichlet":
        return SymmetricDirichlet(number, learn)
    # samplers may not put the sticks in another order, and a process has none
    return StickBreaking(number, learn, reorder=inference in ("em", "vb"))
