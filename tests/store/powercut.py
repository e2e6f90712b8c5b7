"""Power cuts, replayed: what a process wrote is logged (powercut.c), and put on a disk as a cut would leave it.

The model of a disk: what was synced is there. Of what was not, each file keeps nothing, a beginning, or some of the
writes; the last of them may be torn at a sector, with garbage in the rest. Creating, renaming and deleting files
without a sync of their folder is left to chance; syncing a new file makes its name safe, as Linux's file systems do.
Directory entries are not reordered beyond that, and no bit rots.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SECTOR = 512
ACKS = "acks"
"""The file to which a writer says what has been acknowledged, a line each; it is no part of the disk."""

Op = Literal["C", "W", "T", "S", "U", "R"]


@dataclass(frozen=True, slots=True)
class Step:
    op: Op
    path: str
    at: int
    data: bytes


@dataclass(slots=True)
class File:
    safe: bytearray = field(default_factory=bytearray)
    loose: list[Step] = field(default_factory=list)
    """Writes and truncations since the last sync."""
    named: bool = False
    """Whether its name is on the disk."""


def compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def built(folder: Path) -> Path:
    """The logging library."""
    library = folder / "powercut.so"
    command = [str(compiler()), "-shared", "-fPIC", "-O1", "-w", str(HERE / "powercut.c"), "-o", str(library)]
    subprocess.run(command, check=True, capture_output=True)
    return library


def recorded(library: Path, folder: Path, script: str, *arguments: str, seconds: float = 120.0) -> list[Step]:
    """What a Python script does below the folder, which is its first argument. It may kill itself."""
    log = folder.with_name(f"{folder.name}.log")
    log.unlink(missing_ok=True)
    env = {**os.environ, "LD_PRELOAD": str(library), "POWERCUT_LOG": str(log), "POWERCUT_FOLDER": str(folder)}
    env["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder), *arguments],
        env=env,
        timeout=seconds,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode not in (0, -9):
        raise AssertionError(done.stderr[-2_000:])
    return list(_read(log.read_bytes(), f"{folder}/"))


def _read(log: bytes, prefix: str) -> Iterator[Step]:
    at = 0
    while at < len(log):
        op, length = chr(log[at]), struct.unpack_from("<H", log, at + 1)[0]
        path = log[at + 3 : at + 3 + length].decode().removeprefix(prefix)
        at += 3 + length
        offset, size = struct.unpack_from("<qI", log, at)
        data = log[at + 12 : at + 12 + size]
        at += 12 + size
        yield Step(op, path, offset, data if op == "W" else data.decode().removeprefix(prefix).encode())  # type: ignore[arg-type]


class Disk:
    """What is on it, and what is on its way; `honest`: a sync means it."""

    def __init__(self, before: Mapping[str, bytes] | None = None, *, honest: bool = True) -> None:
        self.files = {name: File(bytearray(content), named=True) for name, content in (before or {}).items()}
        self.gone: dict[str, File] = {}
        """Deleted or renamed since their folder was synced."""
        self.acks = ""
        self._honest = honest
        self.syncs = 0
        self.written = 0

    def step(self, step: Step) -> None:
        if step.path == ACKS:
            self.acks += step.data.decode() if step.op == "W" else ""
            return
        match step.op:
            case "C":
                self.files[step.path] = File()
            case "W" | "T":
                self.written += len(step.data)
                self.files.setdefault(step.path, File()).loose.append(step)
            case "S":
                self.syncs += 1
                if self._honest:
                    self._sync(step.path)
            case "U":
                self.gone[step.path] = self.files.pop(step.path, File())
            case "R":
                moved = self.files.pop(step.path, File())
                new = step.data.decode()
                if new in self.files:
                    self.gone[new] = self.files[new]
                self.files[new] = File(moved.safe, moved.loose, named=False)
                self.gone[step.path] = moved

    def _sync(self, path: str) -> None:
        file = self.files.get(path)
        if file is None:  # a folder
            self.gone.clear()
            for file in self.files.values():
                file.named = True
            return
        for step in file.loose:
            _apply(file.safe, step)
        file.loose.clear()
        file.named = True

    def cut(self, chance: random.Random) -> dict[str, bytes]:
        """The files as they may be found afterwards."""
        found = {}
        for name, file in self.files.items():
            before = self.gone.get(name)
            if not file.named and chance.random() < 0.5:
                if before is not None and before.named:
                    found[name] = _left(before, chance)
                continue
            found[name] = _left(file, chance)
        for name, file in self.gone.items():
            if name not in self.files and file.named and chance.random() < 0.5:
                found[name] = _left(file, chance)
        return found


def _left(file: File, chance: random.Random) -> bytes:
    content = bytearray(file.safe)
    how = chance.choice(("none", "all", "beginning", "some", "torn", "torn"))
    steps = list(file.loose)
    if how == "none":
        steps = []
    elif how in ("beginning", "torn") and steps:
        steps = steps[: chance.randint(1, len(steps))]
    elif how == "some":
        steps = [step for step in steps if chance.random() < 0.5]
    for step in steps[:-1]:
        _apply(content, step)
    if steps:
        last = steps[-1]
        if how == "torn" and last.op == "W":
            whole = chance.randrange(0, len(last.data) + 1) // SECTOR * SECTOR
            garbage = chance.randbytes(min(SECTOR, len(last.data) - whole)) if chance.random() < 0.5 else b""
            last = Step("W", last.path, last.at, last.data[:whole] + garbage)
        _apply(content, last)
    return bytes(content)


def _apply(content: bytearray, step: Step) -> None:
    if step.op == "T":
        del content[step.at :]
        content.extend(bytes(step.at - len(content)))
        return
    end = step.at + len(step.data)
    content.extend(bytes(max(0, end - len(content))))
    content[step.at : end] = step.data


@dataclass(slots=True)
class Verdict:
    """How many cuts, of which damaged the file, and lost something that was acknowledged; the most that one lost."""

    cuts: int = 0
    damaged: int = 0
    losing: int = 0
    most: int = 0
    syncs: int = 0
    written: int = 0
    first: str = ""
    """The first that went wrong."""


Check = "Callable[[Path, list[str]], tuple[bool, int]]"


def replayed(  # type: ignore[no-untyped-def]
    steps: list[Step],
    scratch: Path,
    check,
    cuts: int,
    *,
    seed: int = 0,
    honest: bool = True,
    before: Mapping[str, bytes] | None = None,
) -> Verdict:
    """Cuts the power `cuts` times, at every boundary if there are as many. `check` is given a folder and the
    acknowledgements before the cut; it opens what it finds and says whether it was damaged, and how many are lost."""
    chance, disk, verdict = random.Random(seed), Disk(before, honest=honest), Verdict()
    each, extra = divmod(cuts, max(1, len(steps)))
    lucky = set(chance.sample(range(len(steps)), extra)) if steps else set()
    for number, step in enumerate(steps):
        disk.step(step)
        for _ in range(each + (number in lucky)):
            folder = scratch / f"cut-{verdict.cuts}"
            folder.mkdir(parents=True)
            for name, content in disk.cut(chance).items():
                (folder / name).write_bytes(content)
            damaged, lost = check(folder, disk.acks.splitlines())
            verdict.cuts += 1
            verdict.damaged += damaged
            verdict.losing += lost > 0
            verdict.most = max(verdict.most, lost)
            if (damaged or lost) and not verdict.first:
                verdict.first = (
                    f"after step {number} ({step.op} {step.path} at {step.at}): damaged {damaged}, lost {lost}"
                )
            shutil.rmtree(folder)
    verdict.syncs, verdict.written = disk.syncs, disk.written
    return verdict


# --- writers, and what must be there ------------------------------------------------------------------------------

_BEGIN = """
import json, os, sys
from pathlib import Path
folder = Path(sys.argv[1])
acks = open(folder / "acks", "a", buffering=1)
def ack(*what):
    acks.write(json.dumps(what) + "\\n")
