"""Groups that are no Gaussians
============================

A ring around a blob, two moons, and blobs that overlap: components, clusters, and the tree.

Above, the components that BIC chooses, each a Gaussian in a colour of its own: a ring takes
several. Below, the clusters that they are combined into, by the rule of MixtureClustering:
components stay apart where the rows prove that the density between them dips. The second picture is
the tree of the ring: how often rows of one part are taken for rows of the other when two are
merged. ::

    python examples/ring_and_moons.py

It writes clusters.png and merges.png to the working directory.
"""

from __future__ import annotations

import matplotlib
import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from mixfold import MixtureClustering

matplotlib.use("agg")
import matplotlib.pyplot as plt

from mixfold.plots import plot_ellipses, plot_merges

ROWS = 600


def ring(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A ring of two thirds of the rows, a blob in its middle."""
    inner, angle = np.arange(ROWS) < ROWS // 3, rng.uniform(0, 2 * np.pi, ROWS)
    X = 4 * np.c_[np.cos(angle), np.sin(angle)] + 0.3 * rng.normal(size=(ROWS, 2))
    X[inner] = 0.5 * rng.normal(size=(inner.sum(), 2))
    return X, inner.astype(int)


def blobs(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three Gaussians that touch."""
    y = np.arange(ROWS) % 3
    return rng.normal(size=(ROWS, 2)) + np.array([[0, 0], [4, 0], [2, 3.5]])[y], y


def main() -> None:
    rng = np.random.default_rng(0)
    tables = {
        "ring": ring(rng),
        "moons": make_moons(ROWS, noise=0.07, random_state=0),
        "blobs": blobs(rng),
    }
    figure, axes = plt.subplots(2, 3, figsize=(9, 6), layout="constrained")
    for (name, (X, y)), (above, below) in zip(tables.items(), axes.T, strict=True):
        found = MixtureClustering(max_components=15, random_state=0).fit(X)
        mixture = found.mixture_
        parts = mixture.predict(X)
        score = [adjusted_rand_score(y, labels) for labels in (parts, found.labels_)]
        above.scatter(*X.T, c=[f"C{k}" for k in parts], s=4)
        plot_ellipses(mixture, ax=above)
        above.set_title(f"{mixture.n_components} components, ARI {score[0]:.2f}")
        below.scatter(*X.T, c=found.labels_, cmap="tab10", vmax=9, s=4)
        below.set_title(f"{found.n_clusters_} clusters, ARI {score[1]:.2f}")
        print(f"{name}: {found.summary().splitlines()[0]}, ARI {score[0]:.2f} -> {score[1]:.2f}")
        if name == "ring":
            tree, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
            plot_merges(found, ax=ax)
            tree.savefig("merges.png", dpi=80)
    for ax in axes.ravel():
        ax.set(xticks=[], yticks=[], aspect="equal")
    figure.savefig("clusters.png", dpi=60)


if __name__ == "__main__":
    main()
