"""``write_report``: render a model and its rows to an HTML file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from numbers import Integral
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from mixfold.engine.random import seed_from
from mixfold.report.images import image_shape as shape_of
from mixfold.report.page import page
from mixfold.report.rows.summary import summarise_rows
from mixfold.report.subject import Subject
from mixfold.store import replace_file

# a page that can be sent by mail
MOST_BYTES = 5_000_000
MOST_ROWS = 20_000


def write_report(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    path: str | os.PathLike[str] = "report.html",
    image_shape: tuple[int, int] | None = None,
    sample_weight: Any = None,
    max_rows: int = 5000,
    random_state: Any = 0,
    origin: Mapping[str, str] | None = None,
) -> Path:
    """Write a page about a fitted model, and about rows if they are given.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of this library, or a search.
    X : array-like, sparse matrix, table, path or Dask collection, optional
        Rows, usually those of the fit. They are visited once, a piece at a time.
    y : array-like or str, optional
        Classes, labels or numbers of the rows, or the name of their column.
    path : str or path-like, default "report.html"
        The file to write.
    image_shape : tuple of (height, width), optional
        Of the picture that a row is.
    sample_weight : array-like of shape (n_samples,) or str, optional
        Weights of the rows, or the name of their column.
    max_rows : int, default 5000
        Rows that are drawn, at most 20,000; of more a random sample.
    random_state : int, RandomState, Generator or None, default 0
        Seed of the sample.
    origin : mapping of str to str, optional
        More facts for the head of the page, such as the name of a file.

    Returns
    -------
    pathlib.Path
        Of the file, which has less than 5 MB.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from mixfold import GaussianMixture
    >>> from mixfold.report import write_report
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + 9 * (np.arange(60) % 2)[:, None]
    >>> model = GaussianMixture(2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = write_report(model, X, path=f"{folder}/report.html").read_text("utf-8")
    >>> "2 components for 60 rows and 2 columns" in text
    True
    """
    check_is_fitted(model)
    target = _check_path(path)
    _check_rows(max_rows)
    if X is None and (y is not None or sample_weight is not None):
        raise ValueError("y and sample_weight speak of rows: give X as well")
    answering = getattr(model, "best_estimator_", model)
    named = hasattr(answering, "feature_names_in_")
    shape = shape_of(image_shape, int(answering.n_features_in_), named)
    seed = seed_from(random_state)
    with warnings.catch_warnings():
        # of rows without entries, say: the page tells it once, and not for each piece
        warnings.simplefilter("ignore", UserWarning)
        look = (
            None
            if X is None
            else summarise_rows(answering, X, y, sample_weight, int(max_rows), seed)
        )
        subject = Subject(
            model, answering, look, shape, datetime.now(), seed, int(max_rows), origin or {}
        )
        text = render_within_limit(subject)
    if target.exists() and not target.is_file():  # a pipe, a terminal
        target.write_text(text, encoding="utf-8", newline="\n")
    else:
        replace_file(target, text.encode("utf-8"), "the report")
    return target


def render_within_limit(subject: Subject) -> str:
    """The page, with fewer points on its map if it would be too large otherwise."""
    text = page(subject)
    while len(text.encode()) >= MOST_BYTES and subject.max_points > 200:
        subject = replace(subject, max_points=subject.max_points // 2)
        text = page(subject)
    return text


def _check_path(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    if target.is_dir():
        raise ValueError(
            f"path={str(target)!r} is a folder; name a file in it, such as report.html"
        )
    if not target.parent.exists():
        raise FileNotFoundError(f"path: there is no folder {str(target.parent)!r}; make it first")
    return target


def _check_rows(max_rows: Any) -> None:
    whole = isinstance(max_rows, Integral) and not isinstance(max_rows, bool)
    if not whole or not 1 <= max_rows <= MOST_ROWS:
        raise ValueError(f"max_rows must be a whole number from 1 to {MOST_ROWS}; got {max_rows!r}")
