"""Mutated model files and checkpoints: nothing may run, hang, eat memory, or answer NaN.

    python -m tools.faults files --cases 6000 [--seed 0] [--out hostile.jsonl]
    python -m tools.faults files --show NAME:CASE [--seed 0]

Mutations of bytes keep their checksum wrong; those of headers, documents and arrays get a right one,
as an attacker would give. A loaded model is asked everything that it can answer.
"""  # noqa: E501

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import functools
import hashlib
import io
import json
import math
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from tools.faults.inputs import is_on_purpose
from tools.faults.running import Tally, Worker, limit_memory, peak_megabytes, python, scratch_folder
from tools.faults.tables import pick

LIMIT = 4 * 2**30
SIZES = {
    "BOOL": 1,
    "I8": 1,
    "U8": 1,
    "I16": 2,
    "U16": 2,
    "F16": 2,
    "I32": 4,
    "U32": 4,
    "F32": 4,
    "I64": 8,
    "U64": 8,
    "F64": 8,
}
NUMPY = {
    "BOOL": "?",
    "I8": "i1",
    "U8": "u1",
    "I16": "i2",
    "U16": "u2",
    "F16": "f2",
    "I32": "i4",
    "U32": "u4",
    "F32": "f4",
    "I64": "i8",
    "U64": "u8",
    "F64": "f8",
}

# ------------------------------------------------------------------ valid files


