"""Two planes that cross
========================

Groups that have the same centre, and each a pair of factors of its own.

Rows of ten columns lie near one of two planes, some entries are missing. No distance between rows
tells the planes apart, a mixture of probabilistic PCA does: it finds both, and where on its plane a
row lies. One group is a ring and the other a square, so that the picture can be judged by eye: the
few rows that are wrong lie where the planes cross. ::

    python examples/mixture_of_factors.py

It writes mixture-of-factors.png to the working directory.
"""

from __future__ import annotations

import matplotlib
import numpy as np

from mixfold import KMeans, MixtureOfPPCA
from mixfold.plots import plot_latents

matplotlib.use("agg")
import matplotlib.pyplot as plt

ROWS, COLUMNS, NOISE = 1500, 10, 0.1


def crossing(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and which of the planes each is near."""
    plane = rng.integers(2, size=ROWS)
    angle = rng.uniform(0, 2 * np.pi, ROWS)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.normal(1.4, 0.1, (ROWS, 1))
    square = rng.uniform(-1.7, 1.7, (ROWS, 2))
    directions = np.linalg.qr(rng.normal(size=(COLUMNS, 4)))[0]
    X = np.where(plane[:, None] == 0, ring @ directions[:, :2].T, square @ directions[:, 2:].T)
    X += NOISE * rng.normal(size=X.shape)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, plane


def agreement(labels: np.ndarray, truth: np.ndarray) -> float:
    """Share of rows that are right, whichever group is called the first."""
    right = float(np.mean(labels == truth))
    return max(right, 1 - right)


def choose(X: np.ndarray) -> MixtureOfPPCA:
    """The number of factors of lowest BIC; 'subspaces' starts from planes, not from centres.

    Two components are taken as known: BIC would use a third to draw a ring better than one
    Gaussian can.
    """
    fits = [MixtureOfPPCA(2, d, init_params="subspaces", random_state=0).fit(X) for d in (1, 2, 3)]
    print("factors      BIC")
    for fit in fits:
        print(f"{fit.n_factors:7d}  {fit.bic():7.0f}")
    return min(fits, key=lambda fit: fit.bic())


def draw(mixture: MixtureOfPPCA, X: np.ndarray, plane: np.ndarray) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
    labels = mixture.predict(X)
    colors = ["C0", "C1"] if np.mean(labels == plane) > 0.5 else ["C1", "C0"]
    true = np.array(["C0", "C1"])[plane]
    axes[0].scatter(X[:, 0], X[:, 1], s=6, c=true, linewidths=0, alpha=0.7)
    axes[0].set(title="two of the ten columns, true groups", xlabel="column 1", ylabel="column 2")
    axes[0].set_aspect("equal", adjustable="datalim")
    for k, ax in enumerate(axes[1:]):
        plot_latents(mixture, X, component=k, colors=colors, ax=ax)
        ax.get_legend().remove()
        ax.set(title=f"the plane of component {k}", xlim=(-2.7, 2.7), ylim=(-2.7, 2.7))
        ax.set_aspect("equal")
    figure.savefig("mixture-of-factors.png", dpi=120)
    plt.close(figure)


def main() -> None:
    X, plane = crossing(np.random.default_rng(4))
    mixture = choose(X)
    print(f"\nBIC chooses {mixture.n_factors} factors")
    print(f"noise: {np.sqrt(mixture.noise_variance_).round(3).tolist()} (true: {NOISE})")
    centres = KMeans(2, n_init=5, random_state=0).fit(X).labels_
    print(f"rows in the right group, k-means: {agreement(centres, plane):.2f}")
    print(f"rows in the right group, this mixture: {agreement(mixture.predict(X), plane):.2f}")
    draw(mixture, X, plane)
    print("wrote mixture-of-factors.png")


if __name__ == "__main__":
    main()
