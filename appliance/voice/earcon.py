"""Short sounds that say what words cannot, one pattern for each class of failure."""

from __future__ import annotations

import numpy as np

from appliance.events import Failed, Speech

RATE = 22_050
PATTERNS: dict[str, tuple[int, ...]] = {
    "deadline": (440, 440),
    "model": (440, 330),
    "device": (440, 330, 262),
    "storage": (330, 440, 330),
    "internal": (262, 262, 262),
}
"""Tones in hertz, each 120 ms, by the kind of a Failed event."""


def earcon(failure: Failed) -> Speech:
    """The sound of a failure's kind, with soft edges and at a quarter of full scale."""
    time = np.arange(int(0.12 * RATE), dtype=np.float32) / RATE
    edge = np.minimum(1.0, np.minimum(time, time[::-1]) / 0.01)
    tones = [0.25 * edge * np.sin(2 * np.pi * hertz * time) for hertz in PATTERNS[failure.kind]]
    return Speech(failure.at, failure.turn, np.concatenate(tones).astype(np.float32), RATE, (), True)
