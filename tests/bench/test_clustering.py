"""The comparison with reference labelings: data, scores and counts by hand; not its times."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("psutil", reason="needs psutil: pip install 'mixfold[bench]'")
pytest.importorskip("bench.clustering", reason="needs bench/: run the tests in a clone")

from bench import clustering, clustering_auto, clustering_fits, clustering_likelihood
from bench.__main__ import Comparison, main
from bench.clustering_data import (
    DRAWN,
    Labelled,
    choose,
    draw,
    names_in,
    published,
    read,
    standardised,
)
from bench.clustering_fits import (
    Method,
    Partition,
    is_degenerate,
    likelihoods,
    partitions_given,
    partitions_unknown,
)
from bench.clustering_judged import JUDGED, draw_judged
from bench.clustering_scores import best, normalised_accuracy, scores

# ------------------------------------------------ scores


def by_permutations(labels: Any, found: Any) -> float:
    """The definition: the best of all ways to name the clusters, with empty ones to fill up."""
    size = max(labels.max(), found.max()) + 1
    k = labels.max() + 1
    return max(
        (np.mean([np.mean(names[found[labels == j]] == j) for j in range(k)]) - 1 / k) / (1 - 1 / k)
        for names in map(np.array, itertools.permutations(range(size)))
    )


@pytest.mark.parametrize(("k", "n_found"), [(2, 2), (3, 3), (4, 4), (4, 2), (2, 4), (3, 5), (5, 1)])
def test_accuracy_is_the_best_over_all_permutations(k: int, n_found: int) -> None:
    rng = np.random.default_rng([k, n_found])
    for _ in range(5):
        labels = np.concatenate([np.arange(k), rng.choice(k, 40, p=rng.dirichlet(np.ones(k)))])
        found = np.where(rng.random(len(labels)) < 0.5, labels, rng.integers(99, size=len(labels)))
        found = np.concatenate([np.arange(n_found), found[n_found:] % n_found])
        expected = by_permutations(labels, found)
        assert normalised_accuracy(labels, found) == pytest.approx(expected, abs=1e-12)


def test_accuracy_counts_small_clusters_like_large_ones() -> None:
    labels = np.repeat([1, 2], [90, 10])
    found = np.where(np.arange(100) < 95, 7, 3)  # all of the large one, half of the small one
    assert normalised_accuracy(labels, found) == pytest.approx(0.5)
    assert normalised_accuracy(labels, np.zeros(100)) == 0
    assert normalised_accuracy(labels, labels[::-1]) < 0.2
    assert normalised_accuracy(np.ones(5), np.arange(5)) is None


def test_accuracy_is_that_of_genieclust() -> None:
    peer = pytest.importorskip(
        "genieclust.compare_partitions", reason="needs genieclust: pip install 'mixfold[bench]'"
    )
    rng = np.random.default_rng(0)
    for k in (2, 3, 6):
        labels, found = rng.integers(k, size=(2, 80))
        expected = peer.normalized_clustering_accuracy(labels, found)
        assert normalised_accuracy(labels, found) == pytest.approx(expected, abs=1e-12)


def test_noise_is_left_out_of_the_score() -> None:
    labels = np.array([1, 1, 2, 2, 0, 0])
    assert scores(labels, np.array([5, 5, 8, 8, 5, 9])) == {"ari": 1.0, "nca": 1.0}


def test_a_set_has_the_best_score_of_its_labelings() -> None:
    some: list[dict[str, float | None]] = [{"ari": 0.2, "nca": 0.6}, {"ari": 0.4, "nca": None}]
    assert best(some) == {"ari": 0.4, "nca": 0.6}
    assert best([{"ari": 1.0, "nca": None}]) == {"ari": 1.0, "nca": None}


# ------------------------------------------------ data


def test_columns_keep_their_proportions() -> None:
    X = np.column_stack([np.arange(6.0), np.full(6, 3.3), 100 + 10 * np.arange(6.0) ** 2])
    got, s = standardised(X), np.std(X[:, [0, 2]], ddof=1)
    assert got.shape == (6, 2)  # a constant column is dropped
    np.testing.assert_allclose(got.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(got[1] - got[0], [1 / s, 10 / s])
    np.testing.assert_allclose(np.ptp(got, axis=0)[1] / np.ptp(got, axis=0)[0], 50)


def write(path: Path, lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.write(lines)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A battery of one set with eleven labelings."""
    place = tmp_path / "clustering" / "wut"
    write(place / "a.data.gz", "1 2 9\n3 4 9\n5 9 9\n7 1 9\n")
    for j in range(11):
        write(place / f"a.labels{j}.gz", f"{j}\n1\n2\n2\n")
    return tmp_path


