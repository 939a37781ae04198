"""Joint objectives of stacks: gradients, exact penalties, sources of rows."""

import numpy as np
import pytest

from mixfold.math.link_functions import LINKS
from mixfold.models.networks.factorization.codes import codes
from mixfold.models.networks.factorization.records import Layer
from mixfold.models.networks.joint import Joint, Penalties, fit_jointly, source_box
from mixfold.models.networks.row_descent import descend
from mixfold.models.networks.source_inference import climb_layers, settle, towards_class
from mixfold.models.networks.stack import DecoderEnergy, MapEnergy, decode
from mixfold.testing.oracles import gradient_by_differences as differences

SIGMA2 = (0.5, 0.2)
ENERGIES = [MapEnergy, DecoderEnergy]


def case(link, n=7, classes=3, seed=0, radius=np.inf, missing=True):
    rng = np.random.default_rng(seed)
    head = {} if not classes else {
        "classifier": rng.normal(size=(2, classes)), "intercept": rng.normal(size=classes),
    }  # fmt: skip
    layers = (
        Layer(rng.normal(size=(3, 5)), rng.normal(size=5), radius=radius),
        Layer(
            rng.normal(size=(2, 3)), 0.3 * rng.normal(size=3) + 2 * (link == "saturating"), **head
        ),
    )
    top = 0.5 * rng.normal(size=(n, 2))
    X = decode(LINKS[link], layers, top) + 0.2 * rng.normal(size=(n, 5))
    if missing:
        X[0, 1] = X[2, 3] = np.nan
    sources = [rng.normal(size=(n, size)) for size in (3, 2)]
    if link == "saturating":
        sources = [np.abs(s) for s in sources]
    return layers, X, rng.integers(-1, 3, n), rng.uniform(0.2, 2, n), sources


def joint_of(kind, link, penalties=None, **how):
    layers, X, y, weight, sources = case(link, **how)
    energy = kind(LINKS[link], SIGMA2)
    free = tuple(sources[i] for i in energy.free(2))
    penalties = penalties or Penalties((0.0, 0.0), (0.0, 0.0))
    labels = None if layers[-1].classifier is None else y
    return Joint(energy, LINKS[link], penalties, X, labels, weight, layers, free)


@pytest.mark.parametrize("kind", ENERGIES)
@pytest.mark.parametrize("link", ["tanh", "logistic", "saturating", "identity"])
@pytest.mark.parametrize("radius", [np.inf, 1.0])
def test_gradients_of_all_sources_and_layers_against_finite_differences(kind, link, radius):
    joint = joint_of(kind, link, radius=radius)
    vector = joint.pack(joint.sources, joint.layers)
    _, slope = joint.function(vector)
    found = differences(lambda v: joint.function(v)[0], vector)
    np.testing.assert_allclose(slope, found, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ENERGIES)
def test_without_labels_the_head_is_not_pulled(kind):
    layers, X, _, weight, sources = case("tanh")
    energy = kind(LINKS["tanh"], SIGMA2)
    free = tuple(sources[i] for i in energy.free(2))
    joint = Joint(
        energy, LINKS["tanh"], Penalties((0, 0), (0, 0)), X, None, weight, layers, free
    )  # fmt: skip
    _, slope = joint.function(joint.pack(free, layers))
    assert (slope[-9:] == 0).all() and np.abs(slope[:-9]).min() > 0


def test_map_energy_is_minus_the_log_joint():
    layers, X, y, _, sources = case("tanh", missing=False)
    pull = MapEnergy(LINKS["tanh"], SIGMA2).pull(layers, X, y, sources)
    for n in range(len(X)):
        one, two = np.tanh(sources[0][n]), np.tanh(sources[1][n])
        expected = np.sum((X[n] - one @ layers[0].codebook - layers[0].bias) ** 2) / (2 * 0.5)
        rest = sources[0][n] - two @ layers[1].codebook - layers[1].bias
        expected += np.sum(rest**2) / (2 * 0.2)
        if y[n] >= 0:
            scores = two @ layers[1].classifier + layers[1].intercept
            expected -= scores[y[n]] - np.log(np.exp(scores).sum())
        assert pull.values[n] == pytest.approx(expected)


def test_decoder_energy_is_that_of_decoded_rows():
    layers, X, _, _, sources = case("tanh", missing=False)
    link = LINKS["tanh"]
    pull = DecoderEnergy(link, SIGMA2).pull(layers, X, None, [sources[1]])
    made = np.tanh(np.tanh(sources[1]) @ layers[1].codebook + layers[1].bias)
    made = made @ layers[0].codebook + layers[0].bias
    np.testing.assert_allclose(decode(link, layers, sources[1]), made)
    np.testing.assert_allclose(pull.values, np.sum((X - made) ** 2, axis=1))  # 2 s2 = 1


def test_decoding_ratios_never_leaves_their_domain():
    layers, _, _, _, _ = case("saturating")
    low = (layers[0], Layer(layers[1].codebook, np.full(3, -5.0)))
    made = decode(LINKS["saturating"], low, np.ones((4, 2)))
    np.testing.assert_allclose(made, np.tile(layers[0].bias, (4, 1)))


