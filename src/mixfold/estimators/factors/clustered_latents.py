"""The shell of a projection with clusters: fitting, asking, publishing."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_array, check_is_fitted

from mixfold.contracts import Array, Block, Pilot, Source
from mixfold.engine.loop import Fit
from mixfold.estimators.mixtures import answers
from mixfold.estimators.shell.density import DensityEstimator
from mixfold.estimators.shell.sides import check_labels
from mixfold.models.mixtures.merge_split import IN_USE
from mixfold.models.projection.clustered_projection import ClusteredProjection
from mixfold.models.projection.projection_reading import ProjectionReading
from mixfold.models.projection.projection_records import ProjectionParams
from mixfold.models.projection.projection_use import Canonical, canonical


class ClusteredLatents(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityEstimator):
    """Base of GaussianPCP, which says which model it is."""

    _size_name: ClassVar[str] = "n_clusters"
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_total", "converged_", "stop_reason_", "n_iter_", "n_passes_", "lower_bound_",
        "lower_bounds_", "evidence_bound_", "events_", "_dtype", "_stream",
    )  # fmt: skip

    @abstractmethod
    def _model(self, n_features: int) -> Any: ...

    # ------------------------------------------------ fitting

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Self:
        """Fit projection and clusters.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            Rows are samples, columns features; no entry may be missing.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature.
        component_labels : array-like of shape (n_samples,) or str, optional
            The cluster of each row, 0 to n_clusters - 1, or -1 where it is unknown.

        Returns
        -------
        self
        """
        self._check_parameters()
        labels = check_labels(component_labels, self.n_clusters)
        self._labelled = labels is not None
        self._fit(self._open(X, reset=True, weight=sample_weight, y=labels, min_rows=2))
        return self

    def fit_predict(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Array:
        """Fit, then assign each row to its most probable cluster."""
        return self.fit(X, y, sample_weight, component_labels).predict(X)

    def _look(self, pilot: Pilot) -> None:
        lacking = np.flatnonzero(pilot.observed < pilot.total_rows)
        if lacking.size:
            names = getattr(self, "feature_names_in_", None)
            which = repr(names[lacking[0]]) if names is not None else str(lacking[0])
            raise ValueError(
                f"X holds NaN, in column {which} first: {type(self).__name__} needs complete rows. "
                "Fill them first, with PPCA(...).fit(X).impute(X) say, or leave them out"
            )

    def _check_rows(self, n_rows: int) -> None:
        model = self._model(self.n_features_in_)
        if not model.law.bayes:  # with priors there may be more clusters than rows
            super()._check_rows(n_rows)
        if model.size > min(n_rows, self.n_features_in_):
            raise ValueError(
                f"n_components={model.size} must be at most min(n_samples, n_features), with "
                f"n_samples = {n_rows} rows of positive weight and n_features = "
                f"{self.n_features_in_}; lower n_components"
            )

    def _keep(self, result: Fit, source: Source, seed: int, quiet: bool) -> None:
        model = self._model(source.n_features)
        if not (self._labelled or self.warm_start):  # the order of a start is an accident
            order = np.argsort(-result.params.clusters.counts, kind="stable")
            result = replace(result, params=model.ordered(result.params, order))
        super()._keep(result, source, seed, quiet)
        self.__dict__.pop("evidence_bound_", None)
        if model.law.bayes:
            self._total = None  # the objective is not the log-likelihood
            self.evidence_bound_ = float(result.objective)

    def _fits(self, model: Any) -> bool:
        params = self._params
        same = model.law.bayes == (params.clusters.prior is not None)
        shape = (self.n_features_in_, model.size)
        return same and params.axes.shape == shape and params.n_components == model.n_components

    def _publish_params(self) -> None:
        found, counts = self._canonical(), self._params.clusters.counts
        self.counts_, self.active_ = counts, counts > IN_USE
        self.effective_components_ = int(np.count_nonzero(self.active_))
        published = {
            "weights_": found.weights,
            "means_": found.decode(found.means),
            "latent_means_": found.means,
            "covariances_": found.covariances,
            "mean_": found.mean,
            "components_": np.ascontiguousarray(found.axes.T),
            "loadings_": found.loadings,
        }
        for name, value in published.items():
            setattr(self, name, value.astype(self._dtype))
        self.noise_variance_ = float(found.noise)
        variance = (found.loadings**2).sum(axis=0) + found.noise
        total = variance.sum() + found.noise * (len(found.mean) - len(variance))
        self.explained_variance_ratio_ = (variance / total).astype(self._dtype)
        self.__dict__.pop("alpha_", None)
        if self._model(self.n_features_in_).law.bayes:
            self.alpha_ = float(self._params.clusters.mixing.alpha)

    # ------------------------------------------------ asking

    def _canonical(self) -> Canonical:
        return canonical(self._model(self.n_features_in_), self._params)

    def predict(self, X: Any) -> Array:
        """The most probable cluster of each row."""
        return self._ask(X, answers.labels)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each cluster for each row, (n_samples, n_clusters)."""
        return self._ask(X, answers.probabilities)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of ``predict_proba``, exact where that underflows."""
        return self._ask(X, answers.log_probabilities)

    def transform(self, X: Any) -> Array:
        """Expected latents of the rows, averaged over the clusters: (n_samples, n_components).

        Over all rows their prior has mean zero and covariance I.
        """
        check_is_fitted(self)
        return self._ask(X, partial(_latents, self._canonical()))

    def inverse_transform(self, Z: Any) -> Array:
        """Rows at given latents (n_samples, n_components), without noise."""
        check_is_fitted(self)
        Z = check_array(Z, dtype=[np.float64, np.float32], input_name="Z")
        if Z.shape[1] != self._n_features_out:
            raise ValueError(
                f"Z must have one column per latent, {self._n_features_out}; got {Z.shape[1]} "
                "columns. Give latents as transform returns them."
            )
        return self._canonical().decode(np.asarray(Z, float)).astype(self._dtype)

    def reconstruct(self, X: Any) -> Array:
        """The rows as the model sees them: at their expected latents, without noise."""
        check_is_fitted(self)
        return self._ask(X, partial(_rebuilt, self._canonical()))

    def score_samples(self, X: Any) -> Array:
        """Log density of each row, with the parameters at their estimates."""
        return self._stacked(X, partial(answers.log_density, *self._plug_in()))

    def _plug_in(self) -> tuple[Any, Any]:
        check_is_fitted(self)
        model = self._model(self.n_features_in_)
        return model, model.plug_in(self._params)

    def _totals(self, X: Any, sample_weight: Any = None) -> tuple[float, float, float]:
        """Of the density with the parameters at their estimates."""
        check_is_fitted(self)
        if X is None:
            if self._total is None:
                raise ValueError(
                    "by variational Bayes the log-likelihood of the training data is not kept: "
                    "give X"
                )
            return self._total
        task = partial(answers.block_totals, *self._plug_in())
        total = np.sum(list(self._rows(X, task, weight=sample_weight)), axis=0)
        if total[1] == 0:
            raise ValueError("X has no row of positive weight")
        return float(total[0]), float(total[1]), float(total[2])

    def _n_parameters(self) -> int:
        """Of the clusters in use: the others are not part of the density that was found."""
        model = self._model(self.n_features_in_)
        if model.law.bayes:
            model = replace(model, n_components=max(self.effective_components_, 1))
        return int(model.n_free(self.n_features_in_))

    def icl(self, X: Any = None, sample_weight: Any = None) -> float:
        """Integrated completed likelihood: BIC plus twice the entropy of the assignments."""
        entropy = self._totals(X, sample_weight)[2]
        return self.bic(X, sample_weight) + 2 * entropy

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw new rows, with the parameters at their estimates.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=None
            None goes on with the estimator's own stream: each call gives new draws, and the
            same sequence of calls after the same fit the same ones.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
            The cluster of each row.
        """
        rng = self._generator(n_samples, random_state)
        X, labels = self._model(self.n_features_in_).sample(self._params, n_samples, rng)
        return X.astype(self._dtype), labels

    @property
    def impute(self) -> Any:
        """Not offered: rows are complete."""
        raise AttributeError(
            f"{type(self).__name__} takes complete rows only; use PPCA(...).fit(X).impute(X)"
        )

    # ------------------------------------------------ scikit-learn and files

    @property
    def _n_features_out(self) -> int:
        return int(self._params.axes.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        # clusters are to predict_proba what classes are to a classifier's; scikit-learn's checks
        # of sparse input read it
        tags.classifier_tags = ClassifierTags(multi_class=self.n_clusters > 2)
        return tags

    def _summary(self) -> dict[str, Any]:
        summary = {**super()._summary(), "clusters in use": self.effective_components_}
        if self._total is None:
            del summary["training weight"], summary["log-likelihood per row"]
            summary["objective per row"] = self.lower_bound_
        return summary

    def _check_state(self) -> None:
        params = self._params
        if not isinstance(params, ProjectionParams) or not self._fits(self._model(1)):
            raise ValueError("parameters of another shape than the settings declare")
        self._publish_params()


def _latents(
    found: Canonical, model: ClusteredProjection, reading: ProjectionReading, block: Block
) -> Array:
    return answers.shaped(found.enter(model.latents(reading, block)), block)


def _rebuilt(
    found: Canonical, model: ClusteredProjection, reading: ProjectionReading, block: Block
) -> Array:
    return answers.shaped(found.decode(found.enter(model.latents(reading, block))), block)
