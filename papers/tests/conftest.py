"""A small table that needs no data and no fit, and what several tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from papers.frame.experiment import DataFile, Experiment, Progress
from papers.frame.run import Report, reproduce
from papers.frame.table import Cell, Check, Column, Table, Tolerance

COLUMNS = (
    Column("SER", "how well | rows are rebuilt", "dB", Tolerance(absolute=0.5), ".2f"),
    Column("risk", "a tail probability", form=".1e", logarithmic=True),
)
CELLS = (
    Cell("d = 1", "SER", (17.0, 17.2), 17.36),
    Cell("d = 1", "risk", (0.0, 0.0), 0.0),
    Cell("d = 2", "SER", (18.0, 18.4), 19.25),
    Cell("d = 2", "risk", (1e-30, 3e-30), None),
    Cell("d = 3", "SER", (19.125,), None),
)


def table(**changes: Any) -> Table:
    content: dict[str, Any] = {
        "columns": COLUMNS,
        "cells": CELLS,
        "checks": (Check("SER grows", True, "in 1 of 1"), Check("risk falls", False, "it rises")),
        "settings": (("restarts", "4"),),
        "notes": ("People were not named.",),
    }
    return Table(**(content | changes))


def run(data_folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
    progress(0, 1, f"seed {seed}")
    return table(settings=(("folder", data_folder.name), ("quick", str(quick))))


@pytest.fixture
def experiment() -> Experiment:
    file = DataFile("faces.npz", "arrays X and y", "a well-known database")
    protocol = "Fit to one half, measure on the other."
    return Experiment("small", "A small table", "Tabaghi 2016", "table 9.9", protocol, (file,), run)


@pytest.fixture
def report(experiment: Experiment, tmp_path: Path) -> Callable[..., Report]:
    """Run the experiment on a folder that has its file."""
    (tmp_path / "faces.npz").write_bytes(b"")

    def make(**options: Any) -> Report:
        return reproduce(experiment, tmp_path, **options)

    return make


@pytest.fixture(scope="session")
def digits_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small digits enlarged to 28 x 28 pixels, under the name of the large file."""
    from sklearn.datasets import load_digits

    images, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    large = np.kron(images.reshape(-1, 8, 8)[order] * (255 / 16), np.ones((3, 3)))
    X = np.pad(large, ((0, 0), (2, 2), (2, 2)))
    for i, shift in enumerate(np.random.default_rng(1).integers(-1, 2, (len(y), 2))):
        X[i] = np.roll(X[i], shift, axis=(0, 1))  # more than 64 dimensions
    X = X.reshape(len(y), -1).astype(np.uint8)
    folder = tmp_path_factory.mktemp("digits")
    np.savez(folder / "mnist.npz", X=X, y=y[order].astype(np.int64), n_train=1597)
    return folder
