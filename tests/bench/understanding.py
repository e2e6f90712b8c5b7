"""Understanding: spoken orders, other people's talk, and the time to an intent's answer, through the whole loop.

    python tests/bench/understanding.py [orders|talk|time ...] [--folder DIR] [--limit N] [--asr whisper-base] [--json]

orders: recorded coffee orders (the manifest's labels are the truth), clean and mixed with recorded noise at 24, 15
and 6 dB: accepted with every slot right? `--folder` names other recordings with a MANIFEST.tsv of the same form.
talk: out-of-domain speech and noise, with every shipped skill loaded: is anything done that was not asked for?
time: end of speech to first sound, an intent's answer against a model's, in turns and in real time.

The measurements `intents`, `knowledge`, `claims` and `sandbox` have the rest of the figures of understanding; without
arguments they are run too.
"""

from __future__ import annotations

import asyncio
import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import wasmtime
from harness import HERE, ROOT, arguments, figures, judged, report

from appliance import config
from appliance.commands.shelf import open_shelf
from appliance.compose import Abilities, Engines, abilities, talk
from appliance.events import Answered, Did, Mark, NoSpeech, Phrase, Transcript, Understood
from appliance.skills.signature import Keys
from appliance.voice.conversation import Conversation
from firmware import wav
from firmware.fake import Fake
from firmware.frame import RATE, Pcm, to_pcm, to_wave

SHARED = Path(os.environ.get("PARLEY_SHARED") or ROOT.parent / "shared") / "audio"
REST = ("intents", "knowledge", "claims", "sandbox")
LEVELS = (None, 24.0, 15.0, 6.0)
TARGETS = {None: 0.97, 24.0: 0.96, 15.0: 0.94, 6.0: 0.88}
TAIL = 1.6
"""Seconds behind a recording in which its noise goes on: the turn has to end in it."""


@dataclass(frozen=True, slots=True)
class Order:
    name: str
    sound: Pcm
    intent: str
    slots: Mapping[str, str]


def orders(folder: Path) -> Iterator[Order]:
    with (folder / "MANIFEST.tsv").open(newline="", encoding="utf-8") as table:
        for row in csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE):
            label = row["transcript_or_label"].partition(") ")[2]
            if label.startswith('{"intent"'):
                found = json.loads(label)
                slots = {name: value.strip() for name, value in found["slots"].items()}
                yield Order(row["file"], wav.read(folder / row["file"]).samples, found["intent"], slots)


def noises(folder: Path) -> list[Pcm]:
    return [wav.read(path).samples for path in sorted((folder / "noise").glob("*.flac"))]


def mixed(sound: Pcm, noise: Pcm | None, level: float | None, seed: int) -> Pcm:
    """The sound and a tail, with the noise `level` dB below the sound's mean power all the way."""
    clean = np.concatenate([to_wave(sound), np.zeros(round(TAIL * RATE), np.float32)])
    if noise is None or level is None:
        return to_pcm(clean)
    start = int(np.random.default_rng(seed).integers(len(noise)))
    part = to_wave(np.resize(np.roll(noise, -start), len(clean)))
    power = np.mean(to_wave(sound) ** 2) / 10 ** (level / 10)
    both = clean + part * np.sqrt(power / np.mean(part**2))
    return to_pcm((both / max(1.0, float(np.abs(both).max()))).astype(np.float32))


@dataclass(slots=True)
class Heard:
    """What came of one recording."""

    texts: list[str]
    understood: list[Understood]
    did: list[Did]
    said: str = ""


async def through(engines: Engines, able: Abilities, sound: Pcm) -> Heard:
    """Plays it into the whole box, which has just been switched on. Where a turn ended too early and was put together
    with the next, that counts."""
    found = Heard([], [], [])
    able.dialogue.forget()
    async with talk(engines, Fake(sound, tail=4.0), Conversation(), able=able) as events:
        async for event in events:
            match event:
                case Transcript():
                    found = Heard([event.text, *event.alternatives], [], found.did)
                case Understood():
                    found.understood.append(event)
                case Did():
                    found.did.append(event)
                case Phrase():
                    found.said += event.text
                case Answered(reason="complete"):
                    break
    return found


# --- orders ----------------------------------------------------------------------------------------------------------


def right(order: Order, heard: Heard) -> bool:
    """Whether it was accepted as the one order that it is, with every slot and no other."""
    if len(heard.understood) != 1:
        return False
    (found,) = heard.understood
    return found.intent == order.intent and {k: str(v) for k, v in found.slots.items()} == dict(order.slots)


