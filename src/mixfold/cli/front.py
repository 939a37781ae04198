"""Mistakes that are seen in the words of a command: before anything is imported to carry it out.

What a command takes is read from its function, as the parser does, which takes longer to load than
these checks. Whatever is in doubt here is left to the parser.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

_LONGEST_HEADER = 16 * 2**20  # of a model file


class Mistake(Exception):
    """What is wrong, and the usage of the command, if there is such a command."""

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.usage = usage


class ForeignFile(ValueError):
    """A file where a model belongs, and is none: what reading it would say."""


@dataclass
class Words:
    """What a command takes: options, whether with a value; arguments in their order."""

    options: dict[str, bool] = field(default_factory=lambda: {"--help": False, "-h": False})
    arguments: list[tuple[str, bool, bool]] = field(default_factory=list)  # name, a file?, many?
    models: bool = False

    @property
    def usage(self) -> str:
        return " ".join(["[OPTIONS]", *(f"{{{name}}}" for name, _, _ in self.arguments)])


def check_words(program: typer.Typer, words: Sequence[str]) -> None:
    """Raise a ``Mistake`` for a command, an option, a model or a file that does not exist, and a
    ``ForeignFile`` for a file that cannot be a model."""
    words = [word for word in words if word != "--debug"]
    if not words or words[0].startswith("-"):
        return
    commands = {_name_of(one): one for one in program.registered_commands}
    if words[0] not in commands:
        close = get_close_matches(words[0], commands, n=1)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        raise Mistake(f"No such command {words[0]!r}.{guess}", "[OPTIONS] COMMAND [ARGS]...")
    command = commands[words[0]]
    if command.context_settings or command.callback is None:  # words of another program
        return
    _check_words_of(words[0], _words_of(command.callback), words[1:])


def _name_of(command: Any) -> str:
    return str(command.name or command.callback.__name__.replace("_", "-"))


def _words_of(function: Callable[..., Any]) -> Words:
    found, hints = Words(), get_type_hints(function, include_extras=True)
    for name in inspect.signature(function).parameters:
        if get_origin(hints[name]) is not Annotated:
            continue
        kind, info = get_args(hints[name])[:2]
        if isinstance(info, OptionInfo):
            # the first name stands where a default would
            given = [d for d in (info.default, *(info.param_decls or ())) if isinstance(d, str)]
            names = [part for d in given if d.startswith("-") for part in d.split("/")]
            for word in names or [f"--{name.replace('_', '-')}"]:
                found.options[word.strip()] = kind is not bool
            found.models |= "--model" in names
        elif isinstance(info, ArgumentInfo):
            several = get_origin(kind) is list
            found.arguments.append((info.metavar or name.upper(), info.exists, several))
    return found


def _check_words_of(command: str, known: Words, words: Sequence[str]) -> None:
    usage = f"{command} {known.usage}"
    given, rest = [], list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            given += rest
            break
        if not word.startswith("-") or word == "-":
            given.append(word)
            continue
        name, equals, value = word.partition("=")
        if not name.startswith("--"):  # -k3, or -q and more in one word
            name, equals, value = word[:2], word[2:], word[2:]
        if name in ("--help", "-h"):
            return
        if name not in known.options:
            close = get_close_matches(name, known.options, n=3, cutoff=0.5)
            close += [o for o in known.options if o.startswith(name) and o not in close]
            guess = f" (Possible options: {', '.join(sorted(close))})" if close else ""
            raise Mistake(f"No such option: {name}{guess}", usage)
        if known.options[name]:
            if not equals and not rest:
                raise Mistake(f"Option {name!r} requires an argument.", usage)
            value = value if equals else rest.pop(0)
        elif equals and not name.startswith("--"):
            rest.insert(0, f"-{value}")
        if known.models and name in ("--model", "-m"):
            _check_model(value, usage)
    _check_files(known, given, usage)


def _check_model(name: str, usage: str) -> None:
    from mixfold.cli.registry import find_model

    try:
        find_model(name)
    except typer.BadParameter as error:
        raise Mistake(error.format_message(), usage) from None


def _check_files(known: Words, given: list[str], usage: str) -> None:
    for place, (name, exists, several) in enumerate(known.arguments):
        for word in given[place:] if several else given[place : place + 1]:
            if exists and not os.path.exists(word):
                raise Mistake(f"Invalid value for {name!r}: path {word!r} does not exist.", usage)
            # of a table alone a model is made
            model = name == "MODEL" or (name == "MODEL_OR_TABLE" and len(given) > 1)
            if model and os.path.isfile(word):
                _check_first_bytes(word)
        if several:
            break


def _check_first_bytes(path: str) -> None:
    """The length of a header is what a model file begins with (``store/container.py``, which takes
    numpy to load)."""
    with open(path, "rb") as file:
        first = file.read(10)
    if len(first) == 10 and not 2 <= int.from_bytes(first[:8], "little") <= _LONGEST_HEADER:
        raise ForeignFile(
            f"{path}: this is not a mixfold model file; give a file written by save() of a mixfold "
            "estimator"
        )
