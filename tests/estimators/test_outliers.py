"""One row far away from all others leaves the others their groups, and is told of."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mixfold import DegenerateWarning, GaussianMixture, MixtureSearch
from mixfold.families import GAUSSIAN
from mixfold.math.frame import frame_of

GROUP = np.repeat([0, 1, 2], 100)


def table(outlier=(1e6, 1e6)):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + np.array([[0, 0], [8, 0], [0, 8]])[GROUP]
    return np.vstack([X, [outlier]])


@pytest.mark.parametrize("kind", GAUSSIAN)
@pytest.mark.parametrize("outlier", [(1e6, 1e6), (-1e6, 3.0)])
def test_the_outlier_is_alone_and_the_others_keep_their_groups(kind, outlier):
    X = table(outlier)
    with pytest.warns(DegenerateWarning, match=r"a single row .* remove that row .* or add"):
        model = GaussianMixture(4, covariance_type=kind, random_state=0).fit(X)
    labels = model.predict(X)
    assert (labels == labels[-1]).sum() == 1
    assert adjusted_rand_score(GROUP, labels[:-1]) > 0.95
    # what the message says helps: with three, the outlier has one of them, which is told, too
    with pytest.warns(DegenerateWarning, match="a single row"):
        GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    without = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X[:-1])
    assert adjusted_rand_score(GROUP, without.predict(X[:-1])) > 0.95


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
def test_units_order_and_repetition_do_not_matter():
    X = table()
    model = GaussianMixture(4, random_state=0).fit(X)
    order = np.random.default_rng(1).permutation(len(X))
    scaled = GaussianMixture(4, random_state=0).fit(X[order] * [1000, 0.5])
    np.testing.assert_allclose(
        scaled.lower_bound_, model.lower_bound_ - np.log(500), rtol=1e-6, atol=1e-6
    )
    assert adjusted_rand_score(scaled.predict(X * [1000, 0.5]), model.predict(X)) > 0.99
    twice = GaussianMixture(4, random_state=0).fit(np.vstack([X, X]))
    weighed = GaussianMixture(4, random_state=0).fit(X, sample_weight=np.full(len(X), 2.0))
    np.testing.assert_allclose(twice.lower_bound_, weighed.lower_bound_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
def test_a_search_takes_the_outlier_for_a_group_of_its_own_and_says_so():
    search = MixtureSearch(GaussianMixture(), n_components=(2, 3, 4, 5), random_state=0)
    search.fit(table())
    assert search.best_params_ == {"n_components": 4}
    assert any("single row" in note for note in search.notes_)


def test_frames_are_robust_only_where_a_few_rows_are_all_of_the_spread():
    rng = np.random.default_rng(2)
    tame = np.column_stack(
        [rng.normal(size=2000), rng.lognormal(0, 1.5, 2000), rng.standard_t(3, 2000)]
    )
    weight = rng.uniform(0.5, 2, 2000)
    frame = frame_of(tame, weight, robust=True)
    w = weight / weight.sum()
    np.testing.assert_allclose(frame.origin, w @ tame, rtol=1e-12)
    np.testing.assert_allclose(frame.scale, np.sqrt(w @ (tame - w @ tame) ** 2), rtol=1e-12)
    wild = tame.copy()
    wild[7] = 1e9
    robust = frame_of(wild, weight, robust=True)
    assert (np.abs(robust.scale / frame.scale) < 3).all()
    # weights are repetitions
    counts = rng.integers(1, 4, 2000)
    one, other = (
        frame_of(wild, counts.astype(float), robust=True),
        frame_of(wild.repeat(counts, 0), np.ones(counts.sum()), robust=True),
    )
    np.testing.assert_allclose(one.scale, other.scale, rtol=1e-12)
    # a column of which most entries are the same has no middle to be measured
    flat = np.zeros((1000, 1))
    flat[0] = 1e6
    np.testing.assert_allclose(
        frame_of(flat, np.ones(1000), robust=True).scale, flat.std(), rtol=1e-12
    )
