"""A second opinion about a wake word: the recogniser's."""

from __future__ import annotations

from appliance.runtime.model import finish
from appliance.voice.address import says
from appliance.voice.hear import Recogniser
from firmware.frame import Pcm, to_wave


def verify(recogniser: Recogniser, sound: Pcm, phrase: str, language: str = "") -> bool:
    """Whether the recogniser finds the phrase in the sound, int16 mono [n] at RATE. Blocks."""
    return says(finish(recogniser.transcribe(to_wave(sound), language=language)).text, [phrase])
