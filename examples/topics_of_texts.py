"""Topics and clusters of texts
===============================

A folder of texts: what are they about, and which of them belong together?

Eight desks of a newspaper write about four subjects, each about two or three of them, and use words
of every day besides. Nobody says who wrote what. PCP learns the subjects (topics of words) and the
desks (clusters of texts) together, and how many desks there are: it begins with twenty clusters
and drops those that nothing belongs to. There are more desks than subjects, which is where that
helps: a desk is told by its blend of subjects, of which others have taught the words. ::

    python examples/topics_of_texts.py

It writes topics-of-texts.png and clusters-of-texts.png to the working directory. The same from a
terminal, for a folder of text files::

    mixfold fit letters/ --model pcp --components 20 --factors 5 --out letters.mixfold
    mixfold topics letters.mixfold
    mixfold predict letters.mixfold letters/ --out clusters.csv
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import normalized_mutual_info_score

from mixfold import PCP, LatentDirichletAllocation, load

matplotlib.use("agg")
import matplotlib.pyplot as plt

from mixfold.plots import plot_cluster_topics, plot_document_clusters, plot_topics

SUBJECTS = {
    "sea": "ship harbour sail wind wave anchor captain crew island storm tide deck",
    "kitchen": "bread butter oven flour sugar recipe salt onion soup pan dough spice",
    "court": "judge trial lawyer witness verdict jury appeal evidence crime law prison oath",
    "money": "bank loan price market share profit tax debt trade budget coin rent",
    "every day": "people day time year good long place work tell new house way",
}
# What a desk writes about, in the order of the subjects.
DESKS = {
    "travel": (0.6, 0.2, 0.0, 0.0, 0.2),
    "food": (0.0, 0.7, 0.0, 0.1, 0.2),
    "courts": (0.0, 0.0, 0.7, 0.0, 0.3),
    "business": (0.0, 0.0, 0.1, 0.7, 0.2),
    "shipping": (0.5, 0.0, 0.0, 0.4, 0.1),
    "fraud": (0.0, 0.0, 0.4, 0.4, 0.2),
    "piracy": (0.4, 0.0, 0.4, 0.0, 0.2),
    "letters": (0.0, 0.1, 0.1, 0.0, 0.8),
}
TEXTS, LENGTH = 60, 60


def written(desk: str, rng: np.random.Generator) -> str:
    """One text: about sixty words, each of a subject of the desk."""
    subjects = rng.choice(list(SUBJECTS.values()), rng.poisson(LENGTH), p=DESKS[desk])
    return " ".join(rng.choice(words.split()) for words in subjects)


def draw(model: PCP, X: Any, words: np.ndarray, desks: np.ndarray) -> None:
    panels = plot_topics(model, n_words=8, vocabulary=words)
    panels[0].figure.savefig("topics-of-texts.png", dpi=110)
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
    plot_cluster_topics(model, vocabulary=words, ax=axes[0])
    plot_document_clusters(model, X, desks, ax=axes[1])
    figure.savefig("clusters-of-texts.png", dpi=110)
    plt.close("all")
    print("wrote topics-of-texts.png and clusters-of-texts.png")


def main(folder: Path) -> None:
    rng = np.random.default_rng(0)
    desks = rng.permutation(np.repeat(list(DESKS), TEXTS))
    counter = CountVectorizer(min_df=2)
    X = counter.fit_transform([written(desk, rng) for desk in desks])
    words = counter.get_feature_names_out()
    print(f"{X.shape[0]} texts of {X.sum():,} words, {X.shape[1]} of them different")

    model = PCP(n_components=5, n_clusters=20, n_init=3, random_state=0).fit(X)
    print(f"clusters that are left of 20: {model.n_clusters_}")
    for k, topic in enumerate(model.top_words(6, words)):
        print(f"topic {k}: {' '.join(topic)}")
    for m, shares in enumerate(model.cluster_topics_):
        main_topics = [f"{shares[k]:.0%} topic {k}" for k in np.argsort(-shares) if shares[k] > 0.1]
        print(f"cluster {m}, {model.weights_[m]:.0%} of the texts: {', '.join(main_topics)}")
    agreement = normalized_mutual_info_score(desks, model.labels_)
    print(f"agreement of clusters and desks (1 is perfect): {agreement:.3f}")

    # How many topics? Half of each new text is shown, the other half is to be guessed.
    new = counter.transform([written(desk, rng) for desk in DESKS for _ in range(20)])
    print("topics    perplexity of new texts")
    for size in (1, 2, 5, 20):
        lda = LatentDirichletAllocation(size, random_state=0).fit(X)
        print(f"{size:6d}    {lda.perplexity(new):.1f}")

    model.save(folder / "texts.mixfold")
    # "spaceship" and "ate" are words that no text had; they are passed over
    strange = counter.transform(["the captain of the spaceship ate bread and soup on deck"])
    cluster = load(folder / "texts.mixfold").predict(strange)[0]
    said = desks[model.labels_ == cluster]
    print(f"a captain eats soup: cluster {cluster}, as most texts of the desk {majority(said)!r}")
    draw(model, X, words, desks)


def majority(names: np.ndarray) -> str:
    values, sizes = np.unique(names, return_counts=True)
    return str(values[sizes.argmax()])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
