"""A record of what every public estimator does, to show that a change of the code changes nothing.

Use
---
::

    python tools/golden.py write before.npz    # before the change
    python tools/golden.py write after.npz     # after it, on the same machine
    python tools/golden.py compare before.npz after.npz

    python tools/golden.py save FOLDER         # by an earlier version: a model file per estimator
    python tools/golden.py load FOLDER         # by this one: the files load, and answer the same

``write`` fits every estimator, and its variants below, to small tables: complete, with missing
entries, sparse, partly labelled, weighted, whichever it takes. It stores the signature, every
fitted attribute, what every public method answers about new rows, a fit that was interrupted and
resumed from its checkpoint, a stream of batches, and the saved file with what is loaded from it.
``compare`` lists every entry that is not the same bit for bit, and exits with 1 if there is one.
Errors are recorded by their class: their words may become better.

Records of two machines differ by rounding: compare only records of one machine, with the same
packages. ``--only PATTERN`` writes or compares the entries of some estimators.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import inspect
import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported

import numpy as np  # noqa: E402
from safetensors import safe_open  # noqa: E402
from scipy import sparse  # noqa: E402

import mixfold  # noqa: E402
from mixfold.testing.toys import Serial  # noqa: E402
from tests.brief import BRIEF, CLASSES, COUNTS, LABELS, NUMBERS, PUBLIC, N  # noqa: E402

MORE: dict[str, list[dict[str, Any]]] = {
    "BayesianGaussianMixture": [
        {"covariance_type": "tied-diag", "merge_split": True},
        {"weight_concentration_prior_type": "dirichlet_distribution", "covariance_type": "diag"},
    ],
    "DeepBeliefNetwork": [{"visible": "gaussian"}],
    "DeepFactorNetwork": [{"fine_tune": "decoder"}, {"fine_tune": "map"}, {"solver": "adam"}],
    "FactorAnalysis": [{"rotation": "oblimin"}, {"n_components": 1}],
    "GaussianMixture": [
        *({"covariance_type": kind} for kind in (
            "tied", "diag", "spherical", "tied-diag", "tied-spherical")),
        {"n_init": 3, "acceleration": None}, {"init_params": "random", "acceleration": "squarem"},
        {"warm_start": True},
    ],
    "GaussianPCP": [{"inference": "em"}],
    "KMeans": [{"init": "random", "n_init": 2}],
    "KernelCCA": [{"kernel": "rbf", "output_kernel": "rbf"}],
    "KernelPCA": [
        {"kernel": "poly", "n_components": 2}, {"landmarks": 20, "n_components": 2},
        {"solver": "em", "n_components": 2}, {"kernel": "linear"}, {"scale": "white"},
    ],
    "LatentDirichletAllocation": [{"learning_method": "online"}],
    "MLiT": [{"n_components": 2, "n_dims": 2, "method": "orthonormal"}, {"method": "constrained"}],
    "MORP": [
        {"kernel": "rbf"}, {"task": "classification", "n_components": 1},
        {"beta": "cv", "cv": 2, "n_components": 1},
    ],
    "MatrixFactorization": [
        {"supervised": True, "gamma": 0.1}, {"link": "logistic", "alpha": 0.1},
        {"solver": "multiplicative", "link": "saturating", "nonneg_codebook": True,
         "nonneg_classifier": True},
    ],
    "Mixture": [
        {"inference": "vb", "merge_split": True}, {"inference": "vb", "learn_prior": True},
        {"inference": "gibbs", "n_chains": 2, "n_draws": 6, "burn_in": 3},
        {"inference": "collapsed", "n_chains": 2, "n_draws": 6, "burn_in": 3},
        {"family": "full", "weights": "stick-breaking", "inference": "vb"},
        {"weights": "dirichlet"},
    ],
    "MixtureClassifier": [
        {"estimator": mixfold.MLiT(), "novelty": 0.1}, {"estimator": mixfold.MixtureOfPPCA(1, 1)},
    ],
    "MixtureOfFactorAnalyzers": [{"tied": ("noise",)}, {"tied": ("loadings", "noise")}],
    "MixtureOfFactorModels": [
        {"n_components": 2, "classifier": "per_component"}, {"tradeoff": 5.0},
    ],
    "MixtureOfPPCA": [{"n_factors": 2}],
    "MixtureClustering": [{"n_clusters": 2}, {"threshold": 0.05}],
    "MixtureSearch": [{"criterion": "held-out", "cv": 2}],
    "NestedMixture": [{"covariance_type": "diag"}],
    "PCP": [{"inference": "mean_field"}],
    "PPCA": [{"solver": "em"}, {"n_components": "bic"}, {"n_components": "mle"}],
    "PoissonMixture": [{"inference": "vb"}, {"inference": "collapsed", "n_draws": 6, "burn_in": 3}],
    "RBM": [{"visible": "gaussian"}, {"persistent": True}],
    "SupervisedMixtureOfPPCA": [{"task": "classification", "n_components": 2}],
    "SupervisedPPCA": [
        {"kernel": "rbf"}, {"solver": "em"}, {"task": "classification"},
        {"kernel": "rbf", "landmarks": 20},
    ],
}  # fmt: skip
SKIPPED = {
    "fit", "partial_fit", "save", "report", "get_metadata_routing", "set_output", "set_params",
    "module",
}  # fmt: skip
FIXED: dict[str, Any] = {
    "n_samples": 5, "random_state": 3, "columns": [0], "number": 1, "label": "a", "labels": None,
}  # fmt: skip


# ------------------------------------------------ values


def flatten(value: Any, place: str) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays and words of a nested value by place."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield place, value
    elif sparse.issparse(value):
        for part in ("data", "indices", "indptr"):
            if hasattr(value, part):
                yield f"{place}.{part}", np.asarray(getattr(value, part))
    elif isinstance(value, dict):
        for key, item in value.items():
            if key != "seconds":
                yield from flatten(item, f"{place}[{key!r}]")
    elif isinstance(value, list | tuple | np.ndarray):
        yield f"{place}.length", np.asarray(len(value))
        for i, item in enumerate(value):
            yield from flatten(item, f"{place}[{i}]")
    elif isinstance(value, bool | int | float | str | bytes | np.generic | None):
        yield place, np.asarray("None" if value is None else value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from flatten(getattr(value, field.name), f"{place}.{field.name}")
    elif hasattr(value, "to_numpy"):
        value = value.drop(columns="seconds", errors="ignore")
        yield from flatten({key: value[key].to_numpy() for key in value}, place)
    elif hasattr(value, "get_params"):
        yield from flatten(attributes(value), f"{place}:{type(value).__name__}")
    else:
        yield place, np.asarray(re.sub(r" at 0x[0-9a-f]+", "", repr(value)))


def attributes(model: Any) -> dict[str, Any]:
    """What a fit has published; times are left out."""
    names = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    names |= {
        name for name in dir(type(model))
        if name.endswith("_") and not name.startswith("_")
        and isinstance(getattr(type(model), name), property)
    }  # fmt: skip
    found: dict[str, Any] = {}
    for name in sorted(names):
        if "time" not in name and "seconds" not in name:
            found[name] = attempt(lambda name=name: getattr(model, name))
    return found


def attempt(work: Any) -> Any:
    """What is returned, or the class of the error."""
    try:
        return work()
    except Exception as error:
        return f"raises {type(error).__name__}"


# ------------------------------------------------ questions


def arguments(method: Any, model: Any, X: Any, y: Any) -> dict[str, Any] | None:
    """Values for what a method requires; None if there is no value for something."""
    values = {**FIXED, "X": X, "y": y, "values": [0.5]}
    given = {}
    for parameter in inspect.signature(method).parameters.values():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        required = parameter.default is parameter.empty
        if parameter.name in ("Z", "S"):
            given[parameter.name] = model.transform(X)
        elif parameter.name in values and (required or parameter.name == "random_state"):
            given[parameter.name] = values[parameter.name]
        elif required:
            return None
    return given


def answers(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """What every public method says, by its name."""
    said: dict[str, Any] = {}
    for name in sorted(dir(type(model))):
        if name.startswith(("_", "set_")) or name in SKIPPED or name.startswith("fit_"):
            continue
        method = getattr(model, name, None)
        if not callable(method):
            continue
        given = attempt(lambda method=method: arguments(method, model, X, y))
        if not isinstance(given, dict):
            said[name] = f"not asked: {given}"
            continue
        said[name] = attempt(lambda method=method, given=given: listed(method(**given)))
    for name, options in (("impute", {"method": "draw", "random_state": 1}),
                          ("transform", {"return_std": True})):  # fmt: skip
        method = getattr(model, name, None)
        if callable(method) and set(options) <= set(inspect.signature(method).parameters):
            said[f"{name} {options}"] = attempt(lambda m=method, o=options: m(X, **o))
    return said


def listed(value: Any) -> Any:
    """What an iterator yields, as a list."""
    return list(value) if inspect.isgenerator(value) else value


# ------------------------------------------------ tables


def tables(name: str) -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    """Rows, targets and further arguments of a fit, for each kind of table."""
    _, X, y = BRIEF[name]
    rng = np.random.default_rng(7)
    missing = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    zeros = np.where(rng.random(X.shape) < 0.4, 0.0, np.abs(X) if X is COUNTS else X)
    found: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "complete": (X, y, {}),
        "missing": (missing, y, {}),
        "sparse": (sparse.csr_array(zeros), y, {}),
        "weights": (X, y, {"sample_weight": rng.integers(0, 3, N).astype(float)}),
    }
    fit = inspect.signature(getattr(mixfold, name).fit).parameters
    if "component_labels" in fit:
        known = np.where(rng.random(N) < 0.2, LABELS, -1)
        found["labels"] = (X, y, {"component_labels": known})
    if y is not None:
        half = np.where(rng.random(N) < 0.5, y.astype(object), None)
        found["half labelled"] = (X, half, {})
        found["outputs"] = (X, NUMBERS @ rng.normal(size=(NUMBERS.shape[1], 2)), {})
    elif fit["y"].annotation is not None and name in ("RBM", "MatrixFactorization"):
        found["targets"] = (X, CLASSES, {})
    return found


# ------------------------------------------------ one estimator


def record(name: str, settings: dict[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
    """All entries of an estimator with some settings."""
    kind = getattr(mixfold, name)
    title = name + (f" {settings}" if settings else "")
    options = {**BRIEF[name][0], **settings, "random_state": 0}
    if not settings:
        yield f"{title} | signature", np.asarray(str(inspect.signature(kind)))
        doc = inspect.getdoc(kind) or ""
        yield f"{title} | docstring", np.asarray(hashlib.sha256(doc.encode()).hexdigest())
    for table, (X, y, more) in tables(name).items():
        model = attempt(lambda X=X, y=y, more=more: kind(**options).fit(X, y, **more))
        place = f"{title} | {table}"
        if isinstance(model, str):
            yield place, np.asarray(model)
            continue
        new = X[::-1][:12]
        yield from flatten(attributes(model), f"{place} | attributes")
        yield from flatten(answers(model, new, None if y is None else y[::-1][:12]), f"{place} | ")
        if table == "complete":
            yield from flatten(saved(model, new), f"{title} | saved")
    yield from flatten(attempt(lambda: resumed(kind, options, name)), f"{title} | resumed")
    yield from flatten(attempt(lambda: streamed(kind, options, name)), f"{title} | streamed")


def saved(model: Any, X: Any) -> dict[str, Any]:
    """The bytes of the file, and what is loaded from it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mixfold"
        failed = attempt(lambda: model.save(path))
        if isinstance(failed, str):
            return {"error": failed}
        loaded = mixfold.load(path)
        with safe_open(path, "numpy") as file:
            document = file.metadata()["document"]
            tensors = {key: file.get_tensor(key) for key in sorted(file.keys())}
        return {
            "document": document, "tensors": tensors, "attributes": attributes(loaded),
            "answers": answers(loaded, X, None),
        }  # fmt: skip


