"""Mixed tables with holes beside StepMix and k-prototypes: held-out likelihood, and known groups.

Run ``python -m bench.mixed_tables``, with stepmix and kmodes installed and the data sets beside the
repository. Of each table a tenth of the entries is hidden and 30 % of the rows are held out. Both
libraries choose 1 to 6 components by BIC. Likelihoods are in units of the table: of numbers
densities (counts and days are numbers a step of 1 apart), of categories probabilities. StepMix has
diagonal Gaussians and categories, and is given the codes that the schema makes on the plain scale.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.metrics import adjusted_rand_score

from bench.messy_tables import write_messy
from mixfold import Mixture, MixtureSearch, Schema
from mixfold.schema.readers import read_table

TABLES = (
    "people.csv", "nhanes.csv", "raters.jsonl", "geyser.tsv.gz", "wines.csv", "diabetes.csv",
    "cancer.sav", "vehicles.feather",
)  # fmt: skip
_SIZES = range(1, 7)
_HIDDEN, _HELD_OUT, _MOST_ROWS = 0.1, 0.3, 700


def compare(path: Path, truth: np.ndarray | None, seed: int) -> dict[str, Any]:
    """Held-out log density per row, number of components, and adjusted Rand index of each."""
    rng = np.random.default_rng(seed)
    table = read_table(path).table
    rows = np.sort(rng.permutation(table.num_rows)[:_MOST_ROWS])
    table, known = table.take(rows), None if truth is None else np.asarray(truth)[rows]
    schema = Schema.infer(table)
    holed = _with_holes(table, schema, rng)
    test = rng.random(table.num_rows) < _HELD_OUT
    train, held = holed.filter(pa.array(~test)), holed.filter(pa.array(test))
    kinds = {"family": [schema, schema.with_covariance("diag")]}
    search = MixtureSearch(Mixture(schema), kinds, n_components=_SIZES, random_state=seed).fit(
        train
    )
    ours = search.best_estimator_
    found: dict[str, Any] = {
        "ours": ours.score(held), "our size": ours.n_components,
        "our ARI": _rand(known, ours.predict(holed)),
    }  # fmt: skip
    plain = Schema.from_text(schema.to_text())
    for column in plain.used:
        if column.scale != "plain":
            plain.set(column.name, scale="plain")
    found |= _stepmix(plain, train, held, holed, known, seed)
    found["k-prototypes ARI"] = _prototypes(plain, holed, known, seed)
    return found


def _with_holes(table: pa.Table, schema: Schema, rng: np.random.Generator) -> pa.Table:
    columns = {}
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        if name in schema.names:
            hide = pa.array(rng.random(len(column)) < _HIDDEN)
            empty = pa.nulls(len(column), column.type)
            column = pa.compute.if_else(hide, empty, column)
        columns[name] = column
    return pa.table(columns)


def _stepmix(
    schema: Schema, train: Any, held: Any, whole: Any, known: np.ndarray | None, seed: int
) -> dict[str, Any]:
    from stepmix.stepmix import StepMix

    X, new, all_rows = (schema.encode(table) for table in (train, held, whole))
    coded = np.array([column.has_levels for column in schema.used])
    order = np.concatenate([np.flatnonzero(~coded), np.flatnonzero(coded)])
    X, new, all_rows = X[:, order], new[:, order], all_rows[:, order]
    measurement: dict[str, Any] = {}
    if (~coded).any():
        measurement["numbers"] = {
            "model": "gaussian_diag_nan", "n_columns": int((~coded).sum())
        }  # fmt: skip
    if coded.any():
        measurement["codes"] = {
            "model": "categorical_nan", "n_columns": int(coded.sum()),
            "max_n_outcomes": max(len(c.levels) for c in schema.used if c.has_levels),
        }  # fmt: skip
    fits = []
    for k in _SIZES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = StepMix(
                k,
                measurement=measurement,
                n_init=3,
                random_state=seed,
                progress_bar=0,
                max_iter=500,
            ).fit(X)
            fits.append((fit.bic(X), k, fit))
    _, k, best = min(fits, key=lambda one: one[:2])
    return {
        "StepMix": float(best.score(new)), "StepMix size": k,
        "StepMix ARI": _rand(known, best.predict(all_rows)),
    }  # fmt: skip


def _prototypes(schema: Schema, table: Any, known: np.ndarray | None, seed: int) -> float:
    """With as many clusters as are known, holes filled by means and commonest codes."""
    from kmodes.kprototypes import KPrototypes

    coded = [j for j, column in enumerate(schema.used) if column.has_levels]
    if known is None or not coded or len(coded) == len(schema.used):
        return np.nan
    X = schema.encode(table)
    for j in range(X.shape[1]):
        lacks = np.isnan(X[:, j])
        if j in coded:
            X[lacks, j] = np.bincount(X[~lacks, j].astype(int)).argmax()
        else:
            X[lacks, j] = X[~lacks, j].mean()
            X[:, j] = (X[:, j] - X[:, j].mean()) / X[:, j].std()
    found = KPrototypes(len(np.unique(known)), n_init=3, random_state=seed)
    return _rand(known, found.fit_predict(X, categorical=coded))


def _rand(known: np.ndarray | None, labels: np.ndarray) -> float:
    return np.nan if known is None else float(adjusted_rand_score(known, labels))


def main(seed: int = 0) -> None:
    """Print the table of the documentation."""
    heads = ("ours", "StepMix", "our size", "StepMix size", "our ARI", "StepMix ARI",
             "k-prototypes ARI")  # fmt: skip
    print("| table | " + " | ".join(heads) + " |")
    with tempfile.TemporaryDirectory() as folder:
        for name, truth in write_messy(Path(folder), TABLES).items():
            found = compare(Path(folder) / name, truth, seed)
            cells = [f"{found[head]:.2f}" if "size" not in head else str(found[head])
                     for head in heads]  # fmt: skip
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
