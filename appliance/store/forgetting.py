"""What the user wants forgotten goes, and every trace of it. In the writing thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence

from appliance.store import tables
from appliance.store.book import Book
from appliance.store.units import Unit

Shares = Callable[[str, str], bool]
"""Whether all telling words of one text stand in the other."""


def forget(book: Book, ids: Sequence[int], why: str) -> list[Unit]:
    """Units, the turns that they come from, and those that repeat them or were answered with them. Raises
    StorageFault, and nothing is forgotten."""
    with book.writing() as connection:
        known = tables.units_by_id(connection, ids)
        _erase(book, connection, known, _turns_of(connection, known), why)
    book.scrub()
    return known


def forget_about(book: Book, text: str, person: str, shares: Shares) -> tuple[list[Unit], int]:
    """Units and turns in which the words of a text stand; the units, and how many turns."""
    with book.writing() as connection:
        whose = "person in ('', ?)"
        known = [unit for unit in tables.units(connection, whose, [person]) if shares(text, tables.words_of(unit))]
        turns = _turns_of(connection, known)
        for turn in tables.turns(connection, whose, [person]):
            if shares(text, turn.asked) or shares(text, turn.said):
                turns.add(turn.id)
        _erase(book, connection, known, turns, "asked to, by what it is about")
    book.scrub()
    return known, len(turns)


def forget_all(book: Book, person: str) -> int:
    """All of a person's, and what is everybody's; how many units and turns."""
    with book.writing() as connection:
        known = tables.units(connection, "person in ('', ?)", [person])
        turns = {turn.id for turn in tables.turns(connection, "person in ('', ?)", [person])}
        _erase(book, connection, known, turns, "asked to forget everything")
    book.scrub()
    return sum(unit.kind != "entity" for unit in known) + len(turns)


def _turns_of(connection: sqlite3.Connection, units: Sequence[Unit]) -> set[int]:
    turns = {unit.turn for unit in units if unit.turn}
    for unit in units:
        sql = "select id from turn where exists (select 1 from json_each(cites) where value = ?)"
        turns |= {row[0] for row in connection.execute(sql, [unit.id])}
        for text in (unit.text, *([unit.value] if _specific(unit.value) else [])):
            sql = "select id from turn where person in ('', ?) and (instr(lower(asked), ?) or instr(lower(said), ?))"
            turns |= {row[0] for row in connection.execute(sql, [unit.person, text.lower(), text.lower()])}
    return turns


def _specific(value: str) -> bool:
    """Whether a value is so rare that its mention elsewhere is the same thing."""
    return len(value) >= 4 and (len(value) >= 8 or any(c.isdigit() or c.isupper() for c in value))


def _erase(book: Book, connection: sqlite3.Connection, units: Sequence[Unit], turns: Collection[int], why: str) -> None:
    """With the summaries of these turns, which would still tell it, and what commands in them were about."""
    ids = {unit.id for unit in units}
    for turn in turns:
        ids |= {row[0] for row in connection.execute("select summary from link where turn = ?", [turn])}
        ids |= {row[0] for row in connection.execute("select id from unit where turn = ? and kind = 'entity'", [turn])}
    ids.discard(0)
    tables.delete_units(connection, sorted(ids))
    tables.delete_turns(connection, sorted(turns))
    tables.note_gone(connection, book.wall(), "units", len(ids), why)
    tables.note_gone(connection, book.wall(), "turns", len(turns), why)
    with book.lock:
        book.index.drop(sorted(ids))
