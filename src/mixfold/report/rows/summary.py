"""The pass over the data of a report: everything that sections need of the rows is summed here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Source
from mixfold.report.capabilities import (
    Ask,
    groups_of,
    has_target,
    rebuilt_of,
    topics_of,
    units_matter,
    usualness_of,
)
from mixfold.report.rows.classes import ClassSums, LabelSums, NumberSums
from mixfold.report.rows.columns import ColumnSums
from mixfold.report.rows.groups import GroupSums
from mixfold.report.rows.odd import OddRows
from mixfold.report.rows.opening import Targets, open_rows, row_names
from mixfold.report.rows.piece import Piece, Questions
from mixfold.report.rows.residuals import ResidualSums
from mixfold.report.rows.sample import Sampled, SampledRows
from mixfold.report.rows.topics import TopicSums

# entries of a piece, and rows: the memory of the pass
_ENTRIES, _MOST_ROWS, _LEAST_ROWS = 2**21, 16384, 256
# entries of the sample, if it is dense
_SAMPLED = 2**24
# the errors by which a model says that it cannot be asked something
_REFUSALS = (AttributeError, NotImplementedError, TypeError, ValueError)


@dataclass
class RowSummary:
    """What was seen of the rows; None where the model or the data have nothing to say."""

    columns: ColumnSums
    sampled: Sampled
    questions: Questions
    groups: GroupSums | None
    topics: TopicSums | None
    odd: OddRows | None
    usualness_name: str
    residuals: ResidualSums | None
    targets: Targets | None
    classes: ClassSums | None
    labels: LabelSums | None
    numbers: NumberSums | None
    # what was asked in vain: the question and the model's reason
    refused: dict[str, str] = field(default_factory=dict)
    # names of the rows, if they have any
    names: Any = None

    @property
    def n_rows(self) -> int:
        return self.columns.n_rows

    @property
    def is_weighted(self) -> bool:
        """Whether rows weigh other than one."""
        return self.columns.is_weighted


def summarise_rows(model: Any, X: Any, y: Any, weight: Any, max_rows: int, seed: int) -> RowSummary:
    """Visit all rows once, a piece at a time.

    Parameters
    ----------
    model : a fitted estimator
    X, weight : as the model takes them
    y : classes, labels or numbers of the rows, the name of a column of X, or None
    max_rows : int
        Size of the sample.
    seed : int
        Of the sample.
    """
    source, values = open_rows(model, X, y, weight)
    targets = None if values is None else Targets(values, model)
    scout = _Pass(model, targets, max_rows, seed)
    end = 0
    for block in source.blocks(max_rows=_rows_at_once(source)):
        end = block.rows.stop
        y_of = None if values is None else values[block.rows]
        if y_of is not None and len(y_of) < block.n_rows:
            break
        scout.add(Piece(block, y_of, scout.questions_for(block)))
    if values is not None and end != len(values):
        raise ValueError(
            f"y has {len(values)} entries, the data have {end} rows or more; give one entry per "
            "row, in the same order"
        )
    if scout.columns.n_rows == 0:
        raise ValueError("X has no row of positive weight; there is nothing to report")
    return replace(scout.finish(), names=row_names(X, getattr(model, "schema_", None)))


def _rows_at_once(source: Source) -> int:
    return int(np.clip(_ENTRIES // max(source.n_features, 1), _LEAST_ROWS, _MOST_ROWS))


class _Pass:
    """The sums of one pass."""

    def __init__(self, model: Any, targets: Targets | None, max_rows: int, seed: int) -> None:
        self.model, self.targets = model, targets
        self.columns, self.sample = ColumnSums(), SampledRows(max_rows, seed)
        self._most, self._seed = max_rows, seed
        self.residuals: ResidualSums | None = None
        self.groups: GroupSums | None = None
        self.topics: TopicSums | None = None
        self.odd: OddRows | None = None
        self.classes: ClassSums | None = None
        self.labels: LabelSums | None = None
        self.numbers: NumberSums | None = None
        self.questions: Questions | None = None
        self.refused: dict[str, str] = {}
        self.usualness_name = ""

    # ------------------------------------------------ what can be asked

    def questions_for(self, block: Any) -> Questions:
        """What is asked; the first rows show what the model answers."""
        if self.questions is None:
            if not sparse.issparse(block.X):
                size = min(self._most, max(200, _SAMPLED // block.X.shape[1]))
                self.sample = SampledRows(size, self._seed)
            first = Piece(block.part(0, min(block.n_rows, 8)), None, Questions()).source
            self.questions = self._find_questions(first)
            self._prepare(self.questions)
        return self.questions

    def _find_questions(self, first: Any) -> Questions:
        model, usual = self.model, usualness_of(self.model)
        self.usualness_name = "" if usual is None else usual[1]
        groups = groups_of(model)
        if groups is not None and not self._answers("its groups", groups.shares, first):
            groups = None
        return Questions(
            groups=groups,
            topics=self._keep_if_answered("its topics", topics_of(model), first),
            usualness=self._keep_if_answered(
                "how usual it is", None if usual is None else usual[0], first
            ),
            rebuilt=self._keep_if_answered("its reconstruction", rebuilt_of(model), first),
            chances=self._keep_if_answered("chances of classes", self._chances(), first),
            predicted=self._keep_if_answered("predictions", self._prediction_question(), first),
        )

    def _chances(self) -> Ask | None:
        targets = self.targets
        if targets is None or not targets.classes or not has_target(self.model):
            return None
        if targets.known_classes and hasattr(self.model, "predict_proba"):
            return lambda X: np.asarray(self.model.predict_proba(X), float)
        if not hasattr(self.model, "predict"):
            return None
        size = len(targets.classes)

        def class_indicators(X: Any) -> Array:
            codes = targets.codes(np.asarray(self.model.predict(X)))
            return np.asarray(np.where(codes[:, None] == np.arange(size), 1.0, 0.0))

        return class_indicators

    def _prediction_question(self) -> Ask | None:
        wanted = self.targets is not None and self.targets.numbers and has_target(self.model)
        return (lambda X: np.asarray(self.model.predict(X), float)) if wanted else None

    def _keep_if_answered(self, what: str, ask: Ask | None, first: Any) -> Ask | None:
        return ask if ask is not None and self._answers(what, ask, first) else None

    def _answers(self, what: str, ask: Ask, first: Any) -> bool:
        try:
            ask(first)
        except _REFUSALS as error:
            self.refused[what] = str(error)
            return False
        return True

    def _prepare(self, ask: Questions) -> None:
        targets = self.targets
        if ask.groups is not None:
            self.groups = GroupSums(len(ask.groups.names))
        if ask.topics is not None:
            self.topics = TopicSums(len(self.model.topics_))
        if ask.usualness is not None:
            self.odd = OddRows()
        if ask.rebuilt is not None:
            self.residuals = ResidualSums(units_matter(self.model))
        if targets is not None and ask.chances is not None:
            self.classes = ClassSums(len(targets.classes))
        elif targets is not None and targets.classes and ask.groups is not None:
            self.labels = LabelSums(len(ask.groups.names), len(targets.classes))

    # ------------------------------------------------ rows

    def add(self, piece: Piece) -> None:
        """One more piece."""
        if not len(piece):
            return
        self.columns.add(piece)
        self.sample.add(piece)
        if self.groups is not None:
            self.groups.add(piece)
        if self.topics is not None and piece.topics is not None:
            self.topics.add(piece, piece.topics)
        if self.odd is not None and piece.usualness is not None:
            self.odd.add(piece, piece.usualness)
        if self.residuals is not None:
            self.residuals.add(piece, self.columns)
        if self.targets is not None and piece.y is not None:
            self._compare(piece, self.targets, piece.y)

    def _compare(self, piece: Piece, targets: Targets, y: Array) -> None:
        if self.classes is not None:
            self.classes.add(piece, targets.codes(y))
        elif self.labels is not None:
            self.labels.add(piece, targets.codes(y))
        elif piece.predicted is not None:
            truth = targets.floats(y)
            self.numbers = self.numbers or NumberSums(truth.shape[1])
            self.numbers.add(piece, truth)

    def finish(self) -> RowSummary:
        """All of it."""
        assert self.questions is not None
        return RowSummary(
            self.columns,
            self.sample.finish(),
            self.questions,
            self.groups,
            self.topics,
            self.odd,
            self.usualness_name,
            self.residuals,
            self.targets,
            self.classes,
            self.labels,
            self.numbers,
            self.refused,
        )
