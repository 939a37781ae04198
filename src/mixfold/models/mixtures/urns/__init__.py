"""Urns: clusters whose parameters are integrated out, for each kind of conjugate family.

``urns_of`` finds those of a family; a product has one for each of its parts.
"""

from __future__ import annotations

from typing import Any

from scipy.sparse import issparse

from mixfold.contracts import Block
from mixfold.families.bayes.known_covariance import KnownCovariance
from mixfold.families.bayes.normal_gamma import (
    BayesDiagonal,
    BayesSpherical,
    BayesTiedDiagonal,
    BayesTiedSpherical,
)
from mixfold.families.bayes.normal_wishart import BayesFull, BayesTied
from mixfold.families.component import ComponentFamily
from mixfold.families.linear import (
    Bernoulli,
    Binomial,
    Categorical,
    Exponential,
    Gamma,
    Multinomial,
    Poisson,
)
from mixfold.families.product import ProductFamily
from mixfold.families.product.rows import columns_of, frame_of_columns
from mixfold.math.frame import Frame
from mixfold.models.mixtures.urns.axis import AxisUrn
from mixfold.models.mixtures.urns.known import KnownUrn
from mixfold.models.mixtures.urns.pairs import BetaUrn, GammaUrn, SparseBetaUrn, SparseGammaUrn
from mixfold.models.mixtures.urns.shares import SharesUrn
from mixfold.models.mixtures.urns.urn import Urn
from mixfold.models.mixtures.urns.wishart import WishartUrn

__all__ = ["URNS", "Urn", "urns_of"]

URNS: dict[type[ComponentFamily], type[Urn]] = {
    BayesFull: WishartUrn,
    BayesDiagonal: AxisUrn,
    BayesSpherical: AxisUrn,
    KnownCovariance: KnownUrn,
    Bernoulli: BetaUrn,
    Binomial: BetaUrn,
    Poisson: GammaUrn,
    Exponential: GammaUrn,
    Gamma: GammaUrn,
    Categorical: SharesUrn,
    Multinomial: SharesUrn,
}
# instead of those, for rows that are sparse; others keep their rows as they like
SPARSE: dict[type[Urn], type[Urn]] = {BetaUrn: SparseBetaUrn, GammaUrn: SparseGammaUrn}
_TIED = (BayesTied, BayesTiedDiagonal, BayesTiedSpherical)


def urns_of(family: ComponentFamily, block: Block, prior: Any, frame: Frame) -> tuple[Urn, ...]:
    """The urns of the rows of a block.

    Raises
    ------
    ValueError
        If the components of the family cannot be integrated out one by one, or the block has gaps
        that the family has to draw.
    """
    if isinstance(family, ProductFamily):
        parts = zip(family.parts, family.columns, prior.parts, strict=True)
        return tuple(
            _urn(part.family, columns_of(block, c), before, frame_of_columns(frame, c))
            for part, c, before in parts
        )
    return (_urn(family, block, prior, frame),)


def _urn(family: ComponentFamily, block: Block, prior: Any, frame: Frame) -> Urn:
    kind = URNS.get(type(family))
    if kind is None:
        why = "it has no sampler of that kind"
        if isinstance(family, _TIED):
            why = "its components share a covariance"
        names = ", ".join(known.name for known in URNS)
        raise ValueError(
            "inference='collapsed' integrates out the parameters of each component by itself, "
            f"which the family {family.name!r} does not allow: {why}. Choose one of {names}, or "
            "inference='gibbs'"
        )
    if issparse(block.X):
        kind = SPARSE.get(kind, kind)
    return kind(family, block, prior, frame)
