"""Random tables, weights, labels and settings: mostly odd, all repeatable from (seed, case)."""

from __future__ import annotations

import datetime
import decimal
import os
import tempfile
from typing import Any

import numpy as np
from scipy import sparse

ROWS = (0, 1, 2, 3, 4, 6, 9, 17, 33, 60, 140, 300, 1300)
ROW_ODDS = (2, 4, 4, 4, 4, 6, 8, 12, 16, 16, 12, 8, 1)
COLUMNS = (0, 1, 2, 3, 4, 6, 11, 25, 70)
COLUMN_ODDS = (1, 12, 16, 18, 16, 12, 8, 4, 2)


def pick(rng: np.random.Generator, values: Any, odds: Any = None) -> Any:
    """One of ``values``."""
    p = None if odds is None else np.asarray(odds, float) / np.sum(odds)
    return values[int(rng.choice(len(values), p=p))]


# ------------------------------------------------------------------ values


def _clusters(rng: np.random.Generator, n: Any, d: Any) -> Any:
    return rng.normal(size=(n, d)) + 4.0 * rng.integers(0, 3, (n, 1)) * rng.normal(size=(1, d))


def _matrices(rng: np.random.Generator, n: int, d: int) -> Any:
    """Lower triangles of covariance matrices, as many columns as they have."""
    side = max(1, int((np.sqrt(8 * d + 1) - 1) / 2))
    factors = rng.normal(size=(n, side, side + 2)) * np.exp(rng.normal(size=(n, 1, 1)))
    return (factors @ factors.transpose(0, 2, 1))[:, *np.tril_indices(side)]


VALUES = {
    "clusters": _clusters,
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "uniform": lambda rng, n, d: rng.random((n, d)),
    "counts": lambda rng, n, d: rng.poisson(rng.gamma(1.0, 3.0, (1, d)), (n, d)).astype(float),
    "bits": lambda rng, n, d: (rng.random((n, d)) < 0.4).astype(float),
    "codes": lambda rng, n, d: rng.integers(0, 4, (n, d)).astype(float),
    "times": lambda rng, n, d: rng.exponential(2.0, (n, d)),
    "shares": lambda rng, n, d: rng.dirichlet(np.ones(d), n) if d else np.empty((n, 0)),
    "matrices": _matrices,
    "heavy": lambda rng, n, d: rng.standard_cauchy((n, d)),
}


def _collinear(rng: np.random.Generator, X: Any) -> Any:
    if X.shape[1] > 1:
        X[:, -1] = X[:, 0] * 3 - 1
    return X


