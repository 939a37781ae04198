"""The command line ``mixfold``: arguments, files and words. No mathematics."""

from mixfold.cli.app import main

__all__ = ["main"]
