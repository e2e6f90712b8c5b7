"""A skill that behaves, alone and beside one that does not: what other people's faults cost it.

    python tests/bench/sandbox.py [--rounds N] [--json]

Each round calls the good skill alone, then beside each kind of faulty skill, in turns, so that what else the machine
does falls on all of them alike. The time is from the call to the reply on the event loop, as a dialogue sees it. The
loop itself is watched as well: how late a 10 ms timer of it comes.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness import ROOT, arguments, figures, judged, report

sys.path.append(str(ROOT / "tests/skills"))

from guests import FAULTS, Network, asks, folder, services, wat

from appliance.errors import SkillFault
from appliance.skills import manifest
from appliance.skills.breaker import Breaker
from appliance.skills.sandbox import Sandboxed
from appliance.skills.skill import Call, Services

DO = Call("Do", {})
BLOCKS = 0.3
"""Seconds."""
PERIOD = 0.01
"""Seconds between two looks at the event loop."""
LOG = asks(
    "log", '{"text": "x"}', before="(loop $again (drop (call $host (i32.const 512) (i32.const 13))) (br $again))"
)
BESIDE = {
    **FAULTS,
    "blocks": asks("mqtt_publish", '{"topic": "a", "payload": "x"}'),
    "floods the log": LOG.replace("(local.get $at))", "(i32.const 8192))"),
}
BUSY = ("loops", "allocates", "blocks", "floods the log", "never allocates", "starts for ever", "starts at once")
"""Those that run until they are stopped; the others are over in a moment, and come again and again."""


class _Never(Breaker):
    """A skill that is benched would cost nothing."""

    @property
    def benched(self) -> float:
        return 0.0


def _made(root: Path, name: str, text: str, given: Services) -> Sandboxed:
    granted = (
        '[grants]\nlog = true\npublish = ["#"]\n[limits]\nfuel = 10_000_000_000\ndeadline_ms = 200\nmemory_mb = 16\n'
    )
    return Sandboxed(manifest.read(folder(root, name, text, manifest=granted)), given, breaker=_Never())


async def _keep_calling(bad: Sandboxed) -> None:
    while True:
        with suppress(SkillFault):
            await bad.call(DO)
        await asyncio.sleep(0.001)


async def _lateness(found: list[float]) -> None:
    while True:
        due = time.perf_counter() + PERIOD
        await asyncio.sleep(PERIOD)
        found.append(time.perf_counter() - due)


async def _timed(good: Sandboxed, calls: int) -> list[float]:
    found = []
    for _ in range(calls):
        started = time.perf_counter()
        await good.call(DO)
        found.append(time.perf_counter() - started)
        await asyncio.sleep(0.002)
    return found


async def run(rounds: int, calls: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["XDG_CACHE_HOME"] = scratch
        given = services(network=Network(lambda: time.sleep(BLOCKS)))
        good = _made(Path(scratch), "good", wat(), given)
        bad = {
            what: _made(Path(scratch), f"bad{number}", text, given)
            for number, (what, text) in enumerate(BESIDE.items())
        }
        times: dict[str, list[float]] = {what: [] for what in ("alone", *bad)}
        late: dict[str, list[float]] = {what: [] for what in times}
        await _timed(good, 5)
        for _ in range(rounds):
            for what in times:
                watch = [asyncio.create_task(_lateness(late[what]))]
                if what in bad:
                    watch.append(asyncio.create_task(_keep_calling(bad[what])))
                await asyncio.sleep(0.02)
                times[what] += await _timed(good, calls)
                for task in watch:
                    task.cancel()
                await asyncio.gather(*watch, return_exceptions=True)
                await asyncio.sleep(BLOCKS if what == "blocks" else 0.25 if what in BUSY else 0.02)  # to be stopped
    return {what: figures(times[what]) | {"late": figures(late[what])["p99"]} for what in times}


def show(results: dict[str, Any]) -> None:
    alone = results["alone"]
    print(f"{'beside a skill that':22} {'P50 ms':>7} {'P99 ms':>7} {'loop P99 ms':>12}  P50 against alone")
    for what, found in results.items():
        against = judged(found["p50"] / alone["p50"], 1.1) if what != "alone" else ""
        print(f"{what:22} {1e3 * found['p50']:7.2f} {1e3 * found['p99']:7.2f} {1e3 * found['late']:12.2f}  {against}")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--calls", type=int, default=10, help="of the good skill, in each round beside each fault")
    args = parser.parse_args()
    report(asyncio.run(run(args.rounds, args.calls)), show, as_json=args.json)


if __name__ == "__main__":
    main()
