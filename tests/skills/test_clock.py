"""The clock, through sentences."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from natives import BERLIN, SpokenTo, shipped

from appliance.skills.native import spoken
from appliance.skills.native.zone import here


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    return SpokenTo(tmp_path_factory.mktemp("clock"))


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("What time is it?", "It's noon."),
        ("tell me the time", "It's noon."),
        ("can you tell me the time please", "It's noon."),
        ("what's the time in Tokyo", "In Tokyo it's 8:00 PM."),
        ("what time is it in New York right now", "In New York it's 6:00 AM."),
        ("what time is it in Tokio", "In Tokyo it's 8:00 PM."),
        ("how late is it in San Francisco", "In San Francisco it's 3:00 AM."),
        ("what time is it in Auckland", "In Auckland it's midnight on Wednesday."),
        ("What's the date?", "It's Tuesday, December 1, 2026."),
        ("what is the date next Friday", "That is Friday, December 4."),
        ("what is the date tomorrow", "Tomorrow is Wednesday, December 2."),
        ("which day is it", "It's Tuesday."),
        ("what day is it tomorrow", "Tomorrow is Wednesday."),
        ("what day of the week is December 24th", "December 24, 2026 is a Thursday."),
        ("how many days until Christmas", "24 days until Friday, December 25."),
        ("how many days until the third of March", "92 days until Wednesday, March 3, 2027."),
        ("how long until half past six", "6 hours and 30 minutes until 6:30 PM."),
        ("which calendar week is this", "It's week 49."),
        ("what time zone are we in", "This box is 1 hour ahead of UTC and follows Berlin time."),
        ("which time zone is Tokyo in", "Tokyo is 9 hours ahead of UTC."),
        ("what's the time difference to Tokyo", "Tokyo is 8 hours ahead of us: it's 8:00 PM there."),
        ("how many hours ahead is New York", "New York is 6 hours behind us: it's 6:00 AM there."),
    ],
)
async def test_what_it_answers(box, said, answer):
    assert await box.says(said) == answer
    assert not box.last.deeds


async def test_and_in_london(box):
    await box.says("what time is it in Tokyo")
    assert await box.says("and in London?") == "In London it's 11:00 AM."
    assert await box.says("what about Paris") == "In Paris it's noon."


async def test_and_tomorrow(box):
    await box.says("what's the date")
    assert await box.says("and tomorrow?") == "Tomorrow is Wednesday, December 2."


async def test_what_it_does_not_know(box):
    reply = await box.call("clock", "Time", place="Atlantis")
    assert reply.failed
    assert "Atlantis" in reply.say


async def test_a_difference_needs_a_place(box):
    assert await box.says("what is the time difference") == "To which place?"
    assert await box.says("to Tokyo") == "Tokyo is 8 hours ahead of us: it's 8:00 PM there."


def test_every_place_has_a_zone(box):
    clock = box.skills["clock"]
    places = clock._places
    assert len(places) > 150
    assert all(clock._zone_of(place) for place in places)


def test_no_fault_in_what_is_shipped():
    ours = ("shipped/clock/", "shipped/alarms/", "shipped/box/")
    assert not [str(fault) for fault in shipped()[2] if any(part in str(fault) for part in ours)]


@given(st.floats(0, 400 * 86_400))
def test_any_duration_can_be_said(seconds):
    for text in (spoken.duration(seconds), spoken.left(seconds), spoken.length(seconds)):
        assert text
        assert " 0 " not in f" {text}"
        assert "  " not in text


@pytest.mark.parametrize(
    ("seconds", "text", "length"),
    [
        (1, "1 second", "1-second"),
        (90, "1 minute and 30 seconds", "1-minute-and-30-second"),
        (480, "8 minutes", "8-minute"),
        (3600, "1 hour", "1-hour"),
        (86_400 * 7, "1 week", "1-week"),
        (86_400 * 8 + 60, "8 days and 1 minute", "8-day-and-1-minute"),
    ],
)
def test_durations(seconds, text, length):
    assert spoken.duration(seconds) == text
    assert spoken.length(seconds) == length


def test_times_near_and_far():
    now = datetime(2026, 12, 1, 12, 0, tzinfo=BERLIN)
    table = {
        (1, 19, 5): "7:05 PM",
        (2, 0, 0): "tomorrow at midnight",
        (4, 12, 0): "Friday at noon",
        (24, 0, 30): "Thursday, December 24 at 12:30 AM",
    }
    for (day, hour, minute), text in table.items():
        assert spoken.moment(now.replace(day=day, hour=hour, minute=minute), now) == text
    assert spoken.near(date(2027, 1, 5), now.date()) == "Tuesday, January 5, 2027"
    assert spoken.weekly(["fri", "mon"]) == "on Mondays and Fridays"
    assert spoken.weekly(spoken.DAYS[:5]) == "on weekdays"
    assert spoken.weekly(spoken.DAYS) == "every day"


def test_the_zone_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.delenv("TZ", raising=False)
    link = tmp_path / "localtime"
    link.symlink_to("/usr/share/zoneinfo/Europe/Berlin")
    assert str(here(link)) == "Europe/Berlin"
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert str(here(link)) == "Asia/Tokyo"
    monkeypatch.setenv("TZ", "")
    assert str(here(tmp_path / "nothing")) == "UTC"
