"""Markup, numbers and scales."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold.report.charts.scale import Scale, scale_of, tick_texts, ticks
from mixfold.report.formatting import add_sign, count, join_words, number, plural, share, short
from mixfold.report.markup import Html, escape, join, tag


def test_whatever_is_no_markup_is_escaped() -> None:
    assert escape("<a href='x'>&\"") == "&lt;a href=&#x27;x&#x27;&gt;&amp;&quot;"
    assert tag("p", "<b>", Html("<i></i>"), title='"><script>') == (
        '<p title="&quot;&gt;&lt;script&gt;">&lt;b&gt;<i></i></p>'
    )
    assert join(["<", None, Html("&amp;")], ", ") == "&lt;, &amp;"


def test_characters_that_no_document_may_hold_are_replaced() -> None:
    text = escape("a\x00b\ud800c\n\u00e9")
    assert text == "a\ufffdb\ufffdc\n\u00e9"
    text.encode("utf-8")


def test_attributes() -> None:
    assert tag("rect", x=1, class_="a", hidden=True, title=None, open=False) == (
        '<rect x="1" class="a" hidden/>'
    )
    assert tag("circle", tag("title", "t"), aria_hidden="true") == (
        '<circle aria-hidden="true"><title>t</title></circle>'
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (1234567, "1,234,567"), (3.0, "3"), (3.001, "3.00"), (-0.5, "\u22120.500"),
        (0.00012, "0.000120"), (1.5e12, "1.50e12"), (-2e-7, "\u22122.00e\u22127"), (None, "\u2013"),
        (float("nan"), "\u2013"), (float("inf"), "∞"), (np.float32(2.5), "2.50"),
    ],
)  # fmt: skip
def test_number(value: object, text: str) -> None:
    assert number(value) == text


def test_words() -> None:
    assert add_sign(1.25) == "+1.2" and add_sign(-1.25) == "\u22121.2" and add_sign(0.0) == "0"
    assert count(1e6) == "1,000,000" and count(2.5) == "2.5000"
    assert [share(v) for v in (0.123, 1e-5, 0.99999, 0.1)] == ["12.3%", "<0.1%", ">99.9%", "10.0%"]
    assert [share(v) for v in (-0.026, -1e-5, 0, 1)] == ["\u22122.6%", "0%", "0%", "100%"]
    assert plural(1, "row") == "1 row" and plural(2, "class", "classes") == "2 classes"
    assert join_words(["a"]) == "a" and join_words(["a", "b"]) == "a and b"
    assert join_words(list("abcdefgh")) == "a, b, c, d, e, f and 2 others"
    assert short("x" * 60) == "x" * 47 + "…"


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-3, 4e5), (1e-9, 2e-9), (99.99, 100.0), (-1e12, 5)]
)
def test_ticks_are_round_few_and_told_apart(low: float, high: float) -> None:
    found = ticks(low, high, 6)
    assert 2 <= len(found) <= 6 and low <= found[0] and found[-1] <= high
    steps = np.diff(found)
    np.testing.assert_allclose(steps, steps[0], rtol=1e-6)
    assert len(set(tick_texts(found))) == len(found)


@pytest.mark.parametrize(
    ("low", "high"),
    [(-0.6931471805740, -0.6931471805737), (2.83134e-319, 2.8314e-319), (0.0, 5e-324)],
)
def test_ticks_that_texts_cannot_tell_apart_are_none(low: float, high: float) -> None:
    assert ticks(low, high, 6) == [] and tick_texts(ticks(low, high, 6)) == []


@pytest.mark.parametrize("values", [[], [np.nan], [5.0, 5.0], [1.0, 1.0 + 1e-15], [0.0]])
def test_scales_of_nothing_have_ticks(values: list[float]) -> None:
    scale = scale_of(np.array(values), 0.0, 100.0)
    assert scale.high > scale.low and tick_texts(scale.ticks())


def test_scale_goes_either_way() -> None:
    assert Scale(0, 10, 100, 0)(2.5) == 75.0
