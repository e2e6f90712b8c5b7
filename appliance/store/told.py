"""What the user's words say that is worth keeping: clauses to units, by rules of English alone.

Only what is asserted becomes a unit. Questions, commands, conditions, hearsay and guesses do not, nor does a text that
gives orders: a memory is data. The rules are few and go from the subject to the verb to what is said of it, so that
what holds of "I" holds of "my daughter" and of "Tom" without ever being taken for the user.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from appliance.store.clauses import Clause, clauses, dated
from appliance.store.knowenglish import STOP
from appliance.store.tellparts import (
    ADVERB,
    ME,
    PLAIN,
    SURE,
    TELLING,
    Scene,
    class_of,
    fact,
    is_order,
    key,
    owned,
    value_of,
)
from appliance.store.tellverbs import decided, said_of
from appliance.store.tellwords import (
    COMPLAINT,
    CONDITION,
    DETERMINERS,
    FINITE,
    HEARSAY,
    ID,
    IMPERATIVES,
    NAMED,
    PAST,
    PEOPLE,
    TIME,
    UNSURE,
)
from appliance.store.units import Unit

_PRONOUN = re.compile(r"he|she|they|it|this|that|this one|that one", re.IGNORECASE)
_THEIR = re.compile(r"(?:his|her|their|its) (.+)", re.IGNORECASE)
_INVERTED = re.compile(
    r"(?!(?:what|who|which|where|it|this|that|not)\b)([\w' -]{2,40}?) "
    r"is ((?:my|our) (?:favourite [\w ]+|(?:[\w']+ )*name))$",
    re.I,
)
_LET_US = re.compile(r"let us (?:go with|take|choose|have|stick with|stick to) (.+)$", re.IGNORECASE)
_NOBODY = re.compile(
    r"(?:some|many|most|few|all|no) \w+|people|everybody|everyone|somebody|someone|nobody|one", re.IGNORECASE
)
_CALL_ME = re.compile(
    r"(?:you can |you may |people |everybody |everyone |my friends )?(?:please )?call me ([A-Z][\w'-]+)$", re.I
)


@dataclass(frozen=True, slots=True)
class Told:
    """What an utterance comes to: `units` to keep, `ends` are slots whose unit does not hold any more, `done` are words
    of tasks that are over. `about` is whom or what it spoke of last, for "it" and "he" in the next."""

    units: tuple[Unit, ...] = ()
    ends: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    about: str = ""
    corrects: bool = False


def told(text: str, said: datetime, *, about: str = "", recent: Sequence[Unit] = ()) -> Told:
    """What the user's words say, at the time they were said (aware). `about` and `recent` are what was spoken of
    before: the last subject, and the last units with a slot."""
    scene = Scene(said, about, recent=recent)
    parts = clauses(text)
    for clause in parts:
        _tell(clause, scene)
    units = tuple(_finished(unit, said) for unit in scene.units)
    corrects = any(clause.corrects for clause in parts)
    return Told(units, tuple(scene.ends), tuple(scene.done), scene.about, corrects)


def _finished(unit: Unit, said: datetime) -> Unit:
    return replace(unit, text=dated(unit.text, said), value=dated(unit.value, said), said=said)


def _tell(clause: Clause, scene: Scene) -> None:
    text = clause.text
    if clause.asked or is_order(text) or CONDITION.search(text):
        return
    text, unsure = _sure(f"{scene.subject} {text}" if clause.continues and scene.subject else text)
    if inverted := _INVERTED.match(text):
        text = f"{inverted[2]} is {inverted[1]}"
    if chosen := _LET_US.match(text):
        scene.units += decided(chosen[1], text)
        return
    if called := _CALL_ME.match(text):
        scene.units.append(fact(ME, "name", called[1], f"My name is {called[1]}", importance=SURE))
        return
    if HEARSAY.search(text) or UNSURE.search(text):
        return
    weight = 0.7 if unsure else 1.0
    found = _split(text)
    if found is None:
        if fixed := _corrected(clause, scene):
            scene.units.append(fixed)
        elif (clause.explicit and len(text.split()) >= 2) or _tells(text):
            _join(scene, Unit("fact", text, importance=_plain(text, clause) * weight))
        return
    subject, verb, rest = found
    scene.subject = subject
    chosen = re.search(r" for (?:the|my|our) .+$", found[2])
    if subject.lower() == "it" and chosen and not scene.thing:
        scene.units += decided(found[2], text)
        return
    if clause.corrects and subject.lower() in ("it", "that", "this"):
        if fixed := _corrected(clause, scene):
            scene.units.append(fixed)
        return
    if _NOBODY.fullmatch(subject):
        return
    if (subject := _resolved(subject, scene)) == "":
        if COMPLAINT.search(text):
            scene.units.append(Unit("emotion", text, ME, "complaint", importance=SURE))
        elif _tells(text):
            _join(scene, Unit("fact", text, importance=_plain(text, clause) * weight))
        return
    if _PRONOUN.fullmatch(found[0]) or _THEIR.match(found[0]):
        text = f"{subject} {found[1]} {found[2]}".strip()  # on another day nobody knows who "she" was
    if (named := re.match(r"(my (\w+)) ([A-Z]\w+)$", subject)) and named[2].lower() in PEOPLE:
        subject = named[1]
        name = f"{subject}'s name is {named[3]}"
        scene.units.append(fact(subject, "name", named[3], name, importance=SURE))
    if subject != ME:
        owner = owned(subject)[0]
        if owner == ME and scene.here and subject.lower().startswith("the "):
            subject = f"{scene.about}'s {subject[4:]}"  # "Jonas has grown, the shoe size is 29"
        elif owner != ME:
            scene.about, scene.here = owner, True
        scene.thing = subject
    before = len(scene.units), len(scene.ends), len(scene.done)
    for unit in said_of(subject, verb, rest, text, scene):
        importance = max(unit.importance * weight, TELLING if clause.explicit else 0.0)
        scene.units.append(replace(unit, importance=round(importance, 3)))
    if before == (len(scene.units), len(scene.ends), len(scene.done)) and _worth_keeping(text, verb, rest):
        scene.units.append(Unit("fact", text, subject=key(subject), importance=_plain(text, clause) * weight))


def _join(scene: Scene, unit: Unit) -> None:
    """ "It was six kilometres" says something only together with what it was said of."""
    last = scene.units[-1] if scene.units else None
    if last is None or last.slot or last.kind != "fact":
        scene.units.append(unit)
        return
    text = f"{last.text}; {unit.text}"
    scene.units[-1] = replace(last, text=text, importance=max(last.importance, unit.importance))


def _sure(text: str) -> tuple[str, bool]:
    """Without "I think that", which makes it less certain."""
    found = re.match(r"^I (?:think|believe|guess|suppose|am pretty sure|am quite sure)(?: that)?\s+(?=\w+ \w+)", text)
    return (text[found.end() :], True) if found else (text, False)


def _split(text: str) -> tuple[str, str, str] | None:
    """Subject, verb and the rest; None where there is no statement."""
    words = text.split()
    first = words[0].lower()
    if first in IMPERATIVES or first in FINITE:
        return None
    for number, word in enumerate(words[1:9], start=1):
        lower = word.lower().strip(",")
        if number == 1 and first in DETERMINERS:
            continue
        if lower in FINITE or (number <= 4 and PAST.fullmatch(lower) and first not in ("a", "an")):
            if first in (
                "i",
                "we",
                "my",
                "our",
                "the",
                "this",
                "that",
                "it",
                "he",
                "she",
                "they",
                "his",
                "her",
                "their",
            ):
                break
            if first in ("there", "a", "an", "some", "both", "all", "every", "each", "these", "those", "one"):
                break
            if (
                words[0][:1].isupper()
                or "'s" in words[0]
                or lower in ("is", "are", "was", "were", "has", "lives", "works")
            ):
                break
            return None
    else:
        if (number := _third_person(words)) == 0:
            return None
        lower = words[number].lower().strip(",")
    subject, rest = " ".join(words[:number]).strip(","), " ".join(words[number + 1 :])
    adverb = ADVERB.match(subject.split(" ", 1)[1] + " ") if " " in subject and first in ("i", "we") else None
    subject = subject.split()[0] if adverb else subject
    return subject, lower, rest


def _third_person(words: Sequence[str]) -> int:
    """Where the verb stands in "the tap drips": the first word with an s behind what may be a subject; 0: nowhere."""
    begin = 2 if words[0].lower() in ("the", "my", "our", "his", "her", "their", "this", "that") else 1
    if begin == 1 and not words[0][:1].isupper():
        return 0
    found = (n for n, word in enumerate(words[begin:6], start=begin) if re.fullmatch(r"[a-z]{2,}[a-rt-z]s[,.]?", word))
    return next(found, 0)


def _resolved(subject: str, scene: Scene) -> str:
    lower = subject.lower()
    if lower in ("i", "we", "i myself"):
        return ME
    if _PRONOUN.fullmatch(subject):
        return scene.about if lower in ("he", "she", "they") else scene.thing or scene.about
    if found := _THEIR.match(subject):
        return f"{scene.about}'s {found[1]}" if scene.about else ""
    return re.sub(r"^(?:our)\b", "my", subject, flags=re.IGNORECASE)


def _worth_keeping(text: str, verb: str, rest: str) -> bool:
    if re.search(r"\bno longer the (?:same|old)\b|\bchanged (?:my|our) minds?\b|^I have come round$", text):
        return False
    return len(text.split()) >= 3 and not re.match(r"(?:that|it) (?:is|was) \w+$", text, re.IGNORECASE)


def _tells(text: str) -> bool:
    """Whether words that are no whole sentence say something: "Fifty minutes round the lake with Nadja"."""
    words = text.lower().split()
    if words[0] in IMPERATIVES or words[0] in FINITE:
        return False
    return sum(len(word) > 2 and word.strip(",") not in STOP for word in words) >= 3


def _plain(text: str, clause: Clause) -> float:
    if clause.explicit:
        return TELLING
    if ID.search(text):
        return SURE
    telling = bool(re.search(r"\d", text)) + bool(re.search(r"(?<=\w )[A-Z][a-z]+", text)) + bool(TIME.search(text))
    return PLAIN + 0.1 * telling


def _corrected(clause: Clause, scene: Scene) -> Unit | None:
    """ "No, it's Anna": another value of what was spoken of last."""
    wanted = re.match(
        r"^(?:it is|that is|this is|it was|make it|make that|i said|not \w+ but)?\s*(.+)$", clause.text, re.IGNORECASE
    )
    value = value_of(wanted[1]) if wanted else ""
    if not clause.corrects or not value or len(value.split()) > 6 or is_order(value):
        return None
    if value.lower().startswith(("not ", "wrong")):
        return None
    spoken = [unit for unit in (*scene.recent, *scene.units) if unit.slot and unit.value]
    last = next((unit for unit in reversed(spoken) if class_of(unit.value) == class_of(value)), None)
    framed = wanted and wanted[1] != clause.text
    if last is None or (class_of(value) == "other" and not framed):
        return None
    if last.attribute == "name":
        value = re.split(r"\s+with\s+|,", value)[0]
        if not NAMED.fullmatch(value):
            return None
    head = last.text[: last.text.rfind(last.value)] if last.value and last.value in last.text else ""
    text = f"{head}{value}" if head else clause.text
    return replace(last, text=text, value=value, id=0, turn=0, uses=(), used=0, ended=None, successor=0)
