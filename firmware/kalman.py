"""The linear part of echo cancellation: a filter that learns the way from the loudspeaker to the microphone.

The partitioned-block frequency-domain Kalman filter (Enzner & Vary 2006, "Frequency-domain adaptive Kalman filter for
acoustic echo control in hands-free telephones"; Kuech et al. 2014, "State-space architecture of the
partitioned-block-based acoustic echo controller"). It knows how sure it is of each part of the room, and how loud the
near end is at each frequency: it learns a room within a second, and a voice over the echo does not unlearn it. The
libraries' filters were tried first, behind the same aligned far end; tests/bench/echo.py has both.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from firmware.frame import FRAME, Wave

PARTS = 25
"""Frames of echo that are modelled (0.25 s)."""

STEADY = 0.999
"""How much of the room is the same one frame later: what is forgotten follows people who move."""

MEMORY = 0.9
"""What a frame leaves of the near end's spectrum before it: a time constant of 0.1 s."""

UNKNOWN = 3.0
"""The variance of the first part of a room of which nothing is known."""

DECAY = 0.35
"""Seconds in which a room's echo is expected to fall by 60 dB."""

LEAST = np.float32(1e-2)
"""Power of a bin (-42 dBFS over all) that the near end is taken to have when the far end begins: with less, the filter
takes for the room what is not in its model."""

BARELY = 1e-12
"""A power that keeps divisions defined."""

_BINS = FRAME + 1
_Spectra = NDArray[np.complex64]


class Kalman:
    """`push` takes a frame of the microphone and the far end that arrives with it, float32 [FRAME] each."""

    def __init__(self) -> None:
        decay = 10 ** (-6 * np.arange(PARTS) * 0.01 / DECAY)
        self._prior = np.repeat((UNKNOWN * decay).astype(np.float32)[:, None], _BINS, axis=1)
        self._window: Wave = np.zeros(2 * FRAME, np.float32)
        # The spectra of the last PARTS frames begin at row _newest, latest first; rows before it are free.
        self._far: _Spectra = np.zeros((4 * PARTS, _BINS), np.complex64)
        self._newest = 3 * PARTS
        self.reset()

    def reset(self) -> None:
        """Forgets the room."""
        self._room: _Spectra = np.zeros((PARTS, _BINS), np.complex64)
        self._unsure = self._prior.copy()
        self._near: Wave = np.full(_BINS, LEAST, np.float32)
        self._kept: _Spectra | None = None

    def keep(self) -> None:
        """Remembers the room as it is known now."""
        self._kept = self._room.copy()

    def recall(self) -> None:
        """Goes back to the room that was kept, but is a tenth as unsure of it as of any: the far end has been put in
        its place, and what was learnt while it was elsewhere is wrong."""
        kept = self._kept
        self.reset()
        if kept is not None:
            self._room, self._kept = kept.copy(), kept
            self._unsure = np.float32(0.1) * self._prior

    def push(self, near: Wave, far: Wave, *, learn: bool = True) -> Wave:
        """`near` without the echo that is known of. What does not `learn` leaves the room as it is."""
        spectra = self._heard(far)
        error = near - _last((spectra * self._room).sum(axis=0))
        if not learn:
            return error
        self._learn(error, spectra)
        return near - _last((spectra * self._room).sum(axis=0))

    def listen(self, near: Wave) -> None:
        """A frame of the microphone while nothing is played: what is heard then is no echo."""
        self._near = np.maximum(self._smoothed(np.fft.rfft(near, 2 * FRAME).astype(np.complex64, copy=False)), LEAST)

    def _smoothed(self, spectrum: _Spectra) -> Wave:
        power: Wave = spectrum.real**2 + spectrum.imag**2
        return np.float32(MEMORY) * self._near + np.float32(1 - MEMORY) * power

    def _heard(self, far: Wave) -> _Spectra:
        """The spectra of the far end, latest first."""
        self._window = np.concatenate([self._window[FRAME:], far])
        if self._newest == 0:
            self._far[3 * PARTS + 1 :] = self._far[: PARTS - 1]
            self._newest = 3 * PARTS + 1
        self._newest -= 1
        self._far[self._newest] = np.fft.rfft(self._window)
        return self._far[self._newest : self._newest + PARTS]

    def _learn(self, error: Wave, spectra: _Spectra) -> None:
        """One step of the filter: the error's share that the room explains, by how unsure of it we are, corrects it."""
        power = spectra.real**2 + spectra.imag**2
        wrong = (np.fft.rfft(error, 2 * FRAME) * _LATE).astype(np.complex64, copy=False)
        self._near = self._smoothed(wrong)
        gain = self._unsure / (0.5 * (self._unsure * power).sum(axis=0) + self._near + BARELY)
        step = np.fft.irfft(gain * np.conj(spectra) * wrong, axis=1)
        step[:, FRAME:] = 0.0  # the room's parts are no longer than a frame
        self._room = (STEADY * (self._room + np.fft.rfft(step, axis=1))).astype(np.complex64, copy=False)
        known = self._room.real**2 + self._room.imag**2
        left = STEADY**2 * (1 - 0.5 * gain * power)
        self._unsure = left * self._unsure + (1 - STEADY**2) * known + BARELY


def _last(spectrum: NDArray[np.complex64]) -> Wave:
    """The frame that a block of two gives by overlap-save."""
    return np.fft.irfft(spectrum)[FRAME:].astype(np.float32, copy=False)


_LATE = np.where(np.arange(_BINS) % 2, -1, 1).astype(np.float32)
"""Moves [error, silence] to [silence, error] in a block of 2 * FRAME."""
