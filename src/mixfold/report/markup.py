"""Markup made of values: whatever is not markup already is escaped when it enters a tag."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

# characters that no document may hold, and halves of pairs, which cannot be written as UTF-8
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# parts of a picture or page that hold nothing
_EMPTY = {"circle", "line", "rect", "path", "polyline", "img", "input", "meta", "link", "br"}


class Html(str):
    """Text that is markup."""

    __slots__ = ()


def escape(value: Any) -> Html:
    """Any value as text of a document, between tags or within quotes.

    Examples
    --------
    >>> escape('<b> & "c"')
    '&lt;b&gt; &amp; &quot;c&quot;'
    """
    if isinstance(value, Html):
        return value
    return Html(html.escape(_FORBIDDEN.sub("\ufffd", str(value)), quote=True))


def join(parts: Iterable[Any], between: str = "") -> Html:
    """Parts one after the other; those that are None are left out."""
    return Html(escape(between).join(escape(part) for part in parts if part is not None))


def listed(parts: Sequence[Any], between: str) -> Html:
    """Parts in a line, none of which is broken where there is room for it on the next one.

    Examples
    --------
    >>> listed(["a (1)", "<b>"], "; ")
    '<span class="whole">a (1);</span> <span class="whole">&lt;b&gt;</span>'
    """
    ends = [between.rstrip()] * (len(parts) - 1) + [""]
    found = [tag("span", part, end, class_="whole") for part, end in zip(parts, ends, strict=True)]
    return join(found, " ")


def tag(element: str, /, *children: Any, **attributes: Any) -> Html:
    """An element. ``class_`` is class, ``aria_label`` aria-label; None and False are left out.

    Examples
    --------
    >>> tag("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    words = [element]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        label = key.rstrip("_").replace("_", "-")
        words.append(label if value is True else f'{label}="{escape(value)}"')
    head = " ".join(words)
    if element in _EMPTY and not children:
        return Html(f"<{head}/>")
    return Html(f"<{head}>{join(children)}</{element}>")


def details(title: str, *children: Any) -> Html:
    """Details that a reader opens."""
    return tag("details", tag("summary", title), *children)
