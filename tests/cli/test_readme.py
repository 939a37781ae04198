"""What the README shows works as it stands there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from .conftest import Outcome

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def code(language: str) -> str:
    """All blocks of code in a language, one after the other."""
    blocks = re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)
    assert blocks, f"the README has no {language}"
    return "\n".join(blocks)


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(code("python"), "README.md", "exec"), names)
    X, complete, labels = (np.asarray(names[name]) for name in ("X", "complete", "labels"))
    assert np.isnan(X).any() and not np.isnan(complete).any()
    # 500 rows of one group, then 300 of the other; four columns leave few in doubt.
    right = np.mean(labels == np.repeat([0, 1], [500, 300]))
    assert max(right, 1 - right) > 0.9
    assert names["groups"].n_components == 2  # type: ignore[attr-defined]
    filled = names["filled"]
    assert "?" not in filled.column("age").to_pylist()  # type: ignore[attr-defined]
    np.testing.assert_array_equal(names["same"].predict(X), labels)  # type: ignore[attr-defined]


# The command has no seed: now and then a start leaves a component with too few rows, and says so.
@pytest.mark.filterwarnings("ignore::mixfold.estimators.shell.base.DegenerateWarning")
def test_the_commands_run(
    run: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("table.parquet", "new.parquet"):
        X = rng.normal(size=(1600, 3)) + 9 * rng.integers(0, 8, size=(1600, 1))
        X[:, 1:][rng.random((1600, 2)) < 0.1] = np.nan
        table = pa.table({f"c{j}": pa.array(X[:, j], from_pandas=True) for j in range(3)})
        parquet.write_table(table, name)
    lines = [line for line in code("sh").splitlines() if line.startswith("mixfold ")]
    assert {line.split()[1] for line in lines} == {
        "fit", "predict", "score", "impute", "sample", "inspect", "report",
    }  # fmt: skip
    for line in lines:
        outcome = run(*shlex.split(line, comments=True)[1:])
        assert outcome.code == 0, (line, outcome.err)


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("http") or (ROOT / target).exists(), target
