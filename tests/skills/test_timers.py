"""Timers, alarms and reminders, through sentences and over several turns."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from natives import BERLIN, NOON, SpokenTo

from appliance.skills.native.which import label, meant
from appliance.skills.skill import Alarm

WEEKDAYS = ["mon", "tue", "wed", "thu", "fri"]


@pytest.fixture(scope="module")
def listener(tmp_path_factory):
    return SpokenTo(tmp_path_factory.mktemp("listener"))


@pytest.fixture
def box(tmp_path):
    return SpokenTo(tmp_path)


@pytest.mark.parametrize(
    ("said", "intent", "values"),
    [
        ("set a pasta timer for eight minutes", "SetTimer", {"name": "pasta", "duration": 480}),
        ("Set a timer for 10 minutes.", "SetTimer", {"duration": 600}),
        ("set an eight minute timer", "SetTimer", {"duration": 480}),
        ("timer ten minutes", "SetTimer", {"duration": 600}),
        ("please start a timer for half an hour", "SetTimer", {"duration": 1800}),
        ("set a 25 minute timer for the eggs", "SetTimer", {"duration": 1500, "name": "eggs"}),
        ("set a timer called laundry for an hour and a half", "SetTimer", {"duration": 5400, "name": "laundry"}),
        ("another one for five minutes", "SetTimer", {"duration": 300}),
        ("start a timer", "SetTimer", {}),
        ("wake me at half past six on weekdays", "SetAlarm", {"wake": True, "time": "06:30", "days": WEEKDAYS}),
        ("wake me at seven", "SetAlarm", {"wake": True, "time": "07:00"}),
        ("wake me up tomorrow at seven thirty", "SetAlarm", {"wake": True, "time": "07:30", "day": "2026-12-02"}),
        ("wake me in twenty minutes", "SetAlarm", {"wake": True, "wait": 1200}),
        ("set an alarm for six thirty am", "SetAlarm", {"when": "2026-12-02T06:30:00+01:00"}),
        ("set an alarm for tomorrow at eight", "SetAlarm", {"when": "2026-12-02T08:00:00+01:00"}),
        ("remind me to buy milk", "Remind", {"text": "buy milk"}),
        (
            "remind me about the meeting at three pm",
            "Remind",
            {"about": "the meeting", "when": "2026-12-01T15:00:00+01:00"},
        ),
        ("how long is left on the pasta timer", "Left", {"name": "pasta", "kind": "timer"}),
        ("how much time is left", "Left", {}),
        ("how long until my alarm", "Left", {"kind": "alarm"}),
        ("when is my next alarm", "Left", {"kind": "alarm"}),
        ("which timers are running", "List", {"kind": "timer"}),
        ("what timers do I have", "List", {"kind": "timer"}),
        ("do I have any reminders", "List", {"kind": "reminder"}),
        ("list my alarms", "List", {"kind": "alarm"}),
        ("cancel the timer", "Cancel", {"kind": "timer"}),
        ("cancel the pasta timer", "Cancel", {"name": "pasta", "kind": "timer"}),
        ("cancel the ten minute timer", "Cancel", {"length": 600, "kind": "timer"}),
        ("delete the seven o'clock alarm", "Cancel", {"at": "07:00", "kind": "alarm"}),
        ("cancel all timers", "CancelAll", {"kind": "timer"}),
        ("cancel all my alarms", "CancelAll", {"kind": "alarm"}),
        ("pause the pasta timer", "Pause", {"name": "pasta"}),
        ("resume the timer", "Resume", {}),
        ("take two minutes off the timer", "Extend", {"duration": 120, "kind": "timer", "less": True}),
        ("make the pasta timer ten minutes", "Change", {"name": "pasta", "duration": 600}),
        ("change the alarm to eight o'clock", "Change", {"kind": "alarm", "when": "2026-12-01T20:00:00+01:00"}),
        ("rename the timer to eggs", "Rename", {"kind": "timer", "new": "eggs"}),
        ("snooze", "Snooze", {}),
        ("snooze for five minutes", "Snooze", {"duration": 300}),
        ("five more minutes", "Snooze", {"minutes": 5}),
        ("stop the alarm", "Dismiss", {"kind": "alarm"}),
        ("turn it off", "Dismiss", {}),
        ("I'm awake", "Dismiss", {}),
    ],
)
def test_sentences(listener, said, intent, values):
    assert listener.understood(said) == (f"alarms.{intent}", values)


# --- setting -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "answer", "due"),
    [
        ("set a pasta timer for eight minutes", "Pasta timer set for 8 minutes.", NOON + timedelta(minutes=8)),
        ("set an hour timer", "Timer set for 1 hour.", NOON + timedelta(hours=1)),
        ("wake me at seven", "Alarm set for tomorrow at 7:00 AM.", NOON.replace(day=2, hour=7)),
        (
            "wake me at half past six on weekdays",
            "Alarm set for 6:30 AM on weekdays.",
            NOON.replace(day=2, hour=6, minute=30),
        ),
        ("set an alarm for three", "Alarm set for 3:00 PM.", NOON.replace(hour=15)),
        ("set an alarm for Friday at eight", "Alarm set for Friday at 8:00 AM.", NOON.replace(day=4, hour=8)),
        (
            "wake me in twenty minutes",
            "Alarm set for 12:20 PM, in 20 minutes.",
            NOON.replace(minute=20),
        ),
        (
            "remind me in ten minutes to turn the oven off",
            "I'll remind you in 10 minutes to turn the oven off.",
            NOON.replace(minute=10),
        ),
        (
            "remind me to call my mother at seven pm",
            "I'll remind you at 7:00 PM to call your mother.",
            NOON.replace(hour=19),
        ),
        (
            "remind me about the meeting tomorrow at nine",
            "I'll remind you tomorrow at 9:00 AM about the meeting.",
            NOON.replace(day=2, hour=9),
        ),
        (
            "remind me every Monday at nine to water the plants",
            "I'll remind you at 9:00 AM on Mondays to water the plants.",
            NOON.replace(day=7, hour=9),
        ),
    ],
)
async def test_what_was_set_is_repeated(box, said, answer, due):
    assert await box.says(said) == answer
    (alarm,) = box.alarms.all()
    assert alarm.due == due
    assert [(deed.what, deed.ok) for deed in box.last.deeds] == [("alarm.set", True)]


async def test_a_wait_is_no_time_of_day(box):
    """An hour's jump of the clock changes nothing about "in ten minutes"."""
    await box.says("remind me in ten minutes to turn the oven off")
    box.wall += 3600
    box.passes(599)
    assert not box.alarms.ringing
    box.passes(1)
    assert box.alarms.ringing


