"""Reports: one self-contained HTML page about a fitted model and its rows."""

from mixfold.report.write import write_report

__all__ = ["write_report"]
