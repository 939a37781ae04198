"""A table as it comes
======================

A CSV file with holes and columns in odd units.

How many groups are there? What stood in the holes? Which rows look odd? Run it with ::

    python examples/messy_table.py
"""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

import numpy as np

from mixfold import GaussianMixture, load

COLUMNS = ("length_mm", "width_mm", "mass_kg", "age_days")


def flowers(rng: np.random.Generator, n: int = 1200) -> np.ndarray:
    """Three kinds, each with its own size and its own relation between the columns."""
    kind = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    length = np.array([40.0, 55.0, 60.0])[kind] + 3 * rng.normal(size=n)
    width = np.array([0.5, 0.3, 0.6])[kind] * length + 1.5 * rng.normal(size=n)
    mass = 2e-6 * length * width + 2e-4 * rng.normal(size=n)
    age = np.array([400.0, 900.0, 700.0])[kind] + 60 * rng.normal(size=n)
    return np.column_stack([length, width, mass, age])


def write_csv(path: Path, X: np.ndarray) -> None:
    """An empty field is a missing entry."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows([["" if np.isnan(v) else repr(float(v)) for v in row] for row in X])


def choose(path: Path, sizes: range) -> GaussianMixture:
    """The mixture of lowest BIC. Files are read in pieces; no imputation comes before."""
    fits = [GaussianMixture(k, random_state=0).fit(path) for k in sizes]
    print("components    BIC")
    for mixture in fits:
        print(f"{mixture.n_components:10d}    {mixture.bic():.1f}")
    return min(fits, key=lambda mixture: mixture.bic())


def main(folder: Path) -> None:
    rng = np.random.default_rng(0)
    truth = flowers(rng)
    holes = rng.random(truth.shape) < 0.15
    table = folder / "flowers.csv"
    write_csv(table, np.where(holes, np.nan, truth))

    mixture = choose(table, range(1, 6))
    print(f"\nBIC chooses {mixture.n_components} groups; their means:")
    print("   weight" + "".join(f"{name:>12}" for name in mixture.feature_names_in_))
    for weight, mean in zip(mixture.weights_, mixture.means_, strict=True):
        print(f"{weight:9.2f}" + "".join(f"{value:12.4g}" for value in mean))

    # Expected values of the holes, given what else is known of the row; 'draw' gives one of many.
    complete = mixture.impute(table)
    scale = truth.std(axis=0)
    means = np.where(holes, np.nanmean(np.where(holes, np.nan, truth), axis=0), truth)
    for name, filled in (("column means", means), ("this mixture", complete)):
        error = np.sqrt(np.mean(((filled - truth) / scale)[holes] ** 2))
        print(f"error of the filled entries, {name}: {error:.2f} standard deviations")

    odd = np.argsort(mixture.score_samples(table))[:3]
    print(f"the rows that look oddest: {odd.tolist()}")

    mixture.save(folder / "flowers.mixfold")  # numbers and words, no code
    same = load(folder / "flowers.mixfold")
    assert np.array_equal(same.predict(table), mixture.predict(table))
    print("saved, loaded, and the same")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
