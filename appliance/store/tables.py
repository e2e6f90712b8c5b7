"""The tables of memory, and the statements on them. Callers bring the transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from appliance.store.index import coarse
from appliance.store.units import EPOCH, Turn, Unit

STEPS = (
    """create table turn (
        id integer primary key autoincrement,
        conversation integer not null,
        person text not null,
        at real not null,
        lived real not null,
        asked text not null,
        said text not null,
        reason text not null,
        by text not null,
        intent text not null,
        slots text not null,
        deeds text not null,
        cites text not null
    );
    create index turn_conversation on turn (conversation);
    create table unit (
        id integer primary key autoincrement,
        kind text not null,
        text text not null,
        subject text not null,
        attribute text not null,
        value text not null,
        slot text not null,
        person text not null,
        importance real not null,
        turn integer not null,
        said real not null,
        born real not null,
        uses text not null,
        used integer not null,
        ended real,
        successor integer not null,
        archived integer not null
    );
    create index unit_slot on unit (person, slot) where slot != '';
    create index unit_subject on unit (subject);
    create index unit_turn on unit (turn);
    create table vector (unit integer primary key, code blob not null);
    create virtual table word using fts5 (text, tokenize = 'porter unicode61 remove_diacritics 2');
    create virtual table vocabulary using fts5vocab (word, 'row');
    create table link (
        summary integer not null,
        turn integer not null,
        primary key (summary, turn)
    ) without rowid;
    create index link_turn on link (turn);
    create table gone (
        id integer primary key autoincrement,
        at real not null,
        what text not null,
        count integer not null,
        why text not null
    );
    create table state (key text primary key, value text not null) without rowid""",
)
"""`gone` says what was deleted, how much and why, and nothing of its content."""

_UNIT = (
    "id, kind, text, subject, attribute, value, slot, person, importance, "
    "turn, said, born, uses, used, ended, successor, archived"
)
_TURN = "id, conversation, person, at, lived, asked, said, reason, by, intent, slots, deeds"
MANY = 500
"""Values of one statement."""


def add_turn(connection: sqlite3.Connection, turn: Turn, cites: Sequence[int]) -> int:
    values = (
        turn.conversation,
        turn.person,
        stamp(turn.at),
        turn.lived,
        turn.asked,
        turn.said,
        turn.reason,
        turn.by,
        turn.intent,
        json.dumps(dict(turn.slots), default=str),
        json.dumps(turn.deeds),
        json.dumps(list(cites)),
    )
    sql = (
        "insert into turn (conversation, person, at, lived, asked, said, reason, by, intent, slots, deeds, cites) "
        "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    )
    return int(connection.execute(sql, values).lastrowid or 0)


def add_unit(connection: sqlite3.Connection, unit: Unit, code: bytes) -> int:
    values = (
        *(unit.kind, unit.text, unit.subject, unit.attribute, unit.value, unit.slot, unit.person, unit.importance),
        *(unit.turn, stamp(unit.said), unit.born, json.dumps(unit.uses), unit.used, unit.ended, unit.successor),
        int(unit.archived),
    )
    sql = f"insert into unit ({_UNIT.removeprefix('id, ')}) values ({', '.join('?' * len(values))})"
    id = int(connection.execute(sql, values).lastrowid or 0)
    connection.execute("insert into word (rowid, text) values (?, ?)", (id, words_of(unit)))
    if code:
        connection.execute("insert into vector values (?, ?)", (id, code))
    return id


def words_of(unit: Unit) -> str:
    """What a unit is found by: its words, and those of its key that are not among them."""
    text = unit.text.lower()
    more = [
        part
        for part in (unit.subject, unit.attribute, unit.value)
        if part and part.lower() not in text and part != "me"
    ]
    return " ".join((unit.text, *more))


def set_uses(connection: sqlite3.Connection, unit: Unit) -> None:
    sql = "update unit set uses = ?, used = ? where id = ?"
    connection.execute(sql, (json.dumps(unit.uses), unit.used, unit.id))


def end(connection: sqlite3.Connection, ids: Iterable[int], at: float, successor: int) -> None:
    sql = "update unit set ended = ?, successor = ? where id = ? and ended is null"
    connection.executemany(sql, [(at, successor, id) for id in ids])


def units(connection: sqlite3.Connection, where: str = "1", values: Sequence[object] = ()) -> list[Unit]:
    return [unit_of(row) for row in connection.execute(f"select {_UNIT} from unit where {where}", values)]


def units_by_id(connection: sqlite3.Connection, ids: Sequence[int], where: str = "1") -> list[Unit]:
    """Those of them of which the condition holds."""
    found: list[Unit] = []
    for part in _parts(ids):
        found += units(connection, f"id in ({', '.join('?' * len(part))}) and {where}", part)
    return found


def coarsen(connection: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Leaves of these units' vectors their signs."""
    rows = [(coarse(code), id) for id, code in codes(connection, ids).items()]
    connection.executemany("update vector set code = ? where unit = ?", rows)


