"""The door to SQLite: one way to open a database that survives a power cut."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import sqlite_utils

from appliance.errors import StorageFault


def open_database(path: Path, steps: Sequence[str], *, durable: bool = True) -> sqlite_utils.Database:
    """Opens, or makes, a database and brings it to the latest of its `steps`: SQL scripts, each run once, in order.

    `durable`: a commit is on the disk when it returns; without it the last commits may be lost with the power, and
    nothing else. Usable from any thread, one at a time. Raises StorageFault.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=5.0, check_same_thread=False)
        connection.execute("pragma journal_mode = wal")
        connection.execute(f"pragma synchronous = {'full' if durable else 'normal'}")
        connection.execute("pragma foreign_keys = on")
        done = connection.execute("pragma user_version").fetchone()[0]
        for number, step in enumerate(steps[done:], start=done + 1):
            connection.executescript(f"begin immediate;\n{step};\npragma user_version = {number};\ncommit;")
    except (OSError, sqlite3.Error) as error:
        raise StorageFault(f"{path} cannot be opened: {error}", "free space, or move the file away") from error
    if done > len(steps):
        raise StorageFault(f"{path} was written by a newer version of Parley", "update Parley, or move the file away")
    return sqlite_utils.Database(connection)


@contextmanager
def writing(database: sqlite_utils.Database) -> Iterator[sqlite3.Connection]:
    """A transaction: all of it is kept, or nothing. Raises StorageFault."""
    try:
        with database.conn:
            yield database.conn
    except sqlite3.Error as error:
        raise StorageFault(f"the database cannot be written: {error}", "free space on the disk") from error
