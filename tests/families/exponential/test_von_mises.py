"""Von Mises laws: against scipy, quadrature and differences, at all concentrations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from mixfold import Mixture
from mixfold.contracts import Block
from mixfold.families.exponential import VonMises
from mixfold.families.exponential.von_mises import (
    AnglesMetric,
    _inverse_distribution,
    concentration_of,
    resultant,
)
from mixfold.math.frame import plain_frame


def test_concentrations_come_back_from_their_resultants() -> None:
    kappa = np.geomspace(1e-5, 1e6, 80)
    np.testing.assert_allclose(concentration_of(resultant(kappa)), kappa, rtol=1e-8)
    assert concentration_of(np.zeros(1))[0] == 0.0


@pytest.mark.parametrize("kappa", [0.0, 1e-3, 0.7, 5.0, 60.0, 1e4])
def test_draws_invert_the_distribution_function(kappa: float) -> None:
    u = np.concatenate([[1e-9, 1e-4], np.linspace(0.01, 0.99, 37), [1 - 1e-4]])
    x = _inverse_distribution(kappa, u)
    wanted = [
        quad(lambda a: float(np.exp(kappa * (np.cos(a) - 1))), lo, hi, epsabs=0, epsrel=1e-12)[0]
        for lo, hi in zip([-min(np.pi, 14 / np.sqrt(max(kappa, 1e-9))), *x[:-1]], x, strict=True)
    ]
    total = 2 * np.pi * np.exp(-kappa) * np.i0(kappa) if kappa < 500 else None
    if total is None:
        total = np.sqrt(2 * np.pi / kappa) * (1 + 1 / (8 * kappa))
    np.testing.assert_allclose(np.cumsum(wanted)[1:] / total, u[1:], rtol=2e-6)


def test_hours_about_midnight_are_one_group() -> None:
    """Normals would see two: late and early ones."""
    rng = np.random.default_rng(0)
    night = np.mod(rng.normal(0.2, 1.0, 300), 24)
    noon = rng.normal(12.5, 1.5, 200)
    X = np.concatenate([night, noon])[:, None]
    fitted = Mixture("von-mises", 2, family_options={"period": 24}, random_state=0).fit(X)
    labels = fitted.predict(X)
    assert (labels[:300] == labels[0]).all() and (labels[300:] != labels[0]).mean() > 0.99
    mean = fitted.means_[labels[0], 0]
    assert min(mean, 24 - mean) < 0.5
    holes = np.array([[np.nan]] * 3 + [[1.0]])
    assert 0 <= fitted.impute(holes)[0, 0] < 24


def test_the_metric_is_the_information() -> None:
    """Minus the second derivative of the log normaliser, by differences of its first."""
    family = VonMises(period=[24.0, 7.0])
    theta = np.array([[0.8, -2.0, 1.1, 0.3]])
    size, step = family.column_constants(2), 1e-6
    hessian = np.empty((4, 4))
    for j in range(4):
        e = np.zeros((1, 4))
        e[0, j] = step
        up, down = family.expected(theta + e, size), family.expected(theta - e, size)
        hessian[j] = (up - down)[0] / (2 * step)
    metric = AnglesMetric(theta, np.full((1, 2), 3.0))
    gradient = np.array([0.3, -1.0, 0.7, 2.0])
    np.testing.assert_allclose(
        metric.solve(gradient), np.linalg.solve(3 * hessian, gradient), rtol=1e-6
    )


def test_a_unit_of_the_column_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    X = np.mod(rng.vonmises(1.0, 2.0, (50, 1)), 2 * np.pi)
    resp = np.ones((50, 1))
    one, day = VonMises(), VonMises(period=24.0)
    p = one.from_rows(plain_frame(1), X, X, resp)
    q = day.from_rows(plain_frame(1), X * 24 / (2 * np.pi), X, resp)
    np.testing.assert_allclose(p.theta, q.theta, rtol=1e-12)
    a = one.scores(Block(X), one.mode(p)).log_density
    b = day.scores(Block(X * 24 / (2 * np.pi)), day.mode(q)).log_density
    np.testing.assert_allclose(a - b, np.log(24 / (2 * np.pi)), rtol=1e-9)
    kappa = float(np.hypot(*p.theta[0]))
    centre = float(np.arctan2(p.theta[0, 1], p.theta[0, 0]))
    np.testing.assert_allclose(a[:, 0], stats.vonmises.logpdf(X[:, 0], kappa, loc=centre))


def test_settings_that_say_half_a_law() -> None:
    with pytest.raises(ValueError, match="give both or neither, got direction=1"):
        VonMises(direction=1)
