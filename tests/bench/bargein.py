"""Barge-in: from the end of the user's first syllable over an answer to silence, and what becomes of the answer.

    python tests/bench/bargein.py [--repeat 1] [--only stop,cough] [--room] [--json]

Each case is a conversation in real time: a spoken question, and over its answer a voice at a known sample, as loud as
the answer's echo would be. Words are recordings (digits, wake words, orders) and Parley's own voice; coughs are made of
noise. `--room` lets the answer come back at -6 dB, through the front end that cancels it.

Samples are counted on the device clock: what the loudspeaker put out behind the end of the syllable, and behind the
sample at which the hold was decided, tells how long the box took, the other work of this machine included.
"""

from __future__ import annotations

import asyncio
import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from harness import ROOT, arguments, figures, judged, report

from appliance import config
from appliance.commands.shelf import open_shelf
from appliance.compose import Engines, basement, talk
from appliance.events import Answered, Draft, Event, Held, Mark, NoSpeech, Transcript
from appliance.voice.conversation import Conversation
from appliance.voice.say import Speaker
from firmware import wav
from firmware.fake import Fake
from firmware.frame import FRAME, RATE, Pcm, Wave, to_pcm, to_wave
from firmware.resample import resample
from firmware.room import Room
from firmware.sound import Sound

SHARED = Path(os.environ.get("PARLEY_SHARED") or ROOT.parent / "shared") / "audio"
QUESTION = "Tell me a long story about a dog."
ECHO_DB = -6.0
SPOKEN = {
    "stop": ("Stop.", "Stop it.", "That's enough.", "Be quiet."),
    "words": ("No wait.", "What about tomorrow?", "And how old is it?", "Who are you?"),
    "back-channel": ("Uh-huh.", "Yeah.", "Okay.", "Right.", "I see.", "Mm-hmm.", "Ha ha ha."),
}
RECORDED = 12
"""Recordings of each kind at most."""

Kind = Literal["stop", "words", "back-channel", "cough", "noise"]


@dataclass(frozen=True, slots=True)
class Case:
    """`sound` is float32 [n] at RATE; `syllable` the sample in it at which the first syllable ends, 0 where there is
    none."""

    kind: Kind
    what: str
    sound: Wave
    syllable: int = 0


@dataclass(slots=True)
class Outcome:
    """Samples on the device clock: `began` is the voice's first, `held` the decision, `silent` the first sample behind
    which nothing more was put out, `resumed` where the answer went on."""

    began: int = 0
    held: int = 0
    silent: int = 0
    resumed: int = 0
    holds: int = 0
    reason: str = ""
    why: str = ""
    text: str = ""
    thoughts: int = 0


@contextmanager
def sound_of(engines: Engines, card: Fake, *, room: bool) -> Iterator[Sound]:
    """What stands between the card and the models: the front end, where the answer comes back."""
    if room:
        with basement(engines, card) as front:
            yield front
    else:
        yield card


# --- what is said ----------------------------------------------------------------------------------------------------


