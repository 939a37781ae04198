"""The factorisation as a model of the engine: laws, gradients, every solver climbs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mixfold.contracts import Block, Context, Event
from mixfold.engine.executors.row_memory import HeldRows, LocalParts
from mixfold.engine.random import RowKeys
from mixfold.math.link_functions import LINKS
from mixfold.models.networks.factorization.codebook_rules import (
    GradientCodebook,
    MultiplicativeCodebook,
    SolvedCodebook,
)
from mixfold.models.networks.factorization.codes import CodeProblem
from mixfold.models.networks.factorization.head_rules import (
    GradientHead,
    MultiplicativeHead,
    NewtonHead,
)
from mixfold.models.networks.factorization.model import FactorModel, Penalties
from mixfold.models.networks.factorization.records import FactorizationParams, Layer
from mixfold.models.networks.factorization.repair import dead_units
from mixfold.models.networks.factorization.source_rules import (
    GradientSources,
    Minimised,
    MultiplicativeSources,
    row_energies,
)
from mixfold.models.networks.factorization.starts import normalise_codebook
from mixfold.testing import Case, laws

H, D, C, N = 3, 6, 3, 70
RULES = {
    "proximal": (Minimised(), SolvedCodebook(), NewtonHead()),
    "gradient": (GradientSources(), GradientCodebook(), GradientHead()),
    "multiplicative": (MultiplicativeSources(), MultiplicativeCodebook(), MultiplicativeHead()),
}


def table(rng):
    S = rng.gamma(1.0, size=(N, H))
    X = S / (1 + S) @ np.abs(rng.normal(size=(H, D))) * 2 + 0.1 * rng.random((N, D))
    y = S.argmax(axis=1)
    y[::5] = -1
    return X, y, rng.uniform(0.5, 2.0, N)


def model_of(rng, link="tanh", solver="proximal", radius=np.inf, **penalties):
    nonneg = penalties.get("nonneg_codebook", False)
    A, V = rng.normal(size=(H, D)), 0.5 * rng.normal(size=(H, C))
    if nonneg:
        A = np.abs(A)
    if penalties.get("nonneg_classifier"):
        V = np.abs(V)
    if np.isfinite(radius):
        A *= radius / np.linalg.norm(A, axis=1, keepdims=True)
    layer = Layer(A, np.full(D, 0.3), V, np.ones(C), radius)
    sources, codebook, head = RULES[solver]
    return FactorModel(
        FactorizationParams(layer, np.array([codebook.first_step, head.first_step])), LINKS[link],
        Penalties(**{"sigma2": 0.1, **penalties}), np.zeros(D) if nonneg else np.full(D, 0.4),
        sources, codebook, head, tol=1e-12, most=5000,
    )  # fmt: skip


def climb(model, block, n_steps, memory=None):
    """Objectives of some steps; params after them."""
    params, values, rows = model.first, [], None
    for step in range(n_steps):
        stats = model.expect(model.prepare(params), block, RowKeys(0), memory)
        values.append(model.objective(params, stats))
        if memory is not None:
            memory.accept()
            rows = LocalParts(memory.state.split())
        context = Context(None, np.random.default_rng(0), step, rows=rows)
        params = model.update(params, stats, context).params
    return np.array(values), params


@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_laws(rng, alpha) -> None:
    X, y, weight = table(rng)
    X[3, 2] = X[10, 4] = np.nan
    model = model_of(rng, alpha=alpha, beta=0.1, gamma=0.2)
    case = Case(model, X, weight, y, rtol=1e-8)
    reason = "steps are minima of parts of the objective, which has kinks"
    laws.check_model(case, skip={"gradient": reason})


def test_gradients_of_codebook_and_classifier(rng) -> None:
    """What the statistics say of E at held codes, against differences."""
    X, y, weight = table(rng)
    model = model_of(rng, alpha=0.1, beta=0.3, gamma=0.2)
    memory, block = HeldRows(0, N), Block(X, 0, y, weight)
    stats = model.expect(model.prepare(model.first), block, RowKeys(0), memory)
    layer, p = model.first.layer, model.penalties
    memory.accept()
    phi = memory.recall(block.rows)[:, :H]

    def energy(layer):
        problem = CodeProblem(layer, model.link, p.alpha, p.sigma2)
        rows = float(weight @ row_energies(problem, X, y, phi))
        return rows + 0.3 * np.abs(layer.codebook).sum() + 0.2 * np.abs(layer.classifier).sum()

    np.testing.assert_allclose(-model.objective(model.first, stats), energy(layer), rtol=1e-10)
    B = np.vstack([layer.codebook, layer.bias - model.origin])
    slope = (stats.gram @ B - stats.cross) / p.sigma2
    slope[:-1] += 0.3 * np.sign(layer.codebook)
    W = np.vstack(layer.head())
    head = 0.5 * stats.known @ (W - W.mean(axis=1, keepdims=True)) - stats.pull
    head[:-1] += 0.2 * np.sign(layer.classifier)
    wanted = {"codebook": slope[:-1], "bias": slope[-1], "classifier": head[:-1],
              "intercept": head[-1]}  # fmt: skip
    for name, gradient in wanted.items():
        for index in np.ndindex(gradient.shape):
            up, down = (getattr(layer, name).copy() for _ in range(2))
            up[index] += 1e-5
            down[index] -= 1e-5
            found = energy(replace(layer, **{name: up})) - energy(replace(layer, **{name: down}))
            np.testing.assert_allclose(gradient[index], found / 2e-5, rtol=1e-5, atol=1e-4)


SETTINGS = [
    {},
    {"alpha": 0.3, "beta": 0.2, "gamma": 0.5},
    {"alpha": 0.3, "radius": 1.0},
    {"beta": 5.0, "gamma": 0.1, "bias": False},
    {"gamma": 0.5, "nonneg_classifier": True},
]


@pytest.mark.parametrize("remembered", [True, False])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("link", sorted(LINKS))
def test_the_default_climbs(rng, link, settings, remembered) -> None:
    X, y, weight = table(rng)
    X[3, 2] = X[10, 4] = X[10, 5] = np.nan
    model = model_of(rng, link, **settings)
    memory = HeldRows(0, N) if remembered else None
    values, _ = climb(model, Block(X, 0, y, weight, complete=False), 12, memory)
    assert (np.diff(values) >= -1e-9 * np.abs(values[0])).all()
    assert values[-1] > values[0]


@pytest.mark.parametrize("settings", [SETTINGS[1], SETTINGS[2], SETTINGS[4]], ids=str)
@pytest.mark.parametrize("link", sorted(LINKS))
def test_gradient_rules_climb(rng, link, settings) -> None:
    X, y, weight = table(rng)
    X[3, 2] = np.nan
    model = model_of(rng, link, "gradient", **settings)
    block = Block(X, 0, y, weight, complete=False)
    values, params = climb(model, block, 25, HeldRows(0, N))
    assert (np.diff(values) >= -1e-9 * np.abs(values[0])).all()
    assert values[-1] > values[0]
    assert np.linalg.norm(params.layer.codebook, axis=1).max() <= params.layer.radius + 1e-12


@pytest.mark.parametrize("remembered", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_multiplicative_rules_climb_and_keep_signs(rng, alpha, remembered) -> None:
    X, y, weight = table(rng)
    signs = {"nonneg_codebook": True, "nonneg_classifier": True}
    model = model_of(rng, "saturating", "multiplicative", alpha=alpha, gamma=0.2, **signs)
    memory = HeldRows(0, N) if remembered else None
    values, params = climb(model, Block(X, 0, y, weight), 60, memory)
    assert (np.diff(values) >= -1e-9 * np.abs(values[0])).all()
    assert values[-1] > values[0]
    assert (params.layer.codebook >= 0).all() and (params.layer.classifier >= 0).all()


def test_multiplicative_codebook_descends_by_itself(rng) -> None:
    """With the power 1 it needs no accept test."""
    phi, X = rng.random((N, H)), rng.random((N, D)) * 3
    F = np.column_stack([phi, np.ones(N)])
    gram, cross, B = F.T @ F, F.T @ X, rng.random((H + 1, D))
    last = np.inf
    for _ in range(100):
        value = ((X - F @ B) ** 2).sum()
        assert value <= last + 1e-10
        last, B = value, B * cross / (gram @ B)


@pytest.mark.parametrize(
    ("solver", "link", "signs"),
    [("multiplicative", "saturating", {"nonneg_codebook": True}), ("gradient", "tanh", {})],
)
def test_published_rules_come_near_the_default(rng, solver, link, signs) -> None:
    """Of the same problem from the same start, without labels."""
    X, _, weight = table(rng)
    traces = []
    for rule, steps in (("proximal", 100), (solver, 600)):
        model = model_of(np.random.default_rng(1), link, rule, sigma2=1.0, **signs)
        layer = model.first.layer.without_head()
        model = replace(model, first=replace(model.first, layer=layer), tol=1e-8, most=500)
        traces.append(climb(model, Block(X, 0, None, weight), steps, HeldRows(0, N))[0])
    gap = traces[0][-1] - traces[0][0]
    assert traces[1][-1] > traces[0][-1] - 0.02 * gap


def test_missing_entries_are_left_out_of_the_codebook(rng) -> None:
    """At the end, no codebook has a lower masked error for these codes."""
    X, _, weight = table(rng)
    X[rng.random(X.shape) < 0.2] = np.nan
    model = model_of(rng, sigma2=1.0)
    model = replace(
        model, first=replace(model.first, layer=model.first.layer.without_head()), repair=False
    )
    memory, block = HeldRows(0, N), Block(X, 0, None, weight, complete=False)
    _, params = climb(model, block, 400, memory)
    phi = memory.recall(block.rows)
    F, layer = np.column_stack([phi, np.ones(N)]), params.layer
    found = np.vstack([layer.codebook, layer.bias])
    for d in range(D):
        seen = ~np.isnan(X[:, d])
        root = np.sqrt(weight[seen])
        best = np.linalg.lstsq(F[seen] * root[:, None], X[seen, d] * root, rcond=None)[0]
        error = root * (X[seen, d] - F[seen] @ found[:, d])
        least = root * (X[seen, d] - F[seen] @ best)
        np.testing.assert_allclose((error**2).sum(), (least**2).sum(), rtol=1e-3)


def test_coordinates_go_round_and_keep_to_the_rules(rng) -> None:
    signs = {"nonneg_codebook": True, "nonneg_classifier": True, "radius": 1.0}
    model = model_of(rng, "saturating", **signs)
    x = model.coordinates(model.first)
    back = model.from_coordinates(model.first, x)
    np.testing.assert_allclose(model.coordinates(back), x, atol=1e-15)
    far = model.from_coordinates(model.first, x + 5 * rng.normal(size=x.shape)).layer
    assert (far.codebook >= 0).all() and (far.classifier >= 0).all()
    assert np.linalg.norm(far.codebook, axis=1).max() <= 1 + 1e-12
    assert model.from_coordinates(model.first, x * np.nan) is None


def test_statistics_of_batches_bound_the_objective(rng) -> None:
    X, y, weight = table(rng)
    model = model_of(rng, alpha=0.1, beta=0.1, gamma=0.2)
    block = Block(X, 0, y, weight)
    stats = model.expect(model.prepare(model.first), block, RowKeys(0))
    here = model.objective(model.first, stats)
    np.testing.assert_allclose(model.free_energy(model.first, stats), here, rtol=1e-9)
    context = Context(None, np.random.default_rng(0))
    moved = model.update(model.first, stats, context).params
    bound = model.free_energy(moved, stats)
    fresh = model.expect(model.prepare(moved), block, RowKeys(0))
    assert here < bound < model.objective(moved, fresh)


def test_a_source_that_explains_nothing_is_moved_once(rng) -> None:
    X, _, _ = table(rng)
    model = model_of(rng)
    layer = model.first.layer.without_head()
    A = layer.codebook.copy()
    A[1] = 0.0
    case = Case(replace(model, first=replace(model.first, layer=replace(layer, codebook=A))), X)
    update = case.update(case.start(), case.stats(case.start()))
    assert [e.component for e in update.events] == [1] and not update.monotone
    assert np.linalg.norm(update.params.layer.codebook[1]) > 0
    gram = np.eye(H + 1) * [1.0, 0.0, 1.0, 1.0]
    assert dead_units(layer, gram, ()).tolist() == [1]
    assert dead_units(layer, gram, (Event("reseed", "", 1, 1),)).tolist() == []


@pytest.mark.parametrize("link", ["tanh", "logistic", "identity"])
def test_the_gauge_changes_no_answer(rng, link) -> None:
    layer = model_of(rng).first.layer
    phi = LINKS[link].value(0.1 * rng.normal(size=(200, H)))
    new = normalise_codebook(layer, phi, np.ones(200), LINKS[link], False)
    norms = np.linalg.norm(new.codebook, axis=1)
    np.testing.assert_allclose(norms, norms[0])
    centre = LINKS[link].centre
    scale = np.linalg.norm(layer.codebook, axis=1) / norms
    moved = centre + (phi - centre) * scale
    within = np.abs(moved - centre) / LINKS[link].half
    assert 0.94 < np.quantile(within, 0.999) <= 0.9501
    np.testing.assert_allclose(moved @ new.codebook + new.bias, phi @ layer.codebook + layer.bias)
    np.testing.assert_allclose(
        moved @ new.classifier + new.intercept, phi @ layer.classifier + layer.intercept
    )
