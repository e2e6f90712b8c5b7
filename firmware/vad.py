"""Voice detection: sound to probability (Silero, whose graph is run by an injected `infer`), probability to edges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from firmware.frame import RATE, Frame, Pcm, Wave, to_wave

WINDOW = 512
"""Samples that the detector judges at once (32 ms)."""

CONTEXT = 64
"""Samples of the window before that it is shown too."""

Infer = Callable[[Mapping[str, NDArray[Any]]], Mapping[str, NDArray[Any]]]

_SR = np.array(RATE, np.int64)


class Vad:
    """The probability [0, 1] that the sound holds speech, for frames of any length; the state is one stream's.

    `infer` takes `input` float32 [1, CONTEXT + WINDOW], `state` float32 [2, 1, 128] and `sr` int64 [], and gives
    `output` float32 [1, 1] and `stateN` like `state`.
    """

    def __init__(self, infer: Infer) -> None:
        self._infer = infer
        self.reset()

    def reset(self) -> None:
        self._state = np.zeros((2, 1, 128), np.float32)
        self._held: Wave = np.zeros(CONTEXT, np.float32)
        self.probability = 0.0

    def push(self, frame: Frame) -> float:
        """The probability at the last window that is complete."""
        self.windows(frame.samples if frame.strict is None else frame.strict)
        return self.probability

    def windows(self, samples: Pcm) -> list[float]:
        """The probability of each window that `samples` completes."""
        self._held = np.concatenate([self._held, to_wave(samples)])
        found = []
        while len(self._held) >= CONTEXT + WINDOW:
            found.append(self._judge(self._held[: CONTEXT + WINDOW]))
            self._held = self._held[WINDOW:]
        return found

    def _judge(self, window: Wave) -> float:
        outputs = self._infer({"input": window[None], "state": self._state, "sr": _SR})
        self._state = outputs["stateN"]
        self.probability = float(outputs["output"][0, 0])
        return self.probability


@dataclass(frozen=True, slots=True)
class Edge:
    """`at` is the sample, counted from the last reset, at which speech began, stopped or went on."""

    kind: Literal["started", "paused", "resumed"]
    at: int


class Hysteresis:
    """Turns probabilities into edges. Counts samples, knows no clock and no frame: any split gives the same edges.

    Speech has started when the probability has been at `start` or above for `min_speech` samples without silence among
    them. Silence begins where it falls under `stop`, or stays under `start` for `doubt` samples: steady noise that is
    taken for half a voice does not hold a turn open. What is shorter than `resume` samples (one window of the
    detector) does not interrupt a silence. `reset` ends the speech.

    `speech` is the number of samples since speech began, or might have begun; `silence` since it paused, or 0.
    """

    def __init__(
        self,
        *,
        start: float = 0.5,
        stop: float = 0.35,
        min_speech: int = 90 * RATE // 1000,
        resume: int = 50 * RATE // 1000,
        doubt: int = 400 * RATE // 1000,
    ) -> None:
        if not 0.0 <= stop <= start <= 1.0:
            raise ValueError(f"thresholds must be 0 <= stop <= start <= 1, not {stop} and {start}")
        self._start, self._stop = start, stop
        self._min_speech, self._resume, self._doubt = min_speech, resume, doubt
        self.reset()

    def reset(self) -> None:
        self.now = 0
        self.speaking = False
        self.speech = 0
        self._below = 0
        self._quiet = False
        self._rise = 0

    @property
    def silence(self) -> int:
        return self._below if self._quiet else 0

    def step(self, probability: float, samples: int) -> Edge | None:
        """Takes the probability of the next `samples`; at most one edge follows."""
        self.now += samples
        if not self.speaking:
            return self._wait(probability, samples)
        self.speech += samples
        if probability >= self._start:
            return self._rising(samples)
        return self._falling(probability, samples)

    def _wait(self, probability: float, samples: int) -> Edge | None:
        if probability >= self._start:
            self._rise += samples
            self._below = 0
        else:
            self._below += samples
            if probability < self._stop or self._below >= self._doubt or self._rise == 0:
                self.speech = self._rise = self._below = 0
                return None
        self.speech += samples
        if self._rise < self._min_speech:
            return None
        self.speaking = True
        return Edge("started", self.now - self.speech)

    def _rising(self, samples: int) -> Edge | None:
        self._rise += samples
        if self._quiet and self._rise < self._resume:
            return None
        resumed = self._quiet
        self._quiet, self._below = False, 0
        return Edge("resumed", self.now - self._rise) if resumed else None

    def _falling(self, probability: float, samples: int) -> Edge | None:
        if self._quiet:
            self._below += self._rise
        self._rise = 0
        self._below += samples
        if self._quiet or (probability >= self._stop and self._below < self._doubt):
            return None
        self._quiet = True
        return Edge("paused", self.now - self._below)
