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
    assert "best by bic: mixture with 2 components" in said and "stadt    category of 3" in said
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
