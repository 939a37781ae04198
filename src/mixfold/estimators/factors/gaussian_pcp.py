"""GaussianPCP: clusters and one projection learned together."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_array, check_is_fitted

from mixfold.contracts import Array, Block, Source
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.schedules import Stepwise
from mixfold.engine.sources import open_source
from mixfold.estimators.mixtures.combining import Combining
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell import predictions
from mixfold.estimators.shell.density import DensityEstimator
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.effective_rows import warn_about_evidence
from mixfold.estimators.shell.fitting import (
    FIRST_BATCH_STEPS,
    Survey,
    WarmStart,
    check_enough_rows,
    check_room,
    learn_one_batch,
    publish_convergence,
    reorder_components,
    reorder_events,
    run_fit,
    survey_rows,
    warn_about_empty_rows,
    warn_about_fit,
)
from mixfold.estimators.shell.input_rows import check_component_labels
from mixfold.families.factor import FactorFamily, IsotropicNoise
from mixfold.families.projection import (
    PLANE_UPDATES,
    BayesProjectedGaussian,
    Plane,
    ProjectedGaussian,
)
from mixfold.math.frame import bulk_of
from mixfold.mixing.dirichlet import SymmetricDirichlet
from mixfold.models.mixtures.bayes_mixture import BayesMixture, BayesParams
from mixfold.models.mixtures.merge_split import IN_USE
from mixfold.models.mixtures.mixture import Mixture, MixtureParams, MixtureReading
from mixfold.models.mixtures.outliers import bulk_of_rows, without_far_rows
from mixfold.models.mixtures.rows import informative
from mixfold.models.mixtures.starts import STARTS
from mixfold.models.projection.earlier_files import as_mixture
from mixfold.models.projection.mixtures import (
    ProjectedBayesMixture,
    ProjectedMixture,
    expected_latents,
)
from mixfold.models.projection.start import (
    FewerClusters,
    cluster_prior,
    find_plane,
    plane_of_factors,
    start_sizes,
)
from mixfold.models.projection.use import Canonical, canonical

# how far the plane of a start is fitted where entries are missing
_PLANE_TOL, _PLANE_STEPS = 1e-3, 50


class GaussianPCP(Combining, ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityEstimator):
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
    larger than memory or a Dask collection. Missing entries (NaN) are integrated out: by EM the
    likelihood is that of the observed entries exactly, by variational Bayes the bound is of their
    evidence, of the same kind as for complete rows. ``impute`` fills them, ``partial_fit`` learns
    from a stream. The result depends on the units of the columns: scale them if they are not
    comparable.

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
        are then brought back to scale ('em' only). A stream uses 'procrustes'.
    tol : float, default=1e-5
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is that of the objective per row (per unit of
        weight).
    noise_floor : float, default=1e-6
        Smallest noise variance, relative to the variance of the data. The latter is the mean over
        the columns.
    max_iter : int, default=1000
        Largest number of iterations. Each start has this limit.
    n_init : int, default=1
        Starts that are followed to the end; the best is kept.
    init_params : str, default='kmeans'
        How rows are first shared among the components. Here the scores on the principal axes are
        shared among clusters. 'kmeans' compares many starts, by variational Bayes also with fewer
        clusters.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    warm_start : bool, default=False
        Start the next fit from the last one.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    acceleration : {'auto', 'squarem'} or None, default='auto'
        Extrapolation between steps, kept only where the objective rises; None makes plain steps.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited: by threads of this process or by the workers of a Dask cluster.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned.
    checkpoint : path, default=None
        File to which a long fit writes its state now and then; the same call made again after an
        interruption goes on from it and ends in the same result.

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

    The number that is learned is that of Gaussians: a group that is none on the plane is made of
    several, which :meth:`combine` joins. On ten kinds of digits 20 clusters have a higher bound
    than 10, and describe new digits better.

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
    >>> from mixfold.plots import plot_latents
    >>> ax = plot_latents(pcp, X)
    """

    _constraints: ClassVar[rule.Constraints] = {
        "n_clusters": (rule.integer(1),),
        "n_components": (rule.integer(1),),
        "inference": (rule.one_of(["vb", "em"]),),
        "alpha": (rule.number(0, open_end=True),),
        "mean_precision_prior": (rule.number(0, open_end=True),),
        "degrees_of_freedom_prior": (rule.nothing(), rule.number(0, open_end=True)),
        "covariance_prior": (rule.nothing(), rule.number(0, open_end=True)),
        "update": (rule.one_of(PLANE_UPDATES),),
        "init_params": (rule.one_of(STARTS),),
        "acceleration": (rule.nothing(), rule.one_of(["auto", "squarem"])),
    }  # fmt: skip
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_total", "converged_", "stop_reason_", "n_iter_", "n_passes_", "lower_bound_",
        "lower_bounds_", "evidence_bound_", "events_", "_dtype", "_stream",
        "_schedule", "_weight",
    )  # fmt: skip

    # of the rows that were fitted, or that a stream has shown
    _weight: float

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
            Rows are samples, columns features; NaN or null marks a missing entry.
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
        labels = check_component_labels(component_labels, self.n_clusters)
        source = self._open(X, reset=True, weight=sample_weight, y=labels, min_rows=2)
        result = self._fit_rows(source)
        if labels is None and not self.warm_start:  # the order of a start is an accident
            result = _ordered(self._model(source.n_features), result)
            self._params, self.events_ = result.params, list(result.events)
            self._publish_params()
        warn_about_fit(result, self.max_iter)
        return self

    def fit_predict(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Array:
        """Fit, then assign each row to its most probable cluster."""
        return self.fit(X, y, sample_weight, component_labels).predict(X)

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Self:
        """Learn from one more batch (stepwise EM or VB); the first one makes the start.

        Parameters are as in ``fit``. Batches may have any size after the first; make that a
        typical one. The running averages forget the first batches, whose latents were seen from
        poorer axes; by variational Bayes they count for the weight of all rows so far.
        """
        self._check_parameters()
        first = not hasattr(self, "_schedule")
        labels = check_component_labels(component_labels, self.n_clusters)
        source = self._open(
            X, reset=first, weight=sample_weight, y=labels, min_rows=2 if first else 1
        )
        if first:
            self._fit_rows(source, first_batch=True)
        else:
            names = "n_clusters, n_components or inference"
            self._check_same_stream(self._model(self.n_features_in_), names)
        # statistics of batches are blended in latent coordinates that stay
        model = self._model(self.n_features_in_, has_missing=True, fixed_latents=True)
        schedule = Stepwise() if first else replace(self._schedule, weight=self._weight)
        learned = learn_one_batch(self, model, source, schedule, total_weight=None)
        if learned is not None:
            self._weight = learned.schedule.weight
            self.__dict__.pop("evidence_bound_", None)
            self._publish_batch(learned)
        return self

    def _fit_rows(self, source: Source, first_batch: bool = False) -> Fit:
        """Look at the rows, make the model with a plane to start from, run it, publish."""
        survey = survey_rows(self, source, self.n_clusters)
        self._check_sizes(survey.pilot.total_rows)
        if self._bayes and not first_batch:
            warn_about_evidence("inference='vb'", survey.pilot)
        plane = self._find_plane(survey)
        model = self._model(source.n_features, plane, survey.has_missing)
        several = self.init_params == "kmeans" and self.n_clusters > 1
        plan = Plan(
            tol=self.tol,
            max_iter=min(self.max_iter, FIRST_BATCH_STEPS) if first_batch else self.max_iter,
            n_init=self.n_init if self.n_clusters > 1 else 1,
            n_candidates=len(start_sizes(int(self.n_clusters), self._bayes)) if several else 1,
            acceleration=None if self.acceleration is None else ACCELERATIONS["squarem"],
            time_budget=self.time_budget,
            seed=survey.seed,
        )
        result = run_fit(self, model, survey, plan, self._warm_start(model, survey))

        self._weight = float(result.weight)
        self._store_density_fit(result, survey)
        self._publish_params()
        publish_convergence(self, result)
        warn_about_empty_rows(result)
        self.__dict__.pop("evidence_bound_", None)
        if self._bayes:
            self._total = None  # the objective is not the log-likelihood
            self.evidence_bound_ = float(result.objective)
        return result

    def _find_plane(self, survey: Survey) -> Plane:
        """The principal axes, where the fit starts, and the variance to which its prior and its
        floor are relative. A few rows far away have an axis, but the variance is that of the
        others, in a sample."""
        pilot, rng = survey.pilot, np.random.default_rng(survey.seed % 2**63)
        size, bulk = int(self.n_components), bulk_of_rows(bulk_of, pilot)
        if survey.has_missing:
            plane = self._find_plane_of_sample(pilot.block, survey.seed)
        else:
            plane = find_plane(survey.source, survey.executor, size, self._floor, rng)
        if bulk is None:
            return plane
        near = without_far_rows(pilot.block, bulk)
        return replace(self._find_plane_of_sample(near, survey.seed), axes=plane.axes)

    def _find_plane_of_sample(self, block: Block, seed: int) -> Plane:
        """The plane of probabilistic PCA, by EM on a sample whose rows may lack entries."""
        sample = informative(block)
        source = open_source(sample.X, weight=sample.weight)
        ppca = FactorFamily(
            floor=self._floor,
            factors=(int(self.n_components),),
            noise=IsotropicNoise(),
            has_missing=True,
        )
        plan = Plan(
            tol=_PLANE_TOL, max_iter=_PLANE_STEPS, acceleration=ACCELERATIONS["quasi-newton"],
            seed=seed,
        )  # fmt: skip
        found = fit(Mixture(1, ppca), source, self._executor(source), plan)
        return plane_of_factors(found.params.components, self._floor)

    def _check_sizes(self, n_rows: int) -> None:
        """Refuse fewer rows than clusters or latents need."""
        if not self._bayes:  # with priors there may be more clusters than rows
            check_enough_rows(n_rows, self.n_clusters, "n_clusters")
        check_room(n_rows, self.n_clusters, "n_clusters")
        if self.n_components > min(n_rows, self.n_features_in_):
            raise ValueError(
                f"n_components={self.n_components} must be at most min(n_samples, n_features), "
                f"with n_samples = {n_rows} rows of positive weight and n_features = "
                f"{self.n_features_in_}; lower n_components"
            )

    # ------------------------------------------------ the model and how it is run

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._model(0)  # it refuses settings that do not go together

    @property
    def _bayes(self) -> bool:
        """Whether the clusters have priors."""
        return self.inference == "vb"

    @property
    def _floor(self) -> float:
        return max(float(self.noise_floor), 1e-12)

    def _model(
        self, n_features: int, plane: Plane | None = None, has_missing: bool = False,
        fixed_latents: bool = False,
    ) -> Mixture:  # fmt: skip
        """The mixture for the settings at hand; a fit starts from ``plane``."""
        K = int(self.n_clusters)
        kind = BayesProjectedGaussian if self._bayes else ProjectedGaussian
        family = kind(
            self._floor, int(self.n_components), PLANE_UPDATES[self.update], has_missing,
            fixed_latents, plane,
        )  # fmt: skip
        start = FewerClusters(STARTS[self.init_params], start_sizes(K, self._bayes))
        if not self._bayes:
            return ProjectedMixture(K, family, start=start)
        prior = None
        if plane is not None:
            prior = cluster_prior(
                plane, K, self.mean_precision_prior, self.degrees_of_freedom_prior,
                self.covariance_prior,
            )  # fmt: skip
        weights = SymmetricDirichlet(float(self.alpha))
        return ProjectedBayesMixture(K, family, weights, start, prior=prior)

    def _fits(self, model: Mixture) -> bool:
        """Whether ``warm_start`` (or a file) brings parameters of the shape of these settings."""
        params = self._params
        if not isinstance(params, BayesParams if self._bayes else MixtureParams):
            return False
        shape = (self.n_features_in_, int(self.n_components))
        return params.components.axes.shape == shape and params.n_components == self.n_clusters

    def _warm_start(self, model: Mixture, survey: Survey) -> WarmStart:
        warm = super()._warm_start(model, survey)
        return (
            warm
            if warm.params is None
            else replace(warm, params=model.with_current_priors(warm.params))
        )

    # ------------------------------------------------ results

    def _publish_params(self) -> None:
        found, params = self._canonical(), self._params
        self.__dict__.pop("alpha_", None)
        if self._bayes:
            self.counts_ = params.counts
            self.alpha_ = float(params.mixing.alpha)
        else:
            self.counts_ = params.weights * self._weight
        self.active_ = self.counts_ > IN_USE
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
            setattr(self, name, in_dtype(value, self._dtype))
        self.noise_variance_ = float(found.noise)
        variance = (found.loadings**2).sum(axis=0) + found.noise
        total = variance.sum() + found.noise * (len(found.mean) - len(variance))
        self.explained_variance_ratio_ = in_dtype(variance / total, self._dtype)

    # ------------------------------------------------ asking

    def _plug_in(self) -> tuple[Mixture, MixtureParams]:
        """The mixture with weights, means and covariances at their estimates."""
        params = self._params
        family = self._model(self.n_features_in_).family
        components = params.components
        if isinstance(family, BayesProjectedGaussian):
            components = family.point(components)
        return Mixture(params.n_components, family), MixtureParams(params.weights, components)

    def _canonical(self) -> Canonical:
        return canonical(self._plug_in()[1])

    def _density(self) -> tuple[Mixture, MixtureReading]:
        """What ``score_samples`` reads."""
        check_is_fitted(self)
        model, params = self._plug_in()
        return model, model.prepare(params)

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
        return in_dtype(self._canonical().decode(np.asarray(Z, float)), self._dtype)

    def reconstruct(self, X: Any) -> Array:
        """The rows as the model sees them: at their expected latents, without noise."""
        check_is_fitted(self)
        return self._ask(X, partial(_rebuilt, self._canonical()))

    def score_samples(self, X: Any) -> Array:
        """Log density of the observed entries of each row, with the parameters at their
        estimates."""
        return self._concatenate_rows(X, partial(predictions.log_density, *self._density()))

    def _totals(self, X: Any, sample_weight: Any = None) -> tuple[float, float, float]:
        """Of the density with the parameters at their estimates."""
        check_is_fitted(self)
        if X is None:
            if self._total is None:
                raise ValueError(
                    "by variational Bayes, and of a stream, the log-likelihood of the training "
                    "data is not kept: give X"
                )
            return self._total
        task = partial(predictions.block_totals, *self._density())
        total = np.sum(list(self._rows(X, task, weight=sample_weight)), axis=0)
        if total[1] == 0:
            raise ValueError("X has no row of positive weight with an observed entry")
        return float(total[0]), float(total[1]), float(total[2])

    def _n_parameters(self) -> int:
        """Of the clusters in use: the others are not part of the density that was found."""
        used = max(self.effective_components_, 1) if self._bayes else int(self.n_clusters)
        family = self._model(self.n_features_in_).family
        return Mixture(used, family).n_free(self.n_features_in_)

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
        model, params = self._plug_in()
        X, labels = model.sample(params, n_samples, rng)
        return in_dtype(X, self._dtype), labels

    # ------------------------------------------------ scikit-learn and files

    @property
    def _n_features_out(self) -> int:
        return int(self._params.components.n_latents)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
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
        if not hasattr(self, "_weight"):  # a file of an earlier version
            self._weight = float(self._params.clusters.counts.sum())
        self._params = as_mixture(self._params)
        if not self._fits(self._model(self.n_features_in_)):
            raise ValueError("parameters of another shape than the settings declare")
        self._publish_params()


def _ordered(model: Mixture, result: Fit) -> Fit:
    """The same mixture with its clusters in decreasing order of their rows."""
    params = result.params
    if isinstance(model, BayesMixture):
        return reorder_components(model, result, np.argsort(-params.counts, kind="stable"))
    which = np.argsort(-params.weights, kind="stable")
    components = model.family.select(params.components, which)
    return replace(
        result,
        params=MixtureParams(params.weights[which], components),
        events=reorder_events(result.events, which),
    )


def _latents(found: Canonical, model: Mixture, reading: MixtureReading, block: Block) -> Array:
    return predictions.match_dtype(found.enter(expected_latents(model, reading, block)), block)


def _rebuilt(found: Canonical, model: Mixture, reading: MixtureReading, block: Block) -> Array:
    Z = found.enter(expected_latents(model, reading, block))
    return predictions.match_dtype(found.decode(Z), block)