def measure_orders(engines: Engines, able: Abilities, folder: Path, limit: int) -> dict[str, Any]:
    given, sounds = list(orders(folder))[:limit], noises(SHARED)
    results: dict[str, Any] = {}
    for level in LEVELS:
        rows = []
        for number, order in enumerate(given):
            sound = mixed(order.sound, sounds[number % len(sounds)], level, number)
            heard = asyncio.run(through(engines, able, sound))
            rows.append(
                {
                    "file": order.name,
                    "right": right(order, heard),
                    "wanted": order.slots,
                    "understood": [[found.intent, dict(found.slots), found.score] for found in heard.understood],
                    "texts": heard.texts,
                    "said": heard.said,
                }
            )
        results["clean" if level is None else f"{level:g} dB"] = rows
        print(f"  {level}: {sum(row['right'] for row in rows)} of {len(rows)}", file=sys.stderr, flush=True)
    return results


def show_orders(results: Mapping[str, Any]) -> None:
    print("recorded orders, accepted with every slot right")
    for (name, rows), level in zip(results.items(), LEVELS, strict=True):
        share = sum(row["right"] for row in rows) / len(rows)
        asked = sum(any(found[0] != "orderDrink" for found in row["understood"]) for row in rows)
        wrong = sum(not row["right"] and any(f[0] == "orderDrink" for f in row["understood"]) for row in rows)
        verdict = judged(share, TARGETS[level], at_least=True, timed=False)
        print(f"  {name:6} {verdict}   of {len(rows)}; taken with a slot wrong {wrong}, asked back {asked}")


# --- other people's talk ----------------------------------------------------------------------------------------------


def measure_talk(engines: Engines, able: Abilities, limit: int) -> dict[str, Any]:
    from spoken_ood import clips

    rows = []
    for number, (name, sound, text) in enumerate(clips(engines.speaker, SHARED)):
        if number >= limit:
            break
        padded = np.concatenate([sound, np.zeros(round(TAIL * RATE), np.int16)])
        heard = asyncio.run(through(engines, able, padded))
        rows.append(
            {
                "name": name,
                "text": text,
                "texts": heard.texts,
                "understood": [
                    [found.skill, found.intent, dict(found.slots), found.score] for found in heard.understood
                ],
                "did": [[deed.what, deed.ok] for deed in heard.did],
                "said": heard.said,
            }
        )
        if number % 50 == 49:
            print(f"  {number + 1} clips", file=sys.stderr, flush=True)
    effects = {
        (name, intent): rule.effect
        for name, skill in able.library.skills.items()
        for intent, rule in skill.manifest.intents.items()
    }
    for row in rows:
        row["acted"] = acted(row, effects)
    return {"clips": rows}


def acted(row: Mapping[str, Any], effects: Mapping[tuple[str, str], str]) -> bool:
    """Whether an intent that acts was taken, even if nothing came of it."""
    meant = any(effects.get((skill, intent), "none") != "none" for skill, intent, *_ in row["understood"])
    return meant or any(ok for _, ok in row["did"])


def show_talk(results: Mapping[str, Any]) -> None:
    rows = results["clips"]
    wrong = [row for row in rows if row["acted"]]
    done = sum(any(ok for _, ok in row["did"]) for row in rows)
    answered = Counter(found[0] for row in rows for found in row["understood"])
    verdict = judged(done / len(rows), 0.005, timed=False)
    print(f"out-of-domain speech and noise, {len(rows)} clips: something done {done}, {verdict}; taken {len(wrong)}")
    print(f"  taken for a question to a skill, or asked back: {dict(answered)}")
    for row in wrong:
        print(f"  WRONG {row['text'] or row['name']!r}: {row['understood']}")


# --- time ------------------------------------------------------------------------------------------------------------

INTENTS = (
    "What time is it?",
    "What's the date today?",
    "Set a timer for ten minutes.",
    "How long is left on the timer?",
    "What is twelve times fourteen?",
    "How many grams are in two pounds?",
    "Add milk to my shopping list.",
    "Cancel the timer.",
    "What day is tomorrow?",
    "What's on my shopping list?",
)
MODEL = (
    "Tell me something nice.",
    "How are you today?",
    "Do you like music?",
    "Who are your friends?",
    "Why do people laugh?",
    "I feel a little bored.",
    "Do you enjoy your work?",
    "What makes a good holiday?",
    "Is it hard to be a machine?",
    "Tell me about the sea.",
)


async def first_sound(engines: Engines, able: Abilities, sound: Pcm, end: int) -> tuple[float, bool]:
    """Milliseconds from sample `end`, the true end of speech, to the first sound; and whether an intent answered."""
    ended: Mark | None = None
    meant = False
    async with talk(engines, Fake(sound, tail=4.0, pace=1.0), Conversation(), able=able) as events:
        async for event in events:
            match event:
                case Mark(stage="endpoint", name="speech end"):
                    ended = event
                case Understood():
                    meant = True
                case Mark(stage="mouth", name="first sound") if ended:
                    return (event.wall - ended.wall - (end - ended.at) / RATE) * 1000, meant
                case Answered() | NoSpeech():
                    break
    return float("nan"), meant


