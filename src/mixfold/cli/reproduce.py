"""``reproduce``: hands over to ``python -m papers``, which a clone has and the package has not."""

from __future__ import annotations

import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import mixfold

# All words go on as they are, --help too: the command in the clone explains its options.
SETTINGS = {"ignore_unknown_options": True, "help_option_names": []}


def reproduce(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="The table, and options as in python -m papers; --list names the tables.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a published table again, in a clone of mixfold, and put ours beside the printed values.

    The tables come with the source tree (folder papers), not with the installed package. In a
    clone this command is the same as [bold]python -m papers[/bold], with the same options: --list
    names the tables, --all runs every one, --quick takes seconds, --data DIR is the folder of the
    data files, --out DIR the one to write to, --seed N is of every random choice, --quiet prints
    nothing.

    Example: [bold]mixfold reproduce mfm-ppca-faces --data DIR --quick[/bold]
    """
    given = words or []
    root = find_clone()
    if root is not None:
        if str(root) not in sys.path:
            sys.path.insert(0, str(root))
        import_module("papers.__main__").app(given, prog_name="mixfold reproduce")
    elif {"-h", "--help"} & set(given):
        typer.echo(context.get_help())
    else:
        raise FileNotFoundError(
            "the published tables come with the source tree of mixfold (folder papers), not with "
            "the installed package. Clone the repository, go to its folder, and run 'mixfold "
            "reproduce' there, or 'python -m papers'."
        )


def find_clone() -> Path | None:
    """Find the source tree that has the tables: that of the imported package, or where one is."""
    package = Path(mixfold.__file__).resolve().parent
    root = package.parents[1]
    if package == root / "src" / "mixfold" and _has_tables(root):
        return root
    here = Path.cwd()
    return here if _has_tables(here) and _is_mixfold(here / "pyproject.toml") else None


def _has_tables(root: Path) -> bool:
    return (root / "papers" / "__main__.py").is_file()


def _is_mixfold(project: Path) -> bool:
    try:
        content = tomllib.loads(project.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return content.get("project", {}).get("name") == "mixfold"