def models() -> Any:
    """Fitted models of every class that can be saved, with rows to ask about."""
    import mixfold as m

    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (40, 4)), rng.normal(4, 1, (40, 4))])
    counts = rng.poisson(np.vstack([[8, 1, 1, 2, 1]] * 30 + [[1, 1, 7, 1, 6]] * 30)).astype(float)
    bits, y = (X > 2).astype(float), np.repeat([0, 1], 40)
    counted = rng.poisson(np.exp(X[:, 0] / 3))
    quick = dict(random_state=0)
    for kind in ("full", "tied", "diag", "spherical"):
        yield (
            f"GaussianMixture-{kind}",
            m.GaussianMixture(2, covariance_type=kind, **quick).fit(X),
            X,
        )
    stream = m.GaussianMixture(2, **quick).partial_fit(X).partial_fit(X)
    yield "GaussianMixture-stream", stream, X
    yield "GaussianMixture-warm", m.GaussianMixture(2, warm_start=True, **quick).fit(X), X
    yield "BayesianGaussianMixture", m.BayesianGaussianMixture(3, **quick).fit(X), X
    for family in ("full", "diag", "known"):
        yield f"Mixture-{family}", m.Mixture(family, 2, inference="vb", **quick).fit(X), X
    yield (
        "Mixture-gibbs",
        m.Mixture("diag", 2, inference="gibbs", n_chains=1, n_draws=4, burn_in=2, **quick).fit(X),
        X,
    )
    yield (
        "Mixture-product",
        m.Mixture({"full": [0, 1], "poisson": [2, 3]}, 2, **quick).fit(np.abs(np.round(X))),
        np.abs(np.round(X)),
    )
    yield "BernoulliMixture", m.BernoulliMixture(2, **quick).fit(bits), bits
    yield "PoissonMixture", m.PoissonMixture(2, **quick).fit(counts), counts
    yield "MultinomialMixture", m.MultinomialMixture(2, **quick).fit(counts), counts
    yield (
        "CategoricalMixture",
        m.CategoricalMixture(2, **quick).fit(np.minimum(counts, 4)),
        np.minimum(counts, 4),
    )
    shares = rng.dirichlet([2.0, 1.0, 1.0, 3.0], 80)
    for family, rows in (
        ("beta", shares),
        ("dirichlet", shares),
        (
            "wishart",
            np.array([[1.0, 0.2, 2.0]] * 40 + [[3.0, -1.0, 1.0]] * 40)
            * np.exp(rng.normal(size=(80, 1))),
        ),
        ("gamma-shape", np.exp(X)),
        ("negative-binomial", counts),
        ("known-mean", X),
    ):
        yield f"Mixture-{family}", m.Mixture(family, 2, **quick).fit(rows), rows
    yield "Mixture-sticks", m.Mixture("poisson", 2, inference="vb", **quick).fit(counts), counts
    yield "KMeans", m.KMeans(2, **quick).fit(X), X
    yield "KSubspaces", m.KSubspaces(2, 1, **quick).fit(X), X
    yield "GTM", m.GTM(2, n_points=4, n_basis=2, max_iter=5, **quick).fit(X), X
    yield "ICA", m.ICA(2, max_iter=20, **quick).fit(X), X
    yield "LatentDensity", m.LatentDensity(**quick).fit(X), X
    yield "MixtureClustering", m.MixtureClustering(max_components=3, **quick).fit(X), X
    yield "PPCA-ard", m.PPCA("ard", max_iter=20, **quick).fit(X), X
    yield (
        "FactorAnalysis-priors",
        m.FactorAnalysis(2, loadings_prior="ard", noise_prior=(3, 0.1), **quick).fit(X),
        X,
    )
    yield "MixtureOfPPCA-vb", m.MixtureOfPPCA(3, None, inference="vb", **quick).fit(X), X
    yield (
        "MatrixFactorization-kl",
        m.MatrixFactorization(
            2,
            loss="kullback-leibler",
            nonneg_codebook=True,
            max_iter=5,
            nonneg_sources=True,
            **quick,
        ).fit(counts),
        counts,
    )
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    yield "KernelPCA-holes", m.KernelPCA(2, missing="expected", **quick).fit(holes), holes
    yield "MORP-logistic", m.MORP(1, loss="logistic", **quick).fit(X, y), X
    graded = np.digitize(X[:, 0], [0.0, 3.0])
    yield "SupervisedPPCA-ordered", m.SupervisedPPCA(1, task="ordered", **quick).fit(X, graded), X
    yield "SupervisedPPCA-count", m.SupervisedPPCA(1, task="count", **quick).fit(X, counted), X
    yield "SupervisedPPCA-stream", m.SupervisedPPCA(1, **quick).partial_fit(X, y), X
    yield (
        "MixtureOfFactorModels-stream",
        m.MixtureOfFactorModels(2, 1, **quick).partial_fit(X, y),
        X,
    )
    yield "NestedMixture", m.NestedMixture(2, 2, **quick).fit(X), X
    yield "PPCA", m.PPCA(2, **quick).fit(X), X
    yield "PPCA-stream", m.PPCA(2, **quick).partial_fit(X), X
    yield "FactorAnalysis", m.FactorAnalysis(2, **quick).fit(X), X
    yield "MixtureOfPPCA", m.MixtureOfPPCA(2, 1, **quick).fit(X), X
    yield "MixtureOfFactorAnalyzers", m.MixtureOfFactorAnalyzers(2, 1, **quick).fit(X), X
    yield "GaussianPCP", m.GaussianPCP(3, 2, **quick).fit(X), X
    yield "SupervisedPPCA", m.SupervisedPPCA(1, **quick).fit(X, y), X
    yield "SupervisedPPCA-kernel", m.SupervisedPPCA(1, kernel="rbf", **quick).fit(X, y), X
    yield "SupervisedMixtureOfPPCA", m.SupervisedMixtureOfPPCA(2, 1, **quick).fit(X, y), X
    yield "MixtureOfFactorModels", m.MixtureOfFactorModels(2, 1, **quick).fit(X, y), X
    yield "MixtureClassifier", m.MixtureClassifier(m.GaussianMixture(2), **quick).fit(X, y), X
    yield "MLiT", m.MLiT(2, 2, max_iter=5, **quick).fit(X), X
    yield "KernelPCA", m.KernelPCA(2, **quick).fit(X), X
    yield "KernelPCA-landmarks", m.KernelPCA(2, landmarks=10, **quick).fit(X), X
    yield "KernelCCA", m.KernelCCA(1, kernel="rbf", **quick).fit(X, y), X
    yield "MORP", m.MORP(1, kernel="rbf", **quick).fit(X, y), X
    yield (
        "LatentDirichletAllocation",
        m.LatentDirichletAllocation(2, max_iter=10, **quick).fit(counts),
        counts,
    )
    yield "PLSI", m.PLSI(2, max_iter=10, **quick).fit(counts), counts
    yield "PCP", m.PCP(2, 3, max_iter=5, **quick).fit(counts), counts
    yield (
        "PCP-mean-field",
        m.PCP(2, 3, inference="mean_field", max_iter=5, **quick).fit(counts),
        counts,
    )
    yield "MatrixFactorization", m.MatrixFactorization(2, max_iter=10, **quick).fit(X, y), X
    yield (
        "DeepFactorNetwork",
        m.DeepFactorNetwork((3, 2), max_iter=5, max_epochs=2, **quick).fit(X, y),
        X,
    )
    yield "RBM", m.RBM(4, max_epochs=2, **quick).fit(bits, y), bits
    yield (
        "DeepBeliefNetwork",
        m.DeepBeliefNetwork((4, 3), max_epochs=2, fine_tune_epochs=1, **quick).fit(bits, y),
        bits,
    )