def measure_time(engines: Engines, able: Abilities, rounds: int) -> dict[str, Any]:
    from questions import voiced

    sides: dict[str, list[float]] = {"intent": [], "model": []}
    astray = []
    noise = np.random.default_rng(0)
    for intent, other in list(zip(INTENTS, MODEL, strict=True)) * rounds:
        for side, text in (("intent", intent), ("model", other)):
            wave, end = voiced(engines.speaker, text, noise)
            sound = to_pcm(wave)
            able.dialogue.forget()
            ms, meant = asyncio.run(first_sound(engines, able, sound, end))
            if meant == (side == "intent") and ms == ms:
                sides[side].append(ms)
            else:
                astray.append(text)
    return {**sides, "astray": astray}


def show_time(results: Mapping[str, Any]) -> None:
    print("end of speech to first sound")
    for side in ("intent", "model"):
        f = figures(results[side])
        print(f"  {side:8} median {f['p50']:5.0f} ms   P95 {f['p95']:5.0f}   P99 {f['p99']:5.0f}   n {f['n']}")
    ratio = figures(results["intent"])["p50"] / figures(results["model"])["p50"]
    print(f"  intent against model {judged(ratio, 0.6)}; answered by the other side {len(results['astray'])}")


# --------------------------------------------------------------------------------------------------------------------


MODULE = """(module (memory (export "memory") 1)
  (data (i32.const 16) "{\\22say\\22: \\22Okay.\\22}")
  (func (export "parley_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "parley_call") (param i32 i32) (result i64) (i64.const 68719476752)))"""
"""Says "Okay.": what is measured is what was understood."""
MANIFEST = """abi = 1
name = "coffee"
version = "1.0.0"
title = "Coffee"
module = "skill.wasm"
checksum = "{checksum}"
[intents.orderDrink]
effect = "none"
"""


def coffee_skill(folder: Path) -> None:
    """A skill whose slots are named as the labels are, signed by the box."""
    (folder / "coffee/intents").mkdir(parents=True)
    module = wasmtime.wat2wasm(MODULE)
    (folder / "coffee/skill.wasm").write_bytes(module)
    digest = hashlib.sha256(module).hexdigest()
    (folder / "coffee/skill.toml").write_text(MANIFEST.format(checksum=f"sha256:{digest}"))
    shutil.copy(HERE / "data/coffee.yaml", folder / "coffee/intents/en.yaml")


def run(parts: Sequence[str], folder: Path, limit: int, asr: str) -> dict[str, Any]:
    settings = config.parse(f'[models]\nasr = "{asr}"')
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        coffee_skill(scratch / "skills")
        Keys(scratch / "keys").sign(scratch / "skills/coffee")
        quiet = replace(settings, knowledge=replace(settings.knowledge, folders=()))
        plain = replace(quiet, skills=replace(quiet.skills, folders=()))
        ordering = replace(quiet, skills=replace(quiet.skills, folders=(scratch / "skills",), disabled=("kiosk",)))
        engines = Engines(quiet, open_shelf(settings))
        engines.warm()
        if "orders" in parts:
            with abilities(engines, Conversation(), config=ordering, state=scratch) as able:
                results["orders"] = measure_orders(engines, able, folder, limit)
        if "talk" in parts:
            with abilities(engines, Conversation(), config=plain, state=scratch) as able:
                results["talk"] = measure_talk(engines, able, limit)
        if "time" in parts:
            with abilities(engines, Conversation(), config=plain, state=scratch) as able:
                results["time"] = measure_time(engines, able, max(1, min(limit, 5)))
    return results


def show(results: dict[str, Any]) -> None:
    for name, figure in (("orders", show_orders), ("talk", show_talk), ("time", show_time)):
        if name in results:
            figure(results[name])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("parts", nargs="*", default=[], help="orders, talk, time (none: all, and the rest)")
    parser.add_argument("--folder", type=Path, default=SHARED)
    parser.add_argument("--limit", type=int, default=1_000_000)
    parser.add_argument("--asr", default=config.Models().asr)
    args = parser.parse_args()
    report(run(args.parts or ("orders", "talk", "time"), args.folder, args.limit, args.asr), show, as_json=args.json)
    if not args.parts:
        for name in REST:
            print(f"\n=== {name}", flush=True)
            subprocess.run([sys.executable, HERE / f"{name}.py", *(["--json"] if args.json else [])], check=True)


if __name__ == "__main__":
    main()
