"""Facts as sentences, put together out of nothing but what is written."""

from __future__ import annotations

import re
from collections.abc import Sequence

from appliance.store.documents import Field, Passage
from appliance.store.knowfacts import Fact, Located
from appliance.store.knowtables import lowered

UNITS = {
    "eur": "euros",
    "€": "euros",
    "usd": "dollars",
    "$": "dollars",
    "gbp": "pounds",
    "£": "pounds",
    "nm": "Nm",
    "l": "litres",
}
MOST = 5
"""Rows that are told of at once."""

_AMOUNT = re.compile(r"^[^\w]*\d[\d.,]*\s*[^\d]{0,24}$")
_RATE = re.compile(r"\d[:.]\d\d\b.*\d[:.]\d\d\b|\d{4}-\d\d-\d\d")


def value(field: Field) -> str:
    """As written, with the unit of its column."""
    unit = UNITS.get(field.unit.lower(), field.unit)
    plain = re.fullmatch(r"[\d.,]+", field.value)
    return f"{field.value} {unit}" if unit and plain else field.value


def sentence(located: Sequence[Located], facts: Sequence[Fact], *, outside: bool) -> str:
    """What is said for facts that answer alike; `outside`: with the heading they stand under."""
    first, known = facts[0], located[facts[0].of]
    if first.field is None:
        return _whole(first.text, known.passage, outside=outside)
    if len(facts) == 1:
        return _one(known.passage, first.field, outside=outside)
    parts = []
    rows = len({fact.of for fact in facts}) > 1
    for fact in facts[:MOST]:
        assert fact.field is not None
        passage = located[fact.of].passage
        name = (passage.entity or fact.field.attribute) if rows else fact.field.attribute
        parts.append(f"{lowered(name)} {value(fact.field)}")
    heading = known.passage.headings[-1] if known.passage.headings else ""
    named = (first.field.attribute if known.passage.entity else heading) if rows else known.passage.entity
    if rows and outside and heading and known.passage.entity:
        named = heading
    return f"{named}: {', '.join(parts)}." if named else f"{', '.join(parts)}."


def _one(passage: Passage, field: Field, *, outside: bool) -> str:
    text, attribute = value(field), field.attribute
    heading = passage.headings[-1] if passage.headings else ""
    if _AMOUNT.match(text) and not _RATE.search(text):
        name = f"{lowered(attribute)} of the {lowered(passage.entity)}" if passage.entity else lowered(attribute)
        verb = "are" if re.search(r"(?:[^s]s|ies)$", attribute) else "is"
        about = f"{heading}: the" if outside and not passage.entity and heading else "The"
        return _stop(f"{about} {name} {verb} {text}")
    parts = [heading] if outside and heading else []
    if passage.entity:
        parts.append(passage.entity)
        if not outside and len(passage.fields) > 1:
            parts.append(attribute)
    else:
        parts.append(attribute)
    return _stop(f"{', '.join([parts[0], *map(lowered, parts[1:])])}: {text}")


def _whole(text: str, passage: Passage, *, outside: bool) -> str:
    heading = passage.headings[-1] if passage.headings else ""
    complete = text[:1].isupper() and text[-1:] in ".!?"
    return _stop(f"{heading}: {text}" if heading and (outside or not complete) else text)


def _stop(text: str) -> str:
    return text if text[-1:] in ".!?" else f"{text}."
