"""A room between a loudspeaker and a microphone: what of the sound that is played comes back, sample by sample."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from firmware.frame import FRAME, RATE, Pcm, Wave, to_pcm, to_wave

TAPS = 32
"""Taps of the fractional delay, a windowed sinc: at the 7 kHz that speech reaches the error stays under -60 dB."""

LEAST, MOST = 0.004, 0.5
"""Seconds of delay that can be had: the fractional delay looks TAPS / 2 samples ahead, a resampler in front of the room
another _LAG."""

_LAG = 47
_NANO = 1_000_000_000
_PHASES = 1024


def reverberation(seconds: float = 0.3, *, direct: float = 6.0, seed: int = 0) -> Wave:
    """An impulse response of unit energy: the direct sound, and behind it noise that decays by 60 dB in `seconds` and
    is `direct` dB weaker as a whole (Polack's model of a diffuse room, 1988)."""
    time = np.arange(1, round(seconds * RATE)) / RATE
    tail = np.random.default_rng(seed).normal(size=len(time)) * 10 ** (-3 * time / seconds)
    tail *= 10 ** (-direct / 20) / np.linalg.norm(tail)
    response = np.concatenate([[1.0], tail])
    unit: Wave = (response / np.linalg.norm(response)).astype(np.float32)
    return unit


class Room:
    """`hear` takes what the loudspeaker took, and gives one frame of the echo at the microphone.

    `gain` dB lie between the two, and `delay` seconds pass, LEAST to MOST. `response` is the impulse response at RATE.
    The loudspeaker's clock runs `drift` parts per million (at most 1000) faster than the microphone's: for each frame
    of the microphone `due` samples are to be pushed. A `soft` loudspeaker bends what is loud (tanh; `soft` is the slope
    at zero). Everything but the response may be changed at any time; `muffled` takes the echo away.
    """

    def __init__(
        self,
        *,
        delay: float = 0.03,
        gain: float = 0.0,
        response: Wave | None = None,
        drift: float = 0.0,
        soft: float = 0.0,
    ) -> None:
        self.delay, self.gain, self.drift, self.soft = delay, gain, drift, soft
        self.muffled = False
        self._filter = _Convolver(reverberation() if response is None else response)
        self._clock = 0  # of the loudspeaker at the next frame, in billionths of a sample: exact for as long as it runs
        self._held: Wave = np.zeros(2 * RATE, np.float32)  # what came through the filter; sample _first is at the left
        self._end = RATE
        self._first = -self._end
        self._pushed = 0
        self._quiet = self._memory = self._filter.length + RATE

    @property
    def due(self) -> int:
        """How many samples the loudspeaker takes during the next frame."""
        return (self._clock + self._step) // _NANO - self._clock // _NANO

    def push(self, played: Pcm) -> Pcm:
        """int16 [n] at RATE -> int16 [FRAME]."""
        return to_pcm(self.hear(played))

    def hear(self, played: Pcm) -> Wave:
        """int16 [n] at RATE -> float32 [FRAME], which may exceed 1. n is `due`, or lags up to 47 samples behind it;
        where more is missing, nothing was played."""
        missing = (self._clock + self._step) // _NANO - self._pushed - len(played)
        if missing > _LAG:
            played = np.concatenate([np.zeros(missing, np.int16), played])
        self._pushed += len(played)
        self._quiet = 0 if played.any() else self._quiet + len(played)
        if self._quiet > self._memory:  # whatever is held is zero
            self._first += len(played)
            echo: Wave = np.zeros(FRAME, np.float32)
        else:
            self._hold(self._filter.push(self._bent(to_wave(played))))
            echo = self._read() * np.float32(0.0 if self.muffled else 10 ** (self.gain / 20))
        self._clock += self._step
        return echo

    @property
    def _step(self) -> int:
        return FRAME * (_NANO + round(self.drift * 1000))

    def _bent(self, wave: Wave) -> Wave:
        return np.tanh(self.soft * wave) / np.float32(self.soft) if self.soft else wave

    def _hold(self, wave: Wave) -> None:
        if self._end + len(wave) > len(self._held):
            self._first += self._end - RATE
            self._held[:RATE] = self._held[self._end - RATE : self._end]
            self._end = RATE
        self._held[self._end : self._end + len(wave)] = wave
        self._end += len(wave)

    def _read(self) -> Wave:
        """The filtered sound at fractional times: a delay that slips within the frame is a mixture of the filters at
        its two ends (at 7 kHz exact to -64 dB for 150 ppm, to -44 dB for 500)."""
        at = self._clock % _NANO / _NANO - min(max(self.delay, LEAST), MOST) * RATE
        slip = FRAME * self.drift * 1e-6
        whole = int(np.floor(min(at, at + slip)))
        start = self._clock // _NANO + whole - TAPS // 2 + 1 - self._first
        held = self._held[start : start + FRAME + TAPS - 1]
        echo = np.correlate(held, _taps(at - whole))
        if slip:
            later = np.correlate(held, _taps(at + slip - whole))
            echo += (later - echo) * (np.arange(FRAME, dtype=np.float32) / np.float32(FRAME))
        return echo


def _taps(fraction: float) -> Wave:
    """The filter that reads `fraction` samples, 0 to 1.2, behind its tap TAPS / 2 - 1: float32 [TAPS]."""
    table = _table()
    place = fraction * _PHASES
    row = int(place)
    taps: Wave = table[row] + np.float32(place - row) * (table[row + 1] - table[row])
    return taps


@lru_cache(maxsize=1)
def _table() -> Wave:
    """Kaiser's window with the 64 dB that TAPS give between 7 and 9 kHz."""
    fractions = np.arange(round(1.2 * _PHASES) + 2)[:, None] / _PHASES
    distance = fractions - np.arange(1 - TAPS // 2, TAPS // 2 + 1)
    window = np.i0(6.05 * np.sqrt(np.clip(1 - (2 * distance / TAPS) ** 2, 0, None))) / np.i0(6.05)
    table: Wave = (np.sinc(distance) * window * (np.abs(distance) <= TAPS / 2)).astype(np.float32)
    return table


class _Convolver:
    """A long filter over pieces of any size, without a delay: uniformly partitioned overlap-save (Stockham, 1966), in
    which the block that is not full yet is computed with zeros behind it."""

    def __init__(self, response: Wave) -> None:
        blocks = -(-len(response) // FRAME)
        self.length = (blocks + 1) * FRAME
        padded = np.zeros((blocks, 2 * FRAME), np.float32)
        padded[:, :FRAME] = np.pad(response, (0, blocks * FRAME - len(response))).reshape(blocks, FRAME)
        self._response = np.fft.rfft(padded)
        self._spectra = np.zeros((2 * blocks, FRAME + 1), self._response.dtype)  # a ring, twice, so that it is a slice
        self._newest = 0
        self._past = self._spectra[0]
        self._window: Wave = np.zeros(2 * FRAME, np.float32)
        self._filled = 0

    def push(self, wave: Wave) -> Wave:
        parts = [wave[:0]]
        while len(wave):
            start = FRAME + self._filled
            part, wave = wave[: 2 * FRAME - start], wave[2 * FRAME - start :]
            self._window[start : start + len(part)] = part
            spectrum = np.fft.rfft(self._window)
            block = np.fft.irfft(self._past + spectrum * self._response[0]).astype(np.float32, copy=False)
            parts.append(block[start : start + len(part)])
            self._filled += len(part)
            if self._filled == FRAME:
                self._turn(spectrum)
        return np.concatenate(parts)

    def _turn(self, spectrum: NDArray[np.complexfloating]) -> None:
        blocks = len(self._response)
        self._newest = (self._newest - 1) % blocks
        self._spectra[self._newest] = self._spectra[self._newest + blocks] = spectrum
        recent = self._spectra[self._newest : self._newest + blocks - 1]
        self._past = (self._response[1:] * recent).sum(axis=0)  # einsum takes three times as long
        self._window[:FRAME] = self._window[FRAME:]
        self._window[FRAME:] = 0
        self._filled = 0
