"""The number of components in use at each step of a fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mixfold import BayesianGaussianMixture, Mixture, load

RNG = np.random.default_rng(0)
GROUP = RNG.integers(0, 3, 300)
X = np.array([[0, 0], [6, 0], [0, 7.0]])[GROUP] + RNG.normal(size=(300, 2))


def _made(**settings):
    given = {"inference": "vb", "random_state": 0, **settings}
    return Mixture("full", 12, **given).fit(X)


@pytest.mark.parametrize(
    "settings",
    [{}, {"batch_size": 100}, {"learn_prior": True}, {"merge_split": False}, {"n_init": 2}],
    ids=["plain", "batches", "learned prior", "no moves", "two starts"],
)
def test_one_number_for_each_bound(settings) -> None:
    mixture = _made(**settings)
    found = mixture.effective_components_trace_
    assert len(found) == len(mixture.lower_bounds_) == mixture.n_iter_
    assert found[-1] == mixture.effective_components_
    assert found[0] > found[-1] and all(1 <= size <= 12 for size in found)


def test_a_fit_that_ends_early_has_the_head_of_it() -> None:
    """By the rows that each point gives its components; what is published made the point."""
    found = _made(merge_split=False).effective_components_trace_
    for steps in (3, 15, 22):
        with pytest.warns(match="did not converge"):
            short = _made(merge_split=False, max_iter=steps)
        assert short.effective_components_trace_ == found[:steps]
        assert short.effective_components_ in (found[steps - 2], found[steps - 1])


def test_files_warm_starts_and_fits_without_it(tmp_path: Path) -> None:
    mixture = _made()
    mixture.save(tmp_path / "m.mixfold")
    read = load(tmp_path / "m.mixfold")
    assert read.effective_components_trace_ == mixture.effective_components_trace_
    again = mixture.set_params(warm_start=True).fit(X)
    assert len(again.effective_components_trace_) == len(again.lower_bounds_)
    bayes = BayesianGaussianMixture(8, random_state=0).fit(X)
    assert len(bayes.effective_components_trace_) == len(bayes.lower_bounds_)
    assert not hasattr(Mixture("full", 3, random_state=0).fit(X), "effective_components_trace_")
    stream = Mixture("full", 6, inference="vb", random_state=0).partial_fit(X).partial_fit(X)
    assert not hasattr(stream, "effective_components_trace_")
