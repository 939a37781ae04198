"""The parts of a fitted model: components with their centres, or a mean, factors and noise."""

from __future__ import annotations

from io import StringIO
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from mixfold.cli.parts import explained_variance_ratio, parts_table
from mixfold.cli.summary import print_summary


def printed(model: Any) -> str:
    text = StringIO()
    Console(file=text, width=120).print(parts_table(model))
    return text.getvalue()


def line(text: str, label: str) -> list[str]:
    """The entries of the row with a label."""
    rows = [[part.strip() for part in row.split("│")[1:-1]] for row in text.splitlines()]
    return next(row for row in rows if row and row[0] == label)


def factors(**changes: Any) -> Any:
    content = {
        "mean_": np.array([1.5, -2.0]),
        "loadings_": np.array([[3.0, 0.0], [0.0, 2.0]]),
        "noise_variance_": np.array([1.0, 2.0]),
        "factor_correlations_": np.eye(2),
        "n_features_in_": 2,
    }
    return SimpleNamespace(**(content | changes))


def test_factors_with_their_shares() -> None:
    text = printed(factors())
    # 9 of 9 + 1 in the first column and 4 of 4 + 2 in the second; each is one of two columns
    assert line(text, "mean") == ["mean", "", "1.5", "-2"]
    assert line(text, "factor 1") == ["factor 1", "45.0%", "3", "0"]
    assert line(text, "factor 2") == ["factor 2", "33.3%", "0", "2"]
    assert line(text, "noise") == ["noise", "", "1", "2"]


def test_shares_of_correlated_factors_add_up_and_do_not_depend_on_units() -> None:
    loadings, correlations = np.array([[3.0, 1.0], [0.5, 2.0]]), np.array([[1.0, 0.4], [0.4, 1.0]])
    common = np.diag(loadings @ correlations @ loadings.T)
    expected = np.mean(common / (common + np.array([1.0, 2.0])))
    units = np.array([1.0, 1000.0])
    for scale in (np.ones(2), units):
        model = factors(
            loadings_=loadings * scale[:, None],
            noise_variance_=np.array([1.0, 2.0]) * scale**2,
            factor_correlations_=correlations,
        )
        assert sum(explained_variance_ratio(model)) == pytest.approx(expected)


def test_published_shares_come_first_and_one_noise_is_for_all_columns() -> None:
    model = factors(explained_variance_ratio_=np.array([0.6, 0.3]), noise_variance_=0.25)
    assert explained_variance_ratio(model) == [0.6, 0.3]
    assert line(printed(model), "factor 1")[1] == "60.0%"
    assert line(printed(model), "noise")[2:] == ["0.25", "0.25"]


def test_names_are_not_markup_and_long_lists_are_cut() -> None:
    names = np.array(["[red]a", *"bcdefgh"], dtype=object)
    wide = factors(
        mean_=np.zeros(8),
        loadings_=np.ones((8, 15)),
        noise_variance_=np.ones(8),
        factor_correlations_=np.eye(15),
        n_features_in_=8,
        feature_names_in_=names,
    )
    text = printed(wide)
    assert "[red]a" in text
    assert "factor 12" in text and "factor 13" not in text
    assert "2 more columns, 3 more factors" in text


@pytest.mark.parametrize(
    ("noise", "shares"),
    [
        # of all the variance: 9 + 1 of 10 + 2 * 0.5, 16 of 16 + 2 * 2
        (np.array([0.5, 2.0]), ("90.9%", "80.0%")),
        # in a column on average: 9 of 10 and 1 of 2, 16 of 20 and nothing
        (np.array([[1.0, 1.0], [4.0, 3.0]]), ("70.0%", "40.0%")),
    ],
)
def test_components_show_what_their_factors_explain(
    noise: np.ndarray, shares: tuple[str, str]
) -> None:
    model = SimpleNamespace(
        weights_=np.array([0.25, 0.75]),
        means_=np.array([[1.5, -2.0], [3.0, 4.0]]),
        loadings_=np.array([[[3.0], [1.0]], [[4.0], [0.0]]]),
        noise_variance_=noise,
        n_features_in_=2,
    )
    text = printed(model)
    assert line(text, "0") == ["0", "0.250", shares[0], "1.5", "-2"]
    assert line(text, "1") == ["1", "0.750", shares[1], "3", "4"]


def test_a_summary_says_how_much_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary("ppca", factors(), SimpleNamespace(n_samples=9, n_features=2), 1.0)
    text = capsys.readouterr().out
    assert "variance explained" in text and "78.3%" in text


def test_a_tiny_weight_is_not_shown_as_none() -> None:
    weights = np.array([0.00049, 0.0, 0.0005, 0.99901])
    model = SimpleNamespace(weights_=weights, means_=np.zeros((4, 2)), n_features_in_=2)
    text = printed(model)
    shown = [line(text, str(k))[1] for k in range(4)]
    assert shown == ["<0.001", "<0.001", f"{0.0005:.3f}", "0.999"]


def test_sources_are_shown_as_factors_are() -> None:
    loadings = np.array([[3.0, 0.0], [0.0, 2.0]])
    content = {
        "mean_": np.zeros(2), "mixing_": loadings, "noise_variance_": 1.0, "n_features_in_": 2
    }  # fmt: skip
    text = printed(SimpleNamespace(**content))
    assert line(text, "source 1") == ["source 1", "60.0%", "3", "0"]
    assert line(text, "source 2") == ["source 2", "26.7%", "0", "2"]
