"""Fixtures that several rooms share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

# Before matplotlib is imported anywhere: tests have no screen.
os.environ["MPLBACKEND"] = "agg"
# Before scipy is imported anywhere: scikit-learn skips its array-API checks otherwise.
os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np
import pytest

_SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(20240607)


@pytest.fixture
def shared_data() -> Callable[[str], Path]:
    """Path of a data set that lies beside the repository; the test is skipped without it."""

    def find(name: str) -> Path:
        path = _SHARED / name
        if not path.exists():
            pytest.skip(f"{name} is not in ../shared/data")
        return path

    return find
