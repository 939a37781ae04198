"""``Case``: a model with a small table, on which most laws are checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block, Context, Model, Pilot, Stats, Update
from mixfold.engine.executors import ThreadExecutor
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.random import RowKeys
from mixfold.engine.sources import open_source


@dataclass(frozen=True, eq=False)
class Case:
    """A model and data that it can be fitted to.

    Parameters
    ----------
    model : Model
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        A few hundred rows suffice, and keep the laws quick. NaN where the model allows it.
    weight : ndarray of shape (n_samples,), optional
    y : ndarray of shape (n_samples, ...), optional
        Labels, as in :class:`mixfold.contracts.Block`.
    seed : int, default=0
    rtol : float, default=1e-10
        What may differ by the order of summation; about 1e-5 for float32 data.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.families import DiagonalGaussian
    >>> from mixfold.models.mixtures.mixture import Mixture
    >>> from mixfold.testing import Case, laws
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> laws.check_model(Case(Mixture(2, DiagonalGaussian()), X), n_labels=2)
    """

    model: Model[Any, Any, Any]
    X: Any
    weight: Array | None = None
    y: Array | None = None
    seed: int = 0
    rtol: float = 1e-10

    @property
    def block(self) -> Block:
        """The whole table as one block."""
        source = open_source(self.X, weight=self.weight, y=self.y)
        (block,) = source.blocks(self.X.shape[0])
        return block

    @property
    def keys(self) -> RowKeys:
        return RowKeys(self.seed)

    def pilot(self) -> Pilot:
        source = open_source(self.X, weight=self.weight, y=self.y)
        return draw_pilot(source, ThreadExecutor(1), self.X.shape[0], self.seed)

    def start(self) -> Any:
        """Parameters before the first step."""
        return self.model.initialise(self.pilot(), np.random.default_rng(self.seed))

    def stats(self, params: Any, block: Block | None = None) -> Any:
        """Statistics of a block, or of the whole table, at these parameters."""
        reading = self.model.prepare(params)
        return self.model.expect(reading, self.block if block is None else block, self.keys)

    def objective(self, params: Any, block: Block | None = None) -> float:
        return self.model.objective(params, self.stats(params, block))

    def update(self, params: Any, stats: Stats, iteration: int = 1) -> Update[Any]:
        context = Context(self.pilot(), np.random.default_rng([self.seed, iteration]), iteration)
        return self.model.update(params, stats, context)

    def after(self, n_steps: int) -> Any:
        """Parameters after some plain steps: a typical point, not an optimum."""
        params = self.start()
        for step in range(n_steps):
            params = self.update(params, self.stats(params), step + 1).params
        return params


def with_complete_flag(block: Block) -> Block:
    """The block with ``complete`` as its own entries say."""
    values = block.X.data if sparse.issparse(block.X) else block.X
    return replace(block, complete=not np.isnan(values).any())
