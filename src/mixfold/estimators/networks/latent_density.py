"""A density of the sources of a factorisation: fit, draw, decode."""

from __future__ import annotations

from copy import copy
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    MetaEstimatorMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, has_fit_parameter

from mixfold.contracts import Array
from mixfold.engine.random import seed_from
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import MixfoldEstimator
from mixfold.estimators.shell.input_rows import fill_masked_entries, is_plain, validate_plain_rows
from mixfold.estimators.shell.packed import pack, unpack
from mixfold.estimators.shell.targets import find_target

# fitted attributes that a model file holds, besides reducer and density
_STORED = ("source_ranges_", "_seed", "_draws", "n_features_in_", "feature_names_in_")


def _density_has(method: str) -> Any:
    """A check for ``available_if``: whether the density has a method."""

    def check(model: Any) -> bool:
        return hasattr(getattr(model, "density_", None) or model._base_density(), method)

    return check


class LatentDensity(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, MetaEstimatorMixin, MixfoldEstimator
):
    """A density of the sources of a factorisation, from which rows can be drawn.

        s ~ density,   x = decoded s

    A factorisation says how sources become rows, but not which sources are usual: independent ones
    become rows that no table has. So a density, a Gaussian mixture say, is fitted to the sources
    that the reducer finds in the training rows; draws of it are decoded (sections 2 and 3.5 of
    [1]_, for handwritten digits).

    Scores are densities **of sources, not of rows**: they compare rows under one reducer, and not
    models with other reducers. Where the map from sources to rows is linear and square, the log
    density of a row is that of its sources minus the logarithm of the absolute determinant.

    Parameters
    ----------
    reducer : estimator, default=None
        What finds and decodes sources, by ``transform`` and ``inverse_transform``:
        :class:`MatrixFactorization`, :class:`PPCA`, :class:`FactorAnalysis`, :class:`ICA`,
        :class:`KernelPCA`, :class:`DeepFactorNetwork`, or one of another package, such as
        scikit-learn's NMF. None is :class:`PPCA` with all its axes. Rows may have missing entries
        if it takes them.
    density : estimator, default=None
        What is fitted to the sources: any estimator with ``fit``, ``score_samples`` and ``sample``.
        None is a :class:`GaussianMixture` of one component.
    bound : bool, default=True
        Draw no source outside the range of a sign: a source that is nowhere negative in the
        training rows is 0 where the density draws less, and likewise for signs reversed. False
        decodes draws as they are, which a reducer with signs may refuse.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers. Reducer
        and density without a seed of their own get one from it.
    n_jobs : int, default=None
        Number of threads; None means all cores. Of parts that have no number of their own.

    Attributes
    ----------
    reducer_ : fitted estimator
    density_ : fitted estimator
    source_ranges_ : ndarray of shape (n_sources, 2)
        Least and largest value of each source in the training rows.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The sources of all training rows are held in memory. For one density per class fit one of these
    to the rows of each class, or give a :class:`MixtureClassifier` the sources.

    References
    ----------
    .. [1] Arngren. Modelling cognitive representations. Master thesis, Technical University of
       Denmark, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from mixfold import GaussianMixture, LatentDensity, MatrixFactorization
    >>> X, y = load_digits(return_X_y=True)
    >>> parts = MatrixFactorization(12, link="identity", nonneg_codebook=True, nonneg_sources=True,
    ...                             fit_bias=False, tol=1e-2, random_state=0)
    >>> model = LatentDensity(parts, GaussianMixture(5), random_state=0).fit(X[y == 2])
    >>> twos, component = model.sample(20, random_state=0)
    >>> twos.shape, bool((twos >= 0).all())
    ((20, 64), True)
    >>> bool(model.score(X[y == 2]) > model.score(X[y == 1]))
    True
    >>> from mixfold.plots import plot_images
    >>> ax = plot_images(twos, (8, 8), columns=10)
    """

    _constraints: ClassVar[rule.Constraints] = {"bound": (rule.boolean(),)}

    def __init__(
        self,
        reducer: Any = None,
        density: Any = None,
        *,
        bound: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.reducer = reducer
        self.density = density
        self.bound = bound
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the reducer to rows, and the density to their sources.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            As the reducer takes it.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature.

        Returns
        -------
        self
        """
        self._check_parameters()
        _check_parts(self._base_reducer(), self._base_density())
        self._seed, self._draws = seed_from(self.random_state), 0
        weight = find_target(X, None, sample_weight).read_weights()
        self.reducer_ = self._seeded(self._base_reducer(), 0)
        sources = self._fit_reducer(X, sample_weight, weight)
        self.source_ranges_ = np.column_stack([sources.min(axis=0), sources.max(axis=0)])
        self.density_ = self._seeded(self._base_density(), 1)
        self.density_.fit(sources, **_weights_for(self.density_, weight))
        return self

    def _fit_reducer(self, X: Any, sample_weight: Any, weight: Array | None) -> Array:
        """Fit it; the sources of the rows, and names of columns published."""
        ours = isinstance(self.reducer_, MixfoldEstimator)
        if ours:
            self.reducer_.fit(X, sample_weight=sample_weight)
        else:
            X = self._plain_rows(X, reset=True)
            self.reducer_.fit(X, **_weights_for(self.reducer_, weight))
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(self.reducer_, name):
                setattr(self, name, getattr(self.reducer_, name))
        return self._sources_of(X)

    def _plain_rows(self, X: Any, reset: bool) -> Any:
        """Rows for a reducer of another package, which checks the rest itself."""
        X = fill_masked_entries(X)
        return validate_plain_rows(self, X, reset, 1) if is_plain(X) else X

    def _base_reducer(self) -> Any:
        """The reducer, not fitted."""
        if self.reducer is not None:
            return self.reducer
        from mixfold.estimators.factors.ppca import PPCA

        return PPCA()

    def _base_density(self) -> Any:
        """The density, not fitted."""
        if self.density is not None:
            return self.density
        from mixfold.estimators.mixtures.gaussian_mixture import GaussianMixture

        return GaussianMixture()

    def _seeded(self, part: Any, number: int) -> Any:
        """A copy that was not fitted, with a seed and a number of threads if it has none."""
        part = clone(part)
        names = part.get_params(deep=False)
        if self.n_jobs is not None and names.get("n_jobs", 0) is None:
            part.set_params(n_jobs=self.n_jobs)
        if names.get("random_state", 0) is None:
            mixed = np.random.SeedSequence([self._seed % 2**63, number])
            part.set_params(random_state=int(mixed.generate_state(1)[0] >> 1))
        return part

    # ------------------------------------------------ sources

    def _sources_of(self, X: Any) -> Array:
        found = self.reducer_.transform(X)
        found = np.asarray(getattr(found, "values", found))
        if found.ndim != 2 or found.dtype.kind != "f" or not np.isfinite(found).all():
            raise ValueError(
                f"the sources that {type(self.reducer_).__name__}.transform gives must be a table "
                f"of finite numbers; got shape {found.shape} of {found.dtype}"
            )
        return found

    def _sources(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._sources_of(X)

    def transform(self, X: Any) -> Array:
        """Sources of the rows, (n_samples, n_sources)."""
        return self._sources(X)

    def inverse_transform(self, S: Any) -> Array:
        """Rows (n_samples, n_features) at given sources.

        Parameters
        ----------
        S : array-like of shape (n_samples, n_sources)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        S = check_array(S, dtype=[np.float64, np.float32])
        return np.asarray(self.reducer_.inverse_transform(S))

    # ------------------------------------------------ the density

    def score_samples(self, X: Any) -> Array:
        """Log density of the sources of each row: not of the row (see above)."""
        S = self._sources(X)
        return np.asarray(self.density_.score_samples(S))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log density of the sources of a row (per unit of weight)."""
        weight = find_target(X, None, sample_weight).read_weights()
        return float(np.average(self.score_samples(X), weights=weight))

    @available_if(_density_has("predict"))
    def predict(self, X: Any) -> Array:
        """What the density says of the sources of each row: the most probable component."""
        S = self._sources(X)
        return np.asarray(self.density_.predict(S))

    @available_if(_density_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the components of the density given the sources of each row."""
        S = self._sources(X)
        return np.asarray(self.density_.predict_proba(S))

    def sample_sources(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw sources of the density.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=None
            None goes on with the random numbers of the fit.

        Returns
        -------
        S : ndarray of shape (n_samples, n_sources)
        component : ndarray of shape (n_samples,)
            Of the density that each came from; zeros if it does not say.
        """
        check_is_fitted(self)
        rule.check_count("n_samples", n_samples)
        if random_state is None:
            seed = int(
                np.random.SeedSequence([self._seed % 2**63, 2, self._draws]).generate_state(1)[0]
            )
            self._draws += 1
        else:
            seed = seed_from(random_state)
        found = _draw(self.density_, n_samples, seed % 2**31)
        S, component = found if isinstance(found, tuple) else (found, np.zeros(n_samples, int))
        S = np.array(S, dtype=float)
        if self.bound:
            low, high = self.source_ranges_.T
            S = np.clip(S, np.where(low >= 0, 0.0, -np.inf), np.where(high <= 0, 0.0, np.inf))
        return S, np.asarray(component)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw sources of the density and decode them; rows are without noise.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=None
            None goes on with the random numbers of the fit.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        component : ndarray of shape (n_samples,)
            Of the density that each came from; zeros if it does not say.
        """
        S, component = self.sample_sources(n_samples, random_state)
        return self.inverse_transform(S), component

    # ------------------------------------------------ scikit-learn and files

    @property
    def _n_features_out(self) -> int:
        return len(self.source_ranges_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "density_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base_reducer()).input_tags
        tags.input_tags.allow_nan = inner.allow_nan
        tags.input_tags.sparse = inner.sparse
        tags.input_tags.positive_only = inner.positive_only
        return tags

    def _plain_parameters(self) -> dict[str, Any]:
        values = super()._plain_parameters()
        for name in ("reducer", "density"):
            given = getattr(self, name)
            values[name] = None if given is None else pack(given, fitted=False)
        return values

    def _state(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in _STORED if hasattr(self, name)}
        parts = {name: pack(getattr(self, name), fitted=True) for name in ("reducer_", "density_")}
        return {**state, **parts}

    def _summary(self) -> dict[str, Any]:
        return {
            "reducer": type(self.reducer_).__name__,
            "density": type(self.density_).__name__,
            "sources": len(self.source_ranges_),
        }

    @classmethod
    def _from_state(cls, tree: dict[str, Any]) -> Self:
        parameters, state = dict(tree["parameters"]), dict(tree["state"])
        for name in ("reducer", "density"):
            given = parameters.get(name)
            parameters[name] = None if given is None else unpack(given)
        known = cls().get_params(deep=False)
        model = cls(**{k: v for k, v in parameters.items() if k in known})
        model._check_parameters()
        model.reducer_ = unpack(state.pop("reducer_"))
        model.density_ = unpack(state.pop("density_"))
        for name, value in state.items():
            if name not in _STORED:
                raise ValueError(f"unknown attribute {name!r}")
            if name == "feature_names_in_":
                value = np.array([str(v) for v in value], dtype=object)
            setattr(model, name, value)
        model._check_state()
        return model

    def _check_state(self) -> None:
        ranges = self.source_ranges_
        if ranges.ndim != 2 or ranges.shape[1] != 2 or not (ranges[:, 0] <= ranges[:, 1]).all():
            raise ValueError("source_ranges_ are no ranges")
        if self.density_.n_features_in_ != len(ranges):
            raise ValueError("the density is one of another number of sources")
        if self.reducer_.n_features_in_ != self.n_features_in_:
            raise ValueError("the reducer has other columns")
        if not isinstance(self._seed, int) or not isinstance(self._draws, int):
            raise ValueError("the seed is no whole number")


def _check_parts(reducer: Any, density: Any) -> None:
    """Refuse what cannot decode sources, or has no draws."""
    for name, part in (("reducer", reducer), ("density", density)):
        if isinstance(part, type) or not hasattr(part, "get_params"):
            raise TypeError(f"{name} must be an estimator; got {part!r}")
    lacking = [m for m in ("transform", "inverse_transform") if not hasattr(reducer, m)]
    if lacking:
        raise TypeError(
            f"the reducer must have transform and inverse_transform; {type(reducer).__name__} has "
            f"no {lacking[0]}. Use MatrixFactorization, PPCA or FactorAnalysis"
        )
    lacking = [m for m in ("score_samples", "sample") if not hasattr(density, m)]
    if lacking:
        raise TypeError(
            f"the density must have score_samples and sample; {type(density).__name__} has no "
            f"{lacking[0]}. Use GaussianMixture or another mixture"
        )


def _weights_for(estimator: Any, weight: Array | None) -> dict[str, Array]:
    """``sample_weight`` of its fit, if there are any weights."""
    if weight is None:
        return {}
    if not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(
            f"{type(estimator).__name__}.fit takes no sample_weight: leave it out, or choose an "
            "estimator that takes weights, such as those of mixfold"
        )
    return {"sample_weight": weight}


def _draw(density: Any, n_samples: int, seed: int) -> Any:
    """Draws with a seed; estimators of scikit-learn's mixtures have it as a parameter instead."""
    if "random_state" in signature(density.sample).parameters:
        return density.sample(n_samples, random_state=seed)
    return copy(density).set_params(random_state=seed).sample(n_samples)
