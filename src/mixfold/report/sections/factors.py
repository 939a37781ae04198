"""Section: variance explained by factors, and their loadings."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.report.capabilities import has_target, is_in_kernel_space, units_matter
from mixfold.report.charts.bars import bar_chart
from mixfold.report.formatting import join_words, number, plural, share
from mixfold.report.markup import Html, details, join
from mixfold.report.section import Section
from mixfold.report.subject import Subject
from mixfold.report.tables import heat_table, table

_FACTORS, _COLUMNS, _COMPONENTS = 8, 40, 12


def factors(subject: Subject) -> Section | None:
    """Loadings and explained variance of factor models, single or mixed."""
    if hasattr(subject.model, "mixing_"):
        return _section_of_sources(subject, np.asarray(subject.model.mixing_, float))
    loadings = getattr(subject.model, "loadings_", None)
    if loadings is None or not np.size(loadings) or is_in_kernel_space(subject.model):
        return None
    loadings = np.asarray(loadings, float)
    if loadings.ndim == 3:
        return _section_of_mixture(subject, loadings)
    if loadings.ndim != 2 or len(loadings) != len(subject.names):
        return None
    parts = explained_variance_ratio(subject.model, loadings)
    related = correlations_of(subject.model, loadings.shape[1])
    label = _chart_label(subject)
    chart = bar_chart(100 * parts, label, "factor", "% of variance") if len(parts) > 1 else None
    body = join([chart, _heat(subject, loadings, related), _correlations(related)])
    lead = _lead(subject, loadings, float(parts.sum()), related)
    return Section("factors", "Factors", lead, body)


def _section_of_sources(subject: Subject, mixing: Array) -> Section | None:
    """Independent sources: each has variance one, so they are read as uncorrelated factors are."""
    if len(mixing) != len(subject.names) or not mixing.shape[1]:
        return None
    noise = float(getattr(subject.model, "noise_variance_", 0.0))
    parts = shares(mixing, noise)
    label = "Share of the variance that each source brings"
    chart = bar_chart(100 * parts, label, "source", "% of variance") if len(parts) > 1 else None
    rest = " The rest is noise, the same in all columns." if noise > 0 else ""
    verb = "bring" if len(parts) > 1 else "brings"
    lead = (
        f"{plural(mixing.shape[1], 'independent source')} {verb} "
        f"{share(float(parts.sum()))} of the total variance of all columns, by the parameters of "
        f"the model.{rest} Entries are correlations of the columns with the sources. Hover for the "
        "units of the column in one standard deviation of the source."
    )
    return Section(
        "factors", "Sources", lead, join([chart, _heat(subject, mixing, None, "source")])
    )


def _lead(subject: Subject, loadings: Array, part: float, related: Array | None) -> str:
    what = _explained_words(subject, loadings, part)
    if related is None:
        return (
            f"{what} Loadings are standardised: correlations of the columns with the factors"
            f"{_by_the_model(subject)}. Hover for the loading in units of the column."
        )
    return (
        f"{what} The factors are correlated (oblique rotation; see the table of their "
        "correlations). Loadings are standardised pattern coefficients: the change of a column, in "
        "its standard deviations, when a factor rises by one standard deviation and the other "
        "factors stay the same. They are not correlations and may exceed one. Hover for the "
        "loading in units of the column. The shares of variance in the chart add up to the whole, "
        "but since the factors are correlated, a share is not what a factor would explain alone."
    )


def _chart_label(subject: Subject) -> str:
    if _by_axes(subject.model):
        return "Share of the total variance along the axis of each factor"
    return "Share of the variance that each factor explains"


def _by_axes(model: Any) -> bool:
    """Whether shares are those of principal axes; factors that also predict a target have none."""
    return getattr(model, "explained_variance_ratio_", None) is not None and not has_target(model)


def _by_the_model(subject: Subject) -> str:
    """Where the variance of a column by the model is not that of its entries."""
    if not units_matter(subject.model):
        return ""
    return (
        " according to the model, which assumes the same noise variance in all columns; the "
        "correlations in the rows may differ"
    )


def _explained_words(subject: Subject, loadings: Array, part: float) -> str:
    factors = plural(loadings.shape[1], "factor")
    if not units_matter(subject.model):
        return (
            f"{factors} explain {share(part)} of the variance of a column on average, by the "
            "parameters of the model; the rest is noise of each column. The share of a column is "
            "its communality."
        )
    common, variance = _variances(subject.model, loadings)
    own = float(common.sum() / variance.sum())
    if not _by_axes(subject.model):
        return (
            f"{factors} explain {share(own)} of the total variance of all columns, by the "
            "parameters of the model; the rest is noise. The share of a column is its communality."
        )
    return (
        f"The first {plural(loadings.shape[1], 'principal axis', 'principal axes')} "
        f"{'has' if loadings.shape[1] == 1 else 'have'} {share(part)} of the total variance of all "
        "columns, as in PCA (chart). That contains the noise along these axes; without it, the "
        f"factors explain {share(own)}, by the parameters of the model. The share of a column that "
        "the factors explain is its communality."
    )


def _two_places(value: float) -> str:
    """Two decimals; nothing is less than zero by less than they show."""
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else text.replace("-", "\u2212")


def correlations_of(model: Any, size: int) -> Array | None:
    """Correlations of the factors (d, d); None if they have none."""
    found = getattr(model, "factor_correlations_", None)
    if found is None or np.shape(found) != (size, size):
        return None
    found = np.asarray(found, float)
    return None if np.allclose(found, np.eye(size), atol=1e-8) else found


def communalities(model: Any, loadings: Array) -> Array:
    """The share of each column's variance that the factors explain, by the parameters (D,)."""
    common, variance = _variances(model, loadings)
    return np.divide(common, variance, out=np.full(len(common), np.nan), where=variance > 0)


