"""Short sounds that say what words cannot: one pattern for each class of failure, and one for attention."""

from __future__ import annotations

import numpy as np

from appliance.events import Attending, Failed, Speech
from appliance.stream import Events, Stage
from firmware.frame import Wave
from firmware.mixer import Player

RATE = 22_050
PATTERNS: dict[str, tuple[int, ...]] = {
    "deadline": (440, 440),
    "model": (440, 330),
    "device": (440, 330, 262),
    "storage": (330, 440, 330),
    "internal": (262, 262, 262),
}
"""Tones in hertz, each 120 ms, by the kind of a Failed event."""

ATTENTION = (587, 880)
"""Two soft tones, 60 ms each: the user is being listened to."""

CALLED = ("word", "button", "api")
"""Why the box attends when somebody has called it: a tone answers. A follow-up question needs none."""


def tones(hertz: tuple[int, ...], seconds: float, loudness: float) -> Wave:
    """One tone after the other, each with soft edges: float32 [n] at RATE."""
    time = np.arange(int(seconds * RATE), dtype=np.float32) / RATE
    edge = np.minimum(1.0, np.minimum(time, time[::-1]) / 0.01)
    return np.concatenate([loudness * edge * np.sin(2 * np.pi * f * time) for f in hertz]).astype(np.float32)


def earcon(failure: Failed) -> Speech:
    """The sound of a failure's kind, at a quarter of full scale."""
    return Speech(failure.at, failure.turn, tones(PATTERNS[failure.kind], 0.12, 0.25), RATE, (), True)


def acknowledge(player: Player) -> Stage:
    """Passes everything on; plays ATTENTION when the box attends because it was called. The sound waits for nobody and
    delays nobody: while one still plays there is no other."""
    sound = tones(ATTENTION, 0.06, 0.06)

    async def stage(events: Events) -> Events:
        async for event in events:
            if isinstance(event, Attending) and event.on and event.why in CALLED and not player.pending:
                player.play(sound, RATE)
                player.end()
            yield event

    return stage
