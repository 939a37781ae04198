"""Topic models: time to a perplexity, tokens per second, PCP beside LDA, memory of a stream."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from bench.factor_data import real
from bench.jobs import run
from bench.options import Options
from bench.tables import ratio, seconds, table
from bench.topic_data import drawn, halves, unigram, write_parquet
from bench.topic_fits import LIBRARIES

TITLE = "Topic models, 50 topics"
TOPICS, CLUSTERS = 50, 100
# documents that train, that are asked about, words, tokens of a document
SHAPE, QUICK_SHAPE = (4000, 400, 8000, 100), (600, 100, 1500, 60)
# passes that scikit-learn may make, passes that are timed
MOST, STEPS = 100, 20
BATCH, LIMIT = 1024, 500  # documents; MB of a stream
ASKED = {"sooner": 5.0, "pcp": 3.0}


def measure(options: Options) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="mixfold-bench-") as name:
        folder = Path(name)
        files, facts = corpus(options, folder)
        n_topics = 10 if options.quick else TOPICS
        return {
            "facts": facts,
            "topics": n_topics,
            "sooner": [sooner(options, files, n_topics, mode) for mode in options.modes],
            "passes": [passes(options, files, n_topics, mode) for mode in options.modes],
            "stream": stream(options, folder, n_topics),
        }


def corpus(options: Options, folder: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Files of the documents that train and of both halves of the others."""
    n, n_test, n_words, length = QUICK_SHAPE if options.quick else SHAPE
    X, truth = drawn(n + n_test, n_words, 10 if options.quick else TOPICS, length)
    train = X[:n]
    given, asked = halves(X[n:])
    files = store(folder, {"train": train, "given": given, "asked": asked})
    return files, {"shape": [n, n_words], "tokens": float(train.sum()), "truth": truth,
                   "unigram": unigram(train, asked)}  # fmt: skip


def store(folder: Path, matrices: dict[str, Any], prefix: str = "") -> dict[str, str]:
    paths = {name: str(folder / f"{prefix}{name}.npz") for name in matrices}
    for name, X in matrices.items():
        sparse.save_npz(paths[name], X, compressed=False)
    return paths


# ------------------------------------------------ what is measured


def sooner(
    options: Options, files: dict[str, str], n_topics: int, mode: tuple[str, int | None, str]
) -> dict[str, Any]:
    """scikit-learn at its convergence, and mixfold as soon as it is as good."""
    name, threads, clock = mode
    options.say(f"topics: scikit-learn until it has converged, {name}")
    most = 20 if options.quick else MOST
    peer = run("bench.topic_fits:converged", threads=threads, n_topics=n_topics, most=most, **files)
    options.say(f"topics: mixfold until it is as good, {name}")
    own = run("bench.topic_fits:until", threads=threads, n_topics=n_topics,
              target=peer["perplexity"], repeats=3, **files)  # fmt: skip
    return {"mode": name, "clock": clock, "peer": peer, "mixfold": own}


def passes(
    options: Options, files: dict[str, str], n_topics: int, mode: tuple[str, int | None, str]
) -> dict[str, Any]:
    """Seconds of a pass of each library that is there, and of PCP."""
    name, threads, clock = mode
    found = {}
    for library in (*LIBRARIES, "mixfold:PCP"):
        options.say(f"topics: a pass of {library}, {name}")
        slow = library in ("scikit-learn", "gensim")
        found[library] = run(
            "bench.topic_fits:per_pass", threads=threads, library=library, train=files["train"],
            n_topics=n_topics, steps=3 if slow else STEPS, repeats=1 if slow else 3,
        )  # fmt: skip
    return {"mode": name, "clock": clock, "libraries": found}


def stream(options: Options, folder: Path, n_topics: int) -> dict[str, Any]:
    """All newsgroups, or drawn documents, from a Parquet file, batch by batch."""
    label, X = texts(options)
    order = np.random.default_rng(0).permutation(X.shape[0])
    X = X[order]
    n_test = X.shape[0] // 20
    given, asked = halves(X[:n_test])
    files = store(folder, {"given": given, "asked": asked}, "stream-")
    path, train = folder / "documents.parquet", X[n_test:]
    write_parquet(path, train, 4096)
    options.say(f"topics: a stream of {train.shape[0]:,} documents")
    mode, threads, _ = options.modes[-1]
    got = run("bench.topic_fits:stream", threads=threads, path=str(path), n_words=X.shape[1],
              n_topics=n_topics, batch=BATCH, total=train.shape[0], **files)  # fmt: skip
    return {"label": label, "rows": train.shape[0], "words": X.shape[1], "mode": mode,
            "tokens": float(train.sum()), "file": path.stat().st_size / 1e6,
            "unigram": unigram(train, asked), **got}  # fmt: skip


