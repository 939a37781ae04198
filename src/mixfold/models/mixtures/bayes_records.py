"""Parameters and statistics of Bayesian mixtures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mixfold.contracts import NotNegative, Shares, record
from mixfold.models.mixtures.mixture import MixtureStats

# what ``summarise_sweep`` gives, in its order
TRACES = ("log_joint", "n_clusters", "alpha", "largest", "entropy", "prior")


@record
@dataclass(frozen=True, slots=True)
class BayesParams:
    """Posterior of the weights and of the components, and the prior of the latter.

    ``counts`` (K,) are the rows that made the posterior, ``weights`` (K,) the expected weights;
    ``seed`` makes the draws of a sampler; ``learning`` says that from here on the prior of the
    components follows them.
    """

    mixing: Any
    components: Any
    prior: Any
    counts: NotNegative
    weights: Shares
    seed: int = 0
    learning: bool = False

    @property
    def n_components(self) -> int:
        return len(self.weights)


@record
@dataclass(frozen=True)
class BayesStats(MixtureStats):
    """``hidden`` is the entropy of the missing entries that the E step averaged over."""

    hidden: float = 0.0
