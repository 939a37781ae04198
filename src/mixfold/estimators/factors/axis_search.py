"""The number of axes of PPCA where entries are missing."""

from __future__ import annotations

import warnings

import numpy as np

from mixfold.contracts import Source
from mixfold.estimators.factors.factor_model import FactorModel


class AxisSearch(FactorModel):
    """How many axes there are, by fits with EM, where there is no spectrum to look at."""

    def _search(self, source: Source) -> None:
        """The number of axes by fits with EM, where there is no spectrum to look at."""
        if self.n_components == "mle":
            raise ValueError(
                "n_components='mle' needs complete data and a closed form; with missing entries or "
                "solver='em' use 'bic', a share of the variance, or a whole number"
            )
        if self.checkpoint is not None:
            raise ValueError(
                f"n_components={self.n_components!r} is searched for by several fits where entries "
                "are missing, and a checkpoint holds one; leave checkpoint out or give a whole "
                "number"
            )
        most = max(1, min(source.n_samples or source.n_features, source.n_features) - 1)
        if self.n_components == "bic":
            self._tried = self._lowest_bic(source, most)
        else:
            self._tried = self._fewest(source, most)
        self._fit(source)
        del self._tried

    def _fitted_with(self, source: Source, size: int) -> None:
        self._tried = size
        with warnings.catch_warnings():  # users are told of the fit that is kept
            warnings.simplefilter("ignore", UserWarning)
            self._fit(source)

    def _lowest_bic(self, source: Source, most: int) -> int:
        """One more axis at a time until BIC has risen twice in a row."""
        best, least, rises = 1, np.inf, 0
        for size in range(1, most + 1):
            self._fitted_with(source, size)
            value = self.bic()
            if value < least:
                best, least, rises = size, value, 0
            else:
                rises += 1
            if rises == 2:
                break
        return best

    def _fewest(self, source: Source, most: int) -> int:
        """The fewest axes that retain the share: doubled until they do, then bisected."""
        low, high = 0, 1
        while high < most and not self._retains(source, high):
            low, high = high, min(2 * high, most)
        while high - low > 1:
            middle = (low + high) // 2
            if self._retains(source, middle):
                high = middle
            else:
                low = middle
        return high

    def _retains(self, source: Source, size: int) -> bool:
        self._fitted_with(source, size)
        return bool(self.explained_variance_ratio_.sum() >= float(self.n_components) - 1e-12)
