"""Which of several timers, alarms and reminders is meant, and how each is called when it is spoken of."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from datetime import datetime

from appliance.skills import numbers
from appliance.skills.intents.words import listed, words
from appliance.skills.native.spoken import clock, length, moment, weekly
from appliance.skills.skill import Alarm

_EMPTY = frozenset(
    listed(
        "the my a an one ones timer timers alarm alarms reminder reminders for of that to about please with called "
        "named at no"
    )
)
_PLACES = {
    "first": 0,
    "next": 0,
    "soonest": 0,
    "second": 1,
    "third": 2,
    "fourth": 3,
    "fifth": 4,
    "last": -1,
    "latest": -1,
}


def label(alarm: Alarm, now: datetime) -> str:
    """ "pasta timer", "8-minute timer", "7:00 AM alarm", "reminder to turn the oven off"."""
    if alarm.kind == "reminder":
        return f"reminder {purpose(alarm.text)}" if alarm.text else "reminder"
    if alarm.name:
        return f"{alarm.name} {alarm.kind}"
    if alarm.kind == "timer":
        return f"{length(alarm.seconds)} timer"
    return f"{clock(local(alarm, now))} alarm"


def purpose(text: str) -> str:
    """ "to turn the oven off", "about the meeting"."""
    return text if text.startswith("about ") else f"to {text}"


def local(alarm: Alarm, now: datetime) -> datetime:
    """When it is due, in the zone of `now`."""
    return alarm.due.astimezone(now.tzinfo)


def due(alarm: Alarm, now: datetime) -> str:
    """ "7:00 AM on weekdays", "tomorrow at 7:00 AM"."""
    when = local(alarm, now)
    return f"{clock(when)} {weekly(alarm.repeat)}" if alarm.repeat else moment(when, now)


def left(alarm: Alarm, now: datetime) -> float:
    """Seconds."""
    return alarm.paused if alarm.paused is not None else max(0.0, (alarm.due - now).total_seconds())


def meant(alarms: Sequence[Alarm], said: str, now: datetime) -> list[Alarm]:
    """Those that the words may mean, by name, length, time or place in the order of `alarms`; none where nothing
    fits."""
    spoken = words(said)
    telling = [word for word in spoken if word not in _EMPTY]
    if not telling:
        return list(alarms)
    by_name = [alarm for alarm in alarms if set(telling) <= set(words(f"{alarm.name} {alarm.text}"))]
    if by_name:
        same = [alarm for alarm in by_name if [word for word in words(alarm.name) if word not in _EMPTY] == telling]
        return same or by_name
    for start in range(len(spoken)):
        found = numbers.duration(spoken, start, now)
        if found and (timed := [alarm for alarm in alarms if alarm.seconds == found[0]]):
            return timed
        time = numbers.time(spoken, start, now)
        if time and (timed := [alarm for alarm in alarms if _at(alarm, str(time[0]), now)]):
            return timed
    if len(telling) == 1 and telling[0] in _PLACES:
        return list(alarms[_PLACES[telling[0]] :][:1])
    names = {" ".join(words(alarm.name)): alarm for alarm in alarms if alarm.name}
    close = difflib.get_close_matches(" ".join(telling), names, n=1, cutoff=0.6)
    return [alarm for alarm in alarms if " ".join(words(alarm.name)) in close]


def _at(alarm: Alarm, time: str, now: datetime) -> bool:
    """Whether it is due at "07:30", or twelve hours later: who says "the seven o'clock alarm" says no more."""
    when = local(alarm, now)
    hour, minute = map(int, time.split(":"))
    return not alarm.seconds and when.minute == minute and (when.hour - hour) % 12 == 0
