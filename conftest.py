"""What all tests share: settings of the process, random numbers, data beside the repository."""

from __future__ import annotations

import os
import random
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

# Before numpy, scipy or matplotlib are imported:

# Tests have no screen.
os.environ["MPLBACKEND"] = "agg"
# scikit-learn skips its array-API checks otherwise.
os.environ["SCIPY_ARRAY_API"] = "1"
# Workers of pytest-xdist and Dask inherit this: as many BLAS threads as cores in each of several
# workers wait for each other, and kernel PCA's tests take ten times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest

_SHARED = Path(__file__).resolve().parents[1] / "shared" / "data"


@pytest.fixture(autouse=True)
def _seed(request: pytest.FixtureRequest) -> None:
    """An estimator without a seed draws the same numbers in every run, whatever the order."""
    seed = zlib.crc32(request.node.nodeid.encode())
    random.seed(seed)
    np.random.seed(seed)


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    """Examples of plots leave their figures open, as a reader would; close them."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


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
            pytest.skip(
                f"needs the data set {name}, which is not part of the repository: "
                f"put it into shared/data in the folder that holds the clone"
            )
        return path

    return find
