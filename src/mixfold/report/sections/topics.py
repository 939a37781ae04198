"""Section: topics with their words and shares, and clusters of documents."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.estimators.topics.topic_model import topic_shares
from mixfold.report.formatting import count, number, percent, plural, share, short
from mixfold.report.markup import Html, join
from mixfold.report.rows.topics import ABOUT, TopicSums
from mixfold.report.section import Note, Section
from mixfold.report.subject import Subject
from mixfold.report.tables import bar, heat_table, table

_TOPICS, _WORDS, _CLUSTERS = 60, 10, 20


def topics(subject: Subject) -> Section | None:
    """The most probable words of each topic, and clusters of documents as mixtures of topics."""
    model = subject.model
    if not hasattr(model, "top_words"):
        return None
    found = model.top_words(_WORDS, vocabulary=subject.names)
    seen = None if subject.look is None else subject.look.topics
    common = _common(subject)
    head: list[str] = ["topic"]
    cells: list[list[Any]] = [[str(k) for k in range(len(found))]]
    if common is not None:
        head.append("share of the words")
        cells.append([bar(float(v), share(float(v))) for v in common])
    if seen is not None:
        head += ["documents about it", "documents where it is largest"]
        cells += [[count(v) for v in seen.about], [count(v) for v in seen.largest]]
    head.append("most probable words")
    cells.append([", ".join(short(w, 24) for w in words) for words in found])
    order = range(len(found)) if common is None else np.argsort(-common, kind="stable")
    rows = [[column[k] for column in cells] for k in order]
    more = f", the largest {_TOPICS} of {len(rows)}" if len(rows) > _TOPICS else ""
    text = (0, len(head) - 1)
    caption = f"Topics, the largest first{more}"
    body = [table(head, rows[:_TOPICS], caption, text=text), _clusters(model)]
    notes = () if seen is None else _notes(subject, seen)
    return Section("topics", "Topics", _lead(subject, len(found)), join(body), notes)


def _lead(subject: Subject, n_topics: int) -> str:
    model, look = subject.model, subject.look
    seen = None if look is None else look.topics
    if seen is None or not seen.weight:
        size = getattr(model, "n_documents_", None)
        if size is None:
            return f"{plural(n_topics, 'topic')}."
        words = f"{plural(size, 'document')} with {count(model.n_tokens_)} words in all"
        return f"{plural(n_topics, 'topic')} of {words}."
    length = seen.n_words / seen.weight
    return (
        f"{plural(n_topics, 'topic')} in {plural(seen.weight, 'document')} with "
        f"{count(seen.n_words)} words: {number(length)} words each on average, from "
        f"{count(seen.shortest)} to {count(seen.longest)}. Shares of topics are expected shares of "
        f"words. A document mixes {number(seen.topics / seen.weight, 2)} topics on average (the "
        "exponential of the entropy of its shares); its largest topic has "
        f"{share(seen.top / seen.weight)} of its words on average. A document counts as about a "
        f"topic if the topic has {percent(ABOUT)} of its words or more."
    )


def _notes(subject: Subject, seen: TopicSums) -> tuple[Note, ...]:
    notes = []
    if seen.empty:
        text = f"{plural(seen.empty, 'document')} without a word of the vocabulary of the model."
        notes.append(Note(text, "Leave them out: they have no information"))
    assert subject.look is not None
    never = int((subject.look.columns.maximum <= 0).sum())
    if never:
        occur = "occurs" if never == 1 else "occur"
        text = f"{plural(never, 'word')} of the vocabulary {occur} in none of the documents."
        notes.append(Note(text, serious=False))
    return tuple(notes)


def _common(subject: Subject) -> Array | None:
    """Of all words the part that each topic has: of the documents at hand, else of the fit."""
    seen = None if subject.look is None else subject.look.topics
    if seen is not None and seen.n_words:
        return np.asarray(seen.words / seen.n_words)
    found = topic_shares(subject.model)
    return None if found is None else np.asarray(found, float)


def _clusters(model: object) -> Html | None:
    """Which topics the clusters of documents have."""
    mixed = getattr(model, "cluster_topics_", None)
    if mixed is None:
        return None
    values = np.asarray(mixed, float)[:_CLUSTERS]
    weights = np.asarray(getattr(model, "weights_"), float)  # noqa: B009
    names = [f"{k} ({share(float(weights[k]))})" for k in range(len(values))]
    heads = [f"topic {j}" for j in range(values.shape[1])]
    texts = [[share(float(v)) for v in row] for row in values]
    more = f", the first {_CLUSTERS} of {len(mixed)}" if len(mixed) > _CLUSTERS else ""
    caption = f"Clusters of documents as mixtures of topics{more}"
    return heat_table("cluster", names, heads, values, texts, caption, most=1.0)
