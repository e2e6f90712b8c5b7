"""What a WAV file holds, whatever its header claims: RIFF and RF64; PCM, floating point and G.711 samples."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from firmware.fault import AudioFault
from firmware.frame import Wave

BLOCK = 1 << 18
"""Bytes read at once."""

_UNKNOWN_LENGTHS = {0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF}
"""What streaming writers leave where the length belongs; some subtract their header from it."""

_TRAILERS = {b"LIST", b"id3 ", b"ID3 ", b"bext", b"cue ", b"smpl", b"fact", b"PEAK", b"JUNK", b"iXML", b"_PMX", b"afsp"}

_PCM, _FLOAT, _A_LAW, _MU_LAW, _EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
_CODECS = {
    0x02: "Microsoft ADPCM",
    0x11: "IMA ADPCM",
    0x31: "GSM 6.10",
    0x40: "G.721 ADPCM",
    0x50: "MPEG",
    0x55: "MP3",
    0x161: "Windows Media Audio",
    0xFF: "AAC",
    0xF1AC: "FLAC",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the samples lie and what they are: `width` bytes for one sample, `start` and `end` in bytes."""

    format: str
    rate: int
    channels: int
    width: int
    start: int
    end: int
    decode: Callable[[bytes], Wave]
    notes: tuple[str, ...]


def layout(file: BinaryIO, size: int, name: str, convert: str) -> Layout:
    """Reads the header of a WAV of `size` bytes. `name` is the file's, `convert` the advice when its codec is foreign.

    Raises AudioFault. A length that cannot be true is replaced by what the file holds, and noted.
    """
    format, data, claimed = _chunks(file, size, name)
    tag, channels, rate, width = _format(format, name)
    known = _DECODERS.get((tag or _PCM, width))
    if known is None:
        codec = _CODECS.get(tag, f"codec 0x{tag:04x}")
        raise AudioFault(f"{name} is a WAV with {codec} of {width * 8} bits inside", convert)
    kind, decode = known
    if not 0 < channels <= 1024 or not 100 <= rate <= 1_000_000:
        raise AudioFault(f"{name} claims {channels} channels at {rate} Hz: its header is damaged", convert)
    end = _end(file, data, claimed, size)
    notes = []
    second = rate * channels * width
    if end - data != claimed and claimed not in _UNKNOWN_LENGTHS:
        notes.append(f"its header promises {claimed / second:.2f} s, it holds {(end - data) / second:.2f} s")
    return Layout(kind, rate, channels, width, data, end, decode, tuple(notes))


