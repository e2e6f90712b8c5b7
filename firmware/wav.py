"""Recordings in and out: any sound file becomes int16 mono at 16 kHz, and sound becomes a WAV."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np

from firmware.codec import Kind, open_codec
from firmware.fault import AudioFault, StorageFault
from firmware.frame import FRAME, RATE, Frame, Pcm, Wave, to_pcm
from firmware.resample import Resampler
from firmware.riff import blocks, layout

HEAD = 4096
"""Bytes looked at to tell what a file is."""

_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"RF64", "WAV"),
    (0, b"BW64", "WAV"),
    (0, b"fLaC", "FLAC"),
    (0, b"RIFX", "big-endian WAV (RIFX)"),
    (0, b"FORM", "AIFF"),
    (0, b".snd", "Sun AU"),
    (0, b"#!AMR", "AMR"),
    (0, b"caff", "Core Audio"),
    (0, b"wvpk", "WavPack"),
    (0, b"MAC ", "Monkey's Audio"),
    (0, b"riff\x2e\x91\xcf\x11", "Sony Wave64"),
    (0, b"\x30\x26\xb2\x75", "Windows Media"),
    (0, b"\x1a\x45\xdf\xa3", "WebM or Matroska"),
    (4, b"ftyp", "MP4 or M4A"),
    (28, b"\x01vorbis", "Ogg Vorbis"),
    (28, b"OpusHead", "Opus"),
    (28, b"\x7fFLAC", "FLAC in Ogg"),
    (0, b"OggS", "Ogg"),
    (0, b"\xff\xf1", "AAC"),
    (0, b"\xff\xf9", "AAC"),
    (0, b"\xff\xfb", "MP3"),
    (0, b"\xff\xf3", "MP3"),
    (0, b"\xff\xf2", "MP3"),
    (0, b"\xff\xfa", "MP3"),
    (0, b"PK\x03\x04", "a ZIP archive"),
    (0, b"\x1f\x8b", "gzip-compressed"),
    (0, b"%PDF", "a PDF document"),
)
_CODECS: dict[str, Kind] = {"FLAC": "FLAC", "MP3": "MP3", "Ogg Vorbis": "Ogg Vorbis"}


@dataclass(frozen=True, slots=True)
class Recording:
    """`samples` int16 mono [n] at RATE; `format`, `rate` and `channels` are the file's own. `notes` say what was wrong
    with it and was put right."""

    samples: Pcm
    format: str
    rate: int
    channels: int
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        return len(self.samples) / RATE


@dataclass(frozen=True, slots=True)
class _Opened:
    format: str
    rate: int
    channels: int
    blocks: Iterator[Wave]
    notes: tuple[str, ...] = ()

    def mono(self) -> Iterator[Pcm]:
        """int16 at RATE, in pieces."""
        resampler = Resampler(self.rate, RATE)
        for block in self.blocks:
            yield to_pcm(resampler.push(block.mean(axis=1, dtype=np.float32)))
        yield to_pcm(resampler.flush())


def read(path: str | Path) -> Recording:
    """A whole recording: WAV (PCM, float, G.711), FLAC, MP3 or Ogg Vorbis, any rate, any number of channels.

    Raises AudioFault, which says what the file is and what to do with it. Three hours take 345 MB: see `frames`.
    """
    with _open(Path(path)) as opened:
        samples = np.concatenate([*opened.mono()])
        return Recording(samples, opened.format, opened.rate, opened.channels, opened.notes)


def frames(path: str | Path) -> Iterator[Frame]:
    """The same as frames of 10 ms, in bounded memory; the last one is padded with silence. Raises AudioFault."""
    with _open(Path(path)) as opened:
        at = 0
        held = np.zeros(0, np.int16)
        for piece in opened.mono():
            held = np.concatenate([held, piece])
            whole = len(held) // FRAME * FRAME
            for start in range(0, whole, FRAME):
                yield Frame(at + start, held[start : start + FRAME])
            at += whole
            held = held[whole:]
        if len(held):
            yield Frame(at, np.pad(held, (0, FRAME - len(held))))


def sniff(head: bytes) -> str | None:
    """What a file or stream that begins with `head` is, None if that cannot be told: raw samples have no name."""
    if head[:4] == b"RIFF":
        return "WAV" if head[8:12] == b"WAVE" else "AVI" if head[8:12] == b"AVI " else "RIFF, but not WAV"
    if head[:3] == b"ID3" and len(head) >= 10:
        size = sum((byte & 127) << shift for byte, shift in zip(head[6:10], (21, 14, 7, 0), strict=True))
        return "FLAC" if head[10 + size : 14 + size] == b"fLaC" else "MP3"
    for at, magic, name in _MAGIC:
        if head[at : at + len(magic)] == magic:
            return name
    return "text" if _is_text(head) else None


def _is_text(head: bytes) -> bool:
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return True
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:
            return False
        text = head[: error.start].decode()
    return bool(text) and all(sign.isprintable() or sign in "\r\n\t\f" for sign in text)


@contextmanager
def _open(path: Path) -> Iterator[_Opened]:
    if "\0" in str(path):
        raise AudioFault(f"{str(path)!r} is no path", "give the path of a recording")
    convert = f"convert it: ffmpeg -i {path} -ar {RATE} -ac 1 {path.stem}-{RATE // 1000}k.wav"
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            what = "a directory" if stat.S_ISDIR(about.st_mode) else "a pipe or device"
            raise AudioFault(f"{path} is {what}, not a sound file", "give the path of a recording")
        if about.st_size == 0:
            raise AudioFault(f"{path} is empty (0 bytes)", "record or copy it again")
        with path.open("rb") as file:
            head = file.read(HEAD)
            kind = sniff(head)
            if kind == "WAV":
                form = layout(file, about.st_size, str(path), convert)
                yield _Opened(f"WAV, {form.format}", form.rate, form.channels, blocks(file, form), form.notes)
                return
            if kind in _CODECS:
                yield _Opened(kind, *open_codec(str(path), _CODECS[kind], convert))
                return
    except OSError as error:
        raise AudioFault(f"{path} cannot be read: {error.strerror}", "check the path and its permissions") from error
    if kind == "text":
        first = head.decode(errors="replace").split("\n", 1)[0][:40]
        raise AudioFault(f"{path} is text, not sound: it begins with {first!r}", "give the path of a recording")
    if kind is None:
        raw = f"if it holds raw samples, say which: sox -t raw -r {RATE} -e signed -b 16 -c 1 {path} {path.stem}.wav"
        raise AudioFault(f"{path} is no sound file that can be recognised", raw)
    raise AudioFault(f"{path} is {kind}, which cannot be read", convert)


def write(path: str | Path, samples: Pcm | Wave, rate: int = RATE) -> None:
    """Writes mono [n], int16 or float in [-1, 1], as a 16-bit WAV: complete, or not at all. A link is followed; a
    device or a pipe is written to and stays what it is. Raises StorageFault."""
    path = Path(path)
    pcm = to_pcm(samples)
    if path.exists() and not path.is_file():
        _write_into(path, _header(rate, 2 * len(pcm)) + pcm.astype("<i2").tobytes())
        return
    path = path.resolve()
    part = path.with_name(f".{path.name}.{token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            file.write(_header(rate, 2 * len(pcm)))
            file.write(pcm.astype("<i2").tobytes())
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _write_into(path: Path, data: bytes) -> None:
    try:
        with path.open("wb") as file:
            file.write(data)
    except OSError as error:
        raise _unwritable(path, error) from error


class Writer:
    """Writes a mono 16-bit WAV as the sound arrives. Its header is put right after each second of sound, so that the
    file is valid whenever the writing stops. Raises StorageFault."""

    def __init__(self, path: str | Path, rate: int = RATE) -> None:
        self.path, self.rate = Path(path), rate
        self.samples = 0
        self._promised = 0
        try:
            self._file: BinaryIO = self.path.open("wb")
            self._file.write(_header(rate, 0))
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def push(self, samples: Pcm | Wave) -> None:
        """int16 or float in [-1, 1], [n] at the writer's rate."""
        pcm = to_pcm(samples)
        try:
            self._file.write(pcm.astype("<i2").tobytes())
            self.samples += len(pcm)
            if self.samples - self._promised >= self.rate:
                self._promise()
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def close(self) -> None:
        if self._file.closed:
            return
        try:
            with self._file:
                self._promise()
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def _promise(self) -> None:
        self._file.seek(0)
        self._file.write(_header(self.rate, 2 * self.samples))
        self._file.seek(0, os.SEEK_END)
        self._file.flush()
        self._promised = self.samples

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _header(rate: int, size: int) -> bytes:
    """Of a mono 16-bit WAV with `size` bytes of samples; more than 4 GB are declared as of unknown length."""
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        *(b"RIFF", min(size + 36, 0xFFFFFFFF), b"WAVE", b"fmt ", 16, 1, 1, rate, rate * 2, 2, 16),
        *(b"data", min(size, 0xFFFFFFFF)),
    )


def _unwritable(path: Path, error: OSError) -> StorageFault:
    return StorageFault(f"{path} cannot be written: {error.strerror}", "choose another place, or make room")
