"""The values that a page is made of: sections, and notes at the top."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mixfold.report.markup import Html, tag

if TYPE_CHECKING:
    from mixfold.report.subject import Subject


@dataclass(frozen=True, slots=True)
class Note:
    """Something to know, and what to do about it (if anything)."""

    text: str
    remedy: str = ""
    serious: bool = True


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page; ``lead`` says in a sentence or two what is seen."""

    key: str
    title: str
    lead: str
    body: Html
    notes: tuple[Note, ...] = ()

    def html(self) -> Html:
        heading = f"{self.key}-title"
        return tag(
            "section",
            tag("h2", self.title, id=heading),
            tag("p", self.lead, class_="lead") if self.lead else None,
            self.body,
            id=self.key,
            aria_labelledby=heading,
        )


# None: the model, or the data, have nothing to say about it.
Maker = Callable[["Subject"], "Section | None"]
