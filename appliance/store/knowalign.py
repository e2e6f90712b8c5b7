"""Whether a fact answers a question: each word that matters is found in it, and the value is of the kind asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Indel

from appliance.store.knowenglish import CONTRASTS, DAYS
from appliance.store.knowfacts import Body, Embed, Fact
from appliance.store.knowquestion import KINDS, Kind, Question, holds
from appliance.store.knowwords import Term

NEAR = 0.72
"""Cosine from which a word that the packs do not have is taken for one that they have."""
ALIKE = 0.86
"""How alike the letters of a word that was misheard and of the right one are."""
ENOUGH = 0.5
"""How well each word that matters is covered at the least."""
SURE = 0.72
"""Covered share of the question's words at the least, the rare ones weighing more."""
CLOSE = 0.18
"""Cosine of question and passage at the least."""
APART = 0.3
"""The same where only the headings have the question's words."""
AMOUNTS = frozenset(kind for kind in KINDS if kind not in ("place", "person", "reason"))
_AMOUNT = re.compile(r"^[\d.,]+\s*\D{0,12}$")
_KIND_WORDS: Mapping[Kind, str] = {
    "price": "price expensive sell buy pay",
    "torque": "torque",
    "mass": "weight",
    "energy": "calories",
    "pressure": "pressure",
    "speed": "speed",
    "temperature": "temperature",
    "volume": "fluid liquid",
    "colour": "colour",
    "time": "open close",
}


@dataclass(frozen=True, slots=True)
class Alignment:
    """`score` in about [0, 1.5] ranks; `weakest` is the word that is covered least, and how well."""

    fact: int
    score: float
    coverage: float
    weakest: float
    missing: str
    tie: tuple[object, ...] = ()
    outside: bool = False
    """Whether the headings were needed: then they are said as well."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A term of the question with what is found in its stead."""

    term: Term
    weight: float
    generic: bool
    kinds: frozenset[Kind]
    """The kinds of value that cover it."""
    slips: Mapping[str, float]
    meanings: NDArray[np.float32] | None
    """Cosine with each word of the vocabulary, 0 below the threshold."""


