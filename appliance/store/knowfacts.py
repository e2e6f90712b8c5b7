"""What can be answered with: each field and each sentence of the passages, ready to be compared with a question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import PurePosixPath
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from appliance.store.documents import Field, Passage
from appliance.store.knowwords import Lexicon, tokens

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to float32 [n, width], rows of length 1."""

VOCABULARY = 10_000
"""Words, the most frequent first, whose meaning is compared; rarer ones are found by their letters only."""

GENERIC = "shop store place café restaurant bar hotel car vehicle"
"""What a question calls the whole that the documents are about."""

_LEANS = re.compile(r"^(?:it|they|this|these|those|that|otherwise|then|after that|in that case|there)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Located:
    """A passage and the pack that it is of."""

    pack: str
    passage: Passage


@dataclass(frozen=True, slots=True)
class Fact:
    """`own` are the keys of what is said, `asked` those of what it is said of (a field's attribute and entity),
    `context` those of the headings. `words` are places in the vocabulary."""

    of: int
    """Its passage's place."""
    kind: Literal["field", "sentence", "span"]
    text: str
    value: str
    own: frozenset[str]
    context: frozenset[str]
    attribute: frozenset[str]
    entity: frozenset[str]
    words: NDArray[np.int32]
    field: Field | None = None
    position: int = 0


@dataclass(frozen=True, slots=True)
class Body:
    """Everything that is known at one time; never changed, only replaced."""

    passages: tuple[Located, ...]
    facts: tuple[Fact, ...]
    of_passage: Mapping[int, tuple[int, ...]]
    lexicon: Lexicon
    keys: frozenset[str]
    of_pack: Mapping[str, frozenset[str]]
    """All keys of each pack."""
    generic: frozenset[str]
    """Words that a question may name and that tell nothing apart."""
    vocabulary: tuple[str, ...]
    meanings: NDArray[np.float32]
    """[vocabulary, width]"""
    vectors: NDArray[np.float32]
    """[passages, width]"""
    rarity: Mapping[str, float]


def body(
    located: Sequence[Located],
    vectors: NDArray[np.float32],
    lexicon: Lexicon,
    meaning: Callable[[Sequence[str]], NDArray[np.float32]],
) -> Body:
    """`vectors` are the passages', `meaning` gives those of words."""
    counted: Counter[str] = Counter()
    for known in located:
        passage = known.passage
        counted.update(set(tokens(" ".join((passage.text, passage.entity, *passage.headings)))))
    vocabulary = tuple(word for word, _ in counted.most_common(VOCABULARY) if len(word) > 2 and not word[0].isdigit())
    lexicon.stem.learn(counted)
    places = {word: place for place, word in enumerate(vocabulary)}
    facts: list[Fact] = []
    of_passage: dict[int, tuple[int, ...]] = {}
    for number, known in enumerate(located):
        first = len(facts)
        facts += _facts(number, known, lexicon, places)
        of_passage[number] = tuple(range(first, len(facts)))
    seen: Counter[str] = Counter()
    for number in range(len(located)):
        seen.update(frozenset[str]().union(*(facts[fact].own for fact in of_passage[number])))
    rarity = {key: float(np.log1p(len(located) / times)) for key, times in seen.items()}
    of_pack = {
        pack: frozenset[str]().union(*(fact.own | fact.context for fact in facts if located[fact.of].pack == pack))
        for pack in {known.pack for known in located}
    }
    keys = frozenset(rarity).union(*(fact.context for fact in facts)) if facts else frozenset(rarity)
    return Body(
        tuple(located),
        tuple(facts),
        of_passage,
        lexicon,
        keys,
        of_pack,
        lexicon.keys(GENERIC),
        vocabulary,
        meaning(vocabulary),
        vectors,
        rarity,
    )


def _facts(number: int, known: Located, lexicon: Lexicon, places: Mapping[str, int]) -> Iterator[Fact]:
    passage = known.passage
    stem = PurePosixPath(passage.file).stem
    context = lexicon.keys(" . ".join((known.pack, stem.replace("_", " ").replace("-", " "), *passage.headings)))

    def fact(kind: Literal["field", "sentence", "span"], text: str, value: str, **more: object) -> Fact:
        words = [places[word] for word in dict.fromkeys(tokens(text)) if word in places]
        own = lexicon.keys(text)
        blank = {"attribute": frozenset[str](), "entity": frozenset[str]()}
        return Fact(number, kind, text, value, own, context, words=np.array(words, np.int32), **{**blank, **more})  # type: ignore[arg-type]

    # Of a table with one column of values, the heading often says what they are.
    heading = passage.headings[-1] if passage.entity and len(passage.fields) == 1 and passage.headings else ""
    for position, field in enumerate(passage.fields):
        value = f"{field.value} {field.unit}".strip()
        yield fact(
            "field",
            f"{passage.entity} {field.attribute}: {value}".strip(),
            value,
            attribute=lexicon.keys(f"{field.attribute} . {heading}"),
            entity=lexicon.keys(passage.entity),
            field=field,
            position=position,
        )
    if passage.fields:
        return
    before = ""
    for position, sentence in enumerate(passage.sentences):
        if before and _LEANS.match(sentence):
            yield fact("span", f"{before} {sentence}", sentence, position=position)
        else:
            yield fact("sentence", sentence, sentence, position=position)
        before = sentence


def current(passage: Passage, today: date) -> bool:
    """Whether a passage is valid on that day."""
    return (passage.valid_from is None or passage.valid_from <= today) and not expired(passage, today)


def expired(passage: Passage, today: date) -> bool:
    return passage.valid_until is not None and passage.valid_until < today


def described(passages: Iterable[Passage]) -> list[str]:
    """What is embedded of each passage."""
    return [" ".join(filter(None, (": ".join(passage.headings[-2:]), passage.text)))[:800] for passage in passages]
