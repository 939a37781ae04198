"""Pages of small models, and a reader that sees what a browser would."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixfold import GaussianMixture

VOID = {"meta", "link", "img", "input", "br", "hr"}


@dataclass
class Page(HTMLParser):
    """A page taken apart; tags that are not closed, or closed twice, are an error."""

    text: str
    ids: list[str] = field(default_factory=list)
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[str] = []
        self._section = "head"
        self.feed(self.text)
        self.close()
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        assert len(values) == len(attrs), f"an attribute of <{tag}> twice"
        self.tags.append((tag, values))
        if values.get("id"):
            self.ids.append(str(values["id"]))
        if tag == "section":
            self._section = str(values["id"])
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open[-1] == tag, f"</{tag}> closes {self._open[-1:]}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("script", "style"):
            self.words[self._section] = self.words.get(self._section, "") + data + " "

    @property
    def sections(self) -> list[str]:
        return [str(values["id"]) for tag, values in self.tags if tag == "section"]

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


@pytest.fixture
def page(tmp_path: Path):
    """The page of a model, taken apart."""

    def make(model: Any, *rows: Any, **options: Any) -> Page:
        path = model.report(*rows, path=tmp_path / "page.html", **options)
        return Page(path.read_text(encoding="utf-8"))

    return make


@pytest.fixture(scope="session")
def holed() -> np.ndarray:
    """Three groups in four columns, with holes."""
    rng = np.random.default_rng(1)
    group = rng.integers(0, 3, 240)
    X = rng.normal(size=(240, 4)) + np.array([[0, 0, 0, 0], [7, 0, 3, 0], [0, 8, 3, 1]])[group]
    X[rng.random(X.shape) < 0.12] = np.nan
    return X


@pytest.fixture(scope="session")
def mixture(holed: np.ndarray) -> GaussianMixture:
    return GaussianMixture(3, random_state=0).fit(holed)
