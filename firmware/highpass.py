"""A high-pass of second order that takes a whole frame in one product of matrices."""

from __future__ import annotations

import numpy as np

from firmware.frame import FRAME, RATE, Wave

CORNER = 80.0
"""Hertz at which it is 3 dB down: below the voice of a low speaker, above hum, wind and rumble."""


class HighPass:
    """A Butterworth filter; float32 [FRAME] in and out."""

    def __init__(self, corner: float = CORNER) -> None:
        warped = np.tan(np.pi * corner / RATE)
        scale = 1 / (1 + np.sqrt(2) * warped + warped**2)
        first, second = 2 * scale * (warped**2 - 1), scale * (1 - np.sqrt(2) * warped + warped**2)
        step = np.array([[-first, 1.0], [-second, 0.0]])  # the two state variables of the transposed direct form II
        enter = scale * np.array([-2 - first, 1 - second])
        powers = [np.eye(2)]
        for _ in range(FRAME):
            powers.append(step @ powers[-1])
        impulse = np.array([scale, *(power[0] @ enter for power in powers[: FRAME - 1])])
        rows, columns = np.indices((FRAME, FRAME))
        self._direct = np.where(rows >= columns, impulse[rows - columns], 0.0).astype(np.float32)
        self._output = np.array([power[0] for power in powers[:FRAME]])
        self._enter = np.stack([power @ enter for power in powers[FRAME - 1 :: -1]], axis=1)
        self._step = powers[FRAME]
        self._state = np.zeros(2)

    def push(self, wave: Wave) -> Wave:
        out = self._direct @ wave + (self._output @ self._state).astype(np.float32)
        self._state = self._step @ self._state + self._enter @ wave
        return out
