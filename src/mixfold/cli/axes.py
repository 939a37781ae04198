"""Text about models in the feature space of a kernel: kernel, kept rows, axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_AXES_SHOWN = 12


def has_axes(model: Any) -> bool:
    """Whether a fitted model has axes in feature space, which are no combinations of columns."""
    return _map_of(model) is not None


def kernel_facts(model: Any) -> dict[str, str]:
    """The kernel, and what is kept of the rows to compare new ones with; else nothing."""
    if not has_axes(model):
        return {}
    facts = {"kernel": _kernel(model), "keeps": _describe_kept_rows(model)}
    if hasattr(model, "beta_"):
        facts["beta"] = f"{model.beta_:.4g}"
    return facts | {"solver": str(model.solver_)}


def axes_columns(model: Any) -> tuple[str, str, Mapping[str, list[str]]]:
    """What one axis and several are called, and texts of the first axes under their heads."""
    if hasattr(model, "correlations_"):
        numbers = {"correlation": model.correlations_, "singular value": model.singular_values_}
        return "pair", "pairs", {head: _numbers(values) for head, values in numbers.items()}
    columns = {}
    if hasattr(model, "eigenvalues_"):
        columns["eigenvalue"] = _numbers(model.eigenvalues_)
    columns["explains"] = _shares(model.explained_variance_ratio_)
    if hasattr(model, "explained_output_ratio_"):
        columns["of target"] = _shares(model.explained_output_ratio_)
    one, several = ("axis", "axes") if "eigenvalue" in columns else ("factor", "factors")
    return one, several, columns


def axes_count(model: Any) -> int:
    """How many axes there are, shown or not."""
    name = "correlations_" if hasattr(model, "correlations_") else "explained_variance_ratio_"
    return len(getattr(model, name))


def axes_weights(model: Any) -> Any:
    """By how much each column counts in each axis (columns by axes); None if no column does."""
    holder = _map_of(model)
    if hasattr(holder, "plane"):
        plane = holder.plane()
        return None if plane is None else plane[0]
    return getattr(holder, "matrix", None)


def _map_of(model: Any) -> Any:
    """What turns rows into coordinates of features: of every kernel model under another name."""
    names = ("_projector", "_projection", "_feature_map")
    return next(
        (found for name in names if (found := getattr(model, name, None)) is not None), None
    )


def _kernel(model: Any) -> str:
    holder = _map_of(model)
    kernel = getattr(holder, "kernel", getattr(_features(holder), "kernel", None))
    words = [str(model.kernel)]
    for name in ("degree", "gamma", "coef0"):
        if hasattr(kernel, name):
            words.append(f"{name} {getattr(kernel, name):.4g}")
    return ", ".join(words)


def _features(holder: Any) -> Any:
    return getattr(holder, "features", holder)


def _describe_kept_rows(model: Any) -> str:
    holder = _map_of(model)
    what = "rows" if model.landmarks is None else "landmarks"
    rows = getattr(holder, "rows", None)
    rows = getattr(_features(holder), "landmarks", None) if rows is None else rows
    if rows is not None:
        return f"{len(rows)} {what}"
    if model.kernel != "precomputed":
        return "no rows: scores are sums over columns"
    columns = getattr(_features(holder), "columns", None)
    size = len(holder.axes.coefficients) if columns is None else len(columns)
    return f"no rows: new ones come as products with {size} {what}"


def _numbers(values: Any) -> list[str]:
    return [f"{value:.4g}" for value in values[:_AXES_SHOWN]]


def _shares(values: Any) -> list[str]:
    return [f"{value:.1%}" for value in values[:_AXES_SHOWN]]
