"""Texts as counts of words: a folder of text files, or a file with a document on each line."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

_LINES = (".txt", ".text")  # of a file with a document on each line
_DOCUMENTS = ("", *_LINES, ".md")  # of a file that is one document
_TABLES = (".parquet", ".pq", ".csv", ".tsv", ".gz", ".npy", ".npz")
_WORD = r"(?u)\b[^\W\d_]\w+\b"  # two signs or more, the first of them a letter
_STOP_WORDS, _MIN_DF, _MAX_FEATURES = "english", 2, 20_000

StopWordsOption = Annotated[
    str | None,
    typer.Option(
        "--stop-words",
        metavar="WHICH",
        help="Texts: english, none, a file.",
    ),
]
MinDfOption = Annotated[
    int | None,
    typer.Option(
        "--min-df",
        min=1,
        metavar="N",
        help=f"Texts: least documents of a word ({_MIN_DF}).",
    ),
]
MaxFeaturesOption = Annotated[
    int | None,
    typer.Option(
        "--max-features",
        min=1,
        metavar="N",
        help=f"Texts: words at most ({_MAX_FEATURES}).",
    ),
]
EncodingOption = Annotated[
    str | None,
    typer.Option("--encoding", metavar="NAME", help="Texts: encoding (utf-8)."),
]


class TextError(ValueError):
    """Texts that cannot be read, or counted."""


@dataclass(frozen=True, slots=True)
class TextSettings:
    """What the options for texts say; None where they were left out."""

    stop_words: str | None = None
    min_df: int | None = None
    max_features: int | None = None
    encoding: str | None = None

    def refuse(self, what: str) -> None:
        """A usage error if an option was given, of something that is no text."""
        for name in ("stop_words", "min_df", "max_features", "encoding"):
            if getattr(self, name) is not None:
                raise typer.BadParameter(
                    f"it is for texts, a folder of them or a .txt file; {what} is none. Leave it "
                    "out.",
                    param_hint=f"--{name.replace('_', '-')}",
                )


@dataclass(frozen=True, slots=True)
class Texts:
    """Where documents are; ``names`` are those of the files, None for lines."""

    path: Path
    files: tuple[Path, ...]
    encoding: str

    @property
    def names(self) -> list[str] | None:
        """What each document is called."""
        if self.files == (self.path,):
            return None
        return [file.relative_to(self.path).as_posix() for file in self.files]

    def __iter__(self) -> Iterator[str]:
        for file in self.files:
            yield from _read(file, self.encoding, lines=self.names is None)


def _has_columns(path: Path) -> bool:
    from mixfold.schema.readers import has_columns

    return has_columns(path)


def is_text(path: Path) -> bool:
    """Whether a file or folder holds texts, not tables; an error for a folder without either."""
    if path.is_file():
        return path.suffix.lower() in _LINES and not _has_columns(path)
    files = _files(path)
    if any(file.suffix.lower() in _TABLES for file in files):
        return False
    if not any(file.suffix.lower() in _DOCUMENTS for file in files):
        raise TextError(
            f"The folder {str(path)!r} holds no data: neither tables (.parquet, .csv, .npy) nor "
            "texts (.txt, .md, or files without a suffix)."
        )
    return True


def open_texts(path: Path, encoding: str | None) -> Texts:
    """The documents of a file or folder, which are read when they are asked for."""
    name = encoding or "utf-8"
    try:
        name = codecs.lookup(name).name
        "".encode(name)  # of text, not of bytes
    except (LookupError, ValueError):
        raise typer.BadParameter(
            f"there is no encoding {name!r}; common ones are utf-8, latin-1, cp1252 and utf-16.",
            param_hint="--encoding",
        ) from None
    if path.is_file():
        return Texts(path, (path,), name)
    files = [file for file in _files(path) if file.suffix.lower() in _DOCUMENTS]
    return Texts(path, tuple(files), name)


def count_words(texts: Texts, settings: TextSettings) -> tuple[Any, tuple[str, ...]]:
    """Counts (documents by words), and the words, which are learned from the texts."""
    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer

    least = settings.min_df or _MIN_DF
    analyse = _analyser(_stop_words(settings.stop_words, texts.encoding))
    # floats: as many passes as a fit has need no conversion
    counter = CountVectorizer(
        analyzer=analyse,
        min_df=least,
        max_features=settings.max_features or _MAX_FEATURES,
        dtype=np.float64,
    )
    try:
        X = counter.fit_transform(_check_not_empty(texts))
    except TextError:
        raise
    except ValueError:  # scikit-learn's: nothing is left to count
        raise TextError(
            f"No word of {str(texts.path)!r} is left: words have two letters or more, are in at "
            f"least {least} documents (--min-df) and are no stop words (--stop-words)."
        ) from None
    return X, tuple(str(word) for word in counter.get_feature_names_out())


def count_known(texts: Texts, words: Sequence[str]) -> Any:
    """Counts of words that are known already; others are passed over."""
    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(analyzer=_analyser(None), vocabulary=list(words), dtype=np.float64)
    return counter.transform(_check_not_empty(texts))


def _check_not_empty(texts: Texts) -> Iterator[str]:
    """The documents; a error if there are none."""
    empty = True
    for text in texts:
        empty = False
        yield text
    if empty:
        raise TextError(f"{str(texts.path)!r} is empty; write a document on each line.")


def _analyser(stop_words: Any) -> Callable[[str], list[str]]:
    """From a text to its words, as scikit-learn cuts them."""
    from sklearn.feature_extraction.text import CountVectorizer

    cut: Callable[[str], list[str]] = CountVectorizer(
        token_pattern=_WORD, stop_words=stop_words
    ).build_analyzer()
    return cut


def _stop_words(which: str | None, encoding: str) -> list[str]:
    """The words that ``--stop-words`` stands for."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    words: set[str] = set()
    for name in (which or _STOP_WORDS).split(","):
        if name.strip() == "english":
            words |= ENGLISH_STOP_WORDS
        elif name.strip() != "none":
            words |= _read_word_list(Path(name.strip()), encoding)
    return sorted(words)


