"""Data sets, baselines and fits that several tables use."""
