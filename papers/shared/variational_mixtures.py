"""Variational Bayes as Yu (2006) runs it: one climb from a random start, nothing moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import psi

from mixfold.contracts import Array
from mixfold.engine.climb import climb, visit
from mixfold.engine.executors.threads import ThreadExecutor
from mixfold.engine.loop import Plan, choose_start
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.random import RowKeys
from mixfold.engine.sources import open_source
from mixfold.engine.state import Climb, Rules, Task
from mixfold.families.bayes.normal_wishart import BayesFull
from mixfold.mixing.dirichlet import SymmetricDirichlet
from mixfold.mixing.protocol import Mixing
from mixfold.mixing.sticks import StickBreaking, StickWeights
from mixfold.models.mixtures.bayes_mixture import BayesMixture, BayesParams
from mixfold.models.mixtures.prior_pass import total_moments
from mixfold.models.mixtures.starts import RandomStart
from papers.frame.experiment import map_on_cores

# a component can take hundreds of steps to die, in which the bound hardly moves
TOL, CAP = 1e-9, 3000
IN_USE = 0.5
# what Yu (2006) puts fifty points into, each: mean, and the entries of the covariance
GROUPS = (
    ((3, 3), (0.4, -0.3, 0.6)),
    ((3, 8), (1.0, 0.0, 0.2)),
    ((5, 6), (0.4, -0.3, 0.8)),
    ((7, 7), (0.7, 0.3, 0.6)),
    ((8, 4), (0.3, -0.2, 0.8)),
)
PER_GROUP = 50


def draw_toy(rng: np.random.Generator) -> Array:
    """A draw of the toy data of Yu (2006), section 2.1.3: 250 points of the plane."""
    parts = []
    for mean, (a, b, c) in GROUPS:
        parts.append(rng.multivariate_normal(mean, [[a, b], [b, c]], PER_GROUP))
    return np.concatenate(parts)


@dataclass(frozen=True)
class PrintedSticks(StickBreaking):
    """Stick-breaking as Yu (2006) prints it: the last stick is random like the others.

    Then the weights do not sum to one: a piece is left over that no component has.
    """

    def posterior(
        self, counts: Array, alpha: float | None = None, like: StickWeights | None = None
    ) -> StickWeights:
        counts = np.asarray(counts, float)
        later = np.append(np.cumsum(counts[:0:-1])[::-1], 0.0)
        return StickWeights(1 + counts, self.alpha + later, self.alpha)

    def mode(self, state: StickWeights) -> Array:
        total = state.first + state.second
        return _compute_log_weights(np.log(state.first / total), np.log(state.second / total))

    def expected_log_weights(self, state: StickWeights) -> Array:
        both = psi(state.first + state.second)
        return _compute_log_weights(psi(state.first) - both, psi(state.second) - both)


def _compute_log_weights(broken: Array, left: Array) -> Array:
    """ln pi (K,) from ln V and ln(1 - V), both (K,)."""
    return np.asarray(broken + np.concatenate([[0.0], np.cumsum(left)[:-1]]))


# VBDMA, VBTDP as it should be, VBTDP as printed
MIXINGS: dict[str, Callable[[float], Mixing[Any]]] = {
    "VBDMA": SymmetricDirichlet,
    "VBTDP": StickBreaking,
    "VBTDP as printed": PrintedSticks,
}


@dataclass(frozen=True, slots=True)
class Ended:
    """Where a climb ended; parameters are those of the components in use.

    ``bound`` is that of all components, ``kept`` that of a mixture without the empty ones (VBDMA,
    else NaN).
    """

    components: int
    bound: float
    kept: float
    steps: int
    converged: bool
    weights: Array
    means: Array
    covariances: Array


@dataclass(frozen=True, slots=True)
class Problem:
    """A model on data, ready to climb; the prior is W_0^-1 = degrees * precision * S."""

    task: Task
    plan: Plan

    @property
    def model(self) -> BayesMixture:
        assert isinstance(self.task.model, BayesMixture)
        return self.task.model

    def start(self) -> BayesParams:
        """Posterior of random responsibilities."""
        params = choose_start(self.task, self.plan, _make_rules(self.plan), 0).params
        assert isinstance(params, BayesParams)
        return params

    def climb(self, params: BayesParams) -> Climb:
        """To convergence, from there."""
        return climb(self.task, Climb(params), _make_rules(self.plan))


def pose_problem(X: Array, K: int, mixing: Mixing[Any], precision: float, seed: int) -> Problem:
    """A mixture of K Gaussians with full covariances and two degrees of freedom a priori."""
    source, executor = open_source(X), ThreadExecutor(1)
    family = BayesFull(precision=precision, degrees=2.0)
    model = BayesMixture(K, family, mixing, start=RandomStart())
    pilot = draw_pilot(source, executor, len(X), seed)
    frame, total = total_moments(model, source, executor, pilot, RowKeys(seed))
    task = Task(replace(model, prior=family.prior(frame, total)), source, executor, pilot, seed)
    return Problem(task, Plan(tol=TOL, max_iter=CAP, n_candidates=1, seed=seed))


def _make_rules(plan: Plan) -> Rules:
    return Rules(plan.tol, plan.max_iter, None)


def fit(X: Array, K: int, rule: str, alpha: float, precision: float, seed: int) -> Ended:
    """One climb from a random start."""
    posed = pose_problem(X, K, MIXINGS[rule](alpha), precision, seed)
    return summarise_climb(posed, posed.climb(posed.start()))


def summarise_climb(posed: Problem, done: Climb) -> Ended:
    """What is told of a climb."""
    model, params = posed.model, done.best
    used = np.flatnonzero(params.counts > IN_USE)
    kept = model.conjugate.keep_posterior(params.components, used)
    described = model.family.describe(model.conjugate.point(kept))
    return Ended(
        len(used),
        done.objective,
        compute_bound_without_empty(posed, params),
        len(done.trace) - 1,
        done.reason == "converged",
        params.weights[used],
        described["means"],
        described["covariances"],
    )


def compute_bound_without_empty(posed: Problem, params: BayesParams) -> float:
    """The bound of the components in use alone, each with its share alpha / K of a Dirichlet."""
    model, used = posed.model, np.flatnonzero(params.counts > IN_USE)
    if not isinstance(model.mixing, SymmetricDirichlet):
        return float("nan")
    mixing = SymmetricDirichlet(params.mixing.alpha * len(used) / model.n_components)
    fewer = replace(model, n_components=len(used), mixing=mixing)
    state = mixing.posterior(params.counts[used])
    left = replace(
        params,
        mixing=state,
        components=model.conjugate.keep_posterior(params.components, used),
        counts=params.counts[used],
        weights=mixing.mean(state),
    )
    return fewer.objective(left, visit(replace(posed.task, model=fewer), left, 0))


def fit_all(X: Array, tasks: Sequence[tuple[int, str, float, float, int]]) -> Iterator[Ended]:
    """``fit`` for each (K, rule, alpha, precision, seed), in that order, on all cores."""
    return map_on_cores(fit, [(X, *task) for task in tasks])
