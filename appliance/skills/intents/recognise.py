"""Words to what is meant: the cheapest way through the templates.

A way through an intent's graph costs nothing where the words are those of a template; it costs something for each word
that is in no template, is missing, or only sounds like one. What a word costs follows from how much it says: "please"
almost nothing, "the" little, a verb or a name all. The cheapest way is found first (Dijkstra), so words that fit are
understood at once, and only others are compared by sound.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import Any

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from appliance.errors import SkillFault
from appliance.skills.intents.graph import Graph, Place
from appliance.skills.intents.sounds import classes, distance, sounds
from appliance.skills.intents.templates import Choices, Grammar, Template, Typed
from appliance.skills.intents.words import listed, phrases, words
from appliance.skills.numbers import READERS
from appliance.skills.skill import Expecting, Json, Match, Reading, Slot

OWN = "dialogue"
"""The skill of what belongs to none: yes, no, cancel, corrections."""

FILLERS = listed(
    "please thanks thank um uh er erm hmm well okay so now just hey hi hello kindly actually maybe also then oh ah "
    "like yeah right you"
)
FUNCTION = listed(
    "a an the to of for in on at with and or is are be my me i it that this do does can could would will shall may "
    "have has get there some any us we your from by as up out all not"
)
LEAD = phrases(
    "can you|could you|would you|will you|i want you to|i would like you to|i need you to|i want to|i would like to"
    "|let us|go ahead and|you can|i need|can i|could i"
)
ASKING = listed("who what when where why which how whose")
"""Words that are never another of them: who it is about, and how much, is not what a recogniser mistakes."""
WHOSE = listed("my your i you me")
"""Small words that tell whose it is: "what's my name" is not "what's your name"."""
CORRECTING = listed("no sorry actually wait rather nope")
CORRECTIONS = phrases(
    "no|nope|sorry|actually|wait|i meant|i mean|i said|make it|make that|change it to|change that to|not that"
    "|no i meant|it should be|rather"
)
YES = phrases(
    "yes|yeah|yep|yup|sure|okay|please do|yes please|do it|go ahead|correct|that is right|right|exactly|of course"
    "|absolutely|confirm|i do|that is correct|yes that is right|sounds good|definitely|fine|yes i do|yes do it"
    "|affirmative|please"
)
NO = phrases(
    "no|nope|no thanks|no thank you|not now|do not|no do not|please do not|not really|negative|that is wrong|wrong"
    "|nah|i do not|better not|no way|no it is not"
)
CANCEL = phrases(
    "cancel|cancel that|cancel it|never mind|nevermind|forget it|forget that|forget about it|stop|stop it|leave it"
    "|abort|drop it|let it be|no cancel|no forget it|no never mind|quit|that is all wrong"
)

UNSAID = 0.8
"""What a word of weight 1 costs that no template explains, or that a template wants and nobody said."""
FAR = 0.32
"""Distance of sounds from which words are not alike."""
SOUND = 2.0
"""What a distance of 1 would cost, for a word of weight 1."""
EFFORTS = ((0.1, True, 10), (0.8, True, 10), (2.0, False, 6))
"""How far is searched, one after the other until something is found: the cost up to which a way is gone on, whether
words must be the same, and in how many intents, the nearest first."""
GOOD = 0.8
"""Score of each of several commands in one sentence."""
NUMERIC = 0.4
"""What a number in the words counts for an intent that takes one."""
ASKED = 0.05
"""What an answer to what was asked is better than the same words as a command."""
SURE = 0.5
"""Weight of words that must be there as they are: what only sounds like a command all along is none."""
NEAR = 2.0
"""How much of an intent's words must be in a text, in telling words, for it to be heard again with that skill in mind.
A second hearing costs what a first one does. Of 267 sentences of other talk 110 are heard twice at 2, 264 at 0.6; of
435 orders that were understood 3 are lost."""
WORTH = 0.3
"""Score that a way must be able to reach to be looked for."""
CLOSE = 0.3
"""Cost up to which no better way is looked for: every word that says something is explained."""
ANY_WORD = 0.01
"""What a word of such a value costs: what has a template of its own is understood by that."""
FREE = 0.6
"""What a word costs at least that is missing where a value may be any words: "call my wife" is not "call it Mary"."""
LONGEST_TEXT = 40
"""Words of a value that is any text."""
LIMIT = 60
"""Words of an utterance that are understood; a longer one is no command."""


_ANY_TIME = datetime(2000, 1, 1).astimezone()

_Step = tuple[float, int, int, float, tuple[object, ...] | None]
"""Cost, place and node it leads to, weight of what it explains, and (slot or "", value, words, likeness) of that."""


@dataclass(frozen=True, slots=True)
class _Intent:
    skill: str
    name: str
    graph: Graph
    lists: Mapping[str, Choices | Typed]
    slots: Mapping[str, str]
    """The list of each slot."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An intent that may be meant: what its way must cost at `least`, and what its score can be at `best`."""

    number: int
    score: float
    least: float
    best: float


