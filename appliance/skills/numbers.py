"""Values out of spoken words: numbers, durations, times, dates, weekdays, money. English.

Each reader takes the words (`intents.words.words`), a place and the time it is, and gives (value, end) or None; the
value is canonical: numbers, seconds, "19:30", "2026-12-01", ISO 8601 with offset, ["mon", ...], "12.50".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta

from appliance.skills.intents.words import listed
from appliance.skills.skill import Json

Words = Sequence[str]
Found = tuple[Json, int] | None
Reader = Callable[[Words, int, datetime], Found]

_ONES = {
    word: value
    for value, word in enumerate(
        listed(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen"
        )
    )
}
_TENS = {
    word: 10 * n for n, word in enumerate(listed("twenty thirty forty fifty sixty seventy eighty ninety"), start=2)
}
_ORDINALS = {
    word: n
    for n, word in enumerate(
        listed(
            "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
            "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
        ),
        start=1,
    )
} | {"thirtieth": 30}
_UNITS = {
    **dict.fromkeys(("second", "seconds"), 1),
    **dict.fromkeys(("minute", "minutes"), 60),
    **dict.fromkeys(("hour", "hours"), 3600),
    **dict.fromkeys(("day", "days"), 86_400),
    **dict.fromkeys(("week", "weeks"), 604_800),
}
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_NAMES = dict(zip(listed("monday tuesday wednesday thursday friday saturday sunday"), DAYS, strict=True))
_MONTHS = {
    name: n
    for n, name in enumerate(
        listed("january february march april may june july august september october november december"), start=1
    )
}


def _at(words: Words, place: int) -> str:
    return words[place] if 0 <= place < len(words) else ""


# --- numbers ---------------------------------------------------------------------------------------------------------


def _below_hundred(words: Words, place: int) -> tuple[int, int] | None:
    word = _at(words, place)
    if word in _TENS:
        unit = _ONES.get(_at(words, place + 1), 0)
        return (_TENS[word] + unit, place + 2) if 0 < unit < 10 else (_TENS[word], place + 1)
    return (_ONES[word], place + 1) if word in _ONES else None


def _below_thousand(words: Words, place: int) -> tuple[int, int] | None:
    article = _at(words, place) in ("a", "one") and _at(words, place + 1) == "hundred"
    found = (1, place + 1) if article else _below_hundred(words, place)
    if found is None or _at(words, found[1]) != "hundred":
        return found
    value, end = 100 * found[0], found[1] + 1
    rest = _below_hundred(words, end + (_at(words, end) == "and"))
    return (value + rest[0], rest[1]) if rest else (value, end)


def whole(words: Words, place: int) -> tuple[int, int] | None:
    """A whole number: "two hundred and five", "a dozen", "three thousand"."""
    if _at(words, place) == "a" and _at(words, place + 1) in ("dozen", "thousand", "million", "couple"):
        sizes = {"dozen": 12, "thousand": 1_000, "million": 1_000_000, "couple": 2}
        return sizes[words[place + 1]], place + 2 + (_at(words, place + 2) == "of" and words[place + 1] == "couple")
    total, end, seen = 0, place, False
    for name, size in (("million", 1_000_000), ("thousand", 1_000)):
        part = _below_thousand(words, end)
        if part and _at(words, part[1]) == name:
            total, end, seen = total + part[0] * size, part[1] + 1, True
    rest = _below_thousand(words, end + (seen and _at(words, end) == "and"))
    if rest:
        return total + rest[0], rest[1]
    return (total, end) if seen else None


def number(words: Words, place: int, now: datetime | None = None) -> Found:
    """A number: whole, decimal ("four point two"), with a fraction ("two and a half"), or negative."""
    if _at(words, place) in ("minus", "negative"):
        found = number(words, place + 1)
        return (-found[0], found[1]) if found and isinstance(found[0], int | float) else None
    if fraction := _fraction(words, place):
        return fraction
    found = whole(words, place)
    if found is None:
        return None
    value, end = found
    if _at(words, end) == "point":
        digits, last = "", end + 1
        while _at(words, last) in _ONES and _ONES[words[last]] < 10:
            digits, last = digits + str(_ONES[words[last]]), last + 1
        if digits:
            return float(f"{value}.{digits}"), last
        if part := _below_hundred(words, end + 1):
            return float(f"{value}.{part[0]}"), part[1]
    if _at(words, end) == "and" and (fraction := _fraction(words, end + 1)) and isinstance(fraction[0], float):
        return value + fraction[0], fraction[1]
    return value, end


def _fraction(words: Words, place: int) -> tuple[float, int] | None:
    start = place + (_at(words, place) in ("a", "one"))
    match _at(words, start):
        case "half":
            return 0.5, start + 1
        case "quarter":
            return 0.25, start + 1
        case "third" if start > place:
            return 1 / 3, start + 1
    if _at(words, place) == "three" and _at(words, place + 1) == "quarters":
        return 0.75, place + 2
    return None


def ordinal(words: Words, place: int) -> tuple[int, int] | None:
    word = _at(words, place)
    if word in _ORDINALS:
        return _ORDINALS[word], place + 1
    unit = _ORDINALS.get(_at(words, place + 1), 0)
    return (_TENS[word] + unit, place + 2) if word in _TENS and 0 < unit < 10 else None


# --- durations -------------------------------------------------------------------------------------------------------


def duration(words: Words, place: int, now: datetime | None = None) -> Found:
    """Seconds: "an hour and a half", "two minutes thirty", "half an hour", "ninety seconds"."""
    total, end = 0.0, place
    last = 0
    while True:
        start = end + (end > place and _at(words, end) == "and")
        found = _piece(words, start, last)
        if found is None:
            break
        seconds, end, last = found
        total += seconds
    if end == place:
        return None
    return (int(total) if total == int(total) else total), end


def _piece(words: Words, place: int, above: int) -> tuple[float, int, int] | None:
    """One count and its unit, smaller than the one in front (`above`, 0: none)."""
    if above and (fraction := _fraction(words, place)) and _at(words, fraction[1]) not in _UNITS:
        return (fraction[0] * above, fraction[1], 1) if _at(words, fraction[1]) != "of" else None
    found = number(words, place)
    if found is None and _at(words, place) in ("a", "an", "one") and _at(words, place + 1) in _UNITS:
        found = (1, place + 1)
    if found is None or not isinstance(found[0], int | float):
        return None
    count, end = float(found[0]), found[1]
    while _at(words, end) in ("a", "an", "of"):
        end += 1
    unit = _UNITS.get(_at(words, end), 0)
    if not unit and above > 1 and end == found[1] and above in (60, 3600) and count < 60:
        return count * above / 60, end, 1  # "two minutes thirty"
    if not unit or (above and unit >= above):
        return None
    seconds, end = count * unit, end + 1
    return seconds, end, unit


# --- times and dates -------------------------------------------------------------------------------------------------


def _clock(words: Words, place: int) -> tuple[int, bool, int] | None:
    """Minutes after midnight, whether it may as well be twelve hours later, and the end."""
    at = place + (_at(words, place) == "at")
    word = _at(words, at)
    if word in ("noon", "midday"):
        return 720, False, at + 1
    if word == "midnight":
        return 0, False, at + 1
    found = _hands(words, at)
    if found is None:
        return None
    minutes, end = found
    if _at(words, end) == "o'clock":
        end += 1
    return _half_day(words, minutes, end)


def _hands(words: Words, place: int) -> tuple[int, int] | None:
    """Hours and minutes by the clock's face."""
    start = place + (_at(words, place) == "a")
    before = {"half": 30, "quarter": 15}.get(_at(words, start))
    past = (before, start + 1) if before is not None else whole(words, place)
    if past and past[0] < 60:
        end = past[1] + (_at(words, past[1]) in ("minutes", "minute"))
        hour = whole(words, end + 1)
        if _at(words, end) in ("past", "after") and hour and hour[0] < 24:
            return 60 * hour[0] + past[0], hour[1]
        if _at(words, end) in ("to", "before") and hour and 0 < hour[0] < 24:
            return 60 * hour[0] - past[0], hour[1]
    if before is not None:
        return None
    four = whole(words, place)
    if four and 100 < four[0] < 2400 and four[0] % 100 < 60:
        return 60 * (four[0] // 100) + four[0] % 100, four[1] + (_at(words, four[1]) == "hours")
    hour = _below_hundred(words, place)
    if hour is None or hour[0] > 24:
        return None
    value, end = hour
    if _at(words, end) == "hundred":
        return (60 * value % 1440, end + 1 + (_at(words, end + 1) == "hours"))
    zero = _at(words, end) in ("oh", "zero")
    minute = _below_hundred(words, end + zero)
    if minute and (minute[0] >= 10 or zero) and minute[0] < 60 and _at(words, minute[1]) not in _UNITS:
        return (60 * value + minute[0]) % 1440, minute[1]
    return 60 * value % 1440, end


def _half_day(words: Words, minutes: int, end: int) -> tuple[int, bool, int]:
    here = tuple(_at(words, end + n) for n in range(3))
    half, length = "", 0
    if here[0] in ("am", "pm"):
        half, length = here[0], 1
    elif here[0] == "a" and here[1] == "m":
        half, length = "am", 2
    elif here[0] == "p" and here[1] == "m":
        half, length = "pm", 2
    elif here[:2] == ("in", "the") and here[2] in ("morning", "afternoon", "evening"):
        half, length = ("am" if here[2] == "morning" else "pm"), 3
    elif here[:2] == ("at", "night"):
        half, length = ("pm" if minutes >= 5 * 60 else "am"), 2
    elif here[0] == "tonight":
        half = "pm"
    open_ = not half and 60 <= minutes < 780
    if half == "pm" and minutes < 720:
        minutes += 720
    if half == "am" and minutes >= 720:
        minutes -= 720
    return minutes, open_, end + length


def time(words: Words, place: int, now: datetime | None = None) -> Found:
    """A time of day: "half past seven", "seven thirty pm", "nineteen hundred". Without am or pm the morning's."""
    found = _clock(words, place)
    return (f"{found[0] // 60:02}:{found[0] % 60:02}", found[2]) if found else None


def day(words: Words, place: int, now: datetime) -> Found:
    """A date: "tomorrow", "next Tuesday", "the third of March", "in two weeks"."""
    found = _day(words, place, now)
    return (found[0].isoformat(), found[1]) if found else None


def _day(words: Words, place: int, now: datetime) -> tuple[date, int] | None:
    at = place + (_at(words, place) in ("on", "for"))
    today = now.date()
    word = _at(words, at)
    near = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1}
    if word in near:
        return today + timedelta(near[word]), at + 1
    if tuple(words[at : at + 3]) == ("day", "after", "tomorrow"):
        return today + timedelta(2), at + 3
    if tuple(words[at : at + 4]) == ("the", "day", "after", "tomorrow"):
        return today + timedelta(2), at + 4
    skip = at + (word in ("next", "this", "coming"))
    name = _at(words, skip).removesuffix("s") if _at(words, skip) not in _DAY_NAMES else _at(words, skip)
    if name in _DAY_NAMES:
        ahead = (DAYS.index(_DAY_NAMES[name]) - today.weekday()) % 7 or 7
        return today + timedelta(ahead), skip + 1
    if word == "in" and (count := whole(words, at + 1)) and _at(words, count[1]) in ("day", "days", "week", "weeks"):
        days = count[0] * (7 if words[count[1]].startswith("week") else 1)
        return (today + timedelta(days), count[1] + 1) if days < 100_000 else None
    return _calendar(words, at, today)


