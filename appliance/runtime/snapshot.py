"""What a language model has read, on disk: tokens and their keys and values.

A file is a JSON line (`key`, `tokens`, `shape`, `crc`) padded to a page, then the values. It is written beside its
place and moved there, so that it is whole or not there; a damaged or foreign one is told and never used.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from appliance.errors import StorageFault

_PAGE = 4096
Values = NDArray[np.float32]


def write(path: Path, key: str, tokens: Sequence[int], values: Values) -> None:
    """Replaces what was there, at once. Raises StorageFault."""
    values = np.ascontiguousarray(values)
    about = {
        "key": key,
        "tokens": list(map(int, tokens)),
        "shape": values.shape,
        "crc": zlib.crc32(values.data.cast("B")),
    }
    head = json.dumps(about).encode() + b"\n"
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(head + bytes(-len(head) % _PAGE))
            file.write(values.data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StorageFault(
            f"{path} cannot be written: {error.strerror}", "free space, or choose another folder"
        ) from error


def erase(path: Path) -> None:
    """Overwrites a snapshot, as far as the file system lets us, and removes it: what was read can be read out of it."""
    try:
        with path.open("r+b") as file:
            left = path.stat().st_size
            while left > 0:
                left -= file.write(bytes(min(left, 1 << 20)))
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        pass
    path.unlink(missing_ok=True)


def read(path: Path, key: str) -> tuple[list[int], Values] | None:
    """Tokens and values, memory-mapped, or None when there is no such file, it is damaged, or of another `key`."""
    try:
        mapped = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError):  # ValueError: an empty file cannot be mapped
        return None
    head, newline, _ = mapped[: 1 << 22].tobytes().partition(b"\n")
    try:
        about = json.loads(head)
        tokens, shape, crc = list(map(int, about["tokens"])), tuple(map(int, about["shape"])), int(about["crc"])
        if not newline or about["key"] != key:
            return None
        payload = mapped[-(-len(head + newline) // _PAGE) * _PAGE :]
        values = payload.view(np.float32).reshape(shape)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return (tokens, values) if zlib.crc32(payload.data) == crc else None