@dataclass(frozen=True, slots=True)
class _Found:
    cost: float
    weight: float
    sure: float
    """The part of the weight whose words are the very words of the template."""
    slots: Mapping[str, Slot]
    text: str
    free: bool
    """Whether a value may be any words: then the others must fit."""


class Intents:
    """All templates of all skills. Immutable, so any thread may ask; made anew when a skill comes or goes."""

    def __init__(self, intents: Sequence[_Intent], grammars: Mapping[str, Grammar]) -> None:
        self._intents = list(intents)
        self._by_name = {(intent.skill, intent.name): intent for intent in self._intents}
        self._grammars = grammars
        self._skip = {
            name: frozenset(word for skip in grammar.skip for word in skip) for name, grammar in grammars.items()
        }
        index: defaultdict[str, set[int]] = defaultdict(set)
        for number, intent in enumerate(self._intents):
            for word in _vocabulary(intent):
                index[word].add(number)
        self._index = {word: frozenset(numbers) for word, numbers in index.items()}
        count = max(2, len(self._intents))
        self._rare = {word: 1 - math.log(len(found)) / math.log(2 * count) for word, found in self._index.items()}
        self._weights = {word: _weight(word, rare) for word, rare in self._rare.items()}
        self._spoken = sorted(word for word in self._index if word not in FUNCTION)
        self._classes = [classes(sounds(word)) for word in self._spoken]
        self._numeric = [
            number
            for number, intent in enumerate(self._intents)
            if any(
                isinstance(known := intent.lists.get(name), Typed) and known.kind != "text"
                for name in intent.slots.values()
            )
        ]
        self._open = {
            number
            for number, intent in enumerate(self._intents)
            if any(
                isinstance(known := intent.lists.get(name), Typed) and known.kind != "number"
                for name in intent.slots.values()
            )
        }
        """Intents in which there is a place for words that are in no list."""
        self._near = lru_cache(4096)(self._nearest)
        self._understood = lru_cache(64)(self._commands)

    @classmethod
    def compile(cls, grammars: Mapping[str, Grammar]) -> tuple[Intents, list[SkillFault]]:
        """By skill. A sentence that two skills claim is a fault that names both; both stay, and the user is asked."""
        faults: list[SkillFault] = []
        intents: list[_Intent] = []
        claimed: dict[object, tuple[str, Template]] = {}
        for skill, grammar in grammars.items():
            graphs: dict[str, Graph] = {}
            slots: defaultdict[str, dict[str, str]] = defaultdict(dict)
            for template in grammar.templates:
                graph = graphs.setdefault(template.intent, Graph())
                try:
                    graph.add(template)
                except SkillFault as fault:
                    faults.append(SkillFault(f"{template.where}: {fault.message}", fault.fix))
                    continue
                slots[template.intent] |= _slots(graph)
                other = claimed.setdefault(template.part, (skill, template))
                if other[0] != skill:
                    faults.append(
                        SkillFault(
                            f"{template.where} says the same as {other[1].where}: the skills {other[0]} and {skill} "
                            "both claim it, and the user will be asked which",
                            "change one of them",
                        )
                    )
            intents += [_Intent(skill, name, graph, grammar.lists, slots[name]) for name, graph in graphs.items()]
        return cls(intents, grammars), faults

    # --- what others may want to know --------------------------------------------------------------------------------

    def vocabulary(self, skill: str | None = None) -> tuple[str, ...]:
        """Values of lists, then telling words, of one skill or all: what recognition may expect. The shortest first,
        and what is made of words that stand together already is left out."""
        values: dict[tuple[str, ...], float] = {}
        single: dict[str, float] = {}
        for intent in self._intents:
            if skill not in (None, intent.skill):
                continue
            for said in _said_by(intent):
                values[said] = max(self._rare.get(word, 1.0) for word in said)
            for edges in intent.graph.words:
                for word, _ in edges:
                    if word not in FUNCTION and word not in FILLERS:
                        single[word] = self._rare.get(word, 1.0)
        found: list[str] = []
        known: set[tuple[str, ...]] = set()
        for said in sorted(values, key=lambda said: (len(said), -values[said], said)):
            telling = {word for word in said if word not in FUNCTION and word not in FILLERS}
            parts = {*((word,) for word in telling), *(pair for pair in pairwise(said) if telling.issuperset(pair))}
            if not parts <= known:
                known |= parts
                found.append(" ".join(said))
        words_left = (word for word in single if (word,) not in known)
        return (*found, *sorted(words_left, key=lambda word: (-single[word], word)))

    def hints(self, text: str, expecting: Expecting | None = None) -> tuple[str, ...]:
        """What the words may have been meant to be: the vocabulary of the skill that is nearest to them, or that has
        asked. Nothing where they are understood as they are, or are near to no skill."""
        said = words(text)
        ranked = self._ranked(said) if len(said) <= LIMIT else []
        if not expecting and (not ranked or ranked[0].score < NEAR):
            return ()
        found = self.readings(text, expecting=expecting, limit=1)
        if found and found[0].score >= 1.0:
            return ()
        return self.vocabulary(expecting.skill if expecting else self._intents[ranked[0].number].skill)

    # --- understanding -----------------------------------------------------------------------------------------------

    def readings(
        self,
        texts: str | Sequence[str],
        *,
        expecting: Expecting | None = None,
        now: datetime | None = None,
        limit: int = 5,
    ) -> list[Reading]:
        """The ways to understand the candidates, best first; with `expecting` as an answer to that question too."""
        when = now or datetime.now().astimezone()
        when = when.replace(second=when.second // 2 * 2, microsecond=0)  # for who asks again about the same words
        candidates = [texts] if isinstance(texts, str) else list(texts)
        found: dict[tuple[object, ...], Reading] = {}
        for rank, text in enumerate(candidates):
            said = words(text)
            if not said or len(said) > LIMIT:
                continue
            for reading in (*self._answers(said, expecting, when), *self._understood(said, when)):
                key = tuple(
                    (match.skill, match.intent, repr(sorted(match.values.items()))) for match in reading.matches
                )
                score = reading.score * (1 - 0.01 * rank)
                if key not in found or found[key].score < score:
                    found[key] = Reading(reading.matches, score, reading.text)
        return sorted(found.values(), key=lambda reading: -reading.score)[:limit]

    def _commands(self, said: tuple[str, ...], now: datetime) -> list[Reading]:
        single = self._single(said, now)
        if single and single[0].score >= 0.9 and not _swallows(single[0]):
            return single
        both = self._several(said, now)
        if both is None:
            return single
        return [both, *(replace(one, score=0.9 * one.score) if _swallows(one) else one for one in single)]

    def _single(self, said: tuple[str, ...], now: datetime) -> list[Reading]:
        found, least = [], math.inf
        candidates = self._ranked(said, alike=False)
        for effort, (most, exact, many) in enumerate(EFFORTS):
            if effort == 1:
                candidates = self._ranked(said)
            for candidate in [one for one in candidates if one.least <= most][:many]:
                intent = self._intents[candidate.number]
                way = _Search(intent, said, now, self._skip[intent.skill], self._weights, most, exact=exact).best()
                if way is not None:
                    match = Match(intent.skill, intent.name, way.slots, _score(way), way.text)
                    found.append(Reading((match,), match.score, way.text))
                    least = min(least, way.cost)
            if least <= CLOSE:
                break
            candidates = [one for one in candidates if one.best >= WORTH]
        best: dict[tuple[str, str], Reading] = {}
        for reading in found:
            key = (reading.matches[0].skill, reading.matches[0].intent)
            if key not in best or best[key].score < reading.score:
                best[key] = reading
        return sorted(best.values(), key=lambda reading: -reading.score)

    def _several(self, said: tuple[str, ...], now: datetime, most: int = 4) -> Reading | None:
        """Commands joined by "and" or "then", each of which is understood."""
        for place, word in enumerate(said):
            if word not in ("and", "then") or not 1 <= place < len(said) - 1:
                continue
            end = place + 1 + (said[place + 1] == "then")
            left = self._single(said[:place], now)
            if not left or left[0].score < GOOD:
                continue
            whole = self._single(said[end:], now)
            right = whole[0] if whole and whole[0].score >= GOOD else None
            if right is None and most > 2:
                right = self._several(said[end:], now, most - 1)
            if right is not None:
                score = min(left[0].score, right.score) * 0.99
                return Reading((*left[0].matches, *right.matches), score, f"{left[0].text} and {right.text}")
        return None

    def _ranked(self, said: tuple[str, ...], *, alike: bool = True) -> list[_Candidate]:
        """Intents by how much of the words is in them, each word as it is or, with `alike`, by one that sounds so."""
        scores: defaultdict[int, float] = defaultdict(float)
        explained: defaultdict[int, set[int]] = defaultdict(set)

        def count(gains: Mapping[int, float], *places: int) -> None:
            for number, gain in gains.items():
                scores[number] += gain
                explained[number].update(places)

        for place, word in enumerate(said):
            telling = word not in FUNCTION and word not in FILLERS
            weight = 1.0 if telling else 0.05
            gains = dict.fromkeys(self._index.get(word, ()), weight * self._rare.get(word, 1.0))
            if telling and alike:
                self._add_near(gains, word, weight)
            count(gains if word not in said[:place] else dict.fromkeys(gains, 0.0), place)
        numbers = [place for place in range(len(said)) if READERS["number"](said, place, _ANY_TIME)]
        if numbers:
            count(dict.fromkeys(self._numeric, NUMERIC), *numbers)
        for place, (first, second) in enumerate(pairwise(said) if alike else ()):
            if first not in self._index or second not in self._index:
                gains = {}
                self._add_near(gains, first + second, 0.8)
                count(gains, place, place + 1)
        found = (self._candidate(number, score, said, explained[number]) for number, score in scores.items())
        return sorted(found, key=lambda one: -one.score)

    def _candidate(self, number: int, score: float, said: tuple[str, ...], explained: set[int]) -> _Candidate:
        if number in self._open:
            return _Candidate(number, score, 0.0, 1.0)
        intent = self._intents[number]
        costs = _unexplained(said, self._skip[intent.skill])
        least = sum(cost for place, cost in enumerate(costs) if place not in explained and cost >= UNSAID)
        return _Candidate(number, score, least, _squash(least, 1 + 1.3 * len(explained)))

    def _add_near(self, gains: dict[int, float], word: str, weight: float) -> None:
        for near, likeness in self._near(word):
            for number in self._index[near]:
                gains[number] = max(gains.get(number, 0.0), weight * likeness * self._rare[near])

    def _nearest(self, word: str) -> tuple[tuple[str, float], ...]:
        """Words of the templates that sound like this one."""
        written = classes(sounds(word))
        if len(written) < 2:
            return ()
        rough = process.extract(
            written, self._classes, scorer=Levenshtein.normalized_distance, score_cutoff=0.5, limit=12
        )
        near = ((self._spoken[place], distance(word, self._spoken[place])) for _, _, place in rough)
        return tuple((other, 0.7 - apart) for other, apart in near if apart < FAR and other != word)

    # --- answers to a question ---------------------------------------------------------------------------------------

    def _answers(self, said: tuple[str, ...], expecting: Expecting | None, now: datetime) -> Iterator[Reading]:
        plain = _bare(said)
        for name, known in (("Cancel", CANCEL), ("Yes", YES), ("No", NO)):
            if plain in known or said in known:
                yield _own(name, {}, 1.0 if expecting else 0.98, " ".join(said))
        if expecting is None:
            return
        intent = self._by_name.get((expecting.skill, expecting.intent))
        if intent is None:
            return
        if expecting.yes_no and len(said) > 1 and said[0] in ("yes", "yeah", "no") and not expecting.slot:
            name = "No" if said[0] == "no" else "Yes"
            yield _own(name, {}, 0.7, " ".join(said))
        rest, corrected = _uncorrected(said)
        names = [expecting.slot] if expecting.slot in intent.slots and not corrected else list(intent.slots)
        for value in _values(intent, names, rest, now):
            name, slot = value
            if name == expecting.slot:
                match = Match(intent.skill, intent.name, {name: slot}, slot.score, slot.text)
                score = min(1.0, slot.score + ASKED) if slot.score >= GOOD else slot.score
                yield Reading((match,), score, " ".join(said))
            elif corrected:
                yield _own("Correct", {name: slot}, slot.score * 0.98, " ".join(said))


def _swallows(reading: Reading) -> bool:
    """Whether a value that may be any words holds what may be a second command."""
    values = (slot.value for match in reading.matches for slot in match.slots.values())
    return any(isinstance(value, str) and {"and", "then"} & set(value.split()) for value in values)


def _own(name: str, slots: Mapping[str, Slot], score: float, text: str) -> Reading:
    return Reading((Match(OWN, name, slots, score, text),), score, text)


def _bare(said: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in said if word not in ("um", "uh", "er", "erm", "hmm", "well", "oh", "so", "thanks"))


def _uncorrected(said: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """What stands behind the words that correct something."""
    corrected = False
    rest = _bare(said)
    while True:
        lead = max(
            (one for one in CORRECTIONS if rest[: len(one)] == one and len(rest) > len(one)), key=len, default=()
        )
        if not lead:
            return rest, corrected
        rest, corrected = rest[len(lead) :], True


def _values(intent: _Intent, names: Sequence[str], said: tuple[str, ...], now: datetime) -> Iterator[tuple[str, Slot]]:
    """A bare value: "large", "the large one", "make it twelve ounce please"."""
    table = _Table(intent.lists, said, now, exact=False, bare=True)
    best: tuple[float, str, Slot] | None = None
    for name in names:
        for start in range(len(said)):
            for value, end, cost, text in table.values(intent.slots[name], start):
                around = [*said[:start], *said[end:]]
                rest = sum(_leftover(word) for word in around)
                score = _squash(cost + rest, 1.0)
                if score >= 0.3 and (best is None or (score, end - start) > (best[0], len(best[2].text.split()))):
                    best = (score, name, Slot(value, text, score))
    if best:
        yield best[1], best[2]


def _leftover(word: str) -> float:
    """What a word beside a bare value costs."""
    if word in FILLERS:
        return 0.0
    return 0.05 if word in FUNCTION or word == "one" else UNSAID


# --- the search --------------------------------------------------------------------------------------------------


class _Table:
    """Where values of lists are in the words."""

    def __init__(
        self,
        lists: Mapping[str, Choices | Typed],
        said: tuple[str, ...],
        now: datetime,
        *,
        exact: bool,
        bare: bool = False,
    ) -> None:
        """`bare`: the words are an answer, in which "twelve" may be minutes."""
        self._lists, self._said, self._now, self._exact, self._bare = lists, said, now, exact, bare
        self._known: dict[tuple[str, int], list[tuple[Json, int, float, str]]] = {}

    def values(self, name: str, start: int) -> list[tuple[Json, int, float, str]]:
        """(value, end, cost, words) of what a list has at a place."""
        key = (name, start)
        if key not in self._known:
            known = self._lists.get(name)
            if isinstance(known, Choices):
                self._known[key] = list(self._choices(known, start))
            else:
                self._known[key] = list(self._typed(known, start)) if known else []
        return self._known[key]

    def _typed(self, known: Typed, start: int) -> Iterator[tuple[Json, int, float, str]]:
        said = self._said
        if known.kind == "text":
            for end in range(start + 1, min(len(said), start + LONGEST_TEXT) + 1):
                text = " ".join(said[start:end])
                yield text, end, ANY_WORD * (end - start), text
            return
        found = READERS[known.kind](said, start, self._now)
        if found is None and self._bare and known.kind == "duration":
            count = READERS["number"](said, start, self._now)
            found = (60 * count[0], count[1]) if count and isinstance(count[0], int | float) else None
        if found is None:
            return
        value, end = found
        if known.kind == "number" and not (isinstance(value, int | float) and known.low <= value <= known.high):
            return
        yield value, end, 0.0, " ".join(said[start:end])

    def _choices(self, known: Choices, start: int) -> Iterator[tuple[Json, int, float, str]]:
        said = self._said
        table = _spoken(known)
        for length in range(min(table.longest, len(said) - start), 0, -1):
            span = " ".join(said[start : start + length])
            if span in table.exact:
                yield table.exact[span], start + length, 0.0, span
        if self._exact:
            return
        for length in range(1, min(table.longest + 2, len(said) - start) + 1):
            span = " ".join(said[start : start + length])
            for text, apart in table.near(span):
                weight = 0.6 + 0.4 * len(text.split())
                yield table.exact[text], start + length, SOUND * apart * weight, text


class _Spoken:
    """A list by its words and sounds."""

    def __init__(self, known: Choices) -> None:
        self.exact: dict[str, Json] = {}
        for said, value in known.values:
            self.exact.setdefault(" ".join(said), value)
        self.longest = max((len(said) for said, _ in known.values), default=0)
        self._texts = list(self.exact)
        self._classes = [classes(sounds(text)) for text in self._texts]
        self.near = lru_cache(2048)(self._nearest)

    def _nearest(self, span: str) -> tuple[tuple[str, float], ...]:
        written = classes(sounds(span))
        if not written or all(word in FUNCTION or word in FILLERS for word in span.split()):
            return ()
        rough = process.extract(
            written, self._classes, scorer=Levenshtein.normalized_distance, score_cutoff=0.55, limit=8
        )
        near = ((self._texts[place], distance(span, self._texts[place])) for _, _, place in rough)
        return tuple((text, apart) for text, apart in near if apart < FAR and text != span)


@lru_cache(1024)
def _spoken(known: Choices) -> _Spoken:
    return _Spoken(known)


class _Search:
    """One utterance in one intent's graph."""

    def __init__(
        self,
        intent: _Intent,
        said: tuple[str, ...],
        now: datetime,
        skip: frozenset[str],
        weights: Mapping[str, float],
        most: float,
        *,
        exact: bool,
    ) -> None:
        self._graph, self._said, self._weights, self._exact = intent.graph, said, weights, exact
        self._lists = intent.lists
        self._free_slots = {
            slot
            for slot, name in intent.slots.items()
            if isinstance(known := intent.lists.get(name), Typed) and known.kind == "text"
        }
        self._table = _Table(intent.lists, said, now, exact=exact)
        self._unsaid = _unexplained(said, skip)
        self._most = most

    def best(self) -> _Found | None:
        graph, said = self._graph, self._said
        # cost, tie, place, node, weight of what matched, trail of (slot or "", value, words, likeness)
        queue: list[tuple[float, int, int, int, float, tuple[object, ...] | None]] = [(0.0, 0, 0, 0, 0.0, None)]
        done: set[tuple[int, int]] = set()
        ties = 0
        while queue:
            cost, _, place, node, weight, trail = heapq.heappop(queue)
            if (place, node) in done:
                continue
            done.add((place, node))
            here = graph.place(node)
            if place == len(said) and here.end is not None:
                return _found(cost, weight, trail, here.end, self._free_slots)
            for extra, there, to, gain, note in self._steps(place, node, here):
                if cost + extra <= self._most and (there, to) not in done:
                    ties += 1
                    entry = (note, trail) if note else trail
                    heapq.heappush(queue, (cost + extra, ties, there, to, weight + gain, entry))
        return None

    def _steps(self, place: int, node: int, here: Place) -> Iterator[_Step]:
        word = self._said[place] if place < len(self._said) else ""
        if ways := here.by_word.get(word):
            weight = self._weights.get(word, 1.0)
            for to in ways:
                yield 0.0, place + 1, to, weight, ("", None, word, 1.0, weight)
        if self._most > 0.1:
            yield from self._misheard(place, word, here)
        if not word:
            return
        for name, slot, to in here.values:
            known = self._lists.get(name)
            free = isinstance(known, Typed) and known.kind == "text"
            for value, end, cost, text in self._table.values(name, place):
                gain = 0.2 if free else 1.0 + 0.3 * (end - place - 1)
                yield cost, end, to, gain, (slot, value, text, 1 - cost, gain)
        yield self._unsaid[place], place + 1, node, 0.0, None

    def _misheard(self, place: int, said: str, here: Place) -> Iterator[_Step]:
        """Words that were left out, or are others that sound like them."""
        for word, to in here.words:
            weight = self._weights.get(word, 1.0)
            if not self._exact and said and said != word and not (word in ASKING and said in ASKING):
                yield from self._alike(word, weight, place, to)
            least = FREE if self._free_slots and weight > 0.1 else 0.0
            lacks = weight if weight >= 0.4 else UNSAID * weight
            yield max(least, lacks), place, to, 0.0, ("", None, word, 0.0, 0.0)

    def _alike(self, word: str, weight: float, place: int, to: int) -> Iterator[_Step]:
        for length in (1, 2):
            if place + length <= len(self._said) and not (length == 1 and len(word) < 3):
                apart = distance(" ".join(self._said[place : place + length]), word)
                if apart < FAR:
                    yield SOUND * apart * weight, place + length, to, weight, ("", None, word, 1 - apart, weight)


def _weight(word: str, rare: float) -> float:
    """How much a word of a template says."""
    if word in FILLERS:
        return 0.05
    if word in WHOSE:
        return 0.4
    return 0.2 if word in FUNCTION else max(0.4, rare)


def _cost(word: str) -> float:
    """What a word of no weight in particular costs if no template explains it."""
    if word in FILLERS:
        return 0.02
    if word in WHOSE:
        return 0.4
    return 0.15 if word in FUNCTION else UNSAID


@lru_cache(256)
def _unexplained(said: tuple[str, ...], skip: frozenset[str]) -> list[float]:
    """What each word costs if no template explains it."""
    costs = [_cost(word) if word not in skip else 0.02 for word in said]
    for place, word in enumerate(said):
        if word in said[place + 1 : place + 5] and word not in FUNCTION:
            costs[place] = min(costs[place], 0.1)  # said again: a restart
        if word in CORRECTING and 0 < place < len(said) - 1:
            for before in range(max(0, place - 3), place + 1):
                costs[before] = min(costs[before], 0.12)
    for lead in LEAD:
        if said[: len(lead)] == lead:
            for place in range(len(lead)):
                costs[place] = min(costs[place], 0.02)
    return costs


def _found(cost: float, weight: float, trail: object, fixed: Mapping[str, Json], free: Collection[str]) -> _Found:
    notes: list[Any] = []
    rest: Any = trail
    while rest:
        note, rest = rest
        notes.append(note)
    slots: dict[str, Slot] = {name: Slot(value, "") for name, value in fixed.items()}
    for slot, value, text, likeness, _ in reversed(notes):
        if slot:
            slots[slot] = Slot(value, text, max(0.0, min(1.0, likeness)))
    said = " ".join(text for _, _, text, likeness, _ in reversed(notes) if likeness > 0)
    sure = sum(gain for _, _, _, likeness, gain in notes if likeness >= 0.995)
    return _Found(cost, weight, sure, slots, said, any(slot in free for slot, *_ in notes))


def _score(way: _Found) -> float:
    score = _squash(way.cost, way.weight)
    doubtful = way.sure < SURE or (way.free and way.cost > CLOSE)
    return min(score, 0.45) if doubtful else score


def _squash(cost: float, weight: float) -> float:
    """From the cost of a way, and the weight of what it explains, to the probability that it is meant.

    Where half of all readings are right (0.75 for a short command, more for one that explains much) was set by hand on
    invented slips, and holds the middle of what recordings and out-of-domain speech gave.
    """
    if weight <= 0.25:
        return 0.0
    if cost < 1e-9:
        return 1.0
    shared = cost / max(1.0, 0.5 * weight)
    return (1 / (1 + math.exp(5 * (shared - 0.75)))) * (1 - math.exp(-3 * weight))


def _vocabulary(intent: _Intent) -> set[str]:
    found = {word for edges in intent.graph.words for word, _ in edges}
    return found.union(*_said_by(intent))


def _said_by(intent: _Intent) -> Iterator[tuple[str, ...]]:
    """The values of its lists, as they are said."""
    for name in dict.fromkeys(intent.slots.values()):
        known = intent.lists.get(name)
        if isinstance(known, Choices):
            yield from (said for said, _ in known.values)


def _slots(graph: Graph) -> dict[str, str]:
    return {slot: name for edges in graph.values for name, slot, _ in edges}
