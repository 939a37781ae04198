"""Every model of the command line: fitted, looked at, and asked what it can be asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from mixfold import load
from mixfold.catalogue import CATALOGUE, Entry

COMMANDS = {entry.command: entry for entry in CATALOGUE if entry.command}
BITS = ("bernoulli-mixture", "rbm", "deep-belief-network")
COUNTS = ("poisson-mixture", "multinomial-mixture", "plsi", "lda", "pcp")
# some are slow to converge; all are asked for a few steps
BRIEF = {
    "rbm": ("max_epochs=2",),
    "deep-belief-network": ("max_epochs=2", "fine_tune_epochs=1", "chain_epochs=1"),
    "deep-factor-network": ("max_epochs=2", "max_iter=3"),
    "kmeans": ("max_iter=20",),
    "kernel-cca": (),
    "mixture-classifier": (),
}


def _table(command: str, entry: Entry, folder: Path) -> Path:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 80)
    if command in BITS:
        X = (rng.random((80, 6)) < np.where(group, 0.8, 0.2)[:, None]).astype(float)
    elif command in COUNTS:
        X = rng.poisson(np.where(group[:, None] == np.arange(6) % 2, 8, 2)).astype(float)
    elif command == "categorical-mixture":
        X = (rng.integers(0, 3, (80, 6)) + group[:, None]).astype(float)
    else:
        X = rng.laplace(size=(80, 6)) @ rng.normal(size=(6, 6)) + 6 * group[:, None]
    columns: dict[str, Any] = {f"c{j}": X[:, j] for j in range(6)}
    if entry.target and not entry.unlabelled:
        columns["kind"] = np.array(["a", "b"])[group]
    file = folder / "rows.parquet"
    parquet.write_table(pa.table(columns), file)
    return file


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("command", COMMANDS)
def test_fit_inspect_and_score(command: str, run: Callable[..., Any], tmp_path: Path) -> None:
    entry = COMMANDS[command]
    file, model = _table(command, entry, tmp_path), tmp_path / "model.mixfold"
    settings = BRIEF.get(command, ("max_iter=5",))
    words = ["--model", command, "--seed", 0, "--out", model]
    words += ["--target", "kind"] if entry.target and not entry.unlabelled else []
    words += ["--layers", "4,3"] if entry.layers else ["--components", 2]
    words += [part for setting in settings for part in ("--set", setting)]
    done = run("fit", file, *words)
    assert done.code == 0, done.err
    assert "wrote" in done.out + done.err
    told = run("inspect", model)
    assert told.code == 0, told.err
    fitted = load(model)
    if not hasattr(fitted, "score_samples") or hasattr(fitted, "transforms_"):
        assert "likelihood" not in done.out  # it has none
    if hasattr(fitted, "score_samples"):
        assert run("score", model, file).code == 0
    if hasattr(fitted, "sample"):
        drawn = run("sample", model, "-n", 3, "--out", tmp_path / "drawn.csv")
        assert drawn.code == 0, drawn.err


@pytest.mark.parametrize("size", ["learn", "0.9"])
def test_numbers_of_axes_that_are_learned(
    size: str, run: Callable[..., Any], tmp_path: Path
) -> None:
    file = _table("kernel-pca", COMMANDS["kernel-pca"], tmp_path)
    words = ("--model", "kernel-pca", "--set", f"n_components={size}", "--set", "gamma=0.01")
    done = run("fit", file, *words, "--out", tmp_path / "model.mixfold")
    assert done.code == 0, done.err
    assert load(tmp_path / "model.mixfold").n_components_ >= 1
