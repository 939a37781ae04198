"""The result of ``select``: text, picture, table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mixfold.cli.tables import TableWriter
from mixfold.cli.terminal import open_console

_ROWS_SHOWN = 20
_FLOOR = (
    "at floor: a variance would have become zero, and the likelihood says how small its floor is; "
    "such a fit cannot be the best (--allow-degenerate lets it)"
)


def print_search(search: Any) -> None:
    """Print the settings, best first, and the winner in words."""
    console = open_console()
    console.print(_table(search))
    for line in _words(search):
        console.print(line)


def _order(search: Any) -> list[int]:
    import numpy as np

    deltas = np.nan_to_num(search.results_["delta"], nan=np.inf)
    return [int(i) for i in np.argsort(deltas, kind="stable")]


def _table(search: Any) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from mixfold.estimators.search.results import CRITERIA, WITH_ERRORS

    results, (column, _) = search.results_, CRITERIA[search.criterion]
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("model", min_width=18, overflow="fold")
    for name in ("size", "log-lik.", "params", search.criterion, "delta"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("note", min_width=9, max_width=13)
    order = _order(search)
    for i in order[:_ROWS_SHOWN]:
        value = _number(results[column][i])
        if search.criterion in WITH_ERRORS and value:
            error = _number(results[f"{column}_se"][i], 2)
            value = f"{_number(results[column][i], 4)} ± {error}"
        cells = [_number(results[name][i]) for name in ("log_likelihood", "n_parameters")]
        mark = "* " if i == search.best_index_ else "  "
        label, size = Text(mark + results["label"][i]), str(results["n_components"][i])
        cells += [value, _number(results["delta"][i], 3)]
        table.add_row(label, size, *cells, Text(_note(results, i)))
    hidden = len(order) - _ROWS_SHOWN
    table.caption = f"{hidden} more settings" if hidden > 0 else None
    return table


def _note(results: Any, i: int) -> str:
    if results["error"][i]:
        return "failed"
    parts = (
        "at floor" * bool(results["degenerate"][i]),
        "not converged" * (not results["converged"][i]),
    )
    return ", ".join(filter(None, parts))


def _number(value: float, digits: int = 6) -> str:
    return "" if value != value else f"{value:.{digits}g}"


def _words(search: Any) -> list[str]:
    from mixfold.estimators.search.results import describe_evidence

    results, best = search.results_, search.best_index_
    lines = [
        f"best by {search.criterion}: {_describe_setting(results, best)}, "
        f"{search.criterion} {search.best_score_:.6g}"
    ]
    others = [i for i in _order(search) if i != best and results["delta"][i] >= 0]
    if others:
        gap = float(results["delta"][others[0]])
        worth = f" ({describe_evidence(gap)} evidence)" if search.criterion == "bic" else ""
        lines.append(f"next: {_describe_setting(results, others[0])}, behind by {gap:.3g}{worth}")
    failed = [i for i, error in enumerate(results["error"]) if error]
    if failed:
        lines.append(f"{len(failed)} failed; the first: {results['error'][failed[0]]}")
    if (results["degenerate"] & (results["delta"] != results["delta"])).any():
        lines.append(_FLOOR)
    for size, p in zip(results["n_components"], results["p_value"], strict=True):
        if p == p:
            lines.append(f"test of {size} components against fewer: p = {p:.3g}")
    return lines + [f"! {words}" for words in search.notes_]


def _describe_setting(results: Any, i: int) -> str:
    size = int(results["n_components"][i])
    name, label = results["estimator"][i], results["label"][i]
    what = label if name in label else f"{name}, {label},"
    return f"{what} with {size} component{'s' * (size != 1)}"


def draw_search(search: Any, path: Path) -> None:
    """Write the curves of the criterion to a picture."""
    from matplotlib.figure import Figure

    from mixfold.plots import plot_search

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    plot_search(search, ax=figure.subplots())
    figure.savefig(path, dpi=150)


def write_table(search: Any, path: Path) -> None:
    """Write ``results_`` to a Parquet or CSV file."""
    columns = {name: values for name, values in search.results_.items() if name != "params"}
    for name, values in columns.items():
        if name.startswith("param_"):  # of several types
            columns[name] = [None if value is None else f"{value}" for value in values]
    with TableWriter(path) as writer:
        writer.write(columns)