def texts(options: Options) -> tuple[str, Any]:
    content = None if options.quick else real(options, "news20.npz")
    if content is None:
        return "drawn", drawn(1500 if options.quick else 18_845, 2000, 10, 80)[0]
    parts = (content["data"].astype(float), content["indices"], content["indptr"])
    return "news20", sparse.csr_array(parts, shape=tuple(content["shape"]))


# ------------------------------------------------ tables


def report(result: dict[str, Any]) -> str:
    facts = result["facts"]
    n, n_words = facts["shape"]
    first = (
        f"Drawn ({n:,}, {n_words:,}), {facts['tokens']:,.0f} tokens, K = {result['topics']}; "
        "perplexity of unseen documents by completion: frequencies of words "
        f"{facts['unigram']:.0f}; of whole documents, what they were drawn from "
        f"{facts['truth']:.0f}."
    )
    parts = [first, _sooner(result), _passes(result), _stream(result["stream"])]
    return "\n\n".join(parts)


def _sooner(result: dict[str, Any]) -> str:
    head = ["run on", "scikit-learn, s", "passes", "perplexity", "mixfold as good, s", "passes",
            "perplexity", f"sooner ({ASKED['sooner']:g}x asked)"]  # fmt: skip
    lines = []
    for row in result["sooner"]:
        peer, own, clock = row["peer"], row["mixfold"], row["clock"]
        lines.append([
            row["mode"], seconds(peer[clock]), _passes_made(peer["passes"]),
            f"{peer['perplexity']:.0f}",
            seconds(own[clock]), own["passes"], f"{own['perplexity']:.0f}",
            _times(peer, own, clock, result["facts"]["unigram"]),
        ])  # fmt: skip
    return table(head, lines)


def _times(peer: dict[str, Any], own: dict[str, Any], clock: str, unigram: float) -> str:
    """How much sooner; not if the aim is no better than knowing nothing about a document."""
    if peer["perplexity"] >= unigram:
        return "no aim: frequencies of words are better"
    reached = own["perplexity"] <= peer["perplexity"]
    return ratio(peer[clock], own[clock]) if reached else "not reached"


def _passes_made(passes: int) -> str:
    return f"{passes} (the limit)" if passes >= MOST else str(passes)


def _passes(result: dict[str, Any]) -> str:
    head = ["run on", *(f"{name}, tokens/s" for name in LIBRARIES), "LDA, ms a pass",
            f"PCP ({CLUSTERS} clusters), ms", f"times LDA ({ASKED['pcp']:g}x allowed)"]  # fmt: skip
    tokens, lines = result["facts"]["tokens"], []
    for row in result["passes"]:
        clock, found = row["clock"], row["libraries"]
        rates = [_rate(tokens, found[name], clock) for name in LIBRARIES]
        lda, pcp = found["mixfold"][clock], found["mixfold:PCP"][clock]
        lines.append([row["mode"], *rates, f"{1e3 * lda:.0f}", f"{1e3 * pcp:.0f}",
                      ratio(pcp, lda)])  # fmt: skip
    note = (
        "A pass of mixfold, scikit-learn and gensim (batch) is variational, one of tomotopy a "
        "sweep of Gibbs sampling: they do not gain the same."
    )
    return f"{table(head, lines)}\n\n{note}"


def _rate(tokens: float, clocks: dict[str, float] | None, clock: str) -> str:
    if clocks is None:
        return "not installed"
    return f"{tokens / clocks[clock]:,.0f}" if clocks[clock] > 0 else "noise"


def _stream(row: dict[str, Any]) -> str:
    head = ["stream", "run on", "file, MB", "wall s", "CPU s", "tokens per CPU s",
            "above the start, MB", f"under {LIMIT} MB", "whole process, MB", "perplexity",
            "of frequencies"]  # fmt: skip
    return table(head, [[
        f"{row['label']} ({row['rows']:,}, {row['words']:,})", row["mode"], f"{row['file']:.1f}",
        seconds(row["wall"]), seconds(row["cpu"]), f"{row['tokens'] / row['cpu']:,.0f}",
        f"{row['peak']:.0f}", "yes" if row["peak"] < LIMIT else "NO", f"{row['whole']:.0f}",
        f"{row['perplexity']:.0f}", f"{row['unigram']:.0f}",
    ]])  # fmt: skip