def _duplicates(rng: np.random.Generator, X: Any) -> Any:
    return X[rng.integers(0, max(1, len(X) // 4), len(X))] if len(X) else X


def _outlier(rng: np.random.Generator, X: Any) -> Any:
    if X.size:
        X.flat[int(rng.integers(X.size))] = pick(rng, (1e6, 1e12, 1e60, 1e150, 1e300, -1e307))
    return X


def _constant_column(rng: np.random.Generator, X: Any) -> Any:
    if X.shape[1]:
        X[:, int(rng.integers(X.shape[1]))] = pick(rng, (0.0, 1.0, 1e9, -3.5, 1e-310))
    return X


WARPS = {
    "plain": lambda rng, X: X,
    "all constant": lambda rng, X: np.full_like(X, pick(rng, (0.0, 1.0, 7.0, 1e8))),
    "constant column": _constant_column,
    "duplicates": _duplicates,
    "collinear": _collinear,
    "offset 1e12": lambda rng, X: X + 1e12,
    "offset 1e17": lambda rng, X: X + 1e17,
    "scale 1e-300": lambda rng, X: X * 1e-300,
    "denormals": lambda rng, X: np.round(X) * 5e-324,
    "scale 1e200": lambda rng, X: X * 1e200,
    "scale 1e307": lambda rng, X: X * 1e307 / max(1.0, np.abs(X).max(initial=0.0)),
    "mixed scales": lambda rng, X: X * 10.0 ** rng.uniform(-200, 200, (1, X.shape[1])),
    "moderately mixed scales": lambda rng, X: X * 10.0 ** rng.uniform(-30, 30, (1, X.shape[1])),
    "mixed rows": lambda rng, X: X * 10.0 ** rng.uniform(-150, 150, (X.shape[0], 1)),
    "outlier": _outlier,
    "tiny spread": lambda rng, X: 1.0 + X * 1e-16,
    "negative": lambda rng, X: -np.abs(X),
    "empty rows": lambda rng, X: X * (rng.random((X.shape[0], 1)) < 0.7),
    "mostly zero": lambda rng, X: X * (rng.random(X.shape) < 0.1),
    "one row differs": lambda rng, X: np.vstack([np.zeros_like(X[:-1]), X[-1:]]) if len(X) else X,
}


def _holes(rng: np.random.Generator, X: Any) -> Any:
    how = pick(
        rng,
        ("some", "most", "row", "column", "all", "one", "inf", "-inf", "rows and columns"),
        (30, 8, 10, 6, 3, 12, 6, 3, 6),
    )
    n, d = X.shape
    if not X.size:
        return X, how
    if how == "some":
        X[rng.random(X.shape) < 0.15] = np.nan
    elif how == "most":
        X[rng.random(X.shape) < 0.8] = np.nan
    elif how == "row":
        X[int(rng.integers(n))] = np.nan
    elif how == "column":
        X[:, int(rng.integers(d))] = np.nan
    elif how == "all":
        X[:] = np.nan
    elif how == "one":
        X.flat[int(rng.integers(X.size))] = np.nan
    elif how == "inf":
        X.flat[int(rng.integers(X.size))] = np.inf
    elif how == "-inf":
        X.flat[int(rng.integers(X.size))] = -np.inf
    else:
        X[rng.random(n) < 0.3] = np.nan
        X[rng.random(X.shape) < 0.2] = np.nan
    return X, how


# ------------------------------------------------------------------ types and containers

TYPES = (
    "f8",
    "f4",
    "f2",
    "i8",
    "i4",
    "i1",
    "u1",
    "u8",
    "?",
    "O",
    "O with None",
    "c16",
    "M8",
    "m8",
    "U",
    "S",
    "g",
    ">f8",
    "V",
    "masked",
)
TYPE_ODDS = (60, 14, 4, 4, 3, 2, 4, 1, 3, 3, 2, 1, 1, 1, 1, 1, 2, 3, 0.5, 2)


def convert_type(rng: np.random.Generator, X: np.ndarray, kind: str) -> Any:
    """The table in another numpy type, where that can be done."""
    with np.errstate(all="ignore"):
        if kind in ("f8", "f4", "f2", "g", ">f8", "c16"):
            return X.astype(kind)
        whole = np.nan_to_num(np.clip(np.round(X), -(2.0**52), 2.0**52))
        if kind in ("i8", "i4", "i1", "u1", "u8"):
            limit = np.iinfo(kind)
            return np.clip(whole, max(limit.min, -(2**52)), min(limit.max, 2**52)).astype(kind)
        if kind == "?":
            return whole > 0
        if kind == "O":
            return X.astype(object)
        if kind == "O with None":
            out = X.astype(object)
            if out.size:
                out.flat[int(rng.integers(out.size))] = pick(
                    rng, (None, "3", b"x", [1], decimal.Decimal("1.5"), float("nan"), True, {})
                )
            return out
        if kind == "M8":
            return (whole.astype("i8") % 10**6).astype("M8[s]")
        if kind == "m8":
            return (whole.astype("i8") % 10**6).astype("m8[s]")
        if kind == "U":
            return X.astype("U12")
        if kind == "S":
            return X.astype("S12")
        if kind == "V":
            return np.zeros(X.shape, dtype=[("a", "f8"), ("b", "i4")])
        return np.ma.masked_array(X, mask=rng.random(X.shape) < 0.1)


CONTAINERS = (
    "array",
    "fortran",
    "strided",
    "reversed",
    "read-only",
    "memmap",
    "list",
    "pandas",
    "pandas odd",
    "polars",
    "arrow",
    "csr",
    "csc",
    "coo",
    "sparse odd",
    "1d",
    "3d",
    "matrix",
    "not a table",
    "dask",
    "file",
    "transposed",
)
CONTAINER_ODDS = (60, 8, 6, 3, 6, 4, 6, 12, 8, 5, 4, 8, 4, 4, 6, 1, 1, 1, 2, 1, 3, 2)


def _pandas(rng: np.random.Generator, X: Any, odd: Any) -> Any:
    import pandas as pd

    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    if not odd or not X.shape[1]:
        return frame, "pandas"
    how = pick(
        rng,
        (
            "nullable",
            "categorical",
            "duplicate names",
            "MultiIndex",
            "integers as names",
            "mixed names",
            "text column",
            "dates",
            "arrow types",
            "sparse",
            "odd index",
            "all NA column",
            "boolean",
            "names with markup",
            "series",
            "empty name",
            "None names",
            "subclass",
        ),
    )
    try:
        if how == "nullable":
            frame = frame.astype("Float64")
            frame.iloc[0, 0] = pd.NA
        elif how == "categorical":
            frame["c0"] = pd.Categorical.from_codes(rng.integers(0, 2, len(frame)), ["a", "b"])
        elif how == "duplicate names":
            frame.columns = ["a"] * X.shape[1]
        elif how == "MultiIndex":
            frame.columns = pd.MultiIndex.from_tuples([("g", j) for j in range(X.shape[1])])
        elif how == "integers as names":
            frame.columns = list(range(X.shape[1]))
        elif how == "mixed names":
            frame.columns = [j if j % 2 else f"c{j}" for j in range(X.shape[1])]
        elif how == "text column":
            frame["c0"] = "word"
        elif how == "dates":
            frame["c0"] = pd.Timestamp("2020-01-01")
        elif how == "arrow types":
            frame = frame.astype("float64[pyarrow]")
        elif how == "sparse":
            frame = frame.astype(pd.SparseDtype("float64", 0.0))
        elif how == "odd index":
            frame.index = pd.MultiIndex.from_arrays(
                [[0] * len(frame), list(range(len(frame)))[::-1]]
            )
        elif how == "all NA column":
            frame["c0"] = pd.Series([pd.NA] * len(frame), dtype="Float64")
        elif how == "boolean":
            frame["c0"] = pd.Series(rng.random(len(frame)) < 0.5, dtype="boolean")
        elif how == "names with markup":
            frame.columns = [f"<script>{j}</script>\n\x00" for j in range(X.shape[1])]
        elif how == "series":
            return frame["c0"], how
        elif how == "empty name":
            frame.columns = ["", *list(frame.columns[1:])]
        elif how == "None names":
            frame.columns = [None] * X.shape[1]
    except (ValueError, TypeError, IndexError, KeyError):
        pass
    return frame, f"pandas {how}"


def _columns_of_all_kinds(rng: np.random.Generator, X: Any) -> Any:
    """The columns of a table, each read as a kind of its own: words, dates, grades, numbers."""
    import pandas as pd

    def words(column: Any) -> Any:
        return pd.Series(np.round(column)).map(lambda v: None if np.isnan(v) else f"w{v % 4:.0f}")

    def dates(column: Any) -> Any:
        days = np.clip(np.nan_to_num(column), -1e4, 1e4).astype(int)
        return pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D")

    def grades(column: Any) -> Any:
        codes = np.clip(np.nan_to_num(np.abs(column)), 0, 2).astype(int)
        return pd.Categorical.from_codes(codes, ["low", "<b>mid", "high"], ordered=True)

    kinds = {
        "numbers": lambda column: column,
        "words": words,
        "dates": dates,
        "grades": grades,
        "yes and no": lambda column: np.where(column > 0, "yes", "no"),
        "booleans": lambda column: column > 0,
        "counts": lambda column: np.clip(np.round(np.abs(np.nan_to_num(column))), 0, 1e6),
        "names": lambda column: [f"row {i}" for i in range(len(column))],
        "numbers as text": lambda column: [f"{value:.3g}" for value in column],
        "nothing": lambda column: [None] * len(column),
    }
    odds = (6, 4, 2, 2, 2, 2, 3, 1, 1, 1)
    return pd.DataFrame(
        {f"c{j}": kinds[pick(rng, tuple(kinds), odds)](X[:, j]) for j in range(X.shape[1])}
    )


def _polars(rng: np.random.Generator, X: Any) -> Any:
    import polars as pl

    frame = pl.DataFrame({f"c{j}": np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])})
    how = pick(
        rng, ("plain", "nulls", "text", "lazy", "list", "series", "f4"), (6, 3, 1, 1, 1, 1, 1)
    )
    if how == "nulls" and X.size:
        frame = frame.with_columns(
            pl.when(pl.int_range(pl.len()) == 0).then(None).otherwise(pl.col("c0")).alias("c0")
        )
    elif how == "text" and X.size:
        frame = frame.with_columns(pl.lit("w").alias("c0"))
    elif how == "lazy":
        return frame.lazy(), "polars lazy"
    elif how == "list" and X.size:
        frame = frame.with_columns(pl.concat_list(pl.col("c0"), pl.col("c0")).alias("c0"))
    elif how == "series" and X.size:
        return frame["c0"], "polars series"
    elif how == "f4":
        frame = frame.cast(pl.Float32)
    return frame, f"polars {how}"


def _arrow(rng: np.random.Generator, X: Any) -> Any:
    import pyarrow as pa

    columns = {f"c{j}": pa.array(np.ascontiguousarray(X[:, j])) for j in range(X.shape[1])}
    how = pick(rng, ("plain", "nulls", "dictionary", "decimal", "null type", "batch", "chunked"))
    if X.size:
        if how == "nulls":
            columns["c0"] = pa.array([None, *X[1:, 0]], pa.float64())
        elif how == "dictionary":
            columns["c0"] = pa.array(["a"] * len(X)).dictionary_encode()
        elif how == "decimal":
            columns["c0"] = pa.array([decimal.Decimal(int(i)) for i in range(len(X))])
        elif how == "null type":
            columns["c0"] = pa.nulls(len(X))
    table = pa.table(columns)
    if how == "batch" and X.size:
        return table.to_batches()[0], "arrow batch"
    if how == "chunked" and len(X) > 2:
        table = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    return table, f"arrow {how}"


def _sparse_odd(rng: np.random.Generator, X: Any) -> Any:
    filled = np.nan_to_num(X, posinf=1.0, neginf=-1.0)
    how = pick(
        rng,
        (
            "explicit zeros",
            "NaN stored",
            "duplicates",
            "int64 indices",
            "unsorted",
            "empty",
            "inf stored",
            "bsr",
            "dia",
            "lil",
            "dok",
            "integers",
            "bool",
            "bad indices",
            "matrix not array",
            "complex",
            "bad indptr",
            "nothing stored in a row",
        ),
    )
    S = sparse.csr_array(filled * (rng.random(X.shape) < 0.4))
    if how == "explicit zeros" and S.nnz:
        S.data[::2] = 0.0
    elif how == "NaN stored" and S.nnz:
        S.data[::3] = np.nan
    elif how == "inf stored" and S.nnz:
        S.data[0] = np.inf
    elif how == "duplicates" and X.size:
        i, j = rng.integers(0, X.shape[0], 40), rng.integers(0, X.shape[1], 40)
        S = sparse.coo_array((np.abs(rng.normal(size=40)), (i, j)), shape=X.shape)
        if rng.random() < 0.5:  # CSR whose rows hold an index twice
            order = np.argsort(i, kind="stable")
            pointers = np.concatenate([[0], np.cumsum(np.bincount(i, minlength=X.shape[0]))])
            S = sparse.csr_array((S.data[order], j[order], pointers), shape=X.shape)
    elif how == "int64 indices":
        S.indices, S.indptr = S.indices.astype("i8"), S.indptr.astype("i8")
    elif how == "unsorted" and X.size:
        S.indices = S.indices.copy()
        for r in range(X.shape[0]):
            part = slice(S.indptr[r], S.indptr[r + 1])
            S.indices[part] = S.indices[part][::-1].copy()
            S.data[part] = S.data[part][::-1].copy()
        S.has_sorted_indices = False
    elif how == "empty":
        S = sparse.csr_array(X.shape)
    elif how in ("bsr", "dia", "lil", "dok"):
        S = S.asformat(how)
    elif how == "integers":
        S = sparse.csr_array(np.clip(np.round(S.toarray()), 0, 100).astype("i8"))
    elif how == "bool":
        S = S.astype(bool)
    elif how == "bad indices" and S.nnz:
        S.indices = S.indices.copy()
        S.indices[-1] = pick(rng, (X.shape[1], -1, 2**31 - 1))
    elif how == "bad indptr" and S.nnz:
        S.indptr = S.indptr.copy()
        S.indptr[1 + int(rng.integers(len(S.indptr) - 1))] = pick(rng, (-5, 10**6))
    elif how == "matrix not array":
        S = sparse.csr_matrix(S)
    elif how == "complex":
        S = S.astype(complex)
    elif how == "nothing stored in a row":
        S = sparse.csr_array(S.toarray() * (np.arange(X.shape[0])[:, None] % 2))
    return S, f"sparse {how}"


def _file(rng: np.random.Generator, X: Any) -> Any:
    import pyarrow as pa
    from pyarrow import csv, parquet

    folder = tempfile.mkdtemp(prefix="fz", dir=os.getcwd())
    how = pick(rng, ("npy", "parquet", "csv", "missing", "empty", "garbage.parquet", "garbage.csv"))
    table = pa.table({f"c{j}": np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])})
    path = os.path.join(folder, f"t {how}" if how.startswith("garbage") else f"t é.{how}")
    if how == "npy":
        np.save(path, X)
    elif how == "parquet":
        parquet.write_table(table, path)
    elif how == "csv":
        csv.write_csv(table, path)
    elif how == "empty":
        path = os.path.join(folder, pick(rng, ("e.csv", "e.parquet", "e.npy")))
        open(path, "w").close()
    elif how.startswith("garbage"):
        with open(path, "wb") as file:
            file.write(rng.bytes(300))
    return path, f"file {how}"


