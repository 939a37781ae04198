"""Handwritten digits as Arngren (2007) takes them: some of each class to learn from, others to ask.

Arngren has 1,000 digits of each class for the test, which the official test part does not hold;
so there are two tests, the next digits of the official training part and the official test part.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mixfold.contracts import Array
from papers.frame.data import load_arrays
from papers.frame.experiment import DataFile

PIXELS, SHAPE, CLASSES = 784, (28, 28), 10
FILE = DataFile(
    "mnist.npz",
    "arrays X (images x 784, grey values 0 to 255 of 28 x 28 pixels), y (the digit, 0 to 9) and "
    "n_train (so many of the first images are the official training part, the others its test)",
    "the MNIST database of handwritten digits of Y. LeCun, C. Cortes and C. J. C. Burges (1998)",
)


@dataclass(frozen=True, slots=True)
class Labelled:
    """Some images, values from 0 to 1, and their digits."""

    X: Array
    y: Array

    def first(self, size: int | None) -> Labelled:
        """The first so many; all with None."""
        return Labelled(self.X[:size], self.y[:size])

    def by_class(self, size: int) -> dict[int, Array]:
        """The first so many images of each digit."""
        return {digit: self.X[self.y == digit][:size] for digit in range(CLASSES)}


@dataclass(frozen=True, slots=True)
class Size:
    """How many digits of each class are learned from and held out, how many official ones asked."""

    train: int
    held_out: int
    official: int | None


FULL = Size(1000, 1000, None)
QUICK = Size(150, 100, 1000)


@dataclass(frozen=True, slots=True)
class Digits:
    """The images of both official parts."""

    training: Labelled
    official: Labelled

    def each(self, first: int, last: int) -> Labelled:
        """Of the training part the digits ``first:last`` of each class, in the order of the file.

        Examples
        --------
        >>> X, y = np.arange(8.0)[:, None], np.array([1, 0, 0, 1, 1, 0, 0, 1])
        >>> few = Digits(Labelled(X, y), Labelled(X, y)).each(1, 3)
        >>> few.X.ravel().astype(int).tolist(), few.y.tolist()
        ([2, 3, 4, 5], [0, 1, 1, 0])
        """
        y = self.training.y
        rows = [np.flatnonzero(y == digit)[first:last] for digit in np.unique(y)]
        short = [int(d) for d, mine in zip(np.unique(y), rows, strict=True)
                 if len(mine) < last - first]  # fmt: skip
        if short:
            raise ValueError(
                f"{FILE.name} must hold {last} training images of each digit; there are fewer of "
                f"{', '.join(map(str, short))}. Obtain it again."
            )
        chosen = np.sort(np.concatenate(rows))
        return Labelled(self.training.X[chosen], y[chosen])


def load_digits(folder: Path, dtype: type = np.float64) -> Digits:
    """Both parts of the file; an error tells what is wrong with it."""
    path = folder / FILE.name
    X, y, size = load_arrays(path, ("X", "y", "n_train"))
    parts = int(size) if np.ndim(size) == 0 else -1
    digits = np.unique(y).tolist() == list(range(CLASSES)) if np.ndim(y) == 1 else False
    if X.shape != (len(y), PIXELS) or not digits or not 0 < parts < len(y):
        raise ValueError(
            f"{str(path)!r} must hold X of shape (n, {PIXELS}), y of the digits 0 to 9 and n_train "
            f"between 0 and n; got {X.shape}, {y.shape} and {size!r}. Obtain it again."
        )
    scaled = X.astype(dtype) / dtype(255)
    return Digits(Labelled(scaled[:parts], y[:parts]), Labelled(scaled[parts:], y[parts:]))
