"""Links that are right on a code host, and files outside of docs/ that are pages of the site.

Pages link to each other, to examples, to source code and to documents of the repository by relative
paths. On the site an example is its page in the gallery, a mounted document is a page, another file
is a download, and a folder has no page: its link becomes plain text.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# page of the site: document of the repository whose text it has
MOUNTS = {
    "changelog": "CHANGELOG.md",
    "developer/contributing": "CONTRIBUTING.md",
    "developer/benchmarks": "bench/README.md",
    "developer/papers": "papers/README.md",
}
# a link, and the mark of code that may follow: `PPCA` with its link, then `("ard")`
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])+)\]\(([^)\s]+)\)(`?)")


def on_the_site(text: str, document: str, page: str) -> str:
    """``text`` of a document, given by its path, with the links that it has as a page.

    Parameters
    ----------
    text : str
        Markdown.
    document : str
        Path from the root of the repository, such as ``docs/guide/mixtures.md``.
    page : str
        Name of the page, such as ``guide/mixtures``.
    """

    def replaced(match: re.Match[str]) -> str:
        mark, words, target, code = match.groups()  # the mark of a picture
        if re.match(r"[a-z]+:|#", target):
            return match.group(0)
        path, _, anchor = target.partition("#")
        if "src/mixfold/estimators/" in path and re.fullmatch(r"`[A-Z]\w*`", words):
            # a public class: its name leads to the reference (see names.py), with its arguments
            return words.removesuffix(code)
        goal = _goal(os.path.normpath(PurePosixPath(document).parent / path))
        if goal is None:
            return match.group(0) if mark else words + code
        start = os.path.dirname(f"docs/{page}")
        place = f"{os.path.relpath(goal, start)}{'#' + anchor if anchor else ''}"
        return f"{mark}[{words}]({place}){code}"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)  # code is no link
    return "".join(p if i % 2 else _LINK.sub(replaced, p) for i, p in enumerate(parts))


def _goal(path: str) -> str | None:
    """The file, from the root of the repository, that the site has for a path; None if none."""
    if path == "examples":
        return "docs/gallery/index.rst"
    if path.startswith("examples/") and path.endswith(".py"):
        return f"docs/gallery/{PurePosixPath(path).stem}.rst"
    for page, document in MOUNTS.items():
        if path == document:
            return f"docs/{page}.md"
    if path == "README.md":
        return "docs/index.md"
    return path if (ROOT / path).is_file() else None


def _read(app: Any, page: str, source: list[str]) -> None:
    """Give a page its text: that of the document mounted there, or its own."""
    path = Path(app.env.doc2path(page))
    if path.suffix != ".md":
        return
    document = MOUNTS.get(page, path.relative_to(ROOT).as_posix())
    if page in MOUNTS:
        source[0] = (ROOT / document).read_text(encoding="utf-8")
        app.env.note_dependency(str(ROOT / document))
    source[0] = on_the_site(source[0], document, page)


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
