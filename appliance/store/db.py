"""The door to SQLite: one way to open a database that survives a power cut, a damaged file and a foreign one.

A file is checked when it is opened. One that is damaged, or holds what Parley did not write, is moved aside under a
name that says so, and never changed; in its place comes the last backup, or an empty one.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlite_utils import Database

from appliance.errors import StorageFault
from appliance.telemetry import log

__all__ = [
    "Database",
    "back_up",
    "backup_of",
    "in_memory",
    "open_database",
    "open_to_read",
    "quarantine",
    "sole",
    "unsound",
    "writing",
]

PATIENCE = 5.0
"""Seconds that a transaction waits for another process's."""

_SIDES = ("", "-wal", "-shm", "-journal")
_SHADOW = re.compile(r"_(?:data|idx|content|docsize|config)$")
_LIMITS = (
    (sqlite3.SQLITE_LIMIT_LENGTH, 64 << 20),
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100),
    (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 5),
    (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
    (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 10),
)
"""SQLite's advice for files that one did not write oneself (sqlite.org/security.html), as far as we can keep within."""


class _Damaged(Exception):
    """The file cannot be trusted."""


def open_database(
    path: Path,
    steps: Sequence[str],
    *,
    durable: bool = True,
    saved: Callable[[Path], None] = lambda damaged: None,
) -> Database:
    """Opens, or makes, a database and brings it to the latest of its `steps`: SQL scripts, each run once, in order,
    behind a backup of what was there.

    `durable`: a commit is on the disk when it returns; without it the last commits may be lost with the power, and
    nothing else. `saved` is told the new name of a damaged file. Usable from any thread, one at a time. Raises
    StorageFault.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            connection = _opened(path, steps, durable=durable)
        except _Damaged as damage:
            moved = quarantine(path)
            instead = _restore(path, steps)
            log(
                "database damaged",
                level=logging.ERROR,
                file=str(path),
                moved=str(moved),
                reason=str(damage),
                instead="the last backup" if instead else "an empty one",
            )
            saved(moved)
            connection = _opened(path, steps, durable=durable)
    except (OSError, sqlite3.Error, _Damaged) as error:
        raise StorageFault(f"{path} cannot be opened: {error}", "free space, or move the file away") from error
    return Database(connection)


def in_memory(steps: Sequence[str]) -> Database:
    """One that nothing of is ever on a disk."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    for step in steps:
        connection.executescript(step)
    return Database(connection)


def open_to_read(path: Path) -> sqlite3.Connection:
    """A second connection to a database that is open, which cannot write. Usable from any thread, one at a time.
    Raises StorageFault."""
    try:
        connection = _connect(path)
        connection.execute("pragma query_only = on")
    except sqlite3.Error as error:
        raise StorageFault(f"{path} cannot be opened: {error}", "free space, or move the file away") from error
    return connection


def unsound(path: Path) -> str:
    """What is wrong with a file, which is not changed; "" for nothing."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=PATIENCE)) as connection:
            _check_pages(connection)
    except (sqlite3.Error, _Damaged) as error:
        return str(error)
    return ""


@contextmanager
def writing(database: Database) -> Iterator[sqlite3.Connection]:
    """A transaction: all of it is kept, or nothing. Raises StorageFault."""
    try:
        with database.conn:
            database.conn.execute("begin immediate")
            yield database.conn
    except sqlite3.Error as error:
        raise StorageFault(f"the database cannot be written: {error}", "free space on the disk") from error


@contextmanager
def sole(path: Path) -> Iterator[None]:
    """One process at a time holds the lock file. Raises StorageFault when another does."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    except OSError as error:
        raise StorageFault(f"{path} cannot be opened: {error}", "free space, or choose another folder") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StorageFault(
                f"another Parley runs on {path.parent}",
                "stop it, or give this one a folder of its own",
            ) from error
        yield


