"""Ringing: what is due is told, sounds until somebody stops it, and not for ever.

The sound has a player of its own: to stop it touches no voice, and what the box says next is heard as before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import numpy as np

from appliance.errors import StorageFault
from appliance.events import Draft, Event, Failed, NoSpeech, Rang, SpeechStarted, Transcript, Woken
from appliance.skills.native import spoken
from appliance.skills.native.which import label
from appliance.skills.skill import Alarm
from appliance.stream import Events, Stage
from appliance.telemetry import log
from appliance.voice.earcon import RATE, tones
from firmware.frame import Wave
from firmware.mixer import Player

LOOK = 0.25
"""Seconds between two looks at the clock."""

REPEAT = 3.0
"""Seconds from one ring to the next."""

LONGEST = 180.0
"""Seconds after which nobody is there, and what rings falls silent."""

NOTICE = 20.0
"""Seconds for which what is told late may be answered to; it rings once."""

HEARD = 2.0
"""Seconds after which something is said whether its ring has been heard or not: the card may be away."""

QUIET = 15.0
"""Seconds for which somebody who began to speak keeps it quiet, if nothing is heard of what they said."""

CAPACITY = 4.0
"""Seconds of sound that the player must take at once, so that nobody waits for it."""

_LOUDNESS = (0.06, 0.1, 0.16, 0.24)
"""Of the first ring, the second...: nobody is to be startled, and nobody left asleep."""


class Clockwork(Protocol):
    """What rings (`appliance.store.alarms`). Any thread may ask; raises StorageFault."""

    @property
    def stirs(self) -> bool: ...
    @property
    def ringing(self) -> set[int]: ...
    def rewind(self) -> None: ...
    def look(self) -> Sequence[Due]: ...
    def finish(self, ids: Sequence[int]) -> None: ...
    def dismiss(self) -> int: ...


class Due(Protocol):
    @property
    def alarm(self) -> Alarm: ...
    @property
    def late(self) -> float: ...


@dataclass(slots=True)
class _Rung:
    """`since` and `until` on the steady clock; `told` once its Rang went out."""

    due: Due
    since: float
    until: float
    told: bool = False


def ring(
    alarms: Clockwork,
    player: Player,
    now: Callable[[], datetime] = lambda: datetime.now(UTC).astimezone(),
    *,
    stops: Callable[[str], bool] = lambda text: False,
    speaks: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> Stage:
    """Passes everything on, and adds a Rang for each that is due, and one when it is over. It stands in front of the
    session, which says the words.

    A wake word, a button, or words that are a command to stop (`stops`) end what rings; while the user speaks, and
    while the box does (`speaks`), it is quiet. `player` takes CAPACITY seconds at once; `now` is in the box's zone.
    """

    async def stage(events: Events) -> Events:
        bell = _Bell(alarms, player, now, stops, speaks, clock)
        try:
            await bell.start()
            async with _ticking(events) as ticks:
                async for event in ticks:
                    if event is None:
                        for rang in await bell.tick():
                            yield rang
                        continue
                    for rang in await bell.hear(event):
                        yield rang
                    yield event
        finally:
            player.flush()

    return stage


@asynccontextmanager
async def _ticking(events: Events) -> AsyncIterator[AsyncIterator[Event | None]]:
    """The events, and None whenever LOOK has passed without one; and between events, after LOOK at the latest."""
    following: asyncio.Task[Event] | None = None

    async def ticks() -> AsyncIterator[Event | None]:
        nonlocal following
        looked = time.monotonic()
        while True:
            following = following or asyncio.create_task(_next(events))
            rest = LOOK - (time.monotonic() - looked)
            if rest > 0:
                await asyncio.wait({following}, timeout=rest)
            if time.monotonic() - looked >= LOOK:
                looked = time.monotonic()
                yield None
            if following.done():
                done, following = following, None
                try:
                    event = done.result()
                except StopAsyncIteration:
                    return
                yield event

    try:
        yield ticks()
    finally:
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def _next(events: Events) -> Event:
    return await anext(events)


class _Bell:
    def __init__(
        self,
        alarms: Clockwork,
        player: Player,
        now: Callable[[], datetime],
        stops: Callable[[str], bool],
        speaks: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._alarms, self._player, self._now = alarms, player, now
        self._stops, self._speaks, self._clock = stops, speaks, clock
        self._rung: dict[int, _Rung] = {}
        self._rings = 0
        """Rings since something began to ring."""
        self._next = self._quiet = 0.0
        """When it rings again at the earliest; until when the user is left to speak."""
        self._at = self._turn = 0

    async def start(self) -> None:
        try:
            await asyncio.to_thread(self._alarms.rewind)
        except StorageFault as fault:
            log("alarms", reason=str(fault))

    async def hear(self, event: Event) -> list[Event]:
        self._at, self._turn = event.at, event.turn
        match event:
            case Woken():
                return await self._dismiss()
            case Draft(text=text) | Transcript(text=text) if self._rung and self._stops(text):
                self._quiet = 0.0
                return await self._dismiss()
            case SpeechStarted():
                self._quiet = self._clock() + QUIET
                self._player.flush()
            case Transcript() | NoSpeech() | Failed():
                self._quiet = 0.0
                self._next = max(self._next, self._clock() + REPEAT)
        return []

    async def tick(self) -> list[Event]:
        """Looks at the clock; rings, or ceases to."""
        found: list[Event] = []
        try:
            if self._alarms.stirs:
                self._begin(await asyncio.to_thread(self._alarms.look))
            if self._rung:
                found += self._ended()
                found += await self._tire()
        except StorageFault as fault:
            log("alarms", reason=str(fault))
        if self._rung:
            self._sound()
            found += self._tell()
        return found

    def _begin(self, due: Sequence[Due]) -> None:
        now = self._clock()
        for one in due:
            self._rung[one.alarm.id] = _Rung(one, now, now + (NOTICE if one.late else LONGEST))
        if due:
            self._rings, self._next = 0, now

    def _sound(self) -> None:
        """Rings, if it is time to and nobody speaks."""
        now = self._clock()
        loud = any(not rung.due.late for rung in self._rung.values())
        if now < self._next or now < self._quiet or self._player.pending or self._speaks():
            return
        if self._rings and not loud:
            return
        self._player.play(_sound(min(self._rings, len(_LOUDNESS) - 1)), RATE)
        self._player.end()
        self._rings += 1
        self._next = now + REPEAT

    def _tell(self) -> list[Event]:
        """What is due is said once its ring has been heard."""
        now, found = self._clock(), list[Event]()
        for id, rung in self._rung.items():
            if not rung.told and (now >= rung.since + HEARD or (self._rings and not self._player.pending)):
                rung.told = True
                found.append(Rang(self._at, self._turn, id, rung.due.alarm.kind, said(rung.due, self._now())))
        return found

    async def _dismiss(self) -> list[Event]:
        """Somebody is there. Where the disk cannot be written it is silent all the same."""
        if not self._rung:
            return []
        try:
            await asyncio.to_thread(self._alarms.dismiss)
        except StorageFault as fault:
            log("alarms", reason=str(fault))
        return self._over(list(self._rung))

    async def _tire(self) -> list[Event]:
        now = self._clock()
        ids = [id for id, rung in self._rung.items() if now >= rung.until and now >= self._quiet and rung.told]
        if not ids:
            return []
        log("nobody stopped it", ids=ids)
        await asyncio.to_thread(self._alarms.finish, ids)
        return self._over(ids)

    def _ended(self) -> list[Event]:
        """What a skill has dismissed, snoozed or cancelled."""
        return self._over(sorted(set(self._rung) - self._alarms.ringing))

    def _over(self, ids: Sequence[int]) -> list[Event]:
        rungs = [self._rung.pop(id) for id in ids]
        if ids and not self._rung:
            self._player.flush()
        return [
            Rang(self._at, self._turn, rung.due.alarm.id, rung.due.alarm.kind, "", False) for rung in rungs if rung.told
        ]


def said(due: Due, now: datetime) -> str:
    """ "Your pasta timer is done.", "It's 7:00 AM.", "Reminder: turn the oven off."; and how late it is."""
    alarm, when = due.alarm, due.alarm.due.astimezone(now.tzinfo)
    if due.late:
        ago = f"{spoken.left(due.late)} ago, while I was off"
        if alarm.kind == "reminder":
            return f"You had a reminder {ago}: {_what(alarm)}."
        return f"Your {label(alarm, now)} {'was done' if alarm.kind == 'timer' else 'was due'} {ago}."
    if alarm.kind == "timer":
        return f"Your {label(alarm, now)} is done."
    if alarm.kind == "alarm":
        named = f" This is your {label(alarm, now)}." if alarm.name else ""
        return f"It's {spoken.clock(when)}.{named}"
    return f"Reminder: {_what(alarm)}."


def _what(alarm: Alarm) -> str:
    return alarm.text.removeprefix("about ") or alarm.name or "you wanted to be reminded"


def _sound(number: int) -> Wave:
    """Three notes twice: float32 [n] at RATE."""
    phrase = tones((659, 784, 988), 0.14, _LOUDNESS[number])
    rest = np.zeros(RATE // 5, np.float32)
    return np.concatenate([phrase, rest, phrase])
