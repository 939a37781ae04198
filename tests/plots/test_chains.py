"""Chains and similarities: the numbers that were given, in order, with an honest verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from mixfold.math.chains import summary
from mixfold.math.partitions import similarity
from mixfold.plots import plot_chains, plot_similarity


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Figures that were made by pyplot are closed after a test."""
    yield
    plt.close("all")


def verdict(ax: Any) -> tuple[str, str]:
    """The right title and its colour."""
    return ax.get_title(loc="right"), ax._right_title.get_color()


def drawn(ax: Any) -> np.ndarray:
    (image,) = ax.images
    return np.asarray(image.get_array())


def squares(ax: Any) -> list[tuple[float, float]]:
    """(first row, number of rows) of each outline."""
    patches = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert all(p.get_width() == p.get_height() and p.get_x() == p.get_y() for p in patches)
    return [(p.get_x() + 0.5, p.get_width()) for p in patches]


# ------------------------------------------------------------------ chains


def test_every_chain_is_drawn_in_the_panel_of_its_quantity(rng: np.random.Generator) -> None:
    trace = {"log joint": rng.normal(size=(3, 40)), "clusters": rng.poisson(5, (3, 40))}
    axes = plot_chains(trace, linewidth=2.5)
    assert [ax.get_title(loc="left") for ax in axes] == ["log joint", "clusters"]
    assert axes[0].figure is axes[1].figure
    for ax, draws in zip(axes, trace.values(), strict=True):
        assert len(ax.lines) == 3
        for line, chain in zip(ax.lines, draws, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), chain)
            np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 41))
            assert line.get_linewidth() == 2.5
    assert len({line.get_color() for line in axes[0].lines}) == 3
    assert [ax.get_xlabel() for ax in axes] == ["", "draw"]


def test_titles_hold_the_diagnostics_and_are_red_where_they_are_bad(
    rng: np.random.Generator,
) -> None:
    good = rng.normal(size=(4, 400))
    trace = {"good": good, "apart": good + np.arange(4)[:, None], "short": good[:, :3]}
    axes = plot_chains(trace, Figure().subplots(3))
    (text, grey), (bad, red), (unknown, doubt) = map(verdict, axes)
    found = summary(good)
    assert text == f"R-hat {found.r_hat:.2f}, ESS {found.ess:,.0f}"
    assert bad.startswith("R-hat 1.56")  # sqrt(1 + 10 / 7): variance of 0 0 1 1 2 2 3 3
    assert unknown == "R-hat undefined, ESS undefined"
    assert grey != red == doubt


def test_chains_go_where_they_are_sent(rng: np.random.Generator) -> None:
    ax = Figure().subplots()
    assert plot_chains({"alpha": rng.normal(size=(1, 10))}, [ax]) == [ax]
    grid = Figure().subplots(2, 2)
    axes = plot_chains({name: rng.normal(size=(2, 10)) for name in "abcd"}, grid)
    assert axes == list(grid.ravel())
    assert plt.get_fignums() == []


def test_chains_that_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="trace is empty"):
        plot_chains({})
    with pytest.raises(ValueError, match=r"trace\['alpha'\] must have the shape"):
        plot_chains({"alpha": np.ones(5)})
    with pytest.raises(ValueError, match="ax must be one for each of the 2 quantities; got 1"):
        plot_chains(dict.fromkeys("ab", np.ones((2, 5))), [Figure().subplots()])


# ------------------------------------------------------------------ similarity


def test_rows_are_sorted_by_cluster_and_by_how_sure_they_are(rng: np.random.Generator) -> None:
    truth = np.array([2, 0, 1, 1, 2, 1, 1, 2, 0])
    labels = np.where(rng.random((60, 9)) < 0.2, rng.integers(0, 3, (60, 9)), truth)
    P = similarity(labels)
    ax = plot_similarity(P, truth)
    # largest first; ones on the diagonal tell nothing, so rows are told by their similarities
    order = [int(np.flatnonzero((np.sort(P, axis=1) == row).all(axis=1))[0])
             for row in np.sort(drawn(ax), axis=1)]  # fmt: skip
    assert sorted(order) == list(range(9))
    assert truth[order].tolist() == [1, 1, 1, 1, 2, 2, 2, 0, 0]
    for k in range(3):
        rows = [i for i in order if truth[i] == k]
        company = P[np.ix_(rows, rows)].mean(axis=1)
        assert (np.diff(company) <= 1e-7).all()
    assert squares(ax) == [(0, 4), (4, 3), (7, 2)]
    np.testing.assert_array_equal(drawn(ax), drawn(ax).T)


def test_single_rows_have_no_outline_and_labels_may_be_words() -> None:
    ax = plot_similarity(np.eye(4), np.array(["b", "a", "b", "c"]), ax=Figure().subplots())
    assert squares(ax) == [(0, 2)]
    assert plt.get_fignums() == []


def test_without_labels_similar_rows_are_neighbours(rng: np.random.Generator) -> None:
    truth = rng.permutation(np.repeat(np.arange(3), 7))
    P = np.where(truth[:, None] == truth, 0.9, 0.1) + 0.1 * np.eye(21)
    shown = drawn(plot_similarity(P))
    assert squares(plt.gca()) == []
    blocks = shown.reshape(3, 7, 3, 7).mean(axis=(1, 3))
    assert (np.diag(blocks) > 0.9).all() and blocks[0, 1] == pytest.approx(0.1)
    assert drawn(plot_similarity(np.ones((1, 1)))).shape == (1, 1)


def test_colours_run_from_never_to_always(tmp_path: Path) -> None:
    ax = plot_similarity(np.full((3, 3), 0.5, np.float32))
    assert ax.images[0].get_clim() == (0, 1)
    ax.figure.savefig(tmp_path / "similarity.png")
    assert (tmp_path / "similarity.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("matrix", "labels", "message"),
    [
        (np.ones((2, 3)), None, "matrix must be square"),
        (np.empty((0, 0)), None, "matrix must be square and not empty"),
        (np.eye(2) * 30, None, "matrix must hold shares from 0 to 1; got values from 0 to 30"),
        (np.array([[1, np.nan], [np.nan, 1]]), None, "matrix must hold shares"),
        (np.eye(2), [0, 1, 1], "labels must be one for each of the 2 rows"),
    ],
)
def test_similarities_that_cannot_be_drawn(matrix: Any, labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_similarity(matrix, labels)
