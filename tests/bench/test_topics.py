"""The measures of the comparison of topic models, by hand; not its times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("psutil", reason="needs psutil: pip install 'mixfold[bench]'")
data = pytest.importorskip("bench.topic_data", reason="needs bench/: run the tests in a clone")

from bench import topic_fits, topics  # noqa: E402


def test_drawn_documents_have_topics() -> None:
    X, truth = data.drawn(150, 80, 5, 40)
    assert X.shape == (150, 80) and 35 < X.sum() / 150 < 45
    assert truth < 0.7 * data.unigram(X, X)


def test_halves_add_up_and_are_completed_by_the_same_formula() -> None:
    X, _ = data.drawn(30, 40, 4, 25)
    given, asked = data.halves(X)
    np.testing.assert_array_equal((given + asked).toarray(), X.toarray())
    lengths = np.asarray(X.sum(axis=1)).ravel()
    np.testing.assert_array_equal(np.asarray(given.sum(axis=1)).ravel(), lengths // 2)
    rng = np.random.default_rng(0)
    shares, words = rng.dirichlet(np.ones(4), 30), rng.dirichlet(np.ones(40), 4)
    dense = asked.toarray()
    expected = np.exp(-(dense * np.log(shares @ words)).sum() / dense.sum())
    assert data.completion(shares, words, asked) == pytest.approx(expected)


def test_a_file_of_documents_gives_them_back(tmp_path: Path) -> None:
    X, _ = data.drawn(70, 40, 4, 25)
    X = sparse.csr_array(sparse.vstack([X, sparse.csr_array((1, 40))]))  # an empty one, too
    data.write_parquet(tmp_path / "X.parquet", X, 32)
    batches = list(data.read_batches(str(tmp_path / "X.parquet"), 40, 20))
    assert max(batch.shape[0] for batch in batches) <= 20
    np.testing.assert_array_equal(sparse.vstack(batches).toarray(), X.toarray())


@pytest.mark.slow
def test_workers_answer(tmp_path: Path) -> None:
    X, _ = data.drawn(160, 60, 4, 30)
    given, asked = data.halves(X[120:])
    files = topics.store(tmp_path, {"train": X[:120], "given": given, "asked": asked})
    peer = topic_fits.converged(threads=1, n_topics=4, most=20, **files)
    own = topic_fits.until(
        threads=1, n_topics=4, target=1.02 * peer["perplexity"], repeats=1, **files
    )
    assert own["perplexity"] <= 1.02 * peer["perplexity"] < data.unigram(X[:120], asked)
    data.write_parquet(tmp_path / "X.parquet", X[:120], 64)
    rest = {"given": files["given"], "asked": files["asked"]}
    got = topic_fits.stream(threads=1, path=str(tmp_path / "X.parquet"), n_words=60, n_topics=4,
                            batch=60, total=120, **rest)  # fmt: skip
    assert got["whole"] > got["peak"] >= 0 and got["perplexity"] < data.unigram(X[:120], asked)
    clocks = topic_fits.per_pass(1, "mixfold:PCP", files["train"], 4, 5, 1)
    assert clocks is not None and set(clocks) == {"cpu", "wall"}


def test_a_library_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_fits, "installed", lambda library: library != "gensim")
    assert topic_fits.per_pass(1, "gensim", "nowhere", 4, 5, 1) is None
    assert topics._rate(1e6, None, "cpu") == "not installed"
    assert topics._rate(1e6, {"cpu": 0.5}, "cpu") == "2,000,000"
    assert topics._rate(1e6, {"cpu": -0.1}, "cpu") == "noise"


def test_a_ratio_needs_an_aim_that_was_reached() -> None:
    peer, own = {"perplexity": 80.0, "cpu": 6.0}, {"perplexity": 79.0, "cpu": 2.0}
    assert topics._times(peer, own, "cpu", 100.0) == "3.00x"
    assert topics._times(peer, own | {"perplexity": 81.0}, "cpu", 100.0) == "not reached"
    assert "no aim" in topics._times(peer, own, "cpu", 75.0)