def _calendar(words: Words, place: int, today: date) -> tuple[date, int] | None:
    if (month := _MONTHS.get(_at(words, place))) is not None:
        start = place + 1 + (_at(words, place + 1) == "the")
        found = ordinal(words, start) or _below_hundred(words, start)
        return _dated(month, found[0], words, found[1], today) if found else None
    start = place + (_at(words, place) == "the")
    found = ordinal(words, start)
    if found is None:
        return None
    after = found[1] + (_at(words, found[1]) == "of")
    month = _MONTHS.get(_at(words, after))
    if month is not None:
        return _dated(month, found[0], words, after + 1, today)
    if start == place:
        return None
    for ahead in range(12):
        month = (today.month - 1 + ahead) % 12 + 1
        made = _make(today.year + (today.month - 1 + ahead) // 12, month, found[0])
        if made and made >= today:
            return made, found[1]
    return None


def _dated(month: int, number: int, words: Words, end: int, today: date) -> tuple[date, int] | None:
    year = whole(words, end)
    if year and 1900 <= year[0] < 2200:
        made = _make(year[0], month, number)
        return (made, year[1]) if made else None
    if _at(words, end) == "twenty" and (rest := _below_hundred(words, end + 1)) and 10 <= rest[0] < 100:
        made = _make(2000 + rest[0], month, number)
        return (made, rest[1]) if made else None
    made = _make(today.year, month, number)
    if made and made < today:
        made = _make(today.year + 1, month, number)
    return (made, end) if made else None


def _make(year: int, month: int, number: int) -> date | None:
    try:
        return date(year, month, number)
    except ValueError:
        return None


def moment(words: Words, place: int, now: datetime) -> Found:
    """A date and a time: "tomorrow at seven", "half past six on Friday", "in ten minutes". A time alone is its next; a
    date alone is nine in the morning."""
    if _at(words, place) == "in" and (wait := duration(words, place + 1)) and isinstance(wait[0], int | float):
        try:
            return (now + timedelta(seconds=wait[0])).isoformat(timespec="seconds"), wait[1]
        except OverflowError:
            return None
    first = _day(words, place, now)
    clock = _clock(words, first[1] if first else place)
    if clock and not first:
        first = _day(words, clock[2], now)
        end = first[1] if first else clock[2]
    elif clock:
        end = clock[2]
    elif first:
        end = first[1]
    else:
        return None
    evening = "tonight" in words[place:end]
    when = first[0] if first else now.date()
    minutes, either = (clock[0], clock[1]) if clock else (20 * 60 if evening else 9 * 60, False)
    if either and evening and minutes < 720:
        minutes += 720
    made = _on(when, minutes, now)
    if first is None:
        made = _next(made, minutes, either, now)
    return made.isoformat(timespec="seconds"), end


def _on(when: date, minutes: int, now: datetime) -> datetime:
    return datetime(when.year, when.month, when.day, minutes // 60, minutes % 60, tzinfo=now.tzinfo)


def _next(made: datetime, minutes: int, either: bool, now: datetime) -> datetime:
    """The next time that a clock shows this."""
    options = [made]
    if either:
        options.append(_on(made.date(), (minutes + 720) % 1440, now))
    options += [option + timedelta(1) for option in options]
    return min(option for option in options if option > now)


def weekdays(words: Words, place: int, now: datetime | None = None) -> Found:
    """Days that come again: "every day", "weekdays", "Mondays and Fridays"."""
    at = place + (_at(words, place) in ("on", "every", "each"))
    every = _at(words, place) in ("every", "each")
    word = _at(words, at)
    groups: dict[str, tuple[str, ...]] = {
        "weekday": DAYS[:5],
        "weekend": DAYS[5:],
        "daily": DAYS,
        "day": DAYS if every else (),
    }
    if days := groups.get(word.removesuffix("s") if word != "day" else word):
        return list(days), at + 1
    found: list[str] = []
    end = at
    while True:
        start = end + (bool(found) and _at(words, end) == "and")
        start += bool(found) and _at(words, start) in ("every", "on")
        name = _at(words, start)
        plural = name.endswith("s") and name.removesuffix("s") in _DAY_NAMES
        if not (plural or (name in _DAY_NAMES and every)):
            break
        found.append(_DAY_NAMES[name.removesuffix("s") if plural else name])
        end = start + 1
    return (sorted(set(found), key=DAYS.index), end) if found else None


def money(words: Words, place: int, now: datetime | None = None) -> Found:
    """An amount as decimal text: "five dollars fifty", "twelve euros"."""
    found = number(words, place)
    if found is None or not isinstance(found[0], int | float):
        return None
    amount, end = float(found[0]), found[1]
    unit = _at(words, end)
    if unit in ("cents", "cent", "pence", "p"):
        return f"{amount / 100:.2f}", end + 1
    if unit not in ("dollars", "dollar", "euros", "euro", "pounds", "pound", "bucks"):
        return None
    start = end + 1 + (_at(words, end + 1) == "and")
    cents = _below_hundred(words, start)
    if cents:
        return f"{amount + cents[0] / 100:.2f}", cents[1] + (_at(words, cents[1]) in ("cents", "cent", "pence"))
    return f"{amount:.2f}", end + 1


READERS: dict[str, Reader] = {
    "number": number,
    "duration": duration,
    "time": time,
    "date": day,
    "datetime": moment,
    "weekdays": weekdays,
    "money": money,
}
