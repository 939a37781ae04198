"""L-BFGS with bounds: minima as scipy finds them, and searches that go on in the same bits."""

import numpy as np
import pytest
from scipy.optimize import Bounds, minimize, rosen, rosen_der

from mixfold import store
from mixfold.models.networks.quasi_newton import PAIRS, minimise, minimise_l1
from mixfold.testing.compare import require_same


def rosenbrock(x):
    return float(rosen(x)), rosen_der(x)


def quadratic(seed, size=12):
    """A convex function of bad condition, and bounds of which many hold."""
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.normal(size=(size, size)))[0]
    matrix, wish = turned @ np.diag(np.geomspace(1, 1e4, size)) @ turned.T, rng.normal(size=size)

    def function(x):
        gap = x - wish
        return 0.5 * float(gap @ matrix @ gap), matrix @ gap

    lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
    lower[::2], upper[::3] = 0.2 * rng.normal(size=len(lower[::2])), 0.5
    return function, np.minimum(lower, 0.4), upper


@pytest.mark.parametrize("size", [2, 5, 20])
def test_the_valley_of_rosenbrock(size):
    found = minimise(rosenbrock, np.full(size, -1.2), max_iter=1000, tol=1e-15)
    np.testing.assert_allclose(found.point, 1, atol=1e-4)
    assert found.reason == "converged" and (np.diff(found.trace) <= 0).all()
    # in about as many steps as scipy's
    theirs = minimize(
        rosen, np.full(size, -1.2), jac=rosen_der, method="L-BFGS-B",
        options={"maxcor": PAIRS, "ftol": 1e-15, "gtol": 1e-9, "maxiter": 1000},
    )  # fmt: skip
    assert found.n_iter < 1.5 * theirs.nit + 10


@pytest.mark.parametrize("seed", range(5))
def test_minima_between_bounds_are_those_of_scipy(seed):
    function, lower, upper = quadratic(seed)
    found = minimise(function, np.zeros(12), lower=lower, upper=upper, max_iter=2000, tol=1e-15)
    theirs = minimize(
        function, np.zeros(12), jac=True, method="L-BFGS-B", bounds=Bounds(lower, upper),
        options={"ftol": 1e-15, "gtol": 1e-12, "maxiter": 2000},
    )  # fmt: skip
    assert found.value == pytest.approx(theirs.fun, rel=1e-8)
    np.testing.assert_allclose(found.point, theirs.x, atol=1e-4)
    assert (found.point >= lower).all() and (found.point <= upper).all()
    # the conditions of Karush, Kuhn and Tucker
    slope = function(found.point)[1]
    free = (found.point > lower) & (found.point < upper)
    assert free.any() and not free.all()
    assert np.abs(slope[free]).max() < 1e-2
    assert (slope[found.point == lower] >= 0).all() and (slope[found.point == upper] <= 0).all()


def test_a_start_outside_the_bounds_is_brought_in():
    found = minimise(
        rosenbrock, np.full(3, 9.0), lower=np.full(3, -2.0), upper=np.full(3, 0.5), max_iter=500
    )
    assert found.point.max() <= 0.5 and found.reason == "converged"


def test_values_that_are_not_finite_are_walked_around():
    def barrier(x):  # infinite beyond 1
        inside = x < 1
        value = float(np.where(inside, -np.log(np.where(inside, 1 - x, 1.0)) - 5 * x, np.inf).sum())
        return value, np.where(inside, 1 / np.where(inside, 1 - x, 1.0) - 5, np.nan)

    found = minimise(barrier, np.array([0.0, -3.0]), tol=1e-14)
    np.testing.assert_allclose(found.point, 0.8, atol=1e-5)


@pytest.mark.parametrize("penalised", [False, True])
def test_a_search_that_goes_on_from_any_step_takes_the_same_steps(penalised, tmp_path):
    lower, upper = np.full(6, -np.inf), np.full(6, 2.0)
    rates = np.array([0.0, 0.1, 3.0, 0.1, 0.1, 5.0])

    def search(start, **how):
        how = {"max_iter": 40, "tol": 0.0, **how}
        if penalised:
            return minimise_l1(rosenbrock, start, rates, lower, upper, **how)
        return minimise(rosenbrock, start, lower=lower, upper=upper, **how)

    seen = []

    def watch(now):
        seen.append(now)
        return ""

    wanted = search(np.full(6, -1.2), watch=watch)
    assert len(seen) == wanted.n_iter > 25 and len(seen[-1].steps) == PAIRS
    for now in seen[::4]:
        # as a file brings it back
        store.write(tmp_path / "descent", "checkpoint", {"now": now})
        found = search(store.read(tmp_path / "descent", "checkpoint")["now"])
        require_same(f"from step {now.n_iter}", found, wanted)
    # and from the end it has nothing left to do
    require_same("from the end", search(seen[-1]), wanted)
