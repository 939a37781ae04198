"""A fitted model on one page that people keep: HTML without a network, for screen and paper."""

from mixfold.report.write import write_report

__all__ = ["write_report"]
