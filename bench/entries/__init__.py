"""What ``python -m bench models`` compares: a record for each public model, by topic."""

from __future__ import annotations

from bench.entries.factors import FACTORS
from bench.entries.labelled import LABELLED
from bench.entries.mixtures import MIXTURES
from bench.entries.networks import NETWORKS
from bench.entries.record import Entry
from bench.entries.topics import TOPICS

ENTRIES: tuple[Entry, ...] = (*MIXTURES, *FACTORS, *LABELLED, *TOPICS, *NETWORKS)

# public names that are not measured, and why
LEFT_OUT = {
    "MixtureClustering": "is compared by its clusters: python -m bench clustering",
    "DegenerateWarning": "a warning",
    "Schema": "reads tables, and fits nothing",
    "GTM": "is not measured yet: none of the peers has it",
    "KSubspaces": "is not measured yet: none of the peers has it",
    "freeze": "a fitted model for services: python -m bench small",
    "LatentDensity": "two models that are measured by themselves, one after the other",
    "gap_statistic": "as many fits of KMeans as it is asked for",
    "sample_codebook": "draws rows of a fitted codebook",
    "bootstrap_lrt": "a test: as many fits of GaussianMixture as it is asked for",
    "load": "reads a model file",
}


def entry(name: str) -> Entry:
    """The record of this name."""
    return next(e for e in ENTRIES if e.name == name)
