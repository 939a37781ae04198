"""What every estimator can be asked for: a page about itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


class Reported:
    """A fitted model on a page that people keep."""

    def report(
        self,
        X: Any = None,
        y: Any = None,
        *,
        path: str | os.PathLike[str] = "report.html",
        image_shape: tuple[int, int] | None = None,
        sample_weight: Any = None,
        max_rows: int = 5000,
        random_state: Any = 0,
    ) -> Path:
        """Write an HTML page about the fit, and about rows if they are given.

        One file that opens without a network: how the fit went, what was found, a map of the rows,
        the oddest ones, what is missing. Rows are visited once, a piece at a time.

        Parameters
        ----------
        X : as in ``fit``, optional
            Rows, usually those of the fit. Without them the page tells what the model alone knows.
        y : array-like or str, optional
            Classes, labels or numbers of the rows, or the name of their column: a classifier is
            judged by them, groups are compared with them.
        path : str or path-like, default='report.html'
            The file to write; less than 5 MB.
        image_shape : tuple of (height, width), default=None
            Of the picture that a row is. None guesses, and says so, where columns have no names
            and are 64 or another square number.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weights of the rows, or the name of their column.
        max_rows : int, default=5000
            Rows that are drawn, at most 20,000; of more a random sample, and the page says so.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the sample.

        Returns
        -------
        pathlib.Path
            Of the file.
        """
        from mixfold.report import write_report  # a page is rarely wanted, and imports the most

        return write_report(
            self,
            X,
            y,
            path=path,
            image_shape=image_shape,
            sample_weight=sample_weight,
            max_rows=max_rows,
            random_state=random_state,
        )
