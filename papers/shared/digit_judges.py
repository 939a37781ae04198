"""How good generated images of a class are: recognised, unlike each other, and near all real ones.

Each of the three can be had without the others: the mean of a class is recognised but always the
same, real images with noise differ but are not recognised, and a few good images are both but
near few of the real ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array

# axes and settings of the judge, a support vector machine with a Gaussian kernel
AXES, COST, WIDTH = 40, 5.0, 0.02
# a real image is covered if a generated one is nearer than its so-manieth real neighbour
NEIGHBOUR = 5


@dataclass(frozen=True, slots=True)
class Quality:
    """Shares of recognised images and of covered real ones, and relative diversity."""

    recognised: float
    diversity: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Judge:
    """A classifier of real images that no generator has seen."""

    classifier: Any

    def right(self, X: Array, y: Array) -> float:
        """The share of images that get their class."""
        return float(np.mean(self.classifier.predict(X) == y))


def train_judge(X: Array, y: Array) -> Judge:
    """A judge that learned from these images."""
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    size = min(AXES, len(X) - 1, X.shape[1])
    # the start of the solver is random, the axes are not: a seed makes it repeatable
    steps = make_pipeline(PCA(size, random_state=0), SVC(C=COST, gamma=WIDTH))
    return Judge(steps.fit(X, y))


def judge_images(judge: Judge, made: Mapping[int, Array], real: Mapping[int, Array]) -> Quality:
    """Judge generated images by class, beside real ones that neither side has seen.

    Parameters
    ----------
    judge : Judge
    made, real : mapping of class to ndarray of shape (n, D)
        As many of the one as of the other; values outside 0 to 1 are cut, as on paper.
    """
    cut = {label: np.clip(images, 0.0, 1.0) for label, images in made.items()}
    share = measure_recognised(judge, cut)
    diversity = np.mean([measure_spread(cut[label]) / measure_spread(real[label]) for label in cut])
    covered = [measure_coverage(cut[label], real[label]) for label in cut]
    return Quality(share, float(diversity), float(np.mean(covered)))


def measure_recognised(judge: Judge, made: Mapping[int, Array]) -> float:
    """The share of images, by class, that the judge gives their class."""
    names = np.repeat(list(made), [len(images) for images in made.values()])
    return judge.right(np.concatenate(list(made.values())), names)


def measure_spread(X: Array) -> float:
    """Mean distance of two different rows.

    Examples
    --------
    >>> measure_spread(np.array([[0.0], [3.0], [6.0]]))
    4.0
    """
    from scipy.spatial.distance import pdist

    return float(pdist(X).mean())


def measure_coverage(made: Array, real: Array, neighbour: int = NEIGHBOUR) -> float:
    """Share of real rows with a made one nearer than their ``neighbour``-th real one.

    Examples
    --------
    >>> real = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> measure_coverage(np.array([[0.5], [1.9]]), real, 1)
    0.75
    """
    from scipy.spatial.distance import cdist

    among = np.sort(cdist(real, real), axis=1)  # the first is the row itself
    radius = among[:, min(neighbour, len(real) - 1)]
    return float(np.mean(cdist(real, made).min(axis=1) < radius))
