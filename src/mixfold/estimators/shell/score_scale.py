"""What ``transform`` gives: latents, scores or white scores, by two parameters that say it."""

from __future__ import annotations

from typing import Protocol


class _Scaled(Protocol):
    """``scale`` says it in our words, ``whiten`` in those of scikit-learn, unless it is None."""

    scale: str
    whiten: bool | None


def score_scale(estimator: _Scaled, default: str = "latent") -> str:
    """'latent', 'scores' or 'white'; ``default`` is what ``scale`` is where it is not given."""
    if estimator.whiten is None:
        return estimator.scale
    wanted = "white" if estimator.whiten else "scores"
    if estimator.scale not in (default, wanted):
        raise ValueError(
            f"whiten={estimator.whiten} means scale={wanted!r}, but scale={estimator.scale!r}; "
            "give one of the two"
        )
    return wanted