async def test_what_is_missing_is_asked_for(box):
    assert await box.says("start a timer") == "For how long?"
    assert await box.says("ten minutes") == "Timer set for 10 minutes."
    assert await box.says("remind me to buy milk") == "When shall I remind you?"
    assert await box.says("tomorrow at nine") == "I'll remind you tomorrow at 9:00 AM to buy milk."
    assert await box.says("set an alarm") == "For what time?"
    assert await box.says("half past six") == "Alarm set for 6:30 PM."


async def test_a_mishearing_is_put_right(box):
    assert await box.says("set a pasta timer for fifty minutes") == "Pasta timer set for 50 minutes."
    assert await box.says("no, fifteen minutes") == "Pasta timer set for 15 minutes."
    assert [alarm.seconds for alarm in box.alarms.all()] == [900]


async def test_another_one(box):
    await box.says("set a timer for ten minutes")
    assert await box.says("another one for five minutes") == "Timer set for 5 minutes."
    assert len(box.alarms.all()) == 2


async def test_what_is_past_is_not_set(box):
    reply = await box.call("alarms", "SetAlarm", when="2026-11-30T08:00:00+01:00")
    assert reply.failed
    assert not box.alarms.all()


async def test_seven_stays_seven_over_the_end_of_summer_time(tmp_path):
    box = SpokenTo(tmp_path, datetime(2026, 10, 24, 12, 0, tzinfo=BERLIN))
    await box.says("wake me at seven")
    assert box.alarms.all()[0].due == datetime(2026, 10, 25, 7, 0, tzinfo=BERLIN)


