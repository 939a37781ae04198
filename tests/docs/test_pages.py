"""What the documents show runs: Python, commands, and the output that stands below them."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from mixfold.cli import main

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


@dataclass(frozen=True)
class Shown:
    """A block of a page: its language, the line on which its text begins, its text."""

    language: str
    line: int
    text: str


def _blocks(page: Path) -> list[Shown]:
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\w+)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return [Shown(m[1], text[: m.start(2)].count("\n"), m[2]) for m in found]


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


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks, one after the other, as a reader would type them."""
    if page.name == "data.md":
        pytest.importorskip("distributed", reason="needs Dask: pip install 'mixfold[dask]'")
    monkeypatch.chdir(tmp_path)
    if page.name in PREPARED:
        PREPARED[page.name](tmp_path)
    names: dict[str, object] = {}
    printed = ""
    for block in _blocks(page):
        if block.language == "python":
            printed = _printed(lambda b=block: _python(page, b, names))
        elif block.language == "sh":
            printed = _printed(lambda b=block: _commands(page, b))
        else:
            _same(page, block, printed)
    plt.close("all")
    if page.name in AFTERWARDS:
        AFTERWARDS[page.name](tmp_path)


def _printed(work: Callable[[], None]) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        work()
    return out.getvalue()


def _python(page: Path, block: Shown, names: dict[str, object]) -> None:
    # Empty lines in front, so that an error names the line of the document.
    exec(compile("\n" * block.line + block.text, str(page), "exec"), names)


def _commands(page: Path, block: Shown) -> None:
    for words in _lines(block.text):
        if words[0] == "mixfold" and page.name != "README.md":  # there the files are the reader's
            _mixfold(words)
        elif words[0] == "make":
            _target_exists(words[1])
        else:
            assert words[0] in ("pip", "python", "mixfold"), (page.name, words)


def _lines(text: str) -> Iterator[list[str]]:
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


def _mixfold(words: list[str]) -> None:
    if words[1] == "fit" and "--seed" not in words:
        words = [*words, "--seed", "0"]
    with pytest.raises(SystemExit) as end:
        main(words[1:])
    assert not end.value.code, words


def _target_exists(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{name}:", makefile, flags=re.MULTILINE), f"no target {name}"


def _same(page: Path, block: Shown, printed: str) -> None:
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
    page, block = Path("page.md"), Shown("text", 1, "12 bottles, 98% right\n")
    _same(page, block, "12 bottles,  98% right")
    _same(page, block, "13 bottles, 97% right\n")
    for other in ("15 bottles, 98% right", "12 glasses, 98% right", "12 bottles", ""):
        with pytest.raises(AssertionError):
            _same(page, block, other)


# ------------------------------------------------ files that a page speaks of


def _tables(folder: Path) -> None:
    """A table with holes and texts of three subjects, for the page of the command line."""
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


def _factors_were_written(folder: Path) -> None:
    factors = (folder / "factors.csv").read_text(encoding="utf-8").splitlines()
    assert len(factors) == 801 and factors[0].startswith('"factor_1"')


PREPARED: dict[str, Callable[[Path], None]] = {"command-line.md": _tables}
AFTERWARDS: dict[str, Callable[[Path], None]] = {"command-line.md": _factors_were_written}
