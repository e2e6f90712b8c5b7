"""What the box remembers: turns as they were, and what they said that may matter again.

One thread writes (`scribe`); a turn is handed over when it is over, and is durable when its future is done. Nothing of
this is on the answering path. Where the disk fails, turns wait in memory, are found there, and are written when it
works again.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock
from typing import Literal, TypeVar

import numpy as np
import sqlite_utils
from numpy.typing import NDArray

from appliance.errors import Fault, StorageFault
from appliance.store import tables
from appliance.store.asked import Asked, asked, listed, said_back
from appliance.store.db import back_up, backup_of, open_database, open_to_read, writing
from appliance.store.decay import (
    DAY,
    LASTING,
    REMEMBERED,
    Curve,
    activation,
    elapsed,
    half_life,
    score,
)
from appliance.store.heat import HeatMap, Hot, Why
from appliance.store.index import Index, packed, unpacked
from appliance.store.knowenglish import DAYS, STOP
from appliance.store.knowwords import Stemmer, tokens
from appliance.store.tellwords import ID, TIME
from appliance.store.told import ME, Told, key, told
from appliance.store.units import Turn, Unit
from appliance.telemetry import log

T = TypeVar("T")
Embed = Callable[[Sequence[str]], NDArray[np.float32]]

LARGEST_TEXT = 1 << 20
"""Characters of what is kept of one turn's question, and of its answer."""
DEADLINE = 10.0
"""Seconds that a caller waits for what must be on the disk when it returns."""
CANDIDATES = 96
"""Units that are compared by meaning, and as many by words, for one question."""
TERMS = 12
"""Words of a question that are searched, the longest first."""
COMMON = 0.2
"""Share of units that hold a word from which on it says nothing where another one does."""
LEXICAL = 6.0
"""Rank of full-text search that stands for full relevance by words: a rare word or two."""
SURE = 0.42
"""Relevance from which a unit is an answer to a question that names no attribute."""
ROOM = 0.9
"""Share of the budget that is left in use after pruning."""


