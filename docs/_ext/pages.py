"""The code of a page, run block by block: pictures for the site, outputs for pages, all for tests.

    python docs/_ext/pages.py docs/guide/factors.md    # write what its blocks print under them

Blocks of Python and of commands run one after the other in a folder of their own, as a reader would
type them. What a block prints stands under it in a block of text, which tests compare. The site
shows the figures that it leaves open, and the PNG files that it writes, under that. So do examples
in docstrings.
"""

from __future__ import annotations

import doctest
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
_DRAWS = re.compile(r"\bplot_\w+\(|\bplt\.|\.png\b")
_DPI = 144  # of pictures, of which two dots are a pixel of most screens and three of the others
_FOLDER = "generated/pictures"


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the line on which its text begins, its text, where it ends."""

    language: str
    line: int
    text: str
    end: int


@dataclass(frozen=True)
class Ran:
    """A block of code, what it printed, and its pictures: (PNG, words for those who cannot see)."""

    block: Block
    printed: str
    pictures: list[tuple[bytes, str]] = field(default_factory=list)


def blocks(text: str) -> list[Block]:
    """The fenced blocks of Markdown that name a language."""
    found = _FENCE.finditer(text)
    return [Block(m[1], text[: m.start(2)].count("\n"), m[2], m.end()) for m in found]


def draws(text: str) -> bool:
    """Whether the code of a page makes pictures."""
    return any(_DRAWS.search(b.text) for b in blocks(text) if b.language in ("python", "sh"))


def run(
    text: str, name: str, command: Callable[[list[str]], None], pictures: bool = True
) -> Iterator[Ran]:
    """Run the blocks of a page in the working directory, one at a time.

    Parameters
    ----------
    text : str
        Markdown.
    name : str
        What an error names as its place.
    command : callable
        Runs a line of a block of commands, which is given as a list of words.
    pictures : bool, default True
        Whether pictures are made of figures; they are closed in any case.
    """
    import matplotlib.pyplot as plt

    names: dict[str, object] = {"__name__": "page"}
    plt.close("all")
    for block in blocks(text):
        if block.language not in ("python", "sh"):
            continue
        out = io.StringIO()
        before = {path: path.stat().st_mtime_ns for path in Path().glob("*.png")}
        with redirect_stdout(out), redirect_stderr(io.StringIO()):  # of progress
            if block.language == "python":
                # Empty lines in front, so that an error names the line of the document.
                exec(compile("\n" * block.line + block.text, name, "exec"), names)
            else:
                for words in commands(block.text):
                    command(words)
        made = _figures(pictures)
        for path in sorted(Path().glob("*.png")):
            if before.get(path) != path.stat().st_mtime_ns:
                made.append((path.read_bytes(), f"Picture written to {path.name}"))
        yield Ran(block, out.getvalue(), made)


def commands(text: str) -> Iterator[list[str]]:
    """The lines of a block of commands, in words."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


def mixfold_command(words: list[str]) -> None:
    """Run a command of the program; others, which install or build, are the reader's."""
    from mixfold.cli import main

    if words[0] != "mixfold":
        return
    if words[1] == "fit" and "--seed" not in words:
        words = [*words, "--seed", "0"]
    try:
        main(words[1:])
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"{shlex.join(words)} ended with {end.code}") from end


def _figures(wanted: bool) -> list[tuple[bytes, str]]:
    """The open figures as PNG with words for them; they are closed."""
    import matplotlib.pyplot as plt

    made = []
    for number in plt.get_fignums() if wanted else ():
        figure = plt.figure(number)
        file = io.BytesIO()
        figure.savefig(file, dpi=_DPI, bbox_inches="tight", pad_inches=0.08, facecolor="w")
        made.append((file.getvalue(), _words(figure)))
    plt.close("all")
    return made


def _words(figure: Any) -> str:
    """What a figure shows, by the titles and names of its axes."""
    shown = []
    for ax in figure.axes:
        title = " ".join(filter(None, (ax.get_title(loc=at) for at in ("left", "center", "right"))))
        sides = " against ".join(filter(None, (ax.get_ylabel(), ax.get_xlabel())))
        shown += [part for part in (title, sides) if part and part not in shown]
    words = "; ".join(shown[:4]) or "Figure drawn by the code above"
    return re.sub(r"\s+", " ", words)


# ------------------------------------------------ files that a page speaks of


def _tables(folder: Path) -> None:
    """A table with holes and texts of three subjects, for the page of the command line."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2)) @ rng.normal(size=(2, 5)) + 9 * rng.integers(0, 8, (800, 1))
    X += 0.3 * rng.normal(size=X.shape)
    X[:, 1:][rng.random((800, 4)) < 0.1] = np.nan
    columns = {f"c{j}": pa.array(X[:, j], from_pandas=True) for j in range(5)}
    parquet.write_table(pa.table(columns), folder / "table.parquet")
    (folder / "letters").mkdir()
    subjects = [["ship", "sail", "wind"], ["oven", "salt", "soup"], ["law", "jury", "oath"]]
    for i in range(60):
        words = [*rng.choice(subjects[i % 3], 15), *rng.choice(np.ravel(subjects), 5)]
        (folder / "letters" / f"{i:02d}.txt").write_text(" ".join(words), encoding="utf-8")


PREPARED: dict[str, Callable[[Path], None]] = {"command-line.md": _tables}


@contextmanager
def folder_for(name: str) -> Iterator[Path]:
    """A working directory with the files that a page of this name speaks of."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if name in PREPARED:
            PREPARED[name](folder)
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(here)


# ------------------------------------------------ the site


