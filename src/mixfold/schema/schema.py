"""``Schema``: what the columns of a table are, why, and what models make of them."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mixfold.contracts import Array
from mixfold.schema import coding
from mixfold.schema.column import KINDS, MODELLED, SCALES, Column
from mixfold.schema.judge import Entries, judge, stored_type
from mixfold.schema.numbers import NumberFormat
from mixfold.schema.readers import AS_FOUND, Reading, Table, read_table
from mixfold.schema.scales import log_slope

# rows that are looked at
_ROWS = 20_000
_FORMAT = "mixfold-schema/2"
# formats of earlier versions, and what they had in place of families, as model files of them have
_EARLIER = {"mixfold-schema/1": {"von-mises": "full", "beta": "full"}}
COVARIANCES = ("full", "diag", "tied", "spherical", "tied-diag", "tied-spherical")
# entries of a column by which those that may be its copy are found
_COMPARED = 8
# tables of coded numbers say so
_CODED = b"mixfold.coded"
# which family of components models a kind of column
_FAMILIES = {
    "number": "full", "date": "full", "count": "negative-binomial", "yes/no": "bernoulli",
    "category": "categorical", "ordered": "categorical", "cyclic": "von-mises",
}  # fmt: skip
# in place of those whose parameters have no posterior that can be integrated
_WITH_POSTERIOR = {"negative-binomial": "poisson", "von-mises": "full", "beta": "full"}


class Schema:
    """What the columns of a table are.

    Made by :meth:`infer`; shown by ``print``; changed by :meth:`set`; kept in a small file by
    :meth:`save` and :meth:`load`. Models see the columns that are ``used``, as numbers: categories
    as codes 0, 1, ..., dates as days, positive skewed numbers as logarithms.

    Attributes
    ----------
    columns : tuple of Column
        In the order of the table.
    notes : tuple of str
        What was decided about the table as a whole.
    n_rows : int
        Rows that were looked at.
    reading : Reading
        What was said of how files are written; it holds for later ones, too.
    covariance : str
        How numbers and dates go together within a component: 'full', or a simpler covariance of
        ``GaussianMixture`` such as 'diag'.

    Examples
    --------
    >>> import mixfold
    >>> schema = mixfold.Schema.infer({
    ...     "name": ["Ann", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gus"],
    ...     "age": [31, 45, 28, 52, 39, 61, 33],
    ...     "smoker": ["no", "yes", "no", "no", "yes", "no", "no"],
    ... })
    >>> [(column.name, column.kind, column.used) for column in schema.columns]
    [('name', 'text', False), ('age', 'number', True), ('smoker', 'yes/no', True)]
    >>> schema.encode({"smoker": ["yes", None], "age": [40, 50]})
    array([[40.,  1.],
           [50., nan]])

    Positive numbers that are skewed become logarithms:

    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> incomes = {"income": np.random.default_rng(0).lognormal(3.5, 0.8, 500).round(1)}
    >>> schema = mixfold.Schema.infer(incomes)
    >>> figure, (before, after) = plt.subplots(1, 2, figsize=(8, 3))
    >>> bars = before.hist(incomes["income"], 30), after.hist(schema.encode(incomes)[:, 0], 30)
    >>> names = before.set_xlabel("income, thousands"), after.set_xlabel("what models see")
    """

    def __init__(
        self, columns: Sequence[Column], notes: Sequence[str] = (), n_rows: int = 0
    ) -> None:
        self.columns = tuple(columns)
        self.notes = tuple(notes)
        self.n_rows = n_rows
        self.reading = AS_FOUND
        self.covariance = "full"
        self._entries: dict[str, Entries] = {}
        self._format = _FORMAT

    # ------------------------------------------------ making

    @classmethod
    def infer(
        cls,
        table: Any,
        n_rows: int = _ROWS,
        *,
        sep: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
        missing: Sequence[str] | str = (),
    ) -> Schema:
        """What the columns of a table are, from its first rows.

        Parameters
        ----------
        table : path, table, dict of columns or array
            A file of any kind that ``mixfold`` reads, a pandas, polars or Arrow table.
        n_rows : int
            Rows that are looked at: the first ones of a file, evenly spaced ones of a table.
        sep, decimal, encoding : str, optional
            What parts the entries of a text file, the decimal mark of its numbers ('.' or ','),
            its encoding; each found out if left out.
        missing : str or sequence of str
            What stands for a missing entry in any column, besides the usual words.
        """
        reading = Reading(sep or "", decimal or "", encoding or "")
        words = (missing,) if isinstance(missing, str) else tuple(str(one) for one in missing)
        read = read_table(table, n_rows, reading)
        columns = []
        entries = {}
        for name in read.names:
            found = _entries(name, read.column(name), reading.decimal)
            entries[name] = found
            if words:
                known = [None if str(v).strip() in words else v for v in found.values]
                column = judge(dataclasses.replace(found, values=known))
                column = dataclasses.replace(column, missing=(*column.missing, *words))
            else:
                column = judge(found)
            columns.append(column)
        schema = cls(columns, read.notes, read.n_rows)
        schema.reading = reading
        schema._entries = entries
        schema.columns = tuple(_mark_copies(schema.columns, read))
        return schema

    def read(self, table: Any) -> Table:
        """All columns of a table or file, as the first one was read."""
        return read_table(table, None, self.reading)

    def set(
        self,
        name: str,
        kind: str | None = None,
        *,
        order: Sequence[Any] | None = None,
        used: bool | None = None,
        scale: str | None = None,
        missing: Sequence[str] | str | None = None,
    ) -> Schema:
        """Say what a column is; returns the schema itself.

        Parameters
        ----------
        name : str
        kind : str, optional
            'number', 'count', 'yes/no', 'category', 'ordered', 'cyclic' or 'date'; or one of those
            that are set aside: 'identifier', 'text', 'constant', 'copy', 'empty'.
        order : sequence, optional
            The levels of a category, in their order.
        used : bool, optional
            Whether models see it.
        scale : {'plain', 'log', 'share'}, optional
            Of numbers.
        missing : str or sequence of str, optional
            Entries that stand for a missing one, besides those known.
        """
        position = self._position(name)
        column = self.columns[position]
        if missing is not None:
            words = (missing,) if isinstance(missing, str) else tuple(str(one) for one in missing)
            column = self._judged_without(column, words)
        if kind is not None and kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}")
        if scale is not None:
            if scale not in SCALES:
                raise ValueError(f"scale must be one of {', '.join(SCALES)}; got {scale!r}")
            column = dataclasses.replace(column, scale=scale)
        if kind is not None or order is not None:
            wanted = kind or ("ordered" if column.kind != "yes/no" else column.kind)
            column = self._as_kind(column, wanted, order)
        if used is not None:
            if used and column.kind not in MODELLED:
                raise ValueError(
                    f"column {name!r} is {column.describe()}, which no model takes; say what it "
                    f"is, by schema.set({name!r}, kind='category'), say"
                )
            column = dataclasses.replace(column, used=bool(used))
        self.columns = (*self.columns[:position], column, *self.columns[position + 1 :])
        return self

    def _position(self, name: str) -> int:
        names = [column.name for column in self.columns]
        if name not in names:
            raise ValueError(
                f"the table has no column {name!r}; it has {', '.join(map(repr, names))}"
            )
        return names.index(name)

    def _judged_without(self, column: Column, missing: tuple[str, ...]) -> Column:
        """The column judged anew, entries of these words left out."""
        entries = self._entries.get(column.name)
        if entries is None:
            return dataclasses.replace(column, missing=(*column.missing, *missing))
        values = [None if str(value).strip() in missing else value for value in entries.values]
        found = judge(dataclasses.replace(entries, values=values))
        return dataclasses.replace(found, missing=(*found.missing, *missing))

    def _as_kind(self, column: Column, kind: str, order: Sequence[Any] | None) -> Column:
        reason = "you said so"
        if kind not in MODELLED:
            return dataclasses.replace(column, kind=kind, used=False, reason=reason)
        if kind in ("category", "ordered", "yes/no"):
            levels = tuple(order) if order is not None else self._levels(column)
            if kind == "yes/no" and len(levels) != 2:
                raise ValueError(
                    f"column {column.name!r} has {len(levels)} values; kind='yes/no' needs two, "
                    "kind='category' takes any number"
                )
            lost = set(map(str, self._levels(column, known_only=True))) - set(map(str, levels))
            if lost:
                raise ValueError(
                    f"order of column {column.name!r} leaves out {sorted(lost)[0]!r}; it must name "
                    f"all of its values, or give those that are to be missing by missing=[...]"
                )
            return dataclasses.replace(column, kind=kind, levels=levels, used=True, reason=reason)
        entries = self._entries.get(column.name)
        numbers = column.numbers
        if entries is not None and kind in ("number", "count", "cyclic"):
            found = _read_as_numbers(entries)
            if found is None:
                raise ValueError(
                    f"column {column.name!r} holds entries that are no numbers, such as "
                    f"{next((v for v in entries.values if v is not None), None)!r}; kind={kind!r} "
                    "needs numbers"
                )
            numbers = found
        return dataclasses.replace(
            column, kind=kind, levels=(), used=True, reason=reason, numbers=numbers
        )

    def _levels(self, column: Column, known_only: bool = False) -> tuple[Any, ...]:
        if column.levels:
            return column.levels
        entries = self._entries.get(column.name)
        if entries is None:
            if known_only:
                return ()
            raise ValueError(
                f"give order=[...], the values of column {column.name!r}: the schema has not "
                "kept the table that it was made of"
            )
        values = {v for v in entries.values if v is not None and v == v}
        values -= {v for v in values if coding._stands_for_missing(column, v)}
        return tuple(sorted(values, key=lambda v: (isinstance(v, str), v)))

    # ------------------------------------------------ what is used

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns that models see, in order."""
        return tuple(column for column in self.columns if column.used)

    @property
    def set_aside(self) -> tuple[Column, ...]:
        """The columns that models do not see."""
        return tuple(column for column in self.columns if not column.used)

    @property
    def names(self) -> list[str]:
        """Names of the columns that models see."""
        return [column.name for column in self.used]

    def families(self, posterior: bool = False) -> dict[str, list[str]]:
        """Which family of components suits which columns, as ``Mixture`` takes it.

        ``posterior``: only families whose parameters have a posterior, for inference other than
        'em'.
        """
        found: dict[str, list[str]] = {}
        for column in self.used:
            family = "categorical" if column.has_levels else _FAMILIES[column.kind]
            if column.kind == "yes/no":
                family = "bernoulli"
            if column.kind == "number" and column.scale == "share":
                family = "beta"
            family = _EARLIER.get(self._format, {}).get(family, family)
            if posterior:
                family = _WITH_POSTERIOR.get(family, family)
            family = self.covariance if family == "full" else family
            found.setdefault(family, []).append(column.name)
        return found

    def with_covariance(self, kind: str) -> Schema:
        """The same schema with another covariance of its numbers and dates."""
        if kind not in COVARIANCES:
            raise ValueError(f"covariance must be one of {', '.join(COVARIANCES)}; got {kind!r}")
        found = Schema(self.columns, self.notes, self.n_rows)
        found.reading, found._entries, found.covariance = self.reading, self._entries, kind
        found._format = self._format
        return found

    def family_options(self) -> dict[str, dict[str, Any]]:
        """Settings of these families that the columns say, as ``Mixture`` takes them."""
        if "von-mises" not in self.families():
            return {}
        periods = [
            column.period[1] for column in self.used
            if column.kind == "cyclic" and not column.has_levels and column.period is not None
        ]  # fmt: skip
        return {"von-mises": {"period": periods}}

    # ------------------------------------------------ numbers and entries

    def encode(self, table: Any) -> Array:
        """The used columns of a table as numbers (n, D); missing entries are NaN.

        Columns may stand in another order, and others beside them. Values of a category that the
        schema does not know count as missing, with a warning.
        """
        read = self.read(table)
        lacking = [name for name in self.names if name not in read.names]
        if lacking:
            raise ValueError(
                f"the table has no column {lacking[0]!r}"
                + (f" and lacks {len(lacking) - 1} others" if len(lacking) > 1 else "")
                + f"; it has {_some(read.names)}. Add it, empty where nothing "
                "is known"
            )
        parts = [coding.encode(column, read.column(column.name)) for column in self.used]
        return np.column_stack(parts) if parts else np.empty((read.n_rows, 0))

    def indicators(self, table: Any) -> pa.Table:
        """The used columns as numbers in which distances and sums mean something.

        For estimators that take numbers alone (``PPCA``, ``KMeans``, ``KernelPCA``): a category
        of V levels becomes V - 1 columns of zeros and ones (its first level is that of all zeros),
        an hour or an angle its cosine and sine; grades are 0, 1, 2, ..., yes / no 1 and 0, dates
        days, skewed numbers what :meth:`encode` makes of them. A missing entry is missing in all of
        them. Columns keep their units: standardise them where distances count.
        """
        numbers = self.encode(table)
        found: dict[str, Array] = {}
        for column, values in zip(self.used, numbers.T, strict=True):
            lacks = np.isnan(values)
            if column.kind == "cyclic" and column.period is not None:
                turn = 2 * np.pi * values / column.period[1]
                found[f"{column.name} (cos)"] = np.cos(turn)
                found[f"{column.name} (sin)"] = np.sin(turn)
            elif column.kind == "category":
                for code, level in enumerate(column.levels[1:], 1):
                    found[f"{column.name} = {level}"] = np.where(lacks, np.nan, values == code)
            else:
                found[column.name] = values
        return pa.table(found)

    def encode_values(self, values: Mapping[str, Any]) -> list[float]:
        """Entries of some columns, by name, as numbers; none of them may be missing or unknown."""
        found = []
        for name, value in values.items():
            column = self[name]
            if not column.used:
                raise ValueError(f"column {name!r} is {column.describe()} and is not modelled")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", coding.SchemaWarning)
                number = coding.encode(column, pa.array([value]))[0]
            if not np.isfinite(number):
                known = f"; it has {_some(list(map(str, column.levels)))}" if column.levels else ""
                raise ValueError(f"column {name!r} cannot be {value!r}{known}")
            found.append(float(number))
        return found

    def encode_table(self, table: Any, keep: Sequence[str] = ()) -> pa.Table:
        """The same as an Arrow table with names; columns of ``keep`` stand beside them as they are.

        A table that this has made comes back as it is.
        """
        if isinstance(table, pa.Table) and (table.schema.metadata or {}).get(_CODED):
            return table
        read = self.read(table)
        coded = pa.table(dict(zip(self.names, self.encode(read).T, strict=True)))
        for name in keep:
            if name not in read.names:
                raise ValueError(f"the table has no column {name!r}; it has {_some(read.names)}")
            coded = coded.append_column(name, read.column(name))
        return coded.replace_schema_metadata({_CODED: b"1"})

    def decode_rows(self, numbers: Array, like: Any = None, round: bool = True) -> Any:
        """Numbers (n, D) as a table of the kind of ``like``.

        Columns that are set aside are those of ``like``, which has as many rows, and so are the
        entries that it knows: back from a number they need not be the same to the last bit.
        """
        found = self.decode(numbers, round)
        beside = None if like is None else self.read(like)
        if beside is not None:
            columns = {name: beside.column(name) for name in beside.names}
            for column in self.used:
                columns[column.name] = coding.fill(
                    column, columns[column.name], found.column(column.name)
                )
            found = pa.table(columns)
        package = type(like).__module__.partition(".")[0]
        if package == "polars":
            import polars

            return polars.from_arrow(found)
        if package == "pandas":
            return _as_pandas(found, like)
        return np.column_stack(found.columns) if isinstance(like, np.ndarray) else found

    def decode(self, numbers: Array, round: bool = True) -> pa.Table:
        """Numbers (n, D), as of :meth:`encode`, as a table of entries as they came in.

        ``round``: whole numbers stay whole, shares between 0 and 1.
        """
        numbers = np.atleast_2d(np.asarray(numbers, dtype=float))
        if numbers.shape[1] != len(self.used):
            raise ValueError(
                f"numbers must have {len(self.used)} columns, one for each that is used; got "
                f"{numbers.shape[1]}"
            )
        return pa.table(
            {c.name: coding.decode(c, numbers[:, j], round) for j, c in enumerate(self.used)}
        )

    def log_jacobian(self, numbers: Array) -> Array:
        """ln |d numbers / d entries| (n,) of rows as of :meth:`encode`.

        It is added to a log density of the numbers for that of the entries; a missing entry adds
        nothing."""
        total = np.zeros(len(numbers))
        for j, column in enumerate(self.used):
            total += np.nan_to_num(
                np.where(np.isnan(numbers[:, j]), 0.0, log_slope(column, numbers[:, j]))
            )
        return total

    # ------------------------------------------------ showing and keeping

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, name: str) -> Column:
        return self.columns[self._position(name)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return self.columns == other.columns and self.covariance == other.covariance

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def __repr__(self) -> str:
        how = "" if self.covariance == "full" else f", {self.covariance} covariances"
        return f"<Schema of {len(self.columns)} columns, {len(self.used)} used{how}>"

    def __format__(self, spec: str) -> str:
        """A few words, where it stands in a line among other settings; ``str`` is all of it."""
        return f"{self.covariance} covariances"

    def __str__(self) -> str:
        rows = [(c.name, c.describe() + ("" if c.used else ", set aside"), c.reason) for c in self]
        widths = [max([len(row[i]) for row in rows] or [0]) for i in range(2)]
        widths = [min(width, 32) for width in widths]
        lines = []
        for row in rows:
            shown = [
                cell if len(cell) <= w else cell[: w - 1] + "…"
                for cell, w in zip(row, widths, strict=False)
            ]
            lines.append(
                "  ".join(cell.ljust(w) for cell, w in zip(shown, widths, strict=True))
                + "  "
                + row[2]
            )
        for column in self:
            lines += [f"{column.name}: {remark}" for remark in column.remarks]
        return "\n".join([*self.notes, *lines])

    def to_dict(self) -> dict[str, Any]:
        """As it is kept in files: words, numbers, lists and dicts."""
        columns = [
            {
                key: _plain_value(value)
                for key, value in dataclasses.asdict(column).items()
                if key in ("name", "kind", "used") or value not in _DEFAULTS[key]
            }
            for column in self.columns
        ]
        return {
            "format": self._format,
            "n_rows": self.n_rows,
            "notes": list(self.notes),
            **({} if self.reading == AS_FOUND else {"reading": dataclasses.asdict(self.reading)}),
            **({} if self.covariance == "full" else {"covariance": self.covariance}),
            "columns": columns,
        }

    @classmethod
    def from_dict(cls, found: Any) -> Schema:
        """The inverse of :meth:`to_dict`."""
        formats = (_FORMAT, *_EARLIER)
        if not isinstance(found, dict) or found.get("format") not in formats:
            raise ValueError(f'a schema begins with "format": {_FORMAT!r}; this has none of it')
        try:
            columns = [_column_of(dict(one)) for one in found["columns"]]
            reading = Reading(**found.get("reading", {}))
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"the columns of the schema cannot be read: {error}") from error
        notes, n_rows = tuple(map(str, found.get("notes", ()))), int(found.get("n_rows", 0))
        schema = cls(columns, notes, n_rows)
        schema.reading, schema._format = reading, found["format"]
        return schema.with_covariance(str(found.get("covariance", "full")))

    def to_text(self) -> str:
        """As it stands in a file."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_text(cls, text: str) -> Schema:
        """The inverse of :meth:`to_text`."""
        return cls.from_dict(json.loads(text))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a small file that can be read and edited (JSON)."""
        Path(path).write_text(self.to_text(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Read what :meth:`save` wrote."""
        try:
            return cls.from_text(Path(path).read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is no schema: {error}") from error


def _as_pandas(found: pa.Table, like: Any) -> Any:
    """A data frame with the index and, where they can hold the values, the types of another."""
    frame = found.to_pandas().set_axis(like.index, axis=0)
    if not like.columns.is_unique:
        return frame
    for name, kind in like.dtypes.items():
        own = str(name)
        if own not in frame or (str(kind) == "object"):
            continue
        if frame[own].dtype != kind or hasattr(kind, "categories"):
            with contextlib.suppress(ValueError, TypeError):
                frame[own] = frame[own].astype(object).astype(kind)
    return frame


def _some(names: list[str]) -> str:
    return ", ".join(map(repr, names[:8])) + (" and others" if len(names) > 8 else "")


_DEFAULTS: dict[str, tuple[Any, ...]] = {
    f.name: (
        (f.default,) if f.default is not dataclasses.MISSING
        else (f.default_factory(),) if f.default_factory is not dataclasses.MISSING
        else ()
    )
    for f in dataclasses.fields(Column)
}  # fmt: skip


def _plain_value(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain_value(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain_value(one) for key, one in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _column_of(found: dict[str, Any]) -> Column:
    unknown = set(found) - set(_DEFAULTS)
    if unknown:
        raise ValueError(f"unknown entry {sorted(unknown)[0]!r}")
    for name in ("levels", "missing", "remarks"):
        if name in found:
            found[name] = tuple(found[name])
    if found.get("period") is not None:
        found["period"] = tuple(found["period"])
    if found.get("numbers") is not None:
        found["numbers"] = NumberFormat(**found["numbers"])
    found.setdefault("reason", "")
    column = Column(**found)
    if column.kind not in KINDS or column.scale not in SCALES:
        raise ValueError(
            f"column {column.name!r}: unknown kind {column.kind!r} or scale {column.scale!r}"
        )
    if column.used and column.kind not in MODELLED:
        raise ValueError(f"column {column.name!r} is used, and kind {column.kind!r} is for none")
    return column


# ------------------------------------------------ entries of a sample


def _entries(name: str, column: Any, decimal: str = "") -> Entries:
    kind = column.type
    if pa.types.is_dictionary(kind):
        chunk = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        values, levels = chunk.to_pylist(), tuple(chunk.dictionary.to_pylist())
        seen = {value for value in values if value is not None}
        return Entries(
            name,
            values,
            stored_type(levels),
            tuple(v for v in levels if v in seen),
            bool(kind.ordered),
        )
    values = column.to_pylist()
    stored = stored_type(values) if any(v is not None for v in values) else "text"
    return Entries(name, values, stored, decimal=decimal)


def _read_as_numbers(entries: Entries) -> NumberFormat | None:
    from mixfold.schema.numbers import find_format

    texts = [value for value in entries.values if isinstance(value, str) and value.strip()]
    if not texts:
        return NumberFormat()
    found = find_format(set(texts))
    return None if found is None else found.format


def _mark_copies(columns: Sequence[Column], read: Table) -> Iterator[Column]:
    """Columns that say in other words what an earlier one says are set aside."""
    earlier: dict[bytes, list[tuple[str, Array]]] = {}
    for column in columns:
        if not column.used:
            yield column
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", coding.SchemaWarning)
            values = coding.encode(column, read.column(column.name))
        alike = earlier.setdefault(_pattern(values), [])
        same = next((name for name, other in alike if _say_the_same(values, other)), None)
        if same is None:
            alike.append((column.name, values))
            yield column
        else:
            reason = f"its values go with those of {same!r} one by one"
            yield dataclasses.replace(column, kind="copy", used=False, copy_of=same, reason=reason)


def _pattern(values: Array) -> bytes:
    """Which rows have the same value: alike for columns whose values go with each other."""
    _, first, code = np.unique(values, return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    digest = hashlib.sha256(order[code].tobytes())
    digest.update(np.isnan(values).tobytes())
    if 2 * len(first) > len(values):  # nearly all differ, in most columns: see how far apart
        seen = values[~np.isnan(values)]
        z = (seen[:_COMPARED] - seen.mean()) / (seen.std() or 1.0)
        digest.update((np.round(np.abs(z), 3) + 0.0).tobytes())
    return digest.digest()


def _say_the_same(one: Array, other: Array) -> bool:
    """Whether columns of one pattern are copies.

    Where hardly a value comes twice a pattern is no evidence: there one has to be a multiple of the
    other, but for a constant.
    """
    if len(one) < 5:
        return False
    if 2 * len(np.unique(one)) <= len(one):
        return True
    seen = ~np.isnan(one)
    return bool(abs(np.corrcoef(one[seen], other[seen])[0, 1]) > 1 - 1e-9)
