"""Curved borders between classes among two factors
===================================================

Images of ten digits, drawn in the plane of two factors. A straight border for each digit, against
all others, has to cut through the digits that lie between: with ``discriminant="curved"`` the
border goes around them, and two factors tell more. The other way to bend borders is more
components with a classifier each, ``classifier="per_component"``, of which each row is told by the
one that its image belongs to; they tell more still, but there is no common plane to look at. ::

    python examples/curved_borders.py

It writes curved-borders.png to the working directory.
"""

from __future__ import annotations

import matplotlib
import numpy as np
from sklearn.datasets import load_digits

from mixfold import MixtureOfFactorModels
from mixfold.plots import plot_discriminant

matplotlib.use("agg")
import matplotlib.pyplot as plt

SETTINGS = {
    "straight": {},
    "curved": {"discriminant": "curved", "ridge": 0.1, "tol": 1e-4},
    "four components, straight": {"n_components": 4, "classifier": "per_component"},
}


def main() -> None:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order] / 16, y[order]
    known, unseen = slice(0, 700), slice(700, None)

    figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained", sharex=True)
    for name, settings in SETTINGS.items():
        model = MixtureOfFactorModels(n_factors=2, random_state=0, **settings)
        model.fit(X[known], y[known])
        logs = model.predict_log_proba(X[unseen])
        loss = -logs[np.arange(len(logs)), y[unseen]].mean()
        words = f"{name}: {model.score(X[unseen], y[unseen]):.1%} right, log loss {loss:.2f}"
        print(words)
        if model.n_components == 1:
            ax = axes[int(name == "curved")]
            plot_discriminant(model, X[known], y[known], ax=ax)
            ax.set_title(words)
    figure.savefig("curved-borders.png", dpi=75)


if __name__ == "__main__":
    main()
