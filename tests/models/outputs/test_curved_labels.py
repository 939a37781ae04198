"""Labels by a probit of features of the latents: likelihoods, features, gradients, EM."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import norm

from mixfold.contracts import Array, Block, Context
from mixfold.families.factor import FactorFamily, FactorParams
from mixfold.families.factor.noise import IsotropicNoise
from mixfold.math.frame import plain_frame
from mixfold.models.outputs import label_predictions
from mixfold.models.outputs.curved_labels import CurvedLabels, CurvedModel, normal_nodes
from mixfold.models.outputs.label_starts import LABEL_STARTS
from mixfold.models.outputs.labelled import LabelledModel
from mixfold.models.outputs.model import SupervisedParams
from mixfold.models.outputs.outputs import Latent
from mixfold.models.outputs.probit_labels import ProbitLabels, ProbitParams
from mixfold.testing import Case, laws

D = 4


def model_of(K: int, d: int = 2, labels: Any = None, **more: Any) -> CurvedModel:
    family = FactorFamily(factors=(d,), noise=IsotropicNoise(), expand=False, **more)
    return CurvedModel(K, family, labels or CurvedLabels(), LABEL_STARTS["balanced"], expand=False)


def params_of(model: CurvedModel, noise: float = 1.0, bend: float = 3.0, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    K, d, labels = model.n_components, model.family.size, model.labels
    components = FactorParams(
        plain_frame(D),
        rng.normal(size=(K, D)),
        rng.normal(size=(K, D, d)),
        np.full((K, D), noise),
    )
    lead = (K if labels.own else 1, labels.n_scores)
    straight = ProbitParams(rng.normal(size=(*lead, d)), rng.normal(size=lead))
    outputs = labels.from_straight(straight)
    weights = outputs.weights.copy()
    weights[..., d:] = bend * rng.normal(size=weights[..., d:].shape)
    outputs = replace(outputs, weights=weights)
    return SupervisedParams(rng.dirichlet(5 * np.ones(K)), components, outputs)


def ring(n: int, n_classes: int = 2, seed: int = 1) -> tuple[Array, Array]:
    """The class of a row is how far out its latents are; a third has no label."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 2))
    X = z @ rng.normal(size=(2, D)) + 0.3 * rng.normal(size=(n, D))
    edges = np.sqrt(-2 * np.log1p(-np.arange(1, n_classes) / n_classes))
    y = np.searchsorted(edges, np.hypot(*z.T))
    y[::3] = -1
    return X, y