@pytest.mark.parametrize("kind", ENERGIES)
@pytest.mark.parametrize("link", ["tanh", "saturating"])
def test_joint_training_never_goes_up_and_penalties_make_zeros(kind, link):
    penalties = Penalties((0.3, 0.3), (0.5, 0.5), 0.4)
    joint = joint_of(kind, link, penalties, n=30)
    sources, layers, found = fit_jointly(joint, max_iter=150, tol=1e-9)
    assert (np.diff(found.trace) <= 1e-9 * abs(found.trace[0])).all()
    vector = joint.pack(sources, layers)
    value = joint.function(vector)[0] + joint.rates() @ np.abs(vector)
    assert value == pytest.approx(found.value)
    assert value < found.trace[0]
    assert (layers[0].codebook == 0).any()
    low, high = source_box(joint.link)
    assert all((s >= low).all() and (s <= high).all() for s in sources)


@pytest.mark.parametrize("kind", ENERGIES)
def test_a_weight_of_two_steps_like_two_rows(kind):
    penalties = Penalties((0.1, 0.1), (0.1, 0.1), 0.1)
    layers, X, y, _, sources = case("tanh", n=10)
    weight = np.array([1, 2] * 5)
    twice = np.repeat(np.arange(10), weight)
    found = []
    for rows, w in ((np.arange(10), weight), (twice, np.ones(15))):
        energy = kind(LINKS["tanh"], SIGMA2)
        free = tuple(sources[i][rows] for i in energy.free(2))
        joint = Joint(
            energy, LINKS["tanh"], penalties, X[rows], y[rows], w.astype(float), layers, free
        )  # fmt: skip
        found.append(fit_jointly(joint, max_iter=8, tol=0.0))
    np.testing.assert_allclose(found[0][2].trace, found[1][2].trace, rtol=1e-8)
    np.testing.assert_allclose(found[0][0][-1][twice], found[1][0][-1], atol=1e-6)


def test_rows_of_a_codebook_stay_within_their_radius():
    joint = joint_of(DecoderEnergy, "tanh", Penalties((0, 0.3), (0, 0)), n=30, radius=0.7)
    _, layers, _ = fit_jointly(joint, max_iter=50, tol=1e-9)
    assert np.linalg.norm(layers[0].codebook, axis=1).max() <= 0.7 + 1e-12


@pytest.mark.parametrize("kind", ENERGIES)
@pytest.mark.parametrize("alpha", [0.0, 0.4])
def test_settled_sources_are_stationary_and_independent_of_neighbours(kind, alpha):
    layers, X, _, _, _ = case("tanh", n=8)
    link = LINKS["tanh"]
    energy = kind(link, SIGMA2)
    start = climb_layers(layers, link, X, (alpha, alpha), SIGMA2)
    first = [start[i] for i in energy.free(2)]
    settled = settle(energy, layers, link, (alpha, alpha), X, first, max_steps=3000, tol=1e-10)
    bare = (layers[0], layers[1].without_head())
    before = energy.pull(bare, X, None, first)
    after = energy.pull(bare, X, None, settled)

    def total(pull, sources):
        return pull.values + alpha * sum(np.abs(s).sum(axis=1) for s in sources)

    assert (total(after, settled) <= total(before, first) + 1e-12).all()
    low, high = source_box(link)
    for source, slope in zip(settled, after.sources, strict=True):
        inner = (source != 0) & (source > low) & (source < high)
        assert inner.any()
        assert np.abs(slope + alpha * np.sign(source))[inner].max() < 1e-4
        assert (np.abs(slope[source == 0]) <= alpha + 1e-4).all()
    for n in (0, 4):
        one = [s[n : n + 1] for s in first]
        alone = settle(energy, layers, link, (alpha, alpha), X[n : n + 1], one, max_steps=3000,
                       tol=1e-10)  # fmt: skip
        for source, lone in zip(settled, alone, strict=True):
            np.testing.assert_allclose(lone[0], source[n], atol=1e-6)


def test_climbing_is_layer_after_layer():
    layers, X, _, _, _ = case("tanh", n=6)
    link = LINKS["tanh"]
    one, two = climb_layers(layers, link, X, (0.1, 0.2), SIGMA2)
    np.testing.assert_array_equal(one, link.inverse(codes(layers[0], link, X, 0.1, 0.5)))
    np.testing.assert_array_equal(
        two, link.inverse(codes(layers[1].without_head(), link, one, 0.2, 0.2))
    )


def test_descent_finds_soft_thresholds_inside_bounds():
    wish = np.array([[3.0, 0.4, -2.0], [0.1, -5.0, 0.0]])

    def function(rows, index):
        rest = rows - wish[index]
        return 0.5 * (rest**2).sum(axis=1), rest

    points, values = descend(
        function, np.ones((2, 3)), np.ones(3), np.full(3, -3.0), np.full(3, 1.5), tol=1e-10
    )
    np.testing.assert_allclose(points, [[1.5, 0, -1], [0, -3, 0]], atol=1e-7)
    expected = function(points, np.arange(2))[0] + np.abs(points).sum(axis=1)
    np.testing.assert_allclose(values, expected)
    nobody, _ = descend(function, np.ones((0, 3)), np.ones(3), -np.ones(3), np.ones(3))
    assert nobody.shape == (0, 3)


def test_towards_a_class_ends_at_the_wanted_probability():
    layers, _, _, _, sources = case("tanh", n=20)
    link, top = LINKS["tanh"], layers[-1]
    found = towards_class(top, link, 1, 0.3 * sources[1], 0.0, 0.6)
    scores = np.tanh(found) @ top.classifier + top.intercept
    share = np.exp(scores[:, 1]) / np.exp(scores).sum(axis=1)
    assert (share > 0.6).all()
    assert np.ptp(found, axis=0).max() > 0.1  # from different starts
    one = towards_class(top, link, 1, 0.3 * sources[1], 0.05, None)
    np.testing.assert_allclose(one, one[:1].repeat(20, axis=0), atol=1e-3)  # convex in the codes
