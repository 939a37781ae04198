"""Scales of numbers: there and back, their slopes by differences, chosen by likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mixfold.schema import Column, Schema
from mixfold.schema.scales import (
    POWERS,
    _beta_bic,
    _normal_bic,
    choose_scale,
    from_scale,
    is_beta,
    log_slope,
    to_scale,
)


def column(scale: str, margin: float = 0.0) -> Column:
    return Column("x", "number", "", scale=scale, margin=margin, low=0.01, high=50.0)


@pytest.mark.parametrize("scale", [*POWERS, "share", "plain"])
def test_a_scale_has_the_slope_of_differences(scale: str) -> None:
    one = column(scale, 0.01 if scale == "share" else 0.0)
    x = np.linspace(0.05, 0.95, 19) * (1 if scale == "share" else 40)
    y = to_scale(one, x)
    np.testing.assert_allclose(from_scale(one, y), x, rtol=1e-12)
    h = 1e-6 * x
    slope = (to_scale(one, x + h) - to_scale(one, x - h)) / (2 * h)
    np.testing.assert_allclose(log_slope(one, y) + np.zeros(len(x)), np.log(slope), atol=1e-8)
    assert (np.diff(y) > 0).all()


def test_what_no_number_has_is_the_nearest_one() -> None:
    assert from_scale(column("sqrt"), np.array([-1.0]))[0] == pytest.approx(0.001)
    assert from_scale(column("reciprocal"), np.array([0.2]))[0] == pytest.approx(500)
    assert list(from_scale(column("share", 0.1), np.array([0.0, 1.0, 0.5]))) == [0.0, 1.0, 0.5]


def test_scales_are_those_of_the_laws() -> None:
    rng = np.random.default_rng(0)
    n = 500
    assert choose_scale(np.exp(rng.normal(10, 0.8, n)))[0] == "log"
    assert choose_scale(rng.normal(6, 1.2, n).clip(0.1) ** 3)[0] == "cbrt"
    assert choose_scale(1 / rng.normal(10, 2, n).clip(1))[0] == "reciprocal"
    two = np.concatenate([rng.normal(20, 2, n // 8), rng.normal(60, 5, n)])  # groups, not skewness
    for values in (rng.normal(50, 10, n), two, rng.normal(size=n), np.exp(rng.normal(size=10))):
        assert choose_scale(values) == ("plain", 0.0)
    # what is rescaled by a unit is judged alike
    x = np.exp(rng.normal(1, 0.7, n))
    assert choose_scale(x)[1] == pytest.approx(choose_scale(1000 * x)[1])


def test_criteria_are_those_of_one_law() -> None:
    """Of one group: against scipy's densities at the moments."""
    x = np.sort(np.random.default_rng(1).beta(2, 5, 200))
    normal = -2 * stats.norm.logpdf(x, x.mean(), x.std()).sum() + 2 * np.log(200)
    assert _normal_bic(x) <= normal + 1e-9
    total = x.mean() * (1 - x.mean()) / x.var() - 1
    a, b = x.mean() * total, (1 - x.mean()) * total
    beta = -2 * stats.beta.logpdf(x, a, b).sum() + 2 * np.log(200)
    assert _beta_bic(x) <= beta + 1e-9 and is_beta(x)
    assert not is_beta(np.random.default_rng(1).normal(0.5, 0.05, 300))


def test_zeros_and_ones_are_moved_inwards() -> None:
    rng = np.random.default_rng(2)
    x = np.round(rng.beta(0.5, 0.7, 400), 2)
    schema = Schema.infer({"share": x})
    assert schema["share"].scale == "share" and schema["share"].margin == 0.5 / 400
    coded = schema.encode({"share": x})
    assert coded.min() > 0 and coded.max() < 1
    np.testing.assert_allclose(schema.decode(coded).column(0).to_numpy(), x, atol=1e-12)
    assert Schema.from_text(schema.to_text()) == schema
    with pytest.raises(ValueError, match="was between 0 and 1 throughout"):
        schema.encode({"share": [1.5]})
