from __future__ import annotations

import io
import json
import logging
import math
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance import telemetry
from appliance.events import (
    Answered,
    Event,
    Failed,
    Held,
    Mark,
    Muted,
    NoSpeech,
    SoundBack,
    SoundLost,
    Transcript,
    Woken,
)
from appliance.telemetry import Reservoir, Seldom, Telemetry, Waterfall


def marks(*points: tuple[str, str, float], turn: int = 1) -> list[Mark]:
    return [Mark(0, turn, stage, name, wall) for stage, name, wall in points]


TURN = marks(
    ("endpoint", "speech end", 10.0),
    ("hear", "start", 10.1),
    ("hear", "words", 10.15),
    ("endpoint", "decided", 10.2),
    ("think", "first token", 10.22),
    ("say", "first sound", 10.25),
)


def test_waterfall_counts_from_the_end_of_speech() -> None:
    waterfall = Waterfall.of(TURN, 1)
    assert [p.label for p in waterfall.points][:2] == ["hear start", "hear words"]
    assert waterfall.total == pytest.approx(250)
    words = waterfall.points[1]
    assert (words.since, words.ms) == pytest.approx((100, 150))
    assert waterfall.points[-1].since == pytest.approx(220)


def test_waterfall_forgets_what_speculation_threw_away() -> None:
    early = marks(("endpoint", "speech end", 5.0), ("hear", "start", 5.1), ("think", "first token", 5.2))
    assert Waterfall.of([*early, *TURN], 1) == Waterfall.of(TURN, 1)


def test_waterfall_of_nothing_is_empty() -> None:
    assert Waterfall.of([], 1).points == ()
    assert Waterfall.of(TURN, 2).total == 0.0


names = st.sampled_from(["endpoint", "hear", "think", "say", "mouth"])


@given(st.lists(st.tuples(names, st.sampled_from(["start", "speech end", "first"]), st.floats(0, 100)), max_size=30))
def test_waterfall_is_ordered_and_no_bar_is_negative(points: list[tuple[str, str, float]]) -> None:
    waterfall = Waterfall.of(marks(*points), 1)
    assert [p.ms for p in waterfall.points] == sorted(p.ms for p in waterfall.points)
    assert all(p.since <= p.ms for p in waterfall.points)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200), st.floats(0, 100))
def test_percentiles_lie_among_the_values(values: list[float], percent: float) -> None:
    reservoir = Reservoir(size=256)
    for value in values:
        reservoir.add(value)
    assert min(values) <= reservoir.percentile(percent) <= max(values)
    assert reservoir.count == len(values)


def test_a_reservoir_stays_small_and_fair() -> None:
    reservoir = Reservoir(size=500)
    for value in range(20_000):
        reservoir.add(value)
    assert len(reservoir._values) == 500
    assert 8_000 < reservoir.percentile(50) < 12_000
    assert math.isnan(Reservoir().percentile(50))


def test_log_lines_are_json_with_fields(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    telemetry.start_log("info", out)
    telemetry.log("turn", turn=3, words="héllo\nthere")
    telemetry.log("noise", level=logging.DEBUG)
    try:
        raise ValueError("no")
    except ValueError:
        telemetry.LOGGER.exception("failed")
    first, second = map(json.loads, out.getvalue().splitlines())
    assert (first["event"], first["turn"], first["words"], first["level"]) == ("turn", 3, "héllo\nthere", "info")
    assert first["time"].endswith("Z")
    assert "ValueError: no" in second["traceback"]


def test_seldom_lets_one_through_and_says_what_it_held_back() -> None:
    out = io.StringIO()
    telemetry.start_log("info", out)
    now = [0.0]
    seldom = Seldom(10, clock=lambda: now[0])
    assert [seldom("overrun") for _ in range(5)] == [True, False, False, False, False]
    assert seldom("other")
    now[0] = 11
    assert seldom("overrun", frames=2)
    assert json.loads(out.getvalue().splitlines()[-1])["held_back"] == 4


async def feed(events: list[Event]) -> AsyncIterator[Event]:
    for event in events:
        yield event


async def test_watching_passes_everything_on_and_counts() -> None:
    telemetry.start_log("error")
    watched = Telemetry()
    events: list[Event] = [
        *TURN,
        Transcript(0, 1, "hello", 1.0),
        NoSpeech(0, 2, "loop"),
        Failed(0, 3, "think", "deadline", "late", "Sorry."),
        Answered(0, 1, "Hi.", "complete"),
    ]
    assert [event async for event in watched.watch(feed(events))] == events
    snapshot = watched.snapshot()
    assert snapshot["counters"] == {
        "answers complete": 1,
        "failed: think deadline": 1,
        "no speech: loop": 1,
        "turns": 1,
    }
    assert snapshot["latency_ms"]["say first sound"]["p50"] == pytest.approx(250)


async def test_what_befalls_the_sound_is_counted_and_logged() -> None:
    out = io.StringIO()
    telemetry.start_log("info", out)
    watched = Telemetry()
    lost = SoundLost(0, 0, "unplugged", "the microphone is gone", "plug it in again")
    events: list[Event] = [
        Woken(32_000, 1, "okay-nabu", 20_000, 0.98765, 0.85),
        *[lost, SoundBack(0, 0, "unplugged", 0.4)] * 50,
        Held(0, 1, True),
        Held(0, 1, False),
        Held(0, 1, True),
        Answered(0, 1, "Hi.", "interrupted"),
        Held(0, 1, False),
        Muted(0, 0, True),
    ]
    assert [event async for event in watched.watch(feed(events))] == events
    snapshot = watched.snapshot()
    assert snapshot["counters"] == {
        "answers interrupted": 1,
        "false holds": 1,
        "holds": 2,
        "sound lost ms": 20_000,
        "sound lost: unplugged": 50,
        "wakes: okay-nabu": 1,
    }
    assert snapshot["gauges"] == {"muted": 1}
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["event"] for line in lines] == [
        "wake",
        "sound lost: unplugged",
        "sound back: unplugged",
        "turn",
        "muted",
    ]
    wake, trouble = lines[:2]
    assert (wake["word"], wake["at"], wake["score"], wake["threshold"]) == ("okay-nabu", 32_000, 0.988, 0.85)
    assert (trouble["message"], trouble["fix"]) == (lost.message, lost.fix)


def test_a_gauge_that_is_not_known_is_not_shown() -> None:
    watched = Telemetry()
    for value in (18.25, 31.5):
        watched.gauge("echo erle db", value)
    assert watched.snapshot()["gauges"] == {"echo erle db": 31.5}
    for unknown in (None, math.nan, math.inf):
        watched.gauge("echo erle db", 1.0)
        watched.gauge("echo erle db", unknown)
        assert watched.snapshot()["gauges"] == {}