@dataclass(frozen=True, slots=True)
class MemoryRules:
    """`mode` keep: on the disk; session: in memory, as long as the process lives; off: nothing at all. `largest_bytes` is
    the byte budget, `keep_days` how long turns are kept word for word (0: until the budget forces it), `gap_s` the pause
    that begins a new conversation, `backup_s` how old a backup may be, `person` whose profile it is at first."""

    mode: Literal["keep", "session", "off"] = "keep"
    largest_bytes: int = 128 << 20
    keep_days: float = 0.0
    gap_s: float = 1_800.0
    backup_s: float = DAY
    person: str = ""
    curve: Curve = field(default_factory=Curve)
    retry_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Kept:
    """A turn that is on the disk, and what was kept of it: `units` that are new or were said again, `ended` those that
    do not hold any more."""

    turn: int
    units: tuple[Unit, ...] = ()
    ended: tuple[Unit, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    unit: Unit
    score: float
    relevance: float
    activation: float


@dataclass(frozen=True, slots=True)
class Recollection:
    """An answer out of memory, and the units that it rests on; none: it is that nothing is known."""

    text: str
    units: tuple[Unit, ...]


@dataclass(frozen=True, slots=True)
class Health:
    """`problem` says why turns stay in memory ("": they do not), `pending` how many do, `quarantined` under which name a
    damaged file lies."""

    problem: str = ""
    fix: str = ""
    pending: int = 0
    dropped: int = 0
    quarantined: str = ""

    @property
    def ok(self) -> bool:
        return not self.problem


@dataclass(frozen=True, slots=True)
class Tidied:
    """How many: units archived, summaries made, turns and units deleted; and the bytes in use."""

    archived: int = 0
    summaries: int = 0
    turns: int = 0
    units: int = 0
    bytes: int = 0
    backed_up: bool = False


@dataclass(slots=True, eq=False)
class _Entry:
    """A turn on its way to the disk."""

    turn: Turn
    cites: tuple[int, ...]
    told: Told | None = None
    vectors: list[NDArray[np.float32]] = field(default_factory=list)


class Memory:
    """All of it, in one file. Usable from any thread.

    `embed` gives a vector of length 1 per text (None: words alone find). `wall` and `steady` are clocks in seconds.
    `forgotten` is called after anything was deleted by the user's wish: whoever holds a copy drops it.
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
        from appliance.store.scribe import Scribe

        self.rules = rules or MemoryRules()
        self.path = folder / "memory.db"
        self.heat = HeatMap()
        self.forgotten = forgotten
        self._embed = embed
        self._wall, self._steady = wall, steady
        self._looked: tuple[float, float] = (wall(), steady())
        self._lived = 0.0
        self._lock = RLock()
        self._ram = self.rules.mode != "keep"
        self._database: sqlite_utils.Database | None = None
        self._reader: sqlite3.Connection | None = None
        self._index = Index()
        self._version = -1
        self._stem = Stemmer()
        self._unwritten: list[_Entry] = []
        self._problem: StorageFault | None = None
        self._quarantined = ""
        self._person = self.rules.person
        self._private = self.rules.mode == "off"
        self._conversation = 0
        self._last_turn = -math.inf
        self._about = ""
        self._last: Unit | None = None
        self._changes = 0
        self._scribe = Scribe("memory", self._failing, retry=self.rules.retry_s)
        try:
            self._open()
        except StorageFault as fault:
            self._failing(fault)

    # --- what the rest of the box sees -------------------------------------------------------------------------------

    @property
    def health(self) -> Health:
        problem = self._problem
        about = (problem.message, problem.fix) if problem else ("", "")
        return Health(*about, self._scribe.pending, self._scribe.dropped, self._quarantined)

    @property
    def person(self) -> str:
        """Whose profile is remembered and asked; "" is everybody's."""
        return self._person

    @person.setter
    def person(self, name: str) -> None:
        with self._lock:
            self._person, self._about, self._last = _clean(name).strip().lower()[:80], "", None
            self._last_turn = -math.inf
            self.heat.clear()

    @property
    def private(self) -> bool:
        """Nothing is kept while this is set."""
        return self._private

    @private.setter
    def private(self, on: bool) -> None:
        with self._lock:
            self._private = on or self.rules.mode == "off"
            self._about, self._last = "", None
            if on:
                self.heat.clear()

    def keep(self, turn: Turn, *, cites: Sequence[int] = ()) -> Future[Kept]:
        """Hands a turn over; it is durable when the future is done. Raises nothing: what the disk refuses waits."""
        if self._private:
            done: Future[Kept] = Future()
            done.set_result(Kept(0))
            return done
        with self._lock:
            lived = self._now()
            if lived - self._last_turn > self.rules.gap_s:
                self._conversation = 0
            self._last_turn = lived
            whole = replace(
                turn,
                asked=_clean(turn.asked)[:LARGEST_TEXT],
                said=_clean(turn.said)[:LARGEST_TEXT],
                person=turn.person or self._person,
                at=turn.at if turn.at.timestamp() else tables.moment(self._wall()),
                lived=lived,
            )
        entry = _Entry(whole, tuple(cites))
        return self._scribe.surely(lambda: self._write(entry))

    def flush(self, seconds: float = DEADLINE) -> bool:
        """Waits until everything that was handed over is durable."""
        return self._scribe.flush(seconds)

    def close(self) -> None:
        self._scribe.close()
        with self._lock:
            self._shut()

    # --- finding -----------------------------------------------------------------------------------------------------

    def find(self, text: str, *, limit: int = 10, past: bool = False) -> list[Found]:
        """What was said that has to do with the text, by relevance and how present it is; best first. `past`: what holds no
        longer too. Without a disk, what is in memory."""
        text = _clean(text)[:4_000]
        wanted = self._vectors([text])
        now = self._now()
        found: list[Found] = []
        for unit, relevance in self._candidates(text, wanted[0] if wanted else None):
            if unit.person not in ("", self._person) or (unit.ended is not None and not past):
                continue
            times = unit.uses or (unit.born,)
            half = half_life(unit.kind, unit.importance)
            active = activation(times, unit.used, now, half, self.rules.curve.power)
            value = score(relevance, active, unit.importance, self.rules.curve)
            found.append(Found(unit, value * (0.7 if unit.archived else 1.0), relevance, active))
        found.sort(key=lambda one: (-one.score, -one.unit.born, -one.unit.id))
        return found[:limit]

    def answer(self, text: str) -> Recollection | None:
        """A question about what the user has told, answered with the user's own words. None: no such question, or
        nothing is known of it."""
        wanted = asked(_clean(text)[:1_000])
        if wanted is None:
            return None
        if wanted.about:
            return self._all_about(wanted.about)
        known = self._known(wanted)
        if not known:
            return self._nearest(text, wanted)
        if wanted.item:
            return self._whether(wanted, known)
        latest = sorted(known, key=lambda unit: (-unit.born, -unit.id))
        chosen = latest[:6] if wanted.many or not wanted.attributes else latest[:1]
        return Recollection(_told_back(chosen), tuple(chosen))

    def _known(self, wanted: Asked) -> list[Unit]:
        """The units of whom or what is asked about, with an attribute that answers: the first kind that there is."""
        with self._lock:
            reader = self._read()
            rows: list[Unit] = []
            if wanted.owner and reader:
                subject = key(wanted.owner)
                names = [
                    unit.subject
                    for unit in tables.units(
                        reader, "attribute = 'name' and lower(value) = ? and ended is null", [subject]
                    )
                ]
                marks = ", ".join("?" * (len(names) + 1))
                where = f"ended is null and kind != 'entity' and (subject in ({marks}) or subject like ?)"
                rows = tables.units(reader, where, [subject, *names, f"{subject} %"])
            elif reader:
                rows = tables.units(reader, "ended is null and kind = 'task' and slot != ''")
            rows += [unit for unit in self._waiting() if key(unit.subject) == key(wanted.owner)]
        rows = [unit for unit in rows if unit.person in ("", self._person)]
        if not wanted.attributes:
            return [unit for unit in rows if unit.attribute]
        for attribute in wanted.attributes:
            if attribute == "decision" and wanted.item:
                return [unit for unit in rows if unit.attribute == attribute and self._shares(wanted.item, unit.text)]
            if wanted.item and attribute in ("likes", "dislikes", "has", "allergy", "trait"):
                matching = [
                    unit
                    for unit in rows
                    if unit.attribute in wanted.attributes and self._shares(wanted.item, unit.value)
                ]
                return matching or [unit for unit in rows if unit.attribute == "allergy" and attribute == "allergy"]
            if some := [unit for unit in rows if unit.attribute == attribute]:
                return some
        return []

    def _whether(self, wanted: Asked, known: Sequence[Unit]) -> Recollection | None:
        """Yes or no, where that was said."""
        latest = max(known, key=lambda unit: (unit.born, unit.id))
        if latest.attribute == "allergy" and not self._shares(wanted.item, latest.value):
            return Recollection(f"Not that I know of. {_told_back(known)}", tuple(known))
        if latest.attribute == "decision":
            return Recollection(_told_back(known), tuple(known))
        denied = latest.value.startswith("not ") or (latest.attribute != wanted.attributes[0])
        return Recollection(f"{'No' if denied else 'Yes'}. {said_back(latest.text)}", (latest,))

    def _all_about(self, about: str) -> Recollection | None:
        subject = key(about)
        if subject in (ME, "myself", "i"):
            units = [unit for unit in self.units() if unit.kind not in ("entity", "summary", "emotion")]
            units.sort(key=lambda unit: (-unit.importance, -unit.born))
        else:
            found = [
                one for one in self.find(about, limit=8) if one.relevance >= SURE or self._shares(about, one.unit.text)
            ]
            units = [one.unit for one in found]
        return Recollection(_told_back(units[:6]), tuple(units[:6])) if units else None

    def _nearest(self, text: str, wanted: Asked) -> Recollection | None:
        """Where the words of the question stand in something that was said, and it holds what is asked for."""
        about = wanted.item or wanted.owner
        if wanted.owner == ME and wanted.attributes and not wanted.item:
            about = wanted.attributes[0]
        for one in self.find(text, limit=3):
            fits = one.relevance >= SURE and self._shares(about, one.unit.text)
            if fits and (not {"time", "birthday"} & set(wanted.attributes) or TIME.search(one.unit.text)):
                return Recollection(_told_back([one.unit]), (one.unit,))
        return None

    def _shares(self, some: str, text: str) -> bool:
        """Whether all telling words of one stand in the other."""
        wanted = {self._stem(word) for word in tokens(some) if word not in STOP}
        return bool(wanted) and wanted <= {self._stem(word) for word in tokens(text)}

    def _candidates(self, text: str, vector: NDArray[np.float32] | None) -> Iterator[tuple[Unit, float]]:
        with self._lock:
            reader = self._read()
            near = self._index.near(vector, CANDIDATES) if vector is not None else []
            ranks = self._ranked(reader, text) if reader else {}
            ids = list({*near, *ranks})
            units = tables.units_by_id(reader, ids) if reader else []
            codes = tables.codes(reader, ids) if reader and vector is not None else {}
            waiting = [
                (unit, row)
                for entry in self._unwritten
                for unit, row in zip(_units(entry), entry.vectors or [None] * 99, strict=False)
            ]
        order = list(codes)
        cosines = (
            dict(zip(order, unpacked([codes[id] for id in order]) @ vector, strict=True))
            if order and vector is not None
            else {}
        )
        best = max(ranks.values(), default=0.0)
        for unit in units:
            if unit.kind != "entity":
                yield unit, _relevance(cosines.get(unit.id), ranks.get(unit.id, 0.0) / max(best, LEXICAL), vector)
        for unit, row in waiting:
            if unit.kind != "entity":
                near_by = float(row @ vector) if row is not None and vector is not None else None
                yield unit, _relevance(near_by, 1.0 if self._overlap(text, unit.text) else 0.0, vector)

    def _overlap(self, text: str, other: str) -> bool:
        return bool(
            {self._stem(word) for word in tokens(text) if word not in STOP}
            & {self._stem(word) for word in tokens(other)}
        )

    def _ranked(self, reader: sqlite3.Connection, text: str) -> dict[int, float]:
        """By full-text search: the better, the higher."""
        words = sorted(
            {word for word in tokens(text) if word not in STOP and len(word) > 1}, key=lambda word: (-len(word), word)
        )
        if not words:
            return {}
        query = " OR ".join(f'"{word}"' for word in words[:TERMS])
        sql = "select rowid, -rank from word where word match ? order by rank limit ?"
        return {int(id): float(rank) for id, rank in reader.execute(sql, (query, CANDIDATES))}

    # --- looking, changing, forgetting -------------------------------------------------------------------------------

    def units(self, *, past: bool = False) -> list[Unit]:
        """Of this person and of everybody, oldest first; `past`: what holds no longer too."""
        with self._lock:
            reader = self._read()
            where = "person in ('', ?) and kind != 'entity'" + ("" if past else " and ended is null")
            known = tables.units(reader, f"{where} order by id", [self._person]) if reader else []
            return known + [unit for unit in self._waiting() if unit.kind != "entity"]

    def unit(self, id: int) -> Unit | None:
        with self._lock:
            reader = self._read()
            return next(iter(tables.units_by_id(reader, [id])), None) if reader else None

    def turns(self, *, limit: int = 50, conversation: int | None = None) -> list[Turn]:
        """The latest, oldest first."""
        with self._lock:
            reader = self._read()
            where, values = ("person in ('', ?)", [self._person])
            if conversation is not None:
                where, values = f"{where} and conversation = {int(conversation)}", values
            known = tables.turns(reader, where, values, limit=limit, latest=True) if reader else []
            return (known + [entry.turn for entry in self._unwritten])[-limit:]

    def resume(self) -> list[Turn]:
        """The turns of a conversation that may still be going on, oldest first."""
        with self._lock:
            latest = self.turns(limit=1)
            if not latest or self._now() - latest[0].lived > self.rules.gap_s:
                return []
            self._conversation, self._last_turn = latest[0].conversation, latest[0].lived
            return self.turns(limit=200, conversation=latest[0].conversation)

    def resident(self, limit: int = 24) -> list[Unit]:
        """What an answer should always know: important, present, first the most lasting; stable from turn to turn."""
        now = self._now()
        known = [
            unit for unit in self.units() if unit.kind in ("fact", "preference", "task", "decision") and unit.attribute
        ]

        def place(unit: Unit) -> tuple[float, float]:
            active = activation(unit.uses or (unit.born,), unit.used, now, half_life(unit.kind, unit.importance))
            return (-round(unit.importance + active, 1), unit.born)

        return sorted(known, key=place)[:limit]

    def used(self, ids: Iterable[int]) -> None:
        """These were answered with: they come to mind more readily for it."""
        wanted = list(ids)
        if wanted and not self._private:
            self._scribe.soon(lambda: self._reinforce(wanted))

    def forget(self, ids: Iterable[int], why: str = "asked to") -> int:
        """Deletes units, the turns that they come from or that repeat them, and every trace in index, log and backup; how
        many units. Raises StorageFault."""
        wanted = list(ids)
        return self._do(lambda: self._forget(wanted, why))

    def forget_about(self, text: str) -> int:
        """Everything that holds these words, or is about them; how many units and turns. Raises StorageFault."""
        return self._do(lambda: self._forget_about(_clean(text)))

    def forget_everything(self) -> int:
        """All of this person's, and what is everybody's; how many units and turns. Raises StorageFault."""
        return self._do(self._forget_all)

    def forget_last(self) -> int:
        """What was last told: the latest turn that left units. Raises StorageFault."""
        with self._lock:
            latest = next((turn for turn in reversed(self.turns(limit=8)) if self._units_of(turn.id)), None)
        if latest is None:
            return 0
        return self.forget([unit.id for unit in self._units_of(latest.id)])

    def edit(self, id: int, text: str) -> Unit:
        """Puts the user's correction in a unit's place. Raises StorageFault; Fault when there is no such unit, or the text
        says nothing."""
        return self._do(lambda: self._edit(id, _clean(text).strip()))

    def export(self) -> Iterator[dict[str, object]]:
        """Every unit and turn of this person, as JSON values."""
        for unit in self.units(past=True):
            yield {
                "type": unit.kind,
                **{
                    name: getattr(unit, name)
                    for name in ("id", "text", "subject", "attribute", "value", "person", "importance", "turn", "used")
                },
                "said": unit.said.isoformat(),
                "current": unit.current,
            }
        for turn in self.turns(limit=1_000_000):
            names = ("id", "conversation", "person", "asked", "said", "reason", "by", "intent")
            yield {"type": "turn", **{name: getattr(turn, name) for name in names}, "at": turn.at.isoformat()}

    def gone(self) -> list[dict[str, object]]:
        """What was deleted, when and why."""
        with self._lock:
            reader = self._read()
            rows = reader.execute("select at, what, count, why from gone order by id") if reader else ()
            return [
                {"at": tables.moment(at).isoformat(), "what": what, "count": count, "why": why}
                for at, what, count, why in rows
            ]

    def tidy(self) -> Tidied:
        """Archives, sums up, keeps to the budget, copies. To be called now and then. Raises StorageFault."""
        from appliance.store.tidy import tidy

        return self._do(lambda: tidy(self), 120.0)

    def remember(self, text: str) -> Kept:
        """What the user asked to remember, durable when this returns. Raises StorageFault."""
        return self.keep(Turn(f"Remember that {text}", by="skill")).result(DEADLINE)

    # --- the writing thread ------------------------------------------------------------------------------------------

    def transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        """In the writing thread only. Raises StorageFault."""
        if self._database is None:
            self._open()
        assert self._database is not None
        return writing(self._database)

    def _do(self, work: Callable[[], T], seconds: float = DEADLINE) -> T:
        try:
            return self._scribe.soon(work).result(seconds)
        except TimeoutError as error:
            raise StorageFault(
                "memory did not answer in time", "see whether the disk is busy, and try again"
            ) from error

    def _failing(self, fault: StorageFault | None) -> None:
        """The disk began to fail, or works again."""
        before, self._problem = self._problem, fault
        if fault and not before:
            log("memory runs without a disk", level=logging.ERROR, message=fault.message, fix=fault.fix)
        elif before and not fault:
            log("memory is on the disk again", level=logging.WARNING)
        if fault:
            # A page whose write failed may look clean to the system: only a new connection knows what is on the disk.
            with self._lock:
                self._shut()

    def _write(self, entry: _Entry) -> Kept:
        if entry.told is None:
            entry.told = self._understood(entry.turn)
            entry.vectors = self._vectors([tables.words_of(unit) for unit in _units(entry)])
            with self._lock:
                self._unwritten.append(entry)
        turn, about = entry.turn, entry.told
        codes = [packed(vector) for vector in entry.vectors] or [b""] * len(about.units)
        with self._guard(), self.transaction() as connection:
            conversation = self._conversation or self._next_conversation(connection)
            turn = replace(turn, conversation=conversation)
            turn = replace(turn, id=tables.add_turn(connection, turn, entry.cites))
            kept = [self._place(connection, unit, code, turn) for unit, code in zip(about.units, codes, strict=True)]
            ended = self._end(connection, about, turn)
            self._reinforced(connection, entry.cites, turn.lived)
            self._save_clock(connection)
        new = [(unit, code) for (unit, fresh), code in zip(kept, codes, strict=True) if fresh]
        with self._lock:
            self._conversation = conversation
            self._index.add([unit.id for unit, code in new if code], [code for _, code in new if code])
            self._unwritten.remove(entry)
            self._changes += 1
            self.heat.turn(_hot(turn, [unit for unit, _ in kept]))
            self._about = about.about or self._about
            self._last = next((unit for unit, _ in reversed(kept) if unit.slot and unit.kind != "entity"), self._last)
        return Kept(turn.id, tuple(unit for unit, _ in kept if unit.kind != "entity"), tuple(ended))

    def _understood(self, turn: Turn) -> Told:
        """Units of a turn. What a skill took was a command, and tells no more than what it is about."""
        skill = turn.intent.partition(".")[0]
        entities = tuple(_entities(turn))
        if turn.by == "skill" and skill not in ("", "dialogue", "memory"):
            return Told(units=entities)
        found = told(turn.asked, turn.at, about=self._about, last=self._last)
        return replace(found, units=(*found.units, *entities))

    def _place(self, connection: sqlite3.Connection, unit: Unit, code: bytes, turn: Turn) -> tuple[Unit, bool]:
        """Adds a unit, or finds that it is known; what it contradicts has been valid until now. And whether it is new."""
        where = "person = ? and ended is null and " + (
            "slot = ?" if unit.slot else "slot = '' and text = ? collate nocase"
        )
        before = tables.units(connection, where, [turn.person, unit.slot or unit.text])
        for known in before:
            if (known.attribute, key(known.value)) == (unit.attribute, key(unit.value)):
                uses, used = _one_more(known, turn.lived)
                tables.set_uses(connection, known.id, uses, used)
                return replace(known, uses=uses, used=used), False
        whole = replace(
            unit, person=turn.person, turn=turn.id, said=turn.at, born=turn.lived, uses=(turn.lived,), used=1, id=0
        )
        whole = replace(whole, id=tables.add_unit(connection, whole, code))
        tables.end(connection, [known.id for known in before], turn.lived, whole.id)
        return whole, True

    def _end(self, connection: sqlite3.Connection, about: Told, turn: Turn) -> list[Unit]:
        """What the turn says does not hold any more."""
        ended: list[Unit] = []
        for slot in about.ends:
            name, _, value = slot.partition("=")
            some = tables.units(connection, "person = ? and ended is null and slot = ?", [turn.person, name])
            ended += [unit for unit in some if not value or key(unit.value) == value]
        if about.done:
            tasks = tables.units(connection, "person = ? and ended is null and kind = 'task'", [turn.person])
            ended += [
                task for task in tasks if task.turn != turn.id and any(self._did(done, task) for done in about.done)
            ]
        tables.end(connection, [unit.id for unit in ended], turn.lived, 0)
        return ended

    def _did(self, done: str, task: Unit) -> bool:
        did, wanted = (
            {
                self._stem(_BASE.get(word, word))
                for word in tokens(text)
                if word not in STOP and word not in DAYS and not word.isdigit()
            }
            - _WHEN
            for text in (done, task.value)
        )
        shared = len(did & wanted)
        return bool(shared) and shared >= math.ceil(0.6 * len(wanted)) and shared >= min(2, len(wanted))

    def _reinforce(self, ids: Sequence[int]) -> None:
        with self._guard(), self.transaction() as connection:
            self._reinforced(connection, ids, self._now())

    def _reinforced(self, connection: sqlite3.Connection, ids: Sequence[int], at: float) -> None:
        for unit in tables.units_by_id(connection, list(ids)):
            tables.set_uses(connection, unit.id, *_one_more(unit, at))

    def _edit(self, id: int, text: str) -> Unit:
        with self._guard(), self.transaction() as connection:
            before = next(iter(tables.units_by_id(connection, [id])), None)
            if before is None:
                raise Fault(f"there is no memory {id}", "see `parley memory show`")
            if not text:
                raise Fault("the text is empty", "write what is right, or forget it")
            turn = Turn(text, person=before.person, at=tables.moment(self._wall()), lived=self._now(), by="edit")
            found = next((unit for unit in told(text, turn.at).units if unit.kind != "entity"), None)
            unit = found or replace(before, text=text, value="", slot="", attribute="")
            unit = replace(unit, importance=max(unit.importance, before.importance, LASTING))
            vectors = self._vectors([tables.words_of(unit)])
            code = packed(vectors[0]) if vectors else b""
            turn = replace(turn, id=tables.add_turn(connection, replace(turn, conversation=self._conversation), ()))
            placed, _ = self._place(connection, unit, code, turn)
            if placed.id != before.id:
                tables.end(connection, [before.id], turn.lived, placed.id)
            self._save_clock(connection)
        with self._lock:
            if code:
                self._index.add([placed.id], [code])
        self.forgotten()
        return placed

    def _forget(self, ids: Sequence[int], why: str) -> int:
        with self._guard(), self.transaction() as connection:
            known = tables.units_by_id(connection, ids)
            turns = {unit.turn for unit in known if unit.turn}
            for unit in known:
                turns |= self._repeating(connection, unit)
            self._erase(connection, [unit.id for unit in known], sorted(turns), why)
        self._wiped(known)
        return len(known)

    def _repeating(self, connection: sqlite3.Connection, unit: Unit) -> set[int]:
        """Turns in which a unit was answered with, or its words stand again."""
        sql = "select id from turn where exists (select 1 from json_each(cites) where value = ?)"
        found = {row[0] for row in connection.execute(sql, [unit.id])}
        said = [unit.text, *([unit.value] if _specific(unit.value) else [])]
        for text in said:
            sql = "select id from turn where instr(lower(asked), ?) or instr(lower(said), ?)"
            found |= {row[0] for row in connection.execute(sql, [text.lower(), text.lower()])}
        return found

    def _forget_about(self, text: str) -> int:
        with self._guard(), self.transaction() as connection:
            whose = [self._person]
            known = [
                unit
                for unit in tables.units(connection, "person in ('', ?)", whose)
                if self._shares(text, tables.words_of(unit))
            ]
            turns = {unit.turn for unit in known if unit.turn}
            for unit in known:
                turns |= self._repeating(connection, unit)
            said = tables.turns(connection, "person in ('', ?)", whose)
            turns |= {turn.id for turn in said if self._shares(text, turn.asked) or self._shares(text, turn.said)}
            self._erase(connection, [unit.id for unit in known], sorted(turns), "asked to, by what it is about")
        self._wiped(known, text)
        return len(known) + len(turns)

    def _forget_all(self) -> int:
        with self._guard(), self.transaction() as connection:
            known = tables.units(connection, "person in ('', ?)", [self._person])
            turns = [turn.id for turn in tables.turns(connection, "person in ('', ?)", [self._person])]
            self._erase(connection, [unit.id for unit in known], turns, "asked to forget everything")
        with self._lock:
            self.heat.clear()
        self._wiped(known)
        return len(known) + len(turns)

    def _erase(self, connection: sqlite3.Connection, ids: Sequence[int], turns: Sequence[int], why: str) -> None:
        summaries: set[int] = set()
        for turn in turns:
            summaries |= {row[0] for row in connection.execute("select summary from link where turn = ?", [turn])}
        others = [
            row[0]
            for turn in turns
            for row in connection.execute("select id from unit where turn = ? and kind = 'entity'", [turn])
        ]
        tables.delete_units(connection, [*ids, *summaries, *others])
        tables.delete_turns(connection, turns)
        at = tables.moment(self._wall())
        tables.note_gone(connection, at, "units", len({*ids, *summaries, *others}), why)
        tables.note_gone(connection, at, "turns", len(turns), why)
        with self._lock:
            self._index.drop([*ids, *summaries, *others])

    def _wiped(self, known: Sequence[Unit], about: str = "") -> None:
        """After a deletion: the words leave the full-text index, the log, the last backup, and every copy in memory."""
        with self._lock:
            self.heat.forget(
                [*(unit.value for unit in known), *(unit.subject for unit in known if unit.subject != ME), about]
            )
            self._about, self._last = "", None
        self.scrub()
        self.forgotten()

    def scrub(self) -> None:
        """Makes what was deleted unreadable in every file. In the writing thread only."""
        with self._guard(), self.transaction() as connection:
            connection.execute("insert into word (word) values ('optimize')")
        if self._ram:
            return
        with self._lock:
            self._close_reader()
            connection = self._connection()
            try:
                connection.execute("pragma wal_checkpoint(truncate)")
                connection.execute("pragma incremental_vacuum")
                connection.execute("pragma wal_checkpoint(truncate)")
                if backup_of(self.path).exists():
                    back_up(connection, self.path)
            except sqlite3.Error as error:
                raise StorageFault(
                    f"{self.path} cannot be cleaned: {error}", "free space on the disk, and forget again"
                ) from error

    def back_up(self) -> None:
        """In the writing thread only. Raises StorageFault."""
        back_up(self._connection(), self.path)

    def changed(self) -> int:
        """Turns written since the last call."""
        changes, self._changes = self._changes, 0
        return changes

    # --- opening and clocks ------------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Raises StorageFault."""
        if self._ram:
            database = sqlite_utils.Database(sqlite3.connect(":memory:", check_same_thread=False))
            for step in tables.STEPS:
                database.conn.executescript(step)
        else:
            database = open_database(self.path, tables.STEPS, saved=self._saved)
        try:
            state = tables.read_state(database.conn)
            wall, lived = float(state.get("wall", self._wall())), float(state.get("lived", 0.0))
            with self._lock:
                self._database = database
                self._lived = max(self._lived, lived + elapsed(self._looked[0] - wall, None))
                self._load(database.conn)
        except (sqlite3.Error, ValueError, TypeError) as error:
            database.close()
            self._database = None
            raise StorageFault(f"{self.path} cannot be read: {error}", "move the file away") from error

    def _load(self, connection: sqlite3.Connection) -> None:
        self._index = Index()
        rows = connection.execute("select unit, code from vector join unit on unit.id = vector.unit where not archived")
        while part := rows.fetchmany(4_096):
            self._index.add([row[0] for row in part], [row[1] for row in part])
        self._version = self._data_version()

    def _saved(self, damaged: Path) -> None:
        self._quarantined = str(damaged)

    def _connection(self) -> sqlite3.Connection:
        if self._database is None:
            self._open()
        assert self._database is not None
        return self._database.conn

    def _guard(self) -> AbstractContextManager[object]:
        """A database in memory has one connection for all."""
        return self._lock if self._ram else nullcontext()

    def _read(self) -> sqlite3.Connection | None:
        """The connection for reading; None without a disk. Holds the lock."""
        if self._database is None:
            return None
        if self._ram:
            return self._database.conn
        try:
            if self._reader is None:
                self._reader = open_to_read(self.path)
            if (version := self._data_version()) != self._version:
                self._version = version
                self._refresh()
            return self._reader
        except (StorageFault, sqlite3.Error):
            self._close_reader()
            return None

    def _refresh(self) -> None:
        """Another process may have written, too: the command line edits and forgets."""
        assert self._reader is not None
        sql = (
            "select count(*), coalesce(max(unit), 0) from vector join unit on unit.id = vector.unit where not archived"
        )
        count, _ = self._reader.execute(sql).fetchone()
        if count != len(self._index):
            self._load(self._reader)

    def _data_version(self) -> int:
        return int(self._reader.execute("pragma data_version").fetchone()[0]) if self._reader else -1

    def _close_reader(self) -> None:
        if self._reader:
            self._reader.close()
        self._reader, self._version = None, -1

    def _shut(self) -> None:
        self._close_reader()
        if self._database is not None and not self._ram:
            self._database.close()
            self._database = None

    def _now(self) -> float:
        """Seconds that the box has lived."""
        with self._lock:
            wall, steady = self._wall(), self._steady()
            self._lived += elapsed(wall - self._looked[0], steady - self._looked[1])
            self._looked = wall, steady
            return self._lived

    def _save_clock(self, connection: sqlite3.Connection) -> None:
        tables.write_state(connection, wall=self._looked[0], lived=self._lived)

    def _next_conversation(self, connection: sqlite3.Connection) -> int:
        return int(connection.execute("select coalesce(max(conversation), 0) + 1 from turn").fetchone()[0])

    def _waiting(self) -> list[Unit]:
        return [unit for entry in self._unwritten for unit in _units(entry)]

    def _units_of(self, turn: int) -> list[Unit]:
        with self._lock:
            reader = self._read()
            return tables.units(reader, "turn = ? and kind != 'entity'", [turn]) if reader and turn else []

    def _vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Without a model, words alone find."""
        if self._embed is None or not texts:
            return []
        try:
            return list(self._embed([text[:2_000] for text in texts]))
        except Fault as fault:
            log("memory without meaning", level=logging.WARNING, message=fault.message)
            self._embed = None
            return []


# --- pieces ------------------------------------------------------------------------------------------------------

_BASE = {
    "bought": "buy", "paid": "pay", "sent": "send", "wrote": "write", "written": "write", "got": "get", "took": "take",
    "taken": "take", "made": "make", "found": "find", "sold": "sell", "met": "meet", "told": "tell", "brought": "bring",
    "built": "build", "spoke": "speak", "went": "go", "gone": "go", "did": "do", "done": "do", "saw": "see", "seen": "see",
    "read": "read", "chose": "choose", "chosen": "choose", "ran": "run", "gave": "give", "left": "leave", "swept": "sweep",
    "taught": "teach", "fed": "feed", "picked": "pick",
}  # fmt: skip
_WHEN = frozenset(("tomorrow", "todai", "tonight", "yesterdai", "decemb", "novemb", "januari"))


def _clean(text: str) -> str:
    """Without what cannot be stored or shown: lone surrogates, NUL and other controls."""
    text = text.encode("utf-8", "replace").decode("utf-8", "replace")
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)


def _units(entry: _Entry) -> tuple[Unit, ...]:
    return entry.told.units if entry.told else ()


def _relevance(cosine: float | None, lexical: float, vector: NDArray[np.float32] | None) -> float:
    """[0, 1], of meaning and words alike; by words alone where there is no model."""
    if vector is None:
        return min(1.0, lexical)
    return 0.5 * max(0.0, cosine or 0.0) + 0.5 * min(1.0, lexical)


def _one_more(unit: Unit, at: float) -> tuple[tuple[float, ...], int]:
    return (*(unit.uses or (unit.born,)), at)[-REMEMBERED:], max(unit.used, 1) + 1


def _told_back(units: Sequence[Unit]) -> str:
    if units and all(unit.kind == "task" and unit.subject == ME for unit in units):
        return f"You wanted to {listed([said_back(unit.value).rstrip('.').lower() for unit in units])}."
    return " ".join(dict.fromkeys(said_back(unit.text) for unit in units))


def _specific(value: str) -> bool:
    """Whether a value is rare enough that its mention elsewhere is the same thing."""
    return len(value) >= 4 and (any(c.isdigit() or c.isupper() for c in value) or len(value) >= 8)


def _entities(turn: Turn) -> Iterator[Unit]:
    """The intent snapshot: what the turn's command was about."""
    for name, value in turn.slots.items():
        if isinstance(value, str) and 2 <= len(value) <= 60 and not value.isdigit():
            yield Unit("entity", value, "", name, value, f"entity|{key(value)}", importance=0.3)


def _hot(turn: Turn, units: Sequence[Unit]) -> list[Hot]:
    """What a turn heats."""
    found: dict[str, Hot] = {}

    def heat(word: str, by: float, why: Why, *, critical: bool = False) -> None:
        if word and word.lower() != ME and len(word) <= 60:
            found[word.lower()] = Hot(word, by, why, critical)

    for unit in units:
        named = unit.attribute.endswith("name") or any(c.isupper() for c in unit.value[1:2] + unit.value[:1])
        number = bool(ID.search(unit.value)) or unit.value[:1].isdigit()
        why: Why = (
            "number" if number else "emotion" if unit.kind == "emotion" else "task" if unit.kind == "task" else "entity"
        )
        heat(unit.value, 0.4 + 0.5 * unit.importance, why, critical=named or number)
        heat(unit.subject, 0.4, why)
    for word in turn.asked.split()[1:]:
        word = word.strip(".,!?;:\"'")
        if ID.fullmatch(word):
            heat(word, 0.8, "number", critical=True)
        elif word[:1].isupper() and word.lower() not in STOP and len(word) > 1 and word.lower() not in found:
            heat(word, 0.5, "entity", critical=True)
    return list(found.values())


__all__ = ["DAY", "Found", "Health", "Kept", "Memory", "MemoryRules", "Recollection", "Tidied", "closing"]
