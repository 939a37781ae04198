"""Mixtures: their model, starts, priors, samplers."""
