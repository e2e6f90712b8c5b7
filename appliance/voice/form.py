"""What a language model may fill in when it calls a tool: nothing but what the user said.

A form is made for one request. For each parameter it offers the values that occur in the user's words (numbers,
durations, times and dates as they are read out of speech, otherwise stretches of the words themselves), so that a model
can choose badly, but invents nothing. What comes back is judged by the same rule once more, whoever wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate

import jsonschema

from appliance.errors import SkillFault
from appliance.skills import numbers
from appliance.skills.intents.words import listed, words
from appliance.skills.manifest import Tool
from appliance.skills.skill import Json

LONGEST = 12
"""Words of one text value at most."""
ITEMS = 5
"""Values of a list at most."""

_PLACE = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"[^\W_]+(?:[.,:'’-][^\W_]+)*")
_KEYWORDS = {
    *("type", "title", "description", "default", "enum", "format", "minimum", "maximum", "minLength", "maxLength"),
    *("items", "minItems", "maxItems", "exclusiveMinimum", "exclusiveMaximum"),
}
_OBJECT = {"type", "properties", "required", "additionalProperties", "description"}
_TYPES = ("string", "integer", "number", "boolean")
_READERS: Mapping[str, numbers.Reader] = {
    "time": numbers.time,
    "date": numbers.day,
    "date-time": numbers.moment,
}
_EDGES = frozenset(
    listed(
        "a an the to for of in on at by with from and or but is are was be it that this my our your me us please some "
        "can could would will do"
    )
)
"""Words that no text value begins or ends with."""
_BEFORE_TIME = frozenset(listed("at by until till from to before after around about since"))


@dataclass(frozen=True, slots=True)
class Filled:
    """`arguments` hold only what was said; `missing` names the parameters that are needed and were not; `invalid` says
    what is wrong with the rest, "" if nothing is."""

    arguments: Mapping[str, Json]
    missing: tuple[str, ...] = ()
    invalid: str = ""


def refusal(tool: Tool) -> str:
    """Why a tool cannot be offered to a small model; "" if it can: its parameters are flat, of plain types, and what
    acts tells the user of each that it needs."""
    known = _properties(tool)
    for name, schema in known.items():
        if not isinstance(schema, Mapping):
            return f"{name} is no schema of its own"
        inner = schema.get("items") if schema.get("type") == "array" else schema
        if not isinstance(inner, Mapping) or inner.get("type") not in _TYPES:
            return f"{name} is of no plain type ({', '.join(_TYPES)}, or an array of one)"
        if unknown := sorted((set(schema) | set(inner)) - _KEYWORDS):
            return f"{name} uses {unknown[0]}"
    if other := sorted(
        set(tool.parameters) - {"type", "properties", "required", "additionalProperties", "description"}
    ):
        return f"its parameters use {other[0]}"
    places = _PLACE.findall(tool.say)
    if absent := [name for name in (*_required(tool), *places) if name not in known]:
        return f"{absent[0]} is needed, and is no parameter"
    if tool.effect != "none" and (untold := [name for name in _required(tool) if name not in places]):
        return f"the user would not be told of {untold[0]}: name it in say"
    return ""


class Form:
    """For one tool and one request; `now` is aware, for times and dates. The tool has no `refusal`."""

    def __init__(self, tool: Tool, text: str, now: datetime) -> None:
        self.tool = tool
        self._spoken = words(text)
        self._now = now
        self._numbers = {
            float(value)
            for reader in (numbers.number, numbers.duration)
            for value, _, _ in _read(self._spoken, now, reader)
            if isinstance(value, int | float)
        }
        own = {word for part in (tool.name, _PLACE.sub(" ", tool.say)) for word in words(part)}
        self._stretches = _stretches(text, own | _EDGES, now)
        # the user agrees to what they are told: of what is not told, a tool that acts is given nothing
        told = None if tool.effect == "none" else set(_PLACE.findall(tool.say))
        self._known: Mapping[str, Mapping[str, Json]] = {
            name: schema  # type: ignore[misc]  # a mapping: see `refusal`
            for name, schema in _properties(tool).items()
            if told is None or name in told
        }
        self._needed = tuple(dict.fromkeys((*_required(tool), *(told or ()))))

    @property
    def schema(self) -> dict[str, Json]:
        """A JSON schema with nothing in it but what was said."""
        offered = {name: found for name, schema in self._known.items() if (found := self._offer(schema)) is not None}
        needed = [name for name in offered if name in self._needed]
        return {"type": "object", "properties": offered, "required": needed, "additionalProperties": False}

    def missing(self) -> tuple[str, ...]:
        """What is needed, and nowhere in the words."""
        offered = self.schema["properties"]
        assert isinstance(offered, Mapping)
        return tuple(name for name in self._needed if name not in offered)

    def judge(self, given: Mapping[str, Json]) -> Filled:
        """What of the arguments may be used. What nobody said is left out."""
        kept: dict[str, Json] = {}
        for name, value in given.items():
            if name not in self._known:
                continue
            schema = self._known[name]
            if isinstance(value, list):
                value = [one for one in value if self._said(schema.get("items"), one)]
            if value if isinstance(value, list) else self._said(schema, value):
                kept[name] = value
        if missing := tuple(name for name in self._needed if name not in kept):
            return Filled(kept, missing)
        validator = jsonschema.Draft202012Validator(dict(self.tool.parameters))
        error = next(iter(validator.iter_errors(kept)), None)
        return Filled(kept, invalid=error.message[:200] if error else "")

    def _said(self, schema: object, value: Json) -> bool:
        if isinstance(value, bool):
            return True  # nothing that could be said; what acts tells the user of it
        if isinstance(value, int | float):
            return value in self._numbers
        if not isinstance(value, str) or not isinstance(schema, Mapping):
            return False
        if "enum" not in schema and schema.get("format") in _READERS:
            return value in self._moments(str(schema["format"]))
        return _within(words(value), self._spoken)

    def _offer(self, schema: Mapping[str, Json]) -> Json:
        """The schema with the values that were said; None: none was."""
        if schema.get("type") == "array":
            items = schema["items"]
            assert isinstance(items, Mapping)
            most = min(_whole(schema.get("maxItems"), ITEMS), ITEMS)
            inner = self._offer(items)
            return inner and {"type": "array", "items": inner, "minItems": 1, "maxItems": max(most, 1)}
        if schema.get("type") == "boolean":
            return {"type": "boolean"}
        values = [value for value in self._values(schema) if _fits(value, schema)]
        return {"enum": values} if values else None

    def _values(self, schema: Mapping[str, Json]) -> list[Json]:
        if isinstance(known := schema.get("enum"), Sequence) and not isinstance(known, str):
            return [value for value in known if self._said(schema, value)]
        if schema.get("type") in ("integer", "number"):
            return [int(value) if value.is_integer() else value for value in sorted(self._numbers)]
        if (kind := str(schema.get("format"))) in _READERS:
            return list(dict.fromkeys(self._moments(kind)))
        return list(self._stretches)

    def _moments(self, kind: str) -> list[Json]:
        """Times or dates. A bare number is one only behind a word that says so: "for two" is no time, "at two" is."""
        spoken = self._spoken
        return [
            value
            for value, begin, end in _read(spoken, self._now, _READERS[kind])
            if not _bare(spoken[begin:end]) or (begin > 0 and spoken[begin - 1] in _BEFORE_TIME)
        ]


def told(tool: Tool, arguments: Mapping[str, Json]) -> str:
    """The tool's `say` with its places filled."""
    return _PLACE.sub(lambda place: _spoken(arguments.get(place.group(1))), tool.say).strip(" .?!")


