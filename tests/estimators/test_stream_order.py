"""Streams whose rows are sorted, or drift, are noticed; those in random order are not."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from mixfold import (
    PCP,
    BayesianGaussianMixture,
    FactorAnalysis,
    GaussianMixture,
    GaussianPCP,
    KMeans,
    LatentDirichletAllocation,
    MatrixFactorization,
    Mixture,
    MixtureOfFactorAnalyzers,
    MixtureOfPPCA,
    PoissonMixture,
    load,
)
from mixfold.estimators.shell.fitting import OrderWarning

GROUP = np.repeat([0, 1, 2], 400)
CENTRES = 8 * np.array([[0, 0, 0], [1, 1, 0], [0, 1, 1]])


def numbers(seed=0):
    return np.random.default_rng(seed).normal(size=(1200, 3)) + CENTRES[GROUP]


def counts(seed=0):
    rates = np.array([[5, 40, 10], [40, 5, 10], [10, 10, 80]])
    return np.random.default_rng(seed).poisson(rates[GROUP]).astype(float)


def texts(seed=0):
    rng = np.random.default_rng(seed)
    topics = np.random.default_rng(5).dirichlet(np.full(30, 0.2), 3)
    shares = 0.05 + 0.85 * np.eye(3)
    return np.array([rng.multinomial(40, shares[k] @ topics) for k in GROUP]).astype(float)


def many_texts(seed=0):
    """More than the 2000 that a stream of topics holds and learns together."""
    return np.repeat(texts(seed), 3, axis=0)


STREAMS = {
    "gaussian": (lambda: GaussianMixture(3, random_state=0), numbers),
    "kmeans": (lambda: KMeans(3, random_state=0), numbers),
    "bayes": (lambda: BayesianGaussianMixture(3, random_state=0), numbers),
    "ppca": (lambda: MixtureOfPPCA(3, n_factors=1, random_state=0), numbers),
    "factors": (lambda: MixtureOfFactorAnalyzers(3, n_factors=1, random_state=0), numbers),
    "pcp of numbers": (lambda: GaussianPCP(3, n_components=1, random_state=0), numbers),
    "poisson": (lambda: PoissonMixture(3, random_state=0), counts),
    "vb": (lambda: Mixture("full", 3, inference="vb", random_state=0), numbers),
    "negative binomial": (lambda: Mixture("negative-binomial", 3, random_state=0), counts),
    "lda": (lambda: LatentDirichletAllocation(3, batch_size=64, random_state=0), many_texts),
    "pcp": (lambda: PCP(3, 3, random_state=0), texts),
    "factorization": (lambda: MatrixFactorization(2, random_state=0), numbers),
}  # fmt: skip


def stream(model, X, size=100, start=0, **sides):
    """Learn X batch by batch; the sentences of the warnings about order."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for first in range(start, len(X), size):
            each = {name: side[first : first + size] for name, side in sides.items()}
            model.partial_fit(X[first : first + size], **each)
    return [str(w.message) for w in said if issubclass(w.category, OrderWarning)]


@pytest.mark.parametrize("name", STREAMS)
def test_sorted_rows_are_told_of_once_and_shuffled_ones_not_at_all(name):
    make, rows = STREAMS[name]
    X = rows()
    model = make()
    said = stream(model, X)
    assert len(said) == 1 and "shuffle the rows" in said[0] and "sorted" in said[0]
    told = [event for event in model.events_ if event.kind == "order"]
    assert len(told) == 1 and told[0].message in said[0]
    other = make()
    assert not stream(other, np.random.default_rng(0).permutation(X))
    assert "order" not in [event.kind for event in other.events_]


def test_shuffled_streams_of_many_seeds():
    for seed in range(60):
        X = np.random.default_rng(seed).permutation(numbers(seed))[:400]
        assert not stream(KMeans(3, random_state=0), X, size=20 + seed)


def test_drift_weights_and_missing_entries():
    rng = np.random.default_rng(0)
    drifting = rng.normal(size=(1500, 2)) + np.linspace(0, 2, 1500)[:, None]
    assert stream(GaussianMixture(2, random_state=0), drifting)
    X, weight = numbers(), rng.uniform(0.2, 3, 1200)
    X[rng.random(X.shape) < 0.1] = np.nan
    assert stream(GaussianMixture(3, random_state=0), X, sample_weight=weight)
    order = rng.permutation(1200)
    model = GaussianMixture(3, random_state=0)
    assert not stream(model, X[order], sample_weight=weight[order])
    # rows without weight are not there: what is left is one group
    mixed = rng.permutation(numbers()[:400])
    X = np.concatenate([mixed, np.full((400, 3), 50.0)])[
        np.arange(800) % 2 * 400 + np.arange(800) // 2
    ]
    weight = (np.arange(800) % 2 == 0) * 1.0
    X[:200][weight[:200] == 0] = -50.0
    assert not stream(GaussianMixture(1), X, sample_weight=weight)


def test_the_message_is_true_and_what_it_says_helps():
    X = pd.DataFrame(numbers(), columns=["a", "b", "c"])
    model = GaussianMixture(3, random_state=0)
    said = stream(model, X)[0]
    assert "column 'a'" in said or "column 'b'" in said
    assert adjusted_rand_score(GROUP, model.predict(X)) < 0.9
    assert adjusted_rand_score(GROUP, GaussianMixture(3, random_state=0).fit_predict(X)) > 0.95
    shuffled = GaussianMixture(3, random_state=0)
    assert not stream(shuffled, X.sample(frac=1, random_state=0))
    assert adjusted_rand_score(GROUP, shuffled.predict(X)) > 0.95


def test_what_was_seen_survives_a_file(tmp_path):
    X = numbers()
    whole, cut = (GaussianMixture(3, random_state=0) for _ in "ab")
    assert not stream(cut, X[:400])
    cut.save(tmp_path / "cut.mixfold")
    again = load(tmp_path / "cut.mixfold")
    assert stream(again, X, start=400) == stream(whole, X) != []
    again.save(tmp_path / "told.mixfold")
    assert not stream(load(tmp_path / "told.mixfold"), X, start=400)  # once is enough


def test_a_new_stream_begins_anew():
    X = numbers()
    model = GaussianMixture(3, random_state=0)
    assert stream(model, X[:400]) == []
    model.fit(X)
    assert stream(model, X[800:]) == []  # these rows are all it has seen
    assert "_order" not in GaussianMixture(3, random_state=0).fit(X)._state()


def test_sums_that_need_no_order_are_not_watched():
    assert not stream(FactorAnalysis(1), numbers())


@pytest.mark.parametrize("batch_size", [50, 300])
def test_the_memoised_schedule_of_a_fit_does_not_depend_on_the_order(batch_size):
    X = numbers()
    model = BayesianGaussianMixture(3, batch_size=batch_size, max_iter=500, random_state=0)
    order = np.random.default_rng(0).permutation(len(X))
    bound = model.fit(X).lower_bound_
    assert adjusted_rand_score(GROUP, model.predict(X)) > 0.95
    np.testing.assert_allclose(model.fit(X[order]).lower_bound_, bound, rtol=1e-3)
