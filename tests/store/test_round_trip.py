"""What is written to a model file comes back; what cannot be written is named."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from mixfold import store
from mixfold.contracts import Event
from mixfold.store.encode import MAX_DEPTH

Example = Callable[[], dict[str, Any]]
Same = Callable[[Any, Any], None]

VALUES = [
    *(np.array([[1, 0], [2, 1]], dtype=kind) for kind in "?bhilqBHILQefd"),
    np.array(3.5),
    np.empty((0,), dtype=np.int8),
    np.empty((2, 0, 3)),
    np.arange(24.0).reshape(2, 3, 4)[:, ::2, ::-1],
    np.arange(12.0).reshape(3, 4).T,
    np.array([], dtype="U3"),
    np.array([["a", "bc"], ["", "x\x00y"]], dtype="U7"),
    np.array([], dtype=object),
    {},
    [],
    (),
    None,
    {"$tuple": [1]},
    {"$": {"$array": {"$$x": 1}}},
    {"__metadata__": np.ones(2), "a/b": np.ones(1), "a": {"b": np.zeros(1)}},
    {"": np.ones(1), "\ud800": np.zeros(3)},
    -(2**200),
    5e-324,
    "\x00\ud800\U0001f600",
    np.float16(0.1),
    np.uint64(2**64 - 1),
]


def name(value: Any) -> str:
    return repr(value)[:40].encode("ascii", "backslashreplace").decode()


def test_tree_comes_back_in_value_type_and_layout(
    path: Path, example: Example, assert_same: Same
) -> None:
    store.write(path, "Example", example())
    assert_same(example(), store.read(path))
    assert_same(example(), store.read(path, "Example"))


@pytest.mark.parametrize("value", VALUES, ids=name)
def test_single_values_come_back(path: Path, value: Any, assert_same: Same) -> None:
    store.write(path, "Example", {"value": value, "list": [value]})
    tree = store.read(path)
    if isinstance(value, np.ndarray):  # strides come back as the nearest of C and Fortran order
        value = np.array(value, order="F" if value.flags.f_contiguous else "C")
    assert_same(value, tree["value"])
    assert_same(value, tree["list"][0])


def test_root_may_be_an_array(path: Path, assert_same: Same) -> None:
    store.write(path, "Example", np.arange(4))
    assert_same(np.arange(4), store.read(path))


def test_byte_order_and_subclasses_are_normalised(path: Path) -> None:
    big = np.arange(3, dtype=">f8")
    store.write(path, "Example", [big, np.str_("s"), big[1]])
    array, text, scalar = store.read(path)
    assert array.dtype == np.dtype("f8") and array.dtype.isnative and array.tolist() == [0, 1, 2]
    assert type(text) is str
    assert scalar == 1.0


def test_arrays_read_back_can_be_written_to(path: Path) -> None:
    store.write(path, "Example", [np.zeros(3), np.zeros((2, 2), order="F")])
    for array in store.read(path):
        array += 1


def test_file_is_a_plain_safetensors_file(path: Path, example: Example) -> None:
    store.write(path, "Example", example())
    tensors = safetensors.numpy.load_file(path)
    state = example()["state"]
    assert np.array_equal(tensors["state/means"], state["means"])
    assert np.array_equal(tensors["state/covariances"], state["covariances"])


def test_older_file_without_a_field_that_has_a_default_is_read(
    path: Path, edit: Callable[..., None]
) -> None:
    store.write(path, "Example", Event("kind", "message", 3, 4))
    edit(path, lambda document: document["tree"]["$record"][1].pop("component"))
    assert store.read(path) == Event("kind", "message", 3)


# ------------------------------------------------------------------ what cannot be written


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (object(), TypeError, "state/x: a value of type object"),
        ({1: 2}, TypeError, "state/x: keys must be strings"),
        (np.array([1j]), TypeError, "state/x: numpy type complex128"),
        (np.array([1, "a"], dtype=object), TypeError, "state/x: an array of type object"),
        (np.datetime64("2020-01-01"), TypeError, "state/x: numpy type datetime64"),
        (np.zeros(1, dtype=[("a", "f8")]), TypeError, "state/x"),
        (print, TypeError, "contracts.record"),
        (2**5000, ValueError, "state/x: integers"),
        (np.zeros(3, dtype="U9000000"), ValueError, "too much text"),
        (["a" * 2**20] * 17, ValueError, "limit"),
    ],
)
def test_what_cannot_be_written_is_named(path: Path, value: Any, error: type, words: str) -> None:
    path.write_bytes(b"before")
    with pytest.raises(error, match=words):
        store.write(path, "Example", {"state": {"x": value}})
    assert path.read_bytes() == b"before"
    assert os.listdir(path.parent) == [path.name]


def test_cycles_and_deep_trees_are_refused(path: Path) -> None:
    tree: list[Any] = []
    tree.append(tree)
    with pytest.raises(ValueError, match=f"more than {MAX_DEPTH} levels"):
        store.write(path, "Example", tree)


def test_deepest_tree_that_is_written_is_read(path: Path) -> None:
    tree: Any = {}
    for level in range(MAX_DEPTH):
        tree = ({"x": tree}, [tree], (tree,))[level % 3]
    store.write(path, "Example", tree)
    assert store.read(path) == tree


def test_unregistered_namesake_of_a_record_is_refused(path: Path) -> None:
    fake = dataclass(frozen=True)(type("Event", (), {}))
    with pytest.raises(TypeError, match="type Event"):
        store.write(path, "Example", fake())
