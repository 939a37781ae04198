"""The components of a fitted mixture as clusters: the rows that are looked at, and the tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.sources import open_source
from mixfold.families.product.steps import ProductSteps
from mixfold.math.dips import (
    Doubt,
    Landscape,
    ProvenClusters,
    prove_by_density,
    prove_by_odds,
)
from mixfold.math.merging import (
    MergeTree,
    SparseShares,
    component_overlaps,
    join_shares,
    keep_shares,
    merge_components,
)
from mixfold.models.mixtures.rows import informative

if TYPE_CHECKING:
    from mixfold.estimators.search.mixture_clustering import MixtureClustering

# rows that are looked at; of more a sample. Rows that are drawn where none are given.
ROWS, DRAWS = 50_000, 20_000
# probabilities that are computed at a time
_CELLS = 2**22
# columns up to which components are compared in space
_SPACE = 100
# pairs that a note names
_DOUBTS = 3


class Combining:
    """What a fitted mixture of any kind can be asked: its components as clusters."""

    def combine(
        self,
        n_clusters: int | None = None,
        *,
        threshold: float | None = None,
        X: Any = None,
        sample_weight: Any = None,
        random_state: Any = 0,
        alpha: float = 0.05,
    ) -> MixtureClustering:
        """Merge the components into clusters; nothing is fitted anew.

        Components whose rows are most often taken for each other's are merged first (directly
        estimated misclassification probabilities; Hennig, 2010), and last those that the rows prove
        to be apart or that share no rows.

        Parameters
        ----------
        n_clusters : int, optional
            Merge until so many clusters are left, at most as many as components have rows.
        threshold : float, optional
            Merge while the misclassification probability of some pair is above it, whatever the
            rows prove. With neither, clusters are merged unless the rows of X prove a dip of the
            density between them.
        X : as in ``predict``, optional
            Rows by which the components are compared, usually those of the fit; of more than 50,000
            a random sample. None: 20,000 rows drawn from the mixture, so that the model alone is
            enough.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weights of these rows, or the name of their column.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the sample, or of the draws.
        alpha : float, default=0.05
            Probability of separating any clusters without a dip between them.

        Returns
        -------
        MixtureClustering
            Fitted: ``cluster_of_component_``, ``tree_``, ``predict``, ``predict_proba``, ``save``.

        Notes
        -----
        Memory and time grow with the rows that components share: of each row the 32 largest
        probabilities are kept and all above 1e-6.

        Examples
        --------
        >>> import numpy as np
        >>> from mixfold import GaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(600, 2)) + np.repeat([[0, 0], [3, 0], [20, 0]], 200, axis=0)
        >>> clusters = GaussianMixture(3, random_state=0).fit(X).combine(2, X=X)
        >>> np.bincount(clusters.predict(X))
        array([400, 200])
        >>> clusters.tree_.level.round(2)
        array([0.07, 0.  ])
        """
        from mixfold.estimators.search.mixture_clustering import MixtureClustering

        return MixtureClustering.of_mixture(
            self,
            n_clusters,
            threshold=threshold,
            X=X,
            sample_weight=sample_weight,
            random_state=random_state,
            alpha=alpha,
        )


@dataclass(frozen=True, slots=True)
class RowShares:
    """Rows with something observed, their weights, and the shares of the components in them."""

    X: Any
    weight: Array
    shares: SparseShares


def ask_log_shares(model: Any, X: Any) -> Array:
    """Log-probabilities of the components of a fitted mixture, (n, K)."""
    if hasattr(model, "predict_log_proba"):
        return np.asarray(model.predict_log_proba(X))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(model.predict_proba(X)))


def look_at_rows(model: Any, X: Any, sample_weight: Any, seed: int) -> RowShares:
    """The rows of X, or a seeded sample of more than 50,000; without X rows of the model itself."""
    check_is_fitted(model)
    if X is not None:
        source = model._open(X, reset=False, weight=sample_weight)
        executor = model._executor(source)
        block = informative(draw_pilot(source, executor, ROWS, seed).block)
        rows, weight = block.X, np.asarray(block.weights(), dtype=float)
        if not len(weight):
            raise ValueError("X has no row of positive weight with an observed entry")
    else:
        if not hasattr(model, "sample"):
            raise ValueError(
                f"{type(model).__name__} cannot draw rows by which its components could be "
                "compared: give combine the rows, X"
            )
        if sample_weight is not None:
            raise ValueError("sample_weight is that of the rows of X: give X, or leave it out")
        rows = np.asarray(model.sample(DRAWS, random_state=seed)[0])
        weight = np.ones(len(rows))
    return RowShares(rows, weight, join_shares(_keep_parts(model, rows)))


def _keep_parts(model: Any, X: Any) -> Iterator[SparseShares]:
    """Shares of some rows after the other, so that many components are never all in memory."""
    n, at = X.shape[0], 0
    step = 256
    while at < n:
        # a source has no names of columns that could be other ones
        logs = ask_log_shares(model, open_source(X[at : at + step]))
        yield keep_shares(np.where(np.isnan(logs), -np.inf, logs))
        at += step
        step = max(256, _CELLS // logs.shape[1])


# ---------------------------------------------------- how many clusters


def check_choice(n_clusters: Any, threshold: Any) -> None:
    """Refuse numbers of clusters and thresholds that mean nothing."""
    if n_clusters is not None and n_clusters != "auto":
        whole = isinstance(n_clusters, Integral) and not isinstance(n_clusters, bool)
        if not whole or n_clusters < 1:
            raise ValueError(f"n_clusters must be an int >= 1, 'auto' or None; got {n_clusters!r}")
        if threshold is not None:
            raise ValueError(
                f"give n_clusters={n_clusters} or threshold={threshold}, not both: a threshold "
                "says how many clusters there are"
            )
    if threshold is None:
        return
    number = isinstance(threshold, Real) and not isinstance(threshold, bool)
    if not number or not 0 <= threshold <= 1:
        raise ValueError(
            "threshold must be a number between 0 and 1, the misclassification probability above "
            f"which clusters are merged; got {threshold!r}"
        )


@dataclass(frozen=True, slots=True)
class Combined:
    """A tree, the number of clusters at which it is cut, and what to know of the choice."""

    tree: MergeTree
    n_clusters: int
    notes: list[str]


def combine_components(
    model: Any, rows: RowShares, n_clusters: Any, threshold: Any, alpha: float, seed: int
) -> Combined:
    """The tree of a mixture's components and where it is cut."""
    if threshold is not None:
        tree = merge_components(rows.shares, rows.weight)
        return Combined(tree, min(tree.count_above(float(threshold)), tree.n_used), [])
    found = _prove_clusters(model, rows, alpha, seed)
    if n_clusters in (None, "auto"):
        return _combine_without_dips(model, rows, found)
    # as above, but that components without a dip, for want of rows, may share no row either
    tree = merge_components(rows.shares, rows.weight, found.labels, whole=False)
    if n_clusters > tree.n_used:
        empty = tree.n_components - tree.n_used
        without = f", of which {empty} have no share of any row" if empty else ""
        raise ValueError(
            f"n_clusters={n_clusters} is more than there are components to merge: the mixture has "
            f"{tree.n_components}{without}. Fit more components, or ask for at most {tree.n_used}"
        )
    return Combined(tree, int(n_clusters), [])


