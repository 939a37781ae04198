"""The sign of an axis."""

from __future__ import annotations

import numpy as np

from mixfold.math.signs import fix_signs, signs


def test_the_largest_entry_of_each_axis_is_positive(rng: np.random.Generator) -> None:
    V = rng.normal(size=(6, 4))
    turned = fix_signs(V)
    np.testing.assert_array_equal(np.abs(turned), np.abs(V))
    assert np.all(turned[np.abs(V).argmax(axis=0), range(4)] > 0)
    np.testing.assert_array_equal(fix_signs(-V), turned)
    assert fix_signs(np.empty((6, 0))).shape == (6, 0)


def test_stacks_and_empty_columns() -> None:
    stack = np.random.default_rng(0).normal(size=(3, 4, 2))
    for one, all_of_it in zip(stack, fix_signs(stack), strict=True):
        np.testing.assert_array_equal(fix_signs(one), all_of_it)
    assert signs(np.empty((0, 2))).shape == (1, 2) and signs(np.empty((5, 0))).shape == (1, 0)
