"""espeak through piper-tts, a Piper voice, and faster-whisper as the judge. {"text": TEXT} gives espeak's phonemes;
{"phonemes": PHONEMES} says them with the voice (with its own noise if "noise" is set, else with none) and gives what
the judge hears, and the symbols that the voice does not have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from piper.phonemize_espeak import EspeakPhonemizer
from service import Answer, open_whisper, serve


def resampled(sound: np.ndarray) -> np.ndarray:
    """From the voice's 22.05 kHz to 16 kHz, in the frequency domain: padded to a length both rates divide."""
    padded = np.pad(sound, (0, -len(sound) % 441))
    length = len(padded) * 320 // 441
    spectrum = np.fft.rfft(padded)[: length // 2 + 1]
    return (np.fft.irfft(spectrum, length) * length / len(padded)).astype(np.float32)


def start(settings: dict[str, Any]) -> Answer:
    espeak = EspeakPhonemizer()
    table = json.loads(Path(f"{settings['voice']}.json").read_text("utf-8"))["phoneme_id_map"]
    options = ort.SessionOptions()
    options.intra_op_num_threads = settings["threads"]
    voice = ort.InferenceSession(settings["voice"], options, providers=["CPUExecutionProvider"])
    judge = open_whisper(settings)

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if "text" in request:
            return {"phonemes": " ".join("".join(part) for part in espeak.phonemize("en-us", request["text"]))}
        known = [symbol for symbol in request["phonemes"] if symbol in table]
        ids = [1, 0, *(id for symbol in known for id in (*table[symbol], 0)), 2]
        scales = [0.667, 1.0, 0.8] if request.get("noise") else [0.0, 1.0, 0.0]
        tensors = {
            "input": np.array([ids], np.int64),
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array(scales, np.float32),
        }
        sound = np.pad(resampled(voice.run(None, tensors)[0].reshape(-1)), 4000)
        segments, _ = judge.transcribe(
            sound, language="en", beam_size=1, temperature=0, condition_on_previous_text=False
        )
        heard = "".join(segment.text for segment in segments).strip()
        return {"text": heard, "missing": sorted(set(request["phonemes"]) - set(known))}

    return answer


serve(start)
