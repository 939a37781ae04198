"""Mixtures of Gaussians under linear transformations, one for each component."""
