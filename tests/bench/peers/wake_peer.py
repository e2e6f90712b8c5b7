"""pymicro-wakeword. {"wav": PATH} gives the seconds at which each word fires, by the cutoff and the window of its
publisher; a word that has fired is not heard again for a second, as in Parley. And the processor seconds used."""

from __future__ import annotations

import time
import wave
from typing import Any

from pymicro_wakeword import MicroWakeWord, MicroWakeWordFeatures, Model
from service import Answer, serve


def start(settings: dict[str, Any]) -> Answer:
    words = {name: MicroWakeWord.from_builtin(Model(name.replace("-", "_"))) for name in settings["words"]}

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        with wave.open(request["wav"]) as file:
            sound = file.readframes(file.getnframes())
        features = MicroWakeWordFeatures()
        heard: dict[str, list[float]] = {name: [] for name in words}
        for word in words.values():
            word.reset()
        used = time.process_time()
        for start in range(0, len(sound), 320):
            now = (start + 320) / 32_000
            for row in features.process_streaming(sound[start : start + 320]):
                for name, word in words.items():
                    if word.process_streaming(row) and now > (heard[name] or [-1.0])[-1] + 1.0:
                        heard[name].append(now)
        return {"heard": heard, "cpu": time.process_time() - used}

    return answer


serve(start)
