"""The linear filter on rooms that are known."""

from __future__ import annotations

import numpy as np
import pytest

from firmware.frame import FRAME, RATE, Wave
from firmware.highpass import HighPass
from firmware.kalman import PARTS, Kalman


def noise(seconds: float, seed: int = 0, loudness: float = 0.1) -> Wave:
    return np.random.default_rng(seed).normal(0, loudness, round(seconds * RATE)).astype(np.float32)


def through(room: Kalman, near: Wave, far: Wave, *, learn: bool = True) -> Wave:
    pairs = zip(near.reshape(-1, FRAME), far.reshape(-1, FRAME), strict=True)
    return np.concatenate([room.push(heard, played, learn=learn) for heard, played in pairs])


def echo(far: Wave, lag: int, gain: float = 0.5) -> Wave:
    return np.concatenate([np.zeros(lag, np.float32), gain * far])[: len(far)]


def decibels(before: Wave, after: Wave) -> float:
    return 20 * float(np.log10(np.std(before) / np.std(after)))


@pytest.mark.parametrize("lag", [0, 1, 64, FRAME, 1000])
def test_a_room_is_learnt_in_a_second(lag: int) -> None:
    far = noise(2)
    near = echo(far, lag)
    assert decibels(near[RATE:], through(Kalman(), near, far)[RATE:]) >= 20


def test_an_echo_behind_its_memory_is_left() -> None:
    far = noise(2)
    near = echo(far, (PARTS + 1) * FRAME)
    assert decibels(near[RATE:], through(Kalman(), near, far)[RATE:]) < 3


def test_a_voice_as_loud_as_the_echo_does_not_unlearn_it() -> None:
    far, voice = noise(5), noise(5, seed=1, loudness=0.05)
    voice[: 2 * RATE] = 0
    left = through(Kalman(), echo(far, 500) + voice, far) - voice
    assert decibels(echo(far, 500)[3 * RATE :], left[3 * RATE :]) >= 15


def test_what_does_not_teach_changes_nothing() -> None:
    room, far = Kalman(), noise(2)
    through(room, echo(far, 100), far)
    before = room._room.copy()
    through(room, noise(0.2, seed=3, loudness=0.9), noise(0.2, seed=4), learn=False)
    np.testing.assert_array_equal(room._room, before)


def test_what_was_kept_is_recalled() -> None:
    room, far = Kalman(), noise(3)
    through(room, echo(far, 100), far)
    room.keep()
    through(room, echo(noise(1, 5), 3000), noise(1, 5))
    room.recall()
    again = noise(0.5, seed=6)
    assert decibels(echo(again, 100)[4000:], through(room, echo(again, 100), again, learn=False)[4000:]) >= 15


def test_it_lives_on_past_its_memory() -> None:
    """The spectra are kept in a ring: what is computed does not depend on where in it."""
    far = noise(4)
    near = echo(far, 2000)
    once, late = Kalman(), Kalman()
    through(late, np.zeros(7 * FRAME, np.float32), np.zeros(7 * FRAME, np.float32), learn=False)
    np.testing.assert_allclose(through(once, near, far), through(late, near, far), atol=1e-6)


@pytest.mark.parametrize(("hertz", "gain"), [(10, 0.016), (80, 0.7071), (300, 0.9975), (4000, 1.0)])
def test_the_high_pass_takes_what_lies_below(hertz: float, gain: float) -> None:
    wave = np.sin(2 * np.pi * hertz * np.arange(2 * RATE) / RATE).astype(np.float32)
    high = HighPass()
    out = np.concatenate([high.push(frame) for frame in wave.reshape(-1, FRAME)])[RATE:]
    assert np.std(out) / np.std(wave[RATE:]) == pytest.approx(gain, abs=0.002)
    assert np.abs(np.diff(out)).max() <= 1.03 * np.abs(np.diff(wave)).max()  # nothing at the seams
