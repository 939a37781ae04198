"""Factor models with outputs or labels."""
