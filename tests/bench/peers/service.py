"""What the peers share: JSON lines on standard input, one answered with one, and how some of them are opened."""

from __future__ import annotations

import json
import sys
import wave
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from faster_whisper import WhisperModel
    from piper import PiperVoice

Answer = Callable[[dict[str, Any]], dict[str, Any]]


def serve(start: Callable[[dict[str, Any]], Answer]) -> None:
    """`start` gets the settings, and returns what answers a request."""
    answer = start(json.loads(sys.argv[1]))
    print(json.dumps({"ready": True}), flush=True)
    for request in map(json.loads, sys.stdin):
        print(json.dumps(answer(request)), flush=True)


def open_wav(path: str) -> np.ndarray:
    """float32 [n] of 16 kHz mono int16."""
    with wave.open(path) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 1, 2)
        return np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768.0


def open_whisper(settings: dict[str, Any]) -> WhisperModel:
    from faster_whisper import WhisperModel

    precision = settings.get("precision", "int8")
    return WhisperModel(settings["asr"], device="cpu", compute_type=precision, cpu_threads=settings["threads"])


def open_piper(settings: dict[str, Any]) -> PiperVoice:
    """PiperVoice.load with a number of threads."""
    import onnxruntime
    from piper import PiperVoice
    from piper.config import PiperConfig

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = settings["threads"]
    session = onnxruntime.InferenceSession(settings["voice"], options, providers=["CPUExecutionProvider"])
    with open(f"{settings['voice']}.json", encoding="utf-8") as file:
        return PiperVoice(session=session, config=PiperConfig.from_dict(json.load(file)))