def _read_word_list(path: Path, encoding: str) -> set[str]:
    if not path.is_file():
        raise typer.BadParameter(
            f"write english, none or the name of a text file; there is no file {str(path)!r}.",
            param_hint="--stop-words",
        )
    # cut as texts are: "don't" would never be met
    analyse = _analyser(None)
    return {word for line in _read(path, encoding, lines=True) for word in analyse(line)}


def _files(folder: Path) -> list[Path]:
    """Files at any depth, in order of their names, without hidden ones."""
    return sorted(
        file
        for file in folder.rglob("*")
        if file.is_file()
        and not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    )


def _read(file: Path, encoding: str, lines: bool) -> Iterator[str]:
    """The lines of a file, or all of it."""
    _refuse_binary(file, encoding)
    # signatures at the beginning of a file are no letters
    name = "utf-8-sig" if encoding == "utf-8" else encoding
    try:
        with file.open(encoding=name) as handle:
            if lines:
                yield from (line.rstrip("\n") for line in handle)
            else:
                yield handle.read()
    except UnicodeError as error:
        raise TextError(
            f"{str(file)!r} is not {encoding} text ({error}). Name its encoding with --encoding, "
            "for example latin-1."
        ) from None


def _refuse_binary(file: Path, encoding: str) -> None:
    if encoding.startswith(("utf-16", "utf-32")):  # zeros are part of letters
        return
    with file.open("rb") as handle:
        if b"\0" in handle.read(8192):
            raise TextError(
                f"{str(file)!r} is no text: it holds zero bytes. Take it out of the folder, or "
                "name its encoding with --encoding, for example utf-16."
            )
