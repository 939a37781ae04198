"""The HTML document: all sections, style and script in one file without network access."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from mixfold.report.markup import Html, join, tag
from mixfold.report.registry import SECTIONS
from mixfold.report.sections.glance import contents, glance, title
from mixfold.report.subject import Subject


def page(subject: Subject) -> str:
    """The document as text."""
    sections = [found for make in SECTIONS if (found := make(subject)) is not None]
    notes = [note for section in sections for note in section.notes]
    titles = [(section.key, section.title) for section in sections]
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#content", class_="skip"),
        tag("button", "Dark", type="button", id="theme", class_="only-script"),
        glance(subject, notes),
        contents(titles),
        tag("main", *[section.html() for section in sections], id="content"),
        tag("footer", tag("p", "Made by mixfold. This file holds a summary and a bounded sample of "
                               "rows, and opens without a network.")),
        _script(),
    )  # fmt: skip
    return f'<!doctype html>\n<html lang="en">{_head(title(subject))}{body}</html>\n'


def _head(name: str) -> Html:
    style = asset("report.css")
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy()}"/>'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content="mixfold"),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"{name} - mixfold report"),
        Html(f"<style>{style}</style>"),
    )


def _script() -> Html:
    return join([Html(f"<script>{asset('report.js')}</script>")])


def policy() -> str:
    """Nothing is fetched, and no script or style runs but our own, known by its digest."""
    script, style = (digest(asset(name)) for name in ("report.js", "report.css"))
    return (
        f"default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    """The digest by which a browser knows the text of an element."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def asset(name: str) -> str:
    """A file of the package, as it stands in the page."""
    return files("mixfold.report").joinpath("assets", name).read_text(encoding="utf-8")
