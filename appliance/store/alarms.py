"""Timers, alarms and reminders: on the disk when a call returns, and right whatever the clocks do.

What was set as a length of time runs by a clock that nobody sets and that counts sleep; the wall clock carries it only
over a restart of the machine. What was set as a time of day follows the wall clock and the zone: seven stays seven.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from threading import RLock
from typing import Generic, Literal, TypeVar

from appliance.errors import Fault, StorageFault
from appliance.store.db import open_database, writing

T = TypeVar("T")
Kind = Literal["timer", "alarm", "reminder"]

STEPS = (
    """create table alarm (
        id integer primary key autoincrement,
        kind text not null,
        name text not null,
        text text not null,
        seconds real not null,
        local text not null,
        repeat text not null,
        due real not null,
        steady real,
        paused real,
        state text not null
    );
    create table clock (boot text not null, wall real not null)""",
)

MOST = 200
"""Alarms that may wait at once."""

LONGEST = 400 * 86_400.0
"""Seconds."""

LATE = 60.0
"""Seconds behind which what fell due while the box was off is told as late, and does not ring for long."""

JUMP = 1.0
"""Seconds by which the wall clock must differ from the steady one to have been set."""

BEAT = 60.0
"""Seconds after which the time is written down while something waits: a wall clock that shows less after a restart of
the machine is wrong."""

RECENT = 60.0
"""Seconds for which what was dismissed may still be snoozed."""

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def _boot() -> str:
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class Clocks:
    """`wall`: seconds since 1970, may be set at any time; `steady`: seconds that nobody sets and that go on while the
    machine sleeps, comparable as long as `boot` is the same ("": never)."""

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)
    boot: Callable[[], str] = _boot


@dataclass(frozen=True, slots=True)
class Row:
    """`local` is the wall time it was set for ("" for a length of time), `due` the same in seconds since 1970;
    `steady` is when it is due by the steady clock, which counts where it is given."""

    id: int
    kind: Kind
    name: str
    text: str
    seconds: float
    local: str
    repeat: tuple[str, ...]
    due: float
    steady: float | None
    paused: float | None
    state: Literal["waiting", "ringing"]


@dataclass(frozen=True, slots=True)
class Due(Generic[T]):
    """What has begun to ring. `late`: seconds ago, if it fell due while the box was off; else 0."""

    alarm: T
    late: float


class Alarms(Generic[T]):
    """All of them, in one file. Usable from any thread. Every call is on the disk when it returns, or raises
    StorageFault and has changed nothing.

    `make` builds what callers see, from the keywords of `appliance.skills.skill.Alarm`. `zone` is the box's.
    """

    def __init__(self, path: Path, make: Callable[..., T], zone: tzinfo, clocks: Clocks | None = None) -> None:
        self._make, self._zone, self._clocks = make, zone, clocks or Clocks()
        self._lock = RLock()
        self._database = open_database(path, STEPS)
        self._looked: float | None = None
        """The steady time of the last look; None: nobody has looked since the box was away."""
        self._beaten = self._clocks.steady()
        self._dismissed: list[tuple[float, Row]] = []
        boot, known = self._database.execute("select boot, wall from clock").fetchone() or ("", 0.0)
        self._version = self._others
        rows = self._read()
        wall, steady = self._clocks.wall(), self._clocks.steady()
        same = boot == self._clocks.boot() != ""
        self._offset = wall - steady
        self._behind: tuple[float, float] | None = None
        """The last time that was known, and the steady time now, while the wall clock shows less."""
        if known > wall + JUMP and not same:
            self._behind = (known, steady)
        self._rows = {row.id: row for row in rows}
        self._keep({row.id: self._reopened(row, same=same) for row in rows})
        self._doubted = {row.id: row.steady for row in self._rows.values()} if self._behind else {}
        """When timers are due if the machine was off for no time: how long it was shows when the clock is put right."""

    def close(self) -> None:
        with self._lock:
            self._database.close()

    # --- what skills ask ---------------------------------------------------------------------------------------------

    def add(
        self,
        kind: Kind,
        *,
        name: str = "",
        seconds: float = 0.0,
        due: datetime | None = None,
        text: str = "",
        repeat: Sequence[str] = (),
    ) -> T:
        """In `seconds`, or at `due` (aware; its wall time in the box's zone counts), which with `repeat` comes on
        each of these days. Raises Fault for what is no time."""
        if due is None and not 0 < seconds <= LONGEST:
            raise Fault(f"{seconds} is no length of time for a {kind}", "more than none, and 400 days at most")
        if unknown := [day for day in repeat if day not in DAYS]:
            raise Fault(f"{unknown[0]!r} is no weekday", f"known are: {', '.join(DAYS)}")
        with self._lock:
            self._settle()
            if len(self._rows) >= MOST:
                raise StorageFault(f"{MOST} timers, alarms and reminders are waiting already", "cancel some of them")
            row = Row(0, kind, name, text, seconds, "", tuple(repeat), 0.0, None, None, "waiting")
            if due is None:
                row = self._anchored(row, seconds)
            else:
                local = due.astimezone(self._zone).replace(tzinfo=None)
                row = replace(row, local=local.isoformat())
                moment = self._upcoming(row, self.now()) if repeat else due.timestamp()
                row = replace(row, due=moment)
            with writing(self._database) as connection:
                marks = ", ".join("?" * 10)
                id = connection.execute(f"insert into alarm values (null, {marks})", _values(row)).lastrowid
                self._beat()
            assert id is not None
            self._rows[id] = replace(row, id=id)
            return self._seen(self._rows[id])

    def all(self) -> list[T]:
        """The next one first."""
        with self._lock:
            self._refresh()
            rows = sorted(self._rows.values(), key=lambda row: (row.paused is not None, self._left(row), row.id))
            return [self._seen(row) for row in rows]

    def cancel(self, id: int) -> bool:
        with self._lock:
            return self._change(id, lambda row: None)

    def pause(self, id: int) -> bool:
        """A timer that runs."""
        with self._lock:
            self._refresh()
            row = self._rows.get(id)
            if row is None or row.kind != "timer" or row.paused is not None or row.state == "ringing":
                return False
            return self._change(id, lambda row: replace(row, steady=None, paused=max(0.0, self._left(row))))

    def resume(self, id: int) -> bool:
        with self._lock:
            self._refresh()
            row = self._rows.get(id)
            if row is None or row.paused is None:
                return False
            return self._change(id, lambda row: self._anchored(row, row.paused or 0.0))

    def extend(self, id: int, seconds: float) -> bool:
        """By `seconds`, which may be negative; what rings already goes on for so long."""
        with self._lock:
            return self._change(id, lambda row: self._extended(row, seconds))

    def rename(self, id: int, name: str) -> bool:
        with self._lock:
            return self._change(id, lambda row: replace(row, name=name))

    def dismiss(self) -> int:
        """Ends what rings now; how many."""
        with self._lock:
            self._refresh()
            rows = [row for row in self._rows.values() if row.state == "ringing"]
            self._finish(rows)
            if rows:
                self._dismissed = [(self._clocks.steady(), row) for row in rows]
            return len(rows)

    def snooze(self, seconds: float) -> int:
        """What rings, or was dismissed a moment ago, rings again in `seconds`; how many."""
        with self._lock:
            self._refresh()
            since = self._clocks.steady() - RECENT
            rows = [row for row in self._rows.values() if row.state == "ringing"]
            rows = rows or [row for at, row in self._dismissed if at >= since]
            self._keep({row.id: self._anchored(row, seconds) for row in rows})
            self._dismissed.clear()
            return len(rows)

    # --- what rings --------------------------------------------------------------------------------------------------

    @property
    def stirs(self) -> bool:
        """Whether `look` has something to do: reads two clocks, and the disk only after another process has written."""
        with self._lock:
            self._refresh()
            wall, steady = self._clocks.wall(), self._clocks.steady()
            if abs(wall - steady - self._offset) > JUMP or self._looked is None or steady - self._looked >= BEAT:
                return True
            return any(
                row.state == "waiting" and row.paused is None and self._left(row) <= 0 for row in self._rows.values()
            )

    def look(self) -> list[Due[T]]:
        """What has fallen due since the last look: it rings until it is finished, dismissed, snoozed or cancelled. To
        be called whenever it `stirs`."""
        with self._lock:
            self._settle()
            steady = self._clocks.steady()
            away = self._looked is None or steady - self._looked > BEAT + LATE
            due = [row for row in self._rows.values() if row.state == "waiting" and row.paused is None]
            late = {row.id: -self._left(row) for row in due if self._left(row) <= 0}
            self._keep({id: replace(self._rows[id], state="ringing") for id in late})
            self._looked = steady
            return [
                Due(self._seen(self._rows[id]), seconds if away and seconds > LATE else 0.0)
                for id, seconds in sorted(late.items(), key=lambda found: -found[1])
            ]

    @property
    def ringing(self) -> set[int]:
        with self._lock:
            self._refresh()
            return {row.id for row in self._rows.values() if row.state == "ringing"}

    def rewind(self) -> None:
        """What rings is due once more: whoever let it ring is gone."""
        with self._lock:
            self._refresh()
            ringing = {id: row for id, row in self._rows.items() if row.state == "ringing"}
            self._keep({id: replace(row, state="waiting") for id, row in ringing.items()})

    def finish(self, ids: Sequence[int]) -> None:
        """These have rung for long enough."""
        with self._lock:
            self._finish([row for id in ids if (row := self._rows.get(id)) and row.state == "ringing"])

    def now(self) -> float:
        """Seconds since 1970, by the wall clock unless it is known to be behind."""
        if self._behind is None:
            return self._clocks.wall()
        known, steady = self._behind
        return max(self._clocks.wall(), known + self._clocks.steady() - steady)

    # --- clocks ------------------------------------------------------------------------------------------------------

    @property
    def _others(self) -> int:
        """Changes when another process has written: the command line sets timers too."""
        return int(self._database.execute("pragma data_version").fetchone()[0])

    def _read(self) -> list[Row]:
        return [_row(row) for row in self._database.execute("select * from alarm order by id")]

    def _refresh(self) -> None:
        if (version := self._others) != self._version:
            self._version, self._rows = version, {row.id: row for row in self._read()}

    def _settle(self) -> None:
        """Takes in what others have written and what has happened to the clocks, and writes the time down now and
        then."""
        self._refresh()
        wall, steady = self._clocks.wall(), self._clocks.steady()
        moved = wall - steady - self._offset
        if self._behind is not None and wall >= self._behind[0]:
            # the wall clock has been put right: only now is it known how long the machine was off
            doubted, self._doubted, self._behind = self._doubted, {}, None
            self._offset, self._looked = wall - steady, None
            held = {id for id, due in doubted.items() if id in self._rows and self._rows[id].steady == due}
            self._keep({id: self._carried(row) if id in held else self._moved(row) for id, row in self._rows.items()})
        elif self._behind is None and abs(moved) > JUMP:
            self._offset = wall - steady
            back = moved < -LATE
            self._keep({id: self._moved(row, back=back) for id, row in self._rows.items()})
            with writing(self._database):
                self._beat()  # a clock that was set back is not one that is behind after the next restart
        elif self._rows and steady - self._beaten >= BEAT:
            with writing(self._database):
                self._beat()

    def _moved(self, row: Row, *, back: bool = False) -> Row:
        """After the wall clock was set: what is ahead again is not missed."""
        if row.steady is not None:
            due = self.now() + self._left(row)
            return replace(row, due=due) if abs(due - row.due) > JUMP / 10 else row
        if back and row.repeat and row.state == "waiting":
            return replace(row, due=self._upcoming(row, self.now()))
        return row

    def _reopened(self, row: Row, *, same: bool) -> Row:
        """What rang when the machine went off is due still; what comes follows the zone, which may be another."""
        row = row if same else replace(row, state="waiting")
        if row.steady is not None:
            return self._moved(row) if same else self._carried(row)
        if row.paused is not None or row.due <= self.now():
            return row
        if row.repeat:
            return replace(row, due=self._upcoming(row, self.now()))
        return replace(row, due=_moment(datetime.fromisoformat(row.local), self._zone, row.due))

    def _carried(self, row: Row) -> Row:
        """Over a restart of the machine, by the wall clock."""
        if row.steady is None or row.state == "ringing":
            return row
        return replace(row, steady=self._clocks.steady() + row.due - self.now())

    def _anchored(self, row: Row, seconds: float) -> Row:
        steady = self._clocks.steady() + seconds
        return replace(row, due=self.now() + seconds, steady=steady, paused=None, state="waiting")

    def _extended(self, row: Row, seconds: float) -> Row:
        longer = replace(row, seconds=max(1.0, row.seconds + seconds)) if row.kind == "timer" else row
        if row.state == "ringing":
            return self._anchored(longer, max(1.0, seconds))
        if row.paused is not None:
            return replace(longer, paused=max(1.0, row.paused + seconds))
        if row.steady is not None:
            return self._anchored(longer, max(1.0, self._left(row) + seconds))
        due = max(self.now() + 1.0, row.due + seconds)
        return replace(row, due=due, local=datetime.fromtimestamp(due, self._zone).replace(tzinfo=None).isoformat())

    def _left(self, row: Row) -> float:
        """Seconds until it is due."""
        if row.paused is not None:
            return row.paused
        return row.due - self.now() if row.steady is None else row.steady - self._clocks.steady()

    def _upcoming(self, row: Row, after: float) -> float:
        """When a repeated one comes next. The first of a double hour counts; an hour that a day does not have is the
        one behind it (RFC 5545, 3.3.10)."""
        at = datetime.fromisoformat(row.local).time()
        today = datetime.fromtimestamp(after, self._zone).date()
        days = [today + timedelta(ahead) for ahead in range(-1, 9)]
        moments = [_moment(datetime.combine(day, at), self._zone) for day in days if DAYS[day.weekday()] in row.repeat]
        return min(moment for moment in moments if moment > after)

    # --- the disk ----------------------------------------------------------------------------------------------------

    def _finish(self, rows: Sequence[Row]) -> None:
        now = self.now()
        self._keep({row.id: self._again(row, now) for row in rows})

    def _again(self, row: Row, now: float) -> Row | None:
        if not row.repeat:
            return None
        return replace(row, due=self._upcoming(row, now), steady=None, state="waiting")

    def _change(self, id: int, change: Callable[[Row], Row | None]) -> bool:
        self._settle()
        row = self._rows.get(id)
        if row is None:
            return False
        self._keep({id: change(row)})
        return True

    def _keep(self, rows: dict[int, Row | None]) -> None:
        """Writes what has changed, all or nothing, and then believes it."""
        changed = {id: row for id, row in rows.items() if row != self._rows.get(id)}
        if not changed:
            return
        with writing(self._database) as connection:
            for id, row in changed.items():
                connection.execute("delete from alarm where id = ?", (id,))
                if row is not None:
                    marks = ", ".join("?" * 11)
                    connection.execute(f"insert into alarm values ({marks})", (id, *_values(row)))
            self._beat()
        for id, row in changed.items():
            self._rows.pop(id, None)
            if row is not None:
                self._rows[id] = row

    def _beat(self) -> None:
        connection, self._beaten = self._database.conn, self._clocks.steady()
        connection.execute("delete from clock")
        connection.execute("insert into clock values (?, ?)", (self._clocks.boot(), self.now()))

    def _seen(self, row: Row) -> T:
        due = datetime.fromtimestamp(self.now() + self._left(row), UTC)
        return self._make(
            id=row.id,
            kind=row.kind,
            name=row.name,
            due=due,
            seconds=row.seconds,
            text=row.text,
            repeat=row.repeat,
            paused=row.paused,
            state=row.state,
        )


def _moment(local: datetime, zone: tzinfo, near: float | None = None) -> float:
    """Of a wall time; of a double hour the one that was meant before (`near`), or else the first."""
    first = local.replace(tzinfo=zone, fold=0).timestamp()
    second = local.replace(tzinfo=zone, fold=1).timestamp()
    return second if near == second else first


def _row(found: Sequence[object]) -> Row:
    id, kind, name, text, seconds, local, repeat, due, steady, paused, state = found
    days = tuple(str(repeat).split())
    return Row(id, kind, name, text, seconds, local, days, due, steady, paused, state)  # type: ignore[arg-type]


def _values(row: Row) -> tuple[object, ...]:
    repeat = " ".join(row.repeat)
    return (row.kind, row.name, row.text, row.seconds, row.local, repeat, row.due, row.steady, row.paused, row.state)
