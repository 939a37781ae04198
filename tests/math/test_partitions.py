"""Partitions against brute force over all of them, and laws of the summaries of draws."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mixfold.math import partitions
from mixfold.math.binder import refine_partition as binder_moves
from mixfold.math.partitions import canonical, point_partition, relabel_draws, similarity


def all_partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Every partition of n rows once, with labels in the order of appearance."""
    if n == 0:
        yield ()
        return
    for head in all_partitions(n - 1):
        for k in range(max(head, default=-1) + 2):
            yield (*head, k)


SEVEN = list(all_partitions(7))


def together(labels: np.ndarray) -> np.ndarray:
    """Share of the draws in which two rows are together, pair by pair."""
    n = labels.shape[1]
    return np.array([[np.mean([z[i] == z[j] for z in labels]) for j in range(n)] for i in range(n)])


def binder(partition: np.ndarray, P: np.ndarray, w: np.ndarray | None = None) -> float:
    w = np.ones(len(P)) if w is None else w
    return sum(
        w[i] * w[j] * ((partition[i] == partition[j]) - P[i, j]) ** 2
        for i, j in combinations(range(len(P)), 2)
    )


def noisy(
    rng: np.random.Generator, truth: np.ndarray, n_draws: int, error: float, clusters: int
) -> np.ndarray:
    """Draws of a partition with wrong labels here and there, each with its own names."""
    draws = np.where(
        rng.random((n_draws, truth.size)) < error,
        rng.integers(0, clusters, (n_draws, truth.size)),
        truth,
    )
    return np.array([rng.permutation(clusters + 3)[z] for z in draws])


# ------------------------------------------------------------------ names


def test_canonical_labels_are_equal_exactly_for_equal_partitions(
    rng: np.random.Generator,
) -> None:
    assert len(SEVEN) == len(set(SEVEN)) == 877
    np.testing.assert_array_equal(canonical(np.array(SEVEN)), SEVEN)
    renamed = np.array([rng.permutation(50)[list(z)] for z in SEVEN])
    np.testing.assert_array_equal(canonical(renamed), SEVEN)
    assert canonical(np.array(["b", "a", "b"])).tolist() == [0, 1, 0]
    assert canonical(np.empty(0, int)).shape == (0,)
    with pytest.raises(ValueError, match="labels must have the shape"):
        canonical(np.zeros((2, 2, 2)))


def test_relabelling_agrees_with_the_best_of_all_permutations(rng: np.random.Generator) -> None:
    K, pivot = 4, rng.integers(0, 4, 30)
    labels = rng.integers(0, K, (12, 30))
    for z, found in zip(labels, relabel_draws(labels, pivot), strict=True):
        best = max(np.sum(np.array(p)[z] == pivot) for p in permutations(range(K)))
        assert np.sum(found == pivot) == best
        np.testing.assert_array_equal(canonical(found), canonical(z))


def test_relabelling_undoes_a_permutation_and_orders_parameters(rng: np.random.Generator) -> None:
    pivot = np.repeat(np.arange(5), 8)
    shuffles = np.array([rng.permutation(5) for _ in range(6)])
    labels = shuffles[:, pivot]
    np.testing.assert_array_equal(relabel_draws(labels, pivot), np.tile(pivot, (6, 1)))
    names = partitions.permutations(labels, pivot)
    means = np.arange(5) * 10.0  # of the pivot's clusters
    for shuffle, name in zip(shuffles, names, strict=True):
        own, back = np.empty(5), np.empty(5)
        own[shuffle] = means  # as the draw numbers them
        back[name] = own
        np.testing.assert_array_equal(back, means)


def test_clusters_beyond_those_of_the_pivot_get_names_that_it_does_not_use() -> None:
    pivot = np.array([0, 0, 0, 1, 1, 1])
    labels = np.array([[2, 2, 0, 1, 1, 1], [5, 5, 5, 5, 5, 5]])
    found = relabel_draws(labels, pivot)
    assert found[0].tolist() == [0, 0, 2, 1, 1, 1]
    assert len(set(found[1].tolist())) == 1 and found[1, 0] in (0, 1)
    # clusters keep their names where it makes no difference
    assert partitions.permutations(np.array([[1, 0]]), np.array([1, 1])).tolist() == [[0, 1]]
    assert partitions.permutations(labels[:1], pivot, 6).tolist() == [[2, 1, 0, 3, 4, 5]]


