"""Maps of sources: slopes by differences, proximal steps against a search of the line."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mixfold.math.link_functions import LINKS, Identity, Tanh, _root

NAMES = sorted(LINKS)


def sources(name: str) -> np.ndarray:
    s = np.linspace(-3.0, 3.0, 41)
    return np.abs(s) if name == "saturating" else s


@pytest.mark.parametrize("name", NAMES)
def test_inverse_slope_and_centre(name: str) -> None:
    link, s = LINKS[name], sources(name)
    phi = link.value(s)
    np.testing.assert_allclose(link.inverse(phi), s, atol=1e-12)
    h = 1e-6
    differences = (link.value(s + h) - link.value(s - h)) / (2 * h)
    np.testing.assert_allclose(link.slope(phi), differences, rtol=1e-7)
    assert float(link.value(np.zeros(1))[0]) == link.centre
    np.testing.assert_allclose(link.cost(phi), np.abs(s), atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_box_ends_where_sources_are_far(name: str) -> None:
    link = LINKS[name]
    ends = {"identity": np.inf, "saturating": 1e6 - 1, "logistic": 4.0, "tanh": 4.0}
    np.testing.assert_allclose(link.inverse(np.array(link.upper)), ends[name], rtol=1e-6)
    beyond = link.inverse(np.array([link.upper, 1.0 if np.isfinite(link.upper) else np.inf]))
    assert beyond[0] == beyond[1]  # codes beyond the box count as its ends


def energy(link, u, tau, p):
    return 0.5 * (p - u) ** 2 + tau * link.cost(np.asarray(p))


def searched(link, u, tau):
    """The least value on the line: a grid, then a search around its best point."""
    low, high = max(link.lower, -30.0), min(link.upper, 30.0)
    grid = np.concatenate([np.linspace(low, high, 2001), [link.centre]])
    values = energy(link, u, tau, grid)
    at = grid[values.argmin()]
    step = (high - low) / 2000
    found = minimize_scalar(
        lambda p: float(energy(link, u, tau, p)),
        bounds=(max(at - step, low), min(at + step, high)), method="bounded",
        options={"xatol": 1e-12},
    )  # fmt: skip
    return min(float(found.fun), float(values.min()))


@pytest.mark.parametrize("link", [*LINKS.values(), Identity(lower=0.0), Tanh(lower=0.0)], ids=repr)
def test_shrink_is_the_proximal_step(link, rng) -> None:
    u = rng.normal(scale=2.0, size=60)
    tau = 10.0 ** rng.uniform(-7, 1, size=60)
    found = link.shrink(u, tau)
    assert ((found >= link.lower) & (found <= link.upper)).all()
    for p, one, t in zip(found, u, tau, strict=True):
        assert energy(link, one, t, p) <= searched(link, one, t) + 1e-12


@pytest.mark.parametrize(("name", "reach"), [("identity", 1), ("saturating", 1), ("logistic", 4),
                                             ("tanh", 1)])  # fmt: skip
def test_shrink_gives_true_zeros(name: str, reach: float) -> None:
    link, tau = LINKS[name], 0.05
    inside = link.centre + np.linspace(-0.999, 0.999, 7) * reach * tau
    assert (link.shrink(inside, tau) == link.centre).all()
    assert (link.shrink(link.centre + 1.01 * reach * tau * np.ones(1), tau) > link.centre).all()


def test_shrink_without_cost_is_the_box() -> None:
    u = np.array([[-3.0, 0.2], [0.7, 9.0]])
    for link in LINKS.values():
        np.testing.assert_allclose(link.shrink(u, 0.0), np.clip(u, link.lower, link.upper))


def test_shrink_is_accurate_near_the_end_of_the_range() -> None:
    """Where 1 - phi is small the equation of the root must hold relative to its large terms."""
    tau, u = 1e-9, np.array([0.999, 1.0, 1.5, 40.0])
    p = LINKS["saturating"].shrink(u, tau)
    free = p < LINKS["saturating"].upper
    assert free[:3].all()
    gap = (u - p - tau / (1 - p) ** 2)[free]
    np.testing.assert_allclose(gap / u[free], 0.0, atol=1e-8)


def test_a_root_just_below_the_top_is_found() -> None:
    """Newton's steps begin at the top there, and must not end there."""
    t, tau, a, b = 0.5, 0.1, 1.0, -1.0
    u = t + tau / ((1 - a * t) * (1 - b * t))
    for top in (0.501, 0.51, 0.9):
        assert _root(u, tau, a, b, top) == pytest.approx(t, rel=1e-12)
    assert _root(u, tau, a, b, 0.4) == 0.4
