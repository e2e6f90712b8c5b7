"""Log-mel features against their definition, written out slowly in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.runtime.features import FLOOR, HOP, WINDOW, filters, log_mel


def slow(wave: np.ndarray, bands: int) -> np.ndarray:
    window = np.array([0.5 * (1 - np.cos(2 * np.pi * n / WINDOW)) for n in range(WINDOW)])
    kernel = np.exp(-2j * np.pi * np.outer(np.arange(WINDOW // 2 + 1), np.arange(WINDOW)) / WINDOW)
    padded = np.pad(wave.astype(np.float64), WINDOW // 2, mode="reflect")
    columns = []
    for frame in range(len(wave) // HOP):
        power = np.abs(kernel @ (padded[frame * HOP : frame * HOP + WINDOW] * window)) ** 2
        columns.append(np.log10(np.maximum(filters(bands).astype(np.float64) @ power, FLOOR)))
    mel = np.array(columns).T
    return (np.maximum(mel, mel.max() - 8) + 4) / 4


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), samples=st.integers(201, 4000), bands=st.sampled_from([80, 128]))
def test_features_are_what_the_definition_says(seed: int, samples: int, bands: int) -> None:
    noise = np.random.default_rng(seed).standard_normal(samples)
    wave = (noise * np.hanning(samples) + 0.1 * np.sin(np.arange(samples))).astype(np.float32)
    found = log_mel(wave, bands)
    assert found.dtype == np.float32
    if samples >= HOP:
        assert found.shape == (bands, samples // HOP)
        np.testing.assert_allclose(found, slow(wave, bands), atol=2e-3)


def test_filters_have_unit_area_and_cover_the_range_in_order() -> None:
    found = filters(80)
    hertz = 16_000 / WINDOW
    wide = found[40:]  # the lowest are narrower than two bins
    np.testing.assert_allclose(wide.sum(axis=1) * hertz, 1.0, rtol=0.1)
    assert (np.diff(found.argmax(axis=1)) >= 0).all()
    assert (found >= 0).all()
    assert (found.max(axis=1) > 0).all()


def test_low_filters_are_evenly_spaced_in_hertz() -> None:
    """Below 1 kHz a mel is 200 / 3 Hz; 8 kHz is 15 + 27 * log(8) / log(6.4) of them, in 81 steps."""
    step = (15 + 27 * np.log(8) / np.log(6.4)) / 81 * 200 / 3
    low = filters(80)[4:24]
    centres = (low * np.arange(WINDOW // 2 + 1) * 16_000 / WINDOW).sum(axis=1) / low.sum(axis=1)
    np.testing.assert_allclose(centres, step * np.arange(5, 25), atol=4)


def test_a_tone_lands_in_the_band_that_holds_it() -> None:
    tone = np.sin(2 * np.pi * 1000 * np.arange(16_000) / 16_000).astype(np.float32)
    band = int(log_mel(tone)[:, 50].argmax())
    assert filters(80)[band, 1000 * WINDOW // 16_000] > 0


def test_silence_is_flat_and_finite() -> None:
    np.testing.assert_allclose(log_mel(np.zeros(3200, np.float32)), -1.5, atol=1e-6)


def test_too_little_sound_is_refused() -> None:
    with pytest.raises(ValueError, match="too few"):
        log_mel(np.zeros(200, np.float32))
