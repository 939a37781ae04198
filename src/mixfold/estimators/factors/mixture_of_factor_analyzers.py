"""Mixture of factor analysers."""

from __future__ import annotations

from mixfold.contracts import Array
from mixfold.estimators.factors.factor_mixture import FactorMixture
from mixfold.families.factor.noise import DiagonalNoise, Noise


class MixtureOfFactorAnalyzers(FactorMixture):
    """Mixture of factor analysers (MFA): clusters with factors of their own.

    The generative model of a row x, with K components of d factors each, is

        k ~ weights,   z ~ N(0, I_d)
        x | z, k ~ N(loadings[k] z + means[k], diag(noise_variance[k]))

    so that each component is a Gaussian with a covariance of rank d plus noise of its own in every
    column: between the diagonal and the full covariances of :class:`GaussianMixture`, and far fewer
    parameters than the full ones when there are many columns. The units of the columns do not
    matter. With one component it is factor analysis; ``tied=('noise',)`` is the mixture of
    Ghahramani and Hinton [1]_, and the other choices give the parsimonious mixtures of [2]_.

    NaN entries are missing (at random) and integrated out; rows may weigh; components of some rows
    may be known; X may be an array, a sparse matrix, a pandas, polars or Arrow table, a ``.npy``,
    Parquet or CSV file (or a folder of them) larger than memory, or a Dask collection. No matrix of
    size n_features x n_features is ever made.

    Parameters
    ----------
    n_components : int, default=1
        Number of components K.
    n_factors : int, sequence of int or None, default=1
        Latent dimension d, for all components or one for each. 0 makes spheres. By 'vb' the largest
        number that a component may learn, fewer than there are columns; None means learned, up to
        n_features - 1 or 64, whichever is less, or 24 where entries are missing.
    inference : {'em', 'vb'}, default='em'
        'em' is maximum likelihood. 'vb' is variational Bayes with priors on everything:
        ``n_components`` and ``n_factors`` are upper bounds, and the number of components, the
        number of factors of each, loadings, means and noise are learned together [3]_ [4]_.
    weights : str or array-like of shape (n_components,), default='auto'
        Prior of the weights: by 'vb' 'dirichlet' (of concentration alpha / n_components each, which
        'auto' means), 'stick-breaking' (a Dirichlet process), 'ml' or fixed shares. By 'em' 'auto'
        or 'ml', which are free weights.
    alpha : float or 'learn', default=1.0
        Concentration of the weights ('vb'): the larger, the more components are used.
    prior : dict, default=None
        Settings of the prior of the components ('vb'), each with a default: ``mean`` of the means,
        one number for each column (the mean of all rows); ``noise_variance``, what is expected of
        the noise (a thousandth of the variance of all rows), and ``noise_shape``, half of the rows
        that this is worth (0.5); ``relevance_shape`` and ``relevance_rate`` of the gamma prior of
        the precision of each factor, and of the mean, in units of the noise (0.1 and 0.1: next to
        nothing is said of it).
    merge_split : bool, default=True
        Try to merge components that share rows and to split others; keep what raises the bound.
        Only 'vb' does this.
    tied : tuple of str, default=()
        What the components share: 'loadings', 'noise', or both. By 'vb' 'noise' or nothing.
    scale : {'latent', 'scores', 'white'}, default='latent'
        What ``transform`` gives. 'latent': posterior means of the latents, shrunk by the noise.
        'scores': weighted least squares in each component, without shrinkage (Bartlett's scores).
        'white': scores of unit variance within each component.
    whiten : bool or None, default=None
        As of scikit-learn's PCA: True means scale='white', False scale='scores'. None: ``scale``.
    tol : float, default=1e-6
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is that of the log-likelihood per row (per unit of
        weight).
    noise_floor : float, default=1e-6
        Smallest noise variance, relative to the variance of the data. The latter is taken of each
        column.
    max_iter : int, default=500
        Largest number of iterations. Each start has this limit.
    n_init : int, default=1
        Starts that are followed to the end; the best is kept.
    merge_starts : bool, default=False
        With ``n_init`` above 1: make one more fit of the components of all starts, of which as many
        are kept as the mixture has, and keep it if it is better than the best of them.
    init_params : {'kmeans', 'subspaces', 'k-means++', 'random_from_data'}, default='kmeans'
        How rows are first shared among the components. 'kmeans' clusters a sample of them on the
        columns and on principal axes, 'subspaces' goes by distance to planes through random rows
        (for components that cross each other), the others by distance to rows. 'kmeans' and
        'subspaces' compare a few starts.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    warm_start : bool, default=False
        Start the next fit from the last one.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    acceleration : {'auto', 'quasi-newton', 'squarem'} or None, default='auto'
        Extrapolation between steps, kept only where the objective rises; None makes plain steps.
        'quasi-newton' is for 'em' only.
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
    weights_ : ndarray of shape (n_components,)
    means_ : ndarray of shape (n_components, n_features)
    loadings_ : ndarray of shape (n_components, n_features, n_factors)
        Orthogonal columns in units of the noise, longest first, the largest entry of each positive.
    noise_variance_ : ndarray of shape (n_components, n_features)
    n_factors_ : ndarray of shape (n_components,)
        Factors of each component, which by 'vb' are learned. ``loadings_`` are as wide as the
        largest number; those that a component lacks are zero.
    latent_covariances_ : ndarray of shape (n_components, n_factors, n_factors)
        Of the latents given a complete row.
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`GaussianMixture`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Columns that are constant, or exact affine functions of others, are set aside by ``fit`` as in
    :class:`GaussianMixture`: score, BIC and the number of parameters are those of the table without
    them, and what is published has all columns. That the noise of a copy is the
    noise of its original cannot be seen in ``noise_variance_``. By 'vb' all columns
    are kept.

    By 'vb' there are also ``counts_`` (rows of each component), ``active_`` (more than half a row),
    ``effective_components_``, ``alpha_`` and ``evidence_bound_``, of which ``lower_bound_`` is the
    part of a row; components are in decreasing order of their rows. A component has a factor only
    if the bound is higher with it. Densities, latents, draws and criteria are those of the mixture
    at the expected weights, loadings, means and noise. ``partial_fit`` learns both numbers from the
    first batch, which should be a large one; later batches can only leave out factors and
    components.

    References
    ----------
    .. [1] Ghahramani, Hinton. The EM algorithm for mixtures of factor analyzers. University of
       Toronto, CRG-TR-96-1, 1997.
    .. [2] McNicholas, Murphy. Parsimonious Gaussian mixture models. Statistics and Computing 18,
       2008.
    .. [3] Ghahramani, Beal. Variational inference for Bayesian mixtures of factor analysers. NIPS
       12, 2000.
    .. [4] Luttinen, Ilin. Transformations in variational Bayesian factor analysis to speed up
       learning. Neurocomputing 73, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import MixtureOfFactorAnalyzers
    >>> rng = np.random.default_rng(0)
    >>> t = rng.normal(size=(400, 1))
    >>> X = np.where(np.arange(400)[:, None] < 200, t * [2, 2, 0], t * [0, 2, -2] + 6)
    >>> X = X + rng.normal(size=X.shape) * [0.1, 0.3, 0.5]
    >>> mixture = MixtureOfFactorAnalyzers(2, 1, tied=("noise",), random_state=0).fit(X)
    >>> np.sqrt(mixture.noise_variance_[0]).round(1)
    array([0.1, 0.3, 0.5])
    >>> mixture.weights_.round(2)
    array([0.5, 0.5])
    >>> from mixfold.plots import plot_ellipses
    >>> ax = plot_ellipses(mixture, X, columns=(0, 2))

    How many components, and how many factors has each? Groups of rows with one and with two:

    >>> loadings = rng.normal(size=(3, 8))
    >>> X = rng.normal(size=(300, 3))
    >>> X = X * np.repeat([[1, 0, 0], [0, 1, 1]], 150, axis=0) @ loadings
    >>> X += 0.2 * rng.normal(size=X.shape)
    >>> learned = MixtureOfFactorAnalyzers(4, None, inference="vb", random_state=0).fit(X)
    >>> learned.effective_components_, sorted(learned.n_factors_[learned.active_].tolist())
    (2, [1, 2])
    """

    def _noise(self, tied: bool) -> Noise:
        return DiagonalNoise(tied)

    def _shape_noise(self, noise: Array) -> Array:
        return noise
