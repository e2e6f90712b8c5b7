"""The plain chain, in an environment of its own: faster-whisper, then llama.cpp, then piper, one after the other.

Reads JSON lines on standard input, writes one for each: {"wav": path, "system": text} gives the seconds that each stage
took after the end of the voice detector's silence, up to the first sound of the answer's first sentence.
"""

from __future__ import annotations

import json
import sys
import time
import wave

import numpy as np
from faster_whisper import WhisperModel
from llama_cpp import Llama
from piper import PiperVoice

SENTENCE_END = (".", "!", "?", "\n")


def load(path: str) -> np.ndarray:
    with wave.open(path) as file:
        assert file.getframerate() == 16_000
        return np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768.0


def main() -> None:
    settings = json.loads(sys.argv[1])
    threads = settings["threads"]
    asr = WhisperModel(settings["asr"], device="cpu", compute_type="int8", cpu_threads=threads)
    llm = Llama(settings["gguf"], n_ctx=2048, n_threads=threads, n_threads_batch=threads, verbose=False)
    voice = PiperVoice.load(settings["voice"])
    print(json.dumps({"ready": True}), flush=True)
    for request in map(json.loads, sys.stdin):
        started = time.perf_counter()
        segments, _ = asr.transcribe(load(request["wav"]), beam_size=1, language="en", without_timestamps=True)
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
        print(
            json.dumps(
                {
                    "text": text,
                    "reply": reply,
                    "hear": heard - started,
                    "first_token": (first or thought) - heard,
                    "think": thought - heard,
                    "say": spoken - thought,
                    "total": spoken - started,
                }
            ),
            flush=True,
        )


main()
