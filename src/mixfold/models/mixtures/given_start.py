"""Parts of a start that the user prescribes."""

from __future__ import annotations

from dataclasses import dataclass

from mixfold.contracts import Array
from mixfold.families.component import ComponentFamily
from mixfold.families.gaussian import GaussianFamily, GaussianParams
from mixfold.math.frame import Frame


@dataclass(frozen=True, slots=True)
class GivenStart:
    """Weights, means and covariances in data coordinates; None where the start is free."""

    weights: Array | None = None
    means: Array | None = None
    covariances: Array | None = None

    @property
    def free(self) -> bool:
        """Whether nothing is prescribed."""
        return self.weights is None and self.means is None and self.covariances is None

    @property
    def complete(self) -> bool:
        """Whether nothing is left to choose."""
        return not (self.weights is None or self.means is None or self.covariances is None)

    def components(
        self, family: ComponentFamily, frame: Frame, free: GaussianParams | None
    ) -> GaussianParams:
        """The components of a start; ``free`` has what is not prescribed."""
        if not isinstance(family, GaussianFamily):
            raise TypeError(f"a start of {type(family).__name__} cannot be prescribed")
        means, covariances = self.means, self.covariances
        if means is None:
            assert free is not None
            means = frame.leave(free.means)
        if covariances is None:
            assert free is not None
            covariances = family.covariances(free)
        return family.from_covariances(frame, means, covariances)
