"""A messy file goes through the commands without an option."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixfold import Schema
from mixfold.cli import main

N = 150
CITIES = ["Köln", "Bonn", "Trier"]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Semicolons, decimal commas, money, dates, words, holes in three ways, a title and a total."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("people") / "people.csv"
    lines = ["Members 2024", "", "nr;name;größe;beitrag;besuche;raucher;stadt;seit"]
    for i in range(N):
        g = i % 2
        size = f"{rng.normal(170 + 12 * g, 4):.1f}".replace(".", ",")
        fee = f"{rng.normal(1500 + 500 * g, 80):,.2f} €".translate(str.maketrans(",.", ".,"))
        visits = "n/a" if rng.random() < 0.1 else rng.poisson(2 + 5 * g)
        smoker = "ja" if rng.random() < 0.2 + 0.6 * g else "nein"
        city = "-" if rng.random() < 0.05 else CITIES[rng.integers(3)]
        name = "".join(rng.choice(list("abcdefgh"), 7)).title() + " Maier"
        day = f"{rng.integers(1, 29):02d}.{rng.integers(1, 13):02d}.{2015 + rng.integers(8)}"
        lines.append(f"{1000 + i};{name};{size};{fee};{visits};{smoker};{city};{day}")
    lines.append("Summe;;;;;;;")
    path.write_bytes("\r\n".join(lines).encode("cp1252"))
    return path


def run(*words: Any) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    return int(end.value.code or 0)


def test_columns_are_told(people: Path, capsys: Any, tmp_path: Path) -> None:
    assert run("columns", people, "--out", tmp_path / "s.json", "--drop", "seit") == 0
    said = capsys.readouterr().out
    for line in (
        "2 lines above the names", "read as cp1252", "begins with 'Summe'", "nr       identifier",
        "größe    number", "besuche  count", "raucher  yes/no", "stadt    category of 3",
        "seit     date, set aside",
    ):  # fmt: skip
        assert line in said, said
    assert not Schema.load(tmp_path / "s.json")["seit"].used


def test_a_messy_file_goes_all_the_way(people: Path, capsys: Any, tmp_path: Path) -> None:
    model, page = tmp_path / "m.mixfold", tmp_path / "r.html"
    assert run("select", people, "-k", "1:3", "--out", model, "--report", page, "--seed", 0) == 0
    said = capsys.readouterr().out
    assert "best by bic: mixture, family=" in said and "with 2 components" in said
    assert "stadt    category of 3" in said
    assert "raucher: ja" in page.read_text(encoding="utf-8")
    for command in ("predict", "impute", "score"):
        assert run(command, model, people, "--out", tmp_path / f"{command}.csv") == 0
    with (tmp_path / "predict.csv").open(newline="") as file:
        found = np.array([int(row["component"]) for row in csv.DictReader(file)])
    assert max((found == np.arange(N) % 2).mean(), (found != np.arange(N) % 2).mean()) > 0.95
    with (tmp_path / "impute.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:3] == ["nr", "name", "größe"] and len(rows) == N
    assert {row["stadt"] for row in rows} == set(CITIES)
    assert all(row["beitrag"].endswith(" €") for row in rows)
    assert run("sample", model, "--rows", 5, "--out", tmp_path / "new.csv") == 0
    assert run("inspect", model) == 0
    said = capsys.readouterr().out
    assert any(city in said for city in CITIES)


def test_what_is_said_of_columns_is_heeded(people: Path, capsys: Any) -> None:
    assert run("select", people, "-k", "1", "--kind", "besuche=number", "--drop", "seit,stadt") == 0
    said = capsys.readouterr().out
    assert "besuche  number" in said and "stadt    category of 3, set aside" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kind", "besuche"], "write COLUMN=KIND; got 'besuche'"),
        (["--kind", "besuche=words"], "kind must be one of number"),
        (["--kind", "x=number"], "the table has no column 'x'"),
        (["--drop", "x"], "the table has no column 'x'"),
        (["--kind", "besuche=number", "--columns", "besuche"], "is for tables of numbers"),
        (["--drop", "seit", "--model", "ppca"], "leave --model"),
    ],
)
def test_mistakes(people: Path, words: list[str], message: str, capsys: Any) -> None:
    assert run("select", people, "-k", "1", *words) == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_a_table_of_numbers_is_fitted_as_before(tmp_path: Path, capsys: Any) -> None:
    rng = np.random.default_rng(0)
    np.savetxt(tmp_path / "t.csv", rng.normal(size=(60, 2)), "%.3f", ",", header="a,b", comments="")
    assert run("select", tmp_path / "t.csv", "-k", "1") == 0
    assert "gaussian-mixture" in capsys.readouterr().out


@pytest.fixture
def few(people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same people, in the folder where one is."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "few.people.csv"
    path.write_bytes(people.read_bytes())
    return path


def test_a_table_alone_is_enough(few: Path, capsys: Any) -> None:
    assert run("report", few) == 0
    assert "raucher: ja" in Path("report.html").read_text(encoding="utf-8")
    assert run("impute", few) == 0
    said = capsys.readouterr().out
    assert "2 groups found in few.people.csv; keep them by: mixfold select" in said
    assert "wrote few.people.impute.csv (150 rows)" in said
    with Path("few.people.impute.csv").open(newline="", encoding="utf-8") as file:
        assert "" not in {row["besuche"] for row in csv.DictReader(file)}
    assert run("predict", few, "--quiet") == 0
    with Path("few.people.predict.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["nr", "component", "probability"] and rows[3]["nr"] == "1003"
    assert run("report", few, "--target", "stadt") == 2


def test_outputs_have_names_of_their_own(few: Path, capsys: Any) -> None:
    assert run("select", few, "-k", "2", "--seed", 0, "-q", "--out", "m.mixfold") == 0
    for command in ("predict", "impute"):
        assert run(command, "m.mixfold", few, "-q") == 0
        assert Path(f"few.people.{command}.csv").exists()
    assert run("sample", "m.mixfold", "-n", 3, "-q") == 0 and Path("m.sample.csv").exists()
    assert run("predict", "m.mixfold", few, "--keep", "name,stadt", "-q") == 0
    head = Path("few.people.predict.csv").read_text(encoding="utf-8").splitlines()[0]
    assert head == '"name","stadt","component","probability"'
    capsys.readouterr()
    assert run("predict", "m.mixfold", few, "--keep", "land") == 2
    assert run("predict", "m.mixfold") == 2
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert "has no column 'land'" in said and "name the table after the model" in said
    np.savetxt("n.csv", np.random.default_rng(0).normal(size=(60, 2)), "%.3f", ",", header="a,b",
               comments="")  # fmt: skip
    assert run("fit", "n.csv", "-k", 1, "-q") == 0 and Path("n.mixfold").exists()


def test_what_is_said_of_the_file_is_heeded(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "t.csv"
    lines = ["größe#rest", *(f"{1 + i % 7},{100 + i}#{'?!' if i % 9 else 'x'}" for i in range(80))]
    path.write_bytes("\n".join(lines).encode("cp1252"))
    words = ("--sep", "#", "--decimal", ",", "--encoding", "cp1252", "--na", "?!,-")
    assert run("columns", path, *words, "--out", tmp_path / "s.json") == 0
    said = capsys.readouterr().out
    assert "größe  number" in said and "rest   constant, set aside" in said
    schema = Schema.load(tmp_path / "s.json")
    assert schema.reading.delimiter == "#" and schema == Schema.infer(
        path, sep="#", decimal=",", encoding="cp1252", missing=("?!", "-")
    )
    assert schema.encode(path)[0, 0] == 1.1
    assert run("columns", path, "--decimal", ";") == 1
    assert run("columns", path, "--encoding", "utf-99") == 1
    assert "encoding must be one that Python knows" in capsys.readouterr().err
    assert run("select", path, "--schema", tmp_path / "s.json", "--na", "-") == 2


def test_standard_input_and_text_files_with_columns(
    few: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with few.open("rb") as file:
        monkeypatch.setattr("sys.stdin", type("In", (), {"buffer": file})())
        assert run("columns", "-") == 0
    assert "besuche  count" in capsys.readouterr().out
    Path("t.txt").write_text("\n".join(f"{i}\t{i % 3} kg" for i in range(40)), encoding="utf-8")
    assert run("select", "t.txt", "-k", "1") == 0
    assert "column 2" in capsys.readouterr().out
    Path("d.txt").write_text("a letter\nanother, longer one\nthe third\nand more\nthe end\n")
    assert run("select", "d.txt", "-k", "1") == 2
    assert "holds texts" in " ".join(capsys.readouterr().err.replace("│", " ").split())