def test_a_battery_is_read_from_files(folder: Path) -> None:
    assert names_in(folder) == ["wut/a"]
    got = read(folder, "wut/a")
    assert got.X.shape == (4, 2) and got.battery == "wut"
    assert [int(labels[0]) for labels in got.labelings] == list(range(11))  # 10 comes after 9
    assert got.sizes == [2, 3]  # noise is no cluster
    assert choose(folder, quick=False) == (folder, ["wut/a"])
    assert choose(folder, quick=True) == choose(folder / "clustering", quick=False)
    assert choose(None, quick=False) == (None, list(DRAWN))


def test_files_that_do_not_fit_are_named(folder: Path) -> None:
    place = folder / "clustering" / "wut"
    write(place / "a.labels1.gz", "1\n2\n")
    with pytest.raises(ValueError, match=r"a\.labels1\.gz must have .* the 4 rows .* has 2"):
        read(folder, "wut/a")
    write(place / "b.data.gz", "1 2\n3 4\n")
    with pytest.raises(FileNotFoundError, match="wut/b has no reference labeling"):
        read(folder, "wut/b")
    (folder / "x" / "clustering").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="leave the folder out"):
        names_in(folder / "x")


def test_published_scores_are_read_from_their_table(tmp_path: Path) -> None:
    assert published(None) == published(tmp_path) == {}
    text = ["# t", "", "| set | gm | Genie |", "| --- | --- | --- |", "| wut/a | 0.5 | -0.01 |",
            "| wut/b | 0.25 | - |", "| mean | 0.4 | 0.0 |", "", "text"]  # fmt: skip
    (tmp_path / "CLUSTERING.md").write_text("\n".join(text))
    assert published(tmp_path) == {"wut/a": {"gm": 0.5, "Genie": -0.01}, "wut/b": {"gm": 0.25}}


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_tables_are_labelled(name: str) -> None:
    full, small, other = draw(name), draw(name, quick=True), draw(name, seed=1)
    for got in (full, small, other):
        (labels,) = got.labelings
        assert len(labels) == len(got.X) and np.isfinite(got.X).all()
        counts = np.bincount(labels)[1:]
        assert counts.min() >= 5 and got.sizes == [len(counts)]
    assert len(full.X) == len(other.X) == DRAWN[name][1] and len(small.X) == DRAWN[name][1] // 4
    assert other.sizes == full.sizes == small.sizes
    np.testing.assert_array_equal(draw(name).X, full.X)
    assert not np.array_equal(other.X, full.X)
    assert (0 in full.labelings[0]) == name.startswith("noise/")


# ------------------------------------------------ stages

LINE = Labelled(
    "hand/line",
    np.linspace(-1, 1, 8)[:, None],
    (np.repeat([1, 2], 4), np.array([1, 1, 2, 2, 3, 3, 0, 0])),
)


def test_each_labeling_has_its_own_number_of_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    def three(X: Any, k: int, seed: int) -> Partition:
        """The labeling with three clusters, and nothing where there are two."""
        asked.append((k, seed))
        found = [0, 1] * 4 if k == 2 else [2, 2, 0, 0, 1, 1, 0, 1]
        return Partition(np.array(found), -1.5 * k)

    known = {
        "a": Method(three),
        "b": Method(three, seeded=False),
        "c": Method(three, missing="not here"),
    }
    monkeypatch.setattr(clustering_fits, "given_methods", lambda: known)
    (row,) = partitions_given([LINE], (0, 1))
    assert asked == [(2, 0), (3, 0), (2, 1), (3, 1), (2, 0), (3, 0)]
    assert (row["set"], row["n"], row["d"], row["k"]) == ("hand/line", 8, 1, [2, 3])
    assert {name: len(fits) for name, fits in row["methods"].items()} == {"a": 2, "b": 1}
    first = row["methods"]["a"][0]
    assert first["ari"] == first["nca"] == 1
    assert first["clusters"] == [2, 3] and first["log_likelihood"] == [-3.0, -4.5]
    (row,) = partitions_given([LINE], (0,), methods=["b"])
    assert set(row["methods"]) == {"b"}


