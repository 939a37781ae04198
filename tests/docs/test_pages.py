"""What the documents show runs: Python, commands, and the output that stands below them."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import mixfold
from mixfold.catalogue import ENTRIES

ROOT = Path(__file__).resolve().parents[2]
MADE = {"_build", "_ext", "_static", "_templates", "gallery", "generated"}
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if not MADE & set(page.relative_to(ROOT).parts)
    ),
]


def _pages() -> ModuleType:
    """What runs the pages for the site, too."""
    place = ROOT / "docs" / "_ext" / "pages.py"
    spec = importlib.util.spec_from_file_location("pages", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pages"] = module  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module


pages = _pages()
Block = pages.Block


def _blocks(page: Path) -> list[Block]:
    return pages.blocks(page.read_text(encoding="utf-8"))


WITH_CODE = [page for page in PAGES if {b.language for b in _blocks(page)} & {"python", "sh"}]


def test_there_is_code_to_run() -> None:
    names = {page.relative_to(ROOT).as_posix() for page in WITH_CODE}
    guide = {f"docs/guide/{path.name}" for path in (ROOT / "docs" / "guide").glob("*.md")}
    assert guide | {"README.md", "docs/tutorial.md", "docs/data.md", "docs/index.md"} <= names


def test_blocks_are_of_a_kind_that_is_looked_at() -> None:
    """Anything else would be shown and never run."""
    for page in PAGES:
        for block in _blocks(page):
            assert block.language in ("python", "sh", "text"), (page.name, block)


# Pages without a picture of their own: of words and links, of tables, or of what others show.
PLAIN = {"README.md", "CONTRIBUTING.md", "design.md"}


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks, one after the other, as a reader would type them."""
    if page.name == "data.md":
        pytest.importorskip("distributed", reason="needs Dask: pip install 'mixfold[dask]'")
    monkeypatch.chdir(tmp_path)
    if page.name in pages.PREPARED:
        pages.PREPARED[page.name](tmp_path)
    text, drawn = page.read_text(encoding="utf-8"), 0
    ordered = pages.blocks(text)
    command = _of_readme if page.name == "README.md" else _command
    for ran in pages.run(text, str(page), command):
        under = ordered[ordered.index(ran.block) + 1 :][:1]
        if under and under[0].language == "text":
            _same(page, under[0], ran.printed)
        else:
            place = f"{page.name}, line {ran.block.line}"
            hidden = ran.block.language == "sh" or not ran.printed.strip()
            assert hidden, f"{place} prints what does not stand under it: python {_WRITER} {page}"
        drawn += len(ran.pictures)
    assert drawn or page.name in PLAIN, f"{page.name} shows no picture"
    if page.name in AFTERWARDS:
        AFTERWARDS[page.name](tmp_path)


_WRITER = "docs/_ext/pages.py"


def _of_readme(words: list[str]) -> None:
    """There the files of commands are the reader's."""
    if words[0] != "mixfold":
        _command(words)


def _command(words: list[str]) -> None:
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{words[1]}:", makefile, flags=re.MULTILINE), f"no target {words[1]}"
    else:
        assert words[0] in ("pip", "python", "mixfold"), words
        pages.mixfold_command(words)


def _same(page: Path, block: Block, printed: str) -> None:
    """A block of text is what the block before it printed, its numbers within a tenth.

    Another machine may round otherwise and stop a step earlier.
    """
    place = f"{page.name}, line {block.line}"
    shown, got = _tokens(block.text), _tokens(printed)
    assert len(shown) == len(got), (place, printed)
    for want, have in zip(shown, got, strict=True):
        if isinstance(want, float) and isinstance(have, float):
            assert have == pytest.approx(want, rel=0.1), (place, printed)
        else:
            assert have == want, (place, printed)