def resumed(kind: Any, options: dict[str, Any], name: str) -> Any:
    """A fit that is stopped as soon as a checkpoint would be kept, and goes on from it."""
    known = inspect.signature(kind).parameters
    if "checkpoint" not in known:
        return "has no checkpoints"
    _, X, y = BRIEF[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.ckpt"
        # so that there are passes to interrupt
        slow = {"tol": 0, "max_iter": 8}
        options = {**options, **{k: v for k, v in slow.items() if k in known}, "checkpoint": path}
        if "executor" in known:
            # the first passes, of pilot and starts, keep nothing
            for number in (2, 4, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 192, 224, 256):
                model = kind(**{**options, "executor": Serial(_stop_at(number))})
                first = attempt_interrupted(lambda model=model: model.fit(X, y))
                if path.exists():
                    break
        else:
            first = attempt(lambda: kind(**{**options, "time_budget": 1e-9}).fit(X, y))
        was_kept = path.exists()
        second = attempt(lambda: kind(**options).fit(X, y))
        return {
            "first": attributes(first) if not isinstance(first, str) else first,
            "checkpoint was kept": was_kept,
            "second": attributes(second) if not isinstance(second, str) else second,
        }


def attempt_interrupted(work: Any) -> Any:
    try:
        return attempt(work)
    except KeyboardInterrupt:
        return "raises KeyboardInterrupt"


def _stop_at(number: int) -> Any:
    def before(n_passes: int) -> None:
        if n_passes == number:
            raise KeyboardInterrupt

    return before


def streamed(kind: Any, options: dict[str, Any], name: str) -> Any:
    """Three batches, and what the model is after each of them."""
    if not hasattr(kind, "partial_fit"):
        return "takes no streams"
    _, X, y = BRIEF[name]
    model, states = kind(**options), []
    more = {}
    if "classes" in inspect.signature(kind.partial_fit).parameters and y is not None:
        more = {"classes": np.unique(y)}
    for rows in np.array_split(np.random.default_rng(2).permutation(N), 3):
        model.partial_fit(X[rows], None if y is None else y[rows], **more)
        states.append(attributes(model))
    return {"states": states, "answers": answers(model, X[:12], None if y is None else y[:12])}


# ------------------------------------------------ commands


def chosen(pattern: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in PUBLIC:
        if fnmatch(name, pattern):
            yield from ((name, settings) for settings in ({}, *MORE.get(name, [])))


def write(path: Path, pattern: str) -> None:
    entries: dict[str, np.ndarray] = {}
    begin = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, settings in chosen(pattern):
            entries.update(record(name, settings))
            print(f"{time.monotonic() - begin:6.1f} s  {name} {settings or ''}", file=sys.stderr)
    np.savez_compressed(path, **{key.replace("/", "\\"): value for key, value in entries.items()})
    print(f"wrote {path}: {len(entries)} entries")


def compare(one: Path, other: Path, pattern: str, most: int) -> int:
    with np.load(one) as a, np.load(other) as b:
        names = sorted({*a.files, *b.files})
        names = [key for key in names if fnmatch(re.split(r"[ |]", key)[0], pattern)]
        different = []
        for key in names:
            if key not in a.files or key not in b.files:
                different.append((key, "only in " + (one if key in a.files else other).name))
            elif reason := difference(a[key], b[key]):
                different.append((key, reason))
    for key, reason in different[:most]:
        print(f"{key}: {reason}")
    if len(different) > most:
        print(f".. and {len(different) - most} more (--most)")
    print(f"{len(different)} of {len(names)} entries differ")
    return int(bool(different))


def save(folder: Path, pattern: str) -> None:
    """Write a model file of every estimator and table, and what each answers about new rows."""
    folder.mkdir(parents=True, exist_ok=True)
    said: dict[str, np.ndarray] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, (name, settings) in enumerate(chosen(pattern)):
            kind, options = (
                getattr(mixfold, name),
                {**BRIEF[name][0], **settings, "random_state": 0},
            )
            for table, (X, y, more) in tables(name).items():
                model = attempt(lambda k=kind, o=options, X=X, y=y, m=more: k(**o).fit(X, y, **m))
                if isinstance(model, str):
                    continue
                file = f"{name}-{number}-{table.replace(' ', '-')}.mixfold"
                if not isinstance(attempt(lambda m=model, f=file: m.save(folder / f)), str):
                    loaded = mixfold.load(folder / file)
                    said.update(flatten(answers(loaded, X[::-1][:12], None), f"{file} | "))
    np.savez_compressed(folder / "answers.npz", **said)
    print(f"wrote {len(list(folder.glob('*.mixfold')))} files to {folder}")


def load(folder: Path, pattern: str, most: int) -> int:
    """Load the files of ``save``, and compare what they answer now with what they did."""
    different, count, now = [], 0, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in sorted(folder.glob("*.mixfold")):
            name, _, table = path.stem.split("-", 2)
            if not fnmatch(name, pattern):
                continue
            count += 1
            X = tables(name)[table.replace("-", " ")][0]
            model = attempt(lambda path=path: mixfold.load(path))
            if isinstance(model, str):
                different.append((path.name, model))
            else:
                now.update(flatten(answers(model, X[::-1][:12], None), f"{path.name} | "))
    with np.load(folder / "answers.npz") as before:
        for key in (k for k in before.files if fnmatch(k.split("-")[0], pattern)):
            if key in now and (reason := difference(before[key], now[key])):
                different.append((key, reason))
            elif key not in now:
                different.append((key, "is not answered any more"))
    for key, reason in different[:most]:
        print(f"{key}: {reason}")
    print(f"{count} files, {len(now)} answers, {len(different)} differences")
    return int(bool(different))


def difference(a: np.ndarray, b: np.ndarray) -> str:
    """What is not the same in two values, in words; empty if they are the same bits."""
    if a.dtype != b.dtype or a.shape != b.shape:
        if a.dtype.kind == b.dtype.kind == "U" and a.shape == b.shape == ():
            return f"{str(a)[:60]!r} became {str(b)[:60]!r}"
        return f"{a.dtype}{a.shape} became {b.dtype}{b.shape}"
    if a.tobytes() == b.tobytes():
        return ""
    if a.dtype.kind == "f":
        gap = np.abs(a.astype(float) - b.astype(float))
        return f"differs by up to {np.nanmax(gap, initial=0.0):.3g} in {int((a != b).sum())} places"
    return f"{str(a)[:60]} became {str(b)[:60]}"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    steps = parser.add_subparsers(dest="step", required=True)
    one = steps.add_parser("write")
    one.add_argument("path", type=Path)
    two = steps.add_parser("compare")
    two.add_argument("before", type=Path)
    two.add_argument("after", type=Path)
    two.add_argument("--most", type=int, default=40, help="how many differences are listed")
    three = steps.add_parser("save")
    three.add_argument("path", type=Path)
    four = steps.add_parser("load")
    four.add_argument("path", type=Path)
    four.add_argument("--most", type=int, default=40, help="how many differences are listed")
    for step in (one, two, three, four):
        step.add_argument("--only", default="*", metavar="PATTERN", help="names of estimators")
    given = parser.parse_args(argv)
    if given.step == "write":
        write(given.path, given.only)
        return 0
    if given.step == "save":
        save(given.path, given.only)
        return 0
    if given.step == "load":
        return load(given.path, given.only, given.most)
    return compare(given.before, given.after, given.only, given.most)


if __name__ == "__main__":
    sys.exit(main())
