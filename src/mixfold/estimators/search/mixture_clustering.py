"""MixtureClustering: as many components as the data want, combined into clusters."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClusterMixin, MetaEstimatorMixin, clone
from sklearn.utils import ClassifierTags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array
from mixfold.engine.random import seed_from
from mixfold.estimators.mixtures.combining import (
    ask_log_shares,
    check_choice,
    combine_components,
    look_at_rows,
)
from mixfold.estimators.mixtures.gaussian_mixture import GaussianMixture
from mixfold.estimators.search.fits import is_degenerate
from mixfold.estimators.search.mixture_search import MixtureSearch
from mixfold.estimators.search.rows import count_rows
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import MixfoldEstimator, warn
from mixfold.estimators.shell.packed import pack, unpack
from mixfold.math.merging import MergeTree

# sizes without a better criterion after which the search ends
PATIENCE = 5
# columns up to which full covariances cost few parameters
_FEW_COLUMNS = 3
# sizes beyond that no search could try
_MOST_COMPONENTS = 100_000
# what a file holds besides the mixture
_STORED = (
    "cluster_of_component_", "n_clusters_", "tree_", "weights_", "notes_", "n_features_in_",
    "feature_names_in_",
)  # fmt: skip
# what is known of the rows of a fit, and of them alone
_OF_ROWS = ("labels_", "probabilities_", "between_", "search_")


def _mixture_has(method: str) -> Any:
    """A check for ``available_if``: whether the mixture has a method."""

    def check(clustering: Any) -> bool:
        return hasattr(getattr(clustering, "mixture_", clustering._base()), method)

    return check


class MixtureClustering(ClusterMixin, MetaEstimatorMixin, MixfoldEstimator):
    """Clusters of any shape: a mixture of many components, some of which make one cluster.

    A group of rows need not be a Gaussian: it may be bent, a ring, skewed or of uneven density, and
    then takes several components. The number of components is found by BIC, from one upwards until
    more are no better; components are then merged into clusters along a tree. A row has the
    probabilities of the clusters, which are the sums of those of their components.

    The tree merges first the pair whose rows are most often taken for each other's (directly
    estimated misclassification probability [1]_), and last those between which the rows prove a dip
    of the density, by a test with the error rate ``alpha`` [2]_; the guide says how.
    ``n_clusters="auto"`` cuts it there, a number where so many clusters are left; then clusters
    that share no rows wait with those that are proven to be apart. Fits are those of
    :class:`MixtureSearch`; combining makes no further fit, and ``combine`` of any fitted mixture
    gives this object without a search.

    Parameters
    ----------
    n_clusters : int or 'auto', default='auto'
        Number of clusters. 'auto': as many as the rows prove, or as ``threshold`` leaves. A number:
        nothing is combined if as many components have a lower ICL [3]_ than those of the best BIC,
        since each cluster is shaped like a component then.
    estimator : estimator, default=None
        The mixture whose components are combined: any with a parameter ``n_components`` and
        probabilities of components. None is :class:`GaussianMixture`, with full covariances and,
        of more than three columns, also with those of ``covariance_type="diag"``, if BIC prefers
        them; or, where the number of clusters is given, if as many components of this kind are
        expected to describe new rows better.
    max_components : int, default=50
        Largest number of components that is tried, from ``n_clusters`` (or 1) upwards. The search
        ends before it when more of them are no better; ``notes_`` says if it did not.
    threshold : float, default=None
        Merge clusters while the misclassification probability of some pair is above it, such as
        0.05; instead of the test of dips.
    alpha : float, default=0.05
        Probability of separating any clusters between which the density has no dip.
    min_probability : float, default=0.8
        A row whose most probable cluster has less is between clusters: see ``between_``.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    verbose : int, default=0
        1 tells of each fit.
    n_jobs : int, default=None
        Number of threads; None means all cores.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The most probable cluster of each row; clusters stand in the order of falling weight.
    probabilities_ : ndarray of shape (n_samples,)
        Probability of that cluster.
    between_ : ndarray of shape (n_samples,), bool
        Rows between clusters; ``find_between`` tells which.
    n_clusters_ : int
    cluster_of_component_ : ndarray of shape (n_components,)
        The cluster of each component of ``mixture_``.
    weights_ : ndarray of shape (n_clusters_,)
        Sums of the weights of the components.
    tree_ : MergeTree
        The merges: ``left``, ``right``, ``level`` (misclassification probability), ``size``;
        ``cut(n)`` gives other clusters, ``linkage()`` the form that scipy draws. Clusters that the
        rows prove to be apart are merged last, unless there is a ``threshold``; with a number of
        clusters those that share no rows, too.
    mixture_ : estimator
        The mixture: the best of ``search_``, or its fit with ``n_clusters`` components.
    search_ : MixtureSearch
        How its number of components was found.
    notes_ : list of str
        What to know before believing the clusters, such as dips that too few rows can prove.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    MixtureSearch : the number of components, each of them a group.
    NestedMixture : groups that are mixtures, their numbers given.

    References
    ----------
    .. [1] Hennig. Methods for merging Gaussian mixture components. Advances in Data Analysis and
       Classification 4, 2010.
    .. [2] Ray, Lindsay. The topography of multivariate normal mixtures. Annals of Statistics 33,
       2005.
    .. [3] Biernacki, Celeux, Govaert. Assessing a mixture model for clustering with the integrated
       completed likelihood. IEEE Transactions on Pattern Analysis and Machine Intelligence 22,
       2000.

    Examples
    --------
    A ring around a blob takes several components, and is one cluster:

    >>> import numpy as np
    >>> from mixfold import MixtureClustering
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 2 * np.pi, 400)
    >>> ring = 4 * np.c_[np.cos(angle), np.sin(angle)] + 0.3 * rng.normal(size=(400, 2))
    >>> X = np.vstack([ring, 0.5 * rng.normal(size=(200, 2))])
    >>> clusters = MixtureClustering(random_state=0).fit(X)
    >>> clusters.n_clusters_, clusters.mixture_.n_components > 4
    (2, True)
    >>> clusters.predict([[0, 0], [4, 0], [0, -4]])
    array([1, 0, 0])
    >>> clusters.mixture_.combine(1).n_clusters_
    1
    >>> from mixfold.plots import plot_merges
    >>> ax = plot_merges(clusters)
    """

    _constraints: ClassVar[rule.Constraints] = {
        "n_clusters": (rule.integer(1), rule.one_of(["auto"])),
        "max_components": (rule.integer(1),),
        "alpha": (rule.share(),),
        "min_probability": (rule.share(),),
    }
    mixture_: Any
    tree_: MergeTree
    cluster_of_component_: Array
    weights_: Array
    n_clusters_: int
    notes_: list[str]

    def __init__(
        self,
        n_clusters: Any = "auto",
        estimator: Any = None,
        *,
        max_components: int = 50,
        threshold: float | None = None,
        alpha: float = 0.05,
        min_probability: float = 0.8,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.estimator = estimator
        self.max_components = max_components
        self.threshold = threshold
        self.alpha = alpha
        self.min_probability = min_probability
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    # ------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components and combine them.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            As the mixture takes it. Of more than 50,000 rows a random sample of as many decides
            which components are merged; all of them are fitted and labelled.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature.

        Returns
        -------
        self
        """
        self._check_parameters()
        base = self._base()
        _check_mixture(base)
        seed = seed_from(self.random_state)
        fewest = 1 if self.n_clusters == "auto" else int(self.n_clusters)
        if fewest > self.max_components:
            raise ValueError(
                f"n_clusters={fewest} is more than max_components={self.max_components}; "
                f"a cluster has at least one component: set max_components to {fewest} or more"
            )
        if self.max_components > _MOST_COMPONENTS:
            raise ValueError(
                f"max_components={self.max_components} is more than can be tried; lower it to "
                f"{_MOST_COMPONENTS} or less"
            )
        X = count_rows(X)
        search = MixtureSearch(
            base,
            self._kinds(X, sample_weight, seed),
            n_components=range(fewest, int(self.max_components) + 1),
            patience=PATIENCE,
            random_state=seed,
            verbose=self.verbose,
        )
        if "n_jobs" in base.get_params(deep=False) and base.n_jobs is None:
            search.set_params(estimator__n_jobs=self.n_jobs)
        search.fit(X, sample_weight=sample_weight)
        mixture, chosen = self._choose_mixture(search)
        self._take_mixture(mixture)
        self.search_ = search
        rows = look_at_rows(self.mixture_, X, sample_weight, seed)
        self._combine(rows, self.n_clusters, seed)
        self._label_rows(X)
        for words in self.notes_:
            warn(words, UserWarning)
        self.notes_ = [*search.notes_, *chosen, *self._describe_limit(), *self.notes_]
        return self

    def _describe_limit(self) -> list[str]:
        """A sentence if the search ended at its limit rather than at the best number."""
        most = int(self.max_components)
        if len(self.cluster_of_component_) < most or self.n_clusters == most:
            return []
        return [
            f"the best number of components is the largest that was tried, {most}, so that more of "
            "them may tell clusters apart that are one here: set max_components to more"
        ]

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, then give the cluster of each row."""
        return np.asarray(self.fit(X, y, sample_weight).labels_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.n_clusters, self.threshold)

    def _base(self) -> Any:
        """The mixture, not fitted."""
        return GaussianMixture() if self.estimator is None else self.estimator

    def _kinds(self, X: Any, sample_weight: Any, seed: int) -> dict[str, list[str]] | None:
        """Covariances that are tried; those of an estimator that was given are its own.

        A group whose columns are correlated takes many components without correlations, which have
        a low BIC and are hard to put together again. So if the number of clusters is known, the
        kind is the one by which as many components describe new rows better; or fewer, where
        so many end at their floor.
        """
        if self.estimator is not None:
            return None
        columns = GaussianMixture()._open(X, reset=True, weight=sample_weight).n_features
        kinds = ["full", "diag"] if columns > _FEW_COLUMNS else ["full"]
        if self.n_clusters == "auto" or len(kinds) == 1:
            return {"covariance_type": kinds}
        for size in range(int(self.n_clusters), 0, -1):
            full, diag = (self._fit_kind(kind, size, X, sample_weight, seed) for kind in kinds)
            if not is_degenerate(full) and not is_degenerate(diag):
                break
        better = expected_loss(full, columns) < expected_loss(diag, columns)
        return {"covariance_type": kinds[:1] if better else kinds[1:]}

    def _fit_kind(
        self, kind: str, size: int, X: Any, sample_weight: Any, seed: int
    ) -> GaussianMixture:
        mixture = GaussianMixture(size, covariance_type=kind, random_state=seed, n_jobs=self.n_jobs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is to know of the search, the search says
            return mixture.fit(X, sample_weight=sample_weight)

    def _choose_mixture(self, search: MixtureSearch) -> tuple[Any, list[str]]:
        """The mixture whose components are combined, and a sentence if it is not that of BIC.

        More components than clusters describe the density better, but if they are bought with
        components that overlap, each cluster is a component already: ICL, which is BIC with the
        entropy of the components counted against them, is lower for as many components as clusters.
        """
        best, table, size = search.best_estimator_, search.results_, self.n_clusters
        icl = np.where(table["degenerate"], np.nan, table["icl"])
        few = np.flatnonzero((table["n_components"] == size) & np.isfinite(icl))
        if size == "auto" or best.n_components == size or not few.size:
            return best, []
        row = int(few[np.argmin(icl[few])])
        most = table["icl"][search.best_index_]
        if not icl[row] <= most:
            return best, []
        return search.estimators_[row], [
            f"clusters are components: ICL, by which components that overlap are no groups, has "
            f"{icl[row]:.6g} for {size} of them and {most:.6g} for the {best.n_components} that "
            "have the best BIC"
        ]

    def _take_mixture(self, mixture: Any) -> None:
        self.mixture_ = mixture
        for name in ("feature_names_in_", *_OF_ROWS):
            self.__dict__.pop(name, None)
        self.n_features_in_ = mixture.n_features_in_
        if hasattr(mixture, "feature_names_in_"):
            self.feature_names_in_ = mixture.feature_names_in_

    def _combine(self, rows: Any, n_clusters: Any, seed: int) -> None:
        """Build the tree, cut it, and publish the clusters."""
        found = combine_components(
            self.mixture_, rows, n_clusters, self.threshold, float(self.alpha), seed
        )
        self.tree_ = found.tree
        self.n_clusters_ = found.n_clusters
        self.notes_ = found.notes
        # components without rows are merged before anything is cut
        self.cluster_of_component_ = found.tree.cut(found.n_clusters)
        self.weights_ = self._sum_weights()

    def _sum_weights(self) -> Array:
        weights = np.asarray(getattr(self.mixture_, "weights_", self.tree_.mass), dtype=float)
        sums = np.bincount(self.cluster_of_component_, weights, minlength=self.n_clusters_)
        return np.asarray(sums / sums.sum())

    def _label_rows(self, X: Any) -> None:
        probabilities = self.predict_proba(X)
        self.labels_ = np.argmax(probabilities, axis=1)
        self.probabilities_ = probabilities.max(axis=1)
        self.between_ = self.probabilities_ < self.min_probability

    @classmethod
    def of_mixture(
        cls,
        mixture: Any,
        n_clusters: Any = None,
        *,
        threshold: float | None = None,
        X: Any = None,
        sample_weight: Any = None,
        random_state: Any = None,
        alpha: float = 0.05,
    ) -> Self:
        """The clusters of a fitted mixture; ``combine`` of the mixture is the same."""
        check_choice(n_clusters, threshold)
        check_is_fitted(mixture)
        by_rows = n_clusters in (None, "auto") and threshold is None
        if by_rows and X is None:
            raise ValueError(
                "how many clusters there are is decided by rows: give X, or n_clusters or a "
                "threshold"
            )
        clustering = cls(
            "auto" if n_clusters is None else n_clusters,
            clone(mixture),
            threshold=threshold,
            alpha=alpha,
            random_state=random_state,
        )
        clustering._check_parameters()
        clustering._take_mixture(mixture)
        seed = seed_from(random_state)
        rows = look_at_rows(mixture, X, sample_weight, seed)
        clustering._combine(rows, n_clusters, seed)
        clustering.max_components = rows.shares.n_components
        return clustering

    # ------------------------------------------------ predictions

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of ``predict_proba``, exact where that underflows."""
        check_is_fitted(self)
        return self._sum_logs(ask_log_shares(self.mixture_, X))

    def predict_proba(self, X: Any) -> Array:
        """Probability of each cluster for each row, (n_samples, n_clusters): sums of components."""
        check_is_fitted(self)
        shares = np.asarray(self.mixture_.predict_proba(X))
        sums = np.zeros((len(shares), self.n_clusters_), dtype=shares.dtype)
        for component, cluster in enumerate(self.cluster_of_component_.tolist()):
            sums[:, cluster] += shares[:, component]
        return sums

    def _sum_logs(self, logs: Array) -> Array:
        sums = np.full((len(logs), self.n_clusters_), -np.inf, dtype=logs.dtype)
        for component, cluster in enumerate(self.cluster_of_component_.tolist()):
            sums[:, cluster] = np.logaddexp(sums[:, cluster], logs[:, component])
        return sums

    def predict(self, X: Any) -> Array:
        """The most probable cluster of each row; missing entries are left out of account."""
        return np.asarray(np.argmax(self.predict_proba(X), axis=1))

    def find_between(self, X: Any) -> tuple[Array, Array]:
        """The rows between clusters: their numbers (m,), and their two likeliest clusters (m, 2).

        A row is between clusters if its largest probability is below ``min_probability``.
        """
        probabilities = self.predict_proba(X)
        rows = np.flatnonzero(probabilities.max(axis=1) < self.min_probability)
        order = np.argsort(-probabilities[rows], axis=1, kind="stable")
        return rows, order[:, :2]

    @available_if(_mixture_has("score_samples"))
    def score_samples(self, X: Any) -> Array:
        """Log density of each row under the mixture."""
        check_is_fitted(self)
        return np.asarray(self.mixture_.score_samples(X))

    @available_if(_mixture_has("score"))
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood per row under the mixture."""
        check_is_fitted(self)
        found: float = self.mixture_.score(X, sample_weight=sample_weight)
        return found

    @available_if(_mixture_has("oddness"))
    def oddness(self, X: Any, by: str = "row", **options: Any) -> Array:
        """How odd rows are under the mixture, comparable between rows: see its method."""
        check_is_fitted(self)
        return np.asarray(self.mixture_.oddness(X, by, **options))

    def _point_density(self) -> Any:
        """The density by which the report finds odd rows."""
        return self.mixture_._point_density()

    @available_if(_mixture_has("impute"))
    def impute(self, X: Any, method: str = "mean", random_state: Any = None) -> Array:
        """Fill the missing entries of X by the mixture."""
        check_is_fitted(self)
        return np.asarray(self.mixture_.impute(X, method, random_state))

    @available_if(_mixture_has("sample"))
    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw new rows of the mixture, (n_samples, n_features), and the cluster of each."""
        check_is_fitted(self)
        X, components = self.mixture_.sample(n_samples, random_state)
        return X, self.cluster_of_component_[components]

    def summary(self) -> str:
        """The clusters as a short text: how many components, which weights, what to know."""
        check_is_fitted(self)
        of = self.cluster_of_component_
        lines = [describe_clusters(self)]
        for k, weight in enumerate(self.weights_):
            own = ", ".join(str(c) for c in np.flatnonzero(of == k)[:12])
            more = ", ..." if np.count_nonzero(of == k) > 12 else ""
            lines.append(f"cluster {k}: weight {weight:.3f}, components {own}{more}")
        return "\n".join([*lines, *(f"note: {words}" for words in self.notes_)])

    # ------------------------------------------------ scikit-learn and files

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cluster_of_component_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base()).input_tags
        tags.input_tags.allow_nan = inner.allow_nan
        tags.input_tags.sparse = inner.sparse
        # clusters are to predict_proba what classes are to a classifier's, as for the mixtures
        several = self.n_clusters == "auto" or self.n_clusters > 2
        tags.classifier_tags = ClassifierTags(multi_class=several)
        return tags

    def _plain_parameters(self) -> dict[str, Any]:
        values = super()._plain_parameters()
        given = self.estimator
        values["estimator"] = None if given is None else pack(given, fitted=False)
        return values

    def _state(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in _STORED if hasattr(self, name)}
        return {**state, "mixture_": pack(self.mixture_, fitted=True)}

    def _summary(self) -> dict[str, Any]:
        return {
            "clusters": self.n_clusters_,
            "components": len(self.cluster_of_component_),
            "mixture": type(self.mixture_).__name__,
        }

    @classmethod
    def _from_state(cls, tree: dict[str, Any]) -> Self:
        parameters, state = dict(tree["parameters"]), dict(tree["state"])
        given = parameters.get("estimator")
        parameters["estimator"] = None if given is None else unpack(given)
        known = cls().get_params(deep=False)
        clustering = cls(**{k: v for k, v in parameters.items() if k in known})
        clustering._check_parameters()
        clustering.mixture_ = unpack(state.pop("mixture_"))
        for name, value in state.items():
            if name not in _STORED:
                raise ValueError(f"unknown attribute {name!r}")
            if name == "feature_names_in_":
                value = np.array([str(v) for v in value], dtype=object)
            setattr(clustering, name, value)
        clustering._check_state()
        return clustering

    def _check_state(self) -> None:
        tree, of = self.tree_, self.cluster_of_component_
        K = tree.n_components
        if of.shape != (K,) or not 1 <= self.n_clusters_ <= K or self.weights_.ndim != 1:
            raise ValueError("clusters of another shape than the tree declares")
        if not np.array_equal(np.unique(of), np.arange(self.n_clusters_)):
            raise ValueError(f"cluster_of_component_ does not name {self.n_clusters_} clusters")
        if len(self.weights_) != self.n_clusters_:
            raise ValueError("there is not one weight for each cluster")
        if not all(getattr(tree, n).shape == (K - 1,) for n in ("left", "right", "level", "size")):
            raise ValueError("the tree has not one merge less than components")
        if not np.array_equal(tree.cut(self.n_clusters_), of):
            raise ValueError("the clusters are no cut through the tree")
        if self.n_features_in_ != self.mixture_.n_features_in_:
            raise ValueError("the mixture has other columns")


