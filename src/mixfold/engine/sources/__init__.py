"""Data, as blocks of rows, from wherever they are."""

from mixfold.engine.sources.dask import DaskSource
from mixfold.engine.sources.opening import open_source
from mixfold.engine.sources.partitions import Partition

__all__ = ["DaskSource", "Partition", "open_source"]
