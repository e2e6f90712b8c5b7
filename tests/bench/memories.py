"""Ten months of talk to a box, made of what is written in data/memory (README there): statements that are alike, values
that change, changes of mind, commands, small talk, answers, and questions about single occasions. Seeded; nothing here
knows how memory works."""

from __future__ import annotations

import random
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent / "data/memory"
DAY = 86_400.0
DAYS = 300
DIALOGUES = 330
SHORTEST, LONGEST = 3, 12
"""Utterances of a dialogue."""
RETOLD = 0.12
"""Share of occasions that are told a second time, weeks later and in other words."""
OPENED, CLOSED = 0.25, 0.15
"""Share of statements with something before or behind them that says nothing."""
CALLED = 0.75
"""Share of details that a question calls by other words, where the set has some: with this, two in three questions find
their evidence among the best ten if nothing fades, so that there is something to win and to lose."""
IMPLICIT = 0.35
"""Share of updates that are told like the first value, with no sign of a change."""
THREE = 0.3
"""Share of chains with a third value."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WHEN = (
    "yesterday",
    "on Monday",
    "on Tuesday",
    "on Wednesday",
    "on Thursday",
    "on Friday",
    "on the weekend",
    "last night",
)
_SOFT = _words(
    """
    Actually An A At Blisters By Coffee Correction, Dinner Dropped Film For From He In It My Our Please Remember
    Running She Some Stop Tea The There These They This Tonight Trouble Up We With Work
    """
)
"""Words that are not names: small behind an opening."""


@dataclass(frozen=True, slots=True)
class Said:
    """`at` in seconds since the first day; `key` names the turn."""

    key: int
    at: float
    asked: str
    reply: str
    filler: bool = False
    command: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """About one occasion; `again` asks the same in other words. `evidence` are the turns that hold the answer, `at` is
    when the last of them was said."""

    text: str
    again: str
    topic: str
    evidence: tuple[int, ...]
    at: float
    split: bool
    """The utterance with the answer does not name all that the question names."""


@dataclass(frozen=True, slots=True)
class Change:
    """A value that changes: `turns` per value, oldest first. `marked`: the last change says that it is one."""

    name: str
    text: str
    turns: tuple[tuple[int, ...], ...]
    marked: bool
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class World:
    turns: tuple[Said, ...]
    questions: tuple[Question, ...]
    changes: tuple[Change, ...]
    apart: tuple[tuple[int, int], ...]
    lies: tuple[str, ...]
    dialogues: int
    end: float


@dataclass(slots=True)
class _Item:
    """Utterances that follow each other; placed at `turns`."""

    texts: Sequence[str]
    day: float
    turns: list[int] = field(default_factory=list)
    at: float = 0.0


def world(name: str, seed: int = 0) -> World:
    """`name`: dev or test."""
    source = tomllib.loads((DATA / f"{name}.toml").read_text("utf-8"))
    return _Maker(source, random.Random(f"{name} {seed}")).make()


class _Maker:
    def __init__(self, source: Mapping[str, Any], chance: random.Random) -> None:
        self._source, self._chance = source, chance
        self._items: list[_Item] = []

    def make(self) -> World:
        occasions = [one for topic in self._source["topic"] for one in self._occasions(topic)]
        chains = [one for chain in self._source["chain"] for one in self._chains(chain)]
        apart = [self._apart(pair) for pair in self._source["apart"]]
        turns, lies, dialogues = self._talk()
        questions = tuple(
            Question(text, again, topic, tuple(item.turns[-1] for item in items), max(i.at for i in items), split)
            for text, again, topic, items, split in occasions
        )
        changes = tuple(
            Change(name, text, tuple((item.turns[-1],) for item in items), marked, values)
            for name, text, items, marked, values in chains
        )
        pairs = tuple((first.turns[-1], second.turns[-1]) for first, second in apart)
        return World(turns, questions, changes, pairs, lies, dialogues, DAYS * DAY)

    # --- what is said ------------------------------------------------------------------------------------------------

    def _occasions(self, topic: Mapping[str, Any]) -> Iterator[tuple[str, str, str, list[_Item], bool]]:
        """Of one topic, with the questions that single one of them out."""
        fields = {key: _values(value) for key, value in topic.items() if key not in ("name", "count", "say", "ask")}
        drawn = [{key: self._draw(some) for key, some in fields.items()} for _ in range(topic["count"])]
        asks = [(ask, tuple(sorted(set(_NAME.findall(ask))))) for ask in topic["ask"]]
        seen = {keys: Counter(tuple(one[key][0] for key in keys) for one in drawn) for _, keys in asks}
        for one in drawn:
            told = self._chance.sample(topic["say"], 2)
            items = [self._item([_filled(part, self._plain(one)) for part in told[0].split(" // ")], closed=CLOSED)]
            if self._chance.random() < RETOLD and items[0].day < DAYS - 20:
                day = self._chance.uniform(items[0].day + 7, DAYS)
                items.append(
                    self._item([_filled(part, self._plain(one)) for part in told[1].split(" // ")], day, closed=CLOSED)
                )
            fit = [(ask, keys) for ask, keys in asks if seen[keys][tuple(one[key][0] for key in keys)] == 1]
            if not fit:
                continue
            (text, keys), (again, _) = self._chance.choice(fit), self._chance.choice(fit)
            last = told[len(items) - 1].split(" // ")[-1]
            split = not set(keys) <= set(_NAME.findall(last))
            yield self._question(text, one), self._question(again, one), topic["name"], items, split

    def _chains(self, chain: Mapping[str, Any]) -> Iterator[tuple[str, str, list[_Item], bool, tuple[str, ...]]]:
        for said, *called in _values(chain["of"]):
            values = self._states(chain, said)
            days = sorted(self._chance.uniform(0, DAYS - 1) for _ in values)
            while any(later - sooner < 4 for sooner, later in pairwise(days)):
                days = sorted(self._chance.uniform(0, DAYS - 1) for _ in values)
            items, marked = [], False
            for number, (value, day) in enumerate(zip(values, days, strict=True)):
                marked = number > 0 and (not value[0] or self._chance.random() >= IMPLICIT)
                form = self._chance.choice(chain["then" if marked else "first"])
                words = {"of": said, "v": value[0], "v.": value[-1]}
                items.append(self._item([_filled(form, words)], day))
            plain = _with_article(said) if called and not chain.get("bare") else said
            name = self._chance.choice(called) if called and self._chance.random() < CALLED else plain
            ask = _filled(self._chance.choice(chain["ask"]), {"of": name})
            yield chain["name"], ask, items, marked, tuple(value[0] for value in values)

    def _states(self, chain: Mapping[str, Any], said: str) -> list[tuple[str, ...]]:
        """The values of one chain. A change of mind has two, without a name."""
        if "pairs" in chain:
            pairs = dict(part.strip().split(": ", 1) for part in chain["pairs"].split(";"))
            known: list[tuple[str, ...]] = [(value,) for value in pairs[said].split(", ")]
        elif "v" in chain:
            known = _values(chain["v"])
            self._chance.shuffle(known)
        else:
            return [("",), ("",)]
        return known[: 3 if len(known) > 2 and self._chance.random() < THREE else 2]

    def _apart(self, pair: str) -> tuple[_Item, _Item]:
        first, second = pair.split(" // ")
        days = sorted((self._chance.uniform(0, DAYS), self._chance.uniform(0, DAYS)))
        return self._item([first], days[0]), self._item([second], days[1])

    def _item(self, texts: Sequence[str], day: float | None = None, *, closed: float = 0.0) -> _Item:
        whole = [self._dressed(text) if text is texts[0] else text for text in texts]
        if self._chance.random() < closed:
            whole[-1] = f"{whole[-1]} {self._chance.choice(self._source['closer'])}"
        item = _Item(whole, self._chance.uniform(0, DAYS) if day is None else day)
        self._items.append(item)
        return item

    def _dressed(self, text: str) -> str:
        if self._chance.random() >= OPENED:
            return text
        first, _, rest = text.partition(" ")
        return f"{self._chance.choice(self._source['opener'])}{first.lower() if first in _SOFT else first} {rest}"

    # --- words -------------------------------------------------------------------------------------------------------

    def _draw(self, values: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        """Some come more often than others."""
        if len(values) == 1 and (span := re.fullmatch(r"(\d+)\.\.(\d+)", values[0][0])):
            return (str(self._chance.randint(int(span[1]), int(span[2]))),)
        return values[min(self._chance.randrange(len(values)), self._chance.randrange(len(values) + 4))]

    def _plain(self, drawn: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
        return {**{key: value[0] for key, value in drawn.items()}, "day": self._chance.choice(_WHEN)}

    def _question(self, ask: str, drawn: Mapping[str, tuple[str, ...]]) -> str:
        called = {}
        for key, (plain, *others) in drawn.items():
            if others and self._chance.random() < CALLED:
                called[key] = self._chance.choice(others)
            else:
                called[key] = _with_article(plain) if others else plain
        return _filled(ask, called)

    # --- dialogues ---------------------------------------------------------------------------------------------------

    def _talk(self) -> tuple[tuple[Said, ...], tuple[str, ...], int]:
        chance, source = self._chance, self._source
        starts = sorted(int(chance.uniform(0, DAYS)) + chance.uniform(7, 22) / 24 for _ in range(DIALOGUES))
        held: list[list[_Item]] = [[] for _ in starts]
        size = [0] * len(starts)
        for item in sorted(self._items, key=lambda item: item.day):
            order = sorted(range(len(starts)), key=lambda at: abs(starts[at] - item.day))
            place = next(at for at in order if size[at] + len(item.texts) <= LONGEST)
            held[place].append(item)
            size[place] += len(item.texts)
        turns: list[Said] = []
        lies = [lie.split("|") for lie in source["false"]]
        end = 0.0
        for start, items in zip(starts, held, strict=True):
            chance.shuffle(items)
            spoken: list[tuple[str, _Item | None, str]] = [(t, item, "") for item in items for t in item.texts]
            wanted = chance.randint(max(SHORTEST, len(spoken)), LONGEST)
            for _ in range(wanted - len(spoken)):
                kind = "command" if chance.random() < 0.4 else "small"
                spoken.append((chance.choice(source[kind]), None, kind))
            spoken = _mixed(spoken, chance)
            at = end = max(start * DAY, end + 60)
            for text, of, kind in spoken:
                reply = chance.choice(source["reply"])
                if kind == "small" and chance.random() < 0.1:
                    reply = chance.choice(lies)[0]
                turns.append(
                    Said(len(turns), at, text, "Okay." if kind == "command" else reply, kind != "", kind == "command")
                )
                if of is not None:
                    of.turns.append(turns[-1].key)
                    of.at = at
                at += chance.uniform(8, 60)
            end = at
        return tuple(turns), tuple(word for _, word in lies), len(starts)


def _mixed(spoken: list[tuple[str, _Item | None, str]], chance: random.Random) -> list[tuple[str, _Item | None, str]]:
    """In any order, but what belongs together follows each other."""
    groups: list[list[tuple[str, _Item | None, str]]] = []
    for one in spoken:
        if one[1] is not None and groups and groups[-1][0][1] is one[1]:
            groups[-1].append(one)
        else:
            groups.append([one])
    chance.shuffle(groups)
    return [one for group in groups for one in group]


_NAME = re.compile(r"\{([\w.]+)\}")
_TWICE = re.compile(r"\b(the|a) (?:(the|my|our|some|one|[A-Z]\w+'s)\b|an?\b)", re.IGNORECASE)
"""Two articles, where a value brings its own."""
_BARE = _words("a an the my our some one was had lost sounded six along round over on through up past by")
"""First words of what takes no article."""


def _values(text: str) -> list[tuple[str, ...]]:
    return [tuple(form.strip() for form in part.split("|")) for part in text.split(";")]


def _filled(form: str, words: Mapping[str, str]) -> str:
    text = _TWICE.sub(lambda match: match[2] or "the", _NAME.sub(lambda match: words[match[1]], form))
    return re.sub(r"(^|[.!?] )([a-z])", lambda match: match[1] + match[2].upper(), text)


def _with_article(plain: str) -> str:
    first = plain.split()[0].lower()
    named = plain[:1].isupper() or plain[:1].isdigit()
    return plain if named or first in _BARE else f"the {plain}"
