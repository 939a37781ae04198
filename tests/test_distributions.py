"""Squashed and truncated normals against quadrature, rejection and finite differences."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit, ndtr

from mixfold.distributions import SquashedNormal
from mixfold.math import probit

SIDES = list(itertools.product(["squashed", "truncated"], [0, 1]))
MEAN = np.array([0.4, -0.3])
COV = np.array([[1.3, 0.5], [0.5, 0.7]])
WEIGHTS = np.array([1.1, -1.6])
BIAS = -0.6


def plane(kind: str, side: int, **changes: Any) -> SquashedNormal:
    given = {"mean": MEAN, "cov": COV, "weights": WEIGHTS, "bias": BIAS, **changes}
    return SquashedNormal(**given, side=side, kind=kind)


def label_probability(kind: str, side: int, score: np.ndarray) -> np.ndarray:
    s = 2 * side - 1
    return ndtr(s * score) if kind == "squashed" else (score > 0) == (side == 1)


# ------------------------------------------------------------------ quadrature


@pytest.mark.parametrize(("kind", "side"), SIDES)
@pytest.mark.parametrize("bias", [-7.0, -0.8, 0.0, 3.0])
def test_one_dimension_is_an_integral(kind: str, side: int, bias: float) -> None:
    m, variance, w = 0.7, 2.3, -1.4
    law = SquashedNormal(m, variance, w, bias=bias, side=side, kind=kind)
    boundary = -bias / w

    def integral(function: Any) -> float:
        # about where the law is (tails may be exponential), in pieces that end at the boundary
        centre, width = float(law.mean()[0]), 30 * float(np.sqrt(law.cov()[0, 0]))
        low, high = centre - width, centre + width
        ends = sorted({low, min(max(boundary, low), high), centre, high})
        return sum(
            integrate.quad(lambda x: function(x) * law.pdf(x), a, b, epsabs=0, limit=200)[0]
            for a, b in itertools.pairwise(ends)
            if law.pdf((a + b) / 2) > 0
        )

    np.testing.assert_allclose(integral(lambda x: 1), 1, rtol=1e-8)
    mean = integral(lambda x: x)
    np.testing.assert_allclose(law.mean(), [mean], rtol=1e-8)
    np.testing.assert_allclose(law.cov(), [[integral(lambda x: (x - mean) ** 2)]], rtol=1e-7)


@pytest.mark.parametrize("side", [0, 1])
def test_two_squashed_dimensions_by_gauss_hermite(side: int) -> None:
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    white = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1)
    z = MEAN + white @ np.linalg.cholesky(COV).T
    mass = np.outer(weights, weights) / (2 * np.pi)
    law = plane("squashed", side)
    joint = mass * label_probability("squashed", side, z @ WEIGHTS + BIAS)
    total = joint.sum()
    np.testing.assert_allclose(law.log_normaliser(), np.log(total), rtol=1e-9)
    mean = np.einsum("ij,ijd->d", joint, z) / total
    np.testing.assert_allclose(law.mean(), mean, rtol=1e-8)
    second = np.einsum("ij,ijd,ije->de", joint, z - mean, z - mean) / total
    np.testing.assert_allclose(law.cov(), second, rtol=1e-8)
    # the density is the normal one times the label's, divided by the total
    normal = stats.multivariate_normal(MEAN, COV).pdf(z)
    expected = normal * label_probability("squashed", side, z @ WEIGHTS + BIAS) / total
    np.testing.assert_allclose(law.pdf(z), expected, rtol=1e-9)


@pytest.mark.parametrize("side", [0, 1])
def test_two_truncated_dimensions_by_quadrature(side: int) -> None:
    law = plane("truncated", side)
    nodes, weights = np.polynomial.legendre.leggauss(120)

    def piece(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        half = (high - low) / 2
        return low + half * (nodes + 1), half * weights

    # for every z_0, z_1 runs from the boundary (WEIGHTS[1] < 0: side 1 lies below it)
    first, first_weights = piece(MEAN[0] - 9 * np.sqrt(COV[0, 0]), MEAN[0] + 9 * np.sqrt(COV[0, 0]))
    edge = (-BIAS - WEIGHTS[0] * first[:, None]) / WEIGHTS[1]
    far = MEAN[1] + (COV[0, 1] / COV[0, 0]) * (first[:, None] - MEAN[0]) + [-9, 9]
    far = np.where(side == 1, np.minimum(far[:, :1], edge), np.maximum(far[:, 1:], edge))
    second, second_weights = piece(np.minimum(edge, far), np.maximum(edge, far))
    z = np.stack([np.broadcast_to(first[:, None], second.shape), second], axis=-1)
    assert (label_probability("truncated", side, z @ WEIGHTS + BIAS) > 0).all()
    joint = first_weights[:, None] * second_weights * law.pdf(z)
    np.testing.assert_allclose(joint.sum(), 1, rtol=1e-9)
    mean = np.einsum("ij,ijd->d", joint, z)
    np.testing.assert_allclose(law.mean(), mean, rtol=1e-8)
    moment = np.einsum("ij,ijd,ije->de", joint, z - mean, z - mean)
    np.testing.assert_allclose(law.cov(), moment, rtol=1e-7)


# ------------------------------------------------------------------ identities


@pytest.mark.parametrize(("kind", "side"), SIDES)
@pytest.mark.parametrize("bias", [-12.0, BIAS, 2.0])
def test_moments_are_derivatives_of_the_normaliser(kind: str, side: int, bias: float) -> None:
    def log_c(mean: np.ndarray) -> float:
        return plane(kind, side, mean=mean, bias=bias).log_normaliser()

    step, axes = 1e-3, 1e-3 * np.eye(2)
    gradient = [(log_c(MEAN + e) - log_c(MEAN - e)) / (2 * step) for e in axes]
    hessian = [
        [
            (log_c(MEAN + e + f) - log_c(MEAN + e - f) - log_c(MEAN - e + f) + log_c(MEAN - e - f))
            / (4 * step**2)
            for f in axes
        ]
        for e in axes
    ]
    law = plane(kind, side, bias=bias)
    np.testing.assert_allclose(law.mean() - MEAN, COV @ gradient, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(law.cov() - COV, COV @ hessian @ COV, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["squashed", "truncated"])
def test_both_sides_together_are_the_normal_law(kind: str, rng: np.random.Generator) -> None:
    sides = [plane(kind, side) for side in (0, 1)]
    shares = np.exp([law.log_normaliser() for law in sides])
    np.testing.assert_allclose(shares.sum(), 1, rtol=1e-14)
    z = rng.normal(size=(50, 2)) * 2
    mixed = sum(share * law.pdf(z) for share, law in zip(shares, sides, strict=True))
    np.testing.assert_allclose(mixed, stats.multivariate_normal(MEAN, COV).pdf(z), rtol=1e-11)
    mean = sum(share * law.mean() for share, law in zip(shares, sides, strict=True))
    np.testing.assert_allclose(mean, MEAN, atol=1e-14)
    second = sum(
        share * (law.cov() + np.outer(law.mean() - MEAN, law.mean() - MEAN))
        for share, law in zip(shares, sides, strict=True)
    )
    np.testing.assert_allclose(second, COV, atol=1e-14)


@pytest.mark.parametrize("kind", ["squashed", "truncated"])
def test_the_other_side_is_the_other_sign(kind: str, rng: np.random.Generator) -> None:
    law, mirror = plane(kind, 0), plane(kind, 1, weights=-WEIGHTS, bias=-BIAS)
    z = rng.normal(size=(20, 2))
    np.testing.assert_array_equal(law.logpdf(z), mirror.logpdf(z))
    np.testing.assert_array_equal(law.mean(), mirror.mean())
    np.testing.assert_array_equal(law.cov(), mirror.cov())


@pytest.mark.parametrize("side", [0, 1])
def test_steep_squashing_is_truncation_of_any_scale(side: int, rng: np.random.Generator) -> None:
    sharp = plane("truncated", side)
    z = rng.normal(size=(50, 2))
    for scale, kind in [(1e8, "squashed"), (1e-190, "truncated"), (1e190, "truncated")]:
        law = plane(kind, side, weights=scale * WEIGHTS, bias=scale * BIAS)
        np.testing.assert_allclose(law.mean(), sharp.mean(), rtol=1e-12)
        np.testing.assert_allclose(law.cov(), sharp.cov(), rtol=1e-12)
        np.testing.assert_allclose(law.pdf(z), sharp.pdf(z), rtol=1e-12)


@pytest.mark.parametrize(("kind", "side"), [("squashed", 0), ("squashed", 1), ("truncated", 1)])
def test_without_weights_it_is_the_normal_law(
    kind: str, side: int, rng: np.random.Generator
) -> None:
    law = plane(kind, side, weights=[0, 0], bias=0.3)
    z = rng.normal(size=(5, 2))
    np.testing.assert_allclose(law.logpdf(z), stats.multivariate_normal(MEAN, COV).logpdf(z))
    np.testing.assert_array_equal(law.mean(), MEAN)
    np.testing.assert_allclose(law.cov(), COV, rtol=1e-15)
    share = 1.0 if kind == "truncated" else label_probability(kind, side, np.array(0.3))
    np.testing.assert_allclose(np.exp(law.log_normaliser()), share)
    draws = law.rvs(4000, random_state=0)
    np.testing.assert_allclose(draws.mean(axis=0), MEAN, atol=6 * np.sqrt(1.3 / 4000))
    np.testing.assert_allclose(np.cov(draws.T), COV, atol=6 * 1.3 * np.sqrt(2 / 4000))


# ------------------------------------------------------------------ far out


@pytest.mark.parametrize(("kind", "side"), SIDES)
@pytest.mark.parametrize("t", [-1e6, -1e3, -40.0, 40.0, 1e3, 1e6])
def test_improbable_sides_are_stable(kind: str, side: int, t: float) -> None:
    s = 2 * side - 1
    noise = 1.0 if kind == "squashed" else 0.0
    tau = np.sqrt(noise + WEIGHTS @ COV @ WEIGHTS)
    bias = s * t * tau - WEIGHTS @ MEAN
    law = plane(kind, side, bias=bias)
    np.testing.assert_allclose(law.log_normaliser(), stats.norm.logcdf(t), rtol=1e-12)
    mean, cov, Rw = law.mean(), law.cov(), COV @ WEIGHTS
    np.testing.assert_allclose(mean, MEAN + s * probit.mills(t) / tau * Rw, rtol=1e-9)
    np.testing.assert_array_equal(cov, cov.T)
    assert (np.linalg.eigvalsh(cov) > -1e-15).all()
    # the variance that is left along the weights
    left = (tau**2 - noise) * (noise + (tau**2 - noise) * probit.spread(t)) / tau**2
    np.testing.assert_allclose(WEIGHTS @ cov @ WEIGHTS, left, rtol=1e-9, atol=1e-14)
    draws = law.rvs(2000, random_state=1)
    assert kind == "squashed" or (s * (draws @ WEIGHTS + bias) > 0).all()
    assert np.isfinite(law.logpdf(draws)).all()
    error = 6 * np.sqrt(np.diagonal(cov) / 2000) + 1e-15 * abs(t)
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - mean), error)


@pytest.mark.parametrize("t", [-40.0, -1e3, -1e6])
def test_one_dimension_far_out_keeps_the_digits_of_the_variance(t: float) -> None:
    law = SquashedNormal(0.0, 4.0, weights=0.5, bias=t, kind="truncated")
    # 1 / t^2 - 6 / t^4 + 50 / t^6 of the variance is left
    left = 4 * (1 / t**2 - 6 / t**4 + 50 / t**6)
    np.testing.assert_allclose(law.cov(), [[left]], rtol=1e-6 if t == -40 else 1e-11)
    np.testing.assert_allclose(law.mean(), [-2 * t + 2 / -t], rtol=2e-6)


@pytest.mark.parametrize("side", [0, 1])
def test_density_forty_deviations_out(side: int) -> None:
    s = 2 * side - 1
    w, b = 1.5, -40.0 * s
    x = s * np.linspace(20.0, 48.0, 30)
    # squashed: the exponents are joined by hand, so that nothing large is subtracted
    tau2 = 1 + w * w
    law = SquashedNormal(0.0, 1.0, weights=w, bias=b * np.sqrt(tau2), side=side)
    h = s * (w * x + b * np.sqrt(tau2))
    centred = h + 40 * np.sqrt(tau2) / tau2
    joined = -0.5 * tau2 / w**2 * centred**2 - 0.5 * np.log(2 * np.pi)
    expected = joined + np.log(probit.mills(-40.0) / probit.mills(h))
    assert (h < 0).all()
    np.testing.assert_allclose(law.logpdf(x), expected, rtol=1e-11, atol=1e-11)
    # truncated: the excess over the boundary is nearly exponential
    law = SquashedNormal(0.0, 1.0, weights=w, bias=b * w, side=side, kind="truncated")
    excess = np.array([1e-6, 0.01, 0.3])
    expected = np.log(probit.mills(-40.0)) - excess * (40 + excess / 2)
    np.testing.assert_allclose(law.logpdf(s * (40 + excess)), expected, atol=2e-12)
    np.testing.assert_array_equal(law.pdf(s * (40 - excess)), 0)


# ------------------------------------------------------------------ draws


@pytest.mark.parametrize(("kind", "side"), SIDES)
@pytest.mark.parametrize("bias", [-9.0, BIAS])
def test_draws_have_the_moments_and_the_density(kind: str, side: int, bias: float) -> None:
    law = plane(kind, side, bias=bias)
    draws = law.rvs(20_000, random_state=3)
    mean, cov = law.mean(), law.cov()
    error = np.sqrt(np.diagonal(cov) / len(draws))
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - mean), 6 * error)
    products = np.einsum("ni,nj->nij", draws - mean, draws - mean)
    error = products.std(axis=0) / np.sqrt(len(draws))
    np.testing.assert_array_less(np.abs(products.mean(axis=0) - cov), 6 * error)
    # along the weights: the law of the score alone, by its density
    scale = np.sqrt(WEIGHTS @ COV @ WEIGHTS)
    along = (draws - MEAN) @ WEIGHTS / scale
    line = SquashedNormal(0.0, 1.0, scale, bias=bias + WEIGHTS @ MEAN, side=side, kind=kind)
    centre, width = line.mean()[0], 12 * np.sqrt(line.cov()[0, 0])
    edge = -(bias + WEIGHTS @ MEAN) / scale
    grid = np.sort(np.concatenate([np.linspace(centre - width, centre + width, 40_001), [edge]]))
    steps = np.diff(grid) * line.pdf((grid[1:] + grid[:-1]) / 2)
    cdf = np.concatenate([[0], np.cumsum(steps)])
    np.testing.assert_allclose(cdf[-1], 1, atol=1e-6)
    assert stats.kstest(along, lambda x: np.interp(x, grid, cdf)).pvalue > 1e-3
    # across: the label says nothing
    across = np.array([-(COV @ WEIGHTS)[1], (COV @ WEIGHTS)[0]])
    free = (draws - MEAN) @ across / np.sqrt(across @ COV @ across)
    assert stats.kstest(free, stats.norm.cdf).pvalue > 1e-3


@pytest.mark.parametrize(("kind", "side"), SIDES)
def test_draws_are_what_rejection_keeps(kind: str, side: int, rng: np.random.Generator) -> None:
    z = rng.multivariate_normal(MEAN, COV, size=30_000)
    kept = z[rng.random(len(z)) < label_probability(kind, side, z @ WEIGHTS + BIAS)]
    draws = plane(kind, side).rvs(10_000, random_state=rng)
    for direction in (WEIGHTS, np.array([1.0, 0.0]), np.array([0.3, 1.0])):
        assert stats.ks_2samp(draws @ direction, kept @ direction).pvalue > 1e-3


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("t", [-40.0, 1.0])
def test_truncated_draws_have_no_noise_along_the_weights(side: int, t: float) -> None:
    s, scale = 2 * side - 1, np.sqrt(WEIGHTS @ COV @ WEIGHTS)
    bias = s * t * scale - WEIGHTS @ MEAN
    law = plane("truncated", side, bias=bias)
    scores = s * (law.rvs(10_000, random_state=5) @ WEIGHTS + bias)
    assert (scores > 0).all()
    # given the score nothing is left along the weights, or this would not fit
    half = stats.truncnorm(-t, np.inf, loc=t * scale, scale=scale)
    assert stats.kstest(scores, half.cdf).pvalue > 1e-3


def test_draws_are_repeatable_and_have_the_shape_asked_for() -> None:
    law = plane("squashed", 1)
    assert law.rvs(random_state=0).shape == (2,)
    assert law.rvs(1, random_state=0).shape == (1, 2)
    assert law.rvs((3, 4), random_state=0).shape == (3, 4, 2)
    assert law.rvs(0, random_state=0).shape == (0, 2)
    np.testing.assert_array_equal(law.rvs(7, random_state=4), law.rvs(7, random_state=4))
    rng = np.random.default_rng(0)
    assert not np.allclose(law.rvs(7, random_state=rng), law.rvs(7, random_state=rng))


# ------------------------------------------------------------------ shapes and mistakes


def test_shapes_of_points() -> None:
    law = plane("squashed", 1)
    z = np.arange(24.0).reshape(3, 4, 2) / 10
    assert law.pdf(z).shape == law.logpdf(z).shape == (3, 4)
    assert isinstance(law.pdf([0.0, 1.0]), float)
    assert law.logpdf(np.empty((0, 2))).shape == (0,)
    np.testing.assert_allclose(law.pdf(z)[1, 2], law.pdf(z[1, 2]), rtol=1e-14)
    line = SquashedNormal(0.5, 2.0, 1.0)
    assert isinstance(line.pdf(0.3), float)
    assert isinstance(line.pdf([0.3]), float)
    x = np.array([0.3, 0.4, -1.0])
    np.testing.assert_array_equal(line.pdf(x), line.pdf(x[:, None]))
    assert line.mean().shape == (1,)
    assert line.cov().shape == (1, 1)
    assert repr(line) == "SquashedNormal(dim=1, side=1, kind='squashed')"


def test_answers_cannot_change_the_law() -> None:
    mean = MEAN.copy()
    law = SquashedNormal(mean, COV, [0.0, 0.0], bias=1.0, kind="truncated")
    before = law.logpdf([0.0, 0.0])
    law.mean()[:] = 100
    law.cov()[:] = 100
    mean[:] = 100
    assert law.logpdf([0.0, 0.0]) == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": [1e200, 0.0]}, r"standard deviation is 1\.\d+e\+200. With kind=.truncated"),
        ({"cov": [[1.0, 2.0], [2.0, 1.0]]}, r"cov must be positive definite.*-1\. Add a small"),
        ({"cov": [[1.0, 0.2], [0.3, 1.0]]}, r"cov must be symmetric.*0\.1"),
        ({"cov": np.eye(3)}, r"cov must have the shape \(2, 2\).*\(3, 3\)"),
        ({"cov": [1.0, 2.0]}, r"cov must have the shape.*numpy\.diag"),
        ({"cov": [[np.nan, 0], [0, 1]]}, "cov must be finite"),
        ({"mean": np.zeros((2, 2))}, r"mean must have the shape \(d,\).*\(2, 2\)"),
        ({"mean": [0.0, np.inf]}, "mean must be finite"),
        ({"weights": [1.0, 2.0, 3.0]}, r"weights must have the shape \(2,\).*\(3,\)"),
        ({"bias": np.nan}, "bias must be finite"),
        ({"side": -1}, r"side must be 0 or 1, got -1.*\(label \+ 1\) // 2"),
        ({"side": 1.0}, r"side must be 0 or 1, got 1\.0"),
        ({"kind": "cut"}, 'kind must be "squashed" or "truncated".*, got .cut.'),
        (
            {"weights": [0, 0], "bias": -0.5, "kind": "truncated"},
            r"always -0\.5, so side=1 cannot be\. Use side=0",
        ),
        (
            {"weights": [0, 0], "bias": 0.5, "kind": "truncated", "side": 0},
            r"always 0\.5, so side=0 cannot be\. Use side=1",
        ),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], message: str) -> None:
    given = {"mean": MEAN, "cov": COV, "weights": WEIGHTS, "bias": BIAS, **changes}
    with pytest.raises(ValueError, match=message):
        SquashedNormal(**given)


def test_mistakes_of_type_and_of_calls_are_named() -> None:
    with pytest.raises(TypeError, match="mean must be an array of numbers, got 'a'"):
        SquashedNormal("a", 1.0, 1.0)
    with pytest.raises(TypeError, match="bias must be a number, got None"):
        SquashedNormal(0.0, 1.0, 1.0, bias=None)  # type: ignore[arg-type]
    law = plane("squashed", 1)
    with pytest.raises(ValueError, match=r"x must have the shape \(\.\.\., 2\).*\(3,\)"):
        law.pdf([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="x must be finite"):
        law.logpdf([np.nan, 0.0])
    with pytest.raises(ValueError, match="size must not be negative, got -1"):
        law.rvs(-1)
    with pytest.raises(TypeError, match=r"size must be an integer.*2\.5"):
        law.rvs(2.5)
    with pytest.raises(TypeError, match="random_state must be"):
        law.rvs(2, random_state="seed")


# ------------------------------------------------------------------ other functions of the score


def _band(score: np.ndarray) -> np.ndarray:
    return np.where(np.abs(score) < 1.5, 0.9, 0.2)


def _loglog(score: np.ndarray) -> np.ndarray:
    return -np.expm1(-np.exp(np.minimum(score, 50.0)))


OTHERS: dict[str, tuple[Any, Any, Any]] = {
    "logistic": ("logistic", lambda u: expit(u), ()),
    "cauchit": ("cauchit", lambda u: 0.5 + np.arctan(u) / np.pi, ()),
    "band": (_band, _band, (-1.5, 1.5)),
    "loglog": (_loglog, _loglog, ()),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("bias", [-6.0, 0.0, 3.0])
def test_other_functions_are_integrals(name: str, side: int, bias: float) -> None:
    kind, share, breaks = OTHERS[name]
    law = plane(kind, side, bias=bias, breaks=breaks)
    q, variance = WEIGHTS @ MEAN + bias, WEIGHTS @ COV @ WEIGHTS
    Rw = COV @ WEIGHTS

    def integral(power: int) -> float:
        def part(u: float) -> float:
            p = float(share(np.array(u)))
            chance = p if side == 1 else 1 - p
            return chance * float(stats.norm.pdf(u, q, np.sqrt(variance))) * (u - q) ** power

        ends = sorted({-40.0, -1.5, 0.0, 1.5, q, 40.0})
        return sum(
            integrate.quad(part, a, b, epsabs=1e-14, limit=300)[0]
            for a, b in itertools.pairwise(ends)
        )

    mass, first, second = (integral(power) for power in range(3))
    mean, spread = first / mass, second / mass - (first / mass) ** 2
    np.testing.assert_allclose(law.log_normaliser(), np.log(mass), atol=1e-7)
    np.testing.assert_allclose(law.mean(), MEAN + Rw / variance * mean, rtol=1e-6, atol=1e-9)
    wanted = COV + np.outer(Rw, Rw) * (spread / variance**2 - 1 / variance)
    np.testing.assert_allclose(law.cov(), wanted, rtol=1e-6, atol=1e-9)
    points = np.array([[0.1, 0.2], [-2.0, 1.0]])
    u = points @ WEIGHTS + bias
    chance = share(u) if side == 1 else 1 - share(u)
    normal = stats.multivariate_normal(MEAN, COV).logpdf(points)
    np.testing.assert_allclose(law.logpdf(points), normal + np.log(chance / mass), atol=1e-7)


@pytest.mark.parametrize("name", OTHERS)
def test_draws_of_other_functions_are_what_rejection_keeps(
    name: str, rng: np.random.Generator
) -> None:
    kind, share, breaks = OTHERS[name]
    z = rng.multivariate_normal(MEAN, COV, 60_000)
    kept = z[rng.random(len(z)) < 1 - share(z @ WEIGHTS + BIAS)]
    draws = plane(kind, 0, breaks=breaks).rvs(10_000, random_state=rng)
    for direction in (WEIGHTS, np.array([1.0, 0.0]), np.array([0.3, 1.0])):
        assert stats.ks_2samp(draws @ direction, kept @ direction).pvalue > 1e-4


def test_a_function_that_is_a_known_kind_gives_its_law(rng: np.random.Generator) -> None:
    points = rng.normal(size=(5, 2))
    for kind, function, breaks in (
        ("squashed", ndtr, ()),
        ("truncated", lambda u: u > 0, (0.0,)),
        ("logistic", expit, ()),
    ):
        for side in (0, 1):
            known, given = plane(kind, side), plane(function, side, breaks=breaks)
            np.testing.assert_allclose(given.mean(), known.mean(), rtol=1e-9)
            np.testing.assert_allclose(given.cov(), known.cov(), rtol=1e-8)
            np.testing.assert_allclose(given.logpdf(points), known.logpdf(points), rtol=1e-9)


@pytest.mark.parametrize("bias", [-1000.0, 300.0])
@pytest.mark.parametrize("side", [0, 1])
def test_a_logistic_side_may_be_as_improbable_as_it_likes(bias: float, side: int) -> None:
    law = SquashedNormal(0.3, 4.0, weights=2.0, bias=bias, side=side, kind="logistic")
    sign = 2 * side - 1
    if sign * bias < 0:  # there ln psi is linear: the law is a normal one, moved
        moved = 0.3 + sign * 4.0 * 2.0
        np.testing.assert_allclose([law.mean()[0], law.cov()[0, 0]], [moved, 4.0], rtol=1e-9)
        wanted = sign * (bias + 0.6) + 0.5 * 16.0
        np.testing.assert_allclose(law.log_normaliser(), wanted, rtol=1e-12)
    else:
        np.testing.assert_allclose([law.mean()[0], law.cov()[0, 0]], [0.3, 4.0], rtol=1e-9)
    assert np.isfinite(law.rvs(100, random_state=0)).all()


def test_a_function_of_a_score_that_is_constant_says_nothing() -> None:
    law = plane("logistic", 1, weights=[0, 0], bias=0.4)
    np.testing.assert_allclose(law.mean(), MEAN)
    np.testing.assert_allclose(law.cov(), COV)
    np.testing.assert_allclose(law.log_normaliser(), np.log(expit(0.4)))
    assert law.rvs(3, random_state=0).shape == (3, 2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": lambda u: 2 * ndtr(u)}, "kind must give a probability from 0 to 1.*got [12]"),
        ({"kind": lambda u: 0.5}, r"got the shape \(\) for"),
        ({"kind": lambda u: np.zeros_like(u)}, "kind must leave side=1 a probability"),
        ({"breaks": [0.0]}, "breaks are those of a function, got breaks=.*kind='squashed'"),
        ({"kind": ndtr, "breaks": 1.0}, "breaks must be a list of scores"),
        ({"kind": ndtr, "breaks": [np.nan]}, "breaks must be finite"),
    ],
)
def test_functions_that_are_no_probabilities(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SquashedNormal(**{"mean": MEAN, "cov": COV, "weights": WEIGHTS, **changes})
