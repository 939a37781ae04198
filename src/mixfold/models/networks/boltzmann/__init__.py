"""Restricted Boltzmann machines: energies, learning, partition functions."""
