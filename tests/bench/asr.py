"""Recognition against faster-whisper: the same weights, the same threads, turn by turn.

    python tests/bench/asr.py [--model ID]... [--rounds 3] [--threads 2] [--words] [--agreement] [--every N] [--json]

Prints for utterances of about 1.5, 3 and 6 s the time from the last sample to the transcript, without and with the
transcript of half a second earlier as a draft. --words adds the word error of every rung against that of the fp32 rung
with the whole 30 s of context: of everything, and of the half of the recordings that nothing was tuned on. --agreement
decodes identical features with both fp32 engines. faster-whisper runs in the environment that PARLEY_BENCH_ENV names.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness import ROOT, Ask, arguments, figures, in_ms, judged, load, peer, peer_models, report, user_shelf

from appliance.runtime import asr
from appliance.runtime.card import Built
from appliance.runtime.model import finish
from firmware import wav
from firmware.frame import RATE, Wave, to_wave

TARGETS = {"whisper-tiny.en": {1.5: 0.40, 3: 0.45, 6: 0.60}, "whisper-base": {1.5: 0.35, 3: 0.40, 6: 0.50}}
WORDS_TARGET = 0.5
SPANS = {1.5: (1.2, 1.9), 3: (2.5, 3.5), 6: (5.3, 6.8)}
CLIPS = 8
NUMERALS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


@dataclass(frozen=True)
class Clip:
    """`words` is the transcript, or "" where the recording has none."""

    name: str
    wave: Wave
    words: str

    @property
    def held_out(self) -> bool:
        """Half of the recordings, chosen by their names, took no part in any choice of a setting."""
        return bool(int(hashlib.sha256(self.name.encode()).hexdigest(), 16) % 2)


def clips(folder: Path) -> list[Clip]:
    found = []
    for line in (folder / "MANIFEST.tsv").read_text().splitlines()[1:]:
        name, *_, kind, _, _, label = line.split("\t")
        if not name.startswith(("noise", "rir")) and kind:
            spoken = "" if label.startswith(("LABEL", "(no")) else label.split(" [repo")[0]
            samples = to_wave(wav.read(folder / name).samples)
            if len(samples) < asr.LONGEST:
                found.append(Clip(name.rsplit(".", 1)[0].replace("/", "__"), samples, spoken))
    return found


def of_length(found: list[Clip], seconds: float) -> list[Clip]:
    low, high = SPANS[seconds]
    return [clip for clip in found if low <= len(clip.wave) / RATE <= high and not clip.name.startswith("fsdd")][:CLIPS]


def thinned(found: list[Clip], every: int) -> list[Clip]:
    """All sentences with a transcript, and every n-th of the other recordings."""
    return [clip for number, clip in enumerate(found) if len(clip.words.split()) > 3 or number % every == 0]


def spelt(text: str) -> list[str]:
    plain = re.sub(r"[^\w\s']", " ", re.sub(r"\d", lambda digit: f" {NUMERALS[int(digit.group())]} ", text.lower()))
    return plain.split()


def distance(reference: list[str], found: list[str]) -> int:
    row = list(range(len(found) + 1))
    for number, word in enumerate(reference, 1):
        above, row = row, [number]
        for place, other in enumerate(found, 1):
            row.append(min(above[place] + 1, row[-1] + 1, above[place - 1] + (word != other)))
    return row[-1]


def word_error(pairs: list[tuple[str, str]]) -> float:
    """Per cent of (reference, found)."""
    wrong = sum(distance(spelt(reference), spelt(found)) for reference, found in pairs)
    return 100.0 * wrong / max(1, sum(len(spelt(reference)) for reference, _ in pairs))


def transcript(recogniser: asr.Recogniser, wave: Wave, draft: tuple[int, ...] = ()) -> asr.Hypothesis:
    return finish(recogniser.transcribe(wave, draft=draft, language="en"))


def latency(built: Built, ask: Ask, chosen: dict[float, list[Clip]], rounds: int, threads: int) -> list[dict[str, Any]]:
    recogniser = asr.load(built, threads=threads)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seconds, group in chosen.items():
            ours, drafted, theirs = [], [], []
            for turn in range(rounds + 1):
                for clip in group:
                    path = Path(folder) / f"{clip.name}.wav"
                    if not path.exists():
                        wav.write(path, clip.wave)
                    before = transcript(recogniser, clip.wave[: -RATE // 2]).tokens
                    taken = []
                    for draft in ((), before):
                        started = time.perf_counter()
                        transcript(recogniser, clip.wave, draft)
                        taken.append(time.perf_counter() - started)
                    answer = ask({"wav": str(path)})
                    if turn:  # the first round warms both up
                        ours.append(taken[0])
                        drafted.append(taken[1])
                        theirs.append(answer["seconds"])
            row: dict[str, Any] = {"seconds": seconds, "clips": len(group), "ours": figures(ours)}
            row |= {"drafted": figures(drafted), "peer": figures(theirs), "load": load()}
            row["ratio"] = row["ours"]["p50"] / row["peer"]["p50"]
            row["ratio drafted"] = row["drafted"]["p50"] / row["peer"]["p50"]
            rows.append(row)
    return rows


def words(built: Built, found: list[Clip], threads: int) -> dict[str, Any]:
    reference = texts(asr.load(built, "fp32", threads=threads, margin=30.0), found)
    result: dict[str, Any] = {}
    for name, rung, options in (("fp32", "fp32", {}), ("int8, 30 s", "int8", {"margin": 30.0}), ("int8", "int8", {})):
        result[name] = scores(found, reference, texts(asr.load(built, rung, threads=threads, **options), found))
    result["fp32, 30 s"] = scores(found, reference, reference)
    return result


def texts(recogniser: asr.Recogniser, found: list[Clip]) -> list[asr.Hypothesis]:
    return [transcript(recogniser, clip.wave) for clip in found]


def scores(found: list[Clip], reference: list[asr.Hypothesis], heard: list[asr.Hypothesis]) -> dict[str, Any]:
    """Word error in per cent: against the transcripts where there are some, and against the reference for all."""
    rows = list(zip(found, reference, heard, strict=True))
    held = [row for row in rows if row[0].held_out]
    result: dict[str, Any] = {"retried": sum(bool(hypothesis.fallback) for hypothesis in heard)}
    for name, among in (("all", rows), ("held out", held)):
        spoken = [(clip.words, hypothesis.text) for clip, _, hypothesis in among if clip.words]
        result[f"true, {name}"] = word_error(spoken)
        long = [(a, b) for (a, b) in spoken if len(a.split()) > 3]
        result[f"true sentences, {name}"] = word_error(long)
        result[f"to reference, {name}"] = word_error([(fp32.text, hypothesis.text) for _, fp32, hypothesis in among])
    return result


def agreement(built: Built, ask: Ask, found: list[Clip], threads: int) -> dict[str, Any]:
    """Greedy transcripts of both fp32 engines from identical features."""
    recogniser = asr.load(built, "fp32", threads=threads, margin=30.0)
    context = asr.whole()
    same, different = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for clip in found:
            np.save(f"{folder}/mel.npy", asr.features(clip.wave, context, recogniser.bands))
            ids = ask({"features": f"{folder}/mel.npy", "prompt": recogniser.prompt("en")})["ids"]
            ours = list(finish(recogniser.transcribe(clip.wave, language="en")).tokens)
            same += ours == ids
            if ours != ids:
                different.append([clip.name, recogniser.vocabulary.text(ours), recogniser.vocabulary.text(ids)])
    return {"same": same, "of": len(found), "different": different}


def show(results: dict[str, Any]) -> None:
    for id, result in results.items():
        show_one(id, result)


def show_one(id: str, result: dict[str, Any]) -> None:
    print(id)
    print(f"{'speech':>8} {'ours ms p50/p95/p99':>22} {'with draft':>12} {'faster-whisper':>22}  ratio")
    for row in result.get("latency", []):
        ours, theirs = in_ms(row["ours"]), in_ms(row["peer"])
        target = TARGETS.get(id, {}).get(row["seconds"], 1.0)
        drafted = f"{1e3 * row['drafted']['p50']:.0f}"
        print(
            f"{row['seconds']:>6} s {ours:>22} {drafted:>12} {theirs:>22}  {judged(row['ratio'], target)}, "
            f"drafted {row['ratio drafted']:.2f}, load {row['load']:.1f}"
        )
    for name, row in result.get("words", {}).items():
        print(f"  {name}: " + ", ".join(f"{key} {value:.2f}" for key, value in row.items()))
    if "words" in result:
        full, int8 = result["words"]["fp32, 30 s"], result["words"]["int8"]
        for key in ("true sentences, all", "true sentences, held out"):
            above = judged(int8[key] - full[key], WORDS_TARGET, timed=False)
            print(f"  word error above fp32 30 s, {key}: {above}")
    if "agreement" in result:
        print(f"  identical features: {result['agreement']['same']} of {result['agreement']['of']} transcripts equal")
        for name, ours, theirs in result["agreement"]["different"]:
            print(f"    {name}: {ours!r} / {theirs!r}")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--model", action="append", help="default: every one that has a target")
    parser.add_argument("--rounds", type=int, default=3, help="of the latencies; 0: none")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="words of every n-th recording, beside all sentences")
    parser.add_argument("--agreement", action="store_true")
    parser.add_argument("--audio", type=Path, default=ROOT.parent / "shared/audio")
    given = parser.parse_args()
    shelf = user_shelf()
    found = clips(given.audio)
    chosen = {seconds: of_length(found, seconds) for seconds in SPANS}
    results: dict[str, Any] = {}
    for id in given.model or TARGETS:
        built = shelf.built(id)
        result = results[id] = {}
        with peer_models(shelf, asr=id) as files:
            int8, fp32 = (
                {**files, "precision": precision, "threads": given.threads} for precision in ("int8", "float32")
            )
            if given.rounds:
                with peer("asr_peer.py", int8) as ask:
                    result["latency"] = latency(built, ask, chosen, given.rounds, given.threads)
            if given.words:
                result["words"] = words(built, thinned(found, given.every), given.threads)
            if given.agreement:
                sample = [clip for clip in found if not clip.name.startswith(("s2i", "fsdd", "wake"))]
                with peer("asr_peer.py", fp32) as ask:
                    result["agreement"] = agreement(built, ask, sample, given.threads)
    report(results, show, as_json=given.json)


if __name__ == "__main__":
    main()