def blocks(file: BinaryIO, layout: Layout) -> Iterator[Wave]:
    """float32 [n, channels], nominally in [-1, 1]; an incomplete last sample is dropped."""
    step = layout.width * layout.channels
    file.seek(layout.start)
    left = (layout.end - layout.start) // step * step
    while left > 0:
        block = file.read(min(left, max(1, BLOCK // step) * step))
        left -= len(block)
        whole = len(block) // step * step
        if whole == 0:
            return
        yield layout.decode(block[:whole]).reshape(-1, layout.channels)


def _chunks(file: BinaryIO, size: int, name: str) -> tuple[bytes, int, int]:
    """The format chunk, and where the data starts and how long it claims to be (bytes)."""
    long = 0
    format = data = None
    at = 12
    while at + 8 <= size and not (format and data):
        file.seek(at)
        id, length = struct.unpack("<4sI", _exactly(file, 8))
        if id == b"ds64":
            long = int.from_bytes(file.read(16)[8:16], "little")
        elif id == b"fmt ":
            format = file.read(min(length, 64))
        elif id == b"data":
            length = long if long and length == 0xFFFFFFFF else length
            data = (at + 8, length)
        at = _behind(file, at + 8 + length, length)
    if format is None or data is None:
        missing = "no description of its samples" if format is None else "no sound in it"
        raise AudioFault(f"{name} is a WAV with {missing}: it is damaged or cut off", "record or copy it again")
    return format, *data


def _exactly(file: BinaryIO, count: int) -> bytes:
    return file.read(count).ljust(count, b"\0")


def _behind(file: BinaryIO, at: int, length: int) -> int:
    """Chunks of odd length are padded to even, but for some writers'."""
    if length % 2 == 0:
        return at
    file.seek(at)
    id = file.read(5)
    return at if _is_id(id[:4]) and id[:1] != b"\0" and not _is_id(id[1:5]) else at + 1


def _is_id(id: bytes) -> bool:
    return len(id) == 4 and all(0x20 <= byte < 0x7F for byte in id)


def _end(file: BinaryIO, start: int, claimed: int, size: int) -> int:
    """Where the data really ends. Whatever follows its claimed end and is no chain of chunks is sound too: the writer
    was stopped before it could put the length right."""
    if start + claimed >= size:
        return size
    at = _behind(file, start + claimed, claimed)
    while size - at >= 8:
        file.seek(at)
        id, length = struct.unpack("<4sI", _exactly(file, 8))
        if id in _TRAILERS or (id[:3] == b"TAG" and size - at == 128):
            break
        if not _is_id(id) or at + 8 + length > size:
            return size
        at = _behind(file, at + 8 + length, length)
    return start + claimed


def _format(chunk: bytes, name: str) -> tuple[int, int, int, int]:
    """Codec tag, channels, rate and the bytes of one sample."""
    if len(chunk) < 16:
        raise AudioFault(f"{name} is a WAV whose header is cut off", "record or copy it again")
    tag, channels, rate, _, align, bits = struct.unpack_from("<HHIIHH", chunk)
    if tag == _EXTENSIBLE and len(chunk) >= 26:
        (tag,) = struct.unpack_from("<H", chunk, 24)
    width = (bits + 7) // 8
    if channels and align % channels == 0 and width < align // channels <= 8:
        width = align // channels
    return tag, channels, rate, width


def _scaled(kind: str, scale: float) -> Callable[[bytes], Wave]:
    def decode(data: bytes) -> Wave:
        wave: NDArray[Any] = np.clip(np.nan_to_num(np.frombuffer(data, kind), posinf=1.0, neginf=-1.0), -scale, scale)
        return (wave / scale).astype(np.float32)

    return decode


def _one_byte(data: bytes) -> Wave:
    return (np.frombuffer(data, np.uint8).astype(np.float32) - np.float32(128.0)) / np.float32(128.0)


def _three_bytes(data: bytes) -> Wave:
    words = np.zeros((len(data) // 3, 4), np.uint8)
    words[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
    return words.view("<i4")[:, 0].astype(np.float32) / np.float32(2.0**31)


def _looked_up(table: NDArray[Any]) -> Callable[[bytes], Wave]:
    floats = table.astype(np.float32)
    return lambda data: floats[np.frombuffer(data, np.uint8)]


def _mu_law() -> NDArray[Any]:
    """ITU-T G.711, table 2: bytes are complemented; sign, three bits of exponent, four of mantissa."""
    code = ~np.arange(256, dtype=np.uint8)
    exponent, mantissa = (code >> 4 & 7).astype(np.int32), (code & 15).astype(np.int32)
    magnitude = ((2 * mantissa + 33) << exponent) - 33
    return np.where(code & 0x80, -magnitude, magnitude) / 8192


def _a_law() -> NDArray[Any]:
    """ITU-T G.711, table 1: even bits are inverted; the sign bit set means positive."""
    code = np.arange(256, dtype=np.uint8) ^ 0x55
    exponent, mantissa = (code >> 4 & 7).astype(np.int32), (code & 15).astype(np.int32)
    magnitude = np.where(exponent == 0, 2 * mantissa + 1, (2 * mantissa + 33) << np.maximum(exponent - 1, 0))
    return np.where(code & 0x80, magnitude, -magnitude) / 4096


_DECODERS = {
    (_PCM, 1): ("8-bit PCM", _one_byte),
    (_PCM, 2): ("16-bit PCM", _scaled("<i2", 2.0**15)),
    (_PCM, 3): ("24-bit PCM", _three_bytes),
    (_PCM, 4): ("32-bit PCM", _scaled("<i4", 2.0**31)),
    (_FLOAT, 4): ("32-bit float", _scaled("<f4", 1.0)),
    (_FLOAT, 8): ("64-bit float", _scaled("<f8", 1.0)),
    (_A_LAW, 1): ("A-law", _looked_up(_a_law())),
    (_MU_LAW, 1): ("mu-law", _looked_up(_mu_law())),
}
"""By codec tag (writers that leave it 0 mean PCM) and bytes of a sample."""
