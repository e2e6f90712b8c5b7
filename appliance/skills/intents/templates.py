"""The door to hassil: intent files in its syntax, as Home Assistant writes them, and Parley's additions to it.

Of a file whose parts are wrong the rest is loaded; each fault names the file, the intent and the line.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from hassil.expression import (
    Alternative,
    Expression,
    Group,
    ListReference,
    Permutation,
    RuleReference,
    Sentence,
    TextChunk,
)
from hassil.parse_expression import parse_sentence
from hassil.parser import ParseError

from appliance.errors import SkillFault
from appliance.skills.intents.words import words
from appliance.skills.numbers import READERS
from appliance.skills.skill import Json

Data = Callable[[str], str]
"""The text of a data file by its name; raises SkillFault or OSError."""

SPREAD = 400
"""Ways to say one list value, or one glued word, at most."""
DEEP = 12
"""Rules within rules at most."""
_AT_RUN_TIME = ("name", "area", "floor")
"""Lists that Home Assistant fills when it runs; a file need not have them, and here they are empty then."""


# --- what a grammar is made of -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Word:
    text: str


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the list `name` goes into `slot`."""

    name: str
    slot: str


@dataclass(frozen=True, slots=True)
class Node:
    """`kind` seq: one after the other; alt: one of them; any: all, in any order. Optional is alt with an empty seq."""

    kind: str
    parts: tuple[Word | Value | Node, ...]


Part = Word | Value | Node
EMPTY = Node("seq", ())


@dataclass(frozen=True, slots=True)
class Choices:
    """Values by the words they are said in: (words, canonical value)."""

    values: tuple[tuple[tuple[str, ...], Json], ...]


@dataclass(frozen=True, slots=True)
class Typed:
    """A value that is read out of the words (`numbers.READERS`), a number within its bounds; "text" is any words."""

    kind: str
    low: float = float("-inf")
    high: float = float("inf")


@dataclass(frozen=True, slots=True)
class Template:
    """One sentence, where it stands, and what it says besides its slots."""

    intent: str
    part: Part
    where: str
    fixed: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Grammar:
    templates: tuple[Template, ...] = ()
    lists: Mapping[str, Choices | Typed] = field(default_factory=dict)
    skip: tuple[tuple[str, ...], ...] = ()
    """Words that may stand anywhere and mean nothing."""


# --- reading a file ----------------------------------------------------------------------------------------------


class _Lines(yaml.SafeLoader):
    """Remembers on which line each text stands."""


class _Text(str):
    line: int


def _text(loader: _Lines, node: yaml.ScalarNode) -> Any:
    text = _Text(loader.construct_scalar(node))
    text.line = node.start_mark.line + 1
    return text


_Lines.add_constructor("tag:yaml.org,2002:str", _text)


def read_yaml(path: Path) -> Any:
    """The content of a YAML file. Raises SkillFault."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Lines)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError) as error:
        raise SkillFault(f"{path} cannot be read: {error}", "correct that line") from error


def load(path: Path, data: Data | None = None) -> tuple[Grammar, list[SkillFault]]:
    """Reads one file. A file that is no YAML, or no intent file, gives an empty grammar and the fault."""
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), _Lines)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError) as error:
        return Grammar(), [SkillFault(f"{path} cannot be read: {error}", "correct that line")]
    return parse(found, str(path), data)


def parse(content: Any, origin: str, data: Data | None = None) -> tuple[Grammar, list[SkillFault]]:
    """The grammar of a file's content, as YAML or JSON give it."""
    if not isinstance(content, Mapping):
        return Grammar(), [SkillFault(f"{origin} holds no intents", 'write "intents:" and the intents below it')]
    reader = _Reader(origin, data)
    grammar = reader.grammar(content)
    return grammar, reader.faults


