"""The models of source 002 and others beside them: how they are made, and what is measured."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.experiments import nlmf_published as published
from mixfold.experiments.nlmf_sets import CLASSES, Labelled

LAYERS = (100, 50)
GREEDY, JOINT = published.SECOND, "784-100-50-10, joint"
# of layer 1: balances, and strengths of the penalty of the codebook at the last of them
BALANCES = (1e-3, 1e-2, 1e-1)
STRENGTHS = (0.0, 10.0, 50.0)
# steps of the fits with such a penalty, and of parts without signs, which go on for long
SPARSE_STEPS, PART_STEPS = 20, 60
# an entry of the codebook below this share of the largest of its row counts as zero
NEAR_ZERO = 0.05
# steps of the softmax of pixels
STEPS = 300
Make = Callable[[int], Any]


@dataclass(frozen=True, slots=True)
class Tests:
    """Digits to learn from, and those that are asked: the next ones and the official ones."""

    train: Labelled
    held: Labelled
    official: Labelled


@dataclass(frozen=True, slots=True)
class Outcome:
    """Shares of mistakes, half squared errors of rebuilt digits, near zeros of the codebook.

    ``train`` is the share among training digits whose sources have seen the labels, None where
    none has. ``missed`` counts the mistakes among the next digits by digit.
    """

    train: float | None
    held: float
    official: float
    rebuilt: float | None
    sparse: float | None
    missed: tuple[int, ...]
    seconds: float


def measured(model: Any, tests: Tests) -> Outcome:
    """Fit a model and ask it about both tests."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        # more units than inputs, penalties that do nothing alone and few steps are on purpose
        warnings.simplefilter("ignore")
        model.fit(tests.train.X, tests.train.y)
    seconds = time.perf_counter() - began
    wrong = model.predict(tests.held.X) != tests.held.y
    official = model.predict(tests.official.X) != tests.official.y
    return Outcome(
        train=seen_error(model, tests.train),
        held=float(wrong.mean()),
        official=float(official.mean()),
        rebuilt=_rebuilt(model, tests.held.X),
        sparse=_sparse(model),
        missed=tuple(np.bincount(tests.held.y[wrong], minlength=CLASSES).tolist()),
        seconds=seconds,
    )


def seen_error(model: Any, train: Labelled) -> float | None:
    """Share of training digits that the classifier misses by the sources that saw their label."""
    from mixfold.math.links import LINKS
    from mixfold.models.factorization.codes import codes
    from mixfold.models.factorization.records import Layer

    if getattr(model, "reencode", True) or model.supervised != "auto":
        return None
    layer = Layer(model.components_, model.bias_, model.coef_.T, model.intercept_)
    labels = np.searchsorted(model.classes_, train.y)
    phi = codes(layer, LINKS[model.link], train.X, model.alpha, model.sigma2, labels)
    guess = (phi @ model.coef_.T + model.intercept_).argmax(axis=1)
    return float(np.mean(guess != labels))


def _rebuilt(model: Any, X: Array) -> float | None:
    return model.reconstruction_error(X) if hasattr(model, "reconstruction_error") else None


def _sparse(model: Any) -> float | None:
    """Share of small entries in the codebook of a single layer."""
    if not hasattr(model, "components_") or hasattr(model, "layers_"):
        return None
    sizes = np.abs(np.asarray(model.components_))
    return float(np.mean(sizes < NEAR_ZERO * sizes.max(axis=1, keepdims=True)))


# ------------------------------------------------ the models


class PixelSoftmax:
    """Classes by a softmax of the pixels themselves, with an L1 penalty of its weights."""

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    def fit(self, X: Array, y: Array) -> PixelSoftmax:
        from mixfold.math.softmax_regression import LabelledRows, improve_by_rows

        self.classes_, labels = np.unique(y, return_inverse=True)
        rows = LabelledRows(X, labels, np.ones(len(X)))
        start = np.zeros((X.shape[1] + 1, len(self.classes_)))
        self.coefficients = improve_by_rows(start, [rows], self.gamma, False, STEPS)
        return self

    def predict(self, X: Array) -> Array:
        scores = X @ self.coefficients[:-1] + self.coefficients[-1]
        return np.asarray(self.classes_[scores.argmax(axis=1)])


def _layer(n_components: int = LAYERS[0], **settings: Any) -> Make:
    def make(seed: int) -> Any:
        from mixfold import MatrixFactorization

        return MatrixFactorization(n_components, random_state=seed, **settings)

    return make


def _stack(second: int = LAYERS[1], **settings: Any) -> Make:
    def make(seed: int) -> Any:
        from mixfold import DeepFactorNetwork

        # the source shows each layer the labels, and trains no further
        own = {"supervised": "each", "fine_tune": None} | settings
        return DeepFactorNetwork((LAYERS[0], second), random_state=seed, **own)

    return make


def _wide(beta: float, **settings: Any) -> Make:
    rates: dict[str, Any] = {"beta": (0.0, beta), "gamma": (0.2, 4.0), "sigma2": (1e-3, 1e-6)}
    return _stack(200, **rates, **settings)


# the source's two-layer network: alpha, beta = 0, gamma and sigma2 of each layer
SMALL: dict[str, Any] = {"alpha": (0.0, 0.05), "gamma": (0.2, 0.3), "sigma2": (1e-3, 1e-4)}


def balance_row(balance: float, again: bool) -> str:
    """The row of layer 1 with a balance; ``again``: its sources are encoded again."""
    row = f"L1, s2 = {balance:.0e}".replace("e-0", "e-")
    if balance == BALANCES[0]:
        row = published.FIRST
    return f"{row}, re-encoded" if again else row


def strength_row(beta: float) -> str:
    """The row of layer 1 with a penalty of its codebook; none is the row of its balance."""
    return f"L1, s2 = 1e-1, beta = {beta:g}" if beta else balance_row(BALANCES[-1], True)


def wide_row(beta: float) -> str:
    return published.WIDE if beta == 70.0 else published.WIDE.replace("70", f"{beta:g}")


MODELS: dict[str, Make] = {
    **{
        balance_row(s2, again): _layer(gamma=0.2, sigma2=s2, reencode=again)
        for again in (False, True)
        for s2 in BALANCES
    },
    **{
        strength_row(b): _layer(gamma=0.2, sigma2=BALANCES[-1], beta=b, max_iter=SPARSE_STEPS)
        for b in STRENGTHS[1:]
    },
    "PCA 100, softmax": _layer(link="identity", gamma=0.2, supervised="after"),
    published.LINEAR: lambda seed: PixelSoftmax(1.0),
    published.FIRST_DUAL: _layer(50, gamma=0.2, supervised="after"),
    "NMF 50, two sessions": _layer(
        50,
        link="saturating",
        nonneg_codebook=True,
        gamma=0.2,
        supervised="after",
        max_iter=PART_STEPS,
    ),
    published.SECOND: _stack(**SMALL),
    **{wide_row(beta): _wide(beta) for beta in published.MISSED},
    published.SECOND_DUAL: _stack(**SMALL, supervised=False),
    published.WIDE_DUAL: _wide(70.0, supervised=False),
    JOINT: _stack(fine_tune="recognition", l2=1e-3, **SMALL),
}
# what the quick variant runs
FEW = (
    published.FIRST, balance_row(BALANCES[-1], False), balance_row(BALANCES[-1], True),
    "PCA 100, softmax", published.LINEAR, published.FIRST_DUAL, published.SECOND, JOINT,
)  # fmt: skip
