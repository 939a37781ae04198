"""One layer of a factorisation, and what is summed over rows to learn it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixfold.contracts import Array, Stats, constant, record


@record
@dataclass(frozen=True, slots=True)
class Layer:
    """x ~ phi codebook + bias of codes phi = f(s), and softmax(phi classifier + intercept).

    Attributes
    ----------
    codebook : ndarray of shape (H, D)
    bias : ndarray of shape (D,)
    classifier : ndarray of shape (H, C) or None
        None: there is no head.
    intercept : ndarray of shape (C,) or None
    radius : float
        Bound of the norms of the rows of the codebook; infinite where there is none.
    """

    codebook: Array
    bias: Array
    classifier: Array | None = None
    intercept: Array | None = None
    radius: float = float("inf")

    @property
    def n_codes(self) -> int:
        return len(self.codebook)

    def head(self) -> tuple[Array, Array]:
        """Classifier and intercept; with no columns where there is no head."""
        if self.classifier is None or self.intercept is None:
            return np.zeros((self.n_codes, 0)), np.zeros(0)
        return self.classifier, self.intercept

    def without_head(self) -> Layer:
        """The same layer, whose codes no label moves."""
        return replace(self, classifier=None, intercept=None)


@record
@dataclass(frozen=True, slots=True)
class FactorizationParams:
    """A layer, and the lengths of the next steps of its codebook and its classifier (2,), which
    the rules of adaptive steps go on with."""

    layer: Layer
    steps: Array


@record
@dataclass(frozen=True)
class FactorizationSums(Stats):
    """Weighted sums over rows, with F = [phi 1].

    ``gram`` F'F (H + 1, H + 1) and ``cross`` F'(X - origin) (H + 1, D), missing entries as they are
    reconstructed; ``known`` F'F of the labelled rows, ``truth`` F'T of their one-hot labels
    (H + 1, C) and ``pull``, the linear term of the quadratic bound of their log loss (see
    ``math.softmax_regression``). ``squares`` are those of the observed residuals, ``loss`` the log
    loss, ``cost`` the sum of |s|. ``spread`` (the squares of X - origin) and ``ground`` are the
    constants that make the quadratic form of codebooks, and the bound of the log loss, complete.
    """

    gram: Array
    cross: Array
    known: Array
    truth: Array
    pull: Array
    squares: float
    loss: float
    cost: float
    spread: float
    ground: float
    weight: float
    origin: Array = constant()  # noqa: RUF009 (it makes a field)