async def test_seven_stays_seven_for_who_knows_no_summer_time(tmp_path):
    box = SpokenTo(tmp_path, datetime(2026, 3, 28, 12, 0, tzinfo=BERLIN))
    reply = await box.call("alarms", "SetAlarm", when="2026-03-29T07:00:00+01:00")
    assert reply.say == "Alarm set for tomorrow at 7:00 AM."
    assert box.alarms.all()[0].due == datetime(2026, 3, 29, 7, 0, tzinfo=BERLIN)


# --- telling -----------------------------------------------------------------------------------------------------


async def test_how_long_is_left(box):
    assert await box.says("how long is left on the timer") == "There is no timer."
    await box.says("set a pasta timer for eight minutes")
    box.passes(90)
    assert await box.says("how long is left on the pasta timer") == "6 minutes and 30 seconds left on the pasta timer."
    await box.says("set a timer for an hour")
    assert await box.says("how much time is left") == (
        "6 minutes and 30 seconds on the pasta timer and 1 hour on the 1-hour timer."
    )
    assert await box.says("how much time is left on the one hour timer") == "1 hour left on the 1-hour timer."
    assert await box.says("how long is left on the egg timer") == (
        "There is no egg timer. There is the pasta timer and the 1-hour timer."
    )


async def test_what_there_is(box):
    assert await box.says("do I have any reminders") == "There is no reminder."
    await box.says("set a pasta timer for eight minutes")
    await box.says("wake me at seven")
    await box.says("remind me to call my mother at seven pm")
    assert await box.says("which timers are running") == "You have one: the pasta timer, 8 minutes left."
    assert await box.says("list my alarms") == "You have one: an alarm for tomorrow at 7:00 AM."
    assert await box.says("what reminders do I have") == "You have one: the reminder to call your mother, 7:00 PM."
    assert await box.says("when is my next alarm") == "It's for tomorrow at 7:00 AM, in 19 hours."


# --- changing ----------------------------------------------------------------------------------------------------


async def three(box: SpokenTo) -> None:
    for name, minutes in (("pasta", 8), ("tea", 5), ("", 20)):
        box.alarms.add("timer", name=name, seconds=60 * minutes)


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("pasta", ["tea", ""]),
        ("the pasta timer", ["tea", ""]),
        ("the tea one", ["pasta", ""]),
        ("the twenty minute one", ["tea", "pasta"]),
        ("the first one", ["pasta", ""]),
        ("the last one", ["tea", "pasta"]),
    ],
)
async def test_which_one(box, answer, left):
    await three(box)
    question = "Which one shall I cancel: the tea timer, the pasta timer or the 20-minute timer?"
    assert await box.says("cancel the timer") == question
    assert not box.last.deeds
    await box.says(answer)
    assert box.names() == left


async def test_neither(box):
    await three(box)
    await box.says("cancel the timer")
    await box.says("never mind")
    assert len(box.names()) == 3


async def test_all_are_cancelled_only_when_that_is_sure(box):
    await three(box)
    assert await box.says("cancel all timers") == "Shall I cancel all 3 timers?"
    assert not box.last.deeds
    await box.says("no")
    assert len(box.names()) == 3
    await box.says("cancel all timers")
    assert await box.says("yes") == "3 timers cancelled."
    assert len(box.last.deeds) == 3
    assert not box.names()
    assert await box.says("cancel all timers") == "There is no timer."


async def test_one_is_all(box):
    await box.says("set a timer for ten minutes")
    assert await box.says("cancel all timers") == "10-minute timer cancelled."


async def test_pausing_and_going_on(box):
    await box.says("set a pasta timer for eight minutes")
    box.passes(60)
    assert await box.says("pause the timer") == "Pasta timer paused with 7 minutes left."
    assert await box.says("pause it") == "The pasta timer is paused already."
    box.passes(3600)
    assert (
        await box.says("how long is left on the pasta timer") == "7 minutes left on the pasta timer, but it is paused."
    )
    assert await box.says("resume the pasta timer") == "Pasta timer goes on: 7 minutes left."
    assert await box.says("resume the timer") == "The pasta timer isn't paused."


async def test_more_and_less_time(box):
    await box.says("set a pasta timer for eight minutes")
    assert await box.says("add two minutes to the pasta timer") == "2 minutes more on the pasta timer: 10 minutes left."
    assert await box.says("take five minutes off the timer") == "5 minutes less on the pasta timer: 5 minutes left."


