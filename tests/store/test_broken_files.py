"""Broken and hostile bytes: explained, never trusted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mixfold import store
from mixfold.store import ModelFileError, container


def raw(header: bytes, data: bytes = b"") -> bytes:
    return len(header).to_bytes(8, "little") + header + data


def with_metadata(entries: dict[str, Any] | None = None, **metadata: Any) -> bytes:
    document = json.dumps({"kind": "X", "tree": None, "summary": {}})
    base = {"format": "mixfold", "format_version": "1", "sha256": "", "document": document}
    return raw(json.dumps({"__metadata__": {**base, **metadata}, **(entries or {})}).encode())


def tensor(dtype: str = "F64", shape: Any = (1,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"t": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"{}", "only 2 bytes"),
        (b"\x80\x04K\x01. a pickle, say", "not a mixfold model file"),
        (b"PAR1" + bytes(100), "not a mixfold model file"),
        ((2**63).to_bytes(8, "little") + b"{}", "not a mixfold model file"),
        ((2**24 + 1).to_bytes(8, "little") + bytes(2**10), "not a mixfold model file"),
        ((10**6).to_bytes(8, "little") + b"{}", "ends within its header"),
        (raw(b"[]"), "not a JSON object"),
        (raw(b"{'a': 1}"), "not JSON"),
        (raw(b'{"a": NaN}'), "not JSON"),
        (raw(b'{"a": ' + b"9" * 5000 + b"}"), "not JSON"),
        (raw(b'{"a": "\xff"}'), "not JSON"),
        (raw(b'{"a":' * 10**5 + b"1" + b"}" * 10**5), "nested too deeply"),
        (raw(b"{}"), "but not a mixfold model file"),
        (raw(b'{"__metadata__":{"format":"pt"}}'), "but not a mixfold model file"),
        (raw(b'{"__metadata__":{"format":"mixfold"}}'), "incomplete"),
        (with_metadata(format_version="2"), "pip install --upgrade"),
        (with_metadata(format_version="-1"), "not a number"),
        (with_metadata(format_version="9" * 5000), "not a number"),
        (with_metadata(document="{"), "the document is not JSON"),
        (with_metadata(document="[" * 10**5), "the document is nested too deeply"),
        (with_metadata(document="3"), "not a JSON object"),
        (with_metadata(document="{}"), "does not say what it holds"),
        (with_metadata(), "checksum"),
        (with_metadata(tensor()) + bytes(4), "truncated"),
        (with_metadata(tensor()) + bytes(9), "bytes after its end"),
        (with_metadata(tensor(shape=(2,))) + bytes(8), "'t' do not agree"),
        (with_metadata(tensor(shape=(-1,), offsets=(8, 0))) + bytes(8), "'t' do not agree"),
        (with_metadata(tensor(shape=[2**40, 2**40], offsets=[0, 2**61])), "'t' do not agree"),
        (with_metadata(tensor(shape="1")) + bytes(8), "'t' do not agree"),
        (with_metadata(tensor(shape=[True])) + bytes(8), "'t' do not agree"),
        (with_metadata(tensor("O")) + bytes(8), "'t' do not agree"),
        (with_metadata(tensor(offsets=(8, 16))) + bytes(16), "overlap or leave gaps"),
        (with_metadata({"t": None}), "'t' do not agree"),
        (with_metadata(tensor(shape=[0, 2**61], offsets=[0, 0])), "'t' do not agree"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_broken_files_are_explained(path: Path, content: bytes, words: str) -> None:
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=words) as caught:
        store.read(path)
    assert str(path) in str(caught.value)
    with pytest.raises(ModelFileError):
        store.load(path)


def test_number_out_of_range_is_refused(path: Path) -> None:
    document = '{"kind":"X","tree":1e999,"summary":{}}'
    digest = container._digest(document, {})
    path.write_bytes(with_metadata(document=document, sha256=digest))
    with pytest.raises(ModelFileError, match="out of range"):
        store.read(path)


def test_wrong_checksum_is_noticed(
    path: Path, example: Callable[[], dict[str, Any]], edit: Callable[..., None]
) -> None:
    store.write(path, "Example", example())
    edit(path, lambda document: None, seal=False)
    with pytest.raises(ModelFileError, match="checksum"):
        store.read(path)


def test_missing_file_folder_and_pipe(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        store.read(tmp_path / "missing")
    with pytest.raises(ModelFileError, match="not a regular file"):
        store.read(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelFileError, match="not a regular file"):
            store.read(tmp_path / "pipe")


def test_memory_is_bounded_by_what_is_there(path: Path) -> None:
    """A terabyte that is only announced costs nothing."""
    path.write_bytes(with_metadata(tensor(shape=[2**37], offsets=[0, 2**40])))
    with pytest.raises(ModelFileError, match="truncated"):
        store.read(path)
