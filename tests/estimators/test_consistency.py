"""One word for one thing: what every public estimator has in common, asked of all of them."""

import inspect
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mixfold
from tests.brief import BRIEF, LABELS, NAMES, PUBLIC, D, N, fit, fitted, new

TRANSFORMERS = [name for name in PUBLIC if hasattr(getattr(mixfold, name), "set_output")]
of_all = pytest.mark.parametrize("name", PUBLIC)
pytestmark = pytest.mark.filterwarnings("ignore")

# The end of every signature, in this order; whatever a model has of its own stands before it.
COMMON = [
    "random_state", "warm_start", "verbose", "verbose_interval", "acceleration",
    "learn_concentration", "learn_prior", "merge_split", "batch_size", "total_weight",
    "executor", "n_jobs", "time_budget", "checkpoint",
]  # fmt: skip
ALWAYS = ("random_state", "n_jobs")
# attributes that the docstring says are those of certain settings
SETTINGS_THAT_PUBLISH_MORE = {
    "FactorAnalysis": {"n_components": "ard"},
    "MORP": {"loss": "logistic"},
    "MixtureClassifier": {
        "estimator": mixfold.MLiT(), "novelty": 0.1, "paper_protocol": True
    },
    "Mixture": {"family": "auto"},
    "MixtureOfFactorModels": {"discriminant": "curved", "max_iter": 10},
    "PPCA": {"n_components": "ard"},
    "SupervisedPPCA": {"task": "ordered"},
}  # fmt: skip


def answers(model, X):
    """What a fitted model says of rows, by every method that takes nothing else."""
    methods = ("predict", "predict_proba", "transform", "score_samples", "reconstruct")
    return {m: np.asarray(getattr(model, m)(X)) for m in methods if hasattr(model, m)}


def same(a, b, rtol=0.0):
    assert a.keys() == b.keys()
    assert a
    for method in a:
        if a[method].dtype.kind == "f":
            np.testing.assert_allclose(a[method], b[method], rtol, 1e-3 * rtol, err_msg=method)
        else:
            np.testing.assert_array_equal(a[method], b[method], err_msg=method)


def parameters(name):
    return inspect.signature(getattr(mixfold, name)).parameters


