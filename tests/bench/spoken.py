"""What the measurements of the front end share: the box's own voice as sound at 16 kHz."""

from __future__ import annotations

import numpy as np

from appliance.voice.say import Speaker
from firmware.frame import RATE, Pcm, to_pcm
from firmware.resample import resample

REPLIES = (
    "The capital of France is Paris, a city on the river Seine with two million people.",
    "A heat pump moves warmth from the outside to the inside, even when it is cold outdoors.",
    "Leaves turn red in autumn, because the green goes first and leaves the other colours behind.",
    "I have put milk, bread and six eggs on the shopping list for tomorrow morning.",
    "The next train to the airport leaves at a quarter past nine from platform four.",
    "To change a flat tyre, loosen the nuts first, then lift the car and take the wheel off.",
    "It will be cloudy in the afternoon, with some rain towards the evening and little wind.",
    "Your meeting with the supplier is at half past two in the small room on the first floor.",
    "The sea is salty because rivers wash salt out of the rocks and carry it along.",
    "Okay. The lights in the kitchen are off, and the heating is set to nineteen degrees.",
    "Stop the machine before you open the cover, and wait until the red light is off.",
    "Alexander wrote a letter to his sister, and she never answered it.",
)
"""Things that a box says: long enough to be interrupted, some with words that sound like a wake word or an order."""


def said(speaker: Speaker, text: str, *, tempo: float = 1.0, seed: int = 0) -> Pcm:
    """int16 mono [n] at RATE."""
    voice = Speaker(speaker.voice, speaker.phonemise, tempo, seed)
    sound = np.concatenate([chunk.samples for chunk in voice.say(text)])
    return to_pcm(resample(sound, speaker.rate, RATE))
