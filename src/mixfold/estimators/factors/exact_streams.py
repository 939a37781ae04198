"""Streams of models that two moments determine: learning by batches equals learning at once."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, Self

import numpy as np

from mixfold.contracts import Block, Source
from mixfold.engine.random import RowKeys, seed_from
from mixfold.engine.schedules import Stepwise
from mixfold.estimators.factors.factor_model import FactorModel
from mixfold.models.factors.spectral import ORDINARY, second_moments
from mixfold.models.factors.spectral_sums import MissingEntries, SecondMoments, SumSquares
from mixfold.models.mixtures.compressed import compressed


class ExactStream(FactorModel):
    """``partial_fit`` that keeps the moments of all rows while it can, and steps of EM after."""

    @abstractmethod
    def _take_moments(self, moments: SecondMoments) -> None:
        """Fit to all the rows that the moments stand for."""

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch, of any size.

        While the batches are complete and have at most 2000 columns the moments of all rows are
        kept, and the result is that of one fit to all of them. From the first batch with missing
        entries on, or with more columns, stepwise EM is used: earlier batches are slowly
        forgotten.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.

        Returns
        -------
        self
        """
        self._check_parameters()
        begun = hasattr(self, "_moments") or hasattr(self, "_schedule")
        source = self._open(X, reset=not begun, weight=sample_weight)
        if hasattr(self, "_schedule") or source.n_features > ORDINARY:
            self._step(source, first=not begun)
            return self
        try:
            self._add(source)
        except MissingEntries:
            if begun:
                self._schedule = self._summarised()
                del self._moments
            self._step(source, first=not begun)
        return self

    def _add(self, source: Source) -> None:
        """One more batch of moments."""
        earlier: SecondMoments | None = getattr(self, "_moments", None)
        executor = self._executor(source)
        if earlier is None:
            batch = second_moments(source, executor)
        else:
            batch = executor.map_reduce(SumSquares(earlier.sums.origin), source)
        if batch.sums.weight == 0:
            return
        if earlier is None:
            self._stream, self._batches = (seed_from(self.random_state), 0), 0
            self._dtype = source.dtype.name
        self._batches += 1
        moments = batch if earlier is None else earlier + batch
        self._take_moments(moments)
        self._moments = moments
        self.n_iter_ = self._batches

    def _step(self, source: Source, first: bool) -> None:
        """One more batch by stepwise EM."""
        self._holes = True
        self._learn(source, "n_components", first)

    def _summarised(self) -> Stepwise:
        """The batches so far as the schedule of stepwise EM would have them."""
        model = self._stream_model(self.n_features_in_)
        rows, weight = compressed(self._moments).both_sides()
        task = partial(model.expect, model.prepare(self._params), rng=RowKeys(0, 0))
        stats = task(Block(np.ascontiguousarray(rows), weight=weight))
        return Stepwise(model.normalised(stats), self._batches)
