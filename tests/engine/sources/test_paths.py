"""What a path stands for."""

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


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file or folder .*nowhere"):
        open_source(tmp_path / "nowhere.parquet")
    with pytest.raises(FileNotFoundError, match="holds no data: Parquet"):
        open_source(tmp_path)
    (tmp_path / "x.xlsx").write_text("")
    with pytest.raises(ValueError, match=r"files of type '.xlsx' are not read, only Parquet"):
        open_source(tmp_path / "x.xlsx")
    _write(tmp_path / "x.parquet", a=[1.0])
    (tmp_path / "x.csv").write_text("a\n1\n")
    with pytest.raises(ValueError, match=r"different kinds \(csv, parquet\)"):
        open_source(tmp_path)


def test_folders_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name, value in (("c", 3.0), ("a", 1.0), ("b/inner", 2.0)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        _write(tmp_path / f"{name}.parquet", x=[value])
    _write(tmp_path / "_metadata.parquet", z=[1.0])
    assert _rows(open_source(tmp_path)).ravel().tolist() == [1.0, 2.0, 3.0]
