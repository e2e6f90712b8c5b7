"""Memory: what is found again, what fades, how quickly, and what it costs; over ten months of made-up talk.

    python tests/bench/memory.py [--part found|changes|budget|latency|turns ...] [--set test|dev] [--seeds 2] [--wrong]
                                 [--turns 50000] [--json]

The logs are `memories.world`s: rules and thresholds may be chosen with `--set dev`, the other set is what is reported.
Everything runs through `Memory` with the real sentence vectors; clocks are virtual, so ten months take a minute.

found: recall@10 (evidence: the units of the turns that hold the answer) with forgetting, without (`decay=False`), and
by words or meaning alone. old: asked a day after ten months; recent: asked one hour to 60 days after the evidence
(log-uniform), when nothing later had been said. changes: a later value outranks an earlier one. budget: half of the
questions are asked once, the five best units count as used, then half of the bytes are pruned; all are asked again.
latency: one core, sizes in turns, the question's vector included. turns: one long log on a disk.
"""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from harness import arguments, figures, judged, report, user_shelf
from memories import DAY, Change, Question, Said, World, world
from numpy.typing import NDArray

from appliance import config
from appliance.compose import Engines
from appliance.store import tables
from appliance.store.decay import Curve
from appliance.store.index import packed
from appliance.store.memory import Memory, MemoryRules
from appliance.store.units import Turn, Unit

PARTS = ("found", "changes", "budget", "latency", "turns")
START = 1_767_600_000.0
"""The first day of every log: the 5th of January 2026."""
TOP, USED = 10, 5
EVERY = DAY
"""Between two rounds of maintenance."""
PATIENCE = 600.0
Vector = NDArray[np.float32]
Arm = tuple[str, Memory]


class Vectors:
    """Real sentence vectors; each text is computed once."""

    def __init__(self) -> None:
        self._embed = Engines(config.load(), user_shelf()).embedder.embed
        self._known: dict[str, Vector] = {}

    def __call__(self, texts: Sequence[str]) -> Vector:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known |= zip(new, self._embed(new), strict=True) if new else ()
        return np.stack([self._known[text] for text in texts])

    def fresh(self, texts: Sequence[str]) -> Vector:
        return self._embed(texts)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


@dataclass(slots=True)
class Log:
    """A memory that lives through a world; `units` of each turn, as they were kept."""

    memory: Memory
    clock: Clock
    units: dict[int, tuple[int, ...]]
    tidied: float = 0.0

    def hear(self, said: Said) -> None:
        self.wait_until(said.at)
        turn = Turn(said.asked, said.reply, by="model")
        if said.command:
            turn = replace(turn, by="skill", intent="home.Command")
        kept = self.memory.keep(turn).result(PATIENCE)
        self.units[said.key] = tuple(unit.id for unit in kept.units)

    def wait_until(self, at: float) -> None:
        while self.tidied + EVERY < at:
            self.tidied += EVERY
            self.clock.now = max(self.clock.now, START + self.tidied)
            self.memory.tidy()
        self.clock.now = max(self.clock.now, START + at)

    def evidence(self, turns: Sequence[int]) -> set[int]:
        return {id for turn in turns for id in self.units.get(turn, ())}


@contextmanager
def opened(embed: Callable[[Sequence[str]], Vector] | None, **rules: Any) -> Iterator[Log]:
    clock = Clock()
    whole = replace(MemoryRules(mode="session", backup_s=1e12), **rules)
    with tempfile.TemporaryDirectory() as scratch:
        memory = Memory(Path(scratch), embed, whole, wall=clock, steady=clock)
        try:
            yield Log(memory, clock, {})
        finally:
            memory.close()


# --- what is found again ----------------------------------------------------------------------------------------------

ARMS: Mapping[str, Mapping[str, Any]] = {
    "decay": {},
    "none": {"curve": Curve(decay=False)},
    "words": {"curve": Curve(decay=False)},
}


