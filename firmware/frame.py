"""One 10 ms frame of sound, the unit of everything in the basement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

RATE = 16_000
"""Samples per second inside Parley; devices of other rates are resampled once, at the edge."""

FRAME = RATE // 100
"""Samples in one frame (10 ms)."""

Pcm = NDArray[np.int16]
Wave = NDArray[np.float32]


Role = Literal["wake", "stop"]
"""What a word does: it opens a turn, or ends what the box says."""


@dataclass(frozen=True, slots=True)
class Woke:
    """A wake word: `word` names it, `begin` and `end` are its samples on the device clock, `score` is what crossed its
    `threshold`. With the role "stop" it ends what the box says, and opens no turn."""

    word: str
    begin: int
    end: int
    score: float
    threshold: float
    role: Role = "wake"


@dataclass(frozen=True, slots=True)
class Trouble:
    """The card does not work: `kind` names how, `message` and `fix` are for people."""

    kind: TroubleKind
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class Recovered:
    """The card works again after `seconds`; `kind` is the trouble that is over."""

    kind: TroubleKind
    seconds: float


@dataclass(frozen=True, slots=True)
class Muting:
    """The user closed the microphone, or opened it again."""

    on: bool


TroubleKind = Literal["unplugged", "frozen", "moved", "server", "silence", "rate", "refused", "missing"]
Note = Woke | Trouble | Recovered | Muting


NOTHING: Pcm = np.zeros(0, np.int16)


@dataclass(frozen=True, slots=True)
class Frame:
    """`samples` int16 mono [FRAME] at RATE, `at` the index of its first sample on the device clock, `overruns` the
    number of frames lost in front of this one.

    `far` is what the loudspeaker took since the frame before, int16 mono [n] at RATE; n varies, since a sound card
    plays in periods of its own. `live` is False where no microphone stands behind the frame: it is muted, or the card
    is away. `strict` is the same sound without any rest of echo, and without parts of a voice over it: it shows whether
    somebody speaks, where `samples` are to be recognised; None where the two are one. `doubt` in [0, 1] is how little a
    voice in this frame proves while the box plays: 0 where nothing plays or the echo is known to be cancelled, 1 where
    echo may be heard as it is. `notes` is what the basement noticed.
    """

    at: int
    samples: Pcm
    overruns: int = 0
    far: Pcm = field(default_factory=lambda: NOTHING)
    live: bool = True
    strict: Pcm | None = None
    doubt: float = 0.0
    notes: tuple[Note, ...] = ()


def to_wave(sound: Pcm | Wave) -> Wave:
    """int16 to float32 in [-1, 1); floating point as it is."""
    if sound.dtype.kind == "i":
        return sound.astype(np.float32) / np.float32(32768.0)
    return sound.astype(np.float32, copy=False)


def to_pcm(sound: Pcm | Wave) -> Pcm:
    """int16 as it is, floating point rounded and clipped at full scale; what is not a number is silence."""
    if sound.dtype.kind == "i":
        return sound.astype(np.int16, copy=False)
    scaled = np.clip(np.rint(sound * np.float32(32768.0)), -32768.0, 32767.0)
    if np.isnan(scaled).any():  # hardly ever, and nan_to_num costs more than all the rest
        scaled = np.nan_to_num(scaled)
    pcm: Pcm = scaled.astype(np.int16)
    return pcm
