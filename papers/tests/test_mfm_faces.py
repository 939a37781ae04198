"""The protocol of the faces with labels: measures by hand, claims, the picture, the real images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from mixfold import PPCA, metrics
from papers import mfm_faces
from papers.frame.run import show_nothing
from papers.frame.table import Cell, Table
from papers.shared import head_pose_images

pytestmark = pytest.mark.slow  # a published table, run small

SMALL = mfm_faces.Size(components=(1, 2), factors=(6, 12), repeats=1, restarts=1, digits=120)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two people on axes of their own, and digits that differ in a corner of the image."""
    rng = np.random.default_rng(5)
    who = np.repeat([9, 11], head_pose_images.IMAGES)
    X = 120 + 3 * rng.normal(size=(len(who), head_pose_images.PIXELS))
    scales = np.linspace(9.0, 3.0, 14)[:, None]
    X += rng.normal(size=(len(who), 14)) @ (scales * rng.normal(size=(14, head_pose_images.PIXELS)))
    X += np.where(who == 9, 1.0, -1.0)[:, None] * 15 * rng.normal(size=head_pose_images.PIXELS)
    path = tmp_path_factory.mktemp("faces")
    np.savez(path / head_pose_images.FACES.name, X=X.clip(0, 255).astype(np.uint8), y=who)
    digit = np.arange(300) % 10
    images = 40 * rng.random((300, mfm_faces.DIGIT_PIXELS))
    images[digit == 3, :200] += 60
    np.savez(path / mfm_faces.DIGITS.name, X=images.astype(np.uint8), y=digit)
    return path


@pytest.fixture(scope="module")
def small(folder: Path) -> Table:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mfm_faces, "FULL", SMALL)
        patch.setattr(mfm_faces, "MAX_ITER", 8)
        patch.setattr(mfm_faces, "DIGITS_MAX_ITER", 20)
        return mfm_faces.run(folder, False, 0, show_nothing)


def test_every_cell_is_there(small: Table) -> None:
    rows = [f"K = {k}, d = {d}" for d in (6, 12) for k in (1, 2)]
    assert list(small.rows[:4]) == rows
    assert small.rows[4:] == ("digits, linear SVM", "digits, tradeoff 1", "digits, tradeoff 100")
    assert len(small.cells) == 4 * 7 + 1 + 2 * 3
    published = small.cell("K = 2, d = 12", "SER")
    assert published is not None and published.published == 19.98


def test_one_component_rebuilds_as_ppca_does(small: Table, folder: Path) -> None:
    X, y = head_pose_images.load_images(folder / head_pose_images.FACES.name)
    ratios = [
        metrics.signal_to_error_ratio(X[test], PPCA(12).fit(X[train]).reconstruct(X[test]))
        for train, test in head_pose_images.split_in_halves(y, 0, 0)
    ]
    cell = small.cell("K = 1, d = 12", "SER")
    assert cell is not None
    assert cell.ours == pytest.approx(np.mean(ratios), abs=0.05)
    claims = {check.claim: check.holds for check in small.checks}
    assert claims["the SER of K = 1 is that of PPCA within 0.05 dB"]
    assert claims["R_clas(y) is at most R_clas(x) for K = 1"]


def test_people_and_digits_are_told_apart(small: Table) -> None:
    for row in small.rows:
        cell = small.cell(row, "P_cc x")
        assert cell is not None
        assert cell.ours > 0.97


def test_claims_can_fail() -> None:
    size = mfm_faces.Size((1, 2), (6, 12), 1, 1, 0)
    values = {"SER": 18.0, "P_cc x": 0.9, "P_cc y": 0.99, "R_clas(x)": 0.1, "R_clas(y)": 0.2}
    cells = [
        Cell(f"K = {k}, d = {d}", name, (value,))
        for d in size.factors
        for k in size.components
        for name, value in values.items()
    ]
    assert not any(check.holds for check in mfm_faces._check_claims(cells, size))
    assert not mfm_faces._check_like_ppca([0.01, -0.06]).holds
    assert not mfm_faces._check_digits(0.95, 0.96).holds
    assert mfm_faces._check_digits(0.957, 0.96).holds


def test_the_picture_shows_latents_and_the_border(small: Table) -> None:
    figure = Figure()
    assert small.draw is not None
    small.draw(figure)
    sheet, left, right = figure.axes
    assert len(sheet.texts) >= 5  # names of the rows: images, and four sizes of models
    cloud, border = left.collections
    at, first = np.asarray(cloud.get_offsets()), cloud.get_facecolors()[:, 0]
    assert len(at) == head_pose_images.IMAGES
    (line,) = border.get_paths()
    right_of = at[:, 0] > line.vertices[0, 0]
    sides = [right_of[first == colour].mean() for colour in np.unique(first)]
    assert len(sides) == 2 and abs(sides[0] - sides[1]) > 0.9
    texts = [text.get_text() for text in left.get_legend().get_texts()]
    assert texts == ["9", "11", "discriminant"]
    assert len(right.get_yticklabels()) == 4


def test_digits_are_left_out_where_their_file_is_not(tmp_path: Path) -> None:
    assert mfm_faces.run_digits(tmp_path, 10, 0) == ((), ())
    np.savez(tmp_path / mfm_faces.DIGITS.name, X=np.zeros((3, 5)), y=np.zeros(3))
    with pytest.raises(ValueError, match="must hold X of shape"):
        mfm_faces.run_digits(tmp_path, 10, 0)


def test_the_real_faces(shared_data: Callable[[str], Path]) -> None:
    path = shared_data(head_pose_images.FACES.name)
    X, y = head_pose_images.load_images(path)
    train, test = next(head_pose_images.split_in_halves(y, 0, 0))
    model = mfm_faces.fit_images(X[train], y[train], 1, 6, 1, 0)
    found = mfm_faces._measure(model, X[test], y[test])
    names = [column.name for column in mfm_faces.COLUMNS]
    measured = dict(zip(names, found, strict=True))
    assert measured["P_cc x"] >= mfm_faces.LEAST_RIGHT
    assert (
        abs(measured["SER"] - mfm_faces._measure_ppca(X[train], X[test], 6)) < mfm_faces.SAME_RATIO
    )
    assert measured["SER"] == pytest.approx(17.35, abs=0.5)
