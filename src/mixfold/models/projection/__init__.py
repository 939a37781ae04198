"""Clusters and one projection, learned together: mixtures of components on one shared plane."""