class Aligner:
    """Of one body of facts. `embed` is asked for each word of a question that is not found by its letters."""

    def __init__(self, body: Body, embed: Embed) -> None:
        self._body, self._embed = body, embed
        self._kinds = {kind: body.lexicon.keys(words) for kind, words in _KIND_WORDS.items()}
        self._hours = body.lexicon.keys("hours times")
        self._price = body.lexicon.keys("price")
        self._sounds: dict[str, list[str]] = {}
        for word in body.vocabulary:
            self._sounds.setdefault(sound(word), []).append(word)

    def align(
        self, question: Question, facts: Iterable[int], closeness: Mapping[int, float]
    ) -> tuple[list[Alignment], list[Alignment]]:
        """Those that answer, best first, and those that do not, the nearest first. `closeness` is the cosine of the
        question and each passage."""
        wanted = self._wanted(question)
        found: list[Alignment] = []
        failed: list[Alignment] = []
        for number in facts:
            fact = self._body.facts[number]
            made = self._one(question, wanted, number, fact, closeness.get(fact.of, 0.0))
            (found if not made.missing else failed).append(made)
        return sorted(found, key=lambda a: -a.score), sorted(failed, key=lambda a: -a.score)

    def _wanted(self, question: Question) -> list[_Wanted]:
        body = self._body
        # What is near in meaning is often something else: no amount is told of a beer for it is near to alcohol.
        amount = question.kinds & AMOUNTS
        unknown = (
            []
            if amount
            else [
                t
                for t in question.terms
                if not t.number and not t.opposed and len(t.word) > 2 and not t.among(body.keys)
            ]
        )
        vectors = (
            dict(zip((t.word for t in unknown), self._embed([t.word for t in unknown]), strict=True)) if unknown else {}
        )
        # A word that was said stands for itself, not for another that was said.
        keys = frozenset[str]().union(*(term.keys | term.parts for term in question.terms))
        said = np.array([body.lexicon.stem(word) in keys for word in body.vocabulary], bool)
        wanted = []
        for term in question.terms:
            known = term.among(body.keys)
            slips = {} if known or term.number else self._slips(term.word)
            near = None
            if term.word in vectors and len(body.vocabulary):
                near = body.meanings @ vectors[term.word]
                near = np.where((near >= NEAR) & ~said, near, 0.0).astype(np.float32)
            rare = max((body.rarity.get(key, 0.0) for key in term.keys | term.parts), default=0.0) if known else 5.0
            kinds = frozenset(kind for kind, keys in self._kinds.items() if keys & term.keys)
            generic = term.among(body.generic) and not kinds
            weight = (0.15 if term.light else 0.3 if generic else 1.0) * (0.4 + 0.2 * rare)
            wanted.append(_Wanted(term, weight, generic, kinds, slips, near))
        return wanted

    def _slips(self, word: str) -> dict[str, float]:
        """The words of the packs that a recogniser may have meant."""
        if len(word) < 4:
            return {}
        found = {}
        for known in (*self._sounds.get(sound(word), ()), *self._body.vocabulary):
            alike = Indel.normalized_similarity(word, known)
            if len(known) < 4:
                continue
            same = sound(word) == sound(known) and word[0] == known[0]
            if (same and alike >= 0.7) or (alike >= ALIKE and len(word) >= 5 and word[0] == known[0]):
                found[known] = 0.85
        return found

    def _one(self, question: Question, wanted: Sequence[_Wanted], number: int, fact: Fact, close: float) -> Alignment:
        body = self._body
        right = holds(fact.value, question.kinds)
        total = covered = 0.0
        weakest, missing, outside, specific = 1.0, "", False, 0
        asked_attribute = asked_entity = inside = False
        only_entity = bool(fact.entity)
        for want in wanted:
            cover, where = self._cover(want, fact)
            total += want.weight
            covered += want.weight * cover
            if want.term.light:
                asked_attribute |= want.term.among(fact.attribute)
                continue
            only_entity &= want.generic or want.term.among(fact.entity) or where == "own"
            if want.generic and cover < ENOUGH and want.term.among(body.of_pack[body.passages[fact.of].pack]):
                cover, where = 1.0, "generic"
            if cover < weakest:
                weakest = cover
                missing = want.term.word if cover < ENOUGH else missing
            if cover >= ENOUGH and where != "generic":
                outside |= where == "context"
                inside |= where == "own"
                if want.term == question.head and where == "context":
                    missing = want.term.word
                specific += where in ("own", "context") and not want.generic and not want.term.among(self._price)
            asked_attribute |= want.term.among(fact.attribute)
            asked_entity |= want.term.among(fact.entity)
        coverage = covered / total if total else 0.0
        unasked, opposed = self._unasked(wanted, fact)
        if not missing and question.kinds == {"number"} and fact.field is None:
            missing = "" if self._counts(question, fact) else "how many"
        if not missing and not right:
            missing = " or ".join(sorted(question.kinds))
        if not missing and question.steps and fact.field and _AMOUNT.match(fact.value):
            missing = "how"
        if not missing and not specific:
            missing = "what it is about"
        loose = not question.kinds or question.kinds & {"place", "person", "number", "reason"}
        if not missing and not inside and (loose or close < APART):
            missing = "more than its heading"
        if not missing and coverage < SURE:
            missing = "too much of it"
        if not missing and close < CLOSE and coverage < 0.9:
            missing = "its meaning"
        if (
            not missing
            and fact.kind == "field"
            and not self._is_asked(question, fact, asked_attribute, asked_entity, only_entity and not unasked)
        ):
            missing = "the attribute"
        score = coverage + 0.35 * close - 0.06 * unasked - 0.2 * opposed
        score += (
            0.12 * asked_attribute
            + 0.05 * (fact.kind == "field")
            + 0.12 * (asked_entity and not unasked)
            + 0.1 * bool(question.kinds and right)
        )
        plain = fact.field is not None and not asked_attribute and not question.kinds
        plain = plain and bool(_AMOUNT.match(fact.value))
        score -= 0.04 * outside + 0.15 * plain + 0.002 * len(body.facts[number].text.split())
        return Alignment(number, score, coverage, weakest, missing, (), outside)

    def _is_asked(self, question: Question, fact: Fact, attribute: bool, entity: bool, only: bool) -> bool:
        """A field answers when its attribute is named, or its value is of the kind that is wanted; of a row, when
        just its being there is asked for, or nothing but what it is about ("which brake fluid?")."""
        if not fact.entity:
            terms = self._body.lexicon.terms(fact.field.attribute if fact.field else "")
            terms = [term for term in terms if not term.light] or terms
            named = sum(any(term.among(want.keys | want.parts) for want in question.terms) for term in terms)
            return bool(question.kinds) or 2 * named > len(terms)
        if attribute or question.kinds or (entity and question.yes_no) or (only and entity):
            return True
        value = self._body.lexicon.keys(fact.value)
        return all(want.among(value | self._body.generic) for want in question.heavy)

    def _cover(self, want: _Wanted, fact: Fact) -> tuple[float, str]:
        keys = want.term.keys
        if want.term.number:
            number = {key for key in keys if key.startswith("#")} or keys
            if number & fact.own:
                return 1.0, "own"
            return (0.95, "context") if number & fact.context else (self._in_range(keys, fact), "own")
        if want.term.among(fact.own):
            return 1.0, "own"
        if want.kinds - {"time"} and holds(fact.value, want.kinds - {"time"}):
            return 0.95, "kind"
        if "time" in want.kinds and fact.field and self._hours & fact.attribute and holds(fact.value, want.kinds):
            return 0.95, "own"
        if want.term.among(fact.context):
            return 0.9, "context"
        if any(key.startswith("#") for key in keys):
            ranged = self._in_range(keys, fact)
            if ranged:
                return ranged, "own"
        stem = min(keys, key=lambda key: (key.startswith(("=", "#")), key))
        if stem[0] not in "=#" and len(stem) >= 5 and not want.term.opposed:
            for place, name in ((fact.own, "own"), (fact.context, "context")):
                if any(_same_root(stem, other) for other in place):
                    return 0.85, name
        words = [self._body.vocabulary[place] for place in fact.words]
        if want.slips:
            best = max((want.slips.get(word, 0.0) for word in words), default=0.0)
            if best:
                return best, "own"
            if any(self._body.lexicon.stem(word) in fact.context for word in want.slips):
                return 0.8, "context"
        if want.meanings is not None and len(fact.words):
            best = float(want.meanings[fact.words].max())
            if best:
                return min(0.8, best), "near"
        return 0.0, ""

    def _counts(self, question: Question, fact: Fact) -> bool:
        """Whether a number stands close to what is to be counted, which is what the question names first."""
        first = next((term for term in question.terms if not term.light), question.terms[0])
        terms = self._body.lexicon.terms(fact.value, stops=False)
        numbers = [place for place, term in enumerate(terms) if any(key[0] == "#" for key in term.keys)]
        named = [place for place, term in enumerate(terms) if first.among(term.keys | term.parts)]
        return any(abs(one - other) <= 3 for one in numbers for other in named)

    def _in_range(self, keys: frozenset[str], fact: Fact) -> float:
        """ "8 people" is in "6 or more people", 2 persons in "up to 3 persons"."""
        numbers = [int(key[1:]) for key in keys if key.startswith("#")]
        if not numbers:
            return 0.0
        text = fact.text.lower()
        at_least = [int(m[1] or m[2]) for m in re.finditer(r"\b(\d+) or more\b|\bat least (\d+)\b(?![.,]\d)", text)]
        at_most = [int(m[1]) for m in re.finditer(r"\bup to (\d+)\b(?![.,]\d)", text)]
        inside = any(number >= low for low in at_least for number in numbers) or any(
            number <= high for high in at_most for number in numbers
        )
        return 0.8 if inside else 0.0

    def _unasked(self, wanted: Sequence[_Wanted], fact: Fact) -> tuple[int, int]:
        """How many words of a field's name the question does not have, and how many of them tell things apart."""
        if fact.field is None:
            return 0, 0
        names = self._body.passages[fact.of].passage.entity or fact.field.attribute
        asked = frozenset[str]().union(*(want.term.keys | want.term.parts for want in wanted))
        left = [term for term in self._body.lexicon.terms(names) if not term.among(asked)]
        if any(asked & {self._body.lexicon.stem(day)} & fact.entity for day in DAYS):  # "Monday to Friday" has them all
            left = [term for term in left if term.word not in DAYS]
        left = [term for term in left if not any(term.word in want.slips for want in wanted)]
        return len(left), sum(term.opposed for term in left)


def _same_root(one: str, other: str) -> bool:
    """ "deliv" and "deliveri", but not "cap" and "capac"."""
    short, long = sorted((one, other), key=len)
    return len(short) >= 5 and long.startswith(short) and len(long) - len(short) <= 3


def sound(word: str) -> str:
    """Its consonants as they sound, roughly: "brake" and "break" are equal."""
    word = re.sub(r"ck|q", "k", word.lower()).replace("ph", "f").replace("th", "0")
    word = re.sub(r"c(?=[eiy])", "s", word).replace("c", "k").replace("x", "ks").replace("z", "s")
    return word[:1] + re.sub(r"(.)\1+", r"\1", re.sub(r"[aeiouyhw]", "", word[1:]))


def opposite(one: Iterable[str], other: Iterable[str]) -> bool:
    """Whether two sets of words hold different members of a pair or a row of opposites."""
    first, second = set(one), set(other)
    return any(first & group and second & group and not first & second & group for group in CONTRASTS)
