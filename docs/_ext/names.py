"""Public names: which members of a class the reference shows, and links to it from the pages.

The reference shows what is ours, not what every scikit-learn object has. A public name that stands
as code on a page leads to its place in the reference: in a table always, elsewhere the first time.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref

API = Path(__file__).resolve().parents[1] / "api.md"


def public_names() -> dict[str, str]:
    """What a page may write, and the object that is meant: those that the reference lists."""
    found: dict[str, str] = {}
    module = ""
    for line in API.read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.rpartition(" ")[2]
        elif re.fullmatch(r"   \w[\w.]*", line) and module not in ("", "mixfold.contracts"):
            name = f"{module}.{line.strip()}"
            found[name] = name
            if module in ("mixfold", "mixfold.plots"):
                found[line.strip()] = name
    return found


def _skip(_app: Any, _what: str, name: str, obj: Any, skip: bool, _options: Any) -> bool | None:
    home = str(getattr(getattr(obj, "fget", obj), "__module__", "") or "")
    return True if home.startswith("sklearn") or name.startswith("set_") else None


def _link(app: Any, doctree: nodes.document) -> None:
    page = app.env.docname
    if page == "api" or page.startswith(("generated/", "gallery/")):
        return
    names, seen = public_names(), set()
    for node in list(doctree.findall(nodes.literal)):
        target = names.get(node.astext().partition("(")[0])
        if target is None or _inside(node, nodes.reference, nodes.title, pending_xref):
            continue
        if target in seen and not _inside(node, nodes.entry):
            continue
        seen.add(target)
        link = pending_xref(
            "", refdomain="py", reftype="obj", reftarget=target, refdoc=page, refexplicit=True
        )
        node.replace_self(link)
        link += node


def _inside(node: nodes.Node, *kinds: type[nodes.Node]) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, kinds):
            return True
    return False


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-skip-member", _skip)
    app.connect("doctree-read", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
