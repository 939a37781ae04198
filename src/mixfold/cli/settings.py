"""``--set name=value``: parameters of a model from the command line."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import typer

from mixfold.catalogue import Entry
from mixfold.cli.registry import find_model

_HINT = "--set"
_WORDS = {"true": True, "false": False, "none": None}


def parse_value(text: str) -> Any:
    """A Python literal if ``text`` is one, the words true / false / none, else the text itself.

    Examples
    --------
    >>> [parse_value(text) for text in ("8", "1e-4", "diag", "true", "[0.2, 0.8]", "'8'")]
    [8, 0.0001, 'diag', True, [0.2, 0.8], '8']
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (RecursionError, MemoryError):
        raise _too_deep(text) from None
    except (ValueError, SyntaxError) as error:
        if "too many nested" in str(error):
            raise _too_deep(text) from None
        return text


def _too_deep(text: str) -> typer.BadParameter:
    return typer.BadParameter(
        f"the value {text[:20]}... is nested too deeply; write a number, a word or a list.",
        param_hint=_HINT,
    )


def parse_settings(assignments: Iterable[str], valid: Iterable[str]) -> dict[str, Any]:
    """Parameters from ``name=value`` words.

    Parameters
    ----------
    assignments : iterable of str
        What was given with ``--set``.
    valid : iterable of str
        Names of the parameters that the model has.

    Raises
    ------
    typer.BadParameter
        For a word without ``=``, an unknown name or a name given twice.
    """
    known = tuple(valid)
    settings: dict[str, Any] = {}
    for word in assignments:
        name, equals, value = word.partition("=")
        name = name.strip()
        if not (equals and name and value.strip()):
            raise typer.BadParameter(
                f"write name=value, for example covariance_type=diag; got {word!r}.",
                param_hint=_HINT,
            )
        if name not in known:
            raise typer.BadParameter(_unknown(name, known), param_hint=_HINT)
        if name in settings:
            raise typer.BadParameter(f"{name!r} is set twice; keep one.", param_hint=_HINT)
        settings[name] = parse_value(value.strip())
    return settings


def _unknown(name: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(name, known, n=1)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    return f"the model has no parameter {name!r}.{guess} Its parameters: {', '.join(known)}."


def collect_settings(
    entry: Entry, words: list[str], short: Mapping[str, tuple[str, Any]]
) -> dict[str, Any]:
    """Constructor arguments; the short options and ``--set`` may not contradict each other."""
    inner = _inner_model(entry, words)
    parameters = parse_settings(words, entry.all_parameters(inner))
    for option, (name, value) in short.items():
        if value is None:
            continue
        if inner is not None and name == entry.size:
            name = f"{entry.part}__{inner.size}"
        if name in parameters:
            raise typer.BadParameter(
                f"{name!r} is also given with {option}; keep one.", param_hint="--set"
            )
        parameters[name] = value
    return parameters if inner is None else _assemble(entry, inner, parameters)


def _inner_model(entry: Entry, words: list[str]) -> Entry | None:
    """The model that another one is made of; None if it is not made of others."""
    if not entry.part:
        return None
    chosen = [word.partition("=")[2].strip() for word in words if _names(word, entry.part)]
    inner = find_model(chosen[0] if chosen else "gaussian-mixture")
    rebuilds = any(word.replace(" ", "") == "decision=reconstruction" for word in words)
    needed = ("reconstruct", "inverse_transform") if rebuilds else ("score_samples",)
    able = any(hasattr(inner.load(), name) for name in needed)
    without_target = not inner.target or (rebuilds and inner.unlabelled)
    if inner.part or not (able and without_target):
        what = (
            "that rebuilds rows, as ppca or matrix-factorization"
            if rebuilds
            else "that has a density, as gaussian-mixture or ppca"
        )
        name = chosen[0] if chosen else "gaussian-mixture, the usual one,"
        raise typer.BadParameter(
            f"{entry.part}={name} is no model of the rows of a class; name one without a target "
            f"{what}.",
            param_hint="--set",
        )
    return inner


def _names(word: str, name: str) -> bool:
    return word.partition("=")[0].strip() == name


def _assemble(entry: Entry, inner: Entry, parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a model made of another, with that one made."""
    prefix = f"{entry.part}__"
    outer = {k: v for k, v in parameters.items() if not k.startswith(prefix) and k != entry.part}
    own = {k.removeprefix(prefix): v for k, v in parameters.items() if k.startswith(prefix)}
    return {**outer, entry.part: inner.load()(**own)}
