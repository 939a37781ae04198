"""A classifier of densities: one model for each class, and the rule of Bayes."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array
from mixfold.engine.executors.threads import count_threads
from mixfold.engine.random import seed_from
from mixfold.estimators.mixtures.class_answers import ClassAnswers, drawn_rows
from mixfold.estimators.mixtures.class_files import ClassFiles
from mixfold.estimators.mixtures.class_rows import ClassRows, fit_rows
from mixfold.estimators.mixtures.class_targets import (
    check_density,
    check_novelty_label,
    check_settings,
    class_numbers,
    class_rows,
    priors_of,
)
from mixfold.estimators.mixtures.iterates import (
    best_iterate,
    check_splits,
    iterate_accuracies,
    splits_of,
)
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import MixfoldEstimator


def _has(method: str) -> Any:
    def check(classifier: Any) -> bool:
        return hasattr(classifier._base(), method)

    return check


class MixtureClassifier(ClassAnswers, ClassFiles, ClassifierMixin, MetaEstimatorMixin,
                        MixfoldEstimator):  # fmt: skip
    """A density for each class; rows go to the class with the highest posterior probability.

        p(class | x) proportional to priors[class] p(x | class)

    Parameters
    ----------
    estimator : estimator, default=None
        What is fitted to the rows of each class: any mixture or factor model of mixfold,
        :class:`MLiT`, or another estimator with ``fit`` and ``score_samples``. None is a
        :class:`GaussianMixture` of one component. Rows may have missing entries if it takes them.
    priors : {'uniform', 'empirical'}, array-like, dict or Series, default='uniform'
        Probabilities of the classes: all the same, their shares (by weight) of the training rows,
        values in the order of ``classes_``, or values by class. Values are divided by their sum.
    settings : dict, default=None
        Parameters that differ by class: ``{class: {parameter: value}}``.
    novelty : float, default=None
        Share between 0 and 1 of the training rows that may be called novel: a row is novel if its
        log density under its most probable class is below that quantile of the training rows of
        that class. ``predict`` calls such rows ``novelty_label``.
    novelty_label : default=None
        None means -1 among numbers and 'novel' among texts, neither of which may then be a class.
    cv : int, splitter or pairs of row numbers, default=5
        Folds by which the iterate is chosen, as in scikit-learn, of estimators that keep them all
        (:class:`MLiT` with ``iterate=None`` and a method without a maximum).
    paper_protocol : bool, default=False
        Also publish the accuracy of the chosen iterate in the very folds that chose it, as
        ``paper_score_``. That is how Piccardi et al. (2011) report it for MLiT, and it is too
        high; the score of a cross-validation around the classifier is not.
    random_state : int, RandomState, Generator or None, default=None
        Seed; each class has its own stream of it.
    verbose : int, default=0
        1 tells which class is being fitted.
    n_jobs : int, default=None
        Number of threads; classes are fitted side by side. None means all cores.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimators_ : list of fitted estimators, in the order of ``classes_``
        None for a class that ``partial_fit`` announced and that has not been seen yet.
    priors_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
        Weight of the training rows of each class.
    novelty_threshold_ : ndarray of shape (n_classes,), only with ``novelty``
    iterate_ : int
        The iterate that answers, if it was chosen here; ``iterate_scores_`` (cv, n_iterates) holds
        the accuracies that decided.
    paper_score_ : tuple of float, only with ``paper_protocol``
        Mean and standard deviation over the folds.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Hastie, Tibshirani. Discriminant analysis by Gaussian mixtures. JRSS B 58, 1996.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from mixfold import MixtureClassifier, MixtureOfPPCA
    >>> X, y = load_iris(return_X_y=True)
    >>> X[::7, 1] = np.nan  # rows with missing entries are rows
    >>> model = MixtureClassifier(MixtureOfPPCA(1, 2), random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.predict_proba(X[:2]).shape, model.sample(3, label=1)[0].shape
    ((2, 3), (3, 4))
    """

    _constraints: ClassVar[rule.Constraints] = {
        "priors": (rule.one_of(["uniform", "empirical"]), rule.values()),
        "novelty": (rule.nothing(), rule.share()),
        "cv": (rule.integer(2), rule.splits()),
        "paper_protocol": (rule.boolean(),),
        "verbose": (rule.integer(0), rule.boolean()),
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        priors: Any = "uniform",
        settings: dict[Any, dict[str, Any]] | None = None,
        novelty: float | None = None,
        novelty_label: Any = None,
        cv: int = 5,
        paper_protocol: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.priors = priors
        self.settings = settings
        self.novelty = novelty
        self.novelty_label = novelty_label
        self.cv = cv
        self.paper_protocol = paper_protocol
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    def _base(self) -> Any:
        """The estimator of a class, not fitted."""
        if self.estimator is not None:
            return self.estimator
        from mixfold.estimators.mixtures.gaussian_mixture import GaussianMixture

        return GaussianMixture()

    # ------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit a model to the rows of each class.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            As the estimator takes it.
        y : array-like of shape (n_samples,), or str
            Classes: numbers or text, each of them known. For tables and files also the name of a
            column, which is then not a feature.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out.

        Returns
        -------
        self
        """
        self._check_parameters()
        check_density(self._base())
        rows, self.classes_ = class_rows(self, X, y, sample_weight)
        check_settings(self.settings, self.classes_, self._base())
        if self.novelty is not None:
            check_novelty_label(self.novelty_label, self._novelty_label(), self.classes_)
        self._seed = seed_from(self.random_state)
        self.class_weight_ = rows.weigh(len(self.classes_))
        self.priors_ = priors_of(self.priors, self.classes_, self.class_weight_)
        self.estimators_ = self._fitted(rows)
        self._choose_iterate(rows)
        self._learn_novelty(rows)
        return self

    def _fresh(self, number: int, alone: bool) -> Any:
        """The estimator of a class, with its settings, seed and share of the threads."""
        estimator = clone(self._base())
        names = estimator.get_params(deep=False)
        given: dict[str, Any] = {}
        if names.get("random_state", 0) is None:
            mixed = np.random.SeedSequence([self._seed % 2**63, number])
            given["random_state"] = int(mixed.generate_state(1)[0] >> 1)
        if "n_jobs" in names and names["n_jobs"] is None:
            given["n_jobs"] = 1 if alone else self.n_jobs
        label = self.classes_.tolist()[number]
        return estimator.set_params(**given, **(self.settings or {}).get(label, {}))

    def _fitted(self, rows: ClassRows, among: Array | None = None) -> list[Any]:
        """A model for each class, of the rows that may be seen."""
        n_classes, threads = len(self.classes_), count_threads(self.n_jobs)
        side_by_side = rows.in_memory and threads > 1 and n_classes >= threads
        one = delayed(self._fit_class) if side_by_side else self._fit_class
        tasks = (one(rows, number, among, side_by_side) for number in range(n_classes))
        if side_by_side:
            return list(Parallel(threads, prefer="threads")(tasks))
        return list(tasks)

    def _fit_class(self, rows: ClassRows, number: int, among: Array | None, alone: bool) -> Any:
        if self.verbose and among is None:
            print(f"class {self.classes_.tolist()[number]!r}, {number + 1} of {len(self.classes_)}")
        try:
            return fit_rows(self._fresh(number, alone), *rows.of(number, among))
        except ValueError as error:
            error.add_note(f"while fitting class {self.classes_.tolist()[number]!r}")
            raise

    # ------------------------------------------------ iterates

    def _choose_iterate(self, rows: ClassRows) -> None:
        for name in ("iterate_", "iterate_scores_", "paper_score_"):
            self.__dict__.pop(name, None)
        first = self.estimators_[0]
        open_choice = getattr(first, "iterate", 0) is None and first.n_iterates_ > 1
        if not open_choice:
            return
        splits = splits_of(self.cv, rows, self._seed)
        check_splits(splits, rows, self.classes_)
        if not splits:  # nothing to compare iterates by: the start is what is never far off
            self.iterate_ = 0
        else:
            self.iterate_scores_ = iterate_accuracies(
                rows, lambda seen: self._fitted(rows, seen), self._log_priors(), splits
            )
            self.iterate_ = best_iterate(self.iterate_scores_)
            if self.paper_protocol:
                best = self.iterate_scores_[:, self.iterate_]
                self.paper_score_ = (float(best.mean()), float(best.std()))
        for model in self.estimators_:
            model.use_iterate(min(self.iterate_, model.n_iterates_ - 1))

    def _learn_novelty(self, rows: ClassRows) -> None:
        self.__dict__.pop("novelty_threshold_", None)
        if self.novelty is None:
            return
        thresholds = []
        for number, model in enumerate(self.estimators_):
            X, weight = rows.scored(rows.labels == number)
            scores = model.score_samples(X)
            # the one of these quantiles that knows weights: a score that some row has
            thresholds.append(
                np.quantile(scores, float(self.novelty), weights=weight, method="inverted_cdf")
            )
        self.novelty_threshold_ = np.array(thresholds)

    # ------------------------------------------------ streams

    @available_if(_has("partial_fit"))
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from one more batch; a class without rows in it is left as it is.

        Parameters
        ----------
        X, y
            As in ``fit``. A class needs as many rows when it is first seen as its estimator asks
            of a first batch.
        classes : array-like, optional
            All classes that may come; needed in the first call unless the batch has all of them.
        sample_weight
            As in ``fit``.

        Returns
        -------
        self
        """
        self._check_parameters()
        if self.novelty is not None:
            raise ValueError("novelty needs all training rows at once: use fit, or novelty=None")
        check_density(self._base())
        self.__dict__.pop("novelty_threshold_", None)  # that of a fit to other rows
        first = not hasattr(self, "estimators_")
        rows, found = class_rows(self, X, y, sample_weight, first)
        if first:
            self.classes_ = np.unique(found if classes is None else classes)
            self._seed = seed_from(self.random_state)
            self.estimators_ = [None] * len(self.classes_)
            self.class_weight_ = np.zeros(len(self.classes_))
            check_settings(self.settings, self.classes_, self._base())
        numbers = class_numbers(found[rows.labels], self.classes_)
        rows = ClassRows(rows.source, numbers, rows.weights, rows.in_memory)
        for number in np.unique(numbers):
            self._learn_class(rows, int(number))
        self.class_weight_ = self.class_weight_ + rows.weigh(len(self.classes_))
        self.priors_ = priors_of(self.priors, self.classes_, self.class_weight_)
        return self

    def _learn_class(self, rows: ClassRows, number: int) -> None:
        model = self.estimators_[number]
        model = self._fresh(number, alone=False) if model is None else model
        self.estimators_[number] = fit_rows(model, *rows.of(number), method="partial_fit")

    # ------------------------------------------------ draws

    @available_if(_has("sample"))
    def sample(
        self, n_samples: int = 1, label: Any = None, random_state: Any = None
    ) -> tuple[Array, Array]:
        """Draw rows, of one class or of all by their priors.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        rule.check_count("n_samples", n_samples)
        seed = seed_from(random_state)
        rng = np.random.default_rng(seed % 2**63)
        if label is None:
            drawn = rng.multinomial(n_samples, self._seen_priors())
        else:
            wanted = class_numbers(np.array([label]), self.classes_)[0]
            drawn = np.where(np.arange(len(self.classes_)) == wanted, n_samples, 0)
        parts = [
            drawn_rows(self._model_of(k), int(n), int(rng.integers(2**31)))
            for k, n in enumerate(drawn)
            if n
        ]
        return np.concatenate(parts), np.repeat(self.classes_, drawn)

    # ------------------------------------------------ scikit-learn

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        of_class = get_tags(self._base()).input_tags
        tags.input_tags.allow_nan = of_class.allow_nan
        tags.input_tags.sparse = of_class.sparse
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")