def test_a_fit_that_fails_counts_as_nothing_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(X: Any, k: int, seed: int) -> Partition:
        raise ValueError("no rows")

    monkeypatch.setattr(clustering_fits, "unknown_methods", lambda: {"a": Method(fail)})
    (row,) = partitions_unknown([LINE], (0,))
    (fit,) = row["methods"]["a"]
    assert (fit["ari"], fit["nca"], fit["error"]) == (0, 0, "ValueError: no rows")
    assert "1 fits failed and count as 0:\n- hand/line, a: ValueError: no rows" in "\n".join(
        clustering.report_stage([row], ["a"], [])
    )


def test_an_interrupted_run_goes_on_from_what_was_kept(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def fit(X: Any, k: int, seed: int) -> Partition:
        if seed == 2 and asked.count(2) == 0:
            asked.append(2)
            raise KeyboardInterrupt
        asked.append(seed)
        return Partition(np.arange(len(X)) % 2, -float(seed))

    monkeypatch.setattr(clustering_fits, "unknown_methods", lambda: {"a": Method(fit)})
    path = tmp_path / "kept.jsonl"
    with pytest.raises(KeyboardInterrupt):
        partitions_unknown([LINE], (0, 1, 2), kept=path)
    with path.open("a") as file:
        file.write('\n[["unknown", "hand/li')  # killed while it wrote
    (row,) = partitions_unknown([LINE], (0, 1, 2), kept=path)
    assert asked == [0, 1, 2, 2]
    assert [fit["log_likelihood"] for fit in row["methods"]["a"]] == [[0], [-1], [-2]]
    again = partitions_unknown([LINE], (0, 1, 2), kept=path)
    assert asked == [0, 1, 2, 2] and again == [row]


def test_the_labeling_is_followed_to_the_fit_that_it_leads_to() -> None:
    table = blobs()
    noisy = Labelled(
        "hand/noisy", table.X, (np.where(np.arange(120) % 10 == 0, 0, *table.labelings),)
    )
    for one in (table, noisy):
        (fit,) = likelihoods([one], (0,))
        assert fit["reference"] == pytest.approx(fit["ours"], abs=1e-7)
        assert not fit["reference_degenerate"]
    rows = np.column_stack([np.tile(np.arange(60.0), 2), np.repeat([0, 9], 60)])
    flat = Labelled("hand/flat", rows, (np.repeat([1, 2], 60),))
    (fit,) = likelihoods([flat], (0,))
    assert np.isfinite(fit["reference"])


def test_the_precision_of_a_group_is_symmetric_whatever_its_columns() -> None:
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 18))
    precision = clustering_fits._precision(flat)
    np.testing.assert_array_equal(precision, precision.T)
    assert np.linalg.eigvalsh(precision)[0] > 0
    covariance = np.cov(flat, rowvar=False, bias=True)
    ridge = 1e-6 * np.trace(covariance) / 18
    np.testing.assert_allclose(precision @ (covariance + ridge * np.eye(18)), np.eye(18), atol=1e-6)


def blobs() -> Labelled:
    """Three groups that everybody finds."""
    rng = np.random.default_rng(0)
    labels = np.repeat([1, 2, 3], 40)
    return Labelled("hand/blobs", rng.normal(size=(120, 2)) + 20 * labels[:, None], (labels,))


def test_groups_far_apart_are_found_by_all() -> None:
    for stage in (partitions_given, partitions_unknown):
        (row,) = stage([blobs()], (0,))
        assert {"mixfold", "scikit-learn, BIC"} & set(row["methods"])
        for name, (fit,) in row["methods"].items():
            assert "error" not in fit and fit["cpu"] >= 0, name
            if not name.startswith("HDBSCAN"):  # which calls some rows noise
                assert fit["clusters"] == [3] and fit["ari"] == 1, name
            assert fit["ari"] > 0.5, name


def test_a_method_that_is_not_there_is_left_out_with_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clustering_fits, "_without_genie", lambda: "no genie here")
    (row,) = partitions_given([LINE], (0,), methods=["Genie"])
    assert row["methods"] == {}
    text = clustering.report(
        {"source": "files", "given": [], "unknown": [], "missing": {"Genie": "no genie here"}}
    )
    assert "Left out: Genie (no genie here)." in text


