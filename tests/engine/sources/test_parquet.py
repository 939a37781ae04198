"""Parquet: memory, files that disagree, damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mixfold.engine.sources import open_source


def _rows(source: Any, max_rows: int | None = None) -> np.ndarray:
    return np.concatenate([block.X for block in source.blocks(max_rows)])


def _write(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_blocks_do_not_depend_on_row_groups_or_files(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    X = rng.normal(size=(5000, 2))
    table = pa.table({"a": X[:, 0], "b": X[:, 1]})
    layouts = {"one": [5000], "many": [1, 1999, 7, 2993]}
    sizes = {}
    for name, parts in layouts.items():
        (tmp_path / name).mkdir()
        at = 0
        for i, n in enumerate(parts):
            pq.write_table(table.slice(at, n), tmp_path / name / f"{i}.parquet", row_group_size=611)
            at += n
        sizes[name] = [(b.start, b.n_rows) for b in open_source(tmp_path / name).blocks()]
        np.testing.assert_array_equal(_rows(open_source(tmp_path / name)), X)
    assert sizes["one"] == sizes["many"] == [(0, 1024), (1024, 1024), (2048, 1024), (3072, 1024), (4096, 904)]  # fmt: skip  # noqa: E501


def test_one_giant_row_group_is_not_read_whole(tmp_path: Path) -> None:
    n, d = 1_000_000, 8
    table = pa.table({f"x{j}": np.random.default_rng(j).normal(size=n) for j in range(d)})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=n, use_dictionary=False)
    assert pq.ParquetFile(tmp_path / "x.parquet").num_row_groups == 1
    del table
    before, held = pa.total_allocated_bytes(), 0
    for _ in open_source(tmp_path / "x.parquet").blocks():
        held = max(held, pa.total_allocated_bytes() - before)
    assert held < n * d * 8 / 4


def test_rows_come_from_the_metadata(tmp_path: Path) -> None:
    _write(tmp_path / "a.parquet", x=[1.0, 2.0])
    _write(tmp_path / "b.parquet", x=[3.0])
    source = open_source(tmp_path)
    assert source.n_samples == 3
    with pytest.raises(ValueError, match="weight has 2 entries, the data have 3 rows"):
        open_source(tmp_path, weight=[1.0, 2.0])


def test_single_precision_parquet_stays(tmp_path: Path) -> None:
    path = _write(tmp_path / "x.parquet", x=np.ones(3, np.float32), y=np.ones(3))
    assert open_source(path, columns=["x"]).dtype == np.float32
    assert next(open_source(path, columns=["x"]).blocks()).X.dtype == np.float32
    assert open_source(path).dtype == np.float64


def test_columns_in_another_order_are_found_by_name(tmp_path: Path) -> None:
    _write(tmp_path / "1.parquet", a=[1.0], b=[2.0], w=[1.0])
    _write(tmp_path / "2.parquet", w=[1.0], b=[4.0], a=[3.0])
    np.testing.assert_array_equal(_rows(open_source(tmp_path, weight="w")), [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("second", "text"),
    [
        ({"a": [1, 2], "b": [1.0, 2.0]}, "2.parquet: column 'a' has type int64, but double in"),
        ({"a": ["u", "v"], "b": [1.0, 2.0]}, "column 'a' has type string, but double in .*1.par"),
        ({"a": [1.0]}, "2.parquet has no column 'b'"),
        ({"a": [1.0], "b": [2.0], "c": [2.0]}, "2.parquet has a column 'c' that .*1.parquet has"),
    ],
)
def test_files_that_disagree(second: dict[str, Any], text: str, tmp_path: Path) -> None:
    _write(tmp_path / "1.parquet", a=[1.5], b=[1.0])
    _write(tmp_path / "2.parquet", **second)
    with pytest.raises(ValueError, match=text):
        open_source(tmp_path)
    if "c" in second:
        assert open_source(tmp_path, columns=["a", "b"]).n_samples == 2


def test_text_in_parquet(tmp_path: Path) -> None:
    path = _write(tmp_path / "x.parquet", a=[1.0, 2.0], name=[None, "bob"])
    with pytest.raises(
        ValueError, match=r"x.parquet: column 'name' has type string, such as 'bob'"
    ):
        open_source(path)


def test_damaged_parquet_files(tmp_path: Path, rng: np.random.Generator) -> None:
    path = _write(tmp_path / "x.parquet", a=rng.normal(size=50_000))
    whole = path.read_bytes()
    text = "x.parquet is not a Parquet file, or it is truncated or damaged"
    for content in (b"", b"not a parquet file at all", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=text):
            open_source(path)
    hurt = bytearray(whole)
    hurt[1000 : len(whole) - 5000] = b"\xff" * (len(whole) - 6000)
    path.write_bytes(hurt)
    with pytest.raises(ValueError, match=text):
        list(open_source(path).blocks())


def test_parquet_without_rows(tmp_path: Path) -> None:
    path = _write(tmp_path / "x.parquet", a=pa.array([], pa.float64()))
    with pytest.raises(ValueError, match=r"x.parquet has 0 sample"):
        list(open_source(path).blocks())
