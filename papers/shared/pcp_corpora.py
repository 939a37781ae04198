"""The two corpora of Yu (2006), chapter 9."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixfold.contracts import Array
from papers.frame.data import load_arrays
from papers.frame.experiment import DataFile
from papers.shared.labelled_sets import load_counts

# one document of so many is held out, or taken by a quick variant
HELD_OUT, QUICK_SHARE = 10, 3


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """Where a corpus is, and what it must hold."""

    file: DataFile
    shape: tuple[int, int]
    classes: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """Counts of words (CSR), the class 0, 1, ... of each document, and what they are called."""

    name: str
    X: Any
    y: Array
    classes: tuple[str, ...]
    words: tuple[str, ...]

    def some(self, share: int, rng: np.random.Generator) -> Corpus:
        """One document of ``share``, drawn; words that are left out stay as empty columns."""
        rows = np.sort(rng.permutation(len(self.y))[: len(self.y) // share])
        return Corpus(self.name, self.X[rows], self.y[rows], self.classes, self.words)


def _make_corpus_file(name: str, shape: tuple[int, int], classes: int, origin: str) -> CorpusFile:
    content = f"word counts as a CSR matrix of {shape[0]} x {shape[1]} (arrays data, indices, "
    content += f"indptr, shape), y ({classes} topics), their names and vocab"
    return CorpusFile(DataFile(name, content, origin, optional=True), shape, classes)


CORPORA = {
    "Reuters": _make_corpus_file(
        "reuters5.npz",
        (3972, 7360),
        5,
        "Reuters-21578, articles about one of money-fx, interest, ship, acq, grain; stemmed, words "
        "of two articles or more",
    ),
    "Newsgroup": _make_corpus_file(
        "newsgroup4.npz",
        (3979, 7645),
        4,
        "20 Newsgroups, rec.autos, rec.motorcycles, rec.sport.baseball and rec.sport.hockey; "
        "stemmed, words of five posts or more",
    ),
}
FILES = tuple(about.file for about in CORPORA.values())


def find_corpora(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which corpora are in the folder, and a note about each that is not."""
    found = tuple(name for name, about in CORPORA.items() if (folder / about.file.name).is_file())
    gone = [name for name in CORPORA if name not in found]
    return found, tuple(
        f"{name} is left out: {CORPORA[name].file.name} is not in the data folder." for name in gone
    )


def load_corpus(name: str, folder: Path) -> Corpus:
    """Counts and classes of a corpus.

    Raises
    ------
    ValueError
        If the file is damaged or is not the corpus of that name.
    """
    about = CORPORA[name]
    path = folder / about.file.name
    X, y = load_counts(path)
    classes, codes = np.unique(y, return_inverse=True)
    if X.shape != about.shape or y.shape != X.shape[:1] or len(classes) != about.classes:
        raise ValueError(
            f"{str(path)!r} must hold counts of shape {about.shape} and y of {about.classes} "
            f"classes for its rows; got {X.shape} and {len(classes)} classes of {y.shape} rows. "
            "Obtain it again."
        )
    names, words = load_arrays(path, ("names", "vocab"))
    return Corpus(name, X, codes, tuple(map(str, names)), tuple(map(str, words)))


def split_held_out(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows that train and the tenth that is kept from them."""
    order = rng.permutation(n)
    size = n // HELD_OUT
    return order[size:], order[:size]
