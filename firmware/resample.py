"""Sample-rate conversion of one stream: a polyphase windowed sinc that keeps its state between pushes.

`python-samplerate` was tried first: it drops input that a call leaves unused and cannot flush its tail (its issues 7
and 22), and libsamplerate is declared unfit for blocks as short as ours (its issue 90).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from firmware.frame import Wave

ATTENUATION = 90.0
"""dB by which whatever would alias is damped."""

TRANSITION = 0.125
"""Width of the transition band as a part of the lower Nyquist frequency; it ends at that frequency."""

PHASES = 1024
"""Filter phases kept at most; rates that need more are served by interpolating between neighbours (-107 dB)."""

BLOCK = 512
"""Outputs computed at once: each needs a row of taps and a row of input, and they should stay in the cache."""


FEW = 4
"""Phases up to which each is computed by itself: between 48 and 16 kHz there are one or three."""


class Resampler:
    """Converts one stream from `source` to `target` samples per second; never share one between streams.

    Output sample n is the input at time n / target, whatever the size of the pushes; a whole stream of N samples gives
    ceil(N * target / source) samples.
    """

    def __init__(self, source: int, target: int) -> None:
        if source <= 0 or target <= 0:
            raise ValueError(f"rates must be positive, not {source} and {target}")
        self.source, self.target = source, target
        ratio = Fraction(target, source)
        self._up, self._down = ratio.numerator, ratio.denominator
        self._table = _table(source, target)
        self._half = self._table.shape[1] // 2
        self._restart()

    def _restart(self) -> None:
        self._held: Wave = np.zeros(self._half - 1, np.float32)
        self._first = 1 - self._half
        self._next = 0
        self._pushed = 0

    def push(self, wave: Wave) -> Wave:
        """float32 [n] at `source` -> what is certain by now, float32 at `target`; the filter's half length behind."""
        self._pushed += len(wave)
        if self._up == self._down:
            return wave
        self._held = np.concatenate([self._held, wave])
        ready = self._first + len(self._held) - self._half
        return self._until(-(-ready * self._up // self._down))

    def flush(self) -> Wave:
        """The tail, after which a new stream may begin."""
        total = -(-self._pushed * self._up // self._down)
        tail = self._held[:0]
        if self._up != self._down:
            self._held = np.concatenate([self._held, np.zeros(2 * self._half, np.float32)])
            tail = self._until(total)
        self._restart()
        return tail

    def _until(self, end: int) -> Wave:
        """The outputs `_next` to `end`; forgets the input that no later output needs."""
        if end <= self._next:
            return np.zeros(0, np.float32)
        if self._held.any():
            wave = np.concatenate([self._outputs(at, min(at + BLOCK, end)) for at in range(self._next, end, BLOCK)])
        else:  # most of a loudspeaker's day
            wave = np.zeros(end - self._next, np.float32)
        self._next = end
        keep = max(0, end * self._down // self._up - self._half + 1 - self._first)
        self._held = self._held[keep:]
        self._first += keep
        return wave

    def _outputs(self, first: int, end: int) -> Wave:
        if self._up <= FEW:
            return self._few_phases(first, end)
        numbers = np.arange(first, end, dtype=np.int64) * self._down
        starts = numbers // self._up - self._half + 1 - self._first
        steps = (numbers % self._up) * (len(self._table) - 1)
        phase, rest = steps // self._up, steps % self._up
        taps = self._table[phase]
        if rest.any():
            taps = taps + (rest / self._up).astype(np.float32)[:, None] * (self._table[phase + 1] - taps)
        windows = np.lib.stride_tricks.sliding_window_view(self._held, 2 * self._half)[starts]
        return np.einsum("nt,nt->n", windows, taps)  # type: ignore[no-any-return]

    def _few_phases(self, first: int, end: int) -> Wave:
        """The outputs of each phase lie `down` inputs apart: a plain correlation, of which every so-manyth counts, is
        several times quicker than a row of taps for each output."""
        out = np.empty(end - first, np.float32)
        for offset in range(min(self._up, end - first)):
            start, phase = divmod((first + offset) * self._down, self._up)
            start -= self._half - 1 + self._first
            count = len(out[offset :: self._up])
            window = self._held[start : start + (count - 1) * self._down + 2 * self._half]
            out[offset :: self._up] = np.correlate(window, self._table[phase])[:: self._down]
        return out


def resample(wave: Wave, source: int, target: int) -> Wave:
    """A whole sound at once."""
    resampler = Resampler(source, target)
    return np.concatenate([resampler.push(wave), resampler.flush()])


@lru_cache(maxsize=8)
def _table(source: int, target: int) -> NDArray[np.float32]:
    """The filter by phase: row p, column t weighs input base - half + 1 + t for an output p / phases behind base."""
    lower = min(source, target) / source
    width = TRANSITION * lower
    half = int(np.ceil((ATTENUATION - 7.95) / (14.36 * width)))
    cutoff = lower - width / 2
    phases = min(Fraction(target, source).numerator, PHASES)
    offset = np.arange(phases + 1)[:, None] / phases + half - 1 - np.arange(2 * half)[None, :]
    window = np.i0(0.1102 * (ATTENUATION - 8.7) * np.sqrt(np.clip(1 - (offset / half) ** 2, 0, None)))
    taps = np.sinc(offset * cutoff) * np.where(np.abs(offset) < half, window, 0.0)
    return (taps / taps.sum(axis=1, keepdims=True)).astype(np.float32)  # type: ignore[no-any-return]
