"""Documents behind a valid checksum that nothing was written as; and random damage."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from mixfold import store
from mixfold.store import ModelFileError, container


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ({"$code": "print()"}, "'.code' is unknown"),
        ({"$record": ["Popen", {}]}, "'Popen', which this version"),
        ({"$record": ["Event", {"kind": "a"}]}, "missing fields"),
        ({"$record": ["Event", {"kind": "a", "message": "b", "evil": 1}]}, "unknown fields"),
        ({"$record": ["Limited", {"limit": -1}]}, "must not be negative"),
        ({"$record": ["Limited", {"limit": "x"}]}, "limit is a str, which it never is"),
        ({"$record": ["Outer", {"inner": 1, "parts": 2}]}, "inner is a int"),
        ({"$record": "Event"}, "record is not of the form"),
        ({"$record": [["Event"], {}]}, "record is not of the form"),
        ({"$array": ["gone", "f8", [1], "C"]}, "'gone' is missing"),
        ({"$array": ["a", "f8", [3], "C"]}, "were announced"),
        ({"$array": ["a", "f4", [2], "C"]}, "were announced"),
        ({"$array": ["a", "f8", [2.0], "C"]}, "array is not of the form"),
        ({"$array": ["a", "f8", [2], "K"]}, "array is not of the form"),
        ({"$array": [["a"], "f8", [2], "C"]}, "array is not of the form"),
        (1, "'a' belongs to nothing"),
        ([{"$array": ["a", "f8", [2], "C"]}] * 2, "used twice"),
        ({"$text": [["x"], [2], 1]}, "text is not of the form"),
        ({"$text": [["xx"], [1], 1]}, "text is not of the form"),
        ({"$text": [["x"], [1], 2**40]}, "text is not of the form"),
        ({"$text": [[""] * 17, [17], 2**20]}, "text is not of the form"),
        ({"$text": [[], [0, 2**61, 2**61], 1]}, "numpy cannot make"),
        ({"$text": [[1], [1], -1]}, "text is not of the form"),
        ({"$scalar": ["O", 1]}, "scalar is not of the form"),
        ({"$scalar": ["i1", 300]}, "does not fit numpy type int8"),
        ({"$scalar": ["f4", 1e300]}, "does not fit numpy type float32"),
        ({"$scalar": ["f4", "1"]}, "scalar is not of the form"),
        ({"$scalar": [["f4"], 1.0]}, "scalar is not of the form"),
        ({"$float": "1"}, "float is not of the form"),
        ({"$float": ["nan"]}, "float is not of the form"),
        ({"$tuple": 3}, "tuple is not of the form"),
        (eval("[" * 80 + "]" * 80), "nested more than"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_hostile_documents_are_explained(
    path: Path, node: Any, words: str, edit: Callable[..., None]
) -> None:
    store.write(path, "Example", {"a": np.zeros(2), "x": None})

    def change(document: dict[str, Any]) -> None:
        document["tree"] = node

    edit(path, change)
    with pytest.raises(ModelFileError, match=words):
        store.read(path)


@pytest.mark.parametrize("seed", range(4))
def test_fuzz(
    path: Path,
    seed: int,
    example: Callable[[], dict[str, Any]],
    assert_same: Callable[[Any, Any], None],
) -> None:
    """Byte flips and truncations: an identical tree or a ModelFileError, nothing else."""
    store.write(path, "Example", example(), {"rows": 3})
    content = path.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    rng = random.Random(seed)
    refused = 0
    for _ in range(250):
        broken = bytearray(content)
        if rng.random() < 0.2:
            del broken[rng.randrange(len(broken)) :]
        for _ in range(rng.choice([1, 1, 2, 8])):
            if broken:
                # Mostly in the header, where the structure is.
                end = header if rng.random() < 0.8 else len(broken)
                broken[rng.randrange(min(end, len(broken)))] = rng.randrange(256)
        path.write_bytes(broken)
        try:
            tree = store.read(path)
        except ModelFileError:
            refused += 1
        else:
            assert_same(example(), tree)
        with contextlib.suppress(ModelFileError):
            store.describe(path)
    assert refused > 200


@pytest.mark.parametrize("seed", range(2))
def test_fuzz_documents_behind_a_valid_checksum(
    path: Path, seed: int, example: Callable[[], dict[str, Any]]
) -> None:
    """Damage that the checksum cannot see: whatever comes, no other exception."""
    store.write(path, "Example", example())
    with container.open_model(path) as file:
        header = container.read_header(file, path)
        arrays = container.read_arrays(file, header, path)
    rng = random.Random(seed)
    outcomes = {"read": 0, "refused": 0}
    for _ in range(250):
        text = list(header.text)
        for _ in range(rng.choice([1, 2, 3])):
            text[rng.randrange(len(text))] = rng.choice('0123456789"[]{},:$-.eftnul')
        metadata = {"format": "mixfold", "format_version": "1", "document": "".join(text)}
        metadata["sha256"] = container._digest(metadata["document"], arrays)
        path.write_bytes(safetensors.numpy.save(arrays, metadata=metadata))
        try:
            store.read(path)
            outcomes["read"] += 1
        except ModelFileError:
            outcomes["refused"] += 1
        with contextlib.suppress(ModelFileError):
            store.describe(path)
    assert min(outcomes.values()) > 0
