"""The turn: from the end of speech to the first sound of the answer, against the plain chain.

    python tests/bench/turn.py [--turns 200] [--asr whisper-tiny.en] [--json]

Both sides get the same questions with the same models, one after the other. Parley hears each question in real time.
The plain chain is given the recording when a 500 ms voice detector would have ended the turn, and then runs
faster-whisper, llama.cpp and piper one after the other, up to the sound of the answer's first sentence.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import arguments, figures, judged, load, peer, peer_models, report
from questions import spoken_questions

from appliance import config
from appliance.commands.shelf import open_shelf
from appliance.compose import Engines, talk
from appliance.events import Answered, Mark, NoSpeech, Transcript
from appliance.voice.conversation import Conversation
from firmware.fake import Fake
from firmware.frame import RATE

PEER_SILENCE = 0.5
"""Seconds of silence after which the plain chain's voice detector ends the turn."""


async def one_turn(engines: Engines, path: Path, end: int) -> dict[str, Any]:
    """Milliseconds after sample `end`, the true end of speech, at which each mark was reached."""
    marks: dict[str, Mark] = {}
    text, said = "", ""
    async with talk(engines, Fake(path, tail=4.0, pace=1.0), Conversation()) as events:
        async for event in events:
            match event:
                case Mark():
                    marks.setdefault(f"{event.stage} {event.name}", event)
                    if event.name == "speech end":
                        marks[f"{event.stage} {event.name}"] = event
                    if event.stage == "mouth":
                        break
                case Transcript():
                    text = event.text
                case Answered() | NoSpeech():
                    said = getattr(event, "said", "")
                    break
    found = marks.pop("endpoint speech end", None)
    if found is None or "mouth first sound" not in marks:
        return {"text": text, "said": said, "failed": True}
    wall = found.wall + (end - found.at) / RATE
    return {"text": text, **{name: (mark.wall - wall) * 1000 for name, mark in marks.items()}}


def run(turns: int, asr: str) -> dict[str, Any]:
    """One dictionary per turn and side."""
    settings = config.parse(f'[models]\nasr = "{asr}"')
    engines = Engines(settings, open_shelf(settings))
    engines.warm()
    ours: list[dict[str, Any]] = []
    theirs: list[dict[str, Any]] = []
    names = {role: getattr(settings.models, role) for role in ("asr", "lm", "voice")}
    with (
        tempfile.TemporaryDirectory() as scratch,
        peer_models(engines.shelf, **names) as files,
        peer("chain_peer.py", {**files, "threads": 2}) as ask,
    ):
        questions = spoken_questions(engines.speaker, Path(scratch))
        for number, (text, path, end) in zip(range(turns), questions, strict=False):
            ours.append({"asked": text, **asyncio.run(one_turn(engines, path, end))})
            theirs.append(ask({"wav": str(path), "system": settings.think.system}))
            if number % 10 == 9:
                print(f"  {number + 1} of {turns} turns, load {load():.1f}", file=sys.stderr, flush=True)
    return {"asr": asr, "parley": ours, "chain": theirs}


def show(result: dict[str, Any]) -> None:
    ours = [turn["mouth first sound"] for turn in result["parley"] if "failed" not in turn]
    theirs = [(PEER_SILENCE + turn["total"]) * 1000 for turn in result["chain"]]
    print(f"end of speech to first sound, {result['asr']}, {len(result['parley'])} turns")
    for name, values in (("parley", ours), ("plain chain", theirs)):
        f = figures(values)
        print(f"  {name:12} median {f['p50']:7.0f} ms   P95 {f['p95']:7.0f}   P99 {f['p99']:7.0f}   n {f['n']}")
    ratio = figures(ours)["p50"] / figures(theirs)["p50"]
    tail = figures(ours)["p99"] / figures(ours)["p50"]
    print(f"  median against the chain {judged(ratio, 0.35)}   P99/P50 {judged(tail, 1.5)}")
    print(f"  turns without an answer: {sum('failed' in turn for turn in result['parley'])}")
    print("  waterfall, median ms after the end of speech")
    for name in ("hear start", "hear words", "think start", "think first token", "say first sound", "endpoint decided"):
        values = [turn[name] for turn in result["parley"] if name in turn]
        if values:
            print(f"    {name:20} {figures(values)['p50']:7.0f}")
    chain = {name: figures([turn[name] for turn in result["chain"]])["p50"] * 1000 for name in ("hear", "think", "say")}
    print("  plain chain, median ms: silence 500, " + ", ".join(f"{name} {value:.0f}" for name, value in chain.items()))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--asr", default=config.Models().asr)
    args = parser.parse_args()
    report(run(args.turns, args.asr), show, as_json=args.json)


if __name__ == "__main__":
    main()
