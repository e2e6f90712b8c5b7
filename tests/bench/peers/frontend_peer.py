"""The front end of bare libraries: WebRTC's module on every frame, Silero every 32 ms, a package for wake words."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from service import Answer, open_wav, serve

WINDOW, CONTEXT = 512, 64


def start(settings: dict[str, Any]) -> Answer:
    import onnxruntime
    from livekit.rtc import AudioFrame
    from livekit.rtc.apm import AudioProcessingModule
    from pymicro_wakeword import MicroWakeWord, MicroWakeWordFeatures, Model

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    vad = onnxruntime.InferenceSession(settings["vad"], options, providers=["CPUExecutionProvider"])
    names = [found.name for found in vad.get_inputs()]
    wakes = [MicroWakeWord.from_builtin(Model(word.replace("-", "_"))) for word in settings["words"]]

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        sound = (open_wav(request["path"]) * 32768).astype(np.int16)
        seconds = len(sound) / 16_000
        module = AudioProcessingModule(echo_cancellation=True, high_pass_filter=True)
        silence = bytes(320)

        began = time.process_time()
        for at in range(0, len(sound) - 159, 160):
            module.process_reverse_stream(AudioFrame(silence, 16_000, 1, 160))
            module.set_stream_delay_ms(0)
            module.process_stream(AudioFrame(sound[at : at + 160].tobytes(), 16_000, 1, 160))
        echo = time.process_time() - began

        features = MicroWakeWordFeatures()
        began = time.process_time()
        for at in range(0, len(sound) - 159, 160):
            for row in features.process_streaming(sound[at : at + 160].tobytes()):
                for word in wakes:
                    word.process_streaming(row)
        wake = time.process_time() - began

        state, context = np.zeros((2, 1, 128), np.float32), np.zeros(CONTEXT, np.float32)
        wave = sound.astype(np.float32) / 32768
        began = time.process_time()
        for at in range(0, len(wave) - WINDOW + 1, WINDOW):
            window = wave[at : at + WINDOW]
            given = {"input": np.concatenate([context, window])[None], "state": state, "sr": np.array(16_000)}
            _, state = vad.run(["output", "stateN"], {name: given[name] for name in names})
            context = window[-CONTEXT:]
        voice = time.process_time() - began
        parts = {"echo": echo / seconds, "wake": wake / seconds, "vad": voice / seconds}
        return {"all": sum(parts.values()), **parts}

    return answer


if __name__ == "__main__":
    serve(start)
