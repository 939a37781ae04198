"""What is asked of a mixture under linear transformations, and of its iterates."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block
from mixfold.engine.executors.blas import single_threaded_blas
from mixfold.estimators.mixtures.answers import shaped
from mixfold.estimators.shell.base import MixfoldEstimator
from mixfold.math.softmax import normalise
from mixfold.models.mixtures.mlit.model import TransformedReading, log_joint, read
from mixfold.models.mixtures.mlit.records import Iterates, Transformed
from mixfold.models.mixtures.mlit.rules import Rule

INCOMPLETE = (
    "Input X contains NaN: MLiT needs complete rows; fill them first, for example by "
    "mixfold.PPCA(...).fit(X).impute(X)"
)


class TransformedAnswers(MixfoldEstimator):
    """Needs ``_params`` (iterates), ``iterate_``, ``_origin`` and the rule."""

    _params: Iterates
    _origin: Array
    _dtype: str
    iterate_: int

    @abstractmethod
    def _rule(self) -> Rule:
        """How transformations are found, which also says how rows are scored."""

    # ------------------------------------------------ iterates

    @property
    def n_iterates_(self) -> int:
        """Number of iterates that are kept, the start included."""
        return len(self._params.iterates)

    def use_iterate(self, number: int) -> Self:
        """Let another iterate answer; 0 is the start."""
        check_is_fitted(self)
        if not 0 <= number < self.n_iterates_:
            raise ValueError(
                f"the number of an iterate must be from 0 to {self.n_iterates_ - 1}; got {number}"
            )
        self.iterate_ = int(number)
        self._publish_params()
        return self

    def staged_score_samples(self, X: Any) -> Array:
        """Log score of each row by each iterate, of shape (n_iterates, n_samples)."""
        check_is_fitted(self)
        readings = [self._read(one) for one in self._params.iterates]
        return np.concatenate(list(self._rows(X, partial(_stages, readings))), axis=1)

    def _read(self, params: Transformed) -> TransformedReading:
        # small systems, and with all iterates many: threads of BLAS would only wait for each other
        with single_threaded_blas():
            offset = self._rule().offset(params.covariances, float(self.ridge))
            return read(params, offset, self._origin)

    # ------------------------------------------------ asking

    def _publish_params(self) -> None:
        params = self._params.iterates[self.iterate_]
        self.weights_ = params.weights.astype(self._dtype)
        self.transforms_ = params.transforms.astype(self._dtype)
        self.means_ = params.means.astype(self._dtype)
        self.covariances_ = params.covariances.astype(self._dtype)

    def _ask(self, X: Any, answer: Any) -> Array:
        check_is_fitted(self)
        return self._stacked(X, partial(answer, self._read(self._params.iterates[self.iterate_])))

    def score_samples(self, X: Any) -> Array:
        """log f of each row: **not** a log density of the row, see above."""
        return self._ask(X, _scores)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean of log f."""
        return float(np.average(self.score_samples(X), weights=sample_weight))

    def predict_proba(self, X: Any) -> Array:
        """Probability of each component given the row, (n_samples, n_components)."""
        return self._ask(X, _shares)

    def predict(self, X: Any) -> Array:
        """The most probable component of each row."""
        return self._ask(X, _labels)

    def transform(self, X: Any) -> Array:
        """Each row under the transformation of its most probable component, (n, n_dims)."""
        check_is_fitted(self)
        params = self._params.iterates[self.iterate_]
        return self._stacked(X, partial(_moved, self._read(params), params.transforms))


def _joint(reading: TransformedReading, block: Block) -> Array:
    if not block.complete:
        raise ValueError(INCOMPLETE)
    return log_joint(reading, block.X)


def _stages(readings: list[TransformedReading], block: Block) -> Array:
    return shaped(np.stack([normalise(_joint(one, block))[0] for one in readings]), block)


def _scores(reading: TransformedReading, block: Block) -> Array:
    return shaped(normalise(_joint(reading, block))[0], block)


def _shares(reading: TransformedReading, block: Block) -> Array:
    return shaped(normalise(_joint(reading, block))[1], block)


def _labels(reading: TransformedReading, block: Block) -> Array:
    return np.argmax(_joint(reading, block), axis=1)


def _moved(reading: TransformedReading, transforms: Array, block: Block) -> Array:
    best = np.argmax(_joint(reading, block), axis=1)
    X = np.asarray(block.X, np.float64)
    out = np.empty((len(X), transforms.shape[1]))
    for k, omega in enumerate(transforms):
        out[best == k] = X[best == k] @ omega.T
    return shaped(out, block)
