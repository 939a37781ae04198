"""The labelled tables of Yu (2006), chapter 7, and two others, and splits of their rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixfold.contracts import Array
from papers.frame.data import load_arrays
from papers.frame.experiment import DataFile


@dataclass(frozen=True, slots=True)
class SetFile:
    """Where a table is, and how many rows of each class are labelled by Yu (2006)."""

    file: DataFile
    shape: tuple[int, int]
    classes: int
    labelled: int
    text: bool = False


@dataclass(frozen=True, slots=True)
class Labelled:
    """Rows of unit length, dense or CSR, and their classes 0, 1, ..."""

    name: str
    X: Any
    y: Array


def _make_faces_set(
    file: str, shape: tuple[int, int], classes: int, labelled: int, origin: str
) -> SetFile:
    content = f"arrays X ({shape[0]} images x 1024, grey values of 32 x 32 pixels) and y (people)"
    return SetFile(DataFile(file, content, origin, optional=True), shape, classes, labelled)


def _make_words_set(file: str, shape: tuple[int, int], origin: str, classes: int = 20) -> SetFile:
    content = f"word counts as a CSR matrix of {shape[0]} x {shape[1]} (arrays data, indices, "
    content += f"indptr, shape) and y ({classes} topics)"
    return SetFile(DataFile(file, content, origin, optional=True), shape, classes, 5, text=True)


def _make_genes_set(file: str, shape: tuple[int, int], classes: int, origin: str) -> SetFile:
    content = f"arrays X ({shape[0]} samples x {shape[1]} genes) and y (kinds of tissue)"
    return SetFile(DataFile(file, content, origin, optional=True), shape, classes, 2)


SETS = {
    "Yale": _make_faces_set(
        "yale_faces_32x32.npz",
        (165, 1024),
        15,
        2,
        "the Yale Face Database (1997), crops of 32 x 32 pixels by D. Cai",
    ),
    "ORL": _make_faces_set(
        "orl_faces_32x32.npz",
        (400, 1024),
        40,
        2,
        "the ORL faces of AT&T Laboratories Cambridge (1994), crops by D. Cai",
    ),
    "YaleB": _make_faces_set(
        "yaleb_faces_32x32.npz",
        (2414, 1024),
        38,
        5,
        "the Extended Yale Face Database B (2001), frontal, crops by D. Cai",
    ),
    "PIE": _make_faces_set(
        "pie_faces_68x42_32x32.npz",
        (2856, 1024),
        68,
        5,
        "CMU PIE (2003), one near-frontal pose in 42 lights, crops of 32 x 32 pixels",
    ),
    "11 Tumours": _make_genes_set(
        "gene_su2001.npz", (174, 1571), 10, "Su et al. (2001), lung subtypes merged, genes filtered"
    ),
    "14 Tumours": _make_genes_set(
        "gene_ramaswamy2001.npz",
        (190, 1363),
        14,
        "Ramaswamy et al. (2001), tumours only, genes filtered",
    ),
    "Lung": _make_genes_set(
        "gene_lung_bhattacharjee2001.npz",
        (203, 1543),
        5,
        "Bhattacharjee et al. (2001), genes filtered",
    ),
    "TDT2": _make_words_set(
        "tdt2_top20.npz", (8741, 35452), "the 20 largest topics of NIST TDT2, counted by D. Cai"
    ),
    "20News": _make_words_set(
        "news20.npz",
        (18845, 25856),
        "20 Newsgroups, duplicates removed, words that occur five times or more",
    ),
    "Reuters": _make_words_set(
        "reuters5.npz",
        (3972, 7360),
        "Reuters-21578 (D. Lewis, 1997), articles with exactly one of five topics",
        5,
    ),
    "Digits": SetFile(
        DataFile(
            "optdigits.npz",
            "arrays X (5620 images x 64, counts of 8 x 8 blocks) and y (digits)",
            "optical digits of Alpaydin and Kaynak (UCI, 1998)",
            optional=True,
        ),
        (5620, 64),
        10,
        5,
    ),
}


def find_sets(names: tuple[str, ...], folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which of the sets are in the folder, and a note about each that is not."""
    found = tuple(name for name in names if (folder / SETS[name].file.name).is_file())
    gone = [name for name in names if name not in found]
    return found, tuple(
        f"{name} is left out: {SETS[name].file.name} is not in the data folder." for name in gone
    )


def load_set(name: str, folder: Path) -> Labelled:
    """A table as Yu (2006) uses it: tf-idf of words, every row of unit length.

    Raises
    ------
    ValueError
        If the file is damaged or is not the table of that name.
    """
    about = SETS[name]
    path = folder / about.file.name
    X, y = load_counts(path) if about.text else load_arrays(path, ("X", "y"))
    classes, codes = np.unique(y, return_inverse=True)
    if X.shape != about.shape or y.shape != X.shape[:1] or len(classes) != about.classes:
        raise ValueError(
            f"{str(path)!r} must hold X of shape {about.shape} and y of {about.classes} classes "
            f"for its rows; got {X.shape} and {len(classes)} classes of {y.shape} rows. Obtain it "
            "again."
        )
    return Labelled(
        name, weigh_by_tf_idf(X) if about.text else scale_to_unit_length(X.astype(float)), codes
    )


def scale_to_unit_length(X: Array) -> Array:
    """Rows of length one; a row of zeros stays."""
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X / np.where(lengths > 0, lengths, 1.0))


def load_counts(path: Path) -> tuple[Any, Array]:
    """Counts of words as CSR, and y, of a file that has both."""
    from scipy import sparse

    data, indices, indptr, shape, y = load_arrays(path, ("data", "indices", "indptr", "shape", "y"))
    return sparse.csr_matrix((data.astype(float), indices, indptr), shape=tuple(shape)), y


def weigh_by_tf_idf(X: Any) -> Any:
    """Rows of unit length, rare words weighted up."""
    from sklearn.feature_extraction.text import TfidfTransformer

    return TfidfTransformer().fit_transform(X)


# ------------------------------------------------ splits


def split_few_labelled(y: Array, each: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """``each`` rows of every class, and the others."""
    return _split_by_class(y, lambda size: each, rng)


def split_half_labelled(y: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Half of the rows of every class, and the others."""
    return _split_by_class(y, lambda size: size // 2, rng)


def _split_by_class(y: Array, count: Any, rng: np.random.Generator) -> tuple[Array, Array]:
    chosen = []
    for c in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == c))
        chosen.append(rows[: count(len(rows))])
    train = np.sort(np.concatenate(chosen))
    return train, np.setdiff1d(np.arange(len(y)), train)
