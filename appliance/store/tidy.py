"""Maintenance: what is not needed any more is archived, summed up, and, only where the budget or the user asks for it,
deleted; each deletion with its reason. Runs in the writing thread, in short transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from appliance.store import tables
from appliance.store.book import Book
from appliance.store.decay import DAY, LASTING, TIMES_TO_LIVE, worth
from appliance.store.index import COARSE
from appliance.store.units import Turn, Unit

OLD = 7 * DAY
"""Lived seconds after which a conversation is summed up."""
AT_ONCE = 200
"""Conversations that are summed up in one go, at most."""
SENTENCES = 6
"""Of a summary."""
ROOM = 0.95
"""Share of the budget that is in use after pruning."""
VERBATIM, COARSENED, PAST = 0.01, 0.02, 0.3
"""Of a unit's worth: the words of the turn that it is from; its exact vector; a unit that holds no longer."""
SMALL_TALK = 0.05
"""Worth of a turn that told nothing."""


class Budget(Protocol):
    """What of the rules of memory it needs."""

    @property
    def largest_bytes(self) -> int: ...
    @property
    def keep_days(self) -> float: ...
    @property
    def backup_s(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Tidied:
    """How many: units archived, summaries made, turns and units deleted; and the bytes in use."""

    archived: int = 0
    summaries: int = 0
    turns: int = 0
    units: int = 0
    bytes: int = 0
    backed_up: bool = False


def tidy(book: Book, budget: Budget) -> Tidied:
    """Raises StorageFault."""
    now = book.lived()
    archived = _archive(book, now)
    summaries = _consolidate(book, now)
    retired = _retire(book, now, budget.keep_days)
    turns, units = _prune(book, now, budget.largest_bytes)
    if retired or turns or units:
        book.scrub()
    copied = _back_up(book, now, budget.backup_s)
    with book.guard():
        size = tables.used_bytes(book.connection())
    return Tidied(archived, summaries, retired + turns, units, size, copied)


def _archive(book: Book, now: float) -> int:
    """What has outlived its kind, was used once, and matters little, is found by its words only."""
    gone: list[int] = []
    with book.writing() as connection:
        for kind, limit in TIMES_TO_LIVE.items():
            where = "kind = ? and not archived and used <= 1 and importance < ? and born < ?"
            gone += [unit.id for unit in tables.units(connection, where, [kind, LASTING, now - limit])]
        connection.executemany("update unit set archived = 1 where id = ?", [(id,) for id in gone])
    book.index.drop(gone)
    return len(gone)


# --- summaries ---------------------------------------------------------------------------------------------------


def _consolidate(book: Book, now: float) -> int:
    """Old conversations become a summary each, with links to their turns. It is put together from what was said, not
    written by a model: the one on this box left out names and made up numbers (FINDINGS L 6)."""
    with book.guard():
        connection = book.connection()
        where = "lived < ? and conversation > 0 and not exists (select 1 from link where link.turn = turn.id)"
        waiting = tables.turns(connection, where, [now - OLD], limit=AT_ONCE * 40)
    made = 0
    for _, some in groupby(waiting, key=lambda turn: (turn.conversation, turn.person)):
        turns = list(some)
        with book.writing() as connection:
            made += _sum_up(connection, turns)
    return made


def _sum_up(connection: sqlite3.Connection, turns: Sequence[Turn]) -> int:
    ids = [turn.id for turn in turns]
    marks = ", ".join("?" * len(ids[: tables.MANY]))
    units = tables.units(connection, f"turn in ({marks}) and kind not in ('entity', 'summary')", ids[: tables.MANY])
    best = sorted(units, key=lambda unit: (-unit.importance, -unit.used, unit.id))[:SENTENCES]
    text = " ".join(f"{unit.text.rstrip('.')}." for unit in sorted(best, key=lambda unit: unit.id))
    id = 0
    if len(best) > 1:
        day = turns[0].at.strftime("%d %B %Y").lstrip("0")
        importance = max(unit.importance for unit in best) * 0.5
        unit = Unit(
            *("summary", f"On {day}: {text}"),
            person=turns[0].person,
            importance=importance,
            said=turns[-1].at,
            born=turns[-1].lived,
            uses=(turns[-1].lived,),
            used=1,
        )
        id = tables.add_unit(connection, unit, b"")
    connection.executemany("insert or ignore into link values (?, ?)", [(id, turn) for turn in ids])
    return int(id > 0)


# --- deleting ----------------------------------------------------------------------------------------------------


def _retire(book: Book, now: float, days: float) -> int:
    """Turns older than the user wants them kept."""
    if not days:
        return 0
    with book.writing() as connection:
        old = [turn.id for turn in tables.turns(connection, "lived < ?", [now - days * DAY], limit=5_000)]
        tables.delete_turns(connection, old)
        tables.note_gone(connection, book.wall(), "turns", len(old), f"kept for {days:g} days")
    return len(old)


def _prune(book: Book, now: float, largest: int) -> tuple[int, int]:
    """What costs least goes first, until the rest keeps to the budget: how many turns and units were deleted.

    A turn's own words go before what was taken out of them, and a unit's exact vector, of which its signs stay, before
    the unit."""
    turns, units, target = 0, 0, ROOM * largest
    while _used(book) > largest and target > 0.5 * largest:
        more = _prune_to(book, now, target)
        turns, units = turns + more[0], units + more[1]
        book.compact()
        target *= 0.95
    return turns, units


def _used(book: Book) -> int:
    with book.guard():
        return tables.used_bytes(book.connection())


def _prune_to(book: Book, now: float, target: float) -> tuple[int, int]:
    turns = units = 0
    while True:
        with book.guard():
            size = tables.content_bytes(book.connection())
            ranked = sorted(_losses(book.connection(), now)) if size > target else []
        chosen, wanted = [], max(size - target, 0.01 * size)
        for _, bytes, what, id in ranked:
            if wanted <= 0:
                break
            wanted -= bytes
            chosen.append((what, id))
        if not chosen:
            return turns, units
        gone_turns, gone_units, coarse = (
            [id for what, id in chosen if what == one] for one in ("turn", "unit", "vector")
        )
        with book.writing() as connection:
            tables.delete_units(connection, gone_units)
            tables.delete_turns(connection, gone_turns)
            tables.coarsen(connection, coarse)
            tables.note_gone(connection, book.wall(), "turns", len(gone_turns), "byte budget: worth least")
            tables.note_gone(connection, book.wall(), "units", len(gone_units), "byte budget: worth least")
            connection.execute("insert into word (word) values ('optimize')")
        with book.lock:
            book.index.drop(gone_units)
        turns, units = turns + len(gone_turns), units + len(gone_units)


def _losses(connection: sqlite3.Connection, now: float) -> Iterator[tuple[float, int, str, int]]:
    """What would be lost by each deletion, its bytes, and which it is."""
    of_turn: dict[int, float] = {}
    sql = (
        "select id, turn, importance, uses, used, ended, archived, length(text) + length(value), "
        "(select length(code) from vector where unit = unit.id) from unit"
    )
    for id, turn, importance, uses, used, ended, archived, size, code in connection.execute(sql):
        value = worth(tables.times(uses), used, now, importance) * (PAST if ended is not None or archived else 1.0)
        of_turn[turn] = max(of_turn.get(turn, 0.0), value)
        if (code or 0) > COARSE:
            yield COARSENED * value, code - COARSE, "vector", id
        yield value, 250 + 3 * size + (code or 0), "unit", id
    for id, size in connection.execute("select id, length(asked) + length(said) + length(slots) from turn"):
        yield VERBATIM * of_turn.get(id, SMALL_TALK), 120 + size, "turn", id


def _back_up(book: Book, now: float, every: float) -> bool:
    """A copy now and then, if anything was written since the last."""
    if book.ram:
        return False
    with book.guard():
        state = tables.read_state(book.connection())
    copied, at = state.get("copied", [-1.0, -1]), state.get("lived", 0.0)
    if at == copied[0] or (copied[0] >= 0 and now - copied[0] < every):
        return False
    with book.writing() as connection:
        tables.write_state(connection, copied=[at, now])
    book.back_up()
    return True