def unfinished() -> dict[str, tuple[Any, Any]]:
    """Fits that go on until their time is up, by name: the model for a path and seconds, rows."""
    import mixfold as m

    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 6)) + 1.5 * rng.integers(0, 4, (4000, 1))
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    counts = rng.poisson(np.exp(0.4 * X)).astype(float)
    long = dict(tol=0, max_iter=10**6, random_state=0)
    made = {
        "GaussianMixture": (lambda **o: m.GaussianMixture(6, **long, **o), X),
        "KMeans": (lambda **o: m.KMeans(40, n_init=1000, **long, **o), X),
        "FactorAnalysis": (lambda **o: m.FactorAnalysis(2, **long, **o), X),
        "RBM": (
            lambda **o: m.RBM(8, visible="gaussian", max_epochs=10**6, random_state=0, **o),
            X,
        ),
        "PPCA-ard": (lambda **o: m.PPCA("ard", **long, **o), holes),
        "ICA": (lambda **o: m.ICA(3, n_init=1000, **long, **o), X),
        "GTM": (lambda **o: m.GTM(2, n_points=5, n_basis=3, **long, **o), X),
        "KSubspaces": (lambda **o: m.KSubspaces(20, 2, n_init=1000, **long, **o), X),
        "MixtureOfPPCA-vb": (
            lambda **o: m.MixtureOfPPCA(4, None, inference="vb", **long, **o),
            X,
        ),
        "Mixture-gibbs": (
            lambda **o: m.Mixture(
                "diag", 4, inference="gibbs", n_chains=2, n_draws=10**4, random_state=0, **o
            ),
            X[:500],
        ),
        "LatentDirichletAllocation": (
            lambda **o: m.LatentDirichletAllocation(3, **long, **o),
            counts[:500],
        ),
        "PCP": (lambda **o: m.PCP(3, 4, **long, **o), counts[:500]),
        "MatrixFactorization": (lambda **o: m.MatrixFactorization(2, **long, **o), X[:500]),
    }  # fmt: skip
    return made


def checkpoints(folder: Path) -> Any:
    """Checkpoints that fits leave behind when their time is up."""
    for name, (make, X) in unfinished().items():
        path = str(folder / f"{name}.ckpt")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        make(time_budget=1.0, checkpoint=path).fit(X)
        if os.path.exists(path):
            yield f"checkpoint-{name}", path
        else:
            print(f"{name} left no checkpoint")


def make_files(home: Path) -> dict:
    warnings.simplefilter("ignore")
    index = {}
    for name, model, X in models():
        path = home / f"{name}.mixfold"
        try:
            model.save(path)
        except Exception as error:  # of interest by itself
            print(f"{name} cannot be saved: {error!r}"[:200])
            continue
        np.save(home / f"{name}.npy", X[::8])
        index[name] = str(path)
    for name, path in checkpoints(home):
        index[name] = path
    (home / "index.json").write_text(json.dumps(index))
    return index


# ------------------------------------------------------------------ taking apart, putting together


def parse(content: bytes) -> Any:
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__")
    data = content[8 + length :]
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        tensors[name] = [entry["dtype"], list(entry["shape"]), data[first:last]]
    return metadata, json.loads(metadata["document"]), tensors


def build(
    metadata: Any, document: Any, tensors: Any, header_hook: Any = None, text: Any = None
) -> bytes:
    text = json.dumps(document, separators=(",", ":")) if text is None else text
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name][2])
    header, place = (
        {"__metadata__": {**metadata, "document": text, "sha256": digest.hexdigest()}},
        0,
    )
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [place, place + len(raw)]}
        place += len(raw)
    if header_hook is not None:
        header_hook(header)
    packed = json.dumps(header, separators=(",", ":")).encode()
    return len(packed).to_bytes(8, "little") + packed + b"".join(t[2] for t in tensors.values())


def nodes(value: Any, path: Any = ()) -> Any:
    """Every node of a JSON value, with its path."""
    yield path, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from nodes(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from nodes(item, (*path, i))


def put(document: Any, path: Any, value: Any) -> Any:
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


# ------------------------------------------------------------------ mutations

ODD = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    5,
    100,
    2**31,
    2**62,
    2**63,
    10**30,
    -(2**63),
    0.5,
    -0.5,
    1e308,
    1e-320,
    "",
    "x",
    "dask",
    "threads",
    "os.system",
    "__class__",
    "/etc/passwd",
    "../../x",
    "callable",
    "precomputed",
    "poly",
    [],
    {},
    [1, 2],
    {"a": 1},
    {"$float": "nan"},
    {"$float": "inf"},
    {"$tuple": []},
    {"$tuple": [1, 2, 3]},
    {"$record": ["Event", {"kind": "a", "message": "b"}]},
    {"$scalar": ["f8", 1.5]},
    {"$scalar": ["i8", 7]},
    {"$text": [["a", "b"], [2], 1]},
    {"$text": [["a"] * 4, [4], -1]},
    "learn",
    "full",
    "diag",
    [[1.0, 2.0]],
    "\u202e",
    "a" * 5000,
)


