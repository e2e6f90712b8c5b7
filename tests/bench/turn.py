"""The turn: from the end of speech to the first sound of the answer, against the plain chain.

    python tests/bench/turn.py [--turns 200] [--asr whisper-tiny.en] [--json]

Both sides get the same questions with the same models, one after the other. Parley hears each question in real time.
The plain chain is given the recording when a 500 ms voice detector would have ended the turn, and then runs
faster-whisper, llama.cpp and piper one after the other, up to the sound of the answer's first sentence.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from harness import figures, judged, load, peer, whisper_folder
from questions import spoken_questions

from appliance import config
from appliance.commands.shelf import open_shelf
from appliance.compose import Engines, talk
from appliance.events import Answered, Mark, NoSpeech, Transcript
from appliance.voice.conversation import Conversation
from firmware.fake import Fake
from firmware.frame import RATE
from models.quantized.build import default_store

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


def peer_models(engines: Engines, folder: Path) -> dict[str, str]:
    """The same weights in the form that the plain chain reads."""
    sources = {}
    for id in (engines.config.models.asr, engines.config.models.lm, engines.config.models.voice):
        card = engines.shelf.card(id)
        store = default_store(engines.shelf)
        sources[id] = {source.name: store.find(card, source) for source in card.sources}
    asr = whisper_folder(sources[engines.config.models.asr], folder / "asr")
    voice = folder / "voice.onnx"
    voice.symlink_to(sources[engines.config.models.voice]["voice"])
    Path(f"{voice}.json").symlink_to(sources[engines.config.models.voice]["config"])
    return {"asr": str(asr), "voice": str(voice), "gguf": str(sources[engines.config.models.lm]["model.gguf"])}


def run(turns: int, asr: str) -> dict[str, Any]:
    """One dictionary per turn and side."""
    settings = config.parse(f'[models]\nasr = "{asr}"')
    engines = Engines(settings, open_shelf(settings))
    engines.warm()
    ours: list[dict[str, Any]] = []
    theirs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        chain = {"threads": 2, **peer_models(engines, folder)}
        with peer("chain_peer.py", chain) as ask:
            questions = spoken_questions(engines.speaker, folder)
            for number, (text, path, end) in zip(range(turns), questions, strict=False):
                ours.append({"asked": text, **asyncio.run(one_turn(engines, path, end))})
                theirs.append(ask({"wav": str(path), "system": settings.think.system}))
                if number % 10 == 9:
                    print(f"  {number + 1} of {turns} turns, load {load():.1f}", file=sys.stderr, flush=True)
    return {"asr": asr, "load": load(), "parley": ours, "chain": theirs}


def report(result: dict[str, Any]) -> None:
    ours = [turn["mouth first sound"] for turn in result["parley"] if "failed" not in turn]
    theirs = [(PEER_SILENCE + turn["total"]) * 1000 for turn in result["chain"]]
    print(f"end of speech to first sound, {result['asr']}, {len(result['parley'])} turns, load {result['load']:.1f}")
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--asr", default=config.Models().asr)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    result = run(args.turns, args.asr)
    print(json.dumps(result)) if args.json else report(result)


if __name__ == "__main__":
    main()
