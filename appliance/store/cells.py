"""What skills remember: a space of keys and texts for each, within its quota, on the disk before a write returns."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from appliance.errors import SkillFault
from appliance.store.db import open_database, writing

STEPS = (
    """create table cell (
        skill text not null,
        key text not null,
        text text not null,
        primary key (skill, key)
    ) without rowid""",
)


class Cells:
    """All spaces, in one file. Usable from any thread. Raises StorageFault."""

    def __init__(self, path: Path) -> None:
        self._database = open_database(path, STEPS)
        self._lock = Lock()

    def space(self, skill: str, quota: int) -> Space:
        """Of one skill, of `quota` bytes of keys and texts."""
        return Space(self, skill, quota)

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def read(self, skill: str, key: str) -> str | None:
        with self._lock:
            sql = "select text from cell where skill = ? and key = ?"
            row = self._database.execute(sql, (skill, key)).fetchone()
            return None if row is None else str(row[0])

    def keys(self, skill: str, prefix: str) -> list[str]:
        with self._lock:
            sql = "select key from cell where skill = ? and substr(key, 1, ?) = ? order by key"
            return [str(row[0]) for row in self._database.execute(sql, (skill, len(prefix), prefix))]

    def write(self, skill: str, key: str, text: str, quota: int) -> None:
        """Raises SkillFault, and has changed nothing, when the space would exceed its quota."""
        with self._lock, writing(self._database) as connection:
            sql = (
                "select coalesce(sum(length(cast(key as blob)) + length(cast(text as blob))), 0) from cell "
                "where skill = ? and key != ?"
            )
            others = connection.execute(sql, (skill, key)).fetchone()[0]
            size = others + len(key.encode()) + len(text.encode())
            if size > quota:
                raise SkillFault(
                    f"the memory of {skill} is full: {size} of {quota} bytes", "forget something, or grant it more"
                )
            connection.execute(
                "insert into cell values (?, ?, ?) on conflict do update set text = excluded.text", (skill, key, text)
            )

    def delete(self, skill: str, key: str) -> bool:
        with self._lock, writing(self._database) as connection:
            sql = "delete from cell where skill = ? and key = ?"
            return connection.execute(sql, (skill, key)).rowcount > 0

    def erase(self, skill: str) -> int:
        """Everything of a skill; how many cells."""
        with self._lock, writing(self._database) as connection:
            return connection.execute("delete from cell where skill = ?", (skill,)).rowcount


class Space:
    """One skill's own."""

    def __init__(self, cells: Cells, skill: str, quota: int) -> None:
        self._cells, self._skill, self._quota = cells, skill, quota

    def read(self, key: str) -> str | None:
        return self._cells.read(self._skill, key)

    def write(self, key: str, text: str) -> None:
        self._cells.write(self._skill, key, text, self._quota)

    def delete(self, key: str) -> bool:
        return self._cells.delete(self._skill, key)

    def keys(self, prefix: str = "") -> list[str]:
        return self._cells.keys(self._skill, prefix)
