"""Arguments of plots: what is drawn first, the axes last; earlier orders warn and still work."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_iris

import mixfold.plots
from mixfold import PLSI, GaussianMixture, MixtureSearch, SupervisedPPCA
from mixfold.plots import (
    plot_chains,
    plot_criterion,
    plot_discriminant,
    plot_ellipses,
    plot_latents,
    plot_merges,
    plot_objective,
    plot_search,
    plot_topics,
)  # fmt: skip

X, KIND = load_iris(return_X_y=True)
MIXTURE = GaussianMixture(2, random_state=0).fit(X)
FACTORS = SupervisedPPCA(2, random_state=0).fit(X, KIND)
VALUES = {"full": {1: 3.0, 2: 2.0}}
SEARCH = MixtureSearch(GaussianMixture(), n_components=[1, 2], random_state=0).fit(X)


@pytest.mark.parametrize("name", mixfold.plots.__all__)
def test_axes_are_the_last_argument_and_a_name(name: str) -> None:
    parameters = list(signature(getattr(mixfold.plots, name)).parameters.values())
    assert parameters[0].default is Parameter.empty, "what is drawn comes first"
    named = [p for p in parameters if p.kind is not Parameter.VAR_KEYWORD]
    assert named[-1].name == "ax" and named[-1].default is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (lambda ax: plot_ellipses(ax, MIXTURE, (2, 0)),
         lambda ax: plot_ellipses(MIXTURE, columns=(2, 0), ax=ax)),
        (lambda ax: plot_objective(ax, MIXTURE, color="r"),
         lambda ax: plot_objective(MIXTURE, color="r", ax=ax)),
        (lambda ax: plot_criterion(ax, VALUES), lambda ax: plot_criterion(VALUES, ax=ax)),
        (lambda ax: plot_search(ax, SEARCH), lambda ax: plot_search(SEARCH, ax=ax)),
        (lambda ax: plot_latents(ax, FACTORS, X, (1, 0), KIND),
         lambda ax: plot_latents(FACTORS, X, KIND, factors=(1, 0), ax=ax)),
        (lambda ax: plot_discriminant(ax, FACTORS, X, KIND, (1, 0)),
         lambda ax: plot_discriminant(FACTORS, X, KIND, factors=(1, 0), ax=ax)),
        (lambda ax: plot_merges(ax, MIXTURE.combine(1)),
         lambda ax: plot_merges(MIXTURE.combine(1), ax=ax)),
        (lambda ax: plot_topics(PLSI(1).fit(np.eye(3)), axes=[ax]),
         lambda ax: plot_topics(PLSI(1).fit(np.eye(3)), ax=[ax])),
        (lambda ax: plot_chains({"a": np.eye(3)}, axes=[ax]),
         lambda ax: plot_chains({"a": np.eye(3)}, ax=[ax])),
    ],
    ids=["ellipses", "objective", "criterion", "search", "latents", "discriminant", "merges",
         "topics", "chains"],
)  # fmt: skip
def test_earlier_orders_draw_the_same_and_warn(
    old: Callable[[Any], Any], new: Callable[[Any], Any]
) -> None:
    before, after = Figure().subplots(), Figure().subplots()
    with pytest.warns(FutureWarning, match=r"write plot_\w+\(.*ax=") as said:
        old(before)
    assert said[0].filename == __file__, "the warning names the line of the caller"
    new(after)
    assert _drawn(before) == _drawn(after)
    assert plt.get_fignums() == []


def _drawn(ax: Any) -> list[Any]:
    """All lines, points and patches."""
    lines = [line.get_xydata().tolist() for line in ax.lines]
    points = [np.asarray(part.get_offsets()).tolist() for part in ax.collections]
    paths = [path.vertices.tolist() for part in ax.collections for path in part.get_paths()]
    shapes = [patch.get_path().vertices.tolist() for patch in ax.patches]
    places = [patch.get_patch_transform().get_matrix().tolist() for patch in ax.patches]
    return [lines, points, paths, shapes, places]


def test_calls_in_the_earlier_order_give_what_they_gave() -> None:
    ax = Figure().subplots()
    with pytest.warns(FutureWarning):
        assert plot_search(ax, SEARCH)[1] == SEARCH.best_params_["n_components"]
    with pytest.warns(FutureWarning):
        assert len(plot_ellipses(ax, MIXTURE)) == 2
    with pytest.warns(FutureWarning):
        points, borders = plot_discriminant(ax, FACTORS, X)
    assert len(points.get_offsets()) == len(X) and len(borders) == 2
    with pytest.warns(FutureWarning):
        assert plot_merges(ax, MIXTURE.combine(1)) == [0, 1]
