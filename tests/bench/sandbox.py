"""A good skill, alone and beside one that misbehaves: does anybody else notice?

    python tests/bench/sandbox.py [--calls 600] [--past-breaker] [--json]

Alone and beside take turns. The faulty skill is called as often as a person could at most, and its breaker benches it
after the third failure; it is new in each round. With --past-breaker it is never benched, and called without a pause:
worse than what can happen.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from harness import ROOT, arguments, figures, judged, report

sys.path.insert(1, str(ROOT / "tests/skills"))

from guests import FAULTS, asks, folder, services, wat

from appliance.errors import SkillFault
from appliance.skills import manifest
from appliance.skills.breaker import Breaker
from appliance.skills.sandbox import Sandboxed
from appliance.skills.skill import Call

CALL = Call("Do", {})
KINDS = ("loops", "allocates", "traps", "recurses", "floods", "blocks", "floods the log")
CALLS_ON = "(loop $again (drop (call $host (i32.const 512) (i32.const 13))) (br $again))"
PAUSE = 0.01
"""Seconds between two calls of the good skill, as a busy box has them."""
OFTEN = 0.2
"""Seconds between two calls of the faulty one."""


class Never(Breaker):
    def failed(self) -> bool:
        return False


def skill(
    root: Path, name: str, text: str, granted: str = "", given: Any = None, breaker: Breaker | None = None
) -> Sandboxed:
    place = folder(
        root, name, text, manifest=f"[grants]\n{granted}\n[limits]\ndeadline_ms = 200\nfuel = 1_000_000_000\n"
    )
    return Sandboxed(manifest.read(place), given or services(), breaker=breaker)


async def timed(good: Sandboxed, calls: int) -> list[float]:
    found = []
    for _ in range(calls):
        started = time.perf_counter()
        await good.call(CALL)
        found.append(time.perf_counter() - started)
        await asyncio.sleep(PAUSE)
    return found


async def misbehave(bad: Sandboxed, pause: float) -> None:
    while True:
        with contextlib.suppress(SkillFault):
            await bad.call(CALL)
        await asyncio.sleep(pause)


async def measure(calls: int, *, past: bool) -> dict[str, Any]:
    from guests import Network

    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        good = skill(root, "good", wat())
        slow = services(network=Network(lambda: time.sleep(0.15)))
        others = {
            "blocks": asks("mqtt_publish", '{"topic": "a/b", "payload": "x"}'),
            "floods the log": asks("log", '{"text": "x"}', before=CALLS_ON, alloc="(i32.const 8192)"),
        }
        await timed(good, 50)
        for kind in KINDS:
            granted = 'log = true\npublish = ["a/#"]'
            alone, beside = [], []
            for _ in range(6):
                alone += await timed(good, calls // 6)
                breaker = Never() if past else None
                bad = skill(root, f"bad-{kind.replace(' ', '-')}", (FAULTS | others)[kind], granted, slow, breaker)
                task = asyncio.create_task(misbehave(bad, 0.0 if past else OFTEN))
                beside += await timed(good, calls // 6)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await asyncio.sleep(0.4)
            results[kind] = {"alone": alone, "beside": beside}
    return results


def show(results: dict[str, Any]) -> None:
    print("a good skill's call, ms: alone, and beside one that")
    for kind, times in results.items():
        alone, beside = figures(times["alone"]), figures(times["beside"])
        told = "   ".join(
            f"{1e3 * one['p50']:.2f}/{1e3 * one['p95']:.2f}/{1e3 * one['p99']:.2f}" for one in (alone, beside)
        )
        print(
            f"  {kind:14} {told}   P50 {judged(beside['p50'] / alone['p50'], 1.1)}, "
            f"P99 {judged(beside['p99'] / alone['p99'], 1.1)} of alone"
        )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--calls", type=int, default=600)
    parser.add_argument("--past-breaker", action="store_true")
    args = parser.parse_args()
    report(asyncio.run(measure(args.calls, past=args.past_breaker)), show, as_json=args.json)


if __name__ == "__main__":
    main()