def mutate_bytes(rng: np.random.Generator, content: bytes) -> tuple[bytes, str]:
    how = pick(
        rng,
        (
            "flip",
            "flips",
            "truncate",
            "insert",
            "header size",
            "zeros",
            "repeat",
            "random",
            "swap",
            "tail",
        ),
    )
    data = bytearray(content)
    at = int(rng.integers(len(data)))
    if how == "flip":
        data[at] ^= 1 << int(rng.integers(8))
    elif how == "flips":
        for _ in range(20):
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
    elif how == "truncate":
        data = data[:at]
    elif how == "insert":
        data[at:at] = rng.bytes(int(rng.integers(1, 9)))
    elif how == "header size":
        size = pick(
            rng,
            (
                0,
                1,
                2,
                7,
                2**31,
                2**62,
                2**63,
                2**64 - 1,
                16 * 2**20,
                16 * 2**20 + 1,
                len(data),
                len(data) - 8,
            ),
        )
        data[:8] = size.to_bytes(8, "little")
    elif how == "zeros":
        data[at : at + 16] = bytes(16)
    elif how == "repeat":
        data = data + data
    elif how == "random":
        data = bytearray(rng.bytes(len(data)))
    elif how == "swap":
        data = data[at:] + data[:at]
    else:
        data += rng.bytes(5)
    return bytes(data), f"bytes {how}"


def mutate_header(rng: np.random.Generator, parts: Any) -> tuple[bytes, str]:
    metadata, document, tensors = parts
    how = pick(
        rng,
        (
            "huge shape",
            "float shape",
            "negative shape",
            "NaN shape",
            "long shape",
            "dtype",
            "overlap",
            "gap",
            "extra tensor",
            "drop tensor",
            "duplicate key",
            "deep",
            "unknown metadata",
            "version",
            "text shape",
            "huge offsets",
            "many tensors",
            "deep document",
            "nulls",
            "empty with huge extent",
        ),
    )
    name = pick(rng, sorted(tensors)) if tensors else None
    text = None

    def hook(header: Any) -> Any:
        entry = header.get(name, {})
        if how == "huge shape":
            entry["shape"] = pick(rng, ([2**62], [2**31, 2**31], [2**63], [10**30], [2**40, 2]))
        elif how == "float shape":
            entry["shape"] = [float(n) for n in entry["shape"]]
        elif how == "negative shape":
            entry["shape"] = [-n for n in entry["shape"]]
        elif how == "NaN shape":
            entry["shape"] = [float("nan")] * len(entry["shape"])
        elif how == "long shape":
            entry["shape"] = [1] * pick(rng, (33, 65, 5000)) + entry["shape"]
        elif how == "dtype":
            entry["dtype"] = pick(rng, ("F64", "I8", "BF16", "O", "U64", None, 3, "F128", "C64"))
        elif how == "overlap":
            entry["data_offsets"] = [0, entry["data_offsets"][1] - entry["data_offsets"][0]]
        elif how == "gap":
            entry["data_offsets"] = [n + 8 for n in entry["data_offsets"]]
        elif how == "huge offsets":
            entry["data_offsets"] = [
                2**61,
                2**61 + entry["data_offsets"][1] - entry["data_offsets"][0],
            ]
        elif how == "deep":
            value = []
            for _ in range(pick(rng, (90, 900))):
                value = [value]
            header["x"] = value
        elif how == "unknown metadata":
            header["__metadata__"]["code"] = pick(rng, ("import os", 3, None, {"a": 1}))
        elif how == "version":
            header["__metadata__"]["format_version"] = pick(
                rng,
                ("2", "0", "-1", "9" * 5000, "1.0", "", "١", 1),  # noqa: RUF001
            )
        elif how == "text shape":
            entry["shape"] = "ab"
        elif how == "many tensors":
            for i in range(20000):
                header[f"t{i}"] = {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}
        elif how == "nulls":
            header[name] = None
        elif how == "empty with huge extent":
            header["empty"] = {"dtype": "F64", "shape": [0, 2**40], "data_offsets": [0, 0]}

    if how == "extra tensor":
        tensors["extra"] = ["F64", [2], bytes(16)]
    elif how == "drop tensor" and tensors:
        tensors.pop(name)
    elif how == "duplicate key":
        text = json.dumps(document)
        text = text[:-1] + ',"tree":' + json.dumps({"parameters": {}, "state": {}}) + "}"
    elif how == "deep document":
        text = (
            '{"kind":'
            + json.dumps(document["kind"])
            + ',"tree":'
            + "[" * 100000
            + "]" * 100000
            + "}"
        )
    if name is None:
        how = "extra tensor"
        tensors["extra"] = ["F64", [2], bytes(16)]
        return build(metadata, document, tensors), f"header {how}"
    content = build(metadata, document, tensors, hook, text)
    if how == "NaN shape":
        content = content.replace(b"NaN", b"NaN")
    return content, f"header {how}"


