"""Real tables made as messy as people send them: a file each, and the groups that are known.

Run ``python -m bench.messy_tables FOLDER``. The data sets lie beside the repository; all dirt is
drawn from one seed, so that the files are the same every time.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bench.factor_data import BESIDE

FIRST = ("Ann", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gus", "Ida", "Jon", "Kim", "Lea", "Max")
LAST = ("Meyer", "O'Neil", "de Vries", "Rossi", "Smith, Jr.", "Novak", "Lund", "Costa", "Hahn")


def _names(rng: np.random.Generator, n: int) -> list[str]:
    return [f"{rng.choice(FIRST)} {rng.choice(LAST)} {i % 97}" for i in range(n)]


def _with_holes(values: Sequence[Any], share: float, word: str, rng: np.random.Generator) -> list:
    hidden = rng.random(len(values)) < share
    return [word if hide else value for value, hide in zip(values, hidden, strict=True)]


def _days(rng: np.random.Generator, start: date, offsets: Any) -> list[date]:
    return [start + timedelta(days=int(offset)) for offset in offsets]


def _lines(
    columns: dict[str, Sequence[Any]], sep: str = ",", quote: bool = True, names: bool = True
) -> list[str]:
    def cell(value: Any) -> str:
        text = str(value)
        return f'"{text}"' if quote and (sep in text or '"' in text or "\n" in text) else text

    rows = zip(*columns.values(), strict=True)
    head = [sep.join(map(cell, columns))] if names else []
    return [*head, *(sep.join(map(cell, row)) for row in rows)]


def _comma(value: float, digits: int = 1) -> str:
    return f"{value:.{digits}f}".replace(".", ",")


# ------------------------------------------------ the files


def people(path: Path) -> np.ndarray:
    """A drawn table of customers: id, name, age, income, visits, smoker, city, joined."""
    rng = np.random.default_rng(1)
    n, g = 400, np.random.default_rng(0).integers(0, 3, 400)
    cities = np.array(["Rome", "Paris", "Oslo"])
    city = np.where(rng.random(n) < 0.75, cities[g], cities[rng.integers(0, 3, n)])
    city = [c.upper() if rng.random() < 0.03 else c for c in city]
    smoker = np.where(rng.random(n) < 0.15 + 0.5 * (g == 0), "yes", "no")
    joined = _days(rng, date(2018, 1, 1), 700 * (g == 1) + rng.integers(0, 600, n))
    columns = {
        "id": np.arange(n) + 1001,
        "name": _names(rng, n),
        "age": _with_holes(np.clip(rng.normal(32 + 14 * g, 6), 18, 95).astype(int), 0.06, "?", rng),
        "income": [f"${v:,.0f}" for v in np.exp(rng.normal(10 + 0.7 * (g == 2), 0.4, n))],
        "visits": _with_holes(rng.poisson(np.array([2, 8, 4])[g]), 0.05, "-", rng),
        "smoker": _with_holes(smoker, 0.04, "", rng),
        "city": city,
        "joined": [f"{d:%d.%m.%Y}" for d in joined],
    }  # fmt: skip
    path.write_text("\n".join(_lines(columns)), encoding="utf-8")
    return g


def nhanes(path: Path) -> np.ndarray:
    """Measurements: semicolons, decimal commas, latin-1, -999, a title, k.A. for nothing known."""
    with np.load(BESIDE / "nhanes_2017_2018_adults.npz") as file:
        X, y, names = file["X"][:1500], file["y"][:1500], list(file["feature_names"])
    rng = np.random.default_rng(2)
    wanted = {
        "Gewicht (kg)": "WeightKg", "Größe (cm)": "StandingHeightCm",
        "Systolisch": "SystolicBloodPres1StRdgMmHg", "Puls": "60SecPulse30SecPulse2",
    }  # fmt: skip
    found = {new: names.index(old) for new, old in wanted.items() if old in names}
    others = [j for j in range(len(names)) if j not in found.values()][6:12]
    columns: dict[str, Sequence[Any]] = {"Nr.": np.arange(len(X)) + 83732}
    for name, j in found.items():
        columns[name] = ["" if np.isnan(v) else _comma(float(v)) for v in X[:, j]]
    for j in others:
        values = ["k.A." if np.isnan(v) else _comma(float(v), 2) for v in X[:, j]]
        columns[names[j][:24]] = _with_holes(values, 0.02, "-999", rng)
    ages = ["unter 30", "30-49", "50-64", "über 64"]
    columns["Altersgruppe"] = [ages[i] for i in rng.integers(0, 4, len(X))]
    columns["Geschlecht"] = np.where(y == 0, "männlich", "weiblich")
    day = _days(rng, date(2017, 3, 1), rng.integers(0, 600, len(X)))
    columns["Untersucht am"] = [f"{d:%d.%m.%y}" for d in day]
    text = "\r\n".join(["Erhebung 2017/18;;;", "Stand: März 2019", "", *_lines(columns, ";")])
    path.write_bytes(text.encode("latin-1"))
    return y


_ANSWERS = ("very inaccurate", "moderately inaccurate", "slightly inaccurate",
            "slightly accurate", "moderately accurate", "very accurate")  # fmt: skip


def _bfi() -> pd.DataFrame:
    return pd.read_csv(BESIDE / "bfi_personality.csv").iloc[:900]


def personality_excel(path: Path) -> None:
    """Answers in words in a workbook: a title, a second sheet, a comment column, merged heads."""
    from openpyxl import Workbook

    frame = _bfi()
    rng = np.random.default_rng(3)
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Answers"
    sheet.append(["Personality survey"])
    sheet.merge_cells("A1:F1")
    sheet.append([])
    items = [name for name in frame.columns if len(name) == 2][:12]
    sheet.append(["Respondent", *items, "Gender", "Education", "Age", "Filled in", "Comment"])
    education = ("some school", "high school", "some college", "college", "graduate")
    for i, row in enumerate(frame.to_dict("records")):
        words = [None if np.isnan(row[k]) else _ANSWERS[int(row[k]) - 1] for k in items]
        level = row["education"]
        sheet.append([
            f"R-{i + 1:04d}", *words, "male" if row["gender"] == 1 else "female",
            None if np.isnan(level) else education[int(level) - 1], row["age"],
            datetime(2010, 5, 1, 8) + timedelta(hours=int(rng.integers(0, 5000))),
            "called back, no answer" if rng.random() < 0.02 else None,
        ])  # fmt: skip
    book.create_sheet("Notes").append(["collected in", 2010])
    book.save(path)


def personality_stata(path: Path) -> None:
    """The same with value labels in a Stata file."""
    import pyreadstat

    frame = _bfi().iloc[:, 5:28].astype(float)
    labels = {name: dict(enumerate(_ANSWERS, 1)) for name in frame.columns if len(name) == 2}
    labels["gender"] = {1: "male", 2: "female"}
    frame = frame.astype({"age": int, "gender": int})
    pyreadstat.write_dta(frame, str(path), variable_value_labels=labels)


def raters(path: Path) -> None:
    """A row for each user of a service, as JSON lines: keys that lack, dates with a clock."""
    with np.load(BESIDE / "movielens_small.npz") as file:
        user, item, rating, stamp = (file[k] for k in ("user", "item", "rating", "timestamp"))
        genres = file["genres"]
    rng = np.random.default_rng(4)
    lines = []
    for one in np.unique(user):
        own = user == one
        first = [str(genres[i]).split("|")[0] for i in item[own]]
        kinds, counts = np.unique(first, return_counts=True)
        began = datetime(1970, 1, 1) + timedelta(seconds=int(stamp[own].min()))
        row: dict[str, Any] = {
            "user": f"u{int(one):05d}", "n_ratings": int(own.sum()),
            "mean rating": round(float(rating[own].mean()), 3),
            "share of fives": round(float((rating[own] == 5).mean()), 4),
            "favourite": str(kinds[counts.argmax()]), "first seen": began.isoformat(),
            "hour": began.hour, "halves": bool((rating[own] % 1 > 0).any()),
            "device": str(rng.choice(["phone", "web", "tv"], p=[0.6, 0.3, 0.1])),
        }  # fmt: skip
        for key in ("device", "favourite"):
            if rng.random() < 0.1:
                del row[key]
        lines.append(json.dumps(row))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def geyser(path: Path) -> np.ndarray:
    """Eruptions: a packed TSV, units beside the numbers, footnotes, weekdays, hours."""
    frame = pd.read_csv(BESIDE / "old_faithful.csv")
    rng = np.random.default_rng(5)
    n = len(frame)
    moments = [datetime(1985, 8, 1) + timedelta(minutes=int(m))
               for m in np.cumsum(frame["waiting"])]  # fmt: skip
    marks = np.where(rng.random(n) < 0.04, "*", "")
    columns = {
        "Eruption": [f"{v:.2f} min{m}" for v, m in zip(frame["eruptions"], marks, strict=True)],
        "Waiting": _with_holes([f"{v} min" for v in frame["waiting"]], 0.05, "n/a", rng),
        "Seen at": [f"{m:%b %d, %Y %H:%M}" for m in moments],
        "Weekday": [f"{m:%a}" for m in moments],
        "Hour": [m.hour for m in moments],
        "Wind direction": rng.integers(0, 360, n),
        "Observer": rng.choice(["ranger", "visitor", "camera"], n, p=[0.5, 0.2, 0.3]),
        "Park": ["Yellowstone"] * n,
    }
    path.write_bytes(gzip.compress("\n".join(_lines(columns, "\t")).encode(), mtime=0))
    return (frame["eruptions"] > 3).to_numpy(int)


def wines(path: Path) -> np.ndarray:
    """Chemistry: ``sep=;``, a line of units, limits of detection, per cent, a total at the end."""
    frame = pd.read_csv(BESIDE / "wine27.csv")
    rng = np.random.default_rng(6)
    n = len(frame)
    malic = frame["Malic_Acid"].to_numpy()
    columns: dict[str, Sequence[Any]] = {
        "Sample": [f"W{i:03d}" for i in rng.permutation(n)],
        "Alcohol": [f"{_comma(v, 2)} %" for v in frame["Alcohol"]],
        "Malic acid": ["<1,0" if v < 1.0 else _comma(v, 2) for v in malic],
        "Proline": [f"{v:,.0f}".replace(",", ".") for v in frame["Proline"]]
        if "Proline" in frame else [_comma(v, 0) for v in frame.iloc[:, 25]],
        "Flavanoids": [_comma(v, 2) for v in frame["Flavanoids"]],
        "Color": _with_holes([_comma(v, 2) for v in frame["Color_Intensity"]], 0.05, "n.d.", rng),
        "Hue": [_comma(v, 2) for v in frame["Hue"]],
        "Tasted": [f"{d:%Y/%m/%d}" for d in _days(rng, date(1985, 1, 7), rng.integers(0, 300, n))],
        "Medal": rng.choice(["none", "bronze", "silver", "gold"], n, p=[0.6, 0.2, 0.15, 0.05]),
        "Price": [f"€ {_comma(v, 2)}" for v in np.exp(rng.normal(2.3, 0.4, n))],
    }  # fmt: skip
    head, *rows = _lines(columns, ";")
    units = ";%;g/l;mg/l;g/l;;;;;EUR"
    total = "Total;;;;;;;;;" + f"€ {_comma(1789.5, 2)}"
    path.write_text("\n".join(["sep=;", head, units, *rows, total]), encoding="utf-8-sig")
    return frame["Type"].astype("category").cat.codes.to_numpy()


def diabetes(path: Path) -> np.ndarray:
    """Glucose and insulin with units, American dates, insurance codes, negative money."""
    frame = pd.read_csv(BESIDE / "diabetes_reaven_miller.csv")
    rng = np.random.default_rng(7)
    n, sick = len(frame), (frame["class"] == "Overt").to_numpy()
    days = _days(rng, date(1978, 1, 1), rng.integers(0, 365, n))
    balance = rng.normal(0, 900, n)
    columns: dict[str, Sequence[Any]] = {
        "patient_id": rng.permutation(n) + 5000,
        "glucose": [f"{v} mg/dl" for v in frame["glucose"]],
        "insulin": _with_holes(frame["insulin"].tolist(), 0.06, "missing", rng),
        "sspg": ["<40" if v < 40 else ">400" if v > 400 else v for v in frame["sspg"]],
        "visit": [f"{d.month}/{d.day}/{d.year}" for d in days],
        "zip": [f"{z:05d}" for z in rng.choice([2139, 94305, 10027, 60637], n)],
        "balance": [f"(${-v:,.2f})" if v < 0 else f"${v:,.2f}" for v in balance],
        "family history": np.where(rng.random(n) < 0.2 + 0.5 * sick, "Y", "N"),
        "pain": rng.integers(1, 6, n),
        "glucose (2)": [f"{v} mg/dl" for v in frame["glucose"]],
        "note": [f"seen by {name}, ok" for name in _names(rng, n)],
        "unused": [""] * n,
    }
    path.write_text("\n".join(_lines(columns)) + "\n\n", encoding="utf-8")
    return frame["class"].astype("category").cat.codes.to_numpy()


def coffee(path: Path) -> np.ndarray:
    """Forty rows in UTF-16 with tabs: countries, per cent, two columns of one name."""
    frame = pd.read_csv(BESIDE / "coffee.csv")
    columns = {
        "Country": frame["Country"], "Water": [f"{v}%" for v in frame["Water"]],
        "Caffeine": frame["Caffeine"], "Fat": frame["Fat"], "pH": frame["pH_Value"],
        "Weight": [f"{v} g" for v in frame["Bean_Weight"]],
        "Acid": [v if i % 9 else "…" for i, v in enumerate(frame["Free_Acid"])],
    }  # fmt: skip
    head, *rows = _lines(columns, "\t")
    path.write_text("\n".join([head.replace("Acid", "Fat"), *rows]), encoding="utf-16")
    return frame["Variety"].astype("category").cat.codes.to_numpy()


def cancer(path: Path) -> np.ndarray:
    """A file of SPSS with labels, user-missing codes and a grade."""
    import pyreadstat

    frame = pd.read_csv(BESIDE / "wpbc.csv")
    rng = np.random.default_rng(8)
    n = len(frame)
    kept = frame[
        ["time", "mean_radius", "mean_texture", "SE_area", "worst_area", "tsize", "pnodes"]
    ]
    table = kept.assign(
        case=np.arange(n) + 1, status=(frame["status"] == "R").astype(float),
        grade=rng.integers(1, 4, n).astype(float),
        seen=[date(1984, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 3000, n)],
    )  # fmt: skip
    pyreadstat.write_sav(
        table, str(path),
        column_labels=["months", *kept.columns[1:], "case number", "outcome", "grade", "seen on"],
        variable_value_labels={"status": {0.0: "no recurrence", 1.0: "recurrence"},
                               "grade": {1.0: "low", 2.0: "medium", 3.0: "high"}},
    )  # fmt: skip
    return table["status"].to_numpy(int)


def vehicles(path: Path) -> np.ndarray:
    """Silhouettes as Feather: categories, a flag, times, whole numbers with holes."""
    import pyarrow as pa
    import pyarrow.feather as feather

    frame = pd.read_csv(BESIDE / "vehicle.csv")
    rng = np.random.default_rng(9)
    n = len(frame)
    table = frame[["Comp", "Circ", "D.Circ", "Scat.Ra", "Elong", "Max.L.Ra"]].copy()
    table["Comp"] = table["Comp"].where(rng.random(n) > 0.1).astype("Int64")
    table["camera"] = pd.Categorical(rng.choice(["left", "right", "top"], n))
    table["size"] = pd.Categorical(
        rng.choice(["S", "M", "L"], n), categories=["S", "M", "L"], ordered=True
    )
    table["indoors"] = pd.array(rng.random(n) < 0.3, dtype="boolean")
    table["at"] = pd.Timestamp("1986-06-01") + pd.to_timedelta(rng.integers(0, 10**6, n), unit="s")
    feather.write_feather(pa.Table.from_pandas(table, preserve_index=False), path)
    return frame["class"].astype("category").cat.codes.to_numpy()


MESSY: dict[str, Callable[[Path], np.ndarray | None]] = {
    "people.csv": people, "nhanes.csv": nhanes, "personality.xlsx": personality_excel,
    "personality.dta": personality_stata, "raters.jsonl": raters, "geyser.tsv.gz": geyser,
    "wines.csv": wines, "diabetes.csv": diabetes, "coffee.txt": coffee, "cancer.sav": cancer,
    "vehicles.feather": vehicles,
}  # fmt: skip


def write_messy(folder: Path, names: Sequence[str] = tuple(MESSY)) -> dict[str, np.ndarray | None]:
    """Write the files; by name the groups that are known, None if none are."""
    folder.mkdir(parents=True, exist_ok=True)
    return {name: MESSY[name](folder / name) for name in names}


if __name__ == "__main__":
    for name, truth in write_messy(Path(sys.argv[1])).items():
        print(name, "" if truth is None else f"{len(np.unique(truth))} known groups")
