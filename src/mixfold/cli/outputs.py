"""Predictions of models with a target, as columns of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mixfold.contracts import Source


def has_target(model: Any) -> bool:
    """Whether a fitted model predicts a target, not its own components."""
    return getattr(model, "_target", None) is not None


def predicted(model: Any, proba: bool, piece: Source) -> Mapping[str, Any]:
    """Predictions for some rows and how sure they are; ``proba``: of every class."""
    import numpy as np
    import typer

    task = model._target.task
    if task == "regression":
        if proba:
            raise typer.BadParameter(
                "the target of this model is a number; its predictions come with a standard "
                "deviation instead.",
                param_hint="--proba",
            )
        mean, std = model.predict(piece, return_std=True)
        return {**_columns("prediction", mean), **_columns("std", std)}
    chances = np.asarray(model.predict_proba(piece))
    if task == "multilabel":
        labels = (chances > 0.5).astype(int)
        return {**_columns("prediction", labels), **_columns("probability", chances)}
    table = {
        "prediction": model.classes_[chances.argmax(axis=1)],
        "probability": chances.max(axis=1),
    }
    if proba:
        table |= {f"probability_{c}": chances[:, k] for k, c in enumerate(model.classes_)}
    return table


def _columns(name: str, values: Any) -> dict[str, Any]:
    """An array of one column as it is; of several as numbered ones."""
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{j}": values[:, j] for j in range(values.shape[1])}
