"""What is said of a subject: from the verb and what follows it to units, to what ends, and to what is done."""

from __future__ import annotations

import re
from collections.abc import Iterator

from appliance.store.tellparts import (
    ADVERB,
    AGE,
    KNOWN,
    ME,
    NUMBER,
    PASSING,
    PLAIN,
    SURE,
    Scene,
    fact,
    is_when,
    items_of,
    key,
    owned,
    place_of,
    slot_of,
    value_of,
)
from appliance.store.tellwords import (
    BECOME,
    COLOURS,
    COMPLAINT,
    DECIDES,
    DONE,
    EXCLUSIVE,
    ID,
    JOB,
    MOOD,
    NAMED,
    NO_NAME,
    PAST,
    PEOPLE,
    PERFECT,
    TIME,
    TRAITS,
)
from appliance.store.units import Unit

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
_PASSING_THINGS = re.compile(
    r"(?:good |great |quick |little |big )?(?:idea|question|problem|feeling|moment|minute|time|look|plan|chat|think"
    r"|point|chance|doubt"
    r"|request|favou?r|guess|hunch|suggestion|second|go|try|bad feeling|cold|headache)s?\b"
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


def said_of(subject: str, verb: str, rest: str, text: str, scene: Scene) -> Iterator[Unit]:
    rest = rest.strip()
    said = f"{verb} {rest}"
    if known := _phrase(subject, said, text) or _phrase(subject, _HAVING.sub("", said), text):
        yield from known
        return
    if verb in ("have", "has", "had") and (found := PERFECT.match(rest)):
        verb, rest = found[1].lower(), rest[found.end() :].strip()
    if verb in ("do", "does", "did") and (found := re.match(r"not (\w+)\s*", rest)):
        yield from _denied(subject, found[1].lower(), rest[found.end() :].strip(), text, scene)
        return
    if verb in ("has", "have") and (
        found := re.match(r"(?:now |already |just )*been (?!to\b|moved\b|changed\b)", rest)
    ):
        verb, rest = "is", rest[found.end() :]
    if verb in ("will", "shall") and (found := re.match(r"(?:now |then )?be\s+", rest)):
        verb, rest = "is", rest[found.end() :]
    while adverb := ADVERB.match(rest):
        if adverb.group().strip().lower() == "never":
            break
        rest = rest[adverb.end() :]
    if changed := _changed(verb, rest):
        verb, rest = "is", changed
    if verb in ("is", "are", "am", "was", "were"):
        yield from _is(subject, rest, text, scene)
    else:
        yield from _does(subject, verb, rest, text, scene)


def _phrase(subject: str, said: str, text: str) -> list[Unit]:
    """What English says in many ways: what something costs, where somebody lives and works, what is liked."""
    if sick := _SICK.match(said):
        return list(_taste(subject, "dislikes", sick[1], text))
    if fond := _FOND.match(said):
        return list(_taste(subject, "likes", fond[1], text))
    if _MONEY.search(said) and (priced := _PRICED.match(said)) and _MONEY.match(priced[1]):
        return [_priced(subject, value_of(priced[1]), text)]
    if subject == ME and (paid := re.match(rf"(?:pay|paid|spend) ({_EUROS}[\w ]*?) for (.+)$", value_of(said))):
        return [_priced(paid[2], paid[1], text)]
    if (home := _LIVES.match(said)) and not TIME.match(value_of(home[1])):
        return [fact(subject, "home", value_of(home[1]), text, importance=SURE if subject == ME else KNOWN)]
    if job := _WORKS_AS.match(said):
        return [fact(subject, "job", value_of(job[1] or job[2]), text)]
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
    if verb == "moved" and (when := re.match(r"to (.+)", rest)) and is_when(f"on {when[1]}"):
        return when[1]
    if verb == "turned" and AGE.match(value_of(rest)):
        return rest
    if verb in ("turned", "became", "got", "has", "celebrated") and (
        aged := re.match(rf"(?:just )?({NUMBER})\b(?: years| today| now)?", rest)
    ):
        return aged[1] if verb == "turned" or "year" in rest else ""
    return ""


def _is(subject: str, rest: str, text: str, scene: Scene) -> Iterator[Unit]:
    owner, attribute = owned(subject)
    denied = bool(re.match(r"not\b", rest))
    value = value_of(re.sub(r"^(?:not|no longer)\s+", "", rest))
    denied = denied or rest.startswith("no longer")
    if denied and re.match(r"the (?:same|old)\b", value):
        return
    if not value or re.match(r"(?:what|how|why|who|where|when|that|because|like)\b", value, re.IGNORECASE):
        return
    if attribute:
        yield from _has_attribute(owner, attribute, value, text, scene, denied=denied)
        return
    if found := re.match(r"(?:called|named|known as)\s+(.+)", value, re.IGNORECASE):
        yield from _has_attribute(owner, "name", found[1], text, scene, denied=denied)
        return
    if found := re.match(r"(?:severely |badly |very |highly )?allergic to (.+)", value, re.IGNORECASE):
        yield from _each(owner, "allergy", found[1], text, scene, denied=denied)
        return
    if found := re.match(r"born (?:on|in|at) (.+)", value, re.IGNORECASE):
        attribute = "birthday" if TIME.search(found[1]) or re.search(r"\d", found[1]) else "birthplace"
        yield fact(owner, attribute, found[1], text)
        return
    if found := re.match(r"(?:originally )?from ([A-Z]\w.*)", value):
        yield fact(owner, "origin", found[1], text)
        return
    trait = re.match(r"(?:an? )?(?:strict |bit |little )?([\w-]+(?: [\w-]+)?)$", value, re.IGNORECASE)
    if trait and trait[1].lower() in TRAITS:
        name = trait[1].lower()
        held = f"not {name}" if denied else name
        kind = next((kind for kind, names in EXCLUSIVE.items() if name in names), name)
        yield fact(owner, "trait", held, text, slot=slot_of(owner, "trait", kind), importance=SURE)
        return
    if denied:
        return
    if (
        re.match(r"(?:been )?(?:broken|fixed|repaired|mended|out of order|defective|faulty|leaking)\b", value)
        and owner != ME
    ):
        yield from _works(owner, value, text, scene)
        return
    if owner == ME or _person(owner):
        yield from _is_person(owner, value, text, scene)
    else:
        yield from _is_thing(owner, value, text, scene)


def _works(owner: str, state: str, text: str, scene: Scene) -> Iterator[Unit]:
    """Whether a thing does what it is for."""
    broken = bool(re.search(r"not|broken|order|defective|faulty|leak", state))
    if not broken:
        scene.done.append(key(f"{state} {owner}"))
    yield fact(owner, "state", state, text, importance=SURE if broken else KNOWN)


def _person(owner: str) -> bool:
    return key(owner).split(" ")[0] in PEOPLE or bool(re.fullmatch(r"(?:(?:Mr|Mrs|Ms|Dr|Doctor) )?[A-Z][\w-]+", owner))


def _is_person(owner: str, value: str, text: str, scene: Scene) -> Iterator[Unit]:
    plain = re.sub(r"^(?:so|very|really|quite|a bit|pretty|extremely|too|rather|completely|just)\s+", "", value)
    if found := AGE.match(value):
        yield fact(owner, "age", found[1], text)
    elif MOOD.match(plain) and owner == ME:
        complaint = bool(COMPLAINT.search(text))
        yield Unit("emotion", text, ME, "mood", plain, importance=SURE if complaint else PASSING)
    elif (
        found := re.match(r"(?:an?|the) ([\w -]+?)(?: (?:at|in|for|with) .+)?$", value, re.IGNORECASE)
    ) and JOB.search(found[1]):
        yield fact(owner, "job", found[1], text)
    elif owner == ME and (
        room := re.match(r"in (room|seat|row|bay|cabin|flat|apartment) (\w*\d\w*)$", value, re.IGNORECASE)
    ):
        yield fact(ME, f"{room[1].lower()} number", room[2], text, importance=SURE)
    elif NAMED.fullmatch(value) and not NO_NAME.search(value) and value[0].isupper():
        yield fact(owner, "name", value, text, importance=SURE)
    elif found := re.match(r"(?:going|about|supposed|planning) to (\w+ .+)", value):
        if owner == ME:
            yield _task(found[1], text)
    elif owner != ME and is_when(value):
        yield fact(owner, "time", value, text)
    elif owner != ME and (place := place_of(value)):
        yield fact(owner, "place", place, text)


def _is_thing(owner: str, value: str, text: str, scene: Scene) -> Iterator[Unit]:
    if _MONEY.match(value):
        yield _priced(owner, value, text)
        return
    plain = re.sub(r"^(?:so|very|really|quite|a bit|pretty|extremely|too|rather|completely|all|still)\s+", "", value)
    if DONE.match(plain):
        scene.done.append(key(f"{value} {owner}"))
        yield fact(owner, "state", value, text)
    elif BECOME.match(plain):
        yield fact(owner, "state", value, text)
    elif COMPLAINT.search(f"is {plain}"):
        yield Unit("emotion", text, key(owner), "complaint", value, importance=SURE)
    elif is_when(value):
        yield fact(owner, "time", value, text)
    elif place := place_of(value):
        yield fact(owner, "place", place, text)
    elif ID.search(value):
        yield fact(owner, "number", value, text, importance=SURE)
    elif plain.lower() in COLOURS:
        yield fact(owner, "colour", value, text)
    elif NAMED.fullmatch(value) and not NO_NAME.search(value) and (value[0].isupper()):
        yield fact(owner, "name", value, text)
    elif re.match(r"\d|[€$£]", value):
        yield fact(owner, "number", value, text)
    elif re.match(r"(?:an?|the|my|our) ", value):
        yield fact(owner, "is", value, text)


def _does(subject: str, verb: str, rest: str, text: str, scene: Scene) -> Iterator[Unit]:
    me = subject == ME
    kept = (
        re.match(_PUT, rest)
        if me and verb in ("put", "keep", "left", "store", "hid", "moved", "parked", "kept")
        else None
    )
    if kept and kept[1].lower() not in ("to", "it"):
        thing = re.sub(r"^(?:my|our|the)\s+", "the ", kept[1])
        scene.about = scene.thing = thing
        yield fact(thing, "place", value_of(kept[2]), text)
        return
    if me and verb == "moved" and (moved := re.match(r"((?:the|my|our) [\w ]+)$", value_of(rest))):
        scene.about = scene.thing = moved[1]
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
        yield fact(subject, attribute, value_of(found[2]), text)
    elif verb in ("joined", "joins") and not me and rest[:1].isupper():
        yield fact(subject, "work", value_of(rest), text)
    elif verb in ("has", "have", "got", "found", "took", "started") and (
        job := re.match(r"(?:an? )?(?:new )?(?:job|position|post) (as|at|with|for|in) (.+)", rest)
    ):
        yield fact(subject, "job" if job[1] == "as" else "work", value_of(job[2]), text)
    elif verb in ("come", "comes") and (found := re.match(r"from (.+)", rest)):
        yield fact(subject, "origin", value_of(found[1]), text)
    elif verb in ("works", "work") and not me and re.match(r"(?:again|fine|now)?$", value_of(rest)):
        yield from _works(subject, "works", text, scene)
    elif verb in ("wears", "wear", "takes", "take") and (found := re.match(r"(?:a )?((?:\w+ )?size) (.+)", rest)):
        yield fact(subject, found[1].lower(), value_of(found[2]), text)
    elif verb in ("speak", "speaks"):
        yield from _each(subject, "language", rest, text, scene)
    elif verb in ("drive", "drives") and re.match(r"(?:an?|the|my) ", rest):
        yield fact(subject, "car", value_of(rest), text)
    elif verb in ("have", "has", "own", "owns", "got", "bought", "adopted"):
        yield from _has(subject, verb, rest, text, scene)
    elif me and verb in ("need", "must", "should", "want", "ought"):
        yield from _needs(verb, rest, text)
    elif me and (found := DECIDES.match(f"{verb} {rest}")):
        yield from decided(found[1], text)
    elif me and verb in ("will", "shall") and (found := re.match(r"(?:take|have|go with|choose) (.+)", rest)):
        yield Unit("decision", text, ME, "decision", value_of(found[1]), importance=KNOWN)
    elif me and (PAST.fullmatch(verb) or verb in ("finished", "done")):
        yield from _finished_doing(verb, rest, text, scene)
    elif verb in ("starts", "begins", "opens", "closes", "leaves", "arrives", "ends", "departs", "takes") and (
        TIME.search(rest) or re.match(r"(?:at|on|in) ", rest)
    ):
        attribute = "time" if verb in ("starts", "begins", "takes") else verb
        yield fact(subject, attribute, value_of(rest), text)
    elif verb in ("moved", "changed", "postponed", "got", "shifted") and (
        found := re.match(r"(?:moved )?to (.+)", rest)
    ):
        if TIME.search(found[1]):
            yield fact(subject, "time", value_of(found[1]), text)
    elif verb in ("weighs", "measures"):
        yield fact(subject, verb, value_of(rest), text)
    elif verb == "needs" and not me:
        yield Unit("task", text, key(subject), "task", f"{subject} needs {rest}", importance=KNOWN)


def decided(what: str, text: str) -> Iterator[Unit]:
    """Another choice for the same thing takes the place of the one before."""
    value = value_of(re.sub(r"^(?:now |on |to |for )+", "", what))
    topic = re.search(r" for (.+)$", value, re.IGNORECASE)
    if topic:
        value, about = value_of(value[: topic.start()]), re.sub(r" (?:after all|instead)$", "", topic[1])
        yield Unit("decision", text, ME, "decision", value, slot_of(ME, "decision", about), importance=KNOWN)
    else:
        yield Unit("decision", text, ME, "decision", value, importance=KNOWN)


def _priced(owner: str, value: str, text: str) -> Unit:
    """What something costs in one season or size is another thing than in another."""
    where = re.search(r" (?:in|on|during|for|at|with|without) .+$", value)
    owner = re.sub(r"^(?:the )?(?:price|cost|fee|rate|charge) (?:of|for) ", "", owner)
    return fact(owner, "price", value, text, slot=slot_of(owner, "price", where.group() if where else ""))


def _denied(subject: str, verb: str, rest: str, text: str, scene: Scene) -> Iterator[Unit]:
    """What does not hold: "I don't live in Lyon any more"."""
    if verb in ("work", "function") and subject != ME and not re.match(r"(?:in|at|for|on) ", rest):
        yield from _works(subject, "does not work", text, scene)
        return
    if verb in ("like", "enjoy", "eat", "drink", "love", "want", "care") and rest:
        yield from _taste(subject, "dislikes", re.sub(r"^for ", "", rest), text)
    elif verb in ("live", "work") and (found := re.match(r"(?:in|at|for|on) (.+)", rest)):
        scene.ends.append(f"{slot_of(subject, 'home' if verb == 'live' else 'work')}={key(value_of(found[1]))}")
    elif verb in ("have", "own", "drive", "speak") and rest:
        thing = value_of(rest)
        scene.ends.append(slot_of(subject, "language" if verb == "speak" else "has", thing))
        if verb == "drive":
            scene.ends.append(f"{slot_of(subject, 'car')}={key(thing)}")
    elif verb in ("hate", "mind", "dislike") and rest:
        yield from _taste(subject, "likes", rest, text)
    elif verb == "need" and rest:
        scene.done.append(key(re.sub(r"^to ", "", value_of(rest))))


def _has_attribute(
    owner: str, attribute: str, value: str, text: str, scene: Scene, *, denied: bool = False
) -> Iterator[Unit]:
    value = value_of(value)
    if denied:
        scene.ends.append(f"{slot_of(owner, attribute)}={key(value)}")
        if found := re.match(r".+?,?\s+(?:it is|but)\s+(.+)$", value):
            yield from _has_attribute(owner, attribute, found[1], text, scene)
        return
    if re.match(r"(?:old|former|previous|last|ex)\b", attribute):
        return
    if attribute.endswith("name"):
        value = re.split(r",|\s+(?:with|and not|not|spelled|spelt)\s+", value)[0].strip()
        if not all(NAMED.fullmatch(one) and not NO_NAME.search(one) for one in items_of(value)):
            return
    if attribute.startswith("favourite"):
        yield fact(owner, attribute, value, text, kind="preference")
        return
    sure = attribute.endswith(("name", "number", "code", "password", "pin", "birthday", "address", "id", "plate"))
    yield fact(owner, attribute, value, text, importance=SURE if sure else KNOWN)


def _has(subject: str, verb: str, rest: str, text: str, scene: Scene) -> Iterator[Unit]:
    if found := re.match(r"(?:got )?to (\w+.*)", rest):
        if subject == ME and verb in ("have", "got"):
            yield _task(found[1], text)
        return
    if found := re.match(
        r"(?:an? )?(?:new )?(?:flat|house|apartment|home|room|place) in ([A-Z][\w-]+)"
        r"(?: and (?:lives?|stays?) there)?$",
        value_of(rest),
    ):
        yield fact(subject, "home", found[1], text, importance=SURE if subject == ME else KNOWN)
        return
    if found := re.match(r"(?:an? |some )?(?:\w+ )?(?:allergy|allergies|intolerance) (?:to|against) (.+)", rest):
        yield from _each(subject, "allergy", found[1], text, scene)
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
        yield fact(f"my {what}", "time", value_of(more) or "", text, kind="task")
        scene.about = f"my {what}"
        return
    if found := re.match(r"(?:an?|two|three|four|another|some|\d+) (.+?),? (?:called|named) (.+)", rest):
        yield from _has_attribute(
            f"my {found[1]}" if subject == ME else f"{subject}'s {found[1]}", "name", found[2], text, scene
        )
        scene.about = f"my {found[1]}"
        return
    if found := re.match(r"(?:an?|two|three|four|five|six|no|\d+|another|new) (.+)", rest):
        value = value_of(rest)
        if verb == "bought" and subject == ME:
            yield from _finished_doing(verb, rest, text, scene)
            return
        if len(value.split()) <= 7 and not MOOD.match(found[1]) and not _PASSING_THINGS.match(found[1]):
            slot = slot_of(subject, "has", found[1])
            yield fact(subject, "has", value, text, slot=slot)


def _needs(verb: str, rest: str, text: str) -> Iterator[Unit]:
    if found := re.match(r"(?:not )?to (\w+.*)", rest):
        if not rest.startswith("not"):
            yield _task(found[1], text)
    elif (verb in ("must", "should") and rest and not rest.startswith(("not ", "be ", "have "))) or (
        verb == "need" and rest and not rest.startswith("your")
    ):
        yield _task(rest, text)


def _task(what: str, text: str) -> Unit:
    value = value_of(what)
    return Unit("task", text, ME, "task", value, slot=slot_of(ME, "task", value), importance=KNOWN)


def _finished_doing(verb: str, rest: str, text: str, scene: Scene) -> Iterator[Unit]:
    """ "I've paid the bill": a task with these words is over, and it is worth a fact that it is."""
    scene.done.append(key(f"{verb} {value_of(rest)}"))
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
    value = re.sub(r"\s+(?:very much|a lot|so much|at all|the most|best|more|better)$", "", value_of(rest))
    for item in items_of(value) if len(value.split()) <= 8 else [value]:
        if (
            item
            and not item.lower().startswith("you")
            and item.lower() not in ("it", "that", "this", "you", "them", "him", "her")
        ):
            yield Unit("preference", text, key(subject), side, item, slot_of(subject, "taste", item), importance=KNOWN)


def _each(subject: str, attribute: str, rest: str, text: str, scene: Scene, *, denied: bool = False) -> Iterator[Unit]:
    for item in items_of(value_of(rest)):
        slot = slot_of(subject, attribute, item)
        if denied:
            scene.ends.append(slot)
        else:
            yield fact(subject, attribute, item, text, slot=slot, importance=SURE)