def found(vectors: Vectors, name: str, seed: int) -> dict[str, Any]:
    """Of each question, its evidence's place (0: not among the best ten), by arm and protocol."""
    made = world(name, seed)
    chance = random.Random(seed)
    recent = [(one.at + 3_600 * 1_440 ** chance.random(), number) for number, one in enumerate(made.questions)]
    rows = [{"topic": one.topic, "split": one.split, "asked": one.text} for one in made.questions]
    for arm, rules in ARMS.items():
        with opened(None if arm == "words" else vectors, **rules) as log:
            for number, places in _asked(log, made, recent, vectors if arm == "none" else None):
                rows[number] |= {f"{arm} {key}": place for key, place in places.items()}
            if arm == "decay":
                kept = _kept(log, made)
                for row, one in zip(rows, made.questions, strict=True):
                    row["why"] = _why(log, made, one)
    return {"rows": rows, **kept}


def _asked(
    log: Log, made: World, recent: Sequence[tuple[float, int]], vectors: Vectors | None
) -> Iterator[tuple[int, dict[str, int]]]:
    """The whole log, each question asked when it is due, and all of them again in the end."""
    due = sorted(recent)
    for said in [*made.turns, None]:
        while due and (said is None or due[0][0] < said.at):
            at, number = due.pop(0)
            log.wait_until(at)
            yield number, {"recent": _place(log, made.questions[number])}
        if said is not None:
            log.hear(said)
            last = said.at
    log.wait_until(max(last, made.end) + DAY)
    meant = _by_meaning(log, vectors) if vectors else None
    for number, one in enumerate(made.questions):
        yield number, {"old": _place(log, one)}
        if meant:
            yield number, {"meaning old": _rank(meant(one.text), log.evidence(one.evidence))}


def _place(log: Log, one: Question) -> int:
    best = [hit.unit.id for hit in log.memory.find(one.text, limit=TOP)]
    return _rank(best, log.evidence(one.evidence))


def _rank(ids: Sequence[int], wanted: set[int]) -> int:
    return next((place for place, id in enumerate(ids, start=1) if id in wanted), 0)


def _by_meaning(log: Log, vectors: Vectors) -> Callable[[str], list[int]]:
    units = log.memory.units()
    rows = vectors([unit.text for unit in units])

    def best(text: str) -> list[int]:
        order = np.argsort(-(rows @ vectors([text])[0]))[:TOP]
        return [units[at].id for at in order]

    return best


def _kept(log: Log, made: World) -> dict[str, Any]:
    """What of the log became units: statements should, small talk and what the box itself claims must not."""
    filler = {said.key for said in made.turns if said.filler}
    noise = [said.asked for said in made.turns if said.key in filler and log.units[said.key]]
    silent = [said.asked for said in made.turns if said.key not in filler and not log.units[said.key]]
    lies = [unit.text for unit in log.memory.units(past=True) for word in made.lies if word in unit.text]
    return {
        "turns": len(made.turns),
        "units": len(log.memory.units(past=True)),
        "noise": [len(noise), len(filler), Counter(noise).most_common(8)],
        "silent": [len(silent), len(made.turns) - len(filler), silent],
        "lies": lies,
    }


def _why(log: Log, made: World, one: Question) -> str:
    """Why the evidence may be missing: nothing was kept, it does not hold any more, or it is only ranked behind."""
    ids = log.evidence(one.evidence)
    current = {unit.id for unit in log.memory.units()}
    told = " | ".join(made.turns[key].asked for key in one.evidence)
    return f"{'not kept' if not ids else 'ended' if not ids & current else 'ranked'}: {told}"


# --- what changes -----------------------------------------------------------------------------------------------------


def changes(vectors: Vectors, name: str, seed: int) -> dict[str, Any]:
    made = world(name, seed)
    with opened(vectors) as log:
        for said in made.turns:
            log.hear(said)
        log.wait_until(made.end + DAY)
        current = {unit.id for unit in log.memory.units()}
        texts = {unit.id: unit.text for unit in log.memory.units(past=True)}
        rows = [_changed(log, made, change, current, texts) for change in made.changes]
        apart = [
            {
                "first": made.turns[first].asked,
                "second": made.turns[second].asked,
                "kept": bool(set(log.units[first]) & current) and bool(set(log.units[second]) & current),
                "heard": bool(log.units[first]) and bool(log.units[second]),
            }
            for first, second in made.apart
        ]
    return {"rows": rows, "apart": apart}


