"""What every prior of the mixing weights offers."""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np

from mixfold.contracts import Array

State = TypeVar("State")


class Mixing(Protocol[State]):
    """Hyper-parameters only. The state is made from counts (K,), which may be fractions.

    EM / MAP, variational Bayes and Gibbs differ in the reading of the state: ``mode``,
    ``expected_log_weights`` or ``draw``. For free and fixed weights the state is the weights
    themselves, the readings coincide, and there is no ``alpha``.

    A fit that learns ``alpha`` alternates ``state = posterior(counts, alpha)`` with
    ``alpha = update_alpha(state)``; then neither counts @ expected_log_weights(state) - kl(state)
    nor, with ``update_alpha(state, mode(state))``, counts @ mode(state) + log_prior(state) ever
    falls.
    """

    @property
    def learn_alpha(self) -> bool:
        """Whether ``alpha`` is unknown. If not, ``update_alpha`` and ``draw_alpha`` return it."""
        ...

    @property
    def hyper(self) -> tuple[float, float] | None:
        """Shape and rate of the gamma prior of an unknown ``alpha``; None is a flat one."""
        ...

    def posterior(
        self, counts: Array, alpha: float | None = None, like: State | None = None, /
    ) -> State:
        """The state after rows were counted; ``alpha`` None is the prior's own.

        Sticks stand in the order they have in ``like``, an earlier state, or in a better one.
        """
        ...

    def select(self, state: State, which: Array, /) -> State | None:
        """The state with the components in another order; None if the prior tells them apart."""
        ...

    def mode(self, state: State, /) -> Array:
        """Log weights (K,) that maximise counts @ log weights + log_prior."""
        ...

    def expected_log_weights(self, state: State, /) -> Array:
        """E ln pi_k (K,)."""
        ...

    def draw(self, state: State, rng: np.random.Generator, /) -> Array:
        """Log weights (K,) drawn from the state, never the logarithm of an underflow."""
        ...

    def mean(self, state: State, /) -> Array:
        """E pi_k (K,)."""
        ...

    def kl(self, state: State, /) -> float:
        """Divergence of the state from the prior; with all that an unknown ``alpha`` costs."""
        ...

    def log_prior(self, state: State, /) -> float:
        """What MAP adds to the log likelihood at ``mode(state)``."""
        ...

    def log_prob(self, counts: Array, alpha: float | None = None, /) -> float:
        """ln P(z | alpha) of assignments with these counts, the weights integrated out."""
        ...

    def update_alpha(self, state: State, log_weights: Array | None = None, /) -> float:
        """The better ``alpha``, from E ln pi or from the log weights in its place."""
        ...

    def draw_alpha(self, state: State, log_weights: Array, rng: np.random.Generator, /) -> float:
        """One Gibbs transition of ``alpha`` given log weights."""
        ...

    def order(self, counts: Array, alpha: float | None = None, /) -> Array | None:
        """A permutation of the components that suits the prior better, or None."""
        ...

    def n_free(self, n_components: int, /) -> int:
        """Number of free parameters."""
        ...