def mutate_document(rng: np.random.Generator, parts: Any) -> tuple[bytes, str]:
    metadata, document, tensors = parts
    how = pick(
        rng,
        (
            "leaf",
            "leaf",
            "leaf",
            "leaf",
            "kind",
            "drop key",
            "add attribute",
            "record name",
            "parameter",
            "parameter",
            "swap nodes",
            "double mark",
            "state key",
        ),
    )
    tree = document["tree"]
    where = ""
    if how == "leaf":
        found = [p for p, v in nodes(tree) if p and not isinstance(v, dict | list)]
        path = pick(rng, found)
        put(tree, path, pick(rng, ODD))
        where = "/".join(map(str, path))
    elif how == "kind":
        document["kind"] = pick(
            rng,
            (
                "GaussianMixture",
                "KMeans",
                "PPCA",
                "os",
                "Popen",
                "",
                None,
                3,
                "checkpoint",
                "MixtureSearch",
                "RBM",
                "MixtureClassifier",
                "MixtureClustering",
                "KernelPCA",
                "__import__",
                "a.b",
            ),
        )
        where = str(document["kind"])
    elif how == "drop key":
        found = [p for p, v in nodes(tree) if p and isinstance(p[-1], str)]
        path = pick(rng, found)
        holder = tree
        for key in path[:-1]:
            holder = holder[key]
        holder.pop(path[-1])
        where = "/".join(map(str, path))
    elif how == "add attribute":
        key = pick(
            rng,
            (
                "__class__",
                "__dict__",
                "fit",
                "predict",
                "_params",
                "save",
                "executor",
                "__init__",
                "n_features_in_",
                "score_samples",
                "_check_state",
                "__reduce__",
                "evil_",
                "feature_names_in_",
            ),
        )
        section = pick(
            rng, [s for s in ("state", "parameters", "settings") if isinstance(tree.get(s), dict)]
        )
        tree[section][key] = pick(rng, ODD)
        where = f"{section}/{key}"
    elif how == "record name":
        found = [p for p, v in nodes(tree) if p and p[-1] == "$record"]
        if found:
            path = pick(rng, found)
            node = tree
            for key in path:
                node = node[key]
            node[0] = pick(
                rng,
                (
                    "Event",
                    "Climb",
                    "Popen",
                    "Frame",
                    "object",
                    "MixtureParams",
                    "Moments",
                    "",
                    "KMeansParams",
                ),
            )
            where = node[0]
    elif how == "parameter":
        section = tree.get("parameters", tree.get("settings", {}))
        if section:
            key = pick(rng, sorted(section))
            section[key] = pick(rng, ODD)
            where = f"{key}={section[key]!r}"[:60]
    elif how == "swap nodes":
        found = [(p, v) for p, v in nodes(tree) if p]
        (a, va), (b, vb) = pick(rng, found), pick(rng, found)
        if a[: len(b)] != b and b[: len(a)] != a:
            put(tree, a, vb)
            put(tree, b, va)
        where = "/".join(map(str, a))
    elif how == "double mark":
        found = [p for p, v in nodes(tree) if p]
        path = pick(rng, found)
        put(
            tree,
            path,
            pick(
                rng,
                (
                    {"$code": "x"},
                    {"$record": ["Event", {}], "$array": 1},
                    {"$array": ["nothing", "f8", [1], "C"]},
                    {"$$a": 1},
                ),
            ),
        )
        where = "/".join(map(str, path))
    else:
        if isinstance(tree.get("state"), dict) and tree["state"]:
            key = pick(rng, sorted(tree["state"]))
            tree["state"][key] = pick(rng, ODD)
            where = key
    return build(metadata, document, tensors), f"document {how} {where}"


def declared_arrays(document: Any, tensors: Any) -> Any:
    """Places in the document that declare an array."""
    return [
        (p, v) for p, v in nodes(document["tree"]) if isinstance(v, dict) and list(v) == ["$array"]
    ]