def describe_clusters(clustering: MixtureClustering) -> str:
    """``5 clusters made of 11 components``."""
    clusters, components = clustering.n_clusters_, len(clustering.cluster_of_component_)
    return (
        f"{clusters} cluster{'' if clusters == 1 else 's'} made of {components} "
        f"component{'' if components == 1 else 's'}"
    )


def expected_loss(mixture: GaussianMixture, n_features: int) -> float:
    """Minus twice the log-likelihood that is expected of as many new rows.

    As AIC, but twice the number of parameters, which is right for many rows, is replaced by what is
    exact for a Gaussian of m rows and D columns whose covariance is full:

        E[-2 ln p(new rows)] - E[-2 ln p(rows)] = m D ((m + 1) / (m - D - 2) - 1)

    and infinite if m <= D + 2; without correlations that of one column, D times. Each component is
    taken to have an equal part of the rows.
    """
    n_parameters, aic = float(mixture._n_parameters()), float(mixture.aic())
    rows = np.exp((mixture.bic() - aic) / n_parameters + 2)  # the sum of the weights
    m = rows / mixture.n_components
    joint = n_features if mixture.covariance_type == "full" else 1
    if m <= joint + 2:
        return np.inf
    own = m * n_features * ((m + 1) / (m - joint - 2) - 1)
    return float(aic - 2 * n_parameters + mixture.n_components * own)


def _check_mixture(estimator: Any) -> None:
    """Refuse what has no components with probabilities."""
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"estimator must be a mixture, such as mixfold.GaussianMixture(); got {estimator!r}"
        )
    names = estimator.get_params(deep=False)
    sized = "n_components" in names and "n_clusters" not in names
    if not sized or not hasattr(estimator, "predict_proba") or not hasattr(estimator, "combine"):
        raise TypeError(
            f"estimator must be a mixture with n_components and probabilities of components; "
            f"{type(estimator).__name__} is none. Use GaussianMixture, with "
            "covariance_type='tied-spherical' for clusters as those of KMeans"
        )