def _tokens(text: str) -> list[str | float]:
    """Words, and numbers apart from what stands around them."""
    found = re.findall(r"-?\d+(?:\.\d+)?|[^\s\d-]+|-", text)
    return [float(word) if re.fullmatch(r"-?[\d.]*\d", word) else word for word in found]


def test_printed_text_is_compared() -> None:
    page, block = Path("page.md"), Block("text", 1, "12 bottles, 98% right\n", 0)
    _same(page, block, "12 bottles,  98% right")
    _same(page, block, "13 bottles, 97% right\n")
    for other in ("15 bottles, 98% right", "12 glasses, 98% right", "12 bottles", ""):
        with pytest.raises(AssertionError):
            _same(page, block, other)


# ------------------------------------------------ pictures and outputs of pages

DRAWING = """# A page

```python
import matplotlib.pyplot as plt

print(6 * 7)
plt.plot([1, 2])
_ = plt.title("a line")
```

```text
41
```

Words.

```python
plt.figure(figsize=(2, 1))
print("two")
```
"""


def test_pictures_stand_under_the_output_of_their_block(tmp_path: Path) -> None:
    made = pages.with_pictures(DRAWING, "guide/drawing", tmp_path / "drawing.md", tmp_path)
    first, second = (tmp_path / "generated" / "pictures" / f"guide-drawing-{n}.png" for n in (1, 2))
    assert first.read_bytes().startswith(b"\x89PNG") and second.exists()
    place = "```{image} /generated/pictures/guide-drawing-1.png\n:alt: a line\n"
    assert made.index("41") < made.index(place) < made.index("Words.")
    assert made.rstrip().endswith(":class: made\n```")
    assert re.sub(r"\n\n```\{image\}.*?\n```\n", "", made, flags=re.DOTALL) == DRAWING
    assert pages.with_pictures("no code", "a", tmp_path / "a.md", tmp_path) == "no code"


def test_outputs_are_written_under_their_blocks() -> None:
    def shown(text: str) -> list[object]:
        return list(pages.run(text, "page.md", _command, pictures=False))

    made = pages.with_outputs(DRAWING, shown(DRAWING))
    assert "```text\n42\n```\n\nWords." in made and made.endswith("```\n\n```text\ntwo\n```\n")
    assert pages.with_outputs(made, shown(made)) == made


def test_examples_of_docstrings_have_their_pictures(tmp_path: Path) -> None:
    lines = [
        "A thing.",
        "",
        ">>> import matplotlib.pyplot as plt",
        ">>> figure = plt.figure()",
        ">>> figure.supxlabel('x').get_text()",
        "'x'",
        "",
        "More.",
    ]
    made = pages.examples_with_pictures(lines, "mixfold.thing", tmp_path)
    assert (tmp_path / "generated" / "pictures" / "mixfold.thing-1.png").exists()
    image = made.index(".. image:: /generated/pictures/mixfold.thing-1.png")
    assert len(list((tmp_path / "generated" / "pictures").iterdir())) == 1
    assert made.index("'x'") < image < made.index("More.")
    assert [line for line in made if line in lines and line] == [line for line in lines if line]
    assert pages.examples_with_pictures(lines[:2], "mixfold.other", tmp_path) == lines[:2]


@pytest.mark.parametrize("name", [entry.estimator for entry in ENTRIES.values()])
def test_the_page_of_an_estimator_shows_a_picture(name: str) -> None:
    examples = (getattr(mixfold, name).__doc__ or "").partition("Examples\n")[2]
    assert re.search(r">>> .*\b(plot_\w+|plt\.\w+)\(", examples), f"{name} draws nothing"


# ------------------------------------------------ files that a page writes


def _factors_were_written(folder: Path) -> None:
    factors = (folder / "factors.csv").read_text(encoding="utf-8").splitlines()
    assert len(factors) == 801 and factors[0].startswith('"factor_1"')


AFTERWARDS: dict[str, Callable[[Path], None]] = {"command-line.md": _factors_were_written}
