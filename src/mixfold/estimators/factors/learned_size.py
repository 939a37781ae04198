"""How many factors one model has, learned with them: ``n_components='ard'``.

The mixture of one component by variational Bayes (``families/factor/bayes.py``). Complete rows are
replaced by few with the same moments, of which the bound is the same.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.loop import Fit
from mixfold.engine.random import RowKeys
from mixfold.estimators.factors.factor_priors import limit_of_factors
from mixfold.estimators.shell.base import warn
from mixfold.estimators.shell.fitting import Survey, WarmStart, run_fit
from mixfold.families.factor.bayes import BayesFactors
from mixfold.families.factor.posteriors import with_doubt_of_entries
from mixfold.math.frame import Frame
from mixfold.models.factors.bayes_factors import BayesFactorMixture
from mixfold.models.mixtures.bayes_mixture import BayesParams
from mixfold.models.mixtures.mixture import Mixture, MixtureParams


def learn_size(estimator: Any, survey: Survey, n_rows: int, mean: Array | None) -> Fit:
    """The posterior of one model of factors; ``mean``: of the rows, if those of the survey are
    centred and stand for ``n_rows`` others.

    Leaves the posterior, its point, the number of factors and the bound with the estimator.
    """
    most = limit_of_factors(None, estimator.n_features_in_, n_rows, estimator._holes)[0]
    prior = estimator.noise_prior
    given = {} if prior is None else {"noise_shape": 0.5 * prior[0], "noise_variance": prior[1]}
    family = BayesFactors(
        floor=max(float(estimator.noise_floor), 1e-14),
        factors=(most,),
        noise=estimator._noise(),
        has_missing=estimator._holes,
        # the frame is then about zero, and no row that stands for others an outlier
        fixed_means=mean is not None,
        **given,
    )
    model = BayesFactorMixture(1, family)
    start = _warm_start(estimator, model, survey, mean)
    model = model.with_prior(survey.source, survey.executor, survey.pilot, RowKeys(survey.seed))
    plan = estimator._make_plan(survey.seed, estimator.max_iter)
    squarem = None if estimator.acceleration is None else ACCELERATIONS["squarem"]
    tol = estimator.tol if mean is None else estimator.tol / 100  # cheap steps
    result = run_fit(estimator, model, survey, replace(plan, tol=tol, acceleration=squarem), start)

    point = model.plug_in(result.params)[1]
    estimator.n_components_ = int(point.components.n_factors)
    total = _log_likelihood(estimator, survey, point, mean is not None)
    posterior = result.params if mean is None else _moved(result.params, mean)
    params = model.plug_in(posterior)[1]
    estimator._store_density_fit(replace(result, params=params), survey)
    estimator._posterior, estimator._total = posterior, (*total, 0.0)
    estimator.evidence_bound_ = float(result.objective)
    if 0 < most < estimator.n_features_in_ - 1 and estimator.n_components_ == most:
        warn(
            f"all {most} factors that n_components='ard' tries are in use: there may be more; give "
            "n_components as a number, or scale the columns",
            UserWarning,
        )
    return result


def forget_posterior(estimator: Any) -> None:
    """Without what a fit with ``n_components='ard'`` has left."""
    for name in ("_posterior", "evidence_bound_"):
        estimator.__dict__.pop(name, None)


def _log_likelihood(
    estimator: Any, survey: Survey, point: MixtureParams, centred: bool
) -> tuple[float, float]:
    """Of the training rows at the expected parameters, and their weight."""
    model = Mixture(1, estimator._family(fixed_means=centred))
    task = partial(model.expect, model.prepare(point), rng=RowKeys(0, 0))
    stats = survey.executor.map_reduce(task, survey.source)
    return stats.log_likelihood, stats.weight


def _moved(params: BayesParams, mean: Array) -> BayesParams:
    """The same posterior of rows about another mean."""
    old: Frame = params.components.frame
    frame = Frame(old.origin + mean, old.scale)
    return replace(params, components=replace(params.components, frame=frame))


def _warm_start(
    estimator: Any, model: BayesFactorMixture, survey: Survey, mean: Array | None
) -> WarmStart:
    """The last posterior as a start, if ``warm_start`` asks for it."""
    known = getattr(estimator, "_posterior", None)
    if not estimator.warm_start or known is None:
        return WarmStart()
    if not model.accepts(known, estimator.n_features_in_):
        return WarmStart()
    start = model.change_frame(known if mean is None else _moved(known, -mean), survey.pilot)
    if estimator._holes and start.components.doubt.shape[1] == 1:
        start = replace(start, components=with_doubt_of_entries(start.components))
    return WarmStart(model.with_current_priors(start))


def used_columns(loadings: Array, family: Any) -> Array:
    """Which columns of (1, D, d) a prior of the loadings has not made vanish."""
    prior = family.loadings_prior
    squares = (loadings**2).sum(axis=1)
    used: Array = prior.used(squares, loadings.shape[1])[0]
    return np.flatnonzero(used)
