"""The real end-of-turn model: golden sounds, odd lengths, and sentences that are cut off."""

from __future__ import annotations

import wave

import numpy as np
import pytest
from conftest import Recording

from appliance.runtime.card import Shelf
from appliance.runtime.ort import OrtModel
from appliance.runtime.turnend import SPAN, EndOfTurn, features
from firmware.frame import RATE, Wave
from models.quantized.recipes.smart_turn import tone
from models.quantized.verify import verify


@pytest.fixture(scope="module")
def engine(shelf: Shelf) -> EndOfTurn:
    return EndOfTurn(OrtModel(shelf.built("smart-turn").file("graph")))


@pytest.mark.models("smart-turn", "silero-vad")
def test_the_golden_sounds(shelf: Shelf) -> None:
    for verdict in verify(shelf, ["smart-turn", "silero-vad"]):
        assert verdict.passed, verdict


@pytest.mark.models("smart-turn")
@pytest.mark.parametrize("samples", [0, 1, 159, RATE, SPAN, SPAN + 1, 30 * RATE])
def test_any_length_has_a_probability(engine: EndOfTurn, samples: int) -> None:
    assert 0 <= engine.probability(tone(30.0)[:samples]) <= 1


@pytest.mark.models("smart-turn")
def test_only_the_last_seconds_count(engine: EndOfTurn) -> None:
    sound = tone(12.0)
    assert engine.probability(sound) == engine.probability(sound[-SPAN:])


def test_features_do_not_depend_on_loudness() -> None:
    sound = tone(3.0)
    assert features(sound).shape == (80, 800)
    assert np.abs(features(sound) - features(sound * np.float32(0.25))).max() < 1e-3


def test_silence_has_features() -> None:
    assert np.isfinite(features(np.zeros(RATE, np.float32))).all()


def read(recording: Recording) -> Wave:
    with wave.open(str(recording.path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


@pytest.mark.shared
@pytest.mark.models("smart-turn")
def test_a_sentence_that_is_cut_off_is_less_complete(engine: EndOfTurn, shared_audio: tuple[Recording, ...]) -> None:
    """Read sentences, whole with 0.2 s of silence behind them, and broken off in the middle of a word or not."""
    spoken = [r for r in shared_audio if r.transcript and r.rate == RATE and r.path.suffix == ".wav" and r.seconds < 8]
    sounds = [read(recording) for recording in spoken[:12]]
    quiet = np.zeros(RATE // 5, np.float32)
    whole = [engine.probability(np.concatenate([sound, quiet])) for sound in sounds]
    cut = [engine.probability(np.concatenate([sound[: len(sound) * 6 // 10], quiet])) for sound in sounds]
    assert len(sounds) >= 5
    assert np.mean(whole) > np.mean(cut) + 0.3
