"""A sound card made of arrays: the real interface, in virtual time or paced like a real one, with its faults."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat, zip_longest
from pathlib import Path
from threading import Lock
from typing import Literal

import numpy as np

from firmware import wav
from firmware.fault import DeviceFault
from firmware.frame import FRAME, NOTHING, RATE, Frame, Pcm, Wave, to_pcm, to_wave
from firmware.mixer import REST, Mixer
from firmware.resample import Resampler
from firmware.room import Room
from firmware.sound import gone, silent

SLOW = 60.0
"""Seconds: in virtual time it is the listener, busy with real models, who moves the clock."""

LATE = 1.5
"""Seconds without sound after which a card that is frozen is given up, by the real one too."""

Source = Pcm | str | Path | Iterable[Pcm]
"""A recording's path, int16 mono [n] at RATE, or an iterable of such pieces: a generator may look at what is played to
decide what is said next."""

_SILENCE: Pcm = np.zeros(FRAME, np.int16)


@dataclass(frozen=True, slots=True)
class Mishap:
    """What happens at sample `at` of the world's time.

    `unplugged` and `server` end the device at once, and until `seconds` have passed none can be opened; `moved` ends it
    too. The others last for `seconds`, or with 0 until the device is opened again: `frozen` sends no frames, `silence`
    sends exact zeros, `rate` sends frames at `speed` times the rate, and with `stalled` it is the loudspeaker that
    takes nothing. An `overrun` loses `frames` frames.
    """

    at: int
    kind: Literal["unplugged", "server", "moved", "frozen", "silence", "rate", "stalled", "overrun"]
    seconds: float = 0.0
    speed: float = 0.5
    frames: int = 0


class World:
    """Virtual time and what is said in front of the microphone: both go on while no device stands there.

    `tail` seconds of silence follow the source, None for silence without end. With `pace` time runs at that multiple of
    real time. `now` and `sleep` are a clock for whoever watches and re-opens the device.
    """

    def __init__(
        self,
        source: Source = NOTHING,
        *,
        tail: float | None = 1.0,
        pace: float | None = None,
        mishaps: Iterable[Mishap] = (),
    ) -> None:
        self.opened = 0
        self._near = _near(source, tail)
        self._mishaps = sorted(mishaps, key=lambda mishap: mishap.at)
        self._lasting: Mishap | None = None
        self._time = self._missed = 0.0
        self._pace = pace
        self._started: float | None = None

    def now(self) -> float:
        """Seconds since the beginning."""
        return self._time / RATE

    def sleep(self, seconds: float) -> None:
        """Passes time in which nobody listens."""
        self.tick(seconds * RATE)
        self._missed += seconds * RATE
        while self._missed >= FRAME:
            self._missed -= FRAME
            next(self._near, None)

    def tick(self, samples: float = FRAME) -> None:
        if self._pace is not None:
            now = time.monotonic()
            self._started = self._started or now
            time.sleep(max(0.0, self._started + self._time / RATE / self._pace - now))
        self._time += samples

    def hear(self) -> Pcm | None:
        """The next frame of the near end, None behind its end."""
        return next(self._near, None)

    def strike(self) -> Mishap | None:
        """The next mishap that is due, each once; None when there is none."""
        if not self._mishaps or self._mishaps[0].at > self._time:
            return None
        mishap = self._mishaps.pop(0)
        if mishap.seconds:
            self._lasting = mishap
        return mishap

    def lasting(self) -> Mishap | None:
        """The mishap that will not be over for some time yet, though the device is opened again."""
        return self._lasting if self._lasting and self.left(self._lasting) > 0 else None

    def left(self, mishap: Mishap) -> float:
        """Seconds until it is over; none are left of one that lasts until the device is opened again."""
        return mishap.at / RATE + mishap.seconds - self.now()


class Fake:
    """A `Sound` whose microphone hears a world, and whose loudspeaker is remembered.

    `source` is what is said (with `tail`, `pace` and `mishaps`, see `World`), or a World in which several devices are
    opened one after the other; `mixer` and `at` are then their owner's, and without `listen` the microphone is closed.

    The microphone hears the source, the echo of what the mixer took in the `room`, and white `noise` of so many dBFS;
    the sum is amplified by `preamp` dB and clipped at `clip` of full scale. A room with a drift makes the loudspeaker
    take more or fewer samples for each frame. A plain function as a room gets what is played, int16 [FRAME] at RATE,
    and returns the echo.

    The loudspeaker runs at `rate`, with a `lead_in`; it falls asleep while it gets nothing but zeros for REST seconds,
    and swallows the first `swallowed` seconds of what wakes it.

    Time is virtual: each captured frame plays one frame, and when nobody listens whoever waits for the loudspeaker
    moves the clock. Raises DeviceFault where a mishap leaves nothing to open.
    """

    def __init__(
        self,
        source: Source | World = NOTHING,
        *,
        tail: float | None = 1.0,
        pace: float | None = None,
        mishaps: Iterable[Mishap] = (),
        rate: int = RATE,
        capacity: float = 60.0,
        room: Room | Callable[[Pcm], Pcm] | None = None,
        noise: float | None = None,
        preamp: float = 0.0,
        clip: float = 1.0,
        lead_in: float = 0.0,
        swallowed: float = 0.0,
        seed: int = 0,
        mixer: Mixer | None = None,
        at: int = 0,
        listen: bool = True,
    ) -> None:
        if rate % 100 or rate < RATE or (rate != RATE and room is not None and not isinstance(room, Room)):
            raise ValueError(f"a rate of {rate} cannot be played frame by frame here")
        own = not isinstance(source, World)
        self.world = World(source, tail=tail, pace=pace, mishaps=mishaps) if not isinstance(source, World) else source
        self._ill = self.world.lasting()
        if self._ill and self._ill.kind in ("unplugged", "server"):
            raise _over(self._ill)
        self.world.opened += 1
        self.index = self.world.opened
        self._at, self._live = at, listen
        self._room = room
        self._noise = None if noise is None else 10 ** (noise / 20)
        self._random = np.random.default_rng(seed)
        self._preamp, self._clip = np.float32(10 ** (preamp / 20)), np.float32(clip)
        self._orphan = mixer is None and own  # nobody will open it again
        self.mixer = mixer or Mixer(rate)
        self.mixer.attach(rate, lead_in=lead_in, patience=SLOW, wait=self._pass)
        self.player = self.mixer.player("speech", capacity=capacity)
        self._sink = _Sink(rate, swallowed)
        self._reference = Resampler(rate, RATE)
        self._owed = 0
        self._ticking = Lock()
        self._listening = self._dead = self._closed = False

    @property
    def now(self) -> int:
        """The device clock, in samples at RATE."""
        return self._at

    def output(self) -> Pcm:
        """What the loudspeaker has put out since the start, silence included: int16 [n] at `rate`."""
        return self._sink.output()

    def frames(self) -> Iterator[Frame]:
        self._listening = True
        losing = lost = 0
        parts = [NOTHING]
        try:
            while True:
                losing += self._strike()
                if (near := self.world.hear()) is None:
                    return
                at = self._at
                far, echo = self._tick()
                parts.append(far)
                if self._closed:
                    return
                if losing:
                    losing, lost = losing - 1, lost + 1
                    continue
                yield Frame(
                    at, self._hear(near, echo), lost, np.concatenate(parts) if len(parts) > 2 else far, self._live
                )
                lost, parts = 0, [NOTHING]
        finally:
            self._listening = False

    def close(self) -> None:
        self._closed = True
        if self._orphan:
            self.player.flush()

    def _is(self, kind: str) -> bool:
        return self._ill is not None and self._ill.kind == kind

    def _strike(self) -> int:
        """Lets what is due happen; returns the number of frames that it loses."""
        lost = 0
        while mishap := self.world.strike():
            if mishap.kind == "overrun":
                lost += mishap.frames
            else:
                self._ill = mishap
        if self._ill is None:
            return lost
        if self._ill.seconds and self.world.left(self._ill) <= 0:
            self._ill = None
        elif self._ill.kind in ("unplugged", "server", "moved"):
            self._dead = True
            raise _over(self._ill)
        elif self._ill.kind == "frozen":
            left = self.world.left(self._ill)
            self.world.sleep(LATE if left <= 0 else min(LATE, left))
            if left <= 0 or left > LATE:
                self._dead = True
                fault = silent(self._at / RATE)
                fault.kind = "frozen"
                raise fault
            self._ill = None
        return lost

    def _hear(self, near: Pcm, echo: Wave | None) -> Pcm:
        """What the converter makes of it."""
        if not self._live or self._is("silence"):
            return _SILENCE
        if echo is None and self._noise is None and self._preamp == self._clip == 1:
            return near
        wave = to_wave(near)
        if echo is not None:
            wave = wave + echo
        if self._noise is not None:
            wave = wave + self._random.standard_normal(FRAME, np.float32) * np.float32(self._noise)
        return to_pcm(np.clip(wave * self._preamp, -self._clip, self._clip))

    def _tick(self) -> tuple[Pcm, Wave | None]:
        """One frame of time: what the loudspeaker takes, at RATE, and its echo; None for silence."""
        with self._ticking:
            self.world.tick(FRAME / self._ill.speed if self._ill and self._ill.kind == "rate" else FRAME)
            self._at += FRAME
            self._owed += (self._room.due if isinstance(self._room, Room) else FRAME) * self.mixer.rate
            due, self._owed = divmod(self._owed, RATE)
            taken = NOTHING if self._is("stalled") else self.mixer.take(due)
            lost = self._sink.push(taken)
            wave = self._reference.push(to_wave(taken))
            far = to_pcm(wave) if wave.any() else np.zeros(len(wave), np.int16)
            return far, self._echo(far, lost * RATE // self.mixer.rate)

    def _echo(self, far: Pcm, lost: int) -> Wave | None:
        if self._room is None:
            return None
        if lost:
            far = np.concatenate([np.zeros(lost, np.int16), far[lost:]])
        echo = self._room.hear(far) if isinstance(self._room, Room) else to_wave(self._room(far))
        return echo if echo.any() else None

    def _pass(self) -> None:
        if self._dead and self._orphan:
            raise gone("loudspeaker")
        if self._listening or ((self._dead or self._closed) and not self._orphan):
            time.sleep(0.001)
        else:
            self._tick()


class _Sink:
    """What a loudspeaker puts out: silence takes no memory."""

    def __init__(self, rate: int, swallowed: float) -> None:
        self._swallowed = round(swallowed * rate)
        self._rest = self._quiet = round(REST * rate)
        self._pieces: list[tuple[int, Pcm]] = []
        self._end = self._deaf = 0

    def push(self, taken: Pcm) -> int:
        """Returns how many samples at the head are not put out."""
        loud = taken.any()
        if loud and self._quiet >= self._rest and self._swallowed:
            self._deaf = self._swallowed + int(np.argmax(taken != 0))
        lost = min(self._deaf, len(taken))
        self._deaf -= lost
        self._quiet = 0 if loud else self._quiet + len(taken)
        if loud:
            self._pieces.append((self._end + lost, taken[lost:]))
        self._end += len(taken)
        return lost

    def output(self) -> Pcm:
        whole = np.zeros(self._end, np.int16)
        for start, piece in self._pieces:
            whole[start : start + len(piece)] = piece
        return whole


def mix(*talkers: Source | tuple[Source, float]) -> Iterator[Pcm]:
    """Several sources at once, each as it is or with a gain in dB; as long as the longest."""
    pairs = [talker if isinstance(talker, tuple) else (talker, 0.0) for talker in talkers]
    for frames in zip_longest(*(_near(source, 0.0) for source, _ in pairs), fillvalue=_SILENCE):
        waves = [to_wave(frame) * np.float32(10 ** (gain / 20)) for frame, (_, gain) in zip(frames, pairs, strict=True)]
        yield to_pcm(np.sum(waves, axis=0))


def _near(source: Source, tail: float | None) -> Iterator[Pcm]:
    """The source in frames, the last one padded, then the tail."""
    held = NOTHING
    for piece in _pieces(source):
        held = np.concatenate([held, piece])
        while len(held) >= FRAME:
            yield held[:FRAME]
            held = held[FRAME:]
    if len(held):
        yield np.pad(held, (0, FRAME - len(held)))
    yield from repeat(_SILENCE) if tail is None else repeat(_SILENCE, round(tail * 100))


def _pieces(source: Source) -> Iterable[Pcm]:
    if isinstance(source, str | Path):
        return (frame.samples for frame in wav.frames(source))
    return [source] if isinstance(source, np.ndarray) else source


def _over(mishap: Mishap) -> DeviceFault:
    """The end of a device."""
    match mishap.kind:
        case "server":
            return DeviceFault("the sound server is gone", "start it again: it is found when it is back", "server")
        case "moved":
            return DeviceFault("another microphone took this one's place", "see `parley doctor`", "moved")
    fault = gone("microphone")
    fault.kind = "unplugged"
    return fault
