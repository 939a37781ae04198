"""Multi-output regularised projection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block
from mixfold.engine.loop import Fit, Plan
from mixfold.engine.random import seed_from
from mixfold.estimators.kernels.kernel_views import (
    VIEW_RULES,
    ViewEstimator,
    check_kernel_matrix,
    exact_scores,
    map_outputs,
)
from mixfold.estimators.kernels.morp_losses import LossPlan, Margins, fit_by_loss, squarem
from mixfold.estimators.kernels.morp_search import candidates, search
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.fitting import warn_if_not_converged
from mixfold.estimators.shell.output_coding import OutputSet, OutputSets, learn_output_sets
from mixfold.estimators.shell.predictions import match_dtype
from mixfold.estimators.shell.targets import (
    TASKS,
    find_target,
    read_target,
    require_target,
    tag_target,
    weights_or_ones,
)
from mixfold.math.signs import signs
from mixfold.models.kernels.linear_readout import Readout, fit_readout
from mixfold.models.kernels.morp import (
    FORMS,
    MorpAxes,
    check_spanned,
    inverse_form,
    max_axes,
    max_form,
)
from mixfold.models.kernels.output_losses import LOSSES
from mixfold.models.kernels.views import LinearProjection, Projection, ThinSVD
from mixfold.models.kernels.views.rows import whole_rows

# regularization by default, as a share of the mean variance: what was found to work
_SHARE = 0.3


def _decides(estimator: Any) -> bool:
    """Whether there is something to decide: of one y, that is classes or labels."""
    sets = getattr(estimator, "_sets", None)
    tasks = [estimator.task] if sets is None else [one.target.task for one in sets.sets]
    if "regression" not in tasks or estimator.loss == "rank":
        return True
    raise AttributeError(
        f"{type(estimator).__name__} decides on classes and labels only, not on numbers "
        "(task='regression'); use predict"
    )


def _has_probabilities(estimator: Any) -> bool:
    """Whether the loss is that of probabilities."""
    if estimator.loss == "logistic":
        return True
    raise AttributeError(
        f"{type(estimator).__name__} has probabilities with loss='logistic' only, not with loss="
        f"{estimator.loss!r}; use decision_function"
    )


def _is_share(value: Any) -> bool:
    return rule.number(0).holds(value) and value <= 1


def _is_list_of_shares(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list | tuple | np.ndarray):
        return False
    return len(value) > 0 and all(rule.number(0).holds(one) for one in value)


class MORP(ViewEstimator):
    """Multi-output regularised projection: kernel PCA in which the outputs have a say.

    With centred kernel matrices Gx of the inputs and Gy of the outputs, each divided by its trace,

        K = (1 - beta) Gx + beta Gy,

    score vectors z with large z'Kz are sought that are functions of x, so that new rows without
    outputs are projected too:

        form='max':      max z'Kz, z = Gx a,  for  a'(Gx Gx + regularization Gx) a = 1
        form='inverse':  X'X w = lambda (X'K^-1 X + regularization I) w

    beta=0 is kernel PCA, beta=1 (with 'max') orthonormalised partial least squares. Scores are in
    the units of the features, so that beta=0 with regularization=0 gives exactly those of kernel
    PCA. There is no likelihood: for probabilities and missing inputs see :class:`SupervisedPPCA`.

    X may be an array, a sparse matrix (never made dense), a table or a file. Without ``landmarks``
    all works on a matrix of the columns (linear kernel, no more columns than rows) or of the
    rows, of order 16384 at most; its decomposition takes a minute at 5000. With landmarks the rows
    may be millions.

    Parameters
    ----------
    n_components : int, default=2
        Number of scores d; fewer are given if there are fewer directions.
    kernel : {'linear', 'rbf', 'poly', 'cosine', 'laplacian', 'precomputed'} or callable, \
