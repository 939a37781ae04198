"""Sources: data sets of any kind as blocks of rows."""

from mixfold.engine.sources.dask import DaskSource
from mixfold.engine.sources.opening import open_source
from mixfold.engine.sources.partitions import Partition

__all__ = ["DaskSource", "Partition", "open_source"]