def mutate_array(rng: np.random.Generator, parts: Any) -> tuple[bytes, str]:
    """Another shape, type or value, declared everywhere as it is: a consistent lie."""
    metadata, document, tensors = parts
    places = declared_arrays(document, tensors)
    if not places:
        return mutate_document(rng, parts)
    _, node = pick(rng, places)
    name = node["$array"][0]
    dtype, shape, raw = tensors[name]
    array = np.frombuffer(raw, dtype=NUMPY[dtype]).reshape(shape).copy()
    how = pick(
        rng,
        (
            "fewer rows",
            "more rows",
            "fewer columns",
            "more columns",
            "transposed",
            "flat",
            "empty",
            "scalar",
            "extra axis",
            "NaN",
            "one NaN",
            "inf",
            "negative",
            "zero",
            "huge",
            "tiny",
            "float32",
            "ints",
            "big ints",
            "negative ints",
            "bool",
            "shuffled",
            "one huge",
            "fortran",
            "double length",
        ),
    )
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = change_array(rng, array, how)
    code = next((k for k, v in NUMPY.items() if np.dtype(v) == array.dtype), None)
    if code is None:
        return mutate_bytes(rng, build(metadata, document, tensors))
    array = np.ascontiguousarray(array).reshape(array.shape)
    tensors[name] = [code, list(array.shape), array.tobytes()]
    node["$array"][1], node["$array"][2] = array.dtype.str[1:], list(array.shape)
    if how == "fortran":
        node["$array"][3] = "F"
    return build(metadata, document, tensors), f"array {how} {name}"


def change_array(rng: np.random.Generator, a: Any, how: Any) -> Any:
    if how == "fewer rows":
        return a[:-1] if a.ndim else a
    if how == "more rows":
        return np.concatenate([a, a[-1:]]) if a.ndim and len(a) else a
    if how == "double length":
        return np.concatenate([a, a]) if a.ndim else a
    if how == "fewer columns":
        return a[..., :-1] if a.ndim else a
    if how == "more columns":
        return np.concatenate([a, a[..., -1:]], -1) if a.ndim and a.shape[-1] else a
    if how == "transposed":
        return a.T
    if how == "flat":
        return a.ravel()
    if how == "empty":
        return a[:0] if a.ndim else a.reshape(1)[:0]
    if how == "scalar":
        return a.ravel()[0] if a.size else a
    if how == "extra axis":
        return a[None]
    if how == "float32":
        return a.astype("f4")
    if how == "ints":
        return np.nan_to_num(a.astype(float)).astype("i8")
    if how == "bool":
        return a.astype("?")
    if how == "shuffled":
        return rng.permutation(a.ravel()).reshape(a.shape)
    if how == "fortran":
        return a
    if a.dtype.kind == "?":
        return ~a
    if a.dtype.kind in "iu":
        value = {
            "negative ints": -1,
            "negative": -5,
            "big ints": 2**31 - 1,
            "huge": 10**6,
            "one huge": 2**31 - 1,
        }.get(how, 3)
        out = a.copy().astype("i8")
        if out.size:
            if how == "one huge":
                out.flat[int(rng.integers(out.size))] = value
            else:
                out[...] = value
        return out if a.dtype.kind == "u" and value < 0 else out.astype(a.dtype)
    out = a.copy()
    if out.size:
        i = int(rng.integers(out.size))
        if how == "NaN":
            out[...] = np.nan
        elif how == "one NaN":
            out.flat[i] = np.nan
        elif how == "inf":
            out.flat[i] = np.inf
        elif how == "negative":
            out = ~out if out.dtype.kind == "b" else -out
        elif how == "zero":
            out[...] = 0
        elif how == "huge":
            out = (out * 1e200).astype(out.dtype) if out.dtype.kind == "f" else out * 2 + 1
        elif how == "tiny":
            out = (out * 1e-200).astype(out.dtype) if out.dtype.kind == "f" else out * 0
        elif how == "one huge":
            out.flat[i] = 1e300
        else:
            out.flat[i] = -7.0
    return out


def mutation(seed: int, name: str, case: int, path: str) -> tuple[bytes, str]:
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), case])
    with open(path, "rb") as file:
        content = file.read()
    level = pick(rng, ("bytes", "header", "document", "array"), (15, 15, 35, 35))
    if level == "bytes":
        return mutate_bytes(rng, content)
    parts = parse(content)
    return {"header": mutate_header, "document": mutate_document, "array": mutate_array}[level](
        rng, parts
    )


# ------------------------------------------------------------------ one case

SUSPECT = (
    "os.system",
    "subprocess.Popen",
    "os.exec",
    "os.posix_spawn",
    "pickle.find_class",
    "socket.connect",
    "socket.bind",
    "ctypes.dlopen",
    "os.remove",
    "os.rename",
    "os.chmod",
    "os.mkdir",
    "webbrowser.open",
    "shutil.rmtree",
)
heard: list[str] = []
listening = False


