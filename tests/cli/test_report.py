"""``mixfold report``: a page from files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from .conftest import Example, Outcome

Run = Callable[..., Outcome]


def test_page_of_a_table(run: Run, example: Example, model_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    outcome = run("report", model_file, example.parquet, "--out", out, "--weights", "count")
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith(f"wrote {out} (") and outcome.out.strip().endswith(" kB)")
    text = out.read_text(encoding="utf-8")
    assert "2 components for" in text and "groups.mixfold, written 2" in text
    assert "table.parquet" in text and str(tmp_path) not in text
    assert f"{example.weight.sum():.0f}" in text


def test_page_of_the_model_alone(run: Run, model_file: Path, tmp_path: Path) -> None:
    outcome = run("report", model_file, "-o", tmp_path / "p.html", "--quiet")
    assert (outcome.code, outcome.out) == (0, "")
    assert "No rows were given" in (tmp_path / "p.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["csv", "npy", "parquet"])
def test_formats(run: Run, example: Example, model_file: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "p.html"
    outcome = run("report", model_file, getattr(example, kind), "-o", out, "-n", 30, "--seed", 4)
    assert outcome.code == 0, outcome.err
    assert "A sample of 30 of 90 rows, drawn at random (seed 4)" in out.read_text(encoding="utf-8")


def test_target(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    kind = np.arange(80) % 2
    X = rng.normal(size=(80, 3)) + 4 * kind[:, None]
    columns = {f"c{j}": X[:, j] for j in range(3)}
    columns["kind"] = np.array(["owl", "elk"])[kind]
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    model = tmp_path / "m.mixfold"
    fit = run("fit", tmp_path / "t.parquet", "--model", "supervised-ppca", "--components", 1,
              "--target", "kind", "--seed", 0, "--out", model)  # fmt: skip
    assert fit.code == 0, fit.err
    page = tmp_path / "p.html"
    outcome = run("report", model, tmp_path / "t.parquet", "--target", "kind", "-o", page)
    assert outcome.code == 0, outcome.err
    text = page.read_text(encoding="utf-8")
    assert "Calibration of the probabilities" in text and "owl" in text


def test_texts(run: Run, tmp_path: Path) -> None:
    lines = ["ships sail the sea", "the sea and ships", "bread and butter", "butter on bread"] * 6
    (tmp_path / "t.txt").write_text("\n".join(lines))
    model = tmp_path / "m.mixfold"
    fit = run("fit", tmp_path / "t.txt", "--model", "lda", "-k", 2, "--seed", 0, "--out", model)
    assert fit.code == 0, fit.err
    outcome = run("report", model, tmp_path / "t.txt", "-o", tmp_path / "p.html")
    assert outcome.code == 0, outcome.err
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "Topics, the largest first" in text and "butter" in text


def test_images(run: Run, example: Example, model_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.html"
    assert run("report", model_file, example.npy, "-o", out, "--image-shape", "1x3").code == 0
    assert "data:image/png;base64," in out.read_text(encoding="utf-8")


def test_open(run: Run, model_file: Path, tmp_path: Path, monkeypatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    out = tmp_path / "p.html"
    assert run("report", model_file, "-o", out, "--open").code == 0
    assert opened == [out.resolve().as_uri()]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-o", "page.txt"], "a page ends in .html; got 'page.txt'"),
        (["--target", "kind"], "name it after the model"),
        (["--image-shape", "28"], "as in 28x28; got '28'"),
    ],
)
def test_mistakes(run: Run, model_file: Path, words: list[str], told: str) -> None:
    outcome = run("report", model_file, *words)
    assert outcome.code == 2 and told in " ".join(outcome.err.replace("│", " ").split())


def test_wrong_shape_and_columns(
    run: Run, example: Example, model_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "p.html"
    outcome = run("report", model_file, example.npy, "-o", out, "--image-shape", "2x2")
    assert outcome.code == 1 and "makes 4 pixels, but the model has 3 columns" in outcome.err
    words = ["--columns", "height,width,depth", "--weights", "count"]
    outcome = run("report", model_file, example.parquet, "-o", out, *words)
    assert outcome.code == 2 and "leave --columns" in outcome.err
    assert not out.exists()
