"""A second opinion on a wake word: does the recogniser hear the phrase in the same sound?"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from appliance.runtime.model import finish
from appliance.voice.address import says
from appliance.voice.hear import Recogniser
from firmware.frame import Pcm, to_wave

ALIKE = 0.7
"""Part of the letters that phrase and transcript share from which they are the same: "Hey, Minecraft" for "Hey Mycroft"
has 0.73. A word too many costs less here than a user who is not heard."""


def verify(recogniser: Recogniser, sound: Pcm, phrase: str, language: str = "") -> bool:
    """`sound` is int16 [n] at RATE around the word. Runs to its end: whoever has no time does not wait for it."""
    return heard(finish(recogniser.transcribe(to_wave(sound), language=language)).text, phrase)


def heard(text: str, phrase: str) -> bool:
    """Whether the phrase is in a transcript: by its sounds, or by most of its letters."""
    wanted, words = _letters(phrase), text.split()
    size = len(phrase.split())
    parts = (words[at : at + length] for length in (size - 1, size, size + 1) for at in range(len(words)) if length)
    return says(text, [phrase]) or any(
        SequenceMatcher(None, wanted, _letters("".join(part)), autojunk=False).ratio() >= ALIKE for part in parts
    )


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.lower())
