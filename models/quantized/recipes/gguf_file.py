"""Reads GGUF files (versions 2 and 3, little-endian): metadata, and tensors as views of the file.

The `gguf` package is used for what it knows about quantisation types; its own reader trusts the lengths that a file
states, and a damaged one keeps it busy for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize
from numpy.typing import NDArray

from appliance.errors import SourceFault

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
T = TypeVar("T")

_SCALARS = {0: "u1", 1: "i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8"}
_STRING, _ARRAY = 8, 9
_MOST_DIMENSIONS = 4
_FIX = "fetch the source again, or check that it is a GGUF file of version 2 or 3"


@dataclass(frozen=True, slots=True)
class Tensor:
    """`kind` is GGML's name of the type ("Q4_1"), `shape` row-major (outputs, inputs), `data` the raw blocks: uint8
    [rows, bytes per row]."""

    name: str
    kind: str
    shape: tuple[int, ...]
    data: Bytes

    def dequantised(self) -> Floats:
        """float32 of `shape`. Raises SourceFault for types that the gguf package cannot read."""
        try:
            values = dequantize(self.data, GGMLQuantizationType[self.kind])
        except NotImplementedError as error:
            raise SourceFault(
                f"{self.name} is of type {self.kind}, which cannot be read", "use another quantisation"
            ) from error
        return np.ascontiguousarray(values, np.float32).reshape(self.shape)


@dataclass(frozen=True, slots=True)
class Gguf:
    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, Tensor]

    def get(self, key: str, kind: type[T], default: T | None = None) -> T:
        """A metadata value; whole numbers pass as float. Raises SourceFault when it is missing or of another kind."""
        value = self.metadata.get(key, default)
        if kind is float and isinstance(value, int):
            value = float(value)
        if not isinstance(value, kind):
            what = "is missing" if value is None else f"is {value!r:.60}, not {kind.__name__}"
            raise SourceFault(f"{self.path}: metadata {key!r} {what}", _FIX)
        return value

    def tensor(self, name: str, *shape: int) -> Tensor:
        """Raises SourceFault when it is missing or of another shape."""
        tensor = self.tensors.get(name)
        if tensor is None:
            raise SourceFault(f"{self.path}: there is no tensor {name!r}", _FIX)
        if tensor.shape != shape:
            raise SourceFault(f"{self.path}: {name} has the shape {tensor.shape}, expected {shape}", _FIX)
        return tensor


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.data = np.memmap(path, np.uint8, "r")
        except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
            raise SourceFault(f"{path} cannot be read: {error}", _FIX) from error
        self.at = 0

    def fault(self, problem: str) -> SourceFault:
        return SourceFault(f"{self.path}: offset {self.at}: {problem}", _FIX)

    def take(self, count: int, what: str) -> Bytes:
        left = len(self.data) - self.at
        if count > left:
            raise self.fault(f"{what} needs {count} bytes, {left} are left")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, width: int, what: str) -> int:
        return int.from_bytes(self.take(width, what).tobytes(), "little")

    def string(self, what: str) -> str:
        return self.take(self.number(8, f"the length of {what}"), what).tobytes().decode("utf-8", "replace")

    def value(self, kind: int, what: str) -> Any:
        if kind == _STRING:
            return self.string(what)
        if kind == _ARRAY:
            return self.array(what)
        return self.scalars(kind, 1, what)[0]

    def array(self, what: str) -> list[Any]:
        kind = self.number(4, f"the type of {what}")
        count = self.number(8, f"the length of {what}")
        if kind == _STRING:
            if count > len(self.data):
                raise self.fault(f"{what} cannot have {count} entries")
            return [self.string(what) for _ in range(count)]
        if kind == _ARRAY:
            raise self.fault(f"{what} is an array of arrays")
        return self.scalars(kind, count, what)

    def scalars(self, kind: int, count: int, what: str) -> list[Any]:
        if kind not in _SCALARS:
            raise self.fault(f"{what} has the unknown type {kind}")
        dtype = np.dtype(_SCALARS[kind])
        values: list[Any] = np.frombuffer(self.take(count * dtype.itemsize, what).tobytes(), dtype).tolist()
        return values


def read(path: Path) -> Gguf:
    """Raises SourceFault, which names the byte offset, when the file is truncated, corrupt or of another version."""
    reader = _Reader(path)
    if reader.take(4, "the magic number").tobytes() != b"GGUF":
        raise reader.fault("this is not a GGUF file")
    version = reader.number(4, "the version")
    if version not in (2, 3):
        raise reader.fault(f"version {version} is not known")
    tensors, pairs = reader.number(8, "the tensor count"), reader.number(8, "the metadata count")
    metadata: dict[str, Any] = {}
    for _ in range(pairs):
        key = reader.string("a metadata key")
        metadata[key] = reader.value(reader.number(4, f"the type of {key}"), key)
    infos = [_info(reader) for _ in range(tensors)]
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1:
        raise reader.fault(f"the alignment {alignment!r} is not a number of bytes")
    start = -(-reader.at // alignment) * alignment
    return Gguf(path, metadata, {info[0]: _tensor(reader, start, *info) for info in infos})


def _info(reader: _Reader) -> tuple[str, tuple[int, ...], int, int]:
    name = reader.string("a tensor's name")
    rank = reader.number(4, f"the rank of {name}")
    if not 1 <= rank <= _MOST_DIMENSIONS:
        raise reader.fault(f"{name} has {rank} dimensions")
    shape = tuple(reader.number(8, f"the shape of {name}") for _ in range(rank))[::-1]
    return name, shape, reader.number(4, f"the type of {name}"), reader.number(8, f"the offset of {name}")


def _tensor(reader: _Reader, start: int, name: str, shape: tuple[int, ...], code: int, offset: int) -> Tensor:
    try:
        kind = GGMLQuantizationType(code)
    except ValueError as error:
        raise reader.fault(f"{name} has the unknown type {code}") from error
    block, size = GGML_QUANT_SIZES[kind]
    if shape[-1] % block or not prod(shape):
        raise reader.fault(f"{name} of type {kind.name} cannot have the shape {shape}")
    rows, row = prod(shape[:-1]), shape[-1] // block * size
    reader.at = start + offset
    return Tensor(name, kind.name, shape, reader.take(rows * row, f"the data of {name}").reshape(rows, row))
