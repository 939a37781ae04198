"""Documents as rows of a source: sparse counts in a file of numpy, or texts."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mixfold.catalogue import Entry
from mixfold.cli.registry import MODELS
from mixfold.cli.texts import TextSettings, count_known, count_words, is_text, open_texts

if TYPE_CHECKING:
    from mixfold.contracts import Array, Source

_PARTS = ("data", "indices", "indptr", "shape")


def is_corpus(file: Path) -> bool:
    """Whether a file or folder holds documents, not a table."""
    return file.suffix.lower() == ".npz" or is_text(file)


def check_words(file: Path, entries: Mapping[str, Entry]) -> None:
    """A usage error if texts are to be fitted by a model that is none of counts of words."""
    if not is_text(file):
        return
    for name, entry in entries.items():
        if not entry.words:
            able = ", ".join(other for other, one in MODELS.items() if one.words)
            raise typer.BadParameter(
                f"{str(file)!r} holds texts (a table would end in .csv or .parquet), and {name} is "
                f"no model of counts of words; choose one of: {able}.",
                param_hint="--model",
            )


def open_corpus(
    file: Path, columns: list[str] | None, weight: str | None, target: str | None,
    texts: TextSettings,
) -> Source:  # fmt: skip
    """All documents of a file, with the words that they are made of."""
    _refuse_names(file, columns, target)
    if not is_text(file):
        texts.refuse(str(file))
        X, words, weights = read_counts(file, weight)
        return _source(X, words, weights)
    if weight is not None:
        raise typer.BadParameter(
            "texts have no columns; save counts with their weights as arrays of an .npz file.",
            param_hint="--weights",
        )
    documents = open_texts(file, texts.encoding)
    X, vocabulary = count_words(documents, texts)
    return _source(X, vocabulary, None, documents.names)


def open_corpus_for(
    model: Any, file: Path, columns: list[str] | None, encoding: str | None
) -> Source:
    """The documents of a file as counts of the words that ``model`` knows."""
    _refuse_names(file, columns, None)
    known = getattr(model, "feature_names_in_", None)
    known = None if known is None else [str(name) for name in known]
    if not is_text(file):
        TextSettings(encoding=encoding).refuse(str(file))
        X, words, _ = read_counts(file, None)
        return _source(_match_columns(file, X, words, known, model.n_features_in_), None)
    if known is None:
        raise ValueError(
            f"The model does not know its words, so that those of {str(file)!r} cannot be counted. "
            "Fit it to texts, or to an .npz file with an array 'vocab'."
        )
    documents = open_texts(file, encoding)
    X = count_known(documents, known)
    _tell_strangers(file, X)
    return _source(X, None, None, documents.names)


def document_names(source: Source) -> list[str] | None:
    """Names of the files that the documents are, if each is one."""
    names: list[str] | None = getattr(source, "documents", None)
    return names


def read_counts(file: Path, weight: str | None) -> tuple[Any, tuple[str, ...] | None, Array | None]:
    """Counts in a file of scipy, or with their parts as arrays; words and weights if there."""
    import numpy as np
    from scipy import sparse

    if not zipfile.is_zipfile(file):
        raise ValueError(f"{str(file)!r} is damaged, or no .npz file: write it again.")
    try:
        with np.load(file, allow_pickle=False) as arrays:
            found = set(arrays.files)
            if not set(_PARTS) <= found and "format" not in found:
                raise ValueError(
                    f"it lacks the arrays {', '.join(_PARTS)} of a sparse matrix (it has: "
                    f"{', '.join(sorted(found)) or 'none'}); write it with scipy.sparse.save_npz"
                )
            X = sparse.load_npz(file) if "format" in found else _from_parts(arrays)
            words = _words(arrays["vocab"], X.shape[1]) if "vocab" in found else None
            weights = None if weight is None else _weights(arrays, weight)
    except (ValueError, KeyError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{str(file)!r} cannot be read: {error}.") from None
    return sparse.csr_array(X).astype(np.float64), words, weights


def _from_parts(arrays: Any) -> Any:
    from scipy import sparse

    data, indices, indptr, shape = (arrays[name] for name in _PARTS)
    X = sparse.csr_array((data, indices, indptr), shape=tuple(int(n) for n in shape))
    X.check_format(full_check=True)
    return X


def _words(vocabulary: Array, n: int) -> tuple[str, ...]:
    words = tuple(str(word) for word in vocabulary.ravel())
    if len(words) != n:
        raise ValueError(f"'vocab' has {len(words)} words and the matrix {n} columns")
    if len(set(words)) < n:
        (twice, _), *_ = Counter(words).most_common(1)
        raise ValueError(f"'vocab' names {twice!r} more than once; add its columns up")
    return words


def _weights(arrays: Any, name: str) -> Array:
    if name not in arrays.files:
        raise ValueError(f"there is no array {name!r} of weights; it has {', '.join(arrays.files)}")
    weights: Array = arrays[name]
    return weights


def _match_columns(
    file: Path, X: Any, words: Sequence[str] | None, known: list[str] | None, n: int
) -> Any:
    """Columns in the order of the model's words, by name if both have names."""
    import numpy as np
    from scipy import sparse

    if words is None or known is None:
        if X.shape[1] != n:
            raise ValueError(
                f"{str(file)!r} has {X.shape[1]} words; the model was fitted to {n}. Their names "
                "(an array 'vocab') would tell which are which, in both files."
            )
        return X
    if list(words) == known:
        return X
    places = {word: j for j, word in enumerate(known)}
    old = np.array([i for i, word in enumerate(words) if word in places], dtype=int)
    new = np.array([places[words[i]] for i in old], dtype=int)
    moves = sparse.csr_array((np.ones(len(old)), (old, new)), shape=(len(words), n))
    matched = X @ moves
    if len(old) < len(words):
        typer.echo(
            f"note: {len(words) - len(old)} of the {len(words)} words of {file} are not among the "
            "model's; they are left out",
            err=True,
        )
    _tell_strangers(file, matched)
    return matched


def _tell_strangers(file: Path, X: Any) -> None:
    """Documents without a word that the model knows get the same answer, whatever they say."""
    import numpy as np

    strangers = int(np.sum(np.asarray(X.sum(axis=1)).ravel() == 0))
    if strangers == X.shape[0]:
        raise ValueError(
            f"No word of {str(file)!r} is among those that the model knows; is it of the same "
            "language, and cut in the same way?"
        )
    if strangers:
        typer.echo(
            f"note: {strangers} of {X.shape[0]} documents have no word that the model knows; the "
            "answer for them is that for an empty document",
            err=True,
        )


def _refuse_names(file: Path, columns: list[str] | None, target: str | None) -> None:
    for option, value in (("--columns", columns), ("--target", target)):
        if value is not None:
            raise typer.BadParameter(
                f"{str(file)!r} holds documents, whose columns are words; give a table, or leave "
                "the option out.",
                param_hint=option,
            )


def _source(
    X: Any, words: tuple[str, ...] | None, weights: Any = None, documents: list[str] | None = None
) -> Source:
    from mixfold.cli.documents import Documents  # and with it all that reads data

    return Documents(X, words, weights, documents)
