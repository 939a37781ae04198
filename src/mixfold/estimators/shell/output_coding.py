"""Targets as the real outputs of a model, several sets of them too; and outputs as targets again.

Classes are corners of a simplex or unit vectors, labels and numbers are centred and perhaps
standardised. SupervisedPPCA and SupervisedMixtureOfPPCA have one ``OutputSet``, KernelCCA too,
MORP several of them, ``OutputSets``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Positive, Shares, record
from mixfold.estimators.shell.targets import (
    Target,
    known_share,
    learn_score_target,
    learn_target,
    score_predictions,
    weights_or_ones,
)
from mixfold.math.simplex_codes import simplex_codes

# ------------------------------------------------------------------ the code


@record
@dataclass(frozen=True, slots=True)
class Coding:
    """How targets are outputs: codes (C, L) of classes, or (y - center) / scale (L,).

    ``means`` and ``variances`` (L,) of the outputs that are known; ``prior`` (C,) of the classes;
    ``seen`` (L,): whether an output is ever known.
    """

    codes: Array
    center: Array
    scale: Positive
    means: Array
    variances: Array
    prior: Shares
    seen: Array


def _code_classes(encoded: Array, weights: Array, n_classes: int, plain: bool) -> Coding:
    """Of classes (n,), -1 where unknown: unit vectors if ``plain``, else corners of a simplex."""
    codes = np.eye(n_classes) if plain else simplex_codes(n_classes)
    known = encoded >= 0
    counts = np.bincount(encoded[known], weights[known], minlength=n_classes)
    prior = counts / counts.sum() if counts.any() else np.full(n_classes, 1.0 / n_classes)
    means, deviations = _moments(np.where(known[:, None], codes[encoded], np.nan), weights)
    seen = np.ones(codes.shape[1], bool)
    return Coding(codes, np.zeros(1), np.ones(1), means, deviations**2, prior, seen)


def _code_numbers(encoded: Array, weights: Array, standardized: bool) -> Coding:
    """Of outputs (n, L), NaN where unknown: about their means, ``standardized`` or as they are."""
    center, deviations = _moments(encoded, weights)
    scale = np.ones(len(center))
    if standardized:
        scale = np.where(deviations > 0, deviations, 1.0)
    means, deviations = _moments((encoded - center) / scale, weights)
    seen = np.asarray(~np.isnan(encoded).all(axis=0))
    nothing = np.zeros((0, 0))
    return Coding(nothing, center, scale, means, deviations**2, np.zeros(0), seen)


def _code_scores(target: Target, encoded: Array, weights: Array) -> Coding:
    """Of ordered categories their ranks 0, 1, .., of counts the counts themselves."""
    C = len(target.classes)
    ranks = np.where(encoded >= 0, encoded, np.nan) if C else encoded
    means, deviations = _moments(np.reshape(ranks, (len(ranks), 1)).astype(float), weights)
    prior = np.zeros(0)
    if C:
        counts = np.bincount(encoded[encoded >= 0], weights[encoded >= 0], minlength=C)
        prior = counts / counts.sum()
    codes = np.arange(C, dtype=float)[:, None] if C else np.zeros((0, 0))
    nothing, seen = np.zeros(1), np.ones(1, bool)
    return Coding(codes, nothing, np.ones(1), means, deviations**2, prior, seen)


def _moments(values: Array, weights: Array) -> tuple[Array, Array]:
    """Means and standard deviations of the known entries; 0 and 1 where there are none."""
    known = ~np.isnan(values)
    count = weights @ known
    total = np.where(count > 0, count, 1.0)
    mean = weights @ np.where(known, values, 0.0) / total
    variance = weights @ np.where(known, (values - mean) ** 2, 0.0) / total
    return mean, np.where(count > 0, np.sqrt(variance), 1.0)


# ------------------------------------------------------------------ one y


@record
@dataclass(frozen=True, slots=True)
class OutputSet:
    """One y: what it was in the fit, and how it is coded."""

    target: Target
    coding: Coding

    def __post_init__(self) -> None:
        classes, codes = len(self.target.classes), len(self.coding.codes)
        if self.target.task == "classification" and classes != codes:
            raise ValueError(f"{classes} classes that have {codes} codes")

    @property
    def size(self) -> int:
        """Number of outputs L."""
        return len(self.coding.means)

    def encode(self, y: Any) -> Array:
        """Outputs (n, L) of y as in a fit, NaN where unknown."""
        return self.code(self.target.encode(y))

    def code(self, encoded: Array) -> Array:
        """Outputs (n, L) of ``Target.encode``, NaN where unknown."""
        if self.target.task != "classification":
            return np.asarray((encoded - self.coding.center) / self.coding.scale)
        return np.where((encoded >= 0)[:, None], self.coding.codes[encoded], np.nan)

    def count_known(self, encoded: Array, weights: Array | None) -> float:
        """The weight of the rows of which anything is known."""
        found: float = known_share(encoded, weights) * weights_or_ones(weights, len(encoded)).sum()
        return found

    def follow(self, encoded: Array, weights: Array | None, before: float) -> OutputSet:
        """The same code after one more batch, with the frequencies of classes of all rows.

        ``before`` is the weight of the rows so far whose class was known.
        """
        weights, coding = weights_or_ones(weights, len(encoded)), self.coding
        if self.target.task != "classification":
            seen = coding.seen | np.asarray((weights > 0) @ ~np.isnan(encoded) > 0)
            return replace(self, coding=replace(coding, seen=seen))
        known = encoded >= 0
        fresh = np.bincount(encoded[known], weights[known], minlength=len(coding.prior))
        if not fresh.any():
            return self
        counts = before * coding.prior + fresh
        return replace(self, coding=replace(coding, prior=counts / counts.sum()))

    def relearn(
        self, outputs: Array, weights: Array, standardize: bool | str
    ) -> tuple[OutputSet, Array]:
        """The code that a fit of these outputs (n, L) has, and the outputs in it.

        They are in the code of before, which a first batch may have settled.
        """
        before = self.coding
        if self.target.task == "classification":
            means, deviations = _moments(outputs, weights)
            coding = replace(before, means=means, variances=deviations**2)
            return replace(self, coding=coding), outputs
        encoded = outputs * before.scale + before.center
        coding = _code_numbers(encoded, weights, _is_standardized(self.target.task, standardize))
        found = replace(self, coding=replace(coding, seen=before.seen | coding.seen))
        return found, found.code(encoded)

    def decode(self, outputs: Array) -> Array:
        """Outputs (n, L) as y was given: the nearest class, labels at one half, numbers."""
        if self.target.task == "classification":
            # all codes are equally long
            return self.target.decode((outputs @ self.coding.codes.T).argmax(axis=1))
        values = outputs * self.coding.scale + self.coding.center
        if self.target.task == "multilabel":
            values = (values > 0.5).astype(np.int64)
        return self.target.decode(values)

    def decide(self, outputs: Array) -> Array:
        """Scores of classes (of the second of two), or of labels by how much they exceed 1/2."""
        if self.target.task == "multilabel":
            return np.asarray(outputs * self.coding.scale + self.coding.center - 0.5)
        scores = outputs @ self.coding.codes.T
        return np.asarray(scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores)


def learn_output_set(
    y: Any,
    task: str,
    weights: Array | None,
    standardize: bool | str,
    plain_codes: bool = False,
    classes: Any = None,
) -> tuple[OutputSet, Array]:
    """What y is and how it is coded, and its outputs (n, L), NaN where unknown.

    ``standardize`` 'auto' is for regression; ``plain_codes`` makes unit vectors of classes;
    ``classes``, where they are given, are all that may come.
    """
    target, encoded = learn_target(y, task, weights, classes)
    weights = weights_or_ones(weights, len(encoded))
    if target.task == "classification":
        coding = _code_classes(encoded, weights, len(target.classes), plain_codes)
    else:
        coding = _code_numbers(encoded, weights, _is_standardized(target.task, standardize))
    found = OutputSet(target, coding)
    return found, found.code(encoded)


def _is_standardized(task: str, standardize: bool | str) -> bool:
    return task == "regression" if standardize == "auto" else bool(standardize)


def learn_score_output(y: Any, task: str, weights: Array | None) -> tuple[OutputSet, Array]:
    """Ordered categories or counts, and their outputs (n, 1), NaN where unknown."""
    target, encoded = learn_score_target(y, task, weights)
    found = OutputSet(target, _code_scores(target, encoded, weights_or_ones(weights, len(encoded))))
    return found, found.code(encoded)


# ------------------------------------------------------------------ several y


@record
@dataclass(frozen=True, slots=True)
class OutputSets:
    """Several y: ``names`` of a dict, else None; ``single`` if y was one alone."""

    sets: tuple[OutputSet, ...]
    names: tuple[str, ...] | None
    single: bool

    def answer(self, answer: Callable[[OutputSet, Array], Any], outputs: Array) -> Any:
        """``answer`` of each set for its columns of outputs (n, all), in the form of y."""
        cuts = np.cumsum([one.size for one in self.sets])[:-1]
        parts = np.split(outputs, cuts, axis=1)
        answers = [answer(one, part) for one, part in zip(self.sets, parts, strict=True)]
        if self.single:
            return answers[0]
        return answers if self.names is None else dict(zip(self.names, answers, strict=True))

    def list_entries(self, value: Any, name: str) -> list[Any]:
        """The entries of a value for each set, given in the form of y."""
        if self.single:
            return [value]
        return _list_entries(value, len(self.sets), self.names, name)

    def score(self, y: Any, predicted: Any, sample_weight: Any = None) -> float:
        """Mean over the sets of accuracy or R^2."""
        values, found = self.list_entries(y, "y"), self.list_entries(predicted, "predicted")
        scores = [
            score_predictions(one.target, truth, guess, sample_weight)
            for one, truth, guess in zip(self.sets, values, found, strict=True)
        ]
        return float(np.mean(scores))


def is_several(y: Any) -> bool:
    """Whether y is a dict, or a list of arrays: several sets of outputs."""
    if isinstance(y, dict):
        return True
    return isinstance(y, list | tuple) and bool(y) and all(getattr(v, "ndim", 0) > 0 for v in y)


def learn_output_sets(
    y: Any, task: Any, weights: Array | None, standardize: bool | str
) -> tuple[OutputSets, list[Array]]:
    """What y is, and the outputs (n, L) of each set, NaN where unknown."""
    several = is_several(y)
    names = tuple(str(key) for key in y) if isinstance(y, dict) else None
    values = list(y.values()) if isinstance(y, dict) else list(y) if several else [y]
    if isinstance(task, str):
        tasks = [task] * len(values)
    else:
        tasks = _list_entries(task, len(values), names, "task") if several else [task]
    both = [learn_output_set(v, t, weights, standardize)
            for v, t in zip(values, tasks, strict=True)]  # fmt: skip
    lengths = [len(outputs) for _, outputs in both]
    if len(set(lengths)) > 1:
        raise ValueError(
            f"the sets of outputs have {lengths} rows; give one entry per row of X in each of them"
        )
    sets = tuple(one for one, _ in both)
    return OutputSets(sets, names, not several), [outputs for _, outputs in both]


def _list_entries(value: Any, count: int, names: tuple[str, ...] | None, name: str) -> list[Any]:
    """The entries of a dict with these names, or of a list of so many."""
    if names is not None:
        if not isinstance(value, dict) or set(value) != set(names):
            raise ValueError(f"{name} must be a dict with the keys {list(names)}, as y was")
        return [value[key] for key in names]
    if not isinstance(value, list | tuple) or len(value) != count:
        raise ValueError(f"{name} must be a list of {count} entries, as y was")
    return list(value)
