"""``--set name=value``."""

from __future__ import annotations

import pytest
import typer

from mixfold.cli.settings import parse_settings, parse_value

VALID = ("n_components", "covariance_type", "tol", "warm_start")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("-1", -1),
        ("1e-4", 1e-4),
        ("True", True),
        ("false", False),
        ("none", None),
        ("diag", "diag"),
        ("tied-diag", "tied-diag"),
        ("k-means++", "k-means++"),
        ("[0.2, 0.8]", [0.2, 0.8]),
        ("'8'", "8"),
        ("__import__('os')", "__import__('os')"),
    ],
)
def test_values_are_literals_or_text(text: str, value: object) -> None:
    parsed = parse_value(text)
    assert parsed == value
    assert type(parsed) is type(value)


def test_settings_keep_types_and_values_with_equal_signs() -> None:
    words = ["n_components=3", " tol = 1e-3", "covariance_type=a=b"]
    settings = parse_settings(words, VALID)
    assert settings == {"n_components": 3, "tol": 1e-3, "covariance_type": "a=b"}


@pytest.mark.parametrize("word", ["tol", "=3", "tol=", "tol= "])
def test_a_word_that_is_no_assignment_is_a_usage_error(word: str) -> None:
    with pytest.raises(typer.BadParameter, match="name=value") as error:
        parse_settings([word], VALID)
    assert repr(word) in str(error.value)


def test_an_unknown_name_lists_the_valid_ones_and_the_nearest() -> None:
    with pytest.raises(typer.BadParameter) as error:
        parse_settings(["covariance_typ=diag"], VALID)
    message = str(error.value)
    assert "'covariance_typ'" in message
    assert "Did you mean 'covariance_type'?" in message
    assert all(name in message for name in VALID)


def test_a_name_far_from_all_gets_no_guess() -> None:
    with pytest.raises(typer.BadParameter) as error:
        parse_settings(["zzz=1"], VALID)
    assert "Did you mean" not in str(error.value)


def test_the_same_name_twice_is_a_usage_error() -> None:
    with pytest.raises(typer.BadParameter, match="'tol' is set twice"):
        parse_settings(["tol=1", "tol=2"], VALID)
