"""Ellipses: every point of the outline lies at the stated Mahalanobis distance."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from mixfold.plots import plot_ellipses
from mixfold.plots.ellipses import plane_covariances

K, D = 3, 4


def dense(rng: np.random.Generator, n: int) -> np.ndarray:
    A = rng.normal(size=(n, D, D))
    return A @ A.transpose(0, 2, 1) + 0.1 * np.eye(D)


def mixture(rng: np.random.Generator, kind: str) -> tuple[Any, np.ndarray]:
    """A fitted mixture as far as plots look at it, and its covariances as (K, D, D)."""
    full, diag = dense(rng, K), rng.uniform(0.5, 2, size=(K, D))
    published, expected = {
        "full": (full, full),
        "tied": (full[0], np.stack([full[0]] * K)),
        "diag": (diag, np.stack([np.diag(d) for d in diag])),
        "spherical": (diag[:, 0], np.stack([d * np.eye(D) for d in diag[:, 0]])),
        "tied-diag": (diag[0], np.stack([np.diag(diag[0])] * K)),
        "tied-spherical": (diag[0, 0], np.stack([diag[0, 0] * np.eye(D)] * K)),
    }[kind]
    model = SimpleNamespace(
        covariance_type=kind,
        covariances_=published,
        means_=rng.normal(size=(K, D)),
        weights_=np.array([0.2, 0.5, 0.3]),
        feature_names_in_=np.array(["a", "b", "c", "d"], dtype=object),
    )
    return model, expected


KINDS = ["full", "tied", "diag", "spherical", "tied-diag", "tied-spherical"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [(0, 1), (3, 1), ("d", "b")])
def test_outline_is_at_the_stated_distance(
    rng: np.random.Generator, kind: str, columns: tuple[Any, Any]
) -> None:
    model, covariances = mixture(rng, kind)
    pair = ["abcd".index(c) if isinstance(c, str) else c for c in columns]
    patches = plot_ellipses(model, columns=columns, radius=1.5, ax=Figure().subplots()).patches
    assert len(patches) == K
    for k, patch in enumerate(patches):
        angles = np.linspace(0, 2 * np.pi, 12)
        circle = np.column_stack([np.cos(angles), np.sin(angles)])
        outline = patch.get_patch_transform().transform(circle)
        gap = outline - model.means_[k, pair]
        precision = np.linalg.inv(covariances[k][np.ix_(pair, pair)])
        np.testing.assert_allclose(np.einsum("ni,ij,nj->n", gap, precision, gap), 1.5**2)


def test_ellipses_are_in_view_and_heavier_ones_bolder(rng: np.random.Generator) -> None:
    model, _ = mixture(rng, "full")
    ax = Figure().subplots()
    widths = [patch.get_linewidth() for patch in plot_ellipses(model, ax=ax).patches]
    assert np.argsort(widths).tolist() == np.argsort(model.weights_).tolist()
    low, high = ax.get_xlim()
    assert low < model.means_[:, 0].min() and model.means_[:, 0].max() < high


@pytest.mark.parametrize("colors", [["red", "#00ff00", "C2"], [(1, 0, 0), (0, 1, 0, 1), "k"]])
def test_colors_are_used_in_order(rng: np.random.Generator, colors: list[Any]) -> None:
    from matplotlib.colors import to_rgb

    model, _ = mixture(rng, "diag")
    patches = plot_ellipses(model, colors=colors, ax=Figure().subplots()).patches
    assert [to_rgb(p.get_edgecolor()) for p in patches] == [to_rgb(c) for c in colors]
    assert all(p.get_facecolor()[3] < 0.5 for p in patches)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("a", "z"), "no column 'z'. Known columns: a, b, c, d"),
        ((0, 4), "positions run from 0 to 3; got 4"),
        ((0, -1), "positions run from 0 to 3; got -1"),
        ((0, 1, 2), "two columns"),
    ],
)
def test_a_wrong_column_is_named(
    rng: np.random.Generator, columns: tuple[Any, ...], message: str
) -> None:
    model, _ = mixture(rng, "full")
    with pytest.raises(ValueError, match=message):
        plot_ellipses(model, columns=columns)


def test_an_unknown_covariance_type_is_named(rng: np.random.Generator) -> None:
    model, _ = mixture(rng, "full")
    model.covariance_type = "banded"
    with pytest.raises(ValueError, match="'banded'"):
        plane_covariances(model, (0, 1))
