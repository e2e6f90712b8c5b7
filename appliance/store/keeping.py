"""A turn becomes a row and its units; what they contradict has been valid until now. In the writing thread."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from appliance.store import tables
from appliance.store.book import Book
from appliance.store.decay import REMEMBERED
from appliance.store.finding import Vector
from appliance.store.heat import Hot, Why
from appliance.store.index import packed
from appliance.store.knowenglish import DAYS, STOP
from appliance.store.knowwords import Stemmer, tokens
from appliance.store.tellparts import ME, key
from appliance.store.tellwords import ID, IRREGULAR
from appliance.store.told import Told, told
from appliance.store.units import Turn, Unit

RECENT = 8
"""Units spoken of last that a correction may be about."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A turn that is on the disk, and what was kept of it: `units` that are new or were said again, `ended` those that
    do not hold any more."""

    turn: int
    units: tuple[Unit, ...] = ()
    ended: tuple[Unit, ...] = ()


@dataclass(slots=True, eq=False)
class Entry:
    """A turn on its way to the disk; `cites` are the units that its answer rests on."""

    turn: Turn
    cites: tuple[int, ...] = ()
    told: Told | None = None
    vectors: list[Vector] = field(default_factory=list)

    @property
    def units(self) -> tuple[Unit, ...]:
        return self.told.units if self.told else ()


@dataclass(slots=True)
class Thread:
    """What is being spoken of: the conversation, the last subject, the last units that a correction may be about."""

    conversation: int = 0
    last: float = -math.inf
    about: str = ""
    recent: tuple[Unit, ...] = ()

    def drop(self) -> None:
        self.about, self.recent = "", ()


class Keeper:
    """Used in the writing thread only."""

    def __init__(self, book: Book, vectors: Callable[[Sequence[str]], Sequence[Vector]]) -> None:
        self._book, self._vectors = book, vectors
        self._stem = Stemmer()

    def understand(self, entry: Entry, thread: Thread) -> None:
        """Once, however often the disk refuses it."""
        turn = entry.turn
        entities = tuple(_entities(turn))
        skill = turn.intent.partition(".")[0]
        if skill not in ("", "dialogue"):
            entry.told = Told(units=entities)  # a command tells no more than what it is about
        else:
            found = told(turn.asked, turn.at, about=thread.about, recent=thread.recent)
            entry.told = replace(found, units=(*found.units, *entities))
        entry.vectors = list(self._vectors([tables.words_of(unit) for unit in entry.units]))

    def write(self, entry: Entry, thread: Thread) -> Kept:
        """Raises StorageFault, and nothing was written."""
        about = entry.told or Told()
        codes = [packed(vector) for vector in entry.vectors] or [b""] * len(about.units)
        with self._book.writing() as connection:
            conversation = thread.conversation or _next_conversation(connection)
            turn = replace(entry.turn, conversation=conversation)
            turn = replace(turn, id=tables.add_turn(connection, turn, entry.cites))
            placed = [self.place(connection, unit, code, turn) for unit, code in zip(about.units, codes, strict=True)]
            ended = self._end(connection, about, turn)
            reinforce(connection, entry.cites, turn.lived)
        entry.turn = turn
        thread.conversation = conversation
        thread.about = about.about or thread.about
        slots = [unit for unit, _ in placed if unit.slot and unit.kind != "entity"]
        thread.recent = (*thread.recent, *slots)[-RECENT:]
        self.searched([(unit, code) for (unit, new), code in zip(placed, codes, strict=True) if new])
        return Kept(turn.id, tuple(unit for unit, _ in placed if unit.kind != "entity"), tuple(ended))

    def place(self, connection: sqlite3.Connection, unit: Unit, code: bytes, turn: Turn) -> tuple[Unit, bool]:
        """Adds a unit, or finds that it is known; and whether it is new. What it takes the place of ends."""
        same = "slot = ?" if unit.slot else "slot = '' and text = ? collate nocase"
        where = f"person = ? and ended is null and {same}"
        before = tables.units(connection, where, [turn.person, unit.slot or unit.text])
        for known in before:
            if (known.attribute, key(known.value)) == (unit.attribute, key(unit.value)):
                again = one_more(known, turn.lived)
                tables.set_uses(connection, again)
                return again, False
        whole = replace(unit, person=turn.person, turn=turn.id, said=turn.at, born=turn.lived)
        whole = replace(whole, uses=(turn.lived,), used=1, id=0)
        whole = replace(whole, id=tables.add_unit(connection, whole, code))
        tables.end(connection, [known.id for known in before], turn.lived, whole.id)
        return whole, True

    def searched(self, new: Sequence[tuple[Unit, bytes]]) -> None:
        """From now on these are found by what they mean."""
        with self._book.lock:
            self._book.index.add([unit.id for unit, code in new if code], [code for _, code in new if code])

    def _end(self, connection: sqlite3.Connection, about: Told, turn: Turn) -> list[Unit]:
        """What the turn says does not hold any more."""
        ended: list[Unit] = []
        for slot in about.ends:
            name, _, value = slot.partition("=")
            some = tables.units(connection, "person = ? and ended is null and slot = ?", [turn.person, name])
            ended += [unit for unit in some if not value or key(unit.value) == value]
        if about.done:
            where = "person = ? and ended is null and kind = 'task' and turn != ?"
            tasks = tables.units(connection, where, [turn.person, turn.id])
            ended += [task for task in tasks if any(self.did(done, task.value) for done in about.done)]
        tables.end(connection, [unit.id for unit in ended], turn.lived, 0)
        return ended

    def did(self, done: str, task: str) -> bool:
        """Whether what was done is what was to be done: "I've paid the bill" ends "pay the electricity bill"."""
        did, wanted = self._telling(done), self._telling(task)
        shared = len(did & wanted)
        return shared >= math.ceil(0.6 * len(wanted)) and shared >= min(2, max(1, len(wanted)))

    def _telling(self, text: str) -> set[str]:
        skip = STOP | set(DAYS) | _WHEN
        return {self._stem(IRREGULAR.get(w, w)) for w in tokens(text) if w not in skip and not w[0].isdigit()}


_WHEN = frozenset(("tomorrow", "today", "tonight", "yesterday"))


def reinforce(connection: sqlite3.Connection, ids: Sequence[int], at: float) -> None:
    """These were answered with: they come to mind more readily for it."""
    for unit in tables.units_by_id(connection, ids):
        tables.set_uses(connection, one_more(unit, at))


def one_more(unit: Unit, at: float) -> Unit:
    return replace(unit, uses=(*(unit.uses or (unit.born,)), at)[-REMEMBERED:], used=max(unit.used, 1) + 1)


def _next_conversation(connection: sqlite3.Connection) -> int:
    return int(connection.execute("select coalesce(max(conversation), 0) + 1 from turn").fetchone()[0])


def _entities(turn: Turn) -> Iterator[Unit]:
    """The intent snapshot: what the turn's command was about."""
    for name, value in turn.slots.items():
        if isinstance(value, str) and 2 <= len(value) <= 60 and not value.isdigit():
            yield Unit("entity", value, "", name, value, f"entity|{key(value)}", importance=0.3)


