"""piper-tts in an environment of its own.

Reads JSON lines on standard input, writes one for each: {"text": ...} gives the phoneme ids of its first sentence,
{"ids": [...]} synthesises them and gives the seconds until the sound is there (piper returns a sentence at once, so its
first sound is its last), the processor seconds and the number of samples.
"""

from __future__ import annotations

import json
import sys
import time

import onnxruntime
from piper import PiperVoice
from piper.config import PiperConfig, SynthesisConfig


def main() -> None:
    settings = json.loads(sys.argv[1])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = settings["threads"]
    session = onnxruntime.InferenceSession(settings["voice"], options, providers=["CPUExecutionProvider"])
    with open(settings["config"], encoding="utf-8") as file:
        voice = PiperVoice(session=session, config=PiperConfig.from_dict(json.load(file)))
    print(json.dumps({"ready": True}), flush=True)
    for request in map(json.loads, sys.stdin):
        if "text" in request:
            answer = {"ids": voice.phonemes_to_ids(voice.phonemize(request["text"])[0])}
        else:
            started, used = time.perf_counter(), time.process_time()
            audio = voice.phoneme_ids_to_audio(request["ids"], SynthesisConfig())
            answer = {
                "seconds": time.perf_counter() - started,
                "cpu": time.process_time() - used,
                "samples": len(audio),
            }
        print(json.dumps(answer), flush=True)


main()
