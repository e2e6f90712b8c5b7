"""The door to miniaudio: decodes FLAC, MP3 and Ogg Vorbis.

miniaudio is MIT-licensed and has wheels for x86-64; elsewhere it is built from source, which needs a C compiler. WAV
works without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from firmware.fault import AudioFault
from firmware.frame import Wave

Kind = Literal["FLAC", "MP3", "Ogg Vorbis"]

BLOCK = 1 << 14
"""Samples of each channel decoded at once."""


def open_codec(path: str, kind: Kind, convert: str) -> tuple[int, int, Iterator[Wave]]:
    """The file's rate, its number of channels, and its sound as float32 [n, channels]. Raises AudioFault; `convert` is
    the advice given then. A damaged file ends where it cannot be decoded any more."""
    try:
        import miniaudio  # type: ignore[import-untyped]
    except ImportError as error:
        raise AudioFault(f"{path} is {kind}, which needs the miniaudio package: {error}", convert) from error
    about = {
        "FLAC": miniaudio.flac_get_file_info,
        "MP3": miniaudio.mp3_get_file_info,
        "Ogg Vorbis": miniaudio.vorbis_get_file_info,
    }[kind]
    try:
        info = about(path)
        rate, channels = info.sample_rate, info.nchannels
        if not 0 < channels <= 64 or not 100 <= rate <= 1_000_000:
            raise AudioFault(f"{path} claims {channels} channels at {rate} Hz: it is damaged", convert)
        chunks = miniaudio.stream_file(path, miniaudio.SampleFormat.FLOAT32, channels, rate, BLOCK)
    except miniaudio.MiniaudioError as error:
        raise AudioFault(f"{path} is {kind}, and damaged: it cannot be decoded ({error.args[0]})", convert) from error
    return rate, channels, (np.frombuffer(chunk, np.float32).reshape(-1, channels) for chunk in chunks)
