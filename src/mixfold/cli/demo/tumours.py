"""Breast tumours, measured under a microscope, with entries hidden at random."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mixfold.contracts import Array

_COLUMNS = ("radius", "texture", "smoothness", "compactness", "concave points", "symmetry")
_SHOWN = (0, 4)
_HIDDEN = 0.15
_COLORS = ("#1b6ca8", "#d1495b", "#3a7d44", "#8e6c8a", "#c98b2b", "#555555")


def run(console: Any, folder: Path) -> list[Path]:
    """Fit, print what was found, and return the paths of a picture and of a report."""
    complete, malignant = _load()
    X = _hide(complete)
    console.print(
        f"[bold]Breast tumours[/bold]: {len(X)} rows, {len(_COLUMNS)} columns, "
        f"{np.isnan(X).mean():.0%} of the entries hidden at random"
    )
    table = _name_columns(X)
    search = _search(table)
    model = search.best_estimator_
    labels = model.predict(table)
    console.print(_groups(model, labels, malignant))
    console.print(_hidden_entries(model, table, complete, labels))
    path, page = (folder / f"mixfold-demo-{name}" for name in ("tumours.png", "report.html"))
    _draw(search, X, table, labels, path)
    diagnosis = np.where(malignant, "malignant", "benign")  # to compare with, not to learn from
    return [path, search.report(table, diagnosis, path=page)]


def _name_columns(X: Array) -> Any:
    """The columns with their names."""
    import pyarrow as pa

    return pa.table({name: X[:, j] for j, name in enumerate(_COLUMNS)})


def _search(table: Any) -> Any:
    from mixfold import GaussianMixture, MixtureSearch

    kinds = {"covariance_type": ["full", "tied"]}
    search = MixtureSearch(GaussianMixture(), kinds, n_components=range(1, 7), random_state=0)
    return search.fit(table)


def _load() -> tuple[Array, Array]:
    from sklearn.datasets import load_breast_cancer

    table = load_breast_cancer()
    names = list(table.feature_names)
    picked = [names.index(f"mean {name}") for name in _COLUMNS]
    return table.data[:, picked], table.target == 0


def _hide(complete: Array) -> Array:
    """A copy with missing entries; every row keeps at least one."""
    X = complete.copy()
    rng = np.random.default_rng(0)
    hidden = rng.random(X.shape) < _HIDDEN
    hidden[hidden.all(axis=1), 0] = False
    X[hidden] = np.nan
    return X


def _groups(model: Any, labels: Array, malignant: Array) -> Any:
    from rich.table import Table

    kind = model.covariance_type
    table = Table(
        title=f"{len(model.weights_)} groups, {kind} covariances (lowest BIC)", title_justify="left"
    )
    for head in ("group", "weight", "rows", "malignant", *(f"mean {c}" for c in _COLUMNS[:2])):
        table.add_column(head, justify="right")
    for k, weight in enumerate(model.weights_):
        rows = labels == k
        share = f"{malignant[rows].mean():.0%}" if rows.any() else "-"
        centre = [f"{value:.1f}" for value in model.means_[k, :2]]
        table.add_row(str(k), f"{weight:.2f}", str(rows.sum()), share, *centre)
    table.caption = "The diagnosis was not used in the fit."
    return table


def _hidden_entries(model: Any, table: Any, complete: Array, labels: Array) -> str:
    """How close the imputed entries come, and whether the gaps changed a row's group."""
    X = np.column_stack([table[name] for name in _COLUMNS])
    hidden, scale = np.isnan(X), complete.std(axis=0)

    def error(filled: Array) -> float:
        return float(np.sqrt(np.mean(((filled - complete) / scale)[hidden] ** 2)))

    means = np.where(hidden, np.nanmean(X, axis=0), X)
    ours = error(model.impute(table))
    same = np.mean(model.predict(_name_columns(complete)) == labels)
    return (
        "Error of the hidden entries (root mean square, in standard deviations of the column): "
        f"{error(means):.2f} with column means, {ours:.2f} with the mixture.\n"
        f"{same:.0%} of the rows are put where the mixture puts them when nothing is hidden."
    )


def _draw(search: Any, X: Array, table: Any, labels: Array, path: Path) -> None:
    from matplotlib.figure import Figure

    from mixfold.plots import plot_ellipses, plot_search

    figure = Figure(figsize=(10, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    model = search.best_estimator_
    _scatter(left, model.impute(table), np.isnan(X), labels)
    plot_ellipses(model, columns=_SHOWN, colors=_COLORS, ax=left)
    left.set_title("Groups found (ellipses: 2 standard deviations)", fontsize=11)
    plot_search(search, ax=right)
    kind, size = model.covariance_type, len(model.weights_)
    right.set_title(f"BIC chooses {size} groups, {kind} covariances", fontsize=11)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def _scatter(ax: Any, filled: Array, missing: Array, labels: Array) -> None:
    """Rows in the plane of two columns; hollow where one of the two had to be imputed."""
    i, j = _SHOWN
    guessed = missing[:, i] | missing[:, j]
    colors = np.array(_COLORS)[labels % len(_COLORS)]
    ax.scatter(filled[~guessed, i], filled[~guessed, j], s=11, c=colors[~guessed], alpha=0.75, lw=0)
    ax.scatter(
        filled[guessed, i],
        filled[guessed, j],
        s=18,
        facecolors="none",
        edgecolors=colors[guessed],
        linewidths=0.8,
    )
    for size, face, text in ((11, "0.3", "both entries known"), (18, "none", "an entry imputed")):
        ax.scatter([], [], s=size, facecolors=face, edgecolors="0.3", label=text)
    ax.legend(frameon=False, loc="upper left", fontsize=9)
    ax.set_xlabel(f"mean {_COLUMNS[i]}")
    ax.set_ylabel(f"mean {_COLUMNS[j]}")
