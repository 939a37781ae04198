"""Factors: what they explain, and the columns that they move."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.report.charts.bars import bar_chart
from mixfold.report.markup import Html, folded, join
from mixfold.report.section import Section
from mixfold.report.subject import Subject
from mixfold.report.tables import heat_table, table
from mixfold.report.words import number, plural, share

_FACTORS, _COLUMNS, _COMPONENTS = 8, 40, 12


def factors(subject: Subject) -> Section | None:
    """Loadings and explained variance of factor models, single or mixed."""
    loadings = getattr(subject.model, "loadings_", None)
    if loadings is None or not np.size(loadings):
        return None
    loadings = np.asarray(loadings, float)
    if loadings.ndim == 3:
        return _mixed(subject, loadings)
    if loadings.ndim != 2 or len(loadings) != len(subject.names):
        return None
    parts = explained(subject.model, loadings)
    lead = (
        f"{plural(loadings.shape[1], 'factor')} explain {share(float(parts.sum()))} of the "
        "variance of the columns; the rest is noise."
    )
    label = "Share of the variance that each factor explains"
    chart = bar_chart(100 * parts, label, "factor", "% of variance") if len(parts) > 1 else None
    body = join([chart, _heat(subject, loadings, "Loadings")])
    return Section("factors", "Factors", lead, body)


def explained(model: Any, loadings: Array) -> Array:
    """The share of each factor in the variance of the columns."""
    ratio = getattr(model, "explained_variance_ratio_", None)
    if ratio is not None and len(ratio) == loadings.shape[1]:
        return np.asarray(ratio, float)
    return shares(loadings, getattr(model, "noise_variance_", 0.0),
                  getattr(model, "factor_correlations_", None))  # fmt: skip


def shares(loadings: Array, noise: Any, correlations: Any = None) -> Array:
    """One noise for all columns: shares of all the variance; else the mean share in a column."""
    parts = loadings * (loadings if correlations is None else loadings @ correlations)
    variance = parts.sum(axis=1) + noise
    if np.ndim(noise) == 0:
        return np.asarray(parts.sum(axis=0) / variance.sum())
    return np.asarray((parts / variance[:, None]).mean(axis=0))


def _heat(subject: Subject, loadings: Array, title: str) -> Html:
    """Columns that follow the factors most first, each in units of its own deviation."""
    noise = np.broadcast_to(np.asarray(getattr(subject.model, "noise_variance_", 0.0), float),
                            len(loadings))  # fmt: skip
    scale = np.sqrt((loadings**2).sum(axis=1) + noise)
    relative = loadings[:, :_FACTORS] / np.where(scale > 0, scale, 1.0)[:, None]
    order = np.argsort(-np.abs(relative).max(axis=1), kind="stable")[:_COLUMNS]
    names = [subject.names[j] for j in order]
    heads = [f"factor {j + 1}" for j in range(relative.shape[1])]
    texts = [[number(v) for v in loadings[j, :_FACTORS]] for j in order]
    more = " (the columns that follow them most)" if len(loadings) > _COLUMNS else ""
    caption = f"{title}{more}: by how much a column changes when a factor rises by one"
    picture = heat_table("column", names, heads, relative[order], texts, caption, most=1.0)
    pixels = subject.image is not None and not subject.image.guessed
    return folded("By pixel, as a table", picture) if pixels else picture


def _mixed(subject: Subject, loadings: Array) -> Section | None:
    """Each component has factors of its own."""
    if loadings.shape[1] != len(subject.names) or not loadings.shape[2]:
        return None
    noise = np.asarray(subject.model.noise_variance_, float)
    size, used = len(loadings), min(len(loadings), _COMPONENTS)
    rows = []
    for k in range(used):
        parts = shares(loadings[k], noise[k])
        cells = [share(float(v)) for v in parts[:_FACTORS]]
        rows.append([str(k), share(float(parts.sum())), *cells])
    heads = [f"factor {j + 1}" for j in range(min(loadings.shape[2], _FACTORS))]
    more = f", the first {used} of {size}" if size > used else ""
    caption = f"Share of the variance within a component that its factors explain{more}"
    lead = (
        f"Within each component rows vary along {plural(loadings.shape[2], 'factor')} of its own. "
        "Factors of two components are not the same."
    )
    body = table(["component", "together", *heads], rows, caption)
    return Section("factors", "Factors within components", lead, body)
