"""Images as a few factors
==========================

The sheet of factors, denoising, holes filled, images never seen.

Without data it takes scikit-learn's digits. Faces are the classical choice: give an .npz file with
an array ``X`` of one image in each row and ``image_shape``, the height and width of an image. ::

    python examples/eigenfaces.py
    python examples/eigenfaces.py --data faces.npz

It writes three pictures, ``eigenfaces-*.png``, to the working directory.
"""

# sphinx_gallery_thumbnail_number = 3

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_digits

from mixfold import PPCA
from mixfold.metrics import signal_to_error_ratio
from mixfold.plots import plot_factors, plot_images, plot_reconstructions

matplotlib.use("agg")
import matplotlib.pyplot as plt

SHOWN = 8  # images and factors in a picture


def images(path: Path | None) -> tuple[np.ndarray, tuple[int, int]]:
    """One image in each row, and the height and width of an image."""
    if path is None:
        return load_digits().data, (8, 8)
    with np.load(path) as file:
        height, width = map(int, file["image_shape"])
        return file["X"].astype(float), (height, width)


def save(ax: plt.Axes, name: str) -> None:
    ax.figure.savefig(f"eigenfaces-{name}.png", dpi=150, bbox_inches="tight")
    plt.close(ax.figure)


def damaged(X: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The images with noise added, and with half of their pixels hidden."""
    noisy = X + X.std() * rng.normal(size=X.shape)
    hidden = np.where(rng.random(X.shape) < 0.5, np.nan, X)
    return noisy, hidden


def main(path: Path | None) -> None:
    X, shape = images(path)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    train, test = X[order[:-200]], X[order[-200:]]
    print(f"{len(train)} images of {shape[0]} x {shape[1]} pixels, 200 kept apart")

    for share in (0.8, 0.9, 0.99):
        print(f"{share:.0%} of the variance: {PPCA(share).fit(train).n_components_} factors")

    ppca = PPCA(0.9).fit(train)
    few = range(min(SHOWN, ppca.n_components_))
    save(plot_factors(ppca, shape, factors=few), "factors")

    # Each is one line: an image without noise, and one whose missing pixels are filled.
    noisy, hidden = damaged(test, rng)
    denoised = ppca.reconstruct(noisy)
    filled = ppca.impute(hidden)
    made = {"noise added": noisy, "denoised": denoised, "half hidden, filled": filled}
    for name, X_hat in made.items():
        print(f"{name}: signal-to-error ratio {signal_to_error_ratio(test, X_hat):.1f} dB")
    shown = {name: X_hat[:SHOWN] for name, X_hat in made.items()}
    save(plot_reconstructions(test[:SHOWN], shown, shape), "reconstructions")

    # And so is an image at any point of the latent space, here of the plane of two factors.
    steps = np.linspace(-2, 2, 7)
    Z = np.zeros((49, ppca.n_components_))
    Z[:, 0], Z[:, 1] = np.tile(steps, 7), np.repeat(steps[::-1], 7)
    grey = (train.min(), train.max())
    save(plot_images(ppca.inverse_transform(Z), shape, columns=7, scale=grey), "plane")

    # An image unlike the others is improbable: here those whose pixels are in random order.
    usual, odd = ppca.score_samples(test), ppca.score_samples(rng.permuted(test, axis=1))
    found = np.mean(odd < np.quantile(usual, 0.01))
    print(f"shuffled images that are less probable than 99 % of the others: {found:.0%}")
    print("wrote eigenfaces-factors.png, eigenfaces-reconstructions.png, eigenfaces-plane.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="FILE.npz")
    main(parser.parse_args().data)
