"""Law suites and oracles: check a family, model, source or executor of your own with them."""

from mixfold.testing.case import Case

__all__ = ["Case"]
