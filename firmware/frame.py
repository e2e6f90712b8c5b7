"""One 10 ms frame of sound, the unit of everything in the basement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RATE = 16_000
"""Samples per second inside Parley; devices of other rates are resampled once, at the edge."""

FRAME = RATE // 100
"""Samples in one frame (10 ms)."""

Pcm = NDArray[np.int16]
Wave = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Frame:
    """`samples` int16 mono [FRAME] at RATE, `at` the index of its first sample on the device clock, `overruns` the
    number of frames lost in front of this one."""

    at: int
    samples: Pcm
    overruns: int = 0


def to_wave(sound: Pcm | Wave) -> Wave:
    """int16 to float32 in [-1, 1); floating point as it is."""
    if np.issubdtype(sound.dtype, np.integer):
        return sound.astype(np.float32) / np.float32(32768.0)
    return sound.astype(np.float32, copy=False)


def to_pcm(sound: Pcm | Wave) -> Pcm:
    """int16 as it is, floating point rounded and clipped at full scale; what is not a number is silence."""
    if np.issubdtype(sound.dtype, np.integer):
        return sound.astype(np.int16, copy=False)
    scaled = np.nan_to_num(np.rint(sound * np.float32(32768.0)), posinf=32767.0, neginf=-32768.0)
    pcm: Pcm = np.clip(scaled, -32768.0, 32767.0).astype(np.int16)
    return pcm
