from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware.frame import Wave
from firmware.resample import Resampler, resample

COMMON = [8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000, 96000]


def tone(hertz: float, rate: int, seconds: float = 0.5) -> Wave:
    return np.sin(2 * np.pi * hertz * np.arange(round(rate * seconds)) / rate).astype(np.float32)


def middle(wave: Wave) -> Wave:
    return wave[len(wave) // 4 : 3 * len(wave) // 4]


def decibels(wave: Wave) -> float:
    """Of a sine wave's amplitude."""
    return float(20 * np.log10(np.sqrt(2) * np.std(wave) + 1e-9))


@pytest.mark.parametrize("source", [*COMMON, 44_099])
@pytest.mark.parametrize("target", [16_000, 22_050, 44_100, 48_000])
def test_a_tone_keeps_pitch_phase_and_level(source: int, target: int) -> None:
    for part in (0.05, 0.5, 0.85):
        hertz = part * min(source, target) / 2
        found = resample(tone(hertz, source), source, target)
        error = middle(found) - middle(tone(hertz, target, len(found) / target))
        assert decibels(error) < -85.0


@pytest.mark.parametrize("source", [22_050, 24_000, 44_100, 48_000, 96_000, 44_099])
def test_what_would_alias_is_80_db_down(source: int) -> None:
    for hertz in np.linspace(8_000, source / 2 - 50, 7):
        assert decibels(middle(resample(tone(hertz, source), source, 16_000))) < -80.0


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(COMMON), st.sampled_from(COMMON), st.lists(st.integers(0, 700), min_size=1, max_size=12))
def test_any_split_gives_the_same_samples(source: int, target: int, sizes: list[int]) -> None:
    wave = np.random.default_rng(1).standard_normal(sum(sizes)).astype(np.float32)
    stream = Resampler(source, target)
    pieces = [stream.push(part) for part in np.split(wave, np.cumsum(sizes)[:-1])]
    found = np.concatenate([*pieces, stream.flush()])
    assert len(found) == -(-len(wave) * target // source)
    np.testing.assert_array_equal(found, resample(wave, source, target))


def test_the_last_sample_arrives() -> None:
    """C68: an impulse at the very end is still in the output."""
    wave = np.zeros(4801, np.float32)
    wave[-1] = 1.0
    found = resample(wave, 48_000, 16_000)
    assert int(np.argmax(found)) == len(found) - 1 == 1600


def test_two_streams_do_not_mix() -> None:
    """C70: taken in turns, each comes out as if it were alone, at its own pitch."""
    sounds = {16_000: tone(440, 16_000), 24_000: tone(1000, 24_000)}
    streams = {rate: Resampler(rate, 48_000) for rate in sounds}
    found: dict[int, list[Wave]] = {rate: [] for rate in sounds}
    for turn in range(50):
        for rate, sound in sounds.items():
            step = rate // 100
            found[rate].append(streams[rate].push(sound[turn * step : (turn + 1) * step]))
    for rate, hertz in ((16_000, 440), (24_000, 1000)):
        whole = np.concatenate([*found[rate], streams[rate].flush()])
        assert np.corrcoef(whole, tone(hertz, 48_000))[0, 1] > 0.99


def test_a_stream_after_flush_is_a_new_one() -> None:
    stream = Resampler(44_100, 16_000)
    first = np.concatenate([stream.push(tone(440, 44_100)), stream.flush()])
    second = np.concatenate([stream.push(tone(440, 44_100)), stream.flush()])
    np.testing.assert_array_equal(first, second)


def test_impossible_rates() -> None:
    with pytest.raises(ValueError, match="positive"):
        Resampler(0, 16_000)
