"""What a fitted model can compute (groups, scores, ...), found by its methods, not its class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from mixfold.contracts import Array
from mixfold.estimators.shell.oddness import DrawnDensity, RowTails
from mixfold.report.formatting import class_names

Ask = Callable[[Any], Array]
# of components whose rows weigh less nothing is shown
_IN_USE = 1e-9
# groups whose heads of columns have room for a word
_WORDED = 6
# what rows are ranked by where the model can tell it
ODDNESS = "oddness"
# draws for each pattern of missing entries, all of them together, and columns of such models
_DRAWS, _MOST_DENSITIES, _WIDE = 1000, 2_000_000, 2000


@dataclass(frozen=True, slots=True)
class Groups:
    """What divides rows: ``shares(rows)`` is (n, K), ``names`` (K,), ``word`` what one is called.

    ``weights`` (K,) or None; ``shown`` are those in use, the others are empty.
    """

    word: str
    names: list[str]
    shares: Ask
    weights: Array | None
    shown: Array
    soft: bool = True

    @property
    def several(self) -> str:
        return f"{self.word}es" if self.word.endswith("s") else f"{self.word}s"

    def label(self, k: int) -> str:
        """``component 2``; a name that is no number stands for itself."""
        name = self.names[k]
        return f"{self.word} {name}" if name.lstrip("-").isdigit() else name

    def heads(self, which: Array) -> list[str]:
        """Heads of columns: bare names where many have to stand side by side."""
        return [self.label(k) if len(which) <= _WORDED else self.names[k] for k in which]


def has_target(model: Any) -> bool:
    """Whether a model was fitted to classes or outputs: it predicts these, not its components."""
    classes = getattr(model, "classes_", None)
    if classes is not None and len(classes):  # empty if it was fitted without labels
        return True
    return any(getattr(model, name, None) is not None for name in ("_target", "_sets", "_output"))


def takes_missing(model: Any) -> bool:
    """Whether entries of rows may be missing."""
    return bool(get_tags(model).input_tags.allow_nan)


def units_matter(model: Any) -> bool:
    """Whether other units of a column would give another fit: one noise, or one distance, for all.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import PPCA, FactorAnalysis
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 1)) + rng.normal(size=(50, 4))
    >>> units_matter(PPCA(1).fit(X)), units_matter(FactorAnalysis(1).fit(X))
    (True, False)
    """
    if hasattr(model, "cluster_centers_"):
        return True
    if hasattr(model, "eigenvalues_") and hasattr(model, "kernel"):
        return True
    noise, loadings = (getattr(model, name, None) for name in ("noise_variance_", "loadings_"))
    if noise is not None and loadings is not None and not isinstance(loadings, list | tuple):
        components = np.shape(loadings)[:-2]
        return np.shape(noise) in ((), components)
    kind = getattr(model, "covariance_type", getattr(model, "family", None))
    return isinstance(kind, str) and kind.endswith("spherical")


def is_in_kernel_space(model: Any) -> bool:
    """Whether means and loadings are not those of columns, even if there are as many of them."""
    return getattr(model, "kernel", None) not in (None, "linear")


def groups_of(model: Any) -> Groups | None:
    """Components, clusters, classes of a classifier of densities, or topics; None: no groups."""
    for find in (_components, _centres, _classes, _topics):
        found = find(model)
        if found is not None and len(found.names) > 0:
            return found
    return None


def _components(model: Any) -> Groups | None:
    weights = getattr(model, "weights_", None)
    if weights is None:
        return None
    weights = np.asarray(weights, float)
    shares = _component_shares(model, len(weights))
    if shares is None:
        return None
    shown = np.asarray(getattr(model, "active_", weights > _IN_USE))
    if len(shown) != len(weights) or not shown.any():
        shown = np.ones(len(weights), dtype=bool)
    soft = not isinstance(shares, Hard)
    word = "cluster" if "n_clusters" in model.get_params(deep=False) else "component"
    return Groups(word, _number_names(len(weights)), shares, weights, np.flatnonzero(shown), soft)


def _component_shares(model: Any, size: int) -> Ask | None:
    if hasattr(model, "predict_component_proba"):
        return _floats(model.predict_component_proba)
    if hasattr(model, "predict_component"):
        return Hard(model.predict_component, size)
    if has_target(model):
        return None
    if hasattr(model, "predict_proba"):
        return _floats(model.predict_proba)
    return Hard(model.predict, size) if hasattr(model, "predict") else None


def _centres(model: Any) -> Groups | None:
    if not hasattr(model, "cluster_centers_") or not hasattr(model, "predict"):
        return None
    size = len(model.cluster_centers_)
    return Groups(
        "cluster", _number_names(size), Hard(model.predict, size), None, np.arange(size), False
    )


def _classes(model: Any) -> Groups | None:
    """Of a model that has a density for each class."""
    if not hasattr(model, "priors_") or not hasattr(model, "classes_"):
        return None
    names, priors = class_names(model.classes_), np.asarray(model.priors_, float)
    ask = _floats(model.predict_proba)
    return Groups("class", names, ask, priors, np.arange(len(names)))


def _topics(model: Any) -> Groups | None:
    if not hasattr(model, "topics_") or not hasattr(model, "transform"):
        return None
    size = len(model.topics_)
    return Groups("topic", _number_names(size), WordShares(model), None, np.arange(size))


def _number_names(size: int) -> list[str]:
    return [str(k) for k in range(size)]


@dataclass(frozen=True, slots=True)
class Hard:
    """Labels as shares of one and zero."""

    tell: Callable[[Any], Any]
    size: int

    def __call__(self, X: Any) -> Array:
        return np.asarray(np.eye(self.size)[np.asarray(self.tell(X), dtype=int)])


def _floats(ask: Callable[[Any], Any]) -> Ask:
    return lambda X: np.asarray(ask(X), dtype=float)


def axis_word(model: Any) -> tuple[str, str]:
    """What a coordinate of rows is called, and several of them."""
    if hasattr(model, "loadings_"):
        return "factor", "factors"
    if hasattr(model, "mixing_"):
        return "source", "sources"
    if hasattr(model, "eigenvalues_") or hasattr(model, "correlations_"):
        return "axis", "axes"
    if hasattr(model, "latent_points_"):
        return "latent variable", "latent variables"
    if hasattr(model, "transforms_"):
        return "score", "scores"
    if hasattr(model, "mixing_") or hasattr(model, "density_"):
        return "source", "sources"
    if hasattr(model, "topics_"):
        return "topic", "topics"
    return ("code", "codes") if hasattr(model, "components_") else ("unit", "units")


# ------------------------------------------------ rows


def latents_of(model: Any) -> Ask | None:
    """Coordinates of rows; distances to centres or planes and shares of topics are none."""
    if not hasattr(model, "transform"):
        return None
    if hasattr(model, "inertia_") or hasattr(model, "topics_"):
        return None
    return _floats(model.transform)


def topics_of(model: Any) -> Ask | None:
    """Shares of the topics in the words of documents."""
    found = hasattr(model, "topics_") and hasattr(model, "transform")
    return WordShares(model) if found else None


@dataclass(frozen=True, slots=True)
class WordShares:
    """Of the words of each document the expected share that each topic has, (n, K).

    ``transform`` of a model with a prior has the mean of the posterior: words and pseudo-words.
    With prior a and n words it is (a_k + n_k) / (sum a + n); here it is n_k / n.
    """

    model: Any

    def __call__(self, X: Any) -> Array:
        shares = np.asarray(self.model.transform(X), float)
        prior = getattr(self.model, "doc_topic_prior_", None)
        if prior is None:
            return shares
        prior = np.broadcast_to(np.asarray(prior, float), shares.shape[1])
        n = _lengths(X)[:, None]
        words = np.maximum(shares * (prior.sum() + n) - prior, 0.0)
        total = words.sum(axis=1, keepdims=True)
        return np.where(n > 0, words / np.where(total > 0, total, 1.0), shares)


def _lengths(X: Any) -> Array:
    """Words of each document of a source."""
    found = [np.nan_to_num(np.asarray(b.X.sum(axis=1), float)).ravel() for b in X.blocks()]
    return np.concatenate(found)


def usualness_of(model: Any) -> tuple[Ask, str] | None:
    """What is lowest for the oddest rows, and its name."""
    if hasattr(model, "free_energy"):
        energy = _floats(model.free_energy)
        return (lambda X: -energy(X)), "minus the free energy"
    if hasattr(model, "log_partition"):  # a density that takes long to estimate
        return None
    if hasattr(model, "score_samples"):
        if hasattr(model, "topics_"):
            return _PerWord(model), "log probability per word"
        fair = hasattr(model, "oddness") or (hasattr(model, "priors_") and hasattr(model, "sample"))
        if fair and int(model.n_features_in_) <= _WIDE:
            return LogTails(model), ODDNESS
        return _floats(model.score_samples), "log density"
    if hasattr(model, "cluster_centers_"):
        return (lambda X: -np.asarray(model.transform(X), float).min(axis=1)), "minus the distance"
    if hasattr(model, "reconstruction_error") and not hasattr(model, "reconstruct"):
        ask = _floats(model.reconstruction_error)
        return (lambda X: -ask(X)), "minus the error of reconstruction"
    return None


class LogTails:
    """ln P(a row as odd or odder, with the same entries seen): lowest for the oddest rows."""

    def __init__(self, model: Any) -> None:
        # with many patterns of missing entries each has fewer draws
        own = hasattr(model, "oddness")
        density = model._point_density() if own else DrawnDensity(model)
        self._tails = RowTails(density, _DRAWS, 0, budget=_MOST_DENSITIES)

    def __call__(self, X: Any) -> Array:
        return np.concatenate([self._tails(block) for block in X.blocks()])


@dataclass(frozen=True, slots=True)
class _PerWord:
    """Long documents are not odd for being long."""

    model: Any

    def __call__(self, X: Any) -> Array:
        words = _lengths(X)
        scores = np.asarray(self.model.score_samples(X), float)
        return np.where(words > 0, scores / np.maximum(words, 1.0), 0.0)


def rebuilt_of(model: Any) -> Ask | None:
    """Rows as the model sees them, without noise."""
    return _floats(model.reconstruct) if hasattr(model, "reconstruct") else None


def filled_of(model: Any) -> Ask | None:
    """Rows with their missing entries filled."""
    return _floats(model.impute) if hasattr(model, "impute") and takes_missing(model) else None
