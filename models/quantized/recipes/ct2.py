"""Reads CTranslate2 model files (`model.bin`, binary version 6): named arrays, stored one after another."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appliance.errors import SourceFault

VERSION = 6
_TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}
_FIX = "fetch the source again, or check that it is a CTranslate2 model of binary version 6"


@dataclass(frozen=True, slots=True)
class Weights:
    """`spec` names the architecture ("WhisperSpec"); `arrays` are views of the file, aliases included."""

    spec: str
    arrays: dict[str, NDArray[Any]]


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.data = np.memmap(path, np.uint8, "r")
        except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
            raise SourceFault(f"{path} cannot be read: {error}", _FIX) from error
        self.at = 0

    def fault(self, at: int, problem: str) -> SourceFault:
        return SourceFault(f"{self.path}: offset {at}: {problem}", _FIX)

    def take(self, count: int, what: str) -> NDArray[np.uint8]:
        left = len(self.data) - self.at
        if count > left:
            raise self.fault(self.at, f"{what} needs {count} bytes, {left} are left")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, width: int, what: str) -> int:
        return int.from_bytes(self.take(width, what).tobytes(), "little")

    def string(self, what: str) -> str:
        at = self.at
        raw = self.take(self.number(2, what), what).tobytes()
        if not raw.endswith(b"\0"):
            raise self.fault(at, f"{what} does not end in a zero byte")
        try:
            return raw[:-1].decode("ascii")
        except UnicodeDecodeError as error:
            raise self.fault(at, f"{what} is not ASCII") from error

    def variable(self) -> tuple[str, NDArray[Any]]:
        at = self.at
        name = self.string("a variable's name")
        shape = [self.number(4, f"the shape of {name}") for _ in range(self.number(1, f"the rank of {name}"))]
        code = self.number(1, f"the type of {name}")
        if code not in _TYPES:
            raise self.fault(at, f"{name} has the unknown type {code}")
        dtype = np.dtype(_TYPES[code])
        size = self.number(4, f"the size of {name}")
        if size != prod(shape) * dtype.itemsize:
            raise self.fault(at, f"{name} of shape {shape} and type {dtype} cannot have {size} bytes")
        return name, self.take(size, name).view(dtype).reshape(shape)


def read(path: Path) -> Weights:
    """Raises SourceFault, which names the byte offset, when the file is truncated, corrupt or of another version."""
    reader = _Reader(path)
    version = reader.number(4, "the version")
    if version != VERSION:
        raise reader.fault(0, f"binary version {version}, expected {VERSION}")
    spec = reader.string("the specification's name")
    reader.number(4, "the revision")
    arrays = dict(reader.variable() for _ in range(reader.number(4, "the number of variables")))
    for _ in range(reader.number(4, "the number of aliases")):
        at = reader.at
        alias, target = reader.string("an alias"), reader.string("an alias' target")
        if target not in arrays:
            raise reader.fault(at, f"{alias} stands for {target}, which is not in the file")
        arrays[alias] = arrays[target]
    if reader.at != len(reader.data):
        raise reader.fault(reader.at, f"{len(reader.data) - reader.at} bytes follow the last alias")
    return Weights(spec, arrays)
