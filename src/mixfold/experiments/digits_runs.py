"""The images of twos and threes, and EM on them as source 003 ran it: its floor, its starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mixfold.contracts import Array, Block, Context, Update
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.sources import open_source
from mixfold.experiments.data import load_arrays
from mixfold.experiments.experiment import DataFile
from mixfold.families import GAUSSIAN
from mixfold.math.frame import plain_frame
from mixfold.math.seeding import lloyd
from mixfold.math.softmax import normalise
from mixfold.models.framed import FramedMixture
from mixfold.models.given import Given
from mixfold.models.mixture import MixtureParams, MixtureStats

DIGITS, PIXELS = (2, 3), 256
# Images of each digit in each part of the file.
PARTS = {"train": 300, "valid": 100, "test": 200}
# Least variance of a pixel, in the units of the images.
FLOOR = 0.01
# The constant of the random start: proportions c + U(0, 1), means off by s / c.
SPREAD = 1.0
LLOYD_STEPS = 5
IMAGES = DataFile(
    "toronto_digits_2_3.npz",
    "arrays X (1200 x 256, grey values 0 to 1 of 16 x 16 pixels), y (the digit, 2 or 3) and split "
    "('train', 'valid' or 'test': 300, 100 and 200 images of each digit)",
    "the assignments of the University of Toronto courses CSC411 and CSC2515 (digits.mat or "
    "digits.npz)",
)

# Images and number of components to means (K, D).
Means = Callable[[Array, int, np.random.Generator], Array]


def images(path: Path) -> dict[tuple[str, int], Array]:
    """The images by part and digit."""
    X, y, split = load_arrays(path, ("X", "y", "split"))
    if X.ndim != 2 or X.shape[1] != PIXELS or not y.shape == split.shape == X.shape[:1]:
        raise ValueError(
            f"{str(path)!r} must hold X of shape (n, {PIXELS}), y and split of shape (n,); got "
            f"{X.shape}, {y.shape} and {split.shape}. Obtain it again."
        )
    parts = {(p, d): X[(split == p) & (y == d)].astype(float) for p in PARTS for d in DIGITS}
    for (part, digit), rows in parts.items():
        if len(rows) != PARTS[part]:
            raise ValueError(
                f"{str(path)!r} must hold {PARTS[part]} images of the digit {digit} in the part "
                f"{part!r}; got {len(rows)}. Obtain it again."
            )
    return parts


def random_means(X: Array, K: int, rng: np.random.Generator) -> Array:
    """The mean of all images, off by their standard deviation."""
    noise = rng.standard_normal((K, X.shape[1]))
    return np.asarray(X.mean(axis=0) + X.std(axis=0) / SPREAD * noise)


def kmeans_means(X: Array, K: int, rng: np.random.Generator) -> Array:
    """A few steps of k-means from K of the images."""
    centres = X[rng.choice(len(X), K, replace=False)]
    return lloyd(X, np.ones(len(X)), centres, LLOYD_STEPS)[1]


def start(X: Array, K: int, means: Means, rng: np.random.Generator) -> Given:
    """Proportions that differ a little, some means, and twice the variance of all images."""
    proportions = SPREAD + rng.random(K)
    variances = np.maximum(2 * X.var(axis=0), FLOOR)
    return Given(proportions / proportions.sum(), means(X, K, rng), np.tile(variances, (K, 1)))


@dataclass(frozen=True)
class PlainMixture(FramedMixture):
    """EM as it stands in the formulas: a component that has hardly any images stays, and may get
    some again, where the library would move it."""

    def update(
        self, params: MixtureParams, stats: MixtureStats, context: Context
    ) -> Update[MixtureParams]:
        components, _ = self.family.estimate(stats.components, params.components)
        return Update(MixtureParams(self.mixing.posterior(stats.counts), components))


def model(K: int, given: Given | None = None) -> PlainMixture:
    """Diagonal Gaussians in the units of the data, so that the floor is a variance there."""
    family = GAUSSIAN["diag"](floor=FLOOR)
    return PlainMixture(K, family, given=given or Given(), frame=plain_frame(PIXELS))


def em(X: Array, K: int, means: Means, rng: np.random.Generator, n_steps: int) -> Fit:
    """Plain EM, so many steps of it."""
    plan = Plan(tol=0.0, max_iter=n_steps, n_candidates=1)
    return fit(model(K, start(X, K, means, rng)), open_source(X), ThreadExecutor(1), plan)


def log_density(params: MixtureParams, X: Array) -> Array:
    """Of each image under a mixture."""
    mixture = model(params.n_components)
    return normalise(mixture.log_joint(mixture.prepare(params), Block(X)))[0]


def error(two: MixtureParams, three: MixtureParams, twos: Array, threes: Array) -> float:
    """Percentage of images that the mixture of the other digit finds more probable."""
    wrong = [
        log_density(other, X) >= log_density(own, X)
        for own, other, X in ((two, three, twos), (three, two, threes))
    ]
    return 100 * float(np.mean(np.concatenate(wrong)))