def _variances(model: Any, loadings: Array) -> tuple[Array, Array]:
    """Variance of each column by the factors, and with noise."""
    related = correlations_of(model, loadings.shape[1])
    parts = loadings * (loadings if related is None else loadings @ related)
    common = parts.sum(axis=1)
    return common, common + np.asarray(getattr(model, "noise_variance_", 0.0), float)


def explained_variance_ratio(model: Any, loadings: Array) -> Array:
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


def _heat(subject: Subject, loadings: Array, related: Array | None, word: str = "factor") -> Html:
    """Standardised loadings and communalities, columns that follow the factors most first."""
    _, variance = _variances(subject.model, loadings)
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    relative = loadings[:, :_FACTORS] / scale[:, None]
    order = np.argsort(-np.abs(relative).max(axis=1), kind="stable")[:_COLUMNS]
    kept = communalities(subject.model, loadings)
    names = [subject.names[j] for j in order]
    heads = [*(f"{word} {j + 1}" for j in range(relative.shape[1])), "communality"]
    texts = [[*(_two_places(v) for v in relative[j]), share(float(kept[j]))] for j in order]
    titles = [
        [*(f"{number(v, 4)} in units of the column" for v in loadings[j, :_FACTORS]), ""]
        for j in order
    ]
    shades = np.column_stack([relative[order], np.zeros(len(order))])
    size = loadings.shape[1]
    more = f" of the first {_FACTORS} of {size} {word}s" if size > _FACTORS else ""
    if len(loadings) > _COLUMNS:
        more += f"; the {_COLUMNS} columns with the largest loadings"
    what = "Standardised loadings" if word == "factor" else "Correlations with the sources"
    caption = f"{what}{more}"
    picture = heat_table("column", names, heads, shades, texts, caption, most=1.0, titles=titles)
    pixels = subject.image is not None and not subject.image.guessed
    return details("By pixel, as a table", picture) if pixels else picture


def _correlations(related: Array | None) -> Html | None:
    if related is None:
        return None
    size = min(len(related), _FACTORS)
    names = [f"factor {j + 1}" for j in range(size)]
    values = related[:size, :size]
    texts = [[_two_places(v) for v in row] for row in values]
    more = f", the first {size} of {len(related)}" if len(related) > size else ""
    caption = f"Correlations of the factors{more}"
    return heat_table("", names, names, values, texts, caption, most=1.0)


def _section_of_mixture(subject: Subject, loadings: Array) -> Section | None:
    """Each component has factors of its own."""
    if loadings.shape[1] != len(subject.names) or not loadings.shape[2]:
        return None
    noise = np.asarray(subject.model.noise_variance_, float)
    shown = _components_in_use(subject)
    size, used = len(shown), min(len(shown), _COMPONENTS)
    rows = []
    for k in shown[:used]:
        parts = shares(loadings[k], noise[k])
        cells = [share(float(v)) for v in parts[:_FACTORS]]
        rows.append([str(k), share(float(parts.sum())), *cells])
    heads = [f"factor {j + 1}" for j in range(min(loadings.shape[2], _FACTORS))]
    more = f", the first {used} of {size}" if size > used else ""
    shared = noise.ndim < 2 or noise.shape[-1] != loadings.shape[1]
    what = "total variance of all columns" if shared else "variance of a column, on average,"
    caption = f"Share of the {what} within a component that its factors explain{more}"
    lead = (
        f"{_numbers_of_factors(subject, shown)}; factor 1 of one component has nothing to do with "
        "factor 1 of another."
        if size > 1
        else f"The only component has {plural(_own_factors(subject)[shown[0]], 'factor')}."
    )
    body = table(["component", "together", *heads], rows, caption)
    return Section("factors", "Factors within components", lead, body)


def _components_in_use(subject: Subject) -> list[int]:
    """Components that rows have; a fit that learns their number leaves others without any."""
    active = getattr(subject.model, "active_", None)
    size = len(subject.model.loadings_)
    return list(range(size)) if active is None else np.flatnonzero(active).tolist()


def _own_factors(subject: Subject) -> list[int]:
    """Factors of each component, learned or given."""
    size, _, most = np.shape(subject.model.loadings_)
    learned = getattr(subject.model, "n_factors_", None)
    return np.broadcast_to(most if learned is None else learned, size).tolist()


def _numbers_of_factors(subject: Subject, shown: list[int]) -> str:
    """How many factors components have, which need not be the same."""
    own = _own_factors(subject)
    numbers = [own[k] for k in shown]
    if len(set(numbers)) == 1:
        return f"Each component has {plural(numbers[0], 'factor')} of its own"
    if len(shown) > _COMPONENTS:
        return f"Components have {min(numbers)} to {max(numbers)} factors of their own"
    words = [f"component {k} has {plural(own[k], 'factor')}" for k in shown]
    each = join_words(words, _COMPONENTS)
    return f"{each[0].upper()}{each[1:]} of its own"
