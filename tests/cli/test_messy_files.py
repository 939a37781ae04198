"""Real tables as people send them go through the commands without an option."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import mixfold
from bench.messy_tables import MESSY
from mixfold.cli import main
from mixfold.schema.readers import read_table

# which data set a file is made of, and what its columns are to be taken for
FILES: dict[str, tuple[str, dict[str, str]]] = {
    "people.csv": ("", {
        "id": "identifier", "name": "text", "age": "number", "income": "number", "visits": "count",
        "smoker": "yes/no", "city": "category", "joined": "date",
    }),
    "nhanes.csv": ("nhanes_2017_2018_adults.npz", {
        "Nr.": "identifier", "Gewicht (kg)": "number", "Puls": "number",
        "Altersgruppe": "ordered", "Geschlecht": "yes/no", "Untersucht am": "date",
    }),
    "personality.xlsx": ("bfi_personality.csv", {
        "Respondent": "identifier", "A1": "ordered", "Gender": "yes/no", "Filled in": "date",
        "Comment": "constant",
    }),
    "personality.dta": ("bfi_personality.csv", {"C1": "ordered", "gender": "yes/no"}),
    "raters.jsonl": ("movielens_small.npz", {
        "user": "identifier", "share of fives": "number", "favourite": "category",
        "first seen": "date", "hour": "cyclic", "halves": "yes/no",
    }),
    "geyser.tsv.gz": ("old_faithful.csv", {
        "Eruption": "number", "Waiting": "number", "Seen at": "date", "Weekday": "cyclic",
        "Wind direction": "cyclic", "Park": "constant",
    }),
    "wines.csv": ("wine27.csv", {
        "Sample": "identifier", "Malic acid": "number", "Tasted": "date", "Medal": "ordered",
        "Price": "number",
    }),
    "diabetes.csv": ("diabetes_reaven_miller.csv", {
        "patient_id": "identifier", "glucose": "number", "visit": "date", "zip": "category",
        "balance": "number", "family history": "yes/no", "pain": "ordered", "glucose (2)": "copy",
        "note": "text", "unused": "empty",
    }),
    "coffee.txt": ("coffee.csv", {"Water": "number", "Fat (2)": "number", "Country": "text"}),
    "cancer.sav": ("wpbc.csv", {
        "status": "yes/no", "grade": "ordered", "seen": "date", "case": "identifier",
    }),
    "vehicles.feather": ("vehicle.csv", {
        "Comp": "number", "camera": "category", "size": "ordered", "indoors": "yes/no",
        "at": "date",
    }),
}  # fmt: skip
NEEDS = {".xlsx": ("openpyxl", "python_calamine"), ".dta": ("pyreadstat",), ".sav": ("pyreadstat",)}
LARGE = ("nhanes.csv", "personality.xlsx", "personality.dta", "vehicles.feather")


@pytest.fixture
def messy(
    shared_data: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], tuple[Path, np.ndarray | None]]:
    """Writes one of the files; gives the groups that are known."""
    monkeypatch.chdir(tmp_path)

    def write(name: str) -> tuple[Path, np.ndarray | None]:
        if FILES[name][0]:
            shared_data(FILES[name][0])
        for package in NEEDS.get(Path(name).suffix, ()):
            pytest.importorskip(package, reason=f"needs {package}: pip install 'mixfold[dev]'")
        return tmp_path / name, MESSY[name](tmp_path / name)

    return write


def run(*words: Any) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    return int(end.value.code or 0)


@pytest.mark.parametrize("name", FILES)
def test_columns_are_what_they_are(name: str, messy: Any) -> None:
    assert set(FILES) == set(MESSY)
    path, _ = messy(name)
    schema = mixfold.Schema.infer(path)
    found = {column.name: column.kind for column in schema}
    wanted = FILES[name][1]
    assert {key: found[key] for key in wanted} == wanted
    assert not any("no dates" in remark for column in schema for remark in column.remarks)
    lines = str(schema).splitlines()
    assert len(lines) >= len(schema) and all(len(line) < 160 for line in lines)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in LARGE else n for n in FILES]
)
def test_no_option_is_needed(name: str, messy: Any, capsys: Any) -> None:
    path, _ = messy(name)
    assert (
        run("select", path, "-k", "1:3", "--seed", 0, "--out", "m.mixfold", "--report", "r.html")
        == 0
    )
    page = Path("r.html").read_text(encoding="utf-8")
    assert 'id="columns"' in page and "Traceback" not in page
    assert run("impute", "m.mixfold", path) == 0 and run("predict", "m.mixfold", path) == 0
    assert "error" not in capsys.readouterr().err
    stem = Path(name.removesuffix(".gz")).stem
    came, whole = read_table(path).table, read_table(Path(f"{stem}.impute.csv")).table
    assert whole.column_names == came.column_names and whole.num_rows == came.num_rows
    model = mixfold.load(Path("m.mixfold"))
    assert np.isfinite(model.schema_.encode(Path(f"{stem}.impute.csv"))).all()
    assert read_table(Path(f"{stem}.predict.csv")).n_rows == came.num_rows


@pytest.mark.parametrize(("name", "least"), [("people.csv", 0.9), ("geyser.tsv.gz", 0.9)])
def test_known_groups_are_found(name: str, least: float, messy: Any) -> None:
    path, truth = messy(name)
    k = len(np.unique(truth))
    fitted = mixfold.Mixture("auto", k, random_state=0).fit(path)
    assert adjusted_rand_score(truth, fitted.predict(path)) > least
