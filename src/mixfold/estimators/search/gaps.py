"""The gap statistic of every setting of a search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mixfold.contracts import Array
from mixfold.estimators.mixtures.gap import References
from mixfold.estimators.search.fits import Fitted, Worker
from mixfold.estimators.search.rows import Rows, check_in_memory


def check_gaps(rows: Rows, fits: Any, patience: Any) -> None:
    """Refuse what the gap statistic cannot be computed of, before the fits."""
    check_in_memory(rows.X)
    if issparse(rows.X):
        raise ValueError(
            "criterion='gap' draws tables as dense as the range of each column, got sparse rows; "
            "use criterion='bic', or X.toarray()"
        )
    if rows.labels is not None:
        raise ValueError(
            "criterion='gap' draws tables whose rows have no known components: leave out "
            "component_labels, or use criterion='bic'"
        )
    if patience is not None:
        raise ValueError(
            f"patience={patience} compares sizes one after the other, and criterion='gap' looks at "
            "all of them: set patience=None, or use criterion='bic'"
        )
    for setting in fits:
        if not hasattr(setting.estimator, "predict"):
            raise TypeError(
                f"criterion='gap' compares clusters, and {setting.name!r} has no predict; use "
                "criterion='bic' or 'held-out', or a mixture"
            )


def measure_gaps(
    fits: list[Fitted], rows: Rows, worker: Worker, n_references: int, attribute_weights: Any
) -> list[Fitted]:
    """The fits with gap and standard error; a failure in one of the drawn tables leaves NaN."""
    beside = References(rows.X, rows.weights(), attribute_weights, n_references, worker.seed)
    sound = [fit for fit in fits if fit.model is not None]
    tasks = ((beside, [fit.setting.estimator for fit in sound], X, worker) for X in beside.tables)
    drawn = []
    for number, logs in enumerate(worker.run(_log_dispersions, tasks), start=1):
        drawn.append(logs)
        worker.say(f"table {number} of {n_references} without clusters")
    expected = np.mean(drawn, axis=0)
    errors = np.std(drawn, axis=0) * np.sqrt(1 + 1 / n_references)
    found = iter(zip(sound, expected, errors, strict=True))
    out = []
    for fit in fits:
        if fit.model is None:
            out.append(fit)
            continue
        _, level, error = next(found)
        own = beside.log_dispersion_of_rows(fit.model.predict(rows.X))
        out.append(replace(fit, gap=(float(level - own), float(error))))
    return out


def _log_dispersions(beside: References, estimators: list[Any], X: Array, worker: Worker) -> Array:
    found = np.full(len(estimators), np.nan)
    for i, estimator in enumerate(estimators):
        try:
            found[i] = beside.log_dispersion(worker.ready(estimator), X)
        except ValueError:  # as in the table of the search: a fit that fails is no candidate
            continue
    return found
