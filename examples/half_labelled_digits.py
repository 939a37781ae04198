"""Digits of which few have a label
===================================

One plane for pixels and classes, and a classifier inside it.

Threes and nines as images of 8 x 8 pixels; every tenth has a label. Principal axes do not know what
the labels are; supervised PPCA with a small output noise turns the axes towards them, and a mixture
of factor models puts a line between the classes into the latent plane. Half of all digits are shown
to the fits, the other half judges them. ::

    python examples/half_labelled_digits.py

It writes half-labelled-digits.png to the working directory.
"""

from __future__ import annotations

import matplotlib
import numpy as np
from sklearn.datasets import load_digits

from mixfold import PPCA, MixtureOfFactorModels, SupervisedPPCA

matplotlib.use("agg")
import matplotlib.pyplot as plt

FACTORS = 2


def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images, whether each is a nine, and the labels that the fits see: -1 is unknown."""
    X, y = load_digits(return_X_y=True)
    chosen = np.isin(y, (3, 9))
    X, nine = X[chosen] / 16, (y[chosen] == 9).astype(int)
    known = np.where(np.arange(len(X)) % 10 == 0, nine, -1)
    return X, nine, known


def nearest(train: np.ndarray, labels: np.ndarray, test: np.ndarray) -> np.ndarray:
    """The label of the nearest labelled point."""
    distances = ((test[:, None] - train[None]) ** 2).sum(axis=2)
    return labels[distances.argmin(axis=1)]


def draw(planes: dict[str, np.ndarray], nine: np.ndarray, model: MixtureOfFactorModels) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
    for ax, (title, Z) in zip(axes, planes.items(), strict=True):
        for value, color, name in ((0, "C0", "three"), (1, "C1", "nine")):
            mine = nine == value
            ax.scatter(*Z[mine].T, s=9, c=color, linewidths=0, alpha=0.7, label=name)
        ax.set(title=title, xlabel="factor 1", ylabel="factor 2")
    axes[0].legend()
    # where the score w'z + b is zero
    w, b = model.coef_.ravel(), float(np.ravel(model.intercept_)[0])
    low, high = axes[2].get_ylim()
    ends = np.array([low, high])
    axes[2].plot(-(b + w[1] * ends) / w[0], ends, color="black", lw=1)
    axes[2].set(xlim=axes[2].get_xlim(), ylim=(low, high))
    figure.savefig("half-labelled-digits.png", dpi=120)
    plt.close(figure)


def main() -> None:
    X, nine, known = rows()
    seen = np.arange(len(X)) % 2 == 0
    labelled = seen & (known >= 0)
    print(f"{seen.sum()} images to learn from, {labelled.sum()} of them with a label")
    ppca = PPCA(FACTORS).fit(X[seen])
    supervised = SupervisedPPCA(FACTORS, input_noise=0.05, output_noise=1e-4, random_state=0)
    supervised.fit(X[seen], known[seen])
    mixed = MixtureOfFactorModels(1, FACTORS, tradeoff=30.0, random_state=0)
    mixed.fit(X[seen], known[seen])
    planes = {"PPCA": ppca, "SupervisedPPCA": supervised, "MixtureOfFactorModels": mixed}
    latents = {name: model.transform(X) for name, model in planes.items()}
    for name, Z in latents.items():
        found = nearest(Z[labelled], nine[labelled], Z[~seen])
        print(f"right by the nearest labelled image in the plane of {name}: "
              f"{np.mean(found == nine[~seen]):.3f}")  # fmt: skip
    for model in (supervised, mixed):
        right = model.score(X[~seen], nine[~seen])
        print(f"right by {type(model).__name__} itself: {right:.3f}")
    draw({name: Z[~seen] for name, Z in latents.items()}, nine[~seen], mixed)
    print("wrote half-labelled-digits.png")


if __name__ == "__main__":
    main()
