"""Everything that the box plays, in one place: players with queues of their own, ducked, mixed and counted.

A device asks `take`, and what it took is the echo canceller's reference: no sound leaves the box by another way.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from firmware.fault import DeviceFault
from firmware.frame import RATE, Pcm, Wave, to_pcm, to_wave
from firmware.resample import Resampler, resample

PATIENCE = 4.0
"""Seconds without any progress after which a loudspeaker is given up: a device that is opened again takes up to 3."""

FADE = 0.005
"""Seconds over which a player that is held falls silent and comes back: a cut would click."""

DUCKED = -15.0
"""dB of players that give way, while somebody has asked them to."""

RAMP = 0.05
"""Seconds that ducking takes, down or up."""

REST = 2.0
"""Seconds of silence after which a sink may have gone to sleep, and is woken by the lead-in first."""

Wait = Callable[[], None]


class _Line:
    """What was queued since the last flush. `given` is counted by the one who plays, `taken` by the device."""

    def __init__(self) -> None:
        self.queue: deque[Pcm] = deque()
        self.head: Pcm = np.zeros(0, np.int16)
        self.given = self.taken = 0
        self.resampler: Resampler | None = None
        self.ended = self.dry = False

    def add(self, piece: Pcm) -> None:
        self.given += len(piece)
        self.queue.append(piece)

    def peek(self, count: int) -> Pcm:
        """Up to `count` samples of the head, which stay."""
        if not len(self.head) and self.queue:
            self.head = self.queue.popleft()
        return self.head[:count]

    def take(self, count: int) -> Pcm:
        """`count` samples, or what there is."""
        parts, filled = [], 0
        while filled < count and len(part := self.peek(count - filled)):
            parts.append(part)
            filled += len(part)
            self.head = self.head[len(part) :]
        self.taken += filled
        return np.concatenate(parts) if parts else self.head[:0]


class Player:
    """One stream of sound among those that are mixed: a voice, an alarm, music.

    Its queue is locked by nobody: `take` runs in the device's callback and never waits. To flush is to begin a new
    line; what a late `play` still adds to the old one is never heard. All counts are samples at RATE.
    """

    def __init__(self, mixer: Mixer, capacity: float, *, ducks: bool) -> None:
        self.ducks = ducks
        self.underruns = 0
        self._mixer = mixer
        self._capacity = capacity
        self._line = _Line()
        self._held = self._silenced = False
        self._taken = self._heard = 0
        self._history: deque[tuple[int, int]] = deque()

    @property
    def played(self) -> int:
        """How much of what was given to `play` has been heard; only ever grows."""
        return self._heard * RATE // self._mixer.rate

    @property
    def pending(self) -> int:
        """How much of it is still to be heard."""
        line = self._line
        return (line.given - line.taken + self._taken - self._heard) * RATE // self._mixer.rate

    @property
    def held(self) -> bool:
        return self._held

    def play(self, samples: Pcm | Wave, rate: int) -> None:
        """Queues mono sound [n], int16 or float in [-1, 1], behind what is queued. Waits while the queue is full;
        returns at once, and plays no more of it, when `flush` is called meanwhile. Raises DeviceFault."""
        line = self._line
        line.ended = False
        capacity = round(self._capacity * self._mixer.rate)
        for piece in _cut(self._convert(line, samples, rate), self._mixer.rate // 10):
            self._until(line, lambda: line.given - line.taken < capacity)
            line.add(piece)

    def hold(self) -> None:
        """Falls silent within one device period and keeps its place; `resume` goes on at the same sample."""
        self._held = True

    def resume(self) -> None:
        self._held = False

    def flush(self) -> None:
        """Falls silent within one device period: what is queued is never heard. Never waits. Ends a hold."""
        self._line = _Line()
        self._held = False

    def drain(self) -> None:
        """Waits until everything queued has been heard to its last sample, or flushed."""
        line = self._line
        if line.resampler is not None:
            line.add(to_pcm(line.resampler.flush()))
        line.ended = True
        self._until(line, lambda: line.taken == line.given and self._heard == self._taken)

    def take(self, count: int) -> Pcm:
        """At most `count` samples at the device's rate. Only the mixer calls this."""
        line = self._line
        if self._held:
            return self._fade_out(line, count)
        part = line.take(count)
        if self._silenced and len(part):
            part = _ramp(part, 0.0, 1.0, self._mixer.rate)
            self._silenced = False
        self._taken += len(part)
        dry = len(part) < count and line.given > 0 and not line.ended
        self.underruns += dry and not line.dry
        line.dry = dry
        return part

    def account(self, clock: int, latency: int) -> None:
        """What was taken `latency` ago has been heard by `clock`. Only the mixer calls this."""
        self._history.append((clock, self._taken))
        while self._history and self._history[0][0] <= clock - latency:
            self._heard = self._history.popleft()[1]

    def convert(self, old: int, new: int) -> None:
        """A device of another rate takes over: what is queued is resampled, the counts are scaled."""
        line = self._line
        fresh = _Line()
        fresh.ended = line.ended
        if waiting := [line.head, *line.queue]:
            fresh.add(to_pcm(resample(to_wave(np.concatenate(waiting)), old, new)))
        fresh.taken = line.taken * new // old
        fresh.given += fresh.taken
        self._taken = self._heard = self._taken * new // old
        self._history.clear()
        self._line = fresh

    def _fade_out(self, line: _Line, count: int) -> Pcm:
        """The next samples, fading, which stay in the queue: after a resume they are heard in full."""
        silenced, self._silenced = self._silenced, True
        if silenced:
            return line.head[:0]
        return _ramp(line.peek(min(count, round(FADE * self._mixer.rate))), 1.0, 0.0, self._mixer.rate)

    def _convert(self, line: _Line, samples: Pcm | Wave, rate: int) -> Pcm:
        """A line has one resampler; where the rate changes, the old one gives its tail first."""
        tail = np.zeros(0, np.int16)
        if line.resampler is None or (line.resampler.source, line.resampler.target) != (rate, self._mixer.rate):
            if line.resampler is not None:
                tail = to_pcm(line.resampler.flush())
            line.resampler = Resampler(rate, self._mixer.rate)
        return np.concatenate([tail, to_pcm(line.resampler.push(to_wave(samples)))])

    def _until(self, line: _Line, done: Callable[[], bool]) -> None:
        """Waits for `done` or a flush. Raises DeviceFault when the device has not asked for anything for too long."""
        mixer = self._mixer
        clock, since = mixer.clock, time.monotonic()
        while not done() and line is self._line:
            mixer.wait()
            if mixer.clock != clock:
                clock, since = mixer.clock, time.monotonic()
            elif time.monotonic() - since > mixer.patience:
                raise DeviceFault("the loudspeaker has stopped taking sound", "check the sound server, then try again")


