"""A second opinion on a wake word: does the recogniser hear the phrase in the same sound?"""

from __future__ import annotations

from typing import Protocol

from appliance.runtime.asr import Hypothesis
from appliance.runtime.model import Steps, finish
from appliance.voice.address import says
from firmware.frame import Pcm, Wave, to_wave


class Recogniser(Protocol):
    def transcribe(self, wave: Wave, *, draft: tuple[int, ...] = (), language: str = "") -> Steps[Hypothesis]: ...


def verify(recogniser: Recogniser, sound: Pcm, phrase: str, language: str = "") -> bool:
    """`sound` is int16 [n] at RATE around the word. Runs to its end: whoever has no time does not wait for it."""
    return says(finish(recogniser.transcribe(to_wave(sound), language=language)).text, [phrase])
