"""Estimators that are made of others, in one model file."""

from __future__ import annotations

from typing import Any

from mixfold import store
from mixfold.estimators.shell.base import MixfoldEstimator


def pack(estimator: Any, fitted: bool) -> dict[str, Any]:
    """An estimator as the part of a model file that ``unpack`` reads."""
    kind = type(estimator).__name__
    if not isinstance(estimator, MixfoldEstimator) or kind not in store.ESTIMATORS:
        raise TypeError(
            f"a {kind} cannot be written to a model file, only estimators of mixfold can; use one "
            "of those, or keep the model that holds it in memory"
        )
    state = estimator._state() if fitted else None
    return {"kind": kind, "parameters": estimator._plain_parameters(), "state": state}


def unpack(packed: dict[str, Any]) -> Any:
    """The estimator of a part of a model file."""
    estimator = store.estimator_class(packed["kind"])
    if packed["state"] is not None:
        return estimator._from_state(packed)
    known = estimator().get_params(deep=False)
    return estimator(**{k: v for k, v in packed["parameters"].items() if k in known})
