"""Synthesis against piper-tts: the same voice, the same phoneme ids, turn by turn.

    python tests/bench/tts.py [--threads 1] [--rounds 15] [--json]

Prints, for phrases of 3, 10 and 25 words, the time to the first sound and to the last against piper's, and how far the
sound is from that of the whole graph under the same noise.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import arguments, figures, in_ms, judged, peer, peer_models, report, user_shelf

from appliance import config
from appliance.runtime.card import Shelf
from appliance.runtime.ort import OrtModel
from appliance.runtime.tts import LEAD, Voice
from models.quantized.recipes import piper

PHRASES = {
    3: ["Turn it off.", "How are you?", "It is done.", "The door opened.", "I am listening."],
    10: [
        "The weather in Paris today is sunny with light winds.",
        "I set a timer for the pasta in the kitchen.",
        "Your package should arrive on Monday before the shop closes.",
        "There are three unread messages from your sister in Boston.",
    ],
    25: [
        "The train to the coast leaves from the old platform behind the station at noon, and it arrives there "
        "two hours later if nothing happens.",
        "I could not find the song that you asked for, so here is something similar from the same band that you "
        "may like even more.",
        "Turn left at the next traffic light and drive along the river for two miles until you see the white church "
        "on your right hand.",
    ],
}
TARGETS = {3: 0.45, 10: 0.30, 25: 0.25}
TOTAL_TARGET = 1.10
EXACT_TARGET = 1e-4


def ours(voice: Voice, ids: np.ndarray, seed: int) -> dict[str, float]:
    """As `speak` does it: the opening silence is left out. The longest pause is how much longer a window took to
    compute than all the sound before it takes to play: above 0 there would have been a gap."""
    started, used = time.perf_counter(), time.process_time()
    sound = voice.utter(ids, seed=seed)
    begin = max(0, int(sound.until[2]) - LEAD)
    ready: list[float] = []
    samples, late = 0, -np.inf
    for chunk in sound.stream(begin):
        now = time.perf_counter() - started
        if ready:
            late = max(late, now - ready[0] - samples / voice.rate)
        ready.append(now)
        samples += len(chunk)
    return {
        "first": ready[0],
        "total": ready[-1],
        "cpu": time.process_time() - used,
        "samples": len(sound) * voice.hop,
        "late": float(late),
    }


def difference(voice: Voice, whole: OrtModel, ids: np.ndarray, seed: int) -> float:
    """The largest difference of any sample to the whole graph, under the same noise."""
    sound = voice.utter(ids, seed=seed)
    noise = np.random.default_rng(seed)
    given = {
        "input": ids[None],
        "input_lengths": np.array([len(ids)]),
        "scales": np.array(voice.scales, np.float32),
        "duration_noise": noise.standard_normal((1, 2, len(ids)), np.float32),
    }
    with whole.session() as infer:
        latent = noise.standard_normal((len(sound), sound.channels), np.float32).T[None]
        wanted = infer(given | {"latent_noise": np.ascontiguousarray(latent)})["samples"].reshape(-1)
    made = np.concatenate(list(sound.stream()))
    return float(np.abs(made - wanted).max()) if len(made) == len(wanted) else float("inf")


def measure(shelf: Shelf, threads: int, rounds: int) -> dict[str, Any]:
    built = shelf.built(config.load().models.voice)
    voice = Voice(built, threads=threads)
    loaded = peak_mb()
    results: dict[str, Any] = {"voice": built.card.id, "threads": threads, "rounds": rounds}
    spoken: list[np.ndarray] = []
    with peer_models(shelf, voice=built.card.id) as files:
        with peer("tts_peer.py", {**files, "threads": threads}) as ask:
            for words, texts in PHRASES.items():
                ids = [np.array(ask({"text": text})["ids"]) for text in texts]
                spoken += ids
                rows = []
                for turn in range(-1, rounds):
                    given = ids[turn % len(ids)]
                    theirs = ask({"ids": given.tolist()})
                    mine = ours(voice, given, turn + 1)
                    if turn >= 0:
                        rows.append((mine, theirs))
                results[str(words)] = summary(rows)
        results["peak_mb"] = {"loaded": loaded, "after": peak_mb()}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "whole.onnx"
            path.write_bytes(piper.with_noise(Path(files["voice"])).SerializeToString())
            whole = OrtModel(path)
            results["difference"] = max(difference(voice, whole, given, 1) for given in spoken)
    return results


def peak_mb() -> int:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def summary(rows: list[tuple[dict[str, float], dict[str, float]]]) -> dict[str, Any]:
    first, total = (figures([own[key] for own, _ in rows]) for key in ("first", "total"))
    theirs = figures([row["seconds"] for _, row in rows])
    # The noise makes durations differ from run to run: processor time is compared per sample.
    used, theirs_used = (np.median([row[side]["cpu"] / row[side]["samples"] for row in rows]) for side in (0, 1))
    return {
        "first": first,
        "total": total,
        "peer": theirs,
        "first ratio": first["p50"] / theirs["p50"],
        "total ratio": total["p50"] / theirs["p50"],
        "cpu ratio per sample": float(used / theirs_used),
        "latest window ms": max(own["late"] for own, _ in rows) * 1000,
    }


def show(results: dict[str, Any]) -> None:
    print(f"{results['voice']}, {results['threads']} thread(s), {results['rounds']} rounds; ms are p50/p95/p99")
    print(f"{'words':>5} {'first sound':>14} {'last sound':>14} {'piper':>14}  ratios")
    for words, target in TARGETS.items():
        row = results[str(words)]
        print(
            f"{words:5} {in_ms(row['first']):>14} {in_ms(row['total']):>14} {in_ms(row['peer']):>14}  "
            f"first {judged(row['first ratio'], target)}, all {judged(row['total ratio'], TOTAL_TARGET)}, "
            f"processor {row['cpu ratio per sample']:.2f} per sample, latest window {row['latest window ms']:.0f} ms"
        )
    print(f"largest difference to the whole graph {judged(results['difference'], EXACT_TARGET, timed=False)}")
    print("peak resident memory: {loaded} MB loaded, {after} MB after".format(**results["peak_mb"]))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    report(measure(user_shelf(), given.threads, given.rounds), show, as_json=given.json)


if __name__ == "__main__":
    main()
