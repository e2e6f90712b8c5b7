"""The box hears itself: its own replies through simulated rooms, at every delay, level and drift, for an hour in all.

    python tests/bench/own.py [--minutes 60] [--json]

Every voice opens a turn here (wake.mode "always"), which is the hardest case: whatever the canceller leaves is shown to
the voice detector, the wake words, endpointing and the recogniser. The bare loop beside it is the same line without the
front end.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import cycle, product
from typing import Any

import numpy as np
from harness import arguments, judged, report, user_shelf
from spoken import REPLIES, said

from appliance import config
from appliance.compose import Engines, basement, hears, interrupt_rules
from appliance.events import Held, NoSpeech, SpeechStarted, Transcript, Woken
from appliance.stream import Events
from appliance.voice.attend import AttendRules, Attention
from appliance.voice.bargein import Floor
from firmware.fake import Fake
from firmware.frame import RATE, Pcm
from firmware.room import Room

DELAYS, LEVELS, DRIFTS = (0.0, 0.03, 0.08, 0.2), (-6.0, 0.0, 6.0), (50.0, 150.0)
NOISE = -65.0
PAUSE = 4.0
"""Seconds between two replies: a turn that an echo opened has ended by then."""
SOFT = 2.0
"""How far the loudspeaker bends what is loud (see `firmware.room.Room`)."""
BARE_MINUTES = 1.0


def replies(engines: Engines) -> list[Pcm]:
    words = [f"You can say {word.replace('-', ' ')} to wake me." for word in engines.config.wake.words]
    texts = [*REPLIES, *words]
    return [said(engines.speaker, text, seed=number) for number, text in enumerate(texts)]


def speech(pool: Iterator[Pcm], seconds: float) -> list[Pcm]:
    """Replies until they are so long together."""
    chosen: list[Pcm] = []
    while sum(map(len, chosen)) < seconds * RATE:
        chosen.append(next(pool))
    return chosen


async def hear(engines: Engines, fake: Fake, spoken: list[Pcm], *, bare: bool) -> Counter[str]:
    """What came of it while the replies were played."""
    found: Counter[str] = Counter()
    gap = np.zeros(round(PAUSE * RATE), np.int16)
    for reply in spoken:
        fake.player.play(reply, RATE)
        fake.player.play(gap, RATE)
    floor = Floor(fake.player, interrupt_rules(engines.config))
    attention = Attention(AttendRules(mode="always"))
    with nullcontext(fake) if bare else basement(engines, fake) as sound:
        async with hears(engines, sound, attention.watch, attention=attention, floor=floor) as events:
            await count(events, found)
    return found


async def count(events: Events, found: Counter[str]) -> None:
    async for event in events:
        match event:
            case SpeechStarted():
                found["speech"] += 1
            case Transcript():
                found["turns"] += 1
                print(f"  heard: {event.text}", file=sys.stderr)
            case NoSpeech():
                found[f"dissolved: {event.why}"] += 1
            case Woken():
                found["wakes"] += 1
            case Held(on=True):
                found["holds"] += 1


def run(minutes: float) -> dict[str, Any]:
    engines = Engines(config.parse(""), user_shelf())
    pool = cycle(replies(engines))
    rows: list[dict[str, Any]] = []
    conditions = list(product(DELAYS, LEVELS, DRIFTS))
    for delay, level, drift in conditions:
        chosen = speech(pool, minutes * 60 / len(conditions))
        length = sum(map(len, chosen)) / RATE + PAUSE * len(chosen)
        room = Room(delay=delay, gain=level, drift=drift, soft=SOFT)
        fake = Fake(tail=length + 2, room=room, noise=NOISE, capacity=length + 10)
        found = asyncio.run(hear(engines, fake, chosen, bare=False))
        rows.append({"delay": delay, "level": level, "drift": drift, "speech_s": sum(map(len, chosen)) / RATE, **found})
        print(rows[-1], file=sys.stderr, flush=True)
    chosen = speech(pool, BARE_MINUTES * 60)
    length = sum(map(len, chosen)) / RATE + PAUSE * len(chosen)
    fake = Fake(tail=length + 2, room=Room(delay=0.03, gain=0.0), noise=NOISE, capacity=length + 10)
    bare = asyncio.run(hear(engines, fake, chosen, bare=True))
    return {"rows": rows, "bare": dict(bare)}


def show(results: dict[str, Any]) -> None:
    rows = results["rows"]
    total = {key: sum(row.get(key, 0) for row in rows) for key in ("speech_s", "speech", "holds", "turns", "wakes")}
    print(f"{len(rows)} conditions, {total['speech_s'] / 60:.1f} min of own speech")
    print(f"  turns: {judged(total['turns'], 0, timed=False)}, wakes: {judged(total['wakes'], 0, timed=False)}")
    print(f"  speech that was noticed: {total['speech']}, of it held an answer: {total['holds']}")
    print(f"  the same loop without the front end, {BARE_MINUTES:g} min: {results['bare']}")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    args = parser.parse_args()
    report(run(args.minutes), show, as_json=args.json)


if __name__ == "__main__":
    main()
