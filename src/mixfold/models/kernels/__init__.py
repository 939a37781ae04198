"""Kernel models: blocks of the Gram matrix are computed when they are needed."""
