"""The shell of models with factors: latents of rows, and rows of latents."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from mixfold.contracts import Array, Block
from mixfold.estimators.shell.base import warn
from mixfold.estimators.shell.density import DensityEstimator
from mixfold.estimators.shell.predictions import match_dtype
from mixfold.estimators.shell.score_scale import score_scale
from mixfold.families.factor import FactorFamily
from mixfold.models.factors import factor_use
from mixfold.models.factors.factor_use import RECONSTRUCTIONS, Inferred
from mixfold.models.mixtures.mixture import Mixture, MixtureParams, MixtureReading


class LatentEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityEstimator):
    """Base of the factor models, of one component or many."""

    # what ``transform`` gives, of the models that have it as a parameter
    scale: str = "latent"
    whiten: bool | None = None
    # whether scores are coordinates along axes of length one, as those of PCA
    _unit_axes: ClassVar[bool] = False
    # names of ways to reconstruct that suit the model
    _methods: ClassVar[tuple[str, ...]] = tuple(RECONSTRUCTIONS)

    @property
    def _n_columns(self) -> int:
        """Number of columns of the model: those of X, unless it is fitted to a map of the rows."""
        return int(self.n_features_in_)

    @property
    def _n_features_out(self) -> int:
        return int(self._params.components.n_factors)

    def _canonical(self) -> MixtureParams:
        """The parameters in the latent coordinates in which all answers are given."""
        family = self._model(self._n_columns).family
        assert isinstance(family, FactorFamily)
        loadings = self._params.components.loadings
        # known columns untie what is left of the loadings, if the noise of the components differs
        common = family.loadings.tied and bool((loadings == loadings[:1]).all())
        turn = factor_use.common_axes if common else factor_use.canonical
        return turn(self._params)

    def _reading(self) -> tuple[Mixture, MixtureReading]:
        check_is_fitted(self)
        model = self._model(self._n_columns)
        return model, model.prepare(self._canonical())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # ------------------------------------------------ latents

    def _score_maps(self) -> Array | None:
        """What posterior means are multiplied by (K, d, d), by ``scale``; None: nothing."""
        scale = score_scale(self)
        if scale == "latent":
            return None
        return factor_use.score_maps(self._canonical(), scale, self._unit_axes)

    def _infer_blocks(self, X: Any, answer: Any) -> list[Any]:
        """``answer(inferred)`` of each block; rows without a single entry are told of."""
        task = partial(_answer_block, *self._reading(), answer=answer, maps=self._score_maps())
        parts = list(self._rows(X, task))
        empty = sum(part[1] for part in parts)
        if empty:
            warn(
                f"{empty} of the rows have no observed entry: their latents are those of the "
                "prior, with mean zero",
                UserWarning,
            )
        return [part[0] for part in parts]

    def reconstruct(self, X: Any, method: str = "posterior") -> Array:
        """The rows as the model sees them: complete, and without what it takes for noise.

        Parameters
        ----------
        X : as in ``fit``
            NaN entries are filled like the others.
        method : str, default='posterior'
            'posterior': the expected row given its latents. 'least-squares': the nearest point of
            the plane of the (most probable) component; for PPCA this is PCA's reconstruction.
            Where the model has them, 'weighted': the same with each column in units of its noise;
            'hard': the most probable component at the expected latents.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        rebuild = RECONSTRUCTIONS[self._check_method(method)]
        model, reading = self._reading()
        return self._concatenate_rows(X, partial(_rebuilt, rebuild, model, reading))

    def _check_method(self, method: str) -> str:
        if method not in self._methods:
            raise ValueError(f"method must be one of {', '.join(self._methods)}; got {method!r}")
        return method

    # names of ways to undo ``transform``
    _inverse_methods: ClassVar[tuple[str, str]] = ("posterior", "least-squares")

    def _latent_rows(self, Z: Any) -> Array:
        """Latents given by a user, (n, d)."""
        check_is_fitted(self)
        Z = check_array(Z, dtype=[np.float64, np.float32], input_name="Z", ensure_min_features=0)
        size = self._n_features_out
        if Z.shape[1] != size:
            raise ValueError(
                f"Z must have one column per factor, {size}; got {Z.shape[1]} columns. Give "
                "latents as transform returns them."
            )
        return np.asarray(Z, dtype=float)


def _answer_block(
    model: Mixture, reading: MixtureReading, block: Block, answer: Any, maps: Array | None
) -> tuple[Any, int]:
    wanted = answer is with_covariances
    inferred = factor_use.infer(model, reading, block, covariances=wanted, maps=maps)
    return answer(inferred, block), _empty_rows(block)


def _empty_rows(block: Block) -> int:
    if block.complete or not isinstance(block.X, np.ndarray):
        return 0
    return int(np.isnan(block.X).all(axis=1).sum())


def _rebuilt(rebuild: Any, model: Mixture, reading: MixtureReading, block: Block) -> Array:
    return match_dtype(factor_use.reconstruct(rebuild, model, reading, block), block)


def expected_latents(inferred: Inferred, block: Block) -> Array:
    return match_dtype(inferred.expected, block)


def per_component(inferred: Inferred, block: Block) -> Array:
    return match_dtype(inferred.latents.means, block)


def alone(inferred: Inferred, block: Block) -> Array:
    """Of a model with one component: means (n, d)."""
    return match_dtype(inferred.latents.means[:, 0], block)


def with_covariances(inferred: Inferred, block: Block) -> tuple[Array, Array]:
    """Of a model with one component: means (n, d) and covariances (d, d) or (n, d, d)."""
    covariances = inferred.latents.covariances
    assert covariances is not None
    one = covariances[0] if covariances.ndim == 3 else covariances[:, 0]
    return match_dtype(inferred.latents.means[:, 0], block), one
