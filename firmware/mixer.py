"""Everything that the box plays, in one place: players with queues of their own, ducked, mixed and counted.

A device asks `take`, and what it took is the echo canceller's reference: no sound leaves the box by another way.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

import numpy as np

from firmware.fault import DeviceFault
from firmware.frame import NOTHING, RATE, Pcm, Wave, to_pcm, to_wave
from firmware.resample import Resampler, resample

PATIENCE = 4.0
"""Seconds without any progress after which a loudspeaker is given up: a device that is opened again takes up to 3."""

FADE = 0.005
"""Seconds over which a player that is held or flushed falls silent, and comes back: a cut would click."""

DUCKED = -15.0
"""dB of players that give way, while somebody has asked them to."""

_QUIET = 10 ** (DUCKED / 20)

RAMP = 0.05
"""Seconds that ducking takes, down or up."""

REST = 2.0
"""Seconds of silence after which a sink may have gone to sleep, and is woken by the lead-in first."""

Wait = Callable[[], None]


class _Line:
    """What was queued since the last flush. `queue`, `given` and `ended` (nothing more is expected) belong to those who
    play, the rest to the device: the last take was filled (`sounding`), a hold has faded it out (`faded`), it has run
    dry. `before` is the line that was flushed for this one, until it is faded out."""

    def __init__(self, before: _Line | None = None) -> None:
        self.queue: deque[Pcm] = deque()
        self.given = 0
        self.resampler: Resampler | None = None
        self.ended = self.held = False
        self.head: Pcm = NOTHING
        self.taken = 0
        self.sounding = self.faded = self.dry = False
        self.before = before

    @property
    def ready(self) -> bool:
        return self.given > self.taken and not self.held

    def add(self, piece: Pcm) -> None:
        self.queue.append(piece)  # first: a count without the sound would look like an under-run
        self.given += len(piece)
        self.ended = False

    def peek(self, count: int) -> Pcm:
        """`count` samples, or what there is, which stay."""
        if len(self.head) < count and self.queue:
            parts, filled = [self.head], len(self.head)
            while filled < count and self.queue:
                parts.append(self.queue.popleft())
                filled += len(parts[-1])
            self.head = np.concatenate(parts)
        return self.head[:count]

    def drop(self, count: int) -> None:
        self.head = self.head[count:]
        self.taken += count

    def fade_out(self, length: int) -> Pcm:
        """The next samples, fading, if it was sounding: they stay, and after a resume they are heard in full."""
        if not self.sounding:
            return NOTHING
        self.sounding, self.faded = False, True
        return _ramp(self.peek(length), 1.0, 0.0, length)


class Player:
    """One stream of sound among those that are mixed: a voice, an alarm, music.

    The device's callback never waits: what is queued is locked among those who play, hold and flush, not against
    `take`. To flush is to begin a new line; what a late `play` still adds to the old one is never heard. All counts are
    samples at RATE.
    """

    def __init__(self, mixer: Mixer, capacity: float, *, ducks: bool) -> None:
        self.ducks = ducks
        self.underruns = 0
        self._mixer = mixer
        self._capacity = capacity
        self._rate = mixer.rate
        self._lock = Lock()
        self._line = _Line()
        self._taken = self._heard = 0
        self._played = self._before = 0
        self._history: deque[tuple[int, int]] = deque()

    @property
    def played(self) -> int:
        """How much of what was given to `play` has been heard; only ever grows."""
        return self._played

    @property
    def pending(self) -> int:
        """How much of it is still to be heard."""
        line = self._line
        return max(0, line.given - line.taken + self._taken - self._heard) * RATE // self._rate

    @property
    def ready(self) -> bool:
        """Whether the next take would sound."""
        return self._line.ready

    @property
    def held(self) -> bool:
        return self._line.held

    def play(self, samples: Pcm | Wave, rate: int) -> None:
        """Queues mono sound [n], int16 or float in [-1, 1], behind what is queued. Waits while the queue is full;
        returns at once, and plays no more of it, when `flush` is called meanwhile. Raises DeviceFault."""
        line = self._line
        for piece in _cut(samples, max(1, rate // 10)):
            self._until(line, lambda: line.given - line.taken < self._capacity * self._rate)
            with self._lock:
                line.add(self._convert(line, piece, rate))

    def hold(self) -> None:
        """Falls silent within one device period and keeps its place; `resume` goes on at the same sample."""
        self._line.held = True

    def resume(self) -> None:
        self._line.held = False

    def flush(self) -> None:
        """Falls silent within one device period: what is queued is never heard. Never waits. Ends a hold."""
        line = self._line
        self._line = _Line(line.before or line)

    def end(self) -> None:
        """What was queued is whole: nothing is missing behind it. Never waits."""
        self._end(self._line)

    def drain(self) -> None:
        """Ends, and waits until everything queued has been heard to its last sample, or flushed."""
        line = self._line
        self._end(line)
        self._until(line, lambda: line.taken == line.given and self._heard == self._taken)

    def _end(self, line: _Line) -> None:
        with self._lock:
            if line.resampler is not None:
                line.add(to_pcm(line.resampler.flush()))
            line.ended = True

    def take(self, count: int) -> Pcm:
        """At most `count` samples at the device's rate. Only the mixer calls this."""
        line, fade = self._line, round(FADE * self._rate)
        part = line.fade_out(min(fade, count)) if line.held else self._next(line, count, fade)
        if line.before is not None:
            part, line.before = _sum([part, line.before.fade_out(min(fade, count))]), None
        return part

    def account(self, clock: int, latency: int) -> None:
        """What was taken `latency` ago has been heard by `clock`. Only the mixer calls this."""
        history = self._history
        if self._taken != (history[-1][1] if history else self._heard):
            history.append((clock, self._taken))
        if history and history[0][0] <= clock - latency:
            while history and history[0][0] <= clock - latency:
                self._heard = history.popleft()[1]
            self._played = self._before + self._heard * RATE // self._rate

    def convert(self, rate: int) -> None:
        """A device of another rate takes over: what is queued is resampled; what the old one had taken counts as heard.
        Only the mixer calls this, while no device takes."""
        with self._lock:
            line = self._line
            if line.resampler is not None:
                line.queue.append(to_pcm(line.resampler.flush()))
            waiting = to_wave(np.concatenate([line.head, *line.queue]))
            line.queue.clear()
            line.head, line.resampler = to_pcm(resample(waiting, self._rate, rate)), None
            line.given, line.taken = len(line.head), 0
            self._played = self._before = self._before + self._taken * RATE // self._rate
            self._taken = self._heard = 0
            self._history.clear()
            self._rate = rate

    def _next(self, line: _Line, count: int, fade: int) -> Pcm:
        part = line.peek(count)
        self._taken += len(part)  # before the line's: whoever drains must not see that nothing is left while this is
        line.drop(len(part))
        line.sounding = len(part) == count
        dry = not line.sounding and line.given > 0 and not line.ended
        self.underruns += dry and not line.dry
        line.dry = dry
        if line.faded and len(part):
            line.faded = False
            part = _ramp(part, 0.0, 1.0, fade)
        return part

    def _convert(self, line: _Line, samples: Pcm | Wave, rate: int) -> Pcm:
        """A line has one resampler; where the rate changes, the old one gives its tail first."""
        tail = NOTHING
        if line.resampler is None or line.resampler.source != rate:
            if line.resampler is not None:
                tail = to_pcm(line.resampler.flush())
            line.resampler = Resampler(rate, self._rate)
        return np.concatenate([tail, to_pcm(line.resampler.push(to_wave(samples)))])

    def _until(self, line: _Line, done: Callable[[], bool]) -> None:
        """Waits for `done` or a flush. Raises DeviceFault when the device has not asked for anything for too long."""
        mixer = self._mixer
        clock, since = mixer.clock, time.monotonic()
        while line is self._line:
            with self._lock:
                if done():
                    return
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
        self.wait: Wait = _pause
        self._lock = Lock()
        self._players: dict[str, Player] = {}
        self._lead = _Lead(0)
        self._silence = 0
        self._ducking = 0
        self._gain = 1.0
        self.volume = 1.0
        """Gain of everything that is played, [0, 1]; what a microphone may hear of it is counted with it."""

    def attach(
        self,
        rate: int,
        *,
        latency: int = 0,
        lead_in: float = 0.0,
        patience: float = PATIENCE,
        wait: Wait | None = None,
    ) -> None:
        """A loudspeaker of `rate` takes over, after the one before has stopped taking."""
        with self._lock:
            if rate != self.rate:
                for player in self._players.values():
                    player.convert(rate)
                self.clock = self.clock * rate // self.rate
            self.rate, self.latency, self.patience, self.wait = rate, latency, patience, wait or _pause
            self._silence = round(REST * rate)
        self.lead_in(lead_in)

    def lead_in(self, seconds: float) -> None:
        """So much is sent in front of what follows a rest: sinks that wake up slowly swallow it instead of the first
        word. It is noise of one bit, since there are sinks that sleep for as long as they get zeros. May be changed
        while the loudspeaker takes."""
        self._lead = _Lead(round(seconds * self.rate))

    def player(self, name: str, *, ducks: bool = False, capacity: float = 1.0) -> Player:
        """The player of that name, made when it is first asked for; it waits when `capacity` seconds are queued, and
        with `ducks` it gives way while somebody ducks."""
        with self._lock:
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
        with self._lock:
            self._ducking += 1
        try:
            yield
        finally:
            with self._lock:
                self._ducking -= 1

    def take(self, count: int) -> Pcm:
        """The next `count` samples, silence where there are none. Only the device calls this; it never waits."""
        players = tuple(self._players.values())
        gain = self._gains(count)
        lead = self._lead
        if self._silence >= REST * self.rate and any(player.ready for player in players):
            lead.begin()
        waking = lead.take(count)
        skip = len(waking)
        parts = [self._quieter(player, player.take(count - skip), gain, skip) for player in players if skip < count]
        sound = _sum(parts)
        if self.volume != 1.0:
            sound = np.asarray(np.rint(sound * np.float32(self.volume)), np.int16)
        mixed: Pcm = np.zeros(count, np.int16)
        mixed[:skip] = waking
        mixed[skip : skip + len(sound)] = sound
        self.clock += count
        for player in players:
            player.account(self.clock, self.latency)
        self._silence = 0 if mixed.any() else self._silence + count
        return mixed

    def _gains(self, count: int) -> Wave | None:
        """The gain of players that give way over the next `count` samples [count]; None where it is 1."""
        target = _QUIET if self._ducking else 1.0
        if self._gain == target == 1.0 or not count:
            return None
        step = (1.0 - _QUIET) / (RAMP * self.rate) * (1 if target > self._gain else -1)
        gain = self._gain + step * np.arange(1, count + 1)
        gain = np.minimum(gain, target) if step > 0 else np.maximum(gain, target)
        self._gain = float(gain[-1])
        return np.asarray(gain, np.float32)

    def _quieter(self, player: Player, part: Pcm, gain: Wave | None, skip: int) -> Pcm:
        if gain is None or not player.ducks:
            return part
        return np.asarray(np.rint(part * gain[skip : skip + len(part)]), np.int16)


