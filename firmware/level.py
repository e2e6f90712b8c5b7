"""How loud it is, and what to tell the person whose microphone is set wrong."""

from __future__ import annotations

import numpy as np

from firmware.frame import RATE, Frame, Pcm, Wave, to_wave

FLOOR = -100.0
"""dBFS of digital silence."""

QUIET = -45.0
NEAR_NOISE = 6.0
TARGET = -26.0
"""dBFS below which speech is too quiet, dB that it must stand above the noise, and dBFS where it belongs (ITU-T P.56
active level of telephony recordings)."""

CLIPPED = 0.001
"""The part of the samples of speech that may be at full scale."""

ENOUGH = RATE
"""Samples of speech before anything is said about them."""


def dbfs(sound: Pcm | Wave) -> float:
    """Root mean square of [n] against full scale, in dB; FLOOR for silence and for nothing."""
    wave = to_wave(sound)
    power = float(np.mean(np.square(wave, dtype=np.float64))) if len(wave) else 0.0
    return max(FLOOR, 10 * np.log10(power)) if power > 0 else FLOOR


class Meter:
    """The levels of speech and of what lies between, since the start."""

    def __init__(self) -> None:
        self._speech = _Mean()
        self._noise = _Mean()
        self._clipped = 0

    def push(self, frame: Frame, speech: float) -> None:
        """`speech` is the probability [0, 1] that the frame holds speech; what is in doubt is left out."""
        if speech >= 0.8:
            self._speech.push(frame.samples)
            self._clipped += int(np.count_nonzero(np.abs(frame.samples.astype(np.int32)) >= 32_700))
        elif speech < 0.1:
            self._noise.push(frame.samples)

    @property
    def speech(self) -> float:
        """dBFS."""
        return self._speech.level

    @property
    def noise(self) -> float:
        """dBFS."""
        return self._noise.level

    def advice(self) -> str | None:
        """What is wrong with the microphone and how to put it right, None if nothing is or not enough was heard."""
        if self._speech.samples < ENOUGH:
            return None
        if self._clipped > CLIPPED * self._speech.samples:
            return "your voice overdrives the microphone: lower its gain (`alsamixer`, F4), or step back"
        if self.speech < QUIET:
            raised = round(TARGET - self.speech)
            return (
                f"your voice arrives at {self.speech:.0f} dBFS, which is too quiet: "
                f"raise the microphone's gain by {raised} dB (`alsamixer`, F4), or come closer"
            )
        if self._noise.samples >= ENOUGH and self.speech - self.noise < NEAR_NOISE:
            above = self.speech - self.noise
            return (
                f"the noise is nearly as loud as your voice ({above:.0f} dB apart): move the microphone closer to you"
            )
        return None


class _Mean:
    def __init__(self) -> None:
        self.samples = 0
        self._energy = 0.0

    def push(self, samples: Pcm) -> None:
        self.samples += len(samples)
        self._energy += float(np.sum(np.square(to_wave(samples), dtype=np.float64)))

    @property
    def level(self) -> float:
        return max(FLOOR, 10 * float(np.log10(self._energy / self.samples))) if self._energy > 0 else FLOOR
