"""Drawn sonar images have the structure that the text describes, and the table is run small."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from papers import mfm_sonar
from papers.frame.run import show_nothing
from papers.frame.table import Cell
from papers.shared.head_pose_images import label_row

pytestmark = pytest.mark.slow  # a published table, run small

SHAPE = (33, 68)


def test_a_body_is_bright_in_front_and_dark_behind() -> None:
    rng = np.random.default_rng(0)
    for kind in (mfm_sonar.BLOCK, mfm_sonar.CYLINDER):
        for angle in (0.0, 0.7, 1.5):
            image = mfm_sonar.draw_snippet(SHAPE, kind, angle, rng)
            floor = np.median(image[:5])
            middle = image[14:19]
            brightest = int(middle.mean(axis=0).argmax())
            darkest = int(middle.mean(axis=0).argmin())
            assert middle.max() > 1.5 * floor and middle.min() < 0.6 * floor
            assert brightest < darkest  # the sonar is on the left


def test_the_aspect_matters_more_for_a_cylinder() -> None:
    X, y = mfm_sonar.draw_snippets(SHAPE, np.random.default_rng(1))
    assert X.shape == (360, 33 * 68) and np.bincount(y).tolist() == [180, 180]
    spreads = [X[y == kind].var(axis=0).sum() for kind in (mfm_sonar.BLOCK, mfm_sonar.CYLINDER)]
    assert spreads[0] < spreads[1]
    other, _ = mfm_sonar.draw_snippets(SHAPE, np.random.default_rng(2))
    assert not np.array_equal(X, other)  # other speckle


def test_a_small_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mfm_sonar, "QUICK", mfm_sonar.Size((9, 18), (1, 2), (2, 3), 1, 1))
    table = mfm_sonar.run(Path(), True, 0, show_nothing)
    assert set(table.rows) == {label_row(k, d) for k in (1, 2) for d in (2, 3)}
    ratio = table.cell(label_row(2, 3), "SER of PPCA")
    assert ratio is not None and ratio.published == 17.84
    assert not any(table.judged(column) for column in table.columns)
    figure = Figure()
    assert table.draw is not None
    table.draw(figure)
    assert len(figure.axes) == 8


def test_claims_can_fail() -> None:
    size = mfm_sonar.Size(SHAPE, (1, 2), (3, 6), 1, 1)
    cells = []
    for k in size.components:
        for d in size.factors:
            ratio = 10.0 + k + d
            values = (1.0, 1.0, ratio, ratio, 1.0, 0.7)
            for column, value in zip(mfm_sonar.COLUMNS, values, strict=True):
                cells.append(Cell(label_row(k, d), column.name, (value,)))
    assert all(check.holds for check in mfm_sonar.check_claims(cells, size))
    turned = [
        replace(c, values=(30 - c.ours if c.column == "SER" else 1.5 - c.ours,)) for c in cells
    ]
    assert not any(check.holds for check in mfm_sonar.check_claims(turned, size))
