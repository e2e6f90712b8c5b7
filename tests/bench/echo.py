"""Echo cancellation against the bare libraries, in the room simulator.

    python tests/bench/echo.py [--part echo|jump|words|cost]... [--backend webrtc] [--every 1] [--json]

Bare are WebRTC's AEC3, speexdsp's canceller (256 ms, what the PyPI package wraps), and that with the library's
suppression of what is left; each is given the far end as it is played, since finding its place is part of the task.
The room has an RT60 of 0.3 s, a loudspeaker that bends what is loud, and noise at -65 dBFS.

echo: dB of echo return loss enhancement from 5 s on, and seconds until it has been 20 dB for half a second, over
delays, loudness and drift. jump: the same behind a jump of the delay from 30 to 150 ms. words: word error of
whisper-base with a second voice of equal loudness from the loudspeaker, of every n-th recording (--every). cost: CPU
time of a frame.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from asr import word_error
from harness import ROOT, arguments, judged, report

from appliance import config
from appliance.commands.shelf import open_shelf
from appliance.compose import Engines
from appliance.runtime.model import finish
from firmware import wav
from firmware.apm import Apm
from firmware.echo import Echo
from firmware.frame import FRAME, RATE, Pcm, Wave, to_pcm, to_wave
from firmware.resample import resample
from firmware.room import Room
from firmware.speex import Canceller, Preprocessor

SHARED = ROOT.parent / "shared/audio"
FAR, NEAR = -20.0, -26.0
"""dBFS of the loudspeaker's signal, and of both voices at the microphone."""
SOFT = 2.0
NOISE = 10 ** (-65 / 20)

Push = Callable[[Pcm, Pcm], dict[str, Pcm]]
"""A frame of the microphone, and what was played meanwhile -> the outputs by name."""


# --- who takes part --------------------------------------------------------------------------------------------------


def ours(backend: str) -> Push:
    echo = Echo(backend)  # type: ignore[arg-type]

    def push(near: Pcm, far: Pcm) -> dict[str, Pcm]:
        clean = echo.push(near, far)
        return {f"parley {backend}, strict": clean.strict, f"parley {backend}, gentle": clean.gentle}

    return push


def bare(name: str, step: Callable[[Pcm, Pcm], Pcm]) -> Push:
    """A library that wants frames of the far end: they are queued from period to period."""
    held: list[Pcm] = [np.zeros(0, np.int16)]

    def push(near: Pcm, far: Pcm) -> dict[str, Pcm]:
        queue = np.concatenate([held[0], far])
        held[0] = queue[FRAME:]
        frame = queue[:FRAME]
        return {name: step(near, np.pad(frame, (0, FRAME - len(frame))))}

    return push


def everybody(backend: str) -> Iterator[Push]:
    yield ours(backend)
    webrtc, plain, canceller = Apm(echo=True), Canceller(), Canceller()
    after = Preprocessor(canceller)
    yield bare("webrtc bare", webrtc.push)
    yield bare("speexdsp bare", plain.push)
    yield bare("speexdsp + preprocess", lambda near, far: after.push(canceller.push(near, far)))


# --- the room --------------------------------------------------------------------------------------------------------