def put_into_container(rng: np.random.Generator, X: Any, how: str) -> tuple[Any, str]:
    """The table in a container of some library, and what it is called."""
    plain = isinstance(X, np.ndarray) and not isinstance(X, np.ma.MaskedArray) and X.ndim == 2
    if how == "array" or not plain:
        return X, "array"
    if how == "fortran":
        return np.asfortranarray(X), how
    if how == "transposed":
        return np.ascontiguousarray(X.T).T, how
    if how == "strided":
        wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]), dtype=X.dtype)
        wide[::2, ::3] = X
        return wide[::2, ::3], how
    if how == "reversed":
        return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1], how
    if how == "read-only":
        X = X.copy()
        X.setflags(write=False)
        return X, how
    if how == "memmap":
        if not X.size or X.dtype.hasobject:
            return X, "array"
        path = os.path.join(tempfile.mkdtemp(prefix="fz", dir=os.getcwd()), "m.bin")
        mapped = np.memmap(path, dtype=X.dtype, mode="w+", shape=X.shape)
        mapped[...] = X
        return mapped, how
    if how == "list":
        return pick(
            rng, (X.tolist(), tuple(map(tuple, X.tolist())), [list(X[:, 0])] if X.size else [])
        ), how
    if how == "1d":
        return X.ravel(), how
    if how == "3d":
        return X[None], how
    if how == "matrix":
        return np.asmatrix(X), how
    if how == "not a table":
        return pick(
            rng,
            (
                None,
                3.5,
                "nowhere.csv",
                {"a": [1, 2]},
                {1, 2},
                object(),
                b"bytes",
                iter([[1.0, 2.0]]),
                np.float64(2),
                [],
                [[]],
                [[1.0], [1.0, 2.0]],
                range(5),
                datetime.date(2020, 1, 1),
                "",
                "\x00",
                lambda: 0,
            ),
        ), how
    if X.dtype.kind not in "fiub" or X.dtype.hasobject:
        return X, "array"
    if how == "columns of all kinds":
        return _columns_of_all_kinds(rng, X.astype(float)), how
    if how in ("pandas", "pandas odd"):
        if X.dtype.byteorder == ">" or X.dtype == np.longdouble or X.dtype == np.float16:
            X = X.astype(float)
        return _pandas(rng, X, how == "pandas odd")
    simple = (
        X.astype(float)
        if X.dtype.kind != "f" or X.dtype.itemsize != 8 or not X.dtype.isnative
        else X
    )
    if how == "polars":
        return _polars(rng, simple)
    if how == "arrow":
        return _arrow(rng, simple)
    if how in ("csr", "csc", "coo"):
        dense = simple if rng.random() < 0.3 else np.nan_to_num(simple, posinf=1.0, neginf=-1.0)
        return sparse.csr_array(dense).asformat(how), how
    if how == "sparse odd":
        return _sparse_odd(rng, simple)
    if how == "file":
        return _file(rng, simple)
    if how == "dask":
        import dask.array as da

        rows = max(1, (X.shape[0] + 1) // 2)
        return da.from_array(simple, chunks=(rows, max(1, X.shape[1]))), how
    return X, "array"


# ------------------------------------------------------------------ a table


ASPECTS = ("shape", "values", "warp", "holes", "type", "container", "weights", "labels", "setting")


def draw_oddities(rng: np.random.Generator) -> set[str]:
    """What is odd about a case: most often one or two things, so that many are fitted."""
    how_many = pick(rng, (0, 1, 2, 3, 4, 9), (4, 36, 34, 14, 8, 4))
    odds = np.array([3, 2, 4, 4, 3, 4, 2, 2, 1.5])
    return set(rng.choice(ASPECTS, how_many, replace=False, p=odds / odds.sum()).tolist())


def table(
    rng: np.random.Generator, odd: set[str], values: str | None = None, usual: str = "array"
) -> tuple[Any, dict[str, Any]]:
    """A table, and how it was made."""
    n, d = int(rng.integers(25, 90)), int(rng.integers(2, 7))
    if "shape" in odd:
        n, d = pick(rng, ROWS, ROW_ODDS), pick(rng, COLUMNS, COLUMN_ODDS)
    plain = values or pick(rng, ("clusters", "normal", "uniform"))
    values = pick(rng, tuple(VALUES)) if "values" in odd else plain
    X = VALUES[values](rng, n, d)
    warp = pick(rng, tuple(WARPS)) if "warp" in odd else "plain"
    with np.errstate(all="ignore"):
        X = np.array(WARPS[warp](rng, X), dtype=float)
    X[np.isinf(X)] = 1e308
    holes = "none"
    if "holes" in odd:
        X, holes = _holes(rng, X)
    kind = pick(rng, TYPES[1:], TYPE_ODDS[1:]) if "type" in odd else "f8"
    how = pick(rng, CONTAINERS[1:], CONTAINER_ODDS[1:]) if "container" in odd else usual
    out, container = put_into_container(rng, convert_type(rng, X, kind), how)
    about = dict(
        shape=[n, d], values=values, warp=warp, holes=holes, dtype=kind, container=container
    )
    return out, about


def weights(rng: np.random.Generator, n: int) -> tuple[Any, str]:
    """Sample weights, or None."""
    how = pick(
        rng,
        (
            "random",
            "ones",
            "some zero",
            "all zero",
            "negative",
            "huge",
            "tiny",
            "NaN",
            "inf",
            "short",
            "2d",
            "text",
            "ints",
            "bool",
            "series",
            "list",
            "one row",
            "object",
            "mixed",
            "scalar",
            "denormal",
            "complex",
        ),
        (10, 3, 8, 3, 3, 4, 4, 2, 2, 2, 2, 1, 3, 2, 2, 2, 3, 1, 4, 1, 2, 1),
    )
    w = rng.random(n) + 0.1
    if how == "ones":
        w = np.ones(n)
    elif how == "some zero":
        w[rng.random(n) < 0.5] = 0.0
    elif how == "all zero":
        w[:] = 0.0
    elif how == "negative" and n:
        w[0] = -1.0
    elif how == "huge":
        w *= pick(rng, (1e15, 1e150, 1e300, 1e307))
    elif how == "tiny":
        w *= pick(rng, (1e-15, 1e-150, 1e-300))
    elif how == "denormal":
        w = np.full(n, 5e-324)
    elif how == "NaN" and n:
        w[0] = np.nan
    elif how == "inf" and n:
        w[0] = np.inf
    elif how == "short":
        w = w[: max(0, n - 1)]
    elif how == "2d":
        w = w[:, None]
    elif how == "text":
        return ["a"] * n, how
    elif how == "ints":
        w = rng.integers(0, 4, n)
    elif how == "bool":
        w = rng.random(n) < 0.7
    elif how == "series":
        import pandas as pd

        return pd.Series(w, index=np.arange(n)[::-1]), how
    elif how == "list":
        return w.tolist(), how
    elif how == "one row" and n:
        w[:] = 0.0
        w[int(rng.integers(n))] = 1.0
    elif how == "object":
        return w.astype(object), how
    elif how == "mixed":
        w = 10.0 ** rng.uniform(-200, 200, n)
    elif how == "scalar":
        return 2.0, how
    elif how == "complex":
        return w.astype(complex), how
    return w, how


def labels(rng: np.random.Generator, n: int) -> tuple[Any, str]:
    """Targets of any kind."""
    how = pick(
        rng,
        (
            "two",
            "three",
            "strings",
            "one class",
            "all unique",
            "reals",
            "bool",
            "partial",
            "reals with NaN",
            "two outputs",
            "multilabel",
            "short",
            "objects",
            "None inside",
            "huge reals",
            "inf",
            "complex",
            "series",
            "categorical",
            "list",
            "constant real",
            "dates",
            "column",
            "float classes",
            "negative",
            "big ints",
            "none",
            "bytes",
            "two sets",
            "named sets",
            "name of a column",
        ),
        (
            14,
            10,
            6,
            4,
            2,
            8,
            3,
            8,
            5,
            6,
            4,
            2,
            2,
            2,
            3,
            2,
            1,
            3,
            2,
            3,
            3,
            1,
            2,
            2,
            2,
            2,
            4,
            1,
            2,
            1,
            2,
        ),
    )
    if how == "two":
        return rng.integers(0, 2, n), how
    if how == "three":
        return rng.integers(0, 3, n), how
    if how == "strings":
        return np.array(["a", "bb", "<b>"])[rng.integers(0, 3, n)], how
    if how == "one class":
        return np.full(n, 5), how
    if how == "all unique":
        return np.arange(n), how
    if how == "reals":
        return rng.normal(size=n), how
    if how == "bool":
        return rng.random(n) < 0.5, how
    if how == "partial":
        return np.where(rng.random(n) < 0.5, -1, rng.integers(0, 2, n)), how
    if how == "reals with NaN":
        return np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)), how
    if how == "two outputs":
        return rng.normal(size=(n, 2)), how
    if how == "multilabel":
        return rng.integers(0, 2, (n, 3)), how
    if how == "short":
        return rng.integers(0, 2, max(0, n - 1)), how
    if how == "objects":
        return np.array([("x", 1, 2.5)[i] for i in rng.integers(0, 3, n)] + [None], dtype=object)[
            :-1
        ], how
    if how == "None inside":
        return np.array([("x", "y", None)[i] for i in rng.integers(0, 3, n)] + [0], dtype=object)[
            :-1
        ], how
    if how == "huge reals":
        return rng.normal(size=n) * pick(rng, (1e200, 1e-200, 1e12)), how
    if how == "inf":
        y = rng.normal(size=n)
        y[:1] = np.inf
        return y, how
    if how == "complex":
        return rng.normal(size=n) + 1j, how
    if how == "series":
        import pandas as pd

        return pd.Series(rng.integers(0, 2, n), index=np.arange(n)[::-1], name="y"), how
    if how == "categorical":
        import pandas as pd

        return pd.Series(pd.Categorical.from_codes(rng.integers(-1, 2, n), ["a", "b"])), how
    if how == "list":
        return rng.integers(0, 2, n).tolist(), how
    if how == "constant real":
        return np.full(n, 2.5), how
    if how == "dates":
        return rng.integers(0, 9, n).astype("M8[D]"), how
    if how == "column":
        return rng.integers(0, 2, (n, 1)), how
    if how == "float classes":
        return rng.integers(0, 2, n).astype(float), how
    if how == "negative":
        return -1 - rng.integers(0, 3, n), how
    if how == "big ints":
        return rng.integers(0, 2, n) * (2**62), how
    if how == "bytes":
        return np.array([b"a", b"b"])[rng.integers(0, 2, n)], how
    if how == "two sets":
        return [rng.integers(0, 2, n), rng.normal(size=(n, 2))], how
    if how == "named sets":
        return {"classes": rng.integers(0, 2, n), "reals": rng.normal(size=(n, 2))}, how
    if how == "name of a column":
        return "c0", how
    return None, how


