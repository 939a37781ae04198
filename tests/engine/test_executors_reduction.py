"""The tree of additions: one association for every way to split the leaves."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from mixfold.contracts import Stats
from mixfold.engine.executors.reduction import TreeSum, tree_sum


@dataclass(frozen=True)
class Word(Stats):
    """Addition that remembers its brackets: not associative, not commutative."""

    text: str

    def __add__(self, other: Word) -> Word:
        return Word(f"({self.text}{other.text})")


def words(first: int, last: int) -> list[Word]:
    return [Word(chr(ord("a") + i)) for i in range(first, last)]


@pytest.mark.parametrize(
    ("n", "brackets"),
    [
        (1, "a"),
        (2, "(ab)"),
        (3, "((ab)c)"),
        (4, "((ab)(cd))"),
        (5, "(((ab)(cd))e)"),
        (7, "(((ab)(cd))((ef)g))"),
        (8, "(((ab)(cd))((ef)(gh)))"),
    ],
)
def test_brackets(n: int, brackets: str) -> None:
    assert tree_sum(words(0, n)).text == brackets


@pytest.mark.parametrize("n", [1, 2, 3, 6, 11, 16, 23])
def test_any_split_into_ranges_gives_the_same_brackets(n: int) -> None:
    wanted = tree_sum(words(0, n)).text
    rng = np.random.default_rng(n)
    for _ in range(50):
        cuts = sorted({0, n, *rng.integers(0, n + 1, size=rng.integers(0, 6)).tolist()})
        total: TreeSum[Word] = TreeSum()
        for first, last in pairwise(cuts):
            part: TreeSum[Word] = TreeSum(first)
            for word in words(first, last):
                part.add(word)
            total.extend(pickle.loads(pickle.dumps(part)))
        assert total.result().text == wanted


def test_ranges_may_be_joined_in_any_grouping() -> None:
    leaves = words(0, 13)

    def part(first: int, last: int) -> TreeSum[Word]:
        result: TreeSum[Word] = TreeSum(first)
        for word in leaves[first:last]:
            result.add(word)
        return result

    middle = part(3, 6)
    middle.extend(part(6, 11))
    total = part(0, 3)
    total.extend(middle)
    total.extend(part(11, 13))
    assert total.result().text == tree_sum(leaves).text


def test_memory_is_logarithmic() -> None:
    total: TreeSum[Stats] = TreeSum()
    worst = 0
    for _ in range(5000):
        total.add(Stats())
        worst = max(worst, len(total._nodes))
    assert worst <= 13


def test_no_leaves_and_missing_leaves_are_errors() -> None:
    with pytest.raises(ValueError, match="no blocks"):
        tree_sum([])
    late: TreeSum[Word] = TreeSum(2)
    late.add(Word("c"))
    with pytest.raises(ValueError, match="leaves 0 to 1 are missing"):
        late.result()
    with pytest.raises(ValueError, match="ends at 0 cannot be followed by one that begins at 2"):
        TreeSum[Word]().extend(late)


def test_rounding_grows_slowly() -> None:
    """A million small numbers: the running sum in float32 is wrong in the third digit."""

    @dataclass(frozen=True)
    class Total(Stats):
        value: np.float32

    leaf = Total(np.float32(0.1))
    total = tree_sum(leaf for _ in range(100_000))
    assert abs(float(total.value) - 10_000.0) < 0.01