def is_own_doing(event: Any, arguments: Any) -> Any:
    """What belongs to the library itself: numba's store of compiled code, the checkpoint it was given."""  # noqa: E501
    text = str(arguments)
    if event == "pickle.find_class":
        return str(arguments[0]).split(".")[0] in (
            "numba",
            "builtins",
            "copyreg",
            "numpy",
            "llvmlite",
        )
    numba = os.environ.get("NUMBA_CACHE_DIR", "\0")
    return (
        numba in text
        or "mutated.mixfold" in text
        or (event == "open" and isinstance(arguments[0], int))
    )


def listen(event: Any, arguments: Any) -> Any:
    if not listening or is_own_doing(event, arguments):
        return
    if event in SUSPECT:
        heard.append(f"{event} {str(arguments)[:80]}")
    elif (
        event == "open" and isinstance(arguments[1], str) and any(c in arguments[1] for c in "wax+")
    ):
        heard.append(f"open {str(arguments)[:80]}")
    elif (
        event == "import"
        and arguments
        and not str(arguments[0]).startswith(
            (
                "mixfold",
                "sklearn",
                "numpy",
                "scipy",
                "numba",
                "llvmlite",
                "joblib",
                "threadpoolctl",
                "encodings",
                "_",
            )
        )
    ):
        heard.append(f"import {arguments[0]}")


ASK = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "score_samples",
    "transform",
    "impute",
    "reconstruct",
    "score",
    "bic",
    "decision_function",
    "predict_leaf",
    "free_energy",
    "perplexity",
    "top_words",
    "flatten",
    "get_covariance",
)


def answers(model: Any, X: Any) -> Any:
    """(what was asked, error or None, whether an answer has NaN)."""
    for name in ASK:
        method = getattr(model, name, None)
        if method is None or (name == "score" and hasattr(model, "classes_")):
            continue  # score of a classifier needs y
        yield (
            name,
            (
                lambda method=method, name=name: (
                    method() if name in ("flatten", "get_covariance", "top_words") else method(X)
                )
            ),
        )
    if hasattr(model, "sample"):
        yield "sample", lambda: model.sample(3)
    if hasattr(model, "inverse_transform") and hasattr(model, "transform"):
        yield "inverse_transform", lambda: model.inverse_transform(model.transform(X))
    if hasattr(model, "partial_fit"):
        yield "partial_fit", lambda: model.partial_fit(X) and None
    yield "save", lambda: model.save(os.path.join(os.getcwd(), "again.mixfold"))


def has_nan(value: Any) -> Any:
    values = value if isinstance(value, tuple | list) else [value]
    return any(
        np.asarray(v).dtype.kind == "f" and np.isnan(np.asarray(v)).any()
        for v in values
        if not isinstance(v, str | dict) and np.asarray(v).dtype.kind == "f"
    )


def run_case(seed: Any, name: Any, case: Any, path: Any) -> Any:
    global listening
    import mixfold
    from mixfold import store

    content, what = mutation(seed, name, case, path)
    target = os.path.join(os.getcwd(), "mutated.mixfold")
    with open(target, "wb") as file:
        file.write(content)
    heard.clear()
    result = {"what": what}
    listening = True
    try:
        if name.startswith("checkpoint"):
            return {**result, **resume(name, target)}
        with contextlib.suppress(store.ModelFileError, OSError):
            store.describe(target)
        try:
            model = mixfold.load(target)
        except store.ModelFileError as error:
            return {**result, "kind": "refused", "words": str(error)[-160:]}
        X = np.load(path.replace(".mixfold", ".npy"))
        late, odd, nan = [], [], []
        for asked, call in answers(model, X):
            listening = asked not in ("save", "partial_fit")
            try:
                if has_nan(call()):
                    nan.append(asked)
            except (ValueError, TypeError) as error:
                if is_on_purpose(error):  # a question that this model does not answer, with words
                    continue
                late.append(f"{asked}: {type(error).__name__}: {str(error)[:100]}")
            except Exception as error:
                if type(error).__name__ == "ClusterError" and "executor" in what:
                    continue  # the setting is a valid one, and there is no cluster
                odd.append(f"{asked}: {type(error).__name__}: {str(error)[:100]}")
        kind = "accepted"
        if nan:
            kind = "NaN answers"
        elif odd:
            kind = "late crash"
        elif late:
            kind = "late error"
        return {
            **result,
            "kind": kind,
            "signature": "; ".join((nan or odd or late)[:2]),
            "all": (nan, odd, late),
        }
    except Exception as error:
        return {
            **result,
            "kind": "load crash",
            "signature": f"{type(error).__name__}: {error}"[:160],
            "trace": traceback.format_exc()[-1200:],
        }
    finally:
        listening = False
        if heard:
            result["heard"] = list(heard)


