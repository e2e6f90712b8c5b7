"""Times as they are said. What comes out is written ("7:20 PM", "December 24"): the voice's own rules turn it into
words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_UNITS = ((604_800, "week"), (86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def counted(count: int, unit: str) -> str:
    return f"{count} {unit}" + ("" if count == 1 else "s")


def listed(parts: Sequence[str], joint: str = "and") -> str:
    """ "a", "a and b", "a, b and c"."""
    return f" {joint} ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def duration(seconds: float) -> str:
    """ "1 hour and 30 minutes"; weeks only where nothing is left over."""
    rest, parts = max(1, round(seconds)), []
    for size, unit in _UNITS:
        if unit == "week" and rest % size:
            continue
        count, rest = divmod(rest, size)
        if count:
            parts.append(counted(count, unit))
    return listed(parts)


def left(seconds: float) -> str:
    """A duration as far as the listener needs it: seconds only below 10 minutes, minutes only below a day."""
    size = 1 if seconds < 600 else 60 if seconds < 86_400 else 3600
    return duration(max(1, round(seconds / size) * size))


def length(seconds: float) -> str:
    """In front of a noun: "8-minute", "1-hour-and-30-minute"."""
    return duration(seconds).replace("s ", " ").removesuffix("s").replace(" ", "-")


def clock(when: datetime) -> str:
    """ "7:20 PM", "noon", "midnight"."""
    if when.minute == 0 and when.hour in (0, 12):
        return "noon" if when.hour else "midnight"
    return f"{when.hour % 12 or 12}:{when.minute:02} {'AM' if when.hour < 12 else 'PM'}"


def weekday(day: date) -> str:
    return WEEKDAYS[day.weekday()]


def full(day: date, *, year: bool = False) -> str:
    """ "Tuesday, December 1"."""
    return f"{weekday(day)}, {day:%B} {day.day}" + (f", {day.year}" if year else "")


def near(day: date, today: date) -> str:
    """A day as seen from another: "today", "tomorrow", "Friday", "Friday, January 1"."""
    ahead = (day - today).days
    if ahead in (0, 1):
        return ("today", "tomorrow")[ahead]
    return weekday(day) if 1 < ahead < 7 else full(day, year=day.year != today.year)


def moment(when: datetime, now: datetime) -> str:
    """ "7:00 AM", "tomorrow at 7:00 AM"; both in the same zone."""
    if when.date() == now.date():
        return clock(when)
    return f"{near(when.date(), now.date())} at {clock(when)}"


def weekly(days: Sequence[str]) -> str:
    """ "every day", "on weekdays", "on Mondays and Fridays"."""
    found = sorted(set(days), key=DAYS.index)
    if len(found) == 7:
        return "every day"
    if tuple(found) in (DAYS[:5], DAYS[5:]):
        return "on weekdays" if len(found) == 5 else "on weekends"
    return "on " + listed([WEEKDAYS[DAYS.index(day)] + "s" for day in found])


def ordinal(number: int) -> str:
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ends.get(number % 10, 'th')}"