def _prove_clusters(model: Any, rows: RowShares, alpha: float, seed: int) -> ProvenClusters:
    """Which components the rows prove to be apart."""
    overlap = component_overlaps(rows.shares, rows.weight)
    if _in_space(model):
        return prove_by_density(_landscape(model, rows, seed), overlap, alpha)
    return prove_by_odds(rows.shares, rows.weight, overlap, alpha)


def _combine_without_dips(model: Any, rows: RowShares, found: ProvenClusters) -> Combined:
    one = None if found.proven else _one_group(model, rows)
    notes = _describe_doubts(found.doubts) + _describe_undecided(found.undecided)
    if one is not None:
        found = ProvenClusters(np.zeros_like(found.labels), [])
        notes.append(
            "no dip of the density is proven anywhere, and the components are taken for one "
            f"cluster. {one}"
        )
    tree = merge_components(rows.shares, rows.weight, found.labels)
    used = np.unique(found.labels[tree.mass > 0])
    if not found.proven:
        notes.append(
            "the data do not tell whether there are clusters: no dip of the density is proven "
            f"anywhere, and the {len(used)} clusters are components that overlap; a single group "
            "that is no Gaussian looks the same: for one cluster set n_clusters=1"
        )
    return Combined(tree, max(1, len(used)), notes)


def _one_group(model: Any, rows: RowShares) -> str | None:
    """What is said of a single group of another shape that has a lower BIC than the components."""
    from mixfold.estimators.search.one_population import find_one_population
    from mixfold.estimators.search.rows import Rows

    found = find_one_population(model, Rows(rows.X, rows.weight), margin=0.0, most_groups=1)
    return None if found is None or found.n_groups > 1 else found.sentence


def _in_space(model: Any) -> bool:
    """Whether components have means and covariances in few columns, and points a density."""
    shaped = hasattr(model, "covariances_") or hasattr(model, "loadings_")
    if not (shaped and hasattr(model, "impute") and model.n_features_in_ <= _SPACE):
        return False
    # a table of several families has codes or counts among its columns
    return not isinstance(getattr(model, "family", None), Mapping | ProductSteps)


def _landscape(model: Any, rows: RowShares, seed: int) -> Landscape:
    X = rows.X.toarray() if sparse.issparse(rows.X) else np.asarray(rows.X)
    if np.isnan(X).any():
        X = np.asarray(model.impute(open_source(X), method="draw", random_state=seed))
    X = np.asarray(X, dtype=float)
    aside = getattr(model, "_dependent", None)
    if aside is None:
        return Landscape(
            X, rows.shares, rows.weight, lambda points: model.score_samples(open_source(points))
        )
    return Landscape(
        X[:, aside.kept],
        rows.shares,
        rows.weight,
        lambda points: model.score_samples(open_source(aside.expand(points))),
    )


def _describe_doubts(doubts: list[Doubt]) -> list[str]:
    if not doubts:
        return []
    shown = [
        f"components {one} and {other} ({counts.n_peak:.0f} rows at the lower peak, "
        f"{counts.n_valley:.0f} in the valley, p = {counts.p_value:.2g})"
        for one, other, counts in doubts[:_DOUBTS]
    ]
    more = f" and {len(doubts) - _DOUBTS} other pairs" if len(doubts) > _DOUBTS else ""
    return [
        "the data do not tell whether some components are one cluster or two: they are taken as "
        f"one, since too few rows prove the dip that the mixture has between {'; '.join(shown)}"
        f"{more}. More rows would tell; n_clusters or threshold decide otherwise"
    ]


def _describe_undecided(undecided: list[list[int]]) -> list[str]:
    if not undecided:
        return []
    shown = "; ".join(" and ".join(map(str, some)) for some in undecided[:_DOUBTS])
    more = f"; and {len(undecided) - _DOUBTS} other clusters" if len(undecided) > _DOUBTS else ""
    return [
        f"the data do not tell whether components {shown}{more} are one group or groups that "
        "overlap: no dip of the density between them is proven, and each group may be a Gaussian. "
        "They are taken for one cluster; n_clusters decides otherwise, and MixtureSearch keeps "
        "components apart"
    ]
