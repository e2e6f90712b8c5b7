"""What the box says about itself: a structured log, counters, latencies, and the waterfall of a turn.

Watching is a pass-through stage: it changes nothing and nothing waits for it.
"""

from __future__ import annotations

import json
import logging
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO

from appliance.events import (
    Answered,
    Cited,
    Did,
    Event,
    Failed,
    Held,
    Mark,
    Muted,
    NoSpeech,
    SoundBack,
    SoundLost,
    Transcript,
    Understood,
    Woken,
)
from appliance.stream import Events

LOGGER = logging.getLogger("parley")
LOGGER.addHandler(logging.NullHandler())  # a command that starts no log writes none


# --- log ---------------------------------------------------------------------------------------------------------


class JsonLines(logging.Formatter):
    """One JSON object a line: `time` (UTC, ISO 8601), `level`, `event`, and the fields given with it."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry = {"time": f"{stamp}.{int(record.msecs):03d}Z", "level": record.levelname.lower()}
        entry |= {"event": record.getMessage()} | getattr(record, "fields", {})
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)


def start_log(level: str = "info", stream: TextIO | None = None) -> None:
    """Sends Parley's log to `stream` (default: stderr). A second call replaces the first."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    LOGGER.handlers = [handler]
    LOGGER.setLevel(level.upper())
    LOGGER.propagate = False


def log(event: str, *, level: int = logging.INFO, **fields: Any) -> None:
    LOGGER.log(level, event, extra={"fields": fields})


