"""The subject of a report: a fitted model and the summary of its rows, if there are any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.estimators.mixtures.category_shares import category_shares
from mixfold.report.capabilities import Groups, groups_of
from mixfold.report.formatting import number, short
from mixfold.report.images import ImageShape
from mixfold.report.rows.summary import RowSummary
from mixfold.schema import Schema
from mixfold.schema.dates import from_days
from mixfold.schema.scales import from_scale


@dataclass(frozen=True)
class Subject:
    """``asked`` was asked for the report, ``model`` answers: of a search its best estimator."""

    asked: Any
    model: Any
    look: RowSummary | None
    image: ImageShape | None
    made: datetime
    seed: int
    max_points: int
    # more facts for the head of the page, such as the name of a file
    origin: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def names(self) -> list[str]:
        """The columns; ``x0, x1, ...`` if the model was fitted without names."""
        names = getattr(self.model, "feature_names_in_", None)
        if names is None and self.image is not None and not self.image.guessed:
            width = self.image.width
            return [f"pixel ({j // width}, {j % width})" for j in range(self.model.n_features_in_)]
        if names is None:
            return [f"x{j}" for j in range(self.model.n_features_in_)]
        return [str(name) for name in names]

    @cached_property
    def schema(self) -> Schema | None:
        """What the columns of the table are, if the model read them through a schema."""
        return getattr(self.model, "schema_", None)

    def level(self, column: int, code: float) -> str:
        """What a code of a column stands for: its category, or else the code itself."""
        levels = () if self.schema is None else self.schema.used[column].levels
        place = round(float(code))
        return str(levels[place]) if 0 <= place < len(levels) else number(code)

    def spread(self, column: int, deviation: float, digits: int = 3) -> str:
        """A standard deviation of a column in words of its entries: of dates, of logarithms; none
        of other powers, in which it has no unit of the table."""
        kind = None if self.schema is None else self.schema.used[column]
        if kind is not None and kind.kind == "date":
            return f"{number(deviation, digits)} days"
        if kind is not None and kind.kind == "number" and kind.scale == "log":
            return f"times or divided by {number(np.exp(deviation), digits)}"
        if kind is not None and kind.kind == "number" and kind.scale not in ("plain", "share"):
            return ""
        return number(deviation, digits)

    def entry(self, column: int, value: float) -> str:
        """A number that the model sees of a column, as it stands in the table."""
        if self.schema is None or not np.isfinite(value):
            return number(value)
        kind = self.schema.used[column]
        if column in self.codes or kind.has_levels:
            return self.level(column, value)
        if kind.kind == "date":
            return from_days(float(value), True).date().isoformat()
        return number(float(from_scale(kind, np.array([value]))[0]))

    @property
    def has_topics(self) -> bool:
        """Whether rows are documents, and columns words."""
        return hasattr(self.model, "topics_")

    @property
    def unit(self) -> str:
        """What a row is called."""
        return "document" if self.has_topics else "row"

    def row_name(self, row: int) -> str:
        """``row 17``, counted from zero, or its own name."""
        assert self.look is not None
        if self.look.names is None:
            return f"{self.unit} {row}"
        return short(self.look.names[row], 40)

    @property
    def kind(self) -> str:
        return type(self.model).__name__

    @cached_property
    def codes(self) -> dict[int, Array]:
        """Columns that hold codes, with the probability of each code in each group (K, C)."""
        return category_shares(self.model)

    @cached_property
    def groups(self) -> Groups | None:
        """What divides rows, if anything does."""
        if self.look is not None:
            return self.look.questions.groups
        return groups_of(self.model)
