"""A mixture in a given frame instead of one taken from the pilot."""

from __future__ import annotations

from dataclasses import dataclass

from mixfold.contracts import Array, Pilot
from mixfold.math.frame import Frame
from mixfold.models.mixtures.mixture import Mixture


@dataclass(frozen=True)
class FramedMixture(Mixture):
    """A mixture whose floors and starts are in the units of ``frame``.

    Fits to parts of a table that share the frame of the whole have the same least variance, and
    their components can stand in one mixture. In a frame of unit scale the floor of the family is
    a variance in the units of the data.
    """

    frame: Frame | None = None

    def _frame(self, pilot: Pilot, X: Array, weight: Array) -> Frame:
        return super()._frame(pilot, X, weight) if self.frame is None else self.frame
