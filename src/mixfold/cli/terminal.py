"""What may be written to a terminal: names of columns and files come from data.

A control character in a name could clear the screen, set its title or move the cursor.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

# all but tab and newline
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def strip_controls(text: str) -> str:
    """The text without characters that a terminal would obey.

    Examples
    --------
    >>> strip_controls("a\\x1b[2Jb\\x08")
    'a[2Jb'
    """
    return _CONTROLS.sub("", text)


def open_console(**options: Any) -> Console:
    """A console that shows values as they are: no markup, no numbers in colours, no controls."""
    return _console_class()(**{"markup": False, "highlight": False, **options})


@cache
def _console_class() -> type[Console]:
    from rich.console import Console
    from rich.segment import Segment

    class Plain(Console):
        """Its own colours and moves of the cursor are not part of texts."""

        def render(self, *args: Any, **kwargs: Any) -> Any:
            for segment in super().render(*args, **kwargs):
                if segment.control:
                    yield segment
                else:
                    yield Segment(strip_controls(segment.text), segment.style)

    return Plain
