"""Tables of the units of factorisations, Boltzmann machines and networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mixfold.cli.axes import has_axes
from mixfold.cli.outputs import has_classes

UNITS_SHOWN = 12
_CLASSES_SHOWN = 12
# an entry below this share of the largest of its unit counts as none
_NEAR_ZERO = 0.05


def has_units(model: Any) -> bool:
    """Whether a fitted model is a layer of units without a mean of its own, or a stack of them."""
    if hasattr(model, "top_words") or has_axes(model):
        return False
    centred = hasattr(model, "mean_") or hasattr(model, "means_")
    return _is_stack(model) or (hasattr(model, "components_") and not centred)


def _is_stack(model: Any) -> bool:
    return hasattr(model, "layers_") or hasattr(model, "generative_weights_")


def unit_facts(model: Any) -> dict[str, str]:
    """Links, layers and classes, for those who have them; else nothing."""
    if not has_units(model):
        return {}
    facts = {}
    if hasattr(model, "link"):
        facts["link"] = str(model.link)
    if _is_stack(model):
        sizes = [len(book) for book in _books(model)]
        facts["layers"] = " - ".join(map(str, (model.n_features_in_, *sizes)))
    if has_classes(model):
        names = [str(label) for label in model.classes_[:_CLASSES_SHOWN].tolist()]
        more = len(model.classes_) - len(names)
        facts["classes"] = ", ".join(names) + (f" and {more} more" if more > 0 else "")
    return facts


def unit_rows(model: Any) -> tuple[str, Mapping[str, tuple[list[str], Any]], int]:
    """What a row is, rows by label with texts (see ``UNIT_HEADS``) and entries, and hidden ones.

    A single layer has a row for each unit, a stack one for each layer, without entries.
    """
    books = _books(model)
    if _is_stack(model):
        rows: dict[str, tuple[list[str], Any]] = {
            f"layer {place}": ([str(len(book)), str(book.shape[1]), _small(book)], [])
            for place, book in enumerate(books, 1)
        }
        return "layer", rows, 0
    (book,) = books
    units = {
        f"unit {h + 1}": ([_small(book[h : h + 1])], book[h])
        for h in range(min(len(book), UNITS_SHOWN))
    }
    return "unit", units, max(0, len(book) - UNITS_SHOWN)


UNIT_HEADS = {"unit": ["", "near 0"], "layer": ["", "units", "inputs", "near 0"]}


def _books(model: Any) -> list[Any]:
    """The weights of each layer, a row for each unit."""
    import numpy as np

    if hasattr(model, "generative_weights_"):  # downward, but for the machine at the top
        return [*map(np.asarray, model.generative_weights_), np.transpose(model.top_weights_)]
    return [np.asarray(layer.components_) for layer in getattr(model, "layers_", [model])]


def _small(book: Any) -> str:
    import numpy as np

    sizes = np.abs(book)
    return f"{np.mean(sizes <= _NEAR_ZERO * sizes.max(axis=1, keepdims=True)):.0%}"
