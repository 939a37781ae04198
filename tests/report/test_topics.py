"""Pages of topic models speak of documents and words, and count words."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import entropy

from mixfold import PCP, PLSI, LatentDirichletAllocation


@pytest.fixture(scope="module")
def corpus() -> sparse.csr_array:
    """Four topics; documents of the first are long, two documents are empty."""
    rng = np.random.default_rng(3)
    topics, shares = rng.dirichlet(np.full(60, 0.1), 4), rng.dirichlet(np.full(4, 0.3), 200)
    length = rng.integers(20, 60, 200)
    length[shares[:, 0] > 0.5] *= 6
    length[[7, 90]] = 0
    return sparse.csr_array(
        np.array([rng.multinomial(n, p @ topics) for n, p in zip(length, shares, strict=True)])
    ).astype(float)


@pytest.mark.parametrize("kind", [PLSI, LatentDirichletAllocation, PCP])
@pytest.mark.filterwarnings("ignore")
def test_shares_are_shares_of_words(page, corpus, kind) -> None:
    model = kind(n_components=4, random_state=0).fit(corpus)
    found = page(model, corpus)
    words = " ".join(found.words["topics"].split())
    there = corpus.sum(axis=1) > 0
    length = corpus.sum(axis=1)[there]
    shares = model.transform(corpus)[there]
    if kind is LatentDirichletAllocation:  # the mean of a posterior has pseudo-words of the prior
        prior = np.broadcast_to(model.doc_topic_prior_, 4)
        shares = (shares * (prior.sum() + length[:, None]) - prior) / length[:, None]
    common = length @ shares / length.sum()
    by_document = shares.mean(axis=0)
    assert np.abs(common - by_document).max() > 0.1  # the two differ, so that the test can fail
    order = np.argsort(-common)
    lines = [
        f"{k} {common[k]:.1%} {(shares[:, k] >= 0.1).sum()} {(shares.argmax(axis=1) == k).sum()}"
        for k in order
    ]
    places = [words.index(line) for line in lines]
    assert places == sorted(places)
    mean = np.exp(entropy(shares, axis=1)).mean()
    assert f"A document mixes {mean:.1f} topics on average" in words
    assert f"its largest topic has {shares.max(axis=1).mean():.1%} of its words" in words
    assert f"{length.mean():.1f} words each on average" in words
    assert f"from {length.min():.0f} to {length.max():.0f}." in words
    assert "2 documents without a word of the vocabulary" in found.words["head"]


def test_no_words_of_tables(page, corpus) -> None:
    model = PLSI(n_components=4, random_state=0).fit(corpus)
    found = page(model, corpus)
    assert "missing" not in found.sections and "components" not in found.sections
    text = " ".join(" ".join(found.words.values()).split()).lower()
    for wrong in ("missing", "unsure", "how sure", "blurred", " columns", " row ", " rows "):
        assert wrong not in text.replace("filter by", "")
    assert "60 different words" in found.words["head"]
    assert "document " in found.words["novelty"]


def test_without_documents_the_words_of_the_fit_count(page, corpus) -> None:
    from mixfold.estimators.topics.topic_model import topic_shares

    model = LatentDirichletAllocation(4, random_state=0).fit(corpus)
    words = page(model).words["topics"]
    for part in topic_shares(model):
        assert f"{part:.1%}" in words
