"""Clusters against reference labelings, with the number of clusters given and unknown."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

from bench.clustering_data import choose, published
from bench.clustering_fits import SEEDS, given_methods, unknown_methods
from bench.jobs import run
from bench.options import Options
from bench.tables import seconds, table

TITLE = "Clusters against reference labelings"
MOST_ROWS = 3000  # of a set whose number of clusters is unknown
LOSS = 0.05
TOGETHER = 5  # sets in one process
PUBLISHED = "Genie, published"
# ours, and what a set counts as lost against; of the two columns of Genie the published one, if any
GIVEN_OURS = ("mixfold", "combined")
GIVEN_THEIRS = ("scikit-learn", "scikit-learn, 10 starts", PUBLISHED, "Genie")
UNKNOWN_OURS = ("MixtureSearch", "MixtureClustering")
UNKNOWN_THEIRS = ("scikit-learn, BIC", "HDBSCAN 5", "HDBSCAN 15")

Row = dict[str, Any]


def measure(options: Options) -> dict[str, Any]:
    seeds = SEEDS[:1] if options.quick else SEEDS
    given = run_stage("partitions_given", options, seeds)
    few = [row["set"] for row in given if row["n"] <= MOST_ROWS]
    folder, _ = choose(options.data, options.quick)
    genie = {
        name: {"ari": scores["Genie"]}
        for name, scores in published(folder).items()
        if "Genie" in scores
    }
    for row in given:
        if row["set"] in genie:
            row["methods"][PUBLISHED] = [genie[row["set"]]]
    methods = {**given_methods(), **unknown_methods()}
    return {
        "source": "drawn tables" if folder is None else "files",
        "given": given,
        "unknown": run_stage("partitions_unknown", options, seeds, few),
        "missing": {name: m.missing for name, m in methods.items() if m.missing is not None},
    }


def run_stage(
    which: str, options: Options, seeds: Sequence[int], names: Sequence[str] | None = None
) -> list[Row]:
    """A stage on every set (or those named), a few in each process, with one thread."""
    folder, all_names = choose(options.data, options.quick)
    asked = list(all_names if names is None else names)
    rows = []
    for first in range(0, len(asked), TOGETHER):
        some = asked[first : first + TOGETHER]
        options.say(f"{which}: {', '.join(some)} ({first} of {len(asked)} done)")
        rows += run(
            "bench.clustering_fits:stage", threads=1, which=which, names=some, quick=options.quick,
            folder=None if folder is None else str(folder), seeds=list(seeds),
            kept=None if options.keep is None else str(options.keep),
        )  # fmt: skip
    return rows


# ------------------------------------------------------------------ report


def report(result: dict[str, Any]) -> str:
    parts = [f"Sets: {result['source']}."]
    parts += [f"Left out: {name} ({why})." for name, why in result["missing"].items()]
    parts += [
        "### Number of clusters given",
        *report_stage(result["given"], GIVEN_OURS, GIVEN_THEIRS),
        f"### Number of clusters unknown (sets of at most {MOST_ROWS:,} rows)",
        *report_stage(result["unknown"], UNKNOWN_OURS, UNKNOWN_THEIRS, found=True),
    ]
    return "\n\n".join(parts)


def report_stage(
    rows: list[Row], ours: Sequence[str], theirs: Sequence[str], found: bool = False
) -> list[str]:
    """Adjusted Rand index set by set with its means; all measures method by method; losses."""
    names = list(dict.fromkeys(name for row in rows for name in row["methods"]))
    head = ["set", "rows", "columns", "K", *names]
    lines: list[list[object]] = [
        [row["set"], row["n"], row["d"], ", ".join(map(str, row["k"])),
         *(_cell(row, name, found) for name in names)]
        for row in rows
    ]  # fmt: skip
    for battery, own in batteries(rows).items():
        means = (_number(average(own, name, "ari"), 3) for name in names)
        lines.append([f"mean of {battery}", len(own), "", "", *means])
    summary = [
        [name, *(_number(average(rows, name, key), 3) for key in ("ari", "nca")), _cpu(rows, name)]
        for name in names
    ]
    return [
        f"Adjusted Rand index{', number of clusters found in brackets' if found else ''}:",
        table(head, lines),
        table(["", "adjusted Rand index", "normalised accuracy", "CPU s, all sets"], summary),
        *losses(rows, ours, theirs),
        *errors(rows),
    ]


def batteries(rows: list[Row]) -> dict[str, list[Row]]:
    """Rows by battery, and all of them."""
    names = dict.fromkeys(row["set"].split("/")[0] for row in rows)
    parts = {name: [row for row in rows if row["set"].split("/")[0] == name] for name in names}
    return {**parts, "all": rows}


def of_set(row: Row, name: str, key: str) -> float | None:
    """Mean over the seeds, or None where there is no such figure."""
    values = [fit[key] for fit in row["methods"].get(name, []) if fit.get(key) is not None]
    return mean(values) if values else None


def average(rows: list[Row], name: str, key: str) -> float | None:
    """Mean over the sets that have the figure."""
    values = [value for row in rows if (value := of_set(row, name, key)) is not None]
    return mean(values) if values else None


def losses(rows: list[Row], ours: Sequence[str], theirs: Sequence[str]) -> list[str]:
    """Every set on which one of ours is below one of theirs by more than LOSS."""
    texts = []
    for own in ours:
        lines = [line for row in rows if (line := _loss(row, own, theirs))]
        if average(rows, own, "ari") is not None:
            head = f"{own} is lower by more than {LOSS} on {len(lines)} of {len(rows)} sets"
            texts.append("\n".join([f"{head}{':' if lines else '.'}", *lines]))
    return texts


def _loss(row: Row, own: str, theirs: Sequence[str]) -> str | None:
    ours = of_set(row, own, "ari")
    better = {
        name: score
        for name in theirs
        if ours is not None
        and (score := of_set(row, name, "ari")) is not None
        and score > ours + LOSS
        and not (name == "Genie" and PUBLISHED in row["methods"])
    }
    than = ", ".join(f"{name} {score:.2f}" for name, score in better.items())
    return f"- {row['set']} {ours:.2f}: {than}" if better else None


def errors(rows: list[Row]) -> list[str]:
    """Fits that failed, which count as score 0."""
    told = [
        f"- {row['set']}, {name}: {fit['error']}"
        for row in rows
        for name, fits in row["methods"].items()
        for fit in fits
        if "error" in fit
    ]
    return ["\n".join([f"{len(told)} fits failed and count as 0:", *told])] if told else []


def _cell(row: Row, name: str, found: bool) -> str:
    text = _number(of_set(row, name, "ari"), 2)
    clusters = [str(k) for fit in row["methods"].get(name, []) for k in fit.get("clusters", [])]
    return f"{text} ({', '.join(dict.fromkeys(clusters))})" if found and clusters else text


def _cpu(rows: list[Row], name: str) -> str:
    """Seconds of one seed on all sets."""
    values = [of_set(row, name, "cpu") for row in rows]
    there = [value for value in values if value is not None]
    return seconds(sum(there)) if there else "-"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
