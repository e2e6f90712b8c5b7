"""A long day: hours of simulated listening with a fault every few minutes, on the real front end and the real models.

    python tests/bench/soak.py [--hours 24] [--every 240] [--json]

The card, its faults and the clock are simulated; the owner of the card, the echo canceller, the wake words and the
voice detector are the product's. Somebody says a wake word once in a while, and the box speaks.
"""

from __future__ import annotations

import gc
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import psutil
from harness import arguments, figures, judged, report, user_shelf
from spoken import said

from appliance import config
from appliance.compose import Engines, basement
from firmware.fake import Fake, Mishap, World
from firmware.frame import RATE, Frame, Pcm, Recovered, Trouble, Woke
from firmware.keeper import Keeper
from firmware.mixer import Mixer
from firmware.room import Room

KINDS = ("unplugged", "frozen", "silence", "rate", "server", "moved", "stalled", "overrun")
AWAY = 7.0
"""Seconds that a fault lasts."""
BACK_S = 3.0
NOISE = -65.0
CALL = 97
"""Seconds from one wake word to the next; the box answers each for some seconds."""


def mishaps(hours: float, every: float) -> list[Mishap]:
    chance = random.Random(0)
    times = np.arange(every, hours * 3600 - 30, every)
    return [_mishap(float(at), KINDS[number % len(KINDS)], chance) for number, at in enumerate(times)]


def _mishap(at: float, kind: Any, chance: random.Random) -> Mishap:
    place = round((at + chance.uniform(-20, 20)) * RATE)
    return Mishap(place, kind, 0.0 if kind in ("overrun", "moved") else AWAY, frames=300)


def near(hours: float, word: Pcm) -> Iterator[Pcm]:
    gap = np.zeros(CALL * RATE - len(word), np.int16)
    for _ in range(int(hours * 3600 / CALL)):
        yield gap
        yield word


def run(hours: float, every: float) -> dict[str, Any]:
    settings = config.load()
    engines = Engines(settings, user_shelf())
    word, answer = said(engines.speaker, "Okay Nabu."), said(engines.speaker, "The lights in the kitchen are off now.")
    planned = mishaps(hours, every)
    world = World(near(hours, word), tail=5.0, mishaps=planned)
    keeper = Keeper(
        lambda at, mixer, listen=True: Fake(
            world, mixer=mixer, at=at, noise=NOISE, room=Room(delay=0.06, gain=-6.0, drift=40.0)
        ),
        Mixer(),
        clock=world.now,
        sleep=world.sleep,
        aside=lambda job: job(),
    )
    seen: Counter[str] = Counter()
    back: list[float] = []
    memory: list[float] = []
    process, began = psutil.Process(), time.process_time()
    with basement(engines, keeper) as front, engines.detector() as vad:
        player = front.mixer.player("speech", capacity=60.0)
        for number, frame in enumerate(front.frames()):
            if frame.live:
                vad.push(frame)
            _count(frame, world, planned, seen, back)
            if any(isinstance(note, Woke) for note in frame.notes) and not player.pending:
                player.play(answer, RATE)
            if number % (360_000 // 4) == 0:
                gc.collect()
                memory.append(process.memory_info().rss / 1e6)
        scored, stuck = front.wake.scored, keeper.trouble
    hour = min(4, len(memory) // 3)
    return {
        "hours": world.now() / 3600,
        "faults": len(planned),
        "seen": dict(seen),
        "back": back,
        "memory": memory,
        "growth": memory[-1] - memory[hour],
        "scored": scored,
        "called": int(hours * 3600 / CALL),
        "stuck": stuck.kind if stuck else "",
        "cpu": (time.process_time() - began) / world.now(),
    }


def _count(frame: Frame, world: World, planned: list[Mishap], seen: Counter[str], back: list[float]) -> None:
    """`back` is how long after the end of a fault sound came again."""
    for note in frame.notes:
        match note:
            case Trouble():
                seen[f"trouble {note.kind}"] += 1
            case Recovered():
                seen[f"recovered {note.kind}"] += 1
                ended = max(m.at / RATE + m.seconds for m in planned if m.at / RATE <= world.now())
                back.append(max(0.0, world.now() - ended))
            case Woke():
                seen["woke"] += 1
    seen["overruns"] += frame.overruns


def show(results: dict[str, Any]) -> None:
    print(f"{results['hours']:.1f} hours of simulated listening, {results['faults']} faults")
    for what, times in sorted(results["seen"].items()):
        print(f"  {what:24} {times}")
    worst = max(results["back"], default=0.0)
    spread = figures(results["back"] or [0.0])
    print(f"  sound is back after a fault is over: median {spread['p50']:.2f} s, P99 {spread['p99']:.2f} s")
    print(f"  the worst: {judged(worst, BACK_S, timed=False)} s")
    print(f"  trouble at the end: {results['stuck'] or 'none'}; windows scored: {results['scored']}")
    print(
        f"  wake words said: {results['called']}; resident memory grew by {results['growth']:.1f} MB after warming up"
    )
    print(f"  CPU of the simulation and the front end: {100 * results['cpu']:.1f} % of a core")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--every", type=float, default=240.0, help="seconds from one fault to the next")
    args = parser.parse_args()
    report(run(args.hours, args.every), show, as_json=args.json)


if __name__ == "__main__":
    main()
