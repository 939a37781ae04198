"""How many groups, and how many factors in each?
===================================================

Images of four digits, written by many hands. A mixture of factor analysers describes each way of
writing a digit by a mean image and a few directions in which it varies. How many ways there are,
and how many directions each of them has, is not told: ``inference="vb"`` learns both together, in
one fit instead of one for every pair of numbers. ::

    python examples/learned_factors.py

It writes learned-factors.png to the working directory: for each component its mean image, and the
images two standard deviations along its two longest factors.
"""

from __future__ import annotations

import warnings

import matplotlib
import numpy as np
from sklearn.datasets import load_digits

from mixfold import MixtureOfFactorAnalyzers

matplotlib.use("agg")
import matplotlib.pyplot as plt

DIGITS, MOST = 4, 8


def images() -> tuple[np.ndarray, np.ndarray]:
    """Grey levels from 0 to 1, and the digits; half of the rows are kept for judging.

    A density of whole numbers is unbounded: noise as wide as one grey level makes them reals.
    """
    X, y = load_digits(return_X_y=True)
    few = np.random.default_rng(0).permutation(np.flatnonzero(y < DIGITS))
    rng = np.random.default_rng(1)
    return (X[few] + rng.random((len(few), X.shape[1]))) / 17, y[few]


def draw(mixture: MixtureOfFactorAnalyzers) -> None:
    used = np.flatnonzero(mixture.active_)
    figure, axes = plt.subplots(
        5, len(used), figsize=(1.3 * len(used) + 1, 7.4), layout="constrained", squeeze=False
    )
    size = mixture.loadings_.shape[2]
    for column, k in zip(axes.T, used, strict=True):
        places = np.zeros((5, size))
        for row, (f, side) in enumerate(((0, -2), (0, 2), (1, -2), (1, 2)), start=1):
            if f < mixture.n_factors_[k]:
                places[row, f] = side
        rows = mixture.inverse_transform(places, components=int(k))
        for row, (ax, image) in enumerate(zip(column, rows, strict=True)):
            ax.set(xticks=[], yticks=[])
            if row == 0 or places[row].any():
                ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
            else:  # the component has no such factor
                ax.axis("off")
        factors = mixture.n_factors_[k]
        column[0].set_title(f"{mixture.counts_[k]:.0f} images\n{factors} factors", fontsize=9)
    words = ["mean", "factor 1: -2", "factor 1: +2", "factor 2: -2", "factor 2: +2"]
    for ax, text in zip(axes[:, 0], words, strict=True):
        ax.set_ylabel(text, fontsize=9)
    figure.savefig("learned-factors.png", dpi=120)
    plt.close(figure)


def main() -> None:
    X, y = images()
    half = len(X) // 2
    train, unseen = X[:half], X[half:]
    learned = MixtureOfFactorAnalyzers(MOST, None, inference="vb", tol=1e-5, random_state=0)
    learned.fit(train)
    print("component  images  factors  digits")
    labels = learned.predict(train)
    for k in np.flatnonzero(learned.active_):
        counts = np.bincount(y[:half][labels == k], minlength=DIGITS)
        shown = ", ".join(f"{count} x {digit}" for digit, count in enumerate(counts) if count)
        print(f"{k:9d}  {learned.counts_[k]:6.0f}  {learned.n_factors_[k]:7d}  {shown}")

    with warnings.catch_warnings():  # without priors a column may be left without noise
        warnings.simplefilter("ignore", UserWarning)
        fits = [
            MixtureOfFactorAnalyzers(K, d, random_state=0).fit(train)
            for K in (2, 4, 8) for d in (1, 3, 5)
        ]  # fmt: skip
    best = min(fits, key=lambda fit: fit.bic())
    print(f"\nlog density of an unseen image, both numbers learned: {learned.score(unseen):.2f}")
    print(
        f"{best.n_components} components of {best.n_factors} factors, the best of {len(fits)} by "
        f"BIC: {best.score(unseen):.2f}"
    )
    draw(learned)
    print("wrote learned-factors.png")


if __name__ == "__main__":
    main()
