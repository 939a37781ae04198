"""MORP with other losses than the squared one: targets, the fit, and answers from margins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from mixfold.contracts import Array, Block, Executor, Source, record
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.sources import open_source
from mixfold.estimators.kernels.kernel_views import exact_scores
from mixfold.estimators.shell.output_coding import OutputSet, OutputSets
from mixfold.models.kernels.loss_morp import LossMORP
from mixfold.models.kernels.output_losses import MarginLoss, OutputLoss, SoftmaxLoss
from mixfold.models.kernels.views import ThinSVD

# ordered grades that a column may have
_MOST_GRADES = 50


@record
@dataclass(frozen=True, slots=True)
class LossTarget:
    """How a set of outputs is a target of a loss: ``grades`` (L, G) in order, NaN beyond the last.

    Classes and labels have no grades, unless they are ordered (loss='rank').
    """

    loss: Any
    size: int
    grades: Array

    def targets(self, one: OutputSet, coded: Array) -> Array:
        """Targets (n, size) of coded outputs, NaN where unknown."""
        values = _plain_values(one, coded)
        if isinstance(self.loss, SoftmaxLoss) or (values.shape[1] != self.size):
            unit = np.eye(len(one.target.classes))[np.nan_to_num(values[:, 0]).astype(int)]
            return np.where(np.isnan(values), np.nan, unit)
        if not self.grades.size:
            return values
        places = [np.searchsorted(g[~np.isnan(g)], v) for g, v in zip(self.grades, values.T,
                                                                        strict=True)]  # fmt: skip
        return np.where(np.isnan(values), np.nan, np.column_stack(places))

    def predict(self, one: OutputSet, eta: Array, b: Array) -> Array:
        """Outputs in the form of y, from functions eta (n, size) and intercepts (K,)."""
        margins = eta[:, self.loss.owner] + b
        task = one.target.task
        if self.grades.size:
            passed = np.zeros(eta.shape, int)
            np.add.at(passed.T, self.loss.owner, (margins > 0).T.astype(int))
            values = np.take_along_axis(self.grades.T, passed, axis=0)
            if task == "classification":
                return one.target.decode(values[:, 0].astype(int))
            return one.target.decode(values.astype(np.int64) if task == "multilabel" else values)
        if task == "classification":
            chosen = margins.argmax(axis=1) if self.size > 1 else (margins[:, 0] > 0).astype(int)
            return one.target.decode(chosen)
        return one.target.decode((margins > 0).astype(np.int64))

    def decide(self, one: OutputSet, eta: Array, b: Array) -> Array:
        """Margins of classes (of the second of two) or of labels; of grades the function eta."""
        if self.grades.size:
            return eta[:, 0] if self.size == 1 and one.target.task == "classification" else eta
        margins = eta[:, self.loss.owner] + b
        return margins[:, 0] if one.target.task == "classification" and self.size == 1 else margins

    def probabilities(self, one: OutputSet, eta: Array, b: Array) -> Array:
        """Of the classes (n, C), or of the labels being 1 (n, L); by the logistic loss."""
        margins = eta[:, self.loss.owner] + b
        if isinstance(self.loss, SoftmaxLoss):
            return np.asarray(softmax(margins, axis=1))
        p = expit(margins)
        return np.column_stack([1 - p, p]) if one.target.task == "classification" else p


def _plain_values(one: OutputSet, coded: Array) -> Array:
    """Class numbers (n, 1), labels or numbers (n, L), of coded outputs; NaN where unknown."""
    if one.target.task != "classification":
        return np.asarray(coded * one.coding.scale + one.coding.center)
    unknown = np.isnan(coded).any(axis=1)
    numbers = (np.nan_to_num(coded) @ one.coding.codes.T).argmax(axis=1)
    return np.where(unknown, np.nan, numbers)[:, None]


def learn_loss_target(name: str, one: OutputSet, coded: Array) -> LossTarget:
    """The loss of this name for a set of outputs; refused if it has none."""
    task, classes = one.target.task, len(one.target.classes)
    if name == "rank":
        return _learn_grades(_plain_values(one, coded), task)
    if task == "regression":
        raise ValueError(
            f"loss={name!r} is for classes and labels, but y has numbers; use loss='squared', or "
            "loss='rank' for grades"
        )
    nothing = np.zeros((0, 0))
    if task == "classification" and classes > 2 and name == "logistic":
        return LossTarget(SoftmaxLoss(classes), classes, nothing)
    size = 1 if task == "classification" and classes == 2 else max(classes, coded.shape[1])
    size = coded.shape[1] if task == "multilabel" else size
    return LossTarget(MarginLoss(name, np.arange(size), np.full(size, 0.5)), size, nothing)


def _learn_grades(values: Array, task: str) -> LossTarget:
    each = [np.unique(column[~np.isnan(column)]) for column in values.T]
    most = max(len(grades) for grades in each)
    if most > _MOST_GRADES:
        raise ValueError(
            f"loss='rank' takes ordered grades, at most {_MOST_GRADES} in a column; y has {most} "
            "different values. Use loss='squared', or round y to fewer"
        )
    table = np.full((len(each), max(most, 1)), np.nan)
    for row, grades in zip(table, each, strict=True):
        row[: len(grades)] = grades
    counts = [max(len(grades) - 1, 1) for grades in each]
    owner = np.repeat(np.arange(len(each)), counts)
    levels = np.concatenate([np.arange(count) + 0.5 for count in counts])
    # a column of one grade has a margin that nothing is above
    known = np.where(np.isnan(table), table[:, :1], table)
    return LossTarget(MarginLoss("hinge", owner, levels), len(each), np.nan_to_num(known))


@record
@dataclass(frozen=True, slots=True)
class Margins:
    """Functions eta of the rows are scores' slopes (d, L); intercepts (K,) of all sets."""

    slopes: Array
    intercepts: Array
    targets: tuple[LossTarget, ...]

    def answer(self, method: str, sets: OutputSets, scores: Array) -> Any:
        """What ``method`` of each target says, in the form of y."""
        eta, answers, column, own = scores @ self.slopes, [], 0, 0
        for one, target in zip(sets.sets, self.targets, strict=True):
            count = len(target.loss.owner)
            part, b = eta[:, column : column + target.size], self.intercepts[own : own + count]
            answers.append(getattr(target, method)(one, part, b))
            column, own = column + target.size, own + count
        if sets.single:
            return answers[0]
        return answers if sets.names is None else dict(zip(sets.names, answers, strict=True))


