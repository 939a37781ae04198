"""Merging components: against brute force, and the laws of the tree."""

import numpy as np
import pytest

from mixfold.math.merging import (
    KEPT,
    component_overlaps,
    join_shares,
    keep_shares,
    merge_components,
)


def log_shares(seed, n=200, K=7, spread=3.0):
    """Log-responsibilities of random Gaussians that overlap."""
    rng = np.random.default_rng(seed)
    means = spread * rng.normal(size=(K, 2))
    X = rng.normal(size=(n, 2)) + means[rng.integers(0, K, n)]
    logs = -0.5 * ((X[:, None] - means) ** 2).sum(axis=2) * rng.uniform(0.3, 2.0, K)
    return logs - np.logaddexp.reduce(logs, axis=1)[:, None]


def brute_force(shares, weight):
    """Every merge from scratch: sets of components and levels."""
    clusters = {frozenset([k]): shares[:, k] for k in range(shares.shape[1])}
    heavy = {k: weight @ shares[:, k] for k in range(shares.shape[1])}
    merges = []
    while len(clusters) > 1:
        sets = sorted(clusters, key=lambda c: -max(heavy[k] for k in c))
        R = np.stack([clusters[c] for c in sets], axis=1)
        labels = R.argmax(axis=1)
        mass = weight @ R
        q = np.array([[(weight * R[:, j] * (labels == i)).sum() / mass[j]
                       for j in range(len(sets))] for i in range(len(sets))])  # fmt: skip
        level = np.maximum(q, q.T)
        np.fill_diagonal(level, -1)
        i, j = np.unravel_index(np.argmax(level), level.shape)
        merges.append((sets[i] | sets[j], level[i, j]))
        clusters[sets[i] | sets[j]] = clusters.pop(sets[i]) + clusters.pop(sets[j])
    return merges


def sets_of(tree):
    """The components of each merge."""
    K = tree.n_components
    found = {k: frozenset([k]) for k in range(K)}
    for t in range(K - 1):
        found[K + t] = found[tree.left[t]] | found[tree.right[t]]
    return [found[K + t] for t in range(K - 1)]


@pytest.mark.parametrize("seed", range(12))
def test_tree_is_that_of_recomputing_everything_at_every_merge(seed):
    logs = log_shares(seed, K=3 + seed)
    weight = np.random.default_rng(seed).integers(1, 4, len(logs)).astype(float)
    tree = merge_components(keep_shares(logs), weight)
    expected = brute_force(np.exp(logs), weight)
    assert sets_of(tree) == [merge[0] for merge in expected]
    levels = np.minimum.accumulate([merge[1] for merge in expected])
    np.testing.assert_allclose(tree.level, levels, atol=1e-12)
    assert (np.diff(tree.level) <= 0).all()
    assert tree.size.tolist() == [len(s) for s in sets_of(tree)]


def test_first_level_by_hand():
    """Two components of four rows: one row of the second is taken for the first."""
    shares = np.array([[1.0, 0.0], [0.7, 0.3], [0.2, 0.8], [0.0, 1.0]])
    with np.errstate(divide="ignore"):
        tree = merge_components(keep_shares(np.log(shares)))
    # q(0 | 1) = 0.3 / 2.1, q(1 | 0) = 0.2 / 1.9
    np.testing.assert_allclose(tree.level, [0.3 / 2.1])
    np.testing.assert_allclose(tree.mass, [1.9, 2.1])


@pytest.mark.parametrize("seed", range(5))
def test_order_of_components_and_rows_does_not_matter(seed):
    logs = log_shares(seed, K=9)
    rng = np.random.default_rng(seed)
    columns, rows = rng.permutation(9), rng.permutation(len(logs))
    one = merge_components(keep_shares(logs))
    other = merge_components(keep_shares(logs[rows][:, columns]))
    assert sets_of(one) == [frozenset(columns[list(s)]) for s in sets_of(other)]
    np.testing.assert_allclose(one.level, other.level, rtol=1e-9)
    for k in range(1, 10):
        np.testing.assert_array_equal(one.cut(k)[columns], other.cut(k))


