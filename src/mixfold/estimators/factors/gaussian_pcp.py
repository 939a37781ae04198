"""GaussianPCP: clusters and one projection learned together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Executor, Pilot, Source
from mixfold.engine.acceleration import ACCELERATIONS, Acceleration
from mixfold.engine.loop import Plan
from mixfold.estimators.factors.clustered_latents import ClusteredLatents
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.fitting import FITTING_RULES
from mixfold.mixing.dirichlet import SymmetricDirichlet
from mixfold.models.mixtures.starts import STARTS
from mixfold.models.projection.clustered_projection import ClusteredProjection
from mixfold.models.projection.projection_axes import UPDATES
from mixfold.models.projection.projection_laws import LatentLaw, MaximumLikelihood, VariationalBayes
from mixfold.models.projection.projection_start import find_plane


class GaussianPCP(ClusteredLatents):
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

    def _law(self) -> LatentLaw:
        return self._LAWS[self.inference](self)

    def _variational(self) -> VariationalBayes:
        return VariationalBayes(
            SymmetricDirichlet(float(self.alpha)),
            float(self.mean_precision_prior),
            self.degrees_of_freedom_prior,
            self.covariance_prior,
        )

    _LAWS: ClassVar[dict[str, Any]] = {
        "vb": _variational,
        "em": lambda estimator: MaximumLikelihood(),
    }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._model(0)  # it refuses settings that do not go together

    def _model(self, n_features: int) -> Any:
        return ClusteredProjection(
            int(self.n_clusters),
            int(self.n_components),
            self._law(),
            UPDATES[self.update],
            max(float(self.noise_floor), 1e-12),
            STARTS[self.init_params],
        )

    def _informed(
        self, model: Any, source: Source, executor: Executor, pilot: Pilot, seed: int
    ) -> ClusteredProjection:
        """The model with the principal axes of all rows."""
        rng = np.random.default_rng(seed % 2**63)
        plane = find_plane(source, executor, model.size, model.floor, rng)
        return replace(model, plane=plane)

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
