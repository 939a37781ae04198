"""GaussianPCP: clusters and one projection learned together."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_array, check_is_fitted

from mixfold.contracts import Array, Block, Pilot
from mixfold.engine.acceleration import ACCELERATIONS, Acceleration
from mixfold.engine.loop import Plan
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell import predictions
from mixfold.estimators.shell.component_labels import check_labels
from mixfold.estimators.shell.density import DensityEstimator
from mixfold.estimators.shell.fitting import FITTING_RULES
from mixfold.mixing.dirichlet import SymmetricDirichlet
from mixfold.models.mixtures.merge_split import IN_USE
from mixfold.models.mixtures.starts import STARTS
from mixfold.models.projection.clustered_projection import ClusteredProjection
from mixfold.models.projection.projection_axes import UPDATES
from mixfold.models.projection.projection_laws import LatentLaw, MaximumLikelihood, VariationalBayes
from mixfold.models.projection.projection_reading import ProjectionReading
from mixfold.models.projection.projection_records import ProjectionParams
from mixfold.models.projection.projection_start import find_plane
from mixfold.models.projection.projection_use import Canonical, canonical


class GaussianPCP(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityEstimator):
    """Clusters and one projection learned together (probabilistic clustering-projection).

    A Gaussian mixture in the latent space of probabilistic PCA. The generative model of a row x,
    with K clusters and d latents, is

        c ~ weights,    z | c = k ~ N(m_k, S_k),    x | z ~ N(W z + mu, noise_variance I)

    PCA followed by a mixture fixes the axes before it looks for groups. Here both are fitted to one
    likelihood, and noise within the axes is told from the spread of the clusters. With one cluster
    it is :class:`PPCA`. Unlike :class:`MixtureOfPPCA` all clusters live on one plane, so that rows
    have one set of latents.

    By variational Bayes (the default) weights are Dirichlet(alpha / K) and each cluster has a
    normal-Wishart prior, so that the number of clusters is learned: ``n_clusters`` is the most
    there can be, and clusters that are not needed lose their rows.

    Rows may weigh, and X may be an array, a sparse matrix (never made dense), a table, a file
    larger than memory or a Dask collection. Missing entries are not allowed. The result depends on
    the units of the columns: scale them if they are not comparable.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters K; the largest number by variational Bayes.
    n_components : int, default=2
        Latent dimension d, as in :class:`PPCA`.
    inference : {'vb', 'em'}, default='vb'
        Variational Bayes with priors on the clusters, or maximum likelihood by EM.
    alpha : float, default=1.0
        Concentration of the weights ('vb'): each has alpha / K. Small values keep fewer clusters.
    mean_precision_prior : float, default=1e-1
        How many rows the prior of the mean of a cluster is worth ('vb').
    degrees_of_freedom_prior : float, default=None
        Of the Wishart prior of a cluster ('vb'), more than n_components - 1; None is
        n_components + 2.
    covariance_prior : float, default=None
        The Wishart prior has W^-1 = covariance_prior I, a variance in units of the data along an
        axis ('vb'). None takes the variance of the latents times K^(-2 / d).
    update : {'procrustes', 'regress'}, default='procrustes'
        How EM finds the axes: the best orthonormal ones, or by regression on the latents, which
        are then brought back to scale ('em' only).
    tol : float, default=1e-5
        The fit ends when the gain of all steps to come is projected to be less, in the objective
        per row (per unit of weight).
    noise_floor : float, default=1e-6
        Smallest noise variance, relative to the mean variance of the columns.
    max_iter : int, default=1000
        Iterations per start.
    n_init : int, default=1
        Starts that are followed to the end; the best is kept.
    init_params : {'kmeans', 'k-means++', 'random', 'random_from_data'}, default='kmeans'
        How the scores on the principal axes are first shared among clusters. 'kmeans' compares
        many starts, by variational Bayes also with fewer clusters.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    warm_start : bool, default=False
        Start the next fit from the last one.
    verbose : int, default=0
        1 reports progress, 2 every iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    acceleration : {'auto', 'squarem'} or None, default='auto'
        How the iteration is sped up; None is the plain one. The objective never falls.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned.
    checkpoint : path, default=None
        File in which the fit is kept and from which it goes on if interrupted.

    Attributes
    ----------
    weights_ : ndarray of shape (n_clusters,)
        In decreasing order, unless clusters of rows were known or ``warm_start`` is set. By
        variational Bayes the expected ones.
    active_ : ndarray of bool of shape (n_clusters,)
        Which clusters have rows.
    effective_components_ : int
        How many have.
    counts_ : ndarray of shape (n_clusters,)
        Rows (their weight) of each cluster.
    means_ : ndarray of shape (n_clusters, n_features)
        Centres of the clusters as rows.
    latent_means_ : ndarray of shape (n_clusters, n_components)
        Centres of the clusters in the coordinates of ``transform``.
    covariances_ : ndarray of shape (n_clusters, n_components, n_components)
        Covariances of the latents within clusters, in the same coordinates.
    mean_ : ndarray of shape (n_features,)
    components_ : ndarray of shape (n_components, n_features)
        Axes: orthonormal rows, the largest entry of each positive.
    loadings_ : ndarray of shape (n_features, n_components)
        The axes times the standard deviation of the latents along them, in decreasing order.
    noise_variance_ : float
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of each axis in the variance of all columns.
    evidence_bound_ : float
        The bound of the log evidence of the data ('vb').
    alpha_ : float
        Concentration of the weights ('vb').
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`GaussianMixture`; ``lower_bound_`` is per row.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Noise is the same in every direction, and no cluster is narrower than it. A direction in which
    rows vary much must be among the ``n_components``, also if groups do not differ along it:
    otherwise it counts as noise, in which the groups blur.

    Latents are published with mean zero and covariance I over all clusters: any other coordinates
    would say the same. By variational Bayes ``score_samples``, ``sample`` and ``bic`` are of the
    density with weights, means and covariances at their estimates.

    References
    ----------
    .. [1] Yu. Advanced probabilistic models for clustering and projection. Thesis, LMU Munich,
       2006, section 8.1.

    Examples
    --------
    Three groups on a plane, hidden in ten columns; their number is not told:

    >>> import numpy as np
    >>> from mixfold import GaussianPCP
    >>> rng = np.random.default_rng(0)
    >>> groups = np.array([[0.0, 6.0], [5.0, -3.0], [-5.0, -3.0]])[np.arange(300) % 3]
    >>> plane = np.linalg.qr(rng.normal(size=(10, 2)))[0]
    >>> Z = groups + rng.normal(size=(300, 2))
    >>> X = Z @ plane.T + 0.5 * rng.normal(size=(300, 10))
    >>> pcp = GaussianPCP(n_clusters=6, n_components=2, random_state=0).fit(X)
    >>> pcp.effective_components_, round(float(np.sqrt(pcp.noise_variance_)), 1)
    (3, 0.5)
    >>> pcp.transform(X).shape, pcp.predict_proba(X[:5]).shape
    ((300, 2), (5, 6))
    """

    _constraints: ClassVar[rule.Constraints] = {
        **FITTING_RULES,
        "n_clusters": (rule.integer(1),),
        "n_components": (rule.integer(1),),
        "inference": (rule.one_of(["vb", "em"]),),
        "alpha": (rule.number(0, open_end=True),),
        "mean_precision_prior": (rule.number(0, open_end=True),),
        "degrees_of_freedom_prior": (rule.nothing(), rule.number(0, open_end=True)),
        "covariance_prior": (rule.nothing(), rule.number(0, open_end=True)),
        "update": (rule.one_of(UPDATES),),
        "noise_floor": (rule.number(0),),
        "n_init": (rule.integer(1),),
        "init_params": (rule.one_of(STARTS),),
        "acceleration": (rule.nothing(), rule.one_of(["auto", "squarem"])),
    }
    _size_name: ClassVar[str] = "n_clusters"
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_total", "converged_", "stop_reason_", "n_iter_", "n_passes_", "lower_bound_",
        "lower_bounds_", "evidence_bound_", "events_", "_dtype", "_stream",
    )  # fmt: skip

    def __init__(
        self,
        n_clusters: int = 8,
        n_components: int = 2,
        *,
        inference: str = "vb",
        alpha: float = 1.0,
        mean_precision_prior: float = 0.1,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: float | None = None,
        update: str = "procrustes",
        tol: float = 1e-5,
        noise_floor: float = 1e-6,
        max_iter: int = 1000,
        n_init: int = 1,
        init_params: str = "kmeans",
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        acceleration: str | None = "auto",
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.inference = inference
        self.alpha = alpha
        self.mean_precision_prior = mean_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.update = update
        self.tol = tol
        self.noise_floor = noise_floor
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.acceleration = acceleration
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget
        self.checkpoint = checkpoint

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
        source = self._open(X, reset=True, weight=sample_weight, y=labels, min_rows=2)
        executor, seed, pilot = self._survey(source)
        model = self._model(source.n_features)
        # starts share the principal axes of all rows
        rng = np.random.default_rng(seed % 2**63)
        plane = find_plane(source, executor, model.size, model.floor, rng)
        started = replace(model, plane=plane)
        result = self._climbed(started, source, executor, pilot, self._plan(seed))
        if labels is None and not self.warm_start:  # the order of a start is an accident
            order = np.argsort(-result.params.clusters.counts, kind="stable")
            result = replace(result, params=model.ordered(result.params, order))
        self._keep(result, source, seed, quiet=False)
        self.__dict__.pop("evidence_bound_", None)
        if model.law.bayes:
            self._total = None  # the objective is not the log-likelihood
            self.evidence_bound_ = float(result.objective)
        return self

    def fit_predict(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Array:
        """Fit, then assign each row to its most probable cluster."""
        return self.fit(X, y, sample_weight, component_labels).predict(X)

    def _look(self, pilot: Pilot) -> None:
        """Refuse missing entries; called by ``_survey``."""
        lacking = np.flatnonzero(pilot.observed < pilot.total_rows)
        if lacking.size:
            names = getattr(self, "feature_names_in_", None)
            which = repr(names[lacking[0]]) if names is not None else str(lacking[0])
            raise ValueError(
                f"X holds NaN, in column {which} first: {type(self).__name__} needs complete rows. "
                "Fill them first, with PPCA(...).fit(X).impute(X) say, or leave them out"
            )

    def _check_rows(self, n_rows: int) -> None:
        """Refuse fewer rows than clusters or latents need; called by ``_survey``."""
        model = self._model(self.n_features_in_)
        if not model.law.bayes:  # with priors there may be more clusters than rows
            super()._check_rows(n_rows)
        if model.size > min(n_rows, self.n_features_in_):
            raise ValueError(
                f"n_components={model.size} must be at most min(n_samples, n_features), with "
                f"n_samples = {n_rows} rows of positive weight and n_features = "
                f"{self.n_features_in_}; lower n_components"
            )

    # ------------------------------------------------ the model and how it is run

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._model(0)  # it refuses settings that do not go together

    def _model(self, n_features: int) -> Any:
        """The ClusteredProjection that the engine fits, for the settings at hand."""
        return ClusteredProjection(
            int(self.n_clusters),
            int(self.n_components),
            self._law(),
            UPDATES[self.update],
            max(float(self.noise_floor), 1e-12),
            STARTS[self.init_params],
        )

    def _law(self) -> LatentLaw:
        """How the clusters are learned from the latents: with priors, or without."""
        if self.inference == "em":
            return MaximumLikelihood()
        return VariationalBayes(
            SymmetricDirichlet(float(self.alpha)),
            float(self.mean_precision_prior),
            self.degrees_of_freedom_prior,
            self.covariance_prior,
        )

    def _acceleration(self) -> Acceleration | None:
        return None if self.acceleration is None else ACCELERATIONS["squarem"]

    def _plan(self, seed: int, max_iter: int | None = None) -> Plan:
        model = self._model(self.n_features_in_)
        several = self.init_params == "kmeans" and self.n_clusters > 1
        return Plan(
            tol=self.tol,
            max_iter=self.max_iter if max_iter is None else max_iter,
            n_init=self.n_init if self.n_clusters > 1 else 1,
            n_candidates=model.n_starts if several else 1,
            acceleration=self._acceleration(),
            time_budget=self.time_budget,
            seed=seed,
        )

    def _fits(self, model: Any) -> bool:
        """Whether ``warm_start`` (or a file) brings parameters of the shape of these settings."""
        params = self._params
        same = model.law.bayes == (params.clusters.prior is not None)
        shape = (self.n_features_in_, model.size)
        return same and params.axes.shape == shape and params.n_components == model.n_components

    # ------------------------------------------------ results

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
        return self._ask(X, predictions.labels)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each cluster for each row, (n_samples, n_clusters)."""
        return self._ask(X, predictions.probabilities)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of ``predict_proba``, exact where that underflows."""
        return self._ask(X, predictions.log_probabilities)

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
        return self._stacked(X, partial(predictions.log_density, *self._plug_in()))

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
        task = partial(predictions.block_totals, *self._plug_in())
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
    return predictions.shaped(found.enter(model.latents(reading, block)), block)


def _rebuilt(
    found: Canonical, model: ClusteredProjection, reading: ProjectionReading, block: Block
) -> Array:
    return predictions.shaped(found.decode(found.enter(model.latents(reading, block))), block)
