"""The smallest table that still breaks a law, for the message of the failure."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec

import numpy as np
from scipy import sparse

from mixfold.contracts import Array
from mixfold.testing.case import Case

P = ParamSpec("P")
SECONDS = 10.0  # that a search for a smaller table may take
SHOWN = 600  # entries of a table that are printed


def shrinks(law: Callable[Concatenate[Case, P], None]) -> Callable[Concatenate[Case, P], None]:
    """A law of cases whose failure prints the smallest table on which it fails in the same way."""

    @wraps(law)
    def explained(case: Case, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            law(case, *args, **kwargs)
        except AssertionError as broken:
            if hasattr(broken, "case"):  # of a law within this law: explained already
                raise
            smallest, message = shrink(lambda smaller: law(smaller, *args, **kwargs), case, broken)
            error = AssertionError(f"{broken}\n{describe(smallest, message)}")
            error.case = smallest  # type: ignore[attr-defined]
            raise error from broken

    return explained


def shrink(
    law: Callable[[Case], None], case: Case, broken: AssertionError, seconds: float = SECONDS
) -> tuple[Case, str]:
    """A case of fewer rows and columns and simpler entries that breaks the same law.

    Rows go first, in halves, quarters and so on down to single ones, then columns, weights and
    labels, then digits. A change is kept where the law is still broken in the same way; another
    error (too few rows for the model, say) is none of the law's business.

    Returns
    -------
    case : Case
    message : str
        What the law says about that case.
    """
    message = str(broken)
    kind = _kind(message)
    deadline = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < deadline:
        progress = False
        for smaller in _simpler(case):
            if time.monotonic() > deadline:
                break
            said = _said(law, smaller)
            if said is not None and _kind(said) == kind:
                case, message, progress = smaller, said, True
                break
    return case, message


def _kind(message: str) -> list[str]:
    """The law that is broken and the first words of how: with these, a failure is the same one."""
    return re.sub(r"[^a-z ]+", " ", message.lower()).split()[:8]


def _said(law: Callable[[Case], None], case: Case) -> str | None:
    """What the law says of a case; None if it holds, or cannot be asked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            law(case)
        except AssertionError as broken:
            return str(broken)
        except Exception:  # the smaller case is not for this model
            return None
    return None


def _simpler(case: Case) -> Iterator[Case]:
    """Cases that are a little simpler, the largest simplification first."""
    n_rows, n_columns = case.X.shape
    for kept in _cuts(n_rows):
        yield _rows(case, kept)
    for kept in _cuts(n_columns):
        yield replace(case, X=case.X[:, kept])
    if case.weight is not None:
        yield replace(case, weight=None)
    if case.y is not None:
        yield replace(case, y=None)
    for digits in (0, 1, 2):
        if _dense(case.X):
            rounded = np.round(case.X, digits) + 0  # no -0
            if not np.array_equal(rounded, case.X, equal_nan=True):
                yield replace(case, X=rounded)


def _cuts(size: int) -> Iterator[Array]:
    """What is left of ``size`` things if a half, a quarter, .. or one of them is taken away."""
    step = size // 2
    while step:
        for begin in range(0, size - step + 1, step):
            yield np.r_[0:begin, begin + step : size]
        step //= 2


def _rows(case: Case, kept: Array) -> Case:
    weight = None if case.weight is None else case.weight[kept]
    return replace(case, X=case.X[kept], weight=weight, y=None if case.y is None else case.y[kept])


def _dense(X: Any) -> bool:
    return not sparse.issparse(X)


def describe(case: Case, message: str) -> str:
    """The case as Python code, to be pasted into a test; a large table abbreviated."""
    X = case.X if _dense(case.X) else case.X.toarray()
    lines = [
        f"The smallest table found that breaks it ({X.shape[0]} x {X.shape[1]}, "
        f"seed {case.seed}, rtol {case.rtol:g}): {message}",
        f"model = {case.model!r}",
        _assignment("X", X) + ("" if _dense(case.X) else "  # given as CSR"),
    ]
    lines += [_assignment("weight", case.weight)] if case.weight is not None else []
    lines += [_assignment("y", case.y)] if case.y is not None else []
    return "\n".join(lines)


def _assignment(name: str, values: Array) -> str:
    head = f"{name} = np.array("
    with np.printoptions(threshold=SHOWN, floatmode="unique", linewidth=98):
        text = np.array2string(values, separator=", ", prefix=head)
    dtype = "" if values.dtype in (float, int) else f", dtype={values.dtype.name!r}"
    return f"{head}{text.replace('nan', 'np.nan')}{dtype})"
