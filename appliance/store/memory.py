"""What the box remembers: turns as they were, and what they said that may matter again.

One thread writes (`scribe`); a turn is handed over when it is over, and is durable when its future is done. Nothing of
this is on the answering path. Where the disk fails, turns wait in memory, are found there, and are written when it
works again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from appliance.errors import Fault, StorageFault
from appliance.store import forgetting, tables
from appliance.store.book import Book
from appliance.store.decay import DAY, LASTING, Curve, activation, half_life
from appliance.store.finding import Finder, Found, Recollection, Vector
from appliance.store.heat import HeatMap
from appliance.store.index import packed
from appliance.store.keeping import Entry, Keeper, Kept, Thread, heated, reinforce
from appliance.store.scribe import Scribe
from appliance.store.tellparts import ME
from appliance.store.tidy import Tidied, tidy
from appliance.store.told import Told, told
from appliance.store.units import EPOCH, Turn, Unit
from appliance.telemetry import log

T = TypeVar("T")
Embed = Callable[[Sequence[str]], NDArray[np.float32]]

LARGEST_TEXT = 1 << 20
"""Characters that are kept of what was said in a turn, and of its answer."""
DEADLINE = 10.0
"""Seconds that a caller waits for what must be on the disk when it returns."""
TIDYING = 120.0
"""Seconds that maintenance may take."""
RESUMED = 200
"""Turns of a conversation that is taken up again."""


@dataclass(frozen=True, slots=True)
class MemoryRules:
    """`mode` keep: on the disk; session: in memory, as long as the process lives; off: nothing at all. `largest_bytes`
    is the byte budget, `keep_days` how long turns are kept word for word (0: until the budget forces it), `gap_s` the
    pause that begins a new conversation, `backup_s` how old the last copy may be, `retry_s` the time between two
    attempts at a disk that fails, `person` whose profile it is at first."""

    mode: Literal["keep", "session", "off"] = "keep"
    largest_bytes: int = 128 << 20
    keep_days: float = 0.0
    gap_s: float = 1_800.0
    backup_s: float = DAY
    retry_s: float = 2.0
    person: str = ""
    curve: Curve = field(default_factory=Curve)


@dataclass(frozen=True, slots=True)
class Health:
    """`problem` says why turns stay in memory ("": they do not), `pending` how many wait for the disk, `quarantined`
    under which name a damaged file lies."""

    problem: str = ""
    fix: str = ""
    pending: int = 0
    dropped: int = 0
    quarantined: str = ""

    @property
    def ok(self) -> bool:
        return not self.problem


class Memory:
    """All of it, in one file. Usable from any thread; opening never fails, see `health`.

    `embed` gives a vector of length 1 per text (None: words alone find). `wall` and `steady` are clocks in seconds.
    `forgotten` is called when something was deleted by the user's wish: whoever holds a copy drops it.
    """

    def __init__(
        self,
        folder: Path,
        embed: Embed | None,
        rules: MemoryRules | None = None,
        *,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
        forgotten: Callable[[], None] = lambda: None,
    ) -> None:
        self.rules = rules or MemoryRules()
        self.heat = HeatMap()
        self.forgotten = forgotten
        self.version = 0
        """Changes whenever what is known may have."""
        self._embed = embed
        self._person, self._private = self.rules.person, self.rules.mode == "off"
        self._book = Book(folder / "memory.db", wall, steady, ram=self.rules.mode != "keep")
        self._thread = Thread()
        self._unwritten: list[Entry] = []
        self._problem: StorageFault | None = None
        self._keeper = Keeper(self._book, self._vectors)
        self._finder = Finder(self._book, self._vectors, lambda: self._person, self._waiting, self.rules.curve)
        self._scribe = Scribe("memory", self._failing, retry=self.rules.retry_s)
        try:
            self._book.open()
        except StorageFault as fault:
            self._failing(fault)

    def close(self) -> None:
        """Writes what is left."""
        self._scribe.close()
        self._book.shut()

    @property
    def path(self) -> Path:
        return self._book.path

    @property
    def health(self) -> Health:
        problem = self._problem
        about = (problem.message, problem.fix) if problem else ("", "")
        return Health(*about, self._scribe.pending, self._scribe.dropped, self._book.quarantined)

    # --- whose, and whether ------------------------------------------------------------------------------------------

    @property
    def person(self) -> str:
        """Whose profile is remembered and asked; "" is everybody's."""
        return self._person

    @person.setter
    def person(self, name: str) -> None:
        with self._book.lock:
            self.version += 1
            self._person, self._thread = clean(name).strip().lower()[:80], Thread()
            self.heat.clear()

    def people(self) -> list[str]:
        """The profiles that hold something."""
        with self._book.reading() as reader:
            rows = reader.execute("select distinct person from turn where person != ''") if reader else ()
            return sorted(row[0] for row in rows)

    @property
    def private(self) -> bool:
        """Nothing is kept while this is set."""
        return self._private

    @private.setter
    def private(self, on: bool) -> None:
        with self._book.lock:
            self._private = on or self.rules.mode == "off"
            self._thread.drop()
            if on:
                self.heat.clear()

    # --- keeping -----------------------------------------------------------------------------------------------------

    def keep(self, turn: Turn, *, cites: Sequence[int] = ()) -> Future[Kept]:
        """Hands a turn over; it is durable when the future is done. What the disk refuses waits, and is not lost."""
        if self._private:
            nothing: Future[Kept] = Future()
            nothing.set_result(Kept(0))
            return nothing
        with self._book.lock:
            lived = self._book.lived()
            if lived - self._thread.last > self.rules.gap_s:
                self._thread = Thread()
            self._thread.last = lived
            entry = Entry(
                replace(
                    turn,
                    asked=clean(turn.asked)[:LARGEST_TEXT],
                    said=clean(turn.said)[:LARGEST_TEXT],
                    person=turn.person or self._person,
                    at=turn.at if turn.at != EPOCH else self._book.wall(),
                    lived=lived,
                ),
                tuple(cites),
            )
            thread = self._thread
        return self._scribe.surely(lambda: self._write(entry, thread))

    def remember(self, text: str) -> Kept:
        """What the user asked to remember, durable when this returns. Raises StorageFault where it is not: it is kept
        in memory until the disk works again."""
        try:
            return self.keep(Turn(f"Remember that {text}", by="memory")).result(DEADLINE)
        except TimeoutError as error:
            raise self._problem or _late() from error

    def heard(self, turn: int, said: str, reason: str) -> None:
        """What was really played of the answer to a turn that was kept before it was over."""
        said = clean(said)[:LARGEST_TEXT]

        def work() -> None:
            with self._book.writing() as connection:
                connection.execute("update turn set said = ?, reason = ? where id = ?", (said, reason, turn))

        if turn:
            self._scribe.surely(work)

    def understood(self, text: str) -> Told:
        """What the words would be taken to tell, now; nothing is kept."""
        thread = self._thread
        return told(clean(text), self._book.wall(), about=thread.about, recent=thread.recent)

    def finishes(self, found: Told) -> bool:
        """Whether something that was to be done is done by that."""
        return self._finder.finishes(found.done, self._keeper.did)

    def used(self, ids: Iterable[int]) -> None:
        """These were answered with."""
        wanted = list(ids)

        def work() -> None:
            with self._book.writing() as connection:
                reinforce(connection, wanted, self._book.lived())

        if wanted and not self._private:
            self._scribe.soon(work)

    def flush(self, seconds: float = DEADLINE) -> bool:
        """Waits until everything that was handed over is durable; False: it is not."""
        return self._scribe.flush(seconds)

    # --- finding -----------------------------------------------------------------------------------------------------

    def find(self, text: str, *, limit: int = 10, past: bool = False) -> list[Found]:
        """What was said that has to do with the text, best first; `past`: what holds no longer, too."""
        return self._finder.find(clean(text)[:4_000], limit=limit, past=past)

    def answer(self, text: str) -> Recollection | None:
        """A question about what the user has told, answered in the user's own words. None: it is no such question, or
        nothing is known of it."""
        return self._finder.answer(clean(text)[:1_000])

    def units(self, *, past: bool = False) -> list[Unit]:
        """Of this person and of everybody, oldest first; `past`: what holds no longer, too."""
        where = "person in ('', ?) and kind != 'entity'" + ("" if past else " and ended is null")
        with self._book.reading() as reader:
            known = tables.units(reader, f"{where} order by id", [self._person]) if reader else []
        return known + [unit for unit, _ in self._waiting() if unit.kind != "entity"]

    def turns(self, *, limit: int = 50, conversation: int = 0) -> list[Turn]:
        """The latest, of one conversation or of all, oldest first."""
        where = "person in ('', ?)" + (f" and conversation = {int(conversation)}" if conversation else "")
        with self._book.reading() as reader:
            known = tables.turns(reader, where, [self._person], limit=limit, latest=True) if reader else []
            return (known + [entry.turn for entry in self._unwritten])[-limit:]

    def resume(self) -> list[Turn]:
        """The turns of a conversation that may still be going on, oldest first."""
        latest = self.turns(limit=1)
        if not latest or self._book.lived() - latest[0].lived > self.rules.gap_s:
            return []
        with self._book.lock:
            self._thread.conversation, self._thread.last = latest[0].conversation, latest[0].lived
        return self.turns(limit=RESUMED, conversation=latest[0].conversation)

    def resident(self, limit: int = 24) -> list[Unit]:
        """What every answer should know, most lasting first; in an order that changes little from turn to turn."""
        now = self._book.lived()
        with self._book.reading() as reader:
            where = (
                "ended is null and kind in ('fact', 'preference', 'task') and attribute != '' "
                "and person in ('', ?) order by importance desc, id desc limit ?"
            )
            known = tables.units(reader, where, [self._person, 8 * limit]) if reader else []

        def place(unit: Unit) -> tuple[float, float]:
            half = half_life(unit.kind, unit.importance)
            active = activation(unit.uses or (unit.born,), unit.used, now, half)
            return -round(unit.importance + 0.5 * active, 1), unit.born

        return sorted(known, key=place)[:limit]

    def export(self) -> Iterator[dict[str, object]]:
        """Every unit and turn of this person, as JSON values."""
        for unit in self.units(past=True):
            yield {"type": unit.kind, **_values(unit, _UNIT), "said": unit.said.isoformat()}
        for turn in self.turns(limit=1 << 30):
            yield {"type": "turn", **_values(turn, _TURN), "at": turn.at.isoformat()}

    def gone(self) -> list[dict[str, object]]:
        """What was deleted, when and why."""
        with self._book.reading() as reader:
            rows = reader.execute("select at, what, count, why from gone order by id") if reader else ()
            keys = ("at", "what", "count", "why")
            return [dict(zip(keys, (tables.moment(row[0]).isoformat(), *row[1:]), strict=True)) for row in rows]

    # --- forgetting and correcting -----------------------------------------------------------------------------------

    def forget(self, ids: Iterable[int], why: str = "asked to") -> int:
        """Deletes units, the turns that they come from or that repeat them, and every trace in indexes, log and backup;
        how many units. Raises StorageFault."""
        wanted = list(ids)
        known = self._do(lambda: forgetting.forget(self._book, wanted, why))
        self._wiped(known)
        return sum(unit.kind != "entity" for unit in known)

    def forget_about(self, text: str) -> int:
        """What a statement or a question is about ("my name", "where I live"), or everything in which these words
        stand; how many units and turns. Raises StorageFault."""
        text = clean(text)
        if (meant := self._finder.meant(text)) is not None:
            return self.forget([unit.id for unit in meant]) if meant else 0
        known, turns = self._do(lambda: forgetting.forget_about(self._book, text, self._person, self._finder.shares))
        self._wiped(known, text)
        return sum(unit.kind != "entity" for unit in known) + turns

    def forget_everything(self) -> int:
        """All of this person's, and what is everybody's; how many units and turns. Raises StorageFault."""
        count = self._do(lambda: forgetting.forget_all(self._book, self._person))
        self.heat.clear()
        self._wiped(())
        return count

    def forget_last(self) -> list[Unit]:
        """What was told last, deleted. Raises StorageFault."""
        for turn in reversed(self.turns(limit=8)):
            with self._book.reading() as reader:
                where = "turn = ? and kind != 'entity'"
                units = tables.units(reader, where, [turn.id]) if reader and turn.id else []
            if units:
                self.forget([unit.id for unit in units])
                return units
        return []

    def edit(self, id: int, text: str) -> Unit:
        """Puts a correction in a unit's place. Raises StorageFault; Fault when there is no such unit, or the text is
        empty."""
        unit = self._do(lambda: self._edit(id, clean(text).strip()))
        self._wiped(())
        return unit

    def tidy(self) -> Tidied:
        """Archives, sums up, keeps to the budget, copies; to be called now and then. Raises StorageFault."""
        return self._do(lambda: tidy(self._book, self.rules), TIDYING)

    # --- the writing thread ------------------------------------------------------------------------------------------

    def _do(self, work: Callable[[], T], seconds: float = DEADLINE) -> T:
        try:
            return self._scribe.soon(work).result(seconds)
        except TimeoutError as error:
            raise _late() from error

    def _write(self, entry: Entry, thread: Thread) -> Kept:
        if entry.told is None:
            self._keeper.understand(entry, thread)
            with self._book.lock:
                self._unwritten.append(entry)
        kept = self._keeper.write(entry, thread)
        with self._book.lock:
            self._unwritten.remove(entry)
            self.version += 1
            self.heat.turn(heated(entry.turn, [*kept.units, *(u for u in entry.units if u.kind == "entity")]))
        return kept

    def _edit(self, id: int, text: str) -> Unit:
        with self._book.writing() as connection:
            before = next(iter(tables.units_by_id(connection, [id])), None)
            if before is None:
                raise Fault(f"there is no memory {id}", "see `parley memory show`")
            if not text:
                raise Fault("the text is empty", "write what is right, or forget it")
            turn = Turn(text, person=before.person, at=self._book.wall(), lived=self._book.lived(), by="edit")
            found = next((unit for unit in told(text, turn.at).units if unit.kind != "entity"), None)
            unit = found or replace(before, text=text, value="", slot="", attribute="")
            unit = replace(unit, importance=max(unit.importance, before.importance, LASTING))
            vectors = self._vectors([tables.words_of(unit)])
            code = packed(vectors[0]) if vectors else b""
            turn = replace(turn, id=tables.add_turn(connection, turn, ()))
            placed, new = self._keeper.place(connection, unit, code, turn)
            if placed.id != before.id:
                tables.end(connection, [before.id], turn.lived, placed.id)
        self._keeper.searched([(placed, code)] if new else [])
        return placed

    def _wiped(self, known: Sequence[Unit], about: str = "") -> None:
        with self._book.lock:
            subjects = [unit.subject for unit in known if unit.subject != ME]
            self.heat.forget([*(unit.value for unit in known), *subjects, about])
            self._thread.drop()
            self.version += 1
        self.forgotten()

    def _failing(self, fault: StorageFault | None) -> None:
        """The disk began to fail, or works again."""
        before, self._problem = self._problem, fault
        if fault:
            self._book.shut()
        if fault and not before:
            log("memory runs without a disk", level=logging.ERROR, message=fault.message, fix=fault.fix)
        elif before and not fault:
            log("memory is on the disk again", level=logging.WARNING)

    def _waiting(self) -> list[tuple[Unit, Vector | None]]:
        with self._book.lock:
            some: list[tuple[Unit, Vector | None]] = []
            for entry in self._unwritten:
                rows: Sequence[Vector | None] = entry.vectors or [None] * len(entry.units)
                unit_of = (replace(unit, born=entry.turn.lived, person=entry.turn.person) for unit in entry.units)
                some += zip(unit_of, rows, strict=True)
            return some

    def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        """Without a model, words alone find."""
        if self._embed is None or not texts:
            return []
        try:
            return list(self._embed([text[:2_000] for text in texts]))
        except Fault as fault:
            log("memory without meaning", level=logging.WARNING, message=fault.message, fix=fault.fix)
            self._embed = None
            return []


_UNIT = ("id", "text", "subject", "attribute", "value", "person", "importance", "turn", "used", "current")
_TURN = ("id", "conversation", "person", "asked", "said", "reason", "by", "intent", "deeds")


def _values(of: Unit | Turn, names: Sequence[str]) -> dict[str, object]:
    return {name: getattr(of, name) for name in names}


def clean(text: str) -> str:
    """Without what cannot be stored or shown: lone surrogates, NUL and other controls."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return whole if whole.isprintable() else "".join(c if c.isprintable() or c == "\n" else " " for c in whole)


def _late() -> StorageFault:
    return StorageFault("memory did not answer in time", "see whether the disk is busy, and try again")


__all__ = ["Curve", "Found", "Health", "Kept", "Memory", "MemoryRules", "Recollection", "Tidied"]
