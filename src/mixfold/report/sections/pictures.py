"""Section: groups and factors as images, where a row is an image."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.report.capabilities import is_in_kernel_space
from mixfold.report.formatting import number, share
from mixfold.report.images import ImageShape, affordable, grey, signed_image, tile
from mixfold.report.markup import Html, details, join, tag
from mixfold.report.profiles import profiles_of
from mixfold.report.section import Note, Section
from mixfold.report.subject import Subject

_MOST, _FACTORS, _MOST_FACTORS = 40, 8, 96


def pictures(subject: Subject) -> Section | None:
    """The mean of each group, and how its factors (or codes) change a picture."""
    shape = subject.image
    if shape is None:
        return None
    makers = (_means, _factors, _codebook)
    parts = [part for make in makers if (part := make(subject, shape)) is not None]
    if not parts:
        return None
    notes: tuple[Note, ...] = ()
    size = f"{shape.height} \u00d7 {shape.width} pixels"
    lead = f"Each row shown as an image of {size}."
    if shape.guessed:
        columns = subject.model.n_features_in_
        lead += f" This is a guess: {columns} columns without names are a square."
        text = f"The {columns} columns were taken for images of {size}, which is a guess."
        told = (
            "If it is wrong, give image_shape=(height, width) (--image-shape HEIGHTxWIDTH), or "
            "names to the columns if rows are not images"
        )
        notes = (Note(text, told, serious=False),)
    return Section("pictures", "Images", lead, join(parts), notes)


def _means(subject: Subject, shape: ImageShape) -> Html | None:
    groups, found = subject.groups, profiles_of(subject)
    if groups is None or found is None:
        return _mean(subject, shape)
    shown = affordable(shape, min(len(found.means), _MOST))
    low, high = float(np.nanmin(found.means)), float(np.nanmax(found.means))
    tiles = []
    for i in range(shown):
        k = groups.shown[i]
        name = groups.label(k)
        weight = "" if groups.weights is None else f", {share(float(groups.weights[k]))}"
        tiles.append(tile(grey(found.means[i], shape, low, high, f"mean of {name}"), name + weight))
    scale = f"Black is {number(low)}, white is {number(high)}."
    return join([
        _sheet(f"Mean image of each {groups.word}", tiles, len(found.means)),
        tag("p", scale, class_="hint"),
    ])  # fmt: skip


def _mean(subject: Subject, shape: ImageShape) -> Html | None:
    """Of a model with a single one."""
    mean = np.asarray(getattr(subject.model, "mean_", ()), float)
    if mean.shape != (shape.height * shape.width,):
        return None
    low, high = float(mean.min()), float(mean.max())
    picture = grey(mean, shape, low, high, "mean of all rows")
    scale = f"Black is {number(low)}, white is {number(high)}."
    return join([
        tag("div", tile(picture, "mean of all rows"), class_="sheet"),
        tag("p", scale, class_="hint"),
    ])  # fmt: skip


def _factors(subject: Subject, shape: ImageShape) -> Html | None:
    """Loadings: of a single component in the open, of several folded away, a line for each."""
    loadings = getattr(subject.model, "loadings_", None)
    if loadings is None or is_in_kernel_space(subject.model):
        return None
    loadings = np.asarray(loadings, float)
    sets = loadings[None] if loadings.ndim == 2 else loadings
    if sets.ndim != 3 or sets.shape[1] != shape.height * shape.width or not sets.shape[2]:
        return None
    wide = min(sets.shape[2], _FACTORS)
    shown = max(1, affordable(shape, min(len(sets) * wide, _MOST_FACTORS)) // wide)
    lines = [tag("div", *_line(own[:, :wide], shape), class_="sheet") for own in sets[:shown]]
    title = "Loadings of each factor as an image, orange positive, blue negative"
    if sets.shape[2] > wide:
        title += f" (the first {wide} of {sets.shape[2]} factors)"
    hint = "Each image has its own scale: its largest loading has the full colour."
    if len(sets) == 1:
        return join([tag("h3", title), *lines, tag("p", hint, class_="hint")])
    named = [join([tag("h3", f"component {k}"), line]) for k, line in enumerate(lines)]
    more = f", of the first {shown} components" if shown < len(sets) else ", component by component"
    return details(title + more, *named, tag("p", hint, class_="hint"))


def _line(loadings: Array, shape: ImageShape) -> list[Html]:
    names = [f"factor {j + 1}" for j in range(loadings.shape[1])]
    return [
        tile(signed_image(column, shape, float(np.abs(column).max()), name), name)
        for column, name in zip(loadings.T, names, strict=True)
    ]


def _codebook(subject: Subject, shape: ImageShape) -> Html | None:
    """Codes of a model that has neither groups nor loadings."""
    model = subject.model
    if subject.groups is not None or hasattr(model, "loadings_"):
        return None
    size = shape.height * shape.width
    fitting = [book for book in _books(model) if book.ndim == 2 and book.shape[1] == size]
    if not fitting:
        return None
    found = fitting[0]
    shown = affordable(shape, min(len(found), _MOST))
    tiles = []
    for i, row in enumerate(found[:shown]):
        name = f"code {i + 1}"
        tiles.append(tile(signed_image(row, shape, float(np.abs(row).max()), name), name))
    hint = "Each image has its own scale: orange is positive, blue negative."
    return join([
        _sheet("The codes (dictionary) of which rows are combined", tiles, len(found)),
        tag("p", hint, class_="hint"),
    ])  # fmt: skip


def _books(model: Any) -> list[Array]:
    first = getattr(model, "layers_", [model])[0]  # of a deep model the layer next to the rows
    found = [np.asarray(first.components_, float)] if hasattr(first, "components_") else []
    upward = getattr(model, "recognition_weights_", ())
    return [*found, *(np.asarray(weights, float).T for weights in upward[:1])]


def _sheet(title: str, tiles: list[Html], wanted: int) -> Html:
    more = f" (the first {len(tiles)} of {wanted})" if wanted > len(tiles) else ""
    return join([tag("h3", title + more), tag("div", *tiles, class_="sheet")])