@dataclass(frozen=True, slots=True)
class LossPlan:
    """The settings of MORP on which a fit by a loss depends."""

    loss: str
    beta: float
    gamma: float
    n_components: int
    balance: bool
    shares: Array
    plan: Plan


def fit_by_loss(
    settings: LossPlan,
    source: Source,
    executor: Executor,
    thin: ThinSVD,
    sets: OutputSets,
    coded: list[Array],
    weight: Array,
    w: Array,
) -> tuple[LossMORP, Fit, tuple[LossTarget, ...]]:
    """The climb of ``LossMORP`` over the coordinates of all rows, which are held in memory."""
    targets = tuple(
        learn_loss_target(settings.loss, one, Y) for one, Y in zip(sets.sets, coded, strict=True)
    )
    tables = [one.targets(kind, Y) for one, kind, Y in zip(targets, sets.sets, coded, strict=True)]
    F = exact_scores(source, executor, thin.reader(np.eye(len(thin.values))))
    losses: tuple[OutputLoss, ...] = tuple(one.loss for one in targets)
    scales = settings.shares / np.array([
        _scale(loss, T, weight, settings.balance) for loss, T in zip(losses, tables, strict=True)
    ])  # fmt: skip
    model = LossMORP(
        w, np.sqrt(thin.values), losses, tuple(one.size for one in targets), scales,
        settings.beta, settings.gamma, settings.n_components,
    )  # fmt: skip
    y = np.hstack(tables)
    rows = open_source(F, weight=weight, y=y, complete=True)
    start = model.start_from(Block(F, y=y, weight=weight))
    return model, fit(model, rows, executor, settings.plan, start=start), targets


def _scale(loss: OutputLoss, T: Array, weight: Array, balance: bool) -> float:
    """The loss without any function of the rows; not balanced, what makes it a squared error."""
    if not balance:
        return loss.curvature / 2
    nothing = np.zeros((len(T), len(np.unique(loss.owner))))
    each, _ = loss.evaluate(nothing, loss.start(T, weight), T)
    return float(weight @ each) or 1.0


def squarem() -> Any:
    """The rule that extrapolates the steps, which have no gradient."""
    return ACCELERATIONS["squarem"]