def test_nodes_have_the_moments_of_the_normal_law() -> None:
    for d in (1, 2, 5, 40):
        nodes = normal_nodes(d)
        assert len(nodes) >= 2 * d
        np.testing.assert_allclose(nodes.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(nodes.T @ nodes / len(nodes), np.eye(d), atol=1e-10)
        np.testing.assert_allclose((nodes**3).mean(axis=0), 0, atol=1e-10)


def test_features_are_about_those_of_a_gaussian_process() -> None:
    labels = CurvedLabels(width=1.3)
    params = labels.from_straight(ProbitParams(np.zeros((1, 1, 2)), np.zeros((1, 1))))
    z = np.random.default_rng(0).normal(size=(40, 2))
    waves = labels.features(params, z[None])[0, :, 2:]
    squares = ((z[:, None] - z) ** 2).sum(axis=2)
    kernel = np.exp(-squares / (2 * 1.3**2))
    assert np.abs(waves @ waves.T - kernel).mean() < 0.06
    np.testing.assert_array_equal(labels.features(params, z[None])[0, :, :2], z)


@pytest.mark.parametrize(("noise", "tolerance"), [(0.01, 1e-3), (1.0, 1e-2)])
def test_the_joint_likelihood_is_the_integral_over_the_latent(
    noise: float, tolerance: float
) -> None:
    """By sums over a fine grid: the error of the nodes falls with what a row leaves in doubt."""
    model = model_of(2, 1)
    params = params_of(model, noise)
    rng = np.random.default_rng(3)
    components, outputs = params.components, params.outputs
    k = rng.integers(2, size=40)
    X = components.means[k] + components.loadings[k, :, 0] * rng.normal(size=(40, 1))
    X += np.sqrt(noise) * rng.normal(size=X.shape)
    y = np.arange(40) % 2
    z = np.linspace(-9, 9, 40001)
    scores = model.labels.scores_at(outputs, z[None, :, None])[0, :, 0]
    expected = np.zeros(40)
    for weight, mean, loadings in zip(
        params.weights, components.means, components.loadings, strict=True
    ):
        for n in range(40):
            at = mean[:, None] + loadings * z
            logs = norm.logpdf(X[n][:, None], at, np.sqrt(noise)).sum(axis=0) + norm.logpdf(z)
            logs += log_ndtr((2 * y[n] - 1) * scores)
            expected[n] += weight * np.exp(logs).sum() * (z[1] - z[0])
    reading = model.prepare(params)
    alone = label_predictions.log_density(model, reading, Block(X))
    found = label_predictions.log_density(model, reading, Block(X, y=y))
    # of P(y | x)
    wrong = np.exp(found - alone) - expected / np.exp(alone)
    assert np.sqrt(np.mean(wrong**2)) < tolerance


def test_both_labels_together_are_the_row_alone() -> None:
    model = model_of(2)
    params = params_of(model)
    X = np.random.default_rng(2).normal(size=(20, D))
    reading = model.prepare(params)
    both = [
        label_predictions.log_density(model, reading, Block(X, y=np.full(20, label)))
        for label in (0, 1)
    ]
    alone = label_predictions.log_density(model, reading, Block(X))
    np.testing.assert_allclose(np.logaddexp(*both), alone, rtol=1e-12)


def test_without_waves_it_is_the_straight_probit() -> None:
    """To the error of the nodes, in the objective and in what is summed."""
    model = model_of(2, labels=CurvedLabels(3, ridge=0.5))
    X, y = ring(80, 3)
    params = params_of(model, 0.05, bend=0.0)
    own = params.outputs
    straight = LabelledModel(
        2, model.family, ProbitLabels(3, ridge=0.5), LABEL_STARTS["balanced"], expand=False
    )
    plain = replace(params, outputs=ProbitParams(own.weights[..., :2], own.biases))
    ours, theirs = Case(model, X, y=y).stats(params), Case(straight, X, y=y).stats(plain)
    assert model.objective(params, ours) == pytest.approx(
        straight.objective(plain, theirs), rel=1e-4
    )
    keep = [0, 1, -1]
    grams = ours.outputs.gram[:, :, keep][..., keep]
    np.testing.assert_allclose(grams, theirs.outputs.gram, rtol=0.02, atol=0.05)
    np.testing.assert_allclose(
        ours.outputs.target[..., keep], theirs.outputs.target, rtol=0.02, atol=0.05
    )
    np.testing.assert_allclose(ours.components.cross, theirs.components.cross, atol=0.05)


@pytest.mark.parametrize("own", [False, True])
def test_other_latent_coordinates_change_no_score(own: bool) -> None:
    labels = CurvedLabels(3, own=own)
    params = params_of(model_of(2, labels=labels)).outputs
    rng = np.random.default_rng(5)
    lead = 2 if own else 1
    mean, root = rng.normal(size=(lead, 2)), rng.normal(size=(lead, 2, 2))
    turned = labels.transform_latents(params, mean, root)
    z = rng.normal(size=(lead, 7, 2))
    old = mean[:, None] + z @ np.swapaxes(root, 1, 2)
    np.testing.assert_allclose(labels.scores_at(turned, z), labels.scores_at(params, old))
    assert labels.penalty(turned) == labels.penalty(params)


@pytest.mark.parametrize(("n_classes", "own"), [(2, False), (2, True), (3, False)])
def test_the_gradient_of_the_weights_is_that_of_the_objective(n_classes: int, own: bool) -> None:
    model = model_of(2, labels=CurvedLabels(n_classes, ridge=0.3, own=own, n_waves=8))
    params = params_of(model)
    X, y = ring(50, n_classes)
    case = Case(model, X, y=y)
    gradient = model.outputs.derivatives(params.outputs, case.stats(params).outputs)[0]
    here = model.outputs.coordinates(params.outputs)
    for i in range(0, len(here), 7):
        ends = []
        for step in (-1e-5, 1e-5):
            moved = here.copy()
            moved[i] += step
            other = replace(params, outputs=model.outputs.from_coordinates(params.outputs, moved))
            ends.append(model.objective(other, case.stats(other)))
        assert gradient[i] == pytest.approx((ends[1] - ends[0]) / 2e-5, rel=1e-5, abs=1e-5)


def test_latents_given_the_label_are_those_of_their_nodes() -> None:
    labels = CurvedLabels()
    params = params_of(model_of(1)).outputs
    rng = np.random.default_rng(6)
    root = np.linalg.cholesky(np.array([[0.5, 0.2], [0.2, 0.4]]))
    latent = Latent(rng.normal(size=(5, 1, 2)), (root @ root.T)[None, None])
    y = np.array([0, 1, 1, 0, -1])
    found = labels.replicates(y, latent, params)[0]
    for n in range(4):
        z = latent.means[n, 0] + normal_nodes(2) @ root.T
        p = norm.cdf((2 * y[n] - 1) * labels.scores_at(params, z[None])[0, :, 0])
        mean = p @ z / p.sum()
        spread = (p[:, None] * (z - mean)).T @ (z - mean) / p.sum()
        np.testing.assert_allclose(found.latent.means[n, 0], mean)
        np.testing.assert_allclose(found.latent.covariances[n, 0], spread, atol=1e-12)
        assert found.log_probability[n, 0] == pytest.approx(np.log(p.mean()))


@pytest.mark.parametrize(
    ("labels", "has_missing"),
    [
        (CurvedLabels(ridge=0.1, n_waves=8), False),
        (CurvedLabels(3, tradeoff=0.5, ridge=1.0, own=True, n_waves=8), True),
    ],
    ids=["shared", "own"],
)
def test_laws(labels: CurvedLabels, has_missing: bool) -> None:
    X, y = ring(60, labels.n_classes)
    if has_missing:
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    why = "sums over nodes are about the slopes of the columns: see the tests of the weights"
    laws.check_model(
        Case(model_of(2, labels=labels, has_missing=has_missing), X, y=y), skip={"gradient": why}
    )


def test_a_shorter_step_is_a_part_of_the_way() -> None:
    model = model_of(2)
    params = params_of(model)
    X, y = ring(60)
    case = Case(model, X, y=y)
    stats, context = case.stats(params), Context(case.pilot(), np.random.default_rng(0))
    whole = model.update(params, stats, context).params
    half = model.update(params, stats, replace(context, length=0.5))
    assert half.length == 0.5
    for name in ("means", "loadings", "noise"):
        old, new = getattr(params.components, name), getattr(whole.components, name)
        np.testing.assert_allclose(getattr(half.params.components, name), (old + new) / 2)
    assert model.update(params, stats, replace(context, length=0.0)).params is params