async def test_what_was_said_goes_on_after_the_question(box):
    await three(box)
    question = "Which one shall I add to: the tea timer, the pasta timer or the 20-minute timer?"
    assert await box.says("add two minutes to the timer") == question
    assert await box.says("the pasta timer") == "2 minutes more on the pasta timer: 10 minutes left."


async def test_another_length_or_time(box):
    await box.says("set a pasta timer for eight minutes")
    assert await box.says("make the pasta timer ten minutes") == "Pasta timer set for 10 minutes."
    assert len(box.names()) == 1
    await box.says("wake me at seven on weekdays")
    assert await box.says("change the alarm to eight am") == "Alarm set for 8:00 AM on weekdays."
    assert [alarm.kind for alarm in box.alarms.all()] == ["timer", "alarm"]


async def test_names(box):
    await box.says("set a timer for ten minutes")
    assert await box.says("call it tea") == "It's called the tea timer now."
    assert await box.says("rename the tea timer to coffee") == "It's called the coffee timer now."
    assert box.names() == ["coffee"]


# --- what rings --------------------------------------------------------------------------------------------------


async def test_snoozing(box):
    assert await box.says("snooze") == "Nothing is ringing."
    await box.says("wake me at seven")
    box.passes(19 * 3600)
    assert box.alarms.ringing
    assert await box.says("snooze for five minutes") == "Again in 5 minutes."
    assert not box.alarms.ringing
    box.passes(300)
    assert await box.says("five more minutes") == "Again in 5 minutes."
    box.passes(300)
    assert await box.says("stop the alarm") == "Okay."
    assert not box.alarms.all()


async def test_stopping_what_does_not_ring_cancels_it(box):
    await box.says("set a pasta timer for eight minutes")
    assert await box.says("stop the pasta timer") == "Pasta timer cancelled."
    assert await box.says("stop the timer") == "There is no timer."


async def test_what_cannot_be_kept_is_not_claimed(box):
    box.alarms._database.execute("pragma query_only = on")
    assert await box.says("set a timer for ten minutes") == "Sorry, I couldn't keep that."
    assert [deed.ok for deed in box.last.deeds] == [False]


async def test_what_is_gone_meanwhile_is_not_claimed(box):
    await box.says("set a timer for ten minutes")
    alarms = box.alarms.all()
    skill = box.skills["alarms"]
    reply = await asyncio.to_thread(skill._did, "alarm.cancel", alarms[0], False, "Cancelled.")
    assert reply.failed
    assert not reply.acted


# --- which one ---------------------------------------------------------------------------------------------------

TIMERS = [
    Alarm(1, "timer", "pasta", NOON + timedelta(minutes=8), 480),
    Alarm(2, "timer", "", NOON + timedelta(minutes=10), 600),
    Alarm(3, "timer", "green tea", NOON + timedelta(minutes=20), 1200),
    Alarm(4, "alarm", "", NOON + timedelta(hours=19)),
    Alarm(5, "reminder", "", NOON + timedelta(hours=20), text="turn the oven off"),
]


@pytest.mark.parametrize(
    ("said", "ids"),
    [
        ("pasta", [1]),
        ("the pasta timer", [1]),
        ("pastor", [1]),
        ("tea", [3]),
        ("ten minute", [2]),
        ("the one for ten minutes", [2]),
        ("seven o'clock", [4]),
        ("oven", [5]),
        ("the first one", [1]),
        ("last", [5]),
        ("the timer", [1, 2, 3, 4, 5]),
        ("laundry", []),
        ("three hours", []),
    ],
)
def test_meant(said, ids):
    assert [alarm.id for alarm in meant(TIMERS, said, NOON)] == ids


@given(st.text(max_size=40))
def test_any_words_mean_some_or_none(said):
    assert {alarm.id for alarm in meant(TIMERS, said, NOON)} <= {1, 2, 3, 4, 5}


def test_labels():
    assert [label(alarm, NOON) for alarm in TIMERS] == [
        "pasta timer",
        "10-minute timer",
        "green tea timer",
        "7:00 AM alarm",
        "reminder to turn the oven off",
    ]
