"""Scatter plots in groups: colours and legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixfold.contracts import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

_UNKNOWN = "0.75"  # colour of rows without a label
_LEGEND = 20  # names in the legend at most
_COLUMN = 8  # of these in one column


@dataclass(frozen=True, slots=True)
class Groups:
    """Which rows share a colour: codes of the rows into names; -1 has none."""

    codes: Array
    names: list[str]

    def at(self, rows: Array) -> Groups:
        """The groups of some of the rows."""
        return Groups(self.codes[rows], self.names)

    def among(self, names: list[str]) -> Groups:
        """The same groups, numbered by other names; those not among them come last."""
        names = names + [name for name in self.names if name not in names]
        numbers = np.array([*map(names.index, self.names), -1])  # code -1 is the last
        return Groups(numbers[self.codes], names)

    def colors(self, given: Sequence[Any] | None) -> list[Any]:
        """A colour for each group."""
        from matplotlib import colormaps

        n = len(self.names)
        if given is not None:
            if len(given) < n:
                raise ValueError(
                    f"colors must be one for each of the {n} groups; got {len(given)}."
                )
            return list(given[:n])
        if n <= 10:
            return [f"C{k}" for k in range(n)]
        if n <= 20:  # the light ones last: few groups of many may have rows
            return [*(f"C{k}" for k in range(10)), *colormaps["tab20"](range(1, 2 * n - 20, 2))]
        return list(colormaps["turbo"].resampled(n)(np.arange(n)))


def group_by_label(labels: Any, n_rows: int, minus_one: bool = False) -> Groups:
    """Rows by their labels, of which None and NaN are none, nor -1 unless ``minus_one`` is one."""
    values = np.asarray(labels)
    if values.shape != (n_rows,):
        raise ValueError(
            f"labels must be one for each of the {n_rows} rows; got an array of shape "
            f"{values.shape}."
        )
    found = (_is_unknown(value, minus_one) for value in values.tolist())
    unknown = np.fromiter(found, dtype=bool, count=n_rows)
    if values.dtype == object:  # may hold what cannot be sorted together
        values = np.where(unknown, "", values).astype(str)
    codes = np.full(n_rows, -1)
    names, codes[~unknown] = np.unique(values[~unknown], return_inverse=True)
    return Groups(codes, names_of(names))


def names_of(values: Array) -> list[str]:
    """Labels as text; whole numbers without a decimal point, which NaN gave to others of them."""
    whole = values.dtype.kind == "f" and bool((values == np.round(values)).all())
    return [f"{value:.0f}" if whole else str(value) for value in values]


def _is_unknown(label: Any, minus_one: bool) -> bool:
    # pandas' NA and NaT are told by name: comparing NA has no truth value.
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return bool(label != label or (label == -1 and not minus_one))


def scatter(
    ax: Axes, plane: Array, groups: Groups, shades: list[Any], most: int, seed: int
) -> PathCollection:
    """All points at once and in random order: no group hides the others."""
    from matplotlib.colors import to_rgba_array

    if most < 1:
        raise ValueError(f"max_points must be at least 1; got {most}.")
    shown = np.random.default_rng(seed).permutation(len(plane))[:most]
    palette = to_rgba_array([*shades, _UNKNOWN])  # code -1 is the last
    if len(shown) < len(plane):
        note = f"{len(shown):,} of {len(plane):,} rows drawn"
        ax.set_title(note, fontsize=8, color="0.4", loc="right")
    return ax.scatter(
        plane[shown, 0],
        plane[shown, 1],
        s=float(np.clip(12_000 / max(1, len(shown)), 3, 14)),
        c=palette[groups.codes[shown]],
        alpha=0.7,
        linewidths=0,
        rasterized=len(shown) > 2000,  # a drawing of so many circles would be huge
    )


def legend(
    ax: Axes, groups: Groups, shades: list[Any], more: Sequence[Any], n_always: int = 0
) -> None:
    """Names of the largest groups that have rows, of the first ``n_always`` anyway, and more."""
    from matplotlib.lines import Line2D

    counts = np.bincount(groups.codes + 1, minlength=len(groups.names) + 1)
    largest = np.argsort(-counts[1:], kind="stable")
    present = [int(k) for k in largest if counts[k + 1] or k < n_always]
    entries = [(groups.names[k], shades[k]) for k in sorted(present[:_LEGEND])]
    if counts[0]:
        entries.append(("unlabelled", _UNKNOWN))
    if len(present) > _LEGEND:
        entries.append((f"and {len(present) - _LEGEND} more", "none"))
    handles = [Line2D([], [], marker="o", ls="", c=c, label=name) for name, c in entries if name]
    handles += more
    if handles:
        ax.legend(
            handles=handles,
            edgecolor="none",
            framealpha=0.7,
            fontsize=8 if len(handles) <= _COLUMN else 7,
            markerscale=0.7,
            handletextpad=0.4,
            columnspacing=1.0,
            ncols=-(-len(handles) // _COLUMN),  # a long one would hide half of the points
        )


def label_axes(ax: Axes, factors: tuple[int, int]) -> None:
    """Name the axes by their factors, counted from 1."""
    ax.set_xlabel(f"factor {factors[0] + 1}")
    ax.set_ylabel(f"factor {factors[1] + 1}")
