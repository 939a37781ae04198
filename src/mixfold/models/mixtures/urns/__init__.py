"""Urns: clusters whose parameters are integrated out, for each law of conjugate families.

``urns_of`` finds those of a family; a product has one for each of its parts.
"""

from __future__ import annotations

from typing import Any

from scipy.sparse import issparse

from mixfold.contracts import Block
from mixfold.families.component import ComponentFamily
from mixfold.families.conjugate import ConjugateFamily
from mixfold.families.product import ProductFamily
from mixfold.families.product.build import PARTS
from mixfold.families.product.rows import columns_of, frame_of_columns
from mixfold.math.frame import Frame
from mixfold.models.mixtures.urns.axis import AxisUrn
from mixfold.models.mixtures.urns.known import KnownUrn
from mixfold.models.mixtures.urns.pairs import BetaUrn, GammaUrn, SparseBetaUrn, SparseGammaUrn
from mixfold.models.mixtures.urns.shares import SharesUrn
from mixfold.models.mixtures.urns.urn import Urn
from mixfold.models.mixtures.urns.wishart import WishartUrn

__all__ = ["URNS", "Urn", "urns_of"]

# by the law of the parameters of a component
URNS: dict[str, type[Urn]] = {
    "normal-wishart": WishartUrn,
    "normal-gamma": AxisUrn,
    "normal": KnownUrn,
    "beta": BetaUrn,
    "gamma": GammaUrn,
    "dirichlet": SharesUrn,
}
# instead of those, for rows that are sparse; others keep their rows as they like
SPARSE: dict[type[Urn], type[Urn]] = {BetaUrn: SparseBetaUrn, GammaUrn: SparseGammaUrn}


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
    law = _law(family)
    if law not in URNS:
        why = getattr(family, "not_collapsed", "it has no conjugate prior")
        if law is not None:
            why = f"there is no sampler for the law {law!r}"
        names = ", ".join(name for name, kind in PARTS.items() if _law(kind()) in URNS)
        raise ValueError(
            "inference='collapsed' integrates out the parameters of each component by itself, "
            f"which the family {family.name!r} does not allow: {why}. Choose one of {names}, or "
            f"inference={'gibbs' if 'draw' in family.readings else 'vb'!r}"
        )
    kind = URNS[law]
    if issparse(block.X):
        kind = SPARSE.get(kind, kind)
    return kind(family, block, prior, frame)


def _law(family: ComponentFamily) -> str | None:
    return family.collapsed_law if isinstance(family, ConjugateFamily) else None
