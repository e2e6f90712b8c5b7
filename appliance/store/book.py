"""The file of memory: one connection that writes, one that reads, the index of meanings, and the box's own time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from threading import RLock

from appliance.errors import StorageFault
from appliance.store import tables
from appliance.store.db import Database, back_up, backup_of, in_memory, open_database, open_to_read, writing
from appliance.store.decay import elapsed
from appliance.store.index import Index

_SEARCHED = "from vector join unit on unit.id = vector.unit where not archived"


class Book:
    """`ram`: nothing touches the disk, and all is gone with the process. What writes is used in one thread only;
    reading may be done from any. `wall` and `steady` are clocks in seconds."""

    def __init__(self, path: Path, wall: Callable[[], float], steady: Callable[[], float], *, ram: bool) -> None:
        self.path, self.ram = path, ram
        self.index = Index()
        self.quarantined = ""
        self.lock = RLock()
        """Holds what is in memory together: index, clock, the connection for reading."""
        self._wall, self._steady = wall, steady
        self._looked = (wall(), steady())
        self._lived = 0.0
        self._database: Database | None = None
        self._reader: sqlite3.Connection | None = None
        self._version = -1
        self._wrote = False
        """Whether this process has written since the last look: then the file has changed, and the index with it."""

    # --- time --------------------------------------------------------------------------------------------------------

    def lived(self) -> float:
        """Seconds that the box has lived: what ages are counted in, whatever is done to the wall clock."""
        with self.lock:
            wall, steady = self._wall(), self._steady()
            self._lived += elapsed(wall - self._looked[0], steady - self._looked[1])
            self._looked = wall, steady
            return self._lived

    def wall(self) -> datetime:
        return tables.moment(self._wall())

    # --- writing -----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Raises StorageFault."""
        if self._database is not None:
            return
        database = in_memory(tables.STEPS) if self.ram else open_database(self.path, tables.STEPS, saved=self._saved)
        try:
            state = tables.read_state(database.conn)
            wall, lived = float(state.get("wall", self._looked[0])), float(state.get("lived", 0.0))
            with self.lock:
                self._database = database
                self._lived = max(self._lived, lived + elapsed(self._looked[0] - wall, None))
                self._load(database.conn)
        except (sqlite3.Error, ValueError, TypeError) as error:
            database.close()
            self._database = None
            raise StorageFault(f"{self.path} cannot be read: {error}", "move the file away") from error

    def connection(self) -> sqlite3.Connection:
        """Raises StorageFault."""
        self.open()
        assert self._database is not None
        return self._database.conn

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that also writes the time down. Raises StorageFault."""
        self.open()
        assert self._database is not None
        with self.guard(), writing(self._database) as connection:
            yield connection
            lived = self.lived()
            tables.write_state(connection, wall=self._looked[0], lived=lived)
        self._wrote = True

    def guard(self) -> AbstractContextManager[object]:
        """A database in memory has one connection for all."""
        return self.lock if self.ram else nullcontext()

    def scrub(self) -> None:
        """Makes what was deleted unreadable: in the full-text index, the write-ahead log, free pages and the backup.
        Raises StorageFault."""
        with self.writing() as connection:
            connection.execute("insert into word (word) values ('optimize')")
        if self.ram:
            return
        with self.lock:
            self._close_reader()
            connection = self.connection()
            try:
                connection.execute("pragma wal_checkpoint(truncate)")
                connection.execute("pragma incremental_vacuum").fetchall()
                connection.execute("pragma wal_checkpoint(truncate)")
            except sqlite3.Error as error:
                raise StorageFault(
                    f"{self.path} cannot be cleaned: {error}", "free space on the disk, and forget it again"
                ) from error
            if backup_of(self.path).exists():
                back_up(connection, self.path)

    def compact(self) -> None:
        """Writes the database anew, without the room between what is left; whoever reads meanwhile reads what was.
        Raises StorageFault, and it is as it was."""
        with self.guard():
            try:
                self.connection().execute("vacuum")
            except sqlite3.Error as error:
                raise StorageFault(f"{self.path} cannot be made smaller: {error}", "free space on the disk") from error

    def back_up(self) -> None:
        """Raises StorageFault."""
        if not self.ram:
            back_up(self.connection(), self.path)

    def shut(self) -> None:
        """Opened again by whoever writes next. A page whose write failed may look clean to the system: only a new
        connection knows what is on the disk."""
        with self.lock:
            self._close_reader()
            if self._database is not None and not self.ram:
                self._database.close()
                self._database = None

    # --- reading -----------------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """A connection that reads what is on the disk; None where there is no disk."""
        with self.lock:
            yield self._read()

    def _read(self) -> sqlite3.Connection | None:
        if self._database is None:
            return None
        if self.ram:
            return self._database.conn
        try:
            if self._reader is None:
                self._reader = open_to_read(self.path)
            if (version := int(self._reader.execute("pragma data_version").fetchone()[0])) != self._version:
                self._version = version
                if not self._wrote:
                    self._follow(self._reader)
            self._wrote = False
        except (StorageFault, sqlite3.Error):
            self._close_reader()
        return self._reader

    def _follow(self, reader: sqlite3.Connection) -> None:
        """Another process may have written, too: the command line edits and forgets."""
        if reader.execute(f"select count(*) {_SEARCHED}").fetchone()[0] != len(self.index):
            self._load(reader)

    def _load(self, connection: sqlite3.Connection) -> None:
        self.index = Index()
        rows = connection.execute(f"select unit, code {_SEARCHED}")
        while part := rows.fetchmany(4_096):
            self.index.add([row[0] for row in part], [row[1] for row in part])

    def _saved(self, damaged: Path) -> None:
        self.quarantined = str(damaged)

    def _close_reader(self) -> None:
        if self._reader:
            self._reader.close()
        self._reader, self._version = None, -1
