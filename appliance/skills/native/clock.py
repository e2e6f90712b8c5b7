"""The clock: time, date, weekday, week, time zone, days until, here and elsewhere."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from appliance.config import config_home
from appliance.skills.native.base import Answer, Native, text
from appliance.skills.native.spoken import clock, counted, duration, full, left, weekday
from appliance.skills.skill import Call, Reply

PLACES = "places.toml"


class Clock(Native):
    @property
    def answers(self) -> Mapping[str, Answer]:
        return {
            "Time": self._time,
            "Date": self._date,
            "Weekday": self._weekday,
            "DaysUntil": self._days_until,
            "Until": self._until,
            "Week": self._week,
            "Zone": self._zone,
            "Difference": self._difference,
        }

    def _time(self, call: Call) -> Reply:
        now, place = self.services.now(), text(call, "place")
        if not place:
            return Reply(f"It's {clock(now)}.", data=now.isoformat(timespec="seconds"))
        zone = self._zone_of(place)
        if zone is None:
            return _unknown(place)
        there = now.astimezone(zone)
        other = "" if there.date() == now.date() else f" on {weekday(there)}"
        return Reply(f"In {place} it's {clock(there)}{other}.", data=there.isoformat(timespec="seconds"))

    def _date(self, call: Call) -> Reply:
        today, day = self.services.now().date(), self._day(call)
        if day == today:
            return Reply(f"It's {full(day, year=True)}.", data=day.isoformat())
        return Reply(f"{_subject(day, today)} {full(day, year=day.year != today.year)}.", data=day.isoformat())

    def _weekday(self, call: Call) -> Reply:
        today, day = self.services.now().date(), self._day(call)
        if day == today:
            return Reply(f"It's {weekday(day)}.", data=weekday(day))
        named = (day - today).days in (-1, 1)
        subject = _subject(day, today) if named else f"{day:%B} {day.day}, {day.year} {_is(day, today)} a"
        return Reply(f"{subject} {weekday(day)}.", data=weekday(day))

    def _days_until(self, call: Call) -> Reply:
        today, feast = self.services.now().date(), text(call, "feast")
        day = _feast(feast, today) if feast else self._day(call)
        count = (day - today).days
        which = full(day, year=day.year != today.year)
        if count == 0:
            return Reply("That's today.", data=0)
        if count < 0:
            return Reply(f"{which} was {counted(-count, 'day')} ago.", data=count)
        return Reply(f"{counted(count, 'day')} until {which}.", data=count)

    def _until(self, call: Call) -> Reply:
        now = self.services.now()
        when = datetime.fromisoformat(text(call, "when"))
        seconds = (when - now).total_seconds()
        if seconds <= 0:
            return Reply(f"{clock(when)} was {left(-seconds)} ago.", data=round(seconds))
        return Reply(f"{left(seconds)} until {clock(when)}.", data=round(seconds))

    def _week(self, call: Call) -> Reply:
        today, day = self.services.now().date(), self._day(call)
        number = day.isocalendar().week
        subject = "It's" if day == today else f"{full(day, year=day.year != today.year)} {_is(day, today)} in"
        return Reply(f"{subject} week {number}.", data=number)

    def _zone(self, call: Call) -> Reply:
        place = text(call, "place")
        zone = self._zone_of(place) if place else None
        if place and zone is None:
            return _unknown(place)
        there = self.services.now().astimezone(zone) if zone else self.services.now()
        name = getattr(there.tzinfo, "key", "").rpartition("/")[2].replace("_", " ")
        named = f" and follows {name} time" if name and not place and name not in ("UTC", "local") else ""
        subject = f"{place} is" if place else "This box is"
        return Reply(f"{subject} {_offset(there.utcoffset() or timedelta())}{named}.")

    def _difference(self, call: Call) -> Reply:
        place, now = text(call, "place"), self.services.now()
        zone = self._zone_of(place)
        if zone is None:
            return _unknown(place)
        there = now.astimezone(zone)
        ahead = (there.utcoffset() or timedelta()) - (now.utcoffset() or timedelta())
        if not ahead:
            return Reply(f"{place} has the same time as here.", data=0)
        seconds = ahead.total_seconds()
        which = "ahead of" if seconds > 0 else "behind"
        return Reply(f"{place} is {duration(abs(seconds))} {which} us: it's {clock(there)} there.", data=seconds)

    def _day(self, call: Call) -> date:
        day = text(call, "day")
        return date.fromisoformat(day[:10]) if day else self.services.now().date()

    def _zone_of(self, place: str) -> ZoneInfo | None:
        name = self._places.get(_plain(place))
        try:
            return ZoneInfo(name) if name else None
        except (ValueError, ZoneInfoNotFoundError):
            return None

    @cached_property
    def _places(self) -> Mapping[str, str]:
        """The zones of the places that the sentences know; of a file that is damaged nothing."""
        for folder in (config_home() / "skills" / self.name, self.manifest.folder / "data"):
            if (folder / PLACES).is_file():
                return _read(folder / PLACES)
        return {}


def _read(path: Path) -> dict[str, str]:
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8")).get("places", [])
    except (OSError, ValueError):
        return {}
    return {
        _plain(str(said)): str(row.get("zone", ""))
        for row in rows
        if isinstance(row, dict)
        for said in (row.get("name", ""), *row.get("also", []))
    }


def _plain(place: str) -> str:
    return place.strip().lower().removeprefix("the ")


def _unknown(place: str) -> Reply:
    return Reply(f"I don't know the time zone of {place}." if place else "I don't know that place.", failed=True)


def _is(day: date, today: date) -> str:
    return "is" if day >= today else "was"


def _subject(day: date, today: date) -> str:
    """The beginning of a sentence about a day."""
    near = {-1: "Yesterday was", 1: "Tomorrow is"}
    return near.get((day - today).days, f"That {_is(day, today)}")


def _feast(day: str, today: date) -> date:
    """The next one of "12-25"."""
    month, number = map(int, day.split("-"))
    found = date(today.year, month, number)
    return found if found >= today else date(today.year + 1, month, number)


def _offset(offset: timedelta) -> str:
    seconds = offset.total_seconds()
    if not seconds:
        return "on UTC"
    return f"{duration(abs(seconds))} {'ahead of' if seconds > 0 else 'behind'} UTC"
