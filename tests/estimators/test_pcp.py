"""PCP as a person uses it: clusters, topics, weights, files, streams, corners."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln, logsumexp, psi, softmax
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import mixfold
from mixfold import PCP, DegenerateWarning
from mixfold.contracts import Block
from mixfold.engine.sources import open_source
from mixfold.models.topics.pcp import PCPModel

unfinished = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
inferences = pytest.mark.parametrize("inference", ["structured", "mean_field"])


def corpus(n: int = 240, seed: int = 0, length: float = 40) -> tuple[sparse.csr_array, np.ndarray]:
    """Four clusters of documents that share three topics, each of ten words of their own."""
    rng = np.random.default_rng(seed)
    topics = np.kron(np.eye(3), np.full(10, 0.095)) + 0.05 / 30
    topics /= topics.sum(axis=1, keepdims=True)
    shares = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9], [0.48, 0.48, 0.04]])
    labels = rng.integers(0, 4, n)
    words = shares[labels] @ topics
    rows = [rng.multinomial(rng.poisson(length), p) for p in words]
    return sparse.csr_array(np.array(rows, float)), labels


@pytest.fixture(scope="module")
def fitted() -> PCP:
    return PCP(3, 8, random_state=0).fit(corpus()[0])


@pytest.fixture(scope="module")
def paper() -> PCP:
    """The model of the paper: documents have the shares of their cluster."""
    return PCP(3, 8, document_concentration=None, random_state=0).fit(corpus()[0])


def varied(seed: int, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Four clusters, each mostly of one of four topics; shares of documents vary around them."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(60, 0.1), 4)
    labels = rng.integers(0, 4, n)
    shares = [rng.dirichlet(12 * (0.1 + 0.6 * np.eye(4)[c])) for c in labels]
    return np.array([rng.multinomial(rng.poisson(80), p @ topics) for p in shares], float), labels


class Cut:
    """Documents in blocks of unequal sizes."""

    def __init__(self, X: Any, edges: list[int], weight: Any = None) -> None:
        source = open_source(X, weight=weight)
        self.n_samples, self.n_features = X.shape
        self.feature_names, self.dtype = source.feature_names, source.dtype
        [self._whole] = source.blocks(X.shape[0])
        self._edges = [0, *edges, X.shape[0]]

    def blocks(self, max_rows: int | None = None) -> Iterator[Block]:
        return (self._whole.part(a, b) for a, b in pairwise(self._edges))


def same(a: PCP, b: PCP, rtol: float = 1e-7) -> None:
    assert a.n_clusters_ == b.n_clusters_
    np.testing.assert_allclose(a.lower_bounds_, b.lower_bounds_, 1e-10)
    np.testing.assert_allclose(a.weights_, b.weights_, rtol)
    np.testing.assert_allclose(a.cluster_topics_, b.cluster_topics_, rtol, atol=1e-10)
    np.testing.assert_allclose(a.topics_, b.topics_, rtol, atol=1e-10)


# ------------------------------------------------ what is found


def test_clusters_and_topics_are_found_and_the_rest_is_dropped(fitted):
    labels = corpus()[1]
    assert fitted.converged_ and fitted.n_clusters_ == 4
    assert adjusted_rand_score(labels, fitted.labels_) > 0.95
    assert {frozenset(words) for words in fitted.top_words(10)} == {
        frozenset(range(a, a + 10)) for a in (0, 10, 20)
    }
    assert np.all(np.diff(fitted.weights_) <= 0)
    assert fitted.weights_.sum() == pytest.approx(1)
    assert np.diff(fitted.lower_bounds_).min() > -1e-9
    np.testing.assert_allclose(fitted.cluster_topics_.sum(axis=1), 1)
    # three clusters have a topic each, the mixed one has two
    assert sorted((fitted.cluster_topics_ > 0.3).sum(axis=1)) == [1, 1, 1, 2]


def test_what_became_of_clusters_is_told_without_a_warning():
    X = corpus()[0]
    model = PCP(3, 40, random_state=1).fit(X)  # warnings are errors here
    left = model.n_clusters_
    assert left < 40
    [event] = model.events_
    assert (event.kind, event.iteration) == ("pruned", model.n_iter_)
    told = f"{40 - left} of 40 clusters became empty or were merged; {left} are left"
    assert event.message == told
    assert PCP(1, 1, random_state=1).fit(X).events_ == []


@pytest.mark.parametrize("seed", range(4))
def test_the_number_of_clusters_is_learned_where_documents_vary(seed):
    X, labels = varied(seed)
    model = PCP(4, 12, random_state=seed).fit(X)
    assert model.n_clusters_ == 4
    assert adjusted_rand_score(labels, model.labels_) > 0.85
    # mean field is surer of the topics of tokens than it may be, and of s
    assert model.document_concentration_ == pytest.approx(12, rel=0.3)
    assert np.diff(model.lower_bounds_).min() > -1e-9


def test_the_model_of_the_paper_makes_up_for_what_varies_by_clusters():
    X, labels = varied(0)
    paper = PCP(4, 12, document_concentration=None, random_state=0).fit(X)
    assert paper.n_clusters_ == 12 and paper.document_concentration_ is None
    assert adjusted_rand_score(labels, paper.labels_) < 0.6
    assert PCP(4, 12, random_state=0).fit(X).lower_bound_ > paper.lower_bound_


def test_alpha_is_learned():
    X, _ = varied(1)
    model = PCP(4, 12, alpha="learn", random_state=0).fit(X)
    assert model.n_clusters_ == 4 and 0.1 < model.alpha_ < 10
    assert model.alpha_ != 1.0
    sizes = model._params.weights - model.alpha_ / 12
    values = [
        gammaln(a) - gammaln(a + 300) + (gammaln(a / 12 + sizes) - gammaln(a / 12)).sum()
        for a in (0.9 * model.alpha_, model.alpha_, 1.1 * model.alpha_)
    ]
    assert values[1] == max(values)


def test_a_random_start_finds_the_clusters_too():
    X, labels = varied(2)
    models = [PCP(4, 6, init_params="random", n_init=6, random_state=s).fit(X) for s in (0, 1)]
    assert max(adjusted_rand_score(labels, m.labels_) for m in models) > 0.6
    assert models[0].lower_bound_ != models[1].lower_bound_


@inferences
def test_bounds_climb(inference):
    model = PCP(3, 6, inference=inference, random_state=2).fit(corpus(120, 2)[0])
    assert len(model.lower_bounds_) > 3 and np.diff(model.lower_bounds_).min() > -1e-9


def test_the_joint_posterior_ends_in_the_better_bound_and_clusters():
    X, labels = corpus(200, 3, length=12)
    models = [
        PCP(3, 4, inference=way, document_concentration=None, n_init=3, random_state=0).fit(X)
        for way in ("structured", "mean_field")
    ]
    assert models[0].lower_bound_ > models[1].lower_bound_
    found = [adjusted_rand_score(labels, model.labels_) for model in models]
    assert found[0] > 0.6 and found[0] >= found[1]


def test_the_best_of_several_starts_is_kept():
    X = corpus(100, 4, length=8)[0]
    several = PCP(3, 4, n_init=3, random_state=0).fit(X)
    alone = PCP(3, 4, random_state=0).fit(X)
    assert several.lower_bound_ >= alone.lower_bound_ - 1e-9
    bounds = {round(PCP(3, 4, n_init=n, random_state=0).fit(X).lower_bound_, 6) for n in (1, 2, 3)}
    assert len(bounds) > 1  # starts do differ here
    assert round(several.lower_bound_, 6) == max(bounds)


@unfinished
@pytest.mark.parametrize("n_topics", [2, 5])
def test_each_document_may_begin_as_its_own_cluster(n_topics):
    X, labels = corpus(260, 5)  # more than are compared with all documents in every pass
    model = PCP(n_topics, "documents", random_state=0, max_iter=60).fit(X)
    assert model.n_clusters_ < 130
    found = normalized_mutual_info_score(labels, model.labels_, average_method="max")
    assert found > (0.4 if n_topics == 5 else 0.25)
    assert model._params.n_clusters == 260
    assert model.perplexity(X) < 30


# ------------------------------------------------ what is asked


def test_answers_agree_with_each_other(fitted):
    X, _ = corpus(50, 6)
    members = fitted.predict_proba(X)
    np.testing.assert_allclose(members.sum(axis=1), 1)
    assert np.array_equal(members.argmax(axis=1), fitted.predict(X))
    np.testing.assert_allclose(fitted.transform(X).sum(axis=1), 1)
    score = fitted.score_samples(X).sum() / X.sum()
    assert fitted.score(X) == pytest.approx(score)
    assert fitted.perplexity(X, "bound") == pytest.approx(np.exp(-score))
    assert fitted.get_feature_names_out().tolist() == ["pcp0", "pcp1", "pcp2"]


def test_answers_of_the_model_of_the_paper_are_those_of_its_e_step(paper):
    X, _ = corpus(50, 6)
    params = paper._params
    shares, words = (
        np.exp(psi(a) - psi(a.sum(axis=1, keepdims=True)))
        for a in (params.centres, paper.components_)
    )
    level = psi(params.weights) - psi(paper.n_documents_ + paper.alpha_)
    logs = X @ np.log(shares @ words).T + level
    members = paper.predict_proba(X)
    np.testing.assert_allclose(members, softmax(logs, axis=1), atol=1e-12)
    np.testing.assert_allclose(paper.transform(X), members @ paper.cluster_topics_)
    np.testing.assert_allclose(paper.score_samples(X), logsumexp(logs, axis=1))


@pytest.mark.parametrize("model", ["fitted", "paper"])
def test_the_bound_is_below_what_the_posterior_predicts(model, request):
    """p(x) under q, by draws of all parameters and of the shares of documents."""
    fitted = request.getfixturevalue(model)
    X = corpus(6, 6, length=6)[0].toarray()
    params, rng = fitted._params, np.random.default_rng(0)
    draws = np.empty((4000, len(X)))
    for one in draws:
        pi = rng.dirichlet(params.weights)
        centres = np.array([rng.dirichlet(a) for a in params.centres])
        topics = np.array([rng.dirichlet(a) for a in fitted.components_])
        shares = centres[rng.choice(len(pi), len(X), p=pi / pi.sum())]
        if params.concentration is not None:
            s = params.concentration
            shares = np.array([rng.dirichlet(np.maximum(s * own, 1e-12)) for own in shares])
        one[:] = (X * np.log(shares @ topics)).sum(axis=1)
    exact = logsumexp(draws, axis=0) - np.log(len(draws))
    spread = np.exp(draws - exact).std(axis=0) / np.sqrt(len(draws))
    gap = exact - fitted.score_samples(X)
    assert np.all(gap > -4 * spread) and gap.max() < 3


def test_labels_are_those_of_predict(fitted):
    X = corpus()[0]
    assert np.array_equal(fitted.predict(X), fitted.labels_)
    assert np.array_equal(PCP(3, 8, random_state=0).fit_predict(X), fitted.labels_)


def test_draws_follow_the_model(fitted):
    X, clusters = fitted.sample(20_000, length=30, random_state=1)
    shares = np.bincount(clusters, minlength=fitted.n_clusters_) / 20_000
    error = np.sqrt(fitted.weights_ * (1 - fitted.weights_) / 20_000)
    assert np.all(np.abs(shares - fitted.weights_) < 6 * error)
    words = X[clusters == 1].sum(axis=0)
    p = fitted.cluster_topics_[1] @ fitted.topics_
    error = np.sqrt(p * (1 - p) / words.sum())
    assert np.all(np.abs(words / words.sum() - p) < 6 * error)
    assert abs(X.sum(axis=1).mean() - 30) < 6 * np.sqrt(30 / 20_000)
    assert fitted.score(X[:500]) == pytest.approx(fitted.score(corpus(500, 9)[0]), rel=0.05)


def test_documents_seen_half_are_completed_better_than_by_words_alone(fitted):
    X, _ = corpus(100, 7)
    one = PCP(1, 1, random_state=0).fit(corpus()[0])
    assert fitted.perplexity(X) < 0.7 * one.perplexity(X)


# ------------------------------------------------ laws of a fit


def test_weight_two_is_repetition_and_weight_zero_absence():
    X, _ = corpus(80, 8)
    weight = np.random.default_rng(0).integers(0, 3, 80)
    repeated = sparse.csr_array(sparse.vstack([X[[i]] for i in np.repeat(np.arange(80), weight)]))
    a = PCP(3, 5, random_state=0).fit(X, sample_weight=weight)
    b = PCP(3, 5, random_state=0).fit(repeated)
    assert a.n_documents_ == b.n_documents_ == weight.sum()
    same(a, b, 1e-5)
    assert np.array_equal(a.labels_, b.predict(X))


@inferences
def test_blocks_do_not_matter(inference):
    X, _ = corpus(150, 9)
    options = {"inference": inference, "random_state": 0, "n_init": 2}
    wanted = PCP(3, 5, **options).fit(X)
    got = PCP(3, 5, **options).fit(Cut(X, [1, 40, 41, 100]))
    same(got, wanted, 1e-5)
    for ask in ("predict_proba", "score_samples", "transform"):
        answers = getattr(wanted, ask)(Cut(X, [7, 90])), getattr(wanted, ask)(X)
        np.testing.assert_allclose(*answers, rtol=1e-9, atol=1e-12)


@unfinished
def test_blocks_do_not_matter_to_many_clusters():
    X, _ = corpus(250, 10)
    options = {"document_concentration": None, "random_state": 0, "max_iter": 12}
    wanted = PCP(3, "documents", **options).fit(X)
    assert wanted.n_clusters_ < 250
    same(PCP(3, "documents", **options).fit(Cut(X, [3, 100, 101])), wanted, 1e-5)


@unfinished
@pytest.mark.parametrize("n_clusters", [5, "documents"])
def test_threads_give_the_same_bits(n_clusters):
    X = Cut(corpus(250, 11)[0], [50, 100, 150, 200])
    one, two = [PCP(3, n_clusters, random_state=0, max_iter=8, n_jobs=n).fit(X) for n in (1, 2)]
    assert one.lower_bounds_ == two.lower_bounds_
    assert np.array_equal(one.topics_, two.topics_)


@unfinished
def test_a_cluster_of_machines_gives_a_fit_as_good(client):
    X = corpus(200, 12)[0]
    wanted = PCP(3, 4, random_state=0).fit(X)
    got = PCP(3, 4, random_state=0, executor=client).fit(X)
    # documents forget where they were between passes: not the same steps
    assert got.lower_bound_ == pytest.approx(wanted.lower_bound_, rel=1e-3)
    assert adjusted_rand_score(got.labels_, wanted.labels_) > 0.95


def test_dense_sparse_and_single_precision_agree():
    X, _ = corpus(100, 13)
    wanted = PCP(3, 4, random_state=0).fit(X)
    same(PCP(3, 4, random_state=0).fit(X.toarray()), wanted)
    single = PCP(3, 4, random_state=0).fit(X.astype(np.float32))
    np.testing.assert_allclose(single.topics_, wanted.topics_, rtol=1e-3, atol=1e-6)
    assert single.transform(X.astype(np.float32)).dtype == np.float32


def test_a_file_holds_all_of_it(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = mixfold.load(tmp_path / "model")
    X, _ = corpus(30, 14)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.perplexity(X) == fitted.perplexity(X)
    assert again.n_clusters_ == fitted.n_clusters_


@unfinished
def test_a_fit_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    X, _ = corpus(100, 15)
    options = {"random_state": 0, "tol": 0.0, "max_iter": 12, "n_init": 2}
    whole = PCP(3, 5, **options).fit(X)
    step, n_steps = PCPModel.update, iter(range(100))

    def interrupted(*args):
        if next(n_steps) == 5:
            raise KeyboardInterrupt
        return step(*args)

    monkeypatch.setattr(PCPModel, "update", interrupted)
    part = PCP(3, 5, checkpoint=tmp_path / "part", **options).fit(X)
    assert part.stop_reason_ == "interrupted" and part.n_iter_ == 4
    monkeypatch.setattr(PCPModel, "update", step)
    same(PCP(3, 5, checkpoint=tmp_path / "part", **options).fit(X), whole)


# ------------------------------------------------ a stream


def test_batches_of_a_stream_end_near_a_fit():
    X, labels = corpus(1200, 16)
    stream = PCP(3, 6, random_state=0, total_samples=1200)
    for a in range(0, 1200, 200):
        stream.partial_fit(X[a : a + 200])
    assert stream.n_iter_ == 6
    whole = PCP(3, 6, random_state=0).fit(X)
    assert stream.perplexity(X) < 1.02 * whole.perplexity(X)
    assert adjusted_rand_score(labels, stream.predict(X)) > 0.9


def test_a_stream_can_be_saved_between_batches(tmp_path):
    X, _ = corpus(300, 17)
    stream = PCP(3, 4, random_state=0, total_samples=300).partial_fit(X[:200])
    stream.save(tmp_path / "stream")
    again = mixfold.load(tmp_path / "stream").partial_fit(X[200:])
    np.testing.assert_array_equal(again.topics_, stream.partial_fit(X[200:]).topics_)


def test_a_stream_that_stands_for_its_only_batch_makes_a_step_of_the_fit():
    X, _ = corpus(100, 18)
    stream = PCP(3, 4, random_state=0, total_samples=100, cluster_topic_prior=0.5,
                 topic_word_prior=0.1).partial_fit(X)  # fmt: skip
    before = stream._params
    stream._learn_batch(stream._open(X, reset=False), True)  # rate one
    model = stream._make_model((before,))
    [block] = open_source(X).blocks(100)
    stats = model.expect(model.prepare(before), block, None)
    np.testing.assert_allclose(stream._params.centres, 0.5 + stats.centres, rtol=1e-9)
    np.testing.assert_allclose(stream._params.words.topics, 0.1 + stats.words.T, rtol=1e-9)


# ------------------------------------------------ corners


def test_documents_without_words_have_the_clusters_of_all():
    X, _ = corpus(100, 19)
    holes = X.toarray()
    holes[[3, 50]] = 0
    model = PCP(3, 4, random_state=0).fit(holes)
    same(PCP(3, 4, random_state=0).fit(np.delete(holes, [3, 50], axis=0)), model, 1e-6)
    assert model.n_documents_ == 98 and model.labels_.shape == (100,)
    level = np.exp(psi(model._params.weights))  # E ln of the weights, as the E step has it
    np.testing.assert_allclose(model.predict_proba(holes)[3], level / level.sum())
    assert model.score_samples(holes)[50] == pytest.approx(0, abs=0.05)  # a bound of it
    assert model.score_samples(holes)[50] <= 0
    with pytest.raises(ValueError, match="no document with a word"):
        PCP(2, 2).fit(np.zeros((4, 3)))


def test_more_clusters_than_documents():
    X, _ = corpus(6, 20)
    with pytest.warns(DegenerateWarning, match=r"n_clusters=9 .* the 6 documents .* 6 are used"):
        model = PCP(2, 9, random_state=0).fit(X)
    assert model.n_clusters_ <= 6


@pytest.mark.parametrize("inference", ["structured", "mean_field"])
@pytest.mark.parametrize(("n_topics", "n_clusters"), [(1, 3), (3, 1), (1, 1), (1, "documents")])
def test_one_topic_or_one_cluster(inference, n_topics, n_clusters):
    X, _ = corpus(60, 21)
    model = PCP(n_topics, n_clusters, inference=inference, random_state=0).fit(X)
    if n_topics == 1:  # all clusters have the same words: those of the corpus
        words = np.asarray(X.sum(axis=0)).ravel() + model.topic_word_prior_
        np.testing.assert_allclose(model.topics_[0], words / words.sum(), rtol=1e-6)
    assert np.isfinite(model.perplexity(X)) and np.isfinite(model.lower_bound_)


def test_a_single_document():
    model = PCP(2, "documents", random_state=0).fit([[3.0, 0, 1, 2]])
    assert model.n_clusters_ == 1 and model.predict([[1.0, 0, 0, 0]]) == [0]


def test_words_never_seen_are_possible_and_counts_need_not_be_whole():
    X, _ = corpus(80, 22)
    X = X.toarray()
    X[:, 29] = 0
    model = PCP(3, 4, random_state=0).fit(X * 0.5)
    new = np.zeros((1, 30))
    new[0, 29] = 2
    assert np.isfinite(model.score_samples(new)).all()
    assert model.n_tokens_ == X.sum() / 2


def test_priors_are_kept_where_they_are_given():
    X, _ = corpus(80, 23)
    options = {"document_concentration": None, "random_state": 0}
    model = PCP(3, 4, cluster_topic_prior=0.7, topic_word_prior=0.2, **options).fit(X)
    assert np.all(model.cluster_topic_prior_ == 0.7) and model.topic_word_prior_ == 0.2
    learned = PCP(3, 4, tol=1e-4, **options).fit(X)
    assert learned.n_iter_ > 10
    assert np.ptp(learned.cluster_topic_prior_) > 0 and learned.topic_word_prior_ != 0.05
    assert learned.lower_bound_ > model.lower_bound_
    own = PCP(3, 4, cluster_topic_prior=0.7, topic_word_prior=0.2, document_concentration=5.0,
              alpha=2.0, random_state=0).fit(X)  # fmt: skip
    assert np.all(own.cluster_topic_prior_ == 0.7) and own.topic_word_prior_ == 0.2
    assert own.document_concentration_ == 5.0 and own.alpha_ == 2.0


def test_priors_are_learned_where_clusters_are_plain(rng):
    plain = rng.poisson(np.kron(np.eye(2), np.full((30, 3), 3.0)))
    model = PCP(2, 2, random_state=0).fit(plain)
    assert model.converged_ and model.n_iter_ > 10
    assert (model.cluster_topic_prior_ < 0.02).all() and model.topic_word_prior_ != 0.05
    kept = PCP(2, 2, cluster_topic_prior=1.0, random_state=0).fit(plain)
    assert model.lower_bound_ > kept.lower_bound_


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"inference": "gibbs"}, ValueError, "'inference'.*structured.*mean_field.*gibbs"),
        ({"n_clusters": 0}, ValueError, "'n_clusters'"),
        ({"n_clusters": "rows"}, ValueError, "'n_clusters'.*documents"),
        ({"alpha": 0}, ValueError, "'alpha'"),
        ({"alpha": "learned"}, ValueError, "'alpha'.*learn"),
        ({"document_concentration": 0}, ValueError, "'document_concentration'"),
        ({"init_params": "zero"}, ValueError, "'init_params'.*kmeans.*random"),
        ({"alpha": "learn", "n_clusters": 1}, ValueError, "n_clusters of 2 or more.*alpha=1.0"),
        (
            {"document_concentration": 3.0, "inference": "mean_field"},
            ValueError,
            "give document_concentration=None, or inference='structured'",
        ),
        ({"n_init": 0}, ValueError, "'n_init'"),
        ({"learning_decay": 0.4}, ValueError, "'learning_decay'"),
    ],
)
def test_settings_that_make_no_sense(settings, error, message):
    with pytest.raises(error, match=message):
        PCP(**settings).fit(np.ones((5, 3)))


def test_entries_that_are_no_counts():
    with pytest.raises(ValueError, match="Negative values in data"):
        PCP(2, 2).fit([[1.0, -1.0], [2.0, 3.0]])
    with pytest.raises(ValueError, match=r"row 0, column 1.*put 0"):
        PCP(2, 2).fit([[1.0, np.nan], [2.0, 3.0]])
    with pytest.raises(NotFittedError):
        PCP().predict([[1.0]])


# ------------------------------------------------ news


def news(path) -> tuple[Any, np.ndarray]:
    data = np.load(path)
    parts = data["data"].astype(float), data["indices"], data["indptr"]
    return sparse.csr_array(parts, shape=tuple(data["shape"])), data["y"]


@pytest.mark.slow
@unfinished
def test_groups_of_news_are_found(shared_data):
    X, y = news(shared_data("newsgroup4.npz"))
    model = PCP(20, 4, random_state=0, max_iter=40).fit(X)
    found = normalized_mutual_info_score(y, model.labels_, average_method="max")
    assert found > 0.65  # .78 on average over starts


@pytest.mark.slow
@unfinished
@pytest.mark.parametrize(("n_topics", "dominant", "share"), [(30, 4, 0.8), (50, 3, 0.93)])
def test_few_of_twenty_clusters_dominate(shared_data, n_topics, dominant, share):
    """The case study of Yu (2006), 9.3.1: each large cluster is mostly of one group or two."""
    X, y = news(shared_data("newsgroup4.npz"))
    model = PCP(n_topics, 20, cluster_topic_prior=1 / n_topics, random_state=0).fit(X)
    assert dominant < model.n_clusters_ < 20
    table = np.zeros((model.n_clusters_, 4))
    np.add.at(table, (model.labels_, y), 1)
    sizes = np.sort(table.sum(axis=1))[::-1]
    assert sizes[:dominant].sum() > share * len(y)
    assert sizes[dominant - 1] > 5 * sizes[dominant]
    largest = table[np.argsort(-table.sum(axis=1))[:dominant]]
    kinds = largest > 0.3 * largest.sum(axis=1, keepdims=True)
    # every group has a cluster, and only one
    np.testing.assert_array_equal(kinds.sum(axis=0), 1)
    together = 0 if dominant == 4 else 1
    assert (kinds.sum(axis=1) == 2).sum() == together
