"""Topics and clusters of documents on the command line: texts, counts, and what is made of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

import mixfold
from mixfold.engine.sources import open_source

from .conftest import Outcome, read_table
from .test_mistakes import check, squeezed
from .test_parts import line

Run = Callable[..., Outcome]
SUBJECTS = {
    "sea": ["ship", "harbour", "sail", "wind", "wave", "anchor", "captain"],
    "food": ["bread", "butter", "oven", "flour", "sugar", "recipe", "salt"],
    "law": ["court", "judge", "trial", "lawyer", "witness", "verdict", "jury"],
}
KNOWN = sorted(word for words in SUBJECTS.values() for word in words)


def written() -> list[tuple[str, str]]:
    """Names of texts and texts: mostly of one subject, with stop words, numbers and capitals."""
    rng = np.random.default_rng(0)
    texts = []
    for i in range(90):
        subject = list(SUBJECTS)[i % 3]
        own = rng.choice(SUBJECTS[subject], 20)
        others = rng.choice(KNOWN, 3)
        words = [*own, *others, *rng.choice(["the", "and", "of", "1999"], 9)]
        texts.append((f"{subject}_{i:02d}.txt", " ".join(rng.permutation(words)).title() + "."))
    return sorted(texts)


TEXTS = written()
LABELS = np.array([name[:3] for name, _ in TEXTS])


def of(label: str) -> np.ndarray:
    """The texts of one subject."""
    return np.flatnonzero(label == LABELS)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One collection as a folder, as lines, and as counts in several files."""
    home = tmp_path_factory.mktemp("corpus")
    folder = home / "letters"
    folder.mkdir()
    for name, text in TEXTS:
        (folder / name).write_text(text, encoding="utf-8")
    lines = "".join(f"{text}\n" for _, text in TEXTS)
    (home / "lines.txt").write_text(lines, encoding="utf-8")
    X = counts()
    sparse.save_npz(home / "plain.npz", X)
    sparse.save_npz(home / "columns.npz", X.tocsc())
    parts = {name: getattr(X, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(home / "named.npz", **parts, vocab=np.array(KNOWN), often=np.arange(90) % 3)
    pd.DataFrame(X.toarray(), columns=KNOWN).to_parquet(home / "table.parquet")
    return home


def counts() -> sparse.csr_array:
    counter = CountVectorizer(vocabulary=KNOWN, dtype=np.float64)
    return sparse.csr_array(counter.transform([text for _, text in TEXTS]))


@pytest.fixture
def fitted(run: Run, corpus: Path, tmp_path: Path) -> Callable[..., tuple[Path, Outcome]]:
    def fit(model: str, file: str, *words: object) -> tuple[Path, Outcome]:
        path = tmp_path / f"{model}.mixfold"
        outcome = run("fit", corpus / file, "-m", model, "--seed", 0, "--out", path, *words)
        assert outcome.code == 0, outcome.err
        return path, outcome

    return fit


# ------------------------------------------------ the same documents, however they come


@pytest.mark.parametrize("file", ["letters", "lines.txt", "named.npz", "table.parquet"])
def test_documents_of_every_kind_give_the_model_of_the_library(fitted: Any, file: str) -> None:
    model = mixfold.load(fitted("lda", file, "-k", 3)[0])
    assert list(model.feature_names_in_) == KNOWN, "stop words, numbers and capitals are gone"
    expected = mixfold.LatentDirichletAllocation(3, random_state=0).fit(counts())
    np.testing.assert_allclose(model.topics_, expected.topics_, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("file", ["plain.npz", "columns.npz"])
def test_counts_without_words_do_as_well(run: Run, fitted: Any, corpus: Path, file: str) -> None:
    path, outcome = fitted("plsi", file, "-k", 3)
    model = mixfold.load(path)
    assert not hasattr(model, "feature_names_in_")
    expected = mixfold.PLSI(3, random_state=0).fit(counts())
    np.testing.assert_allclose(model.topics_, expected.topics_, atol=1e-9)
    assert f"x{model.top_words(1)[0][0]}" in outcome.out
    refused = run("transform", path, corpus / "letters", "--out", path.with_suffix(".csv"))
    check(refused, 1, "does not know its words", "vocab")


def test_weights_are_an_array_of_the_file(run: Run, fitted: Any, corpus: Path) -> None:
    model = mixfold.load(fitted("lda", "named.npz", "-k", 3, "--weights", "often")[0])
    assert model.n_documents_ == np.sum(np.arange(90) % 3 > 0) * 1.5
    out = corpus / "never.mixfold"
    words = ["fit", corpus / "named.npz", "-m", "lda", "--out", out]
    check(run(*words, "--weights", "oftn"), 1, "no array 'oftn'", "vocab, often")


def test_options_for_texts_choose_the_words(run: Run, fitted: Any, tmp_path: Path) -> None:
    def words(*options: object) -> set[str]:
        return set(mixfold.load(fitted("plsi", "letters", *options)[0]).feature_names_in_)

    own = tmp_path / "stop.txt"
    own.write_text("Ship\nit's bread\n", encoding="utf-8")
    assert words("--stop-words", "none") == {*KNOWN, "the", "and", "of"}
    assert words("--stop-words", own) == {*KNOWN, "the", "and", "of"} - {"ship", "bread"}
    assert words("--stop-words", f"english,{own}") == set(KNOWN) - {"ship", "bread"}
    X = counts().toarray()
    kept = [KNOWN.index(word) for word in words("--max-features", 4)]
    assert sorted(X.sum(axis=0)[kept]) == sorted(X.sum(axis=0))[-4:]
    common = {KNOWN[j] for j in np.flatnonzero((X > 0).sum(axis=0) >= 40)}
    assert words("--min-df", 40) == common and 0 < len(common) < len(KNOWN)


def test_folders_within_folders_and_other_encodings(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for name, text in (("b/2", "étude wind"), ("a/1.md", "étude wave"), ("._hidden.txt", "no")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="latin-1")
    (folder / "picture.jpg").write_bytes(b"\xff\0")
    model, out = tmp_path / "m.mixfold", tmp_path / "t.csv"
    words = ["fit", folder, "-m", "plsi", "-k", 1, "--min-df", 1, "--out", model]
    check(run(*words), 1, "a/1.md", "not utf-8 text", "--encoding", "latin-1")
    assert run(*words, "--encoding", "latin-1").code == 0
    assert list(mixfold.load(model).feature_names_in_) == ["wave", "wind", "étude"]
    assert run("transform", model, folder, "--encoding", "latin-1", "--out", out).code == 0
    assert list(read_table(out)["document"]) == ["a/1.md", "b/2"]
    lines = tmp_path / "lines.txt"
    lines.write_text("étude wind\n", encoding="utf-16")
    check(run("score", model, lines), 1, "zero bytes", "utf-16")
    assert "words 2" in run("score", model, lines, "--encoding", "utf-16").out
    lines.write_text("étude wind\n", encoding="utf-8-sig")
    assert "words 2" in run("score", model, lines).out


# ------------------------------------------------ what models say of documents


def test_pcp_predicts_clusters_of_texts(
    run: Run, fitted: Any, corpus: Path, tmp_path: Path
) -> None:
    path, outcome = fitted("pcp", "lines.txt", "-k", 6, "-d", 3)
    model, out = mixfold.load(path), tmp_path / "t.csv"
    assert model.n_clusters == 6 and model.n_components == 3 and model.n_clusters_ == 3
    assert "90 documents, 2070 words, 21 different" in outcome.out
    assert "per document, bound" in outcome.out and "dropped" not in outcome.out
    assert run("predict", path, corpus / "letters", "--proba", "--out", out).code == 0
    table, chances = read_table(out), model.predict_proba(open_source(counts()))
    assert list(table["document"]) == [name for name, _ in TEXTS]
    np.testing.assert_array_equal(table["component"], chances.argmax(axis=1))
    np.testing.assert_allclose(table["probability_2"], chances[:, 2], atol=1e-12)
    assert all(len(set(table["component"][of(label)])) == 1 for label in set(LABELS))
    assert run("transform", path, corpus / "lines.txt", "--out", out).code == 0
    table = read_table(out)
    assert list(table) == ["component", "topic_0", "topic_1", "topic_2"]
    shares = model.transform(open_source(counts()))
    np.testing.assert_allclose(table["topic_1"], shares[:, 1], atol=1e-12)


def test_lda_tells_shares_of_topics_and_draws_documents(
    run: Run, fitted: Any, corpus: Path, tmp_path: Path
) -> None:
    path, outcome = fitted("lda", "letters", "-k", 3)
    model, out = mixfold.load(path), tmp_path / "t.parquet"
    assert "per word, bound" in outcome.out
    assert run("transform", path, corpus / "letters", "--out", out).code == 0
    assert list(read_table(out)) == ["document", "topic_0", "topic_1", "topic_2"]
    assert run("sample", path, "-n", 7, "--seed", 1, "--out", out).code == 0
    table = read_table(out)
    assert list(table) == [*KNOWN, "topic_0", "topic_1", "topic_2"]
    np.testing.assert_allclose(table["topic_0"] + table["topic_1"] + table["topic_2"], 1)
    refused = run("predict", path, corpus / "letters", "--out", out)
    check(refused, 2, "a LatentDirichletAllocation has no predict", "multinomial-mixture, pcp.")
    assert mixfold.load(path).n_tokens_ == model.n_tokens_ == 2070


@pytest.mark.parametrize("name", ["plsi", "lda", "pcp"])
def test_score_is_that_of_the_library(
    run: Run, fitted: Any, corpus: Path, tmp_path: Path, name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    path, out = fitted(name, "letters", "--set", "n_components=3")[0], tmp_path / "s.csv"
    monkeypatch.setattr("mixfold.cli.data._LEAST_ROWS", 7)
    monkeypatch.setattr("mixfold.cli.data._PIECE", 7 * 21)
    model, rows = mixfold.load(path), open_source(counts())
    outcome = run("score", path, corpus / "letters", "--out", out)
    assert outcome.code == 0, outcome.err
    np.testing.assert_allclose(read_table(out)["log_density"], model.score_samples(rows))
    assert list(read_table(out)["document"]) == [name for name, _ in TEXTS]
    said = outcome.out.splitlines()
    assert "documents 90, words 2070" in said
    assert f"log-probability per word {model.score(rows):.6g}" in said
    assert f"perplexity of held-back words {model.perplexity(rows):.6g}" in said


def test_of_single_words_none_can_be_held_back(run: Run, fitted: Any, tmp_path: Path) -> None:
    path, lines = fitted("lda", "letters", "-k", 2)[0], tmp_path / "one.txt"
    lines.write_text("ship\nsail\n", encoding="utf-8")
    outcome = run("score", path, lines)
    assert outcome.code == 0 and "held-back words: none" in outcome.out


def test_a_mixture_of_documents_takes_texts(
    run: Run, fitted: Any, corpus: Path, tmp_path: Path
) -> None:
    path, out = fitted("multinomial-mixture", "letters", "-k", 3)[0], tmp_path / "t.csv"
    assert run("predict", path, corpus / "lines.txt", "--out", out).code == 0
    found = read_table(out)["component"]
    assert all(len(set(found[of(label)])) == 1 for label in set(LABELS))
    check(run("topics", path), 2, "MultinomialMixture has no topics", "plsi, lda, pcp")
    words = ["select", corpus / "letters", "-m", "multinomial-mixture", "-k", "2:3", "-q"]
    best = tmp_path / "best.mixfold"
    for criterion in ("bic", "held-out"):
        outcome = run(*words, "-c", criterion, "--seed", 0, "--out", best)
        assert outcome.code == 0, outcome.err
        assert run("predict", best, corpus / "lines.txt", "--out", out).code == 0


# ------------------------------------------------ topics


def test_topics_are_shown_with_shares_and_words(run: Run, fitted: Any) -> None:
    path = fitted("pcp", "letters", "-k", 5, "-d", 3)[0]
    model = mixfold.load(path)
    shown = run("topics", path, "--words", 4)
    assert shown.code == 0, shown.err
    tokens = (model.components_ - model.topic_word_prior_).sum(axis=1)
    shares, order = tokens / tokens.sum(), np.argsort(-tokens)
    for k, words in enumerate(model.top_words(4)):
        assert set(words) <= set(SUBJECTS["sea"]) or set(words).isdisjoint(SUBJECTS["sea"])
        assert f"│ {k}     │ {shares[k]:.1%} │ {' '.join(words)} " in shown.out
    numbers = [row.split("│")[1].strip() for row in shown.out.splitlines() if row.startswith("│")]
    assert numbers[:3] == [str(k) for k in order], "largest first"
    clusters = shown.out[shown.out.index("cluster") :]
    best = int(model.cluster_topics_[0].argmax())
    words = " ".join(model.top_words(3)[best])
    assert line(clusters, "0")[1:] == [
        f"{model.weights_[0]:.1%}",
        f"{model.cluster_topics_[0, best]:.1%} topic {best} ({words})",
    ]


def test_topics_for_programs(run: Run, fitted: Any) -> None:
    path = fitted("pcp", "letters", "-k", 5, "-d", 3)[0]
    model, found = mixfold.load(path), json.loads(run("topics", path, "--json").out)
    assert [set(entry) for entry in found["topics"]] == [{"topic", "share", "words"}] * 3
    first = found["topics"][0]
    assert list(first["words"]) == model.top_words(10)[first["topic"]]
    for word, chance in first["words"].items():
        assert chance == pytest.approx(model.topics_[first["topic"], KNOWN.index(word)])
    np.testing.assert_allclose([c["topics"] for c in found["clusters"]], model.cluster_topics_)


def test_plsi_shows_the_shares_of_its_topics(run: Run, fitted: Any) -> None:
    path, outcome = fitted("plsi", "letters", "-k", 3)
    shares = mixfold.load(path).topic_shares_
    first = int(np.argmax(shares))
    for shown in (outcome.out, run("topics", path).out, run("inspect", path).out):
        table = shown[shown.index("topic ") :]
        assert line(table, str(first))[1] == f"{shares[first]:.1%}" and "ship" in shown
    found = json.loads(run("topics", path, "--json").out)["topics"]
    assert [entry["share"] for entry in found] == sorted(shares, reverse=True)


def test_many_topics_and_clusters_are_cut_in_summaries_only(run: Run, fitted: Any) -> None:
    path = fitted("pcp", "letters", "-d", 33, "--set", "n_clusters=documents",
                  "--set", "alpha=1e5", "--set", "tol=1e9",
                  "--set", "document_concentration=none", "-q")[0]  # fmt: skip
    shown, cut = run("topics", path).out, run("inspect", path).out
    n = mixfold.load(path).n_clusters_
    assert "more topics" not in shown and "3 more topics (mixfold topics shows all)" in cut
    assert n > 30 and f"{n - 30} more clusters" in cut and f"{n - 30} more clusters" in shown
    shown = run("topics", path, "--clusters", 100).out
    assert "more clusters" not in shown and line(shown[shown.index("cluster") :], str(n - 1))
    assert "cluster" not in run("topics", path, "--clusters", 0).out


# ------------------------------------------------ new documents, and mistakes


def test_words_that_are_new_are_passed_over_and_strangers_counted(
    run: Run, fitted: Any, tmp_path: Path
) -> None:
    path, out = fitted("lda", "letters", "-k", 3)[0], tmp_path / "t.csv"
    lines = tmp_path / "new.txt"
    lines.write_text("ship sail quark\nship sail\n\nquark\n", encoding="utf-8")
    outcome = run("transform", path, lines, "--out", out)
    assert outcome.code == 0 and "note: 2 of 4 documents have no word" in outcome.err
    first = read_table(out)["topic_0"]
    assert first[0] == pytest.approx(first[1]) and first[2] == first[3]
    lines.write_text("quark\n", encoding="utf-8")
    check(run("transform", path, lines, "--out", out), 1, "No word of", "language")


def test_counts_are_matched_by_word(run: Run, fitted: Any, corpus: Path, tmp_path: Path) -> None:
    path, out = fitted("lda", "letters", "-k", 3)[0], tmp_path / "t.csv"
    X, turned = counts(), tmp_path / "turned.npz"
    wide = sparse.csr_array(sparse.hstack([X[:, ::-1], np.ones((90, 1))]))
    parts = {name: getattr(wide, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(turned, **parts, vocab=np.array([*KNOWN[::-1], "quark"]))
    outcome = run("transform", path, turned, "--out", out)
    assert outcome.code == 0 and "note: 1 of the 22 words" in outcome.err
    expected = mixfold.load(path).transform(open_source(X))
    np.testing.assert_allclose(read_table(out)["topic_2"], expected[:, 2], atol=1e-12)
    sparse.save_npz(turned, wide)
    check(run("transform", path, turned, "--out", out), 1, "has 22 words", "fitted to 21", "vocab")


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"X": np.eye(2)}, ["lacks the arrays data, indices", "it has: X", "save_npz"]),
        ({"vocab": ["a", "a"]}, ["names 'a' more than once"]),
        ({"vocab": ["a", "b", "c"]}, ["3 words and the matrix 2 columns"]),
        ({"indices": np.array([0, 5])}, ["cannot be read"]),
        ({"data": -np.ones(2)}, ["Negative values"]),
        ({"data": np.array([None, 1])}, ["cannot be read"]),
    ],
)
def test_counts_that_cannot_be_used(
    run: Run, tmp_path: Path, arrays: dict[str, Any], expected: list[str]
) -> None:
    parts = {
        "data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2]),
        "shape": np.array([2, 2]),
    }  # fmt: skip
    file, out = tmp_path / "c.npz", tmp_path / "m"
    np.savez(file, **(arrays if "X" in arrays else parts | arrays))
    check(run("fit", file, "-m", "lda", "-k", 1, "--out", out), 1, "error:", *expected)
    file.write_bytes(b"no archive")
    check(run("fit", file, "-m", "lda", "--out", out), 1, "c.npz", "no .npz file")
    assert not out.exists()


def test_texts_that_cannot_be_used(run: Run, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "m"
    folder.mkdir()
    words = ["-m", "lda", "--out", out]
    check(run("fit", folder, *words), 1, "holds no data", ".parquet", ".txt")
    (folder / "a.txt").write_bytes(b"PK\0\0")
    check(run("fit", folder, *words), 1, "a.txt", "no text", "zero bytes")
    lines = tmp_path / "lines.txt"
    for text, expected in (
        ("", "is empty"),
        ("the and\nof\n", "No word of"),
        ("one ship", "min-df"),
    ):
        lines.write_text(text, encoding="utf-8")
        check(run("fit", lines, *words), 1, expected)
    assert not out.exists()


def test_no_answer_is_written_among_the_texts(run: Run, fitted: Any, corpus: Path) -> None:
    path, within = fitted("lda", "letters", "-k", 2)[0], corpus / "letters" / "within"
    within.mkdir()
    try:
        refused = run("transform", path, corpus / "letters", "--out", within / "t.csv")
        check(refused, 2, "--out", "lie within")
    finally:
        within.rmdir()


def test_options_that_do_not_go_with_the_data(run: Run, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    texts, table = ["fit", corpus / "letters"], ["fit", corpus / "table.parquet"]
    refused = run(*texts, "--out", out)
    check(refused, 2, "--model", "holds texts", "multinomial-mixture, plsi, lda, pcp")
    lda = ["-m", "lda", "--out", out]
    check(run(*texts, *lda, "--columns", "ship"), 2, "--columns", "words")
    check(run(*texts, *lda, "--weights", "w"), 2, "--weights", ".npz")
    check(run(*texts, *lda, "--encoding", "klingon"), 2, "no encoding 'klingon'", "latin-1")
    check(run(*texts, *lda, "--encoding", "rot13"), 2, "--encoding")
    check(run(*texts, *lda, "--stop-words", "french"), 2, "no file 'french'")
    check(run(*table, *lda, "--min-df", 2), 2, "--min-df", "it is for texts")
    check(run("fit", corpus / "named.npz", *lda, "--stop-words", "none"), 2, "--stop-words")
    picked = run("select", corpus / "letters", "-m", "lda")
    check(picked, 2, "compared by the perplexity of documents", "perplexity")
    assert "Traceback" not in squeezed(picked.err)
    assert not out.exists()
