"""Priors that are drawn: transitions leave the joint law of a prior and its components."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import wishart

from mixfold.contracts import Array
from mixfold.families.bayes.known_covariance import KnownCovariance
from mixfold.families.bayes.known_mean import KnownMean
from mixfold.families.bayes.normal_gamma import (
    BayesDiagonal,
    BayesSpherical,
    BayesTiedDiagonal,
    BayesTiedSpherical,
)
from mixfold.families.bayes.normal_wishart import BayesFull, BayesTied
from mixfold.families.exponential import (
    Bernoulli,
    Beta,
    Categorical,
    Multinomial,
    NegativeBinomial,
    Poisson,
)
from mixfold.math.prior_draws import MORE_DEGREES, SPREAD
from mixfold.math.slice_sampling import slice_sample_each
from mixfold.mixing import SymmetricDirichlet
from mixfold.models.mixtures.bayes_mixture import BayesMixture
from mixfold.models.mixtures.inference import Point
from mixfold.testing.samplers import Placed, mixture_to_sample, pilot_of

K, DRAWS = 3, 400


def _about(given: Any, rng: np.random.Generator) -> Array:
    """Positive settings about those that were given."""
    return np.asarray(given * np.exp(SPREAD * rng.standard_normal(np.shape(given))))


def _matrix(given: Array, rng: np.random.Generator) -> Array:
    degrees = len(given) + MORE_DEGREES
    return np.asarray(wishart(degrees, given / degrees).rvs(random_state=rng)).reshape(given.shape)


def _normal_gamma(given: Any, rng: np.random.Generator) -> Any:
    spread = np.sqrt(given.scatter / given.degrees / given.precision)
    return replace(
        given,
        mean=given.mean + spread * rng.standard_normal(given.mean.shape),
        precision=_about(given.precision, rng),
        degrees=_about(given.degrees, rng),
        scatter=_about(given.scatter, rng),
    )


def _normal_wishart(given: Any, rng: np.random.Generator, free: bool = True) -> Any:
    least = len(given.mean) - 1
    drawn = replace(
        given,
        degrees=least + _about(given.degrees - least, rng),
        scatter=_matrix(given.scatter, rng),
    )
    if not free:
        return drawn
    spread = given.scatter / given.degrees / given.precision
    mean = rng.multivariate_normal(given.mean, spread)
    return replace(drawn, mean=mean, precision=_about(given.precision, rng))


def _normal(given: Any, rng: np.random.Generator) -> Any:
    mean = rng.multivariate_normal(given.mean, np.linalg.inv(given.precision))
    return replace(given, mean=mean, precision=_matrix(given.precision, rng))


def _pair(given: Any, rng: np.random.Generator) -> Any:
    return replace(given, a=_about(given.a, rng), b=_about(given.b, rng))


def _shares(given: Any, rng: np.random.Generator) -> Any:
    return replace(given, a=_about(given.a, rng))


# family, entries, how a prior is drawn, its settings
LAWS: dict[str, tuple[Any, str, Callable[..., Any], tuple[str, ...]]] = {
    "diag": (
        BayesDiagonal(precision=0.5, degrees=4.0),
        "numbers",
        _normal_gamma,
        ("mean", "precision", "degrees", "scatter"),
    ),
    "diag, settings of each column": (
        BayesDiagonal(precision=[0.5, 2.0], degrees=[4.0, 8.0]),
        "numbers",
        _normal_gamma,
        ("mean", "precision", "degrees", "scatter"),
    ),
    "spherical": (
        BayesSpherical(precision=0.5, degrees=4.0),
        "numbers",
        _normal_gamma,
        ("mean", "precision", "degrees", "scatter"),
    ),
    "tied-diag": (
        BayesTiedDiagonal(precision=0.5, degrees=4.0),
        "numbers",
        _normal_gamma,
        ("mean", "precision", "degrees", "scatter"),
    ),
    "tied-spherical": (
        BayesTiedSpherical(precision=0.5, degrees=4.0),
        "numbers",
        _normal_gamma,
        ("mean", "precision", "degrees", "scatter"),
    ),
    "full": (
        BayesFull(precision=0.5, degrees=5.0),
        "numbers",
        _normal_wishart,
        ("mean", "precision", "degrees", "scatter"),
    ),
    "tied": (
        BayesTied(precision=0.5, degrees=5.0),
        "numbers",
        _normal_wishart,
        ("mean", "precision", "degrees", "scatter"),
    ),
    "known-mean": (
        KnownMean(degrees=5.0),
        "numbers",
        lambda given, rng: _normal_wishart(given, rng, free=False),
        ("degrees", "scatter"),
    ),
    "known": (KnownCovariance(precision=0.5), "numbers", _normal, ("mean", "precision")),
    "bernoulli": (Bernoulli(a=1.5, b=2.5), "bits", _pair, ("a", "b")),
    "poisson": (Poisson(a=2.0), "counts", _pair, ("a", "b")),
    "negative-binomial": (
        NegativeBinomial(a=2.0, b=3.0, dispersion=0.5),
        "counts",
        _pair,
        ("a", "b"),
    ),
    "categorical": (Categorical(concentration=2.0, n_categories=3), "codes", _shares, ("a",)),
    "multinomial": (Multinomial(concentration=2.0), "counts", _shares, ("a",)),
}
ROWS: dict[str, Callable[[np.random.Generator], Array]] = {
    "numbers": lambda rng: rng.normal(size=(6, 2)) * [1.0, 3.0],
    "bits": lambda rng: np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 1, 0.0]]),
    "counts": lambda rng: rng.poisson(4.0, (6, 2)).astype(float),
    "codes": lambda rng: np.array([[0, 1], [1, 2], [2, 0], [0, 0.0]]),
}


def _numbers(prior: Any, names: tuple[str, ...]) -> Array:
    """Settings with means: logarithms of those that are positive."""
    found = []
    for name in names:
        value = np.asarray(getattr(prior, name), dtype=float)
        if name == "mean":
            found.append(np.arctan(value))
        elif value.ndim == 2:
            found.append(np.array([np.linalg.slogdet(value)[1], np.arctan(value[0, 1])]))
        else:
            found.append(np.log(value))
    return np.concatenate([np.atleast_1d(part).ravel() for part in found])


@pytest.mark.parametrize("name", LAWS)
def test_a_transition_keeps_the_joint_law(name: str) -> None:
    """Priors drawn from their own prior, components given them, and some transitions: what is drawn
    is distributed, together with the components, as what was there."""
    rng = np.random.default_rng(sum(map(ord, name)))
    family, entries, draw_given, settings = LAWS[name]
    X = ROWS[entries](rng)
    pilot = pilot_of(X)
    model = mixture_to_sample(family, SymmetricDirichlet(1.0), pilot, K)
    placed = Placed(model, pilot)
    given = model.prior
    empty = placed.stats(X, np.zeros(len(X), int)).components.zero()
    frame = placed.start.components.frame
    before, after = [], []
    for _ in range(DRAWS):
        prior = draw_given(given, rng)
        params = family.draw(family.posterior(empty, prior, frame), rng)
        drawn = prior
        for _ in range(3):
            drawn = family.draw_prior(params, drawn, given, rng)
        of_params = np.arctan(np.asarray(params.means)).mean(axis=0)
        for found, which in ((before, prior), (after, drawn)):
            own = _numbers(which, settings)
            found.append([*own, *own**2, *np.outer(own, of_params).ravel()])
        assert np.isfinite(family.log_strength(drawn))
    gap = np.asarray(after) - np.asarray(before)
    error = gap.std(axis=0, ddof=1) / np.sqrt(len(gap))
    moved = error > 0
    assert moved.sum() >= len(settings)
    z = gap.mean(axis=0)[moved] / error[moved]
    assert np.abs(z).max() < 4.5, f"moments move by {z.round(1)} standard errors"


def test_priors_find_what_drew_many_components() -> None:
    rng = np.random.default_rng(0)
    family = Poisson(a=1.0, b=1.0)
    X = rng.poisson(4.0, (6, 2)).astype(float)
    model = mixture_to_sample(family, SymmetricDirichlet(1.0), pilot_of(X), K)
    theta = np.log(rng.gamma(5.0, 1 / 2.0, (2000, 2)))
    empty = Placed(model, pilot_of(X)).without_rows()
    params = replace(family.draw(empty, rng), theta=theta, means=np.exp(theta))
    prior, found = model.prior, []
    for _ in range(300):
        prior = family.draw_prior(params, prior, model.prior, rng)
        found.append([*prior.a, *prior.b])
    assert np.allclose(np.mean(found[50:], axis=0), [5, 5, 2, 2], rtol=0.1)


def test_numbers_apart_are_sampled_as_by_themselves() -> None:
    """Gamma laws of different shapes, all at the same time."""
    rng = np.random.default_rng(1)
    shape = np.array([0.5, 2.0, 30.0])
    point, draws = np.zeros(3), []
    for _ in range(6000):
        point = slice_sample_each(lambda t: shape * t - np.exp(t), point, rng)
        draws.append(np.exp(point))
    assert np.allclose(np.mean(draws[100:], axis=0), shape, rtol=0.1)
    with pytest.raises(ValueError, match="does not fall off"):
        slice_sample_each(np.zeros_like, np.zeros(2), rng)
    with pytest.raises(ValueError, match="finite at the start"):
        slice_sample_each(lambda t: np.full_like(t, np.nan), np.zeros(2), rng)


def test_a_family_without_draws_of_its_prior_is_refused() -> None:
    family = Beta()
    with pytest.raises(ValueError, match=r"learn_prior=True needs.*Leave learn_prior out"):
        family.draw_prior(None, None, None, np.random.default_rng(0))
    assert np.isnan(family.log_strength(None))
    with pytest.raises(ValueError, match="inference 'em' does neither"):
        BayesMixture(2, Poisson(), inference=Point(), learn_prior=True)
