"""A model that was read from a file is tried before anybody relies on it.

Shapes, signs and definiteness of its parts are what its own arithmetic asks of them, so that is run
once, on a few rows that every kind of model takes. An error, or an answer that is not a number,
means that the parts do not fit each other.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mixfold.contracts import Array, Source
from mixfold.engine.random import seed_from
from mixfold.engine.sources import open_source
from mixfold.math.frame import check_frames

# what models are asked, as far as they can be
_QUESTIONS = (
    "predict", "predict_proba", "predict_log_proba", "score_samples", "transform", "impute",
    "reconstruct",
)  # fmt: skip
# what a model holds that has learned from batches, or goes on from its own parameters
_BATCHES = ("_schedule", "_moments", "_learned", "_buffer", "_kept")
_ROWS = 3
# attributes of models that were fitted to a target, whose score needs one
_TARGETS = ("classes_", "_target", "_sets", "_output")


def check_answers(estimator: Any) -> None:
    """Ask a model that was just loaded about a few rows.

    Raises
    ------
    ValueError
        If there is a question that it answers for none of the rows, with what went wrong.
    """
    tried = estimator._of_numbers()  # a copy, which counts what it has drawn, for example
    if getattr(tried, "executor", None) == "dask":
        tried.executor = "threads"
    if getattr(tried, "checkpoint", None) is not None:  # a path that the file has chosen
        tried.checkpoint = None
    with warnings.catch_warnings(), np.errstate(all="ignore"), _same_global_draws():
        warnings.simplefilter("ignore")
        _check_parts(tried)
        for question, ask in _questions(tried):
            problem = _first_problem(ask, _rows(tried))
            if problem is not None:
                raise ValueError(f"its parts do not fit each other: {question} fails ({problem})")


@contextmanager
def _same_global_draws() -> Iterator[None]:
    """Leave numpy's global generator, from which draws without a seed come, as it was."""
    before = np.random.get_state()
    try:
        yield
    finally:
        np.random.set_state(before)


def _questions(estimator: Any) -> Iterator[tuple[str, Callable[[Source], Any]]]:
    skipped = getattr(estimator, "_not_tried", ())
    for name in _QUESTIONS:
        if name not in skipped and hasattr(estimator, name):
            yield name, getattr(estimator, name)
    if "sample" not in skipped and hasattr(estimator, "sample"):
        yield "sample", lambda rows: estimator.sample(_ROWS)
    if "transform" not in skipped and hasattr(estimator, "inverse_transform"):
        yield (
            "inverse_transform",
            lambda rows: estimator.inverse_transform(estimator.transform(rows)),
        )
    if not any(hasattr(estimator, name) for name in _TARGETS) and hasattr(estimator, "score"):
        yield "score", estimator.score
    if hasattr(estimator, "flatten"):
        yield "flatten", lambda rows: estimator.flatten().predict_proba(rows)
    has_batches = any(getattr(estimator, name, None) is not None for name in _BATCHES)
    if (has_batches or getattr(estimator, "_streams_go_on", False)) and hasattr(
        estimator, "partial_fit"
    ):
        yield "partial_fit", lambda rows: _after_batch(estimator, rows)


def _check_parts(estimator: Any) -> None:
    """What the answers do not show: the seed, what a file says, a class for each probability."""
    estimator._summary()
    for value in vars(estimator).values():
        check_frames(value)
    if estimator.get_params(deep=False).get("random_state") is not None:
        seed_from(estimator.random_state)
    classes = getattr(estimator, "classes_", None)
    if isinstance(classes, np.ndarray) and len(classes) and hasattr(estimator, "predict_proba"):
        for rows in _rows(estimator):
            try:
                chances = np.asarray(estimator.predict_proba(rows))
            except Exception:  # told of below
                return
            wanted, what = _probabilities_of(estimator, len(classes))
            if chances.shape != (_ROWS, wanted):
                raise ValueError(
                    f"it knows {wanted} {what} and has probabilities of shape "
                    f"{chances.shape} for {_ROWS} rows"
                )
            return


def _probabilities_of(estimator: Any, n_classes: int) -> tuple[int, str]:
    """How many probabilities a row has, and of what: of its labels each, or of the classes."""
    sets = getattr(getattr(estimator, "_sets", None), "sets", None)
    target = sets[0].target if sets else getattr(estimator, "_target", None)
    if target is not None and getattr(target, "task", None) == "multilabel":
        return int(target.n_outputs), "labels"
    return n_classes, "classes"


def _after_batch(estimator: Any, rows: Source) -> Any:
    """What the model says after one more batch, of which the model itself knows nothing."""
    further = copy.deepcopy(estimator)
    further.partial_fit(rows)
    ask = next((name for name in _QUESTIONS if hasattr(further, name)), None)
    return None if ask is None else getattr(further, ask)(rows)


def _rows(estimator: Any) -> Iterator[Source]:
    """Rows that models of numbers, counts, codes and bits take: some of these, if not all. Models
    of rows whose entries belong together, shares of a whole or a matrix, take what they draw."""
    n_features = estimator.n_features_in_
    some: Array = np.zeros((_ROWS, n_features))
    some[0, 0] = 1.0
    for rows in (some, np.ones((_ROWS, n_features)), np.full((_ROWS, n_features), 0.5)):
        yield open_source(rows)
    if hasattr(estimator, "sample"):
        try:
            drawn = np.asarray(estimator.sample(_ROWS)[0], float)
        except Exception:  # which is a question of its own
            return
        if drawn.shape == some.shape:
            yield open_source(drawn)


def _first_problem(ask: Callable[[Source], Any], candidates: Iterator[Source]) -> str | None:
    """What went wrong first, if no rows are answered for."""
    first = None
    for rows in candidates:
        try:
            if not _has_nan(ask(rows)):
                return None
            problem = "the answer is not a number"
        except MemoryError:
            raise
        except Exception as error:  # whatever wrong shapes lead to, of compiled code as well
            problem = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        first = problem if first is None else first
    return first


def _has_nan(answer: Any) -> bool:
    if isinstance(answer, tuple | list):
        return any(_has_nan(part) for part in answer)
    if isinstance(answer, dict):
        return any(_has_nan(part) for part in answer.values())
    if answer is None or isinstance(answer, str):
        return False
    values = np.asarray(answer)
    return values.dtype.kind == "f" and bool(np.isnan(values).any())