class Mixer:
    """What a loudspeaker takes: the sum of all players, mono. `clock` counts the samples taken at `rate`.

    It outlives the devices: `attach` is called by each that is opened. `latency` samples lie between taking and
    hearing: the device corrects it. `wait` passes a moment for a caller that has to wait.
    """

    def __init__(self, rate: int = 48_000) -> None:
        self.rate = rate
        self.clock = 0
        self.latency = 0
        self.patience = PATIENCE
        self.wait: Wait = lambda: time.sleep(0.005)
        self._lead = self._leading = 0
        self._silence = 0
        self._players: dict[str, Player] = {}
        self._ducking = 0
        self._gain = 1.0

    def attach(
        self,
        rate: int,
        *,
        latency: int = 0,
        lead_in: float = 0.0,
        patience: float = PATIENCE,
        wait: Wait | None = None,
    ) -> None:
        """A loudspeaker of `rate` takes over. `lead_in` seconds of silence are sent in front of what follows a rest:
        sinks that wake up slowly swallow them instead of the first word."""
        if rate != self.rate:
            for player in self._players.values():
                player.convert(self.rate, rate)
            self.clock = self.clock * rate // self.rate
        self.rate, self.latency, self.patience = rate, latency, patience
        self.wait = wait or self.wait
        self._lead = round(lead_in * rate)
        self._silence = round(REST * rate)

    def player(self, name: str, *, ducks: bool = False, capacity: float = 1.0) -> Player:
        """The player of that name, made when it is first asked for; it waits when `capacity` seconds are queued, and
        with `ducks` it gives way while somebody ducks."""
        if name not in self._players:
            self._players = {**self._players, name: Player(self, capacity, ducks=ducks)}
        return self._players[name]

    @property
    def pending(self) -> int:
        """Samples at RATE until the last player has been heard to its end."""
        return max((player.pending for player in self._players.values()), default=0)

    @property
    def underruns(self) -> int:
        return sum(player.underruns for player in self._players.values())

    @contextmanager
    def duck(self) -> Iterator[None]:
        """Players that give way are quiet inside; counted, so that two who duck do not undo one another."""
        self._ducking += 1
        try:
            yield
        finally:
            self._ducking -= 1

    def take(self, count: int) -> Pcm:
        """The next `count` samples, silence where there are none. Only the device calls this; it never waits."""
        players = tuple(self._players.values())
        out = np.zeros(count, np.int32)
        gain = self._ramped(count)
        skip = self._lead_in(players, count)
        for player in players:
            part = player.take(count - skip)
            if not len(part):
                continue
            quiet = player.ducks and gain is not None
            out[skip : skip + len(part)] += (part * gain[: len(part)]).astype(np.int32) if quiet else part  # type: ignore[index]
        self.clock += count
        for player in players:
            player.account(self.clock, self.latency)
        self._silence = 0 if out.any() else self._silence + count
        mixed: Pcm = np.clip(out, -32768, 32767).astype(np.int16)
        return mixed

    def _lead_in(self, players: tuple[Player, ...], count: int) -> int:
        """How many of the next samples are a lead-in."""
        if not self._lead:
            return 0
        if self._leading == 0 and self._silence >= REST * self.rate and any(p.pending and not p.held for p in players):
            self._leading = self._lead
        skip = min(self._leading, count)
        self._leading -= skip
        if skip and not self._leading:
            self._silence = 0
        return skip

    def _ramped(self, count: int) -> Wave | None:
        """The gain of players that give way over the next `count` samples [count]; None where it is 1."""
        target = 10 ** (DUCKED / 20) if self._ducking else 1.0
        if np.isclose(self._gain, target):
            return None if target == 1.0 else np.full(count, target, np.float32)
        steps = (1.0 - 10 ** (DUCKED / 20)) / (RAMP * self.rate) * np.arange(1, count + 1)
        sign = 1 if target > self._gain else -1
        low, high = sorted((self._gain, target))
        gain: Wave = np.clip(self._gain + sign * steps, low, high).astype(np.float32)
        self._gain = float(gain[-1]) if count else self._gain
        return gain


def _ramp(part: Pcm, start: float, end: float, rate: int) -> Pcm:
    """`part` with its first FADE seconds going from one gain to the other."""
    length = round(FADE * rate)
    gain = np.full(len(part), end, np.float32)
    gain[:length] = np.linspace(start, end, length, dtype=np.float32)[: len(part)]
    return (part * gain).astype(np.int16)


def _cut(samples: Pcm, size: int) -> Iterator[Pcm]:
    for start in range(0, len(samples), size):
        yield samples[start : start + size]
