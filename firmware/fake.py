"""A sound card made of arrays: the real interface, in virtual time or paced like a real one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from threading import Lock
from typing import Literal

import numpy as np

from firmware import wav
from firmware.frame import FRAME, NOTHING, RATE, Frame, Pcm, to_pcm, to_wave
from firmware.mixer import Mixer
from firmware.resample import Resampler
from firmware.sound import gone, silent

PATIENCE = 60.0
"""Seconds: in virtual time it is the listener, busy with real models, who moves the clock."""

Room = Callable[[Pcm], Pcm]
"""What the microphone hears of a frame that is played, int16 [FRAME] at RATE: a delay, an impulse response."""


@dataclass(frozen=True, slots=True)
class Mishap:
    """At sample `at` the device vanishes, falls silent, or loses `frames` frames."""

    at: int
    kind: Literal["vanish", "silence", "overrun"]
    frames: int = 0


class Fake:
    """A `Sound` whose microphone hears `source` and whose loudspeaker is remembered.

    `source` is a recording's path, int16 mono [n] at RATE, or an iterable of such pieces: a generator may look at
    `played` to decide what is said next. `tail` seconds of silence follow, None for silence until `close`.

    Time is virtual: each captured frame plays one frame, and when nobody listens whoever waits for the loudspeaker
    moves the clock. With `pace` the clock runs at that multiple of real time.
    """

    def __init__(
        self,
        source: Pcm | str | Path | Iterable[Pcm],
        *,
        tail: float | None = 1.0,
        pace: float | None = None,
        rate: int = RATE,
        capacity: float = 60.0,
        room: Room | None = None,
        mishaps: Iterable[Mishap] = (),
    ) -> None:
        if rate % 100 or (room is not None and rate != RATE):
            raise ValueError(f"a rate of {rate} cannot be played frame by frame here")
        self._source = _pieces(source)
        self._tail = tail
        self._pace = pace
        self._room = room
        self._mishaps = sorted(mishaps, key=lambda mishap: mishap.at)
        self.mixer = Mixer(rate)
        self.mixer.attach(rate, patience=PATIENCE, wait=self._pass)
        self.player = self.mixer.player("speech", capacity=capacity)
        self._reference = Resampler(rate, RATE)
        self._output: list[Pcm] = []
        self._ticking = Lock()
        self._listening = self._gone = self._closed = False
        self._started: float | None = None

    @property
    def now(self) -> int:
        """The device clock, in samples at RATE."""
        return self.mixer.clock * RATE // self.mixer.rate

    def output(self) -> Pcm:
        """What the loudspeaker has put out since the start, silence included: int16 [n] at `rate`. Sample i was heard
        at time i / rate on the device clock."""
        return np.concatenate([np.zeros(0, np.int16), *self._output])

    def frames(self) -> Iterator[Frame]:
        self._listening = True
        losing = lost = 0
        far = NOTHING
        try:
            for near in self._near():
                at = self.now
                losing += self._strike(at)
                played = self._tick()
                heard = self._mix(near, played)
                far = np.concatenate([far, to_pcm(self._reference.push(to_wave(played)))])
                if self._closed:
                    return
                if losing:
                    losing, lost = losing - 1, lost + 1
                    continue
                yield Frame(at, heard, lost, far)
                lost, far = 0, NOTHING
        finally:
            self._listening = False

    def close(self) -> None:
        self._closed = True
        self.player.flush()

    def _near(self) -> Iterator[Pcm]:
        """The source in frames, the last one padded, then the tail."""
        held = np.zeros(0, np.int16)
        for piece in self._source:
            held = np.concatenate([held, piece])
            while len(held) >= FRAME:
                yield held[:FRAME]
                held = held[FRAME:]
        if len(held):
            yield np.pad(held, (0, FRAME - len(held)))
        silence = np.zeros(FRAME, np.int16)
        yield from repeat(silence) if self._tail is None else repeat(silence, round(self._tail * 100))

    def _strike(self, at: int) -> int:
        """Lets what is due at `at` happen; returns the number of frames that it loses."""
        lost = 0
        while self._mishaps and self._mishaps[0].at <= at:
            mishap = self._mishaps.pop(0)
            if mishap.kind == "overrun":
                lost += mishap.frames
            else:
                self._gone = mishap.kind == "vanish"
                raise gone("microphone") if self._gone else silent(at / RATE)
        return lost

    def _mix(self, near: Pcm, played: Pcm) -> Pcm:
        if self._room is None:
            return near
        heard: Pcm = np.clip(near.astype(np.int32) + self._room(played), -32768, 32767).astype(np.int16)
        return heard

    def _tick(self) -> Pcm:
        """One frame of time: the loudspeaker takes a frame."""
        with self._ticking:
            if self._pace is not None:
                now = time.monotonic()
                self._started = self._started or now
                time.sleep(max(0.0, self._started + self.mixer.clock / self.mixer.rate / self._pace - now))
            played = self.mixer.take(self.mixer.rate // 100)
            self._output.append(played)
            return played

    def _pass(self) -> None:
        if self._gone:
            raise gone("loudspeaker")
        if self._listening:
            time.sleep(0.001)
        else:
            self._tick()


def _pieces(source: Pcm | str | Path | Iterable[Pcm]) -> Iterable[Pcm]:
    if isinstance(source, str | Path):
        return (frame.samples for frame in wav.frames(source))
    return [source] if isinstance(source, np.ndarray) else source
