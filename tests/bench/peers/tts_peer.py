"""piper-tts. {"text": TEXT} gives the phoneme ids of its first sentence; {"ids": [...]} synthesises them and gives the
seconds until the sound is there (piper returns a sentence at once, so its first sound is its last), the processor
seconds and the number of samples."""

from __future__ import annotations

import time
from typing import Any

from piper.config import SynthesisConfig
from service import Answer, open_piper, serve


def start(settings: dict[str, Any]) -> Answer:
    voice = open_piper(settings)

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if "text" in request:
            return {"ids": voice.phonemes_to_ids(voice.phonemize(request["text"])[0])}
        started, used = time.perf_counter(), time.process_time()
        samples = len(voice.phoneme_ids_to_audio(request["ids"], SynthesisConfig()))
        return {"seconds": time.perf_counter() - started, "cpu": time.process_time() - used, "samples": samples}

    return answer


serve(start)
