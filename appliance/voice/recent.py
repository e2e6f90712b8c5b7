"""The last seconds of a stream: its sound, and when each frame arrived."""

from __future__ import annotations

import time
from collections import deque

import numpy as np

from appliance.events import Heard
from firmware.frame import FRAME, RATE, Wave, to_wave


class Recent:
    """The last `capacity` samples of a stream, as float32 in [-1, 1]."""

    def __init__(self, capacity: int) -> None:
        self._frames: deque[Heard] = deque()
        self._size = 0
        self._capacity = capacity

    def push(self, heard: Heard) -> None:
        self._frames.append(heard)
        self._size += len(heard.samples)
        while self._size - len(self._frames[0].samples) >= self._capacity:
            self._size -= len(self._frames.popleft().samples)

    def since(self, at: int) -> list[Heard]:
        """The frames that end behind sample `at`, oldest first."""
        return [heard for heard in self._frames if heard.at + len(heard.samples) > at]

    def wave(self, pad: int = 0) -> Wave:
        """What is remembered, followed by `pad` samples of silence."""
        return to_wave(np.concatenate([*(heard.samples for heard in self._frames), np.zeros(pad, np.int16)]))


class Arrivals:
    """When the last few seconds of frames came in, so that a point in the sound can be placed on the wall clock."""

    def __init__(self, seconds: float = 5.0) -> None:
        self._walls: deque[tuple[int, float]] = deque(maxlen=int(seconds * RATE / FRAME))

    def push(self, heard: Heard) -> None:
        self._walls.append((heard.at + len(heard.samples), time.monotonic()))

    def wall(self, at: int) -> float:
        """Seconds on the monotonic clock at which sample `at` had been received."""
        for end, wall in self._walls:
            if end >= at:
                return wall
        return time.monotonic()
