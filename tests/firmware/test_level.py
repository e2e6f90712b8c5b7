from __future__ import annotations

import numpy as np
import pytest

from firmware.frame import FRAME, RATE, Frame, Pcm
from firmware.level import FLOOR, Meter, dbfs


def noise(level: float, seconds: float = 2.0) -> Pcm:
    wave = np.random.default_rng(0).uniform(-1, 1, round(seconds * RATE)) * np.sqrt(3) * 10 ** (level / 20)
    return (np.clip(wave, -1, 32767 / 32768) * 32768).astype(np.int16)


def measure(speech: float, background: float) -> Meter:
    meter = Meter()
    for level, probability in ((speech, 0.99), (background, 0.01)):
        sound = noise(level)
        for at in range(0, len(sound), FRAME):
            meter.push(Frame(at, sound[at : at + FRAME]), probability)
    return meter


def test_dbfs() -> None:
    assert dbfs(np.full(100, -32768, np.int16)) == pytest.approx(0.0)
    assert dbfs(np.sin(np.arange(16000) * np.pi / 8).astype(np.float32)) == pytest.approx(-3.01, abs=0.01)
    assert dbfs(np.zeros(100, np.int16)) == FLOOR
    assert dbfs(np.zeros(0, np.int16)) == FLOOR


def test_levels_are_told_apart() -> None:
    meter = measure(-26.0, -60.0)
    assert meter.speech == pytest.approx(-26.0, abs=0.2)
    assert meter.noise == pytest.approx(-60.0, abs=0.2)
    assert meter.advice() is None


@pytest.mark.parametrize(
    ("speech", "background", "words"),
    [
        (-52.0, -80.0, "-52 dBFS, which is too quiet: raise the microphone's gain by 26 dB"),
        (-30.0, -33.0, "the noise is nearly as loud as your voice (3 dB apart)"),
        (+3.0, -60.0, "overdrives"),
    ],
)
def test_advice(speech: float, background: float, words: str) -> None:
    assert words in str(measure(speech, background).advice())


def test_nothing_is_said_about_a_word_or_two() -> None:
    meter = Meter()
    for at in range(0, RATE // 2, FRAME):
        meter.push(Frame(at, np.ones(FRAME, np.int16)), 0.99)
    assert meter.advice() is None
