"""The front end at rest: what listening costs while nobody speaks, part by part.

    python tests/bench/idle.py [--minutes 2] [--json]

CPU seconds of this process per second of sound, in virtual time: a recorded kitchen in front of the microphone, two
wake words, echo canceller, voice detector; the simulated card's own cost is measured beside it and taken off. The
peer does the same with the bare libraries: WebRTC's module on every frame, Silero, and the package of the wake words
with both.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import ROOT, arguments, judged, peer, report, user_shelf

from appliance import config
from appliance.compose import Engines, basement
from firmware import wav
from firmware.fake import Fake
from firmware.frame import RATE, Frame, Pcm

SHARED = Path(os.environ.get("PARLEY_SHARED") or ROOT.parent / "shared") / "audio"
LIMIT = 0.06


def kitchen(seconds: float) -> Pcm:
    noise = np.concatenate([frame.samples for frame in wav.frames(SHARED / "noise/picovoice_kitchen.flac")])
    return np.resize(noise // 8, round(seconds * RATE))


class Timer:
    """CPU seconds spent in one call."""

    def __init__(self) -> None:
        self.spent = 0.0

    def around(self, function: Any) -> Any:
        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.spent += time.process_time() - began

        return timed


def ours(engines: Engines, sound: Pcm) -> dict[str, float]:
    seconds = len(sound) / RATE
    began = time.process_time()
    for _ in Fake(sound, tail=0.0).frames():
        pass
    card = time.process_time() - began
    with basement(engines, Fake(sound, tail=0.0)) as front, engines.detector() as vad:
        parts = {name: Timer() for name in ("echo", "wake", "vad")}
        front.echo.push = parts["echo"].around(front.echo.push)  # type: ignore[method-assign]
        front.wake.push = parts["wake"].around(front.wake.push)  # type: ignore[method-assign]
        vad.push = parts["vad"].around(vad.push)  # type: ignore[method-assign]
        _through(front.frames(), vad, RATE)  # what is done once
        for part in parts.values():
            part.spent = 0.0
        began = time.process_time()
        heard = _through(front.frames(), vad, len(sound))
        whole = time.process_time() - began
    listened = heard / RATE
    return {
        "all": whole / listened - card / seconds,
        "card": card / seconds,
        **{name: part.spent / listened for name, part in parts.items()},
    }


def _through(frames: Any, vad: Any, samples: int) -> int:
    heard, frame = 0, Frame(0, np.zeros(0, np.int16))
    for frame in frames:
        vad.push(frame)
        heard += len(frame.samples)
        if heard >= samples:
            break
    return heard


def run(minutes: float) -> dict[str, Any]:
    engines = Engines(config.parse(""), user_shelf())
    sound = kitchen(minutes * 60)
    words = list(engines.config.wake.words)
    graph = str(engines.shelf.built(engines.config.models.vad).file("graph"))
    with tempfile.TemporaryDirectory() as folder, peer("frontend_peer.py", {"words": words, "vad": graph}) as ask:
        path = Path(folder) / "kitchen.wav"
        wav.write(path, sound)
        bare = ask({"path": str(path)})
    return {"ours": ours(engines, sound), "bare": bare}


def show(results: dict[str, Any]) -> None:
    found = results["ours"]
    print(f"  whole front end: {judged(found['all'], LIMIT)} of a core")
    print("  of it: " + ", ".join(f"{name} {100 * found[name]:.2f} %" for name in ("echo", "wake", "vad")))
    print(f"  the simulated card, taken off: {100 * found['card']:.2f} %")
    print("  bare libraries: " + ", ".join(f"{name} {100 * value:.2f} %" for name, value in results["bare"].items()))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--minutes", type=float, default=2.0)
    args = parser.parse_args()
    report(run(args.minutes), show, as_json=args.json)


if __name__ == "__main__":
    main()
