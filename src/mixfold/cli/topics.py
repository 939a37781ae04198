"""``topics``: the words of the topics of a model."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from mixfold.cli.data import load_model, require
from mixfold.cli.options import ModelArgument
from mixfold.cli.terminal import open_console

_CLUSTERS_SHOWN = 30
_TOPICS_SHOWN = 30
_LEAST_SHARE = 0.1  # of a topic that is named beside a cluster
_SUMMARY_WORDS, _CLUSTER_WORDS = 8, 3


def topics(
    model_file: ModelArgument,
    words: Annotated[
        int, typer.Option("--words", "-n", min=1, help="How many words of each topic.")
    ] = 10,
    clusters: Annotated[
        int, typer.Option("--clusters", min=0, help="Of pcp: how many clusters, largest first.")
    ] = _CLUSTERS_SHOWN,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="For programs: everything as JSON, with probabilities."),
    ] = False,
) -> None:
    """Show the topics of plsi, lda or pcp by their most probable words, the largest topic first.

    The share of a topic is that of all words in the documents of the fit.
    Of pcp, also the clusters of documents: their shares, and the topics that they write about.

    Example: [bold]mixfold topics topics.mixfold --words 15[/bold]
    """
    model = load_model(model_file)
    require(model, "top_words", "topics", what="topics")
    if as_json:
        typer.echo(json.dumps(_content(model, words), indent=2))
        return
    console = open_console()
    console.print(topics_table(model, words, shown=None))
    if is_clustered(model) and clusters:
        console.print(clusters_table(model, clusters))


def is_topic_model(model: Any) -> bool:
    """Whether a fitted model is made of topics."""
    return hasattr(model, "top_words")


def is_clustered(model: Any) -> bool:
    """Whether a topic model has clusters of documents, too."""
    return hasattr(model, "cluster_topics_")


def topic_parts(model: Any) -> Any:
    """Topics and clusters, as the other models show their components."""
    from rich.console import Group

    tables = [topics_table(model, _SUMMARY_WORDS, _TOPICS_SHOWN)]
    if is_clustered(model):
        tables.append(clusters_table(model, _CLUSTERS_SHOWN))
    return Group(*tables)


def topics_table(model: Any, n_words: int, shown: int | None) -> Any:
    """A row for each topic: number, share and words."""
    from rich.table import Table
    from rich.text import Text

    shares, order = _order_topics(model)
    table = Table("topic", title_justify="left")
    if shares is not None:
        table.add_column("share", justify="right")
    table.add_column("words")
    names = _words(model, n_words)
    for k in order[:shown]:
        share = [] if shares is None else [_percent(shares[k])]
        table.add_row(str(k), *share, Text(" ".join(names[k])))
    hidden = 0 if shown is None else max(len(order) - shown, 0)
    table.caption = f"{hidden} more topics (mixfold topics shows all)" if hidden else None
    return table


def clusters_table(model: Any, shown: int) -> Any:
    """A row for each cluster: number, share, and the topics that it is made of."""
    from rich.table import Table
    from rich.text import Text

    table = Table("cluster", title_justify="left")
    table.add_column("share", justify="right")
    table.add_column("topics")
    names = _words(model, _CLUSTER_WORDS)
    for m, share in enumerate(model.weights_[:shown]):
        table.add_row(str(m), _percent(share), Text(_mixture(model.cluster_topics_[m], names)))
    hidden = max(len(model.weights_) - shown, 0)
    table.caption = f"{hidden} more clusters (mixfold topics --clusters)" if hidden else None
    return table


def _mixture(shares: Any, names: list[list[str]]) -> str:
    """The topics that make up a cluster, largest first: numbers, shares, a few words."""
    order = sorted(range(len(shares)), key=lambda k: -shares[k])
    named = [k for k in order if shares[k] >= _LEAST_SHARE] or order[:1]
    return "\n".join(f"{_percent(shares[k])} topic {k} ({' '.join(names[k])})" for k in named)


def _words(model: Any, n_words: int) -> list[list[str]]:
    """The first words of each topic; columns without names by their numbers."""
    named = hasattr(model, "feature_names_in_")
    return [
        [str(word) if named else f"x{word}" for word in topic] for topic in model.top_words(n_words)
    ]


def _order_topics(model: Any) -> tuple[Any, list[int]]:
    """Shares of the topics, if they are known, and the topics, largest first."""
    from mixfold.estimators.topics.topic_model import topic_shares

    shares = topic_shares(model)
    order = list(range(len(model.topics_)))
    return shares, order if shares is None else sorted(order, key=lambda k: -shares[k])


def _percent(share: float) -> str:
    """A share to a tenth; 0.0% would look like none at all."""
    return "<0.1%" if share < 0.0005 else f"{share:.1%}"


def _content(model: Any, n_words: int) -> dict[str, Any]:
    shares, order = _order_topics(model)
    names = _words(model, n_words)
    found: dict[str, Any] = {"topics": []}
    for k in order:
        chances = sorted(model.topics_[k], reverse=True)[:n_words]
        entry: dict[str, Any] = {"topic": k}
        if shares is not None:
            entry["share"] = float(shares[k])
        entry["words"] = {w: float(p) for w, p in zip(names[k], chances, strict=True)}
        found["topics"].append(entry)
    if is_clustered(model):
        found["clusters"] = [
            {"cluster": m, "share": float(share), "topics": model.cluster_topics_[m].tolist()}
            for m, share in enumerate(model.weights_)
        ]
    return found
