"""One y or several of them, each with its own task and weight, as centred outputs; and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array, record
from mixfold.estimators.shell.output_coding import Coding, class_coding, number_coding
from mixfold.estimators.shell.target_scores import target_score
from mixfold.estimators.shell.targets import Target, learned


@record
@dataclass(frozen=True, slots=True)
class OutputSet:
    """One y: what it was in the fit, and how it is coded."""

    target: Target
    coding: Coding

    @property
    def size(self) -> int:
        return len(self.coding.means)

    def coded(self, encoded: Array) -> Array:
        """Outputs (n, L) of ``Target.encoded``, NaN where unknown."""
        if self.target.task != "classification":
            return np.asarray((encoded - self.coding.center) / self.coding.scale)
        return np.where((encoded >= 0)[:, None], self.coding.codes[encoded], np.nan)

    def predicted(self, outputs: Array) -> Array:
        """Coded outputs (n, L) as y was given: the nearest class, labels at one half, numbers."""
        if self.target.task == "classification":
            # all codes are equally long
            return self.target.decoded((outputs @ self.coding.codes.T).argmax(axis=1))
        values = outputs * self.coding.scale + self.coding.center
        if self.target.task == "multilabel":
            values = (values > 0.5).astype(np.int64)
        return self.target.decoded(values)

    def decided(self, outputs: Array) -> Array:
        """Scores of classes (of the second of two), or of labels by how much they exceed 1/2."""
        if self.target.task == "multilabel":
            return np.asarray(outputs * self.coding.scale + self.coding.center - 0.5)
        scores = outputs @ self.coding.codes.T
        return np.asarray(scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores)


@record
@dataclass(frozen=True, slots=True)
class OutputSets:
    """Several y: ``names`` of a dict, else None; ``single`` if y was one alone."""

    sets: tuple[OutputSet, ...]
    names: tuple[str, ...] | None
    single: bool

    def joined(self, answer: Callable[[OutputSet, Array], Any], outputs: Array) -> Any:
        """``answer`` of each set for its columns of outputs (n, all), as y was given."""
        cuts = np.cumsum([one.size for one in self.sets])[:-1]
        parts = np.split(outputs, cuts, axis=1)
        return self.formed([answer(one, part) for one, part in zip(self.sets, parts, strict=True)])

    def formed(self, answers: list[Any]) -> Any:
        if self.single:
            return answers[0]
        return answers if self.names is None else dict(zip(self.names, answers, strict=True))

    def score(self, y: Any, predicted: Any, sample_weight: Any = None) -> float:
        """Mean over the sets of accuracy or R^2."""
        found = each_of(predicted, self, "predicted")
        scores = [
            target_score(one.target, values, guess, sample_weight)
            for one, values, guess in zip(self.sets, each_of(y, self, "y"), found, strict=True)
        ]
        return float(np.mean(scores))


def is_several(y: Any) -> bool:
    """Whether y is a dict, or a list of arrays: several sets of outputs."""
    if isinstance(y, dict):
        return True
    return isinstance(y, list | tuple) and bool(y) and all(getattr(v, "ndim", 0) > 0 for v in y)


def each_of(value: Any, sets: OutputSets, name: str) -> list[Any]:
    """The entries of a value for each set, given in the form in which y was."""
    if sets.single:
        return [value]
    if sets.names is not None:
        if not isinstance(value, dict) or set(value) != set(sets.names):
            raise ValueError(f"{name} must be a dict with the keys {list(sets.names)}, as y was")
        return [value[key] for key in sets.names]
    if not isinstance(value, list | tuple) or len(value) != len(sets.sets):
        raise ValueError(f"{name} must be a list of {len(sets.sets)} entries, as y was")
    return list(value)


def learn_sets(
    y: Any, task: Any, weight: Array | None, standardize: bool | str
) -> tuple[OutputSets, list[Array]]:
    """What y is, and the coded outputs (n, L) of each set, NaN where unknown."""
    several = is_several(y)
    names = tuple(str(key) for key in y) if isinstance(y, dict) else None
    values = list(y.values()) if isinstance(y, dict) else list(y) if several else [y]
    tasks = [task] * len(values)
    if not isinstance(task, str):
        empty = OutputSets((None,) * len(values), names, not several)  # type: ignore[arg-type]
        tasks = each_of(task, empty, "task")
    both = [_learned(v, t, weight, standardize) for v, t in zip(values, tasks, strict=True)]
    _check_lengths([coded for _, coded in both])
    return OutputSets(tuple(one for one, _ in both), names, not several), [c for _, c in both]


def _learned(
    y: Any, task: str, weight: Array | None, standardize: bool | str
) -> tuple[OutputSet, Array]:
    target, encoded = learned(y, task, weight)
    if weight is None or len(weight) != len(encoded):  # which is told when both are opened
        weight = np.ones(len(encoded))
    if target.task == "classification":
        coding = class_coding(encoded, weight, len(target.classes), plain=False)
    else:
        wanted = target.task == "regression" if standardize == "auto" else bool(standardize)
        coding = number_coding(encoded, weight, wanted)
    one = OutputSet(target, coding)
    return one, one.coded(encoded)


def _check_lengths(tables: list[Array]) -> None:
    lengths = [len(table) for table in tables]
    if len(set(lengths)) > 1:
        raise ValueError(
            f"the sets of outputs have {lengths} rows; give one entry per row of X in each of them"
        )
