"""Open models and data sources for the commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mixfold.cli.cluster import use_threads
from mixfold.cli.corpus import is_corpus, open_corpus, open_corpus_for
from mixfold.cli.numeric import in_options
from mixfold.cli.outputs import has_target
from mixfold.cli.tables import check_not_input
from mixfold.cli.texts import TextSettings

if TYPE_CHECKING:
    from mixfold.contracts import Source

# Entries of a piece: large enough to keep the cores busy, about 32 MB in double precision.
_PIECE = 2**22
_LEAST_ROWS = 1024


def load_model(path: Path, out: Path | None = None) -> Any:
    """The fitted estimator in a model file, which the output ``out`` must not replace."""
    import mixfold

    if out is not None:
        check_not_input(out, [path])

    model = mixfold.load(path)
    use_threads(model)
    return model


def feature_names(model: Any) -> list[str]:
    """The columns that a model knows; ``x0, x1, ...`` if it was fitted without names."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if names is None else list(names)


def open_columns(
    file: Path,
    columns: list[str] | None,
    weight: str | None = None,
    target: str | None = None,
    texts: TextSettings | None = None,
) -> Source:
    """The rows of a file, in pieces; ``weight`` and ``target`` name columns that are no features.

    The blocks hold the targets, of numbers or text, as their ``y``. Texts become counts of words,
    as ``texts`` says.
    """
    texts = texts or TextSettings()
    if is_corpus(file):
        return open_corpus(file, columns, weight, target, texts)
    texts.refuse(str(file))
    try:
        return _open_table(file, columns, weight, target)
    except ValueError as error:
        taken = [name for name in (weight, target) if name is not None]
        raise in_options(error, file, columns, taken) from error


def _open_table(
    file: Path, columns: list[str] | None, weight: str | None, target: str | None
) -> Source:
    from mixfold.engine.sources import open_source

    if target is None:
        return open_source(file, columns=columns, weight=weight)
    from mixfold.engine.sources.targets import split_target

    if columns is not None and target in columns:
        raise typer.BadParameter(
            f"{target!r} is also listed in --columns; a column is either a feature or the target.",
            param_hint="--target",
        )
    y, features = split_target(file, target, weight)
    chosen = features if columns is None else columns
    return open_source(file, columns=chosen, weight=weight, y=y)


def open_for(
    model: Any, file: Path, columns: list[str] | None, encoding: str | None = None
) -> Source:
    """The rows of a file as ``model`` wants them: its own columns unless others are named.

    ``encoding`` is that of texts.

    Raises
    ------
    ValueError
        If the number of columns is not the model's.
    """
    if is_corpus(file):
        return open_corpus_for(model, file, columns, encoding)
    TextSettings(encoding=encoding).refuse(str(file))
    if columns is None and hasattr(model, "schema_"):
        from mixfold.engine.sources import open_source

        return open_source(model.schema_.encode_table(file))
    fitted = getattr(model, "feature_names_in_", None)
    if columns is None and fitted is not None and file.suffix.lower() != ".npy":
        columns = [str(name) for name in fitted]
    source = open_columns(file, columns)
    if source.n_features != model.n_features_in_:
        raise ValueError(
            f"{str(file)!r} gives {source.n_features} columns; the model was fitted to "
            f"{model.n_features_in_}. Choose as many with --columns."
        )
    return source


def pieces(source: Source) -> Iterator[Source]:
    """The rows of a source a piece at a time, each as a source of its own."""
    from mixfold.engine.sources import open_source

    for block in source.blocks(max_rows=max(_LEAST_ROWS, _PIECE // source.n_features)):
        # A source, not an array: its columns were matched by name when the file was opened.
        yield open_source(block.X, complete=block.complete or None)


def require(model: Any, method: str, wanted_by: str, what: str | None = None) -> None:
    """A usage error unless the model has ``method``, or ``what`` it stands for; it names the
    models that have."""
    try:
        getattr(model, method)
    except AttributeError as error:
        from mixfold.cli.registry import MODELS

        able = [name for name, entry in MODELS.items() if hasattr(entry.load(), method)]
        if method == "predict" and has_target(model):  # of groups, others do that, too
            able = [name for name in able if MODELS[name].target]
        if hasattr(model, "top_words"):  # of documents, which few models are for
            able = [name for name in able if MODELS[name].words]
        raise _lacks(model, what or method, able, wanted_by, error.__cause__) from None


def require_factors(model: Any, wanted_by: str) -> None:
    """A usage error unless the model reduces rows to factors."""
    if not hasattr(model, "transform") or hasattr(model, "cluster_centers_"):
        from mixfold.cli.registry import MODELS

        able = [name for name, entry in MODELS.items() if entry.has_factors()]
        raise _lacks(model, "factors", able, wanted_by)


def _lacks(
    model: Any, what: str, able: list[str], wanted_by: str, why: BaseException | None = None
) -> typer.BadParameter:
    """The error; ``why`` is the model's own account, if its settings are the reason."""
    from mixfold.cli.registry import MODELS

    kind = type(model).__name__
    others = [name for name in able if MODELS[name].estimator != kind]
    reason = "" if why is None else f" ({why})"
    return typer.BadParameter(
        f"a {kind} has no {what}{reason}; fit one of these for that: {', '.join(others)}.",
        param_hint=wanted_by,
    )