class _Lead:
    """The lead-in of a loudspeaker, and how much of it is still to be sent."""

    def __init__(self, samples: int) -> None:
        self._noise: Pcm = (2 * np.random.default_rng(0).integers(0, 2, samples) - 1).astype(np.int16)
        self._at = samples

    def begin(self) -> None:
        self._at = 0

    def take(self, count: int) -> Pcm:
        part, self._at = self._noise[self._at : self._at + count], min(self._at + count, len(self._noise))
        return part


def _pause() -> None:
    time.sleep(0.005)


def _sum(parts: list[Pcm]) -> Pcm:
    """The sum of sounds that begin together, as long as the longest, clipped at full scale."""
    parts = [part for part in parts if len(part)]
    if len(parts) < 2:
        return parts[0] if parts else NOTHING
    whole = np.zeros(max(map(len, parts)), np.int32)
    for part in parts:
        whole[: len(part)] += part
    return np.asarray(np.clip(whole, -32768, 32767), np.int16)


def _ramp(part: Pcm, start: float, end: float, length: int) -> Pcm:
    """`part` with its first `length` samples going from one gain to the other."""
    length = min(length, len(part))
    ramped = part.copy()
    ramped[:length] = np.rint(part[:length] * np.linspace(start, end, length, dtype=np.float32))
    return ramped


def _cut(samples: Pcm | Wave, size: int) -> Iterator[Pcm | Wave]:
    for start in range(0, len(samples), size):
        yield samples[start : start + size]
