"""Durability: power cuts, kill -9, and what is written.

    python tests/bench/durability.py [--cuts 3000] [--kills 300] [--part cuts|kills|wear ...] [--json]

cuts: what memory, skills' cells and alarms write is logged and replayed as a power cut would leave it, at every
boundary, many times (tests/store/powercut.py has the model of the disk); memory once more without full syncs, and on a
disk that ignores them: these two must lose. kills: the conversation itself (`parley chat`, real models, statements on
its input) is killed at random; what it had answered must be there, whole. wear: bytes and syncs of 100 turns, and of
an idle hour.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness import ROOT, arguments, judged, report

sys.path.insert(0, str(ROOT / "tests/store"))

import powercut
from powercut import ACKS, WRITERS, Disk, recorded, replayed

from appliance.store.memory import Memory

IDLE_MB = 1.0
TURNS = 100
COUNTS = {"memory": 120, "cells": 200, "alarms": 150}
MODES = (
    ("memory", "full", True),
    ("cells", "full", True),
    ("alarms", "full", True),
    ("memory", "normal", True),
    ("memory", "full", False),
)


def cuts(count: int) -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        library = powercut.built(Path(scratch))
        for number, (what, mode, honest) in enumerate(MODES):
            folder = Path(scratch) / f"{what}-{number}"
            folder.mkdir()
            script, check = WRITERS[what]
            steps = recorded(library, folder, script, str(COUNTS[what]), mode)
            wanted = count if mode == "full" and honest else count // 5
            verdict = replayed(steps, Path(scratch) / "cuts", check, wanted, seed=number, honest=honest)
            rows.append({"what": what, "mode": mode, "honest": honest, "steps": len(steps), **asdict(verdict)})
    return rows


# --- kill -9 ---------------------------------------------------------------------------------------------------------


def kills(count: int) -> dict[str, Any]:
    """Each process goes on where the last one was killed."""
    chance = random.Random(0)
    result: dict[str, Any] = {"kills": 0, "answered": 0, "lost": 0, "damaged": 0, "most in one": 0}
    with tempfile.TemporaryDirectory() as scratch:
        state = Path(scratch)
        number, answered = 0, 0
        while result["kills"] < count:
            number, done = _killed(state, number, 0.05 + 1.2 * chance.random() ** 2)
            answered = max(answered, done)
            memory = Memory(state / "parley", None)
            told = {unit.value for unit in memory.units(past=True)}
            result["damaged"] += bool(memory.health.quarantined or not memory.health.ok)
            memory.close()
            lost = sum(f"N{one}" not in told for one in range(answered + 1))
            result["kills"] += 1
            result["lost"] += lost
            result["most in one"] = max(result["most in one"], lost)
        result["answered"] = answered + 1
    return result


def _killed(state: Path, begin: int, after: float) -> tuple[int, int]:
    """Tells codes from `begin` on until it is killed, `after` seconds behind its first answer; the number to go on
    with, and the last that was answered."""
    env = {**os.environ, "XDG_STATE_HOME": str(state), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "appliance", "chat"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, cwd=ROOT)
    assert child.stdin is not None
    assert child.stdout is not None
    last, timer = begin - 1, threading.Timer(after, child.kill)
    with contextlib.suppress(BrokenPipeError):
        for number in range(begin, begin + 10_000):
            child.stdin.write(f"My locker {number} code is N{number}.\n")
            child.stdin.flush()
            line = child.stdout.readline()
            if not line:
                break
            if found := re.search(r"code is N(\d+)", line):
                last = int(found[1])
            if number == begin:
                timer.start()
    timer.cancel()
    child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        with contextlib.suppress(BrokenPipeError):
            pipe.close()
    return last + 1, last


# --- wear ------------------------------------------------------------------------------------------------------------

TALK = """
import sys
from pathlib import Path
from appliance.store.memory import Memory, MemoryRules
from appliance.store.units import Turn
now = [1_790_000_000.0]
memory = Memory(Path(sys.argv[1]), None, MemoryRules(), wall=lambda: now[0], steady=lambda: now[0])
for number in range(int(sys.argv[2])):
    now[0] += 30.0
    text = f"the visitor number {number} left a parcel at the desk"
    memory.keep(Turn(text, "Thank you, I will tell them.")).result(30)
memory.close() if sys.argv[3] == "close" else None
if sys.argv[3] == "idle":
    (Path(sys.argv[1]) / "acks").write_text("begin")
    for _ in range(6):
        now[0] += 600.0
        memory.tidy()
    memory.close()
"""


def wear() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        library = powercut.built(Path(scratch))
        figures: dict[str, Any] = {}
        for name, count, how in (("100 turns", TURNS, "none"), ("an idle hour", TURNS, "idle")):
            folder = Path(scratch) / name.replace(" ", "-")
            folder.mkdir()
            steps = recorded(library, folder, TALK, str(count), how)
            begin = max((n for n, step in enumerate(steps) if step.path == ACKS), default=0) if how == "idle" else 0
            disk = Disk()
            for step in steps[begin:]:
                if not step.path.endswith("-shm"):  # shared memory: nothing of it is written to a card
                    disk.step(step)
            figures[name] = {"bytes": disk.written, "syncs": disk.syncs}
        return figures


def show(results: dict[str, Any]) -> None:
    if rows := results.get("cuts"):
        print("power cuts: writes logged, cuts, damaged, losing what was acknowledged, most lost, syncs")
        for row in rows:
            name = f"{row['what']}, synchronous {row['mode']}" + ("" if row["honest"] else ", disk ignores syncs")
            print(
                f"  {name:42} {row['steps']:5} {row['cuts']:5} {row['damaged']:5} {row['losing']:5} "
                f"{row['most']:5} {row['syncs']:5}  {row['first']}"
            )
        sound = [row for row in rows if row["mode"] == "full" and row["honest"]]
        print(f"  damaged or losing: {judged(sum(r['damaged'] + r['losing'] for r in sound), 0, timed=False)}")
        others = min(row["damaged"] + row["losing"] for row in rows if row not in sound)
        print(f"  without syncs, or with a disk that lies: {judged(others, 1, at_least=True, timed=False)}")
    if found := results.get("kills"):
        print(f"kill -9 of the conversation: {found}")
        print(f"  lost or damaged: {judged(found['lost'] + found['damaged'], 0, timed=False)}")
    if found := results.get("wear"):
        for name, one in found.items():
            print(f"written in {name}: {one['bytes'] / 1e3:.0f} kB, {one['syncs']} syncs")
        print(f"  an idle hour, MB: {judged(found['an idle hour']['bytes'] / 1e6, IDLE_MB, timed=False)}")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--cuts", type=int, default=3_000)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--part", nargs="+", choices=("cuts", "kills", "wear"), default=["cuts", "kills", "wear"])
    args = parser.parse_args()
    results: dict[str, Any] = {}
    begin = time.monotonic()
    if "cuts" in args.part:
        results["cuts"] = cuts(args.cuts)
    if "kills" in args.part:
        results["kills"] = kills(args.kills)
    if "wear" in args.part:
        results["wear"] = wear()
    results["seconds"] = round(time.monotonic() - begin)
    report(results, show, as_json=args.json)


if __name__ == "__main__":
    main()
