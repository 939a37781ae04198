"""A classifier of densities: one model for each class, and the rule of Bayes."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Source
from mixfold.engine.executors.threads import count_threads
from mixfold.engine.random import seed_from
from mixfold.estimators.mixtures.class_rows import (
    ClassRows,
    fit_rows,
    open_class_rows,
    rebuild_errors,
    rebuilds_rows,
    score_rows,
)
from mixfold.estimators.mixtures.iterates import (
    best_iterate,
    check_splits,
    make_splits,
    score_iterates,
    staged_scores,
)
from mixfold.estimators.mixtures.mixture import MixtureEstimator
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import MixfoldEstimator
from mixfold.estimators.shell.packed import pack, unpack
from mixfold.estimators.shell.targets import find_class_numbers, read_target
from mixfold.math.softmax import log_normalised, normalise

# fitted attributes that a model file holds, besides the models of the classes
_STORED = (
    "classes_", "priors_", "class_weight_", "novelty_threshold_", "iterate_", "iterate_scores_",
    "paper_score_", "_seed", "n_features_in_", "feature_names_in_",
)  # fmt: skip


def _estimator_has(method: str) -> Any:
    """A check for ``available_if``: whether the estimator of the classes has a method."""

    def check(classifier: Any) -> bool:
        return hasattr(classifier._base(), method)

    return check


def _goes_by_density(classifier: Any) -> bool:
    """A check for ``available_if``: whether there are probabilities."""
    return bool(classifier.decision == "bayes")


class MixtureClassifier(ClassifierMixin, MetaEstimatorMixin, MixfoldEstimator):
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
    decision : {'bayes', 'reconstruction'}, default='bayes'
        'bayes': the class of the highest posterior probability. 'reconstruction': the class whose
        model rebuilds the row with the least squared error (PCA for each class, say, and for
        every model with planes the distance from the nearest one). The estimator then need not
        have a density, only ``reconstruct``, or ``transform`` and ``inverse_transform``; there
        are no probabilities and no priors, and ``novelty`` goes by errors.
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
        Seed; the same seed gives the same result for any number of threads or workers. Each class
        has its own stream of random numbers.
    verbose : int, default=0
        1 tells which class is being fitted.
    n_jobs : int, default=None
        Number of threads; None means all cores. Classes are fitted side by side.

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
    >>> from mixfold.plots import plot_pairs
    >>> panels = plot_pairs(model, X, model.predict(X))
    """

    _constraints: ClassVar[rule.Constraints] = {
        "priors": (rule.one_of(["uniform", "empirical"]), rule.values()),
        "decision": (rule.one_of(["bayes", "reconstruction"]),),
        "novelty": (rule.nothing(), rule.share()),
        "cv": (rule.integer(2), rule.splits()),
        "paper_protocol": (rule.boolean(),),
    }
    classes_: Array
    estimators_: list[Any]
    priors_: Array

    def __init__(
        self,
        estimator: Any = None,
        *,
        priors: Any = "uniform",
        decision: str = "bayes",
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
        self.decision = decision
        self.settings = settings
        self.novelty = novelty
        self.novelty_label = novelty_label
        self.cv = cv
        self.paper_protocol = paper_protocol
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

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
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._check_estimator()
        rows, self.classes_ = open_class_rows(self, X, y, sample_weight)
        _check_settings(self.settings, self.classes_, self._base())
        if self.novelty is not None:
            _check_novelty_label(self.novelty_label, self._novelty_label(), self.classes_)
        self._seed = seed_from(self.random_state)
        self.class_weight_ = rows.weigh_classes(len(self.classes_))
        self.priors_ = _make_priors(self.priors, self.classes_, self.class_weight_)
        self.estimators_ = self._fit_classes(rows)
        self._choose_iterate(rows)
        self._find_novelty_thresholds(rows)
        return self

    def _check_estimator(self) -> None:
        """Refuse what cannot tell classes apart in the way that is asked for."""
        if self.decision == "bayes":
            _check_density(self._base())
            return
        _check_estimator_object(self._base())
        if not rebuilds_rows(self._base()):
            raise TypeError(
                "with decision='reconstruction' the estimator must have reconstruct, or transform "
                f"and inverse_transform; {self._base()!r} has not. Use PPCA or MixtureOfPPCA, or "
                "decision='bayes'"
            )
        if not (isinstance(self.priors, str) and self.priors == "uniform"):
            raise ValueError(
                "priors play no part with decision='reconstruction', and must be 'uniform'; got "
                f"priors={self.priors!r}. Leave priors out, or use decision='bayes'"
            )

    def _base(self) -> Any:
        """The estimator of a class, not fitted."""
        if self.estimator is not None:
            return self.estimator
        from mixfold.estimators.mixtures.gaussian_mixture import GaussianMixture

        return GaussianMixture()

    def _make_estimator(
        self, number: int, source: Source, alone: bool, earlier: Sequence[Any] = ()
    ) -> Any:
        """The estimator of a class, with its settings, seed and share of the threads.

        ``source`` has the rows of all classes, ``earlier`` are models of others fitted before.
        """
        estimator = clone(self._base())
        names = estimator.get_params(deep=False)
        given: dict[str, Any] = {}
        if names.get("random_state", 0) is None:
            mixed = np.random.SeedSequence([self._seed % 2**63, number])
            given["random_state"] = int(mixed.generate_state(1)[0] >> 1)
        if "n_jobs" in names and names["n_jobs"] is None:
            given["n_jobs"] = 1 if alone else self.n_jobs
        label = self.classes_.tolist()[number]
        estimator.set_params(**given, **(self.settings or {}).get(label, {}))
        if isinstance(estimator, MixtureEstimator):
            # a column that is constant in one class tells it from the others
            estimator._keeps_all_columns = True
            # and so does a category that a class has not
            estimator._note_codes(source, earlier)
        return estimator

    def _fit_classes(self, rows: ClassRows, among: Array | None = None) -> list[Any]:
        """A model for each class, of the rows that may be seen."""
        n_classes, threads = len(self.classes_), count_threads(self.n_jobs)
        side_by_side = rows.in_memory and threads > 1 and n_classes >= threads
        one = delayed(self._fit_class) if side_by_side else self._fit_class
        tasks = (one(rows, number, among, side_by_side) for number in range(n_classes))
        if side_by_side:
            return list(Parallel(threads, prefer="threads")(tasks))
        return list(tasks)

    def _fit_class(self, rows: ClassRows, number: int, among: Array | None, alone: bool) -> Any:
        """The model of one class; ``alone`` where a thread of its own fits it."""
        if self.verbose and among is None:
            print(f"class {self.classes_.tolist()[number]!r}, {number + 1} of {len(self.classes_)}")
        try:
            estimator = self._make_estimator(number, rows.source, alone)
            return fit_rows(estimator, rows, rows.of_class(number, among))
        except ValueError as error:
            error.add_note(f"while fitting class {self.classes_.tolist()[number]!r}")
            raise

    def _choose_iterate(self, rows: ClassRows) -> None:
        """Choose the iterate that answers by folds, where the estimator leaves that open."""
        for name in ("iterate_", "iterate_scores_", "paper_score_"):
            self.__dict__.pop(name, None)
        first = self.estimators_[0]
        open_choice = getattr(first, "iterate", 0) is None and first.n_iterates_ > 1
        if not open_choice:
            return
        splits = make_splits(self.cv, rows, self._seed)
        check_splits(splits, rows, self.classes_)
        if not splits:  # nothing to compare iterates by: the start is what is never far off
            self.iterate_ = 0
        else:
            self.iterate_scores_ = score_iterates(
                rows, lambda seen: self._fit_classes(rows, seen), self._log_priors(), splits
            )
            self.iterate_ = best_iterate(self.iterate_scores_)
            if self.paper_protocol:
                best = self.iterate_scores_[:, self.iterate_]
                self.paper_score_ = (float(best.mean()), float(best.std()))
        for model in self.estimators_:
            model.use_iterate(min(self.iterate_, model.n_iterates_ - 1))

    def _find_novelty_thresholds(self, rows: ClassRows) -> None:
        """The log density of each class below which a row is novel."""
        self.__dict__.pop("novelty_threshold_", None)
        if self.novelty is None:
            return
        thresholds = []
        for number, model in enumerate(self.estimators_):
            X, weight = rows.to_score(rows.of_class(number))
            scores = self._score_by(model, X)
            # the one of these quantiles that knows weights: a score that some row has
            thresholds.append(
                np.quantile(scores, float(self.novelty), weights=weight, method="inverted_cdf")
            )
        self.novelty_threshold_ = np.array(thresholds)

    @available_if(_estimator_has("partial_fit"))
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
        self._check_estimator()
        self.__dict__.pop("novelty_threshold_", None)  # that of a fit to other rows
        first = not hasattr(self, "estimators_")
        rows, found = open_class_rows(self, X, y, sample_weight, first)
        if first:
            self.classes_ = np.unique(found if classes is None else classes)
            self._seed = seed_from(self.random_state)
            self.estimators_ = [None] * len(self.classes_)
            self.class_weight_ = np.zeros(len(self.classes_))
            _check_settings(self.settings, self.classes_, self._base())
        numbers = find_class_numbers(found[rows.labels], self.classes_)
        rows = ClassRows(rows.source, numbers, rows.weights, rows.in_memory)
        for number in np.unique(numbers):
            self._learn_class(rows, int(number))
        self.class_weight_ = self.class_weight_ + rows.weigh_classes(len(self.classes_))
        self.priors_ = _make_priors(self.priors, self.classes_, self.class_weight_)
        return self

    def _learn_class(self, rows: ClassRows, number: int) -> None:
        model = self.estimators_[number]
        if model is None:
            earlier = [one for one in self.estimators_ if one is not None]
            model = self._make_estimator(number, rows.source, alone=False, earlier=earlier)
        self.estimators_[number] = fit_rows(model, rows, rows.of_class(number), "partial_fit")

    # ------------------------------------------------ predictions

    @available_if(_goes_by_density)
    def score_samples(self, X: Any) -> Array:
        """Log density of each row, whatever its class: log sum_c priors_c p(x | c)."""
        return np.asarray(normalise(self._decision_scores(X))[0])

    @available_if(_goes_by_density)
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class given the row, (n_samples, n_classes).

        A row with density zero under every class has the priors.
        """
        return np.asarray(np.exp(self.predict_log_proba(X)))

    @available_if(_goes_by_density)
    def predict_log_proba(self, X: Any) -> Array:
        """Log probability of each class given the row, (n_samples, n_classes)."""
        joint = self._decision_scores(X)
        lost = ~np.isfinite(joint).any(axis=1)
        joint[lost] = self._log_priors()
        # far from all classes log densities are so large that log(sum) would vanish beside them
        joint -= joint.max(axis=1, keepdims=True)
        return log_normalised(joint)

    def predict(self, X: Any) -> Array:
        """The class of each row, by ``decision``; ``novelty_label`` for rows that are novel."""
        joint = self._decision_scores(X)
        best = np.argmax(joint, axis=1)
        if not hasattr(self, "novelty_threshold_"):
            return np.asarray(self.classes_[best])
        novel = self._is_below_threshold(joint, best)
        label = self._novelty_label()
        kinds = self.classes_.dtype, np.asarray(label).dtype
        text = [kind.kind in "US" for kind in kinds]
        # a number does not become a text beside one, nor the other way round
        dates = any(kind.kind in "Mm" for kind in kinds)
        alike = text[0] == text[1] and not dates
        kind = np.result_type(*kinds) if alike else np.dtype(object)
        return np.where(novel, np.asarray(label, dtype=kind), self.classes_[best].astype(kind))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the share of the rows that get their class.

        Parameters
        ----------
        X, y
            As in ``fit``: y may name a column of X.
        sample_weight : array-like of shape (n_samples,), optional
        """
        check_is_fitted(self)
        y = read_target(X, y)
        found = self.predict(X)
        if self.novelty is not None:  # the label of novel rows may be of any kind
            found = found.astype(object) == np.ravel(np.asarray(y)).astype(object)
            y = np.ones(len(found), bool)
        return float(accuracy_score(y, found, sample_weight=sample_weight))

    def is_novel(self, X: Any) -> Array:
        """Whether a row is less likely, or rebuilt less well, than its class makes it.

        See ``novelty``.
        """
        check_is_fitted(self)
        if not hasattr(self, "novelty_threshold_"):
            raise ValueError("set novelty to a share, such as 0.01, before the fit")
        joint = self._decision_scores(X)
        return self._is_below_threshold(joint, np.argmax(joint, axis=1))

    def staged_predict(self, X: Any) -> Array:
        """The class of each row by each iterate, (n_iterates, n_samples).

        Only of estimators that keep their iterates, such as :class:`MLiT`.
        """
        check_is_fitted(self)
        if not hasattr(self.estimators_[0], "staged_score_samples"):
            raise AttributeError(
                f"{type(self.estimators_[0]).__name__} does not keep iterates; "
                "MixtureClassifier(MLiT(...)) does. Use predict"
            )
        source = self._open(X, reset=False)
        scores = staged_scores(self.estimators_, source, self._log_priors())
        return np.asarray(self.classes_[scores.argmax(axis=0)])

    def reconstruction_errors(self, X: Any) -> Array:
        """Mean squared error over the seen entries of each row, by the model of each class.

        With decision='reconstruction' only, which goes by the least of them.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Infinite for a class that was never seen.
        """
        if self.decision != "reconstruction":
            raise AttributeError(
                "reconstruction_errors goes with decision='reconstruction', got decision="
                f"{self.decision!r}"
            )
        return np.asarray(-self._class_scores(X))

    def _score_by(self, model: Any, X: Any) -> Array:
        """What the model of a class says of rows (n,): log densities, or minus its errors."""
        return score_rows(model, X) if self.decision == "bayes" else -rebuild_errors(model, X)

    def _class_scores(self, X: Any) -> Array:
        """What each class says of rows (n, C); minus infinity for one that was never seen.

        That is log p(x | class), or minus the error of reconstruction, by ``decision``.
        """
        check_is_fitted(self)
        source = self._open(X, reset=False)
        columns: list[Any] = []
        for model in self.estimators_:
            if model is None:
                columns.append(-np.inf)
            else:
                columns.append(self._score_by(model, source))
        n = max(np.size(column) for column in columns)
        return np.stack([np.broadcast_to(column, n) for column in columns], axis=1)

    def _log_priors(self) -> Array:
        """Minus infinity for a class that cannot be; errors of reconstruction have no priors."""
        if self.decision == "reconstruction":
            return np.zeros(len(self.classes_))
        with np.errstate(divide="ignore"):
            return np.log(self.priors_)

    def _decision_scores(self, X: Any) -> Array:
        """log priors_c p(x | c), (n, C), or minus the errors of reconstruction."""
        return np.asarray(self._class_scores(X) + self._log_priors())

    def _is_below_threshold(self, joint: Array, best: Array) -> Array:
        """Whether the density of a row under its most probable class is below the threshold."""
        density = joint[np.arange(len(joint)), best] - self._log_priors()[best]
        return np.asarray(density < self.novelty_threshold_[best])

    def _novelty_label(self) -> Any:
        """What ``predict`` calls novel rows."""
        if self.novelty_label is not None:
            return self.novelty_label
        return "novel" if self.classes_.dtype.kind in "USO" else -1

    # ------------------------------------------------ draws

    @available_if(_estimator_has("sample"))
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
            wanted = find_class_numbers(np.array([label]), self.classes_)[0]
            drawn = np.where(np.arange(len(self.classes_)) == wanted, n_samples, 0)
        parts = [
            _draw_rows(self._model_of(k), int(n), int(rng.integers(2**31)))
            for k, n in enumerate(drawn)
            if n
        ]
        return np.concatenate(parts), np.repeat(self.classes_, drawn)

    def _model_of(self, number: int) -> Any:
        """The fitted model of a class; an error if none of its rows has been seen."""
        model = self.estimators_[number]
        if model is None:
            raise ValueError(
                f"no row of class {self.classes_.tolist()[number]!r} has been seen yet"
            )
        return model

    def _seen_priors(self) -> Array:
        """Priors of the classes that have been seen, which sum to one."""
        seen = self.priors_ * [model is not None for model in self.estimators_]
        return np.asarray(seen / seen.sum())

    # ------------------------------------------------ scikit-learn and files

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        of_class = get_tags(self._base()).input_tags
        tags.input_tags.allow_nan = of_class.allow_nan
        tags.input_tags.sparse = of_class.sparse
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    def _plain_parameters(self) -> dict[str, Any]:
        values = super()._plain_parameters()
        given = self.estimator
        values["estimator"] = None if given is None else pack(given, fitted=False)
        settings = self.settings or {}
        # keys of a file are texts, classes need not be
        values["settings"] = [[label, dict(chosen)] for label, chosen in settings.items()]
        priors = _priors_by_class(self.priors, self.classes_)
        if isinstance(priors, dict):
            values["priors"] = [[label, float(p)] for label, p in priors.items()]
        elif priors is not self.priors:
            values["priors"] = priors
        return values

    def _state(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in _STORED if hasattr(self, name)}
        models = [None if m is None else pack(m, fitted=True) for m in self.estimators_]
        return {**state, "estimators_": models}

    @classmethod
    def _from_state(cls, tree: dict[str, Any]) -> Self:
        parameters, state = dict(tree["parameters"]), dict(tree["state"])
        models = [None if one is None else unpack(one) for one in state.pop("estimators_")]
        given = parameters.get("estimator")
        parameters["estimator"] = None if given is None else unpack(given)
        parameters["settings"] = {label: chosen for label, chosen in parameters["settings"]} or None
        if isinstance(parameters.get("priors"), list):
            pairs = [one for one in parameters["priors"] if isinstance(one, list)]
            parameters["priors"] = dict(pairs) if pairs else parameters["priors"]
        known = cls().get_params(deep=False)
        classifier = cls(**{k: v for k, v in parameters.items() if k in known})
        classifier._check_parameters()
        for name, value in state.items():
            if name not in _STORED:
                raise ValueError(f"unknown attribute {name!r}")
            if name == "feature_names_in_":
                value = np.array([str(v) for v in value], dtype=object)
            setattr(classifier, name, value)
        if len(models) != len(classifier.classes_):
            raise ValueError("there is not one model for each class")
        classifier.estimators_ = models
        return classifier


# ---------------------------------------------------- checks of the settings


def _check_density(estimator: Any) -> None:
    """Refuse what cannot be the density of a class."""
    _check_estimator_object(estimator)
    if not hasattr(estimator, "score_samples"):
        raise TypeError(
            f"estimator must have score_samples, the log density of rows; {estimator!r} has not. "
            "Use a mixture or a factor model"
        )
    if not getattr(estimator, "_densities_compare", True):
        raise TypeError(
            f"the densities of {estimator!r} are of features in as many dimensions as a class has "
            "rows, and do not compare classes; use a mixture or a factor model, or SupervisedPPCA "
            "with this kernel"
        )


def _check_estimator_object(estimator: Any) -> None:
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"estimator must be an estimator, such as mixfold.GaussianMixture(2); got {estimator!r}"
        )


