"""The oracles of samplers find samplers that are wrong."""

from __future__ import annotations

import numpy as np
import pytest

from mixfold.testing.samplers import agree, canonical, features, law, same_means


def _law() -> dict[tuple[int, ...], float]:
    return law(3, 3, lambda labels: 0.4 * len(set(labels)), labelled=False)


def test_law_counts_partitions_or_labellings() -> None:
    assert len(_law()) == 5
    assert sum(_law().values()) == pytest.approx(1.0)
    same = law(3, 2, lambda labels: 0.0, labelled=True)
    assert same == {key: pytest.approx(0.25) for key in same}
    assert len(same) == 4  # no three blocks of two labels


def test_agree(rng: np.random.Generator) -> None:
    exact = _law()
    keys = list(exact)
    draws = [keys[i] for i in rng.choice(5, 3000, p=list(exact.values()))]
    agree(draws, exact)
    # other labels of the same partitions
    agree([tuple(7 - label for label in labels) for labels in draws], exact)
    with pytest.raises(AssertionError, match="chi-square"):
        agree([keys[i] for i in rng.integers(0, 5, 3000)], exact)
    with pytest.raises(AssertionError, match="probability zero"):
        agree([(0, 1, 2, 3)], exact)
    with pytest.raises(AssertionError, match="proves nothing"):
        agree([(0, 0)] * 50, {(0, 0): 0.5, (0, 1): 0.5})


def test_same_means(rng: np.random.Generator) -> None:
    steps = rng.normal(size=(3000, 2))
    chain = np.empty_like(steps)
    chain[0] = steps[0]
    for i in range(1, 3000):  # correlated, and of unit variance
        chain[i] = 0.6 * chain[i - 1] + 0.8 * steps[i]
    same_means(chain, rng.normal(size=(2000, 2)))
    with pytest.raises(AssertionError, match="standard errors"):
        same_means(chain + np.array([0.0, 0.4]), rng.normal(size=(2000, 2)))


def test_features_do_not_see_labels(rng: np.random.Generator) -> None:
    X, unit = rng.normal(size=(5, 2)), rng.normal(size=(9, 2))
    labels = [2, 2, 0, 1, 0]
    one = features(X, labels, 1.3, unit)
    assert one == features(X, canonical(labels), 1.3, unit)
    assert np.isfinite(one).all() and one[3] == 1.0
    assert features(X, [0, 1, 1, 1, 1], 1.3, unit)[3] == 0.0
