"""A mistake: the right exit code, a message that helps, no traceback, nothing left behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pyarrow import csv, parquet

import mixfold

from .conftest import Example, Outcome

Run = Callable[..., Outcome]


def squeezed(text: str) -> str:
    """Without the frame, spaces and line breaks, which may fall in the middle of a path."""
    return "".join(text.replace("│", " ").split())


def check(outcome: Outcome, code: int, *expected: str) -> None:
    assert outcome.code == code, outcome.err
    assert "Traceback" not in outcome.err
    for text in expected:
        assert squeezed(text) in squeezed(outcome.err)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--model", "gausian"], ["'gausian'", "gaussian-mixture, bayesian-gaussian-mixture"]),
        (["--set", "covariance=diag"], ["'covariance'", "covariance_type", "n_init"]),
        (["--set", "diag"], ["name=value", "'diag'"]),
        (["-k", "0"], ["--components"]),
        (["-k", "two"], ["--components", "integer"]),
        (["-k", "2", "--set", "n_components=3"], ["n_components", "--components", "keep one"]),
        (["--seed", "1", "--set", "random_state=3"], ["random_state", "--seed"]),
        (["--columns", "a,,b"], ["--columns", "'a,,b'"]),
        (["--columns", "a,b,a"], ["--columns", "a; keep one"]),
        (["--frobnicate"], ["--frobnicate"]),
    ],
)
def test_a_wrong_command_is_a_usage_error(
    run: Run, example: Example, tmp_path: Path, words: list[str], expected: list[str]
) -> None:
    out = tmp_path / "m.mixfold"
    check(run("fit", example.parquet, "--out", out, *words), 2, *expected)
    assert list(tmp_path.iterdir()) == []


def test_missing_file_folder_or_option_is_a_usage_error(
    run: Run, example: Example, tmp_path: Path
) -> None:
    check(run("fit", tmp_path / "no.csv", "--out", tmp_path / "m"), 2, "no.csv", "does not exist")
    check(run("fit", example.npy, "--out", tmp_path / "no" / "m"), 2, "--out", "create it first")
    check(run("nonsense"), 2, "nonsense")


def test_an_output_name_is_checked_before_the_work(
    run: Run, example: Example, model_file: Path, tmp_path: Path
) -> None:
    check(run("predict", model_file, example.npy, "--out", tmp_path / "t.xlsx"), 2, ".parquet")
    check(run("sample", model_file, "--out", tmp_path / "t"), 2, ".parquet or .csv")


def test_an_unknown_column_is_named(run: Run, example: Example, tmp_path: Path) -> None:
    words = ["--columns", "heigth,width", "--out", tmp_path / "m"]
    check(run("fit", example.csv, *words), 1, "error:", "'heigth'", "'height'")
    words = ["--weights", "counts", "--out", tmp_path / "m"]
    check(run("fit", example.csv, *words), 1, "'counts'", "'count'")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("text.csv", b"a,b\n1,2\n3,tall\n", ["text.csv"]),
        ("empty.csv", b"", ["empty.csv"]),
        ("header.csv", b"a,b\n", ["header.csv"]),
        ("cut.parquet", b"PAR1 and no more", ["cut.parquet"]),
        ("cut.npy", b"\x93NUMPY", ["cut.npy"]),
        ("table.xlsx", b"PK", ["table.xlsx", ".parquet"]),
    ],
)
def test_bad_data_is_a_failure_that_names_the_file(
    run: Run, tmp_path: Path, name: str, content: bytes, expected: list[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    check(run("fit", tmp_path / name, "-k", 1, "--out", tmp_path / "m"), 1, "error:", *expected)
    assert [path.name for path in tmp_path.iterdir()] == [name]


MESSY = "id,age,when,pay\nu1,30,2020-01-01,5\nu2,,2020-01-02,6\n"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_without_numbers_are_named_with_an_option_to_copy(
    run: Run, tmp_path: Path, kind: str
) -> None:
    file, model = tmp_path / f"messy.{kind}", tmp_path / "m"
    (tmp_path / "messy.csv").write_text(MESSY)
    if kind == "parquet":
        parquet.write_table(csv.read_csv(tmp_path / "messy.csv"), file)
    told = ("'id'", "2 such columns: 'id', 'when'.", "To use the others: --columns age,pay.")
    check(run("fit", file, "-k", 1, "--out", model), 1, *told)
    outcome = run("fit", file, "-k", 1, "--weights", "pay", "--out", model)
    check(outcome, 1, "To use the others: --columns age.")
    outcome = run("fit", file, "-k", 1, "--columns", "age,when", "--out", model)
    check(outcome, 1, "'when'", "2020-01-01", "Leave it out of --columns")
    assert "columns=" not in outcome.err and "datetime" not in outcome.err
    assert not model.exists()


def test_the_entry_that_is_no_number_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n,1\nNA,2\n?,3\n4,5\n")
    outcome = run("fit", tmp_path / "x.csv", "-k", 1, "--out", tmp_path / "m")
    check(outcome, 1, "'a'", "such as '?' in row 2", "Correct the entry")


@pytest.mark.parametrize("line", ["1;2", "1,5;2,5"])
def test_another_separator_is_told(run: Run, tmp_path: Path, line: str) -> None:
    (tmp_path / "x.csv").write_text(f"a;b\n{line}\n")
    outcome = run("fit", tmp_path / "x.csv", "-k", 1, "--out", tmp_path / "m")
    check(outcome, 1, "not separated by commas", "'a;b'", "sep=';'")


def test_a_bad_value_of_a_parameter_is_named(run: Run, example: Example, tmp_path: Path) -> None:
    words = ["--set", "covariance_type=banded", "--out", tmp_path / "m"]
    check(run("fit", example.npy, *words), 1, "covariance_type", "banded")


def test_a_file_that_is_no_model_is_named(run: Run, example: Example, tmp_path: Path) -> None:
    fake = tmp_path / "fake.mixfold"
    fake.write_bytes(b"not a model at all")
    out = tmp_path / "labels.csv"
    for words in (["predict", fake, example.npy, "--out", out], ["inspect", fake]):
        check(run(*words), 1, "error:", "fake.mixfold")
    assert not out.exists()


def test_another_number_of_columns_is_named(run: Run, model_file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "wide.npy", np.zeros((5, 7)))
    words = ["predict", model_file, tmp_path / "wide.npy", "--out", tmp_path / "labels.csv"]
    check(run(*words), 1, "wide.npy", "7 columns", "3")


def test_what_a_model_cannot_do_is_a_usage_error(
    run: Run, example: Example, tmp_path: Path
) -> None:
    model, out = tmp_path / "m.mixfold", tmp_path / "t.csv"
    assert run("fit", example.npy, "--model", "kmeans", "-k", 2, "--out", model).code == 0
    check(run("predict", model, example.npy, "--proba", "--out", out), 2, "KMeans", "--proba")
    check(run("score", model, example.npy), 2, "KMeans has no log-density")


def test_a_failure_in_the_middle_leaves_the_old_output(
    run: Run, example: Example, model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter([True, False])
    score_samples = mixfold.GaussianMixture.score_samples

    def fail_later(self: object, X: np.ndarray) -> np.ndarray:
        if not next(calls):
            raise OSError(28, "No space left on device")
        return score_samples(self, X)

    monkeypatch.setattr(mixfold.GaussianMixture, "score_samples", fail_later)
    monkeypatch.setattr("mixfold.cli.data._LEAST_ROWS", 1)
    monkeypatch.setattr("mixfold.cli.data._PIECE", 3 * 32)
    out = tmp_path / "density.csv"
    out.write_text("old")
    before = sorted(path.name for path in tmp_path.iterdir())
    check(run("score", model_file, example.parquet, "--out", out), 1, "No space left on device")
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("error", [KeyError, np.linalg.LinAlgError])
def test_a_defect_says_that_it_is_one(
    run: Run,
    example: Example,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error("inner")

    monkeypatch.setattr(mixfold.GaussianMixture, "fit", broken)
    outcome = run("fit", example.npy, "--out", tmp_path / "m")
    check(outcome, 1, error.__name__, "inner", "defect", "--debug")


@pytest.mark.parametrize("first", [True, False])
def test_debug_shows_the_traceback(example: Example, tmp_path: Path, first: bool) -> None:
    words = ["fit", str(example.csv), "--columns", "nothing", "--out", str(tmp_path / "m")]
    words = ["--debug", *words] if first else [*words, "--debug"]
    run = subprocess.run([sys.executable, "-m", "mixfold", *words], capture_output=True, text=True)
    assert run.returncode == 1
    assert "Traceback" in run.stderr and "'nothing'" in run.stderr


def test_warnings_are_one_plain_line(
    run: Run, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import warnings

    fit = mixfold.GaussianMixture.fit

    def warn(self: object, *args: object, **kwargs: object) -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("a component was re-seeded", UserWarning, stacklevel=1)
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(mixfold.GaussianMixture, "fit", warn)
    outcome = run("fit", example.npy, "-k", 2, "-q", "--out", tmp_path / "m")
    assert outcome == Outcome(0, "", "warning: a component was re-seeded\n")
