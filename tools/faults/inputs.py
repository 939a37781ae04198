"""Fits of every public estimator to odd tables with odd settings.

    python -m tools.faults inputs --cases 20000 [--seed 0] [--only GaussianMixture,PPCA] [--out findings.jsonl]
    python -m tools.faults inputs --show GaussianMixture:123 [--seed 0]     # one case, with its traceback

A case passes if the fit and what is asked of it are finite where promised, or if a ValueError or
TypeError says what is wrong. Anything else is a finding: another exception, an error that was not
raised on purpose, a RuntimeWarning of numpy, NaN in an attribute, an answer out of range, a changed
input, 20 s of CPU time (120 s in what makes dozens of fits), a dead process.
"""  # noqa: E501

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import inspect
import io
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from typing import Any

import numpy as np
from scipy import sparse

from tools.faults.running import (
    Tally,
    Worker,
    is_of_the_library,
    limit_memory,
    peak_megabytes,
    python,
    scratch_folder,
)
from tools.faults.settings import (
    ESTIMATORS,
    draw_settings,
    fit_to_columns,
    usual_container,
    usual_rows,
)
from tools.faults.tables import draw_odd_setting, draw_oddities, labels, pick, table, weights

LIMIT = 6 * 2**30
SECONDS = {"MixtureSearch": 120.0, "MixtureClustering": 120.0}  # of CPU time; of others 20
NOTED = (
    "ConvergenceWarning",
    "DegenerateWarning",
    "UnitsWarning",
    "OrderWarning",
    "UserWarning",
    "DataConversionWarning",
)
LEARNING = ("fit", "partial_fit", "second fit", "second partial_fit")


class Bad(Exception):
    """An answer that breaks a promise."""


# ------------------------------------------------------------------ one case


def rows_of(X: Any) -> Any:
    try:
        return int(X.shape[0]) if hasattr(X, "shape") else len(X)
    except Exception:
        return 7


def run_case(seed: int, name: str, case: int) -> dict:
    """What became of one case."""
    import mixfold

    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), case])
    supervised = ESTIMATORS[name][1]
    odd = draw_oddities(rng)
    settings = draw_settings(rng, name, getattr(mixfold, name)().get_params(deep=False))
    X, about = table(rng, odd, usual_rows(rng, name, settings), usual_container(rng, settings))
    fit_to_columns(rng, settings, about["shape"][1])
    n = about["shape"][0] if about["shape"][0] else rows_of(X)
    estimator = getattr(mixfold, name)(**settings)
    about["settings"] = {k: repr(v)[:60] for k, v in settings.items() if k != "random_state"}
    if "setting" in odd:
        key, value = draw_odd_setting(rng, sorted(estimator.get_params(deep=False)))
        about["odd"] = f"{key}={value!r}"
        estimator.set_params(**{key: value})
    sides = {}
    if "weights" in odd:
        sides["sample_weight"], about["weights"] = weights(rng, n)
    y = None
    if supervised:
        y, about["labels"] = labels(rng, n) if "labels" in odd else (rng.integers(0, 2, n), "two")
    elif "component_labels" in estimator.fit.__code__.co_varnames and rng.random() < 0.2:
        known = rng.integers(-1, pick(rng, (1, 2, 3, 9)), pick(rng, (n, n, n, n + 1)))
        about["component_labels"] = pick(rng, ("whole", "whole", "with NaN", "text", "none known"))
        sides["component_labels"] = {
            "whole": known,
            "with NaN": np.where(known < 0, np.nan, known),
            "text": known.astype(str),
            "none known": np.full(n, -1),
        }[about["component_labels"]]
    about["call"] = (
        pick(rng, ("fit", "partial_fit"), (4, 1)) if hasattr(estimator, "partial_fit") else "fit"
    )
    state = np.geterr()
    before = snapshot(X)
    noise = []

    def heard(
        message: Any, category: Any, filename: Any, lineno: Any, file: Any = None, line: Any = None
    ) -> Any:
        if category.__name__ not in NOTED:
            noise.append(
                f"{category.__name__}: {str(message)[:90]} @ {innermost_line() or short(filename, lineno)}"  # noqa: E501
            )

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = heard
        result = attempt(estimator, X, y, sides, rng, about)
    if result["kind"] in ("ok", "refused", "refused later") and noise:
        result = {
            "kind": "warning",
            "signature": noise[0],
            "then": result["kind"],
            "stage": result.get("stage", ""),
        }
    if result["kind"] in ("ok", "refused"):
        if np.geterr() != state:
            result = {"kind": "error state changed", "signature": str(np.geterr())}
        elif not same(before, X):
            result = {"kind": "input changed", "signature": about["container"]}
    np.seterr(**state)
    return {**result, "about": about}


