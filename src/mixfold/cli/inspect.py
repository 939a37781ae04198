"""``inspect``: describe a model file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from mixfold.cli.data import load_model
from mixfold.cli.options import ModelArgument
from mixfold.cli.terminal import open_console


def inspect_model(
    model_file: ModelArgument,
    as_json: Annotated[
        bool, typer.Option("--json", help="For programs: the same as JSON.")
    ] = False,
) -> None:
    """Describe what a model file holds. No code in it is run.

    Example: [bold]mixfold inspect groups.mixfold[/bold]
    """
    from mixfold import store

    content = store.describe(model_file)
    if as_json:
        typer.echo(json.dumps(content, indent=2, default=str))
        return
    from mixfold.cli.axes import kernel_facts
    from mixfold.cli.parts import parts_table
    from mixfold.cli.units import unit_facts

    # Values come from a file: shown as they are, never read as markup.
    console = open_console()
    console.print(_tree(str(model_file), content))
    if content["class"] is not None:
        model = load_model(model_file)
        for label, text in (kernel_facts(model) | unit_facts(model)).items():
            console.print(f"{label:8}{text}")
        console.print(parts_table(model))


def _tree(label: str, content: Any) -> Any:
    from rich.text import Text
    from rich.tree import Tree

    tree = Tree(Text(label, style="bold"))
    for name, value in _items(content):
        if isinstance(value, Mapping) and set(value) == {"dtype", "shape"}:
            size = " x ".join(str(n) for n in value["shape"]) or "scalar"
            tree.add(Text.assemble((f"{name}  ", "cyan"), f"{size} ({value['dtype']})"))
        elif isinstance(value, Mapping | list | tuple) and _is_nested(value):
            tree.children.append(_tree(name, value))
        else:
            tree.add(Text.assemble((f"{name}  ", "cyan"), _short(value)))
    return tree


def _items(content: Any) -> list[tuple[str, Any]]:
    if isinstance(content, Mapping):
        return [(str(name), value) for name, value in content.items()]
    return [(str(index), value) for index, value in enumerate(content)]


def _is_nested(value: Any) -> bool:
    inner = value.values() if isinstance(value, Mapping) else value
    return isinstance(value, Mapping) or any(isinstance(v, Mapping | list | tuple) for v in inner)


def _short(value: Any, limit: int = 200) -> str:
    if isinstance(value, list | tuple):
        value = ", ".join(str(part) for part in value)
    text = str(value)
    return text if len(text) <= limit else text[: limit - 4] + " ..."
