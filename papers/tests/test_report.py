"""A report says what was found, by which rule, and how to get it again."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import mixfold
from papers.frame.experiment import Experiment
from papers.frame.picture import draw_report
from papers.frame.report import format_csv, format_report, write_report
from papers.frame.run import Report, reproduce
from papers.frame.table import Cell, Column, Table

Make = Callable[..., Report]


def test_the_run_gets_folder_seed_and_variant(report: Make, tmp_path: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    made = report(quick=True, seed=7, progress=lambda *step: seen.append(step))
    assert seen == [(0, 1, "seed 7")]
    assert made.table.settings == (("folder", tmp_path.name), ("quick", "True"))
    assert (made.seed, made.quick) == (7, True)
    assert made.seconds >= 0


def test_missing_data_is_found_before_the_run(experiment: Experiment, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"small needs [\s\S]*faces\.npz: arrays X"):
        reproduce(
            experiment, tmp_path / "empty", progress=lambda *_: pytest.fail("it began to run")
        )


def test_markdown_shows_every_part(report: Make) -> None:
    text = format_report(report(seed=3))
    cells = [re.sub(r" +", " ", line) for line in text.splitlines() if line.startswith("|")]
    assert "| | SER [dB] | risk |" in cells
    assert "| d = 1 | 17.10 ± 0.1 (17.36) reproduced | 0 ± 0 (0) |" in cells
    assert "| d = 2 | 18.20 ± 0.3 (19.25) differs | 2.0e-30 ± 1e-30 |" in cells
    # one repeat: no spread; nothing published: nothing in brackets; no cell: nothing at all
    assert "| d = 3 | 19.12 | |" in cells
    assert (
        "| SER | within 0.5 dB | 1 of 2 reproduced, 1 differs | how well \\| rows are rebuilt |"
        in cells
    )
    assert "| risk | not judged | - | a tail probability |" in cells
    for part in (
        "# A small table", "Tabaghi (2016), table 9.9", "Puoya Tabaghi", "Mixture of Factor Models",
        "Fit to one half", "holds: SER grows",
        "**does not hold**: risk falls (it rises)", "People were not named.", "`faces.npz`",
        "python -m papers small --data DIR --seed 3", "seed 3;", f"mixfold {mixfold.__version__}",
        f"numpy {np.__version__}", "(small.png)",
    ):  # fmt: skip
        assert part in text
    assert "Quick" not in text


def test_csv_has_every_cell_in_full_precision(report: Make) -> None:
    made = report(seed=3)
    lines = list(csv.DictReader(StringIO(format_csv(made))))
    assert [(line["row"], line["column"]) for line in lines] == [
        (cell.row, cell.column) for cell in made.table.cells
    ]
    first, last = lines[0], lines[-1]
    assert float(first["ours"]) == made.table.cells[0].ours
    assert float(first["spread"]) == made.table.cells[0].spread
    assert float(first["difference"]) == pytest.approx(17.1 - 17.36)
    assert (first["repeats"], first["verdict"], first["rule"]) == (
        "2",
        "reproduced",
        "within 0.5 dB",
    )
    assert (last["spread"], last["published"], last["difference"]) == ("", "", "")
    assert (last["verdict"], last["seed"], last["quick"]) == ("not judged", "3", "False")
    assert f"numpy {np.__version__}" in last["versions"]


def test_the_picture_has_a_panel_per_measure_with_both_values(report: Make) -> None:
    figure = draw_report(report())
    ser, risk = figure.axes
    assert [ax.get_title() for ax in (ser, risk)] == ["SER [dB]", "risk"]
    drawn = {line.get_label(): line.get_xdata() for line in ser.lines}
    np.testing.assert_allclose(drawn["published"], [17.36, 19.25, math.nan])
    ours = ser.containers[-1].lines[0].get_xdata()
    np.testing.assert_allclose(ours, [17.1, 18.2, 19.125])
    # the grey bar spans what the rule allows
    bars = ser.patches
    assert (bars[0].get_x(), bars[0].get_width()) == (pytest.approx(16.86), pytest.approx(1.0))
    assert risk.get_xscale() == "log" and "zeros" in risk.get_xlabel()
    assert [text.get_text() for text in ser.get_yticklabels()] == ["d = 1", "d = 2", "d = 3"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ours", "published"]


def test_a_published_spread_stands_beside_its_value(experiment: Experiment) -> None:
    column = Column("SER", "how well rows are rebuilt", form=".2f")
    cells = (Cell("d = 1", "SER", (17.0, 17.5), 17.36, 0.6), Cell("d = 2", "SER", (18.0,), 19.25))
    made = replace(experiment, data=(), run=lambda *_: Table((column,), cells))
    report = reproduce(made, None)
    assert "17.25 ± 0.4 (17.36 ± 0.60)" in format_report(report)
    assert "18.00 (19.25)" in format_report(report)
    lines = csv.DictReader(StringIO(format_csv(report)))
    assert [line["published_spread"] for line in lines] == ["0.6", ""]


def test_a_table_may_draw_a_picture_of_its_own(experiment: Experiment) -> None:
    column, cells = Column("SER", "how well"), (Cell("d = 1", "SER", (17.0,)),)

    def draw(figure: Figure) -> None:
        figure.subplots().set_title("mine")

    made = replace(experiment, data=(), run=lambda *_: Table((column,), cells, draw=draw))
    figure = draw_report(reproduce(made, None, seed=7))
    assert [ax.get_title() for ax in figure.axes] == ["mine"]
    assert "seed 7" in figure.get_supxlabel() and figure.get_suptitle() == "A small table"


def test_files_are_written_whole_and_quick_ones_apart(report: Make, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "small.md").write_text("old")
    paths = write_report(report(), folder)
    assert [path.name for path in paths] == ["small.md", "small.csv", "small.png"]
    assert (folder / "small.md").read_text(encoding="utf-8").startswith("# A small table")
    assert (folder / "small.png").read_bytes().startswith(b"\x89PNG")
    write_report(report(quick=True), folder)
    names = {path.name for path in folder.iterdir()}
    stems = ("small", "small-quick")
    assert names == {f"{stem}.{kind}" for stem in stems for kind in ("md", "csv", "png")}
    text = (folder / "small-quick.md").read_text(encoding="utf-8")
    assert "Quick variant" in text and "--quick --seed 0" in text


def test_a_failure_writes_nothing(
    report: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Report) -> str:
        raise MemoryError

    monkeypatch.setattr("papers.frame.report.format_csv", fail)
    folder = tmp_path / "out"
    folder.mkdir()
    with pytest.raises(MemoryError):
        write_report(report(), folder)
    assert list(folder.iterdir()) == []
