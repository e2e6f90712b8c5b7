"""The answer's text cut into clauses that can be spoken: the first as early as is sensible, later ones longer."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from appliance.events import Answered, Draft, Failed, Phrase, SpeechEnded, Token, Transcript
from appliance.stream import Events, Stage
from appliance.voice.sanitise import Sanitiser

ForTheEar = Callable[[str], str]
"""Text to words that can be said (`runtime.normalise`)."""


@dataclass(frozen=True, slots=True)
class PhraseRules:
    """Lengths in characters, unless they say words. A weak boundary is a comma and its like, a strong one ends a
    sentence. Beyond `first_hold` or `hold` without a boundary the cut is made before a joining word, beyond half as
    much again between any two."""

    first_words: int = 2
    weak: int = 60
    first_hold: int = 45
    hold: int = 180


_TITLES = (
    "mr mrs ms dr prof st mt ft gen col capt lt sgt rev hon sen gov rep jr sr vs approx dept est inc "
    "ltd co corp ave blvd rd tel misc jan feb mar apr jun jul aug sep sept oct nov dec e.g i.e cf ca bzw usw hr "
    "fr z.b d.h u.a evtl ggf inkl str mio mrd mme mlle mm env sra srta dra ud uds av bd"
)
_ABBREVIATIONS = frozenset(_TITLES.split())
_AMBIGUOUS = frozenset({"a.m", "p.m", "etc", "inc", "ltd", "co", "corp", "jr", "sr", "ave", "blvd", "rd", "st", "usw"})
"""Abbreviations that do end a sentence if a capital follows."""

_NUMBERED = frozenset({"no", "nos", "fig", "vol", "p", "pp", "nr", "núm", "pág", "ext"})
"""Abbreviations only in front of a number; "no" is a word too."""

_MARKS = re.compile(r"([.!?…。！？]+|[,;:—]|\s[–-])[\"'”’»)\]]*$")
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_JOINER = re.compile(
    r"\s(?=(?:and|or|but|because|which|who|that|when|while|if|so|then|with|for|from|in|at|on|to|of|by|as|into|about|than|where)\s)"
)
_BETWEEN = re.compile(r"(?<=[^\W\d])\s(?=[^\W\d])|(?<=[,;:.!?])\s")
_WIDE = "。！？"
ENDING = (Answered, Failed, Transcript, Draft, SpeechEnded)
"""Events that no text of the same answer follows: what is held goes out in front of them."""


class Phraser:
    """Cuts sanitised text. The pieces joined are the text; how the text was split on the way in changes nothing."""

    def __init__(self, rules: PhraseRules) -> None:
        self._rules = rules
        self._held = ""
        self._first = True

    def feed(self, text: str) -> list[str]:
        """The clauses that are complete."""
        pieces: list[str] = []
        for char in text:
            self._held += char
            if cut := self._cut():
                pieces.append(self._held[:cut])
                self._held = self._held[cut:]
                self._first = False
        return pieces

    def flush(self) -> list[str]:
        """What is left, at the end of the answer."""
        rest, self._held, self._first = self._held, "", True
        return [rest] if rest else []

    def _cut(self) -> int:
        """Where to cut what is held, now that its last character has come; 0 for not yet. A cut lies in front of the
        first character of the next clause, which has to be seen: it tells a full stop from a decimal point."""
        held = self._held
        if held[-1].isspace() or len(held) < 2:
            return 0
        body = held[:-1]
        if body[-1].isspace() or body[-1] in _WIDE:
            return len(body) if self._ends(body, held[-1]) else 0
        hold = self._rules.first_hold if self._first else self._rules.hold
        return self._forced(held, hold) if len(held) > hold else 0

    def _ends(self, body: str, following: str) -> bool:
        text = body.rstrip()
        marks = _MARKS.search(text)
        words = len(_WORD.findall(text))
        if not words or _open(body):
            return False
        if "\n" in body[len(text) :] and words >= 1:
            return True
        if marks is None:
            return False
        mark = marks.group(1)
        front = text[: marks.start()]
        if marks.end(1) < len(text) and following.islower():
            return False  # "Stop!" she said
        if mark[-1] in "!?。！？":
            return True
        if mark[0] == "…" or mark[:2] == "..":
            return following.isupper()
        if mark == ".":
            return _full_stop(front, following)
        if front[-1:].isdigit() and following.isdigit():
            return False
        if self._first:
            return words >= self._rules.first_words
        return len(text) >= self._rules.weak

    def _forced(self, held: str, hold: int) -> int:
        """A cut in text without boundaries: before a joining word, else between words, not in an address or number."""
        room = held[:-1]
        low = len(room) // 3
        for pattern in (_JOINER, _BETWEEN) if len(held) > hold + hold // 2 else (_JOINER,):
            if places := [m.end() for m in pattern.finditer(room) if m.end() >= low]:
                return places[-1]
        if len(held) > 2 * self._rules.hold:
            return room.rfind(" ") + 1 or len(room)
        return 0


def _open(text: str) -> bool:
    """Inside quotation marks or brackets."""
    return text.count('"') % 2 == 1 or text.count("“") > text.count("”") or text.count("(") > text.count(")")


def _full_stop(front: str, following: str) -> bool:
    """Whether a full stop behind `front` ends a sentence."""
    word = re.search(r"(?:[^\W\d_]\.)*[^\W_]+$", front)
    if word is None:
        return bool(front)
    last = word.group().lower()
    if last.isdigit():
        return bool(front[: word.start()].strip()) and not (following.isdigit() or following.islower())
    if last in _NUMBERED:
        return not following.isdigit()
    if last in _AMBIGUOUS:
        return following.isupper()
    if last in _ABBREVIATIONS or (len(last) == 1 and last not in "i") or re.fullmatch(r"(?:[^\W\d_]\.)+[^\W\d_]", last):
        return False
    return not following.islower() or len(front) > 20


def phrase(for_the_ear: ForTheEar, rules: PhraseRules | None = None) -> Stage:
    """Consumes Token; adds Phrase. A clause with nothing to say is joined to the next one, or dropped at the end."""
    settings = rules or PhraseRules()

    async def stage(events: Events) -> Events:
        answer: _Answer | None = None
        async for event in events:
            if answer and (isinstance(event, ENDING) or (isinstance(event, Token) and not answer.same(event))):
                for said in answer.finish():
                    yield said
                answer = None
            if not isinstance(event, Token):
                yield event
                continue
            answer = answer or _Answer(event, for_the_ear, settings)
            for said in answer.add(event):
                yield said
        if answer:
            for said in answer.finish():
                yield said

    return stage


class _Answer:
    """The text of one turn on its way to the mouth."""

    def __init__(self, event: Token, for_the_ear: ForTheEar, rules: PhraseRules) -> None:
        self.turn = event.turn
        self._at, self._by = event.at, event.by
        self._for_the_ear = for_the_ear
        self._sanitiser = Sanitiser()
        self._phraser = Phraser(rules)
        self._mute = ""

    def same(self, token: Token) -> bool:
        """Whether the token goes on with this text: of the same turn, and by the same author."""
        return (token.turn, token.by) == (self.turn, self._by)

    def add(self, token: Token) -> list[Phrase]:
        self._at = token.at
        return self._phrases(self._phraser.feed(self._sanitiser.feed(token.text)))

    def finish(self) -> list[Phrase]:
        return self._phrases([*self._phraser.feed(self._sanitiser.flush()), *self._phraser.flush()])

    def _phrases(self, pieces: list[str]) -> list[Phrase]:
        found = []
        for piece in pieces:
            text = self._mute + piece
            spoken = self._for_the_ear(text)
            if not any(c.isalpha() for c in spoken):
                self._mute = text
                continue
            self._mute = ""
            if text.endswith("\n") and spoken[-1].isalpha():
                spoken += "."
            found.append(Phrase(self._at, self.turn, text, spoken, self._by))
        return found
