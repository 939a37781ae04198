"""Predictions, probabilities and components of rows as columns of an output table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixfold.contracts import Source


def has_target(model: Any) -> bool:
    """Whether a model was fitted to a target, which it predicts instead of components."""
    names = ("_target", "_sets", "_output")  # a target, sets of them, the other view
    known = any(getattr(model, name, None) is not None for name in names)
    return known or has_classes(model)


def has_classes(model: Any) -> bool:
    """Whether a fitted model knows at least one class."""
    return len(getattr(model, "classes_", ())) > 0


def component_teller(model: Any) -> Callable[[Source], Any] | None:
    """What tells the most probable component of rows; None for a model without components.

    ``predict`` of a model with a target tells that.
    """
    if hasattr(model, "predict_component"):
        teller: Callable[[Source], Any] = model.predict_component
        return teller
    return None if has_target(model) else getattr(model, "predict", None)


def predict_columns(model: Any, proba: bool, piece: Source) -> Mapping[str, Any]:
    """Predictions for some rows and how sure they are; ``proba``: of every class."""
    import numpy as np

    if not hasattr(model, "_target"):
        sure = has_classes(model) and hasattr(model, "predict_proba")
        return _classes(model, proba, piece) if sure else _plainly(model, proba, piece)
    task = model._target.task
    if task == "regression":
        if proba:
            raise _no_chances("the target of this model is a number; its predictions come with a "
                              "standard deviation instead.")  # fmt: skip
        mean, std = model.predict(piece, return_std=True)
        return {**number_columns("prediction", mean), **number_columns("std", std)}
    if task == "multilabel":
        chances = np.asarray(model.predict_proba(piece))
        labels = (chances > 0.5).astype(int)
        return {**number_columns("prediction", labels), **number_columns("probability", chances)}
    return _classes(model, proba, piece)


def _classes(model: Any, proba: bool, piece: Source) -> Mapping[str, Any]:
    import numpy as np

    chances = np.asarray(model.predict_proba(piece))
    table = {
        "prediction": model.classes_[chances.argmax(axis=1)],
        "probability": chances.max(axis=1),
    }
    if proba:
        table |= {f"probability_{c}": chances[:, k] for k, c in enumerate(model.classes_)}
    return table


def _plainly(model: Any, proba: bool, piece: Source) -> Mapping[str, Any]:
    """Predictions of a model that has no probabilities, of each of its targets."""
    if proba:
        raise _no_chances(f"a {type(model).__name__} predicts without probabilities; leave the "
                          "option out, or fit supervised-ppca.")  # fmt: skip
    found = model.predict(piece)
    if not isinstance(found, dict | list):
        return number_columns("prediction", found)
    named = found.items() if isinstance(found, dict) else enumerate(found)
    table: dict[str, Any] = {}
    for name, values in named:
        table |= number_columns(f"prediction_{name}", values)
    return table


def _no_chances(text: str) -> Exception:
    import typer

    return typer.BadParameter(text, param_hint="--proba")


def columns_of_draws(model: Any, names: list[str], drawn: Any) -> dict[str, Any]:
    """Drawn rows by column, and what was drawn beside them: a target or the component."""
    X, beside = drawn if isinstance(drawn, tuple) else (drawn, None)
    if hasattr(X, "column_names"):  # words of a table
        columns = dict(zip(X.column_names, X.columns, strict=True))
    else:
        columns = dict(zip(names, X.T, strict=True))
    if has_target(model):
        return columns | _target_columns(model, names, beside)
    if beside is None:
        return columns
    drawn_for = "component" if beside.ndim == 1 else "topic"
    return columns | {free_name(n, names): v for n, v in number_columns(drawn_for, beside).items()}


def _target_columns(model: Any, names: list[str], drawn: Any) -> dict[str, Any]:
    target = getattr(model, "_target", None)
    if target is not None and target.task == "classification" and not has_classes(model):
        return {}  # it was fitted without a single class
    return {
        free_name(name, names): values for name, values in number_columns("target", drawn).items()
    }


def free_name(name: str, taken: list[str]) -> str:
    """A name that no column of the model has."""
    return name if name not in taken else free_name(f"{name}_", taken)


def number_columns(name: str, values: Any) -> dict[str, Any]:
    """An array of one column as it is; of several as numbered ones."""
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{j}": values[:, j] for j in range(values.shape[1])}