ODD = (
    0,
    -1,
    1,
    2,
    3,
    7,
    1e-300,
    1e300,
    0.5,
    float("nan"),
    float("inf"),
    -float("inf"),
    "abc",
    "",
    None,
    True,
    False,
    [],
    (),
    {},
    "auto",
    2**31,
    10**30,
    b"x",
    np.float32(2),
    np.int64(3),
    np.array([1.0, 2.0]),
    np.array([]),
    [1, 2],
    "None",
    {"a": 1},
    -0.0,
    1e-17,
    1 - 1e-16,
    object,
    len,
    "\x00",
    "../x",
    np.bool_(True),
    np.nan,
    2.0,
    "1",
    (2, 3),
    [[1.0]],
)
# numbers of repetitions: a huge value rightly takes for ever
REPEATS = (
    "max_iter",
    "n_draws",
    "burn_in",
    "thin",
    "n_chains",
    "max_epochs",
    "n_init",
    "n_steps",
    "chain_epochs",
    "cv",
    "sweeps",
    "fine_tune_epochs",
    "n_layers",
    "test",
    "patience",
    "verbose_interval",
    "shift",
    "columns_per_iter",
)


def draw_odd_setting(rng: np.random.Generator, names: list[str]) -> tuple[str, Any]:
    """One parameter with a value that is probably wrong."""
    name = pick(rng, names)
    while True:
        value = pick(rng, ODD)
        large = isinstance(value, (int, float)) and not isinstance(value, bool) and value > 1000
        if name in REPEATS and large:
            continue
        if "kernel" in name and callable(value):
            continue  # what a function of the user raises is rightly passed on
        return name, value