class _Reader:
    def __init__(self, origin: str, data: Data | None) -> None:
        self._origin, self._data = origin, data
        self.faults: list[SkillFault] = []
        self._rules: dict[str, Sentence] = {}
        self._lists: dict[str, Choices | Typed] = {}

    def grammar(self, content: Mapping[Any, Any]) -> Grammar:
        for name, text in self._mapping(content, "expansion_rules").items():
            if sentence := self._sentence(text, f"rule {name}"):
                self._rules[str(name)] = sentence
        for name, given in self._mapping(content, "lists").items():
            try:
                self._lists[str(name)] = self._list(given, f"list {name}")
            except SkillFault as fault:
                self.faults.append(fault)
        templates: list[Template] = []
        for intent, body in self._mapping(content, "intents").items():
            templates += self._intent(str(intent), body)
        skipped = content.get("skip_words") or ()
        skip = tuple(words(str(word)) for word in skipped) if isinstance(skipped, list) else ()
        return Grammar(tuple(templates), self._lists, tuple(filter(None, skip)))

    def _mapping(self, content: Mapping[Any, Any], key: str) -> Mapping[Any, Any]:
        found = content.get(key) or {}
        if isinstance(found, Mapping):
            return found
        self._fault(found, key, "it is no mapping", "write names with their values below it")
        return {}

    def _fault(self, text: object, where: str, what: str, fix: str = "correct that line") -> None:
        self.faults.append(SkillFault(f"{self._at(text)}: {where}: {what}", fix))

    def _at(self, text: object) -> str:
        line = getattr(text, "line", 0)
        return f"{self._origin}, line {line}" if line else self._origin

    # --- sentences ---------------------------------------------------------------------------------------------------

    def _intent(self, intent: str, body: Any) -> Iterator[Template]:
        groups = body.get("data") if isinstance(body, Mapping) else None
        if not isinstance(groups, list):
            self._fault(body, f"intent {intent}", "it has no data", 'write "data:" and a list of sentences')
            return
        for group in groups:
            sentences = group.get("sentences") if isinstance(group, Mapping) else None
            if not isinstance(sentences, list):
                self._fault(group, f"intent {intent}", "it has no sentences", 'write "sentences:" and a list of texts')
                continue
            fixed = group.get("slots") or {}
            local = {}
            for name, text in self._mapping(group, "expansion_rules").items():
                if sentence := self._sentence(text, f"rule {name}"):
                    local[str(name)] = sentence
            for text in sentences:
                if sentence := self._sentence(text, f"intent {intent}"):
                    yield from self._template(intent, sentence, text, fixed, {**self._rules, **local})

    def _template(
        self, intent: str, sentence: Sentence, text: Any, fixed: Any, rules: Mapping[str, Sentence]
    ) -> Iterator[Template]:
        try:
            part = self._part(sentence.expression, rules, 0)
        except SkillFault as fault:
            self._fault(text, f"intent {intent}", fault.message, fault.fix)
            return
        known = {str(name): value for name, value in fixed.items()} if isinstance(fixed, Mapping) else {}
        yield Template(intent, part, self._at(text), known)

    def _sentence(self, text: Any, where: str) -> Sentence | None:
        if not isinstance(text, str) or not text.strip():
            self._fault(text, where, f"{text!r:.60} is no sentence", "write a text")
            return None
        try:
            return parse_sentence(str(text))
        except (ParseError, ValueError, IndexError, AssertionError, RecursionError) as error:
            self._fault(
                text, where, f"{str(text)!r:.80} cannot be parsed: {error}", "look for brackets that do not match"
            )
            return None

    def _part(self, expression: Expression, rules: Mapping[str, Sentence], depth: int) -> Part:
        if depth > DEEP * 8:
            raise SkillFault("its rules lie too deep, or in a circle", "take the circle out")
        match expression:
            case TextChunk():
                return Node("seq", tuple(Word(word) for word in words(expression.original_text or expression.text)))
            case ListReference():
                return self._value(expression)
            case RuleReference():
                rule = rules.get(expression.rule_name)
                if rule is None:
                    raise SkillFault(f"there is no rule <{expression.rule_name}>", "write it under expansion_rules")
                return self._part(rule.expression, rules, depth + 8)
            case Permutation():
                items = [
                    item for item in expression.items if not (isinstance(item, TextChunk) and not item.text.strip())
                ]
                return Node("any", tuple(self._part(item, rules, depth + 1) for item in items))
            case Alternative():
                parts = tuple(self._part(item, rules, depth + 1) for item in expression.items)
                optional = expression.is_optional and EMPTY not in parts
                return Node("alt", (*parts, EMPTY) if optional else parts)
            case Group():
                return self._sequence(expression, rules, depth)
        raise SkillFault(f"{expression!r:.60} is not understood", "write it otherwise")

    def _sequence(self, group: Group, rules: Mapping[str, Sentence], depth: int) -> Part:
        parts: list[Part] = []
        items = list(group.items)
        while items:
            glued = [items.pop(0)]
            while items and _glued(glued[-1], items[0]):
                glued.append(items.pop(0))
            if len(glued) == 1:
                parts.append(self._part(glued[0], rules, depth + 1))
            else:
                said = [words(text) for text in _spellings(glued)]
                parts.append(Node("alt", tuple(Node("seq", tuple(map(Word, one))) for one in dict.fromkeys(said))))
        return Node("seq", tuple(_loosened(parts)))

    def _value(self, reference: ListReference) -> Value:
        name = reference.list_name
        if bounds := reference.get_inline_range():
            name = f"{bounds[0]}..{bounds[1]}"
            self._lists[name] = Typed("number", bounds[0], bounds[1])
        if name in _AT_RUN_TIME:
            self._lists.setdefault(name, Choices(()))
        if name not in self._lists:
            raise SkillFault(f"there is no list {{{name}}}", "write it under lists")
        return Value(name, reference.slot_name)

    # --- lists -------------------------------------------------------------------------------------------------------

    def _list(self, given: Any, where: str) -> Choices | Typed:
        if not isinstance(given, Mapping):
            raise SkillFault(
                f"{self._at(given)}: {where}: it is no mapping", "write values, range, wildcard, type or data"
            )
        if given.get("wildcard"):
            return Typed("text")
        if "range" in given:
            bounds = given["range"]
            try:
                return Typed("number", float(bounds["from"]), float(bounds["to"]))
            except (KeyError, TypeError, ValueError) as error:
                raise SkillFault(f"{self._origin}: {where}: its range lacks {error}", "write from and to") from error
        if "type" in given:
            kind = str(given["type"])
            if kind != "text" and kind not in READERS:
                raise SkillFault(
                    f"{self._at(given['type'])}: {where}: there is no type {kind}",
                    f"known are text, {', '.join(READERS)}",
                )
            return Typed(kind)
        if "data" in given:
            return self._table(str(given["data"]), str(given.get("table", "")), where)
        values = given.get("values")
        if not isinstance(values, list):
            raise SkillFault(
                f"{self._origin}: {where}: it has no values", "write values, range, wildcard, type or data"
            )
        return Choices(tuple(pair for value in values for pair in self._choice(value, where)))

    def _choice(self, value: Any, where: str) -> Iterator[tuple[tuple[str, ...], Json]]:
        text, out = (value.get("in"), value.get("out")) if isinstance(value, Mapping) else (value, None)
        if isinstance(text, int | float) and not isinstance(text, bool):
            text = str(text)
        sentence = self._sentence(text, where)
        if sentence is None:
            return
        for spelling in dict.fromkeys(words(said) for said in _spellings([sentence.expression])):
            if spelling:
                yield spelling, " ".join(spelling) if out is None else str(out) if isinstance(out, str) else out

    def _table(self, file: str, table: str, where: str) -> Choices:
        if self._data is None:
            raise SkillFault(f"{self._origin}: {where}: there is no data file {file}", "put it into the folder data")
        try:
            content = tomllib.loads(self._data(file))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SkillFault(f"{file}: {error}", "correct that line") from error
        rows = content.get(table)
        if not isinstance(rows, list):
            raise SkillFault(
                f"{file} has no [[{table}]], which {where} of {self._origin} takes its values from", "write it"
            )
        found: list[tuple[tuple[str, ...], Json]] = []
        for number, row in enumerate(rows, start=1):
            name = row.get("name") if isinstance(row, Mapping) else None
            also = row.get("also", []) if isinstance(row, Mapping) else []
            if not isinstance(name, str) or not isinstance(also, list) or not words(name):
                self.faults.append(
                    SkillFault(f"{file}, [[{table}]] number {number}: it has no usable name", "write name")
                )
                continue
            found += [(words(str(said)), row.get("id", name)) for said in (name, *also) if words(str(said))]
        return Choices(tuple(found))


