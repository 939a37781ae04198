"""Gaussian clusters on one shared plane."""