def _check_novelty_label(given: Any, label: Any, classes: Array) -> None:
    """Rows that are novel must not look like those of a class, unless it was named for them."""
    if np.ndim(np.asarray(label, dtype=object)) or isinstance(label, dict | set):
        raise ValueError(
            f"novelty_label must be one label, a text or a number; got {label!r}, a "
            f"{type(label).__name__}"
        )
    if given is None and label in classes.tolist():
        raise ValueError(
            f"novel rows would be called {label!r}, which is a class of y; name them by "
            "novelty_label"
        )


def _check_settings(settings: Any, classes: Array, estimator: Any) -> None:
    """``{class: {parameter: value}}``, of parameters that may differ by class."""
    if settings is None:
        return
    if not isinstance(settings, dict) or not all(isinstance(v, dict) for v in settings.values()):
        raise TypeError(f"settings must be {{class: {{parameter: value}}}}; got {settings!r}")
    unknown = [c for c in settings if c not in set(classes.tolist())]
    if unknown:
        raise ValueError(
            f"settings names {unknown[0]!r}, which is no class of y; the classes are "
            f"{', '.join(map(repr, classes.tolist()))}"
        )
    shared = getattr(estimator, "_same_in_all_classes", ())
    for label, own in settings.items():
        apart = [name for name in own if name in shared]
        if apart:
            raise ValueError(
                f"settings gives class {label!r} its own {apart[0]}, but the scores of "
                f"{type(estimator).__name__} compare only classes that share {', '.join(shared)}"
            )