def begins(key):
    ack("may", key, "")
"""
CELLS = (
    _BEGIN
    + """
from appliance.store.cells import Cells
space = Cells(folder / "cells.db").space("lists", 1 << 20)
for number in range(int(sys.argv[2])):
    begins(f"key{number % 40}")
    space.write(f"key{number % 40}", f"{number} " * (number % 50))
    ack("set", f"key{number % 40}", f"{number} " * (number % 50))
    if number % 9 == 0:
        begins(f"key{number % 40}")
        space.delete(f"key{number % 40}")
        ack("del", f"key{number % 40}", "")
os.kill(os.getpid(), 9)
"""
)
ALARMS = (
    _BEGIN
    + """
from zoneinfo import ZoneInfo
from appliance.skills.skill import Alarm
from appliance.store.alarms import Alarms
alarms = Alarms(folder / "alarms.db", Alarm, ZoneInfo("UTC"))
for number in range(int(sys.argv[2])):
    if number > 60:
        begins(str(made[number % 60]))
        alarms.cancel(made[number % 60])
        ack("del", str(made[number % 60]), "")
    id = alarms.add("timer", name=f"timer {number}", seconds=1_000.0 + number).id
    made = [*(made if number else []), id]
    if number > 60:
        made[number % 60] = id
    ack("set", str(id), f"timer {number}")
