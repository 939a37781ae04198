"""Section: reconstruction by column, and the rows reconstructed worst."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.report.capabilities import is_in_kernel_space, units_matter
from mixfold.report.formatting import NOTHING, number, share, short
from mixfold.report.images import ImageShape, affordable, grey, signed_image, tile
from mixfold.report.markup import Html, details, join, listed, tag
from mixfold.report.rows.residuals import ResidualSums
from mixfold.report.section import Section
from mixfold.report.sections.factors import communalities
from mixfold.report.subject import Subject
from mixfold.report.tables import bar, table

# errors in standard deviations that are rounding of float64
_ROUNDING = 1e-12
_COLUMNS, _OPEN, _ROWS, _NAMED, _PICTURES = 60, 12, 10, 3, 9
# errors below this part of a standard deviation are those of arithmetic
_ROUNDING = 1e-9


def residuals(subject: Subject) -> Section | None:
    """Of models that can say what a row would be without noise."""
    look = subject.look
    if look is None or look.residuals is None or look.residuals.errors is None:
        return None
    sums = look.residuals
    assert sums.errors is not None
    kept = sums.explained_variance(look.columns)
    if _is_exact(sums, look.columns):
        lead = "Reconstructed rows are the rows themselves, but for rounding: nothing is left out."
        return Section("residuals", "Reconstruction", lead, join([]))
    rebuilt = _rebuilt(subject, sums)
    if len(sums.worst.values) and -float(np.min(sums.worst.values)) < _ROUNDING:
        words = "The model has as many directions as the rows: every entry is rebuilt exactly."
        return Section("residuals", "Reconstruction", words, join([]))
    parts = [_columns(subject, kept), _rows(subject, sums, rebuilt)]
    if subject.image is not None:
        parts.insert(0, _pictures(subject, subject.image))
    return Section("residuals", "Reconstruction", _lead(subject, kept),
                   join(parts))  # fmt: skip


def _is_exact(sums: ResidualSums, columns: Any) -> bool:
    """Whether no row differs from its reconstruction by more than rounding, in sd."""
    worst = -np.asarray(sums.worst.values, float)
    offset = np.abs(columns.mean) / np.where(columns.deviation > 0, columns.deviation, 1.0)
    return bool((worst <= _ROUNDING * (1 + np.nanmax(offset))).all())


def _lead(subject: Subject, kept: Array) -> str:
    """What the reconstruction keeps; how that differs from what factors explain."""
    look = subject.look
    assert look is not None and look.residuals is not None and look.residuals.errors is not None
    if units_matter(subject.model) or not np.isfinite(kept).any():
        total = float(np.nansum(look.columns.mass * look.columns.deviation**2))
        whole = 1 - float(look.residuals.errors.sum()) / total if total > 0 else float("nan")
        lead = f"Reconstructed rows keep {share(whole)} of the total variance of all columns (R²)."
    else:
        mean = float(np.nanmean(kept))
        lead = f"Reconstructed rows keep {share(mean)} of the variance of a column on average (R²)."
    if not _has_factors(subject):
        return lead
    return (
        f"{lead} This differs from the communality in the section on factors: the factors of a row "
        "are inferred from the row itself, so they also reproduce a part of its noise."
    )


def _has_factors(subject: Subject) -> bool:
    loadings = getattr(subject.model, "loadings_", None)
    if not isinstance(loadings, np.ndarray) or loadings.ndim != 2:
        return False
    return len(loadings) == len(subject.names) and not is_in_kernel_space(subject.model)


def _columns(subject: Subject, kept: Array) -> Html:
    """Worst columns first: there the model misses something."""
    kept = np.where(np.isfinite(kept), kept, np.nan)  # a column that does not vary has no R²
    order = np.argsort(kept, kind="stable")[:_COLUMNS]
    rows = [[short(subject.names[j]), bar(kept[j], share(float(kept[j])))] for j in order]
    head = ["column", "R² of reconstruction"]
    if _has_factors(subject):
        part = communalities(subject.model, np.asarray(subject.model.loadings_, float))
        head.append("communality")
        rows = [[*row, share(float(part[j]))] for row, j in zip(rows, order, strict=True)]
    more = f", the worst {_COLUMNS} of {len(kept)}" if len(kept) > _COLUMNS else ", worst first"
    caption = f"Columns by R²{more}"
    if subject.image is not None:
        values = np.clip(np.nan_to_num(kept), 0, 1)
        picture = grey(values, subject.image, 0.0, 1.0, "R² of reconstruction, by pixel")
        title = tag("h3", "R² of reconstruction, by pixel")
        seen = tag("div", tile(picture, "white: 1, black: 0"), class_="sheet")
        return join([title, seen, details("By column, as a table", table(head, rows, caption))])
    if len(rows) <= _OPEN:
        return table(head, rows, caption)
    rest = details("More columns", table(head, rows[_OPEN:], "Columns with a higher R²"))
    return join([table(head, rows[:_OPEN], caption), rest])


def _rebuilt(subject: Subject, sums: ResidualSums) -> Array:
    from mixfold.engine.sources import open_source

    assert subject.look is not None and subject.look.questions.rebuilt is not None
    return subject.look.questions.rebuilt(open_source(sums.worst.X))


def _rows(subject: Subject, sums: ResidualSums, rebuilt: Array) -> Html:
    assert subject.look is not None
    scale = sums.scale(subject.look.columns)
    rows = []
    for i in range(min(len(rebuilt), _ROWS)):
        x = sums.worst.X[i]
        apart = np.nan_to_num(np.abs(x - rebuilt[i]) / scale)
        best = np.argsort(-apart, kind="stable")[:_NAMED]
        words = [
            f"{short(subject.names[j], 30)} {number(x[j])} (reconstructed {number(rebuilt[i, j])})"
            for j in best
            if apart[j] > 0
        ]
        rows.append(
            [
                subject.row_name(sums.worst.rows[i]),
                listed(words, "; ") if words else NOTHING,
                number(-sums.worst.values[i]),
            ]
        )
    head = ["", "largest errors", "root mean square error, in sd"]
    of = "of all columns" if sums.one_scale else "of each column"
    caption = f"Rows with the largest errors of reconstruction; sd is the standard deviation {of}"
    return table(head, rows, caption, text=(0, 1))


def _pictures(subject: Subject, shape: ImageShape) -> Html:
    """Rows of the sample, their reconstructions, and what is left."""
    from mixfold.engine.sources import open_source

    look = subject.look
    assert look is not None and look.questions.rebuilt is not None
    n = affordable(shape, min(len(look.sampled), _PICTURES) * 3) // 3 or 1
    few = look.sampled.at(np.linspace(0, len(look.sampled) - 1, n).astype(int))
    X = np.asarray(few.X.toarray() if hasattr(few.X, "toarray") else few.X, float)
    rebuilt = look.questions.rebuilt(open_source(X))
    low, high = float(np.nanmin(X)), float(np.nanmax(X))
    most = float(np.nanmax(np.abs(X - rebuilt)))
    tiles = []
    for i, row in enumerate(few.rows):
        name = subject.row_name(row)
        images = (
            grey(X[i], shape, low, high, name),
            grey(rebuilt[i], shape, low, high, f"{name}, reconstructed"),
            signed_image(X[i] - rebuilt[i], shape, most, f"{name}, difference"),
        )
        tiles.append(tile(tag("span", *images, class_="stack"), name))
    title = tag("h3", "Rows, their reconstructions, and the differences")
    hint = f"Differences: orange {number(most)}, white 0, blue {number(-most)}."
    return join([title, tag("div", *tiles, class_="sheet"), tag("p", hint, class_="hint")])
