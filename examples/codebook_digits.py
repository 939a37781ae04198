"""New digits out of parts
==========================

A codebook of strokes, grouped by k-means, and one stroke of each group.

Non-negative matrix factorisation writes images of one digit as sums of parts. Parts that are alike
are put into one group; a new image is the sum of one part of each group, chosen at random. So no
two strokes that stand for each other are drawn together, and that is all that the generator knows:
what goes with what it does not, as the picture shows. At most as many images can come out as there
are choices; their mean is the sum of the centres of the groups, and their covariance the sum of the
covariances within groups. ::

    python examples/codebook_digits.py
    python examples/codebook_digits.py --digit 5 --groups 6

It writes codebook-digits.png to the working directory.
"""

from __future__ import annotations

import argparse

import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

from mixfold import KMeans
from mixfold.plots import plot_images

matplotlib.use("agg")
import matplotlib.pyplot as plt

SHAPE = (8, 8)
PARTS, DRAWN = 30, 2000


def codebook(X: np.ndarray, n_parts: int) -> np.ndarray:
    """Parts of the images, one in each row, as strong as they are where they are used."""
    factors = NMF(n_parts, init="nndsvda", max_iter=2000, tol=1e-4, random_state=0)
    strengths = factors.fit_transform(X)
    typical = (strengths**2).sum(axis=0) / strengths.sum(axis=0)
    return factors.components_ * typical[:, None]


def generate(
    parts: np.ndarray, groups: np.ndarray, n_images: int, rng: np.random.Generator
) -> np.ndarray:
    """Images that are each the sum of one part of each group."""
    images = np.zeros((n_images, parts.shape[1]))
    for k in np.unique(groups):
        members = np.flatnonzero(groups == k)
        images += parts[rng.choice(members, n_images)]
    return images


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


def sheet(parts: np.ndarray, groups: np.ndarray, new: np.ndarray, old: np.ndarray) -> None:
    """The codebook, group after group; images made of it; and images of the data."""
    order = np.argsort(groups, kind="stable")
    titles = [chr(ord("A") + k) for k in groups[order]]
    figure, axes = plt.subplots(1, 3, figsize=(13, 5), layout="constrained")
    top = float(old.max())
    plot_images(parts[order], SHAPE, titles=titles, columns=6, cmap="gray_r", ax=axes[0])
    axes[0].set_title(f"{len(parts)} parts in the groups A to {titles[-1]}", pad=20)
    plot_images(new, SHAPE, columns=5, scale=(0.0, top), cmap="gray_r", ax=axes[1])
    axes[1].set_title("one part of each group, added")
    plot_images(old, SHAPE, columns=5, scale=(0.0, top), cmap="gray_r", ax=axes[2])
    axes[2].set_title("images of the data")
    figure.savefig("codebook-digits.png", dpi=120, bbox_inches="tight")
    plt.close(figure)


def main(digit: int, n_groups: int) -> None:
    data = load_digits()
    X = data.data[data.target == digit]
    parts = codebook(X, PARTS)
    groups = KMeans(n_groups, n_init=10, random_state=0).fit(parts).labels_
    print(f"{len(X)} images of the digit {digit}, {PARTS} parts in {n_groups} groups")
    print(f"sizes of the groups: {sorted(np.bincount(groups).tolist(), reverse=True)}")
    print(f"different images that can be made: {n_choices(groups):,}")

    new = generate(parts, groups, DRAWN, np.random.default_rng(1))
    mean, covariance = moments(parts, groups)
    # the spread of a mean of so many draws, over all pixels
    expected = np.sqrt(np.trace(covariance) / DRAWN)
    print(
        f"distance of their mean from the sum of centres: {np.linalg.norm(new.mean(0) - mean):.3f}"
    )
    print(f"what chance would make it: {expected:.3f}")
    spread = np.trace(np.cov(new.T, bias=True)) / np.trace(covariance)
    print(f"their variance, as a part of the sum of those within groups: {spread:.3f}")
    sheet(parts, groups, new[:25], X[:25])
    print("wrote codebook-digits.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--digit", type=int, default=2, choices=range(10))
    parser.add_argument("--groups", type=int, default=8)
    options = parser.parse_args()
    main(options.digit, options.groups)