def test_components_of_equal_content_do_not_bring_in_their_numbers():
    """Two pairs that mirror each other, and a fifth: all levels of a pair are tied."""
    rng = np.random.default_rng(3)
    half = np.exp(log_shares(3, n=60, K=2))
    shares = np.zeros((130, 5))
    shares[:60, :2] = shares[60:120, 2:4] = half
    shares[120:, 4] = 1.0
    with np.errstate(divide="ignore"):
        logs = np.log(shares)
    sizes = set()
    for _ in range(6):
        columns = rng.permutation(5)
        tree = merge_components(keep_shares(logs[:, columns]))
        found = [frozenset(columns[list(s)].tolist()) for s in sets_of(tree)]
        assert {found[0], found[1]} == {frozenset([0, 1]), frozenset([2, 3])}
        sizes.add(tuple(np.round(tree.level, 9)))
    assert len(sizes) == 1


def test_weight_two_is_repetition_and_weight_zero_absence():
    logs = log_shares(1)
    weight = np.random.default_rng(0).integers(0, 3, len(logs))
    one = merge_components(keep_shares(logs), weight.astype(float))
    other = merge_components(keep_shares(np.repeat(logs, weight, axis=0)))
    assert sets_of(one) == sets_of(other)
    np.testing.assert_allclose(one.level, other.level, rtol=1e-9)
    np.testing.assert_allclose(one.mass, other.mass)


def test_parts_of_rows_are_rows():
    logs = log_shares(2)
    whole = keep_shares(logs)
    parts = join_shares([keep_shares(logs[:50]), keep_shares(logs[50:51]), keep_shares(logs[51:])])
    for name in ("starts", "components", "logs"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))


def test_clusters_whose_overlap_underflows_are_merged_with_the_nearer_one():
    places = np.array([0.0, 100.0, 170.0, 400.0])
    X = np.concatenate([places + e for e in (-0.3, 0.1, 0.4)])
    logs = -0.5 * (X[:, None] - places) ** 2
    logs -= np.logaddexp.reduce(logs, axis=1)[:, None]
    assert np.exp(logs[logs < -1]).max() == 0
    tree = merge_components(keep_shares(logs))
    assert sets_of(tree)[:2] == [frozenset([1, 2]), frozenset([0, 1, 2])]
    np.testing.assert_array_equal(tree.level, 0)


def test_components_without_rows_are_merged_first():
    logs = log_shares(0, K=4)
    logs = np.insert(logs, 2, -np.inf, axis=1)
    tree = merge_components(keep_shares(logs))
    assert tree.n_used == 4
    assert 2 in sets_of(tree)[0] and tree.level[0] == 1
    assert len(np.unique(tree.cut(4))) == 4


def test_a_component_whose_shares_underflow_joins_what_it_overlaps():
    logs = np.full((6, 3), -np.inf)
    logs[:3, 0] = logs[3:5, 1] = logs[5, 1] = 0.0
    logs[:3, 2], logs[3:, 2] = -2000.0, -900.0
    tree = merge_components(keep_shares(logs))
    assert sets_of(tree)[0] == frozenset([1, 2])


def test_all_rows_equal_and_components_equal():
    tree = merge_components(keep_shares(np.full((5, 4), np.log(0.25))))
    assert tree.level[0] == 1
    assert tree.cut(1).tolist() == [0] * 4
    assert sorted(tree.cut(4).tolist()) == [0, 1, 2, 3]


def test_one_component_has_no_merges():
    tree = merge_components(keep_shares(np.zeros((3, 1))))
    assert tree.linkage().shape == (0, 4)
    assert tree.cut(1).tolist() == [0]


def test_groups_are_merged_before_others():
    logs = log_shares(4, K=6, spread=1.0)
    groups = np.array([0, 1, 0, 1, 2, 2])
    tree = merge_components(keep_shares(logs), groups=groups)
    labels = tree.cut(3)
    assert len(np.unique(labels)) == 3
    for group in range(3):
        assert len(np.unique(labels[groups == group])) == 1


