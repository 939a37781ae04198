"""The table of a search: one row for each setting, and which of them is best."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.estimators.mixtures.gap import first_enough
from mixfold.estimators.search.candidates import SIZE, find_varied, label_settings
from mixfold.estimators.search.fits import NUMBERS, Fitted

# criteria, the column that holds them, and the sign with which the lowest is the best
CRITERIA = {
    "bic": ("bic", 1),
    "aic": ("aic", 1),
    "icl": ("icl", 1),
    "held-out": ("held_out", -1),
    "bound": ("bound", -1),
    "log-loss": ("log_loss", 1),
    "squared-error": ("squared_error", 1),
    "gap": ("gap", -1),
}
# criteria of rows that a fit has not seen
HELD_OUT = ("held-out", "log-loss", "squared-error")
# criteria with a standard error beside them
WITH_ERRORS = (*HELD_OUT, "gap")
# criteria that a variance near zero deceives; rows that were not seen, and priors, do not let it
_DECEIVED = ("bic", "aic", "icl")
_SHOWN = 20
_WORTH = ((2, "hardly any"), (6, "positive"), (10, "strong"))

Table = dict[str, Any]


def build_table(fits: list[Fitted], criterion: str, allow_degenerate: bool = False) -> Table:
    """Columns of one length; ``delta`` is how far a setting is from the best, NaN if it cannot be.

    A setting cannot be the best if its fit failed, or if a variance was held at its floor and the
    criterion would take that for a good fit (unless that is allowed, or all are like that).
    """
    found = [fit.setting for fit in fits]
    table: Table = {
        "estimator": [s.name for s in found],
        "label": label_settings(found),
        SIZE: np.array([s.n_components for s in found]),
        **{f"param_{n}": [s.params.get(n) for s in found] for n in find_varied(found)},
        **{name: np.array([fit.facts[name] for fit in fits]) for name in NUMBERS},
        "held_out": np.array([fit.held_out[0] for fit in fits]),
        "held_out_se": np.array([fit.held_out[1] for fit in fits]),
        **_collect_losses(fits),
        **_collect_gaps(fits),
        "lrt": np.full(len(fits), np.nan),
        "p_value": np.full(len(fits), np.nan),
        "n_iter": np.array([int(getattr(fit.model, "n_iter_", 0)) for fit in fits]),
        "converged": np.array([bool(getattr(fit.model, "converged_", False)) for fit in fits]),
        "degenerate": np.array([fit.degenerate for fit in fits]),
        "events": [_count_events(fit.model) for fit in fits],
        "start": [fit.start for fit in fits],
        "seconds": np.array([fit.seconds for fit in fits]),
        "error": ["" if fit.error is None else _describe(fit.error) for fit in fits],
        "params": [s.params for s in found],
    }
    costs = _compute_costs(table, criterion, allow_degenerate)
    if criterion == "gap":
        costs = _first_of_each_kind(costs, table, np.array([fit.setting.group for fit in fits]))
    table["delta"] = _compute_deltas(costs)
    return table


def _collect_gaps(fits: list[Fitted]) -> Table:
    """Columns of the gap statistic, if it was asked for."""
    if all(fit.gap is None for fit in fits):
        return {}
    found = [(np.nan, np.nan) if fit.gap is None else fit.gap for fit in fits]
    return {"gap": np.array([one for one, _ in found]), "gap_se": np.array([e for _, e in found])}


def _first_of_each_kind(costs: Array, table: Table, group: Array) -> Array:
    """Only the number that the rule of the gap statistic chooses can win, among those of a kind."""
    kept = np.full(len(costs), np.inf)
    for own in (np.flatnonzero((group == g) & np.isfinite(costs)) for g in np.unique(group)):
        if own.size:
            best = own[first_enough(table["gap"][own], table["gap_se"][own])]
            kept[best] = costs[best]
    return kept


def _collect_losses(fits: list[Fitted]) -> Table:
    """Columns of losses of held-out outputs, if any fit has them."""
    columns: Table = {}
    for name in dict.fromkeys(name for fit in fits for name in fit.losses):
        values = [fit.losses.get(name, (np.nan, np.nan)) for fit in fits]
        column = CRITERIA[name][0]
        columns[column] = np.array([value for value, _ in values])
        columns[f"{column}_se"] = np.array([error for _, error in values])
    return columns


def _count_events(model: Any) -> str:
    kinds = Counter(event.kind for event in getattr(model, "events_", ()))
    return ", ".join(f"{kind} x{count}" for kind, count in kinds.items())


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


# ------------------------------------------------ the best


def _compute_costs(table: Table, criterion: str, allow_degenerate: bool) -> Array:
    """What the best has least of; infinite for settings that cannot be the best."""
    column, sign = CRITERIA[criterion]
    costs = sign * np.asarray(table.get(column, np.full(len(table["label"]), np.nan)), dtype=float)
    costs = np.where(np.isnan(costs), np.inf, costs)
    degenerate = table["degenerate"]
    deceived = criterion in _DECEIVED and not allow_degenerate
    if deceived and np.isfinite(costs[~degenerate]).any():
        costs = np.where(degenerate, np.inf, costs)
    return costs


def _compute_deltas(costs: Array) -> Array:
    possible = np.isfinite(costs)
    deltas = np.full(len(costs), np.nan)
    if possible.any():
        deltas[possible] = costs[possible] - costs[possible].min()
    return deltas


def best_row(table: Table, criterion: str) -> int:
    """The number of the best row; of equals that with the fewest parameters."""
    deltas = table["delta"]
    if np.isnan(deltas).all():
        raise ValueError(_explain_no_best(table, criterion))
    ties = np.flatnonzero(deltas == 0)
    return int(ties[np.argmin(np.nan_to_num(table["n_parameters"][ties], nan=np.inf))])


def _explain_no_best(table: Table, criterion: str) -> str:
    names = ", ".join(dict.fromkeys(table["estimator"]))
    if criterion == "bound":
        return (
            "criterion='bound' compares variational bounds, which the fits by maximum likelihood "
            f"({names}) do not have; use 'bic', 'icl' or 'held-out', or an estimator with "
            "inference='vb'"
        )
    failed = next((error for error in table["error"] if error), "")
    if criterion == "squared-error" and not failed:
        return (
            "criterion='squared-error' is for numbers and counts in y, and "
            f"{names} had others; use 'log-loss' for classes and labels"
        )
    return (
        f"criterion={criterion!r} has no finite value for any of the settings of {names}"
        f"{f' ({failed})' if failed else ''}; use another criterion"
    )


# ------------------------------------------------ for people


def summary(table: Table, criterion: str, best: int) -> str:
    """The settings as a short text, best first, those that cannot be it at the end."""
    column, _ = CRITERIA[criterion]
    order = np.argsort(np.nan_to_num(table["delta"], nan=np.inf), kind="stable")
    head = ["", "model", SIZE, "log-likelihood", "parameters", criterion, "delta", "note"]
    lines = [head]
    for i in order[:_SHOWN]:
        numbers = (table["log_likelihood"][i], table["n_parameters"][i], table[column][i])
        words = [f"{value:.6g}" for value in (*numbers, table["delta"][i])]
        mark = "*" if i == best else ""
        lines.append([mark, table["label"][i], str(table[SIZE][i]), *words, note(table, i)])
    widths = [max(len(line[c]) for line in lines) for c in range(len(head))]
    text = "\n".join(
        "  ".join(
            cell.ljust(w) if c in (0, 1, 7) else cell.rjust(w)
            for c, (cell, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
    hidden = len(order) - _SHOWN
    return text + (f"\n... and {hidden} more" if hidden > 0 else "")


def describe_evidence(gap: float) -> str:
    """What a difference in BIC is worth (Kass and Raftery, 1995).

    Examples
    --------
    >>> describe_evidence(1.0), describe_evidence(13.6)
    ('hardly any', 'very strong')
    """
    return next((word for limit, word in _WORTH if gap < limit), "very strong")


def note(table: Table, i: int) -> str:
    """What a reader should know about a setting before trusting its numbers."""
    if table["error"][i]:
        return f"failed: {table['error'][i]}".splitlines()[0][:80]
    parts = [
        "a variance at its floor" * bool(table["degenerate"][i]),
        "not converged" * (not table["converged"][i]),
    ]
    return ", ".join(filter(None, parts))
