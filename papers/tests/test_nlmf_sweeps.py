"""Sweeps of a factor layer: settings as in the figures, small fits, claims that can fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from papers import nlmf_sweeps
from papers.frame.run import show_nothing
from papers.frame.table import Cell
from papers.shared import mnist_digits

pytestmark = pytest.mark.slow  # a published table, run small


def test_settings_are_those_of_the_figures() -> None:
    by_figure = {sweep.figure: sweep for sweep in nlmf_sweeps.SWEEPS}
    assert len(by_figure) == len(nlmf_sweeps.SWEEPS)
    assert by_figure["5.17"].title == "{100, 0, 0, gamma, 0.001}"
    assert by_figure["5.17"].label(0.2) == "{100, 0, 0, gamma, 0.001}, gamma = 0.2"
    assert by_figure["5.44"].title == "L2 {200, 0, beta, 4, 1e-06}"
    moved = {sweep.name for sweep in nlmf_sweeps.SWEEPS}
    assert moved == {"n_components", "alpha", "beta", "gamma", "sigma2"}
    model = nlmf_sweeps.make_model({**by_figure["5.19"].common, "gamma": 3.0}, False, 7, 0)
    settings = model.get_params()
    assert (settings["n_components"], settings["gamma"], settings["sigma2"]) == (500, 3.0, 1e-5)
    assert settings["max_iter"] == 7 and settings["reencode"] is False
    upper = nlmf_sweeps.make_model({**by_figure["5.39"].common, "gamma": 0.3}, True, 7, 0)
    assert upper.get_params()["hidden"] == (100, 50)
    assert upper.get_params()["gamma"] == (0.2, 0.3)


def test_a_small_run_has_a_row_for_every_value(
    digits_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweeps = (
        nlmf_sweeps._shrink(nlmf_sweeps.SWEEPS[0], 0, (4, 12)),
        nlmf_sweeps._shrink(nlmf_sweeps.SWEEPS[1], 8, (0, 0.5)),
        nlmf_sweeps._shrink(nlmf_sweeps.SWEEPS[2], 8, (1e-4, 1.0)),
        nlmf_sweeps._shrink(nlmf_sweeps.SWEEPS[5], 8, (0, 1.0)),
        nlmf_sweeps._shrink(nlmf_sweeps.SWEEPS[8], 8, (0, 300.0)),
    )
    size = nlmf_sweeps.Size(mnist_digits.Size(20, 20, 100), 8, sweeps)
    monkeypatch.setattr(nlmf_sweeps, "QUICK", size)
    table = nlmf_sweeps.run(digits_folder, True, 0, show_nothing)
    assert len(table.rows) == 10 and len(table.cells) == 10 * len(nlmf_sweeps.COLUMNS)
    assert all(np.isfinite(cell.ours) for cell in table.cells)
    assert [check.holds for check in table.checks][:2] == [True, True]
    figure = Figure()
    assert table.draw is not None
    table.draw(figure)
    assert len(figure.axes) == 4 * len(sweeps)


def test_claims_fail_on_cells_the_other_way_round() -> None:
    sweeps = nlmf_sweeps.SWEEPS[:3] + nlmf_sweeps.SWEEPS[5:6] + nlmf_sweeps.SWEEPS[7:8]
    rising = {"alpha": ("e_r",), "beta": ("e_r", "sparse A"), "sigma2": ("next digits",)}
    cells = []
    for sweep in sweeps:
        for step, value in enumerate(sweep.values):
            for column in nlmf_sweeps.COLUMNS:
                up = column.name in rising.get(sweep.name, ())
                ours = 10 + step if up else 10 - step
                if sweep.name == "gamma":
                    ours = 10
                cells.append(Cell(sweep.label(value), column.name, (float(ours),)))
    assert all(check.holds for check in nlmf_sweeps.check_claims(cells, sweeps))
    turned = [replace(cell, values=(20 - cell.ours,)) for cell in cells]
    names = {sweep.label(value) for sweep in sweeps if sweep.name == "gamma" for value in (10.0,)}
    turned = [replace(c, values=(30.0,)) if c.row in names else c for c in turned]
    assert not any(check.holds for check in nlmf_sweeps.check_claims(turned, sweeps))
