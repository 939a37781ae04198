"""Searches over sizes and settings."""