def attempt(
    estimator: Any, X: Any, y: Any, sides: Any, rng: np.random.Generator, about: Any
) -> Any:
    stage = about["call"]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            legacy = np.random.get_state()[1].copy()
            getattr(estimator, about["call"])(X, y, **sides)
            if not np.array_equal(
                np.random.get_state()[1], legacy
            ) and "random_state" not in about.get("odd", ""):
                raise Bad("the fit used numpy's global random numbers")
            bad_attributes(estimator)
            stage = draw_second_call(rng, estimator, about)
            if stage:
                getattr(estimator, stage.removeprefix("second "))(X, y, **sides)
                bad_attributes(estimator)
            own = "sample_weight" not in sides  # rows of weight zero may be impossible
            for stage, call in questions(estimator, X, y, rng, weighed=not own):  # noqa: B007
                call()
            if rng.random() < 0.3 and getattr(estimator, "n_features_in_", 0):
                other = other_rows(rng, estimator, about)
                for name, call in questions(estimator, other, None, rng, own=False):
                    stage = f"new rows {name}"
                    call()
    except Bad as bad:
        return {"kind": "bad answer", "signature": f"{stage}: {bad}", "stage": stage}
    except (ValueError, TypeError) as error:
        kind = "refused" if is_on_purpose(error) else "accidental error"
        if kind == "accidental error" and about["container"] == "not a table":
            kind = "refused, words of numpy"
        if stage not in LEARNING and kind == "refused":
            kind = "refused later"
        return {
            "kind": kind,
            "signature": describe_error(error),
            "stage": stage,
            "message": str(error)[:300],
        }
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        return {"kind": "refused", "signature": describe_error(error), "stage": stage}
    except AttributeError as error:  # as scikit-learn says that a method is not there
        kind = "refused later" if is_on_purpose(error) else "crash"
        return {
            "kind": kind,
            "signature": describe_error(error),
            "stage": stage,
            "message": str(error)[:300],
            "trace": traceback.format_exc()[-1500:],
        }
    except FloatingPointError as error:
        kind = "FloatingPointError on purpose" if is_on_purpose(error) else "crash"
        return {
            "kind": kind,
            "signature": describe_error(error),
            "stage": stage,
            "trace": traceback.format_exc()[-1500:],
        }
    except Exception as error:
        if type(error).__name__ in ("ClusterError", "NotFittedError", "ModelWriteError"):
            return {"kind": "refused", "signature": describe_error(error), "stage": stage}
        return {
            "kind": "crash",
            "signature": describe_error(error),
            "stage": stage,
            "trace": traceback.format_exc()[-1500:],
        }
    return {"kind": "ok"}


def draw_second_call(rng: np.random.Generator, estimator: Any, about: Any) -> str:
    """Whether the estimator learns from the same rows again, and how: "" for no second call."""
    again = "warm_start" in about["settings"] or about["call"] == "partial_fit"
    if rng.random() > (0.5 if again else 0.05):
        return ""
    streams = hasattr(estimator, "partial_fit")
    first = about["call"] == "partial_fit"
    about["second"] = (
        pick(rng, ("second fit", "second partial_fit"), (1, 4) if first else (4, 1))
        if streams
        else "second fit"
    )
    return about["second"]


