"""The normal law of a vector of which one linear score is known by its sign: cut or squashed.

This is what a class label says of Gaussian latents: probit classification, utilities,
half-spaces of a Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import log_expit, log_ndtr

from mixfold.contracts import Array
from mixfold.engine.random import seed_from
from mixfold.math import probit, tilted_normal
from mixfold.math.symmetric import LOG_2PI, cholesky, inverse_factor

__all__ = ["SquashedNormal"]

# the variance of the noise that is added to the score before its sign is taken
_NOISE = {"squashed": 1.0, "truncated": 0.0}
# ln P(side = 1 | score) of other functions; both are one minus themselves at minus the score
_LOG_SQUASH = {"logistic": log_expit, "cauchit": tilted_normal.log_cauchit}
# of the score, whose variance must be finite
_LARGEST_SCALE = 1e150
# a draw of exactly zero would be the end of the support
_LEAST_UNIFORM = 2.0**-54


class SquashedNormal:
    r"""A multivariate normal law given on which side of a hyperplane a noisy copy of it fell.

    The model is :math:`z \sim N(mean, cov)` with a label

    .. math:: P(side = 1 | z) = \Phi(w'z + b) \quad or \quad 1[w'z + b > 0]

    for ``kind="squashed"`` and ``kind="truncated"``; :math:`\Phi` is the distribution function of
    the standard normal law. Other functions of the score take its place with other kinds. This
    class is the law of z given the label, with the density

    .. math:: p(z | side) = N(z; mean, cov) P(side | z) / P(side).

    Parameters
    ----------
    mean : array-like of shape (d,)
        Mean of the normal law, before the label is known. A number if d = 1.
    cov : array-like of shape (d, d)
        Its covariance, positive definite. A number if d = 1.
    weights : array-like of shape (d,)
        The normal w of the hyperplane. A number if d = 1.
    bias : float, default=0.0
        The offset b.
    side : {0, 1}, default=1
        The label. 0 is the other side: P(side = 0 | z) = 1 - P(side = 1 | z).
    kind : {"squashed", "truncated", "logistic", "cauchit"} or callable, default="squashed"
        A soft boundary, as in probit classification, or a sharp one; or the distribution function
        of the logistic or of Cauchy's law in place of the normal one. A function of an array of
        scores w'z + b that gives P(side = 1 | z), numbers from 0 to 1, makes any boundary of a
        score: a band, say.
    breaks : array-like, default=()
        Scores at which a function ``kind`` jumps or changes quickly; without them a sharp boundary
        is found to about 1e-2 standard deviations of the score only.

    Attributes
    ----------
    dim : int
        The number d of coordinates.
    side, kind
        As given.

    Notes
    -----
    ``mean()``, ``cov()`` and ``log_normaliser()`` are closed forms, and draws are exact: nothing
    is rejected. They stay accurate however improbable the side is, because all tails are
    handled as logarithms or continued fractions: 40 standard deviations out ``logpdf`` is right to
    about 1e-12, and its absolute error grows as 1e-16 times the square of that distance.

    Of the kinds other than these two, moments and ``log_normaliser()`` are integrals over the score
    alone, by quadrature, right to about 1e-10 where ``kind`` is smooth between the breaks, and
    draws are by inversion of its distribution function. Functions see scores up to 38 standard
    deviations from their mean.

    A truncated law whose weights are zero has a label without chance: it is the normal law
    itself, or it cannot be.

    References
    ----------
    .. [1] Tallis. Plane truncation in normal populations. JRSS B 27, 1965.
    .. [2] Rasmussen, Williams. Gaussian processes for machine learning, section 3.9. MIT Press,
       2006.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold.distributions import SquashedNormal
    >>> law = SquashedNormal([0.0, 0.0], [[1.0, 0.5], [0.5, 2.0]], weights=[1.0, 0.0])
    >>> round(float(np.exp(law.log_normaliser())), 6)
    0.5
    >>> law.mean().round(4), law.cov().round(4)
    (array([0.5642, 0.2821]), array([[0.6817, 0.3408],
           [0.3408, 1.9204]]))
    >>> law.pdf([[0.5, 0.0], [-0.5, 0.0]]).round(4)
    array([0.1442, 0.0644])

    The normal law of latent factors, and what a probit boundary makes of it for each of two
    classes, which hardly overlap:

    >>> import matplotlib.pyplot as plt
    >>> classes = [SquashedNormal([0.0, 0.0], np.eye(2), weights=[s * 6, s * 6]) for s in (1, -1)]
    >>> side = np.linspace(-3, 3, 120)
    >>> points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    >>> normal = np.exp(-0.5 * (points**2).sum(axis=1)) / (2 * np.pi)
    >>> figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4), sharey=True)
    >>> drawn = left.contour(side, side, normal.reshape(120, 120), 6)
    >>> for law, color in zip(classes, ("C0", "C1"), strict=True):
    ...     drawn = right.contour(side, side, law.pdf(points).reshape(120, 120), 6, colors=color)
    >>> titles = left.set_title("normal"), right.set_title("squashed: classes 1 and 0")

    Half of a normal law, its far end:

    >>> end = SquashedNormal(0.0, 1.0, weights=1.0, bias=-40.0, kind="truncated")
    >>> end.mean().round(6), end.rvs(3, random_state=0).shape
    (array([40.024969]), (3, 1))

    A band, and its outside:

    >>> band = dict(kind=lambda score: np.abs(score) < 1, breaks=[-1, 1])
    >>> outside = SquashedNormal(0.0, 1.0, weights=1.0, side=0, **band)
    >>> round(float(np.exp(outside.log_normaliser())), 6), outside.cov().round(4)
    (0.317311, array([[2.5251]]))
    """

    def __init__(
        self,
        mean: Any,
        cov: Any,
        weights: Any,
        bias: float = 0.0,
        side: int = 1,
        kind: str | Callable[[Array], Any] = "squashed",
        breaks: Any = (),
    ) -> None:
        self._m = _vector("mean", mean, None)
        self.dim = len(self._m)
        self._L = _factor(cov, self.dim)
        self._w = _vector("weights", weights, self.dim)
        self._b = _number("bias", bias)
        self.side, self._s = _side(side), 2.0 * _side(side) - 1.0
        self.kind, self._noise = kind, _noise(kind)
        self._breaks = _breaks(breaks, kind)
        self._set_score()

    def _set_score(self) -> None:
        """Mean, variance and covariance with z of the score whose sign is the side."""
        # in white coordinates the gradient of w'z + b is L'w
        gradient = self._L.T @ self._w
        norm = math.hypot(*gradient)
        if not norm < _LARGEST_SCALE and self.kind != "truncated":
            raise ValueError(
                f"weights must be such that the score w'z + b has a finite variance, but its "
                f'standard deviation is {norm:.3g}. With kind="truncated" their scale does not '
                "matter, and the law is the same to all digits."
            )
        self._q = float(self._w @ self._m) + self._b
        # the only direction of which the label says anything, and its image in z
        self._unit = gradient / norm if norm > 0 else gradient
        self._image = self._L @ self._unit
        self._tilted: tilted_normal.TiltedNormal | None = None
        if self.kind not in _NOISE:
            self._tilt(norm)
            return
        if norm == 0 and self._noise == 0:
            self._check_certain()
        if norm > 0 and self._noise == 0:  # a sharp boundary does not depend on the scale of w, b
            self._q, norm = self._q / norm, 1.0
        self._tau2 = self._noise + norm**2
        self._Rw = self._image * norm

    def _tilt(self, norm: float) -> None:
        """The law of the score, in its standard deviations, given the side."""
        if norm == 0:
            self._log_c = float(self._log_of_side(np.array([self._q]))[0])
        else:
            mode, ends = None, self._breaks
            if self.kind == "logistic":
                mode = tilted_normal.logistic_mode(self._q, norm, self._s)
            if not callable(self.kind):
                ends = np.zeros(1)
            squash = self._log_of_side
            self._tilted = tilted_normal.tilt(squash, self._q, norm, ends, mode)
            self._log_c = self._tilted.log_normaliser
        if not math.isfinite(self._log_c):
            raise ValueError(
                f"kind must leave side={self.side} a probability, but it has none wherever the "
                f"score w'z + b can be (about {self._q:.3g}). Use side={1 - self.side}, another "
                "bias, or name the breaks of kind if it is nearly nowhere above zero."
            )

    def _log_of_side(self, score: Array) -> Array:
        """ln P(side | score), of kinds without a closed form."""
        if not callable(self.kind):
            return np.asarray(_LOG_SQUASH[self.kind](self._s * score))
        share = np.asarray(self.kind(score), dtype=float)
        bad = ~((share >= 0) & (share <= 1)) if share.shape == score.shape else np.ones(1, bool)
        if bad.any():
            raise ValueError(
                "kind must give a probability from 0 to 1 for each score of an array, got "
                + (
                    f"{share[bad].flat[0]} at the score {score[bad].flat[0]:.6g}"
                    if share.shape == score.shape
                    else f"the shape {share.shape} for {score.shape}"
                )
            )
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(share) if self.side == 1 else np.log1p(-share))

    def __repr__(self) -> str:
        return f"SquashedNormal(dim={self.dim}, side={self.side}, kind={self.kind!r})"

    def log_normaliser(self) -> float:
        """ln P(side), the logarithm of the constant that the density is divided by."""
        if self.kind not in _NOISE:
            return self._log_c
        if self._tau2 == 0:
            return 0.0
        return float(probit.log_probability(self._q, self._tau2, self._s))

    def logpdf(self, x: Any) -> Any:
        """Logarithm of the density; -inf beyond a sharp boundary.

        Parameters
        ----------
        x : array-like of shape (..., d)
            Points. If d = 1, also a number or a sequence of numbers.

        Returns
        -------
        float or ndarray of shape (...)
        """
        points = self._points(x)
        flat = (points - self._m).reshape(-1, self.dim)
        white = flat @ inverse_factor(self._L)
        distance = np.einsum("nd,nd->n", white, white).reshape(points.shape[:-1])
        log_det = 2.0 * np.log(np.diagonal(self._L)).sum()
        normal = -0.5 * (self.dim * LOG_2PI + log_det + distance)
        return (normal + self._log_side(points) - self.log_normaliser())[()]

    def pdf(self, x: Any) -> Any:
        """The density.

        Parameters
        ----------
        x : array-like of shape (..., d)
            Points. If d = 1, also a number or a sequence of numbers.

        Returns
        -------
        float or ndarray of shape (...)
        """
        return np.exp(self.logpdf(x))

    def mean(self) -> Array:
        """E[z | side], an array of shape (d,)."""
        if self._tilted is not None:
            return np.asarray(self._m + self._tilted.mean * self._image)
        if self._plain:
            return self._m.copy()
        args = self._q, self._tau2, self._s
        return probit.moments_given_sign(self._m, self._Rw, *args)[0]

    def cov(self) -> Array:
        """Cov[z | side], an array of shape (d, d).

        What is left across the boundary is not a difference: it has its digits even when the
        side is so improbable that next to nothing is left.
        """
        if self._plain:
            return np.asarray(self._L @ self._L.T)
        if self._tilted is not None:
            root = self._root(math.sqrt(self._tilted.variance))
            return np.asarray(root @ root.T)
        left = float(probit.spread(self._s * self._q / math.sqrt(self._tau2)))
        # 1 - |v|^2 shrinkage / tau2
        ratio = (self._noise + (self._tau2 - self._noise) * left) / self._tau2
        root = self._root(math.sqrt(ratio))
        return np.asarray(root @ root.T)

    def rvs(self, size: Any = None, random_state: Any = None) -> Array:
        """Independent draws: the score given its sign, then z given the score.

        Parameters
        ----------
        size : int or tuple of int, optional
            Number of draws. None, the default, gives one.
        random_state : None, int, numpy RandomState or Generator, default None

        Returns
        -------
        ndarray of shape (d,), (size, d) or (*size, d)
        """
        shape = _shape(size)
        rng = np.random.default_rng(seed_from(random_state))
        noise = rng.standard_normal((*shape, self.dim))
        if self._plain:
            return np.asarray(self._m + noise @ self._L.T)
        uniforms = np.maximum(rng.random(shape), _LEAST_UNIFORM)
        if self._tilted is not None:
            across = self._tilted.draw(uniforms)[..., None] * self._image
            return np.asarray(self._m + across + noise @ self._root(0.0).T)
        score = probit.draw_given_sign(self._q, self._tau2, self._s, uniforms)
        centre = self._m + ((score - self._q) / self._tau2)[..., None] * self._Rw
        # given the score, what is left across the boundary is the share of the score's noise
        return np.asarray(centre + noise @ self._root(math.sqrt(self._noise / self._tau2)).T)

    @property
    def _plain(self) -> bool:
        """Whether the side says nothing of z: the score is a constant."""
        return self._tilted is None and (self.kind not in _NOISE or self._tau2 == 0)

    def _root(self, share: float) -> Array:
        """A with A A' = cov, but for the deviation across the boundary: ``share`` of it."""
        # (the parts are orthogonal: in one dimension the first one is exactly zero)
        along = self._L - np.outer(self._image, self._unit)
        return np.asarray(along + share * np.outer(self._image, self._unit))

    def _log_side(self, points: Array) -> Array:
        """ln P(side | z)."""
        score = points @ self._w + self._b
        if self.kind not in _NOISE:
            return self._log_of_side(score)
        if self._noise > 0:
            return np.asarray(log_ndtr(self._s * score))
        return np.where((score > 0) == (self.side == 1), 0.0, -np.inf)

    def _points(self, x: Any) -> Array:
        points = _floats("x", x)
        # as in scipy, a sequence of numbers is a sequence of points of one dimension
        if self.dim == 1 and (points.ndim == 0 or (points.ndim == 1 and len(points) != 1)):
            points = points[..., None]
        if points.ndim == 0 or points.shape[-1] != self.dim:
            raise ValueError(
                f"x must have the shape (..., {self.dim}), one point in its last axis, got the "
                f"shape {points.shape}. Transpose it if points are its columns."
            )
        return points

    def _check_certain(self) -> None:
        """With weights of zero the score is a constant, and so is the label."""
        if (self._q > 0) != (self.side == 1):
            raise ValueError(
                "weights must not be zero if the law is truncated to a side without probability: "
                f"w'z + b is always {self._q}, so side={self.side} cannot be. Use "
                f'side={1 - self.side}, another bias, or kind="squashed".'
            )


