"""DeepFactorNetwork: growth, training of the whole, answers, generated rows, files."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

import mixfold
from mixfold import DeepFactorNetwork, DegenerateWarning, MatrixFactorization
from mixfold.models.networks.use import sources_of
from mixfold.testing.compare import require_same

PRIORS = ["mixture", "gaussian", "laplace", "prototype"]
# layers that need not be precise
QUICK = {"layer_options": {"tol": 1e-3}, "random_state": 0}
TUNINGS = ["recognition", "decoder", "map", None]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16, y[:300], X[300:600] / 16, y[300:600]


@pytest.fixture(scope="module")
def fitted(digits):
    X, y, _, _ = digits
    return {
        tuning: DeepFactorNetwork(
            (20, 10), fine_tune=tuning, max_iter=60, **QUICK
        ).fit(X, y)
        for tuning in TUNINGS
    }  # fmt: skip


# ------------------------------------------------ growth


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_greedy_layers_are_factorizations_by_hand(digits):
    X, y, Xt, _ = digits
    X, y, Xt = X[:150], y[:150], Xt[:100]
    model = DeepFactorNetwork(
        (12, 6), alpha=(0.0, 0.02), gamma=(0.1, 0.2), sigma2=(0.05, 0.01), fine_tune=None,
        random_state=3,
    ).fit(X, y)  # fmt: skip
    one = MatrixFactorization(12, gamma=0.1, sigma2=0.05, supervised=False,
                              random_state=model.layers_[0].random_state).fit(X)  # fmt: skip
    two = MatrixFactorization(6, alpha=0.02, gamma=0.2, sigma2=0.01,
                              random_state=model.layers_[1].random_state)  # fmt: skip
    two.fit(one.transform(X), y)
    np.testing.assert_allclose(model.layers_[0].components_, one.components_, atol=1e-10)
    np.testing.assert_allclose(model.layers_[1].components_, two.components_, atol=1e-8)
    below = one.transform(Xt)
    np.testing.assert_allclose(model.transform(Xt, layer=1), below, atol=1e-8)
    np.testing.assert_allclose(model.transform(Xt), two.transform(below), atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(Xt), two.predict_proba(below), atol=1e-6)
    rows = one.inverse_transform(two.inverse_transform(two.transform(below)))
    np.testing.assert_allclose(model.reconstruct(Xt), rows, atol=1e-6)


def test_which_layers_have_a_classifier(digits):
    X, y, _, _ = digits
    heads = {}
    for supervised in ("top", "each", False):
        model = DeepFactorNetwork((8, 4), supervised=supervised, fine_tune=None, **QUICK)
        model.fit(X, y)
        heads[supervised] = [hasattr(layer, "coef_") for layer in model.layers_]
        assert model.score(X, y) > 0.5
    assert heads == {"top": [False, True], "each": [True, True], False: [False, True]}


def test_layers_speak_of_the_classes_of_the_user(digits):
    X, y, _, _ = digits
    names = np.array([f"digit {c}" for c in range(10)])
    model = DeepFactorNetwork((8, 4), supervised="each", max_iter=5, **QUICK)
    model.fit(X, names[y])
    assert model.classes_.tolist() == names.tolist()
    assert set(model.predict(X)) <= set(names)
    assert model.layers_[0].classes_.tolist() == names.tolist()


def test_without_labels_there_are_sources_only(digits):
    X, _, Xt, _ = digits
    model = DeepFactorNetwork((12, 6), random_state=0).fit(X)
    assert model.network_ is None and not len(model.classes_)
    assert model.transform(Xt).shape == (300, 6)
    assert model.score(Xt) == -model.reconstruction_error(Xt)
    for name in ("predict", "predict_proba", "generate", "prototypes"):
        assert not hasattr(model, name)


def test_layers_of_lines_are_told_of(digits):
    X, y, _, _ = digits
    with pytest.warns(DegenerateWarning, match="collapse into one"):
        DeepFactorNetwork((8, 4), link="identity", max_iter=2, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DeepFactorNetwork((4,), link="identity", max_iter=2, random_state=0).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("link", ["logistic", "saturating"])
@pytest.mark.parametrize("tuning", ["recognition", "decoder"])
def test_other_links(digits, link, tuning):
    X, y, Xt, yt = digits
    model = DeepFactorNetwork(
        (12, 8), link=link, fine_tune=tuning, max_iter=40, layer_options={"max_iter": 8},
        random_state=0,
    )  # fmt: skip
    assert model.fit(X[:250], y[:250]).score(Xt, yt) > 0.5
    assert np.isfinite(model.reconstruct(Xt)).all()
    assert np.isfinite(model.generate(1, 3, random_state=0)).all()


# ------------------------------------------------ training of the whole


def test_training_of_the_whole_helps_and_never_goes_up(digits, fitted):
    X, _, Xt, yt = digits
    for tuning in ("recognition", "decoder", "map"):
        curve = np.array(fitted[tuning].loss_curve_)
        assert len(curve) > 10
        assert (np.diff(curve) <= 1e-9 * np.abs(curve[0])).all(), tuning
    assert fitted["recognition"].score(Xt, yt) > fitted[None].score(Xt, yt)
    error = {tuning: model.reconstruction_error(X) for tuning, model in fitted.items()}
    assert error["decoder"] < error[None]
    assert error["recognition"] == error[None]


@pytest.mark.parametrize("tuning", ["decoder", "map"])
def test_joint_sources_are_minima_of_the_energy(digits, fitted, tuning):
    _, _, Xt, _ = digits
    stack = fitted[tuning]._stack
    assert stack.reading == tuning
    sources = sources_of(stack, Xt[:20])
    energy = stack.energy()
    free = [sources[i] for i in energy.free(2)]
    bare = (stack.layers[0], stack.layers[1].without_head())
    here = energy.pull(bare, Xt[:20], None, free).values
    rng = np.random.default_rng(0)
    for _ in range(5):
        moved = [np.clip(s + 0.01 * rng.normal(size=s.shape), -4, 4) for s in free]
        assert (energy.pull(bare, Xt[:20], None, moved).values >= here - 1e-9).mean() > 0.95
    np.testing.assert_allclose(fitted[tuning].transform(Xt[:20]), sources[-1], atol=1e-6)


def test_adam_learns_and_can_be_held_to_a_validation_split(digits):
    X, y, Xt, yt = digits
    model = DeepFactorNetwork(
        (20, 10), solver="adam", max_epochs=30, batch_size=20, learning_rate=5e-3, **QUICK
    ).fit(X, y)
    assert len(model.loss_curve_) <= 30
    assert model.score(Xt, yt) > 0.75
    assert model.stop_reason_ in ("max_epochs", "patience")
    again = DeepFactorNetwork(
        (20, 10), solver="adam", max_epochs=30, batch_size=20, learning_rate=5e-3, **QUICK
    ).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(Xt), again.predict_proba(Xt))


def test_the_same_seed_gives_the_same_network_for_any_threads(digits):
    X, y, Xt, _ = digits
    found = [DeepFactorNetwork((8, 4), max_iter=8, **QUICK, n_jobs=n).fit(X, y) for n in (1, 2, 1)]
    np.testing.assert_array_equal(found[0].predict_proba(Xt), found[2].predict_proba(Xt))
    np.testing.assert_allclose(found[0].predict_proba(Xt), found[1].predict_proba(Xt), atol=1e-6)


@pytest.mark.parametrize("tuning", ["recognition", "decoder", "map"])
def test_weights_are_repetitions(digits, tuning):
    X, y, Xt, _ = digits
    X, y = X[:120, 20:36], y[:120] % 3
    weight = np.random.default_rng(0).integers(0, 3, 120)
    settings = {"fine_tune": tuning, "supervised": False, "max_iter": 4, "random_state": 0}
    weighed = DeepFactorNetwork((6, 4), **settings).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(120), weight)
    repeated = DeepFactorNetwork((6, 4), **settings).fit(X[rows], y[rows])
    # codes are solved to a tolerance, which another order of the rows shows as well (1e-3);
    # without the weights answers differ by 0.2 and more
    np.testing.assert_allclose(
        weighed.predict_proba(Xt[:50, 20:36]), repeated.predict_proba(Xt[:50, 20:36]), atol=5e-3
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("tuning", ["recognition", "decoder"])
def test_units_and_origin_of_the_rows_do_not_matter(digits, tuning):
    X, y, Xt, yt = (part[:200] for part in digits)
    settings = {"fine_tune": tuning, "max_iter": 20} | QUICK
    plain = DeepFactorNetwork((10, 6), **settings).fit(X, y)
    told, left = plain.score(Xt, yt), plain.reconstruction_error(Xt)
    for unit, origin in ((1e-6, 0.0), (1e6, 0.0), (1.0, 1e5)):
        model = DeepFactorNetwork((10, 6), **settings).fit(X * unit + origin, y)
        assert model.score(Xt * unit + origin, yt) > told - 0.1
        assert model.reconstruction_error(Xt * unit + origin) < 1.2 * left * unit**2


def test_unlabelled_rows_shape_the_layers_only(digits):
    X, y, Xt, yt = digits
    partly = y.copy()
    partly[100:] = -1
    model = DeepFactorNetwork((20, 10), supervised=False, max_iter=60, random_state=0)
    model.fit(X, partly)
    alone = DeepFactorNetwork((20, 10), supervised=False, max_iter=60, random_state=0)
    alone.fit(X[:100], y[:100])
    full = DeepFactorNetwork((20, 10), supervised=False, fine_tune=None, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.layers_[0].components_, full.layers_[0].components_)
    assert model.reconstruction_error(Xt) < alone.reconstruction_error(Xt)
    assert model.score(Xt, yt) > 0.6
    assert model.score(X, partly) == pytest.approx(1.0, abs=0.02)  # unknown rows do not count


def test_missing_entries(digits):
    X, y, Xt, yt = digits
    holed = X.copy()
    holed[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = DeepFactorNetwork((20, 10), max_iter=60, **QUICK).fit(holed, y)
    assert model.score(Xt, yt) > 0.8
    assert np.isfinite(model.transform(holed)).all() and model.score(holed, y) > 0.95
    assert np.isfinite(model.reconstruct(holed)).all()
    for tuning in ("decoder", "map"):
        model = DeepFactorNetwork((20, 10), fine_tune=tuning, max_iter=20, **QUICK)
        assert np.isfinite(model.fit(holed[:150], y[:150]).transform(holed[:20])).all()


def test_sparse_rows_are_rows(digits):
    X, y, Xt, _ = digits
    dense = DeepFactorNetwork((10, 5), max_iter=10, **QUICK).fit(X, y)
    thin = DeepFactorNetwork((10, 5), max_iter=10, **QUICK).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(
        thin.predict_proba(sparse.csr_matrix(Xt)), dense.predict_proba(Xt), atol=1e-5
    )


def test_single_precision(digits):
    X, y, Xt, yt = digits
    model = DeepFactorNetwork((10, 5), max_iter=40, random_state=0).fit(X.astype(np.float32), y)
    assert model.transform(Xt.astype(np.float32)).dtype == np.float32
    assert model.predict_proba(Xt.astype(np.float32)).dtype == np.float32
    assert model.generate(0, 2).dtype == np.float32
    assert model.score(Xt.astype(np.float32), yt) > 0.75


# ------------------------------------------------ generation


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("tuning", TUNINGS)
def test_generated_rows_have_the_shape_and_the_class_asked_for(fitted, prior, tuning):
    model = fitted[tuning]
    rows = model.generate(3, 20, prior, random_state=0)
    assert rows.shape == (20, 64) and np.isfinite(rows).all()
    np.testing.assert_array_equal(rows, model.generate(3, 20, prior, random_state=0))
    alike = np.ptp(rows, axis=0).max() == 0
    assert alike == (prior == "prototype")
    if prior != "laplace" or tuning is None:  # a search in the sources fools the network
        assert (model.predict(rows) == 3).mean() > 0.6


def test_kept_rows_are_those_that_the_model_believes(fitted):
    model = fitted["recognition"]
    rows = model.generate(8, 30, keep=0.9, random_state=0)
    assert rows.shape == (30, 64)
    assert (model.predict_proba(rows)[:, 8] > 0.9).all()
    with pytest.warns(DegenerateWarning, match="Lower keep"):
        few = fitted["recognition"].generate(8, 3, keep=1 - 1e-12, random_state=0)
    assert few.shape == (3, 64)


def test_mixture_prior_is_more_like_the_rows_of_the_class_than_the_search(digits, fitted):
    X, y, _, _ = digits
    model = fitted["recognition"]
    own = X[y == 0]

    def nearest(rows):
        return np.sqrt(((rows[:, None] - own[None]) ** 2).sum(axis=2)).min(axis=1).mean()

    made = {prior: model.generate(0, 40, prior, random_state=0) for prior in PRIORS[:3]}
    assert nearest(made["mixture"]) < nearest(made["laplace"])
    assert nearest(made["gaussian"]) < nearest(made["laplace"])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"label": 11}, "11 is no known class"),
        ({"label": 1, "n": 0}, "n must be an int >= 1; got 0"),
        ({"label": 1, "prior": "cauchy"}, "prior must be one of 'mixture'"),
        ({"label": 1, "keep": 1.0}, "keep must be a probability"),
    ],
)
def test_requests_without_sense(fitted, how, message):
    with pytest.raises(ValueError, match=message):
        fitted[None].generate(**how)


def test_a_class_of_one_row_can_be_generated(digits):
    X, y, _, _ = digits
    some = np.r_[np.flatnonzero(y == 0)[:40], np.flatnonzero(y == 1)[:1]]
    model = DeepFactorNetwork((6, 3), max_iter=10, random_state=0).fit(X[some], y[some])
    for prior in ("mixture", "gaussian"):
        assert np.isfinite(model.generate(1, 3, prior, random_state=0)).all()


# ------------------------------------------------ answers


def test_rows_go_down_through_all_layers(digits, fitted):
    _, _, Xt, _ = digits
    model = fitted["recognition"]
    top, low = model.transform(Xt), model.transform(Xt, layer=1)
    assert low.shape == (300, 20)
    np.testing.assert_allclose(model.inverse_transform(top), model.reconstruct(Xt))
    np.testing.assert_allclose(
        model.inverse_transform(low, layer=1), model.reconstruct(Xt, layer=1)
    )
    error = model.reconstruction_error(Xt)
    rest = Xt - model.reconstruct(Xt)
    assert error == pytest.approx(0.5 * (rest**2).sum() / len(Xt))
    assert model.reconstruction_error(Xt, layer=1) < error
    weight = np.arange(300.0)
    weighed = 0.5 * (weight @ (rest**2).sum(axis=1)) / weight.sum()
    assert model.reconstruction_error(Xt, sample_weight=weight) == pytest.approx(weighed)
    with pytest.raises(ValueError, match="layer must be a number from 1"):
        model.transform(Xt, layer=3)
    with pytest.raises(ValueError, match="one column for each of the 20 sources of layer 1"):
        model.inverse_transform(top, layer=1)


def test_prototypes_and_sparsity(fitted, digits):
    _, _, Xt, _ = digits
    model = fitted[None]
    assert model.prototypes().shape == (10, 64)
    below, top = model.sparsity(Xt)
    assert set(below) == {"sources", "codebook"}
    assert set(top) == {"sources", "codebook", "classifier"}
    assert all(0 <= one["small"] <= 1 for part in (below, top) for one in part.values())


def test_answers_do_not_depend_on_neighbours(digits, fitted):
    _, _, Xt, _ = digits
    for model in fitted.values():
        some = model.transform(Xt[:6])
        each = np.concatenate([model.transform(Xt[i : i + 1]) for i in range(6)])
        np.testing.assert_allclose(some, each, atol=1e-5)


# ------------------------------------------------ files, time, misuse


@pytest.mark.parametrize("tuning", TUNINGS)
def test_files(digits, fitted, tuning, tmp_path):
    _, _, Xt, _ = digits
    model = fitted[tuning]
    model.save(tmp_path / "network.mixfold")
    back = mixfold.load(tmp_path / "network.mixfold")
    np.testing.assert_array_equal(back.predict_proba(Xt), model.predict_proba(Xt))
    np.testing.assert_array_equal(back.transform(Xt[:20]), model.transform(Xt[:20]))
    np.testing.assert_array_equal(
        back.generate(2, 3, random_state=0), model.generate(2, 3, random_state=0)
    )
    assert back.get_params() == model.get_params()
    assert back.loss_curve_ == model.loss_curve_
    np.testing.assert_array_equal(back.layers_[1].components_, model.layers_[1].components_)


class Stopped(Exception):
    pass


@pytest.mark.parametrize("tuning", ["recognition", "decoder", "adam"])
def test_a_fit_that_was_killed_goes_on(digits, tmp_path, monkeypatch, tuning):
    X, y, _, _ = digits
    settings = {**QUICK, "fine_tune": "recognition"}
    if tuning == "adam":
        settings |= {"solver": "adam", "max_epochs": 6}
    else:
        settings |= {"fine_tune": tuning, "max_iter": 25}
    file = tmp_path / "network.checkpoint"
    whole = DeepFactorNetwork((10, 5), **settings).fit(X, y)
    from mixfold.engine.checkpoints import Checkpoint

    write, count = Checkpoint.write, []

    def killed(self, progressed):
        write(self, progressed)
        if self.path == file:
            count.append(progressed)
            if len(count) == 5:
                raise Stopped

    monkeypatch.setattr(Checkpoint, "write", killed)
    monkeypatch.setattr(Checkpoint, "offer", Checkpoint.write)
    with pytest.raises(Stopped):
        DeepFactorNetwork((10, 5), **settings, checkpoint=file).fit(X, y)
    assert file.exists() and len(count[-1].layers) == 2 and count[-1].tuning is not None
    monkeypatch.undo()
    with pytest.raises(ValueError, match="other data"):
        DeepFactorNetwork((10, 5), **settings, checkpoint=file).fit(X[:200], y[:200])
    with pytest.raises(ValueError, match="hidden differ"):
        DeepFactorNetwork((10, 4), **settings, checkpoint=file).fit(X, y)
    model = DeepFactorNetwork((10, 5), **settings, checkpoint=file).fit(X, y)
    assert not file.exists() and not list(tmp_path.iterdir())
    require_same("bit for bit", model._state(), whole._state())
    assert all(layer.checkpoint is layer.time_budget is None for layer in model.layers_)


def test_time_budget_keeps_what_there_is(digits):
    X, y, Xt, _ = digits
    with pytest.warns(ConvergenceWarning, match="time_budget"):
        model = DeepFactorNetwork((20, 10), time_budget=1e-6, random_state=0).fit(X, y)
    assert model.stop_reason_ == "time_budget"
    assert model.predict_proba(Xt).shape == (300, 10)


def test_a_fit_whose_time_was_up_goes_on(digits, tmp_path):
    X, y, Xt, _ = digits
    file = tmp_path / "network.checkpoint"
    settings = {**QUICK, "fine_tune": None}
    with pytest.warns(ConvergenceWarning, match="time_budget"):
        DeepFactorNetwork((10, 5), **settings, checkpoint=file, time_budget=1e-6).fit(X, y)
    assert file.exists()
    model = DeepFactorNetwork((10, 5), **settings, checkpoint=file).fit(X, y)
    whole = DeepFactorNetwork((10, 5), **settings).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(Xt), whole.predict_proba(Xt), atol=1e-9)
    assert not list(tmp_path.iterdir())


def test_an_interruption_keeps_what_there_is(digits, monkeypatch):
    X, y, Xt, yt = digits
    from mixfold.engine.progress import Progress

    def say(self, line, due):
        if "step 30" in line:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "say", say)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = DeepFactorNetwork((20, 10), random_state=0).fit(X, y)
    assert model.stop_reason_ == "interrupted" and len(model.loss_curve_) == 31
    assert model.score(Xt, yt) > 0.6


def test_tables_and_names_of_columns(digits):
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install 'mixfold[tables]'")
    X, y, Xt, _ = digits
    table = pandas.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    plain = DeepFactorNetwork((8, 4), max_iter=5, **QUICK).fit(table, y)
    named = DeepFactorNetwork((8, 4), max_iter=5, **QUICK)
    named.fit(table.assign(digit=y), "digit")
    assert named.feature_names_in_.tolist() == table.columns.tolist()
    new = pandas.DataFrame(Xt, columns=table.columns)
    np.testing.assert_allclose(named.predict_proba(new), plain.predict_proba(new))
    assert named.score(new.assign(digit=digits[3]), "digit") == plain.score(new, digits[3])


def test_progress_is_told(digits, capsys):
    X, y, _, _ = digits
    DeepFactorNetwork((6, 4), max_iter=5, verbose=1, verbose_interval=1, random_state=0).fit(X, y)
    told = capsys.readouterr().err
    assert "layer 1 of 2: 6 sources" in told and "network  step 5" in told


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden": ()}, "'hidden' parameter of DeepFactorNetwork must be a tuple of ints >= 1"),
        ({"hidden": (3, 0)}, "'hidden' parameter"),
        ({"alpha": (0.1,)}, "one for each of the 2 layers"),
        ({"sigma2": 0.0}, "'sigma2' parameter"),
        ({"fine_tune": "bp"}, "'fine_tune' parameter"),
        ({"supervised": True}, "'supervised' parameter"),
        ({"layer_options": 3}, "'layer_options' parameter of DeepFactorNetwork must be None or a"),
    ],
)
def test_settings_without_sense(digits, settings, message):
    X, y, _, _ = digits
    with pytest.raises(ValueError, match=message):
        DeepFactorNetwork(**{"hidden": (4, 3), **settings}).fit(X, y)


def test_labels_of_which_none_is_known_are_a_mistake(digits):
    X, _, _, _ = digits
    with pytest.raises(ValueError, match="y has no known entry"):
        DeepFactorNetwork((4, 3)).fit(X, np.full(300, -1))
    with pytest.raises(ValueError, match="weight is zero in every row"):
        DeepFactorNetwork((4, 3)).fit(X, sample_weight=np.zeros(300))


def test_a_class_alone_is_a_mistake_and_told_by_its_name(digits):
    with pytest.raises(ValueError, match="1 class only, 'only'"):
        DeepFactorNetwork((4, 3)).fit(digits[0], np.full(len(digits[0]), "only"))


def test_options_reach_the_layers(digits):
    X, y, _, _ = digits
    options = {"reencode": False, "max_iter": 3, "tol": 0.0}
    model = DeepFactorNetwork((4, 3), layer_options=options, max_iter=2, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert [layer.reencode for layer in model.layers_] == [False, False]
    assert [layer.n_iter_ for layer in model.layers_] == [3, 3]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_penalties_of_the_whole_make_zeros(digits):
    X, y, _, _ = digits
    X, y = X[:150], y[:150]
    model = DeepFactorNetwork(
        (10, 5), beta=0.5, gamma=0.5, sigma2=0.05, fine_tune="decoder", max_iter=60, random_state=0
    ).fit(X, y)
    assert (model.layers_[0].components_ == 0).mean() > 0.1


@pytest.mark.parametrize("option", [{"nonneg_codebook": True}, {"fit_bias": False}])
@pytest.mark.parametrize("tune", ["decoder", "map"])
def test_what_training_of_the_whole_would_not_keep_is_refused(
    option: dict[str, bool], tune: str
) -> None:
    X = np.random.default_rng(0).random((30, 5))
    model = DeepFactorNetwork((3, 2), fine_tune=tune, layer_options=option)
    with pytest.raises(ValueError, match=f"{next(iter(option))}.*fine_tune='{tune}'"):
        model.fit(X, np.arange(30) % 2)