class Seldom:
    """Lets a message of one kind through at most once in `seconds`, and counts what it held back.

    A sick device reports itself a hundred times a second: the log must stay readable and the disk whole.
    """

    def __init__(self, seconds: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._last: dict[str, float] = {}
        self._held: Counter[str] = Counter()

    def __call__(self, event: str, *, level: int = logging.WARNING, **fields: Any) -> bool:
        """Logs, or holds back; says which."""
        now = self._clock()
        if event in self._last and now - self._last[event] < self._seconds:
            self._held[event] += 1
            return False
        self._last[event] = now
        held = self._held.pop(event, 0)
        log(event, level=level, **fields, **({"held_back": held} if held else {}))
        return True


# --- figures -----------------------------------------------------------------------------------------------------


class Reservoir:
    """A bounded, uniform sample of all values ever added (reservoir sampling), for percentiles over a long life."""

    def __init__(self, size: int = 1024, seed: int = 0) -> None:
        self._size = size
        self._random = random.Random(seed)
        self._values: list[float] = []
        self.count = 0

    def add(self, value: float) -> None:
        self.count += 1
        if len(self._values) < self._size:
            self._values.append(value)
        elif (place := self._random.randrange(self.count)) < self._size:
            self._values[place] = value

    def percentile(self, percent: float) -> float:
        """By linear interpolation between the nearest ranks; NaN when empty."""
        if not self._values:
            return float("nan")
        ordered = sorted(self._values)
        place = (len(ordered) - 1) * percent / 100
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclass(slots=True)
class Telemetry:
    """Counters by name, gauges (what is so now, "echo erle db"), and latencies in milliseconds by mark ("say first
    sound"), from the end of speech."""

    counters: Counter[str] = field(default_factory=Counter)
    gauges: dict[str, float] = field(default_factory=dict)
    latencies: dict[str, Reservoir] = field(default_factory=dict)
    seldom: Seldom = field(default_factory=Seldom)

    def gauge(self, name: str, value: float | None) -> None:
        """None, and what is no number, is not known: the gauge is not shown."""
        if value is None or not math.isfinite(value):
            self.gauges.pop(name, None)
        else:
            self.gauges[name] = value

    def latency(self, name: str, ms: float) -> None:
        self.latencies.setdefault(name, Reservoir()).add(ms)

    def record(self, waterfall: Waterfall) -> None:
        for point in waterfall.points:
            self.latency(point.label, point.ms)

    def snapshot(self) -> dict[str, Any]:
        """For machines: {"counters": {name: n}, "gauges": {name: value}, "latency_ms": {name: {"n", "p50", "p95",
        "p99"}}}."""
        latency = {
            name: {"n": r.count, **{f"p{p}": round(r.percentile(p), 2) for p in (50, 95, 99)}}
            for name, r in sorted(self.latencies.items())
        }
        gauges = {name: round(value, 3) for name, value in sorted(self.gauges.items())}
        return {"counters": dict(sorted(self.counters.items())), "gauges": gauges, "latency_ms": latency}

    async def watch(self, events: Events) -> Events:
        """A stage that passes everything on, counts turns, failures and what befell the sound, and records each turn's
        waterfall."""
        marks: list[Mark] = []
        held = False
        async for event in events:
            match event:
                case Mark():
                    marks.append(event)
                case Transcript():
                    self.counters["turns"] += 1
                case NoSpeech():
                    self.counters[f"no speech: {event.why}"] += 1
                case Failed():
                    self.counters[f"failed: {event.stage} {event.kind}"] += 1
                case Held(on=True):
                    self.counters["holds"] += 1
                    held = True
                case Held() if held:  # and no answer has ended since: that was nothing
                    self.counters["false holds"] += 1
                case Answered():
                    held = False
                    self.counters[f"answers {event.reason}"] += 1
                    waterfall = Waterfall.of(marks, event.turn)
                    self.record(waterfall)
                    log("turn", turn=event.turn, reason=event.reason, ms=waterfall.as_dict())
                    marks = [mark for mark in marks if mark.turn > event.turn]
                case Understood() | Did() | Cited():
                    self._watch_grounds(event)
                case _:
                    self._watch_sound(event)
            yield event

    def _watch_grounds(self, event: Understood | Did | Cited) -> None:
        match event:
            case Understood():
                self.counters[f"understood: {event.skill}"] += 1
                log("understood", turn=event.turn, skill=event.skill, intent=event.intent, score=round(event.score, 3))
            case Did():
                self.counters[f"did: {event.what}" if event.ok else f"did not: {event.what}"] += 1
                log("did", turn=event.turn, what=event.what, ok=event.ok, detail=event.detail)
            case Cited():
                self.counters[f"cited: {event.pack}"] += 1

    def _watch_sound(self, event: Event) -> None:
        """Milliseconds are counted for sound that was away: an outage may be shorter than a second."""
        match event:
            case Woken():
                self.counters[f"wakes: {event.word}"] += 1
                score, threshold = round(event.score, 3), round(event.threshold, 3)
                log("wake", word=event.word, at=event.at, score=score, threshold=threshold)
            case SoundLost():
                self.counters[f"sound lost: {event.kind}"] += 1
                self.seldom(f"sound lost: {event.kind}", message=event.message, fix=event.fix)
            case SoundBack():
                self.counters["sound lost ms"] += round(event.seconds * 1000)
                self.seldom(f"sound back: {event.kind}", level=logging.INFO, seconds=round(event.seconds, 1))
            case Muted():
                self.gauge("muted", event.on)
                log("muted" if event.on else "not muted")


# --- waterfall ---------------------------------------------------------------------------------------------------

ORIGIN = ("endpoint", "speech end")


@dataclass(frozen=True, slots=True)
class Point:
    """`stage` reached `name` at `ms` after the end of speech; its bar begins at `since`."""

    stage: str
    name: str
    since: float
    ms: float

    @property
    def label(self) -> str:
        return f"{self.stage} {self.name}"


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Where the milliseconds of one turn went, in the order of time; the end of speech is 0."""

    points: tuple[Point, ...]

    @classmethod
    def of(cls, marks: Iterable[Mark], turn: int) -> Waterfall:
        """The last mark of each name counts: earlier ones belong to speculation that was thrown away.

        A bar runs from the same stage's mark before it, or, for a stage's first mark, from whatever was reached last.
        """
        walls: dict[tuple[str, str], float] = {(m.stage, m.name): m.wall for m in marks if m.turn == turn}
        if not walls:
            return cls(())
        origin = walls.pop(ORIGIN, None)
        if origin is None:
            origin = min(walls.values())
        return cls(tuple(_points(walls, origin)))

    @property
    def total(self) -> float:
        """Milliseconds from the end of speech to the last mark."""
        return max((point.ms for point in self.points), default=0.0)

    def as_dict(self) -> Mapping[str, float]:
        return {point.label: round(point.ms, 1) for point in self.points}


def _points(walls: Mapping[tuple[str, str], float], origin: float) -> Iterator[Point]:
    reached: dict[str, float] = {}
    before = 0.0
    for (stage, name), wall in sorted(walls.items(), key=lambda item: item[1]):
        ms = (wall - origin) * 1000
        yield Point(stage, name, min(reached.get(stage, before), ms), ms)
        reached[stage] = before = ms
