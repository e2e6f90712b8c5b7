"""What is due rings, is told, and can be stopped; and the box is heard afterwards as it was before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from appliance.events import Draft, Event, NoSpeech, Rang, SpeechStarted, Transcript, Woken
from appliance.skills.skill import Alarm
from appliance.store.alarms import Alarms, Clocks
from appliance.store.alarms import Due as DueNow
from appliance.stream import Events, line
from appliance.voice import ring as rings
from appliance.voice.ring import LONGEST, NOTICE, REPEAT, ring, said
from firmware.frame import RATE
from firmware.mixer import Mixer

BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2026, 12, 1, 6, 50, tzinfo=BERLIN)
WOKEN = Woken(9, 1, "okay-nabu", 0, 0.9, 0.5)


async def until(done: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if done():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came")


class Watched(Alarms[Alarm]):
    """Counts how often it was looked at."""

    looks = 0

    @property
    def stirs(self) -> bool:
        self.looks += 1
        return super().stirs

    async def looked_at(self) -> None:
        """Until the look that was going on is over, and a whole one more."""
        before = self.looks
        await until(lambda: self.looks >= before + 2)


@dataclass
class Kitchen:
    """The stage in a line, with a clock that only `passes` moves and a loudspeaker that is listened to."""

    alarms: Watched
    clocks: list[float]
    mixer: Mixer = field(default_factory=lambda: Mixer(RATE))
    speaking: bool = False
    seen: list[Event] = field(default_factory=list)
    given: asyncio.Queue[Event | None] = field(default_factory=asyncio.Queue)
    heard: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clocks[0], BERLIN)

    async def source(self) -> Events:
        while (event := await self.given.get()) is not None:
            yield event

    async def run(self) -> None:
        player = self.mixer.player("alarm", capacity=rings.CAPACITY)
        stage = ring(
            self.alarms,
            player,
            self.now,
            stops=lambda text: text == "Stop.",
            speaks=lambda: self.speaking,
            clock=lambda: self.clocks[1],
        )
        async with line(self.source(), stage) as events:
            async for event in events:
                self.seen.append(event)
        self.over.set()

    async def passes(self, seconds: float, step: float = 0.5) -> list[Rang]:
        """What was added meanwhile."""
        before = len(self.seen)
        while seconds > 0:
            self.clocks[:] = [clock + min(step, seconds) for clock in self.clocks]
            self.heard = max(self.heard, int(np.abs(self.mixer.take(round(min(step, seconds) * RATE))).max()))
            seconds -= step
            await self.alarms.looked_at()
        return [event for event in self.seen[before:] if isinstance(event, Rang)]

    async def says(self, event: Event) -> list[Rang]:
        before = len(self.seen)
        self.given.put_nowait(event)
        await until(lambda: event in self.seen[before:])
        return [found for found in self.seen[before:] if isinstance(found, Rang)]

    def loudness(self) -> int:
        """The loudest sample since this was asked last."""
        heard, self.heard = self.heard, 0
        return heard


@pytest.fixture
def clocks():
    return [START.timestamp(), 1000.0]


@pytest.fixture
def store(tmp_path, clocks) -> Callable[[], Watched]:
    def open() -> Watched:
        return Watched(Path(tmp_path) / "alarms.db", Alarm, BERLIN, Clocks(lambda: clocks[0], lambda: clocks[1]))

    return open


@pytest.fixture
async def kitchen(store, clocks, monkeypatch):
    monkeypatch.setattr(rings, "LOOK", 0.002)
    kitchen = Kitchen(store(), clocks)
    task = asyncio.create_task(kitchen.run())
    await kitchen.alarms.looked_at()
    yield kitchen
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_timer_rings_and_is_told(kitchen):
    kitchen.alarms.add("timer", name="pasta", seconds=10)
    assert not await kitchen.passes(9)
    assert kitchen.loudness() == 0
    (rang,) = await kitchen.passes(4)
    assert (rang.kind, rang.on, rang.text) == ("timer", True, "Your pasta timer is done.")
    assert kitchen.loudness() > 500


async def test_it_rings_louder_and_then_not_for_ever(kitchen):
    kitchen.alarms.add("timer", seconds=1)
    await kitchen.passes(4)
    first = kitchen.loudness()
    (*_, over) = await kitchen.passes(LONGEST)
    assert kitchen.loudness() > 2 * first
    assert not over.on
    assert not kitchen.alarms.all()
    assert not await kitchen.passes(20)
    assert kitchen.loudness() == 0


@pytest.mark.parametrize(
    "event",
    [WOKEN, Woken(9, 1, "button", 9, 1.0, 0.0), Draft(9, 1, "Stop."), Transcript(9, 1, "Stop.", 1.0)],
    ids=["wake word", "button", "draft", "words"],
)
async def test_what_stops_it(kitchen, event):
    kitchen.alarms.add("timer", seconds=1)
    await kitchen.passes(4)
    (over,) = await kitchen.says(event)
    assert not over.on
    assert kitchen.seen[-1] == event, "it is passed on"
    assert not kitchen.alarms.all()
    await kitchen.passes(0.5)
    kitchen.loudness()
    await kitchen.passes(2 * REPEAT)
    assert kitchen.loudness() == 0


async def test_what_does_not_stop_it(kitchen):
    kitchen.alarms.add("timer", seconds=1)
    await kitchen.passes(4)
    assert not await kitchen.says(Transcript(9, 1, "What time is it?", 1.0))
    assert kitchen.alarms.ringing


async def test_afterwards_the_box_is_heard_as_before(kitchen):
    """C73: a timer that was stopped by the wake word left the box silent."""
    kitchen.alarms.add("timer", seconds=1)
    await kitchen.passes(4)
    await kitchen.says(WOKEN)
    await kitchen.passes(1)
    speech = kitchen.mixer.player("speech")
    speech.play(np.full(RATE // 2, 9000, np.int16), RATE)
    speech.end()
    assert kitchen.mixer.take(RATE // 4)[-1] == 9000
    kitchen.mixer.take(RATE)
    kitchen.alarms.add("timer", seconds=1)
    kitchen.loudness()
    await kitchen.passes(4)
    assert kitchen.loudness() > 500, "and the next timer too"


async def test_two_at_once_are_both_told(kitchen):
    for name in ("pasta", "tea"):
        kitchen.alarms.add("timer", name=name, seconds=1)
    told = await kitchen.passes(5)
    assert sorted(rang.text for rang in told) == ["Your pasta timer is done.", "Your tea timer is done."]
    assert [rang.on for rang in await kitchen.says(WOKEN)] == [False, False]


async def test_one_that_comes_while_another_rings_is_told(kitchen):
    kitchen.alarms.add("timer", name="pasta", seconds=1)
    kitchen.alarms.add("timer", name="tea", seconds=10)
    await kitchen.passes(6)
    assert [rang.text for rang in await kitchen.passes(8)] == ["Your tea timer is done."]


async def test_who_speaks_is_not_rung_at(kitchen):
    kitchen.alarms.add("timer", seconds=1)
    await kitchen.passes(4)
    await kitchen.says(SpeechStarted(9, 1))
    await kitchen.passes(0.5)
    kitchen.loudness()
    await kitchen.passes(6)
    assert kitchen.loudness() == 0
    await kitchen.says(NoSpeech(9, 1, "no words"))
    await kitchen.passes(2 * REPEAT)
    assert kitchen.loudness() > 500


async def test_the_box_does_not_ring_at_itself(kitchen):
    kitchen.speaking = True
    kitchen.alarms.add("timer", seconds=1)
    (rang,) = await kitchen.passes(6)
    assert rang.on, "it is told all the same"
    assert kitchen.loudness() == 0
    kitchen.speaking = False
    await kitchen.passes(1)
    assert kitchen.loudness() > 500


async def test_what_a_skill_ends_is_over(kitchen):
    kitchen.alarms.add("timer", seconds=1)
    await kitchen.passes(4)
    kitchen.alarms.snooze(20)
    (over,) = await kitchen.passes(1)
    assert not over.on
    kitchen.loudness()
    assert not await kitchen.passes(15)
    assert kitchen.loudness() == 0
    (again,) = await kitchen.passes(10)
    assert again.on


async def test_what_was_missed_is_told_and_does_not_ring_on(store, clocks, monkeypatch):
    """C92: past due while the box was off."""
    store().add("timer", name="pasta", seconds=600)
    clocks[:] = [clock + 600 + 300 for clock in clocks]
    monkeypatch.setattr(rings, "LOOK", 0.002)
    kitchen = Kitchen(store(), clocks)
    task = asyncio.create_task(kitchen.run())
    (rang,) = await kitchen.passes(5)
    assert rang.text == "Your pasta timer was done 5 minutes ago, while I was off."
    assert kitchen.loudness() > 500
    assert [rang.on for rang in await kitchen.passes(NOTICE)] == [False]
    assert kitchen.loudness() == 0
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_line_that_begins_anew_rings_on(kitchen):
    kitchen.alarms.add("timer", seconds=1)
    await kitchen.passes(4)
    other = Kitchen(kitchen.alarms, kitchen.clocks)
    kitchen.given.put_nowait(None)
    await kitchen.over.wait()
    task = asyncio.create_task(other.run())
    (rang,) = await other.passes(4)
    assert rang.on
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_disk_that_is_full_keeps_nobody_from_being_heard(kitchen):
    kitchen.alarms.add("timer", seconds=1)
    await kitchen.passes(4)
    kitchen.alarms._database.execute("pragma query_only = on")
    (over,) = await kitchen.says(WOKEN)
    assert not over.on
    kitchen.alarms._database.execute("pragma query_only = off")


@pytest.mark.parametrize(
    ("alarm", "late", "text"),
    [
        (Alarm(1, "timer", "", START, 480), 0, "Your 8-minute timer is done."),
        (Alarm(1, "timer", "", START, 5400), 0, "Your 1-hour-and-30-minute timer is done."),
        (Alarm(1, "alarm", "", START), 0, "It's 6:50 AM."),
        (Alarm(1, "alarm", "gym", START), 0, "It's 6:50 AM. This is your gym alarm."),
        (Alarm(1, "alarm", "", START), 3600, "Your 6:50 AM alarm was due 1 hour ago, while I was off."),
        (Alarm(1, "reminder", "", START, text="turn the oven off"), 0, "Reminder: turn the oven off."),
        (Alarm(1, "reminder", "", START, text="about the meeting"), 0, "Reminder: the meeting."),
        (
            Alarm(1, "reminder", "", START, text="call your mother"),
            7200,
            "You had a reminder 2 hours ago, while I was off: call your mother.",
        ),
    ],
)
def test_what_is_said(alarm, late, text):
    assert said(DueNow(alarm, late), START + timedelta(seconds=late)) == text
    assert START.tzinfo is not UTC
