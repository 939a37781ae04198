"""MixtureSearch: how many components, and of which kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator, DensityMixin, MetaEstimatorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array
from mixfold.engine.random import seed_from
from mixfold.estimators.mixtures.bootstrap import (
    LikelihoodRatioTest,
    bootstrap_lrt,
    check_testable,
)
from mixfold.estimators.search import results
from mixfold.estimators.search.candidates import (
    SIZE,
    Setting,
    name_estimators,
    settings,
    sizes_of,
)
from mixfold.estimators.search.fits import Fitted, Worker, fit_all, hold_out
from mixfold.estimators.search.gaps import check_gaps, measure_gaps
from mixfold.estimators.search.growth import Growth, fit_until_worse
from mixfold.estimators.search.notes import (
    describe_caveats,
    describe_compared_columns,
    describe_redundant_columns,
    describe_rows,
)
from mixfold.estimators.search.one_population import describe_one_population
from mixfold.estimators.search.predictive import (
    check_comparable,
    classes_of_rows,
    learns_from_y,
)
from mixfold.estimators.search.results import CRITERIA, HELD_OUT
from mixfold.estimators.search.rows import Rows, check_in_memory, count_rows, folds
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.estimators.shell.parameters import rules_of
from mixfold.estimators.shell.reported import Reported

# folds, if rows are to be held out and nobody says how
_FOLDS = 5
# a p-value above this ends a sequence of tests
_LEVEL = 0.05

_CV = "an int >= 2, a share between 0 and 1, an object with split or pairs of row numbers"


def _is_cv(value: Any) -> bool:
    if isinstance(value, bool | str):
        return False
    if isinstance(value, Real):
        return int(value) >= 2 if isinstance(value, Integral) else 0 < float(value) < 1
    return hasattr(value, "split") or isinstance(value, Iterable)


def _best_has(name: str) -> Callable[[Any], bool]:
    """Available where the best estimator (before the fit: every candidate) has the method."""

    def check(search: Any) -> bool:
        best = getattr(search, "best_estimator_", None)
        asked = [best] if best is not None else name_estimators(search.estimator).values()
        for model in asked:
            getattr(model, name)
        return True

    return check


class MixtureSearch(Reported, MetaEstimatorMixin, DensityMixin, BaseEstimator):
    """Search the number of components, and the kind of mixture, by one criterion.

    Every setting is fitted to all rows; one table says how each did, and the best is kept, ready
    to use. Gaussian mixtures are also started from the mixture with fewer components, one of them
    split in two, and the better result is kept: the likelihood does not fall as components are
    added. A fit in which a component collapsed on a few rows cannot win by BIC, AIC or ICL, which
    would take it for a good one; a fit that fails is a row of the table with its message.

    Parameters
    ----------
    estimator : estimator, list or dict of estimators, default=None
        The mixture or mixtures to compare: any with a parameter ``n_components``, also
        SupervisedPPCA (factors), SupervisedMixtureOfPPCA and MixtureOfFactorModels. Names of a dict
        appear in the table. None is :class:`GaussianMixture`, with ``param_grid`` None in the
        kinds 'full', 'tied', 'diag' and 'tied-diag', on which units have no influence. Likelihoods
        can only be compared if they speak of the same thing: densities with densities, counts with
        counts.
    param_grid : dict or list of dicts, default=None
        Other parameters and the values to try, as in :class:`sklearn.model_selection.GridSearchCV`,
        such as ``{"covariance_type": ["full", "diag"]}`` or ``{"n_factors": [1, 2, 3]}``. With
        several estimators a parameter goes to all that have it, or to one as ``name__parameter``.
    n_components : int or sequence of int, default=None
        Numbers of components to try; None is 1 to 9.
    criterion : {'bic', 'aic', 'icl', 'held-out', 'bound', 'log-loss', 'squared-error', 'gap'}, \