def test_parts_of_a_group_that_share_nothing_are_no_cluster_if_groups_need_not_be_whole():
    # 0 and 1 share some rows, as 2 and 3 do; between them only the group of 1 and 2, by a hair
    near, far = [0.6, 0.4, 0.0, 0.0], [0.0, 1 - 1e-9, 1e-9, 0.0]
    R = np.array([row for half in (near, far) for row in (half, half[::-1])])
    R = np.vstack([R, [0.4, 0.6, 0.0, 0.0], [0.0, 0.0, 0.6, 0.4]])
    with np.errstate(divide="ignore"):
        shares = keep_shares(np.log(R))
    groups = np.array([0, 1, 1, 2])
    whole = merge_components(shares, groups=groups)
    assert whole.cut(3)[1] == whole.cut(3)[2]
    parts = merge_components(shares, groups=groups, whole=False)
    assert parts.cut(2).tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    assert parts.cut(1).tolist() == [0] * 4
    # what shares more is merged first as before
    near = np.array([0, 0, 1, 1])
    assert merge_components(shares, groups=near, whole=False).cut(2).tolist() == [0, 0, 1, 1]


def test_clusters_stand_in_the_order_of_falling_mass():
    tree = merge_components(keep_shares(log_shares(5, K=8)))
    for k in range(1, 9):
        mass = np.bincount(tree.cut(k), tree.mass)
        assert (np.diff(mass) <= 1e-9).all() and len(mass) == k


def test_count_above_is_the_number_left_at_a_threshold():
    tree = merge_components(keep_shares(log_shares(6, K=8)))
    for t in range(7):
        assert tree.count_above(tree.level[t]) == 8 - np.sum(tree.level > tree.level[t])
    assert tree.count_above(1.0) == 8


def test_many_components_keep_what_overlaps():
    """A row keeps its 32 largest shares, and further ones above 1e-6."""
    rng = np.random.default_rng(0)
    means = np.sort(rng.uniform(0, 400, 300))
    X = rng.normal(size=900) + np.repeat(means, 3)
    logs = -0.5 * (X[:, None] - means) ** 2
    logs -= np.logaddexp.reduce(logs, axis=1)[:, None]
    kept = keep_shares(logs)
    assert (np.diff(kept.starts) == KEPT).all()
    tree = merge_components(kept)
    expected = brute_force_levels(np.exp(logs))
    np.testing.assert_allclose(tree.level[: len(expected)], expected, rtol=1e-6)


def brute_force_levels(shares, n=5):
    """Levels of the first merges."""
    out = [level for _, level in brute_force(shares[:, :], np.ones(len(shares)))[:n]] if (
        shares.shape[1] < 50) else first_levels(shares, n)  # fmt: skip
    return np.minimum.accumulate(out)


def first_levels(shares, n):
    R, levels = shares.copy(), []
    for _ in range(n):
        labels = np.eye(R.shape[1])[R.argmax(axis=1)]
        q = labels.T @ R / R.sum(axis=0)
        level = np.maximum(q, q.T)
        np.fill_diagonal(level, -1)
        i, j = np.unravel_index(np.argmax(level), level.shape)
        levels.append(level[i, j])
        R[:, i] += R[:, j]
        R = np.delete(R, j, axis=1)
    return levels


def test_overlaps_of_components_are_the_first_levels():
    logs = log_shares(8)
    overlap = component_overlaps(keep_shares(logs))
    R = np.exp(logs)
    labels = np.eye(R.shape[1])[R.argmax(axis=1)]
    q = labels.T @ R / R.sum(axis=0)
    for i, j, value in overlap:
        assert i < j
        assert value == pytest.approx(max(q[int(i), int(j)], q[int(j), int(i)]))
    tree = merge_components(keep_shares(logs))
    assert overlap[:, 2].max() == pytest.approx(tree.level[0])
