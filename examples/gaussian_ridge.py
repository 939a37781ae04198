"""Ridges, not hills
====================

What a mixture of Gaussians under linear transformations looks like.

MLiT sees rows x through a transformation Omega with fewer rows than x has entries, and scores them
by a Gaussian of Omega x. Along the directions that Omega does not see the score stays the same:
one component is a ridge that runs on for ever, and two of them are crossing ridges. That is no
density, its integral is infinite. It says what the rows of a class have in common, and not how
they are spread otherwise.

That can be what tells classes apart. Two clouds lie along two lines of nearly the same place, and
much longer than they are wide. The orthonormal variant of MLiT takes the direction of least
variance of each class, and its ridge runs along the line of the class. From the other end of the
spectrum, the axis of largest variance, it sees how far along its line a row is. Rows of the other
class are nearer to the middle of that line than the rows of the class itself: worse than chance. ::

    python examples/gaussian_ridge.py

It writes gaussian-ridge.png to the working directory.
"""

from __future__ import annotations

import matplotlib
import numpy as np

from mixfold import MixtureClassifier, MLiT

matplotlib.use("agg")
import matplotlib.pyplot as plt

ROWS, SPAN = 300, 6.0
COLOURS = ("#1f5fa8", "#c8553d")


def cloud(angle: float, centre: tuple[float, float], rng: np.random.Generator) -> np.ndarray:
    """Points along a line, four times as long as wide."""
    along = np.array([np.cos(angle), np.sin(angle)])
    across = np.array([-along[1], along[0]])
    return (
        np.array(centre)
        + 2.0 * rng.normal(size=(ROWS, 1)) * along
        + 0.5 * rng.normal(size=(ROWS, 1)) * across
    )


def grid() -> tuple[np.ndarray, np.ndarray]:
    ticks = np.linspace(-SPAN, SPAN, 181)
    x, y = np.meshgrid(ticks, ticks)
    return ticks, np.column_stack([x.ravel(), y.ravel()])


def along_null_space(model: MLiT) -> float:
    """How much the score of the first component changes a hundred steps along its null space."""
    across = model.transforms_[0, 0]
    along = np.array([-across[1], across[0]]) / np.linalg.norm(across)
    start = np.array([[1.0, 0.5]])
    steps = start + np.linspace(-100, 100, 9)[:, None] * along
    return float(np.ptp(model.score_samples(steps)))


def surface(ax, model: MLiT, title: str) -> None:
    ticks, points = grid()
    height = np.exp(model.score_samples(points)).reshape(len(ticks), -1)
    x, y = np.meshgrid(ticks, ticks)
    ax.plot_surface(x, y, height, cmap="viridis", rcount=180, ccount=180, linewidth=0)
    ax.view_init(elev=40, azim=-60)
    ax.set_title(title, fontsize=10)
    ax.set(xlabel="$x_1$", ylabel="$x_2$", zticks=())
    ax.tick_params(labelsize=7, pad=-2)


def classes(ax, model: MixtureClassifier, X: np.ndarray, y: np.ndarray, title: str) -> None:
    """Probability of the second class as colour, and a line along the null space of each."""
    ticks, points = grid()
    proba = model.predict_proba(points)[:, 1].reshape(len(ticks), -1)
    ax.contourf(ticks, ticks, proba, levels=20, cmap="RdBu_r", alpha=0.45, vmin=0, vmax=1)
    for number, density in enumerate(model.estimators_):
        ax.scatter(*X[y == number].T, s=5, color=COLOURS[number], linewidths=0)
        across, mean = density.transforms_[0, 0], density.means_[0, 0]
        middle = across * mean / (across @ across)  # where the score is highest
        along = np.array([-across[1], across[0]]) / np.linalg.norm(across)
        ends = np.stack([middle - 20 * along, middle + 20 * along])
        ax.plot(*ends.T, "--", color=COLOURS[number], lw=1.2)
    ax.set(xlim=(-SPAN, SPAN), ylim=(-SPAN, SPAN), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    ax.set_title(f"{title}\n{model.score(X, y):.0%} of the rows right", fontsize=10)
    ax.tick_params(labelsize=8)


def main() -> None:
    rng = np.random.default_rng(0)
    first, second = cloud(0.5, (0.0, 0.5), rng), cloud(-0.7, (0.0, -0.5), rng)
    X = np.concatenate([first, second])
    y = np.repeat([0, 1], ROWS)

    # One row of Omega in the plane: what is left to vary is a line.
    ridge = MLiT(1, 1, "orthonormal").fit(first)
    crossing = MLiT(2, 1, "orthonormal", random_state=0).fit(X)
    print(f"one ridge, change of the log score along it: {along_null_space(ridge):.1e}")
    lines = np.degrees(np.arctan2(-crossing.transforms_[:, 0, 0], crossing.transforms_[:, 0, 1]))
    told = ", ".join(f"{line:.0f}" for line in sorted(line % 180 for line in lines))
    print(f"two ridges, their directions in degrees: {told} (the clouds: 29, 140)")

    # The two ends of the spectrum, as densities of two classes.
    flat = MixtureClassifier(MLiT(1, 1, "orthonormal")).fit(X, y)
    largest = MixtureClassifier(MLiT(1, 1, init="largest", iterate=0)).fit(X, y)
    print(f"classes by their axes of least variance: {flat.score(X, y):.3f} right")
    print(f"classes by their axes of largest variance: {largest.score(X, y):.3f} right")

    figure = plt.figure(figsize=(11, 9.5), layout="constrained")
    surface(figure.add_subplot(2, 2, 1, projection="3d"), ridge, "one component: a ridge")
    surface(figure.add_subplot(2, 2, 2, projection="3d"), crossing, "two components")
    classes(
        figure.add_subplot(2, 2, 3),
        flat,
        X,
        y,
        "two classes by axes of least variance (dashed: their ridges)",
    )
    classes(figure.add_subplot(2, 2, 4), largest, X, y, "the same by axes of largest variance")
    figure.savefig("gaussian-ridge.png", dpi=120)
    plt.close(figure)
    print("wrote gaussian-ridge.png")


if __name__ == "__main__":
    main()
