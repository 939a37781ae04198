"""Assemblies of families and mixings that read like the paper."""
