"""What the user's words say that is worth keeping: clauses to units, by rules of English alone.

Only what is asserted becomes a unit. Questions, commands, conditions, hearsay and guesses do not, nor does a text that
gives orders: a memory is data. The rules are few and go from the subject to the verb to what is said of it, so that
what holds of "I" holds of "my daughter" and of "Tom" without ever being taken for the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from appliance.store.clauses import Clause, clauses, dated
from appliance.store.knowenglish import STOP
from appliance.store.tellwords import (
    ATTRIBUTES,
    BECOME,
    COLOURS,
    COMPLAINT,
    CONDITION,
    DECIDES,
    DETERMINERS,
    DONE,
    EXCLUSIVE,
    FINITE,
    HEARSAY,
    ID,
    IMPERATIVES,
    JOB,
    MOOD,
    NAMED,
    NO_NAME,
    ORDERS,
    PAST,
    PEOPLE,
    PERFECT,
    TIME,
    TRAITS,
    UNSURE,
)
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
_NUMBER = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty(?:[ -]\w+)?)"
_AGE = re.compile(rf"^(?:about |almost |just |only )?({_NUMBER})(?: years old| years of age)?$", re.IGNORECASE)
_ADVERB = re.compile(
    r"^(?:really|also|just|still|now|always|usually|actually|absolutely|very much|quite|only|already|never|both|all"
    r"|currently"
    r"|recently|finally|generally|mostly|often|sometimes|definitely|certainly|probably|truly|totally|especially)\s+",
    re.IGNORECASE,
)


_PRONOUN = re.compile(r"he|she|they|it|this|that|this one|that one", re.IGNORECASE)
_THEIR = re.compile(r"(?:his|her|their|its) (.+)", re.IGNORECASE)
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


@dataclass(slots=True)
class _Context:
    said: datetime
    about: str = ""
    """The last subject that is not the user: "she"."""
    here: bool = False
    """Whether it was spoken of in this utterance."""
    thing: str = ""
    """The last subject of all: "it"."""
    recent: Sequence[Unit] = ()
    """Units spoken of before, that a correction may be about."""
    units: list[Unit] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)


def told(text: str, said: datetime, *, about: str = "", recent: Sequence[Unit] = ()) -> Told:
    """What the user's words say, at the time they were said (aware). `about` and `recent` are what was spoken of
    before: the last subject, and the last units with a slot."""
    context = _Context(said, about, recent=recent)
    parts = clauses(text)
    for clause in parts:
        _tell(clause, context)
    units = tuple(_finished(unit, said) for unit in context.units)
    corrects = any(clause.corrects for clause in parts)
    return Told(units, tuple(context.ends), tuple(context.done), context.about, corrects)


def _finished(unit: Unit, said: datetime) -> Unit:
    return replace(unit, text=dated(unit.text, said), value=dated(unit.value, said), said=said)


def key(subject: str) -> str:
    """By which two mentions of one subject are recognised: "the meeting", "my meeting"."""
    return " ".join(_DETERMINER.sub("", subject.strip().lower()).replace("'s", "").split())


def slot_of(subject: str, attribute: str, value: str = "") -> str:
    return "|".join(part for part in (key(subject), attribute.lower(), key(value)) if part)


def is_order(text: str) -> bool:
    """Whether it tries to tell the box what to do, wherever it is read."""
    return bool(ORDERS.search(text))


# --- clauses -----------------------------------------------------------------------------------------------------


def _tell(clause: Clause, context: _Context) -> None:
    text = clause.text
    if clause.asked or is_order(text) or CONDITION.search(text):
        return
    text, unsure = _sure(text)
    if called := _CALL_ME.match(text):
        context.units.append(_known(ME, "name", called[1], f"My name is {called[1]}", importance=SURE))
        return
    if HEARSAY.search(text) or UNSURE.search(text):
        return
    weight = 0.7 if unsure else 1.0
    found = _split(text)
    if found is None:
        if fixed := _corrected(clause, context):
            context.units.append(fixed)
        elif (clause.explicit and len(text.split()) >= 2) or _tells(text):
            _join(context, Unit("fact", text, importance=_plain(text, clause) * weight))
        return
    subject, verb, rest = found
    chosen = re.search(r" for (?:the|my|our) .+$", found[2])
    if subject.lower() == "it" and chosen and not context.thing:
        context.units += _decided(found[2], text)
        return
    if clause.corrects and subject.lower() in ("it", "that", "this"):
        if fixed := _corrected(clause, context):
            context.units.append(fixed)
        return
    if (subject := _resolved(subject, context)) == "":
        if COMPLAINT.search(text):
            context.units.append(Unit("emotion", text, ME, "complaint", importance=SURE))
        elif _tells(text):
            _join(context, Unit("fact", text, importance=_plain(text, clause) * weight))
        return
    if _PRONOUN.fullmatch(found[0]) or _THEIR.match(found[0]):
        text = f"{subject} {found[1]} {found[2]}".strip()  # on another day nobody knows who "she" was
    if (named := re.match(r"(my (\w+)) ([A-Z]\w+)$", subject)) and named[2].lower() in PEOPLE:
        subject = named[1]
        name = f"{subject}'s name is {named[3]}"
        context.units.append(_known(subject, "name", named[3], name, importance=SURE))
    if subject != ME:
        owner = owned(subject)[0]
        if owner == ME and context.here and subject.lower().startswith("the "):
            subject = f"{context.about}'s {subject[4:]}"  # "Jonas has grown, the shoe size is 29"
        elif owner != ME:
            context.about, context.here = owner, True
        context.thing = subject
    before = len(context.units), len(context.ends), len(context.done)
    for unit in _said_of(subject, verb, rest, text, context):
        importance = max(unit.importance * weight, TELLING if clause.explicit else 0.0)
        context.units.append(replace(unit, importance=round(importance, 3)))
    if before == (len(context.units), len(context.ends), len(context.done)) and _worth_keeping(text, verb, rest):
        context.units.append(Unit("fact", text, subject=key(subject), importance=_plain(text, clause) * weight))


def _join(context: _Context, unit: Unit) -> None:
    """ "It was six kilometres" says something only together with what it was said of."""
    last = context.units[-1] if context.units else None
    if last is None or last.slot or last.kind != "fact":
        context.units.append(unit)
        return
    text = f"{last.text}; {unit.text}"
    context.units[-1] = replace(last, text=text, importance=max(last.importance, unit.importance))


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
    adverb = _ADVERB.match(subject.split(" ", 1)[1] + " ") if " " in subject and first in ("i", "we") else None
    subject = subject.split()[0] if adverb else subject
    return subject, lower, rest


def _third_person(words: Sequence[str]) -> int:
    """Where the verb stands in "the tap drips": the first word with an s behind what may be a subject; 0: nowhere."""
    begin = 2 if words[0].lower() in ("the", "my", "our", "his", "her", "their", "this", "that") else 1
    if begin == 1 and not words[0][:1].isupper():
        return 0
    found = (n for n, word in enumerate(words[begin:6], start=begin) if re.fullmatch(r"[a-z]{2,}[a-rt-z]s[,.]?", word))
    return next(found, 0)


def _resolved(subject: str, context: _Context) -> str:
    lower = subject.lower()
    if lower in ("i", "we", "i myself"):
        return ME
    if _PRONOUN.fullmatch(subject):
        return context.about if lower in ("he", "she", "they") else context.thing or context.about
    if found := _THEIR.match(subject):
        return f"{context.about}'s {found[1]}" if context.about else ""
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


def _corrected(clause: Clause, context: _Context) -> Unit | None:
    """ "No, it's Anna": another value of what was spoken of last."""
    wanted = re.match(
        r"^(?:it is|that is|this is|it was|make it|make that|i said|not \w+ but)?\s*(.+)$", clause.text, re.IGNORECASE
    )
    value = _value(wanted[1]) if wanted else ""
    if not clause.corrects or not value or len(value.split()) > 6 or is_order(value):
        return None
    if value.lower().startswith(("not ", "wrong")):
        return None
    spoken = [unit for unit in (*context.recent, *context.units) if unit.slot and unit.value]
    last = next((unit for unit in reversed(spoken) if _class(unit.value) == _class(value)), None)
    framed = wanted and wanted[1] != clause.text
    if last is None or (_class(value) == "other" and not framed):
        return None
    if last.attribute == "name":
        value = re.split(r"\s+with\s+|,", value)[0]
        if not NAMED.fullmatch(value):
            return None
    head = last.text[: last.text.rfind(last.value)] if last.value and last.value in last.text else ""
    text = f"{head}{value}" if head else clause.text
    return replace(last, text=text, value=value, id=0, turn=0, uses=(), used=0, ended=None, successor=0)


# --- what is said of a subject -----------------------------------------------------------------------------------


def _said_of(subject: str, verb: str, rest: str, text: str, context: _Context) -> Iterator[Unit]:
    rest = rest.strip()
    said = f"{verb} {rest}"
    if known := _phrase(subject, said, text) or _phrase(subject, _HAVING.sub("", said), text):
        yield from known
        return
    if verb in ("have", "has", "had") and (found := PERFECT.match(rest)):
        verb, rest = found[1].lower(), rest[found.end() :].strip()
    if verb in ("do", "does", "did") and (found := re.match(r"not (\w+)\s*", rest)):
        yield from _denied(subject, found[1].lower(), rest[found.end() :].strip(), text, context)
        return
    if verb in ("has", "have") and (
        found := re.match(r"(?:now |already |just )*been (?!to\b|moved\b|changed\b)", rest)
    ):
        verb, rest = "is", rest[found.end() :]
    if verb in ("will", "shall") and (found := re.match(r"(?:now |then )?be\s+", rest)):
        verb, rest = "is", rest[found.end() :]
    while adverb := _ADVERB.match(rest):
        if adverb.group().strip().lower() == "never":
            break
        rest = rest[adverb.end() :]
    if changed := _changed(verb, rest):
        verb, rest = "is", changed
    if verb in ("is", "are", "am", "was", "were"):
        yield from _is(subject, rest, text, context)
    else:
        yield from _does(subject, verb, rest, text, context)


def _phrase(subject: str, said: str, text: str) -> list[Unit]:
    """What English says in many ways: what something costs, where somebody lives and works, what is liked."""
    if sick := _SICK.match(said):
        return list(_taste(subject, "dislikes", sick[1], text))
    if fond := _FOND.match(said):
        return list(_taste(subject, "likes", fond[1], text))
    if _MONEY.search(said) and (priced := _PRICED.match(said)) and _MONEY.match(priced[1]):
        return [_priced(subject, _value(priced[1]), text)]
    if subject == ME and (paid := re.match(rf"(?:pay|paid|spend) ({_EUROS}[\w ]*?) for (.+)$", _value(said))):
        return [_priced(paid[2], paid[1], text)]
    if (home := _LIVES.match(said)) and not TIME.match(_value(home[1])):
        return [_known(subject, "home", _value(home[1]), text, importance=SURE if subject == ME else KNOWN)]
    if job := _WORKS_AS.match(said):
        return [_known(subject, "job", _value(job[1] or job[2]), text)]
    return []


def _changed(verb: str, rest: str) -> str:
    """The value that something has now: "changed to...", "has been moved to...", "turned..."."""
    been = re.match(
        r"(?:been |now )*(?:moved|changed|postponed|shifted|rescheduled|raised|put off|brought forward)"
        r" (?:to|until|on) ",
        rest,
    )
    if verb in ("is", "are", "was", "were", "been", "has", "have") and been:
        return rest[been.end() :]
    if verb in ("changed", "postponed", "shifted", "rescheduled", "switched") and rest.startswith(("to ", "until ")):
        return rest.split(" ", 1)[1]
    if verb == "moved" and (when := re.match(r"to (.+)", rest)) and _when(f"on {when[1]}"):
        return when[1]
    if verb == "turned" and _AGE.match(_value(rest)):
        return rest
    if verb in ("turned", "became", "got", "has", "celebrated") and (
        aged := re.match(rf"(?:just )?({_NUMBER})\b(?: years| today| now)?", rest)
    ):
        return aged[1] if verb == "turned" or "year" in rest else ""
    return ""


def _is(subject: str, rest: str, text: str, context: _Context) -> Iterator[Unit]:
    owner, attribute = owned(subject)
    denied = bool(re.match(r"not\b", rest))
    value = _value(re.sub(r"^(?:not|no longer)\s+", "", rest))
    denied = denied or rest.startswith("no longer")
    if denied and re.match(r"the (?:same|old)\b", value):
        return
    if not value or re.match(r"(?:what|how|why|who|where|when|that|because|like)\b", value, re.IGNORECASE):
        return
    if attribute:
        yield from _has_attribute(owner, attribute, value, text, context, denied=denied)
        return
    if found := re.match(r"(?:called|named|known as)\s+(.+)", value, re.IGNORECASE):
        yield from _has_attribute(owner, "name", found[1], text, context, denied=denied)
        return
    if found := re.match(r"(?:severely |badly |very |highly )?allergic to (.+)", value, re.IGNORECASE):
        yield from _each(owner, "allergy", found[1], text, context, denied=denied)
        return
    if found := re.match(r"born (?:on|in|at) (.+)", value, re.IGNORECASE):
        attribute = "birthday" if TIME.search(found[1]) or re.search(r"\d", found[1]) else "birthplace"
        yield _known(owner, attribute, found[1], text)
        return
    if found := re.match(r"(?:originally )?from ([A-Z]\w.*)", value):
        yield _known(owner, "origin", found[1], text)
        return
    trait = re.match(r"(?:an? )?(?:strict |bit |little )?([\w-]+(?: [\w-]+)?)$", value, re.IGNORECASE)
    if trait and trait[1].lower() in TRAITS:
        name = trait[1].lower()
        held = f"not {name}" if denied else name
        kind = next((kind for kind, names in EXCLUSIVE.items() if name in names), name)
        yield _known(owner, "trait", held, text, slot=slot_of(owner, "trait", kind), importance=SURE)
        return
    if denied:
        return
    if (
        re.match(r"(?:been )?(?:broken|fixed|repaired|mended|out of order|defective|faulty|leaking)\b", value)
        and owner != ME
    ):
        yield from _works(owner, value, text, context)
        return
    if owner == ME or _person(owner):
        yield from _is_person(owner, value, text, context)
    else:
        yield from _is_thing(owner, value, text, context)


def _works(owner: str, state: str, text: str, context: _Context) -> Iterator[Unit]:
    """Whether a thing does what it is for."""
    broken = bool(re.search(r"not|broken|order|defective|faulty|leak", state))
    if not broken:
        context.done.append(key(f"{state} {owner}"))
    yield _known(owner, "state", state, text, importance=SURE if broken else KNOWN)


def _person(owner: str) -> bool:
    return key(owner).split(" ")[0] in PEOPLE or bool(re.fullmatch(r"(?:(?:Mr|Mrs|Ms|Dr|Doctor) )?[A-Z][\w-]+", owner))


def _is_person(owner: str, value: str, text: str, context: _Context) -> Iterator[Unit]:
    plain = re.sub(r"^(?:so|very|really|quite|a bit|pretty|extremely|too|rather|completely|just)\s+", "", value)
    if found := _AGE.match(value):
        yield _known(owner, "age", found[1], text)
    elif MOOD.match(plain) and owner == ME:
        complaint = bool(COMPLAINT.search(text))
        yield Unit("emotion", text, ME, "mood", plain, importance=SURE if complaint else PASSING)
    elif (
        found := re.match(r"(?:an?|the) ([\w -]+?)(?: (?:at|in|for|with) .+)?$", value, re.IGNORECASE)
    ) and JOB.search(found[1]):
        yield _known(owner, "job", found[1], text)
    elif NAMED.fullmatch(value) and not NO_NAME.search(value):
        yield _known(owner, "name", value, text, importance=SURE)
    elif found := re.match(r"(?:going|about|supposed|planning) to (\w+ .+)", value):
        if owner == ME:
            yield _task(found[1], text)
    elif owner != ME and _when(value):
        yield _known(owner, "time", value, text)
    elif owner != ME and (place := _place(value)):
        yield _known(owner, "place", place, text)


def _is_thing(owner: str, value: str, text: str, context: _Context) -> Iterator[Unit]:
    if _MONEY.match(value):
        yield _priced(owner, value, text)
        return
    plain = re.sub(r"^(?:so|very|really|quite|a bit|pretty|extremely|too|rather|completely|all|still)\s+", "", value)
    if DONE.match(plain):
        context.done.append(key(f"{value} {owner}"))
        yield _known(owner, "state", value, text)
    elif BECOME.match(plain):
        yield _known(owner, "state", value, text)
    elif COMPLAINT.search(f"is {plain}"):
        yield Unit("emotion", text, key(owner), "complaint", value, importance=SURE)
    elif _when(value):
        yield _known(owner, "time", value, text)
    elif place := _place(value):
        yield _known(owner, "place", place, text)
    elif ID.search(value):
        yield _known(owner, "number", value, text, importance=SURE)
    elif plain.lower() in COLOURS:
        yield _known(owner, "colour", value, text)
    elif NAMED.fullmatch(value) and not NO_NAME.search(value) and (value[0].isupper()):
        yield _known(owner, "name", value, text)
    elif re.match(r"\d|[€$£]", value):
        yield _known(owner, "number", value, text)
    elif re.match(r"(?:an?|the|my|our) ", value):
        yield _known(owner, "is", value, text)


def _does(subject: str, verb: str, rest: str, text: str, context: _Context) -> Iterator[Unit]:
    me = subject == ME
    kept = (
        re.match(_PUT, rest)
        if me and verb in ("put", "keep", "left", "store", "hid", "moved", "parked", "kept")
        else None
    )
    if kept and kept[1].lower() not in ("to", "it"):
        thing = re.sub(r"^(?:my|our|the)\s+", "the ", kept[1])
        context.about = context.thing = thing
        yield _known(thing, "place", _value(kept[2]), text)
        return
    if me and verb == "moved" and (moved := re.match(r"((?:the|my|our) [\w ]+)$", _value(rest))):
        context.about = context.thing = moved[1]
        return
    if me and verb == "cannot" and (found := re.match(r"(?:stand|bear|eat|drink|have)\s+(.+)", rest)):
        yield from _taste(subject, "dislikes", found[1], text)
    elif verb in _LIKES or (verb == "cannot" and rest.startswith(("stand ", "bear "))):
        yield from _likes(subject, verb, rest, text)
    elif verb in ("work", "works", "started", "working", "worked") and (
        found := re.match(r"(?:working |a (?:new )?job )?(as|at|for|in|with|on) (.+)", rest, re.IGNORECASE)
    ):
        attribute = "job" if found[1].lower() == "as" else "work"
        if verb == "worked" or (
            verb == "started" and found[1].lower() in ("with", "on", "for") and not found[2][0].isupper()
        ):
            return
        yield _known(subject, attribute, _value(found[2]), text)
    elif verb in ("joined", "joins") and not me and rest[:1].isupper():
        yield _known(subject, "work", _value(rest), text)
    elif verb in ("has", "have", "got", "found", "took", "started") and (
        job := re.match(r"(?:an? )?(?:new )?(?:job|position|post) (as|at|with|for|in) (.+)", rest)
    ):
        yield _known(subject, "job" if job[1] == "as" else "work", _value(job[2]), text)
    elif verb in ("come", "comes") and (found := re.match(r"from (.+)", rest)):
        yield _known(subject, "origin", _value(found[1]), text)
    elif verb in ("works", "work") and not me and re.match(r"(?:again|fine|now)?$", _value(rest)):
        yield from _works(subject, "works", text, context)
    elif verb in ("wears", "wear", "takes", "take") and (found := re.match(r"(?:a )?((?:\w+ )?size) (.+)", rest)):
        yield _known(subject, found[1].lower(), _value(found[2]), text)
    elif verb in ("speak", "speaks"):
        yield from _each(subject, "language", rest, text, context)
    elif verb in ("drive", "drives") and re.match(r"(?:an?|the|my) ", rest):
        yield _known(subject, "car", _value(rest), text)
    elif verb in ("have", "has", "own", "owns", "got", "bought", "adopted"):
        yield from _has(subject, verb, rest, text, context)
    elif me and verb in ("need", "must", "should", "want", "ought"):
        yield from _needs(verb, rest, text)
    elif me and (found := DECIDES.match(f"{verb} {rest}")):
        yield from _decided(found[1], text)
    elif me and verb in ("will", "shall") and (found := re.match(r"(?:take|have|go with|choose) (.+)", rest)):
        yield Unit("decision", text, ME, "decision", _value(found[1]), importance=KNOWN)
    elif me and (PAST.fullmatch(verb) or verb in ("finished", "done")):
        yield from _finished_doing(verb, rest, text, context)
    elif verb in ("starts", "begins", "opens", "closes", "leaves", "arrives", "ends", "departs", "takes") and (
        TIME.search(rest) or re.match(r"(?:at|on|in) ", rest)
    ):
        attribute = "time" if verb in ("starts", "begins", "takes") else verb
        yield _known(subject, attribute, _value(rest), text)
    elif verb in ("moved", "changed", "postponed", "got", "shifted") and (
        found := re.match(r"(?:moved )?to (.+)", rest)
    ):
        if TIME.search(found[1]):
            yield _known(subject, "time", _value(found[1]), text)
    elif verb in ("weighs", "measures"):
        yield _known(subject, verb, _value(rest), text)
    elif verb == "needs" and not me:
        yield Unit("task", text, key(subject), "task", f"{subject} needs {rest}", importance=KNOWN)


def _decided(what: str, text: str) -> Iterator[Unit]:
    """Another choice for the same thing takes the place of the one before."""
    value = _value(re.sub(r"^(?:now |on |to |for )+", "", what))
    topic = re.search(r" for (.+)$", value, re.IGNORECASE)
    if topic:
        value, about = _value(value[: topic.start()]), re.sub(r" (?:after all|instead)$", "", topic[1])
        yield Unit("decision", text, ME, "decision", value, slot_of(ME, "decision", about), importance=KNOWN)
    else:
        yield Unit("decision", text, ME, "decision", value, importance=KNOWN)


_FOND = re.compile(
    r"(?:(?:is|am|are|became|grew|got|have become|has become|have grown|has grown) (?:now |really |very |so |quite "
    r"|rather |a )*(?:fond of|keen on"
    r"|crazy about|mad about|into|(?:big |great |huge )?fan of|used to|partial to)|(?:have|has|had)? ?(?:started"
    r"|begun|began|come|came|learned|learnt|got|grown"
    r"|taken) to (?:like|love|enjoy|appreciate)?|do like|does like|do love|fell in love with|took a liking to) (.+)$",
    re.IGNORECASE,
)
_SICK = re.compile(
    r"(?:(?:is|am|are|got|became|have become) (?:now |really |so |quite |rather )*(?:not (?:keen on|fond of|into"
    r"|a fan of|crazy about)|sick of|tired of|fed up with"
    r"|bored (?:of|with)|no longer (?:keen on|fond of|into))|(?:have |has )?(?:stopped|ceased|quit) (?:liking"
    r"|enjoying|eating|drinking)|(?:have |has )?(?:gone|went) off"
    r"|no longer (?:likes?|loves?|enjoys?|eats?|drinks?)|never (?:eats?|drinks?|touch(?:es)?)|cannot (?:stand|bear"
    r"|abide)) (.+)$",
    re.IGNORECASE,
)
_LIVES = re.compile(
    r"(?:lives?|lived|resides?|dwells?|stays|settled(?: down)?|moved(?: back| out| over| in)?|relocated|(?:is|am"
    r"|are) (?:now )?(?:living|based"
    r"|at home|staying)|(?:has|have|found|took|bought|rented|rents|got|owns?) (?:an? |the )?(?:new |small |little "
    r"|nice )*(?:flat|house"
    r"|apartment|room|place|home|cottage|studio))(?: (?:now|again|down))? (?:in|at|to|into|near"
    r"|outside) (.+?)(?: and (?:lives?|stays?) there)?$",
    re.IGNORECASE,
)
_WORKS_AS = re.compile(
    r"(?:works?|(?:is|am|are) (?:now |currently )?(?:working|employed)|started(?: working)?"
    r"|earns? (?:\w+ )?(?:living|money)"
    r"|(?:has|have|got|found|took) (?:an? )?(?:new )?(?:job|position|post)|switched) as (?:an? )?(.+)$"
    r"|(?:has |have )?(?:became|become|retrained (?:as|to be)|trained as|qualified as) (?:an? )(.+)$",
    re.IGNORECASE,
)
_HAVING = re.compile(r"^(?:have|has|had) (?:now |just |already |recently |finally |since |only )*")
_EUROS = r"(?:[€$£] ?)?\d[\d.,]*(?: ?(?:euros?|dollars?|pounds?|cents?|francs?|[€$£]))?"
_MONEY = re.compile(
    r"(?:about |only |just |now )?(?:[€$£] ?\d|\d[\d.,]* ?(?:euros?|dollars?|pounds?|cents?|francs?|[€$£]))"
)
_PRICED = re.compile(
    r"(?:costs?|charges?|is|are|was|went (?:up|down) to|(?:has|have) gone (?:up|down) to|has gone (?:up|down) to"
    r"|has (?:risen|fallen|dropped) to"
    r"|comes to|amounts to"
    r"|goes for|rose to|fell to|dropped to|increased to|runs to|takes|asks?|wants?|(?:is|are) (?:up|down) to|has been)"
    r" (?:now |about |only |just |us |me |around )*(.+)$"
)


def _priced(owner: str, value: str, text: str) -> Unit:
    """What something costs in one season or size is another thing than in another."""
    where = re.search(r" (?:in|on|during|for|at|with|without) .+$", value)
    owner = re.sub(r"^(?:the )?(?:price|cost|fee|rate|charge) (?:of|for) ", "", owner)
    return _known(owner, "price", value, text, slot=slot_of(owner, "price", where.group() if where else ""))


_PUT = (
    r"(.+?) ((?:in|on|under|behind|next to|inside|near|beside|above|below|between|at|upstairs|downstairs"
    r"|into|onto)\b.*)$"
)
_LIKES = {
    **dict.fromkeys(
        ("like", "likes", "love", "loves", "enjoy", "enjoys", "adore", "adores", "prefer", "prefers"), "likes"
    ),
    **dict.fromkeys(("hate", "hates", "dislike", "dislikes", "detest", "avoid", "avoids", "loathe"), "dislikes"),
}
_INTO = r"(?:(?:back |out |over |up |down )?(?:in|at|on|to|into|near|by|outside|above|opposite) )(.+)"


def _denied(subject: str, verb: str, rest: str, text: str, context: _Context) -> Iterator[Unit]:
    """What does not hold: "I don't live in Lyon any more"."""
    if verb in ("work", "function") and subject != ME and not re.match(r"(?:in|at|for|on) ", rest):
        yield from _works(subject, "does not work", text, context)
        return
    if verb in ("like", "enjoy", "eat", "drink", "love", "want", "care") and rest:
        yield from _taste(subject, "dislikes", re.sub(r"^for ", "", rest), text)
    elif verb in ("live", "work") and (found := re.match(r"(?:in|at|for|on) (.+)", rest)):
        context.ends.append(f"{slot_of(subject, 'home' if verb == 'live' else 'work')}={key(_value(found[1]))}")
    elif verb in ("have", "own", "drive", "speak") and rest:
        thing = _value(rest)
        context.ends.append(slot_of(subject, "language" if verb == "speak" else "has", thing))
        if verb == "drive":
            context.ends.append(f"{slot_of(subject, 'car')}={key(thing)}")
    elif verb in ("hate", "mind", "dislike") and rest:
        yield from _taste(subject, "likes", rest, text)
    elif verb == "need" and rest:
        context.done.append(key(re.sub(r"^to ", "", _value(rest))))


def _has_attribute(
    owner: str, attribute: str, value: str, text: str, context: _Context, *, denied: bool = False
) -> Iterator[Unit]:
    value = _value(value)
    if denied:
        context.ends.append(f"{slot_of(owner, attribute)}={key(value)}")
        if found := re.match(r".+?,?\s+(?:it is|but)\s+(.+)$", value):
            yield from _has_attribute(owner, attribute, found[1], text, context)
        return
    if attribute.endswith("name"):
        value = re.split(r",|\s+(?:with|and not|not|spelled|spelt)\s+", value)[0].strip()
        if not all(NAMED.fullmatch(one) and not NO_NAME.search(one) for one in _items(value)):
            return
    if attribute.startswith("favourite"):
        yield _known(owner, attribute, value, text, kind="preference")
        return
    sure = attribute.endswith(("name", "number", "code", "password", "pin", "birthday", "address", "id", "plate"))
    yield _known(owner, attribute, value, text, importance=SURE if sure else KNOWN)


def _has(subject: str, verb: str, rest: str, text: str, context: _Context) -> Iterator[Unit]:
    if found := re.match(r"(?:got )?to (\w+.*)", rest):
        if subject == ME and verb in ("have", "got"):
            yield _task(found[1], text)
        return
    if found := re.match(
        r"(?:an? )?(?:new )?(?:flat|house|apartment|home|room|place) in ([A-Z][\w-]+)"
        r"(?: and (?:lives?|stays?) there)?$",
        _value(rest),
    ):
        yield _known(subject, "home", found[1], text, importance=SURE if subject == ME else KNOWN)
        return
    if found := re.match(r"(?:an? |some )?(?:\w+ )?(?:allergy|allergies|intolerance) (?:to|against) (.+)", rest):
        yield from _each(subject, "allergy", found[1], text, context)
        return
    if found := re.match(
        r"(?:an?|the|my|another) ((?:\w+ ){0,2}?(?:appointment|meeting|call|reservation|booking|flight|exam|test"
        r"|interview|lesson|class|date|session|party|visit|check-?up|train|shift|delivery))\b\s*(.*)",
        rest,
    ):
        what, more = found[1], found[2]
        with_whom = re.match(r"((?:with|at|for) (?:the |my |a )?[\w.]+(?: [A-Z]\w+)*)\s*(.*)", more)
        if with_whom and not TIME.match(re.sub(r"^(?:at|for) ", "", with_whom[1])):
            what, more = f"{what} {with_whom[1]}", with_whom[2]
        yield _known(f"my {what}", "time", _value(more) or "", text, kind="task")
        context.about = f"my {what}"
        return
    if found := re.match(r"(?:an?|two|three|four|another|some|\d+) (.+?),? (?:called|named) (.+)", rest):
        yield from _has_attribute(
            f"my {found[1]}" if subject == ME else f"{subject}'s {found[1]}", "name", found[2], text, context
        )
        context.about = f"my {found[1]}"
        return
    if found := re.match(r"(?:an?|two|three|four|five|six|no|\d+|another|new) (.+)", rest):
        value = _value(rest)
        if verb == "bought" and subject == ME:
            yield from _finished_doing(verb, rest, text, context)
            return
        if len(value.split()) <= 7 and not MOOD.match(found[1]):
            slot = slot_of(subject, "has", found[1])
            yield _known(subject, "has", value, text, slot=slot)


def _needs(verb: str, rest: str, text: str) -> Iterator[Unit]:
    if found := re.match(r"(?:not )?to (\w+.*)", rest):
        if not rest.startswith("not"):
            yield _task(found[1], text)
    elif (verb in ("must", "should") and rest and not rest.startswith(("not ", "be ", "have "))) or (
        verb == "need" and rest and not rest.startswith("your")
    ):
        yield _task(rest, text)


def _task(what: str, text: str) -> Unit:
    value = _value(what)
    return Unit("task", text, ME, "task", value, slot=slot_of(ME, "task", value), importance=KNOWN)


def _finished_doing(verb: str, rest: str, text: str, context: _Context) -> Iterator[Unit]:
    """ "I've paid the bill": a task with these words is over, and it is worth a fact that it is."""
    context.done.append(key(f"{verb} {_value(rest)}"))
    if len(text.split()) >= 3:
        yield Unit("fact", text, ME, importance=PLAIN)


def _likes(subject: str, verb: str, rest: str, text: str) -> Iterator[Unit]:
    if verb == "cannot":
        yield from _taste(subject, "dislikes", re.sub(r"^(?:stand|bear) ", "", rest), text)
        return
    side = _LIKES[verb]
    if rest.startswith(("it when", "that ", "how ")):
        return
    if found := re.match(r"(.+?) (?:to|over|more than|better than|rather than|instead of) (.+)", rest):
        rest = found[1]
    yield from _taste(subject, side, re.sub(r"^(?:to|it|the)\s+(?=\w)", "", rest), text)


def _taste(subject: str, side: str, rest: str, text: str) -> Iterator[Unit]:
    value = re.sub(r"\s+(?:very much|a lot|so much|at all|the most|best|more|better)$", "", _value(rest))
    for item in _items(value) if len(value.split()) <= 8 else [value]:
        if item and item.lower() not in ("it", "that", "this", "you", "them", "him", "her"):
            yield Unit("preference", text, key(subject), side, item, slot_of(subject, "taste", item), importance=KNOWN)


def _each(
    subject: str, attribute: str, rest: str, text: str, context: _Context, *, denied: bool = False
) -> Iterator[Unit]:
    for item in _items(_value(rest)):
        slot = slot_of(subject, attribute, item)
        if denied:
            context.ends.append(slot)
        else:
            yield _known(subject, attribute, item, text, slot=slot, importance=SURE)


# --- pieces ------------------------------------------------------------------------------------------------------


def _known(
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


def _value(text: str) -> str:
    text = text.strip(" ,.!?;:\"'")
    while (shorter := _TRAIL.sub("", text)) != text:
        text = shorter.strip(" ,")
    return text


def _items(text: str) -> Sequence[str]:
    return [part.strip() for part in _AND.split(text) if part and part.strip()]


def _class(value: str) -> str:
    """What kind of value it is: a correction is of the same kind as what it corrects."""
    if ID.search(value) or re.fullmatch(r"[\d .,]+", value):
        return "number"
    if _when(value) or TIME.match(value):
        return "time"
    return "name" if value[:1].isupper() else "other"


def _when(value: str) -> bool:
    start = re.match(r"(?:at|on|in|from|this|next|every|until|between|before|after|around|about)\s+", value)
    found = TIME.search(value)
    return bool(found and (start or found.start() == 0))


def _place(value: str) -> str:
    found = re.match(
        r"((?:in|on|under|behind|next to|inside|near|beside|above|below|between|outside|upstairs|downstairs|at) .+)",
        value,
    )
    return found[1] if found else ""