def heated(turn: Turn, units: Sequence[Unit]) -> list[Hot]:
    """What a turn makes hot: what it told, what a command was about, names and numbers in it."""
    found: dict[str, Hot] = {}

    def heat(word: str, by: float, why: Why, *, critical: bool = False) -> None:
        if word and word.lower() != ME and len(word) <= 60:
            found[word.lower()] = Hot(word, by, why, critical)

    for unit in units:
        number = bool(ID.search(unit.value)) or unit.value[:1].isdigit()
        named = unit.attribute.endswith("name") or unit.value[:1].isupper()
        heat(unit.subject, 0.4, "entity")
        heat(unit.value, 0.4 + 0.5 * unit.importance, _why(unit, number=number), critical=named or number)
    for word in (word.strip(".,!?;:\"'") for word in turn.asked.split()[1:]):
        if ID.fullmatch(word):
            heat(word, 0.8, "number", critical=True)
        elif word[:1].isupper() and len(word) > 1 and word.lower() not in STOP and word.lower() not in found:
            heat(word, 0.5, "entity", critical=True)
    return list(found.values())


def _why(unit: Unit, *, number: bool) -> Why:
    if unit.kind in ("task", "emotion"):
        return "task" if unit.kind == "task" else "emotion"
    return "number" if number else "entity"
