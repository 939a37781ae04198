"""Samplers that draw the prior of the components, too: the joint law of it, components and rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mixfold import Mixture, load
from mixfold.contracts import Array, Block, Context
from mixfold.engine.chain import Sweeps, sample_chain
from mixfold.engine.sources import open_source
from mixfold.engine.state import Task
from mixfold.families.bayes.normal_gamma import BayesDiagonal
from mixfold.families.exponential import Poisson
from mixfold.math.prior_draws import SPREAD
from mixfold.mixing import SymmetricDirichlet
from mixfold.models.mixtures.collapsed import CollapsedSampler
from mixfold.testing.samplers import (
    Placed,
    canonical,
    features,
    mixture_to_sample,
    pilot_of,
    same_means,
)

N = 6


class InTurn:
    """One block after the other."""

    def map_reduce(self, task: Any, source: Any) -> Any:
        total, *others = map(task, source.blocks())
        assert not others
        return total

    def map_rows(self, task: Any, source: Any) -> Any:
        return map(task, source.blocks())


def _poisson_prior(given: Any, rng: np.random.Generator) -> Any:
    a, b = (np.exp(SPREAD * rng.standard_normal(2)) for _ in range(2))
    return replace(given, a=given.a * a, b=given.b * b)


def _gaussian_prior(given: Any, rng: np.random.Generator) -> Any:
    spread = np.sqrt(given.scatter / given.degrees / given.precision)
    factors = [np.exp(SPREAD * rng.standard_normal(np.shape(g))) for g in (1.0, 1.0, [1.0, 1.0])]
    return replace(
        given,
        mean=given.mean + spread * rng.standard_normal(2),
        precision=np.asarray(given.precision * factors[0]),
        degrees=np.asarray(given.degrees * factors[1]),
        scatter=given.scatter * factors[2],
    )


LAWS: dict[str, Any] = {
    "poisson": (Poisson(a=2.0, b=0.5), _poisson_prior, lambda rng: rng.poisson(4.0, (N, 2))),
    "diag": (
        BayesDiagonal(precision=0.5, degrees=4.0),
        _gaussian_prior,
        lambda rng: 10 + rng.normal(size=(N, 2)),
    ),
}


@pytest.mark.parametrize("collapsed", [False, True], ids=["blocked", "collapsed"])
@pytest.mark.parametrize("name", ["poisson", pytest.param("diag", marks=pytest.mark.slow)])
def test_joint_distribution(name: str, collapsed: bool) -> None:
    """Rows given components and a sweep given rows, in turn, have the joint law (Geweke 2004)."""
    rng = np.random.default_rng(len(name) + collapsed)
    family, draw_given, rows = LAWS[name]
    first = np.asarray(rows(rng), dtype=float)
    pilot, mixing = pilot_of(first), SymmetricDirichlet(1.0)
    model = replace(mixture_to_sample(family, mixing, pilot), learn_prior=True)
    placed = Placed(replace(model, learn_prior=False), pilot)
    frame = placed.start.components.frame
    empty = placed.stats(first, np.zeros(N, int)).components.zero()

    def rows_of(labels: Array, prior: Any) -> Array:
        params = family.draw(family.posterior(empty, prior, frame), rng)
        return np.asarray(family.draw_rows(params, labels, rng))

    def told(X: Array, labels: Array, prior: Any) -> list[float]:
        strength = family.log_strength(prior)
        return [*features(X, labels, 1.0, first)[1:], strength, strength**2]

    independent = []
    for _ in range(2500):
        prior = draw_given(model.prior, rng)
        labels = rng.choice(3, N, p=rng.dirichlet(np.full(3, 1 / 3)))
        independent.append(told(rows_of(labels, prior), labels, prior))

    chain, X, labels, prior = [], first, np.arange(N) % 3, model.prior
    params = placed.start
    for sweep in range(1000):
        if collapsed:
            sampler = CollapsedSampler(model, Block(X), pilot, process=False)
            sampler._set_prior(prior)
            sampler._resize(3)
            sampler.start(labels)
            sampler.sweep(rng)
            labels, prior = np.array(canonical(sampler.labels)), sampler.params().prior
        else:
            now = replace(params, prior=prior)
            params = model.update(now, placed.stats(X, labels), Context(pilot, rng)).params
            task = Task(model, open_source(X), InTurn(), pilot, sweep)
            run = sample_chain(task, params, Sweeps(1, 0), 0)
            params, labels = run.params[0], run.labels[0].astype(int)
            prior = params.prior
        X = rows_of(labels, prior)
        chain.append(told(X, labels, prior))
    same_means(chain, independent)


@pytest.mark.parametrize("inference", ["gibbs", "collapsed"])
def test_estimators_publish_the_prior_that_was_drawn(inference: str, tmp_path: Any) -> None:
    rng = np.random.default_rng(3)
    rates = rng.gamma(6.0, 2.0, (12, 4))
    X = rng.poisson(rates[rng.integers(12, size=240)])
    settings = dict(n_draws=40, burn_in=40, n_chains=2, random_state=0)
    mixture = Mixture("poisson", 20, inference=inference, learn_prior=True, **settings)
    with pytest.warns(match="not mixed"):
        mixture.fit(X)
    assert mixture.traces_["prior"].shape == (2, 40)
    assert np.isfinite(mixture.diagnostics_["prior"].r_hat)
    # the default prior is as wide as one rate: exponential. What is found is narrower
    assert (mixture.prior_["a"] > 1.5).all()
    assert np.allclose(mixture.prior_["a"] / mixture.prior_["b"], 12, rtol=0.5)
    mixture.save(tmp_path / "mixture")
    again = load(tmp_path / "mixture")
    assert np.array_equal(again.prior_["a"], mixture.prior_["a"])
    assert np.array_equal(again.score_samples(X), mixture.score_samples(X))
    with pytest.warns(match="not mixed"):
        again.fit(X)
    assert np.array_equal(again.prior_["a"], mixture.prior_["a"])  # same seed, same draws


def test_one_component_and_a_prior_that_stays() -> None:
    X = np.random.default_rng(0).poisson(4.0, (50, 2))
    settings = dict(inference="gibbs", n_draws=20, burn_in=5, n_chains=1, random_state=0)
    alone = Mixture("poisson", 1, learn_prior=True, **settings)
    fixed = Mixture("poisson", 1, **settings)
    for mixture in (alone, fixed):
        with pytest.warns():
            mixture.fit(X)
    assert "prior" in alone.traces_ and "prior" not in fixed.traces_
    with pytest.raises(ValueError, match="'vb', 'gibbs' or 'collapsed', got inference='em'"):
        Mixture("poisson", 2, learn_prior=True).fit(X)
