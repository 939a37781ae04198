"""New digits out of parts
==========================

A codebook of strokes: one stroke of each group, or as a density of the sources draws them.

Non-negative matrix factorisation writes images of one digit as sums of parts. Parts that are alike
are put into one group; a new image is the sum of one part of each group, chosen at random. So no
two strokes that stand for each other are drawn together, and that is all that the generator knows:
what goes with what it does not, as the picture shows. At most as many images can come out as there
are choices; their mean is the sum of the centres of the groups, and their covariance the sum of the
covariances within groups.

A mixture of Gaussians on the sources of the same factorisation knows what goes with what, and its
draws, decoded, are nearer to the digits. ::

    python examples/codebook_digits.py
    python examples/codebook_digits.py --digit 5 --groups 6

It writes codebook-digits.png to the working directory.
"""

from __future__ import annotations

import argparse

import matplotlib
import numpy as np
from sklearn.datasets import load_digits

from mixfold import GaussianMixture, LatentDensity, MatrixFactorization, sample_codebook
from mixfold.plots import plot_images

matplotlib.use("agg")
import matplotlib.pyplot as plt

SHAPE = (8, 8)
PARTS, DRAWN = 30, 2000


def make_parts(n_parts: int) -> MatrixFactorization:
    """Parts that are added, in amounts that are not negative either."""
    signs = {"nonneg_codebook": True, "nonneg_sources": True}
    return MatrixFactorization(n_parts, link="identity", fit_bias=False, random_state=0, **signs)


def strengths(sources: np.ndarray) -> np.ndarray:
    """How much of each part there is where it is used."""
    return (sources**2).sum(axis=0) / sources.sum(axis=0)


def moments(parts: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of all images that can be generated: choices are independent."""
    mean, covariance = np.zeros(parts.shape[1]), np.zeros((parts.shape[1],) * 2)
    for k in np.unique(groups):
        members = parts[groups == k]
        mean += members.mean(axis=0)
        covariance += np.cov(members.T, bias=True)
    return mean, covariance


def n_choices(groups: np.ndarray) -> int:
    return int(np.prod(np.unique(groups, return_counts=True)[1]))


def nearest(images: np.ndarray, X: np.ndarray) -> float:
    """Mean distance of images from the nearest one of the data."""
    squares = (images**2).sum(axis=1)[:, None] - 2 * images @ X.T + (X**2).sum(axis=1)
    return float(np.sqrt(squares.min(axis=1)).mean())


def sheet(parts: np.ndarray, groups: np.ndarray, *images: np.ndarray) -> None:
    """The codebook, group after group; images by both generators; and images of the data."""
    order = np.argsort(groups, kind="stable")
    letters = [chr(ord("A") + k) for k in groups[order]]
    titles = ("one part of each group, added", "sources of a mixture, decoded",
              "images of the data")  # fmt: skip
    figure, axes = plt.subplots(1, 4, figsize=(17, 5), layout="constrained")
    top = float(images[-1].max())
    plot_images(parts[order], SHAPE, titles=letters, columns=6, cmap="gray_r", ax=axes[0])
    axes[0].set_title(f"{len(parts)} parts in the groups A to {letters[-1]}", pad=20)
    for title, some, ax in zip(titles, images, axes[1:], strict=True):
        plot_images(some[:25], SHAPE, columns=5, scale=(0.0, top), cmap="gray_r", ax=ax)
        ax.set_title(title)
    figure.savefig("codebook-digits.png", dpi=100, bbox_inches="tight")
    plt.close(figure)


def main(digit: int, n_groups: int) -> None:
    data = load_digits()
    X = data.data[data.target == digit]
    # how much of each part there is: a mixture of Gaussians
    density = GaussianMixture(10, covariance_type="tied")
    model = LatentDensity(make_parts(PARTS), density, random_state=0).fit(X)
    amounts = strengths(model.transform(X))
    drawn = sample_codebook(model.reducer_, DRAWN, n_groups, amounts=amounts, random_state=0)
    parts, groups, new = amounts[:, None] * model.reducer_.components_, drawn.groups, drawn.X
    print(f"{len(X)} images of the digit {digit}, {PARTS} parts in {n_groups} groups")
    print(f"sizes of the groups: {sorted(np.bincount(groups).tolist(), reverse=True)}")
    print(f"different images that can be made: {n_choices(groups):,}")

    mean, covariance = moments(parts, groups)
    # the spread of a mean of so many draws, over all pixels
    expected = np.sqrt(np.trace(covariance) / DRAWN)
    print(
        f"distance of their mean from the sum of centres: {np.linalg.norm(new.mean(0) - mean):.3f}"
    )
    print(f"what chance would make it: {expected:.3f}")
    spread = np.trace(np.cov(new.T, bias=True)) / np.trace(covariance)
    print(f"their variance, as a part of the sum of those within groups: {spread:.3f}")

    decoded, _ = model.sample(DRAWN, random_state=0)
    print(f"mean distance from the nearest image, one part of each group: {nearest(new, X):.1f}")
    print(f"the same, sources of a mixture: {nearest(decoded, X):.1f}")
    sheet(parts, groups, new, decoded, X)
    print("wrote codebook-digits.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--digit", type=int, default=2, choices=range(10))
    parser.add_argument("--groups", type=int, default=8)
    options = parser.parse_args()
    main(options.digit, options.groups)
