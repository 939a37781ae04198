"""What the tests of model files share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixfold import contracts
from mixfold.contracts import Event
from mixfold.store import container


@dataclass(frozen=True)
class Inner:
    means: np.ndarray
    name: str = "inner"


@dataclass(frozen=True, slots=True)
class Outer:
    inner: Inner
    parts: tuple[Inner, ...]
    limit: float = math.inf


@dataclass(frozen=True, slots=True)
class Limited:
    limit: float

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise ValueError("limit must not be negative")


@pytest.fixture(autouse=True)
def records(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {cls.__name__: cls for cls in (Inner, Outer, Limited)}
    monkeypatch.setattr(contracts, "RECORDS", {**contracts.RECORDS, **own})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.mixfold"


def example() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "parameters": {"n_components": 3, "tol": 1e-3, "init": None, "warm": True, "bound": (0, 1)},
        "state": {
            "means": rng.normal(size=(3, 2)),
            "names": np.array(["a", "längd", "c d"]),
            "columns": np.array(["x", "", "\ud800"], dtype=object),
            "covariances": np.asfortranarray(rng.normal(size=(2, 3, 3))),
            "trace": [0.1, -math.inf, math.nan, -0.0],
            "events": [Event("floored", "component 2", 3, 2)],
            "outer": Outer(Inner(np.arange(3.0)), (Inner(np.empty((0, 4)), "b"),)),
            "scalars": [np.float32(0.1), np.int64(-5), np.bool_(True), np.float64("nan")],
            "big": 2**127 + 1,
        },
    }


def assert_same(a: Any, b: Any) -> None:
    """Equal in value, type, layout and bits."""
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes() or (a.dtype == object and (a == b).all())
        assert a.flags.f_contiguous == b.flags.f_contiguous
    elif is_dataclass(a):
        for field in fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name))
    elif isinstance(a, float | np.floating):
        assert a == b or (math.isnan(a) and math.isnan(b))
        assert math.copysign(1, a) == math.copysign(1, b)
    else:
        assert a == b


@pytest.fixture(name="example")
def _example() -> Callable[[], dict[str, Any]]:
    return example


@pytest.fixture(name="assert_same")
def _assert_same() -> Callable[[Any, Any], None]:
    return assert_same


@pytest.fixture(name="edit")
def _edit() -> Callable[..., None]:
    return edit


def edit(path: Path, change: Any, seal: bool = True) -> None:
    """Change the document of a file, with a checksum that fits unless ``seal`` is False."""
    with container.open_model(path) as file:
        header = container.read_header(file, path)
        arrays = container.read_arrays(file, header, path)
    change(header.document)
    content = container.pack(header.document, arrays)
    if not seal:
        content = content.replace(b'"sha256":"', b'"sha256":"0', 1)
    path.write_bytes(content)
