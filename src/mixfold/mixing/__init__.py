"""WHO generates which row: one prior of the mixing weights per file."""

from mixfold.mixing.free import FreeWeights

__all__ = ["FreeWeights"]
