"""Supervised PPCA beside other projections: by hand on small tables, and on the real faces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.cross_decomposition import PLSRegression
from sklearn.neighbors import KNeighborsClassifier

from papers import sppca_half_labelled, sppca_multiclass, sppca_multilabel
from papers.frame.data import check_data
from papers.frame.run import reproduce, show_nothing
from papers.frame.table import Verdict
from papers.shared import baseline_projections, labelled_sets, plain_sppca, sppca_trials

pytestmark = pytest.mark.slow  # a published table, run small


@pytest.fixture(scope="module")
def groups() -> labelled_sets.Labelled:
    """Four classes that differ along axes of little variance, in 30 columns."""
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(4), 30)
    X = rng.normal(size=(120, 30)) * np.linspace(4, 0.3, 30)
    X[:, 20:24] += 3 * np.eye(4)[y]
    return labelled_sets.Labelled("groups", X + 5, y)


# ------------------------------------------------ splits and tables


def test_splits_take_as_many_rows_of_each_class(groups: labelled_sets.Labelled) -> None:
    train, test = labelled_sets.split_few_labelled(groups.y, 5, np.random.default_rng(0))
    assert np.bincount(groups.y[train]).tolist() == [5] * 4
    assert sorted([*train, *test]) == list(range(120))
    train, test = labelled_sets.split_half_labelled(groups.y, np.random.default_rng(0))
    assert np.bincount(groups.y[train]).tolist() == [15] * 4 and len(test) == 60
    other, _ = labelled_sets.split_half_labelled(groups.y, np.random.default_rng(1))
    assert set(other) != set(train)


def test_positives_of_every_label_are_drawn(rng: np.random.Generator) -> None:
    Y = (rng.random((200, 6)) < 0.2).astype(int)
    train, test = sppca_multilabel.draw_positives(Y, 5, rng)
    assert (Y[train].sum(axis=0) >= 5).all() and len(train) <= 30
    assert not set(train) & set(test) and len(train) + len(test) == 200


def test_faces_have_unit_rows_and_another_file_is_refused(tmp_path: Path) -> None:
    people = np.repeat(np.arange(1, 16), 11)
    X = np.random.default_rng(0).integers(0, 256, (165, 1024)).astype(np.uint8)
    X[7] = 0
    path = tmp_path / labelled_sets.SETS["Yale"].file.name
    np.savez(path, X=X, y=people)
    data = labelled_sets.load_set("Yale", tmp_path)
    lengths = np.linalg.norm(data.X, axis=1)
    assert lengths[7] == 0 and np.allclose(np.delete(lengths, 7), 1)
    assert data.y.tolist() == (people - 1).tolist()
    np.savez(path, X=X, y=np.minimum(people, 14))
    with pytest.raises(ValueError, match=r"y of 15 classes.*got .* 14 classes .* Obtain it again"):
        labelled_sets.load_set("Yale", tmp_path)
    found, notes = labelled_sets.find_sets(("Yale", "ORL"), tmp_path)
    assert found == ("Yale",) and "orl_faces_32x32.npz" in notes[0]


def test_words_stay_sparse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X = sparse.random(50, 80, 0.1, "csr", rng=np.random.default_rng(0))
    X.data = np.ceil(3 * X.data)
    about = labelled_sets.SETS["TDT2"]
    small = labelled_sets.SetFile(about.file, (50, 80), 2, 5, text=True)
    monkeypatch.setitem(labelled_sets.SETS, "TDT2", small)
    np.savez(tmp_path / about.file.name, data=X.data, indices=X.indices, indptr=X.indptr,
             shape=X.shape, y=np.arange(50) % 2)  # fmt: skip
    found = labelled_sets.load_set("TDT2", tmp_path).X
    assert sparse.issparse(found) and found.nnz == X.nnz
    # the rule of the library: tf (1 + ln((1 + n) / (1 + df))), rows of unit length
    counts = X.toarray()
    weights = counts * (1 + np.log(51 / (1 + (counts > 0).sum(axis=0))))
    np.testing.assert_allclose(
        found.toarray(), labelled_sets.scale_to_unit_length(weights), atol=1e-12
    )


# ------------------------------------------------ the other projections


def test_the_span_keeps_products_of_centred_rows(groups: labelled_sets.Labelled) -> None:
    train = np.arange(0, 120, 7)
    F = baseline_projections.compute_span_coordinates(groups.X, train)
    centred = groups.X - groups.X[train].mean(axis=0)
    assert F.shape == (120, len(train) - 1)
    np.testing.assert_allclose(F[train] @ F.T, centred[train] @ centred.T, atol=1e-8)
    by_words = baseline_projections.compute_span_coordinates(sparse.csr_array(groups.X), train)
    np.testing.assert_allclose(by_words @ by_words.T, F @ F.T, atol=1e-8)


def test_ridge_lda_solves_its_equation_in_all_columns(groups: labelled_sets.Labelled) -> None:
    """Scatters of the columns themselves; the labelled rows are fewer than those."""
    train, _ = labelled_sets.split_few_labelled(groups.y, 5, np.random.default_rng(0))
    Z = baseline_projections.project_by_ridge_lda(
        baseline_projections.compute_span_coordinates(groups.X, train), groups.y, train, 20, 30
    )
    assert Z.shape == (120, 3)
    rows, classes = groups.X[train], groups.y[train]
    means = np.stack([rows[classes == c].mean(axis=0) for c in range(4)])
    within = np.cov((rows - means[classes]).T, bias=True)
    between = np.cov(means.T, bias=True)
    ridge = within + 0.1 * np.trace(within) / 30 * np.eye(30)
    values, axes = np.linalg.eig(np.linalg.solve(ridge, between))
    order = np.argsort(-values.real)[:3]
    expected = (groups.X - rows.mean(axis=0)) @ axes.real[:, order]
    for mine, theirs in zip(Z.T, expected.T, strict=True):
        assert abs(np.corrcoef(mine, theirs)[0, 1]) > 1 - 1e-8


def test_pls_in_the_span_is_pls_of_the_columns(groups: labelled_sets.Labelled) -> None:
    train, _ = labelled_sets.split_few_labelled(groups.y, 6, np.random.default_rng(0))
    Y = np.eye(4)[groups.y[train]]
    found = baseline_projections.project_by_pls(
        baseline_projections.compute_span_coordinates(groups.X, train), Y, train, 3
    )
    expected = PLSRegression(3, scale=False, max_iter=5000).fit(groups.X[train], Y)
    theirs = expected.transform(groups.X)
    signs = np.sign((found * theirs).sum(axis=0))
    np.testing.assert_allclose(found * signs, theirs, atol=1e-5)


def test_neighbours_and_axes_are_those_of_scikit_learn(groups: labelled_sets.Labelled) -> None:
    train, test = labelled_sets.split_few_labelled(groups.y, 5, np.random.default_rng(0))
    scores = baseline_projections.compute_principal_scores(groups.X, 6, 0)
    by_words = baseline_projections.compute_principal_scores(sparse.csr_array(groups.X), 6, 0)
    np.testing.assert_allclose(np.abs(by_words), np.abs(scores), atol=1e-6)
    for Z, error in (
        (scores, baseline_projections.measure_nearest_error(scores, groups.y, train, test)),
        (
            groups.X,
            baseline_projections.measure_nearest_error_of_rows(groups.X, groups.y, train, test),
        ),
        (
            groups.X,
            baseline_projections.measure_nearest_error_of_rows(
                sparse.csr_array(groups.X), groups.y, train, test
            ),
        ),
    ):
        judge = KNeighborsClassifier(1).fit(Z[train], groups.y[train])
        assert error == pytest.approx(1 - judge.score(Z[test], groups.y[test]))
        assert 0 < error < 1
    assert np.allclose(baseline_projections.whiten(scores).std(axis=0), 1)


# ------------------------------------------------ supervised PPCA


def test_labels_of_test_rows_are_not_seen(groups: labelled_sets.Labelled) -> None:
    train, test = labelled_sets.split_few_labelled(groups.y, 5, np.random.default_rng(0))
    lies = groups.y.copy()
    lies[test] = np.random.default_rng(1).permutation(lies[test])
    Y = np.eye(4, dtype=int)
    for noises in ({}, {"input_noise": 1.0, "output_noise": 0.01}):
        for semi in (False, True):
            for y, other in ((groups.y, lies), (Y[groups.y], Y[lies])):
                a, b = (
                    sppca_trials.project(
                        groups.X, some, train, 3, semi=semi, max_iter=30, **noises
                    ).Z
                    for some in (y, other)
                )
                np.testing.assert_array_equal(a, b)


def test_the_weight_of_rows_without_label_leads_from_one_to_the_other(
    groups: labelled_sets.Labelled,
) -> None:
    train, _ = labelled_sets.split_half_labelled(groups.y, np.random.default_rng(0))

    def products(semi: bool, weight: float) -> np.ndarray:
        Z = sppca_trials.project(
            groups.X,
            groups.y,
            train,
            3,
            semi=semi,
            max_iter=2000,
            weight=weight,
            input_noise=1.0,
            output_noise=0.01,
        ).Z
        Z = Z - Z.mean(axis=0)
        return Z @ Z.T

    alone, together = products(False, 1.0), products(True, 1.0)
    scale = np.abs(alone).max()
    assert np.abs(products(True, 1e-6) - alone).max() < 0.02 * scale
    assert np.abs(together - alone).max() > 0.1 * scale


def test_held_noises_find_the_classes_that_variance_hides() -> None:
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(4), 30)
    X = rng.normal(size=(120, 30)) * np.repeat([2.0, 0.3], [6, 24])
    X[:, 20:24] += 3 * np.eye(4)[y]
    train, test = labelled_sets.split_half_labelled(y, rng)

    def error(Z: np.ndarray) -> float:
        return baseline_projections.measure_nearest_error(Z, y, train, test)

    def fitted(**settings: float) -> float:
        return error(sppca_trials.project(X, y, train, 3, semi=True, max_iter=500, **settings).Z)

    plain = error(
        baseline_projections.whiten(baseline_projections.compute_principal_scores(X, 3, 0))
    )
    held = fitted(weight=0.1, input_noise=1.0, output_noise=0.01)
    assert plain > 0.5 and held < 0.25, (plain, fitted(), held)


def test_a_trial_has_every_column_at_every_dimension(groups: labelled_sets.Labelled) -> None:
    train, test = labelled_sets.split_few_labelled(groups.y, 5, np.random.default_rng(0))
    scores = baseline_projections.compute_principal_scores(groups.X, 4, 0)
    outcome = sppca_trials.measure_split(
        groups, scores, sppca_trials.Trial(train, test, (2, 4), 50)
    )
    names = [c.name for c in sppca_multiclass.COLUMNS if not c.name.endswith("by EM")]
    assert set(outcome.errors) == {(name, d) for name in names for d in (2, 4)}
    assert set(outcome.steps) == {(name, d) for name in sppca_trials.SUPERVISED for d in (2, 4)}
    error = baseline_projections.measure_nearest_error(scores[:, :2], groups.y, train, test)
    assert outcome.errors["PCA", 2] == error
    assert outcome.errors["FULL", 2] == outcome.errors["FULL", 4]


# ------------------------------------------------ judging


def test_what_is_published_has_the_shape_of_the_table() -> None:
    """147 numbers of table 7.3, each with its standard deviation."""
    published, spreads = sppca_multiclass.PUBLISHED, sppca_multiclass.SPREADS
    assert set(published) == set(spreads) == set(sppca_multiclass.FULL.splits)
    assert set(sppca_multiclass.QUICK.splits) < set(sppca_multiclass.FULL.splits)
    judged = 0
    for name in published:
        assert set(published[name]) == set(spreads[name])
        for printed in published[name]:
            for j, d in enumerate(sppca_multiclass.DIMS):
                column = next(c for c in sppca_multiclass.COLUMNS if c.name == printed)
                value, width = published[name][printed][j], 2 * spreads[name][printed][j]
                near = sppca_multiclass._make_cell(name, d, column, (value + 0.99 * width,))
                far = sppca_multiclass._make_cell(name, d, column, (value + 1.01 * width,))
                assert column.verdict(near) is Verdict.reproduced
                assert column.verdict(far) is Verdict.differs and len(far.why) > 20
                judged += 1
    assert judged == 147
    assert all(
        len(values) == 3 for means in sppca_multilabel.PUBLISHED.values() for values in means
    )


def test_plain_em_ends_where_the_class_does(groups: labelled_sets.Labelled) -> None:
    """No code in common: a random start, and thousands of plain steps."""
    X = labelled_sets.scale_to_unit_length(groups.X)
    train, _ = labelled_sets.split_few_labelled(groups.y, 5, np.random.default_rng(0))
    labels = np.column_stack([groups.y == 0, groups.y < 2, groups.y % 2]).astype(int)
    Y = labels[train]
    for semi in (True, False):
        theirs = plain_sppca.project_by_em(
            X, 30, Y, train, 2, semi=semi, rng=np.random.default_rng(1), steps=6000
        )
        ours = sppca_trials.project(X, labels, train, 2, semi=semi, max_iter=500).Z
        turned, *_ = np.linalg.lstsq(theirs - theirs.mean(axis=0), ours - ours.mean(axis=0))
        left = (theirs - theirs.mean(axis=0)) @ turned - (ours - ours.mean(axis=0))
        assert np.abs(left).max() < 0.05 * np.abs(ours).max()


# ------------------------------------------------ real data


def test_faces_as_plain_em_has_them(
    shared_data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shared_data(labelled_sets.SETS["Yale"].file.name).parent
    monkeypatch.setattr(sppca_multiclass, "QUICK", sppca_multiclass.Size({"Yale": 3}, 25, 0, 1))
    table = reproduce(sppca_multiclass.EXPERIMENT, folder, quick=True).table
    assert table.rows == ("Yale, d = 5", "Yale, d = 10", "Yale, d = 20")
    figure = Figure()
    assert table.draw is not None
    table.draw(figure)
    assert [ax.get_title() for ax in figure.axes] == ["Yale"]
    claims = {check.claim: check.holds for check in table.checks}
    assert len(claims) == 4 and all(claims.values()), claims


def test_without_any_file_of_the_size_the_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="news20"):
        check_data("t", sppca_multiclass.EXPERIMENT.data, tmp_path)
    (tmp_path / labelled_sets.SETS["TDT2"].file.name).write_bytes(b"")
    # the other files are optional: their rows are left out
    assert check_data("t", sppca_multiclass.EXPERIMENT.data, tmp_path) == tmp_path
    with pytest.raises(FileNotFoundError, match="yale_faces_32x32"):
        reproduce(sppca_multiclass.EXPERIMENT, tmp_path, quick=True)


def test_genes_as_plain_em_has_them(
    shared_data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shared_data(sppca_multilabel.GENES.name).parent
    monkeypatch.setattr(sppca_multilabel, "QUICK", sppca_multilabel.Size(2, 20, 1, 60, 0, 0))
    table = reproduce(sppca_multilabel.EXPERIMENT, folder, quick=True).table
    assert len(table.rows) == 25
    assert all(check.holds for check in table.checks), table.checks
    assert table.cell("FULL", "AUC").ours == pytest.approx(0.552, abs=0.03)  # type: ignore[union-attr]


def test_reports_stand_in_for_a_set_that_is_not_public(
    shared_data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared_data(sppca_multilabel.GENES.name)
    folder = shared_data(sppca_multilabel.REPORTS.name).parent
    small = sppca_multilabel.Size(1, 10, 1, 10, 1, 300)
    monkeypatch.setattr(sppca_multilabel, "QUICK", small)
    table = reproduce(sppca_multilabel.EXPERIMENT, folder, quick=True).table
    rows = [row for row in table.rows if row.startswith(sppca_multilabel.STAND_IN)]
    assert len(rows) == 19 and not any("by EM" in row for row in rows)
    assert all(cell.published is None for cell in table.cells if cell.row in rows)
    claims = [check.claim for check in table.checks if check.claim.startswith("reports")]
    assert len(claims) == 2


def test_the_setting_of_least_error_is_chosen(
    groups: labelled_sets.Labelled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the set for that, on splits of its own."""
    seen = []

    def held(
        data: labelled_sets.Labelled,
        setting: sppca_half_labelled.Setting,
        train: object,
        test: object,
    ) -> float:
        seen.append((data.name, setting, tuple(train)))  # type: ignore[call-overload]
        return abs(setting.input_noise - 0.02)

    def load(name: str, folder: Path) -> labelled_sets.Labelled:
        return labelled_sets.Labelled(name, groups.X, groups.y)

    monkeypatch.setattr(sppca_half_labelled, "_measure_held", held)
    monkeypatch.setattr(sppca_half_labelled, "load_set", load)
    monkeypatch.setattr(sppca_half_labelled, "find_sets", lambda names, folder: (names, ()))
    grid = tuple(sppca_half_labelled.Setting(noise, 3.0, 0.1) for noise in (0.01, 0.02, 0.03))
    monkeypatch.setattr(
        sppca_half_labelled, "QUICK", sppca_half_labelled.Size({"ORL": 2, "Yale": 2}, 2, grid)
    )
    table = sppca_half_labelled.run(Path(), True, 0, show_nothing)
    assert table.notes[-1].startswith("Chosen on ORL of 3 settings: input_noise=0.02, output_noise")
    choosing, judging = seen[:6], seen[6:]
    assert {name for name, _, _ in choosing} == {"ORL"}
    assert [name for name, _, _ in judging] == ["ORL", "ORL", "Yale", "Yale"]
    assert {setting for _, setting, _ in judging} == {grid[1]}
    assert not {rows for *_, rows in choosing} & {rows for *_, rows in judging}


def test_labels_matter_on_half_labelled_faces(
    shared_data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ORL", "Yale"):
        folder = shared_data(labelled_sets.SETS[name].file.name).parent
    grid = (sppca_half_labelled.Setting(3e-4, 3.0, 0.1),)
    monkeypatch.setattr(
        sppca_half_labelled, "QUICK", sppca_half_labelled.Size({"Yale": 6}, 1, grid)
    )
    table = sppca_half_labelled.run(folder, True, 0, show_nothing)
    plain, held = table.cell("Yale", "PCA whitened"), table.cell("Yale", "S2PPCA held")
    assert plain is not None and held is not None
    assert held.ours < 0.9 * plain.ours
    assert [check.holds for check in table.checks] == [True]
    assert any("input_noise=0.0003" in note for note in table.notes)
