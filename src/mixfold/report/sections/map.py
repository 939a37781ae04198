"""The map: rows as points that can be moved, coloured and filtered."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.report.capabilities import axis_word
from mixfold.report.charts import points as chart
from mixfold.report.formatting import count, number, plural
from mixfold.report.images import sheet_of
from mixfold.report.markup import Html, tag
from mixfold.report.points import Points, brief, points_of
from mixfold.report.section import Section
from mixfold.report.subject import Subject

_MOST_NAMES = 40


def latent_map(subject: Subject) -> Section | None:
    """A picture for everybody, and what the script needs to make it move."""
    if subject.look is None:
        return None
    found = points_of(subject)
    if found is None:
        return None
    labels = (found.axes[found.first[0]][0], found.axes[found.first[1]][0])
    x, y = (found.axes[i][1] for i in found.first)
    title = f"{count(len(found))} {subject.unit}s by {labels[0]} and {labels[1]}"
    picture = chart.point_map(x, y, found.group, brief(found.names), labels, title)
    body = tag(
        "div",
        _controls(found),
        tag("div", picture, tag("div", class_="tip", role="status", hidden=True), class_="stage"),
        _legend(found),
        tag("p", _help(subject.unit), class_="hint only-script"),
        _data(found, subject),
        class_="map-box",
        id="map-box",
    )
    return Section("map", f"Map of the {subject.unit}s", _lead(subject, found), body)


def _help(unit: str) -> str:
    return (
        f"Drag to move; zoom with Ctrl and the wheel or with the buttons; point at a {unit}, or "
        f"tap it, to read it. Keys: arrows move, + and \u2212 zoom, 0 resets, n and p step from "
        f"{unit} to {unit}. Filter by the number of a {unit}, the name of a group, or a column and "
        "a limit (name > 2)."
    )


_APART = (
    "projected on the two directions that separate the groups best",
    "projected on the direction that separates the groups best and the one in which rows vary most "
    "within groups",
)


def _lead(subject: Subject, found: Points) -> str:
    assert subject.look is not None
    total = subject.look.n_rows
    which = (
        f"A sample of {count(len(found))} of {count(total)} {subject.unit}s, "
        f"drawn at random (seed {subject.seed})"
        if len(found) < total
        else f"All {count(total)} {subject.unit}s"
    )
    first = found.axes[found.first[0]][0]
    how = (
        _APART[found.axes[found.first[1]][0].startswith("variation")]
        if first.startswith("separating")
        else "projected on the two directions of largest variance"
        if first.startswith("principal")
        else f"by the expected values of their first two {axis_word(subject.model)[1]}"
    )
    if subject.has_topics:
        by_topic = found.word == "topic"
        groups = "documents of different largest topics" if by_topic else "the clusters"
        same = "documents with the same largest topic" if by_topic else "documents of a cluster"
        how = how.replace("the groups best", f"{groups} best")
        how = how.replace("rows vary most within groups", f"{same} vary most")
    far = chart.beyond(*(found.axes[i][1] for i in found.first))
    lie = "lies" if far == 1 else "lie"
    more = f" {plural(far, subject.unit)} {lie} beyond the edges: zoom out." if far else ""
    largest = " Colours: the largest topic of each." if found.word == "topic" else ""
    alike = (
        f"{subject.unit.capitalize()}s that are far apart differ; those close together may still "
        "differ in other directions."
    )
    return f"{which}, {how}.{largest} {alike}{more}"


def _controls(found: Points) -> Html:
    axes = [name for name, _ in found.axes]
    colours = _colours(found)
    fields = [
        _select("map-colour", "Colour by", [c["name"] for c in colours], 0),
        _select("map-x", "Across", axes, found.first[0]),
        _select("map-y", "Up", axes, found.first[1]),
        tag(
            "label",
            tag("span", "Filter"),
            tag("input", type="search", id="map-filter", placeholder="row, group, x > 2"),
        ),
    ]
    buttons = [
        tag("button", text, type="button", id=key, aria_label=label, title=label)
        for key, text, label in (
            ("map-in", "+", "Zoom in"),
            ("map-out", "\u2212", "Zoom out"),
            ("map-reset", "Reset", "Show all rows"),
        )
    ]
    status = tag("span", id="map-status", role="status")
    return tag("div", *fields, tag("div", *buttons, class_="buttons"), status,
               class_="controls only-script")  # fmt: skip


def _select(key: str, label: str, names: list[str], chosen: int) -> Html:
    options = [tag("option", name, value=i, selected=i == chosen) for i, name in enumerate(names)]
    return tag("label", tag("span", label), tag("select", *options, id=key))


def _legend(found: Points) -> Html:
    counts = np.bincount(found.group[found.group >= 0], minlength=len(found.names))
    items = [
        tag(
            "li",
            tag("span", class_=f"swatch {chart.colour_class(k)}", aria_hidden="true"),
            f"{name} ({count(counts[k])})",
        )
        for k, name in enumerate(found.names[:_MOST_NAMES])
    ]
    hidden = len(found.names) - len(items)
    if hidden > 0:
        items.append(tag("li", f"and {count(hidden)} others"))
    return tag("ul", *items, class_="legend", id="map-legend")


# ------------------------------------------------ for the script


def _colours(found: Points) -> list[dict[str, Any]]:
    colours: list[dict[str, Any]] = []
    if found.names:
        colours.append(_group_colouring(found.word, found.names, found.group))
    if found.classes is not None:
        codes, names = found.classes
        colours.append(_group_colouring("label given", names, codes))
    if found.usualness is not None:
        name, values = found.usualness
        colours.append({"name": name, "values": _numbers(values)})
    for name, values, are_codes in found.columns:
        if are_codes:
            colours.append(_by_code(name, values))
        else:
            colours.append({"name": name, "values": _numbers(values)})
    return colours


def _by_code(name: str, values: Array) -> dict[str, Any]:
    """A colour for each code; the order of codes means nothing."""
    known = np.isfinite(values)
    codes, place = np.unique(values[known], return_inverse=True)
    found = np.full(len(values), -1)
    found[known] = place
    return _group_colouring(name, [f"{name} {number(code)}" for code in codes], found)


def _group_colouring(name: str, names: list[str], place: Array) -> dict[str, Any]:
    return {"name": name, "names": names, "brief": brief(names), "values": place.tolist()}


def _data(found: Points, subject: Subject) -> Html:
    look = subject.look
    assert look is not None
    data: dict[str, Any] = {
        "rows": found.rows.tolist(),
        "names": None
        if look.names is None and not subject.has_topics
        else [subject.row_name(row) for row in found.rows],
        "axes": [{"name": name, "values": _numbers(values)} for name, values in found.axes],
        "colours": _colours(found),
        "frame": [chart.LEFT, chart.WIDTH - chart.RIGHT, chart.HEIGHT - chart.BOTTOM, chart.TOP],
    }
    if subject.image is not None:
        X = found.X.toarray() if hasattr(found.X, "toarray") else found.X
        data["pictures"] = sheet_of(np.asarray(X, float), subject.image)
    return Html(f'<script type="application/json" id="map-data">{script_json(data)}</script>')


def script_json(data: Any) -> str:
    """JSON that cannot end the element in which it stands."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _numbers(values: Array) -> list[float | None]:
    """To four digits; None for what is no number."""
    return [float(f"{v:.4g}") if np.isfinite(v) else None for v in np.asarray(values, float)]
