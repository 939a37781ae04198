"""The directive ``commands``: the reference of the command line, from what ``--help`` would say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

# so many alternatives in one sentence are a list
_MANY = 6


def reference() -> str:
    """Every command as Markdown: what it does, how it is written, its arguments and options."""
    import typer

    from mixfold.cli.app import app

    program: Any = typer.main.get_command(app)
    parts = []
    for name, command in program.commands.items():
        parts += [f"### mixfold {name}", *_command(name, command)]
    return "\n\n".join(parts)


def _command(name: str, command: Any) -> Iterator[str]:
    context = command.make_context(name, [], resilient_parsing=True)
    yield _plain(cleandoc(command.help or ""))
    pieces = (piece.strip("{}") for piece in command.collect_usage_pieces(context))
    yield f"```text\nmixfold {name} {' '.join(pieces)}\n```"
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None and parameter.name != "help":
            yield f"`{_head(record[0])}`\n: {_told(record[1])}"


def _head(names: str) -> str:
    """``-o, --out FILE``, with words for the kinds of values."""
    if not names.startswith("-"):
        return names.partition(" <")[0]
    kinds = {"<path>": "FILE", "<str>": "TEXT", "<int range>": "NUMBER", "<float range>": "NUMBER"}
    return re.sub(r"<[\w ]+>", lambda match: kinds.get(match[0], match[0]), names)


def _told(text: str) -> str:
    """What a parameter is for; the notes in brackets at its end become a sentence."""
    text = _plain(text)
    text, _, notes = text.partition("  [")
    kept = [note for note in notes.rstrip("]").split("; ") if note and not note.startswith("x>=")]
    told = ". ".join([text.rstrip("."), *(_sentence(note) for note in kept)]) + "."
    lead, _, rest = told.partition(": ")
    items = rest.rstrip(".").split("; ")
    if len(items) < _MANY:
        return told
    last, _, after = items[-1].partition(". ")  # notes stand behind the last item
    rows = "\n".join(f"  - {item}" for item in [*items[:-1], last])
    return f"{lead}:\n\n{rows}" + (f"\n\n  {after}." if after else "")


def _sentence(note: str) -> str:
    key, colon, value = note.partition(": ")
    return f"{key.capitalize()}: `{value}`" if colon else key.capitalize()


def _plain(text: str) -> str:
    """Markup of the terminal as Markdown."""
    text = re.sub(r"\[bold\](.*?)\[/bold\]", r"`\1`", text, flags=re.DOTALL)
    text = re.sub(r"\[/?(?:bold|italic|dim)\]", "", text)
    parts = re.split(r"(`.*?`)", text, flags=re.DOTALL)
    made = "".join(
        p if i % 2 else re.sub(r"(?<!\w)(--[a-z-]+)", r"`\1`", p) for i, p in enumerate(parts)
    )
    return re.sub(r"`\n(?=`)", "`\\\\\n", made)  # examples, each on a line of its own


class Commands(SphinxDirective):
    """All commands, a section for each."""

    def run(self) -> list[nodes.Node]:
        return list(self.parse_text_to_nodes(reference(), allow_section_headings=True))


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
