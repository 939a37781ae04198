"""Families with a conjugate prior: what a Bayesian mixture asks of them.

    log p(x | theta)   = log h(x) + <T(x), omega(theta)>
    log p(theta | chi) = log g(theta) + <chi, omega(theta)> - B(chi)

The posterior of a component is chi_k = chi_0 + sum_n r_nk T(x_n), whatever the inference. Three
readings of it make the E step: ``point`` (EM and MAP), ``expected_reading`` (variational Bayes),
``draw`` (Gibbs sampling).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.families.component import ComponentFamily
from mixfold.math.frame import Frame


@dataclass(frozen=True)
class ConjugateFamily(ComponentFamily):
    """A family with a conjugate prior. Settings of the prior are fields, in data coordinates.

    A prior and a posterior are records of the family's own, in the coordinates of a frame. A
    posterior holds ``frame``, ``means`` and ``n_features`` as parameters do, and its arrays carry a
    leading axis of components (what they share does not).
    """

    readings: ClassVar[tuple[str, ...]] = ("mode", "expected", "draw")
    # whether the moments of two components, added up, are those of all their rows in one
    sums_can_merge: ClassVar[bool] = True
    # why the parameters of one component cannot be integrated out, where they cannot
    not_collapsed: ClassVar[str] = "it names no law of theirs"

    @property
    def collapsed_law(self) -> str | None:
        """The law of the parameters of a component, by which the collapsed sampler integrates them
        out: 'beta', 'gamma', 'dirichlet', 'normal-wishart', 'normal-gamma' or 'normal'; None: it
        cannot. What the urn of a law asks of a family is said there (models/mixtures/urns)."""
        return None

    # ------------------------------------------------ prior and posterior

    @abstractmethod
    def prior(self, frame: Frame, total: Any) -> Any:
        """chi_0; what the settings leave open comes from ``total``, the moments of all rows as one
        component."""

    def describe_prior(self, prior: Any, frame: Frame) -> dict[str, Any]:
        """The settings of the family that make this prior, in data coordinates; a family that has
        no such settings describes nothing."""
        return {}

    @abstractmethod
    def posterior(self, moments: Any, prior: Any, frame: Frame) -> Any:
        """chi_0 + S_k of every component; one without rows has the prior."""

    def update_posterior(self, previous: Any, moments: Any, prior: Any) -> Any:
        """The posterior after another pass. One whose parts are believed to be independent goes
        on from the previous one, so that the bound does not fall."""
        return self.posterior(moments, prior, previous.frame)

    @abstractmethod
    def keep_posterior(self, posterior: Any, which: Array) -> Any:
        """Only the components ``which``, in that order."""

    def cramped(self, posterior: Any, counts: Array) -> Array:
        """Components that may want to be larger than they began. Asked where ``sums_can_merge`` is
        False."""
        return np.zeros(0, dtype=int)

    def renewed(self, posterior: Any, which: Array) -> ConjugateFamily:
        """The family of components that are made anew of the rows of ``which``. Asked where
        ``sums_can_merge`` is False."""
        return self

    def replace_posteriors(self, posterior: Any, which: Array, others: Any) -> Any:
        """The posterior with components ``which`` taken from ``others``, in their order. Asked
        where ``sums_can_merge`` is False."""
        raise TypeError(f"the family {self.name!r} starts all its components together")

    @abstractmethod
    def change_frame_of_prior(self, prior: Any, old: Frame, new: Frame) -> Any:
        """The same prior in other coordinates."""

    @abstractmethod
    def change_frame_of_posterior(self, posterior: Any, frame: Frame) -> Any:
        """The same posterior in other coordinates."""

    # ------------------------------------------------ readings

    @abstractmethod
    def point(self, posterior: Any) -> Any:
        """Parameters argmax_theta <chi, omega(theta)>: the additive MAP, and ML without a prior."""

    @abstractmethod
    def expected_reading(self, posterior: Any) -> Any:
        """A reading whose scores are E_q[log p(x | theta_k)] of the observed entries. Where columns
        depend on each other the missing ones are integrated out of exp of that of a whole row."""

    @abstractmethod
    def draw(self, posterior: Any, rng: np.random.Generator) -> Any:
        """Parameters drawn from the posterior."""

    # ------------------------------------------------ parts of the objectives

    @abstractmethod
    def kl(self, posterior: Any, prior: Any) -> float:
        """KL divergence of the posterior of all components from the prior."""

    @abstractmethod
    def log_prior(self, params: Any, prior: Any) -> float:
        """sum_k <chi_0, omega(theta_k)>: what MAP adds to the log-likelihood."""

    @abstractmethod
    def evidence(self, moments: Any, prior: Any, frame: Frame) -> float:
        """Log evidence of rows with known components: base measure + B(chi_0 + S) - B(chi_0)."""

    @abstractmethod
    def average(self, moments: Any, reading: Any) -> float:
        """sum_nk r_nk log_density_nk of a reading, from the moments: complete rows (or families
        whose columns are independent, with any)."""

    @abstractmethod
    def empirical(self, posterior: Any, prior: Any) -> Any:
        """The prior that the components suggest (type-II maximum likelihood): it maximises
        sum_k <chi_0, E_k[omega]> - B(chi_0)."""

    def draw_prior(self, params: Any, prior: Any, given: Any, rng: np.random.Generator) -> Any:
        """A prior drawn given the parameters of components, from ``prior``, by one transition.

        Its settings have priors of their own about those of the prior that was ``given``
        (``math/prior_draws.py``). Parameters are those of components with rows: others are drawn
        from the prior and would only hold it where it is.
        """
        raise ValueError(
            f"the family {self.name!r} does not say how its prior is drawn, which learn_prior=True "
            "needs where inference='gibbs' or 'collapsed'. Leave learn_prior out"
        )

    def log_strength(self, prior: Any) -> float:
        """ln of how many rows the prior of a component is worth, or a number that rises with it:
        what the trace of a sampled prior shows. Asked where ``draw_prior`` is."""
        return float("nan")

    # ------------------------------------------------ prediction

    @abstractmethod
    def log_predictive(self, posterior: Any, block: Block) -> Array:
        """log E_q[p(x | theta_k)] (n, K) of the observed entries."""

    @abstractmethod
    def sample_predictive(self, posterior: Any, labels: Array, rng: np.random.Generator) -> Array:
        """Rows of the given components, each with parameters of its own draw from q."""

    def condition_predictive(
        self, posterior: Any, known: Array, values: Array
    ) -> tuple[Array, ComponentFamily, Any]:
        """The predictive distribution of the other columns given values of the known ones.

        Returns the predictive log density (K,) of the values, and a family with what it knows of
        the components then: a posterior whose predictive is the conditional one or, where that is
        no posterior, parameters.
        """
        raise ValueError(
            f"the family {self.name!r} cannot be conditioned on some of its columns with its "
            "parameters averaged out; fit it with inference='em' and no prior"
        )

    def _log_predictive_of(self, posterior: Any, known: Array, values: Array) -> Array:
        """Predictive log density (K,) of known columns."""
        row = np.full((1, posterior.n_features), np.nan)
        row[0, known] = values
        return np.asarray(self.log_predictive(posterior, Block(row, complete=False))[0])