def _holding(ids: set[int], value: str, texts: Mapping[int, str]) -> set[int]:
    """Those of a turn's units that hold the value; the others ("has a house and lives in ...") may go on to hold."""
    word = value.rpartition(" ")[2].lower()
    return {id for id in ids if word in texts.get(id, "").lower()} or ids


def _changed(log: Log, made: World, change: Change, current: set[int], texts: Mapping[int, str]) -> dict[str, Any]:
    *old, new = (_holding(log.evidence(turns), v, texts) for turns, v in zip(change.turns, change.values, strict=True))
    stale = set().union(*old) - new
    ids = [hit.unit.id for hit in log.memory.find(change.text, limit=200)]
    place, before = _rank(ids, new), _rank(ids, stale)
    answer = log.memory.answer(change.text)
    return {
        "name": change.name,
        "asked": change.text,
        "told": [made.turns[turns[-1]].asked for turns in change.turns],
        "marked": change.marked,
        "compared": place > 0 or before > 0,
        "outranks": place > 0 and not 0 < before < place,
        "top": 0 < place <= TOP,
        "heard": bool(new),
        "ended": not stale & current,
        "answered": answer is not None,
        "right": answer is not None and bool({unit.id for unit in answer.units} & new),
    }


# --- a byte budget ----------------------------------------------------------------------------------------------------


