"""Columns of codes are told by shares, and ranked by what they tell about the groups."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.metrics import mutual_info_score

from mixfold import (
    BernoulliMixture,
    CategoricalMixture,
    Mixture,
    MixtureClassifier,
)
from mixfold.cli.parts import parts_table
from mixfold.estimators.mixtures.category_shares import (
    category_shares,
    information_of_codes,
    information_of_numbers,
)
from mixfold.report.points import with_indicators
from mixfold.report.projection import plane


@pytest.fixture(scope="module")
def mixed() -> tuple[pd.DataFrame, np.ndarray]:
    """Two groups that share no colour, though the mean of their codes is the same."""
    rng = np.random.default_rng(0)
    group = rng.random(600) < 0.4
    table = pd.DataFrame(
        {
            "shape": rng.integers(0, 4, 600),
            "colour": np.where(group, rng.choice([0, 3], 600), rng.choice([1, 2], 600)),
            "big": np.where(rng.random(600) < 0.8, group, ~group).astype(int),
            "length": rng.normal(size=600) + 1.5 * group,
        }
    )
    return table, group.astype(int)


FAMILIES = {"categorical": ["shape", "colour"], "bernoulli": ["big"], "full": ["length"]}


@pytest.fixture(scope="module")
def model(mixed) -> Mixture:
    table, group = mixed
    return Mixture(FAMILIES, 2, random_state=0).fit(table, component_labels=group)


def test_groups_that_share_no_colour_are_told_apart(page, mixed, model) -> None:
    table, group = mixed
    found = page(model, table)
    words = " ".join(found.words["profiles"].split())
    assert "close to" not in words
    for k in range(2):
        own = table.colour[group == k].value_counts(normalize=True)
        whole = (table.colour == own.index[0]).mean()
        assert f"colour = {own.index[0]} in {own.iloc[0]:.1%} (all rows {whole:.1%})" in words
    # the table of means has the numbers only
    assert "length" in words and "mean of all rows" in words
    rows = [line for line in found.text.split("<tr>") if 'scope="row"' in line]
    assert not any(">colour<" in line and "sd from all rows" in line for line in rows)


def test_columns_stand_by_what_they_tell(page, mixed, model) -> None:
    table, group = mixed
    words = " ".join(page(model, table).words["categories"].split())
    bits = {
        name: mutual_info_score(table[name], group) / np.log(2)
        for name in ("shape", "colour", "big")
    }
    assert f"colour: {bits['colour']:.2f} bits" in words
    assert words.index("colour:") < words.index("shape:")
    for code in range(4):
        for k in range(2):
            share = (table.colour[group == k] == code).mean()
            assert f"{share:.1%}" in words or share == 0
    assert f"{table.big[group == 1].mean():.1%}" in words


def test_information() -> None:
    rng = np.random.default_rng(1)
    group, code = rng.integers(0, 3, 500), rng.integers(0, 4, 500)
    code = np.where(rng.random(500) < 0.5, group, code)
    counts = np.array([[np.sum((group == k) & (code == c)) for c in range(4)] for k in range(3)])
    shares, weights = counts / counts.sum(axis=1, keepdims=True), counts.sum(axis=1)
    expected = mutual_info_score(group, code) / np.log(2)
    assert information_of_codes(shares, weights) == pytest.approx(expected)

    parts, means, sds = np.array([0.3, 0.7]), np.array([0.0, 2.0]), np.array([1.0, 1.4])

    def inside(x: float, k: int) -> float:
        densities = norm.pdf(x, means, sds)
        return float(densities[k] * np.log2(densities[k] / (parts @ densities)))

    integral = sum(parts[k] * quad(inside, -12, 16, args=(k,))[0] for k in range(2))
    found = information_of_numbers(means[:, None], sds[:, None], parts)
    assert found[0] == pytest.approx(integral, rel=2e-3)


def test_shares_of_all_kinds_of_models(mixed) -> None:
    table, group = mixed
    ones = BernoulliMixture(2, random_state=0).fit(table[["big"]])
    np.testing.assert_allclose(category_shares(ones)[0][:, 1], ones.means_[:, 0])
    codes = CategoricalMixture(2, random_state=0).fit(table[["shape", "colour"]])
    np.testing.assert_allclose(category_shares(codes)[1], codes.probabilities_[1])
    rows = table[["shape", "big"]]
    classes = MixtureClassifier(CategoricalMixture(1), random_state=0).fit(rows, group)
    expected = pd.crosstab(group, table["shape"], normalize="index").to_numpy()
    np.testing.assert_allclose(category_shares(classes)[0], expected, atol=1e-6)


def test_reports_of_classes_by_shares(page, mixed) -> None:
    table, group = mixed
    rows = table[["shape", "big"]]
    model = MixtureClassifier(CategoricalMixture(1), random_state=0).fit(rows, group)
    words = " ".join(page(model, rows, group).words["profiles"].split())
    assert (
        f"big = 1 in {table.big[group == 1].mean():.1%} (all rows {table.big.mean():.1%})" in words
    )


def test_the_map_and_the_missing_entries_do_not_read_codes_as_numbers(page, mixed, model) -> None:
    table, _ = mixed
    X = np.array([[2.0, 0.5], [0.0, 1.5], [2.0, 2.5]])
    np.testing.assert_array_equal(with_indicators(X, [0]), [[0.5, 0, 1], [1.5, 1, 0], [2.5, 0, 1]])
    holes = table.astype(float)
    holes.iloc[::9, 1] = np.nan
    found = page(model, holes)
    assert '"names":["colour 0","colour 1","colour 2","colour 3"]' in found.text
    words = " ".join(found.words["missing"].split())
    assert "is the share that was filled correctly" in words and " codes " in words
    # given its other columns the better of two equal codes is right in half of the cases
    recovered = float(words.split("colour")[1].split("%")[1].strip())
    assert 40 < recovered < 65
    # the commonest code of all is right less often, and that is said beside it
    common = float(words.split("colour")[1].split("(")[1].split("%")[0])
    assert common == pytest.approx(100 * holes["colour"].value_counts(normalize=True).max(), abs=4)


def test_reasons_of_codes(page, mixed, model) -> None:
    table = mixed[0].copy()
    table.loc[5, ["colour", "length"]] = [0, -6.0]
    words = " ".join(page(model, table).words["novelty"].split())
    assert "row 5 length \u22126 (expected" in words
    assert "(most probable 0.5" not in words and "(most probable 0.8" not in words


def test_the_terminal_tells_codes_by_shares(model) -> None:
    text = StringIO()
    Console(file=text, width=120).print(parts_table(model))
    colours = model.parameters_["categorical"]["probabilities"][1]
    for k in range(2):
        best = int(colours[k].argmax())
        assert f"{best} ({colours[k, best]:.0%})" in text.getvalue()
    assert "of codes: the most probable (its share)" in " ".join(text.getvalue().split())


def test_groups_that_one_code_decides_are_drawn_side_by_side(mixed) -> None:
    """No variance within groups along the first axis: the second is not a copy of it."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 300)
    X = with_indicators(np.column_stack([group, rng.integers(0, 4, 300)]).astype(float), [0, 1])
    flat = plane(X, group, 0)
    assert abs(np.corrcoef(flat.T)[0, 1]) < 0.5
    assert len(np.unique(flat[:, 1].round(6))) > 2
