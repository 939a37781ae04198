"""Multi-output regularised projection."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array
from mixfold.engine.sources.targets import split_target
from mixfold.estimators.kernels.kernel_views import VIEW_RULES, require_y
from mixfold.estimators.kernels.morp_fit import MorpFit
from mixfold.estimators.mixtures.answers import shaped
from mixfold.estimators.outputs.output_sets import OutputSet, OutputSets
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.targets import TASKS
from mixfold.models.kernels.morp import FORMS
from mixfold.models.kernels.readout import Readout
from mixfold.models.kernels.views.rows import whole_rows


def _of_classes(estimator: Any) -> bool:
    """Whether there is something to decide: of one y, that is classes or labels."""
    sets = getattr(estimator, "_sets", None)
    tasks = [estimator.task] if sets is None else [one.target.task for one in sets.sets]
    if "regression" not in tasks:
        return True
    raise AttributeError(
        f"{type(estimator).__name__} decides on classes and labels only, not on numbers "
        "(task='regression'); use predict"
    )


def _is_beta(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return rule.number(0).holds(value) or (
        isinstance(value, list | tuple | np.ndarray)
        and len(value) > 0
        and all(rule.number(0).holds(one) for one in value)
    )


class MORP(MorpFit):
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
        Of 'rbf', 'laplacian' and 'poly'; None is one over the number of columns, 'scale' divides
        that by the variance of the entries.
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
    random_state : int, RandomState, Generator or None, default=None
        Of the landmarks and the folds.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited.
    n_jobs : int, default=None
        Number of threads; None means all cores.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        z'Kz, largest first.
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
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Yu, Yu, Tresp. Multi-output regularized feature projection. IEEE Transactions on
       Knowledge and Data Engineering 18, 2006.

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
    """

    _constraints: ClassVar[rule.Constraints] = {
        **VIEW_RULES,
        "beta": (
            rule.Rule("a number from 0 to 1", lambda v: rule.number(0).holds(v) and v <= 1),
            rule.one_of(["cv"]),
            rule.Rule("a list or dict of numbers >= 0, one per set of outputs", lambda v: not rule
                      .number(0).holds(v) and _is_beta(v)),
        ),
        "regularization": (rule.nothing(), rule.number(0)),
        "smoothing": (rule.nothing(), rule.number(0, open_end=True)),
        "form": (rule.one_of(FORMS),),
        "balance": (rule.boolean(),),
        "task": (rule.one_of(TASKS), rule.Rule("a list or dict of these",
                                               lambda v: isinstance(v, list | tuple | dict))),
        "standardize": (rule.one_of(["auto"]), rule.boolean()),
        "ridge": (rule.number(0),),
        "cv": (rule.integer(2), rule.splits()),
        "cv_grid": (rule.nothing(), rule.Rule("a dict", lambda v: isinstance(v, dict))),
    }  # fmt: skip
    _stored: ClassVar[tuple[str, ...]] = (
        *MorpFit._stored, "_sets", "_readout", "eigenvalues_", "explained_variance_ratio_",
        "explained_output_ratio_", "beta_", "regularization_", "cv_results_",
    )  # fmt: skip

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
        random_state: Any = None,
        executor: Any = "threads",
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.output_kernel = output_kernel
        self.output_gamma = output_gamma
        self.beta = beta
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
        self.random_state = random_state
        self.executor = executor
        self.n_jobs = n_jobs

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
            Weight 2 equals repeating the row (unless landmarks are drawn), weight 0 leaving it out.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._fitted_scores(X, y, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """``fit(X, y).transform(X)``, without visiting the rows once more."""
        self._check_parameters()
        return self._fitted_scores(X, y, sample_weight).astype(self._dtype)

    # ------------------------------------------------ asking

    def transform(self, X: Any) -> Array:
        """Scores of the rows, (n_samples, n_components)."""
        return self._scores(X)

    def _outputs(self, X: Any) -> Array:
        return self._stacked(X, _Read(self._projection, self._readout))

    def predict(self, X: Any) -> Any:
        """Outputs of the rows, read off their scores, in the form in which y was given to ``fit``.

        Of classes that whose code is nearest; labels are 1 from one half on.
        """
        check_is_fitted(self)
        return self._sets.joined(OutputSet.predicted, self._outputs(X))

    @available_if(_of_classes)
    def decision_function(self, X: Any) -> Any:
        """Scores of the classes (n_samples, n_classes), of two classes of the second (n_samples,).

        Of labels: by how much the expected output exceeds one half, (n_samples, n_labels).
        """
        check_is_fitted(self)
        return self._sets.joined(OutputSet.decided, self._outputs(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the classes (of all labels of a row at once), or R^2 of the outputs.

        Of several sets of outputs the mean. What is unknown of y does not count.
        """
        check_is_fitted(self)
        y = split_target(X, y)[0] if isinstance(y, str) else require_y(type(self).__name__, y)
        return self._sets.score(y, self.predict(X), sample_weight)

    # ------------------------------------------------ scikit-learn and files

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        sets = getattr(self, "_sets", None)
        task = self.task if isinstance(self.task, str) else "auto"
        if task == "auto" and sets is not None and sets.single:
            task = sets.sets[0].target.task
        tags.target_tags.multi_output = task in ("multilabel", "regression", "auto")
        tags.classifier_tags = ClassifierTags(multi_label=task == "multilabel")
        tags.regressor_tags = RegressorTags()
        kinds = {"auto": None, "regression": "regressor"}
        tags.estimator_type = kinds.get(task, "classifier")
        return tags

    def _check_state(self) -> None:
        sizes = (self._projection.size, len(self._readout.slopes), len(self.eigenvalues_))
        if not isinstance(self._sets, OutputSets) or len(set(sizes)) > 1:
            raise ValueError("parameters of another shape than the settings declare")
        self._publish_axes()


class _Read:
    """Outputs of a block; picklable."""

    def __init__(self, projection: Any, readout: Readout) -> None:
        self.projection, self.readout = projection, readout

    def __call__(self, block: Any) -> Array:
        return shaped(self.readout(self.projection(whole_rows(block))), block)
