"""A room between a loudspeaker and a microphone: what of the sound that is played comes back, sample by sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from firmware.frame import FRAME, RATE, Pcm, Wave, to_pcm, to_wave

TAPS = 32
"""Taps of the fractional delay, a windowed sinc: at the 7 kHz that speech reaches the error stays under -60 dB."""


LEAST = 0.012
"""Seconds of delay that the blocks of the filter need: a shorter delay is as long."""


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
    """`push` takes what the loudspeaker took, and gives one frame of the echo at the microphone.

    `gain` dB lie between the two, `delay` seconds pass (whichever may be changed at any time; so may `muffled`, which
    takes the echo away). `response` is the impulse response at RATE. The loudspeaker's clock runs `drift` parts per
    million faster than the microphone's: for each frame of the microphone `due` samples are to be pushed. A `soft`
    loudspeaker bends what is loud (tanh; `soft` is the slope at zero).
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
        self.delay, self.gain, self.soft = delay, gain, soft
        self.muffled = False
        self._speed = 1 + drift * 1e-6
        self._filter = _Convolver(reverberation() if response is None else response)
        self._held: Wave = np.zeros(round(0.6 * RATE), np.float32)
        self._first = -len(self._held)
        self._frames = 0
        self._pushed = 0

    @property
    def due(self) -> int:
        """How many samples the loudspeaker takes during the next frame."""
        return int((self._frames + 1) * FRAME * self._speed) - self._pushed

    def push(self, played: Pcm) -> Pcm:
        """int16 [due] at RATE -> int16 [FRAME]."""
        self._pushed += len(played)
        wave = to_wave(played)
        if self.soft:
            wave = np.tanh(self.soft * wave) / np.float32(self.soft)
        self._held = np.concatenate([self._held, self._filter.push(wave)])
        delay = max(self.delay, LEAST) * RATE
        times = (self._frames * FRAME + np.arange(FRAME, dtype=np.float64)) * self._speed + FRAME - delay
        self._frames += 1
        echo = self._read(times) * np.float32(0.0 if self.muffled else 10 ** (self.gain / 20))
        spare = len(self._held) - round(0.6 * RATE)
        if spare > RATE:
            self._held, self._first = self._held[spare:], self._first + spare
        return to_pcm(echo)

    def _read(self, times: NDArray[np.float64]) -> Wave:
        """The filtered sound at fractional sample times."""
        whole = np.floor(times).astype(np.int64)
        offsets = np.arange(1 - TAPS // 2, TAPS // 2 + 1)
        distance = (times - whole)[:, None] - offsets
        taps = np.sinc(distance) * np.cos(np.pi * np.clip(distance / TAPS, -0.5, 0.5)) ** 2
        places = np.clip(whole[:, None] + offsets - self._first, 0, len(self._held) - 1)
        return np.einsum("nt,nt->n", self._held[places], taps).astype(np.float32)  # type: ignore[no-any-return]


class _Convolver:
    """A long filter over pieces of any size, in blocks of one frame (uniformly partitioned overlap-save)."""

    def __init__(self, response: Wave) -> None:
        blocks = -(-len(response) // FRAME)
        padded = np.zeros((blocks, 2 * FRAME), np.float32)
        padded[:, :FRAME] = np.pad(response, (0, blocks * FRAME - len(response))).reshape(blocks, FRAME)
        self._response = np.fft.rfft(padded)
        self._spectra = np.zeros_like(self._response)
        self._window: Wave = np.zeros(2 * FRAME, np.float32)
        self._waiting: Wave = np.zeros(0, np.float32)
        self._ready: Wave = np.zeros(FRAME, np.float32)

    def push(self, wave: Wave) -> Wave:
        """As many samples as are given, one frame late."""
        self._waiting = np.concatenate([self._waiting, wave])
        while len(self._waiting) >= FRAME:
            self._window = np.concatenate([self._window[FRAME:], self._waiting[:FRAME]])
            self._waiting = self._waiting[FRAME:]
            self._spectra = np.roll(self._spectra, 1, axis=0)
            self._spectra[0] = np.fft.rfft(self._window)
            block = np.fft.irfft((self._spectra * self._response).sum(axis=0))[FRAME:].astype(np.float32)
            self._ready = np.concatenate([self._ready, block])
        out, self._ready = self._ready[: len(wave)], self._ready[len(wave) :]
        return out
