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
