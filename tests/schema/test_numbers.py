"""Numbers as people write them: what is read, what is refused, and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixfold.schema.numbers import NumberFormat, find_format, is_bound

WRITTEN: list[tuple[list[str], list[float]]] = [
    (["1.234,56", "12,5", "3"], [1234.56, 12.5, 3]),
    (["1,234.56", "2.5"], [1234.56, 2.5]),
    (["$93,817", "$1,200", "$999"], [93817, 1200, 999]),
    (["5.8%", "12 %", "3%"], [5.8, 12, 3]),
    (["(1,200)", "300", "(4)"], [-1200, 300, -4]),
    (["569 g", "12 g"], [569, 12]),
    (["\u20ac 30", "\u20ac 12,50"], [30, 12.5]),
    (["EUR 1.000.000", "EUR 20"], [1e6, 20]),
    (["1 234,5", "12 000"], [1234.5, 12000]),
    (["1'234.50", "12"], [1234.5, 12]),
    (["12*", "13", "14[a]"], [12, 13, 14]),
    (["<0.05", "0.3", ">100"], [0.05, 0.3, 100]),
    (["1e3", "2.5e-4", "-3E+2"], [1000, 2.5e-4, -300]),
    (["-$5", "$-3", "$2"], [-5, -3, 2]),
    ([".5", "1.5", "\u22121"], [0.5, 1.5, -1]),
    (["0,5", "0,25"], [0.5, 0.25]),
    (["1.234.567", "12"], [1234567, 12]),
    (["1,234", "5,678"], [1234, 5678]),
    (["1.234", "5.678"], [1.234, 5.678]),
    (["1,234", "0,5"], [1.234, 0.5]),
    (["12 mg/dl", "7 mg/dl"], [12, 7]),
]


@pytest.mark.parametrize(("texts", "values"), WRITTEN, ids=[w[0][0] for w in WRITTEN])
def test_numbers_are_read(texts: list[str], values: list[float]) -> None:
    found = find_format(texts)
    assert found is not None and found.unread == ()
    assert [found.format.parse(text) for text in texts] == values


def test_what_is_ambiguous_is_said() -> None:
    found = find_format(["1,234", "5,678"])
    assert found is not None
    assert found.remarks == ("'1,234' is read as 1234, not as 1.234",)


@pytest.mark.parametrize(
    "texts",
    [["a", "b", "c"], ["3 kg", "200 g", "4 kg", "100 g"], ["P12", "P13"], ["12/3"], ["1-2"]],
    ids=lambda texts: texts[0],
)  # fmt: skip
def test_what_are_no_numbers(texts: list[str]) -> None:
    found = find_format(texts)
    assert found is None or len(found.unread) == len(texts)


def test_a_group_of_two_digits_is_no_thousand() -> None:
    found = NumberFormat(thousands=",")
    assert found.parse("1,23") is None and found.parse("1,234") == 1234
    assert found.parse("12,34,567") is None


def test_limits_of_detection_are_told() -> None:
    assert is_bound("<0.05") and is_bound("> 100") and not is_bound("0.05")


FORMATS = st.builds(
    lambda marks, prefix, suffix, parentheses, digits: NumberFormat(
        *marks, prefix, suffix, parentheses, digits
    ),
    st.sampled_from([(".", ""), (".", ","), (",", "."), (",", ""), (".", " "), (".", "'")]),
    st.sampled_from(["", "$", "\u20ac ", "EUR "]),
    st.sampled_from(["", "%", " g", " km/h"]),
    st.booleans(),
    st.integers(0, 4),
)


@given(FORMATS, st.integers(-(10**9), 10**9))
def test_a_number_comes_back_from_its_text(style: NumberFormat, whole: int) -> None:
    value = round(whole / 10**style.digits, style.digits)
    assert style.parse(style.format(value)) == pytest.approx(value, rel=1e-12)


@given(FORMATS, st.lists(st.integers(-(10**7), 10**7), min_size=30, max_size=40))
def test_a_format_is_found_from_what_it_has_written(style: NumberFormat, whole: list[int]) -> None:
    # one of them shows which mark is which
    values = [1234567.5, *(w / 10**style.digits for w in whole)]
    style = NumberFormat(*[getattr(style, n) for n in style.__slots__][:5], max(style.digits, 1))
    texts = [style.format(value) for value in values]
    found: Any = find_format(texts)
    assert found is not None and not found.unread
    for text, value in zip(texts, values, strict=True):
        assert found.format.parse(text) == pytest.approx(value, abs=0.51 * 10**-style.digits)
