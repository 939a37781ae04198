"""Section: settings and versions needed to repeat the fit."""

from __future__ import annotations

import inspect
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from mixfold.report.formatting import plural, short
from mixfold.report.markup import details, join
from mixfold.report.section import Section
from mixfold.report.subject import Subject
from mixfold.report.tables import facts, table
from mixfold.schema import Schema

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def settings(subject: Subject) -> Section | None:
    """Parameters that were changed, the others folded away, and versions."""
    changed, others = parameters(subject.asked)
    lead = _lead(subject.asked, changed)
    parts = []
    if changed:
        parts.append(_table(changed, "Settings that were changed"))
    if subject.model is not subject.asked:
        chosen = parameters(subject.model)[0]
        lead += f" {_lead(subject.model, chosen, 'the chosen ')}"
        if chosen:
            parts.append(_table(chosen, f"Settings of the chosen {subject.kind}"))
    if others:
        parts.append(details("Settings at their defaults", _table(others, "Defaults")))
    parts.append(facts(versions()))
    return Section("settings", "Settings and versions", lead, join(parts))


def _lead(estimator: Any, changed: list[tuple[str, str]], which: str = "") -> str:
    return (
        f"{plural(len(changed), 'setting')} of {which}{type(estimator).__name__} "
        f"{'differs from its default' if len(changed) == 1 else 'differ from their defaults'}."
    )


def parameters(estimator: Any) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Names and values of the constructor's parameters: changed ones, and the others."""
    signature = inspect.signature(type(estimator).__init__).parameters
    changed: list[tuple[str, str]] = []
    others: list[tuple[str, str]] = []
    for name, value in estimator.get_params(deep=False).items():
        default = signature[name].default if name in signature else None
        (others if _same(value, default) else changed).append((name, _format_value(value)))
    return changed, others


def _same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    try:
        return type(value) is type(default) and bool(np.all(value == default))
    except (TypeError, ValueError):
        return False


def _format_value(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, Schema):
        return f"a schema of {len(value)} columns, {len(value.used)} used"
    if isinstance(value, list) and any(isinstance(one, Schema) for one in value):
        return f"[{', '.join(_format_value(one) for one in value)}]"
    return short(value if isinstance(value, str) else " ".join(repr(value).split()), 1000)


def _table(pairs: list[tuple[str, str]], caption: str) -> Any:
    return table(["setting", "value"], [list(pair) for pair in pairs], caption, text=(0, 1))


def versions() -> list[tuple[str, str]]:
    """Versions of what the fit rests on."""
    import mixfold

    found = [("mixfold", mixfold.__version__)]
    for name in _PACKAGES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            found.append((name, "not installed"))
    return [*found, ("Python", platform.python_version()), ("system", platform.system())]
