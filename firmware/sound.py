"""Sound in and out: the interface of every device, and the queue in front of a loudspeaker."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from firmware.fault import DeviceFault
from firmware.frame import RATE, Frame, Pcm, Wave, to_pcm, to_wave
from firmware.resample import Resampler

PATIENCE = 2.0
"""Seconds without any progress after which a device is given up."""


def gone(what: str) -> DeviceFault:
    return DeviceFault(f"the {what} is gone", "plug it in again, or choose another: `parley doctor` lists them")


def silent(seconds: float) -> DeviceFault:
    return DeviceFault(
        f"the microphone went silent after {seconds:.1f} s: it sends no sound any more",
        "it is opened again; if that does not help, check the cable and the sound server",
    )


class Sound(Protocol):
    """A microphone and a loudspeaker on one clock. Any thread may call any method; each raises DeviceFault when the
    device is gone, and the owner opens another."""

    rate: int
    """Samples per second at the loudspeaker."""

    @property
    def played(self) -> int:
        """How much of what was given to `play` has been heard, as a number of samples at RATE; only ever grows."""

    @property
    def pending(self) -> int:
        """How much of it is still to be heard, as a number of samples at RATE."""

    def frames(self) -> Iterator[Frame]:
        """The microphone, frame by frame; waits for each."""

    def play(self, samples: Pcm | Wave, rate: int) -> None:
        """Queues mono sound [n], int16 or float in [-1, 1], behind what is queued. Waits while the queue is full;
        returns at once, and plays no more of it, when `flush` is called meanwhile."""

    def flush(self) -> None:
        """Silences the loudspeaker within one device period: what is queued is never heard. Never waits."""

    def drain(self) -> None:
        """Waits until everything queued has been heard to its last sample, or flushed."""

    def close(self) -> None:
        """Ends `frames` and frees the device."""


class _Line:
    """What was queued since the last flush. `given` is counted by the one who plays, `taken` by the device."""

    def __init__(self) -> None:
        self.queue: deque[Pcm] = deque()
        self.head: Pcm = np.zeros(0, np.int16)
        self.given = self.taken = 0
        self.resampler: Resampler | None = None

    def add(self, piece: Pcm) -> None:
        self.given += len(piece)
        self.queue.append(piece)


class Playback:
    """The queue between `play` and a device that asks for samples, at the device's `rate`.

    `take` runs in the device's callback and never waits: nothing here is locked. To flush is to begin a new line; what
    a late `play` still adds to the old one is never heard. `latency` samples at `rate` lie between taking and hearing:
    the device corrects it. `wait` passes a moment for a caller that has to wait, `capacity` is in seconds.
    """

    def __init__(
        self,
        rate: int,
        *,
        capacity: float = 1.0,
        latency: int = 0,
        patience: float = PATIENCE,
        wait: Callable[[], None] = lambda: time.sleep(0.005),
    ) -> None:
        self.rate = rate
        self.clock = 0
        self._capacity = round(capacity * rate)
        self.latency = latency
        self._patience = patience
        self._wait = wait
        self._line = _Line()
        self._taken = 0
        self._heard = 0
        self._history: deque[tuple[int, int]] = deque()

    @property
    def played(self) -> int:
        return self._heard * RATE // self.rate

    @property
    def pending(self) -> int:
        line = self._line
        return (line.given - line.taken + self._taken - self._heard) * RATE // self.rate

    def take(self, count: int) -> Pcm:
        """The next `count` samples, silence where there are none. Only the device calls this."""
        line = self._line
        out = np.zeros(count, np.int16)
        filled = 0
        while filled < count and (len(line.head) or line.queue):
            if not len(line.head):
                line.head = line.queue.popleft()
            part = line.head[: count - filled]
            out[filled : filled + len(part)] = part
            filled += len(part)
            line.head = line.head[len(part) :]
        line.taken += filled
        self._taken += filled
        self.clock += count
        self._history.append((self.clock, self._taken))
        while self._history and self._history[0][0] <= self.clock - self.latency:
            self._heard = self._history.popleft()[1]
        return out

    def play(self, samples: Pcm | Wave, rate: int) -> None:
        line = self._line
        for piece in _cut(self._convert(line, samples, rate), self.rate // 10):
            self._until(line, lambda: line.given - line.taken < self._capacity)
            line.add(piece)

    def flush(self) -> None:
        self._line = _Line()

    def drain(self) -> None:
        line = self._line
        if line.resampler is not None:
            line.add(to_pcm(line.resampler.flush()))
        self._until(line, lambda: line.taken == line.given and self._heard == self._taken)

    def _convert(self, line: _Line, samples: Pcm | Wave, rate: int) -> Pcm:
        """A line has one resampler; where the rate changes, the old one gives its tail first."""
        tail = np.zeros(0, np.int16)
        if line.resampler is None or line.resampler.source != rate:
            if line.resampler is not None:
                tail = to_pcm(line.resampler.flush())
            line.resampler = Resampler(rate, self.rate)
        return np.concatenate([tail, to_pcm(line.resampler.push(to_wave(samples)))])

    def _until(self, line: _Line, done: Callable[[], bool]) -> None:
        """Waits for `done` or a flush. Raises DeviceFault when the device has not asked for anything for too long."""
        clock, since = self.clock, time.monotonic()
        while not done() and line is self._line:
            self._wait()
            if self.clock != clock:
                clock, since = self.clock, time.monotonic()
            elif time.monotonic() - since > self._patience:
                raise DeviceFault("the loudspeaker has stopped taking sound", "check the sound server, then try again")


def _cut(samples: Pcm, size: int) -> Iterator[Pcm]:
    for start in range(0, len(samples), size):
        yield samples[start : start + size]
