"""Texts and genes with several labels each, and how their rows and labels are divided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.experiments.data import load_arrays
from mixfold.experiments.experiment import DataFile
from mixfold.experiments.labelled_sets import counts, tf_idf, unit_rows

FOLDS = 5
# of the labels, the share that a projection may learn from
SHARE = 0.7


@dataclass(frozen=True, slots=True)
class Tagged:
    """Rows of unit length, dense or CSR, and which labels each has, (N, L) of 0 and 1."""

    X: Any
    Y: Array


@dataclass(frozen=True, slots=True)
class TagFile:
    """Where a table is, and how its rows are compared.

    Attributes
    ----------
    file : DataFile
    shape : tuple of int
        Rows, columns, labels.
    kernel : dict
        Of the rows, as parameters of an estimator.
    correlation : float
        Regularisation of kernel CCA.
    text : bool
        Word counts in CSR form, which become tf-idf.
    """

    file: DataFile
    shape: tuple[int, int, int]
    kernel: dict[str, Any]
    correlation: float
    text: bool = False


TEXTS = DataFile(
    "reuters_multilabel.npz",
    "word counts as a CSR matrix of 1651 x 4809 (arrays data, indices, indptr, shape) and y (47 "
    "topics of 0 and 1 for each)",
    "Reuters-21578, the articles of the ModApte split that have more than one topic, the 47 most "
    "frequent topics among them, words of two articles or more",
    optional=True,
)
GENES = DataFile(
    "yeast.npz",
    "arrays X (2417 genes x 103) and y (14 labels of 0 and 1 for each)",
    "the yeast genes of A. Elisseeff and J. Weston (2001), as MULAN has them",
    optional=True,
)
TAGGED = {
    "Reuters": TagFile(TEXTS, (1651, 4809, 47), {"kernel": "linear"}, 0.9, text=True),
    # of the widths 0.3, 1, 3 and 10 this serves a machine on all columns well in both measures
    "Yeast": TagFile(GENES, (2417, 103, 14), {"kernel": "rbf", "gamma": 1.0}, 0.3),
}


def load_tagged(name: str, folder: Path) -> Tagged:
    """A table of ``TAGGED``: tf-idf of words, every row of unit length.

    Raises
    ------
    ValueError
        If the file is damaged or is not the table of that name.
    """
    about = TAGGED[name]
    path = folder / about.file.name
    X, Y = counts(path) if about.text else load_arrays(path, ("X", "y"))
    rows, columns, labels = about.shape
    if X.shape != (rows, columns) or Y.shape != (rows, labels):
        raise ValueError(
            f"{str(path)!r} must hold X of shape {(rows, columns)} and y of shape "
            f"{(rows, labels)}; got {X.shape} and {Y.shape}. Obtain it again."
        )
    return Tagged(tf_idf(X) if about.text else unit_rows(X.astype(float)), Y.astype(int))


# ------------------------------------------------ which rows and labels are whose


@dataclass(frozen=True, slots=True)
class Division:
    """Labels that the projection learns from and new ones; rows that it sees and the others.

    ``parts`` are those other rows in five: in setting II each learns the new labels in turn, and
    the other four are its test rows.
    """

    known: Array
    new: Array
    train: Array
    unseen: Array
    parts: tuple[Array, ...]

    def lessons(self, limit: int) -> Iterator[tuple[Array, Array]]:
        """(training rows, test rows) of setting II, of ``limit`` parts at most."""
        for part in self.parts[:limit]:
            yield part, np.setdiff1d(self.unseen, part)


def divisions(shape: tuple[int, ...], folds: int, rng: np.random.Generator) -> list[Division]:
    """Labels are drawn once; then each of the first ``folds`` of five folds trains in turn."""
    n_rows, n_labels = shape
    labels = rng.permutation(n_labels)
    several = round(SHARE * n_labels)
    known, new = np.sort(labels[:several]), np.sort(labels[several:])
    divided = []
    for train in np.array_split(rng.permutation(n_rows), FOLDS)[:folds]:
        unseen = np.setdiff1d(np.arange(n_rows), train)
        parts = tuple(np.array_split(rng.permutation(unseen), FOLDS))
        divided.append(Division(known, new, np.sort(train), unseen, parts))
    return divided