def _glued(left: Expression, right: Expression) -> bool:
    """Whether two items are one word: "light[s]"."""
    return (
        all(not isinstance(leaf, ListReference | RuleReference) for item in (left, right) for leaf in _leaves(item))
        and not _ends_in_space(left)
        and not _begins_with_space(right)
        and bool(list(_leaves(left)))
        and bool(list(_leaves(right)))
    )


def _leaves(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Group):
        for item in expression.items:
            yield from _leaves(item)
    elif not (isinstance(expression, TextChunk) and not expression.text):
        yield expression


def _ends_in_space(expression: Expression) -> bool:
    texts = [leaf.original_text for leaf in _leaves(expression) if isinstance(leaf, TextChunk)]
    return not texts or texts[-1].endswith((" ", "\t"))


def _begins_with_space(expression: Expression) -> bool:
    texts = [leaf.original_text for leaf in _leaves(expression) if isinstance(leaf, TextChunk)]
    return not texts or texts[0].startswith((" ", "\t"))


def _spellings(items: Sequence[Expression]) -> list[str]:
    """All texts that the items may stand for, one after the other."""
    texts = [""]
    for item in items:
        match item:
            case TextChunk():
                ends = [item.original_text or item.text]
            case Alternative():
                ends = [text for one in item.items for text in _spellings([one])] + ([""] if item.is_optional else [])
            case Permutation():
                ends = [" ".join(texts) for texts in product(*(_spellings([one]) for one in item.items))]
            case Group():
                ends = _spellings(item.items)
            case _:
                ends = [""]
        texts = [one + other for one, other in product(texts, dict.fromkeys(ends))][:SPREAD]
    return texts


def _loosened(parts: Sequence[Part]) -> Iterator[Part]:
    """Optional values in a row may be said in any order: "a double shot medium latte" for [{size}] [{shots}]."""
    run: list[Part] = []
    for part in (*parts, None):
        if part is not None and _optional_value(part) and len(run) < 5:
            run.append(part)
            continue
        if len(run) > 1:
            yield Node("any", tuple(run))
        else:
            yield from run
        run = []
        if part is not None:
            if _optional_value(part):
                run.append(part)
            else:
                yield part


def _optional_value(part: Part) -> bool:
    if not (isinstance(part, Node) and part.kind == "alt" and EMPTY in part.parts):
        return False
    values = [one for one in _flat(part) if isinstance(one, Value)]
    return len(values) == 1 and not any(isinstance(one, Word) for one in _flat(part))


def _flat(part: Part) -> Iterator[Word | Value]:
    if isinstance(part, Node):
        for one in part.parts:
            yield from _flat(one)
    else:
        yield part
