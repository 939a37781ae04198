"""Factor models and their mixtures."""
