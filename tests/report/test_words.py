"""Sentences of pages that were wrong, unclear or cut when they were read in a browser."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from mixfold import (
    ICA,
    PCP,
    PPCA,
    BayesianGaussianMixture,
    FactorAnalysis,
    GaussianMixture,
    MixtureClustering,
    MixtureOfFactorAnalyzers,
    MixtureOfPPCA,
    MultinomialMixture,
    PoissonMixture,
)
from mixfold.report.sections.clusters import _told
from tests.brief import BRIEF, fitted

from .claims import sections


def page_of(name: str, tmp_path, **settings: Any):
    _, X, y = BRIEF[name]
    return sections(fitted(name), tmp_path, X, y)


@pytest.mark.parametrize(
    ("name", "axis"),
    [("GTM", "latent variable 1"), ("KSubspaces", "separating direction"), ("MLiT", "score 1"),
     ("RBM", "code 1"), ("PPCA", "factor 1"), ("KMeans", "separating direction"),
     ("ICA", "source 1"), ("LatentDensity", "source 1")],
)  # fmt: skip
def test_axes_of_the_map_are_called_what_they_are(name: str, axis: str, tmp_path) -> None:
    """Distances from planes are no codes, and the latents of a surface no units."""
    found = page_of(name, tmp_path)
    assert found.map["axes"][0]["name"] == axis
    if name == "GTM":
        assert "GTM: 2 latent variables" in found.words["head"]
        assert "by the expected values of their first two latent variables" in found.words["map"]


@pytest.mark.parametrize("name", ["PCP", "LatentDirichletAllocation"])
def test_documents_are_told_apart_by_what_colours_them(name: str, tmp_path) -> None:
    lead = page_of(name, tmp_path).words["map"]
    assert ("separates the clusters best" in lead) == (name == "PCP")
    assert ("separates documents of different largest topics best" in lead) == (name != "PCP")
    same = "documents of a cluster" if name == "PCP" else "documents with the same largest topic"
    assert f"the one in which {same} vary most" in lead and "rows" not in lead.split("Colour by")[0]


def test_labels_of_documents_are_not_those_of_rows(tmp_path) -> None:
    _, X, _ = BRIEF["PCP"]
    labels = np.where(np.arange(len(X)) % 2, "a", "b")
    said = sections(fitted("PCP"), tmp_path, X, labels).words["labels"]
    assert "Documents with each label (line) in each cluster (column), shaded by the share of the "\
           "cluster" in said  # fmt: skip


def test_passes_of_the_starts_are_not_those_of_the_fit(tmp_path) -> None:
    told = "Passes that chose the start are not counted."
    assert told in page_of("GaussianMixture", tmp_path).words["fit"]
    assert told not in page_of("PPCA", tmp_path).words["fit"]


def test_a_small_group_is_named_and_its_number_is_no_count_of_rows(tmp_path) -> None:
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(60, 2)), [[30, 30], [31, 29], [29, 31.5], [30.5, 31]]])
    model = GaussianMixture(2, covariance_type="tied", random_state=0).fit(X)
    small = int(model.weights_.argmin())
    head = sections(model, tmp_path, X).words["head"]
    assert f"Component {small} has fewer than 5 rows. Look at these rows" in head


def test_a_prior_keeps_a_fit_from_the_maximum_of_the_likelihood(tmp_path) -> None:
    """That of a variational fit is no local maximum, and no start will make it one."""
    from mixfold.estimators.mixtures.weight_intervals import Intervals
    from mixfold.report.capabilities import groups_of
    from mixfold.report.sections.components import _notes_of_limits

    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) + 6])
    none = Intervals(np.full(2, np.nan), np.full(2, np.nan), "as it is", local=True)

    class Subject:
        def __init__(self, model: Any) -> None:
            self.model = model

    said = []
    for kind in (GaussianMixture, BayesianGaussianMixture):
        model = kind(2, random_state=0).fit(X)
        said.append(_notes_of_limits(Subject(model), groups_of(model), none)[0].text)  # type: ignore[arg-type]
    assert said[0].startswith("The fit is a local maximum of the likelihood: as it is.")
    assert said[1].startswith("The fit, which has a prior, is far from a maximum of the likelihood")


def test_missing_entries_are_spoken_of_where_there_are_some(tmp_path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    for rows in (X, np.where(rng.random(X.shape) < 0.1, np.nan, X)):
        model = GaussianMixture(1).fit(rows)
        said = sections(model, tmp_path, rows).words["novelty"]
        holed = bool(np.isnan(rows).any())
        assert ("drawn from the model with the same entries missing, 99.8%" in said) == holed
        assert ("drawn from the model, 99.8%" in said) == (not holed)


def test_columns_that_end_at_zero_are_not_said_to_be_skewed_within_components(tmp_path) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (200, 4)).astype(float)
    head = sections(FactorAnalysis(1).fit(X), tmp_path, X).words["head"]
    assert "They end at zero or are skewed, and the model takes them for normal. Fit" in head


def test_floors_of_rates_are_shown_as_zero(tmp_path) -> None:
    """A word that a group never uses has 0, not 6.23e-11 with a deviation of 3.8e-6."""
    rng = np.random.default_rng(0)
    p = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]])
    X = np.vstack([rng.multinomial(30, own, 40) for own in p])
    model = MultinomialMixture(2, random_state=0).fit(X)
    assert 0 < model.means_.min() < 1e-8  # the floor that was printed
    said = sections(model, tmp_path, X).words["profiles"]
    assert not re.search(r"e.\d", said.split("column component")[1])
    assert len(re.findall(r"\b0 ± 0\b", said)) == 4


def test_counts_are_not_said_to_be_skewed_columns(tmp_path) -> None:
    rng = np.random.default_rng(0)
    X = rng.negative_binomial(1, 0.05, size=(300, 3)).astype(float)
    head = sections(PoissonMixture(1).fit(X), tmp_path, X).words["head"]
    assert "Look at the oddest rows and at the map; try more components, or another family." in head


def test_factors_of_a_single_component(tmp_path) -> None:
    """Nothing is compared with another component, and no number of factors is asked for."""
    rng = np.random.default_rng(1)
    X = np.outer(rng.normal(size=300), [3, 3, 2, 2, 2]) + 0.5 * rng.normal(size=(300, 5))
    X[:30] *= 6  # heavy tails
    learned = MixtureOfFactorAnalyzers(inference="vb", n_components=1, random_state=0).fit(X)
    found = sections(learned, tmp_path, X)
    assert "The only component has" in found.words["factors"]
    assert "of another" not in found.words["factors"]
    assert "or compare with a mixture by inference='em'" in found.words["head"]
    head = sections(PPCA(1).fit(X), tmp_path, X).words["head"]
    assert "try more factors, or a mixture of such models" in head


def test_the_rule_by_which_clusters_are_merged(tmp_path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(180, 2))
    X[:, 0] += np.repeat([0, 4, 8], 60)
    mixture = GaussianMixture(3, random_state=0).fit(X)
    said = [
        sections(mixture.combine(X=X, **how), tmp_path, X).words["clusters"]
        for how in ({}, {"n_clusters": 2}, {"threshold": 0.25})
    ]
    assert "merged unless the rows prove that the density dips between them" in said[0]
    assert "until as many clusters are left as were asked for" in said[1]
    assert "with a probability above 0.250 (misclassification probability)" in said[2]


def test_what_is_said_of_many_components_is_said_once() -> None:
    rest = "without spread in some direction: its variance there is the floor, and its density high"
    one = f"component 3 has about 12 rows {rest}"
    assert _told([one]) == [f"Component 3 (about 12) has rows {rest}."]
    both = _told([one, f"component 5 has about 7 rows {rest}", "the data do not tell"])
    theirs = rest.replace("its ", "their ")
    assert both == [
        f"Components 3 (about 12) and 5 (about 7) have rows {theirs}.", "The data do not tell."
    ]  # fmt: skip
    many = [f"component {k} has about 9 rows {rest}" for k in range(30)]
    assert len(_told(many)) == 1 and "and 18 others have rows" in _told(many)[0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_topics_of_one_cluster_are_no_codes(tmp_path) -> None:
    rng = np.random.default_rng(0)
    words = rng.multinomial(60, rng.dirichlet(np.ones(12)), size=40)
    found = sections(PCP(3, 2, random_state=0).fit(words), tmp_path, words)
    assert "PCP: 3 topics" in found.words["head"]
    assert "1 of 2 clusters became empty or were merged; 1 is left" in "".join(found.words.values())


def test_what_is_reconstructed_without_loss_shows_no_rounding(tmp_path) -> None:
    X = np.random.default_rng(0).laplace(size=(80, 3)) + np.array([1e4, 0, 0])
    whole = sections(ICA(random_state=0).fit(X), tmp_path, X).words["residuals"]
    assert "Reconstructed rows are the rows themselves, but for rounding" in whole
    assert "largest errors" not in whole
    plane = sections(ICA(2, random_state=0).fit(X), tmp_path, X).words["residuals"]
    assert "largest errors" in plane and "but for rounding" not in plane


@pytest.mark.filterwarnings("ignore:1 of the 300 rows have no observed entry")
def test_factors_of_components_that_learn_their_number(tmp_path) -> None:
    rng = np.random.default_rng(0)
    line = rng.normal(size=(150, 1)) * [[3.0, 3.0, 0.0]]
    X = np.concatenate([line, np.full((150, 3), 20.0)]) + 0.5 * rng.normal(size=(300, 3))
    X[0] = np.nan  # says nothing, and is not counted
    model = MixtureOfPPCA(4, None, inference="vb", random_state=0).fit(X)
    assert model.active_.sum() == 2 and sorted(model.n_factors_[model.active_]) == [0, 1]
    found = sections(model, tmp_path, X)
    one, other = ("1 factor", "0 factors") if model.n_factors_[0] else ("0 factors", "1 factor")
    assert f"Component 0 has {one} and component 1 has {other} of its own" in found.words["factors"]
    assert "\n 2 " not in found.words["factors"]
    assert "No 95% interval" not in found.words["components"]


def test_weights_of_clusters_are_shares(tmp_path) -> None:
    X = np.random.default_rng(0).normal(size=(90, 2))
    model = MixtureClustering(n_clusters=1, max_components=2, random_state=0).fit(X)
    assert re.search(r"cluster 0\s+100%", sections(model, tmp_path, X).words["clusters"])
