"""smart-turn: the published int8 graph as it is.

input_features [1, 80, 800] -> logits [1, 1], the probability that the turn is complete
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from appliance.runtime.card import Built, Card
from appliance.runtime.ort import OrtModel
from appliance.runtime.turnend import EndOfTurn
from firmware.frame import RATE, Wave
from models.quantized.recipes import Check, Progress


def build(card: Card, sources: Mapping[str, Path], out: Path, progress: Progress) -> None:
    progress("copy", 0.0)
    shutil.copyfile(sources["graph"], out / "turn.onnx")


def verify(built: Built) -> list[Check]:
    """Against the probabilities that the publisher's own features and graph give for the same sounds.

    The graph computes in int8, so features that differ in their last bit can move a probability by a quantum.
    """
    expected = built.card.golden["probabilities"]
    engine = EndOfTurn(OrtModel(built.file("graph")))
    found = [engine.probability(tone(seconds)) for seconds in built.card.golden["seconds"]]
    return [Check("largest difference of a probability", float(np.abs(np.subtract(expected, found)).max()), 0.03)]


def tone(seconds: float) -> Wave:
    """A falling voice-like tone that swells four times a second, then an eighth of the time silence."""
    time = np.arange(int(seconds * RATE)) / RATE
    phase = 2 * np.pi * (180.0 - 60.0 * time / seconds / 2) * time
    voice = sum(np.cos(k * phase) / k for k in range(1, 25))
    loud = (0.55 + 0.45 * np.cos(2 * np.pi * 4 * time)) * (time < 0.875 * seconds)
    return np.asarray(0.08 * voice * loud, np.float32)
