"""What PPCA and factor analysis share: EM, learning by batches, latents, draws, files."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, Source
from mixfold.engine.loop import Fit, Plan
from mixfold.engine.random import RowKeys, seed_from
from mixfold.engine.schedules import Stepwise
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell import latents
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.fitting import (
    FIRST_BATCH_STEPS,
    acceleration_named,
    check_enough_rows,
    publish_convergence,
    run_fit,
    survey_rows,
    warn_about_empty_rows,
)
from mixfold.estimators.shell.latents import LatentEstimator
from mixfold.families.factor import FactorFamily
from mixfold.families.factor.noise import Noise
from mixfold.math.low_rank import low_rank
from mixfold.models.factors import factor_use
from mixfold.models.factors.spectral import ORDINARY, second_moments
from mixfold.models.factors.spectral_sums import MissingEntries, SecondMoments, SumSquares
from mixfold.models.mixtures.compressed import compress_moments
from mixfold.models.mixtures.mixture import Mixture


class FactorModel(LatentEstimator):
    """Base of PPCA and FactorAnalysis; ``n_components`` is the latent dimension.

    Each of them has its own ``fit``, which calls ``_fit_rows`` where EM visits the rows. Both learn
    by batches in the same way: ``partial_fit`` keeps the moments of all rows while it can.
    """

    _constraints: ClassVar[rule.Constraints] = {}
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_holes", "_moments", "_batches", "n_components_", "_total", "converged_",
        "stop_reason_", "n_iter_", "n_passes_", "lower_bound_", "lower_bounds_", "events_",
        "_dtype", "_stream", "_schedule",
    )  # fmt: skip

    # of a stream: sums over all its rows, and the number of batches
    _moments: SecondMoments
    _batches: int

    # ------------------------------------------------ what the two models say

    @abstractmethod
    def _noise(self) -> Noise:
        """Which noise the columns have."""

    @abstractmethod
    def _dimension(self, n_rows: int, n_features: int) -> int:
        """``n_components`` as a number, for data of this shape."""

    @abstractmethod
    def _fit_moments_so_far(self, moments: SecondMoments) -> None:
        """Fit to all the rows of a stream that the moments stand for, without warnings."""

    @abstractmethod
    def _publish_factors(self, loadings: Array, noise: Array, covariance: Array) -> None:
        """Publish loadings (D, d), noise variances (D,), posterior covariance (d, d)."""

    @property
    def _uncentred(self) -> bool:
        """Whether the mean is zero by decree."""
        return False

    def _latent_turn(self) -> Array | None:
        """T with published latents z T for canonical ones z; None if they are the same."""
        return None

    # ------------------------------------------------ the model and how it is run

    def _family(self, **changes: Any) -> FactorFamily:
        """The density of a row, from the settings and ``n_components_``."""
        family = FactorFamily(
            floor=max(float(self.noise_floor), 1e-14),
            factors=(self.n_components_,),
            noise=self._noise(),
            has_missing=getattr(self, "_holes", False),
            fixed_means=self._uncentred,
        )
        return replace(family, **changes)

    def _model(self, n_features: int) -> Mixture:
        return Mixture(1, self._family())

    def _make_plan(self, seed: int, max_iter: int) -> Plan:
        """How the engine runs EM: from one start."""
        return Plan(
            tol=self.tol,
            max_iter=max_iter,
            n_candidates=1,
            acceleration=acceleration_named(self.acceleration),
            time_budget=self.time_budget,
            seed=seed,
        )

    def _fits(self, model: Mixture) -> bool:
        """Whether the parameters at hand can be gone on from."""
        shape = (1, self.n_features_in_, self.n_components_)
        components = self._params.components
        # a fit about its mean says nothing about one about zero
        about = not self._uncentred or not components.frame.leave(components.means).any()
        return bool(components.loadings.shape == shape and about)

    def _check_dimension(self, wanted: int, n_rows: int, n_features: int) -> int:
        """``wanted`` latents, if the data allow as many."""
        if wanted > min(n_rows, n_features):
            raise ValueError(
                f"n_components={wanted} must be at most min(n_samples, n_features), with "
                f"n_samples = {n_rows} rows of positive weight and n_features = {n_features}; "
                "lower n_components"
            )
        return wanted

    # ------------------------------------------------ fitting

    def _fit_rows(
        self, source: Source, n_latents: int | None = None, first_batch: bool = False
    ) -> Fit:
        """Fit by EM over the rows and publish; ``n_latents`` instead of ``n_components``.

        Called by ``fit`` where moments do not suffice, and by ``partial_fit``.
        """
        survey = survey_rows(self, source)
        check_enough_rows(survey.pilot.total_rows, 1)
        self._holes = survey.has_missing
        if n_latents is None:
            n_latents = self._dimension(survey.pilot.total_rows, self.n_features_in_)
        self.n_components_ = n_latents
        model = self._model(source.n_features)
        max_iter = min(self.max_iter, FIRST_BATCH_STEPS) if first_batch else self.max_iter
        plan = self._make_plan(survey.seed, max_iter)
        result = run_fit(self, model, survey, plan, self._warm_start(model, survey))

        self._store_density_fit(result, survey)
        self._publish_params()
        publish_convergence(self, result)
        warn_about_empty_rows(result)
        return result

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, then the expected latents of the rows."""
        found: Array = self.fit(X, y, sample_weight).transform(X)
        return found

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch, of any size.

        While the batches are complete and have at most 2000 columns the moments of all rows are
        kept, and the result is that of one fit to all of them. From the first batch with missing
        entries on, or with more columns, stepwise EM is used: earlier batches are slowly
        forgotten.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.

        Returns
        -------
        self
        """
        self._check_parameters()
        begun = hasattr(self, "_moments") or hasattr(self, "_schedule")
        source = self._open(X, reset=not begun, weight=sample_weight)
        if hasattr(self, "_schedule") or source.n_features > ORDINARY:
            self._learn_by_em(source, first=not begun)
            return self
        try:
            self._learn_moments(source)
        except MissingEntries:
            if begun:
                self._schedule = self._schedule_of_moments()
                del self._moments
            self._learn_by_em(source, first=not begun)
        return self

    def _learn_moments(self, source: Source) -> None:
        """Add the moments of one more batch, and fit to those of all; for ``partial_fit``."""
        earlier: SecondMoments | None = getattr(self, "_moments", None)
        executor = self._executor(source)
        if earlier is None:
            batch = second_moments(source, executor)
        else:
            batch = executor.map_reduce(SumSquares(earlier.sums.origin), source)
        if batch.sums.weight == 0:
            return
        if earlier is None:
            self._stream, self._batches = (seed_from(self.random_state), 0), 0
            self._dtype = source.dtype.name
        self._batches += 1
        moments = batch if earlier is None else earlier + batch
        self._fit_moments_so_far(moments)
        self._moments = moments
        self.n_iter_ = self._batches

    def _learn_by_em(self, source: Source, first: bool) -> None:
        """Learn one more batch by stepwise EM; for ``partial_fit``."""
        self._holes = True
        if first:
            self._fit_rows(source, first_batch=True)
        else:
            self._check_same_stream(self._model(self.n_features_in_), "n_components")
        self._learn_batch_by_em(self._stream_model(), source, first)

    def _stream_model(self) -> Mixture:
        """The model of stepwise EM, whose statistics of batches may be blended."""
        return Mixture(1, self._family(expand=False, has_missing=True))

    def _schedule_of_moments(self) -> Stepwise:
        """The batches so far as stepwise EM would have them; for ``partial_fit``."""
        model = self._stream_model()
        rows, weight = compress_moments(self._moments).both_sides()
        task = partial(model.expect, model.prepare(self._params), rng=RowKeys(0, 0))
        stats = task(Block(np.ascontiguousarray(rows), weight=weight))
        return Stepwise(model.normalised(stats), self._batches)

    # ------------------------------------------------ results

    def _publish_params(self) -> None:
        """Publish what the parameters say, in units of the data."""
        components = self._canonical().components
        scale = components.frame.scale
        self.mean_ = in_dtype(components.frame.leave(components.means[0]), self._dtype)
        loadings = components.loadings[0] * scale[:, None]
        noise = components.noise[0] * scale**2
        covariance = low_rank(components.loadings, components.noise).covariances[0]
        self._publish_factors(loadings, noise, covariance)

    # ------------------------------------------------ latents

    def transform(self, X: Any, return_cov: bool = False) -> Any:
        """Latents, scores or whitened scores of the rows, by ``scale``.

        Where entries are missing they are expected ones: those of the row that ``impute`` gives.

        Parameters
        ----------
        X : as in ``fit``
        return_cov : bool, default=False
            Also give the posterior covariance of the latents; with scale='latent' only.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
        covariance : ndarray of shape (n_components, n_components), only with ``return_cov``
            The same for all complete rows. If any row has missing entries, one for each row:
            (n_samples, n_components, n_components).
        """
        check_is_fitted(self)
        if return_cov and self.scale != "latent":
            raise ValueError(
                "return_cov=True gives covariances of the latents and needs scale='latent', got "
                f"scale={self.scale!r}; set_params(scale='latent') first (no fit is needed)"
            )
        turn = self._latent_turn()
        if not return_cov:
            Z = np.concatenate(self._infer_blocks(X, latents.alone))
            return Z if turn is None else in_dtype(Z @ turn, Z.dtype)
        parts = self._infer_blocks(X, latents.with_covariances)
        Z = np.concatenate([part[0] for part in parts])
        if turn is not None:
            Z = in_dtype(Z @ turn, Z.dtype)
        covariances = [part[1] if turn is None else turn.T @ part[1] @ turn for part in parts]
        if all(one.ndim == 2 for one in covariances):
            return Z, covariances[0]
        each = [
            np.broadcast_to(one, (len(part[0]), *one.shape[-2:]))
            for one, part in zip(covariances, parts, strict=True)
        ]
        return Z, np.concatenate(each)

    def inverse_transform(self, Z: Any, method: str = "posterior") -> Array:
        """Rows at given latents, without noise.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Any points of the latent space, in the scale that ``transform`` has.
        method : str, default='posterior'
            'posterior': loadings_ z + mean_. 'least-squares' for PPCA, 'weighted' for factor
            analysis, take Z as what ``transform`` returned and undo its shrinkage first, so that
            the rows are those that ``reconstruct`` gives by the same method; for PPCA they are
            the rows that scikit-learn's PCA reconstructs.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        if method not in self._inverse_methods:
            names = " or ".join(repr(name) for name in self._inverse_methods)
            raise ValueError(f"method must be {names}, got {method!r}")
        Z, turn = self._latent_rows(Z), self._latent_turn()
        if turn is not None:
            Z = np.linalg.solve(turn.T, Z.T).T
        params, maps = self._canonical(), self._score_maps()
        if maps is not None:
            Z = factor_use.undo_maps(maps, Z)[:, 0]
        if method != "posterior":
            Z = factor_use.unshrunk(params, Z)
        return in_dtype(factor_use.decode(params, Z, np.ones((len(Z), 1))), self._dtype)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw new rows.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=None
            None goes on with the estimator's own stream: each call gives new draws, and the
            same sequence of calls after the same fit the same ones.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        rng = self._generator(n_samples, random_state)
        X, _ = self._model(self.n_features_in_).sample(self._params, n_samples, rng)
        return in_dtype(X, self._dtype)

    def get_covariance(self) -> Array:
        """The covariance of a row, (n_features, n_features): made only when asked for."""
        check_is_fitted(self)
        components = self._params.components
        scale = components.frame.scale
        loadings = components.loadings[0] * scale[:, None]
        found: Array = loadings @ loadings.T + np.diag(components.noise[0] * scale**2)
        return found

    def get_precision(self) -> Array:
        """The inverse of ``get_covariance``, by a factor of the size of the latents."""
        check_is_fitted(self)
        components = self._params.components
        root = np.sqrt(components.noise[0]) * components.frame.scale
        whiten = low_rank(components.loadings, components.noise).whiten[0] / components.frame.scale
        found: Array = np.diag(1 / root**2) - whiten.T @ whiten
        return found

    # ------------------------------------------------ files

    def _check_state(self) -> None:
        components = self._params.components
        shape = (1, self.n_features_in_, self.n_components_)
        if components.loadings.shape != shape or components.noise.shape != shape[:2]:
            raise ValueError(
                f"loadings of shape {components.loadings.shape} where {shape} is declared"
            )
        self._publish_params()