def _make_priors(priors: Any, classes: Array, weight: Array) -> Array:
    """Probabilities of the classes."""
    priors = _priors_by_class(priors, classes)
    if isinstance(priors, str):
        values = weight if priors == "empirical" else np.ones(len(classes))
    elif isinstance(priors, dict):
        lacking = [c for c in classes.tolist() if c not in priors]
        if lacking or len(priors) != len(classes):
            raise ValueError(
                f"priors must name each class once; the classes are {classes.tolist()}, and it "
                f"names {list(priors)}"
            )
        values = _as_numbers([priors[c] for c in classes.tolist()])
    else:
        values = _as_numbers(priors)
    if values.shape != classes.shape or not (values >= 0).all() or not 0 < values.sum() < np.inf:
        raise ValueError(
            f"priors must be {len(classes)} numbers >= 0, one for each class, not all zero; got "
            f"{priors!r}"
        )
    found: Array = values / values.sum()
    return found


def _priors_by_class(priors: Any, classes: Array) -> Any:
    """A pandas Series that is named by classes, such as value_counts, as a dict; else its values.

    Whatever is no Series stays as it is.
    """
    if isinstance(priors, dict) or not hasattr(priors, "index") or callable(priors.index):
        return priors
    names, values = np.asarray(priors.index).tolist(), np.asarray(priors)
    named = not set(names).isdisjoint(classes.tolist())
    return dict(zip(names, values.tolist(), strict=True)) if named else values


def _as_numbers(priors: Any) -> Array:
    try:
        return np.asarray(priors, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"priors must be numbers >= 0, one for each class; got {priors!r}"
        ) from None


# ---------------------------------------------------- draws and files


def _draw_rows(model: Any, n: int, seed: int) -> Array:
    """Rows of one class; mixtures of scikit-learn have a seed of their own instead."""
    if "random_state" in signature(model.sample).parameters:
        found = model.sample(n, random_state=seed)
    else:
        found = copy(model).set_params(random_state=seed).sample(n)
    return np.asarray(found[0] if isinstance(found, tuple) else found)
