"""The Bayesian mixture against enumeration, and the laws over every legal pair."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import integrate
from scipy.special import logsumexp

from mixfold.contracts import Array, Block, Pilot
from mixfold.engine.random import RowKeys
from mixfold.families import FullGaussian
from mixfold.families.bayes.normal_wishart import BayesFull
from mixfold.mixing.dirichlet import SymmetricDirichlet
from mixfold.mixing.fixed import FixedWeights
from mixfold.mixing.free import FreeWeights
from mixfold.mixing.sticks import StickBreaking
from mixfold.models.mixtures.bayes_mixture import TRACES, BayesMixture, BayesParams
from mixfold.models.mixtures.inference import INFERENCES
from mixfold.models.mixtures.starts import STARTS
from mixfold.testing import Case, laws
from mixfold.testing.compare import require_same

N = 6
# A posterior is not a point of free coordinates: the model offers none, and no derivatives.
NOT_EXTRAPOLATED = ("coordinates round trip", "gradient")
LAWS = [name for name in laws.MODEL_LAWS if name not in NOT_EXTRAPOLATED]
inferences = pytest.mark.parametrize("inference", ["em", "vb"])


class Learning(BayesMixture):
    """In the second stage from the start: its prior follows the components."""

    def initialise(self, pilot: Pilot, rng: np.random.Generator, attempt: int = 0) -> BayesParams:
        return self.next_stage(super().initialise(pilot, rng, attempt))


def _model(
    family: Any,
    mixing: Any,
    K: int,
    inference: str = "vb",
    kind: type[BayesMixture] = BayesMixture,
    **other: Any,
) -> BayesMixture:
    return kind(K, family, mixing, start=STARTS["random"], inference=INFERENCES[inference], **other)


def _settled(case: Case, steps: int = 60) -> tuple[Any, float]:
    """Parameters at which the objective no longer moves."""
    params, last = case.start(), -np.inf
    for step in range(steps):
        stats = case.stats(params)
        value = case.model.objective(params, stats)
        if value - last < 1e-6:
            break
        params, last = case.update(params, stats, step).params, value
    return params, value


def _moments(case: Case, params: BayesParams, labels: tuple[int, ...]) -> Any:
    """Statistics of the rows in known components."""
    model: Any = case.model
    K = model.n_components
    components = model.conjugate.point(params.components)
    reading = model.family.mode(components)
    return model.family.moments(
        model.family.scores(case.block, reading), np.eye(K)[list(labels)], reading
    )


def _evidences(case: Case, params: BayesParams) -> dict[tuple[int, ...], float]:
    """ln p(rows | z) of all K^N assignments."""
    model: Any = case.model
    found = {}
    for labels in product(range(model.n_components), repeat=N):
        moments = _moments(case, params, labels)
        frame = params.components.frame
        found[labels] = model.conjugate.evidence(moments, params.prior, frame)
    return found


def _case(name: str, conjugate: Any, mixing: Any, K: int, n: int = N, **other: Any) -> Case:
    family, table = conjugate[name.removesuffix(" with NaN")]
    return Case(_model(family, mixing, K, **other), table(n, 0.2 if "NaN" in name else 0.0))


def _counted(labels: tuple[int, ...], K: int) -> Array:
    return np.bincount(labels, minlength=K).astype(float)


# ------------------------------------------------ the bound and the evidence


def test_bound_is_below_and_close_to_the_evidence(
    closed_name: str, conjugate: Any, mixings: Any
) -> None:
    """ln sum_z p(z) p(rows | z), for every prior of the weights."""
    K = 2
    first = _case(closed_name, conjugate, mixings["dirichlet"](K), K)
    start = first.start()
    found = _evidences(first, start)
    for name in [list(mixings)[-3]] if "NaN" in closed_name else mixings:
        mixing = mixings[name](K)
        best, params = -np.inf, None
        for seed in range(2):
            model = _model(first.model.family, mixing, K, prior=start.prior)
            settled, value = _settled(replace(first, model=model, seed=seed))
            if value > best:
                best, params = value, settled
        exact = _exact(mixing, params, found, K)
        assert best <= exact + 1e-9, name
        # two labelings are equally good: ln 2 is lost, and what the factorisation loses
        assert best > exact - 3.0, name


def _exact(mixing: Any, params: Any, found: dict[tuple[int, ...], float], K: int) -> float:
    """What bounds the objective of a prior of the weights from above."""
    if isinstance(mixing, StickBreaking) and mixing.learn_alpha:
        # alpha ~ Gamma(1, 1) is integrated out too
        def joint(alpha: float) -> float:
            return float(np.exp(_summed(mixing, found, K, alpha) - alpha))

        return float(np.log(integrate.quad(joint, 1e-9, 60, epsabs=0, epsrel=1e-7)[0]))
    if isinstance(mixing, FreeWeights):  # the weights are parameters
        mixing = FixedWeights(params.weights)
    alpha = getattr(params.mixing, "alpha", None)
    total = _summed(mixing, found, K, alpha)
    # a learned alpha of a Dirichlet is a point, with its own prior density
    learned = isinstance(mixing, SymmetricDirichlet) and mixing.learn_alpha
    return total - alpha if learned and alpha is not None else total


def _summed(mixing: Any, found: dict[tuple[int, ...], float], K: int, alpha: float | None) -> float:
    plain = replace(mixing, reorder=False) if isinstance(mixing, StickBreaking) else mixing
    logs = [plain.log_prob(_counted(labels, K), alpha) + value for labels, value in found.items()]
    return float(logsumexp(logs))


@inferences
def test_one_component_leaves_nothing_to_guess(
    closed_name: str, inference: str, conjugate: Any
) -> None:
    """K = 1: the bound is the evidence; MAP is where it should be after one step."""
    case = _case(closed_name, conjugate, SymmetricDirichlet(1.5), 1, inference=inference)
    params = case.after(2)
    if inference == "em":
        require_same("fixed point", case.after(3).components, params.components, 1e-10)
        return
    moments = _moments(case, params, (0,) * N)
    frame = params.components.frame
    exact = case.model.conjugate.evidence(moments, params.prior, frame)  # type: ignore[attr-defined]
    assert case.objective(params) == pytest.approx(exact, rel=1e-10)


def test_known_components_leave_nothing_to_guess(
    closed_name: str, conjugate: Any, mixings: Any
) -> None:
    """With all labels the bound is ln p(z) + ln p(rows | z), exactly."""
    K, labels = 3, (0, 2, 2, 0, 1, 2)
    for name in ("dirichlet", "sticks", "fixed"):
        case = replace(_case(closed_name, conjugate, mixings[name](K), K), y=np.array(labels))
        params = case.after(1)
        frame = params.components.frame
        exact = case.model.conjugate.evidence(  # type: ignore[attr-defined]
            _moments(case, params, labels), params.prior, frame
        )
        exact += mixings[name](K).log_prob(_counted(labels, K))
        assert case.objective(params) == pytest.approx(exact, rel=1e-10), name


@pytest.mark.parametrize("name", ["full", "tied", "product"])
def test_bound_with_holes_is_below_the_evidence(name: str, conjugate: Any) -> None:
    """Columns that depend on each other: the holes of one row by quadrature, the rest closed."""
    family, table = conjugate[name]
    X = table(4, 0.0)
    case = Case(_model(family, SymmetricDirichlet(1.0), 1), X)
    start = case.start()
    frame = start.components.frame
    has_missing = np.linspace(-15, 15, 241) * X[:, 0].std() + X[:, 0].mean()
    logs = []
    for hole in has_missing:
        filled = X.copy()
        filled[1, 0] = hole
        moments = _moments(replace(case, X=filled), start, (0,) * 4)
        logs.append(family.evidence(moments, start.prior, frame))
    exact = float(logsumexp(logs) + np.log(has_missing[1] - has_missing[0]))
    holed = X.copy()
    holed[1, 0] = np.nan
    lacking = replace(case, X=holed)
    params, value = start, -np.inf
    for step in range(60):
        stats = lacking.stats(params)
        now = lacking.model.objective(params, stats)
        assert now >= value - 1e-9
        params, value = lacking.update(params, stats, step).params, now
    assert exact - 2.0 < value <= exact + 1e-6


# ------------------------------------------------ laws


@inferences
def test_no_step_lowers_the_objective(
    family_name: str, mixing_name: str, inference: str, conjugate: Any, mixings: Any
) -> None:
    """With weights and labels, and for VB with and without a learned prior."""
    family, table = conjugate[family_name]
    rng = np.random.default_rng(2)
    y = np.where(rng.random(40) < 0.1, rng.integers(0, 3, 40), -1)
    weight = rng.uniform(0.3, 2, 40)
    # holes go by another route than complete rows, which has nothing to do with the weights
    for has_missing in [0.0, 0.2] if mixing_name == "dirichlet" else [0.0]:
        for learn in [False, True] if inference == "vb" else [False]:
            kind = Learning if learn else BayesMixture
            model = _model(family, mixings[mixing_name](3), 3, inference, kind, learn_prior=learn)
            laws.monotone(Case(model, table(40, has_missing), weight, y), 10)


class Packed(BayesMixture):
    """With coordinates of no use: the law of purity asks for some."""

    def coordinates(self, params: Any) -> Array:
        return np.empty(0)


def _law(law: str, family: Any, table: Any, mixing: Any, inference: str) -> None:
    plain = _model(family, mixing, 3, inference)
    model = Packed(**{f.name: getattr(plain, f.name) for f in fields(plain)})
    X = table(40, 0.15 if family.takes_missing else 0.0)
    weight = np.random.default_rng(4).uniform(0.3, 2, 40)
    laws.MODEL_LAWS[law](Case(model, X, weight, np.where(X[:, 0] > 3, 1, -1)))


@pytest.mark.parametrize("law", LAWS)
def test_law_of_models(law: str, family_name: str, conjugate: Any, mixings: Any) -> None:
    _law(law, *conjugate[family_name], mixings["sticks, alpha learned"](3), "vb")


@pytest.mark.parametrize("law", LAWS)
def test_law_of_models_of_the_mode(law: str, mode_name: str, conjugate: Any, mixings: Any) -> None:
    _law(law, *conjugate[mode_name], mixings["sticks, alpha learned"](3), "em")


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", ["full", "product"])
@pytest.mark.parametrize(
    ("inference", "mixing"), [("em", "dirichlet, alpha learned"), ("vb", "ml"), ("vb", "fixed")]
)
def test_law_of_models_for_other_weights(
    law: str, inference: str, mixing: str, name: str, conjugate: Any, mixings: Any
) -> None:
    _law(law, *conjugate[name], mixings[mixing](3), inference)


def test_weights_repeat_rows_in_the_bound(family_name: str, conjugate: Any) -> None:
    family, table = conjugate[family_name]
    X = table(40, 0.15)
    twice = np.arange(40) % 3 == 0
    one = Case(_model(family, SymmetricDirichlet(2.0), 3), X, np.where(twice, 2.0, 1.0))
    two = replace(one, X=np.repeat(X, np.where(twice, 2, 1), axis=0), weight=None)
    prior = one.start().prior
    for weighted, repeated in [(one.after(3), two.after(3))]:
        require_same("start", weighted.prior, prior, 1e-12)
        assert one.objective(weighted) == pytest.approx(two.objective(repeated), rel=1e-10)
        assert two.objective(weighted) == pytest.approx(one.objective(weighted), rel=1e-10)


@inferences
@pytest.mark.parametrize("has_missing", [0.0, 0.2], ids=["complete", "with NaN"])
def test_free_energy_is_the_objective_with_responsibilities_of_its_own(
    family_name: str, inference: str, has_missing: float, conjugate: Any
) -> None:
    """Equal right after the E step, and between two objectives after the M step."""
    family, table = conjugate[family_name]
    model = _model(family, StickBreaking(1.0), 3, inference)
    case = Case(model, table(40, has_missing), np.linspace(0.5, 2, 40))
    params = case.after(2)
    stats = case.stats(params)
    before = model.objective(params, stats)
    assert model.free_energy(params, stats) == pytest.approx(before, rel=1e-10)
    fresh = case.update(params, stats).params
    middle = model.free_energy(fresh, stats)
    after = case.objective(fresh)
    slack = 1e-9 * (1 + abs(after))
    assert before - slack <= middle <= after + slack
    assert middle > before + 1e-8 or after - before < 1e-6


# ------------------------------------------------ components without rows, order, labels


def test_components_without_rows_have_the_prior(family_name: str, conjugate: Any) -> None:
    family, table = conjugate[family_name]
    X = table(30, 0.0)
    case = Case(_model(family, SymmetricDirichlet(1.0), 4), X, y=np.arange(30) % 3)
    params = case.after(1)
    assert params.counts[3] == 0
    empty = family.keep_posterior(params.components, np.array([3]))
    if "tied" not in family_name:
        assert family.kl(empty, params.prior) == pytest.approx(0.0, abs=1e-8)
    np.testing.assert_allclose(
        params.weights[3] * (case.block.n_rows + 1.0), 0.25, rtol=1e-12
    )  # alpha / K


def test_order_of_components_is_a_matter_of_taste(family_name: str, conjugate: Any) -> None:
    family, table = conjugate[family_name]
    for mixing in (SymmetricDirichlet(1.0), StickBreaking(1.0, reorder=True), FreeWeights()):
        case = Case(_model(family, mixing, 3), table(40, 0.1))
        params = case.after(3)
        model: Any = case.model
        other = model.permute_components(params, np.array([2, 0, 1]))
        assert case.objective(other) == pytest.approx(case.objective(params), rel=1e-11)
        np.testing.assert_allclose(other.weights, params.weights[[2, 0, 1]], rtol=1e-12)
        np.testing.assert_allclose(
            model.log_predictive(other, case.block),
            model.log_predictive(params, case.block)[:, [2, 0, 1]],
            rtol=1e-10,
        )
        step = [case.update(p, case.stats(p)).params for p in (params, other)]
        assert case.objective(step[0]) == pytest.approx(case.objective(step[1]), rel=1e-10)


def test_fixed_weights_keep_their_components(conjugate: Any) -> None:
    family, table = conjugate["full"]
    case = Case(_model(family, FixedWeights([0.2, 0.3, 0.5]), 3), table(40, 0.0))
    params = case.after(2)
    assert case.model.permute_components(params, np.array([2, 0, 1])) is params  # type: ignore[attr-defined]
    np.testing.assert_array_equal(params.weights, [0.2, 0.3, 0.5])


@inferences
def test_labels_clamp(family_name: str, inference: str, conjugate: Any) -> None:
    family, table = conjugate[family_name]
    case = Case(_model(family, SymmetricDirichlet(1.0), 3, inference), table(40, 0.1))
    params, block = case.after(2), case.block
    y = np.where(np.arange(40) < 5, 2, -1)
    free, known = case.stats(params), case.stats(params, replace(block, y=y))
    assert known.log_likelihood < free.log_likelihood
    L = case.model.log_joint(case.model.prepare(params), block)  # type: ignore[attr-defined]
    gap = logsumexp(L, axis=1)[:5] - L[:5, 2]
    rows = ~np.isnan(block.X[:5]).all(axis=1)
    assert free.log_likelihood - known.log_likelihood == pytest.approx(gap[rows].sum(), rel=1e-8)
    laws_case = replace(case, model=case.model)
    open_labels = laws_case.stats(params, replace(block, y=np.full(40, -1)))
    require_same("label -1 is no label", open_labels, free, 1e-11)


# ------------------------------------------------ sampling


def test_a_sweep_gives_each_row_to_one_component(drawn_name: str, conjugate: Any) -> None:
    family, table = conjugate[drawn_name]
    case = Case(_model(family, SymmetricDirichlet(1.0), 3, "gibbs"), table(40, 0.1))
    params = case.after(2)
    model: Any = case.model
    reading, block = model.prepare(params), case.block
    stats = model.expect(reading, block, case.keys)
    drawn = model.draw_assignments(reading, block, case.keys)
    empty = np.isnan(block.X).all(axis=1)
    np.testing.assert_array_equal(stats.counts, _counted(tuple(drawn[~empty]), 3))
    known = model.expect(reading, replace(block, y=np.full(40, 1)), case.keys)
    assert known.counts[1] == (~empty).sum()
    traced = model.summarise_sweep(params, stats)
    assert traced.shape == (len(TRACES),) and np.isfinite(traced[:-1]).all()
    assert np.isnan(traced[-1])  # the prior stays
    assert traced[1] == (stats.counts > 0).sum()
    shares = stats.counts / stats.counts.sum()
    assert traced[3] == shares.max()
    other = RowKeys(case.seed, 1)
    assert not np.array_equal(model.draw_assignments(reading, block, other), drawn)


def test_draws_do_not_depend_on_blocks(drawn_name: str, conjugate: Any) -> None:
    family, table = conjugate[drawn_name]
    case = Case(_model(family, SymmetricDirichlet(1.0), 3, "gibbs"), table(40, 0.15))
    laws.block_invariance(case, 1)
    if drawn_name in ("full", "product"):
        laws.repeatable(case)


def test_draw_is_a_function_of_the_parameters(conjugate: Any) -> None:
    family, table = conjugate["full"]
    case = Case(_model(family, SymmetricDirichlet(1.0), 3, "gibbs"), table(40, 0.0))
    params = case.after(2)
    require_same("draw", case.model.prepare(params), case.model.prepare(params))
    other = case.model.prepare(replace(params, seed=params.seed + 1))
    assert not np.array_equal(other.log_weights, case.model.prepare(params).log_weights)


# ------------------------------------------------ prediction, starts, mistakes


def test_density_is_averaged_over_the_posterior(family_name: str, conjugate: Any) -> None:
    """ln sum_k E[pi_k] E[p(x | theta_k)] by draws of theta."""
    family, table = conjugate[family_name]
    case = Case(_model(family, SymmetricDirichlet(1.0), 2), table(40, 0.0))
    params = case.after(5)
    rows = case.block.part(0, 3)
    rng = np.random.default_rng(0)
    logs = np.array(
        [
            family.log_density(rows, family.mode(family.draw(params.components, rng)))
            for _ in range(300)
        ]
    ) + np.log(params.weights)
    draws = np.exp(logsumexp(logs, axis=2))
    got = np.exp(logsumexp(case.model.log_predictive(params, rows), axis=1))  # type: ignore[attr-defined]
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - got) < 6 * error + 1e-12).all()


def test_sampled_rows_are_of_their_components(family_name: str, conjugate: Any) -> None:
    family, table = conjugate[family_name]
    case = Case(_model(family, SymmetricDirichlet(1.0), 3), table(60, 0.0))
    params = case.after(5)
    X, labels = case.model.sample(params, 500, np.random.default_rng(0))  # type: ignore[attr-defined]
    assert X.shape == (500, case.X.shape[1]) and np.isfinite(X).all()
    family.check(Block(X), None)
    shares = np.bincount(labels, minlength=3) / 500
    assert np.abs(shares - params.weights).max() < 6 * np.sqrt(0.25 / 500)


def test_a_prior_may_be_given(conjugate: Any) -> None:
    family, table = conjugate["diag"]
    case = Case(_model(family, SymmetricDirichlet(1.0), 2), table(40, 0.0))
    prior = replace(case.start().prior, precision=np.float64(7.0))
    given = replace(case, model=replace(case.model, prior=prior))  # type: ignore[type-var]
    require_same("prior", given.start().prior, prior)
    assert (given.start().components.precision > 7).all()


def test_another_frame_changes_nothing(family_name: str, conjugate: Any) -> None:
    family, table = conjugate[family_name]
    case = Case(_model(family, SymmetricDirichlet(1.0), 2), table(40, 0.1))
    params = case.after(2)
    model: Any = case.model
    other = Case(model, table(60, 0.0)).pilot()
    moved = model.change_frame(params, other)
    assert case.objective(moved) == pytest.approx(case.objective(params), rel=1e-10)


def test_mistakes(conjugate: Any) -> None:
    with pytest.raises(ValueError, match=r"'full' has no conjugate prior.*use Mixture"):
        BayesMixture(2, FullGaussian())
    with pytest.raises(ValueError, match=r"cannot be learned from one component.*n_components"):
        BayesMixture(1, BayesFull(), learn_prior=True)
    with pytest.raises(ValueError, match=r"learn_prior maximises.*'em' does neither. Use"):
        BayesMixture(2, BayesFull(), inference=INFERENCES["em"], learn_prior=True)
    model = BayesMixture(2, BayesFull())
    params = Case(model, conjugate["full"][1](20, 0.0)).start()
    assert model.derivatives(params, None) is None
    assert model.from_coordinates(params, np.empty(0)) is None
    with pytest.raises(TypeError, match="not extrapolated"):
        model.coordinates(params)
