"""Wines by their chemistry: three bottles of each kind are labelled, and entries are hidden."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mixfold.contracts import Array

_PER_KIND, _CHOICES, _HIDDEN = 3, 10, 0.1
_NAMES = ("barolo", "grignolino", "barbera")


def run(console: Any, folder: Path) -> list[Path]:
    """Fit, print what was found, and return the path of a picture."""
    X, kinds = _load()
    console.print(
        f"[bold]Italian wines[/bold]: {len(X)} bottles, {X.shape[1]} measurements, "
        f"{np.isnan(X).mean():.0%} of them hidden; the grape of {_PER_KIND} bottles of each kind "
        "is known"
    )
    shares = np.array([_shares(X, kinds, choice) for choice in range(_CHOICES)])
    console.print(_compare_accuracy(shares))
    known = _label_some_bottles(kinds, 0)
    model = _fit(X, known)
    console.print(_least_sure(model, X, kinds, known))
    path = folder / "mixfold-demo-wines.png"
    _draw(model, X, known, path)
    return [path]


def _load() -> tuple[Array, Array]:
    """Standardised columns with holes, and the grapes."""
    from sklearn.datasets import load_wine

    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X[np.random.default_rng(0).random(X.shape) < _HIDDEN] = np.nan
    return X, np.array(_NAMES, dtype=object)[y]


def _label_some_bottles(kinds: Array, choice: int) -> Array:
    """The grapes of a few bottles of each kind, None for all the others."""
    rng = np.random.default_rng(choice)
    known = np.full(len(kinds), None, dtype=object)
    for name in _NAMES:
        some = rng.choice(np.flatnonzero(kinds == name), _PER_KIND, replace=False)
        known[some] = name
    return known


def _fit(X: Array, known: Array) -> Any:
    from mixfold import SupervisedPPCA

    return SupervisedPPCA(2, random_state=0).fit(X, known)


def _shares(X: Array, kinds: Array, choice: int) -> tuple[float, float]:
    """Shares of the other bottles that are told right, by all bottles and by the labelled alone."""
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    known = _label_some_bottles(kinds, choice)
    seen = known != None  # noqa: E711 (entry by entry)
    alone = make_pipeline(SimpleImputer(), LogisticRegression()).fit(X[seen], kinds[seen])
    ours = _fit(X, known).predict(X[~seen]) == kinds[~seen]
    theirs = alone.predict(X[~seen]) == kinds[~seen]
    return float(ours.mean()), float(theirs.mean())


def _compare_accuracy(shares: Array) -> str:
    ours, theirs = shares.mean(axis=0)
    return (
        f"SupervisedPPCA with two factors, which looks at all bottles, tells {ours:.0%} of the "
        f"others right; logistic regression on the {3 * _PER_KIND} labelled ones {theirs:.0%} "
        f"(means of {_CHOICES} choices of bottles)."
    )


def _least_sure(model: Any, X: Array, kinds: Array, known: Array) -> str:
    """Whether a mistake can be seen coming."""
    others = np.flatnonzero(known == None)  # noqa: E711
    sure = model.predict_proba(X[others]).max(axis=1)
    right = model.predict(X[others]) == kinds[others]
    half = sure >= np.median(sure)
    return (
        f"It says how sure it is: of the surer half it tells {right[half].mean():.0%} right, of "
        f"the other {right[~half].mean():.0%}."
    )


def _draw(model: Any, X: Array, known: Array, path: Path) -> None:
    from matplotlib.figure import Figure

    from mixfold.plots import plot_discriminant

    figure = Figure(figsize=(6.6, 4.8), layout="constrained")
    ax = figure.subplots()
    plot_discriminant(model, X, known, ax=ax)
    labelled = np.flatnonzero(known != None)  # noqa: E711
    at = model.transform(X[labelled])
    ax.scatter(at[:, 0], at[:, 1], s=70, facecolors="none", edgecolors="0.1", linewidths=1.4)
    ax.set_title("Two factors of all bottles; circles: those whose grape is known", fontsize=10)
    figure.savefig(path, dpi=100)
