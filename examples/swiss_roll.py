"""A rolled-up sheet in the plane
=================================

Which methods unroll it, which do not, and why.

Points of a sheet that is rolled up in space, coloured by how far along the sheet they lie. PPCA
turns and scales: the spiral stays a spiral. Kernel PCA with an RBF kernel bends space, but it
compares points by their distance through space, and the layers of the roll are near each other
that way: two coordinates show the largest contrasts of the roll, not the sheet. Landmarks, a tenth
of the points, give nearly the same picture for a tenth of the kernel. LLE and Isomap (scikit-
learn's) ask only which points are next to each other, so they walk along the sheet and unroll it;
plain LLE squeezes its width in places, the modified one does not. It is the measure of nearness
that does it and not the algorithm: kernel PCA of Isomap's distances, given as a kernel matrix,
unrolls the sheet as well.

Unrolled means that a straight line through the plane tells how far along the sheet a point lies:
the share of the variance that it tells stands above each picture. ::

    python examples/swiss_roll.py

It writes swiss-roll.png to the working directory.
"""

from __future__ import annotations

import matplotlib
import numpy as np
from sklearn.datasets import make_swiss_roll
from sklearn.manifold import Isomap, LocallyLinearEmbedding

from mixfold import PPCA, KernelPCA

matplotlib.use("agg")
import matplotlib.pyplot as plt

POINTS, LANDMARKS, NEIGHBOURS, GAMMA = 1500, 150, 12, 0.03


def sheet() -> tuple[np.ndarray, np.ndarray]:
    """Points in space, and how far along the rolled sheet each lies, from 0 to 1."""
    X, angle = make_swiss_roll(POINTS, noise=0.05, random_state=0)
    arc = angle * np.sqrt(1 + angle**2) + np.arcsinh(angle)  # length of the spiral r = angle
    return X, (arc - arc.min()) / np.ptp(arc)


def planes(X: np.ndarray) -> dict[str, np.ndarray]:
    """Two coordinates of every point, by method."""
    rbf = {"kernel": "rbf", "gamma": GAMMA, "random_state": 0}
    isomap = Isomap(n_components=2, n_neighbors=NEIGHBOURS).fit(X)
    # Centring squared distances gives products: that is all that kernel PCA asks for.
    products = -0.5 * isomap.dist_matrix_**2
    lle = LocallyLinearEmbedding(n_components=2, n_neighbors=NEIGHBOURS, random_state=0)
    exact = KernelPCA(2, **rbf).fit_transform(X)
    few = KernelPCA(2, landmarks=LANDMARKS, **rbf).fit_transform(X)
    return {
        "PPCA": PPCA(2).fit_transform(X),
        "kernel PCA, RBF": exact,
        # an axis may point either way: as that of all points, to compare the pictures
        f"kernel PCA, RBF, {LANDMARKS} landmarks": few * np.sign((exact * few).sum(axis=0)),
        "LLE": lle.fit_transform(X),
        "LLE, modified": lle.set_params(method="modified").fit_transform(X),
        "Isomap": isomap.embedding_,
        "kernel PCA, distances of Isomap": KernelPCA(2, kernel="precomputed").fit_transform(
            products
        ),
    }


def explained(Z: np.ndarray, along: np.ndarray) -> float:
    """Share of the variance of ``along`` that the best linear function of Z has."""
    design = np.column_stack([Z / Z.std(axis=0), np.ones(len(Z))])
    fitted = design @ np.linalg.lstsq(design, along, rcond=None)[0]
    return float(1 - np.var(along - fitted) / np.var(along))


def draw(X: np.ndarray, along: np.ndarray, found: dict[str, np.ndarray]) -> None:
    figure = plt.figure(figsize=(14, 7.6), layout="constrained")
    colours = {"c": along, "cmap": "viridis", "s": 7, "linewidths": 0}
    roll = figure.add_subplot(2, 4, 1, projection="3d")
    points = roll.scatter(*X.T, **colours)
    roll.view_init(elev=12, azim=-78)
    roll.set_box_aspect((1, 1, 1), zoom=1.15)
    roll.set_title("the roll", fontsize=10)
    roll.set(yticks=(0, 10, 20))
    for name in "xyz":
        getattr(roll, f"set_{name}label")(name, labelpad=-5)
    roll.tick_params(labelsize=7, pad=-2)
    # beside the roll what compares points through space, below it what knows neighbours
    for place, (title, Z) in enumerate(found.items(), 2):
        ax = figure.add_subplot(2, 4, place)
        ax.scatter(*Z.T, **colours)
        ax.set_title(f"{title}\n{explained(Z, along):.0%} told by a straight line", fontsize=10)
        ax.set(xlabel="coordinate 1", ylabel="coordinate 2")
        ax.tick_params(labelsize=8)
    figure.colorbar(points, ax=figure.axes, location="bottom", fraction=0.03, aspect=80,
                    label="how far along the sheet a point lies (0 inside, 1 outside)")  # fmt: skip
    figure.savefig("swiss-roll.png", dpi=120)
    plt.close(figure)


def main() -> None:
    X, along = sheet()
    found = planes(X)
    for title, Z in found.items():
        print(f"{title}: {explained(Z, along):.2f} of the way along the sheet told by a line")
    exact, few = list(found.values())[1:3]
    apart = np.linalg.norm(few - exact) / np.linalg.norm(exact)
    print(f"landmarks against all points, relative difference of coordinates: {apart:.3f}")
    draw(X, along, found)
    print("wrote swiss-roll.png")


if __name__ == "__main__":
    main()