def _floats(name: str, value: Any) -> Array:
    try:
        array = np.array(value, dtype=float)  # a copy: the law must not change with its arguments
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers, got {value!r}") from error
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity. Remove such entries.")
    return array


def _vector(name: str, value: Any, size: int | None) -> Array:
    vector = np.atleast_1d(_floats(name, value))
    if vector.ndim != 1 or len(vector) == 0 or (size is not None and len(vector) != size):
        wanted = "(d,) with d >= 1" if size is None else f"({size},), that of mean"
        raise ValueError(f"{name} must have the shape {wanted}, got {vector.shape}")
    return vector


def _number(name: str, value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}")
    return float(value)


def _factor(cov: Any, size: int) -> Array:
    """The lower Cholesky factor."""
    matrix = np.atleast_2d(_floats("cov", cov))
    if matrix.shape != (size, size):
        raise ValueError(
            f"cov must have the shape ({size}, {size}), as mean has {size} entries, got "
            f"{matrix.shape}. For a diagonal, pass numpy.diag(variances)."
        )
    asymmetry = float(np.abs(matrix - matrix.T).max())
    if asymmetry > 1e-8 * float(np.abs(matrix).max()):
        raise ValueError(
            f"cov must be symmetric, but cov - cov.T has an entry of size {asymmetry:.3g}. Pass "
            "(cov + cov.T) / 2 if that is rounding."
        )
    factor = cholesky((matrix + matrix.T) / 2)
    if factor is None:
        raise ValueError(
            "cov must be positive definite, but its least eigenvalue is "
            f"{np.linalg.eigvalsh(matrix)[0]:.3g}. Add a small multiple of the identity, or leave "
            "out coordinates that are combinations of others."
        )
    return factor


