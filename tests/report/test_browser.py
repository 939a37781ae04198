"""The page in a real browser: what moves, what is fetched (nothing), how it looks when small."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixfold import PPCA, GaussianMixture, MixtureClassifier

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="needs playwright: pip install 'mixfold[dev]'"
)
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="needs Chromium on the path, for example: apt-get install chromium"
)
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
FILL = "document.querySelector('.points circle:not(.off)')"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        # as root there is no sandbox; pages are our own
        found = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield found
        found.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier with labels, holes and nasty names: most sections, wide tables."""
    import pandas as pd

    rng = np.random.default_rng(3)
    group = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 9)) + 5 * np.eye(3, 9)[group]
    X[rng.random(X.shape) < 0.05] = np.nan
    names = ["height", "<script>alert(1)</script>", "a" * 90, *(f"column_{j}" for j in range(6))]
    table = pd.DataFrame(X, columns=names)
    model = GaussianMixture(3, covariance_type="diag", random_state=0).fit(table)
    path = tmp_path_factory.mktemp("browser") / "page.html"
    return model.report(table, np.array(["ash", "oak", "yew"])[group], path=path)


class Seen:
    """A page with all that went wrong or over the network."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": WIDE, **options})
        self.page = self.context.new_page()
        self.troubles: list[str] = []
        self.fetched: list[str] = []
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("request", lambda request: self.fetched.append(request.url))
        self.context.set_offline(True)
        self.page.goto(file.as_uri())

    def fill(self) -> str:
        return self.page.evaluate(f"getComputedStyle({FILL}).fill")

    def shown(self) -> int:
        return self.page.locator(".points circle:not(.off)").count()

    def overflow(self) -> int:
        return self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )


@pytest.fixture
def seen(browser: Any, file: Path) -> Iterator[Any]:
    opened: list[Seen] = []

    def look(**options: Any) -> Seen:
        opened.append(Seen(browser, options.pop("file", file), **options))
        return opened[-1]

    yield look
    for one in opened:
        assert one.troubles == []
        assert [url for url in one.fetched if not url.startswith(("file:", "data:"))] == []
        assert len([url for url in one.fetched if url.startswith("file:")]) == 1
        one.context.close()


def test_pointing_at_a_row_reads_it(seen) -> None:
    page = seen().page
    assert page.locator(".tip").is_hidden()
    dot = page.locator(".points circle").nth(17)
    dot.scroll_into_view_if_needed()
    box = dot.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tip = page.locator(".tip")
    assert tip.is_visible()
    words = tip.inner_text()
    assert words.startswith("row ") and "component:" in words and "label given:" in words
    assert "oddness" in words
    page.mouse.move(5, 5)
    assert tip.is_hidden()


def test_a_tap_reads_a_row_and_leaves_it_on_the_screen(seen) -> None:
    page = seen(viewport=NARROW, has_touch=True).page
    dot = page.locator(".points circle").nth(17)
    dot.scroll_into_view_if_needed()
    box = dot.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_timeout(60)
    assert page.locator(".tip").is_visible()
    assert page.locator(".tip").inner_text().startswith("row ")


def test_missing_entries_have_a_colour_of_their_own(seen) -> None:
    page = seen().page
    assert "missing" not in page.locator("#map-legend").inner_text()
    page.select_option("#map-colour", label="height")
    told = re.search(r"missing \((\d+)\)", page.locator("#map-legend").inner_text())
    assert told and int(told.group(1)) == page.locator('.points circle:not([style*="rgb"])').count()


def test_a_table_shades_the_side_on_which_there_is_more(seen, tmp_path: Path) -> None:
    page = seen(viewport=NARROW).page
    wide = page.locator(".scroll").nth(0)
    sizes = wide.evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert sizes[0] > sizes[1]
    layers = wide.evaluate("e => getComputedStyle(e).backgroundAttachment")
    assert layers == "local, local, scroll, scroll"
    wide.scroll_into_view_if_needed()
    first = wide.screenshot()
    wide.evaluate("e => { e.scrollLeft = e.scrollWidth; }")
    assert wide.screenshot() != first


def test_zoom_and_reset(seen) -> None:
    page = seen().page
    centres = "Array.from(document.querySelectorAll('.points circle'), c => +c.getAttribute('cx'))"
    before = np.array(page.evaluate(centres))
    ticks = page.locator(".frame .tick").all_text_contents()
    page.click("#map-in")
    page.wait_for_timeout(60)
    after = np.array(page.evaluate(centres))
    np.testing.assert_allclose(np.ptp(after), 1.4 * np.ptp(before), rtol=1e-3)
    assert page.locator(".frame .tick").all_text_contents() != ticks
    page.click("#map-reset")
    page.wait_for_timeout(60)
    np.testing.assert_allclose(page.evaluate(centres), before, atol=0.02)


def test_wheel_drag_and_keys(seen) -> None:
    page = seen().page
    first = "+document.querySelector('.points circle').getAttribute('cx')"
    page.locator("svg.map").scroll_into_view_if_needed()
    box = page.locator("svg.map").bounding_box()
    centre = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*centre)
    start = page.evaluate(first)
    page.mouse.down()
    page.mouse.move(centre[0] + 80, centre[1], steps=4)
    page.mouse.up()
    page.wait_for_timeout(60)
    moved = page.evaluate(first)
    assert moved - start == pytest.approx(80 * 760 / box["width"], rel=0.05)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    page.wait_for_timeout(60)
    assert page.evaluate(first) != moved
    page.focus("svg.map")
    page.keyboard.press("0")
    page.wait_for_timeout(60)
    assert page.evaluate(first) == pytest.approx(start, abs=0.02)
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(60)
    assert page.evaluate(first) < start
    page.keyboard.press("n")
    assert page.locator(".tip").is_visible() and page.locator("circle.on").count() == 1


def test_filter_hides_points(seen) -> None:
    one = seen()
    page = one.page
    assert one.shown() == 300
    page.fill("#map-filter", "oak")
    oaks = one.shown()
    assert 60 < oaks < 140 and f"{oaks} of 300" in page.inner_text("#map-status")
    page.fill("#map-filter", "12")
    assert one.shown() == 1
    page.fill("#map-filter", "height > 2.5")
    tall = one.shown()
    page.fill("#map-filter", "height <= 2.5")
    assert 0 < tall < 150 and tall + one.shown() <= 300
    page.fill("#map-filter", "nothing is called this")
    assert one.shown() == 0
    page.fill("#map-filter", "")
    page.click("#map-legend button >> nth=0")
    assert one.shown() < 300
    assert page.get_attribute("#map-legend button >> nth=0", "aria-pressed") == "false"


def test_colours_and_axes(seen) -> None:
    one = seen()
    page, fills = (
        one.page,
        "Array.from(document.querySelectorAll('.points circle'), c => getComputedStyle(c).fill)",
    )
    by_group = page.evaluate(fills)
    assert len(set(by_group)) == 3
    page.select_option("#map-colour", label="height")
    by_height = page.evaluate(fills)
    assert len(set(by_height)) > 50 and by_height != by_group
    assert page.locator(".names text").count() == 0
    page.select_option("#map-colour", label="label given")
    assert page.locator(".names text").all_text_contents() == ["ash", "oak", "yew"]
    page.select_option("#map-y", label="separating direction 1")
    page.wait_for_timeout(60)
    assert page.locator(".frame .label").all_text_contents() == ["separating direction 1"] * 2


def test_the_script_draws_what_was_drawn_before(seen, file: Path) -> None:
    printed = re.findall(r'<circle cx="([\d.-]+)" cy="([\d.-]+)" r="3.2"', file.read_text("utf-8"))
    dots = "Array.from(document.querySelectorAll('.points circle'), "
    drawn = seen().page.evaluate(dots + "c => [c.getAttribute('cx'), c.getAttribute('cy')])")
    np.testing.assert_allclose(np.array(drawn, float), np.array(printed, float), atol=0.2)


def test_dark_and_light(seen) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = seen(color_scheme="light"), seen(color_scheme="dark")
    white, black = (one.page.evaluate(ground) for one in (light, dark))
    assert white == "rgb(255, 255, 255)" and black != white
    assert light.fill() != dark.fill()
    light.page.click("#theme")
    assert light.page.evaluate(ground) == black and light.page.inner_text("#theme") == "Light"
    dark.page.click("#theme")
    assert dark.page.evaluate(ground) == white


def test_narrow_without_scrolling_sideways(seen) -> None:
    one = seen(viewport=NARROW)
    assert one.overflow() == 0
    one.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert one.overflow() == 0
    assert seen().overflow() == 0


def test_without_script(browser: Any, file: Path) -> None:
    one = Seen(browser, file, java_script_enabled=False)
    page = one.page
    assert page.locator("h1").inner_text().startswith("GaussianMixture: 3 components")
    assert page.locator(".points circle").count() == 300
    assert page.locator("svg.map .tick").count() >= 8
    assert page.locator(".names text").all_text_contents() == ["0", "1", "2"]
    assert page.locator("#map-legend li").count() == 3
    for control in ("#theme", "#map-filter", "#map-in"):
        assert page.locator(control).is_hidden()
    page.locator("summary").first.click()
    assert page.locator("details").first.locator("table").is_visible()
    assert one.fetched == [file.as_uri()] and one.troubles == []
    one.context.close()


def test_on_paper(seen) -> None:
    page = seen(color_scheme="dark").page
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("nav").is_hidden() and page.locator("#map-filter").is_hidden()
    assert page.locator("h1").is_visible()
    assert len(page.pdf()) > 20_000


def test_everything_can_be_reached_by_keys(seen) -> None:
    page = seen().page
    names = []
    for _ in range(60):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"theme", "map-colour", "map-x", "map-filter", "map-reset", "svg"} <= set(names)


def test_rows_that_are_pictures_are_shown(seen, tmp_path: Path, rng: np.random.Generator) -> None:
    X = rng.random((50, 12))
    path = PPCA(2).fit(X).report(X, path=tmp_path / "p.html", image_shape=(3, 4))
    page = seen(file=path).page
    page.focus("svg.map")
    page.keyboard.press("n")
    assert page.locator(".tip .thumb").bounding_box()["width"] == pytest.approx(4 * 24 + 2, abs=2.1)
    loaded = "Array.from(document.images).every(i => i.complete && i.naturalWidth === 4)"
    assert page.locator("figure img").count() > 20 and page.evaluate(loaded)


def test_a_classifier_and_a_model_alone(seen, tmp_path: Path, rng: np.random.Generator) -> None:
    X = rng.normal(size=(90, 3)) + 3 * (np.arange(90) % 3)[:, None]
    y = np.arange(90) % 3
    model = MixtureClassifier(GaussianMixture(1), random_state=0).fit(X, y)
    with_rows = seen(file=model.report(X, y, path=tmp_path / "a.html"), viewport=NARROW)
    assert with_rows.overflow() == 0
    assert "Calibration of the probabilities" in with_rows.page.inner_text("#classes")
    alone = seen(file=model.report(path=tmp_path / "b.html"))
    assert alone.page.locator("#map").count() == 0
