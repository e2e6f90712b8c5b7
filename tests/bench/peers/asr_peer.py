"""faster-whisper. {"wav": PATH} transcribes 16 kHz mono int16 (beam 1, no timestamps, no retries): text and seconds.
{"features": FILE.npy, "prompt": IDS} decodes a log-mel [1, bands, 3000] that somebody else has computed: ids."""

from __future__ import annotations

import time
from typing import Any

import ctranslate2
import numpy as np
from service import Answer, open_wav, open_whisper, serve


def start(settings: dict[str, Any]) -> Answer:
    model = open_whisper(settings)

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if "features" in request:
            features = ctranslate2.StorageView.from_array(np.load(request["features"]))
            found = model.model.generate(features, [request["prompt"]], beam_size=1, max_length=224)
            return {"ids": found[0].sequences_ids[0]}
        samples = open_wav(request["wav"])
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
        return {"text": text, "seconds": time.perf_counter() - started}

    return answer


serve(start)
