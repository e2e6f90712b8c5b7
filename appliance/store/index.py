"""Which units mean nearly the same as a question: a bit per dimension of each unit in memory, the rest on the disk.

48 bytes a unit find those that may be near by counting the bits that differ; the few that remain are compared by their
stored vectors (binary quantisation with rescoring, the usual way where memory is dear)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BITS = 384
COARSE = BITS // 8
"""Bytes of a vector of which only the signs are left."""
SHRINKS = (np.pi / 2) ** 0.5
"""By which the cosine with a vector's signs is smaller than with the vector (for normal components)."""
_LEAST = 256


def packed(vector: NDArray[np.float32]) -> bytes:
    """A vector of length 1 as int8, for the disk: a 127th of rounding."""
    scale = 127.0 / max(float(np.abs(vector).max()), 1e-9)
    return np.round(vector * scale).astype(np.int8).tobytes()


def coarse(blob: bytes) -> bytes:
    """Only the signs of a packed vector: an eighth of its bytes."""
    return blob if len(blob) == COARSE else np.packbits(np.frombuffer(blob, np.int8) > 0).tobytes()


def unpacked(blobs: Sequence[bytes]) -> NDArray[np.float32]:
    """float32 [len(blobs), BITS], rows of length 1; of signs alone a little longer, since their cosine is smaller."""
    signs = np.array([len(blob) == COARSE for blob in blobs], bool)
    rows = np.empty((len(blobs), BITS), np.float32)
    exact = b"".join(blob for blob in blobs if len(blob) == BITS)
    rows[~signs] = np.frombuffer(exact, np.int8).reshape(-1, BITS)
    rough = np.frombuffer(b"".join(blob for blob in blobs if len(blob) == COARSE), np.uint8).reshape(-1, COARSE)
    rows[signs] = np.unpackbits(rough, axis=1) - np.float32(0.5)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    rows[signs] *= SHRINKS
    return rows


class Index:
    """Not to be used from two threads at once."""

    def __init__(self) -> None:
        self._ids = np.zeros(_LEAST, np.int64)
        self._bits = np.zeros((_LEAST, COARSE // 8), np.uint64)
        self._at: dict[int, int] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, ids: Sequence[int], blobs: Sequence[bytes]) -> None:
        """Vectors as `packed` made them; one that is known is replaced."""
        whole = [(id, blob) for id, blob in zip(ids, blobs, strict=True) if len(blob) in (BITS, COARSE)]
        new = [(id, blob) for id, blob in whole if id not in self._at]
        self._reserve(self._size + len(new))
        for id, _ in new:
            self._at[id] = self._size
            self._ids[self._size] = id
            self._size += 1
        if whole:
            signs = np.frombuffer(b"".join(coarse(blob) for _, blob in whole), np.uint64)
            self._bits[[self._at[id] for id, _ in whole]] = signs.reshape(len(whole), COARSE // 8)

    def drop(self, ids: Sequence[int]) -> None:
        for id in ids:
            if (at := self._at.pop(id, None)) is None:
                continue
            self._size -= 1
            if at != self._size:
                moved = int(self._ids[self._size])
                self._ids[at], self._bits[at], self._at[moved] = moved, self._bits[self._size], at

    def near(self, vector: NDArray[np.float32], count: int) -> list[int]:
        """The ids of about `count` units whose bits differ least."""
        if not self._size:
            return []
        wanted = np.packbits(vector > 0).view(np.uint64)
        differ = np.bitwise_count(self._bits[: self._size] ^ wanted).sum(axis=1, dtype=np.uint16)
        if count >= self._size:
            return [int(id) for id in self._ids[: self._size]]
        return [int(id) for id in self._ids[np.argpartition(differ, count)[:count]]]

    def _reserve(self, size: int) -> None:
        if size > len(self._ids):
            wanted = max(size, 2 * len(self._ids))
            self._ids = np.resize(self._ids, wanted)
            self._bits = np.resize(self._bits, (wanted, COARSE // 8))
