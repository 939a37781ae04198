"""Rows drawn from a model for ``sample``: of all components, or of a class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import typer

from mixfold.cli.data import feature_names, require
from mixfold.cli.outputs import columns_of_draws, free_name

# (how many, random numbers) -> columns of the table
Draw = Callable[[int, Any], Mapping[str, Any]]
_HINT = "--class"


def drawer(model: Any, label: str | None) -> Draw:
    """What draws rows of ``model``; of the class called ``label`` if there is one."""
    names = feature_names(model)
    of_class = _of_class(model)
    if label is not None:
        wanted = _class_of(model, label, of_class is not None)
        assert of_class is not None
        make = of_class

        def one_class(size: int, random: Any) -> Mapping[str, Any]:
            return _name_columns(names, make(wanted, size, random), [wanted] * size)

        return one_class
    if not hasattr(model, "sample") and of_class is not None:
        return _any_class(model, names, of_class)
    require(model, "sample", "sample")
    return lambda size, random: columns_of_draws(
        model, names, model.sample(size, random_state=random)
    )


def _of_class(model: Any) -> Callable[[Any, int, Any], Any] | None:
    """How rows of a class are made, if they are."""
    if not len(getattr(model, "classes_", ())):
        return None
    if hasattr(model, "generate"):
        return lambda label, size, random: model.generate(label, size, random_state=random)
    if hasattr(model, "sample") and "label" in signature(model.sample).parameters:
        return lambda label, size, random: _rows(
            model.sample(size, label=label, random_state=random)
        )
    return None


def _rows(drawn: Any) -> Any:
    return drawn[0] if isinstance(drawn, tuple) else drawn


def _class_of(model: Any, text: str, able: bool) -> Any:
    """The class that is written so; a usage error if there is none, or no model of classes."""
    if not able:
        raise typer.BadParameter(
            f"this {type(model).__name__} makes no rows of a class; fit deep-factor-network, "
            "deep-belief-network or rbm with a --target for that, or leave the option out.",
            param_hint=_HINT,
        )
    found = {str(label): label for label in model.classes_.tolist()}
    if text not in found:
        raise typer.BadParameter(
            f"there is no class {text!r}; choose one of: {', '.join(found)}.", param_hint=_HINT
        )
    return found[text]


def _any_class(model: Any, names: list[str], make: Callable[[Any, int, Any], Any]) -> Draw:
    """Rows of classes that are drawn first, each as probable as the others."""

    def draw(size: int, random: Any) -> Mapping[str, Any]:
        import numpy as np

        classes = model.classes_
        chosen = random.randint(len(classes), size=size)
        X = np.empty((size, len(names)))
        for k in np.unique(chosen):
            mine = chosen == k
            X[mine] = make(classes.tolist()[k], int(mine.sum()), random)
        return _name_columns(names, X, classes[chosen].tolist())

    return draw


def _name_columns(names: list[str], X: Any, labels: list[Any]) -> dict[str, Any]:
    import numpy as np

    columns = dict(zip(names, np.asarray(X).T, strict=True))
    return columns | {free_name("target", names): np.asarray(labels)}
