"""Where lines may break: tables and titles that fit a page, also that of a telephone.

A browser makes a column of a table as wide as its longest word, and a path or a call is one word:
beside a column of them the sentences of the others would be towers of single words. So code in
tables, and names in titles, may end a line between their parts.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

# longest text of a column in characters, and the class of its cells (see site.css)
_KINDS = ((14, "short"), (45, "middle"))
_LONG = "long"
_MANY = 6  # columns of a table whose letters are smaller
# after these a line of code may end
_PARTS = re.compile(r"(?<=[/(,=_.])(?=[^\s)\]])")
_WHOLE = 16  # code up to this length stays in one piece
_WORDS = re.compile(r"(?<=[._])(?=\w)|(?<=[a-z])(?=[A-Z])")  # of a name in a title


def column_kinds(rows: list[list[str]]) -> list[str]:
    """A class for each column by the longest text in it.

    Examples
    --------
    >>> column_kinds([["labels", "what it is for"], ["no", "a sentence of more than 14 letters"]])
    ['short', 'middle']
    """
    longest = [max(map(len, column)) for column in zip(*rows, strict=False)]
    return [next((kind for most, kind in _KINDS if n <= most), _LONG) for n in longest]


def code_parts(code: str) -> list[str]:
    """Code in the parts between which a line may end.

    Examples
    --------
    >>> code_parts("PPCA(0.9)"), code_parts("tests/models/test_ppca.py")
    (['PPCA(0.9)'], ['tests/', 'models/', 'test_', 'ppca.', 'py'])
    """
    return [code] if len(code) <= _WHOLE else _PARTS.split(code)


def _break(_app: Any, doctree: nodes.document, page: str) -> None:
    for title in doctree.findall(nodes.title) if page.startswith("generated/") else ():
        _split(title, _WORDS.split(title.astext()))
    for table in doctree.findall(nodes.table):
        rows = [list(row.findall(nodes.entry)) for row in table.findall(nodes.row)]
        if max(map(len, rows), default=0) >= _MANY:
            table["classes"].append("wide")
        kinds = column_kinds([[entry.astext() for entry in row] for row in rows])
        for row in rows:
            for entry, kind in zip(row, kinds, strict=False):
                entry["classes"].append(kind)
        for code in list(table.findall(nodes.literal)):
            _split(code, code_parts(code.astext()))


def _split(node: nodes.Element, parts: list[str]) -> None:
    """Give a node of text its parts, with a place to break between them."""
    if len(parts) > 1:
        node.children.clear()
        node += nodes.Text(parts[0])
        for part in parts[1:]:
            node += [nodes.raw("", "<wbr>", format="html"), nodes.Text(part)]


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-resolved", _break)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
