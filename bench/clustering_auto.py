"""How often ``n_clusters="auto"`` is right, on shapes by which its rule was not chosen."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from bench.clustering_fits import Kept, hdbscan
from bench.clustering_judged import JUDGED, draw_judged
from bench.clustering_scores import scores
from bench.jobs import run
from bench.options import Options
from bench.tables import table

TITLE = "Number of clusters: how often it is right"
# draws 0 to 2 were looked at before the rule was settled
DRAWS = range(3, 11)
# what notes_ say where the rows do not decide
DOUBT = "the data do not tell"

Row = dict[str, Any]


def measure(options: Options) -> dict[str, Any]:
    seeds = list(DRAWS[:1] if options.quick else DRAWS)
    rows = []
    for name in JUDGED:
        options.say(f"judged: {name}")
        rows += run(
            "bench.clustering_auto:judge", threads=1, names=[name], seeds=seeds,
            quick=options.quick, kept=None if options.keep is None else str(options.keep),
        )  # fmt: skip
    return {"fits": rows}


def judge(
    threads: int | None,
    names: Sequence[str],
    seeds: Sequence[int],
    quick: bool = False,
    kept: Path | str | None = None,
) -> list[Row]:
    """A line for each table and draw."""
    store = Kept(kept)
    return [
        {
            "set": name,
            "seed": seed,
            **store.ask(partial(_fit, name, seed, quick), "auto", name, seed),
        }
        for name in names
        for seed in seeds
    ]


def _fit(name: str, seed: int, quick: bool) -> Row:
    from mixfold import MixtureClustering

    drawn = draw_judged(name, seed, quick)
    X, (labels,) = drawn.X, drawn.labelings
    true = len(np.unique(labels))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clusters = MixtureClustering(random_state=seed, n_jobs=1).fit(X)
        components = clusters.mixture_.predict(X)
        known = clusters.mixture_
        given = known.combine(true, X=X).predict(X) if known.n_components >= true else components
        peer = hdbscan(15)(X, 0, seed)
    ari = {
        "auto": clusters.labels_, "components": components, "given": given, "hdbscan": peer.labels,
    }  # fmt: skip
    return {
        "true": true, "found": int(clusters.n_clusters_), "components": int(known.n_components),
        "hdbscan": max(1, len(set(peer.labels.tolist()) - {-1})),  # all noise: one
        "told": any(DOUBT in words for words in clusters.notes_),
        "ari": {key: scores(labels, found)["ari"] for key, found in ari.items()},
    }  # fmt: skip


# ------------------------------------------------------------------ report


def report(result: dict[str, Any]) -> str:
    fits = result["fits"]
    names = list(dict.fromkeys(fit["set"] for fit in fits))
    kinds = list(dict.fromkeys(name.split("/")[0] for name in names))
    head = ["shape", "clusters", "draws", "right", "fewer", "more", "wrong and not told",
            "components by BIC", "HDBSCAN 15 right", "ARI: auto", "K given", "components",
            "HDBSCAN 15"]  # fmt: skip
    lines = [_line(name, [fit for fit in fits if fit["set"] == name]) for name in names]
    lines += [
        _line(f"all of {kind}", [fit for fit in fits if fit["set"].split("/")[0] == kind])
        for kind in kinds
    ]
    return "\n\n".join(
        [
            "Clusters found by `MixtureClustering()`; HDBSCAN with `min_cluster_size=15`. 'Told': "
            "`notes_` say that the data do not decide.",
            table(head, lines),
        ]
    )


def _line(name: str, fits: list[Row]) -> list[object]:
    wrong = [fit for fit in fits if fit["found"] != fit["true"]]
    true = sorted({fit["true"] for fit in fits})
    return [
        name, ", ".join(map(str, true)), len(fits), len(fits) - len(wrong),
        sum(fit["found"] < fit["true"] for fit in fits),
        sum(fit["found"] > fit["true"] for fit in fits),
        sum(not fit["told"] for fit in wrong),
        f"{mean(fit['components'] for fit in fits):.1f}",
        sum(fit["hdbscan"] == fit["true"] for fit in fits),
        *(f"{mean(fit['ari'][key] for fit in fits):.2f}"
          for key in ("auto", "given", "components", "hdbscan")),
    ]  # fmt: skip