def active(wave: Wave) -> float:
    """Root mean square of the frames that are not pauses."""
    frames = np.sqrt(
        np.mean(np.square(wave[: len(wave) // FRAME * FRAME].reshape(-1, FRAME), dtype=np.float64), axis=1)
    )
    return float(np.sqrt(np.mean(np.square(frames[frames > 0.03 * frames.max()]))))


def levelled(wave: Wave, dbfs: float) -> Wave:
    return wave * np.float32(10 ** (dbfs / 20) / active(wave))


def echoes(far: Pcm, room: Room, *, jump: tuple[int, float] | None = None) -> tuple[list[Pcm], Wave]:
    """What was played frame by frame, and its echo; `jump` is a frame and the delay from then on."""
    pieces, heard, at = [], [], 0
    while at + room.due <= len(far):
        if jump and len(pieces) == jump[0]:
            room.delay = jump[1]
        piece = far[at : at + room.due]
        at += len(piece)
        pieces.append(piece)
        heard.append(room.hear(piece))
    return pieces, np.concatenate(heard)


def mixed(echo: Wave, near: Wave | float = 0.0) -> Pcm:
    noise = np.random.default_rng(9).normal(0, NOISE, len(echo)).astype(np.float32)
    return to_pcm(echo + noise + near)


def through(push: Push, mic: Pcm, pieces: list[Pcm]) -> dict[str, Pcm]:
    outputs: dict[str, list[Pcm]] = {}
    for near, far in zip(mic.reshape(-1, FRAME), pieces, strict=True):
        for name, out in push(near, far).items():
            outputs.setdefault(name, []).append(out)
    return {name: np.concatenate(frames) for name, frames in outputs.items()}


def loss(mic: Pcm, out: Pcm, begin: float, end: float) -> float:
    """dB by which `out` is weaker, between two times in seconds."""
    part = slice(round(begin * RATE), round(end * RATE))
    before, after = (float(np.mean(np.square(to_wave(sound[part]), dtype=np.float64))) for sound in (mic, out))
    return 10 * float(np.log10(before / max(after, 1e-10)))


def until(mic: Pcm, out: Pcm, begin: float, *, at_least: float = 20.0) -> float:
    """Seconds after `begin` at which the loss reaches 20 dB and stays there for half a second."""
    for after in np.arange(0.0, 15.0, 0.05):
        if (begin + after + 0.5) * RATE > len(mic):
            break
        if loss(mic, out, begin + after, begin + after + 0.5) >= at_least:
            return float(after)
    return float("inf")


def recordings() -> list[tuple[str, Wave, str]]:
    with (SHARED / "MANIFEST.tsv").open(newline="", encoding="utf-8") as table:
        rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    wanted = [
        row for row in rows if row["file"].startswith(("ljspeech", "pocketsphinx/sense", "speechbrain", "misc/jfk"))
    ]
    wanted = [row for row in rows if row["file"].startswith("s2i")][:30] + wanted
    found = []
    for row in wanted:
        verbatim = not row["file"].startswith(("s2i", "speechbrain"))
        wave = to_wave(wav.read(SHARED / row["file"]).samples)
        found.append((row["file"], wave, row["transcript_or_label"].split(" [repo")[0] if verbatim else ""))
    return found


# --- the parts -------------------------------------------------------------------------------------------------------


def talker() -> Pcm:
    """Twenty seconds of reading without a pause at its beginning."""
    waves = [wave for name, wave, _ in recordings() if name.startswith("ljspeech/LJ001-000")][:3]
    wave = np.concatenate([*waves])
    return to_pcm(levelled(wave[int(np.argmax(np.abs(wave) > 0.02)) :][: 20 * RATE], FAR))


def single(backend: str) -> list[dict[str, Any]]:
    far, rows = talker(), []
    conditions = [(delay, 0.0, 50.0) for delay in (0.0, 0.03, 0.08, 0.2, 0.4)]
    conditions += [(0.08, -6.0, 50.0), (0.08, 6.0, 50.0), (0.08, 0.0, 150.0)]
    for delay, gain, drift in conditions:
        pieces, echo = echoes(far, Room(delay=delay, gain=gain, drift=drift, soft=SOFT))
        mic = mixed(echo)
        for push in everybody(backend):
            for name, out in through(push, mic, pieces).items():
                row = {"delay": delay, "gain": gain, "drift": drift, "who": name}
                rows.append(row | {"erle": loss(mic, out, 5, 19), "converged": until(mic, out, max(delay, 0.01))})
    return rows


def jump(backend: str) -> list[dict[str, Any]]:
    far, rows = talker(), []
    pieces, echo = echoes(far, Room(delay=0.03, drift=50.0, soft=SOFT), jump=(1000, 0.15))
    mic = mixed(echo)
    for push in everybody(backend):
        for name, out in through(push, mic, pieces).items():
            rows.append({"who": name, "recovered": until(mic, out, 10.0), "2-3 s after": loss(mic, out, 12, 13)})
    return rows


def words(backend: str, every: int) -> list[dict[str, Any]]:
    """A session: the loudspeaker reads on and on, and the recordings are spoken over it, one after the other."""
    settings = config.parse('[models]\nasr = "whisper-base"')
    engines = Engines(settings, open_shelf(settings))
    found = recordings()[::every]
    near, spans = _spoken(found)
    far = to_pcm(levelled(_reading(engines, len(near) + RATE), FAR))
    pieces, echo = echoes(far, Room(delay=0.08, drift=50.0, soft=SOFT))
    echo = levelled(echo[: len(near)], NEAR)
    mic, alone, pieces = mixed(echo, near), mixed(0 * echo, near), pieces[: len(near) // FRAME]
    silence = [piece * 0 for piece in pieces]
    outputs = {"clean near end": alone, "unprocessed": mic}
    for name, out in through(ours(backend), alone, silence).items():
        if "gentle" in name:  # both are the same
            outputs[f"parley {backend}, far end silent"] = out
    for push in everybody(backend):
        outputs |= through(push, mic, pieces)

    def heard(wave: Wave) -> str:
        return finish(engines.recogniser.transcribe(wave, language="en")).text

    # Where nobody wrote down what is said, it is what is recognised from the recording itself.
    truth = [said or heard(wave) for _, wave, said in found]
    rows = []
    for name, out in outputs.items():
        wave = to_wave(out)
        pairs = [(said, heard(wave[begin:end])) for said, (begin, end) in zip(truth, spans, strict=True)]
        rows.append({"who": name, "wer": word_error(pairs), "of": len(pairs)})
        print(f"  {name}: {rows[-1]['wer']:.2f}", file=sys.stderr, flush=True)
    return rows


def _spoken(found: list[tuple[str, Wave, str]]) -> tuple[Wave, list[tuple[int, int]]]:
    """The recordings 1.5 s apart, after 4 s; where each is, with 0.3 s around it."""
    parts: list[Wave] = [np.zeros(4 * RATE, np.float32)]
    spans, at = [], 4 * RATE
    for _, wave, _ in found:
        spans.append((at - 3 * RATE // 10, at + len(wave) + 3 * RATE // 10))
        parts += [levelled(wave, NEAR), np.zeros(3 * RATE // 2, np.float32)]
        at += len(wave) + 3 * RATE // 2
    near = np.concatenate(parts)
    return near[: len(near) // FRAME * FRAME], spans


def _reading(engines: Engines, samples: int) -> Wave:
    """The box's own voice, reading."""
    text = (Path(__file__).parent / "data/sentences.txt").read_text("utf-8").splitlines()
    parts: list[Wave] = []
    while sum(map(len, parts)) < samples:
        line = text[len(parts) % len(text)]
        sound = np.concatenate([chunk.samples for chunk in engines.speaker.say(engines.for_the_ear(line))])
        parts.append(np.pad(resample(sound, engines.speaker.rate, RATE), (0, RATE // 10)))
    return np.concatenate(parts)


def cost(backend: str) -> list[dict[str, Any]]:
    """Milliseconds of CPU in a frame; three times, the median."""
    far = talker()
    pieces, echo = echoes(far, Room(delay=0.08, drift=50.0, soft=SOFT))
    mic, rows = mixed(echo), []
    for name, played in (("active", pieces), ("idle", [piece * 0 for piece in pieces])):
        taken = []
        for _ in range(3):
            push = ours(backend)
            started = time.process_time()
            through(push, mic, played)
            taken.append((time.process_time() - started) / len(pieces) * 1e3)
        rows.append({"what": name, "ms": float(np.median(taken))})
    return rows


def show(results: dict[str, Any]) -> None:
    for row in results.get("echo", []):
        erle, time_taken = judged(row["erle"], 30, at_least=True, timed=False), judged(row["converged"], 1, timed=False)
        where = f"{1e3 * row['delay']:3.0f} ms {row['gain']:+3.0f} dB {row['drift']:3.0f} ppm"
        print(f"{where}  {row['who']:24} ERLE {erle}  20 dB after s {time_taken}")
    for row in results.get("jump", []):
        again = judged(row["recovered"], 2, timed=False)
        print(f"30 to 150 ms  {row['who']:24} 20 dB after s {again}, 2 to 3 s after {row['2-3 s after']:.1f} dB")
    if words := results.get("words", []):
        clean = words[0]["wer"]
        for row in words:
            above = judged(row["wer"] - clean, 5, timed=False)
            print(f"word error {row['wer']:6.2f} %  {row['who']:34} above clean {above}")
    for row in results.get("cost", []):
        print(f"{row['what']}: CPU ms per frame {judged(row['ms'], {'active': 0.6, 'idle': 0.1}[row['what']])}")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--part", action="append", choices=("echo", "jump", "words", "cost"))
    parser.add_argument("--backend", default="webrtc", choices=("webrtc", "speex"))
    parser.add_argument("--every", type=int, default=1)
    args = parser.parse_args()
    parts: dict[str, Callable[[], Any]] = {
        "echo": lambda: single(args.backend),
        "jump": lambda: jump(args.backend),
        "words": lambda: words(args.backend, args.every),
        "cost": lambda: cost(args.backend),
    }
    report({part: parts[part]() for part in args.part or parts}, show, as_json=args.json)


if __name__ == "__main__":
    main()