def with_pictures(text: str, page: str, path: Path, root: Path) -> str:
    """The Markdown of a page with its pictures; ``root`` is the folder of the documents."""
    if not draws(text):
        return text
    parts, last = [], 0
    with folder_for(path.name):
        shown = list(run(text, str(path), mixfold_command))
    outputs = {b.line: b for b in blocks(text)}
    count = 0
    for ran in shown:
        end = ran.block.end
        following = min((line for line in outputs if line > ran.block.line), default=None)
        if following is not None and outputs[following].language == "text":
            end = outputs[following].end
        parts.append(text[last:end])
        for picture, words in ran.pictures:
            count += 1
            name = f"{page.replace('/', '-')}-{count}"
            place, width = _write(picture, name, root)
            parts.append(
                f"\n\n```{{image}} {place}\n:alt: {words}\n:width: {width}px\n:class: made\n```\n"
            )
        last = end
    return "".join([*parts, text[last:]])


def examples_with_pictures(lines: list[str], name: str, root: Path) -> list[str]:
    """The lines of a docstring with the pictures of its examples."""
    import matplotlib.pyplot as plt

    if not any(">>>" in line and _DRAWS.search(line) for line in lines):
        return lines
    found = doctest.DocTestParser().get_examples("\n".join(lines) + "\n")
    names: dict[str, object] = {}
    after: dict[int, list[str]] = {}
    plt.close("all")
    count = 0
    with folder_for(name), redirect_stdout(io.StringIO()):
        for i, example in enumerate(found):
            if example.options.get(doctest.OPTIONFLAGS_BY_NAME["SKIP"]):
                continue
            exec(compile(example.source, f"<example of {name}>", "exec"), names)
            end = _end_of_paragraph(lines, example.lineno)
            last = example is found[-1] or _end_of_paragraph(lines, found[i + 1].lineno) > end
            for picture, words in _figures(True) if last else ():  # drawn by several lines
                count += 1
                place, width = _write(picture, f"{name}-{count}", root)
                image = ["", f".. image:: {place}", f"   :alt: {words}", f"   :width: {width}px"]
                after.setdefault(end, []).extend([*image, "   :class: made", ""])
    made: list[str] = []
    for i, line in enumerate([*lines, ""]):
        made += after.get(i, [])
        made.append(line)
    return made


def _end_of_paragraph(lines: list[str], at: int) -> int:
    """The first empty line from a line on."""
    return next((i for i in range(at, len(lines)) if not lines[i].strip()), len(lines))


def _write(picture: bytes, name: str, root: Path) -> tuple[str, int]:
    """Write a picture; gives its place in the documents and its width on a page."""
    folder = root / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{re.sub(r'[^a-zA-Z0-9.-]', '-', name)}.png"
    if not file.exists() or file.read_bytes() != picture:
        file.write_bytes(picture)
    width = int.from_bytes(picture[16:20], "big")  # of the header of a PNG file
    return f"/{_FOLDER}/{file.name}", round(width * 96 / _DPI)


def _shown(app: Any, made: Callable[[], Any], place: str, otherwise: Any) -> Any:
    """What is made; if code fails, a warning, so that the site says so of all pages at once."""
    from sphinx.util import logging

    try:
        return made()
    except Exception as error:
        words = f"the code shown in {place} fails: {type(error).__name__}: {error}"
        logging.getLogger(__name__).warning(words, location=app.env.docname)
        return otherwise


def _read(app: Any, page: str, source: list[str]) -> None:
    path, root = Path(app.env.doc2path(page)), Path(app.srcdir)
    if path.suffix == ".md" and not page.startswith("developer/"):
        text = source[0]
        made = _shown(app, lambda: with_pictures(text, page, path, root), page, text)
        source[0] = made.replace("  # fmt: skip", "")  # a word for our formatter


def _example(app: Any, what: str, name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    # Tables of names ask for docstrings, too: pictures are for the page of the object.
    if what in ("class", "exception", "function") and app.env.docname.startswith("generated/"):
        root = Path(app.srcdir)
        lines[:] = _shown(app, lambda: examples_with_pictures(lines, name, root), name, lines)


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", _read, priority=900)
    app.connect("autodoc-process-docstring", _example, priority=150)
    return {"parallel_read_safe": False, "parallel_write_safe": True}


# ------------------------------------------------ outputs


def with_outputs(text: str, shown: Iterable[Ran]) -> str:
    """The Markdown of a page with what its blocks print under them."""
    parts, last = [], 0
    ordered = blocks(text)
    for ran in shown:
        i = ordered.index(ran.block)
        parts.append(text[last : ran.block.end])
        last = ran.block.end
        under = ordered[i + 1] if i + 1 < len(ordered) else None
        stands = under is not None and under.language == "text"
        if under is not None and stands:
            last = under.end
        # What commands print is long; a page shows it where somebody has put a block for it.
        if ran.printed.strip() and (stands or ran.block.language == "python"):
            lines = "\n".join(line.rstrip() for line in ran.printed.rstrip().splitlines())
            parts.append(f"\n\n```text\n{lines}\n```")
    return "".join([*parts, text[last:]])


def main(paths: list[str]) -> None:
    for given in paths:
        path = Path(given).resolve()
        text = path.read_text(encoding="utf-8")
        with folder_for(path.name):
            made = with_outputs(text, list(run(text, str(path), mixfold_command, pictures=False)))
        path.write_text(made, encoding="utf-8")
        print(f"{given}: {'written' if made != text else 'as it was'}")


if __name__ == "__main__":
    main(sys.argv[1:])
