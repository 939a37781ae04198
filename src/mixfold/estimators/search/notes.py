"""What a reader should know before believing the choice of a search."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, Source
from mixfold.engine.loop import pilot_size
from mixfold.engine.pilot import draw_pilot
from mixfold.estimators.mixtures.general_mixture import GeneralMixture
from mixfold.estimators.mixtures.set_aside import (
    EVENT,
    describe_kept,
    find_dependent_columns,
    gaussian_columns,
)
from mixfold.estimators.search.fits import UNSOUND, Fitted
from mixfold.estimators.search.rows import Rows
from mixfold.estimators.shell.density import DensityEstimator
from mixfold.estimators.shell.effective_rows import describe_copies, describe_weight, hash_rows
from mixfold.estimators.shell.fitting import Survey
from mixfold.estimators.shell.units import compared_by, describe_comparison
from mixfold.families.component import dense_rows


def describe_caveats(fits: list[Fitted], best: int, criterion: str) -> list[str]:
    """Sentences about columns that were set aside, and about fits that cannot be compared."""
    model = fits[best].model
    events = getattr(model, "events_", ())
    notes = [event.message for event in events if event.kind in (EVENT, "outlier", "thin")]
    if criterion in ("bic", "aic", "icl") and not any(fit.sound for fit in fits):
        notes.append(
            f"In every setting a variance is at its floor, so that {criterion.upper()} says how "
            "small the floor is and not how many groups there are; look for columns that are "
            "constant or that others determine, and leave them out"
        )
    return notes + _describe_refused(fits, best, criterion)


def _describe_refused(fits: list[Fitted], best: int, criterion: str) -> list[str]:
    """A sentence about the best of the fits that would win, were they not degenerate."""
    if criterion not in ("bic", "aic", "icl") or not fits[best].sound:
        return []
    chosen = fits[best].facts[criterion]
    refused = [f for f in fits if f.model is not None and f.degenerate]
    refused = [f for f in refused if f.facts[criterion] < chosen]
    if not refused:
        return []
    first = min(refused, key=lambda f: f.facts[criterion])
    event = next(e for e in first.model.events_ if e.kind in UNSOUND)
    words = ", ".join(f"{name}={value}" for name, value in first.setting.params.items())
    more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
    return [
        f"{first.setting.name}({words}){more} would have a better {criterion.upper()} "
        f"({first.facts[criterion]:.6g} against {chosen:.6g}), but is degenerate and was refused: "
        f"{event.message}. allow_degenerate=True takes it all the same"
    ]


def describe_rows(model: Any, rows: Rows, criterion: str) -> list[str]:
    """Sentences about weights that are no frequencies, and about rows that are copies."""
    if not hasattr(model, "_open"):
        return []
    source = model._open(rows.X, reset=False, weight=rows.weight)
    parts = list(model._executor(source).map_rows(_weigh, source))
    if not parts:
        return []
    weight = sum(part[1] for part in parts)
    hashes = np.concatenate([part[0] for part in parts])
    counts_rows = criterion in ("bic", "aic", "icl")
    what = None if counts_rows else f"criterion={criterion!r}"
    found = (
        describe_weight(weight, len(hashes)) if counts_rows else None,
        describe_copies(hashes, partial(_sample_rows, model, source), what),
    )
    return [words for words in found if words is not None]


def _sample_rows(model: Any, source: Source) -> Array:
    """The rows of positive weight, of a large table a sample."""
    pilot = draw_pilot(source, model._executor(source), pilot_size(source, 1), 0)
    return np.asarray(dense_rows(pilot.block.X), dtype=float)


def _weigh(block: Block) -> tuple[Array, float]:
    return hash_rows(block), float(block.weights().sum())


def describe_compared_columns(model: Any, rows: Rows) -> list[str]:
    """A sentence if spheres are fitted to columns of which those of large numbers decide."""
    what = compared_by(model)
    if what is None or not hasattr(model, "_open"):
        return []
    source = model._open(rows.X, reset=False, weight=rows.weight)
    pilot = draw_pilot(source, model._executor(source), pilot_size(source, 1), 0)
    words = describe_comparison(model, pilot, what)
    return [] if words is None else [words[0].upper() + words[1:]]


def describe_redundant_columns(model: Any, rows: Rows) -> list[str]:
    """Sentences about constant and redundant columns, for models that do not set them aside."""
    events = getattr(model, "events_", ())
    if not isinstance(model, DensityEstimator) or any(event.kind == EVENT for event in events):
        return []
    some = None
    if isinstance(model, GeneralMixture):  # several kinds of columns in a table
        some = gaussian_columns(model._family(model.n_features_in_), model.n_features_in_)
        if not some.size:
            return []
    source = model._open(rows.X, reset=False, weight=rows.weight)
    executor = model._executor(source)
    pilot = draw_pilot(source, executor, pilot_size(source, 1), 0)
    columns = find_dependent_columns(Survey(source, executor, 0, pilot), some)
    names = getattr(model, "feature_names_in_", None)
    return [] if columns is None else describe_kept(columns, names, "a search")
