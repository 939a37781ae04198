"""One t distribution, against scipy and against its own parameters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_t, t

from mixfold.math.student import fit_student


def test_the_likelihood_is_that_of_scipy_and_the_parameters_come_back():
    law = multivariate_t([1.0, -2.0], [[2.0, 0.5], [0.5, 1.0]], df=3, seed=0)
    X = law.rvs(4000) * [1.0, 1e6]
    weight = np.random.default_rng(0).integers(1, 3, len(X)).astype(float)
    found = fit_student(X, weight)
    assert found.freedom == pytest.approx(3, rel=0.15)
    unit = np.array([1.0, 1e6])
    scatter = found.scatter / unit[:, None] / unit
    again = multivariate_t(found.mean / unit, scatter, df=found.freedom)
    value = weight @ again.logpdf(X / unit) - weight.sum() * np.log(1e6)
    assert found.log_likelihood == pytest.approx(value, rel=1e-9)
    assert found.n_parameters == 2 + 3 + 1
    # a weight of two is a repetition
    repeated = fit_student(X.repeat(weight.astype(int), axis=0), np.ones(int(weight.sum())))
    assert repeated.log_likelihood == pytest.approx(found.log_likelihood, rel=1e-6)


def test_it_is_the_maximum():
    x = t(2.0).rvs(800, random_state=1)
    found = fit_student(x[:, None], np.ones(800))
    best = minimize(
        lambda p: -t(np.exp(p[0]), p[1], np.exp(p[2])).logpdf(x).sum(),
        [1.0, 0.0, 0.0],
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-8},
    )
    assert found.log_likelihood == pytest.approx(-best.fun, abs=1e-2)


def test_rows_that_do_not_span_their_columns_have_no_fit():
    x = np.random.default_rng(0).normal(size=50)
    assert fit_student(np.column_stack([x, x]), np.ones(50)) is None
    assert fit_student(np.where(x > 1, x, 0.0)[:, None], np.ones(50)) is None
