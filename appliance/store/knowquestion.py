"""What a question asks for: its words, and the kind of value that answers it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from appliance.store.knowenglish import DAYS
from appliance.store.knowwords import CLITIC, Lexicon, Term, numeral, plain

_NOUN = re.compile(
    r"(?:.*?\b(?:what|which)\b)?(?: ?(?:is|are|was|s))?"
    r"((?: ?(?!of\b|for\b|with\b|in\b|on\b|has\b|have\b|does\b|do\b|must\b"
    r"|can\b|may\b|should\b|to\b|is\b|are\b)\w+){1,4})"
)
_CONTRACTED = re.compile(r"\b(what|where|when|who|how|it|that|there|here)s\b")
Kind = str
"""What an answer must hold: "price", "time", "date", "duration", "length", "volume", "mass", "torque", "pressure",
"speed", "temperature", "current", "energy", "number", "place", "person", "reason", "interval"."""

_UNITS = {
    "price": r"[€$£]|\b(?:euros?|cents?|eur|usd|gbp|dollars?|pounds?|pence|free)\b",
    "time": r"\b\d{1,2}[:.]\d\d\b|\b\d{1,2} ?(?:am|pm|a\.m|p\.m|o'clock)\b|\b(?:noon|midnight|closed)\b|"
    r"\bhours? before\b",
    "date": r"\b(?:" + "|".join(DAYS) + r")s?\b|\b\d{4}-\d\d-\d\d\b|\b(?:january|february|march|april|june|july|august|"
    r"september|october|november|december)\b|\b\d{1,2} may\b",
    "age": r"\b\d+ (?:years?|months?) old\b|\b(?:since|in|from) (?:1[5-9]|20)\d\d\b",
    "colour": r"\b(?:red|green|blue|yellow|white|black|gr[ae]y|brown|orange|purple|pink|silver)\b",
    "past": r"\b(?:1[5-9]|20)\d\d\b",
    "duration": r"\b(?:\d[\d.,]*|one|two|three|once a|a|an|half an?)[ -]?(?:s|sec|seconds?|min|minutes?|h|hours?|"
    r"days?|weeks?|months?|years?)\b",
    "length": r"\d ?(?:mm|cm|m|km|metres?|meters?|kilomet\w+|millimet\w+|centimet\w+|inch(?:es)?|feet|miles?)\b",
    "volume": r"\d ?(?:ml|cl|l|(?:milli|centi)?lit(?:re|er)s?|litres?|liters?|gallons?|cups?)\b",
    "mass": r"\d ?(?:mg|g|kg|grams?|kilos?|kilograms?|tons?|tonnes?)\b",
    "torque": r"\d ?(?:nm|newton ?met\w+)\b",
    "pressure": r"\d ?(?:bar|psi|k?pa)\b",
    "speed": r"\d ?(?:km/h|kmh|mph|m/s|rpm|knots)",
    "temperature": r"\d ?(?:°|degrees|celsius|fahrenheit)",
    "current": r"\d ?(?:a|amps?|amperes?|v|volts?|w|kw|watts?|ah|kwh)\b",
    "energy": r"\d ?(?:kcal|(?:kilo)?calories|kj)\b",
    "number": r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|once|twice)\b",
    "place": r"\b(?:in|at|on|behind|under|beneath|next to|beside|near|inside|outside|above|below|left|right|between|by|"
    r"against|into|from|front|opposite|downstairs|upstairs|street|road|lane)\b",
    "person": r"\b(?:manager|foreman|mechanic|owner|chef|driver|doctor|nurse|staff|supervisor|"
    r"mr|mrs|ms|dr|team|technician|electrician|captain)\b",
    "reason": r"\b(?:because|so that|since|otherwise|as it|in order to|due to|to avoid|takes up|prevents?)\b",
    "interval": r"\b(?:every|each|once|twice|per|daily|weekly|monthly|yearly|annually)\b",
}
KINDS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _UNITS.items()}
_QUANTITIES = frozenset(("volume", "mass", "length", "energy", "pressure", "duration", "current"))

_NOUNS = {
    "price": {"price"},
    "colour": {"colour"},
    "color": {"colour"},
    "cost": {"price"},
    "fee": {"price"},
    "deposit": {"price"},
    "expensive": {"price"},
    "torque": {"torque"},
    "tight": {"torque"},
    "pressure": {"pressure"},
    "weight": {"mass"},
    "heavy": {"mass"},
    "weigh": {"mass"},
    "thickness": {"length"},
    "thick": {"length"},
    "deep": {"length"},
    "width": {"length"},
    "wide": {"length"},
    "height": {"length"},
    "length": {"length", "duration"},
    "capacity": {"volume", "mass"},
    "temperature": {"temperature"},
    "speed": {"speed"},
    "calories": {"energy"},
    "calorie": {"energy"},
    "phone": {"number"},
    "telephone": {"number"},
}
_HOW = {
    "long": {"duration", "length"},
    "far": {"length"},
    "fast": {"speed"},
    "quickly": {"duration"},
    "soon": {"duration"},
    "heavy": {"mass"},
    "tight": {"torque"},
    "thick": {"length"},
    "thin": {"length"},
    "deep": {"length"},
    "wide": {"length"},
    "high": {"length"},
    "tall": {"length"},
    "hot": {"temperature"},
    "cold": {"temperature"},
    "warm": {"temperature"},
    "often": {"interval"},
    "late": {"time"},
    "early": {"time"},
    "many": {"number"},
    "old": {"age"},
    "expensive": {"price"},
    "big": {"volume", "length", "mass", "number"},
    "large": {"volume", "length", "mass", "number"},
}
_WHEN = frozenset(("time", "date", "duration", "interval", "length"))
_ASIDE = re.compile(
    r"\b(?:can|could|would|will) you (?:please )?(?:tell|say|explain|show|give)(?: to)? (?:me|us)\b|\bplease\b|"
    r"\btell me\b|"
    r"\bdo you know\b|\bi(?:'d| would) like to know\b|\bi want to know\b|\bany idea\b|\bby the way\b|\bexcuse me\b|"
    r"\b(?:uh|um|er|thanks|thank you|hey|hello|hi|okay|ok|so|well|and)\b"
)
_AUXILIARY = re.compile(
    r"^(?:do|does|did|is|are|was|were|can|could|may|might|must|should|shall|will|would|have|has|am|isn't|aren't|don't|"
    r"doesn't|can't)\b"
)
_WH = re.compile(r"\b(?:what|when|where|who|whom|whose|which|why|how)\b")
_STEPS = re.compile(r"\bstep (?:number )?(\w+)"), re.compile(r"\b(\w+) step\b")


@dataclass(frozen=True, slots=True)
class Question:
    """`kinds`: the answer holds one of them ("": anything will do); `yes_no`: it can be answered so; `step` is the
    number of a step that is asked for, 0 for none; `steps`: all of them are."""

    text: str
    terms: tuple[Term, ...]
    kinds: frozenset[Kind]
    yes_no: bool = False
    step: int = 0
    steps: bool = False
    head: Term | None = None
    """What is asked for by its name: the thread in "which thread does the bolt have"."""

    @property
    def heavy(self) -> tuple[Term, ...]:
        return tuple(term for term in self.terms if not term.light)


def holds(text: str, kinds: frozenset[Kind]) -> bool:
    """Whether a text holds a value of one of these kinds."""
    return not kinds or any(KINDS[kind].search(text) or (kind == "person" and _named(text)) for kind in kinds)


def _named(text: str) -> bool:
    """Two capitalised words behind one another, or one inside a sentence."""
    return bool(re.search(r"\b[A-Z][a-z]+ [A-Z][a-z]+\b|[a-z,] [A-Z][a-z]+\b", text))


def understand(text: str, lexicon: Lexicon, now: datetime) -> Question:
    """What a question asks for. Days named by how far they are ("tomorrow") become days of the week."""
    spoken = _CONTRACTED.sub(r"\1", CLITIC.sub("", plain(text)))
    words = " ".join(_ASIDE.sub(" ", spoken).split())
    for name, days in (("the day after tomorrow", 2), ("tomorrow", 1), ("today", 0), ("tonight", 0), ("right now", 0)):
        words = re.sub(rf"\b{name}\b", DAYS[(now + timedelta(days=days)).weekday()], words)
    if re.search(r"\bopen(?:ed)? now\b|\bclosed now\b", words):
        words = words.replace("now", DAYS[now.weekday()])
    words = re.sub(
        r"^where (?:are you|is (?:the|your) (?:shop|store|cafe|restaurant|place))(?: located)?$", "address", words
    )
    words = re.sub(r"\b(what|which) (?:size|kind of|type of|sort of)\b", r"\1", words).replace("how large", "how big")
    words = words.replace("how much money", "how much")
    kinds, asked = _kinds(words)
    yes_no = bool(_AUXILIARY.match(words)) and not _WH.match(words)
    step, rest = _asked_step(words)
    steps = bool(
        re.match(r"how (?:do|can|should|must) (?:i|we|you)\b|how to\b", words)
        or re.search(r"\b(?:the|all|what) steps\b|\bprocedure for\b", words)
    )
    terms = [term for term in lexicon.terms(rest if step else asked) if term.word not in ("step", "steps")]
    terms = list(dict.fromkeys(_weighed(terms, asked, lexicon)))
    if not step and kinds and all(term.light for term in terms):
        terms = [replace(term, light=False) for term in terms]
    head = None
    if named := re.match(
        r"(?:(?:on|to|at|in|with|for) )?(?:what|which) (?!is\b|are\b|do\b|does\b|must\b|if\b)(\w+)", words
    ):
        head = next((term for term in terms if not term.light and term.word.startswith(named[1])), None)
    return Question(text, tuple(terms), kinds, yes_no, step, steps, head)


def _weighed(terms: list[Term], words: str, lexicon: Lexicon) -> list[Term]:
    """ "I lost my scarf, how long is lost property kept": what is said before the question weighs little, where the
    question says enough."""
    last = [match.start() for match in _WH.finditer(words)][-1:]
    if not last or len(words[: last[0]].split()) < 3:
        return terms
    told = {term.word for term in lexicon.terms(words[: last[0]])}
    asked = lexicon.terms(words[last[0] :])
    if sum(not term.light for term in asked) < 2:
        return terms
    told -= {term.word for term in asked}
    return [replace(term, light=term.light or term.word in told) for term in terms]


def _asked_step(words: str) -> tuple[int, str]:
    found = ((match, key) for form in _STEPS for match in form.finditer(words) for key in numeral(match[1]))
    match, key = next(found, (None, "#0"))
    if match is None:
        return 0, words
    number = int(key[1:])
    before = words[: match.start()]
    number += 1 if re.search(r"\bafter\b", before) else -1 if re.search(r"\bbefore\b", before) else 0
    rest = re.sub(r"\b(?:after|before)\b", " ", before) + words[match.end() :]
    return max(0, number), rest


def _kinds(words: str) -> tuple[frozenset[Kind], str]:
    """The kinds of answer, and the words without those that only said the kind."""
    how = re.search(r"\bhow (\w+)(?: (\w+))?", words)
    if how:
        first, second = how[1], how[2] or ""
        if first == "much":
            return _how_much(words, second)
        if first in _HOW:
            only = first in ("long", "far", "often", "late", "early", "soon", "many", "old", "quickly", "fast", "big")
            asked = words.replace(how[0], f"how {second}", 1) if only else words
            kinds = set(_HOW[first])
            if first == "many" and (unit := _unit(words[how.start() :])):
                return frozenset(unit[0]), words.replace(f"how many {unit[1]}", " ", 1)
            if first == "long" and re.search(
                r"\b(?:last|take|takes|valid|wait|keep|kept|held|hold|stored|until)\b", words
            ):
                kinds = {"duration"}
            if first == "long" and re.match(r"how long (?:is|are) the (?:car|vehicle)", words):
                asked = words.replace("how long", "length", 1)
            if first == "fast":
                asked = words
            if first == "big":
                asked = words
            return frozenset(kinds), asked
    if re.search(r"\bwhat\b.* pay\b", words):
        return frozenset(("price",)), words
    if day := re.search(r"\b(?:what|which|on what|on which) days?\b", words):
        return frozenset(("date", "time")), words.replace(day[0], "when", 1)
    if re.search(r"\bwhere\b", words):
        return frozenset(("place",)), words
    if re.search(r"\bwho(?:m|se)?\b", words):
        return frozenset(("person",)), words
    if re.search(r"\bwhy\b", words):
        return frozenset(("reason",)), words
    if re.search(r"\bwhen (?:was|were|did)\b", words):
        return frozenset(("past",)), words
    if re.search(
        r"^(?:until |from |since |by )?when\b|\bwhat time\b|\bwhen (?:do|does|is|are|must|should|can|will)\b", words
    ):
        return _WHEN, re.sub(r"\bwhat time\b", " ", words)
    # The noun that is asked for stands before what it is asked of: "what torque does the speed sensor need".
    named = None if _AUXILIARY.match(words) else _NOUN.match(words)
    for noun in named[1].split() if named else ():
        if noun in _NOUNS:
            return frozenset(_NOUNS[noun]), words
    return frozenset(), words


def _unit(words: str) -> tuple[set[Kind], str] | None:
    """The kinds of a unit that is counted ("how many litres"), and its words."""
    match = re.match(r"how many ((?:newton |square |kilo)?\w+)", words)
    if match is None:
        return None
    kinds = {
        kind
        for kind in _QUANTITIES | {"price", "torque", "temperature", "speed"}
        if KINDS[kind].search(f"2 {match[1]}")
    }
    if kinds & {"duration", "length"}:
        kinds.add("interval")
    return (kinds, match[1]) if kinds else None


def _how_much(words: str, second: str) -> tuple[frozenset[Kind], str]:
    if second in ("is", "are", "does", "do", "for", "s", "the", "a", "would", "will", "was", "extra", "it", ""):
        if re.search(r"\bweigh\b|\bweighs\b", words):
            return frozenset(("mass",)), words
        return frozenset(
            ("price", "mass", "volume") if re.search(r"\btow\b|\bload\b|\blift\b", words) else ("price",)
        ), words
    if second in ("can", "may", "must", "should", "could"):
        return _QUANTITIES | {"price"}, words
    if second in ("deposit", "more", "less"):
        return frozenset(("price",)), words.replace("how much more", "how much").replace("how much less", "how much")
    if second in _NOUNS:
        return frozenset(_NOUNS[second]), words
    return _QUANTITIES, words


_INSIDE = re.compile(
    r"(?<!know )\b(?:what|when|where|who|which|why|how)(?: \w+){0,3}? "
    r"(?:is|are|was|do|does|did|can|may|must|should|will|has|have)(?: \w+)"
)


def is_question(text: str) -> bool:
    """Whether the words ask for something, as far as their form tells."""
    words = " ".join(_ASIDE.sub(" ", _CONTRACTED.sub(r"\1", plain(text))).split())
    return bool(
        text.rstrip().endswith("?")
        or _AUXILIARY.match(words)
        or re.match(
            r"^(?:(?:in|at|on|from|to|for|by|until|of|with) )?(?:what|when|where|who|whom|whose|which|why|how)\b", words
        )
        or _INSIDE.search(words)
        or re.search(r"\b(?:tell me|do you know|i want to know|i(?:'d| would) like to know)\b", plain(text))
    )
