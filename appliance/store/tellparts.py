"""The pieces of what is told: keys of subjects, slots, owners, values, and the kinds of value that there are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from appliance.store.tellwords import ATTRIBUTES, ID, ORDERS, TIME
from appliance.store.units import Kind, Unit

ME = "me"
PLAIN, KNOWN, TELLING, SURE = 0.4, 0.6, 0.85, 0.9
"""Importance of a statement; of one whose subject and value are known; of what was to be remembered; of names, numbers,
allergies and complaints, which do not fade."""
PASSING = 0.2
"""Of a mood."""
_TRAIL = re.compile(
    r"[\s,]+(?:now|nowadays|these days|at the moment|right now|actually|by the way|please|too|as well|though"
    r"|instead|then|again"
    r"|you know|okay|ok|any more|any longer|already|parley|today|originally|by now|for now|after all|instead)$",
    re.IGNORECASE,
)
_AND = re.compile(r"\s*,\s*(?:and|or)\s+|\s+(?:and|or|nor)\s+|\s*,\s*")
_DETERMINER = re.compile(
    r"^(?:(?:my|our|the|a|an|this|that|his|her|their|some)\s+)?(?:(?:new|current|latest)\s+)?", re.I
)
_OF = re.compile(r"^(?i:the) ([\w ]+?) of (?=(?:my|our|the|his|her) |[A-Z])(.+)$")
NUMBER = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty(?:[ -]\w+)?)"
AGE = re.compile(rf"^(?:about |almost |just |only )?({NUMBER})(?: years old| years of age)?$", re.IGNORECASE)
ADVERB = re.compile(
    r"^(?:really|also|just|still|now|always|usually|actually|absolutely|very much|quite|only|already|never|both|all"
    r"|currently"
    r"|recently|finally|generally|mostly|often|sometimes|definitely|certainly|probably|truly|totally|especially)\s+",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Scene:
    """What an utterance has told so far, and what it may refer to."""

    said: datetime
    about: str = ""
    """The last subject that is not the user: "she"."""
    here: bool = False
    """Whether it was spoken of in this utterance."""
    thing: str = ""
    """The last subject of all: "it"."""
    subject: str = ""
    """The words of the subject of the last clause."""
    recent: Sequence[Unit] = ()
    """Units spoken of before, that a correction may be about."""
    units: list[Unit] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)


def key(subject: str) -> str:
    """By which two mentions of one subject are recognised: "the meeting", "my meeting"."""
    return " ".join(_DETERMINER.sub("", subject.strip().lower()).replace("'s", "").split())


def slot_of(subject: str, attribute: str, value: str = "") -> str:
    return "|".join(part for part in (key(subject), attribute.lower(), key(value)) if part)


def is_order(text: str) -> bool:
    """Whether it tries to tell the box what to do, wherever it is read."""
    return bool(ORDERS.search(text))


def fact(
    owner: str,
    attribute: str,
    value: str,
    text: str,
    *,
    kind: Kind = "fact",
    slot: str = "",
    importance: float = KNOWN,
) -> Unit:
    importance = max(importance, SURE if ID.search(value) else 0.0)
    return Unit(kind, text, key(owner), attribute, value, slot or slot_of(owner, attribute), importance=importance)


def owned(subject: str) -> tuple[str, str]:
    """Whose, and what of it: ("my daughter", "name") of "my daughter's name", (ME, "name") of "my name"."""
    if found := _OF.match(subject):
        return found[2], found[1].lower()
    if found := re.match(r"(.+)'s (.+)$", subject):
        return found[1], found[2].lower()
    if found := re.match(r"(?:my|our|the) (?:new |current )?(.+)$", subject, re.IGNORECASE):
        noun = found[1].lower()
        if ATTRIBUTES.fullmatch(noun):
            return ME, noun
        if ATTRIBUTES.fullmatch(noun.rsplit(" ", 1)[-1]):
            return ME, noun
    return subject, ""


def value_of(text: str) -> str:
    text = text.strip(" ,.!?;:\"'")
    while (shorter := _TRAIL.sub("", text)) != text:
        text = shorter.strip(" ,")
    return text


def items_of(text: str) -> Sequence[str]:
    return [part.strip() for part in _AND.split(text) if part and part.strip()]


def class_of(value: str) -> str:
    """What kind of value it is: a correction is of the same kind as what it corrects."""
    if ID.search(value) or re.fullmatch(r"[\d .,]+", value):
        return "number"
    if is_when(value) or TIME.match(value):
        return "time"
    return "name" if value[:1].isupper() else "other"


def is_when(value: str) -> bool:
    start = re.match(r"(?:at|on|in|from|this|next|every|until|between|before|after|around|about)\s+", value)
    found = TIME.search(value)
    return bool(found and (start or found.start() == 0))


def place_of(value: str) -> str:
    found = re.match(
        r"((?:in|on|under|behind|next to|inside|near|beside|above|below|between|outside|upstairs|downstairs|at) .+)",
        value,
    )
    return found[1] if found else ""