def called(tool: Tool, name: str) -> str:
    """A parameter in words, for the user who has to name it; with its choices, where it has few."""
    schema = _properties(tool).get(name)
    known = schema.get("enum") if isinstance(schema, Mapping) else None
    words_ = name.replace("_", " ")
    if isinstance(known, list) and 1 < len(known) <= ITEMS:
        *front, last = (_spoken(value) for value in known)
        return f"{words_}, {', '.join(front)} or {last}"
    return words_


def _spoken(value: Json) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        *front, last = (_spoken(one) for one in value)
        return f"{', '.join(front)} and {last}" if front else last
    return str(value).replace("_", " ")


def _properties(tool: Tool) -> Mapping[str, Json]:
    found = tool.parameters.get("properties", {})
    return found if isinstance(found, Mapping) else {}


def _required(tool: Tool) -> tuple[str, ...]:
    found = tool.parameters.get("required", ())
    return tuple(str(name) for name in found) if isinstance(found, list | tuple) else ()


def _read(spoken: Sequence[str], now: datetime, reader: numbers.Reader) -> Iterator[tuple[Json, int, int]]:
    """What a reader finds, from left to right, and where: of "twenty five" only 25."""
    place = 0
    while place < len(spoken):
        found = reader(spoken, place, now)
        end = max(found[1], place + 1) if found else place + 1
        if found:
            yield found[0], place, end
        place = end


def _bare(spoken: Sequence[str]) -> bool:
    """Whether the words are a number and nothing else."""
    found = numbers.number(spoken, 0)
    return found is not None and found[1] == len(spoken)


def _stretches(text: str, edges: frozenset[str] | set[str], now: datetime) -> tuple[str, ...]:
    """Stretches of the words as they were written, that neither begin nor end with a word that says nothing, nor within
    a number, and are not the whole request: that is more than its object."""
    said = _WORD.findall(text)
    spoken = [words(word) for word in said]
    places = [0, *accumulate(len(parts) for parts in spoken)]
    flat = [word for parts in spoken for word in parts]
    within = {place for _, begin, end in _read(flat, now, numbers.number) for place in range(begin + 1, end)}
    bare = [not parts or edges.issuperset(parts) for parts in spoken]
    found = (
        " ".join(said[begin:end])
        for begin in range(len(said))
        for end in range(begin + 1, min(begin + LONGEST, len(said)) + 1)
        if not (bare[begin] or bare[end - 1] or {places[begin], places[end]} & within or end - begin == len(said) > 1)
    )
    return tuple(dict.fromkeys(found))


def _within(wanted: Sequence[str], spoken: Sequence[str]) -> bool:
    size = len(wanted)
    return size > 0 and any(tuple(spoken[n : n + size]) == tuple(wanted) for n in range(len(spoken) - size + 1))


def _fits(value: Json, schema: Mapping[str, Json]) -> bool:
    """Whether a single value is valid by its parameter's schema."""
    return bool(jsonschema.Draft202012Validator(dict(schema)).is_valid(value))


def _whole(value: Json, default: int) -> int:
    return value if type(value) is int else default


def problems(tools: Mapping[str, Tool], intents: Mapping[str, object]) -> Iterator[tuple[str, SkillFault]]:
    """The tools of a skill that cannot be offered, and why. A tool that has the name of an intent would be called with
    the effect of that."""
    for name, tool in tools.items():
        why = "an intent has the same name" if name in intents else refusal(tool)
        if why:
            yield name, SkillFault(f"the tool {name} is not offered: {why}", "simplify its parameters")
