"""What comes to mind: units by meaning and words, ranked by how present they are; and answers in the user's words."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from appliance.store import tables
from appliance.store.asked import Asked, asked, listed, said_back
from appliance.store.book import Book
from appliance.store.decay import Curve, activation, half_life, score
from appliance.store.index import unpacked
from appliance.store.knowenglish import STOP
from appliance.store.knowwords import Stemmer, tokens
from appliance.store.tellparts import ME, key
from appliance.store.tellwords import TIME
from appliance.store.told import told
from appliance.store.units import EPOCH, Unit

Vector = NDArray[np.float32]
Waiting = Callable[[], Sequence[tuple[Unit, Vector | None]]]
"""Units that are not on the disk, with their vectors."""

CANDIDATES = 96
"""Units that are compared by meaning, and as many by words, for one question."""
RANKED = 3
"""Times as many as are wanted: the most relevant of them, of which it is seen how present they are."""
TERMS = 12
"""Words of a question that are searched."""
POSTINGS = 3_000
"""Units in which they may stand in all: what bounds the time of a search."""
RARE = 50
"""Units up to which counting those with a word takes no time."""
LEXICAL = 12.0
"""Rank of full-text search that stands for full relevance by words: a few rare ones."""
MEANING, WORDS = 0.8, 0.2
"""Their parts in relevance. At one half each, of 1,127 questions a tenth fewer found their evidence (LOG)."""
ANSWERS = 0.42
"""Relevance from which a unit may answer a question that names no attribute."""
TELLS, APART = 0.3, 1.3
"""Relevance from which it is told to a question that was understood no further, and how far it is ahead of the next."""
ALIKE, AS_RELEVANT = 0.6, 0.7
"""Cosine from which two say nearly the same, and share of relevance from which one is as relevant as the other."""
ARCHIVED = 0.7
"""Of the score of what is archived."""
MANY = 6
"""Units that one answer tells."""


@dataclass(frozen=True, slots=True)
class Found:
    unit: Unit
    score: float
    relevance: float
    activation: float


@dataclass(frozen=True, slots=True)
class Recollection:
    """An answer out of memory, and the units that it rests on."""

    text: str
    units: tuple[Unit, ...]


class Finder:
    """Usable from any thread. Only what belongs to `person`, or to everybody, is found."""

    def __init__(
        self,
        book: Book,
        vectors: Callable[[Sequence[str]], Sequence[Vector]],
        person: Callable[[], str],
        waiting: Waiting,
        curve: Curve,
    ) -> None:
        self._book, self._vectors, self._person, self._waiting = book, vectors, person, waiting
        self._curve = curve
        self._stem = Stemmer()
        self._counts: dict[str, int] = {}
        self._counted = 0

    def find(self, text: str, *, limit: int, past: bool) -> list[Found]:
        vectors = self._vectors([text])
        now, found = self._book.lived(), []
        candidates, rows = self._candidates(text, vectors[0] if vectors else None, RANKED * limit, past=past)
        for unit, relevance in candidates:
            if unit.person not in ("", self._person()):
                continue
            half = half_life(unit.kind, unit.importance)
            active = activation(unit.uses or (unit.born,), unit.used, now, half, self._curve.power)
            value = score(relevance, active, unit.importance, self._curve)
            found.append(Found(unit, value * (ARCHIVED if unit.archived else 1.0), relevance, active))
        found.sort(key=lambda one: (-one.score, -one.unit.born, -one.unit.id))
        return _later_first(found[:limit], rows)

    def answer(self, text: str) -> Recollection | None:
        wanted = asked(text)
        if wanted is None:
            return None
        if wanted.loose:
            return self._something(wanted.about)
        if wanted.about:
            return self._all_about(wanted.about)
        known = self._known(wanted)
        if not known:
            return self._nearest(text, wanted)
        if wanted.item:
            return self._whether(wanted, known)
        latest = sorted(known, key=lambda unit: (-unit.born, -unit.id))
        chosen = latest[:MANY] if wanted.many or not wanted.attributes else latest[:1]
        return Recollection(told_back(chosen), tuple(chosen))

    def finishes(self, done: Sequence[str], did: Callable[[str, str], bool]) -> bool:
        """Whether a task that is open would be over."""
        if not done:
            return False
        with self._book.reading() as reader:
            where = "ended is null and kind = 'task' and person in ('', ?)"
            tasks = tables.units(reader, where, [self._person()]) if reader else []
        return any(did(one, task.value) for one in done for task in tasks)

    def meant(self, text: str) -> list[Unit] | None:
        """The units that a statement or a question is about, not more. None: it is not known what it is about."""
        said = [unit for unit in told(text, EPOCH).units if unit.slot]
        values = {key(unit.value) for unit in said}
        with self._book.reading() as reader:
            rows = [row for one in said for row in tables.units(reader, "slot = ?", [one.slot])] if reader else []
        if mine := [row for row in rows if row.person in ("", self._person()) and key(row.value) in values]:
            return mine
        wanted = asked(text) or asked(f"what is {text}")
        known = [unit for unit in self._known(wanted) if unit.id] if wanted and not wanted.loose else []
        exact = bool(said) or bool(wanted and wanted.owner and wanted.attributes)
        return known if known or exact else None

    def shares(self, some: str, text: str) -> bool:
        """Whether all telling words of one stand in the other."""
        wanted = {self._stem(word) for word in tokens(some) if word not in STOP}
        return bool(wanted) and wanted <= {self._stem(word) for word in tokens(text)}

    # --- candidates --------------------------------------------------------------------------------------------------

    def _candidates(
        self, text: str, vector: Vector | None, ranked: int, *, past: bool
    ) -> tuple[list[tuple[Unit, float]], dict[int, Vector]]:
        """Units, and how relevant they are: by meaning and words; by words alone without a model. And their vectors."""
        relevant: dict[int, float] = {}
        rows: dict[int, Vector] = {}
        units: list[Unit] = []
        with self._book.reading() as reader:
            if reader:
                relevant, rows = self._relevant(reader, text, vector)
                chosen = heapq.nlargest(ranked, relevant, key=relevant.__getitem__)
                where = "kind != 'entity'" + ("" if past else " and ended is null")
                units = tables.units_by_id(reader, chosen, where)
        found = [(unit, relevant[unit.id]) for unit in units]
        for unit, row in self._waiting():
            lexical = 1.0 if self._overlap(text, unit.text) else 0.0
            known = row is not None and vector is not None
            if unit.kind != "entity":
                found.append((unit, _relevance(float(row @ vector), lexical) if known else lexical))  # type: ignore[operator]
        return found, rows

    def _relevant(
        self, reader: sqlite3.Connection, text: str, vector: Vector | None
    ) -> tuple[dict[int, float], dict[int, Vector]]:
        ranks = self._ranked(reader, text)
        best = max((LEXICAL, *ranks.values()))
        if vector is None:
            return {id: rank / best for id, rank in ranks.items()}, {}
        codes = tables.codes(reader, list({*self._book.index.near(vector, CANDIDATES), *ranks}))
        rows = unpacked(list(codes.values()))
        cosines = (rows @ vector).tolist()
        relevant = {
            id: _relevance(cosine, ranks.get(id, 0.0) / best) for id, cosine in zip(codes, cosines, strict=True)
        }
        return relevant, dict(zip(codes, rows, strict=True))

    def _ranked(self, reader: sqlite3.Connection, text: str) -> dict[int, float]:
        """By full-text search: the better, the higher. Words that stand in many units cost the most and say the least:
        the rarest are searched, as many as hold to a bound."""
        stems = {self._stem(word) for word in tokens(text) if word not in STOP and len(word) > 1}
        chosen: list[str] = []
        postings = 0
        for stem, count in sorted(self._common(reader, stems).items(), key=lambda found: (found[1], found[0])):
            if count and (not chosen or (postings + count <= POSTINGS and len(chosen) < TERMS)):
                chosen.append(stem)
                postings += count
        if not chosen:
            return {}
        # A stem that is stemmed again may be another word: the words themselves are searched.
        words = {word for word in tokens(text) if self._stem(word) in chosen}
        query = " OR ".join(f'"{word}"' for word in sorted(words))
        sql = "select rowid, -rank from word where word match ? order by rank limit ?"
        return {int(id): float(rank) for id, rank in reader.execute(sql, (query, CANDIDATES))}

    def _common(self, reader: sqlite3.Connection, stems: Iterable[str]) -> dict[str, int]:
        """In how many units each stem stands. Counting a common one takes long: it is remembered, and a little out of
        date does no harm."""
        size = len(self._book.index)
        if size > 1.2 * self._counted:
            self._counts.clear()
            self._counted = size
        new = [stem for stem in stems if stem not in self._counts]
        counted = tables.documents(reader, new)
        self._counts |= {stem: count for stem, count in counted.items() if count > RARE}
        return {stem: self._counts.get(stem, counted.get(stem, 0)) for stem in stems}

    def _overlap(self, text: str, other: str) -> bool:
        telling = {self._stem(word) for word in tokens(text) if word not in STOP}
        return bool(telling & {self._stem(word) for word in tokens(other)})

    # --- answers -----------------------------------------------------------------------------------------------------

    def _known(self, wanted: Asked) -> list[Unit]:
        """The units of whom or what is asked about, with an attribute that answers: the first kind that there is."""
        rows = [unit for unit in self._rows(wanted) if unit.person in ("", self._person())]
        if not wanted.attributes:
            return [unit for unit in rows if unit.attribute]
        if wanted.item:
            fits = [unit for unit in rows if unit.attribute in wanted.attributes]
            named = [unit for unit in fits if self.shares(wanted.item, unit.value or unit.text)]
            return named or (fits if wanted.attributes[0] == "allergy" else [])
        for attribute in wanted.attributes:
            if some := [unit for unit in rows if unit.attribute == attribute]:
                return some
        return self._otherwise(wanted) if len(wanted.attributes) == 1 else []

    def _otherwise(self, wanted: Asked) -> list[Unit]:
        """ "My room number", "my room is 312" and "the number of my room" are one thing."""
        (attribute,), owner = wanted.attributes, key(wanted.owner)
        whose, _, what = attribute.rpartition(" ")
        other = (whose, what) if owner == ME and whose else (ME, f"{owner} {attribute}")
        rows = self._rows(Asked(other[0], (other[1],)))
        mine = [unit for unit in rows if unit.person in ("", self._person())]
        return [unit for unit in mine if unit.attribute == other[1]]

    def _rows(self, wanted: Asked) -> list[Unit]:
        waiting = [unit for unit, _ in self._waiting()]
        with self._book.reading() as reader:
            if not wanted.owner:
                where = "ended is null and kind = 'task' and slot != ''"
                return (tables.units(reader, where) if reader else []) + [u for u in waiting if u.kind == "task"]
            subject = key(wanted.owner)
            rows = [unit for unit in waiting if unit.subject == subject]
            if reader:
                named = "attribute = 'name' and lower(value) = ? and ended is null"
                subjects = [subject, *(unit.subject for unit in tables.units(reader, named, [subject]))]
                marks = ", ".join("?" * len(subjects))
                where = f"ended is null and kind != 'entity' and (subject in ({marks}) or subject glob ?)"
                rows += tables.units(reader, where, [*subjects, f"{_literal(subject)} *"])
            return rows

    def _whether(self, wanted: Asked, known: Sequence[Unit]) -> Recollection:
        """Yes or no, where that was said."""
        latest = max(known, key=lambda unit: (unit.born, unit.id))
        if latest.attribute == "decision":
            return Recollection(told_back(known), tuple(known))
        if not self.shares(wanted.item, latest.value):
            return Recollection(f"Not that I know of. {told_back(known)}", tuple(known))
        denied = latest.value.startswith("not ") or latest.attribute != wanted.attributes[0]
        return Recollection(f"{'No' if denied else 'Yes'}. {said_back(latest.text)}", (latest,))

    def _all_about(self, about: str) -> Recollection | None:
        if key(about) in (ME, "myself", "i"):
            with self._book.reading() as reader:
                known = (
                    tables.units(reader, "ended is null and kind in ('fact', 'preference', 'task')") if reader else []
                )
            known += [unit for unit, _ in self._waiting() if unit.kind in ("fact", "preference", "task")]
            mine = [unit for unit in known if unit.person in ("", self._person())]
            units = sorted(mine, key=lambda unit: (-unit.importance, not unit.attribute.endswith("name"), -unit.born))
        else:
            found = self.find(about, limit=8, past=False)
            units = [one.unit for one in found if one.relevance >= ANSWERS or self.shares(about, one.unit.text)]
        return Recollection(told_back(units[:MANY]), tuple(units[:MANY])) if units else None

    def _something(self, text: str) -> Recollection | None:
        """What comes to mind first, if it has enough to do with it, and is about one of the things asked about."""
        first, *others = [*self.find(text, limit=2, past=False), None]
        if first is None or first.relevance < TELLS or not self._overlap(text, tables.words_of(first.unit)):
            return None
        if others[0] is not None and others[0].relevance * APART > first.relevance:
            return None
        return Recollection(told_back([first.unit]), (first.unit,))

    def _nearest(self, text: str, wanted: Asked) -> Recollection | None:
        """Where the words of the question stand in something that was said, and it holds what is asked for."""
        about = wanted.item or wanted.owner
        if wanted.owner == ME and wanted.attributes and not wanted.item:
            about = wanted.attributes[0]
        for one in self.find(text, limit=3, past=False):
            if one.relevance < ANSWERS or not self.shares(about, one.unit.text):
                continue
            if wanted.owner == ME and one.unit.subject not in (ME, ""):
                continue
            if "time" not in wanted.attributes or TIME.search(one.unit.text):
                return Recollection(told_back([one.unit]), (one.unit,))
        return None


def _later_first(found: list[Found], rows: Mapping[int, Vector]) -> list[Found]:
    """Of two that say nearly the same, and are as relevant, the later one is how it is now: it comes first."""
    order = list(found)
    for place in range(len(order)):
        for later in range(place + 1, len(order)):
            one, other = order[place], order[later]
            if other.unit.born <= one.unit.born or other.relevance < AS_RELEVANT * one.relevance:
                continue
            near, far = rows.get(one.unit.id), rows.get(other.unit.id)
            if near is not None and far is not None and float(near @ far) >= ALIKE:
                order.insert(place, replace(order.pop(later), score=one.score))
                break
    return order


def told_back(units: Sequence[Unit]) -> str:
    if units and all(unit.kind == "task" and unit.subject == ME for unit in units):
        wanted = [said_back(unit.value).rstrip(".") for unit in units]
        return f"You wanted to {listed([text[:1].lower() + text[1:] for text in wanted])}."
    return " ".join(dict.fromkeys(said_back(unit.text) for unit in units))


def _relevance(cosine: float, lexical: float) -> float:
    return MEANING * max(0.0, cosine) + WORDS * min(1.0, lexical)


def _literal(text: str) -> str:
    """For `glob`."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in text)