default='linear'
        Of the inputs, as in scikit-learn's KernelPCA; a function takes two matrices of rows.
    gamma : float, 'scale' or None, default=None
        Coefficient of the kernels 'rbf', 'laplacian' and 'poly'; None is 1 / n_features, 'scale'
        divides that by the variance of all entries.
    degree : int, default=3
        Of 'poly'.
    coef0 : float, default=1.0
        Of 'poly'.
    output_kernel : str or callable, default='linear'
        Of the coded outputs; any of the above but 'precomputed'. Unless it is linear, a row that
        lacks any of its outputs counts as one without outputs.
    output_gamma : float, 'scale' or None, default=None
        As gamma, of the output kernel.
    beta : float in [0, 1], 'cv', list or dict, default=0.5
        How much the outputs count. Of several sets of outputs a list (or dict) of weights whose sum
        is at most 1; one number is shared equally. 'cv' chooses it, see ``cv``.
    loss : {'squared', 'logistic', 'hinge', 'rank'}, default='squared'
        What an error in the outputs costs (see Notes). 'squared' has the closed form of the paper.
        'logistic' and 'hinge' are for classes and labels, 'rank' for ordered grades (ratings). The
        fit is then one by steps, ``predict`` goes by margins, and unknown outputs cost nothing.
    regularization : float or None, default=None
        How smooth scores have to be. None is 0.3 tr(Gx)/N for 'max' (after balancing: 0.3/N), and
        0, the simplified algorithm, for 'inverse'.
    form : {'max', 'inverse'}, default='max'
        'inverse', the form of the paper, needs inputs that span the outputs (an rbf kernel, or more
        columns than rows) and beta < 1; elsewhere its answer would not depend on the outputs. A
        share of up to 0.01 of the outputs may be left over, since a few equal rows may have other
        outputs; it has no part in the fit.
    smoothing : float or None, default=None
        'inverse' only: ridge of the regression that stands for the unknown outputs of new rows.
        None is 0.3 tr(Gx)/N.
    solver : {'auto', 'primal', 'dual'}, default='auto'
        Of a linear kernel: by columns or by pairs of rows, whichever are fewer.
    balance : bool, default=True
        Whether the kernel matrices are divided by their traces.
    task : {'auto', 'classification', 'multilabel', 'regression'}, default='auto'
        What y is, as in :class:`SupervisedPPCA`; of several sets also a list or dict.
    standardize : bool or 'auto', default='auto'
        Whether outputs are divided by their standard deviations; 'auto' for regression.
    landmarks : int or None, default=None
        Number of rows, drawn at random, by products with which rows get their coordinates
        (Nystroem). None, or as many as there are rows, is exact.
    ridge : float, default=1e-3
        Of the regression by which ``predict`` reads outputs off the scores, relative to their mean
        variance.
    cv : int, splitter or list of pairs of rows, default=5
        With beta='cv': folds. Each is decomposed once for all settings, so that trying a setting
        costs little; what counts is R^2 of the coded outputs that are read off the scores of
        rows left out. Where something else is to count (a classifier behind the projection) use
        scikit-learn's ``GridSearchCV`` with ``{"morp__beta": [...]}`` on a pipeline.
    cv_grid : dict or None, default=None
        With beta='cv': {'beta': [...]}, and 'regularization': [...] if that is to be chosen, too.
        None tries 11 values of beta.
    tol : float, default=1e-7
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. For losses other than 'squared'; the gain is that of the
        objective, which begins at -1 (balanced).
    max_iter : int, default=500
        Largest number of iterations. For losses other than 'squared'.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers. Landmarks
        and folds are drawn by it.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited: by threads of this process or by the workers of a Dask cluster.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned. For losses other than 'squared'.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        z'Kz, largest first; with another loss than 'squared' of its working outputs.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Of the variance of the features of x; each beyond the scores before it.
    explained_output_ratio_ : ndarray of shape (n_components,)
        The same of the outputs, as they count.
    components_ : ndarray of shape (n_components, n_features)
        Linear kernel only: scores are (x - mean_) components_'.
    mean_ : ndarray of shape (n_features,)
        Linear kernel only.
    classes_ : ndarray
        Of one y of classes or labels.
    beta_, regularization_ : float
        As used; ``beta_`` is that of all sets together.
    solver_ : str
        'primal', 'dual' or 'landmarks'.
    cv_results_ : dict or None
        With beta='cv': as that of ``GridSearchCV``; None otherwise.
    n_iter_ : int
        Steps; 1 for the closed form.
    converged_ : bool
    stop_reason_ : str
        'converged', 'max_iter' or 'time_budget'.
    lower_bound_ : float
        The objective, negative (see Notes); of another loss than 'squared'.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Form 'max' is the least of (1 - beta) f(X, Z) + beta g(Y, Z), where f is what scores Z leave of
    the inputs and g of the outputs, both smoothly and as shares of what there is. The paper names
    other costs g; ``loss`` gives the outputs one of these, with functions eta = Z B of the scores
    and intercepts,

        'logistic'  -log of the share of the class (softmax) or of each label
        'hinge'     max(0, 1 - m) of the margin m, round about its corner; each class against
                    the others
        'rank'      the hinge at a threshold between each grade and the next, all of one function

    divided by what it is without scores. Each of them lies below a quadratic bound, whose least is
    form 'max' for working outputs: steps of it, extrapolated (SQUAREM), never raise the whole. The
    problem is not convex in the scores; the start is their best answer to intercepts alone. The
    coordinates of all rows are held in memory, and each step decomposes a matrix of their number:
    set ``landmarks`` for thousands of rows.

    Other outputs are other kernels (``output_kernel``): of a hierarchy, say, one column for each
    node, of which a row has those on its way.

    References
    ----------
    .. [1] Yu, Yu, Tresp. Multi-output regularized feature projection. IEEE Transactions on
       Knowledge and Data Engineering 18, 2006.
    .. [2] Rennie, Srebro. Loss functions for preference levels: regression with discrete ordered
       labels. IJCAI Workshop on Advances in Preference Handling, 2005.
    .. [3] Boehning. Multinomial logistic regression algorithm. Annals of the Institute of
       Statistical Mathematics 44, 1992.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import MORP
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 6)) * [5, 4, 1, 1, 1, 1]
    >>> y = (X[:, 2] + X[:, 3] > 0).astype(int)  # not where X varies most
    >>> plain = MORP(1, beta=0).fit(X, y).score(X, y)
    >>> model = MORP(1, beta=0.8).fit(X, y)
    >>> plain < 0.7 < 0.9 < model.score(X, y), model.transform(X).shape
    (True, (200, 1))
    >>> import matplotlib.pyplot as plt
    >>> for label in (0, 1):
    ...     bars = plt.hist(model.transform(X)[y == label, 0], bins=20, alpha=0.6)
    >>> name = plt.xlabel("score of rows of the two classes")

    A loss of classes, which has probabilities:

    >>> model = MORP(1, beta=0.8, loss="logistic").fit(X, y)
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    """

    _constraints: ClassVar[rule.Constraints] = {
        **VIEW_RULES,
        "beta": (
            rule.Rule("a number from 0 to 1", _is_share),
            rule.one_of(["cv"]),
            rule.Rule("a list or dict of numbers >= 0, one per set of outputs", _is_list_of_shares),
        ),
        "regularization": (rule.nothing(), rule.number(0)),
        "smoothing": (rule.nothing(), rule.number(0, open_end=True)),
        "form": (rule.one_of(FORMS),),
        "balance": (rule.boolean(),),
        "task": (rule.one_of(TASKS), rule.Rule("a list or dict of these",
                                               lambda v: isinstance(v, list | tuple | dict))),
        "standardize": (rule.one_of(["auto"]), rule.boolean()),
        "ridge": (rule.number(0),),
        "loss": (rule.one_of(LOSSES),),
        "cv": (rule.integer(2), rule.splits()),
        "cv_grid": (rule.nothing(), rule.Rule("a dict", lambda v: isinstance(v, dict))),
    }  # fmt: skip
    _stored: ClassVar[tuple[str, ...]] = (
        *ViewEstimator._stored, "_sets", "_readout", "eigenvalues_", "explained_variance_ratio_",
        "explained_output_ratio_", "beta_", "regularization_", "cv_results_", "_margins", "n_iter_",
        "stop_reason_", "lower_bound_",
    )  # fmt: skip

    _sets: OutputSets
    _readout: Readout
    # functions of the scores that a loss has found; None for the squared one
    _margins: Margins | None = None
    cv_results_: dict[str, Any] | None

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: int = 3,
        coef0: float = 1.0,
        output_kernel: Any = "linear",
        output_gamma: Any = None,
        beta: Any = 0.5,
        loss: str = "squared",
        regularization: float | None = None,
        form: str = "max",
        smoothing: float | None = None,
        solver: str = "auto",
        balance: bool = True,
        task: Any = "auto",
        standardize: Any = "auto",
        landmarks: int | None = None,
        ridge: float = 1e-3,
        cv: Any = 5,
        cv_grid: Any = None,
        tol: float = 1e-7,
        max_iter: int = 500,
        random_state: Any = None,
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.output_kernel = output_kernel
        self.output_gamma = output_gamma
        self.beta = beta
        self.loss = loss
        self.regularization = regularization
        self.form = form
        self.smoothing = smoothing
        self.solver = solver
        self.balance = balance
        self.task = task
        self.standardize = standardize
        self.landmarks = landmarks
        self.ridge = ridge
        self.cv = cv
        self.cv_grid = cv_grid
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget

    # ------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the projection.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            Complete rows; with kernel='precomputed' the kernel matrix.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), str, list or dict
            Classes, labels or numbers. NaN and None are unknown, and so is -1 among classes and
            labels that are integers. For tables and files also the name of a column, which is
            then not a feature. A list of arrays, or a dict of them, is several sets of outputs.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature. Where landmarks are
            drawn, repeating rows changes which.

        Returns
        -------
        self
        """
        self._fit_and_score(X, y, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """``fit(X, y).transform(X)``, without visiting the rows once more."""
        return in_dtype(self._fit_and_score(X, y, sample_weight), self._dtype)

    def _fit_and_score(self, X: Any, y: Any, sample_weight: Any) -> Array:
        """Fit, and give the scores of the rows in double precision; for both of the above."""
        self._check_parameters()
        self._refuse_contradictions()
        seed = seed_from(self.random_state)

        # y as numbers, and how much each of its sets counts
        given = find_target(X, y, sample_weight)
        y, known_weights = require_target(self, given.y), given.read_weights()
        self._sets, coded = learn_output_sets(y, self.task, known_weights, self.standardize)
        if self._sets.single and not isinstance(self.task, str):
            raise ValueError(
                "The 'task' parameter of MORP must be one word where y is one set of outputs; got "
                f"{self.task!r}"
            )
        weights = weights_or_ones(known_weights, len(coded[0]))
        beta, shares = _share_beta(self.beta, self._sets)

        # the rows of X, with y in the coordinates of its kernel beside them
        outputs = map_outputs(self._output_choice(seed), self._executor, coded, weights)
        source = given.open(self, np.hstack(outputs), min_rows=2)
        if self.kernel == "precomputed":
            check_kernel_matrix(source)
        self._dtype = source.dtype.name
        executor, view = self._executor(source), self._input_choice(seed)
        objective = _Objective(
            self.form, self.n_components, self.regularization, self.smoothing, self.balance,
            shares, [table.shape[1] for table in outputs],
        )  # fmt: skip

        # beta (and the regularization) by rows left out, if they are to be chosen
        chosen: dict[str, Any] = {"beta": beta}
        self.cv_results_ = None
        if beta is None:
            tried = candidates(self.cv_grid)
            self.cv_results_ = search(
                source, executor, view, objective.axes, coded, weights, tried, self.cv,
                float(self.ridge),
            )  # fmt: skip
            chosen = tried[int(np.argmax(self.cv_results_["mean_test_score"]))]

        # the kernel matrix of x, its axes, and the scores, turned so that the largest is positive
        thin, self.solver_ = view.thin(source, executor)
        climbed: _Climbed | None = None
        if self.loss == "squared":
            axes = objective.axes(thin, **chosen)
        else:
            climbed = self._climb(objective, source, executor, thin, coded, weights, chosen, seed)
            axes = climbed.axes
        projection = thin.reader(axes.weights)
        scores = exact_scores(source, executor, projection)
        turn = signs(scores * (weights > 0)[:, None])[0]
        self._projection, scores = projection.times(turn), scores * turn
        self._readout = fit_readout(scores, np.hstack(coded), weights, float(self.ridge))
        self._margins = None if climbed is None else climbed.margins(turn)

        # publish
        self._publish_climb(None if climbed is None else climbed.fit)
        self.beta_ = float(chosen["beta"])
        self.regularization_ = objective.choose_regularization(thin, chosen.get("regularization"))
        self.eigenvalues_ = axes.values
        self.explained_variance_ratio_ = axes.inputs
        self.explained_output_ratio_ = axes.outputs * objective.spanned_share(thin)
        self._publish_axes()
        if len(axes.values) < self.n_components:
            warn(
                f"there are only {len(axes.values)} directions to project on, fewer than "
                f"n_components={self.n_components}; scores have that many columns",
                DegenerateWarning,
            )
        found: Array = scores
        return found

    def _refuse_contradictions(self) -> None:
        """Refuse what does not go with a loss."""
        if self.loss == "squared":
            return
        for name, wanted in (("form", "max"), ("output_kernel", "linear")):
            value = getattr(self, name)
            if value != wanted:
                raise ValueError(
                    f"loss={self.loss!r} needs {name}={wanted!r}, got {value!r}; "
                    "use loss='squared' for others"
                )
        if isinstance(self.beta, str):
            raise ValueError(
                f"beta='cv' goes by R^2 of coded outputs, not by loss={self.loss!r}; give beta a "
                "number, which scikit-learn's GridSearchCV(MORP(...), {'beta': [...]}) can choose"
            )

    def _climb(
        self,
        objective: _Objective,
        source: Any,
        executor: Any,
        thin: ThinSVD,
        coded: list[Array],
        weights: Array,
        chosen: dict[str, Any],
        seed: int,
    ) -> _Climbed:
        """The axes by a loss other than the squared one."""
        w, gamma = objective.input_values(thin), objective.choose_regularization(thin)
        plan = Plan(
            tol=float(self.tol), max_iter=int(self.max_iter), n_candidates=1,
            acceleration=squarem(), time_budget=self.time_budget, seed=seed,
        )  # fmt: skip
        settings = LossPlan(
            self.loss, float(chosen["beta"]), gamma, self.n_components, self.balance,
            objective.shares, plan,
        )  # fmt: skip
        _, found, targets = fit_by_loss(
            settings, source, executor, thin, self._sets, coded, weights, w
        )
        params = found.params
        outputs = objective.balanced_outputs(thin)
        axes = max_axes(params.values, params.directions, w, outputs, gamma)
        # scores are F (w + gamma)^-1/2 E sqrt(values), functions V (w / (w + gamma))^1/2 E B
        ratio = float(np.sqrt(w[0] / thin.values[0]))
        slopes = ratio * params.coefficients / np.sqrt(params.values)[:, None]
        return _Climbed(axes, found, Margins(slopes, params.intercepts, targets))

    def _publish_climb(self, found: Fit | None) -> None:
        """How a fit by steps went; there is none by the closed form."""
        self.n_iter_ = 1 if found is None else found.n_iter
        self.stop_reason_ = "converged" if found is None else found.reason
        self.__dict__.pop("lower_bound_", None)
        if found is not None:
            self.lower_bound_ = float(found.objective)
            warn_if_not_converged(found, int(self.max_iter))

    @property
    def converged_(self) -> bool:
        """Whether the fit has converged, as one by the closed form always has."""
        check_is_fitted(self)
        return getattr(self, "stop_reason_", "converged") == "converged"

    def _publish_axes(self) -> None:
        """Attributes that follow from what a file holds; also after loading one."""
        projection = self._projection
        if isinstance(projection, LinearProjection):
            self.components_ = in_dtype(projection.matrix.T, self._dtype)
            self.mean_ = in_dtype(projection.mean, self._dtype)
        first = self._sets.sets[0].target
        if self._sets.single and first.task != "regression":
            self.classes_ = first.classes

    # ------------------------------------------------ asking

    def transform(self, X: Any) -> Array:
        """Scores of the rows, (n_samples, n_components)."""
        return self._scores(X)

    def predict(self, X: Any) -> Any:
        """Outputs of the rows, read off their scores, in the form in which y was given to ``fit``.

        Of classes that whose code is nearest; labels are 1 from one half on.
        """
        check_is_fitted(self)
        if self._margins is not None:
            return self._margins.answer("predict", self._sets, self._scores_of(X))
        return self._sets.answer(OutputSet.decode, self._expected_outputs(X))

    @available_if(_decides)
    def decision_function(self, X: Any) -> Any:
        """Scores of the classes (n_samples, n_classes), of two classes of the second (n_samples,).

        Of labels: by how much the expected output exceeds one half, (n_samples, n_labels). With
        another loss than 'squared' the margins; of grades the function that passes the thresholds.
        """
        check_is_fitted(self)
        if self._margins is not None:
            return self._margins.answer("decide", self._sets, self._scores_of(X))
        return self._sets.answer(OutputSet.decide, self._expected_outputs(X))

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes (n_samples, n_classes), or of each label; loss='logistic'.

        They are those of a penalised regression on the scores, which draws them to the middle.
        """
        check_is_fitted(self)
        assert self._margins is not None
        return self._margins.answer("probabilities", self._sets, self._scores_of(X))

    def _scores_of(self, X: Any) -> Array:
        return np.asarray(self._scores(X), np.float64)

    def _expected_outputs(self, X: Any) -> Array:
        """Coded outputs (n, L) of the rows, read off their scores."""
        return self._concatenate_rows(X, _Outputs(self._projection, self._readout))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the classes (of all labels of a row at once), or R^2 of the outputs.

        Of several sets of outputs the mean. What is unknown of y does not count.
        """
        check_is_fitted(self)
        y = read_target(X, require_target(self, y))
        return self._sets.score(y, self.predict(X), sample_weight)

    # ------------------------------------------------ scikit-learn and files

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        sets = getattr(self, "_sets", None)
        task = self.task if isinstance(self.task, str) else "auto"
        if task == "auto" and sets is not None and sets.single:
            task = sets.sets[0].target.task
        return tag_target(tags, task)

    def _check_state(self) -> None:
        sizes = (self._projection.size, len(self._readout.slopes), len(self.eigenvalues_))
        fits = isinstance(self._sets, OutputSets) and len(set(sizes)) == 1
        if self._margins is not None:
            fits = fits and len(self._margins.slopes) == sizes[0]
        if not fits or (self.loss != "squared") != (self._margins is not None):
            raise ValueError("parameters of another shape than the settings declare")
        if not hasattr(self, "n_iter_"):  # a file from before there were losses
            self._publish_climb(None)
        self._publish_axes()


# ------------------------------------------------------------------ steps of the fit


def _share_beta(beta: Any, sets: OutputSets) -> tuple[float | None, Array]:
    """Beta of all outputs together (None if it is to be chosen), and shares of the sets."""
    count = len(sets.sets)
    if isinstance(beta, str):
        return None, np.full(count, 1 / count)
    if np.ndim(beta) == 0 and not isinstance(beta, dict):
        return float(beta), np.full(count, 1 / count)
    given = list(beta) if isinstance(beta, np.ndarray) else beta
    if sets.single:
        raise ValueError(
            f"beta={beta!r} is for several sets of outputs (y a list or dict of arrays), "
            "but y is one; give one number"
        )
    each = np.array(sets.list_entries(given, "beta"), float)
    total = float(each.sum())
    if total > 1 + 1e-12:
        raise ValueError(f"the entries of beta must sum to at most 1, got {beta!r}")
    return min(total, 1.0), each / total if total > 0 else np.full(count, 1 / count)


@dataclass(frozen=True, slots=True)
class _Objective:
    """What the axes are to be, by the parameters of MORP.

    ``shares`` (S,) says how much each set of outputs counts, and ``sizes`` how many columns it has.
    """

    form: str
    n_components: int
    regularization: float | None
    smoothing: float | None
    balance: bool
    shares: Array
    sizes: list[int]

    def axes(self, thin: ThinSVD, beta: float, regularization: float | None = None) -> MorpAxes:
        """The axes at these settings, in coordinates of the features as they are."""
        w, C, squares = self._balance_output_sets(thin)
        gamma = self.choose_regularization(thin, regularization)
        if self.form == "max":
            return max_form(w, C, beta, gamma, self.n_components)
        if beta >= 1:
            raise ValueError(
                f"form='inverse' needs beta < 1, got {beta:g}; use form='max', or a smaller beta"
            )
        if beta > 0:
            check_spanned(C, squares)
        ridge = self._usual(thin) if self.smoothing is None else float(self.smoothing)
        return inverse_form(w, C, beta, gamma, ridge, self.n_components)

    def choose_regularization(self, thin: ThinSVD, regularization: float | None = None) -> float:
        """That which is tried, or else that of the user, or else the usual one of the form."""
        given = self.regularization if regularization is None else regularization
        if self.form == "max":
            return float(self._usual(thin) if given is None else given)
        return float(given or 0.0)

    def _usual(self, thin: ThinSVD) -> float:
        usual: float = _SHARE * self.input_values(thin).sum() / thin.weight
        return usual

    def input_values(self, thin: ThinSVD) -> Array:
        """Eigenvalues of Gx, which is divided by its trace if so wished."""
        return thin.values / thin.trace if self.balance else thin.values

    def spanned_share(self, thin: ThinSVD) -> float:
        """The share of the outputs that functions of x can have at all."""
        _, C, squares = self._balance_output_sets(thin)
        total = float(squares.sum())
        return float((C**2).sum()) / total if total > 0 else 0.0

    def balanced_outputs(self, thin: ThinSVD) -> Array:
        """V'Y of the coded outputs, as much as they count."""
        return self._balance_output_sets(thin)[1]

    def _balance_output_sets(self, thin: ThinSVD) -> tuple[Array, Array, Array]:
        """Eigenvalues of Gx, V'Y and squares of Y; YY' is the sum of all Gy as much as they count.

        Each of these is divided by its trace, if so wished.
        """
        which = np.repeat(np.arange(len(self.shares)), self.sizes)
        scale = self.shares[which]
        if self.balance:
            traces = np.bincount(which, thin.squares, minlength=len(self.shares))
            scale = scale / np.where(traces > 0, traces, 1.0)[which]
        return self.input_values(thin), thin.outputs * np.sqrt(scale), thin.squares * scale


@dataclass(frozen=True, slots=True)
class _Climbed:
    """Axes that a loss has found, how, and what is read off the scores."""

    axes: MorpAxes
    fit: Fit
    found: Margins

    def margins(self, turn: Array) -> Margins:
        """For scores that were multiplied by ``turn``."""
        return replace(self.found, slopes=self.found.slopes / turn[:, None])


@dataclass(frozen=True, slots=True)
class _Outputs:
    """Coded outputs of a block, read off its scores; picklable."""

    projection: Projection
    readout: Readout

    def __call__(self, block: Block) -> Array:
        return match_dtype(self.readout(self.projection(whole_rows(block))), block)