default='bic'
        What decides. 'bic': likelihood less what parameters cost; 'aic': they cost less; 'icl':
        BIC that prefers components which are apart; 'held-out': log-density of rows that the fit
        has not seen; 'bound': the variational bound on the evidence, for Bayesian estimators.
        Of supervised estimators 'bic' and 'aic' are those of rows with their outputs, and
        'held-out' is the log-density of both; 'log-loss': minus the log-probability of known
        outputs of rows that the fit has not seen; 'squared-error': of numbers and counts, in
        the units in which the model has them. 'gap': how much less rows disperse within clusters
        than those of tables without clusters do (see :func:`gap_statistic`): of each kind the
        fewest components whose gap is not more than a standard error below the next one's, then
        the largest gap. Rows in memory.
    cv : int, float, splitter or pairs of row numbers, default=None
        How rows are held out: number of folds, the share of one set (0 to 1), or as in
        scikit-learn. None: 5 folds if they decide, none otherwise. Classes in y are spread evenly
        over folds, and the only row of a class is not held out. Needs rows in memory. These
        fits make starts of their own, without the rows held out.
    split_starts : bool, default=True
        Try starts made from smaller mixtures, for estimators that take ``means_init``.
    patience : int, default=None
        Fit from few components to many and end each kind after so many numbers in a row that were
        no better than the best before them: the table has fewer rows. Gaussian mixtures are then
        started from the smaller ones alone, save the best and those that are near it, which have
        starts of their own as well. None fits all of them. Not with criterion 'held-out', nor
        with ``cv``.
    allow_degenerate : bool, default=False
        Let a fit win by BIC, AIC or ICL in which a variance was held at its floor or a component
        was given up: its likelihood may say how small the floor is rather than how good the fit.
        If all fits are such, the best of them is kept, with a warning.
    test : int, default=None
        Number of tables for bootstrap likelihood-ratio tests (see :func:`bootstrap_lrt`) of the
        winning kind: each number of components against the next, from the smallest on, until a
        p-value exceeds 0.05. They are reported; the criterion decides.
    n_effective : float, default=None
        Number of independent rows that the table is worth, for 'bic', 'aic' and 'icl'. None: as
        many as the weights add up to, since a weight says how often a row counts. Give it where
        weights only say how much rows count beside each other, or where rows are copies.
    n_references : int, default=10
        Tables without clusters that are drawn for criterion 'gap'; every setting is fitted to each.
    attribute_weights : 'variance', array-like of shape (n_features,) or None, default=None
        For criterion 'gap': weights of the columns in the squared distances of rows from the means
        of their clusters, as in :func:`gap_statistic`. None: all 1.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers. It is the
        seed of the folds, of the tests, and of the estimators that have none of their own.
    verbose : int, default=0
        1 tells of each fit.
    n_jobs : int, default=None
        Settings that are fitted at the same time, each by a single thread. None or 1: one after
        the other, each by all cores, which is better for large data. The result is the same.

    Attributes
    ----------
    results_ : dict of columns
        One row per setting: 'estimator', 'label', 'n_components', 'param_...', 'log_likelihood',
        'n_parameters', 'bic', 'aic', 'icl', 'bound', 'held_out' (mean per row) and 'held_out_se',
        'log_loss' and 'squared_error' with '_se' (of supervised estimators, where rows were held
        out), 'gap' and 'gap_se' (by that criterion), 'lrt' and 'p_value' (against the next smaller
        one), 'n_iter', 'converged', 'degenerate', 'events', 'start' ('own' or 'split'), 'seconds',
        'error', 'params', and 'delta': how much worse than the best, NaN for what cannot win.
    best_index_ : int
        Row of the best setting.
    best_params_ : dict
    best_score_ : float
        Its criterion.
    best_estimator_ : estimator
        Fitted to all rows.
    estimators_ : list of estimators
        All fits, in the order of the table; None where it failed.
    tests_ : list of LikelihoodRatioTest
        In the order in which they were made.
    notes_ : list of str
        What to know before believing the choice: columns that were set aside, an outlier with a
        component of its own, fits that cannot be compared, weights that are no frequencies, copied
        rows, and groups that are the skewness or the tails of one population, with the change of
        scale after which one group is enough.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Fraley, Raftery. Model-based clustering, discriminant analysis, and density estimation.
       JASA 97, 2002.
    .. [2] Biernacki, Celeux, Govaert. Assessing a mixture model for clustering with the integrated
       completed likelihood. IEEE TPAMI 22, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import GaussianMixture, MixtureSearch
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) + 8 * rng.integers(0, 3, size=(300, 1))
    >>> grid = {"covariance_type": ["full", "spherical"]}
    >>> search = MixtureSearch(GaussianMixture(), grid, n_components=range(1, 6), random_state=0)
    >>> search.fit(X).best_params_
    {'n_components': 3, 'covariance_type': 'spherical'}
    >>> search.predict(X).shape
    (300,)
    >>> from mixfold.plots import plot_search
    >>> ax = plot_search(search)
    """

    _constraints: ClassVar[rule.Constraints] = {
        **rules_of("verbose"),
        "criterion": (rule.one_of(CRITERIA),),
        "cv": (rule.nothing(), rule.Rule(_CV, _is_cv)),
        "split_starts": (rule.boolean(),),
        "patience": (rule.nothing(), rule.integer(1)),
        "allow_degenerate": (rule.boolean(),),
        "test": (rule.nothing(), rule.integer(1)),
        "n_effective": (rule.nothing(), rule.number(1, open_end=True)),
        "n_references": (rule.integer(2),),
    }

    def __init__(
        self,
        estimator: Any = None,
        param_grid: Any = None,
        *,
        n_components: Any = None,
        criterion: str = "bic",
        cv: Any = None,
        split_starts: bool = True,
        patience: int | None = None,
        allow_degenerate: bool = False,
        test: int | None = None,
        n_effective: float | None = None,
        n_references: int = 10,
        attribute_weights: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.n_components = n_components
        self.criterion = criterion
        self.cv = cv
        self.split_starts = split_starts
        self.patience = patience
        self.allow_degenerate = allow_degenerate
        self.test = test
        self.n_effective = n_effective
        self.n_references = n_references
        self.attribute_weights = attribute_weights
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    # ------------------------------------------------ fitting

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Self:
        """Fit every setting and keep the best.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            As the estimators take it. Held-out rows need data in memory.
        y : as in the estimators
            Of supervised ones, what they learn to predict, unknown entries too; of others ignored.
        sample_weight : array-like of shape (n_samples,) or str, optional
            As in the estimators.
        component_labels : array-like of shape (n_samples,) or str, optional
            As in the estimators.

        Returns
        -------
        self
        """
        rule.check(type(self).__name__, self.get_params(deep=False), self._constraints)
        found = settings(self.estimator, self.param_grid, self.n_components)
        worker = Worker.of(self.n_jobs, seed_from(self.random_state), int(self.verbose))
        supervised = check_comparable(name_estimators(self.estimator), self.criterion)
        rows = Rows(count_rows(X), sample_weight, component_labels, y if supervised else None)
        self._check_test(found, component_labels, supervised)
        if self.criterion == "gap":
            check_gaps(rows, found, self.patience)
        divided = self._divide_rows(rows, worker.seed)
        with worker.quiet():
            fits = self._fit_settings(found, rows, worker)
            if divided:
                fits = hold_out(fits, rows, divided, worker)
            if self.criterion == "gap":
                number = int(self.n_references)
                fits = measure_gaps(fits, rows, worker, number, self.attribute_weights)
        self.results_ = results.build_table(fits, self.criterion, self.allow_degenerate)
        self._publish(fits)
        self.notes_ = describe_caveats(fits, self.best_index_, self.criterion)
        self.notes_ += describe_redundant_columns(self.best_estimator_, rows)
        self.notes_ += describe_compared_columns(self.best_estimator_, rows)
        if self.n_effective is None:
            self.notes_ += describe_rows(self.best_estimator_, rows, self.criterion)
        if self.criterion != "bound" and not supervised:
            best = self.best_estimator_
            self.notes_ += describe_one_population(best, rows, self.n_effective)
        self.tests_: list[LikelihoodRatioTest] = []
        if self.test is not None:
            self._test(fits, rows, worker, self.test)
        self._warn_about_best()
        return self

    def _fit_settings(self, found: list[Setting], rows: Rows, worker: Worker) -> list[Fitted]:
        """All settings, or those up to where more components are no better."""
        if self.patience is None:
            return fit_all(found, rows, worker, self.split_starts, self.n_effective)
        growth = Growth(
            self.criterion,
            int(self.patience),
            bool(self.split_starts),
            self.n_effective,
            bool(self.allow_degenerate),
        )
        return fit_until_worse(found, rows, worker, growth)

    def _check_test(self, found: list[Setting], labels: Any, supervised: bool) -> None:
        """What cannot be tested is told before the fits, not after them."""
        if supervised and labels is not None:
            raise ValueError(
                "component_labels are for mixtures without outputs; leave them out, and give y"
            )
        if self.test is None:
            return
        if labels is not None:
            raise ValueError(
                "test draws tables whose rows have no known components: leave out "
                "component_labels, or set test=None"
            )
        if supervised:
            raise ValueError(
                "test compares mixtures of X alone, and these estimators learn from y; set "
                "test=None, and criterion='log-loss' to choose by held-out rows"
            )
        for setting in found:
            check_testable(f"estimator {setting.name!r}", setting.estimator)

    def _divide_rows(self, rows: Rows, seed: int) -> list[tuple[Array, Array]]:
        """Rows to fit and rows to hold out, none unless they were asked for or decide."""
        cv = _FOLDS if self.cv is None and self.criterion in HELD_OUT else self.cv
        if cv is not None and self.patience is not None:
            raise ValueError(
                f"patience={self.patience} ends a search before rows are held out: set "
                "patience=None, or cv=None and criterion='bic', 'aic', 'icl' or 'bound'"
            )
        if cv is None:
            return []
        check_in_memory(rows.X)
        return folds(rows.X, cv, seed, classes_of_rows(rows.X, rows.y))

    def _publish(self, fits: list[Fitted]) -> None:
        self.estimators_ = [fit.model for fit in fits]
        self.best_index_ = results.best_row(self.results_, self.criterion)
        self.best_estimator_ = self.estimators_[self.best_index_]
        self.best_params_ = dict(self.results_["params"][self.best_index_])
        column, _ = CRITERIA[self.criterion]
        self.best_score_ = float(self.results_[column][self.best_index_])
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))

    def _test(self, fits: list[Fitted], rows: Rows, worker: Worker, n_bootstrap: int) -> None:
        """Each number of components of the winning kind against the next, until one suffices."""
        best = fits[self.best_index_]
        # the likelihood of a fit at the floor is not comparable to that of one that is not
        own = [
            i
            for i, fit in enumerate(fits)
            if fit.setting.group == best.setting.group
            and fit.model is not None
            and fit.sound == best.sound
        ]
        for small, large in pairwise(own):
            result = bootstrap_lrt(
                fits[small].model,
                fits[large].model,
                rows.X,
                n_bootstrap,
                worker.seed,
                sample_weight=rows.weight,
                n_jobs=worker.n_jobs,
            )
            few, many = fits[small].setting.n_components, fits[large].setting.n_components
            worker.say(f"test of {few} against {many} components: p = {result.p_value:.3g}")
            self.tests_.append(result)
            self.results_["lrt"][large] = result.statistic
            self.results_["p_value"][large] = result.p_value
            if result.p_value > _LEVEL:
                return

    def _warn_about_best(self) -> None:
        """Warnings of the fit that is kept; those of the others are in the table."""
        said = {event.message for event in getattr(self.best_estimator_, "events_", ())}
        for words in self.notes_:
            warn(words, DegenerateWarning if words in said else UserWarning)
        what = f"the best setting, {self.best_params_},"
        if self.results_["degenerate"][self.best_index_]:
            warn(
                f"{what} is degenerate ({self.results_['events'][self.best_index_]}): its "
                "likelihood may say how small the floor of a variance is; see events_ of "
                "best_estimator_, or try fewer components or fewer parameters",
                DegenerateWarning,
            )
        if not self.results_["converged"][self.best_index_]:
            warn(
                f"{what} did not converge; raise max_iter (of samplers burn_in and n_draws)",
                ConvergenceWarning,
            )

    # ------------------------------------------------ the table

    def to_frame(self) -> Any:
        """``results_`` as a pandas DataFrame."""
        check_is_fitted(self)
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas: install mixfold[tables], or use results_, a dict of columns"
            ) from error
        return pandas.DataFrame(self.results_)

    def summary(self) -> str:
        """The settings as a short text, best first."""
        check_is_fitted(self)
        text = results.summary(self.results_, self.criterion, self.best_index_)
        tested = [
            f"{size} components against fewer: p = {p:.3g}"
            for size, p in zip(self.results_[SIZE], self.results_["p_value"], strict=True)
            if p == p
        ]
        return "\n".join([text, *tested, *(f"note: {words}" for words in self.notes_)])

    # ------------------------------------------------ answers of the best estimator

    @property
    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    @available_if(_best_has("predict"))
    def fit_predict(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Array:
        """Fit, then ``predict``."""
        found: Array = self.fit(X, y, sample_weight, component_labels).predict(X)
        return found

    @available_if(_best_has("predict"))
    def predict(self, X: Any) -> Array:
        """The most probable component of each row, or its y, by the best estimator."""
        found: Array = self._best.predict(X)
        return found

    @available_if(_best_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Probability of each component, or of each class, for each row, by the best estimator."""
        found: Array = self._best.predict_proba(X)
        return found

    @available_if(_best_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of ``predict_proba``."""
        found: Array = self._best.predict_log_proba(X)
        return found

    @available_if(_best_has("score_samples"))
    def score_samples(self, X: Any, y: Any = None) -> Array:
        """Log density of each row, of supervised models with its known outputs y."""
        outputs = {} if y is None or not learns_from_y(self._best) else {"y": y}
        found: Array = self._best.score_samples(X, **outputs)
        return found

    @available_if(_best_has("oddness"))
    def oddness(self, X: Any, by: str = "row", **options: Any) -> Array:
        """How odd rows are under the best estimator, comparable between rows: see its method."""
        found: Array = self._best.oddness(X, by, **options)
        return found

    @available_if(_best_has("score"))
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood per row, of supervised models the accuracy or R^2 of y."""
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        found: float = self._best.score(X, y, **weight)
        return found

    @available_if(_best_has("transform"))
    def transform(self, X: Any) -> Array:
        """Latents of the rows, if the best estimator has them."""
        found: Array = self._best.transform(X)
        return found

    @available_if(_best_has("transform"))
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, then give the latents of the rows, if the best estimator has them."""
        found: Array = self.fit(X, y, sample_weight).transform(X)
        return found

    @available_if(_best_has("combine"))
    def combine(self, n_clusters: int | None = None, **options: Any) -> Any:
        """The components of the best estimator as clusters: see its method."""
        return self._best.combine(n_clusters, **options)

    @available_if(_best_has("impute"))
    def impute(self, X: Any, method: str = "mean", random_state: Any = None) -> Array:
        """Fill the missing entries of X by the best estimator."""
        found: Array = self._best.impute(X, method, random_state)
        return found

    @available_if(_best_has("sample"))
    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draw new rows from the best estimator."""
        return self._best.sample(n_samples, random_state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``best_estimator_`` to a file; ``mixfold.load`` gives that estimator.

        The table of a search is not part of it: keep ``to_frame()`` if it is needed.
        """
        self._best.save(path)

    # ------------------------------------------------ scikit-learn

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [get_tags(e) for e in name_estimators(self.estimator).values()]
        tags.input_tags.sparse = all(tag.input_tags.sparse for tag in inner)
        tags.input_tags.allow_nan = all(tag.input_tags.allow_nan for tag in inner)
        if all(tag.transformer_tags is not None for tag in inner):
            tags.transformer_tags = inner[0].transformer_tags
        # as for the mixtures themselves: components are what classes are to a classifier
        tags.classifier_tags = ClassifierTags(multi_class=max(sizes_of(self.n_components)) > 2)
        return tags