# ------------------------------------------------------------------ promises


def bad_attributes(estimator: Any, but: Any = ()) -> Any:
    for name, value in vars(estimator).items():
        if name.endswith("_") and not name.startswith("_") and name not in but:
            for array in leaves(value):
                if array.dtype.kind == "f" and np.isnan(array).any():
                    raise Bad(f"NaN in {name}")
                if (
                    array.dtype.kind == "f"
                    and np.isinf(array).any()
                    and name not in ("lower_bounds_",)
                ):
                    raise Bad(f"inf in {name}")


def leaves(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        yield value
    elif isinstance(value, float):
        yield np.asarray(value)
    elif isinstance(value, list | tuple):
        for item in value[:50]:
            yield from leaves(item)


def other_rows(rng: np.random.Generator, estimator: Any, about: Any) -> Any:
    """Rows that the fit has not seen, with as many columns."""
    d, n = int(estimator.n_features_in_), pick(rng, (1, 2, 5))
    how = pick(
        rng,
        ("far", "very far", "lost row", "float32", "small", "zero", "one huge entry", "integers"),
    )
    about["new rows"] = how
    X = np.abs(np.round(rng.normal(size=(n, d)) * 2))
    if how == "far":
        X = X * 1e15
    elif how == "very far":
        X = X * 1e200
    elif how == "lost row":
        X[0] = np.nan
    elif how == "float32":
        X = X.astype(np.float32)
    elif how == "small":
        X = X * 1e-300
    elif how == "zero":
        X[:] = 0.0
    elif how == "one huge entry":
        X[0, 0] = 1e300
    elif how == "integers":
        X = X.astype(np.int32)
    return X


def questions(
    estimator: Any,
    X: Any,
    y: Any,
    rng: np.random.Generator,
    own: bool = True,
    weighed: bool = False,
) -> Any:
    """What can be asked of the fitted estimator, with the checks of its answers."""
    known = isinstance(X, np.ndarray | list | tuple) or sparse.issparse(X) or hasattr(X, "iloc")
    n = rows_of(X)
    takes_y = (
        "y" in inspect.signature(estimator.score_samples).parameters
        if hasattr(estimator, "score_samples")
        else False
    )

    def finite(value: Any, what: Any) -> Any:
        for array in leaves(value if isinstance(value, tuple | list) else (np.asarray(value),)):
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise Bad(f"{what} has {'NaN' if np.isnan(array).any() else 'inf'}")
        return value

    def proba() -> Any:
        p = np.asarray(estimator.predict_proba(X))
        finite(p, "predict_proba")
        if (
            p.ndim == 2
            and p.size
            and np.abs(p.sum(1) - 1).max() > 1e-4
            and not multilabel(estimator)
        ):
            raise Bad("predict_proba does not sum to 1")
        if p.size and (p.min() < -1e-12 or p.max() > 1 + 1e-6):
            raise Bad("predict_proba out of range")

    def predict() -> Any:
        found = estimator.predict(X)
        if isinstance(found, dict | list):  # of several sets of outputs
            for one in found.values() if isinstance(found, dict) else found:
                finite(one, "predict")
            return
        found = np.asarray(found)
        if known and len(found) != n:
            raise Bad("predict has another length")
        finite(found, "predict")

    def scores() -> Any:
        found = np.asarray(
            estimator.score_samples(X, y)
            if takes_y and y is not None
            else estimator.score_samples(X)
        )
        if np.isnan(found).any() or np.isposinf(found).any():
            raise Bad(f"score_samples has {'NaN' if np.isnan(found).any() else '+inf'}")
        if own and not weighed and np.isneginf(found).any():
            raise Bad("score_samples of its own rows is -inf")

    def score() -> Any:
        value = estimator.score(X) if y is None else estimator.score(X, y)
        if np.isnan(value) or (own and not weighed and not np.isfinite(value)):
            raise Bad(f"score is {value}")

    def impute() -> Any:
        filled = np.asarray(estimator.impute(X))
        finite(filled, "impute")
        if type(X) is np.ndarray and X.dtype.kind == "f" and X.ndim == 2:
            seen = ~np.isnan(np.asarray(X, float))
            given = np.asarray(X, float)[seen]
            close = filled[seen].astype(float) == given.astype(filled.dtype).astype(float)
            if not close.all():
                raise Bad("impute changed an observed entry")

    def files() -> Any:
        import mixfold

        path = os.path.join(tempfile.mkdtemp(prefix="fz", dir=os.getcwd()), "m.mixfold")
        estimator.save(path)
        again = mixfold.load(path)
        ask = next(m for m in ("score_samples", "transform", "predict") if hasattr(estimator, m))
        a, b = np.asarray(getattr(estimator, ask)(X)), np.asarray(getattr(again, ask)(X))
        if a.dtype.kind == "f" and not np.array_equal(a, b, equal_nan=True):
            raise Bad("a loaded model answers otherwise")

    if hasattr(estimator, "predict"):
        yield "predict", predict
    if hasattr(estimator, "predict_proba"):
        yield "predict_proba", proba
    needs_y = type(estimator).__name__ == "MixtureOfFactorModels" and y is None
    if hasattr(estimator, "score_samples") and not needs_y:
        yield "score_samples", scores
    if hasattr(estimator, "score") and own:
        yield "score", score
    for name in ("transform", "reconstruct"):
        if hasattr(estimator, name):
            yield name, lambda name=name: finite(getattr(estimator, name)(X), name)
    if hasattr(estimator, "impute"):
        yield "impute", impute
    yield from rarer_questions(estimator, X, y, rng, own)
    if not own:
        return
    if hasattr(estimator, "sample") and rng.random() < 0.5:
        yield "sample", lambda: finite(estimator.sample(3), "sample")
    for name in ("bic", "aic"):
        if hasattr(estimator, name) and rng.random() < 0.3:
            sides = (X, y) if type(estimator).__name__ == "MixtureOfFactorModels" else (X,)
            more = {}
            if "n_effective" in inspect.signature(getattr(estimator, name)).parameters:
                more["n_effective"] = pick(rng, (None, None, 5.0, 1e9, 0.5, float("nan"), "all"))
            yield (
                name,
                lambda name=name, sides=sides, more=more: finite(
                    getattr(estimator, name)(*sides, **more), name
                ),
            )
    if hasattr(estimator, "save") and rng.random() < 0.1:
        yield "save", files


# Each is asked of few cases: together they would take most of the time.
SHARE = 0.12


def rarer_questions(estimator: Any, X: Any, y: Any, rng: np.random.Generator, own: bool) -> Any:
    """Every other method, each of them in some cases, with what its answer must be."""

    def no_nan(value: Any, what: str, low: float = -np.inf, high: float = np.inf) -> Any:
        for array in leaves(value if isinstance(value, tuple | list) else (np.asarray(value),)):
            if array.dtype.kind == "f" and np.isnan(array).any():
                raise Bad(f"{what} has NaN")
            if array.size and (array.min() < low or array.max() > high):
                raise Bad(f"{what} out of range")
        return value

    def there_and_back() -> None:
        codes = estimator.transform(X)
        back = np.asarray(estimator.inverse_transform(codes))
        if not np.isfinite(back).all():
            raise Bad("inverse_transform is not finite")

    def decide() -> None:
        found = estimator.decision_function(X)
        for one in found.values() if isinstance(found, dict) else (found,):
            no_nan(one, "decision_function")

    def cells() -> None:
        if type(X) is np.ndarray and X.dtype.kind == "f" and X.size < 400:
            found = estimator.oddness(X, by="cell", n_draws=60)
            if not np.array_equal(np.isnan(found), np.isnan(X)):
                raise Bad("oddness by cell is NaN elsewhere than X")
            no_nan(np.nan_to_num(found), "oddness by cell", 0.0, 1.0)

    def condition() -> None:
        d = int(estimator.n_features_in_)
        columns = rng.choice(d, int(rng.integers(1, d + 1)), replace=False).tolist()
        value = pick(rng, (0.0, 1.0, 2.0, 1e6, float("nan"), "x"))
        part = estimator.condition(columns, [value] * len(columns))
        bad_attributes(part, but=("lower_bound_",))  # no rows were fitted: documented as NaN
        no_nan(part.sample(2)[0], "sample of condition")

    def combine() -> None:
        how = pick(rng, ({}, {"threshold": 0.1}, {"n_clusters": 1}))
        combined = estimator.combine(**how, X=X)
        bad_attributes(combined)
        no_nan(combined.predict_proba(X), "predict_proba of combined", 0.0, 1 + 1e-6)

    def copies() -> None:
        import copy
        import pickle

        from sklearn.base import clone

        clone(estimator)
        copy.deepcopy(estimator)
        again = pickle.loads(pickle.dumps(estimator))
        ask = next(m for m in ("score_samples", "transform", "predict") if hasattr(estimator, m))
        a, b = (np.asarray(getattr(one, ask)(X)) for one in (estimator, again))
        if a.dtype.kind == "f" and not np.array_equal(a, b, equal_nan=True):
            raise Bad("a pickled model answers otherwise")

    def report() -> None:
        with contextlib.redirect_stderr(io.StringIO()):
            path = os.path.join(tempfile.mkdtemp(dir=os.getcwd()), "r.html")
            estimator.report(X, y, path=path)
        if not os.path.exists(path):
            raise Bad("report wrote no page")

    def write_classes(call: Any) -> Any:
        classes = getattr(estimator, "classes_", None)
        if classes is None or not len(classes):
            return None
        return call(classes[0])

    rows = {
        "predict_log_proba": lambda: no_nan(
            estimator.predict_log_proba(X), "predict_log_proba", high=1e-6
        ),
        "decision_function": decide,
        "oddness": lambda: no_nan(estimator.oddness(X, n_draws=60), "oddness", 0.0, 1.0),
        "oddness by cell": cells,
        "inverse_transform": there_and_back,
        "predict_component": lambda: no_nan(estimator.predict_component(X), "component", 0),
        "predict_component_proba": lambda: no_nan(
            estimator.predict_component_proba(X), "component", 0, 1 + 1e-9
        ),
        "predict_leaf": lambda: no_nan(estimator.predict_leaf(X), "leaf", 0),
        "is_novel": lambda: estimator.is_novel(X),
        "staged_predict": lambda: estimator.staged_predict(X),
        "staged_score_samples": lambda: no_nan(estimator.staged_score_samples(X), "staged"),
        "codes": lambda: no_nan(estimator.codes(X), "codes"),
        "sparsity": lambda: estimator.sparsity(X),
        "reconstruction_error": lambda: no_nan(estimator.reconstruction_error(X), "error", -1e-6),
        "free_energy": lambda: no_nan(estimator.free_energy(X), "free_energy"),
        "gibbs": lambda: no_nan(estimator.gibbs(X, random_state=0), "gibbs"),
        "get_feature_names_out": lambda: estimator.get_feature_names_out(),
        "responsibilities": lambda: no_nan(
            estimator.responsibilities(X), "responsibilities", 0.0, 1 + 1e-9
        ),
        "reconstruction_errors": lambda: no_nan(
            estimator.reconstruction_errors(X), "errors", -1e-6
        ),
        "find_between": lambda: estimator.find_between(X),
        "perplexity": lambda: no_nan(estimator.perplexity(X), "perplexity", 0.0),
    }
    rarely = {
        "impute a draw": lambda: no_nan(
            estimator.impute(X, method="draw", random_state=0), "impute"
        ),
        "icl": lambda: no_nan(estimator.icl(X), "icl"),
        "condition": condition,
        "flatten": lambda: bad_attributes(estimator.flatten()),
        "get_covariance": lambda: no_nan(estimator.get_covariance(), "get_covariance"),
        "get_precision": lambda: no_nan(estimator.get_precision(), "get_precision"),
        "posterior_similarity": lambda: no_nan(
            estimator.posterior_similarity(), "similarity", 0, 1 + 1e-9
        ),
        "combine": combine,
        "log_partition": lambda: no_nan(
            estimator.log_partition(n_chains=3, n_temperatures=5, random_state=0).value, "log Z"
        ),
        "sample_sources": lambda: no_nan(estimator.sample_sources(3, 0), "sources"),
        "top_words": lambda: estimator.top_words(3),
        "to_pyldavis": lambda: estimator.to_pyldavis(X),
        "prototypes": lambda: no_nan(estimator.prototypes(), "prototypes"),
        "generate": lambda: write_classes(
            lambda label: no_nan(estimator.generate(label, 2, random_state=0), "generate")
        ),
        "risks": lambda: no_nan(list(estimator.risks(X, y).values()), "risks"),
        "summary": lambda: estimator.summary(),
        "to_frame": lambda: estimator.to_frame(),
        "save copies": copies,
        "report": report,
    }
    share = {"report": 0.01, "oddness": 0.3, "save copies": 0.05}
    for name, call in {**rows, **(rarely if own else {})}.items():
        method = name.split(" ")[0]
        if hasattr(estimator, method) and rng.random() < share.get(name, SHARE):
            yield name, call


def multilabel(estimator: Any) -> Any:
    classes = getattr(estimator, "classes_", None)
    sets = getattr(getattr(estimator, "_sets", None), "sets", ())  # of outputs, of MORP
    targets = [getattr(estimator, "_target", None), *(one.target for one in sets)]
    if any(getattr(target, "task", "") == "multilabel" for target in targets):
        return True
    return isinstance(classes, list) or getattr(estimator, "task_", "") in (
        "multilabel",
        "multilabel-indicator",
    )


# ------------------------------------------------------------------ words


def short(path: Any, line: Any) -> Any:
    at = path.rfind("mixfold/")
    return f"{path[at:] if at >= 0 else os.path.basename(path)}:{line}"


def innermost_line() -> Any:
    """The innermost line of the library on the stack."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if is_of_the_library(path):
            return f"{short(path, frame.f_lineno)}:{frame.f_code.co_name}"
        frame = frame.f_back
    return ""


def frames(error: Any) -> Any:
    return traceback.extract_tb(error.__traceback__)


def is_on_purpose(error: Any) -> Any:
    """Whether the last frame is a ``raise`` of the library, or of scikit-learn's validation."""
    stack = frames(error)
    if not stack:
        return False
    last = stack[-1]
    ours = is_of_the_library(last.filename)
    checks = any(
        part in last.filename for part in ("sklearn/utils", "sklearn/base.py", "sklearn/mixture")
    )
    raised = (last.line or "").lstrip().startswith(("raise", 'f"', '"'))
    return raised and (ours or checks)


def describe_error(error: Any) -> Any:
    ours = [f for f in frames(error) if is_of_the_library(f.filename)]
    where = f"{short(ours[-1].filename, ours[-1].lineno)}:{ours[-1].name}" if ours else "outside"
    text = re.sub(r"0x[0-9a-f]+|[-+]?\d[\d.e+-]*", "#", str(error))[:80]
    return f"{type(error).__name__}: {text} @ {where}"


def snapshot(X: Any) -> Any:
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiubO":
        return np.array(X, copy=True)
    if sparse.issparse(X) and X.format in ("csr", "csc", "bsr"):
        return X.data.copy(), X.indices.copy(), X.indptr.copy()
    if type(X).__module__.startswith("pandas"):
        return X.copy()
    return None


def same(before: Any, X: Any) -> Any:
    if before is None:
        return True
    if isinstance(before, tuple):
        return all(
            np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
            for a, b in zip(before, (X.data, X.indices, X.indptr), strict=True)
        )
    if isinstance(before, np.ndarray):
        if before.dtype.kind == "O":
            return before.shape == X.shape
        return np.array_equal(before, X, equal_nan=before.dtype.kind == "f")
    return before.equals(X)


# ------------------------------------------------------------------ processes


def serve() -> None:
    """Answer one case per line, until the input ends."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    import mixfold  # noqa: F401

    limit_memory(LIMIT)
    out = os.fdopen(os.dup(1), "w")
    home = os.getcwd()
    for line in sys.stdin:
        ask = json.loads(line)
        folder = tempfile.mkdtemp(prefix="case", dir=home)
        os.chdir(folder)
        began, peak = time.process_time(), peak_megabytes()
        try:
            answer = run_case(ask["seed"], ask["name"], ask["case"])
        except BaseException as error:  # of the harness itself
            answer = {
                "kind": "harness",
                "signature": describe_error(error),
                "trace": traceback.format_exc()[-1500:],
            }
        answer["cpu"] = round(time.process_time() - began, 3)
        answer["grown"] = round(peak_megabytes() - peak)
        os.chdir(home)
        shutil.rmtree(folder, ignore_errors=True)
        out.write(json.dumps(answer, default=str) + "\n")
        out.flush()


def campaign(cases: int, seed: int, names: list[str], out: str, first: int = 0) -> Tally:
    """Run cases in a child and count what became of them."""
    home = scratch_folder("fuzz")
    worker = Worker(
        [python(), "-m", "tools.faults", "inputs", "--serve"], 20, 600, home / "worker.log"
    )
    tally = Tally(out)
    began, done, per = time.monotonic(), 0, {}
    for case in range(first, first + -(-cases // len(names))):
        for name in names:
            worker.cpu_limit = SECONDS.get(name, 20.0)
            answer = worker.ask({"seed": seed, "name": name, "case": case})
            kind = answer["kind"]
            done += 1
            per.setdefault(name, {}).setdefault(kind, 0)
            per[name][kind] += 1
            quiet = kind in ("ok", "refused", "refused later", "refused, words of numpy")
            signature = (
                ""
                if quiet
                else f"{name} | {answer.get('signature') or answer.get('stack') or answer.get('detail')}"  # noqa: E501
            )
            tally.add(kind, signature, name=name, case=case, seed=seed, answer=answer)
            if answer.get("grown", 0) > 700:
                tally.add(
                    "memory",
                    f"{name} grew {answer['grown']} MB",
                    name=name,
                    case=case,
                    seed=seed,
                    answer=answer,
                )
            if kind == "refused later":
                tally.file.write(
                    json.dumps({"kind": kind, "name": name, "case": case, "answer": answer}) + "\n"
                )
        if case % 20 == 19:
            print(
                f"{done} cases, {time.monotonic() - began:.0f} s, {dict(tally.kinds)}", flush=True
            )
    worker.close()
    print(tally.table())
    print("\nby estimator:")
    for name, kinds in per.items():
        print(f"  {name:28s} {kinds}")
    tally.file.close()
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", default=str(scratch_folder("fuzz") / "findings.jsonl"))
    parser.add_argument("--show", default="")
    parser.add_argument("--serve", action="store_true")
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    if options.show:
        name, case = options.show.split(":")
        os.chdir(tempfile.mkdtemp(prefix="show", dir=scratch_folder("fuzz")))
        print(
            json.dumps(run_case(options.seed, name, int(case)), indent=1, default=str).replace(
                "\\n", "\n"
            )
        )
        return
    names = options.only.split(",") if options.only else list(ESTIMATORS)
    campaign(options.cases, options.seed, names, options.out, options.first)


if __name__ == "__main__":
    main()
