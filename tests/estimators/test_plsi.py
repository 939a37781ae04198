"""PLSI, and the answers that all topic models share, against literal formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import mixfold
from mixfold import PLSI, LatentDirichletAllocation
from mixfold.contracts import Block
from mixfold.models.topics.use import split_documents

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rng = np.random.default_rng(5)
    topics = rng.dirichlet(np.full(15, 0.2), 3)
    shares = rng.dirichlet(np.full(3, 0.4), 60)
    return np.array([rng.multinomial(30, p) for p in shares @ topics]).astype(float)


def same(one, other, rtol: float = 1e-7) -> None:
    np.testing.assert_allclose(one.topics_, other.topics_, rtol=rtol, atol=1e-9)
    np.testing.assert_allclose(one.lower_bound_, other.lower_bound_, rtol=rtol)


def test_likelihood_is_that_of_the_fit(X) -> None:
    model = PLSI(3, random_state=0, max_iter=2000, tol=1e-9).fit(X)
    assert (np.diff(model.lower_bounds_) > -1e-12).all()
    theta = model.transform(X)
    literal = (X * np.log(np.maximum(theta @ model.topics_, 1e-300))).sum(axis=1)
    # shares of transform end their steps a little sooner
    np.testing.assert_allclose(model.score_samples(X), literal, rtol=1e-5)
    np.testing.assert_allclose(model.score(X), model.lower_bound_, rtol=1e-5)
    by_hand = np.exp(-literal.sum() / X.sum())
    np.testing.assert_allclose(model.perplexity(X, "bound"), by_hand, rtol=1e-5)


@pytest.mark.parametrize("how", [{"n_jobs": 1}, {"n_jobs": 2}])
def test_forms_of_counts_do_not_matter(X, how) -> None:
    one = PLSI(3, random_state=0, max_iter=20).fit(X)
    same(one, PLSI(3, random_state=0, max_iter=20, **how).fit(sparse.csc_array(X)))
    same(one, PLSI(3, random_state=0, max_iter=20, **how).fit(X.astype(np.float32)))


def test_weight_two_is_a_repeated_document(X) -> None:
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    one = PLSI(3, random_state=0, max_iter=20, smoothing=0.1).fit(X, sample_weight=weight)
    two = PLSI(3, random_state=0, max_iter=20, smoothing=0.1).fit(np.repeat(X, weight, axis=0))
    same(one, two)


def test_dask_gives_as_good_a_fit(X, client) -> None:
    there = PLSI(3, random_state=0, max_iter=30, executor="dask").fit(X)
    here = PLSI(3, random_state=0, max_iter=30).fit(X)
    assert there.lower_bound_ > here.lower_bound_ - 1e-3


def test_words_never_seen(X) -> None:
    wide = np.hstack([X, np.zeros((len(X), 1))])
    new = np.zeros((2, 16))
    new[0, [0, 15]] = 1
    new[1, 0] = 1
    plain = PLSI(3, random_state=0, max_iter=20).fit(wide)
    scores = plain.score_samples(new)
    assert scores[0] == -np.inf and np.isfinite(scores[1])
    assert plain.perplexity(new, "bound") == np.inf
    stored = sparse.csr_array(([0.0, 2.0, 0.0], ([0, 0, 1], [15, 0, 15])), shape=(2, 16))
    assert stored.nnz == 3  # zeros that are stored are no words
    np.testing.assert_allclose(plain.score_samples(stored), [2 * scores[1], 0.0])
    smooth = PLSI(3, smoothing=0.1, random_state=0, max_iter=20).fit(wide)
    assert np.isfinite(smooth.score_samples(new)).all() and (smooth.topics_ > 0).all()
    assert np.isfinite(plain.transform(new)).all()


def test_corners(X) -> None:
    holed = np.vstack([np.zeros((2, 15)), X])
    one = PLSI(3, random_state=0, max_iter=20).fit(holed)
    same(one, PLSI(3, random_state=0, max_iter=20).fit(X))
    np.testing.assert_allclose(one.transform(holed)[:2], 1 / 3)
    assert (one.score_samples(holed)[:2] == 0).all()
    unigram = PLSI(1, random_state=0).fit(X)
    np.testing.assert_allclose(unigram.topics_[0], X.sum(axis=0) / X.sum())
    with pytest.warns(mixfold.DegenerateWarning, match="more than the 3 tokens"):
        PLSI(5, random_state=0).fit([[1.0, 2.0]])
    with pytest.raises(ValueError, match="no document with a word"):
        PLSI(2).fit(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="Negative values in data"):
        PLSI(2).fit([[1.0, -2.0]])


def test_tempering_fits_less_closely(X) -> None:
    close = PLSI(3, random_state=0, max_iter=200).fit(X)
    loose = PLSI(3, random_state=0, max_iter=200, tempering=0.8).fit(X)
    assert loose.score(X) < close.score(X)


def test_shares_are_those_of_the_tokens(X) -> None:
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    model = PLSI(3, random_state=0, max_iter=3000, tol=1e-10).fit(X, sample_weight=weight)
    tokens = weight * X.sum(axis=1)
    literal = tokens @ model.transform(X) / tokens.sum()
    np.testing.assert_allclose(model.topic_shares_, literal, atol=1e-3)
    assert model.topic_shares_.sum() == pytest.approx(1)
    for smoothing in (0.0, 5.0):  # tokens that are added are nobody's
        begun = PLSI(3, random_state=0, max_iter=0, smoothing=smoothing).fit(X)
        assert begun.topic_shares_ is None
        one = PLSI(3, random_state=0, max_iter=1, smoothing=smoothing).fit(X)  # from equal shares
        each = begun.topics_ / np.maximum(begun.topics_.sum(axis=0), 1e-300)
        np.testing.assert_allclose(one.topic_shares_, each @ X.sum(axis=0) / X.sum())


def test_files_budgets_and_checkpoints(X, tmp_path) -> None:
    one = PLSI(3, random_state=0, smoothing=0.1).fit(X)
    one.save(tmp_path / "m")
    two = mixfold.load(tmp_path / "m")
    np.testing.assert_array_equal(one.transform(X), two.transform(X))
    np.testing.assert_array_equal(one.topic_shares_, two.topic_shares_)
    how = {"random_state": 0, "checkpoint": str(tmp_path / "c"), "smoothing": 0.1}
    with pytest.warns(ConvergenceWarning, match="time_budget"):
        short = PLSI(3, time_budget=1e-4, **how).fit(X)
    assert (tmp_path / "c").exists()
    done = PLSI(3, **how).fit(X)
    assert not (tmp_path / "c").exists() and not done.events_
    assert done.lower_bound_ > short.lower_bound_
    np.testing.assert_allclose(done.lower_bound_, one.lower_bound_, rtol=0.02)


# ------------------------------------------------ perplexities


def test_halves_do_not_depend_on_blocks(X) -> None:
    S = sparse.csr_array(X)
    one, other = split_documents(Block(S), 7)
    np.testing.assert_array_equal((one + other).toarray(), X)
    np.testing.assert_array_equal(np.asarray(one.sum(axis=1)).ravel(), X.sum(axis=1) // 2)
    for first in range(0, len(X), 13):
        part, _ = split_documents(Block(S[first : first + 13], first), 7)
        np.testing.assert_array_equal(part.toarray(), one.toarray()[first : first + 13])
    assert (split_documents(Block(S), 8)[0] != one).nnz > 0
    real, rest = split_documents(Block(S * 0.3), 7)
    np.testing.assert_array_equal(real.toarray(), rest.toarray())
    many, rest = split_documents(Block(S * 1e9), 7)  # more than can be drawn, and chance is nothing
    np.testing.assert_array_equal(many.toarray(), rest.toarray())


@pytest.mark.parametrize("kind", [PLSI, LatentDirichletAllocation])
def test_completion_is_the_literal_formula(X, kind) -> None:
    options = {"smoothing": 0.1} if kind is PLSI else {}
    model = kind(3, random_state=0, **options).fit(X)
    short = np.vstack([X, np.eye(15)[:1]])  # the last document has one token: nothing to predict
    given, asked = split_documents(Block(sparse.csr_array(short)), 0)
    theta = model.transform(given)
    some = np.random.default_rng(1).integers(0, 4, len(short)).astype(float)
    for weight in (None, some):
        total = tokens = 0.0
        for n in range(len(X)):
            for j in range(15):
                count = asked.toarray()[n, j] * (1 if weight is None else weight[n])
                total += count * np.log(theta[n] @ model.topics_[:, j])
                tokens += count
        got = model.perplexity(short, sample_weight=weight)
        np.testing.assert_allclose(got, np.exp(-total / tokens), rtol=1e-8)
    with pytest.raises(ValueError, match="no document has two tokens"):
        model.perplexity(np.eye(15))
    with pytest.raises(ValueError, match="method"):
        model.perplexity(X, method="guess")


def test_words_and_export(X) -> None:
    model = PLSI(3, random_state=0, smoothing=0.1).fit(X)
    names = [f"w{j}" for j in range(15)]
    order = np.argsort(-model.topics_, axis=1)[:, :4]
    assert model.top_words(4, names) == [[f"w{j}" for j in row] for row in order]
    with pytest.raises(ValueError, match="vocabulary must name the 15 columns"):
        model.top_words(4, names[:3])
    holed = np.vstack([X, np.zeros((1, 15))])
    parts = model.to_pyldavis(holed, names)
    used = X.sum(axis=0) > 0
    assert len(parts["vocab"]) == used.sum()
    np.testing.assert_allclose(parts["topic_term_dists"].sum(axis=1), 1.0)
    np.testing.assert_allclose(parts["doc_topic_dists"].sum(axis=1), 1.0)
    assert len(parts["doc_lengths"]) == len(X)
    np.testing.assert_array_equal(parts["term_frequency"], X.sum(axis=0)[used])
    with pytest.raises(ValueError, match="no document with a word"):
        model.to_pyldavis(np.zeros((2, 15)))
    apart = PLSI(2, random_state=0).fit(np.kron(np.eye(2), np.full((5, 3), 4.0)))
    apart.topics_ = np.kron(np.eye(2), np.full(3, 1 / 3))
    with pytest.raises(ValueError, match="no word of topic 1 occurs in X"):
        apart.to_pyldavis(np.eye(1, 6))


@pytest.mark.parametrize("n_words", [-1, 2.5, "many", None])
def test_numbers_of_words_that_make_no_sense(X, n_words) -> None:
    with pytest.raises(ValueError, match="'n_words'"):
        PLSI(3, random_state=0, max_iter=2).fit(X).top_words(n_words)