def test_likelihoods_follow_the_peer_to_the_same_optimum() -> None:
    (fit,) = likelihoods([blobs()], (3,))
    assert (fit["set"], fit["k"], fit["seed"]) == ("hand/blobs", 3, 3)
    assert fit["ours"] == pytest.approx(fit["theirs"], abs=1e-6)
    # scikit-learn adds 1e-6 to the variances and stops early: never better than what follows
    assert fit["as_it_stopped"] <= fit["theirs"] + 1e-9
    assert fit["followed_converged"] and not fit["their_degenerate"]


def test_a_start_that_misses_the_optimum_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    import mixfold

    class Poor(mixfold.GaussianMixture):
        """All components begin at the same place and stay there, unless a start is given."""

        def fit(self, X: Any, y: Any = None, **rest: Any) -> Any:
            if self.means_init is None:
                k, d = self.n_components, X.shape[1]
                self.means_init = np.tile(X.mean(axis=0), (k, 1))
                self.precisions_init = np.tile(np.eye(d), (k, 1, 1))
                self.weights_init = np.full(k, 1 / k)
            return super().fit(X, y, **rest)

    monkeypatch.setattr(mixfold, "GaussianMixture", Poor)
    fits = likelihoods([blobs()], (0,))
    single = mixfold.MixtureSearch(n_components=1, random_state=0).fit(blobs().X)
    assert fits[0]["ours"] == pytest.approx(single.best_estimator_.score(blobs().X), abs=1e-3)
    assert len(clustering_likelihood.lower(fits, 0.05)) == 1
    assert "Of 1 fits 1 are lower" in clustering_likelihood.report({"fits": fits})


def test_degenerate_is_what_stands_at_the_floor_or_was_dropped() -> None:
    kinds = [["floor"], ["drop"], ["reseed"], []]
    models = [SimpleNamespace(events_=[SimpleNamespace(kind=k) for k in some]) for some in kinds]
    assert [is_degenerate(model) for model in models] == [True, True, False, False]


# ------------------------------------------------ tables


def fake(name: str, **aris: list[float]) -> dict[str, Any]:
    fits = {m: [{"ari": a, "nca": a / 2, "cpu": 1.5} for a in v] for m, v in aris.items()}
    return {"set": name, "n": 9, "d": 2, "k": [2, 3], "methods": fits}


def test_means_are_of_seeds_then_sets_by_battery_and_over_all() -> None:
    rows = [fake("u/a", x=[0.2, 0.4]), fake("u/b", x=[0.5]), fake("v/c", x=[1.0], y=[0.9])]
    by = {name: clustering.average(r, "x", "ari") for name, r in clustering.batteries(rows).items()}
    assert by == pytest.approx({"u": 0.4, "v": 1.0, "all": 0.6})
    assert clustering.average(rows, "y", "ari") == 0.9
    assert clustering.average(rows, "z", "ari") is None
    lines = {
        cells[0]: cells[1:]
        for line in "\n".join(clustering.report_stage(rows, [], [])).splitlines()
        if line.startswith("|")
        for cells in [[cell.strip() for cell in line.split("|")[1:-1]]]
    }
    assert lines["u/a"] == ["9", "2", "2, 3", "0.30", "-"]
    assert lines["mean of all"] == ["3", "", "", "0.600", "0.900"]
    assert lines["x"] == ["0.600", "0.300", "4.5"] and lines["y"] == ["0.900", "0.450", "1.5"]


def test_losses_are_listed_set_by_set() -> None:
    rows = [fake("u/a", x=[0.5], y=[0.54], z=[0.9]), fake("u/b", x=[0.5], y=[0.56]),
            fake("u/c", x=[0.5], z=[0.2])]  # fmt: skip
    (text,) = clustering.losses(rows, ["x", "nobody"], ["y", "z"])
    head, *lines = text.splitlines()
    assert head == "x is lower by more than 0.05 on 2 of 3 sets:"
    assert lines == ["- u/a 0.50: z 0.90", "- u/b 0.50: y 0.56"]


def test_a_loss_against_genie_is_told_once() -> None:
    here, both = fake("u/a", mixfold=[0.5], Genie=[1.0]), fake("u/b", mixfold=[0.5], Genie=[1.0])
    both["methods"][clustering.PUBLISHED] = [{"ari": 0.98}]
    (text,) = clustering.losses([here, both], clustering.GIVEN_OURS, clustering.GIVEN_THEIRS)
    assert text.splitlines()[1:] == ["- u/a 0.50: Genie 1.00", "- u/b 0.50: Genie, published 0.98"]