def first_syllable(sound: Wave) -> int:
    """The sample at which the first syllable ends: the first dip of 2 dB in the intensity behind a peak within 25 dB
    of the loudest (de Jong and Wempe 2009), or where the sound falls 25 dB under its loudest. Only the band of the
    vowels counts, 100 to 1,200 Hz: a hiss is no syllable."""
    spectrum, hertz = np.fft.rfft(sound), np.fft.rfftfreq(len(sound), 1 / RATE)
    vowels = np.fft.irfft(spectrum * ((hertz > 100) & (hertz < 1200)), len(sound))
    window = np.hanning(RATE // 20)
    power = np.convolve(vowels**2, window / window.sum(), "same")[:: FRAME // 2]
    level = 10 * np.log10(power + 1e-12)
    floor = level.max() - 25
    peak = low = -1
    for place, value in enumerate(level):
        if peak < 0:
            if value > floor:
                peak = low = place
            continue
        if low == peak and value >= level[peak]:
            peak = low = place
        elif value < level[low]:
            low = place
            if value < floor:
                break
        elif level[peak] - level[low] >= 2 and value - level[low] >= 2:
            break
    return int(low * FRAME // 2)


def trimmed(sound: Wave) -> Wave:
    """From the first sound to the last."""
    loud = np.flatnonzero(np.abs(sound) > 0.03 * np.abs(sound).max())
    return sound[loud[0] : loud[-1]]


def voiced(speaker: Speaker, text: str, seed: int) -> Wave:
    varied = Speaker(speaker.voice, speaker.phonemise, (1.0, 1.15, 0.9)[seed % 3], seed=seed)
    return resample(np.concatenate([chunk.samples for chunk in varied.say(text)]), speaker.rate, RATE)


def recordings() -> Iterator[tuple[str, Wave]]:
    """Short words of people, and the beginning of what people order."""
    with (SHARED / "MANIFEST.tsv").open(newline="", encoding="utf-8") as table:
        rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    for folder, seconds in (("fsdd/", 1.0), ("wake/", 3.0), ("s2i/", 3.0)):
        files = [row["file"] for row in rows if row["file"].startswith(folder)]
        for file in files[:: max(1, len(files) // RECORDED)][:RECORDED]:
            yield file, trimmed(to_wave(wav.read(SHARED / file).samples))[: round(seconds * RATE)]


def cough(seed: int) -> Wave:
    """Two bursts of breath, each with a hard edge and a decay of 60 ms, coloured like an open mouth."""
    random = np.random.default_rng(seed)
    out = np.zeros(round(0.7 * RATE))
    for start in (0, round((0.3 + 0.05 * random.random()) * RATE)):
        time = np.arange(round(0.3 * RATE)) / RATE
        burst = random.normal(size=len(time)) * np.exp(-time / 0.06) * np.minimum(1, time / 0.004)
        spectrum, hertz = np.fft.rfft(burst), np.fft.rfftfreq(len(burst), 1 / RATE)
        shape = sum(
            np.exp(-(((hertz - centre) / width) ** 2)) for centre, width in ((600, 300), (1500, 500), (3000, 900))
        )
        out[start : start + len(time)] += np.fft.irfft(spectrum * shape, len(burst))
    return (0.3 * out / np.abs(out).max()).astype(np.float32)


def cases(speaker: Speaker, repeat: int) -> Iterator[Case]:
    for round_ in range(repeat):
        for kind, texts in SPOKEN.items():
            for number, text in enumerate(texts):
                sound = trimmed(voiced(speaker, text, 10 * round_ + number))
                yield Case(kind, text, sound, first_syllable(sound))  # type: ignore[arg-type]
        yield from (Case("cough", f"cough {seed}", cough(seed)) for seed in range(4 * round_, 4 * round_ + 4))
    for name, sound in recordings():
        yield Case("words", name, sound, first_syllable(sound))
    kitchen = wav.read(SHARED / "noise/picovoice_kitchen.flac").samples
    for start in range(10, 50, 10):
        yield Case("noise", f"kitchen {start} s", to_wave(kitchen[start * RATE : (start + 8) * RATE]))


# --- one conversation ------------------------------------------------------------------------------------------------


def loudness(sound: Wave) -> float:
    """RMS of what is not silence."""
    loud = sound[np.abs(sound) > 0.01]
    return float(np.sqrt(np.mean(loud**2))) if len(loud) else 1e-3


def said_over(card: Fake, question: Pcm, case: Case, outcome: Outcome, wait: float) -> Iterator[Pcm]:
    """The question; when `wait` seconds of the answer have been played, the case's sound as loud as the echo is."""
    silence = np.zeros(FRAME, np.int16)
    yield question
    while card.player.played < wait * RATE:
        yield silence
    gain = loudness(to_wave(card.output())) * 10 ** (ECHO_DB / 20) / loudness(case.sound)
    outcome.began = card.now
    yield to_pcm(np.pad(case.sound * np.float32(gain), (0, -len(case.sound) % FRAME)))


async def converse(engines: Engines, question: Pcm, case: Case, wait: float, room: Room | None) -> Outcome:
    outcome = Outcome()

    def near() -> Iterator[Pcm]:
        yield from said_over(card, question, case, outcome, wait)

    card = Fake(near(), tail=6.0, pace=1.0, room=room)
    with sound_of(engines, card, room=room is not None) as sound:
        await listen(engines, sound, card, case, outcome)
    output = card.output()
    if outcome.held:
        until = outcome.resumed or outcome.held + RATE
        sounding = np.flatnonzero(output[outcome.held : until])
        outcome.silent = outcome.held + (int(sounding[-1]) + 1 if len(sounding) else 0)
    return outcome


async def listen(engines: Engines, sound: Sound, card: Fake, case: Case, outcome: Outcome) -> None:
    async with talk(engines, sound, Conversation()) as events:
        async for event in events:
            note(event, outcome, card)
            if decided(event, case, outcome):
                break


def note(event: Event, outcome: Outcome, card: Fake) -> None:
    match event:
        case Held(on=True):
            outcome.holds += 1
            outcome.held = outcome.held or event.at
        case Held(on=False):
            outcome.resumed = outcome.resumed or event.at
        case Answered() if event.turn == 1:
            outcome.reason = event.reason
        case NoSpeech():
            outcome.why = event.why
        case Draft() | Transcript() if event.turn > 1:
            outcome.text = event.text
        case Mark(stage="think", name="start"):
            outcome.thoughts += 1


def decided(event: Event, case: Case, outcome: Outcome) -> bool:
    """Whether nothing more is to be learnt."""
    if case.kind == "stop":
        return isinstance(event, NoSpeech | Transcript) and event.turn > 1
    if case.kind == "words":
        return bool(outcome.reason)
    return bool(outcome.reason or outcome.resumed) or (isinstance(event, Transcript) and event.turn > 1)


# --- all of them -----------------------------------------------------------------------------------------------------


def run(repeat: int, only: list[str], *, room: bool) -> dict[str, Any]:
    settings = config.parse('[think]\nsentences = 9\nmax_tokens = 120\n[wake]\nmode = "always"')
    engines = Engines(settings, open_shelf(settings))
    engines.warm()
    question = to_pcm(np.pad(voiced(engines.speaker, QUESTION, 0), (RATE // 2, 0)))
    turns = []
    for number, case in enumerate(cases(engines.speaker, repeat)):
        if only and case.kind not in only:
            continue
        hall = Room(delay=0.04, gain=ECHO_DB) if room else None
        outcome = asyncio.run(converse(engines, question, case, 0.7 + 0.2 * (number % 5), hall))
        turns.append({"kind": case.kind, "what": case.what, **measured(case, outcome)})
    return {"turns": turns}


def measured(case: Case, outcome: Outcome) -> dict[str, Any]:
    """Seconds, from samples."""
    syllable = outcome.began + case.syllable
    gone_on = outcome.resumed and outcome.reason != "interrupted"
    return {
        "syllable": case.syllable / RATE,
        "held": bool(outcome.held),
        "silent": (outcome.silent - syllable) / RATE if outcome.held and case.syllable else None,
        "decided": (outcome.held - syllable) / RATE if outcome.held and case.syllable else None,
        "written": (outcome.silent - outcome.held) / RATE if outcome.held else None,
        "resumed": (outcome.resumed - outcome.held) / RATE if gone_on else None,
        "holds": outcome.holds,
        "reason": outcome.reason,
        "why": outcome.why,
        "text": outcome.text,
        "thoughts": outcome.thoughts - 1,
    }


def show(result: dict[str, Any]) -> None:
    turns = result["turns"]
    print("  kind           what                                 syllable  silence  written  resumed  outcome")
    for turn in turns:
        times = "".join(
            f"{'-' if turn[key] is None else format(1e3 * turn[key], '.0f'):>9}"
            for key in ("syllable", "silent", "written", "resumed")
        )
        outcome = turn["reason"] or turn["why"] or "goes on"
        print(f"  {turn['kind']:14} {turn['what'][-36:]:36}{times}  {outcome} {turn['why']} {turn['text'][:40]!r}")
    spoken = [turn for turn in turns if turn["silent"] is not None]
    if spoken:
        for name, limit in (("silent", 0.3), ("decided", 0.3)):
            f = figures([turn[name] for turn in spoken])
            print(
                f"end of the first syllable to {'silence' if name == 'silent' else 'the decision'}: "
                f"median {1e3 * f['p50']:.0f} ms, P95 {judged(1e3 * f['p95'], 1e3 * limit)} ms, n {f['n']}"
            )
        written = max(turn["written"] for turn in spoken)
        print(f"put out after the decision: at most {judged(1e3 * written, 40)} ms")
    for kind in ("words", "stop", "back-channel", "cough", "noise"):
        of = [turn for turn in turns if turn["kind"] == kind]
        if not of:
            continue
        left = sum(turn["reason"] == "interrupted" for turn in of)
        resumed = [turn["resumed"] for turn in of if turn["resumed"] is not None]
        print(
            f"{kind:13} n {len(of)}: held {sum(turn['held'] for turn in of)}, left {left}, "
            f"gone on {len(resumed)} within {max(resumed, default=0):.2f} s, "
            f"language model calls {sum(turn['thoughts'] for turn in of)}"
        )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", default="", help="kinds, joined by commas")
    parser.add_argument("--room", action="store_true", help="the answer is heard by the microphone")
    args = parser.parse_args()
    report(run(args.repeat, args.only.split(",") if args.only else [], room=args.room), show, as_json=args.json)


if __name__ == "__main__":
    main()
