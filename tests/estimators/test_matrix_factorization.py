"""MatrixFactorization against PCA, NMF and literal formulas; forms of data; corners."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import NMF, PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import mixfold
from mixfold import DegenerateWarning, MatrixFactorization

LINKS = ("identity", "saturating", "logistic", "tanh")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    S = rng.laplace(size=(240, 3))
    X = np.tanh(S) @ rng.normal(size=(3, 9)) + 0.2 * rng.normal(size=(240, 9)) + 1.0
    y = np.array(["a", "b", "c"])[S.argmax(axis=1)]
    return X, y


def same(one, other, rtol=1e-6) -> None:
    np.testing.assert_allclose(one.lower_bound_, other.lower_bound_, rtol=rtol)
    np.testing.assert_allclose(one.components_, other.components_, rtol=rtol, atol=1e-7)
    if hasattr(one, "coef_"):
        np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-4, atol=1e-4)


# ------------------------------------------------ what it must be equal to


@pytest.mark.parametrize("link", ["identity", "tanh", "logistic"])
def test_without_penalties_it_is_pca(data, link) -> None:
    X, _ = data
    model = MatrixFactorization(3, link=link, random_state=0, tol=1e-9).fit(X)
    pca = PCA(3).fit(X)
    error = 0.5 * ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum() / len(X)
    # a few codes may be at the ends of their range
    slack = 1e-9 if link == "identity" else 2e-3
    np.testing.assert_allclose(model.reconstruction_error(X), error, rtol=slack)
    axes, _ = np.linalg.qr(model.components_.T)
    cosines = np.linalg.svd(axes.T @ pca.components_.T, compute_uv=False)
    assert cosines.min() > 1 - (1e-12 if link == "identity" else 1e-3)


def test_supervised_without_penalties_is_a_softmax_of_pca(data) -> None:
    X, y = data
    model = MatrixFactorization(3, gamma=1e-3, sigma2=1e-4, random_state=0).fit(X, y)
    Z = PCA(3).fit_transform(X)
    peer = LogisticRegression(C=1e4, max_iter=2000).fit(Z, y)
    agree = (model.predict(X) == peer.predict(Z)).mean()
    assert agree > 0.98
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(Z), atol=0.05)


def test_nonneg_without_penalties_is_nmf(data) -> None:
    X = np.abs(data[0])
    model = MatrixFactorization(
        3, link="saturating", nonneg_codebook=True, fit_bias=False, random_state=0, tol=1e-7,
        max_iter=2000,
    ).fit(X)  # fmt: skip
    peer = NMF(3, init="nndsvda", tol=1e-8, max_iter=5000).fit(X)
    W = peer.transform(X)
    error = 0.5 * ((X - W @ peer.components_) ** 2).sum() / len(X)
    assert model.reconstruction_error(X) < 1.02 * error
    assert (model.components_ >= 0).all() and (model.transform(X) >= 0).all()


def test_objective_is_the_literal_one(data) -> None:
    X, y = data
    settings = {"alpha": 0.3, "beta": 0.2, "gamma": 0.4, "sigma2": 0.5}
    model = MatrixFactorization(3, **settings, reencode=False, random_state=0).fit(X, y)
    # the sources of the fit knew the labels: infer them so
    from mixfold.math.link_functions import LINKS as maps
    from mixfold.models.networks.factorization.codes import codes

    numbers = np.searchsorted(model.classes_, y)
    phi = codes(model._params.layer, maps["tanh"], X, 0.3, 0.5, numbers)
    R = X - phi @ model.components_ - model.bias_
    logits = phi @ model.coef_.T + model.intercept_
    log_q = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    E = (R**2).sum() / (2 * 0.5) + 0.3 * np.abs(np.arctanh(phi)).sum()
    E += 0.2 * np.abs(model.components_).sum() + 0.4 * np.abs(model.coef_).sum()
    E -= log_q[np.arange(len(X)), numbers].sum()
    np.testing.assert_allclose(model.lower_bound_, -E / len(X), rtol=1e-6)


# ------------------------------------------------ every setting climbs, forms do not matter

COMBINATIONS = [
    {"link": "tanh", "alpha": 0.2},
    {"link": "logistic", "alpha": 0.2, "beta": 0.1, "gamma": 0.3},
    {"link": "identity", "alpha": 0.5, "gamma": 0.1},
    {"link": "identity", "nonneg_sources": True, "alpha": 0.1},
    {"link": "tanh", "nonneg_sources": True},
    {"link": "saturating", "nonneg_codebook": True, "nonneg_classifier": True, "gamma": 0.1},
    {"link": "logistic", "nonneg_codebook": True, "alpha": 0.1},
    {"link": "tanh", "solver": "gradient", "alpha": 0.1, "beta": 0.1},
    {"link": "saturating", "nonneg_codebook": True, "nonneg_classifier": True,
     "solver": "multiplicative", "alpha": 0.1},
    {"link": "tanh", "batch_size": 60, "alpha": 0.1, "beta": 0.2, "gamma": 0.1},
    {"link": "tanh", "init": "random", "gauge": None},
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("settings", COMBINATIONS, ids=str)
def test_the_objective_never_falls(data, settings) -> None:
    X, y = np.abs(data[0]), data[1]
    model = MatrixFactorization(3, random_state=0, max_iter=25, **settings).fit(X, y)
    trace = np.array(model.lower_bounds_)
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[0])).all()
    assert not model.events_
    assert model.transform(X).shape == (240, 3) and model.score(X, y) > 0.5


@pytest.mark.parametrize("settings", [{"gamma": 0.1}, {"alpha": 0.2, "gamma": 0.3}], ids=str)
def test_forms_of_data_and_threads_do_not_matter(data, settings) -> None:
    X, y = data
    one = MatrixFactorization(3, random_state=0, n_jobs=1, **settings).fit(X, y)
    two = MatrixFactorization(3, random_state=0, n_jobs=2, **settings).fit(X, y)
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    csr = MatrixFactorization(3, random_state=0, **settings).fit(sparse.csr_array(X), y)
    same(csr, one)
    np.testing.assert_allclose(csr.transform(sparse.csr_array(X)), one.transform(X), atol=1e-6)
    single = MatrixFactorization(3, random_state=0, **settings).fit(X.astype(np.float32), y)
    assert single.components_.dtype == np.float32 == single.transform(X.astype("f4")).dtype
    np.testing.assert_allclose(single.lower_bound_, one.lower_bound_, rtol=1e-4)


def test_blocks_do_not_matter(data) -> None:
    X, y = data
    from mixfold.engine.sources import open_source

    class Cut:
        """The same rows in small blocks."""

        def __init__(self, source):
            self._source = source

        def __getattr__(self, name):
            return getattr(self.__dict__["_source"], name)

        def blocks(self, max_rows=None):
            return self._source.blocks(37)

    numbers = np.searchsorted(["a", "b", "c"], y)
    one = MatrixFactorization(3, alpha=0.1, gamma=0.2, random_state=0).fit(X, numbers)
    cut = MatrixFactorization(3, alpha=0.1, gamma=0.2, random_state=0)
    cut.fit(Cut(open_source(X, y=numbers)))
    same(cut, one, rtol=1e-5)


@pytest.mark.parametrize("settings", [{"gamma": 0.1}, {"alpha": 0.2, "gamma": 0.3}], ids=str)
def test_weights_are_repeats(data, settings) -> None:
    X, y = data
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    one = MatrixFactorization(3, random_state=0, **settings).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(len(X)), weight)
    two = MatrixFactorization(3, random_state=0, **settings).fit(X[rows], y[rows])
    same(one, two, rtol=1e-4)
    errors = one.reconstruction_error(X, weight), one.reconstruction_error(X[rows])
    np.testing.assert_allclose(*errors)


def test_dask_gives_as_good_a_fit(data, client) -> None:
    X, y = data
    settings = {"alpha": 0.1, "gamma": 0.3, "sigma2": 0.05, "random_state": 0, "tol": 1e-6}
    one = MatrixFactorization(3, **settings).fit(X, y)
    two = MatrixFactorization(3, **settings, executor="dask").fit(X, y)
    agree = (one.predict(X) == two.predict(X)).mean()
    np.testing.assert_allclose(one.lower_bound_, two.lower_bound_, rtol=1e-3)
    assert agree > 0.98


def test_missing_entries_are_left_out(data) -> None:
    """Rows of rank three are given back where a tenth of the entries was hidden."""
    rng = np.random.default_rng(0)
    full = rng.normal(size=(150, 2)) @ rng.normal(size=(2, 8)) + 2.0
    X = full.copy()
    X[rng.random(X.shape) < 0.1] = np.nan
    model = MatrixFactorization(2, link="identity", random_state=0, tol=1e-10, max_iter=2000).fit(X)
    np.testing.assert_allclose(model.reconstruct(X), full, atol=1e-2)
    assert model.reconstruction_error(X) < 1e-6
    assert (np.diff(model.lower_bounds_) >= -1e-12).all()


def test_unlabelled_rows_take_part(data) -> None:
    X, y = data
    numbers = np.searchsorted(["a", "b", "c"], y)
    few = np.where(np.arange(len(y)) % 4, -1, numbers)
    model = MatrixFactorization(3, gamma=0.2, random_state=0).fit(X, few)
    assert model.classes_.tolist() == [0, 1, 2]
    assert (model.predict(X) == numbers).mean() > 0.8
    alone = MatrixFactorization(3, gamma=0.2, random_state=0).fit(X[::4], numbers[::4])
    assert np.abs(alone.components_ - model.components_).max() > 1e-3


def test_far_from_zero(data) -> None:
    X, y = data
    near = MatrixFactorization(3, gamma=0.2, random_state=0).fit(X, y)
    far = MatrixFactorization(3, gamma=0.2, random_state=0).fit(X + 1e6, y)
    np.testing.assert_allclose(far.lower_bound_, near.lower_bound_, rtol=1e-5)
    np.testing.assert_allclose(far.reconstruction_error(X + 1e6), near.reconstruction_error(X),
                               rtol=1e-5)  # fmt: skip


# ------------------------------------------------ answers


@pytest.mark.parametrize("link", LINKS)
def test_sources_codes_and_rows_fit_together(data, link) -> None:
    X, _ = data
    model = MatrixFactorization(3, link=link, alpha=0.1, beta=0.1, random_state=0).fit(X)
    S, phi = model.transform(X), model.codes(X)
    value = {"identity": lambda s: s, "saturating": lambda s: s / (1 + s), "tanh": np.tanh,
             "logistic": lambda s: 1 / (1 + np.exp(-s))}[link]  # fmt: skip
    np.testing.assert_allclose(value(S), phi, atol=1e-9)
    rows = model.inverse_transform(S)
    np.testing.assert_allclose(rows, phi @ model.components_ + model.bias_, atol=1e-9)
    np.testing.assert_allclose(model.reconstruct(X), rows, atol=1e-9)
    error = 0.5 * ((X - rows) ** 2).sum(axis=1).mean()
    np.testing.assert_allclose(model.reconstruction_error(X), error)
    assert model.score(X) == -model.reconstruction_error(X)
    assert not hasattr(model, "predict") and not hasattr(model, "classes_")


@pytest.mark.filterwarnings("ignore:source . explained nothing")
def test_penalties_make_things_sparse(data) -> None:
    X, y = data
    dense = MatrixFactorization(4, gamma=0.01, random_state=0).fit(X, y)
    thin = MatrixFactorization(4, alpha=3.0, beta=3.0, gamma=3.0, sigma2=0.2, random_state=0)
    thin.fit(X, y)
    one, two = dense.sparsity(X), thin.sparsity(X)
    for part in ("sources", "codebook", "classifier"):
        assert two[part]["small"] > one[part]["small"]
    assert (thin.components_ == 0).any() and (thin.transform(X) == 0).any()
    by_hand = (np.abs(thin.components_) < 0.1).mean()
    np.testing.assert_allclose(thin.sparsity(t=0.1, relative=False)["codebook"]["small"], by_hand)


def test_classes_and_prototypes(data) -> None:
    X, y = data
    model = MatrixFactorization(3, gamma=0.1, random_state=0).fit(X, y)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert (model.classes_[shares.argmax(axis=1)] == model.predict(X)).all()
    assert model.score(X, y) == (model.predict(X) == y).mean()
    np.testing.assert_allclose(model.prototypes(), model.coef_ @ model.components_)


def test_reencoding_repairs_what_labels_did_to_the_sources() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(120, 30)), rng.integers(0, 3, 120)
    X[:, 0] += 1.5 * y
    T, t = rng.normal(size=(600, 30)), rng.integers(0, 3, 600)
    T[:, 0] += 1.5 * t
    settings = {"n_components": 8, "sigma2": 30.0, "gamma": 1.0, "random_state": 0}
    plain = MatrixFactorization(**settings, reencode=False).fit(X, y)
    again = MatrixFactorization(**settings).fit(X, y)
    loss = [-np.log(m.predict_proba(T)[np.arange(600), t] + 1e-12).mean() for m in (plain, again)]
    assert loss[1] < loss[0]


# ------------------------------------------------ streams, files, seeds


def test_batches_of_a_stream(data) -> None:
    X, y = data
    model = MatrixFactorization(3, gamma=0.2, random_state=0)
    for _ in range(4):
        for rows in np.array_split(np.arange(len(X)), 4):
            model.partial_fit(X[rows], y[rows], classes=["a", "b", "c"])
    whole = MatrixFactorization(3, gamma=0.2, random_state=0).fit(X, y)
    assert model.reconstruction_error(X) < 1.1 * whole.reconstruction_error(X)
    assert model.score(X, y) > whole.score(X, y) - 0.05
    assert model.n_iter_ == 16


@pytest.mark.parametrize("supervised", [True, False])
def test_save_and_load(data, tmp_path, supervised) -> None:
    X, y = data
    model = MatrixFactorization(3, alpha=0.1, gamma=0.1, supervised=supervised, random_state=0)
    model.fit(X, y)
    model.save(tmp_path / "model")
    other = mixfold.load(tmp_path / "model")
    np.testing.assert_array_equal(other.transform(X), model.transform(X))
    assert other.get_params() == model.get_params()
    assert hasattr(other, "predict") is supervised
    if supervised:
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        other.partial_fit(X[:50], y[:50])


def test_an_interrupted_fit_goes_on(data, tmp_path) -> None:
    X, y = data
    path = tmp_path / "checkpoint"
    settings = {"alpha": 0.2, "gamma": 0.3, "random_state": 0, "tol": 1e-6, "max_iter": 400}
    whole = MatrixFactorization(3, **settings).fit(X, y)
    short = MatrixFactorization(3, **settings, time_budget=1e-6, checkpoint=path)
    with pytest.warns(ConvergenceWarning, match="time_budget"):
        short.fit(X, y)
    assert path.exists()
    rest = MatrixFactorization(3, **settings, checkpoint=path).fit(X, y)
    np.testing.assert_allclose(rest.lower_bound_, whole.lower_bound_, rtol=1e-6)
    assert not path.exists()


def test_seeds(data) -> None:
    X, _ = data
    settings = {"init": "random", "alpha": 0.1, "max_iter": 3}
    with pytest.warns(ConvergenceWarning):
        one, two, three = (
            MatrixFactorization(3, random_state=s, **settings).fit(X).components_ for s in (0, 0, 1)
        )
    np.testing.assert_array_equal(one, two)
    assert np.abs(one - three).max() > 1e-3


# ------------------------------------------------ modules and refusals


def test_modules() -> None:
    one = MatrixFactorization.module(1, n_components=5)
    assert (one.link, one.nonneg_codebook, one.nonneg_classifier) == ("saturating", True, True)
    assert one.n_components == 5
    assert MatrixFactorization.module(2).get_params() == MatrixFactorization().get_params()
    three = MatrixFactorization.module(3)
    assert (three.link, three.nonneg_codebook, three.nonneg_classifier) == ("logistic", True, True)
    four = MatrixFactorization.module(4)
    assert (four.supervised, four.nonneg_classifier) == ("after", False)
    with pytest.raises(ValueError, match="case must be one of"):
        MatrixFactorization.module(5)


@pytest.mark.parametrize("case", [1, 2, 3, 4])
def test_every_module_learns(data, case) -> None:
    X, y = np.abs(data[0]), data[1]
    model = MatrixFactorization.module(case, n_components=4, alpha=0.01, gamma=0.1, random_state=0)
    model.fit(X, y)
    assert model.score(X, y) > 0.6
    if case != 2:
        assert (model.components_ >= 0).all()
    if case in (1, 3):
        assert (model.coef_ >= 0).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"nonneg_codebook": True}, "nonneg_codebook=True needs codes that are not negative"),
        ({"solver": "multiplicative"}, "keeps signs: it needs nonneg_codebook=True"),
        (
            {"solver": "multiplicative", "link": "saturating", "nonneg_codebook": True},
            "with y it needs nonneg_classifier=True",
        ),
        ({"link": "relu"}, "The 'link' parameter of MatrixFactorization must be one of"),
        ({"sigma2": 0.0}, "'sigma2'"),
        ({"supervised": "later"}, "'supervised'"),
    ],
)
def test_settings_without_meaning_are_refused(data, settings, message) -> None:
    X, y = np.abs(data[0]), data[1]
    with pytest.raises(ValueError, match=message):
        MatrixFactorization(3, **settings).fit(X, y)


def test_rows_without_meaning_are_refused(data) -> None:
    X, _ = data
    with pytest.raises(ValueError, match=r"Negative values in data: X holds -"):
        MatrixFactorization(3, link="saturating", nonneg_codebook=True).fit(X)
    with pytest.raises(ValueError, match="requires y to be passed"):
        MatrixFactorization(3, supervised=True).fit(X)
    with pytest.raises(ValueError, match="at least two classes"):
        MatrixFactorization(3).fit(X, np.zeros(len(X), int))
    with pytest.raises(ValueError, match="Unknown label type: 'continuous'"):
        MatrixFactorization(3).fit(X, X[:, 0])
    model = MatrixFactorization(3, link="saturating", random_state=0).fit(X)
    with pytest.raises(ValueError, match="sources of this model are not negative"):
        model.inverse_transform(-np.ones((1, 3)))
    with pytest.raises(ValueError, match="one column for each of the 3 sources, got 2"):
        model.inverse_transform(np.ones((1, 2)))
    with pytest.raises(AttributeError):
        model.predict(X)


def test_void_penalties_are_told(data) -> None:
    with pytest.warns(DegenerateWarning, match="penalises nothing"):
        MatrixFactorization(3, link="identity", beta=0.1, random_state=0, max_iter=0).fit(data[0])


def test_alpha_alone_is_not_void(data) -> None:
    """Rows of the codebook are bounded, so that a larger alpha does give smaller sources."""
    X, _ = data
    size = [
        np.abs(MatrixFactorization(3, alpha=a, random_state=0).fit(X).transform(X)).sum()
        for a in (0.01, 1.0)
    ]
    assert size[1] < 0.9 * size[0]
    wide = MatrixFactorization(3, alpha=1.0, codebook_norm=0.5, random_state=0).fit(X)
    assert np.linalg.norm(wide.components_, axis=1).max() <= 0.5 + 1e-12


# ------------------------------------------------ corners


def test_constant_columns(data) -> None:
    X, y = data
    X = np.column_stack([X, np.full(len(X), 7.0)])
    model = MatrixFactorization(3, gamma=0.1, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.reconstruct(X)[:, -1], 7.0, atol=1e-8)
    np.testing.assert_allclose(model.components_[:, -1], 0.0, atol=1e-8)


@pytest.mark.filterwarnings("ignore:source . explained nothing:mixfold.DegenerateWarning")
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_more_sources_than_rows_or_columns(alpha) -> None:
    rng = np.random.default_rng(0)
    for shape in ((5, 8), (30, 4)):
        X = rng.normal(size=shape)
        with pytest.warns(DegenerateWarning, match="rows can be given back exactly"):
            model = MatrixFactorization(8, alpha=alpha, random_state=0, tol=1e-3).fit(X)
        assert model.reconstruction_error(X) < (1e-6 if alpha == 0 else 1.0)


def test_one_row() -> None:
    X = np.arange(4.0)[None]
    with pytest.warns(DegenerateWarning):
        model = MatrixFactorization(1, random_state=0).fit(X)
    np.testing.assert_allclose(model.reconstruct(X), X, atol=1e-9)


def test_constant_rows() -> None:
    X = np.ones((20, 5))
    model = MatrixFactorization(2, random_state=0).fit(X)
    np.testing.assert_allclose(model.reconstruct(X), 1.0, atol=1e-9)


def test_a_very_small_balance(data) -> None:
    X, y = data
    model = MatrixFactorization(3, gamma=0.2, sigma2=1e-9, random_state=0).fit(X, y)
    trace = np.array(model.lower_bounds_)
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[0])).all()
    assert model.score(X, y) > 0.8


def test_two_classes_have_two_columns(data) -> None:
    X, y = data
    model = MatrixFactorization(3, gamma=0.2, random_state=0).fit(X, y == "a")
    assert model.coef_.shape == (2, 3) and model.classes_.tolist() == [False, True]


@pytest.mark.slow
def test_digits(shared_data) -> None:
    """A thousand handwritten digits: principal axes with a softmax, as the theory says."""
    with np.load(shared_data("mnist.npz")) as file:
        X, y = file["X"][:3000] / 255.0, file["y"][:3000]
    model = MatrixFactorization(40, gamma=0.5, sigma2=1e-2, random_state=0, max_iter=15, tol=1e-3)
    model.fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > 0.8
    pca = PCA(40).fit(X[:1000])
    least = 0.5 * ((X[:1000] - pca.inverse_transform(pca.transform(X[:1000]))) ** 2).sum() / 1000
    assert model.reconstruction_error(X[:1000]) < 1.1 * least


def test_score_takes_the_name_of_a_column():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    table = pd.DataFrame(X, columns=list("abc")).assign(kind=np.where(X[:, 0] > 0, "up", "down"))
    model = MatrixFactorization(2, random_state=0).fit(table, "kind")
    assert model.score(table, "kind") == model.score(table[list("abc")], table["kind"])


def test_labels_that_come_after_a_batch_without_any_are_refused():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    model = MatrixFactorization(2, random_state=0).partial_fit(X)
    with pytest.raises(ValueError, match="had no labels"):
        model.partial_fit(X, y)
    MatrixFactorization(2, supervised=False, random_state=0).partial_fit(X).partial_fit(X, y)
