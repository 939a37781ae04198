"""Follow every link of the built site; say which page would load what, or lacks its picture.

    python docs/check_site.py docs/_build/html

Links inside the site must lead to a page and, if they name one, to a place on it. Nothing may be
loaded from a network, so that the site works without one. Links to other sites are tried if there
is a network; what cannot be reached is told, and is no failure. Pages for readers, and those of
classes, show a picture that was made when the site was built.
"""

from __future__ import annotations

import sys
import urllib.request
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# elements that fetch what they name, and the attribute that names it
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "audio": "src"}
OUTSIDE = ("http://", "https://", "//")
# pages for readers; those of classes are known by what they describe
GUIDES = ("guide/", "tutorial.", "cookbook.", "which-model.", "data.", "command-line.")
# interfaces, which nobody can draw: of whoever adds models, families and tests
INTERFACES = ("generated/mixfold.contracts.", "generated/mixfold.testing.")


@dataclass
class Page(HTMLParser):
    """Places on a page, its links, what it loads, and whether it is about a class.

    ``made`` are pictures drawn by the code of the page.
    """

    places: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    loads: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)
    of_class: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.places |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        if tag == "link" and values.get("rel") in ("stylesheet", "preload", "icon"):
            self.loads.add(values.get("href", ""))
        if tag in FETCHED and FETCHED[tag] in values:
            self.loads.add(values[FETCHED[tag]])
        words = values.get("class", "").split()
        if tag == "img" and "made" in words:
            self.made.add(values.get("src", ""))
        self.of_class |= (
            tag == "dl" and "py" in words and not {"class", "exception"}.isdisjoint(words)
        )


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def broken(pages: dict[Path, Page]) -> list[str]:
    """Links and loads inside the site that lead nowhere, and loads from outside."""
    found = []
    for path, page in pages.items():
        for target in page.links | page.loads:
            if target.startswith(("mailto:", "data:", "javascript:")):
                continue
            if target.startswith(OUTSIDE):
                if target in page.loads:
                    found.append(f"{path}: loads {target} from a network")
                continue
            parts = urlsplit(target)
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if goal.is_dir():
                goal /= "index.html"
            if not goal.exists():
                found.append(f"{path}: {target} leads nowhere")
            elif goal in pages and unquote(parts.fragment) not in {"", *pages[goal].places}:
                found.append(f"{path}: no such place: {target}")
    return sorted(found)


def without_picture(pages: dict[Path, Page], folder: Path) -> list[str]:
    """Pages that tell a reader about models and show nothing that they made."""
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder).as_posix()
        shows = name.startswith(GUIDES) or (page.of_class and not name.startswith(INTERFACES))
        if shows and not page.made:
            found.append(f"{path}: has no picture; draw one in its examples")
    return sorted(found)


def _reached(address: str) -> bool:
    request = urllib.request.Request(address, headers={"User-Agent": "mixfold-docs"})
    try:
        with urllib.request.urlopen(request, timeout=5):
            return True
    except (OSError, ValueError):
        return False


def unreached(addresses: Iterable[str]) -> list[str]:
    """Links to other sites that do not answer."""
    ordered = sorted({address.partition("#")[0] for address in addresses})
    with ThreadPoolExecutor(8) as pool:
        return [a for a, fine in zip(ordered, pool.map(_reached, ordered), strict=True) if not fine]


def main(folder: Path) -> int:
    folder = folder.resolve()
    files = sorted(folder.rglob("*.html"))
    if not files:
        print(f"no pages in {folder}; build them first: make docs", file=sys.stderr)
        return 2
    pages = {path: read(path) for path in files}
    wrong, bare = broken(pages), without_picture(pages, folder)
    for line in (*wrong, *bare):
        print(line, file=sys.stderr)
    outside = {link for page in pages.values() for link in page.links if link.startswith(OUTSIDE)}
    away = unreached(outside)
    links = sum(len(page.links) for page in pages.values())
    print(f"{len(pages)} pages, {links} links, {len(wrong)} broken")
    print(f"{sum(bool(page.made) for page in pages.values())} pages with pictures that they made, "
          f"{len(bare)} without theirs")  # fmt: skip
    print(f"{len(outside)} links to other sites, {len(away)} not reached from here")
    for address in away:
        print(f"  not reached: {address}")
    return 1 if wrong or bare else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_build/html")))