def documents(connection: sqlite3.Connection, terms: Sequence[str]) -> dict[str, int]:
    """In how many units each stem stands."""
    return {
        term: row[0]
        if (row := connection.execute("select doc from vocabulary where term = ?", [term]).fetchone())
        else 0
        for term in terms
    }


def codes(connection: sqlite3.Connection, ids: Sequence[int]) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for part in _parts(ids):
        sql = f"select unit, code from vector where unit in ({', '.join('?' * len(part))})"
        found |= dict(connection.execute(sql, part))
    return found


def turns(
    connection: sqlite3.Connection,
    where: str = "1",
    values: Sequence[object] = (),
    *,
    limit: int = -1,
    latest: bool = False,
) -> list[Turn]:
    order = "order by id desc" if latest else "order by id"
    sql = f"select {_TURN} from turn where {where} {order} limit ?"
    found = [turn_of(row) for row in connection.execute(sql, (*values, limit))]
    return found[::-1] if latest else found


def delete_units(connection: sqlite3.Connection, ids: Sequence[int]) -> None:
    for part in _parts(ids):
        marks = ", ".join("?" * len(part))
        connection.execute(f"delete from word where rowid in ({marks})", part)
        connection.execute(f"delete from vector where unit in ({marks})", part)
        connection.execute(f"delete from link where summary in ({marks})", part)
        connection.execute(f"update unit set successor = 0 where successor in ({marks})", part)
        connection.execute(f"delete from unit where id in ({marks})", part)


def delete_turns(connection: sqlite3.Connection, ids: Sequence[int]) -> None:
    for part in _parts(ids):
        marks = ", ".join("?" * len(part))
        connection.execute(f"delete from link where turn in ({marks})", part)
        connection.execute(f"update unit set turn = 0 where turn in ({marks})", part)
        connection.execute(f"delete from turn where id in ({marks})", part)


def note_gone(connection: sqlite3.Connection, at: datetime, what: str, count: int, why: str) -> None:
    if count:
        connection.execute("insert into gone (at, what, count, why) values (?, ?, ?, ?)", (stamp(at), what, count, why))


def read_state(connection: sqlite3.Connection) -> dict[str, Any]:
    return {key: json.loads(value) for key, value in connection.execute("select key, value from state")}


def write_state(connection: sqlite3.Connection, **values: object) -> None:
    sql = "insert into state values (?, ?) on conflict do update set value = excluded.value"
    connection.executemany(sql, [(key, json.dumps(value)) for key, value in values.items()])


def used_bytes(connection: sqlite3.Connection) -> int:
    """Of pages that hold something."""
    pages, free, size = (
        connection.execute(f"pragma {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def content_bytes(connection: sqlite3.Connection) -> int:
    """Of what the pages hold: what was deleted here and there leaves them half empty. The pages' where SQLite was built
    without its table of statistics."""
    try:
        return int(connection.execute("select sum(pgsize - unused) from dbstat").fetchone()[0])
    except sqlite3.OperationalError:
        return used_bytes(connection)


def unit_of(row: Sequence[Any]) -> Unit:
    return Unit(
        id=row[0],
        kind=row[1],
        text=row[2],
        subject=row[3],
        attribute=row[4],
        value=row[5],
        slot=row[6],
        person=row[7],
        importance=row[8],
        turn=row[9],
        said=moment(row[10]),
        born=row[11],
        uses=times(row[12]),
        used=row[13],
        ended=row[14],
        successor=row[15],
        archived=bool(row[16]),
    )


def turn_of(row: Sequence[Any]) -> Turn:
    return Turn(
        id=row[0],
        conversation=row[1],
        person=row[2],
        at=moment(row[3]),
        lived=row[4],
        asked=row[5],
        said=row[6],
        reason=row[7],
        by=row[8],
        intent=row[9],
        slots=_mapping(row[10]),
        deeds=tuple(str(deed) for deed in _list(row[11])),
    )


def stamp(at: datetime) -> float:
    return (at - EPOCH).total_seconds()


def _list(text: str) -> list[Any]:
    """A cell that a bad disk has changed, where no check of pages sees it, costs what it held and nothing else."""
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def times(text: str) -> tuple[float, ...]:
    return tuple(float(at) for at in _list(text) if isinstance(at, int | float))


def _mapping(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def moment(seconds: float) -> datetime:
    """A clock may say anything; a date beyond all calendars is the epoch."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError, TypeError):
        return EPOCH


def _parts(ids: Sequence[int]) -> Iterator[list[int]]:
    wanted = list(ids)
    for start in range(0, len(wanted), MANY):
        yield wanted[start : start + MANY]
