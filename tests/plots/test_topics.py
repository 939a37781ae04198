"""Pictures of topics and of clusters of documents show the numbers they claim to show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from mixfold import PCP, PLSI, GaussianMixture, KMeans
from mixfold.estimators.topics.topic_model import topic_shares
from mixfold.plots import plot_cluster_topics, plot_document_clusters, plot_topics

WORDS = ["sea", "ship", "sail", "oven", "salt", "soup", "law", "jury", "oath"]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def documents() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    subject = np.repeat([0, 1, 2], [60, 30, 10])
    rates = np.repeat(np.where(np.eye(3) > 0, [[6.0], [5.0], [4.0]], 0.2), 3, axis=1)
    order = rng.permutation(100)
    return rng.poisson(rates[subject])[order], subject[order]


X, SUBJECT = documents()


@pytest.fixture(scope="module")
def model() -> Any:
    return PCP(3, 3, random_state=0).fit(X)


def texts(labels: Any) -> list[str]:
    return [label.get_text() for label in labels]


# ------------------------------------------------------------------ topics


def test_shares_of_topics_are_those_of_words(model: Any) -> None:
    shares = topic_shares(model)
    assert shares is not None and shares.sum() == pytest.approx(1)
    of_words = np.array([X[:, 3 * k : 3 * k + 3].sum() for k in range(3)]) / X.sum()
    first = [int(np.argmax(topic)) // 3 for topic in model.topics_]
    np.testing.assert_allclose(shares, of_words[first], atol=0.05)
    plsi = PLSI(3, random_state=0).fit(X)
    first = [int(np.argmax(topic)) // 3 for topic in plsi.topics_]
    np.testing.assert_allclose(topic_shares(plsi), of_words[first], atol=0.05)
    assert topic_shares(PLSI(2, random_state=0, max_iter=0).fit(X)) is None


def test_panels_show_words_and_their_probabilities(model: Any) -> None:
    panels = plot_topics(model, n_words=4, vocabulary=WORDS)
    shares = topic_shares(model)
    order = np.argsort(-shares)
    titles = [ax.get_title(loc="left") for ax in panels]
    assert titles == [f"topic {k}  {shares[k]:.1%}" for k in order]
    for ax, k in zip(panels, order, strict=True):
        widths = [bar.get_width() for bar in ax.patches]
        np.testing.assert_allclose(widths, np.sort(model.topics_[k])[::-1][:4])
        assert texts(ax.get_yticklabels()) == model.top_words(4, WORDS)[k]
        assert ax.get_ylim() == (3.5, -0.5), "the first word at the top"
    assert len({ax.get_xlim() for ax in panels}) == 1, "one scale"


def test_topics_may_be_chosen_and_drawn_elsewhere(model: Any, tmp_path: Path) -> None:
    figure = Figure()
    panels = plot_topics(model, topics=[2, 0], n_words=20, ax=figure.subplots(1, 2))
    assert plt.get_fignums() == []
    titles = [ax.get_title(loc="left").split()[1] for ax in panels]
    assert titles == ["2", "0"] and len(panels[0].patches) == 9
    assert set(texts(panels[0].get_yticklabels())) == {str(j) for j in range(9)}
    many = PLSI(7, random_state=0).fit(X)
    panels = plot_topics(many, columns=3)
    largest = int(np.argmax(many.topic_shares_))
    title = f"topic {largest}  {many.topic_shares_[largest]:.1%}"
    assert len(panels[0].figure.axes) == 7 and panels[0].get_title(loc="left") == title
    panels[0].figure.savefig(tmp_path / "topics.png")
    assert (tmp_path / "topics.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topics": [3]}, "topics must be numbers from 0 to 2"),
        ({"topics": []}, "at least one"),
        ({"n_words": 0}, "n_words must be 1 or more"),
        ({"columns": 0}, "columns must be 1 or more"),
        ({"ax": [None]}, "one for each of the 3 topics; got 1"),
        ({"vocabulary": ["a"]}, "vocabulary must name the 9 columns"),
    ],
)
def test_topics_that_cannot_be_drawn(model: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_topics(model, **options)


def test_other_models_have_no_topics() -> None:
    with pytest.raises(ValueError, match="GaussianMixture has no topics"):
        plot_topics(GaussianMixture())


# ------------------------------------------------------------------ clusters by topics


def test_shares_of_topics_in_clusters(model: Any) -> None:
    ax = plot_cluster_topics(model, vocabulary=WORDS, n_words=2)
    heads = texts(ax.get_xticklabels())
    order = [int(head.split()[0]) for head in heads]
    drawn = np.asarray(ax.images[0].get_array())
    np.testing.assert_allclose(drawn, model.cluster_topics_[:, order])
    assert (drawn.argmax(axis=0) == np.sort(drawn.argmax(axis=0))).all(), "a staircase"
    assert heads[0] == " ".join([str(order[0]), *model.top_words(2, WORDS)[order[0]]])
    assert texts(ax.get_yticklabels())[0] == f"0  {model.weights_[0]:.1%}"
    assert ax.images[0].get_clim() == (0, 1)


def test_clusters_and_topics_may_be_chosen(model: Any) -> None:
    ax = plot_cluster_topics(
        model, clusters=[2, 0], topics=[1, 0], n_words=0, ax=Figure().subplots()
    )
    drawn = np.asarray(ax.images[0].get_array())
    np.testing.assert_allclose(drawn, model.cluster_topics_[[2, 0]][:, [1, 0]])
    assert texts(ax.get_xticklabels()) == ["1", "0"] and plt.get_fignums() == []
    with pytest.raises(ValueError, match="clusters must be numbers from 0 to 2"):
        plot_cluster_topics(model, clusters=[-1])
    with pytest.raises(ValueError, match="PLSI has no clusters"):
        plot_cluster_topics(PLSI())


# ------------------------------------------------------------------ documents by clusters


def test_documents_are_sorted_by_label(model: Any, tmp_path: Path) -> None:
    names = np.array(["water", "food", "court"])[SUBJECT]
    ax = plot_document_clusters(model, X, names)
    drawn, columns = np.asarray(ax.images[0].get_array()), [*map(int, texts(ax.get_xticklabels()))]
    P = model.predict_proba(X)[:, columns]
    sizes = {"court": 10, "food": 30, "water": 60}
    assert texts(ax.get_yticklabels()) == list(sizes)
    first = 0
    for name, size in sizes.items():
        rows = drawn[first : first + size]
        np.testing.assert_allclose(np.sort(rows, axis=0), np.sort(P[names == name], axis=0))
        first += size
    borders = [float(line.get_ydata()[0]) for line in ax.lines]
    assert borders == [9.5, 39.5]
    assert ax.get_yticks().tolist() == [4.5, 24.5, 69.5], "names in the middle of their rows"
    assert drawn.argmax(axis=1).tolist() == np.repeat([0, 1, 2], [10, 30, 60]).tolist()
    ax.figure.savefig(tmp_path / "documents.png")
    assert (tmp_path / "documents.png").stat().st_size > 0


def test_unknown_labels_come_last_and_none_sorts_by_cluster(model: Any) -> None:
    names = np.where(np.arange(100) % 2, "known", None)
    ax = plot_document_clusters(model, X, names, ax=Figure().subplots())
    assert texts(ax.get_yticklabels()) == ["known", "no label"]
    np.testing.assert_allclose(
        np.sort(np.asarray(ax.images[0].get_array())[50:].max(axis=1)),
        np.sort(model.predict_proba(X)[::2].max(axis=1)),
    )
    ax = plot_document_clusters(model, X, clusters=[1, 0])
    drawn = np.asarray(ax.images[0].get_array())
    assert drawn.shape == (100, 2) and "1 more are not shown" in ax.get_xlabel()
    assert (np.diff(drawn.argmax(axis=1)[drawn.max(axis=1) > 0.5]) >= 0).all()
    assert ax.get_ylabel() == "100 documents, by cluster" and not ax.lines


def test_documents_that_cannot_be_drawn(model: Any) -> None:
    with pytest.raises(ValueError, match="labels must be one for each of the 100 rows"):
        plot_document_clusters(model, X, [0, 1])
    with pytest.raises(ValueError, match="KMeans has no clusters of rows"):
        plot_document_clusters(KMeans(2), X)
    with pytest.raises(ValueError, match="clusters must be numbers"):
        plot_document_clusters(model, X, clusters=[7])
