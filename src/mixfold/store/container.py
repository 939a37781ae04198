"""The bytes of a model file: a safetensors file whose metadata is ours.

    8 bytes   length of the header, little-endian
    header    JSON: name, type, shape and place of each tensor, and under "__metadata__" the
              strings format, format_version, sha256 and document (JSON again)
    data      the tensors, back to back

Any safetensors reader can open it. Reading here trusts no number before it was compared with
the size of the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from typing import Any

import numpy as np

from mixfold.contracts import Array

FORMAT = "mixfold"
FORMAT_VERSION = 1
MAX_HEADER = 16 * 2**20

TYPES = {
    "BOOL": "|b1", "I8": "|i1", "I16": "<i2", "I32": "<i4", "I64": "<i8", "U8": "|u1",
    "U16": "<u2", "U32": "<u4", "U64": "<u8", "F16": "<f2", "F32": "<f4", "F64": "<f8",
}  # fmt: skip

DAMAGED = "the file is damaged: copy it again, or save the model again"
FOREIGN = "give a file written by save() of a mixfold estimator"


class ModelFileError(ValueError):
    """A file that is not a model file, or a damaged, hostile or newer one."""

    def __init__(self, path: str | os.PathLike[str], problem: str, remedy: str = DAMAGED) -> None:
        super().__init__(f"{os.fspath(path)}: {problem}; {remedy}")


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where one array lies in the file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says of itself, checked against its size."""

    document: dict[str, Any]
    tensors: dict[str, Tensor]
    data_start: int
    digest: str
    text: str


# ------------------------------------------------------------------ writing


def pack(document: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """The bytes of a file.

    Raises
    ------
    ValueError
        If there is more in the document than a reader would accept.
    """
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "sha256": _digest(text, arrays),
        "document": text,
    }
    import safetensors.numpy

    content: bytes = safetensors.numpy.save(dict(arrays), metadata=metadata)
    size = int.from_bytes(content[:8], "little")
    if size > MAX_HEADER:
        raise ValueError(
            f"what is not an array takes {size} bytes in a model file, more than the limit of "
            f"{MAX_HEADER}; store long lists of numbers as numpy arrays"
        )
    return content


def _digest(text: str, arrays: Mapping[str, Array]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(name.encode())
        little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
        digest.update(little.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


# ------------------------------------------------------------------ reading


def open_model(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a regular file for reading; a pipe or a device could keep us waiting for ever."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ModelFileError(path, "this is not a regular file", FOREIGN)
    return open(path, "rb")


def read_header(file: BufferedReader, path: str | os.PathLike[str]) -> Header:
    """Everything but the arrays.

    Raises
    ------
    ModelFileError
        If it is not the header of a model file that this version can read.
    """
    size = os.fstat(file.fileno()).st_size
    if size < 10:
        problem = "the file is empty" if size == 0 else f"the file has only {size} bytes"
        raise ModelFileError(path, problem)
    length = int.from_bytes(file.read(8), "little")
    if length > MAX_HEADER or length < 2:
        raise ModelFileError(path, "this is not a mixfold model file", FOREIGN)
    if 8 + length > size:
        raise ModelFileError(path, f"the file ends within its header of {length} bytes")
    header = _parse(file.read(length), path, "the header")
    metadata = _metadata(header.pop("__metadata__", None), path)
    tensors = {name: _tensor(name, entry, path) for name, entry in header.items()}
    _check_places(tensors, size - 8 - length, path)
    document = _parse(metadata["document"], path, "the document")
    return Header(document, tensors, 8 + length, metadata["sha256"], metadata["document"])


def read_arrays(
    file: BufferedReader, header: Header, path: str | os.PathLike[str]
) -> dict[str, Array]:
    """The arrays, if neither they nor the document have changed since they were written."""
    arrays = {}
    for name, tensor in header.tensors.items():
        file.seek(header.data_start + tensor.first)
        content = _reserve(tensor.last - tensor.first, name, path)
        if file.readinto(content) != len(content):
            raise ModelFileError(path, f"the file ends within the array {name!r}")
        array = np.frombuffer(content, dtype=tensor.dtype).reshape(tensor.shape)
        arrays[name] = array.astype(tensor.dtype.newbyteorder("="), copy=False)
    if _digest(header.text, arrays) != header.digest:
        raise ModelFileError(path, "its checksum does not fit its content")
    return arrays


def _reserve(n_bytes: int, name: str, path: str | os.PathLike[str]) -> bytearray:
    try:
        return bytearray(n_bytes)  # at most the size of the file, which may have holes
    except MemoryError as error:
        problem = f"the array {name[:80]!r} takes {n_bytes} bytes, more than there is memory"
        raise ModelFileError(path, problem, "use a machine with more memory") from error


def _parse(text: str | bytes, path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ModelFileError(path, f"{what} is nested too deeply") from error
    except ValueError as error:  # not JSON, not UTF-8, or a number without end
        raise ModelFileError(path, f"{what} is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise ModelFileError(path, f"{what} is not a JSON object")
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _metadata(metadata: Any, path: str | os.PathLike[str]) -> dict[str, str]:
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise ModelFileError(
            path, "this is a safetensors file, but not a mixfold model file", FOREIGN
        )
    if not all(isinstance(metadata.get(k), str) for k in ("format_version", "sha256", "document")):
        raise ModelFileError(path, "its metadata is incomplete")
    version = metadata["format_version"]
    if not (version.isascii() and version.isdigit() and len(version) < 10) or int(version) < 1:
        raise ModelFileError(path, f"its format version is {version[:20]!r}, not a number")
    if int(version) > FORMAT_VERSION:
        raise ModelFileError(
            path,
            f"it has format version {version}; this mixfold reads up to {FORMAT_VERSION}",
            "install a newer one: pip install --upgrade mixfold",
        )
    return metadata


def _tensor(name: str, entry: Any, path: str | os.PathLike[str]) -> Tensor:
    if isinstance(entry, dict) and set(entry) == {"dtype", "shape", "data_offsets"}:
        kind, shape, places = entry["dtype"], entry["shape"], entry["data_offsets"]
        lists = isinstance(shape, list) and isinstance(places, list) and len(places) == 2
        known = isinstance(kind, str) and kind in TYPES
        if known and lists and all(type(n) is int and 0 <= n < 2**62 for n in shape + places):
            dtype = np.dtype(TYPES[kind])
            first, last = places
            extent = math.prod(max(n, 1) for n in shape)  # numpy limits that of empty arrays too
            fits = len(shape) <= 32 and extent * dtype.itemsize < 2**62
            if fits and math.prod(shape) * dtype.itemsize == last - first:
                return Tensor(dtype, tuple(shape), first, last)
    raise ModelFileError(path, f"type, shape and place of the array {name[:80]!r} do not agree")


def _check_places(tensors: dict[str, Tensor], size: int, path: str | os.PathLike[str]) -> None:
    end = 0
    for tensor in sorted(tensors.values(), key=lambda tensor: (tensor.first, tensor.last)):
        if tensor.first != end:
            raise ModelFileError(path, "its arrays overlap or leave gaps")
        end = tensor.last
    if end != size:
        problem = "is truncated" if end > size else "has bytes after its end"
        raise ModelFileError(path, f"the file {problem}: {end} bytes announced, {size} present")
