"""Zhang (2017), section 1, figures 1 to 9: principal components of the frames of a face."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold import PPCA
from mixfold.contracts import Array
from papers.frame.checks import check_growth
from papers.frame.data import load_arrays
from papers.frame.experiment import DataFile, Experiment, Progress
from papers.frame.table import Cell, Check, Column, Table, Tolerance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHAPE, ROWS = (28, 20), 1965
FRAMES = DataFile(
    "frey_face.npz",
    "array X (1965 frames x 560, grey values 0 to 255 of 28 x 20 pixels)",
    "the Frey face of B. Frey and S. Roweis (frey_rawface)",
)
SHARE, AXES = 0.99, 16
# sigma of the points that faces are made of, and of the noise that is removed
TRAVERSE, NOISES = (100, 300, 500, 1000, 1500, 2000), (10, 30, 50, 100, 200, 400)
COLUMNS = (
    Column(
        "components",
        f"least number whose share of the variance is {SHARE:.0%}",
        tolerance=Tolerance(),
        form=".0f",
    ),
    Column("share of two", "of the variance about the mean, or about zero", form=".3f"),
    Column("error before", "root mean square of the noise of a frame, grey values", form=".1f"),
    Column("error after", "the same after projection on the axes and back", form=".1f"),
)
PUBLISHED = 203
NOTES = (
    "Axes about zero (not centred) leave 10 components for 99 % of the sum of squares, most of "
    "which is the mean face; the source's 203 is of the variance about the mean.",
    "Section 1.2.5 of the source does not subtract the mean before it projects; the class does, "
    "and frames come back where they were.",
    "The source's denoising uses two axes, which lose most of the face; rows with 203 axes are "
    "beside it, where the noise that is left is that within the axes.",
)


@dataclass(frozen=True, slots=True)
class Fits:
    """Axes about the mean and about zero, and the share of variance by number of axes."""

    X: Array
    centred: Any
    plain: Any
    curve: Array


def run(data_folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
    """Fit, count, project, make faces and remove noise."""
    X = load_frames(data_folder / FRAMES.name)
    progress(0, 2, "axes")
    enough = PPCA(SHARE, random_state=seed).fit(X)
    two = {center: PPCA(2, center=center, scale="scores").fit(X) for center in (True, False)}
    sixteen = {center: PPCA(AXES, center=center).fit(X) for center in (True, False)}
    curve = np.cumsum(PPCA(min(X.shape) - 1).fit(X).explained_variance_ratio_)
    progress(1, 2, "noise")
    frames = X[:: 40 if quick else 4]
    rng = np.random.default_rng([seed, 9])
    cells = [
        Cell("about the mean", COLUMNS[0].name, (float(enough.n_components_),), PUBLISHED),
        Cell("about the mean", COLUMNS[1].name, (share_of(two[True], X),)),
        Cell("about zero", COLUMNS[1].name, (share_of(two[False], X),)),
    ]
    for sigma in NOISES:
        noisy = frames + sigma * rng.standard_normal(frames.shape)
        before = _measure_gap(noisy, frames)
        for name, model in (("2 axes", two[True]), (f"{PUBLISHED} axes", enough)):
            row = f"noise {sigma}, {name}"
            after = _measure_gap(model.reconstruct(noisy, method="least-squares"), frames)
            cells += [
                Cell(row, COLUMNS[2].name, (before,)), Cell(row, COLUMNS[3].name, (after,)),
            ]  # fmt: skip
    progress(2, 2, "done")
    checks = _check_claims(cells, Fits(X, two[True], two[False], curve), enough)
    settings = (("frames with noise", str(len(frames))),)
    picture = partial(draw, Fits(X, two[True], two[False], curve), sixteen, seed)
    return Table(COLUMNS, tuple(cells), checks, settings, NOTES, picture)


def load_frames(path: Path) -> Array:
    """The frames, one a row.

    Raises
    ------
    ValueError
        If the file holds anything else.
    """
    (X,) = load_arrays(path, ("X",))
    if X.shape != (ROWS, SHAPE[0] * SHAPE[1]):
        raise ValueError(
            f"{str(path)!r} must hold X of shape {(ROWS, SHAPE[0] * SHAPE[1])}; got {X.shape}. "
            "Obtain it again."
        )
    return np.asarray(X, float)


def share_of(model: Any, X: Array) -> float:
    """What two axes keep of the squares about the mean of the model, or about zero."""
    rows = X - model.mean_
    return float((model.transform(X) ** 2).sum() / (rows**2).sum())


def _measure_gap(X: Array, frames: Array) -> float:
    return float(np.sqrt(np.mean((X - frames) ** 2)))


def make_face(model: Any, point: Array) -> Array:
    """The frame at a point of the plane of two axes, in grey values."""
    face: Array = model.inverse_transform(point[None], method="least-squares")[0]
    return face


def _check_claims(cells: Sequence[Cell], fits: Fits, enough: Any) -> tuple[Check, ...]:
    after = {c.row: c for c in cells if c.column == COLUMNS[3].name}
    before = {c.row: c for c in cells if c.column == COLUMNS[2].name}
    many = [f"noise {sigma}, {PUBLISHED} axes" for sigma in NOISES]
    gains = [before[row].ours / after[row].ours for row in many]
    spectrum = np.linalg.eigvalsh(np.cov(fits.X.T, bias=True))[::-1]
    theirs = np.cumsum(spectrum) / spectrum.sum()
    gap = float(np.abs(fits.curve - theirs[: len(fits.curve)]).max())
    alike = abs(fits.centred.components_ @ enough.components_[:2].T)
    return (
        Check(
            "the curve of variance retained is that of the eigenvalues of the covariance",
            gap < 1e-8, f"largest difference {gap:.0e}",
        ),
        Check(
            "two axes are the first two of 203", bool(np.allclose(alike, np.eye(2), atol=1e-6)),
            f"cosines {alike[0, 0]:.6f}, {alike[1, 1]:.6f}",
        ),
        Check(
            "projection removes noise: 203 axes of 560 leave less than three quarters of it",
            min(gains) > 4 / 3, f"before / after {min(gains):.2f} to {max(gains):.2f}",
        ),
        check_growth(
            "the more noise, the worse the face that comes back",
            [[after[f"noise {s}, {n} axes"] for s in NOISES] for n in (2, PUBLISHED)],
        ),
    )  # fmt: skip


# ------------------------------------------------ picture


def draw(fits: Fits, sixteen: dict[bool, Any], seed: int, figure: Figure) -> None:
    """Figures 1 to 9: frames, curve, axes, planes, faces from points, noise removed."""
    figure.set_size_inches(12, 13)
    grid = figure.add_gridspec(4, 4, height_ratios=(1, 1, 0.8, 0.8))
    _draw_sheet(figure.add_subplot(grid[0, 0]), fits.X[:: ROWS // 48][:48], 8, "frames")
    _draw_curve(figure.add_subplot(grid[0, 1]), fits.curve)
    for j, center in enumerate((True, False)):
        about = "the mean" if center else "zero"
        axes = figure.add_subplot(grid[0, 2 + j])
        _draw_sheet(axes, sixteen[center].components_, 4, f"{AXES} axes about {about}")
        plane = figure.add_subplot(grid[1, 2 * j : 2 * j + 2])
        _draw_plane(plane, fits.centred if center else fits.plain, fits.X, f"about {about}")
    rng = np.random.default_rng([seed, 7])
    points = [sigma * rng.standard_normal(2) for sigma in TRAVERSE]
    faces = np.array([make_face(fits.centred, point) for point in points])
    titles = [f"sigma {sigma}" for sigma in TRAVERSE]
    _draw_row(figure.add_subplot(grid[2, :]), faces, "faces of points", titles)
    noisy = fits.X[0] + np.array(NOISES)[:, None] * rng.standard_normal(
        (len(NOISES), fits.X.shape[1])
    )
    back = fits.centred.reconstruct(noisy, method="least-squares")
    both = np.vstack([noisy, back])
    titles = [f"noise {sigma}" for sigma in NOISES] + ["two axes"] * len(NOISES)
    _draw_row(figure.add_subplot(grid[3, :]), both, "noise, and what comes back", titles, 6)


def _draw_sheet(ax: Axes, images: Array, columns: int, title: str) -> None:
    from mixfold.plots import plot_images

    plot_images(images, SHAPE, columns=columns, scale="own", ax=ax)
    ax.set_title(title, fontsize=9)


def _draw_row(ax: Axes, images: Array, title: str, titles: list[str], columns: int = 6) -> None:
    from mixfold.plots import plot_images

    plot_images(images.clip(0, 255), SHAPE, columns=columns, titles=titles, scale="own", ax=ax)
    ax.set_title(title, fontsize=9)


def _draw_curve(ax: Axes, curve: Array) -> None:
    ax.plot(np.arange(1, len(curve) + 1), curve, color="C0")
    ax.axhline(SHARE, color="0.7", lw=0.8)
    ax.plot(PUBLISHED, curve[PUBLISHED - 1], "D", mfc="none", mec="#c8553d", label="published")
    ax.annotate(f"k = {PUBLISHED}", (PUBLISHED, SHARE), (PUBLISHED, 0.85), fontsize=8)
    ax.set_title("share of variance retained", fontsize=9)
    ax.set_xlabel("components", fontsize=8)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)


def _draw_plane(ax: Axes, model: Any, X: Array, title: str) -> None:
    """All frames in the plane of two axes, and some of them as pictures."""
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    Z = model.transform(X)
    ax.plot(*Z.T, ".", ms=2, color="0.6")
    for angle in np.linspace(0, 2 * np.pi, 9)[:-1]:
        away = (Z - Z.mean(axis=0)) / Z.std(axis=0)
        row = int(np.argmax(away @ (np.cos(angle), np.sin(angle))))
        face = OffsetImage(X[row].reshape(SHAPE), zoom=1.3, cmap="gray")
        ax.add_artist(AnnotationBbox(face, Z[row], frameon=False))
    ax.margins(0.12)
    ax.set_title(f"plane of two axes {title}", fontsize=9)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)


EXPERIMENT = Experiment(
    name="freyface",
    title="Principal components of a film of a face",
    source="Zhang 2017",
    place="figures 1-9",
    protocol=(
        "1965 frames of 28 x 20 pixels. PPCA with a share of variance of 99 % (figure 2), with two "
        "axes and with sixteen, about the mean of the frames and about zero (figures 3 to 6), "
        "frames of points of the plane that are drawn with a growing standard deviation (figure "
        "7), and frames with noise, projected on the axes and back (figures 8 and 9). The swiss "
        "roll of the source's section 1.3 (LLE, Isomap) is no model of this library."
    ),
    data=(FRAMES,),
    run=run,
)