def _noise(kind: Any) -> float:
    if callable(kind) or (isinstance(kind, str) and kind in _LOG_SQUASH):
        return 0.0
    if not isinstance(kind, str) or kind not in _NOISE:
        raise ValueError(
            'kind must be "squashed" or "truncated", "logistic", "cauchit", or a function of '
            f"scores, got {kind!r}"
        )
    return _NOISE[kind]


def _breaks(breaks: Any, kind: Any) -> Array:
    """Scores at which a function jumps."""
    ends = _floats("breaks", breaks)
    if ends.ndim != 1:
        raise ValueError(f"breaks must be a list of scores, got the shape {ends.shape}")
    if len(ends) and not callable(kind):
        raise ValueError(
            f"breaks are those of a function, got breaks={ends.tolist()} with kind={kind!r}. Leave "
            "breaks out, or give kind as a function."
        )
    return ends


def _side(side: Any) -> int:
    if not isinstance(side, Integral | np.bool_) or side not in (0, 1):
        raise ValueError(
            f"side must be 0 or 1, got {side!r}. For a label of -1 or 1 pass (label + 1) // 2."
        )
    return int(side)


def _shape(size: Any) -> tuple[int, ...]:
    sizes = () if size is None else size if isinstance(size, tuple | list) else (size,)
    for n in sizes:
        if not isinstance(n, Integral) or isinstance(n, bool):
            raise TypeError(f"size must be an integer or a tuple of integers, got {size!r}")
        if n < 0:
            raise ValueError(f"size must not be negative, got {size!r}")
    return tuple(int(n) for n in sizes)
