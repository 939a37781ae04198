"""All laws by name, and suites that run them on a family, a model, a source or an executor.

A law is a function that returns nothing and raises an AssertionError naming itself where it is
broken. Run them on your own components before you trust them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise

from mixfold.testing.algebra import monoid
from mixfold.testing.case import Case, with_complete_flag
from mixfold.testing.extrapolation import coordinates_round_trip, gradient
from mixfold.testing.remembering import remembered_rows
from mixfold.testing.rows import (
    block_invariance,
    labels_clamp,
    weight_two_is_repetition,
    zero_weight_is_absence,
)
from mixfold.testing.sampling import sampler_entropy, sampler_moments, sampler_slopes
from mixfold.testing.shrinking import shrinks
from mixfold.testing.steps import monotone, pure, repeatable
from mixfold.testing.storage import stored_identity
from mixfold.testing.streams import batches_are_averaged
from mixfold.testing.transformed import equivariance, missing_column, without_column
from mixfold.testing.visiting import executor_visits, source_blocks

__all__ = [
    "MODEL_LAWS",
    "batches_are_averaged",
    "block_invariance",
    "check_model",
    "coordinates_round_trip",
    "equivariance",
    "executor_visits",
    "gradient",
    "labels_clamp",
    "missing_column",
    "monoid",
    "monotone",
    "pure",
    "remembered_rows",
    "repeatable",
    "sampler_entropy",
    "sampler_moments",
    "sampler_slopes",
    "source_blocks",
    "stored_identity",
    "weight_two_is_repetition",
    "without_column",
    "zero_weight_is_absence",
]


@shrinks
def statistics_add(case: Case) -> None:
    """The statistics of a model's blocks are a commutative monoid."""
    params, block = case.after(1), case.block
    third = block.n_rows // 3
    cuts = (0, third - 2, 2 * third, block.n_rows)
    parts = [with_complete_flag(block.part(a, b)) for a, b in pairwise(cuts)]
    monoid([case.stats(params, part) for part in parts])


@shrinks
def records_are_stored(case: Case) -> None:
    """Parameters, and what acceleration remembers, survive a file."""
    params = case.after(1)
    stored_identity(params)
    derivatives = case.model.derivatives(params, case.stats(params))
    if derivatives is not None:
        stored_identity(derivatives[1])


MODEL_LAWS: dict[str, Callable[[Case], None]] = {
    "statistics add": statistics_add,
    "block invariance": block_invariance,
    "memory of rows": remembered_rows,
    "weight zero is absence": zero_weight_is_absence,
    "weight two is repetition": weight_two_is_repetition,
    "monotone objective": monotone,
    "repeatable": repeatable,
    "pure functions": pure,
    "coordinates round trip": coordinates_round_trip,
    "gradient": gradient,
    "save and load": records_are_stored,
}


def check_model(
    case: Case, *, n_labels: int | None = None, skip: Mapping[str, str] | None = None
) -> None:
    """Run every law of models on a case.

    Parameters
    ----------
    case : Case
        A model and a small table for it.
    n_labels : int, optional
        How many values a label may take, if the model reads labels.
    skip : mapping of str to str, optional
        Laws that are not for this model, each with the reason.

    Raises
    ------
    AssertionError
        Naming the law that is broken, and where.
    ValueError
        If ``skip`` names no law, or gives no reason.
    """
    suite = dict(MODEL_LAWS)
    if n_labels is not None:
        suite["labels clamp"] = partial(labels_clamp, n_labels=n_labels)
    for name, reason in (skip or {}).items():
        if name not in suite:
            raise ValueError(f"skip names {name!r}, which is no law; the laws are {sorted(suite)}")
        if not reason.strip():
            raise ValueError(f"skip must say why {name!r} does not apply, got {reason!r}")
        del suite[name]
    for law in suite.values():
        law(case)
