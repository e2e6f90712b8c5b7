"""Micro wake words: the published streaming graph as it is.

features int8 [1, 3, 40] -> score uint8 [1, 1], a probability; what it has heard stays in the graph's own variables
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from appliance.errors import ModelFault, SourceFault
from appliance.runtime.card import Built, Card
from appliance.runtime.tfl import TflModel
from appliance.runtime.wakeword import checked, open_word, role
from firmware.frame import RATE, Pcm, to_pcm
from firmware.wake import scores
from models.quantized.recipes import Check, Progress


def build(card: Card, sources: Mapping[str, Path], out: Path, progress: Progress) -> None:
    progress("copy", 0.0)
    role(card)
    graph = sources["graph"]
    try:
        checked(TflModel(graph), str(graph))
    except ModelFault as fault:
        raise SourceFault(fault.message, f"correct the source in {card.path}") from fault
    shutil.copyfile(graph, out / "wake.tflite")


def verify(built: Built) -> list[Check]:
    """Against the scores that the publisher's own package gives for the same sound. Where a manifest has none, silence
    at least must be no wake word."""
    golden = built.card.golden
    with open_word(built) as word:
        if not golden:
            return [Check("score of silence", max(scores(word, np.zeros(RATE, np.int16))), 0.5)]
        found = scores(word, spoken(golden["sounds"]))
    expected = golden["scores"]
    off = np.abs(np.subtract(expected, found[: len(expected)])) if len(found) >= len(expected) else [1.0]
    return [Check("largest difference of a score", float(np.max(off)), 0.02)]


HISS = range(4500, 7800, 55)
"""Frequencies (Hz) of which the hiss of an "s" is made."""

GLIDE = 40 * RATE // 1000
"""Samples over which one sound passes into the next."""


def spoken(sounds: Sequence[Sequence[float]]) -> Pcm:
    """Speech from nothing: for each sound its milliseconds, two formants (Hz), and how loud voice and hiss are. A pulse
    train of 120 Hz through three resonances (the third stays), in float64, so that every machine hears the same."""
    course = np.concatenate([np.tile(np.array(sound[1:]), (round(sound[0]) * RATE // 1000, 1)) for sound in sounds])
    low, high, voice, hiss = (_smooth(column) for column in course.T)
    time = np.arange(len(course)) / RATE
    voiced, unvoiced = np.zeros_like(time), np.zeros_like(time)
    for number in range(1, 41):
        hertz = 120.0 * number
        loud = _resonance(hertz, low, 80.0) + 0.7 * _resonance(hertz, high, 110.0) + 0.1 * _resonance(hertz, 2600, 150)
        voiced += loud * np.cos(2 * np.pi * hertz * time + number**2)
    for number, hertz in enumerate(HISS):
        unvoiced += np.cos(2 * np.pi * hertz * time + number**2)
    return to_pcm((0.06 * voiced * voice + 0.005 * unvoiced * hiss).astype(np.float32))


def _resonance(hertz: float, centre: NDArray[np.float64] | float, width: float) -> NDArray[np.float64]:
    return np.asarray(1.0 / (1.0 + ((hertz - centre) / width) ** 2))


def _smooth(course: NDArray[np.float64]) -> NDArray[np.float64]:
    padded = np.pad(course, (GLIDE // 2, GLIDE - 1 - GLIDE // 2), mode="edge")
    summed = np.cumsum(np.concatenate([[0.0], padded]))
    return np.asarray((summed[GLIDE:] - summed[:-GLIDE]) / GLIDE)
