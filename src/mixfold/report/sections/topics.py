"""Topics: their words, how common they are, and the clusters that mix them."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array
from mixfold.report.markup import Html, join
from mixfold.report.section import Section
from mixfold.report.subject import Subject
from mixfold.report.tables import bar, heat_table, table
from mixfold.report.words import count, plural, share, short

_TOPICS, _WORDS, _CLUSTERS = 60, 10, 20


def topics(subject: Subject) -> Section | None:
    """The most probable words of each topic, and clusters of documents as mixtures of topics."""
    model = subject.model
    if not hasattr(model, "top_words"):
        return None
    found = model.top_words(_WORDS, vocabulary=subject.names)
    common = _common(subject)
    head = ["topic", "words, the most probable first"]
    rows = [[str(k), ", ".join(short(w, 24) for w in words)] for k, words in enumerate(found)]
    if common is not None:
        head.insert(1, "share of the words")
        rows = [[r[0], bar(common[k], share(float(common[k]))), r[1]] for k, r in enumerate(rows)]
    more = f", the first {_TOPICS} of {len(rows)}" if len(rows) > _TOPICS else ""
    text = (0, len(head) - 1)
    body = [table(head, rows[:_TOPICS], f"Words of the topics{more}", text=text), _clusters(model)]
    size = getattr(model, "n_documents_", None)
    told = (
        ""
        if size is None
        else (f" of {plural(size, 'document')} with {count(model.n_tokens_)} words in all")
    )
    return Section("topics", "Topics", f"{plural(len(found), 'topic')}{told}.", join(body))


def _common(subject: Subject) -> Array | None:
    """How much of the words each topic has: of the rows at hand, else by the model."""
    look = subject.look
    if look is not None and look.groups is not None and subject.groups is not None \
            and subject.groups.word == "topic":  # fmt: skip
        return np.asarray(look.groups.mass / look.groups.mass.sum())
    found = getattr(subject.model, "topic_weights_", None)
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
