"""Principal components of frames: on frames that are drawn, and on the film."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from mixfold import PPCA
from papers import freyface
from papers.frame.run import reproduce, show_nothing

pytestmark = pytest.mark.slow  # a published table, run small


def test_another_file_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / freyface.FRAMES.name, X=np.zeros((10, 560)))
    with pytest.raises(ValueError, match=r"X of shape \(1965, 560\); got \(10, 560\)"):
        freyface.run(tmp_path, True, 0, show_nothing)


def test_shares_and_faces_by_hand(rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 5)) * [9, 4, 1, 1, 1] + 30
    for center in (True, False):
        model = PPCA(2, center=center, scale="scores").fit(X)
        rows = X - X.mean(axis=0) if center else X
        values = np.linalg.svd(rows, compute_uv=False) ** 2
        assert freyface.share_of(model, X) == pytest.approx(values[:2].sum() / values.sum())
    model = PPCA(2, scale="scores").fit(X)
    point = np.array([3.0, -2.0])
    expected = model.mean_ + point @ model.components_
    np.testing.assert_allclose(freyface.make_face(model, point), expected)


def test_the_film_has_the_published_number(shared_data: Callable[[str], Path]) -> None:
    folder = shared_data(freyface.FRAMES.name).parent
    table = reproduce(freyface.EXPERIMENT, folder, quick=True).table
    cell = table.cell("about the mean", "components")
    assert cell is not None and cell.values == (203.0,)
    assert all(check.holds for check in table.checks), table.checks
    figure = Figure()
    assert table.draw is not None
    table.draw(figure)
    titles = [ax.get_title() for ax in figure.axes]
    assert "share of variance retained" in titles and len(titles) == 8
