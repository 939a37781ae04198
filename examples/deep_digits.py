"""Digits in layers
===================

Parts that handwritten digits are made of, their classes, and new ones of a wanted class.

Digits of 8 x 8 pixels; two thirds are learned from. A non-negative factorisation finds strokes. A
network of two factor layers learns to tell the digits, first layer by layer and then as a whole. It
also makes digits of a wanted class: sources that are drawn and then moved until the class is
probable give noise that happens to be told so, a mixture as prior of the sources gives digits. A
deep belief net makes them by a chain with the label held. A classifier of nearest neighbours, which
was shown real digits only, says how many it recognises. ::

    python examples/deep_digits.py

It writes deep-digits-parts.png, deep-digits-made.png and deep-digits-mistakes.png to the working
directory. The same from a terminal, for a table with a column of classes::

    mixfold fit digits.csv --model deep-factor-network --layers 40,20 --target digit --out m.mixfold
    mixfold predict m.mixfold new.csv --out classes.csv
    mixfold sample m.mixfold --class 7 --rows 100 --out sevens.csv
"""

from __future__ import annotations

import matplotlib
import numpy as np
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from mixfold import DeepBeliefNetwork, DeepFactorNetwork, MatrixFactorization

matplotlib.use("agg")
import matplotlib.pyplot as plt

from mixfold.plots import plot_codebook, plot_generated, plot_misclassified

SHAPE, LAYERS, MADE = (8, 8), (40, 20), 40


def told(name: str, made: dict[int, np.ndarray], judge: KNeighborsClassifier, real: float) -> None:
    """How many are recognised, and how unlike each other they are."""
    cut = {digit: np.clip(rows, 0, 1) for digit, rows in made.items()}
    right = np.mean([np.mean(judge.predict(rows) == digit) for digit, rows in cut.items()])
    spread = np.mean([pdist(rows).mean() for rows in cut.values()])
    print(f"made by {name}: {right:.0%} recognised, diversity {spread / real:.2f} of real digits")


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X, seen = X / 16, np.arange(len(X)) % 3 > 0
    judge = KNeighborsClassifier(3).fit(X[seen], y[seen])
    real = np.mean([pdist(X[~seen & (y == digit)]).mean() for digit in range(10)])

    parts = MatrixFactorization.module(4, n_components=24, random_state=0).fit(X[seen], y[seen])
    print(f"right by 24 parts without signs: {parts.score(X[~seen], y[~seen]):.3f}")
    ax = plot_codebook(parts, SHAPE, columns=8)
    ax.figure.savefig("deep-digits-parts.png", dpi=110)

    grown = DeepFactorNetwork(LAYERS, alpha=(0, 0.05), gamma=0.1, fine_tune=None, random_state=0)
    grown.fit(X[seen], y[seen])
    print(f"right by two layers, one after the other: {grown.score(X[~seen], y[~seen]):.3f}")
    tuned = DeepFactorNetwork(LAYERS, alpha=(0, 0.05), gamma=0.1, random_state=0)
    tuned.fit(X[seen], y[seen])
    print(f"right by two layers, trained as a whole: {tuned.score(X[~seen], y[~seen]):.3f}")
    belief = DeepBeliefNetwork(
        (100, 200), max_epochs=100, batch_size=20, fine_tune=None, random_state=0
    )
    belief.fit(X[seen], y[seen])
    print(f"right by a deep belief net: {belief.score(X[~seen], y[~seen]):.3f}")

    made = {
        "the Laplace prior": {
            c: grown.generate(c, MADE, "laplace", random_state=c) for c in range(10)
        },
        "a mixture": {c: grown.generate(c, MADE, keep=0.9, random_state=c) for c in range(10)},
        "the deep belief net": {c: belief.generate(c, MADE, random_state=c) for c in range(10)},
    }
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.6), layout="constrained")
    for ax, (name, digits) in zip(axes, made.items(), strict=True):
        told(name, digits, judge, real)
        plot_generated(digits, SHAPE, ax=ax)
        ax.set_title(f"made by {name}", fontsize=10)
    figure.savefig("deep-digits-made.png", dpi=110)

    chances = tuned.predict_proba(X[~seen])
    guess, sure = tuned.classes_[chances.argmax(axis=1)], chances.max(axis=1)
    ax = plot_misclassified(X[~seen], y[~seen], guess, SHAPE, probability=sure, n=24)
    ax.figure.savefig("deep-digits-mistakes.png", dpi=110)
    plt.close("all")
    print("wrote deep-digits-parts.png, deep-digits-made.png and deep-digits-mistakes.png")


if __name__ == "__main__":
    main()
