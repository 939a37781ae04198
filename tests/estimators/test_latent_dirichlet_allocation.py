"""LatentDirichletAllocation: laws, corners, streams, and scikit-learn's beside it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation as Theirs
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import mixfold
from mixfold import PCP, DegenerateWarning, LatentDirichletAllocation
from mixfold.contracts import Block
from mixfold.engine import online
from mixfold.engine.executors.threads import ThreadExecutor
from mixfold.engine.schedules import learn_batch
from mixfold.engine.sources import open_source
from mixfold.estimators.topics import latent_dirichlet_allocation as module
from mixfold.models.topics.lda import LDAModel
from mixfold.models.topics.records import TopicParams
from mixfold.models.topics.streams import TopicStream

K, D = 4, 40


def draw(rng: np.random.Generator, n: int, length: int = 40) -> sparse.csr_array:
    topics = np.kron(np.eye(K), np.ones(D // K)) * rng.gamma(1.0, size=(K, D)) + 1e-3
    topics /= topics.sum(axis=1, keepdims=True)
    shares = rng.dirichlet(np.full(K, 0.2), n)
    return sparse.csr_array(
        [
            rng.multinomial(m, p)
            for m, p in zip(rng.poisson(length, n), shares @ topics, strict=True)
        ]
    ).astype(float)


@pytest.fixture(scope="module")
def X() -> sparse.csr_array:
    return draw(np.random.default_rng(3), 400)


@pytest.fixture(scope="module")
def model(X: sparse.csr_array) -> LatentDirichletAllocation:
    return LatentDirichletAllocation(K, random_state=0).fit(X)


class Cut:
    """The same rows in other blocks."""

    def __init__(self, X, rows: int, **sides) -> None:
        self._source, self._rows = open_source(X, **sides), rows

    def __getattr__(self, name: str):
        return getattr(self.__dict__["_source"], name)

    def blocks(self, max_rows: int | None = None):
        return self._source.blocks(max_rows or self._rows)


def same(one, other, rtol: float = 1e-6) -> None:
    np.testing.assert_allclose(one.components_, other.components_, rtol=rtol, atol=1e-8)
    np.testing.assert_allclose(one.doc_topic_prior_, other.doc_topic_prior_, rtol=rtol)
    np.testing.assert_allclose(one.lower_bound_, other.lower_bound_, rtol=rtol)


# ------------------------------------------------ fits


def test_topics_are_found(model, X) -> None:
    assert model.converged_ and not model.events_
    groups = sorted(sorted({j // (D // K) for j in words}) for words in model.top_words(5))
    assert groups == [[0], [1], [2], [3]]
    assert (np.diff(model.lower_bounds_) > -1e-9).all()
    assert 0.3 < model.doc_topic_prior_.sum() < 2.0  # drawn with 0.8
    assert (model.n_documents_, model.n_tokens_) == (400, X.sum())


def test_priors_are_learned_where_topics_are_plain(rng) -> None:
    """The topics rest after two steps, before the priors have moved."""
    rates = np.kron(np.eye(2), np.full((30, 3), 3.0))
    plain = rng.poisson(rates).astype(float)
    learned = LatentDirichletAllocation(2, random_state=0).fit(plain)
    assert learned.converged_ and (learned.doc_topic_prior_ < 0.02).all()
    assert learned.topic_word_prior_ != 0.05
    kept = LatentDirichletAllocation(2, doc_topic_prior=1.0, random_state=0).fit(plain)
    assert learned.lower_bound_ > kept.lower_bound_ + 0.05
    assert learned.perplexity(plain) < 0.95 * kept.perplexity(plain)
    both = {"doc_topic_prior": 0.1, "topic_word_prior": 0.1, "random_state": 0}
    assert LatentDirichletAllocation(2, **both).fit(plain).n_iter_ < 10  # nothing to wait for


def test_documents_without_structure_are_told() -> None:
    with pytest.warns(DegenerateWarning, match=r"documents hardly differ .* fewer topics"):
        flat = LatentDirichletAllocation(3, random_state=0).fit(np.ones((100, 10)))
    assert flat.converged_ and 50 < flat.doc_topic_prior_.sum() <= 100
    assert flat.perplexity(np.ones((4, 10))) == pytest.approx(10)


@pytest.mark.parametrize("n_jobs, rows", [(1, 37), (2, 100), (2, 400)])
def test_blocks_and_threads_do_not_matter(X, n_jobs: int, rows: int) -> None:
    how = {"max_iter": 15, "tol": 0.0, "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        one = LatentDirichletAllocation(K, **how).fit(X)
        other = LatentDirichletAllocation(K, n_jobs=n_jobs, **how).fit(Cut(X, rows))
    same(one, other)
    np.testing.assert_allclose(one.transform(X), other.transform(Cut(X, 11)), rtol=1e-5, atol=1e-8)


def test_dense_and_float32_counts(X) -> None:
    how = {"max_iter": 10, "tol": 0.0, "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        one = LatentDirichletAllocation(K, **how).fit(X)
        dense = LatentDirichletAllocation(K, **how).fit(X.toarray())
        single = LatentDirichletAllocation(K, **how).fit(X.astype(np.float32))
    same(one, dense)
    same(one, single)
    assert single.transform(X.astype(np.float32)).dtype == np.float32


def test_weight_two_is_a_repeated_document(X) -> None:
    how = {"max_iter": 10, "tol": 0.0, "random_state": 0}
    weight = np.random.default_rng(0).integers(0, 3, X.shape[0])
    repeated = X[np.repeat(np.arange(X.shape[0]), weight)]
    with pytest.warns(ConvergenceWarning):
        one = LatentDirichletAllocation(K, **how).fit(X, sample_weight=weight)
        other = LatentDirichletAllocation(K, **how).fit(repeated)
    same(one, other)
    assert one.n_tokens_ == other.n_tokens_ and one.n_documents_ == weight.sum()
    a, b = one.perplexity(X, "bound", sample_weight=weight), other.perplexity(repeated, "bound")
    np.testing.assert_allclose(a, b, rtol=1e-6)


def test_dask_gives_the_same(X, client) -> None:
    how = {"max_iter": 8, "tol": 0.0, "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        there = LatentDirichletAllocation(K, executor="dask", **how).fit(X)
        here = LatentDirichletAllocation(K, **how).fit(X)
    # documents may begin anew in each pass there: the same optimum to the inner tolerance
    np.testing.assert_allclose(there.lower_bound_, here.lower_bound_, rtol=1e-3)
    np.testing.assert_allclose(there.topics_, here.topics_, atol=5e-3)


def test_our_bound_is_not_below_theirs(X) -> None:
    """Same priors, same definition: the bound of the training documents."""
    prior, b = 0.2, 0.1
    theirs = Theirs(K, doc_topic_prior=prior, topic_word_prior=b, learning_method="batch",
                    max_iter=60, mean_change_tol=1e-6, random_state=0).fit(X)  # fmt: skip
    ours = LatentDirichletAllocation(
        K, doc_topic_prior=prior, topic_word_prior=b, random_state=0, tol=1e-5
    ).fit(X)
    assert (ours.doc_topic_prior_ == prior).all() and ours.topic_word_prior_ == b
    assert ours.lower_bound_ * X.sum() >= theirs.score(X) - 1e-4 * abs(theirs.score(X))
    # at their topics, our bound is theirs
    params = TopicParams(theirs.components_, np.full(K, prior), b)
    model = LDAModel(params, sweeps=500, tol=1e-7)
    stats = model.expect(model.prepare(params), Block(X), None)
    np.testing.assert_allclose(model.objective(params, stats), theirs.score(X), rtol=1e-4)


# ------------------------------------------------ corners


def test_empty_documents_and_columns(X) -> None:
    wide = sparse.csr_array(sparse.hstack([X, sparse.csr_array((X.shape[0], 2))]))
    holed = sparse.csr_array(sparse.vstack([sparse.csr_array((3, D + 2)), wide]))
    how = {"max_iter": 10, "tol": 0.0, "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        one = LatentDirichletAllocation(K, **how).fit(holed)
        other = LatentDirichletAllocation(K, **how).fit(wide)
    same(one, other)
    prior = one.doc_topic_prior_ / one.doc_topic_prior_.sum()
    np.testing.assert_allclose(one.transform(holed)[:3], np.tile(prior, (3, 1)))
    np.testing.assert_allclose(one.score_samples(holed)[:3], 0.0, atol=1e-12)
    assert np.isfinite(one.topics_).all() and (one.topics_ > 0).all()
    unseen = np.zeros((1, D + 2))
    unseen[0, [0, D]] = 1
    assert np.isfinite(one.score_samples(unseen)).all()  # a word never seen


def test_nothing_to_learn_from() -> None:
    with pytest.raises(ValueError, match="no document with a word"):
        LatentDirichletAllocation(2).fit(np.zeros((3, 4)))
    with pytest.raises(ValueError, match="weight is zero in every row"):
        LatentDirichletAllocation(2).fit(np.ones((3, 4)), sample_weight=np.zeros(3))
    with pytest.raises(ValueError, match="no document with a word"):
        LatentDirichletAllocation(2).fit(np.eye(2, 4, -1), sample_weight=[1, 0])
    with pytest.raises(ValueError, match="Negative values in data"):
        LatentDirichletAllocation(2).fit(np.array([[1.0, -1.0]]))
    with pytest.raises(ValueError, match="lacks the entry"):
        LatentDirichletAllocation(2).fit(np.array([[1.0, np.nan]]))


@pytest.mark.parametrize("method", ["batch", "online"])
@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
def test_one_topic_and_one_document(method: str) -> None:
    x = np.array([[3.0, 1.0, 0.0]])
    one = LatentDirichletAllocation(1, learning_method=method, random_state=0).fit(x)
    np.testing.assert_allclose(one.transform(x), 1.0)
    many = LatentDirichletAllocation(5, learning_method=method, random_state=0).fit(x)
    np.testing.assert_allclose(many.transform(x).sum(), 1.0)
    assert np.isfinite(many.score(x))


def test_counts_need_not_be_whole(X) -> None:
    half = LatentDirichletAllocation(K, random_state=0).fit(X * 0.5)
    assert half.n_tokens_ == 0.5 * X.sum()
    assert np.isfinite(half.perplexity(X * 0.5))


# ------------------------------------------------ streams


def test_online_is_as_good_as_batch(X, model) -> None:
    test = draw(np.random.default_rng(3), 800)[400:]
    online = LatentDirichletAllocation(K, learning_method="online", batch_size=64, random_state=0)
    online.fit(X)
    assert online.stop_reason_ == "converged"
    assert len(online.lower_bounds_) == online.n_iter_ <= online.n_passes_
    for method in ("completion", "bound"):
        assert online.perplexity(test, method) < 1.03 * model.perplexity(test, method)
    again = LatentDirichletAllocation(K, learning_method="online", batch_size=64, random_state=0)
    same(online, again.fit(Cut(X, 33)))  # order and batches are not those of blocks


@pytest.mark.parametrize("batch", [23, 100])
def test_a_stream_is_as_good_as_a_batch(X, model, batch: int, monkeypatch) -> None:
    monkeypatch.setattr(module, "LEAST_START", 150)
    monkeypatch.setattr(module, "START_OF_TOPIC", 1)
    test = draw(np.random.default_rng(3), 800)[400:]
    stream = LatentDirichletAllocation(K, random_state=0, batch_size=50)
    for first in range(0, X.shape[0], batch):
        stream.partial_fit(X[first : first + batch])
        np.testing.assert_allclose(stream.transform(X[:2]).sum(axis=1), 1.0)
    assert stream._held is None  # nothing is held any more
    assert stream.n_documents_ == 400 and stream.n_tokens_ == X.sum()
    for method in ("completion", "bound"):
        assert stream.perplexity(test, method) < 1.05 * model.perplexity(test, method)


def test_a_short_stream_is_learned_as_one_corpus(X, model) -> None:
    stream = LatentDirichletAllocation(K, random_state=0)
    for first in range(0, 400, 100):
        stream.partial_fit(X[first : first + 100])
    assert abs(stream.perplexity(X) / model.perplexity(X) - 1) < 0.02


def test_a_stream_goes_on_after_a_fit(X, model, tmp_path) -> None:
    one = LatentDirichletAllocation(K, random_state=0).fit(X)
    before = one.perplexity(X)
    one.save(tmp_path / "m")
    one.partial_fit(X[:100])
    assert one.n_documents_ == 500
    assert abs(one.perplexity(X) / before - 1) < 0.02
    other = mixfold.load(tmp_path / "m").partial_fit(X[:100])
    same(one, other, 1e-10)
    two = mixfold.load(tmp_path / "m")
    one.save(tmp_path / "n")
    same(one.partial_fit(X[100:200]), mixfold.load(tmp_path / "n").partial_fit(X[100:200]), 1e-10)
    with pytest.raises(ValueError, match="features"):
        two.partial_fit(X[:, :5])


def test_a_fit_forgets_what_a_stream_held(X) -> None:
    one = LatentDirichletAllocation(K, random_state=0).partial_fit(X[:50]).fit(X)
    other = LatentDirichletAllocation(K, random_state=0).fit(X)
    same(one.partial_fit(X[:100]), other.partial_fit(X[:100]), 1e-12)
    assert one.n_documents_ == 500


def test_streams_of_earlier_files_go_on(X, tmp_path) -> None:
    one = LatentDirichletAllocation(K, random_state=0).fit(X).partial_fit(X[:100])
    now = one._schedule
    one._schedule = TopicStream(now.stats, now.weight, now.n_batches)
    one.save(tmp_path / "old")
    one._schedule = now
    same(one.partial_fit(X[100:300]), mixfold.load(tmp_path / "old").partial_fit(X[100:300]), 1e-12)


def test_empty_batches_change_nothing(X, monkeypatch) -> None:
    one = LatentDirichletAllocation(K, random_state=0).fit(X)
    before = one.components_.copy()
    one.partial_fit(np.zeros((3, D)))
    np.testing.assert_array_equal(one.components_, before)


# ------------------------------------------------ files and budgets


@pytest.mark.parametrize("method", ["batch", "online"])
def test_save_and_load(X, tmp_path, method: str) -> None:
    one = LatentDirichletAllocation(K, learning_method=method, random_state=0).fit(X)
    one.save(tmp_path / "m")
    two = mixfold.load(tmp_path / "m")
    np.testing.assert_array_equal(one.transform(X), two.transform(X))
    assert one.perplexity(X) == two.perplexity(X)
    assert one.top_words() == two.top_words()


@pytest.mark.parametrize("method", ["batch", "online"])
def test_time_budget_and_checkpoint(X, tmp_path, method: str) -> None:
    how = {"learning_method": method, "random_state": 0, "checkpoint": str(tmp_path / "c")}
    with pytest.warns(ConvergenceWarning, match="time_budget was used up"):
        short = LatentDirichletAllocation(K, time_budget=1e-4, **how).fit(X)
    assert short.stop_reason_ == "time_budget" and (tmp_path / "c").exists()
    done = LatentDirichletAllocation(K, **how).fit(X)
    assert done.converged_ and not (tmp_path / "c").exists()
    assert done.perplexity(X, "bound") <= short.perplexity(X, "bound") * 1.001


@pytest.mark.parametrize("number", [3, 9])
def test_online_goes_on_from_the_batch_where_it_was_interrupted(
    X, tmp_path, monkeypatch, number: int
) -> None:
    how = {"learning_method": "online", "batch_size": 64, "max_iter": 4, "tol": 0.0,
           "random_state": 0}  # fmt: skip
    with pytest.warns(ConvergenceWarning):
        wanted = LatentDirichletAllocation(K, **how).fit(X)
    made: list[int] = []

    def tired(*given, **named):
        made.append(1)
        if len(made) == number:
            raise KeyboardInterrupt
        return learn_batch(*given, **named)

    monkeypatch.setattr(online, "learn_batch", tired)
    path = tmp_path / "c"
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        LatentDirichletAllocation(K, checkpoint=path, **how).fit(X)
    monkeypatch.setattr(module, "start_by_plsi", None)  # the start is not made again
    with pytest.warns(ConvergenceWarning):
        done = LatentDirichletAllocation(K, checkpoint=path, **how).fit(X)
    np.testing.assert_array_equal(done.components_, wanted.components_)
    assert done.lower_bounds_ == wanted.lower_bounds_
    assert len(made) == 28 + 1  # seven batches in four passes, and the one that was interrupted


def test_an_executor_object(X) -> None:
    one = LatentDirichletAllocation(K, random_state=0, executor=ThreadExecutor(2)).fit(X[:50])
    assert one.transform(X).shape == (400, K)


@pytest.mark.parametrize("kind", [LatentDirichletAllocation, PCP])
def test_draws_that_make_no_sense(X, kind) -> None:
    with pytest.raises(NotFittedError):
        kind().sample()
    model = kind(2, random_state=0, tol=1e9).fit(X[:20])
    for n_samples, length, name in (
        (0, 10, "n_samples"),
        (1.5, 10, "n_samples"),
        (1, -1, "length"),
    ):
        with pytest.raises(ValueError, match=f"'{name}'.* must be "):
            model.sample(n_samples, length)
    assert model.sample(2, length=0)[0].tolist() == [[0] * D] * 2


def test_sample(model) -> None:
    drawn, shares = model.sample(2000, length=30, random_state=0)
    assert drawn.shape == (2000, D) and abs(drawn.sum() / 2000 - 30) < 1
    expected = shares.mean(axis=0) @ model.topics_
    np.testing.assert_allclose(drawn.sum(axis=0) / drawn.sum(), expected, atol=0.01)
    np.testing.assert_allclose(
        shares.mean(axis=0), model.doc_topic_prior_ / model.doc_topic_prior_.sum(), atol=0.04
    )


def test_a_stream_after_a_fit_that_warned_goes_on_from_it(rng: np.random.Generator) -> None:
    """Documents that an unfinished stream held are forgotten before the fit warns."""
    X = rng.poisson(1.0, (500, 12)).astype(float)
    model = LatentDirichletAllocation(3, max_iter=1, tol=0.0, random_state=0)
    model.partial_fit(X[:60])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning):
            model.fit(X)
    model.partial_fit(X[:60])
    assert model.n_documents_ > 500
