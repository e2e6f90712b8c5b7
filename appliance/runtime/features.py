"""Log-mel features of Whisper and of models that hear as it does (smart-turn)."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from firmware.frame import RATE, Wave

WINDOW = 400
"""Samples in one Fourier window (25 ms)."""
HOP = 160
"""Samples between two windows (10 ms)."""
BINS = WINDOW // 2 + 1
FLOOR = 1e-10
_RANGE = 8.0  # what lies more than 8 (log10 of power) below the loudest point counts as silence

Mel = NDArray[np.float32]


_TOP = 15.0 + 27.0 * np.log(RATE / 2000.0) / np.log(6.4)  # half the rate, in mel


def _mel_to_hertz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    """Slaney's scale: linear below 1 kHz, exponential above."""
    return np.where(mel < 15.0, 200.0 * mel / 3.0, 1000.0 * np.exp(np.log(6.4) * (mel - 15.0) / 27.0))


@cache
def filters(bands: int) -> Mel:
    """Triangular filters of unit area, float32 [bands, BINS], 0 to 8 kHz."""
    edges = _mel_to_hertz(np.linspace(0.0, _TOP, bands + 2))
    bins = np.linspace(0.0, RATE / 2.0, BINS)
    rising = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    area = 2.0 / (edges[2:] - edges[:-2])
    return (np.maximum(0.0, np.minimum(rising, falling)) * area[:, None]).astype(np.float32)


@cache
def _hann() -> NDArray[np.float32]:
    return (0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)


def log_mel(wave: Wave, bands: int = 80) -> Mel:
    """Of float32 mono [samples] at 16 kHz: float32 [bands, samples // HOP].

    The signal is mirrored at both ends, as the original does; a signal too short to be mirrored raises ValueError.
    """
    if len(wave) <= WINDOW // 2:
        raise ValueError(f"{len(wave)} samples are too few for a {WINDOW}-sample window")
    padded = np.pad(wave.astype(np.float32, copy=False), WINDOW // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[: len(wave) // HOP * HOP : HOP]
    spectrum = np.fft.rfft(frames * _hann(), axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    mel = np.log10(np.maximum(filters(bands) @ power.T, FLOOR))
    scaled: Mel = ((np.maximum(mel, mel.max() - _RANGE) + 4.0) / 4.0).astype(np.float32)
    return scaled
