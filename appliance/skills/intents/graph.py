"""Templates as graphs: what may follow what, for the search.

An edge leads from one node to the next by a word, by a value of a list, or by nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from appliance.errors import SkillFault
from appliance.skills.intents.templates import Node, Part, Template, Value, Word
from appliance.skills.skill import Json

LARGEST = 60_000
"""Nodes of one intent's graph at most: orders multiply."""


@dataclass(frozen=True, slots=True)
class Place:
    """What may follow at a node, with all that may be left out left out."""

    words: tuple[tuple[str, int], ...]
    by_word: Mapping[str, tuple[int, ...]]
    values: tuple[tuple[str, str, int], ...]
    end: Mapping[str, Json] | None
    """What the sentence says besides, if it may end here."""


@dataclass(slots=True)
class Graph:
    """All sentences of one intent. Node 0 begins; `ends` end a sentence, with what it says besides."""

    nothing: list[list[int]] = field(default_factory=list)
    words: list[list[tuple[str, int]]] = field(default_factory=list)
    values: list[list[tuple[str, str, int]]] = field(default_factory=list)
    ends: dict[int, Mapping[str, Json]] = field(default_factory=dict)
    _places: dict[int, Place] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.node()

    def node(self) -> int:
        if len(self.nothing) >= LARGEST:
            raise SkillFault("it has too many orders and alternatives", "split the sentence")
        self.nothing.append([])
        self.words.append([])
        self.values.append([])
        return len(self.nothing) - 1

    def place(self, node: int) -> Place:
        found = self._places.get(node)
        if found is None:
            found = self._places[node] = self._closed(node)
        return found

    def _closed(self, node: int) -> Place:
        reached, waiting = {node: None}, [node]
        while waiting:
            for to in self.nothing[waiting.pop()]:
                if to not in reached:
                    reached[to] = None
                    waiting.append(to)
        words = tuple(dict.fromkeys(edge for one in reached for edge in self.words[one]))
        by_word: dict[str, tuple[int, ...]] = {}
        for word, to in words:
            by_word[word] = (*by_word.get(word, ()), to)
        values = tuple(dict.fromkeys(edge for one in reached for edge in self.values[one]))
        end = next((self.ends[one] for one in reached if one in self.ends), None)
        return Place(words, by_word, values, end)

    def add(self, template: Template) -> None:
        """Raises SkillFault, and leaves only dead ends, when the sentence is too large."""
        start = self.node()
        end = self._part(template.part, start)
        self.nothing[0].append(start)
        self.ends[end] = template.fixed

    def _part(self, part: Part, start: int) -> int:
        match part:
            case Word():
                end = self.node()
                self.words[start].append((part.text, end))
            case Value():
                end = self.node()
                self.values[start].append((part.name, part.slot, end))
            case Node(kind="seq"):
                end = start
                for one in part.parts:
                    end = self._part(one, end)
            case Node(kind="alt"):
                end = self.node()
                for one in part.parts:
                    self.nothing[self._part(one, start)].append(end)
            case _:
                end = self._any(part.parts, start)
        return end

    def _any(self, parts: tuple[Part, ...], start: int) -> int:
        """All parts in any order: a node for each set of those said."""
        full = (1 << len(parts)) - 1
        nodes = {0: start}
        for said in range(full + 1):
            here = nodes.setdefault(said, self.node())
            for number, part in enumerate(parts):
                if not said >> number & 1:
                    there = nodes.setdefault(said | 1 << number, self.node())
                    self.nothing[self._part(part, here)].append(there)
        return nodes[full]
