"""What was said as plain words: lower case, no punctuation, numbers as they are spoken."""

from __future__ import annotations

import re
from functools import lru_cache


def listed(text: str) -> tuple[str, ...]:
    """The words of a list that is written in a line."""
    return tuple(text.split())


_ONES = listed(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = listed("zero ten twenty thirty forty fifty sixty seventy eighty ninety")
_FIRST = listed("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth")
_ORDINALS = {
    **dict(enumerate(_FIRST, start=1)),
    **{n: f"{_ONES[n]}th" for n in range(13, 20)},
    **{10 * n: f"{_TENS[n][:-1]}ieth" for n in range(2, 10)},
}
_SIGNS = {
    **{"%": "percent", "°": "degrees", "&": "and", "+": "plus", "=": "equals"},
    **{"×": "times", "÷": "divided by", "@": "at"},
}
_MONEY = {"$": ("dollars", "cents"), "€": ("euros", "cents"), "£": ("pounds", "pence")}


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in text.split("|"))


_SHORT = _pairs(
    "oz=ounce|hrs=hours|hr=hour|mins=minutes|min=minutes|secs=seconds|sec=seconds|km=kilometers|cm=centimeters"
    "|mm=millimeters|kg=kilograms|lbs=pounds|lb=pounds|mph=miles per hour|kmh=kilometers per hour|ok=okay|mr=mister"
    "|tbsp=tablespoons|tsp=teaspoons"
)
_CONTRACTED = _pairs(
    "i'd=i would|i'll=i will|i'm=i am|i've=i have|what's=what is|that's=that is|it's=it is|how's=how is"
    "|where's=where is|when's=when is|who's=who is|let's=let us|don't=do not|doesn't=does not|can't=can not"
    "|cannot=can not|won't=will not|isn't=is not|didn't=did not|there's=there is|we'd=we would|we'll=we will"
    "|you're=you are|they're=they are|that'll=that will|we're=we are|gonna=going to|wanna=want to|gimme=give me"
    "|lemme=let me|aren't=are not|haven't=have not|hasn't=has not|you've=you have|we've=we have|here's=here is"
)
_TOKEN = re.compile(
    r"(?P<money>[$€£])\s?(?P<amount>\d[\d,]*(?:\.\d{1,2})?)"
    r"|(?P<clock>\d{1,2}):(?P<minute>\d\d)"
    r"|(?P<ordinal>\d{1,4})(?:st|nd|rd|th)\b"
    r"|(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"|(?P<half>[ap]\.?m\b\.?)"
    r"|(?P<word>[^\W\d_]+(?:['’][^\W\d_]+)*)"
    r"|(?P<sign>[%°&+=×÷@])",
    re.IGNORECASE,
)


def cardinal(value: int) -> str:
    """0 to 999,999,999 in words; beyond that digit by digit."""
    if value < 20:
        return _ONES[value]
    if value < 100:
        return _TENS[value // 10] + (f" {_ONES[value % 10]}" if value % 10 else "")
    for size, name in ((1_000_000, "million"), (1_000, "thousand"), (100, "hundred")):
        if value >= size and value < 1_000_000_000:
            rest = f" {cardinal(value % size)}" if value % size else ""
            return f"{cardinal(value // size)} {name}{rest}"
    return " ".join(_ONES[int(digit)] for digit in str(value))


def ordinal(value: int) -> str:
    if value in _ORDINALS:
        return _ORDINALS[value]
    if 20 < value < 100:
        return f"{_TENS[value // 10]} {_ORDINALS[value % 10]}"
    last = value % 100
    if not last:
        return f"{cardinal(value)}th"
    return f"{cardinal(value - last)} {ordinal(last)}" if value > 100 else cardinal(value)


def number(text: str) -> str:
    """Digits as they are spoken: "1,250.5" is "one thousand two hundred fifty point five"."""
    whole, _, part = text.replace(",", "").partition(".")
    if len(whole) > 9 or (len(whole) > 1 and whole.startswith("0")):
        said = " ".join(_ONES[int(digit)] for digit in whole[:40])
    else:
        said = cardinal(int(whole))
    return said + (" point " + " ".join(_ONES[int(digit)] for digit in part[:20]) if part else "")


@lru_cache(4096)
def words(text: str) -> tuple[str, ...]:
    """The words of a text, contractions and numbers written out."""
    found: list[str] = []
    for match in _TOKEN.finditer(text.lower().replace("’", "'")):
        found += _said(match).split()
    return tuple(found)


def _said(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if match["money"]:
        whole, _, part = match["amount"].partition(".")
        big, small = _MONEY[match["money"]]
        cents = int(part.ljust(2, "0")) if part else 0
        return f"{number(whole)} {big}" + (f" {cardinal(cents)} {small}" if cents else "")
    if match["clock"]:
        minute = int(match["minute"])
        said = cardinal(minute) if minute >= 10 else f"oh {cardinal(minute)}" if minute else "o'clock"
        return f"{cardinal(int(match['clock']))} {said}"
    if kind == "ordinal":
        return ordinal(int(match["ordinal"]))
    if kind == "number":
        return number(match["number"])
    if kind == "half":
        return match["half"].replace(".", "")
    if kind == "sign":
        return _SIGNS[match["sign"]]
    word = match["word"]
    return _SHORT.get(word) or _CONTRACTED.get(word) or (word if word == "o'clock" else word.removesuffix("'s"))


def phrases(text: str) -> tuple[tuple[str, ...], ...]:
    """Texts that are written with bars between them, as words."""
    return tuple(words(phrase) for phrase in text.split("|"))
