"""Synthesis against piper-tts: the same voice, the same phoneme ids, turn by turn.

    python tests/bench/tts.py [--threads 1] [--rounds 15] [--json]

Prints, for phrases of 3, 10 and 25 words, the time to the first sound and to the last, and how far the sound is from
that of the whole graph under the same noise. piper-tts runs in the environment that PARLEY_BENCH_ENV names
(~/.cache/parley/bench-env).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from appliance import config
from appliance.runtime.card import Shelf
from appliance.runtime.ort import OrtModel
from appliance.runtime.tts import LEAD, Voice
from models.quantized.build import default_store
from models.quantized.recipes import piper

HERE = Path(__file__).resolve().parent
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


@contextmanager
def peer(settings: dict[str, Any]) -> Iterator[Any]:
    home = Path(os.environ.get("PARLEY_BENCH_ENV") or Path.home() / ".cache/parley/bench-env")
    command = [str(home / "bin/python"), str(HERE / "peers/tts_peer.py"), json.dumps(settings)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        to_child, from_child = child.stdin, child.stdout
        assert to_child is not None
        assert from_child is not None

        def ask(request: dict[str, Any] | None) -> dict[str, Any]:
            if request is not None:
                to_child.write(json.dumps(request) + "\n")
                to_child.flush()
            line = from_child.readline()
            if not line:
                raise SystemExit(f"{command[0]} ended: is piper-tts installed there?")
            return json.loads(line)

        ask(None)
        yield ask
        to_child.close()


def ours(voice: Voice, ids: np.ndarray, seed: int) -> dict[str, float]:
    """As `speak` does it: the opening silence is left out. The longest pause is how much longer a window took to
    compute than all the sound before it takes to play: above 0 there would have been a gap."""
    started, used = time.perf_counter(), time.process_time()
    sound = voice.utter(ids, seed=seed)
    begin = max(0, int(sound.until[2]) - LEAD)
    ready, samples, late = [], 0, -np.inf
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
        "frames": len(sound),
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
    sources = default_store(shelf).fetch(built.card, lambda *_: None)
    voice = Voice(built, threads=threads)
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    results: dict[str, Any] = {"threads": threads, "rounds": rounds, "load": os.getloadavg()[0], "voice": built.card.id}
    settings = {"voice": str(sources["voice"]), "config": str(sources["config"]), "threads": threads}
    spoken: list[np.ndarray] = []
    with peer(settings) as ask:
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
            results[str(words)] = summary(rows, words)
    results["peak_mb"] = {
        "loaded": round(resident),
        "after": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    whole_path = shelf.cache / "tmp-whole.onnx"
    try:
        whole_path.write_bytes(piper.with_noise(sources["voice"]).SerializeToString())
        whole = OrtModel(whole_path)
        results["difference"] = max(difference(voice, whole, given, 1) for given in spoken)
    finally:
        whole_path.unlink(missing_ok=True)
    results["load_after"] = os.getloadavg()[0]
    return results


def summary(rows: list[tuple[dict[str, float], dict[str, float]]], words: int) -> dict[str, Any]:
    def spread(values: list[float]) -> dict[str, float]:
        return {"median": float(np.median(values)) * 1000, "p95": float(np.percentile(values, 95)) * 1000}

    first = [mine["first"] for mine, _ in rows]
    total = [mine["total"] for mine, _ in rows]
    theirs = [row["seconds"] for _, row in rows]
    # The noise makes durations differ from run to run: totals are compared per second of sound.
    per_frame = np.median([mine["cpu"] / mine["frames"] for mine, _ in rows])
    their_per_frame = np.median([row["cpu"] / row["samples"] * 256 for _, row in rows])
    return {
        "first_ms": spread(first),
        "total_ms": spread(total),
        "peer_ms": spread(theirs),
        "first_ratio": float(np.median(first) / np.median(theirs)),
        "total_ratio": float(np.median(total) / np.median(theirs)),
        "cpu_ratio_per_frame": float(per_frame / their_per_frame),
        "latest_window_ms": max(mine["late"] for mine, _ in rows) * 1000,
        "target": TARGETS[words],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="synthesis against piper-tts")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    settings = config.load().models
    shelf = Shelf(settings.cache, (HERE.parents[1] / "models/quantized", *settings.folders))
    results = measure(shelf, given.threads, given.rounds)
    if given.json:
        print(json.dumps(results, indent=1))
        return
    print(f"{results['voice']}, {given.threads} thread(s), load {results['load']:.1f} to {results['load_after']:.1f}")
    print("words  first sound ms (P95)   all ms (P95)      piper ms (P95)    first   target  total  cpu/frame  latest")
    for words in PHRASES:
        row = results[str(words)]
        cells = "  ".join(
            f"{row[key]['median']:8.1f} ({row[key]['p95']:6.1f})" for key in ("first_ms", "total_ms", "peer_ms")
        )
        print(
            f"{words:5}  {cells}  {row['first_ratio']:6.2f}  <={row['target']:.2f}  {row['total_ratio']:5.2f}"
            f"  {row['cpu_ratio_per_frame']:9.2f}  {row['latest_window_ms']:6.0f}"
        )
    print(f"largest difference to the whole graph {results['difference']:.1e} (<= {EXACT_TARGET:.0e})")
    print(f"peak resident memory: {results['peak_mb']} MB; total should be <= {TOTAL_TARGET:.2f}")


main()