def quarantine(path: Path) -> Path:
    """Moves a file, with what SQLite wrote beside it, out of the way; its new name."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    names = (path.with_name(f"{path.name}.damaged-{stamp}{more}") for more in ("", *(f".{n}" for n in range(1, 1_000))))
    moved = next(name for name in names if not name.exists())
    for side in _SIDES:
        beside = path.with_name(path.name + side)
        if beside.exists():
            beside.rename(moved.with_name(moved.name + side))
    _sync_folder(path.parent)
    return moved


# --- backups -----------------------------------------------------------------------------------------------------


def backup_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.backup")


def back_up(connection: sqlite3.Connection, path: Path) -> Path:
    """Copies a database while it is in use; the copy takes the last one's place once it has been read through. Raises
    StorageFault, and the last one is still there."""
    target = backup_of(path)
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        fresh.unlink(missing_ok=True)
        with closing(sqlite3.connect(fresh)) as copy:
            connection.backup(copy, pages=256, sleep=0.0)
            copy.execute("pragma journal_mode = delete")
            _check_pages(copy)
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        fresh.replace(target)
        _sync_folder(target.parent)
    except (OSError, sqlite3.Error, _Damaged) as error:
        fresh.unlink(missing_ok=True)
        raise StorageFault(f"{path} cannot be copied: {error}", "free space on the disk") from error
    return target


def _restore(path: Path, steps: Sequence[str]) -> bool:
    """Puts the last backup, if it is sound, where a damaged file was."""
    target = backup_of(path)
    if not target.exists():
        return False
    try:
        with closing(_connect(target)) as backup, closing(sqlite3.connect(path)) as fresh:
            _check(backup, steps)
            backup.backup(fresh)
        return True
    except (sqlite3.DatabaseError, _Damaged):
        for side in _SIDES:
            path.with_name(path.name + side).unlink(missing_ok=True)
        return False


# --- opening and checking ----------------------------------------------------------------------------------------


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=PATIENCE, check_same_thread=False)
    for category, limit in _LIMITS:
        connection.setlimit(category, limit)
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    connection.execute("pragma trusted_schema = off")
    connection.execute("pragma cell_size_check = on")
    return connection


def _opened(path: Path, steps: Sequence[str], *, durable: bool) -> sqlite3.Connection:
    there = path.exists() and path.stat().st_size > 0
    connection = _connect(path)
    try:
        if there:
            _check(connection, steps)
        else:
            connection.execute("pragma auto_vacuum = incremental")
        connection.execute("pragma journal_mode = wal")
        connection.execute(f"pragma synchronous = {'full' if durable else 'normal'}")
        connection.execute("pragma foreign_keys = on")
        connection.execute("pragma secure_delete = on")
        connection.execute("pragma journal_size_limit = 1048576")
        _migrate(connection, path, steps, there=there and durable)
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection, path: Path, steps: Sequence[str], *, there: bool) -> None:
    done = connection.execute("pragma user_version").fetchone()[0]
    if done > len(steps):
        raise StorageFault(
            f"{path} was written by a newer version of Parley", "update Parley, or move the file away: it is unchanged"
        )
    if there and 0 < done < len(steps):
        back_up(connection, path)
    for number, step in enumerate(steps[done:], start=done + 1):
        # Another process may have done it while this one waited for its turn: the record is looked at again inside.
        connection.execute("begin immediate")
        if connection.execute("pragma user_version").fetchone()[0] < number:
            for statement in _statements(step):
                connection.execute(statement)
            connection.execute(f"pragma user_version = {number}")
        connection.commit()


def _statements(script: str) -> Iterator[str]:
    """`executescript` would end the transaction that a step and its record share."""
    statement = ""
    for part in script.split(";"):
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            if statement.strip(" \n;"):
                yield statement
            statement = ""


def _check(connection: sqlite3.Connection, steps: Sequence[str]) -> None:
    """Raises _Damaged; sqlite3.OperationalError where the disk or a lock, not the content, is the matter."""
    try:
        done = connection.execute("pragma user_version").fetchone()[0]
        _check_pages(connection)
        if done <= len(steps):
            _check_schema(connection, steps[:done])
    except sqlite3.OperationalError as error:
        if "malformed" in str(error) or "unsupported file format" in str(error):
            raise _Damaged(str(error)) from error
        raise
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise _Damaged(str(error)) from error


def _check_pages(connection: sqlite3.Connection) -> None:
    found = connection.execute("pragma quick_check(1)").fetchone()
    if found is None or found[0] != "ok":
        raise _Damaged(f"quick_check: {found[0] if found else 'no answer'}")


def _check_schema(connection: sqlite3.Connection, steps: Sequence[str]) -> None:
    """A table, a trigger or a view that is not ours may do what we do not want whenever the file is written."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        for step in steps:
            fresh.executescript(step)
        ours, theirs = _schema(fresh), _schema(connection)
    if ours != theirs:
        strange = sorted({name for name, _ in ours ^ theirs})
        raise _Damaged(f"its schema is not Parley's: {', '.join(strange)[:200]}")


def _schema(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    """Names and definitions. Those that SQLite makes for itself may differ from version to version."""
    rows = connection.execute("select name, type, coalesce(sql, '') from sqlite_master where name not like 'sqlite_%'")
    return {(name, kind if kind == "table" and _SHADOW.search(name) else sql) for name, kind, sql in rows}


def _sync_folder(folder: Path) -> None:
    """A renamed file has its new name for good once its folder is on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
