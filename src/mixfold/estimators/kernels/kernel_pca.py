"""Kernel principal component analysis with a likelihood, for many rows and for streams."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from mixfold.contracts import Array, Block, Source
from mixfold.engine.loop import pilot_size
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.random import seed_from
from mixfold.estimators.kernels.kernel_fits import (
    FittedAxes,
    FittedProjector,
    Settings,
    fit_by_kernel_matrix,
    fit_in_coordinates,
    fit_to_share,
    refuse_contradictions,
    uses_kernel_matrix,
)
from mixfold.estimators.kernels.kernel_holes import filled_rows, refuse_holes, rows_with_holes
from mixfold.estimators.kernels.kernel_streams import Earlier, is_weightless, learn_batch
from mixfold.estimators.kernels.kernel_width import (
    LEARN,
    asks_to_learn,
    is_to_learn,
    learn_settings,
    refuse_to_learn,
)
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import DegenerateWarning, MixfoldEstimator, warn
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.kernel_features import (
    KERNEL_RULES,
    KernelChoice,
    explain_missing_entries,
    landmarks_are_rows,
    refuse_to_save_function,
)
from mixfold.estimators.shell.parameters import rules_of
from mixfold.estimators.shell.predictions import match_dtype
from mixfold.estimators.shell.score_scale import score_scale
from mixfold.estimators.shell.units import warn_about_units
from mixfold.models.kernels.axes import eigenvectors
from mixfold.models.kernels.preimage import PreImages, pre_images
from mixfold.models.kernels.projectors import DualProjector, PrimalProjector

# rows by whose scores rows are found for other scores
_ANCHORS = 1000
_SOLVERS = ("auto", "krylov", "chebyshev", "dense", "em", "primal")
_POSITIVE = rule.number(0, open_end=True)
_ROWS = rule.Rule("rows (an array with as many columns as X)", landmarks_are_rows)


def _is_share(value: Any) -> bool:
    return _POSITIVE.holds(value) and value <= 1


def _computes_kernel(model: Any) -> bool:
    """Whether k(x, x) of new rows can be computed."""
    return bool(model.kernel != "precomputed")


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MixfoldEstimator):
    """Kernel PCA with a likelihood, exact for tens of thousands of rows, in batches or streams.

    The features phi(x) of a row, of which a kernel k(x, y) gives the scalar products, follow
    probabilistic PCA:

        z ~ N(0, I_d),   phi(x) | z ~ N(W z + mean, noise_variance I)

    whose axes are eigenvectors of the centred kernel matrix. EM for this model is a power
    iteration (Rosipal and Girolami): ``solver='em'``. The default keeps what the earlier steps have
    seen (block Lanczos), which gives the same axes, exact and in order, in far fewer products with
    the kernel matrix. Its tiles are computed when they are needed and kept while ``cache_size``
    lasts, so the matrix never has to fit into memory. With ``landmarks`` (Nystroem) rows may be as
    many as one likes: they are visited once or twice, in a file or on a cluster. The density is
    one of features, and hardly any draw of it would be phi(x) of a row x: there is no ``sample``.

    Parameters
    ----------
    n_components : int, float, 'learn' or None, default=2
        Number of axes. A float is a share of the variance to retain: the fewest axes that hold it,
        found by a few fits. None keeps all that have variance. Axes without variance are left out:
        ``n_components_`` may be less. 'learn' takes as many, up to 100, as describe rows that were
        left out (kernel 'rbf', see Notes).
    kernel : str or callable, default='rbf'
        'linear', 'rbf', 'poly', 'cosine', 'laplacian', 'precomputed' (X is the kernel matrix), or a
        function of two matrices of n and m rows that gives (n, m) products.
    gamma : float, 'scale' or None, default=None
        Coefficient of the kernels 'rbf', 'laplacian' and 'poly'; None is 1 / n_features, 'scale'
        divides that by the variance of all entries. With landmarks the entries are theirs.
        'learn' finds that of 'rbf' whose law describes rows that were left out (see Notes).
    degree : int, default=3
        Of 'poly'.
    coef0 : float, default=1.0
        Constant of 'poly', not negative.
    missing : {'refuse', 'expected'}, default='refuse'
        Rows that lack entries (NaN). 'expected' compares them by the expected kernel, given what is
        observed, under a Gaussian of the columns that ``fit`` learns by EM: kernels 'rbf', 'poly'
        and 'linear', without landmarks (see Notes).
    landmarks : int, array of shape (n_landmarks, n_features) or None, default=None
        Features are replaced by their projections on those of the landmarks: so many rows drawn
        uniformly, or the rows given. Exact if all rows are landmarks.
    solver : str, default='auto'
        'krylov' (block Lanczos), 'chebyshev' (filtered subspace; slower, less memory), 'dense'
        (the whole matrix), 'em', or 'primal' (covariance of coordinates: linear kernel or
        landmarks). 'auto' is 'primal' where it can be, 'dense' for a few hundred rows or nearly as
        many axes as rows, else 'krylov'.
    scale : {'scores', 'latent', 'white'}, default='scores'
        What ``transform`` gives: the scores of kernel PCA; posterior means of z, shrunk by the
        noise; or scores of unit variance.
    whiten : bool or None, default=None
        As of scikit-learn's PCA: True means scale='white', False scale='scores'. None: ``scale``.
    noise_variance : float or None, default=None
        Variance of the features in each direction beside the axes. None takes the mean of what the
        axes leave (over n_samples - 1 directions where the space has no bound).
    tol : float, default=1e-6
        Largest residual of an eigenpair relative to its eigenvalue (at least 1e-5 for float32
        data).
    max_iter : int, default=100
        Largest number of iterations. One is a product of the kernel matrix with as many vectors as
        there are axes ('krylov'), a filter of eight of them ('chebyshev'), or a step ('em').
    cache_size : float, default=1000
        Megabytes of the kernel matrix that are kept; the rest is computed again for each product.
    forgetting : float, default=1.0
        By how much earlier batches are multiplied when ``partial_fit`` meets a new one; only where
        sums are kept instead of rows (with landmarks or the linear kernel).
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers. Landmarks
        are drawn by it, and the directions with which a solver begins.
    warm_start : bool, default=False
        Start the next fit from the last one. The axes of the last one are taken if it had as many
        rows.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration. A log has a line for each product with the kernel matrix, with 1 as well.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited: by threads of this process or by the workers of a Dask cluster.
        The tiles of the kernel matrix are computed there, too.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned. The budget is for a solver of the
        kernel matrix, which returns the best axes so far.

    Attributes
    ----------
    n_components_ : int
    eigenvalues_ : ndarray of shape (n_components_,)
        Of the centred kernel matrix; with weights that of the rows that have one, by weights of
        mean one.
    eigenvectors_ : ndarray of shape (n_samples, n_components_)
        The same, unit columns; only where there was a kernel matrix (not with 'primal'). Rows of
        weight zero are left out (zero with 'precomputed').
    explained_variance_ : ndarray of shape (n_components_,)
        Variance of the scores: eigenvalues over rows.
    explained_variance_ratio_ : ndarray of shape (n_components_,)
        Its share in the variance of the features, not only of the axes that were kept.
    noise_variance_ : float
    gamma_ : float or None
        That of the kernel, if it has one.
    selection_ : dict or None
        What 'learn' has tried: arrays ``gamma``, ``n_components``, ``score`` (the lower, the
        better), ``std_error`` and ``noise_variance``. None if nothing was learned.
    solver_ : str
        The solver that was used.
    n_iter_ : int
        Iterations of the solver.
    n_passes_ : int
        Passes over the kernel matrix, or over the rows.
    converged_ : bool
    stop_reason_ : str
        'converged', 'max_iter' or 'time_budget'.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Densities of features cannot choose a kernel: each kernel has features, and volumes of them, of
    its own. 'learn' reads the law of the features as a density of the row, p(x) up to a factor, and
    compares kernels by Hyvarinen's score, 2 tr(Hessian of log p) + |gradient of log p|^2, which
    needs no factor and whose mean is least for the density of the rows [4]_, also where the
    integral of p is infinite [5]_, as it is here. It is taken of rows left out (five folds of up to
    500 rows drawn by ``random_state``), for 13 widths around the median distance and 1 to 100
    axes, each with its best noise. Of all within one standard error of the best, the smoothest
    kernel is taken, and of that the fewest axes. With a number ``n_components`` that many axes of
    this kernel are kept. It takes seconds. The columns must be numbers that vary continuously, in
    comparable units: the score stresses directions of little variance, so that columns that are
    nearly functions of the others, or take few values, decide it. A ``gamma_`` at the lower end
    says that a plane describes the rows as well (take PPCA).

    A row with holes is x given what is observed of it, Gaussian with mean m and covariance S, and
    stands where its features are expected. Two such rows have the product E k(x, y), of 'rbf'
    |I + 2 gamma S|^-1/2 exp(-gamma d'(I + 2 gamma S)^-1 d) with the sum S of both and the
    difference d of their means; it is positive semi-definite. What E k(x, x) is beyond the length
    of the expected features is variance of the features that has no direction yet: it belongs to
    the noise, and to the distances of ``reconstruction_error`` and ``score_samples``. If all are
    missing, a row stands at the expected features of a draw of the Gaussian. Time grows with the
    square of the number of different patterns of holes.

    References
    ----------
    .. [1] Schoelkopf, Smola, Mueller. Nonlinear component analysis as a kernel eigenvalue problem.
       Neural Computation 10, 1998.
    .. [2] Rosipal, Girolami. An expectation-maximization approach to nonlinear component analysis.
       Neural Computation 13, 2001.
    .. [3] Tipping, Bishop. Probabilistic principal component analysis. JRSS B 61, 1999.
    .. [4] Hyvarinen. Estimation of non-normalized statistical models by score matching. JMLR 6,
       2005.
    .. [5] Jewson, Rossell. General Bayesian loss function selection and the use of improper models.
       JRSS B 84, 2022.

    Examples
    --------
    Two rings, which no straight line separates:

    >>> import numpy as np
    >>> from mixfold import KernelPCA
    >>> rng = np.random.default_rng(0)
    >>> angle, radius = rng.uniform(0, 7, 600), np.repeat([1.0, 3.0], 300)
    >>> X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X += 0.1 * rng.normal(size=X.shape)
    >>> model = KernelPCA(2, gamma=0.5, random_state=0)
    >>> Z = model.fit_transform(X)
    >>> bool(Z[:300, 0].min() > Z[300:, 0].max())
    True
    >>> from mixfold.plots import plot_latents
    >>> ax = plot_latents(model, X, np.repeat(["inner ring", "outer ring"], 300))

    New rows, how unusual they are, and the same in batches:

    >>> model.score_samples([[0.0, 1.0], [9.0, 9.0]]).argmin()
    np.int64(1)
    >>> stream = KernelPCA(2, gamma=0.5, random_state=0)
    >>> for batch in np.array_split(X, 3):
    ...     stream = stream.partial_fit(batch)
    >>> bool(np.allclose(stream.eigenvalues_, model.eigenvalues_))
    True

    Width and number of axes that suit four clusters, whose means span three directions:

    >>> centres = 4 * np.eye(4)
    >>> rows = centres[rng.integers(4, size=300)] + 0.5 * rng.normal(size=(300, 4))
    >>> learned = KernelPCA("learn", gamma="learn", random_state=0).fit(rows)
    >>> learned.n_components_
    3
    """

    _projector: FittedProjector
    selection_: dict[str, Array] | None
    _streams_go_on: ClassVar[bool] = True
    _constraints: ClassVar[rule.Constraints] = {
        **KERNEL_RULES,
        "n_components": (
            rule.nothing(), rule.one_of([LEARN]), rule.integer(1), rule.share_of_variance(),
        ),
        "gamma": (*rules_of("gamma")["gamma"], rule.one_of([LEARN])),
        "missing": (rule.one_of(["refuse", "expected"]),),
        "landmarks": (rule.nothing(), rule.integer(1), _ROWS),
        "solver": (rule.one_of(_SOLVERS),),
        "scale": (rule.one_of(["scores", "latent", "white"]),),
        "whiten": (rule.nothing(), rule.boolean()),
        "noise_variance": (rule.nothing(), _POSITIVE),
        "max_iter": (rule.integer(1),),
        "cache_size": (rule.number(0),),
        "forgetting": (rule.Rule("a number above 0 and up to 1", _is_share),),
    }  # fmt: skip
    _stored: ClassVar[tuple[str, ...]] = (
        "_projector", "_seed", "_total_weight", "_moments", "_buffer", "_batches", "solver_",
        "n_iter_", "n_passes_", "stop_reason_", "selection_",
    )  # fmt: skip

    def __init__(
        self,
        n_components: int | float | str | None = 2,
        *,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: Any = None,
        degree: int = 3,
        coef0: float = 1.0,
        missing: str = "refuse",
        landmarks: Any = None,
        solver: str = "auto",
        scale: str = "scores",
        whiten: bool | None = None,
        noise_variance: float | None = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        cache_size: float = 1000,
        forgetting: float = 1.0,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.missing = missing
        self.landmarks = landmarks
        self.solver = solver
        self.scale = scale
        self.whiten = whiten
        self.noise_variance = noise_variance
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.forgetting = forgetting
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget

    # ------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the axes.

        Parameters
        ----------
        X : array, sparse matrix, table, path or Dask collection of shape (n_samples, n_features)
            Rows without missing entries; the kernel matrix if kernel='precomputed'.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature. This holds for the axes, scores and
            ``explained_variance_``. (Where the space has no bound, the noise is spread over the
            rows as they are: densities differ.)

        Returns
        -------
        self
        """
        self._fit_and_score(X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and give what ``transform`` gives of the same rows, without another kernel matrix.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
        """
        scores = self._fit_and_score(X, sample_weight)
        if scores is None:
            return self.transform(X)
        return np.asarray(in_dtype(scores * self._score_factor(), self._dtype))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        refuse_contradictions(self.kernel, self.landmarks, self.solver)
        score_scale(self, "scores")

    def _fit_and_score(self, X: Any, sample_weight: Any) -> Array | None:
        """Fit, and give the scores of the rows, where they are at hand; for both of the above."""
        self._check_parameters()
        refuse_to_learn(self.kernel, self.gamma, self.n_components)
        self._refuse_holes()
        source = self._open(X, reset=True, weight=sample_weight, min_rows=2)
        self._dtype = source.dtype.name
        self._seed = seed_from(self.random_state)
        self._forget_batches()
        settings, self.selection_ = self._settings(), None
        if self.kernel in ("rbf", "laplacian", "linear", "poly"):
            executor = self._executor(source)
            pilot = draw_pilot(source, executor, pilot_size(source, 1), 0)
            warn_about_units(self, pilot, f"kernel={self.kernel!r}")
        with explain_missing_entries():
            if asks_to_learn(settings):
                learned = learn_settings(settings, source)
                settings, self.selection_ = learned.settings, learned.tried
            if uses_kernel_matrix(settings, source):
                earlier = getattr(self, "_projector", None) if self.warm_start else None
                by_matrix = partial(fit_by_kernel_matrix, source=source, earlier=earlier)
                found = fit_to_share(settings, by_matrix)
            else:
                found = fit_to_share(settings, partial(fit_in_coordinates, source=source))
        self._publish(found)
        self._warn_about(found)
        return found.scores

    @available_if(_computes_kernel)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch, of any size.

        Without landmarks all rows are kept (of the last ``fit``, too): the new ones are projected
        on the axes so far and the solver goes on from there, on the kernel matrix of all rows. The
        result is that of one fit to all of them.

        With landmarks (or the linear kernel and at most 2000 columns) memory is bounded: only sums
        of squares and products of coordinates are kept. If ``landmarks`` is a number, the first
        rows of the stream become the landmarks; until there are enough, rows are kept and the
        model is that of all of them. ``forgetting`` below 1 multiplies what was learned before
        with each batch.

        What the kernel takes from the data (``gamma``) is taken from the first batch; 'learn' is
        for a ``fit`` that goes before the batches.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``; a kernel matrix (kernel='precomputed') has no batches.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._refuse_holes()
        begun = hasattr(self, "_projector")
        if not begun and (is_to_learn(self.gamma) or is_to_learn(self.n_components)):
            raise ValueError(
                "'learn' holds rows out, which a stream has not seen yet: begin with fit, by a "
                "batch that is typical, and go on with partial_fit"
            )
        if begun and sample_weight is not None and is_weightless(sample_weight):
            return self
        source = self._open(X, reset=not begun, weight=sample_weight)
        if not begun:
            self._seed, self.selection_ = seed_from(self.random_state), None
            self._forget_batches()
        earlier = Earlier(
            projector=getattr(self, "_projector", None),
            total_weight=getattr(self, "_total_weight", None),
            moments=getattr(self, "_moments", None),
            waiting=getattr(self, "_buffer", None),
        )
        with explain_missing_entries():
            learn = partial(learn_batch, source=source, earlier=earlier, forgetting=self.forgetting)
            found = fit_to_share(self._stream_settings(), learn)
        self._publish(found)
        if self.n_components_:  # a stream that has only begun need not have any axis
            self._warn_about(found)
        self._batches = getattr(self, "_batches", 0) + 1
        return self

    def _open(self, X: Any, **how: Any) -> Source:
        if self.kernel == "precomputed" and isinstance(X, np.ndarray):
            assert_all_finite(X, input_name="X")  # it cannot be filled, whatever its shape
        return super()._open(X, **how)

    def _forget_batches(self) -> None:
        """Forget what batches have left, where a fit or a stream begins."""
        for name in ("_moments", "_buffer", "_batches"):
            self.__dict__.pop(name, None)

    def _refuse_holes(self) -> None:
        if self.missing == "expected":
            refuse_holes(self.kernel, self.landmarks, self.solver)

    def _settings(self) -> Settings:
        """The parameters on which the fit of this seed depends."""
        return Settings(
            kernel=KernelChoice(self.kernel, self.gamma, self.degree, self.coef0),
            landmarks=self.landmarks,
            solver=self.solver,
            size=self._wanted_axes(),
            noise=self.noise_variance,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            cache_bytes=1e6 * float(self.cache_size),
            seed=self._seed,
            time_budget=self.time_budget,
            verbose=int(self.verbose),
            executor=self.executor,
            n_jobs=self.n_jobs,
            expected=self.missing == "expected",
        )

    def _stream_settings(self) -> Settings:
        """The same for one more batch: what was learned by the fit before stays."""
        settings = self._settings()
        if not asks_to_learn(settings):
            return settings
        size = self.n_components_ if is_to_learn(self.n_components) else settings.size
        return replace(settings, size=size, kernel=replace(settings.kernel, gamma=self.gamma_))

    def _wanted_axes(self) -> int | float | str | None:
        """``n_components`` as a plain number; a float is a share of the variance."""
        if self.n_components is None or is_to_learn(self.n_components):
            return self.n_components
        whole = isinstance(self.n_components, Integral)
        return int(self.n_components) if whole else float(self.n_components)

    def _publish(self, found: FittedAxes) -> None:
        """All that a fit or a batch has found."""
        for name, value in found.state.items():
            setattr(self, name, value)
        self.solver_, self.n_iter_, self.n_passes_ = found.solver, found.n_iter, found.n_passes
        self.stop_reason_ = found.reason
        self._publish_projector(found.projector)

    def _publish_projector(self, projector: FittedProjector) -> None:
        """Attributes that follow from what a file holds; also after loading one."""
        self._projector = projector
        self.__dict__.pop("_pre_images", None)
        axes = projector.axes
        trace = float(axes.trace)
        self.n_components_ = len(axes.values)
        self.eigenvalues_ = axes.values
        self.explained_variance_ = axes.variances
        self.explained_variance_ratio_ = axes.values / trace if trace > 0 else axes.values
        self.noise_variance_ = float(axes.noise)
        self.gamma_ = getattr(projector.kernel, "gamma", None)
        self.converged_ = self.stop_reason_ == "converged"

    def _warn_about(self, found: FittedAxes) -> None:
        """What a user should know of a fit."""
        if self.n_components_ == 0 and not found.lost:
            warn(
                "the rows do not differ in this kernel: there is no axis (n_components_ is 0). "
                "Give rows that differ, or another kernel or gamma.",
                DegenerateWarning,
            )
        if found.lost:
            warn(
                f"{found.lost} of the axes have no more variance than noise_variance="
                f"{self.noise_variance!r}, so their latents are zero; give a smaller one (or None)",
                DegenerateWarning,
            )
        if not self.converged_:
            worst = f"; the largest relative residual is {found.worst:.1e}"
            reached = worst if found.worst < np.inf else ""
            warn(
                f"the axes are less exact than asked for ({self.stop_reason_} was reached after "
                f"{self.n_iter_} iterations{reached}): increase max_iter, tol or time_budget, or "
                "ask for fewer n_components",
                ConvergenceWarning,
            )

    # ------------------------------------------------ asking

    def transform(self, X: Any) -> Array:
        """Scores, latents or whitened scores of rows, by ``scale``.

        Parameters
        ----------
        X : as in ``fit``
            With kernel='precomputed', products with the rows of the fit.

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
        """
        check_is_fitted(self)
        with explain_missing_entries():
            return self._concatenate_rows(X, _Scores(self._projector, self._score_factor()))

    def _score_factor(self) -> Array:
        """What scores are multiplied by (d,), as ``scale`` says."""
        axes, scale = self._projector.axes, score_scale(self, "scores")
        if scale == "latent":
            return axes.shrinkage()
        return 1 / np.sqrt(axes.variances) if scale == "white" else np.ones(len(axes.values))

    @available_if(_computes_kernel)
    def score_samples(self, X: Any) -> Array:
        """Log density of the features of each row: the lower, the more unusual.

        Not with kernel='precomputed', where ``reconstruction_error`` does it.

        Parameters
        ----------
        X : as in ``transform``

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._score_rows_by_axes(X, None, density=True)

    @property
    def _densities_compare(self) -> bool:
        """Whether models of different rows have densities in the same space."""
        return self.kernel in ("linear", "poly", "cosine")

    @available_if(_computes_kernel)
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log density of the features of the rows (per unit of weight).

        It compares models of the same kernel: another kernel (or gamma) has other features.
        """
        each = np.asarray(self.score_samples(X), np.float64)
        return float(np.average(each, weights=sample_weight))

    def reconstruction_error(self, X: Any, diagonal: Any = None) -> Array:
        """Squared distance of the features of each row from the plane of the axes.

        A measure of novelty that does without a variance of the noise.

        Parameters
        ----------
        X : as in ``transform``
        diagonal : array-like of shape (n_samples,), default=None
            k(x, x) of each row, needed if (and only if) kernel='precomputed'.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        given = self.kernel == "precomputed"
        if given and diagonal is None:
            raise ValueError(
                "with kernel='precomputed' the products of rows with themselves, k(x, x), are not "
                "known: give them as diagonal"
            )
        if not given and diagonal is not None:
            raise ValueError("diagonal is computed by the kernel: leave it out")
        own = None if diagonal is None else column_or_1d(diagonal, dtype=float)
        return self._score_rows_by_axes(X, own, density=False)

    def _score_rows_by_axes(self, X: Any, diagonal: Array | None, density: bool) -> Array:
        """Log densities of the rows, or their distances from the plane of the axes."""
        check_is_fitted(self)
        with explain_missing_entries():
            return self._concatenate_rows(X, _Measure(self._projector, diagonal, density))

    @available_if(_computes_kernel)
    def inverse_transform(self, Z: Any) -> Array:
        """Rows whose ``transform`` is about Z.

        Exact with the linear kernel (the nearest rows of the plane of the axes). Else by kernel
        ridge regression from the scores of up to 1000 of the rows that are kept (or of the
        landmarks) to these rows; its width and ridge are chosen by generalised cross-validation
        in units of the scores. It is fitted when it is first asked for, also after loading a file:
        a model that is never asked does not pay for it.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components_)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        Z = check_array(Z, dtype=[np.float64, np.float32], input_name="Z", ensure_min_features=0)
        if Z.shape[1] != self.n_components_:
            raise ValueError(
                f"Z must have a column for each axis, {self.n_components_}; got {Z.shape[1]}"
            )
        factor = self._score_factor()
        scores = Z * np.divide(1.0, factor, out=np.zeros_like(factor), where=factor > 0)
        plane = self._projector.plane()
        if plane is not None:
            return in_dtype(scores @ plane[0].T + plane[1], Z.dtype)
        return in_dtype(self._fitted_pre_images()(np.asarray(scores, np.float64)), Z.dtype)

    def _fitted_pre_images(self) -> PreImages:
        """The regression from scores to rows, fitted when it is first asked for."""
        known: PreImages | None = getattr(self, "_pre_images", None)
        if known is not None:
            return known
        assert self._projector.rows is not None
        rows = self._projector.rows.matrix
        if rows.shape[0] > _ANCHORS:
            rng = np.random.default_rng(self._seed % 2**63)
            rows = rows[np.sort(rng.choice(rows.shape[0], _ANCHORS, replace=False))]
        filled = filled_rows(rows, self._projector.kernel)
        self._pre_images = pre_images(self._projector.scores(rows), filled)
        return self._pre_images

    @property
    def eigenvectors_(self) -> Array:
        """Of the centred kernel matrix, (n_samples, n_components_)."""
        projector = getattr(self, "_projector", None)
        if not isinstance(projector, DualProjector):
            raise AttributeError("eigenvectors_ is there after a fit by the kernel matrix only")
        return eigenvectors(projector.axes)

    # ------------------------------------------------ scikit-learn and files

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_projector")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.allow_nan = self.missing == "expected"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file that holds data only, never code.

        Load it with ``mixfold.load(path)``. A kernel that is a function cannot be written.
        """
        refuse_to_save_function(self, "kernel")
        super().save(path)

    def _summary(self) -> dict[str, Any]:
        return {
            "axes": self.n_components_,
            "explained variance": float(np.sum(self.explained_variance_ratio_)),
            "solver": self.solver_,
            "converged": self.converged_,
        }

    def _check_state(self) -> None:
        projector = self._projector
        if not isinstance(projector, DualProjector | PrimalProjector):
            raise TypeError(f"a {type(projector).__name__} is no projector")
        self._publish_projector(projector)


@dataclass(frozen=True, slots=True)
class _Scores:
    """The task of a pass: scores of a block, times a factor; picklable."""

    projector: FittedProjector
    factor: Array

    def __call__(self, block: Block) -> Array:
        return match_dtype(
            self.projector.scores(rows_with_holes(block, self.projector.kernel)) * self.factor,
            block,
        )


@dataclass(frozen=True, slots=True)
class _Measure:
    """The task of a pass: log densities or distances of a block; picklable."""

    projector: FittedProjector
    diagonal: Array | None
    density: bool

    def __call__(self, block: Block) -> Array:
        own = None if self.diagonal is None else self.diagonal[block.rows]
        scores, squares = self.projector.scores_and_squares(
            rows_with_holes(block, self.projector.kernel), own
        )
        if self.density:
            return match_dtype(self.projector.axes.log_density(scores, squares), block)
        return match_dtype(np.maximum(squares - (scores**2).sum(axis=1), 0.0), block)
