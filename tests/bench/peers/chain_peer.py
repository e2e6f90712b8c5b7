"""The plain chain: faster-whisper, then llama.cpp, then piper, one after the other. {"wav": PATH, "system": TEXT} gives
the seconds that each stage took after the end of the voice detector's silence, up to the first sound of the answer's
first sentence."""

from __future__ import annotations

import time
from typing import Any

from llama_cpp import Llama
from piper import PiperVoice
from service import Answer, open_wav, open_whisper, serve

SENTENCE_END = (".", "!", "?", "\n")


def start(settings: dict[str, Any]) -> Answer:
    threads = settings["threads"]
    asr = open_whisper(settings)
    llm = Llama(settings["lm"], n_ctx=2048, n_threads=threads, n_threads_batch=threads, verbose=False)
    voice = PiperVoice.load(settings["voice"])

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        started = time.perf_counter()
        segments, _ = asr.transcribe(open_wav(request["wav"]), beam_size=1, language="en", without_timestamps=True)
        text = "".join(segment.text for segment in segments).strip()
        heard = time.perf_counter()
        messages = [{"role": "system", "content": request["system"]}, {"role": "user", "content": text}]
        reply = ""
        first = None
        for chunk in llm.create_chat_completion(messages, temperature=0.0, max_tokens=60, stream=True):
            reply += chunk["choices"][0]["delta"].get("content", "")
            first = first or (time.perf_counter() if reply else None)
            if reply.rstrip().endswith(SENTENCE_END):
                break
        thought = time.perf_counter()
        next(iter(voice.synthesize(reply or "Sorry.")))
        spoken = time.perf_counter()
        return {
            "text": text,
            "reply": reply,
            "hear": heard - started,
            "first_token": (first or thought) - heard,
            "think": thought - heard,
            "say": spoken - thought,
            "total": spoken - started,
        }

    return answer


serve(start)
