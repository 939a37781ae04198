"""The command line ``mixfold``: arguments, files and text output. No mathematics."""

from mixfold.cli.app import main

__all__ = ["main"]
