"""Perplexities of unseen documents: by hand on small corpora, and on the real ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import sparse
from scipy.stats import beta

from papers import pcp_perplexity
from papers.frame.run import reproduce
from papers.frame.table import Cell
from papers.shared import pcp_corpora

pytestmark = pytest.mark.slow  # a published table, run small

Folder = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """Small corpora under the names of the real ones: each class has words of its own."""

    def make(*names: str) -> Path:
        for name in names:
            about = pcp_corpora.CORPORA[name]
            rng = np.random.default_rng(len(name))
            y = np.arange(120) % about.classes
            law = 0.05 + 2.0 * (np.arange(60) % about.classes == y[:, None])
            X = sparse.csr_matrix(rng.poisson(0.5 * law))
            small = pcp_corpora.CorpusFile(about.file, X.shape, about.classes)
            monkeypatch.setitem(pcp_corpora.CORPORA, name, small)
            np.savez(
                tmp_path / about.file.name, data=X.data, indices=X.indices, indptr=X.indptr,
                shape=X.shape, y=y, names=[f"class {k}" for k in range(about.classes)],
                vocab=[f"word{j}" for j in range(60)],
            )  # fmt: skip
        return tmp_path

    return make


# ------------------------------------------------ corpora


def test_a_tenth_is_held_out() -> None:
    train, test = pcp_corpora.split_held_out(123, np.random.default_rng(0))
    assert len(test) == 12 and sorted([*train, *test]) == list(range(123))
    assert set(test) != set(pcp_corpora.split_held_out(123, np.random.default_rng(1))[1])


def test_corpora_are_read_and_others_refused(folder: Folder) -> None:
    path = folder("Reuters")
    corpus = pcp_corpora.load_corpus("Reuters", path)
    assert corpus.X.shape == (120, 60) and len(corpus.classes) == 5 and corpus.words[3] == "word3"
    some = corpus.some(3, np.random.default_rng(0))
    assert some.X.shape == (40, 60) and some.y.shape == (40,)
    places = {row.tobytes(): i for i, row in enumerate(corpus.X.toarray())}
    assert len(places) == 120, "no document comes twice"
    rows = [places[row.tobytes()] for row in some.X.toarray()]
    np.testing.assert_array_equal(some.y, corpus.y[rows])
    assert (
        pcp_corpora.find_corpora(path)[0] == ("Reuters",)
        and "newsgroup4.npz" in pcp_corpora.find_corpora(path)[1][0]
    )
    with np.load(path / "reuters5.npz") as content:
        arrays = dict(content)
    np.savez(path / "reuters5.npz", **(arrays | {"y": np.zeros(120, int)}))
    with pytest.raises(ValueError, match=r"y of 5 classes .*got .* 1 classes .*Obtain it again"):
        pcp_corpora.load_corpus("Reuters", path)


# ------------------------------------------------ perplexities


def test_frequencies_of_words() -> None:
    train = sparse.csr_matrix([[3.0, 0.0], [0.0, 0.9]])
    test = sparse.csr_matrix([[2.0, 1.0]])
    p = np.array([3.1, 1.0]) / 4.1
    expected = np.exp(-(2 * np.log(p[0]) + np.log(p[1])) / 3)
    assert pcp_perplexity.measure_unigram(train, test) == pytest.approx(expected)


def test_plsi_is_averaged_over_training_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcp_perplexity, "PANEL", 2)
    rng = np.random.default_rng(0)
    shares, topics = rng.dirichlet(np.ones(2), 5), rng.dirichlet(np.ones(4), 2)
    train = rng.poisson(2.0, (6, 4)).astype(float)
    train[2] = 0  # a document without words is nobody's model
    test = rng.poisson(2.0, (3, 4)).astype(float)
    model = SimpleNamespace(transform=lambda X: shares[: X.shape[0]], topics_=topics)
    used = train[[0, 1, 3, 4, 5]]
    weights = used.sum(axis=1) / used.sum()
    total = 0.0
    for x in test:
        each = [
            w * np.prod((theta @ topics) ** x) for w, theta in zip(weights, shares, strict=True)
        ]
        total += np.log(sum(each))
    found = pcp_perplexity.average_over_documents(
        model, sparse.csr_matrix(train), sparse.csr_matrix(test)
    )
    assert found == pytest.approx(np.exp(-total / test.sum()))


def test_plsi_ends_with_the_first_small_step() -> None:
    assert pcp_perplexity.count_steps([-10.0, -9.0, -8.9995, -8.0]) == 3
    assert pcp_perplexity.count_steps([-10.0, -9.0, -8.0]) == 3  # none is small: all of them


def test_models_beat_frequencies_of_words(folder: Folder) -> None:
    corpus = pcp_corpora.load_corpus("Newsgroup", folder("Newsgroup"))
    train, test = corpus.X[:100], corpus.X[100:]
    plain = pcp_perplexity.measure_unigram(train, test)
    for method in pcp_perplexity.METHODS:
        found = pcp_perplexity.measure_method(method, train, test, 4, 0)
        assert found.whole < 0.8 * plain and found.completion < 0.8 * plain, method
        assert (found.clusters is None) == (method != pcp_perplexity.PCP)
        if found.clusters is not None:
            assert 4 <= found.clusters <= 100


# ------------------------------------------------ claims


TOPICS = (5, 10, 50)
VALUES = {
    "pLSI": (968, 860, 712), "LDA": (1010, 912, 762), "PCP": (988, 888, 750),
    "pLSI half": (944, 831, 669), "LDA half": (966, 856, 689), "PCP half": (952, 844, 687),
}  # fmt: skip
SAME = {"Reuters": pcp_perplexity.Reference(912.0, 912.5, 900.0)}


def _curves(**changes: float) -> pcp_perplexity.Curves:
    """Cells for which every claim holds."""
    cells = {}
    for name in pcp_corpora.CORPORA:
        for column, values in VALUES.items():
            for k, value in zip(TOPICS, values, strict=True):
                row = pcp_perplexity.Curves.row(name, k)
                cells[row, column] = Cell(row, column, (value * changes.get(column, 1.0),))
    words = dict.fromkeys(pcp_corpora.CORPORA, 1382.0)
    return pcp_perplexity.Curves(cells, TOPICS, words)


def test_what_holds_and_what_does_not() -> None:
    found = pcp_perplexity.check_claims(_curves(), SAME)
    assert len(found) == 5 and all(check.holds for check in found)
    lower = pcp_perplexity.check_claims(_curves(LDA=0.96), {})
    assert [check.holds for check in lower] == [False, True, True]
    worst = pcp_perplexity.check_claims(_curves(pLSI=2.0), {})
    assert [check.holds for check in worst] == [True, False, False]
    for other in ({"by_equations": 914.0}, {"scikit": 880.0}):
        moved = {"Reuters": replace(SAME["Reuters"], **other)}
        assert sum(not check.holds for check in pcp_perplexity.check_claims(_curves(), moved)) == 1


def test_bounds_of_documents_are_below_the_truth() -> None:
    """Two topics, short documents: ln p by integration over the shares."""
    topics = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    X = sparse.csr_matrix([[2.0, 1.0, 0.0], [1.0, 0.0, 3.0]])
    alpha = np.array([0.8, 1.5])
    grid = (np.arange(20_000) + 0.5) / 20_000
    law = beta(*alpha).pdf(grid)
    found = pcp_perplexity.compute_document_bounds(X, topics, alpha)
    for x, bound in zip(X.toarray(), found, strict=True):
        mixed = grid[:, None] * topics[0] + (1 - grid[:, None]) * topics[1]
        truth = np.log(np.mean(law * np.prod(mixed**x, axis=1)))
        assert truth - 0.3 < bound < truth
    one = pcp_perplexity.compute_document_bounds(X, topics[:1], alpha[:1])
    np.testing.assert_allclose(one, X @ np.log(topics[0]), atol=1e-12)


def test_the_picture_has_a_panel_for_each_corpus_and_question() -> None:
    from papers.pcp_perplexity import draw

    figure = Figure(layout="constrained")
    draw(figure, _curves())
    assert len(figure.axes) == 4 and len(figure.axes[0].lines) == 7
    line = figure.axes[0].lines[0]
    assert line.get_label() == "pLSI"
    np.testing.assert_allclose(line.get_ydata(), [968, 860, 712])


def test_a_table_of_small_corpora(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder("Newsgroup")
    monkeypatch.setattr(pcp_perplexity, "QUICK", pcp_perplexity.Size((5, 10), 2, 1))
    report = reproduce(pcp_perplexity.EXPERIMENT, path, quick=True)
    assert report.table.rows == ("Newsgroup, K = 5", "Newsgroup, K = 10")
    assert any("Reuters is left out" in note for note in report.table.notes)
    cell = report.table.cell("Newsgroup, K = 10", "PCP")
    assert cell is not None and cell.published == 1871 and len(cell.values) == 2
    assert pcp_perplexity.FULL.starts(10) == 3 and pcp_perplexity.FULL.starts(20) == 1
    assert len([c for c in report.table.cells if c.row == "Newsgroup, K = 5"]) == 7


def test_real_documents_as_numpy_and_scikit_learn_have_them(
    shared_data: Callable[[str], Path],
) -> None:
    path = shared_data(pcp_corpora.CORPORA["Reuters"].file.name)
    corpus = pcp_corpora.load_corpus("Reuters", path.parent)
    split = pcp_perplexity._split_corpus(corpus, pcp_perplexity.QUICK, 0)
    found = pcp_perplexity.measure_reference(*split, 0)
    assert all(check.holds for check in pcp_perplexity._check_reference("Reuters", found)), found
