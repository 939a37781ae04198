"""Customers as a file of a shop has them: names, money, dates, yes and no, question marks."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

_ROWS = 300
_CITIES = ("Rome", "Paris", "Oslo")
_NAMES = ("Ann", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gus", "Ida", "Jon", "Kim")


def run(console: Any, folder: Path) -> list[Path]:
    """Write the file, find its groups, and return its path and that of a report."""
    from mixfold import Mixture, MixtureSearch

    path, page = (folder / f"mixfold-demo-customers.{ending}" for ending in ("csv", "html"))
    path.write_text("\n".join(_lines()), encoding="utf-8")
    console.print(f"[bold]Customers[/bold]: {_ROWS} rows of {path.name}, read as they are")
    search = MixtureSearch(Mixture("auto"), n_components=range(1, 5), random_state=0).fit(path)
    groups = search.best_estimator_
    console.print(str(groups.schema_), markup=False)
    holes = sum(column.null_count for column in groups.impute(path).columns)
    console.print(
        f"{groups.n_components} groups, as BIC has it; after impute {holes} entries are missing."
    )
    search.report(path, path=page)
    return [path, page]


def _lines() -> list[str]:
    """Three kinds of customers, a few entries of whom nobody knows."""
    rng = np.random.default_rng(0)
    lines = ["id,name,age,income,visits,smoker,city,joined"]
    for i in range(_ROWS):
        k = int(rng.integers(0, 3))
        age = "?" if rng.random() < 0.08 else str(round(rng.normal((28, 45, 62)[k], 5)))
        income = f'"${np.exp(rng.normal((10.0, 10.9, 10.3)[k], 0.3)):,.0f}"'
        visits = "-" if rng.random() < 0.05 else str(rng.poisson((9, 3, 5)[k]))
        smoker = "yes" if rng.random() < (0.6, 0.1, 0.2)[k] else "no"
        city = _CITIES[k if rng.random() < 0.7 else int(rng.integers(0, 3))]
        joined = date(2016, 1, 1) + timedelta(days=int(rng.integers(0, 700)) + 700 * (k == 0))
        name = f"{_NAMES[int(rng.integers(0, 10))]} {chr(65 + i % 26)}. {i}"
        lines.append(f"{1001 + i},{name},{age},{income},{visits},{smoker},{city},{joined:%d.%m.%Y}")
    return lines