def budget(vectors: Vectors, name: str, seed: int) -> dict[str, Any]:
    """Each half of the questions is asked early once; `repeat` are those, `new` the others."""
    made = world(name, seed)
    order = list(range(len(made.questions)))
    random.Random(seed).shuffle(order)
    sums: dict[str, list[float]] = {}
    for early in (set(order[::2]), set(order[1::2])):
        with opened(vectors) as log:
            due = sorted((made.questions[number].at + DAY, number) for number in early)
            for said in made.turns:
                while due and due[0][0] < said.at:
                    at, number = due.pop(0)
                    log.wait_until(at)
                    log.memory.used(hit.unit.id for hit in log.memory.find(made.questions[number].again, limit=USED))
                log.hear(said)
            log.wait_until(made.end + DAY)
            before = _halves(log, made, early)
            size, units = log.memory.tidy().bytes, len(log.memory.units(past=True))
            # 50 % is the mark; pruning goes some way below it
            log.memory.rules = replace(log.memory.rules, largest_bytes=size // 2)
            tidied = log.memory.tidy()
            after = _halves(log, made, early)
            for key, value in {
                "repeat before": before[0],
                "repeat after": after[0],
                "new before": before[1],
                "new after": after[1],
                "bytes left": tidied.bytes / size,
                "units left": len(log.memory.units(past=True)) / units,
            }.items():
                sums.setdefault(key, []).append(value)
    return {key: statistics.fmean(values) for key, values in sums.items()}


def _halves(log: Log, made: World, early: set[int]) -> tuple[float, float]:
    hits = [(number in early, _place(log, one) > 0) for number, one in enumerate(made.questions)]
    return tuple(statistics.fmean(hit for asked, hit in hits if asked == half) for half in (True, False))  # type: ignore[return-value]


# --- what it costs ----------------------------------------------------------------------------------------------------

SIZES = (1_000, 100_000)
ASKED = 400
"""Questions per size, behind as many to warm up as a tenth."""


def latency(vectors: Vectors, name: str) -> dict[str, Any]:
    """Seconds of one `find`, by size. Of the units' vectors one world's are real, the others lie about as far from one
    of those as two similar sentences; the texts are all real."""
    questions = [one.text for one in world(name, 0).questions]
    chance = random.Random(0)
    taken = {f"{size} units": [0.0] * 0 for size in SIZES} | {"question's vector": [0.0] * 0}
    with tempfile.TemporaryDirectory() as scratch, one_core():
        memories = {}
        for size in SIZES:
            folder = Path(scratch) / str(size)
            _filled(folder, vectors, name, size)
            memories[size] = Memory(folder, vectors.fresh)
        try:
            for number in range(ASKED + ASKED // 10):
                text = chance.choice(questions)
                times = {"question's vector": _timed(partial(vectors.fresh, [text]))}
                for size in chance.sample(SIZES, len(SIZES)):
                    times[f"{size} units"] = _timed(partial(memories[size].find, text))
                if number >= ASKED // 10:
                    for key, value in times.items():
                        taken[key].append(value)
        finally:
            for memory in memories.values():
                memory.close()
    return {key: figures(values) for key, values in taken.items()}


@contextmanager
def one_core() -> Iterator[None]:
    """Other threads of this process keep theirs: what is measured runs in this one."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _filled(folder: Path, vectors: Vectors, name: str, size: int) -> None:
    """A memory with so many units, written past the writing thread: one transaction instead of a hundred thousand."""
    Memory(folder, None).close()
    chance = np.random.default_rng(0)
    base: Vector | None = None
    connection = sqlite3.connect(folder / "memory.db")
    with connection:
        for number, text in zip(range(size), _statements(name), strict=False):
            if number % 1_000 == 0 and (base is None or len(base) < 1_000):
                texts = [text, *(some for _, some in zip(range(999), _statements(name), strict=False))]
                base = vectors(texts)
            assert base is not None
            row = base[number % len(base)]
            if number >= len(base):
                row = row + chance.normal(0, 0.6 / len(row) ** 0.5, len(row)).astype(np.float32)
            turn = Turn(text, "I see.", at=tables.moment(START + 60 * number), lived=60.0 * number)
            id = tables.add_turn(connection, turn, ())
            unit = Unit(
                "fact", text, importance=0.5, turn=id, said=turn.at, born=turn.lived, uses=(turn.lived,), used=1
            )
            tables.add_unit(connection, unit, packed(row / np.linalg.norm(row)))
        tables.write_state(connection, wall=START + 60 * size, lived=60.0 * size)
    connection.close()


def _statements(name: str) -> Iterator[str]:
    seed = 0
    while True:
        yield from (said.asked for said in world(name, seed).turns if not said.filler)
        seed += 1


STEP = 10_000
"""Turns between two looks."""
BUDGET = 16 << 20
"""Bytes: so little that it is reached, and kept to, within the log."""


def turns(vectors: Vectors, name: str, count: int) -> dict[str, Any]:
    """A log of so many turns, 15 days for what are ten months elsewhere, on the disk that holds temporary files."""
    rows: list[dict[str, Any]] = []
    chance = random.Random(0)
    questions = [one.text for one in world(name, 0).questions]
    clock = Clock()
    with tempfile.TemporaryDirectory() as scratch:
        rules = MemoryRules(largest_bytes=BUDGET, backup_s=30 * DAY)
        memory = Memory(Path(scratch), vectors.fresh, rules, wall=clock, steady=clock)
        try:
            rows.append(_looked(memory, Path(scratch), questions, chance, 0, 0.0))
            started, tidied = time.perf_counter(), clock.now
            for number, (at, said) in zip(range(1, count + 1), _long(name), strict=False):
                clock.now = max(clock.now, START + at)
                if clock.now > tidied + DAY:
                    tidied = clock.now
                    memory.tidy()
                turn = Turn(said.asked, said.reply)
                if said.command:
                    turn = replace(turn, by="skill", intent="home.Command")
                memory.keep(turn)
                if number % 50 == 0:
                    memory.flush(PATIENCE)
                if number % 200 == 0:
                    memory.used(hit.unit.id for hit in memory.find(chance.choice(questions), limit=USED))
                if number % min(STEP, count) == 0:
                    memory.tidy()
                    per_turn = (time.perf_counter() - started) / min(STEP, count)
                    rows.append(_looked(memory, Path(scratch), questions, chance, number, per_turn))
                    started = time.perf_counter()
        finally:
            memory.close()
    return {"rows": rows, "budget": BUDGET}


def _long(name: str) -> Iterator[tuple[float, Said]]:
    number = 0
    while True:
        made = world(name, number)
        for said in made.turns:
            yield 15 * DAY * number + said.at / 20, said
        number += 1


def _looked(
    memory: Memory, folder: Path, questions: Sequence[str], chance: random.Random, count: int, per_turn: float
) -> dict[str, Any]:
    memory.flush(PATIENCE)
    asked = chance.sample(questions, 120)
    times = [_timed(partial(memory.find, text)) for text in asked]
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    return {
        "turns": count,
        "units": len(memory.units(past=True)),
        "database": sizes.get("memory.db", 0),
        "files": sum(sizes.values()),
        "rss": _rss(),
        "find": figures(times[20:]),
        "keep": per_turn,
    }


def _rss() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


# --- the table --------------------------------------------------------------------------------------------------------


def show(result: dict[str, Any]) -> None:
    if "found" in result:
        _show_found(result["found"])
    if "changes" in result:
        _show_changes(result["changes"])
    if "budget" in result:
        _show_budget(result["budget"])
    if "latency" in result:
        for key, limit in ((f"{SIZES[0]} units", 0.010), (f"{SIZES[1]} units", 0.030), ("question's vector", 0.0)):
            times = result["latency"][key]
            verdict = f", P99 {judged(1e3 * times['p99'], 1e3 * limit)}" if limit else f", {1e3 * times['p99']:.1f} P99"
            print(f"find, {key:18} ms: {1e3 * times['p50']:.1f} median, {1e3 * times['p95']:.1f} P95{verdict}")
    if "turns" in result:
        _show_turns(result["turns"])


def _share(rows: Sequence[Mapping[str, Any]], key: str) -> float:
    return 100 * sum(bool(row[key]) for row in rows) / max(1, len(rows))


def _show_found(worlds: Sequence[Mapping[str, Any]]) -> None:
    rows = [row for one in worlds for row in one["rows"]]
    share = {f"{arm} {when}": _share(rows, f"{arm} {when}") for arm in ARMS for when in ("old", "recent")}
    print(f"recall@{TOP} of {len(rows)} questions    old  recent")
    for arm, what in {"decay": "with forgetting", "none": "without", "words": "words alone"}.items():
        print(f"  {what:25} {share[f'{arm} old']:6.1f} {share[f'{arm} recent']:6.1f}")
    print(f"  {'meaning alone':25} {_share(rows, 'none meaning old'):6.1f}")
    for when, limit in (("old", -1.0), ("recent", 4.0)):
        gained = share[f"decay {when}"] - share[f"none {when}"]
        print(f"  {when}, against without: {judged(gained, limit, at_least=True, timed=False)} {_spread(rows, when)}")
    for topic in sorted({row["topic"] for row in rows}):
        part = [row for row in rows if row["topic"] == topic]
        figures = "  ".join(f"{_share(part, key):5.1f}" for key in share if not key.startswith("words"))
        print(f"    {topic:14} {len(part):4} questions, old and recent, with and without: {figures}")
    lost = Counter(row["why"].partition(":")[0] for row in rows if not row["none old"])
    print(f"  evidence that is missing without forgetting: {dict(lost)}")
    for what in ("noise", "silent"):
        some, all_ = (sum(one[what][at] for one in worlds) for at in (0, 1))
        kept = {"noise": "small talk and commands that became units", "silent": "statements that became none"}[what]
        print(f"  {kept}: {some} of {all_}")
    lies = sum(len(one["lies"]) for one in worlds)
    print(f"  claims of the box's own that became units: {judged(lies, 0, timed=False)}")


def _spread(rows: Sequence[Mapping[str, Any]], when: str) -> str:
    """The 95 % interval of the gain, by drawing questions again."""
    gains = np.array([100.0 * (bool(row[f"decay {when}"]) - bool(row[f"none {when}"])) for row in rows])
    drawn = np.random.default_rng(0).choice(gains, (2_000, len(gains))).mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return f"[{low:.1f}, {high:.1f}]"


def _show_changes(worlds: Sequence[Mapping[str, Any]]) -> None:
    every = [row for one in worlds for row in one["rows"]]
    apart = [pair for one in worlds for pair in one["apart"]]
    rows = [row for row in every if row["compared"]]
    outranks = judged(_share(rows, "outranks"), 98, at_least=True, timed=False)
    print(f"a later value outranks an earlier one, %: {outranks} of {len(rows)} of which either is found")
    for what, part in {
        "said to be a change": [row for row in every if row["marked"]],
        "only said": [row for row in every if not row["marked"]],
        "of three values": [row for row in every if len(row["told"]) > 2],
    }.items():
        outranks = f"{_share([row for row in part if row['compared']], 'outranks'):5.1f}"
        print(
            f"  {what:20} {len(part):3}: outranks {outranks}, is among the best ten {_share(part, 'top'):5.1f}, "
            f"has ended the earlier {_share(part, 'ended'):5.1f}, was kept {_share(part, 'heard'):5.1f}"
        )
    answered = [row for row in every if row["answered"]]
    print(f"  answered out of memory: {len(answered)}, with the later value {_share(answered, 'right'):.1f} %")
    print(f"what takes nothing's place, both still hold, %: {_share(apart, 'kept'):.1f} of {len(apart)}")


def _show_budget(runs: Sequence[Mapping[str, float]]) -> None:
    mean = {key: statistics.fmean(run[key] for run in runs) for key in runs[0]}
    left = f"{100 * mean['bytes left']:.0f} % are left, {100 * mean['units left']:.0f} % of the units"
    print(f"half of the bytes pruned: {left}")
    for half, limit in (("repeat", 3.0), ("new", 10.0)):
        before, after = 100 * mean[f"{half} before"], 100 * mean[f"{half} after"]
        lost = judged(before - after, limit, timed=False)
        print(f"  {half:6} recall@{TOP} {before:.1f} -> {after:.1f}, lost {lost}")


def _show_turns(result: Mapping[str, Any]) -> None:
    rows = result["rows"]
    print("turns    units  database MB  all files MB  RSS MB  find ms median/P95/P99  keep ms per turn")
    for row in rows:
        size, files, rss = (row[key] / 2**20 for key in ("database", "files", "rss"))
        times = "/".join(f"{1e3 * row['find'][key]:.1f}" for key in ("p50", "p95", "p99"))
        grown = f"{row['turns']:6} {row['units']:7} {size:11.1f} {files:13.1f} {rss:8.0f}"
        print(f"{grown}  {times:22} {1e3 * row['keep']:.2f}")
    budget = result["budget"]
    print(f"  database, of its budget: {judged(max(row['database'] for row in rows) / budget, 1.05, timed=False)}")
    grown = rows[-1]["rss"] - rows[0]["rss"]
    print(f"  RSS gained, MB: {judged(grown / 2**20, 64, timed=False)}")
    first = next(row for row in rows if row["turns"])
    print(f"  median find, last against first look: {judged(rows[-1]['find']['p50'] / first['find']['p50'], 1.25)}")


def _show_wrong(result: Mapping[str, Any]) -> None:
    for one in result.get("found", ()):
        for row in one["rows"]:
            if not row["decay old"]:
                print(f"not found: {row['asked']!r} {row['why']}")
        for text in one["silent"][2]:
            print(f"no unit: {text!r}")
        for text, count in one["noise"][2]:
            print(f"became a unit {count} times: {text!r}")
    for one in result.get("changes", ()):
        for row in one["rows"]:
            if row["compared"] and not row["outranks"]:
                print(f"outranked: {row['asked']!r} {row['told']}")
            if not row["ended"]:
                print(f"not ended: {row['told']}")
            if row["answered"] and not row["right"]:
                print(f"answered with another: {row['asked']!r} {row['told']}")
        for pair in one["apart"]:
            if not pair["kept"]:
                print(f"{'superseded' if pair['heard'] else 'not kept'}: {pair['first']!r} {pair['second']!r}")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS, help="what to measure")
    parser.add_argument("--set", choices=("test", "dev"), default="test", help="which log")
    parser.add_argument("--seeds", type=int, default=3, help="how many logs")
    parser.add_argument("--turns", type=int, default=50_000, help="length of the long log")
    parser.add_argument("--wrong", action="store_true", help="show what was wrong")
    args = parser.parse_args()
    vectors = Vectors()
    result: dict[str, Any] = {}
    seeds = range(args.seeds)
    if "latency" in args.part:  # first, while this process is small
        result["latency"] = latency(vectors, args.set)
    if "turns" in args.part:
        result["turns"] = turns(vectors, args.set, args.turns)
    for part, measure in (("found", found), ("changes", changes), ("budget", budget)):
        if part in args.part:
            result[part] = [measure(vectors, args.set, seed) for seed in seeds]
    if args.wrong:
        _show_wrong(result)
    report(result, show, as_json=args.json)


if __name__ == "__main__":
    main()
