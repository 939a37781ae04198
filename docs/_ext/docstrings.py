"""Docstrings are written to be read in a terminal; a few marks are added for the site.

A model that is stated in an indented block is shown as it stands, and a name that ends in an
underscore, such as an attribute of a fit, is code and not a link.
"""

from __future__ import annotations

import re
from typing import Any

# a name with a trailing underscore that stands in the text as it is
_BARE = re.compile(r"(?<![`\w.|*\\])([A-Za-z]\w*_)(?![\w`])")
_LISTS = {"Parameters", "Other Parameters", "Attributes"}
_PROSE = {"", "Notes"}  # where an indented block is a model or a list that stands as it is


def marked(lines: list[str]) -> list[str]:
    """The lines with their indented blocks made literal and their bare names made code."""
    made: list[str] = []
    section, literal = "", False
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        if line and following.startswith("---") and len(following) >= len(line):
            section = line
        before = next((text for text in reversed(made) if text.strip()), "")
        starts = line.startswith("    ") and (not made or not made[-1].strip())
        if section in _PROSE and starts and not literal and not before.startswith((" ", "..")):
            literal = True
            if not before.endswith("::"):
                made += ["::", ""]
        elif line.strip() and not line.startswith(" "):
            literal = False
        made.append(line if literal else _line(line, section))
    return made


def _line(line: str, section: str) -> str:
    if line.lstrip().startswith((">>>", "...", "..")) or line.startswith("---"):
        return line
    head, colon, rest = line.partition(" : ")
    if section in _LISTS and line and not line.startswith(" "):
        return head + colon + _coded(rest)  # numpydoc sees to the names themselves
    return _coded(line)


def _coded(text: str) -> str:
    """Bare names as code, and bars as bars, outside of what is code already."""
    parts = re.split(r"(``.*?``|`.*?`)", text)
    return "".join(part if i % 2 else _escaped(part) for i, part in enumerate(parts))


def _escaped(text: str) -> str:
    text = _BARE.sub(r"``\1``", text).replace("(*", r"(\*")
    return re.sub(r"(?<!\\)\|", r"\\|", text)


def _before(_app: Any, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    lines[:] = marked(lines)


def _after(_app: Any, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    """numpydoc takes the words of a property from its own docstring, which was not seen before."""
    lines[:] = [line if "**" in line or ">>>" in line else _summary(line) for line in lines]


def _summary(line: str) -> str:
    return _coded(line) if re.match(r" {4,}[A-Z].*\.$", line) else line


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _before, priority=100)
    app.connect("autodoc-process-docstring", _after, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
