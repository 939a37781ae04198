"""Kernel models."""
