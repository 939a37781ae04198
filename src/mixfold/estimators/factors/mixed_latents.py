"""Latents of mixtures: averages over the components, or each as if a row were its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._set_output import _get_output_config

from mixfold.contracts import Array
from mixfold.estimators.shell import latents
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.latents import LatentEstimator
from mixfold.models.factors import factor_use


class MixedLatents(LatentEstimator):
    """Base of the models whose components have planes of their own, with or without outputs."""

    def transform(self, X: Any, per_component: bool = False) -> Array:
        """Expected latents of the rows, in the scale that the model has as a parameter, if any.

        Parameters
        ----------
        X : as in ``fit``
        per_component : bool, default=False
            False: the average over the components, by their probabilities. True: for each
            component as if the row were its own.

        Returns
        -------
        ndarray of shape (n_samples, n_factors) or (n_samples, n_components, n_factors)
        """
        if per_component and _get_output_config("transform", self)["dense"] != "default":
            raise ValueError(
                "per_component=True gives an array of three dimensions, which no table can hold; "
                "call set_output(transform='default') first"
            )
        answer = latents.per_component if per_component else latents.expected_latents
        return np.concatenate(self._infer_blocks(X, answer))

    def inverse_transform(self, Z: Any, components: Any = None) -> Array:
        """Rows at given latents, without noise.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_factors)
        components : array-like of int of shape (n_samples,) or int, default=None
            The component of each row. None: the average over the components by their weights,
            which is the expected row when only the latents are known.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        Z, maps = self._latent_rows(Z), self._score_maps()
        if maps is not None:
            Z = factor_use.undo_maps(maps, Z)
        params = self._canonical()
        shares = np.broadcast_to(params.weights, (len(Z), len(self._params.weights)))
        if components is not None:
            chosen = self._check_components(components, len(Z))
            shares = (chosen[:, None] == np.arange(len(self._params.weights))).astype(float)
        rows = self._model(self._n_columns).widen(factor_use.decode(params, Z, shares))
        return in_dtype(rows, self._dtype)

    def _check_components(self, components: Any, n_rows: int) -> Array:
        """Components given by a user, one for each of ``n_rows``."""
        chosen = np.asarray(components)
        words = (
            f"components must be a whole number from 0 to n_components - 1 = "
            f"{len(self._params.weights) - 1}, or one for each of the {n_rows} rows of Z"
        )
        if chosen.dtype.kind not in "iu" or chosen.shape not in ((), (n_rows,)):
            raise ValueError(f"{words}; got {chosen.dtype} of shape {chosen.shape}")
        bad = chosen[(chosen < 0) | (chosen >= len(self._params.weights))]
        if bad.size:
            raise ValueError(f"{words}; got {bad.flat[0]}")
        return np.broadcast_to(chosen, n_rows)
