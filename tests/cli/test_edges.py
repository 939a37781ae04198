"""Commands at the edges: outputs that name an input, odd words, wide tables, a cluster."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mixfold

from .conftest import COLUMNS, Example, Outcome
from .test_mistakes import check

Run = Callable[..., Outcome]


@pytest.mark.parametrize("kind", ["parquet", "csv", "npy"])
@pytest.mark.parametrize("how", ["itself", "dots", "symbolic link", "hard link"])
def test_fit_never_overwrites_its_input(
    run: Run, example: Example, tmp_path: Path, kind: str, how: str
) -> None:
    data = tmp_path / f"precious.{kind}"
    shutil.copy(getattr(example, kind), data)
    before = data.read_bytes()
    out = {
        "itself": data,
        "dots": tmp_path / ".." / tmp_path.name / data.name,
        "symbolic link": tmp_path / "soft.mixfold",
        "hard link": tmp_path / "hard.mixfold",
    }[how]
    if how == "symbolic link":
        out.symlink_to(data)
    elif how == "hard link":
        os.link(data, out)
    check(run("fit", data, "-k", 2, "--out", out), 2, "--out", "would overwrite")
    assert data.read_bytes() == before


@pytest.mark.parametrize("verb", ["predict", "sample", "transform"])
def test_tables_never_overwrite_the_model(
    run: Run, example: Example, tmp_path: Path, verb: str
) -> None:
    model = tmp_path / "model.csv"  # an unlucky name
    words = ["--model", "ppca"] if verb == "transform" else []
    words += ["--columns", ",".join(COLUMNS), "-k", 2, "--out", model]
    assert run("fit", example.parquet, *words).code == 0
    before = model.read_bytes()
    rows = [] if verb == "sample" else [example.parquet]
    check(run(verb, model, *rows, "--out", model), 2, "--out", "would overwrite")
    assert model.read_bytes() == before


def test_outputs_within_a_folder_of_data_are_refused(
    run: Run, example: Example, tmp_path: Path
) -> None:
    folder = tmp_path / "parts"
    (folder / "deep").mkdir(parents=True)
    shutil.copy(example.parquet, folder / "a.parquet")
    out = folder / "deep" / "m.mixfold"
    check(run("select", folder, "-k", 1, "--out", out), 2, "lie within")
    check(run("fit", folder, "-k", 2, "--out", folder / "deep" / "m.parquet"), 2, "lie within")
    out = folder / "m.mixfold"  # a new model file beside the data is no part of them
    columns = ["--columns", ",".join(COLUMNS)]
    assert run("fit", folder, "-k", 2, *columns, "--out", out).code == 0


@pytest.mark.parametrize("word", ["-" * 5000 + "1", "(" * 300 + "1" + ")" * 300, "[" * 5000])
def test_values_that_no_parser_takes_are_no_defect(
    run: Run, example: Example, tmp_path: Path, word: str
) -> None:
    outcome = run("fit", example.npy, "-k", 2, "--out", tmp_path / "m", "--set", f"tol={word}")
    check(outcome, 2, "--set", "is nested too deeply")
    assert len(outcome.err) < 2000
    grid = ["--set", f"tol={word},1e-3"]
    check(run("select", example.npy, "-k", 1, "--out", tmp_path / "m", *grid), 2, "too deeply")


def test_a_wide_table_is_refused_before_minutes_of_work(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 5000)) + 4 * rng.integers(0, 2, (20, 1))
    file = tmp_path / "wide.csv"
    names = ",".join(f"c{j}" for j in range(5000))
    np.savetxt(file, X, delimiter=",", header=names, comments="")
    out = tmp_path / "m.mixfold"
    outcome = run("fit", file, "-k", 2, "--out", out)
    check(outcome, 2, "5000 columns", "--set covariance_type=diag", "--model mixture-of-ppca")
    check(run("select", file, "-k", 2, "--out", out), 2, "5000 columns")
    # What the message advises works.
    assert run("fit", file, "-k", 2, "--out", out, "--set", "covariance_type=diag").code == 0
    words = ["--model", "mixture-of-ppca", "--factors", 1, "--out", out]
    assert run("fit", file, "-k", 2, *words).code == 0


@pytest.mark.slow
def test_executor_dask_starts_a_cluster_of_its_own(
    run: Run, example: Example, tmp_path: Path
) -> None:
    out = tmp_path / "m.mixfold"
    words = ["-k", 2, "--seed", 0, "--columns", ",".join(COLUMNS), "--out", out]
    outcome = run("fit", example.parquet, *words, "--set", "executor=dask")
    assert outcome.code == 0, outcome.err
    far = mixfold.load(out)
    assert far.executor == "threads"  # a model file asks for no cluster
    assert run("predict", out, example.parquet, "--out", tmp_path / "p.csv").code == 0
    assert run("fit", example.parquet, *words).code == 0
    np.testing.assert_allclose(far.means_, mixfold.load(out).means_, rtol=1e-8)
    words = ["-k", 2, "--seed", 0, "--columns", ",".join(COLUMNS), "--out", out]
    outcome = run("select", example.parquet, *words, "--set", "executor=dask")
    assert outcome.code == 0, outcome.err
    assert mixfold.load(out).executor == "threads"


def test_scheduler_is_the_cluster_to_use(run: Run, example: Example, tmp_path: Path) -> None:
    distributed = pytest.importorskip(
        "distributed", reason="needs Dask: pip install 'mixfold[dask]'"
    )
    out = tmp_path / "m.mixfold"
    words = ["-k", 2, "--seed", 0, "--columns", ",".join(COLUMNS), "--out", out]
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        outcome = run("fit", example.parquet, *words, "--scheduler", cluster.scheduler_address)
    assert outcome.code == 0, outcome.err
    assert mixfold.load(out).executor == "threads"


def test_a_scheduler_that_does_not_answer_is_an_error(
    run: Run, example: Example, tmp_path: Path
) -> None:
    dask = pytest.importorskip("dask", reason="needs Dask: pip install 'mixfold[dask]'")
    default = dask.config.get("scheduler", None)
    words = ["-k", 2, "--out", tmp_path / "m", "--scheduler"]
    outcome = run("fit", example.parquet, *words, "tcp://127.0.0.1:9")
    check(outcome, 1, "tcp://127.0.0.1:9", "--scheduler")
    check(run("fit", example.parquet, *words, "nowhere at all"), 1, "--scheduler")
    check(run("fit", example.parquet, *words, "x", "--set", "executor=threads"), 2, "--scheduler")
    assert dask.config.get("scheduler", None) == default  # other computations go on as before


def test_a_model_that_was_fitted_on_a_cluster_is_applied_without_one(
    run: Run, example: Example, tmp_path: Path
) -> None:
    model = mixfold.GaussianMixture(2, random_state=0).fit(example.X)
    model.set_params(executor="dask").save(tmp_path / "m.mixfold")
    words = [tmp_path / "m.mixfold", example.npy, "--out", tmp_path / "p.csv"]
    outcome = run("predict", *words)
    assert outcome.code == 0, outcome.err


def test_names_do_not_command_the_terminal(run: Run, tmp_path: Path) -> None:
    """Escape sequences and backspaces of names are not written, in results and in errors."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) + 5 * (np.arange(40) < 20)[:, None]
    names = ["\x1b[2Ja", "b\x1b]0;t\x07", "c\x08"]
    table, model = tmp_path / "names.csv", tmp_path / "m.mixfold"
    rows = [",".join(map(str, row)) for row in X]
    table.write_text("\n".join([",".join(names), *rows]) + "\n")
    seen = []
    for kind in ("ppca", "gaussian-mixture"):
        seen.append(run("fit", table, "--model", kind, "--components", 2, "--out", model))
        seen.append(run("inspect", model))
        seen.append(run("inspect", model, "--json"))
    seen.append(run("select", table, "--components", 2, "--set", "covariance_type=diag"))
    seen.append(run("cluster", table, "--max-components", 2, "--set", "covariance_type=diag"))
    seen.append(run("fit", table, "--columns", "nothing", "--out", model))
    assert "a" in seen[0].out and "[2Ja" in seen[1].out
    for one in seen:
        assert not set("\x07\x08\x1b") & set(one.out + one.err), one
