"""Random numbers keyed by (seed, stream, iteration, row, column), whatever the blocks."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mixfold.contracts import Array

_WORD = 2**64
_LANES = 4  # 64-bit words that one Philox counter gives
# Multiplier of a 52-bit integer plus one half: the result is exact and never 0 or 1.
_UNIT = 2.0**-52


@dataclass(frozen=True, slots=True)
class RowKeys:
    """Counter-based random numbers: a number is a function of its address alone.

    The address is ``(seed, stream, iteration, row, column)``. Whoever asks for rows 10:20, in
    one piece or in several, in whichever order or process, gets the same bits.

    Parameters
    ----------
    seed : int
        From 0 to 2**128 - 1; see :func:`seed_from`.
    iteration : int
        Advances with the fit, so that every pass draws anew.
    stream : int
        Separates uses within one iteration (the pilot, a sampler, an imputation).

    Examples
    --------
    >>> from mixfold.engine.random import RowKeys
    >>> keys = RowKeys(seed=7)
    >>> whole = keys.uniform(slice(0, 10), per_row=2)
    >>> bool((keys.uniform(slice(6, 10))[:, 0] == whole[6:, 0]).all())
    True
    """

    seed: int
    iteration: int = 0
    stream: int = 0

    def __post_init__(self) -> None:
        limits = {"seed": _WORD**2, "iteration": _WORD, "stream": _WORD}
        for name, limit in limits.items():
            value = getattr(self, name)
            if not isinstance(value, Integral):
                raise TypeError(
                    f"{name} must be an integer, got {value!r}. Use seed_from(random_state) to "
                    "turn a generator into a seed."
                )
            if not 0 <= int(value) < limit:
                raise ValueError(
                    f"{name} must lie in [0, 2**{limit.bit_length() - 1}), got {value}"
                )
            object.__setattr__(self, name, int(value))

    def uniform(self, rows: slice, per_row: int = 1) -> Array:
        """Uniforms in the open interval (0, 1) of shape (n_rows, per_row).

        Column ``c`` does not depend on ``per_row``.
        """
        raw = self._raw(rows, per_row) >> np.uint64(12)
        return (raw + 0.5) * _UNIT

    def normal(self, rows: slice, per_row: int = 1) -> Array:
        """Standard normals of shape (n_rows, per_row), by the inverse distribution function."""
        return ndtri(self.uniform(rows, per_row))  # type: ignore[no-any-return]

    def _raw(self, rows: slice, per_row: int) -> NDArray[np.uint64]:
        """The 64-bit words of the rows: four neighbouring rows share a counter."""
        first, last = _bounds(rows)
        counter = first // _LANES
        skip = first - counter * _LANES
        n = last - first
        out = np.empty((n, per_row), dtype=np.uint64)
        bits = self._philox(counter)
        used = -(-(skip + n) // _LANES)
        for column in range(per_row):
            out[:, column] = bits.random_raw(used * _LANES)[skip : skip + n]
            # The column is the second word of the counter.
            bits.advance(_WORD - used)
        return out

    def _philox(self, counter: int) -> np.random.Philox:
        key = np.array([self.seed % _WORD, self.seed // _WORD], dtype=np.uint64)
        words = np.array([counter, 0, self.iteration, self.stream], dtype=np.uint64)
        return np.random.Philox(key=key, counter=words)


def _bounds(rows: slice) -> tuple[int, int]:
    """First and last row of a slice that says both."""
    if rows.start is None or rows.stop is None or rows.step not in (None, 1):
        raise ValueError(f"rows must be a slice with a start, a stop and step 1, got {rows}")
    first, last = int(rows.start), int(rows.stop)
    if first < 0 or last < first:
        raise ValueError(f"rows must satisfy 0 <= start <= stop, got {rows}")
    return first, last


def seed_from(random_state: Any = None) -> int:
    """A seed for :class:`RowKeys` out of whatever scikit-learn takes as ``random_state``.

    Parameters
    ----------
    random_state : None, int, numpy RandomState or Generator
        An integer is its own seed. A generator gives a new seed, and moves on, at every call.
        None draws from numpy's global state, as scikit-learn does, so that
        ``numpy.random.seed`` still makes a script repeatable.

    Returns
    -------
    int

    Examples
    --------
    >>> from mixfold.engine.random import seed_from
    >>> seed_from(3)
    3
    """
    if isinstance(random_state, Integral):
        if random_state < 0:
            raise ValueError(f"random_state must not be negative, got {random_state}")
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if random_state is None or random_state is np.random:
        return int(np.random.randint(0, 2**63 - 1, dtype=np.int64))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**63 - 1, dtype=np.int64))
    raise TypeError(
        "random_state must be None, an integer, a numpy.random.RandomState or a "
        f"numpy.random.Generator, got {random_state!r}"
    )


class LateGenerator:
    """``numpy.random.default_rng`` of some numbers, made when it is asked for something: hardly any
    M step draws, and to make one takes as long as a step on a few rows."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = numbers
        self._made: np.random.Generator | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copies and pickles make their own
            raise AttributeError(name)
        if self._made is None:
            self._made = np.random.default_rng(list(self._numbers))
        return getattr(self._made, name)
