"""What a search can be asked once it is fitted: its best estimator answers."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array
from mixfold.estimators.search.search_grid import named_estimators


def _of_the_best(name: str) -> Callable[[Any], bool]:
    """Available where the best estimator (before the fit: every candidate) has the method."""

    def check(search: Any) -> bool:
        best = getattr(search, "best_estimator_", None)
        asked = [best] if best is not None else named_estimators(search.estimator).values()
        for model in asked:
            getattr(model, name)
        return True

    return check


class AnswersOfTheBest:
    """Methods of ``best_estimator_``, each there if that estimator has it."""

    best_estimator_: Any
    fit: Any

    @property
    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    @available_if(_of_the_best("predict"))
    def fit_predict(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Array:
        """Fit, then assign each row to its most probable component."""
        return self.fit(X, y, sample_weight, component_labels).predict(X)

    @available_if(_of_the_best("predict"))
    def predict(self, X: Any) -> Array:
        """The most probable component of each row, by the best estimator."""
        return self._best.predict(X)

    @available_if(_of_the_best("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Probability of each component for each row, by the best estimator."""
        return self._best.predict_proba(X)

    @available_if(_of_the_best("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of ``predict_proba``."""
        return self._best.predict_log_proba(X)

    @available_if(_of_the_best("score_samples"))
    def score_samples(self, X: Any) -> Array:
        """Log density of each row under the best estimator."""
        return self._best.score_samples(X)

    @available_if(_of_the_best("score"))
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood per row under the best estimator."""
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self._best.score(X, y, **weight)

    @available_if(_of_the_best("transform"))
    def transform(self, X: Any) -> Array:
        """Latents of the rows, if the best estimator has them."""
        return self._best.transform(X)

    @available_if(_of_the_best("transform"))
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, then give the latents of the rows, if the best estimator has them."""
        return self.fit(X, y, sample_weight).transform(X)

    @available_if(_of_the_best("impute"))
    def impute(self, X: Any, method: str = "mean", random_state: Any = None) -> Array:
        """Fill the missing entries of X by the best estimator."""
        return self._best.impute(X, method, random_state)

    @available_if(_of_the_best("sample"))
    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draw new rows from the best estimator."""
        return self._best.sample(n_samples, random_state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``best_estimator_`` to a file; ``mixfold.load`` gives that estimator.

        The table of a search is not part of it: keep ``to_frame()`` if it is needed.
        """
        self._best.save(path)
