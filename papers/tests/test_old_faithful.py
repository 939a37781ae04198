"""The geyser data: the file, the checks, and a few climbs on the real rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from papers import old_faithful
from papers.frame.run import reproduce, show_nothing
from papers.frame.table import Cell, Verdict
from papers.shared import variational_mixtures

pytestmark = pytest.mark.slow  # a published table, run small


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n" + "1,2\n" * 271, r"272 lines of two numbers.*shape \(271, 2\)"),
        ("a,b\n" + "1,x\n" * 272, "cannot be read"),
        ("a,b\n" + "1,nan\n" * 272, r"shape \(272, 2\)"),
    ],
)
def test_another_file_of_that_name_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / old_faithful.GEYSER.name).write_text(content)
    with pytest.raises(ValueError, match=message):
        old_faithful.run(tmp_path, True, 0, show_nothing)


END = variational_mixtures.Ended(
    2,
    0.0,
    0.0,
    1,
    True,
    np.array([0.6, 0.4]),
    np.array([[2.0, 50], [4, 80]]),
    np.array([[[0.1, 0], [0, 30.0]], [[0.2, 1], [1, 40]]]),
)


def _cells(counts: dict[str, tuple[float, ...]], bounds: tuple[float, ...]) -> list[Cell]:
    cells = []
    for rule, numbers in counts.items():
        for alpha, number in zip(old_faithful.ALPHAS, numbers, strict=True):
            cells.append(Cell(f"{rule}, alpha = {alpha}", "components", (number,)))
    for alpha, bound in zip(old_faithful.ALPHAS, bounds, strict=True):
        cells.append(Cell(f"VBDMA, alpha = {alpha}", "bound", (bound,)))
    return cells


def test_claims() -> None:
    counts = {
        "VBDMA": (3.0, 6.0, 15.0),
        "VBDMA, W_0^-1 = 0.1 S": (4.0, 9.0, 18.0),
        "VBDMA, W_0^-1 = 0.4 S": (2.0, 5.0, 9.0),
        "VBTDP as printed": (4.0, 5.0, 5.0),
        "VBTDP": (1.0,) * 3,
    }
    assert all(
        check.holds for check in old_faithful._check_claims(_cells(counts, (-1174, -1187, -1253)))
    )
    counts["VBTDP as printed"] = (2.0, 5.0, 30.0)
    checks = old_faithful._check_claims(_cells(counts, (-1174, -1253, -1187)))
    assert [check.holds for check in checks] == [True, False, True, False]
    counts["VBDMA"] = (3.0, 15.0, 6.0)
    checks = old_faithful._check_claims(_cells(counts, (-1, -2, -3)))
    assert [check.holds for check in checks[:3]] == [False, True, False]


def test_the_six_printed_numbers_are_judged() -> None:
    ends = [replace(END, components=5, kept=-1180.0), replace(END, components=6, kept=-1190.0)]
    cells = [
        c for alpha in old_faithful.ALPHAS for c in old_faithful._make_cells("VBDMA", alpha, ends)
    ]
    columns = {column.name: column for column in old_faithful.COLUMNS}
    judged = [c for c in cells if columns[c.column].verdict(c) is not Verdict.open]
    assert [c.published for c in judged] == [3, -1174.55, 6, -1187.75, 15, -1253.17]
    assert columns["components"].verdict(cells[0]) is Verdict.differs  # 5.5 of 3, allowed are 2
    assert columns["components"].verdict(cells[3]) is Verdict.reproduced and cells[0].why
    other = old_faithful._make_cells("VBDMA, W_0^-1 = 0.1 S", 100, ends)
    assert all(cell.published is None for cell in other)


def test_the_picture_has_an_ellipse_for_each_component() -> None:
    rng = np.random.default_rng(0)
    end = END
    ends = {(rule, alpha): end for rule in old_faithful.RULES for alpha in old_faithful.ALPHAS}
    figure = Figure()
    old_faithful.draw(rng.normal([3, 70], [1, 10], (30, 2)), ends, figure)
    assert len(figure.axes) == 9
    for ax in figure.axes:
        assert sum(isinstance(patch, Ellipse) for patch in ax.patches) == 2
    assert figure.axes[0].get_title() == "VBDMA, alpha = 100: 2"


# ------------------------------------------------ the real rows


def test_on_the_real_rows(shared_data: Callable[[str], Path]) -> None:
    """Ranges over ten starts, computed once with other code."""
    X = old_faithful.load_geyser(shared_data(old_faithful.GEYSER.name))
    ranges = {100: (3, 7, -1196, -1168), 500: (6, 11, -1226, -1192), 1000: (11, 17, -1270, -1240)}
    found = []
    for alpha, (least, most, low, high) in ranges.items():
        end = variational_mixtures.fit(
            X, old_faithful.K, "VBDMA", float(alpha), old_faithful.PRECISION, 1
        )
        assert end.converged
        assert least <= end.components <= most and low < end.kept < high
        found.append(end.components)
    assert found == sorted(found) and found[0] < found[-1]
    # the bound of all components, best of ten starts: -1382.7
    assert (
        variational_mixtures.fit(X, old_faithful.K, "VBDMA", 100.0, old_faithful.PRECISION, 2).bound
        < -1378
    )


def test_the_report(shared_data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shared_data(old_faithful.GEYSER.name).parent
    monkeypatch.setattr(old_faithful, "QUICK", old_faithful.Size(1))
    monkeypatch.setattr(old_faithful, "ALPHAS", (100, 1000))
    report = reproduce(old_faithful.EXPERIMENT, folder, quick=True)
    assert report.table.rows[0] == "VBDMA, alpha = 100"
    assert len(report.table.cells) == 2 * 3 * 3 + 2 * 2 * 2
    one = report.table.cell("VBTDP, alpha = 1000", "components")
    assert one is not None and one.values == (1.0,)
