"""Mixtures: groups of rows."""