@pytest.mark.parametrize(
    ("labels", "pivot", "n_labels", "error", "message"),
    [
        ([[0, 1]], [0, 1, 1], None, ValueError, "pivot must be one label for each of the 2 rows"),
        ([[0.0, 1.0]], [0, 1], None, TypeError, "labels must be integers"),
        ([[0, 1]], [0, -1], None, ValueError, "pivot must count from 0; got -1"),
        ([[0, 3]], [0, 1], 3, ValueError, "n_labels must exceed every label; got 3"),
        ([0, 3], [0, 1], None, ValueError, r"Give a single draw as labels\[None\]"),
    ],
)
def test_relabelling_says_what_is_wrong(
    labels: list[object], pivot: list[int], n_labels: int, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        relabel_draws(np.array(labels), np.array(pivot), n_labels)


# ------------------------------------------------------------------ similarity


@pytest.mark.parametrize("highest", [3, 300, 70_000])
def test_similarity_is_the_share_of_draws(rng: np.random.Generator, highest: int) -> None:
    labels = rng.integers(0, 3, (37, 11)) * (highest // 3)
    found = similarity(labels)
    np.testing.assert_allclose(found, together(labels), atol=1e-7)
    assert found.dtype == np.float32


def test_similarity_of_more_clusters_than_a_byte_counts(rng: np.random.Generator) -> None:
    """Label 256 must not be taken for 0."""
    labels = np.array([rng.permutation(300) // 9, np.arange(300), rng.permutation(300) // 2])
    np.testing.assert_allclose(similarity(labels), together(labels))


# ------------------------------------------------------------------ point estimates


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("error", [0.1, 0.4, 1.0])
def test_against_all_partitions_of_seven_rows(
    rng: np.random.Generator, error: float, weighted: bool
) -> None:
    optimal = 0
    for _ in range(12):
        truth = np.array(SEVEN[rng.integers(len(SEVEN))])
        labels = noisy(rng, truth, 25, error, 4)
        w = rng.integers(1, 5, 7) / 2 if weighted else None
        P = together(labels)
        losses = np.array([binder(z, P, w) for z in labels])
        drawn = point_partition(labels, w, refine=False)
        found = point_partition(labels, w)
        np.testing.assert_array_equal(drawn, canonical(drawn))
        assert drawn.tolist() in canonical(labels).tolist()
        assert binder(drawn, P, w) == pytest.approx(losses.min())
        assert binder(found, P, w) <= losses.min() + 1e-9
        assert binder(found, P, w) <= least_by_one_move(found, P, w) + 1e-9
        best = min(binder(z, P, w) for z in map(np.array, SEVEN))
        optimal += binder(found, P, w) <= best + 1e-9
    # moves of single rows may end beside the optimum where draws hardly agree at all
    assert optimal == 12 if error == 0.1 else optimal >= 9


def least_by_one_move(partition: np.ndarray, P: np.ndarray, w: np.ndarray | None) -> float:
    losses = []
    for i in range(len(partition)):
        for k in range(partition.max() + 2):
            moved = partition.copy()
            moved[i] = k
            losses.append(binder(moved, P, w))
    return min(losses)


def test_moves_improve_on_every_draw(rng: np.random.Generator) -> None:
    """Every draw has errors of its own; together they have none."""
    truth = np.repeat(np.arange(6), [60, 50, 40, 30, 15, 5])
    labels = noisy(rng, truth, 80, 0.2, 6)
    np.testing.assert_array_equal(point_partition(labels), truth)
    assert adjusted_rand_score(point_partition(labels, refine=False), truth) < 0.9


def test_new_clusters_are_found_even_if_many() -> None:
    """Each draw splits off one of six pairs too many, so none has them all."""
    pairs = np.repeat(np.arange(6), 2)
    labels = np.array([np.where(pairs == k, 9, pairs // (1 + (pairs == k))) for k in range(6)])
    one = np.zeros((1, 12), int)
    draws = np.concatenate([labels, np.tile(np.arange(12), (3, 1)), one])
    P = together(draws)
    found = point_partition(draws)
    assert binder(found, P) <= min(binder(z, P) for z in draws)
    start = binder_moves(np.arange(12, dtype=np.uint8)[:, None], one[0], np.ones(12))
    assert canonical(start).tolist() == list(range(12))  # from one cluster to twelve


def test_a_weight_is_a_number_of_copies(rng: np.random.Generator) -> None:
    truth = np.repeat([0, 1, 2], [9, 6, 5])
    labels = noisy(rng, truth, 15, 0.5, 3)
    w = rng.integers(1, 4, truth.size)
    copies = np.repeat(labels, w, axis=1)
    P = together(copies)
    weighted = np.repeat(point_partition(labels, w), w)
    assert binder(weighted, P) <= min(binder(z, P) for z in copies) + 1e-9
    drawn = point_partition(labels, w, refine=False)
    again = point_partition(copies, refine=False)
    np.testing.assert_array_equal(np.repeat(drawn, w), again)


def test_rows_of_weight_zero_have_no_say_but_a_place(rng: np.random.Generator) -> None:
    truth = np.tile([0, 1], 20)
    labels = noisy(rng, truth, 40, 0.2, 2)
    noise = rng.integers(0, 2, (40, 30))
    noise[:, 0] = labels[:, 1]  # a row that is always with row 1
    w = np.r_[np.ones(40), np.zeros(30)]
    found = point_partition(np.concatenate([labels, noise], axis=1), w)
    np.testing.assert_array_equal(canonical(found[:40]), point_partition(labels))
    assert found[40] == found[1]


def test_some_pairs_do_where_clusters_are_apart(rng: np.random.Generator) -> None:
    truth = rng.permutation(np.repeat(np.arange(4), [300, 200, 100, 20]))
    labels = noisy(rng, truth, 60, 0.15, 4)
    full = point_partition(labels)
    np.testing.assert_array_equal(full, canonical(truth))
    some = point_partition(labels, max_rows=60, rng=rng)
    np.testing.assert_array_equal(some, full)
    # the draw itself depends on the subset, but is a draw, and hardly worse
    drawn = point_partition(labels, refine=False, max_rows=60, rng=np.random.default_rng(1))
    again = point_partition(labels, refine=False, max_rows=60, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(drawn, again)
    assert drawn.tolist() in canonical(labels).tolist()


def test_many_rows_need_no_square_matrix(rng: np.random.Generator) -> None:
    truth = np.repeat(np.arange(5), 20_000)  # 10^10 pairs
    labels = noisy(rng, truth, 20, 0.04, 5)
    np.testing.assert_array_equal(point_partition(labels, max_rows=500), truth)


@pytest.mark.parametrize("n_draws", [1, 2])
def test_draws_that_agree_are_the_answer(n_draws: int) -> None:
    z = np.array([3, 3, 1, 0, 1, 1, 7])
    assert point_partition(np.tile(z, (n_draws, 1))).tolist() == [0, 0, 1, 2, 1, 1, 3]
    assert point_partition(z[None, :1]).tolist() == [0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weight": np.ones(3)}, "weight must be one for each of the 2 rows"),
        ({"weight": np.array([1, np.nan])}, "weight must be finite"),
        ({"weight": np.array([1, -1])}, "weight must be finite and not negative"),
        ({"max_rows": 1}, "max_rows must be at least 2"),
        ({"labels": np.zeros((0, 2))}, "labels must have the shape"),
    ],
)
def test_point_partition_says_what_is_wrong(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        point_partition(**({"labels": np.zeros((3, 2), int)} | settings))


# ------------------------------------------------------------------ sizes


def test_entropy_of_sizes(rng: np.random.Generator) -> None:
    counts = rng.integers(1, 50, (4, 6))
    p = counts / counts.sum(axis=1, keepdims=True)
    found = partitions.sizes_entropy(counts)
    np.testing.assert_allclose(found, -(p * np.log(p)).sum(axis=1))
    np.testing.assert_allclose(partitions.sizes_entropy(np.pad(counts, ((0, 0), (0, 3)))), found)
    assert partitions.sizes_entropy(np.zeros(3)) == 0
    with pytest.raises(ValueError, match="counts must not be negative or NaN"):
        partitions.sizes_entropy(np.array([1, -1]))