def section(doc, title):
    """Names of the entries of a numpydoc section."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", doc, re.M | re.S)
    heads = [line for line in (found.group(1) if found else "").splitlines() if line[:1].strip()]
    return [one.strip() for head in heads for one in head.partition(" : ")[0].split(",")]


def documented(name):
    """Types of the parameters in the docstring, in order."""
    doc = inspect.getdoc(getattr(mixfold, name))
    section = re.search(r"Parameters\n-+\n(.*?)\n\nAttributes\n-+\n", doc, re.S).group(1)
    heads = [line.partition(" : ") for line in section.splitlines() if line[:1].strip()]
    return {one: kind for names, _, kind in heads for one in names.split(", ")}


def test_every_public_estimator_is_asked():
    assert sorted(BRIEF) == PUBLIC
    assert len(TRANSFORMERS) >= 19


@of_all
def test_parameters_have_the_same_names_and_order(name):
    found = parameters(name)
    assert {*ALWAYS} <= {*found}
    own = list(found)[list(found).index("random_state") :]
    assert own == [one for one in COMMON if one in own]
    assert all(found[one].kind is inspect.Parameter.KEYWORD_ONLY for one in own)


@of_all
def test_the_docstring_names_every_parameter_its_default_and_a_paper(name):
    found, told = parameters(name), documented(name)
    assert list(told) == list(found)
    for one, kind in told.items():
        default = re.search(r"default=(.*)$", kind)
        assert default, one
        assert eval(default.group(1)) == found[one].default, one
    doc = inspect.getdoc(getattr(mixfold, name))
    assert "References\n----------\n.. [1] " in doc
    assert ">>> " in doc.partition("Examples\n--------\n")[2]


@of_all
def test_the_docstring_names_what_a_fit_publishes(name):
    doc = inspect.getdoc(getattr(mixfold, name))
    published = [one for one in vars(fitted(name)) if one.endswith("_") and not one.startswith("_")]
    assert published
    assert [one for one in published if not re.search(rf"\b{one}\b", doc)] == []


@of_all
def test_the_attributes_that_the_docstring_names_exist_after_a_fit(name):
    models = [fitted(name)]
    if name in SETTINGS_THAT_PUBLISH_MORE:
        model = new(name, **SETTINGS_THAT_PUBLISH_MORE[name])
        models.append(model.fit(BRIEF[name][1], LABELS))
    entries = section(inspect.getdoc(getattr(mixfold, name)), "Attributes")
    assert entries
    here = {one for one in entries for model in models if hasattr(model, one)}
    missing = [one for one in entries if one != "feature_names_in_" and one not in here]
    assert missing == []  # names of columns: only of tables


@of_all
def test_public_methods_document_all_or_none_of_their_parameters(name):
    for method_name, method in inspect.getmembers(getattr(mixfold, name), inspect.isfunction):
        if method_name.startswith("_") or not method.__module__.startswith("mixfold"):
            continue
        doc = inspect.getdoc(method)
        assert doc, f"{method.__qualname__} has no docstring"
        named = section(doc, "Parameters")
        taken = list(inspect.signature(method).parameters)[1:]
        assert named in ([], taken), f"{method.__qualname__} documents {named}, it takes {taken}"


@of_all
def test_methods_take_rows_targets_and_weights_in_the_same_order(name):
    kind = getattr(mixfold, name)
    assert list(inspect.signature(kind.fit).parameters)[1:4] == ["X", "y", "sample_weight"]
    for method in ("predict", "predict_proba", "transform", "score_samples"):
        if hasattr(kind, method):
            assert list(inspect.signature(getattr(kind, method)).parameters)[1] == "X"
    if hasattr(kind, "sample"):
        drawn = list(inspect.signature(kind.sample).parameters)
        assert (drawn[1], drawn[-1]) == ("n_samples", "random_state")


@of_all
def test_the_same_seed_gives_the_same_answers(name):
    X = BRIEF[name][1]
    same(answers(fit(name, X), X), answers(fitted(name), X))


@of_all
def test_a_file_holds_no_code_and_changes_nothing(name, tmp_path):
    X, model = BRIEF[name][1], fitted(name)
    model.save(tmp_path / "model.mixfold")
    read = mixfold.load(tmp_path / "model.mixfold")
    # of a search the best of its models is kept
    assert type(read) is type(getattr(model, "best_estimator_", model))
    assert read.n_features_in_ == D
    same(answers(read, X), answers(model, X))
    stored = (tmp_path / "model.mixfold").read_bytes()
    assert b"__reduce__" not in stored
    assert not zipfile.is_zipfile(tmp_path / "model.mixfold")
    length = int.from_bytes(stored[:8], "little")  # of the header, which is JSON: no pickle
    assert stored[8:9] == b"{" and 8 + length <= len(stored)


@of_all
def test_parameters_can_be_read_set_and_copied(name):
    model = new(name)
    copy = clone(model)
    assert copy.get_params(deep=False).keys() == parameters(name).keys()
    assert copy.set_params(random_state=7) is copy
    assert (copy.random_state, model.random_state) == (7, 0)
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        copy.set_params(nonsense=1)


@of_all
def test_tables_with_names_give_what_arrays_give(name):
    X = BRIEF[name][1]
    expected = answers(fitted(name), X)
    for table in (pd.DataFrame(X, columns=NAMES), pl.DataFrame(X, schema=NAMES)):
        model = fit(name, table)
        assert model.feature_names_in_.tolist() == NAMES
        assert model.n_features_in_ == D
        # columns of a table lie apart in memory: sums are added in another order, and twenty
        # accelerated steps of factor analysers make up to 1.1e-7 of it, by the processor
        same(answers(model, table), expected, rtol=5e-7)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_scores_can_be_tables(name):
    X = pd.DataFrame(BRIEF[name][1], columns=NAMES, index=np.arange(N) + 100)
    model = fit(name, X).set_output(transform="pandas")
    for scores in (model.transform(X), clone(model).fit_transform(X, BRIEF[name][2])):
        assert isinstance(scores, pd.DataFrame)
        assert scores.columns.tolist() == model.get_feature_names_out().tolist()
        assert scores.index.tolist() == X.index.tolist()


@of_all
def test_what_is_not_fitted_says_so(name, tmp_path):
    model, (_, X, y) = new(name), BRIEF[name]
    asked = {"score": (X, y), "save": (tmp_path / "m",), "sample": (2,), "generate": ("a", 2)}
    for method in ("predict", "transform", "score_samples", "reconstruct", "impute", *asked):
        if hasattr(model, method):
            with pytest.raises(NotFittedError, match=f"This {name} instance is not fitted yet"):
                getattr(model, method)(*asked.get(method, (X,)))


def spoilt(X, value):
    X = X.astype(object if isinstance(value, str) else type(value))
    X[3, 1] = value
    return X


BAD_ROWS = {
    "infinite": (lambda X: spoilt(X, np.inf), r"row 3, column 1 .* is inf\. .*NaN if it is miss"),
    "text": (lambda X: spoilt(X, "cat"), r"row 3, column 1 .* 'cat'\. Encode categories"),
    "texts": (lambda X: X.astype(str), r"X holds text, such as .*convert it to numbers"),
    "complex": (lambda X: spoilt(X, 1j), r"Complex data not supported: .*X\.real, X\.imag"),
    "ragged": (lambda X: [[1.0, 2.0], [3.0]], "row 1 has 1, row 0 has 2 .*Put NaN"),
    "nothing": (lambda X: None, "X is None; give a table"),
    "flat": (lambda X: X[:, 0], "Expected 2D array, got 1D array.*(?s:.*)reshape"),
    "deep": (lambda X: X[:, :, None], "dim 3, while dim <= 2 is required"),
    "no columns": (lambda X: X[:, :0], r"0 feature\(s\).* minimum of 1"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
@of_all
def test_bad_rows_are_refused_in_the_same_words(name, case):
    spoil, message = BAD_ROWS[case]
    _, X, y = BRIEF[name]
    with pytest.raises(ValueError, match=message):
        new(name).fit(spoil(X), y)


BAD_WEIGHTS = {
    "negative": (-np.ones(N), ValueError, r"weight of row 0 of X is -1\.0 .*finite and >= 0"),
    "short": (np.ones(N - 1), ValueError, f"sample_weight has {N - 1} entries, the data have {N}"),
    "table": (np.ones((N, 1)), ValueError, "Sample weights must be 1D array: .*one number per row"),
    "zero": (np.zeros(N), ValueError, "sample_weight is zero in every row: at least one"),
    "text": (["a"] * N, TypeError, "sample_weight must hold numbers"),
    "name": ("w", ValueError, "has no column names"),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
@of_all
def test_bad_weights_are_refused_in_the_same_words(name, case):
    weight, kind, message = BAD_WEIGHTS[case]
    _, X, y = BRIEF[name]
    with pytest.raises(kind, match=message):
        new(name).fit(X, y, sample_weight=weight)


BAD_SETTINGS = [
    ("random_state", "x", TypeError, "random_state must be None, an integer"),
    ("n_jobs", "x", TypeError, "n_jobs must be a whole number or None"),
    ("n_jobs", 0, ValueError, "n_jobs must not be 0; use 1"),
    ("executor", "gpu", ValueError, "executor must be 'threads', 'dask'.*got 'gpu'"),
    ("verbose", "yes", ValueError, "'verbose' parameter of {} must be .*Got 'yes'"),
    ("tol", -1, ValueError, "'tol' parameter of {} must be a number >= 0. Got -1"),
    ("max_iter", 1.5, ValueError, "'max_iter' parameter of {} must be an int >= .*Got 1.5"),
    ("n_init", 0, ValueError, "'n_init' parameter of {} must be an int >= 1.*Got 0"),
    ("time_budget", -1, ValueError, "'time_budget' parameter of {} must be .*> 0. Got -1"),
    ("checkpoint", 3, ValueError, "'checkpoint' parameter of {} must be .*path. Got 3"),
    ("batch_size", 0, ValueError, "'batch_size' parameter of {} must be .*>= 1. Got 0"),
    ("cv", "x", ValueError, "'cv' parameter of {} must be .*Got 'x'"),
]


@pytest.mark.parametrize(("one", "value", "kind", "message"), BAD_SETTINGS)
def test_bad_settings_are_refused_in_the_same_words(one, value, kind, message):
    having = [name for name in PUBLIC if one in parameters(name)]
    assert len(having) > 1
    for name in having:
        _, X, y = BRIEF[name]
        with pytest.raises(kind, match=message.format(name)):
            new(name, **{one: value}).fit(X, y)


@pytest.mark.parametrize("value", [0, -1, 2.5, "3", True])
def test_draws_are_counted_in_whole_numbers(value):
    for name in ("GaussianMixture", "PPCA", "PCP", "MixtureClassifier", "DeepBeliefNetwork", "RBM"):
        with pytest.raises(ValueError, match=f"n_samples must be an int >= 1; got {value!r}"):
            fitted(name).sample(value)


def test_the_table_of_models_has_a_row_for_each_of_them():
    text = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
    table = text[text.index("| model | what it says") :].partition("\n\n")[0]
    listed = {*re.findall(r"\[`(\w+)`\]\(", table)}
    assert listed == {*PUBLIC}
    for row in table.splitlines()[2:]:
        assert re.search(r"\(20\d\d\)|new", row), row