def test_numbers_of_clusters_stand_beside_the_score() -> None:
    row = fake("u/a", x=[0.5, 0.7])
    for fit, clusters in zip(row["methods"]["x"], (4, 6), strict=True):
        fit["clusters"] = [clusters]
    assert "| 0.60 (4, 6) |" in clustering.report_stage([row], [], [], found=True)[1]


def test_lower_fits_are_counted_and_marked() -> None:
    usual = {"set": "u/a", "k": 2, "passes": 5, "our_cpu": 1.0, "their_cpu": 2.0, "theirs": -1.0,
             "their_degenerate": False, "followed_converged": True, "reference": -1.5}  # fmt: skip
    ours = [-1.00009, -1.0002, -1.049, -1.06, -0.9]
    fits = [{**usual, "seed": seed, "ours": value} for seed, value in enumerate(ours)]
    fits[3]["their_degenerate"] = True
    text = clustering_likelihood.report({"fits": fits})
    assert (
        "Of 5 fits 3 are lower by more than 0.0001 (2 of them where the better one has no "
        "component at its floor), 1 by more than 0.05; 1 are higher by more than 0.0001." in text
    )
    listed = [
        [cell.strip() for cell in line.split("|")[3:8]]
        for line in text.split("Lower fits")[1].splitlines()
        if line.startswith("| u/a")
    ]
    assert [(cells[0], cells[3], cells[4]) for cells in listed] == [
        ("1", "-0.0002", ""), ("2", "-0.0490", ""), ("3", "-0.0600", "*"),
    ]  # fmt: skip


@pytest.mark.slow
def test_one_command_writes_tables_and_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["gaussian/unequal", "noise/bananas"]
    monkeypatch.setattr(clustering, "choose", lambda folder, quick: (None, few))
    both = [Comparison.clustering, Comparison.clustering_likelihood]
    main(both, quick=True, out=tmp_path / "f.json")
    printed = capsys.readouterr()
    assert "partitions_unknown: gaussian/unequal, noise/bananas (0 of 2 done)" in printed.err
    assert "mean of noise" in printed.out and "Of 2 fits" in printed.out
    figures = json.loads((tmp_path / "f.json").read_text())
    assert [row["set"] for row in figures["clustering"]["given"]] == few
    assert [row["set"] for row in figures["clustering"]["unknown"]] == few
    assert len(figures["clustering-likelihood"]["fits"]) == 2


# ------------------------------------------------ the number of clusters


def test_shapes_that_judge_have_rows_of_every_group_and_other_draws() -> None:
    for name in JUDGED:
        one, other = draw_judged(name, 0), draw_judged(name, 1)
        (labels,) = one.labelings
        assert len(one.X) == len(labels) and np.isfinite(one.X).all(), name
        assert np.bincount(labels)[1:].min() >= 50, name
        assert (len(np.unique(labels)) == 1) == name.startswith("one/"), name
        assert not np.array_equal(one.X, other.X), name
        np.testing.assert_array_equal(one.X, draw_judged(name, 0).X)


def test_a_gaussian_is_one_cluster_and_the_table_counts_what_is_wrong(tmp_path: Any) -> None:
    (fit,) = clustering_auto.judge(1, ["one/normal"], [0], quick=True, kept=tmp_path / "k.jsonl")
    assert (fit["true"], fit["found"], fit["ari"]["auto"]) == (1, 1, 1.0)
    assert clustering_auto.judge(1, ["one/normal"], [0], kept=tmp_path / "k.jsonl") == [fit]
    fits = [{**fit, "set": "one/a", "found": found, "told": told}
            for found, told in ((1, False), (2, True), (3, False))]  # fmt: skip
    fits.append({**fit, "set": "bent/b", "true": 2, "found": 1})
    lines = [[cell.strip() for cell in line.split("|")[1:-1]]
             for line in clustering_auto.report({"fits": fits}).splitlines()]  # fmt: skip
    assert ["one/a", "1", "3", "1", "0", "2", "1"] in [line[:7] for line in lines]
    assert ["all of bent", "2", "1", "0", "1", "0", "1"] in [line[:7] for line in lines]
