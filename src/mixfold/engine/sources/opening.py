"""``open_source``: the source for any kind of table that users give."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Source
from mixfold.engine.sources.array import ArraySource, MappedSource, as_array, is_path
from mixfold.engine.sources.dask import is_dask, is_dask_frame, open_dask
from mixfold.engine.sources.sparse import SparseSource
from mixfold.engine.sources.weights_and_labels import refuse_names, sides_of


def open_source(
    X: Any,
    *,
    columns: Any = None,
    weight: Any = None,
    y: Any = None,
    complete: bool | None = None,
) -> Source:
    """Blocks over whatever holds the data.

    Parameters
    ----------
    X : array, sparse matrix, table, path or Dask collection
        An ndarray or memory map (or anything that becomes one), a scipy sparse matrix, a
        pandas, polars or Arrow table, a Dask array or dataframe, or the path of a ``.npy``,
        Parquet or CSV file, of a folder of Parquet or CSV files, or a list of such files.
        NaN and null mean missing; infinities are refused, when their block is read.
    columns : sequence of str, optional
        The features, by name. By default all columns but those named by ``weight`` and ``y``.
    weight : array-like of shape (n_samples,) or str, optional
        Weights, or the name of the column of a table or file that holds them.
    y : array-like of shape (n_samples, ...) or str, optional
        Labels, or the name of their column. Missing ones become -1 (integers) or NaN.
    complete : bool, optional
        True says that all entries of an array or sparse matrix are known to be finite, so that
        they need not be looked at. Everything else is looked at anyway, as it is converted.

    Returns
    -------
    Source

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.engine.sources import open_source
    >>> source = open_source(np.array([[1.0, 2.0], [np.nan, 4.0], [5.0, 6.0]]))
    >>> [(block.rows, block.complete) for block in source.blocks(max_rows=2)]
    [(slice(0, 2, None), False), (slice(2, 3, None), True)]
    """
    # A Dask Delayed pretends to have every attribute, a source's as well.
    if isinstance(X, Source) and not is_dask(X):
        if any(option is not None for option in (columns, weight, y)):
            raise ValueError(
                "X is a source already: give columns, weight and y where it is opened."
            )
        return X
    named = _open_named(X, columns, weight, y)
    if named is not None:
        return named
    refuse_names(f"a {type(X).__name__}", columns, weight, y)
    if is_dask(X):
        return open_dask(X, columns, weight, y)
    if sparse.issparse(X):
        return SparseSource(X, sides_of(weight, y, X.shape[0]), complete)
    array = X if isinstance(X, np.memmap) else as_array(X)
    sides = sides_of(weight, y, array.shape[0] if array.ndim else None)
    if isinstance(array, np.memmap):
        return MappedSource(array, sides, complete=complete)
    return ArraySource(array, sides, complete)


def _open_named(X: Any, columns: Any, weight: Any, y: Any) -> Source | None:
    """A source over something whose columns have names, or None.

    Readers of tables are imported where there is a table: an array needs none of them.
    """
    if is_path(X) or (isinstance(X, (list, tuple)) and X and all(is_path(item) for item in X)):
        from mixfold.engine.sources.files import open_files

        return open_files(X, columns, weight, y)
    package = type(X).__module__.partition(".")[0]
    if package == "pyarrow" and type(X).__name__ in ("Table", "RecordBatch"):
        from mixfold.engine.sources.tables import open_arrow

        return open_arrow(X, columns, weight, y)
    if package == "pandas":
        from mixfold.engine.sources.frames import open_pandas

        return open_pandas(X, columns, weight, y)
    if package == "polars":
        from mixfold.engine.sources.tables import open_polars

        return open_polars(X, columns, weight, y)
    if is_dask_frame(X):
        return open_dask(X, columns, weight, y)
    return None
