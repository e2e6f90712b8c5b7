"""faster-whisper in an environment of its own.

Reads JSON lines on standard input, writes one for each: {"wav": PATH} transcribes 16 kHz mono int16 (beam 1, no
timestamps, no retries): text and seconds. {"features": FILE.npy, "prompt": IDS} decodes a log-mel [1, bands, 3000] that
somebody else has computed: ids.
"""

from __future__ import annotations

import json
import sys
import time
import wave

import ctranslate2
import numpy as np
from faster_whisper import WhisperModel


def load(path: str) -> np.ndarray:
    with wave.open(path) as file:
        return np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768.0


def main() -> None:
    settings = json.loads(sys.argv[1])
    model = WhisperModel(
        settings["model"], device="cpu", compute_type=settings["precision"], cpu_threads=settings["threads"]
    )
    print(json.dumps({"ready": True}), flush=True)
    for request in map(json.loads, sys.stdin):
        if "wav" in request:
            samples = load(request["wav"])
            started = time.perf_counter()
            segments, _ = model.transcribe(
                samples,
                beam_size=1,
                temperature=0.0,
                language="en",
                without_timestamps=True,
                condition_on_previous_text=False,
            )
            text = "".join(segment.text for segment in segments).strip()
            answer = {"text": text, "seconds": time.perf_counter() - started}
        else:
            features = ctranslate2.StorageView.from_array(np.load(request["features"]))
            found = model.model.generate(features, [request["prompt"]], beam_size=1, max_length=224)
            answer = {"ids": found[0].sequences_ids[0]}
        print(json.dumps(answer), flush=True)


main()
