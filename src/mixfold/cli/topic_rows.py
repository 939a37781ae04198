"""Documents by a topic model: how well it explains them, and their topics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mixfold.cli.rows import write_rows

if TYPE_CHECKING:
    from mixfold.contracts import Array, Source


def score_documents(
    model: Any,
    file: Path,
    out: Path | None,
    columns: str | None,
    encoding: str | None,
    quiet: bool,
) -> None:
    """Write the log probability of each document, and print what it is per word."""
    total = tokens = 0.0

    def probability(piece: Source) -> Mapping[str, Any]:
        nonlocal total, tokens
        values = model.score_samples(piece)
        total += float(values.sum())
        tokens += sum(float(block.X.sum()) for block in piece.blocks())
        return {"log_density": values}

    completed: list[str] = []
    then = partial(_complete, model, completed)
    rows = write_rows("score", model, file, out, columns, probability, quiet, encoding, then)
    typer.echo(f"documents {rows}, words {tokens:.10g}")
    per_word = f"{total / tokens:.6g}" if tokens else "none: there are no words"
    typer.echo(f"log-probability per word {per_word}")
    for line in completed:
        typer.echo(line)


def _complete(model: Any, lines: list[str], source: Source) -> None:
    try:
        lines.append(f"perplexity of held-back words {model.perplexity(source):.6g}")
    except ValueError as error:
        lines.append(f"perplexity of held-back words: none, {error}")


def name_topic_columns(shares: Array) -> dict[str, Array]:
    """Shares of topics in documents, by columns that are numbered as the topics are."""
    return {f"topic_{k}": shares[:, k] for k in range(shares.shape[1])}
