"""What PPCA and factor analysis share: EM, learning by batches, latents, draws, files."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, Source
from mixfold.engine.executors import resolve_executor
from mixfold.engine.loop import Fit, Plan, pilot_size
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.random import RowKeys, seed_from
from mixfold.engine.schedules import Stepwise
from mixfold.engine.sources import open_source
from mixfold.estimators.factors.factor_priors import loadings_prior_of, noise_prior_of
from mixfold.estimators.factors.learned_size import forget_posterior, learn_size, used_columns
from mixfold.estimators.mixtures.set_aside import warn_about_kept_columns
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell import latents
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.effective_rows import warn_about_evidence
from mixfold.estimators.shell.fitting import (
    FIRST_BATCH_STEPS,
    Survey,
    WarmStart,
    acceleration_named,
    check_enough_rows,
    checkpoint_of,
    publish_convergence,
    run_fit,
    survey_rows,
    warn_about_empty_rows,
)
from mixfold.estimators.shell.latents import LatentEstimator
from mixfold.estimators.shell.score_scale import score_scale
from mixfold.families.factor import FactorFamily, FactorParams
from mixfold.families.factor.noise import Noise
from mixfold.math.frame import Frame
from mixfold.math.low_rank import low_rank
from mixfold.models.factors import factor_use
from mixfold.models.factors.spectral import ORDINARY, second_moments
from mixfold.models.factors.spectral_sums import MissingEntries, SecondMoments, SumSquares
from mixfold.models.mixtures.compressed import compress_moments
from mixfold.models.mixtures.mixture import Mixture, MixtureParams


class FactorModel(LatentEstimator):
    """Base of PPCA and FactorAnalysis; ``n_components`` is the latent dimension.

    Each of them has its own ``fit``, which calls ``_fit_rows`` where EM visits the rows. Both learn
    by batches in the same way: ``partial_fit`` keeps the moments of all rows while it can.
    """

    n_components: Any
    loadings_prior: Any
    noise_prior: Any
    _constraints: ClassVar[rule.Constraints] = {}
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_posterior", "evidence_bound_", "_holes", "_moments", "_batches",
        "n_components_", "_total", "converged_", "stop_reason_", "n_iter_", "n_passes_",
        "lower_bound_", "lower_bounds_", "events_", "_dtype", "_stream", "_schedule",
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

    # ------------------------------------------------ settings

    @property
    def _learns_size(self) -> bool:
        """Whether the number of factors is learned with them."""
        return isinstance(self.n_components, str) and self.n_components == "ard"

    @property
    def _has_prior(self) -> bool:
        return self.loadings_prior is not None or self.noise_prior is not None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        score_scale(self)
        if not self._learns_size:
            return
        if self.loadings_prior is not None:
            raise ValueError(
                "n_components='ard' has a prior of the loadings already; got "
                f"loadings_prior={self.loadings_prior!r}. Leave loadings_prior out, or give "
                "n_components as a number"
            )
        if self.acceleration == "quasi-newton":
            raise ValueError(
                "acceleration='quasi-newton' needs slopes, which n_components='ard' does not "
                "offer; use 'auto' or 'squarem'"
            )

    # ------------------------------------------------ the model and how it is run

    def _family(self, **changes: Any) -> FactorFamily:
        """The density of a row, from the settings and ``n_components_``."""
        family = FactorFamily(
            floor=max(float(self.noise_floor), 1e-14),
            factors=(self.n_components_,),
            noise=self._noise(),
            has_missing=getattr(self, "_holes", False),
            fixed_means=self._uncentred,
            loadings_prior=loadings_prior_of(self.loadings_prior),
            noise_prior=noise_prior_of(self.noise_prior),
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
        if self._learns_size:
            result = learn_size(self, survey, survey.pilot.total_rows, None)
        else:
            if n_latents is None:
                n_latents = self._dimension(survey.pilot.total_rows, self.n_features_in_)
            self.n_components_ = n_latents
            model = self._model(source.n_features)
            max_iter = min(self.max_iter, FIRST_BATCH_STEPS) if first_batch else self.max_iter
            plan = self._make_plan(survey.seed, max_iter)
            result = run_fit(self, model, survey, plan, self._warm_start(model, survey))
            self._store_point(model, result, survey)
        self._publish_params()
        publish_convergence(self, result)
        warn_about_empty_rows(result)
        return result

    def _look_at_sample(self, source: Source) -> Survey:
        """The rows as far as a pilot tells them, for warnings before a fit."""
        executor = self._executor(source)
        return Survey(source, executor, 0, draw_pilot(source, executor, pilot_size(source, 1), 0))

    def _look_at_evidence(self, survey: Survey) -> None:
        """Warn of what misleads a number of factors that is learned."""
        name = f"n_components={self.n_components!r}"
        warn_about_evidence(name, survey.pilot)
        if self._learns_size:
            warn_about_kept_columns(self, survey, name)

    def _find_moments(self, source: Source) -> SecondMoments | None:
        """The moments of complete data, where they are less than the data; called by ``fit``."""
        few = source.n_samples is not None and source.n_samples <= source.n_features
        if few or source.n_features > ORDINARY:
            return None
        try:
            return second_moments(source, self._executor(source))
        except MissingEntries:
            return None

    def _fit_moments(self, moments: SecondMoments, n_rows: int, dtype: str) -> Fit:
        """Fit by EM to a few rows that have the moments of all ``n_rows``, and publish."""
        if moments.sums.weight == 0:
            raise ValueError("no row has a positive weight; give one at least a weight above 0")
        self._holes = False
        few = compress_moments(moments, not self._uncentred)
        source = open_source(np.ascontiguousarray(few.rows), weight=few.weight)
        executor = resolve_executor("threads", self.n_jobs, source)
        checkpoint, seed = checkpoint_of(self), seed_from(self.random_state)
        seed = seed if checkpoint is None else checkpoint.seed(seed)
        # on both sides of zero even a single row tells the spread of its columns
        rows, weight = replace(few, mean=np.zeros_like(few.mean)).both_sides()
        both = open_source(rows, weight=weight)
        pilot = draw_pilot(both, executor, len(rows), seed)
        if self._learns_size:
            result = learn_size(self, Survey(both, executor, seed, pilot), n_rows, few.mean)
        else:
            survey = Survey(source, executor, seed, pilot)
            self.n_components_ = self._dimension(n_rows, self.n_features_in_)
            model = Mixture(1, self._family(fixed_means=True))
            # steps on so few rows cost next to nothing
            plan = replace(self._make_plan(seed, self.max_iter), tol=self.tol / 100)
            warm = self._warm_start_of_moments(model, survey)
            result = run_fit(self, model, survey, plan, warm)
            result = replace(result, params=_move_mean(result.params, few.mean))
            self._store_point(model, result, survey)
        self._dtype = dtype  # of the rows, not of those that stand for them
        self._publish_params()
        publish_convergence(self, result)
        warn_about_empty_rows(result)
        return result

    def _store_point(self, model: Mixture, result: Fit, survey: Survey) -> None:
        """Store parameters that were found by maximum likelihood or MAP."""
        forget_posterior(self)
        self._store_density_fit(result, survey)
        family = model.family
        assert isinstance(family, FactorFamily)
        log_likelihood = result.objective + family.penalty(result.params.components)
        self._total = (log_likelihood, result.weight, result.entropy)

    def _drop_unused_factors(self) -> None:
        """Without the factors that a prior of the loadings has made vanish; for ``fit``."""
        if self.loadings_prior != "ard":
            return
        old = self._params.components
        kept = used_columns(old.loadings, self._family())
        self.n_components_ = len(kept)
        loadings = np.ascontiguousarray(old.loadings[..., kept])
        self._params = replace(self._params, components=replace(old, loadings=loadings))
        self._publish_params()

    def _warm_start_of_moments(self, model: Mixture, survey: Survey) -> WarmStart:
        """The parameters at hand as the start, if they can be."""
        if not (self._continues_last_fit() and hasattr(self, "_params") and self._fits(model)):
            return WarmStart()
        params = self._params
        assert isinstance(model.family, FactorFamily)
        if model.family.fixed_means:  # those of ``_fit_moments``, about zero
            params = _move_mean(params, np.zeros(self.n_features_in_))
        return WarmStart(model.change_frame(params, survey.pilot))

    def _continues_last_fit(self) -> bool:
        """Whether the next fit begins where the last one ended."""
        return bool(self.warm_start)

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
        if self._learns_size:
            raise ValueError(
                "n_components='ard' cannot be learned in a stream with missing entries or more "
                "than 2000 columns; give a whole number"
            )
        self._holes = True
        if first:
            self._fit_rows(source, first_batch=True)
        else:
            self._check_same_stream(self._model(self.n_features_in_), "n_components")
        # priors count once, against the weight of all rows so far
        total_weight = None if self._has_prior else 1.0
        self._learn_batch_by_em(self._stream_model(), source, first, total_weight)

    def _stream_model(self) -> Mixture:
        """The model of stepwise EM, whose statistics of batches may be blended."""
        return Mixture(1, self._family(expand=False, has_missing=True))

    def _schedule_of_moments(self) -> Stepwise:
        """The batches so far as stepwise EM would have them; for ``partial_fit``."""
        model = self._stream_model()
        rows, weight = compress_moments(self._moments).both_sides()
        task = partial(model.expect, model.prepare(self._params), rng=RowKeys(0, 0))
        stats = task(Block(np.ascontiguousarray(rows), weight=weight))
        return Stepwise(model.normalised(stats), self._batches, weight=stats.weight)

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
        if return_cov and score_scale(self) != "latent":
            raise ValueError(
                "return_cov=True gives covariances of the latents and needs scale='latent', got "
                f"scale={score_scale(self)!r}; set_params(scale='latent', whiten=None) first (no "
                "fit is needed)"
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

    def _summary(self) -> dict[str, Any]:
        summary = super()._summary()
        if self._learns_size or self._has_prior:
            del summary["log-likelihood per row"]
            summary["objective per row"] = self.lower_bound_
        return summary

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


def _move_mean(params: MixtureParams, mean: Array) -> MixtureParams:
    """The same factors about another mean."""
    old: FactorParams = params.components
    frame = Frame(mean, old.frame.scale)
    moved = FactorParams(frame, np.zeros_like(old.means), old.loadings, old.noise)
    return MixtureParams(params.weights, moved)