os.kill(os.getpid(), 9)
"""
)
MEMORY = (
    _BEGIN
    + """
from functools import partial
from appliance.store import book
from appliance.store.memory import Memory, MemoryRules
from appliance.store.units import Turn
if sys.argv[3] == "normal":
    book.open_database = partial(book.open_database, durable=False)
now = [1_790_000_000.0]
memory = Memory(folder, None, MemoryRules(backup_s=3_000.0), wall=lambda: now[0], steady=lambda: now[0])
ids = {}
for number in range(int(sys.argv[2])):
    now[0] += 600.0
    kept = memory.keep(Turn(f"my locker{number} code is N{number}00", "Noted. " * (number % 30))).result(30)
    ids[number] = kept.units[0].id
    ack("set", f"N{number}00", "")
    if number % 8 == 5:
        memory.edit(ids[number - 2], f"my locker{number - 2} code is E{number}00")
        ack("set", f"E{number}00", "")
    if number % 12 == 7:
        begins(f"N{number - 1}00")
        memory.forget([ids[number - 1]])
        ack("del", f"N{number - 1}00", "")
    if number % 16 == 9:
        now[0] += 700_000.0
        memory.tidy()
os.kill(os.getpid(), 9)
"""
)


def expected(acks: list[str]) -> tuple[dict[str, str], set[str]]:
    """What must be there, by key, and which keys must not. What a write had begun on may be either."""
    import json

    there: dict[str, str] = {}
    gone: set[str] = set()
    for line in acks:
        try:
            what, key, value = json.loads(line)
        except ValueError:
            continue  # the line itself was cut
        there.pop(key, None)
        gone.discard(key)
        if what == "set":
            there[key] = value
        elif what == "del":
            gone.add(key)
    return there, gone


def check_memory(folder: Path, acks: list[str]) -> tuple[bool, int]:
    from appliance.store.memory import Memory

    there, _ = expected(acks)
    memory = Memory(folder, None)
    try:
        if memory.health.quarantined or not memory.health.ok:
            return True, len(there)
        units = memory.units(past=True)
        told = {unit.value for unit in units}
        said = " ".join(turn.asked for turn in memory.turns(limit=100_000))
        lost = sum(key not in told or key not in said for key in there)
        kept = memory.keep(_turn("my last code is L999")).result(30)  # it works on
        return not kept.turn, lost
    finally:
        memory.close()


def check_cells(folder: Path, acks: list[str]) -> tuple[bool, int]:
    from appliance.store.cells import Cells

    there, gone = expected(acks)
    cells = Cells(folder / "cells.db")
    try:
        space = cells.space("lists", 1 << 20)
        wrong = [key for key, value in there.items() if space.read(key) != value]
        wrong += [key for key in gone if space.read(key) is not None]
        return bool(list(folder.glob("*.damaged-*"))), len(wrong)
    finally:
        cells.close()


def check_alarms(folder: Path, acks: list[str]) -> tuple[bool, int]:
    from zoneinfo import ZoneInfo

    from appliance.skills.skill import Alarm
    from appliance.store.alarms import Alarms

    there, gone = expected(acks)
    alarms = Alarms(folder / "alarms.db", Alarm, ZoneInfo("UTC"))
    try:
        names = {str(alarm.id): alarm.name for alarm in alarms.all()}
        wrong = [id for id, name in there.items() if names.get(id) != name] + [id for id in gone if id in names]
        return bool(list(folder.glob("*.damaged-*"))), len(wrong)
    finally:
        alarms.close()


def _turn(text: str):  # type: ignore[no-untyped-def]
    from appliance.store.units import Turn

    return Turn(text)


WRITERS = {"memory": (MEMORY, check_memory), "cells": (CELLS, check_cells), "alarms": (ALARMS, check_alarms)}