def resume(name: Any, target: Any) -> Any:
    """Go on from a mutated checkpoint."""
    from mixfold import store

    make, X = resumable()[name.removeprefix("checkpoint-")]
    try:
        make(time_budget=0.2, checkpoint=target).fit(X)
    except Exception as error:
        kind = "late error" if isinstance(error, ValueError | TypeError) else "late crash"
        if isinstance(error, store.ModelFileError) or "checkpoint" in str(error):
            kind = "refused"
        return {"kind": kind, "signature": f"{type(error).__name__}: {str(error)[:120]}"}
    return {"kind": "accepted", "signature": ""}


resumable = functools.cache(unfinished)


def serve() -> None:
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    import mixfold
    from mixfold import store

    warnings.simplefilter("ignore")
    for kind in store.ESTIMATORS:
        store.estimator_class(kind)
    home = scratch_folder("hostile")
    index = json.loads((home / "index.json").read_text())
    for name, path in index.items():  # everything that is imported or compiled when first used
        if not name.startswith("checkpoint"):
            with contextlib.redirect_stdout(io.StringIO()):
                for _, call in answers(
                    mixfold.load(path), np.load(path.replace(".mixfold", ".npy"))
                ):
                    with contextlib.suppress(Exception):
                        call()
    import distributed  # noqa: F401  what executor='dask' imports

    sys.addaudithook(listen)
    limit_memory(LIMIT)
    out = os.fdopen(os.dup(1), "w")
    os.chdir(tempfile.mkdtemp(prefix="case", dir=home))
    for line in sys.stdin:
        ask = json.loads(line)
        began, peak = time.process_time(), peak_megabytes()
        with contextlib.redirect_stdout(io.StringIO()):
            answer = run_case(ask["seed"], ask["name"], ask["case"], index[ask["name"]])
        if heard:
            answer["heard"] = sorted(set(heard))
        answer["cpu"], answer["grown"] = (
            round(time.process_time() - began, 3),
            round(peak_megabytes() - peak),
        )
        out.write(json.dumps(answer, default=str) + "\n")
        out.flush()


def campaign(cases: int, seed: int, out: str, first: int, only: list[str]) -> Tally:
    """Run cases in a child and count what became of them."""
    home = scratch_folder("hostile")
    index = json.loads((home / "index.json").read_text())
    names = [n for n in index if not only or n in only]
    worker = Worker(
        [python(), "-m", "tools.faults", "files", "--serve"], 20, 240, home / "worker.log"
    )
    tally, done, began = Tally(out), 0, time.monotonic()
    for case in range(first, first + math.ceil(cases / len(names))):
        for name in names:
            answer = worker.ask({"seed": seed, "name": name, "case": case})
            done += 1
            kind = answer["kind"]
            signature = (
                ""
                if kind in ("refused", "accepted")
                else f"{name} | {answer.get('what', '')[:60]} | {answer.get('signature', answer.get('detail', ''))[:120]}"  # noqa: E501
            )
            tally.add(kind, signature, name=name, case=case, seed=seed, answer=answer)
            for event in answer.get("heard", []):
                tally.add(
                    "event", f"{name} {event[:60]}", name=name, case=case, seed=seed, answer=answer
                )
            if answer.get("grown", 0) > 300:
                tally.add(
                    "memory",
                    f"{name} {answer['what'][:60]} grew {answer['grown']} MB",
                    name=name,
                    case=case,
                    seed=seed,
                    answer=answer,
                )
            if answer.get("cpu", 0) > 3:
                tally.add(
                    "slow",
                    f"{name} {answer['what'][:60]} {answer['cpu']} s",
                    name=name,
                    case=case,
                    seed=seed,
                    answer=answer,
                )
        if case % 10 == 9:
            print(
                f"{done} cases, {time.monotonic() - began:.0f} s, {dict(tally.kinds)}", flush=True
            )
    worker.close()
    print(tally.table())
    tally.file.close()
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=6000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", default=str(scratch_folder("hostile") / "hostile.jsonl"))
    parser.add_argument("--show", default="")
    parser.add_argument("--make", action="store_true", help="make the valid files anew")
    parser.add_argument("--serve", action="store_true")
    options = parser.parse_args()
    home = scratch_folder("hostile")
    if options.serve:
        serve()
        return
    if options.make or not (home / "index.json").exists():
        print(f"{len(make_files(home))} valid files")
    if options.show:
        name, case = options.show.split(":")
        index = json.loads((home / "index.json").read_text())
        os.chdir(tempfile.mkdtemp(prefix="show", dir=home))
        print(
            json.dumps(run_case(options.seed, name, int(case), index[name]), indent=1, default=str)
        )
        return
    campaign(
        options.cases,
        options.seed,
        options.out,
        options.first,
        options.only.split(",") if options.only else [],
    )


if __name__ == "__main__":
    main()
