"""What makes the site of the documents: links, docstrings, formulas, commands, the check."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(DOCS))
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name in (
            "breaks",
            "mounts",
            "docstrings",
            "formulas",
            "commands",
            "names",
            "pictures",
            "check_site",
        ):
            del sys.modules[name]


def _ours(name: str, needs: str = "") -> ModuleType:
    if needs:
        pytest.importorskip(needs, reason=f"needs {needs}: pip install 'mixfold[docs]'")
    return importlib.import_module(name)


# ------------------------------------------------ links


@pytest.mark.parametrize(
    ("link", "made"),
    [
        ("[a](mixtures.md#the-model)", "[a](mixtures.md#the-model)"),
        ("[a](../models.md)", "[a](../models.md)"),
        ("[a](../../examples/swiss_roll.py)", "[a](../gallery/swiss_roll.rst)"),
        ("[a](../../examples)", "[a](../gallery/index.rst)"),
        ("[a](../../bench/README.md)", "[a](../developer/benchmarks.md)"),
        ("[a](../../README.md)", "[a](../index.md)"),
        ("[`f`](../../src/mixfold/families)", "`f`"),
        ("[`PPCA`](../../src/mixfold/estimators/factors/ppca.py)", "`PPCA`"),
        ("[`PPCA`](../../src/mixfold/estimators/factors/ppca.py)`(2)`", "`PPCA(2)`"),
        ("[a](../models.md)`(2)`", "[a](../models.md)`(2)`"),
        ("[a](../../src/mixfold/metrics.py)", "[a](../../src/mixfold/metrics.py)"),
        ("[a](https://example.org/x.md)", "[a](https://example.org/x.md)"),
        ("[a](#place)", "[a](#place)"),
        ("![a](../images/demo.png)", "![a](../images/demo.png)"),
        ("![a](../images/nowhere.png)", "![a](../images/nowhere.png)"),
    ],
)
def test_links_of_a_page_on_the_site(link: str, made: str) -> None:
    mounts = _ours("mounts")
    assert mounts.on_the_site(link, "docs/guide/factors.md", "guide/factors") == made


def test_a_mounted_document_has_links_from_its_own_place() -> None:
    mounts = _ours("mounts")
    text = "[d](docs/developer/design.md#rooms) and [c](CHANGELOG.md)\n```python\nx[0](y.z)\n```\n"
    made = mounts.on_the_site(text, "CONTRIBUTING.md", "developer/contributing")
    assert made.startswith("[d](design.md#rooms) and [c](../changelog.md)\n")
    assert "x[0](y.z)" in made, "code is no link"
    picture = mounts.on_the_site(
        "![g](../docs/images/demo.png)", "bench/README.md", "developer/benchmarks"
    )
    assert picture == "![g](../images/demo.png)"


def test_every_mounted_document_is_there() -> None:
    mounts = _ours("mounts")
    for page, document in mounts.MOUNTS.items():
        assert (DOCS / f"{page}.md").exists() and (ROOT / document).exists()


# ------------------------------------------------ docstrings and formulas


def test_docstrings_are_marked() -> None:
    made = _ours("docstrings").marked(
        [
            "A model.",
            "",
            "    z ~ weights_[k]",
            "",
            "See events_ and ``means_``, |x|.",
            "",
            "Attributes",
            "----------",
            "weights_, means_ : ndarray of shape (n_components_,)",
            "    As n_iter_ tells.",
        ]
    )
    assert made[2:5] == ["::", "", "    z ~ weights_[k]"]
    assert r"See ``events_`` and ``means_``, \|x\|." in made
    assert "weights_, means_ : ndarray of shape (``n_components_``,)" in made
    assert made[-1] == "    As ``n_iter_`` tells."


def test_every_formula_can_be_read() -> None:
    formulas = _ours("formulas", needs="sphinx")
    found = 0
    for page in (DOCS, DOCS / "guide"):
        for path in page.glob("*.md"):
            text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
            text = re.sub(r"`[^`]*`", "", text)
            blocks = re.findall(r"^\$\$\n(.*?)^\$\$", text, flags=re.S | re.M)
            inline = re.findall(
                r"(?<!\$)\$([^$]+)\$(?!\$)", re.sub(r"\$\$.*?\$\$", "", text, flags=re.S)
            )
            for tex, block in [*((t, True) for t in blocks), *((t, False) for t in inline)]:
                assert "<math" in formulas.mathml(tex, block=block), path.name
                found += 1
    assert found > 100


def test_a_formula_that_cannot_be_read_is_named() -> None:
    formulas = _ours("formulas", needs="sphinx")
    with pytest.raises(ValueError, match=r"\\nonsense"):
        formulas.mathml(r"a + \nonsense", block=False)


def test_formulas_are_spaced() -> None:
    formulas = _ours("formulas", needs="sphinx")
    assert "mspace" in formulas.mathml(r"\ln p", block=False)
    assert "mspace" not in formulas.mathml(r"\ln(p)", block=False)
    for before in (r"p", r"w_n", r"\mathbb{E}", r"\frac{1}{2}"):
        assert formulas.mathml(before + r" \ln N", block=False).count("mspace width") == 2, before
    assert formulas.mathml(r"= \ln N", block=False).count("mspace width") == 1
    assert formulas.mathml(r"\lVert x \rVert", block=False).count('stretchy="false"') == 2


def test_public_names_lead_to_the_reference() -> None:
    names = _ours("names", needs="sphinx").public_names()
    assert names["GaussianMixture"] == "mixfold.GaussianMixture"
    assert names["plot_search"] == names["mixfold.plots.plot_search"] == "mixfold.plots.plot_search"
    assert "Model" not in names and "Case" not in names, "words that pages use otherwise"


# ------------------------------------------------ tables and titles


def test_columns_of_tables_are_as_wide_as_their_texts() -> None:
    breaks = _ours("breaks", needs="docutils")
    nodes = breaks.nodes
    path = "tests/estimators/test_factor_mixtures.py"
    rows = [["no", "some words in a cell", path], ["yes", "", "some words " * 10]]
    assert breaks.column_kinds(rows) == ["short", "middle", "long"]
    table = nodes.table()
    for row in rows:
        table += nodes.row("", *(nodes.entry("", nodes.literal("", cell)) for cell in row))
    breaks._break(None, table, "page")
    assert [entry["classes"] for entry in table.findall(nodes.entry)] == [
        ["short"], ["middle"], ["long"], ["short"], ["middle"], ["long"],
    ]  # fmt: skip
    assert "wide" not in table["classes"]
    many = nodes.table("", nodes.row("", *(nodes.entry("", nodes.Text("a")) for _ in range(6))))
    breaks._break(None, nodes.section("", many), "page")
    assert many["classes"] == ["wide"]
    code = list(table.findall(nodes.literal))[2]
    shown = [part.astext() for part in code.findall(nodes.Text) if part.astext() != "<wbr>"]
    assert "".join(shown) == path and shown[:3] == ["tests/", "estimators/", "test_"]


def test_names_in_titles_break_between_their_words() -> None:
    breaks = _ours("breaks", needs="docutils")
    nodes = breaks.nodes
    for name, words in (
        ("LatentDirichletAllocation", ["Latent", "Dirichlet", "Allocation"]),
        ("plot_ellipses", ["plot_", "ellipses"]),
        ("MixtureOfPPCA", ["Mixture", "Of", "PPCA"]),
    ):
        section = nodes.section("", nodes.title("", name))
        breaks._break(None, section, "generated/page")
        shown = [part.astext() for part in section.findall(nodes.Text)]
        assert [word for word in shown if word != "<wbr>"] == words


# ------------------------------------------------ thumbnails of the gallery


@pytest.mark.parametrize(
    ("size", "cut"),
    [((1700, 500), (950, 500)), ((900, 800), (900, 800)), ((500, 900), (500, 455))],
)
def test_thumbnails_are_cut_so_that_they_can_be_read(
    size: tuple[int, int], cut: tuple[int, int]
) -> None:
    from PIL import Image

    picture = Image.new("RGB", size, "black")
    picture.paste("red", (0, 0, 100, 100))  # the upper left corner stays
    made = np.asarray(_ours("pictures", needs="sphinx").cut_thumbnail(picture)).astype(int)
    assert made.shape == (280, 400, 3)
    scale = min(400 / cut[0], 280 / cut[1])
    for colour, (width, height) in (
        (made.sum(axis=2) < 700, cut),
        ((made[..., 0] > 128) & (made[..., 1] < 128), (100, 100)),
    ):
        assert np.ptp(np.flatnonzero(colour.any(axis=0))) == pytest.approx(scale * width, abs=3)
        assert np.ptp(np.flatnonzero(colour.any(axis=1))) == pytest.approx(scale * height, abs=3)


# ------------------------------------------------ commands


def test_the_reference_has_every_command_and_option() -> None:
    import typer

    from mixfold.cli.app import app

    text = _ours("commands", needs="sphinx").reference()
    program = typer.main.get_command(app)
    for name, command in program.commands.items():  # type: ignore[attr-defined]
        section = re.search(rf"^### mixfold {name}\n(.*?)(?=^### |\Z)", text, flags=re.S | re.M)
        assert section, name
        for parameter in command.params:
            for word in parameter.opts if parameter.param_type_name == "option" else ():
                assert word in section.group(1) or word == "--help", (name, word)
    assert "[bold]" not in text


# ------------------------------------------------ the check of the built site


def _site(folder: Path, body: str) -> list[str]:
    check = _ours("check_site")
    (folder / "a.html").write_text(f"<html><body>{body}</body></html>", encoding="utf-8")
    (folder / "b.html").write_text("<p id='place'>b</p>", encoding="utf-8")
    return check.broken({path: check.read(path) for path in sorted(folder.glob("*.html"))})


@pytest.mark.parametrize(
    "body",
    [
        "<a href='b.html#place'>b</a>",
        "<a href='b.html'>b</a>",
        "<a href='https://example.org'>elsewhere</a>",
        "<img src='data:image/png;base64,AA=='>",
    ],
)
def test_good_links_pass(tmp_path: Path, body: str) -> None:
    assert not _site(tmp_path, body)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("<a href='c.html'>c</a>", "leads nowhere"),
        ("<a href='b.html#gone'>b</a>", "no such place"),
        ("<img src='gone.png'>", "leads nowhere"),
        ("<script src='https://example.org/x.js'></script>", "from a network"),
        ("<link rel='stylesheet' href='//example.org/x.css'>", "from a network"),
    ],
)
def test_bad_links_are_told(tmp_path: Path, body: str, told: str) -> None:
    (found,) = _site(tmp_path, body)
    assert told in found and "a.html" in found


@pytest.mark.parametrize(
    ("name", "body", "lacks"),
    [
        ("guide/a.html", "<p>words</p>", True),
        ("guide/a.html", "<img class='made align-left' src='a.png'>", False),
        ("guide/a.html", "<img src='drawn-by-hand.png'>", True),
        ("tutorial.html", "<p>words</p>", True),
        ("glossary.html", "<p>words</p>", False),
        ("generated/mixfold.A.html", "<dl class='py class'></dl>", True),
        ("generated/mixfold.A.html", "<dl class='py class'></dl><img class='made' src='a'>", False),
        ("generated/mixfold.f.html", "<dl class='py function'></dl>", False),
        ("generated/mixfold.contracts.A.html", "<dl class='py class'></dl>", False),
    ],
)
def test_pages_without_their_picture_are_told(
    tmp_path: Path, name: str, body: str, lacks: bool
) -> None:
    check = _ours("check_site")
    page = tmp_path / name
    page.parent.mkdir(exist_ok=True)
    page.write_text(f"<html><body>{body}</body></html>", encoding="utf-8")
    (*found,) = check.without_picture({page: check.read(page)}, tmp_path)
    assert len(found) == lacks and all(name in line for line in found)
