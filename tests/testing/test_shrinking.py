"""A broken law prints the smallest table that breaks it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixfold.families import DiagonalGaussian
from mixfold.models.mixtures.mixture import Mixture
from mixfold.testing import Case, laws
from mixfold.testing.compare import require
from mixfold.testing.shrinking import shrink, shrinks
from mixfold.testing.tables import clustered_table

MODEL: Any = Mixture(2, DiagonalGaussian())


@shrinks
def no_two_large_entries(case: Case, limit: float = 5.0) -> None:
    """A law that two entries of one column break together."""
    X = case.X.toarray() if sparse.issparse(case.X) else case.X
    large = (limit < X).sum(axis=0)
    require((large < 2).all(), "no two", f"{large.max()} entries above {limit}")


def broken(case: Case, *args: Any) -> AssertionError:
    with pytest.raises(AssertionError) as error:
        no_two_large_entries(case, *args)
    return error.value


def test_rows_columns_weights_labels_and_digits_go() -> None:
    X = clustered_table(90, 4, 3, seed=1)
    X[[11, 70], 2] = 91.2345
    case = Case(MODEL, X, np.ones(90), np.full(90, -1))
    error = broken(case, 50.0)
    found = error.case  # type: ignore[attr-defined]
    np.testing.assert_array_equal(found.X, [[91.0], [91.0]])
    assert found.weight is None and found.y is None
    text = str(error)
    assert text.startswith("law 'no two': 2 entries above 50.0\n")
    assert "smallest table found that breaks it (2 x 1, seed 0" in text
    namespace: dict[str, Any] = {"np": np}
    exec(text[text.index("X = ") :], namespace)  # the last assignment of the message
    np.testing.assert_array_equal(namespace["X"], found.X)


def test_what_is_needed_is_kept() -> None:
    """Weights that break a law stay, and so do missing entries and sparse rows."""

    @shrinks
    def no_heavy_hole(case: Case) -> None:
        weight = np.ones(len(case.X)) if case.weight is None else case.weight
        heavy = np.isnan(case.X).any(axis=1) & (weight == 2)
        require(not heavy.any(), "no heavy hole", "there is one")

    X = clustered_table(40, 3, 2, seed=1)
    X[7, 1] = np.nan
    weight = np.ones(40)
    weight[7] = 2
    with pytest.raises(AssertionError) as error:
        no_heavy_hole(Case(MODEL, X, weight))
    assert error.value.case.X.shape == (1, 1)  # type: ignore[attr-defined]
    assert "X = np.array([[np.nan]])" in str(error.value)
    assert "weight = np.array([2.])" in str(error.value)
    sparse_rows = sparse.csr_array(np.where(np.arange(60).reshape(20, 3) > 50, 7.0, 0.0))
    assert "# given as CSR" in str(broken(Case(MODEL, sparse_rows)))


def test_another_law_or_another_error_is_not_followed() -> None:
    def law(case: Case) -> None:
        if len(case.X) < 5:
            raise ValueError("too few rows")
        require(len(case.X) != 7, "seven", "seven rows")
        require(False, "always", f"{len(case.X)} rows")

    case = Case(MODEL, np.arange(20.0).reshape(10, 2))
    found, message = shrink(law, case, AssertionError("law 'always': 10 rows"))
    assert len(found.X) >= 5 and len(found.X) != 7 and "always" in message


def test_time_is_bounded() -> None:
    case = Case(MODEL, clustered_table(50, 2, 2, seed=1))
    found, _ = shrink(lambda case: require(False, "x", ""), case, AssertionError("law 'x': "), 0.0)
    assert found is case


def test_a_real_law_names_a_table_to_paste() -> None:
    class BlockCounter(Mixture):
        """Adds something per block instead of per row."""

        def expect(self, reading: Any, block: Any, rng: Any) -> Any:
            stats = super().expect(reading, block, rng)
            return replace(stats, log_likelihood=stats.log_likelihood + 1e-3)

    case = Case(BlockCounter(2, DiagonalGaussian()), clustered_table(60, 3, 2, seed=1))
    with pytest.raises(AssertionError, match="law 'block invariance'") as error:
        laws.check_model(case)
    smallest = error.value.case  # type: ignore[attr-defined]
    assert smallest.X.size <= 6
    with pytest.raises(AssertionError, match="law 'block invariance'"):
        laws.block_invariance(smallest)
