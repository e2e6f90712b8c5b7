"""A room whose delay, gain and drift are what they say, for hours."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware import room as room_module
from firmware.frame import FRAME, RATE, Pcm, Wave, to_wave
from firmware.room import LEAST, MOST, Room, reverberation

BARE = np.ones(1, np.float32)


def speechlike(samples: int, seed: int = 0) -> Pcm:
    """Noise below 7 kHz."""
    spectrum = np.fft.rfft(np.random.default_rng(seed).normal(size=samples) * 3_000)
    spectrum[np.fft.rfftfreq(samples, 1 / RATE) > 7_000] = 0
    return np.fft.irfft(spectrum, samples).astype(np.int16)


def heard(room: Room, sound: Pcm, frames: int) -> Wave:
    """The echo of `sound`, and of silence behind it."""
    parts, at = [], 0
    for _ in range(frames):
        piece = sound[at : at + room.due]
        parts.append(room.hear(np.pad(piece, (0, room.due - len(piece)))))
        at += room.due if len(piece) == 0 else len(piece)
    return np.concatenate(parts)


def lag(far: Pcm | Wave, near: Wave) -> float:
    """By how many samples `near` is behind: the peak of the cross-correlation, by a parabola between samples."""
    size = 2 * max(len(far), len(near))
    cross = np.fft.irfft(np.fft.rfft(near, size) * np.conj(np.fft.rfft(to_wave(far), size)), size)
    at = int(np.argmax(cross))
    left, peak, right = cross[at - 1], cross[at], cross[at + 1]
    return at + 0.5 * float((left - right) / (left - 2 * peak + right))


@settings(max_examples=15, deadline=None)
@given(st.floats(0.0, 0.4), st.floats(-20.0, 6.0))
def test_delay_and_gain_are_what_they_say(delay: float, gain: float) -> None:
    sound = speechlike(RATE // 2)
    echo = heard(Room(delay=delay, gain=gain, response=BARE), sound, 100)
    assert lag(sound, echo) == pytest.approx(max(delay, LEAST) * RATE, abs=0.15)
    assert 20 * np.log10(echo.std() / np.pad(to_wave(sound), (0, RATE // 2)).std()) == pytest.approx(gain, abs=0.05)


@pytest.mark.parametrize("pieces", [1, 37, 161, 1_000])
def test_the_response_is_applied_to_the_sample(pieces: int) -> None:
    """Against a plain convolution, however the sound is cut; there is no delay of its own."""
    response, sound = reverberation(0.2), speechlike(RATE)
    convolver = room_module._Convolver(response)
    got = np.concatenate([convolver.push(to_wave(part)) for part in np.array_split(sound, -(-RATE // pieces))[:900]])
    want = np.convolve(to_wave(sound), response)[: len(got)]
    np.testing.assert_allclose(got, want, atol=1e-5)


@pytest.mark.parametrize(("drift", "floor"), [(0.0, -80), (50.0, -60), (-150.0, -60), (500.0, -40)])
@pytest.mark.parametrize("hertz", [300, 3_000, 7_000])
def test_a_drifting_tone_is_exact(drift: float, floor: float, hertz: float) -> None:
    """Against the sine at the loudspeaker's own times."""
    room = Room(delay=0.0305, drift=drift, response=BARE)
    loudspeaker = (16_000 * np.sin(2 * np.pi * hertz * np.arange(2.1 * RATE) / RATE)).astype(np.int16)
    echo = heard(room, loudspeaker, 200)[RATE:]
    times = np.arange(RATE, 2 * RATE) * (1 + drift * 1e-6) - 0.0305 * RATE
    want = 16_000 / 32_768 * np.sin(2 * np.pi * hertz * times / RATE)
    assert 20 * np.log10(np.abs(echo - want).max() * 2) < floor


@settings(max_examples=10, deadline=None)
@given(st.floats(-500, 500))
def test_an_hour_has_as_many_samples_as_the_drift_says(drift: float) -> None:
    room = Room(drift=drift)
    total = 0
    for _ in range(2_000):
        total += room.due
        room.hear(np.zeros(room.due, np.int16))
    room._clock += (360_000 - 2_000) * room._step  # the rest of the hour
    room._pushed = room._clock // room_module._NANO
    last = room.due
    assert total == int(320_000 * (1 + round(drift * 1000) * 1e-9))
    assert last in (FRAME - 1, FRAME, FRAME + 1)
    assert room._pushed + last == pytest.approx(3600 * RATE * (1 + drift * 1e-6) + FRAME, abs=2)


def test_after_a_day_it_is_as_exact_as_at_first() -> None:
    """The clocks are whole numbers; nothing that grows is a float."""
    sound = speechlike(RATE)
    echoes = []
    for frames in (0, 24 * 360_000):
        room = Room(delay=0.05, drift=100.0, response=BARE)
        room._clock = frames * room._step
        room._pushed = room._clock // room_module._NANO
        room._first += room._pushed
        echoes.append(heard(room, sound, 120))
    np.testing.assert_allclose(echoes[0], echoes[1], atol=2e-3)  # 24 h x 100 ppm is a whole number of samples
    assert np.abs(echoes[0]).max() > 0.1


def test_a_long_run_keeps_its_delay_and_its_size() -> None:
    room = Room(delay=0.1, response=BARE)
    sound = speechlike(RATE)
    size = len(room._held)
    for _ in range(12):
        assert lag(sound, heard(room, sound, 150)) == pytest.approx(0.1 * RATE, abs=0.02)
    assert len(room._held) == size


def test_everything_may_change() -> None:
    room = Room(delay=0.03, response=BARE)
    sound = speechlike(RATE)
    assert lag(sound, heard(room, sound, 150)) == pytest.approx(480, abs=0.02)
    room.delay = 0.15
    assert lag(sound, heard(room, sound, 150)) == pytest.approx(2_400, abs=0.02)
    loud = heard(room, sound, 150).std()
    room.gain = -20.0
    assert heard(room, sound, 150).std() == pytest.approx(loud / 10, rel=1e-3)
    room.muffled = True
    assert not heard(room, sound, 150).any()
    room.muffled, room.delay = False, 9.0
    assert lag(sound, heard(room, sound, 200)) == pytest.approx(MOST * RATE, abs=0.02)
    room.delay, room.drift = 0.1, 400.0
    first = lag(sound[:1_600], heard(room, sound, 150)[:4_000])
    room.drift = 0.0
    assert first == pytest.approx(1_600, abs=1.0)
    assert room.due == FRAME


def test_a_soft_loudspeaker_bends_what_is_loud() -> None:
    """Odd harmonics; what is quiet stays as it is."""
    for height, bent in ((300, False), (20_000, True)):
        tone = (height * np.sin(2 * np.pi * 500 * np.arange(RATE) / RATE)).astype(np.int16)
        spectrum = np.abs(np.fft.rfft(heard(Room(response=BARE, soft=2.0), tone, 100)[RATE // 4 : 3 * RATE // 4]))
        assert (spectrum[750] > spectrum[250] / 50) == bent  # two bins for each hertz
        assert (spectrum[500] < spectrum[250] / 50) or bent


def test_silence_costs_nothing_and_leaves_no_seam() -> None:
    """Behind a rest the echo is the same, sample by sample, as one computed all the way."""
    sound, counted = speechlike(RATE // 2, seed=3), []
    lazy, busy = (Room(delay=0.12, drift=130.0, response=reverberation(0.1)) for _ in range(2))
    busy._memory = 10**9
    push = lazy._filter.push
    lazy._filter.push = lambda wave: counted.append(1) or push(wave)  # type: ignore[method-assign,func-returns-value]
    for rest in (0, 201, 333):
        np.testing.assert_allclose(heard(lazy, sound, 60 + rest), heard(busy, sound, 60 + rest), atol=1e-6)
    before = len(counted)
    heard(lazy, sound[:0], 500)
    assert len(counted) - before < 150


def test_what_was_not_played_is_silence() -> None:
    """A loudspeaker that stalls, or is away, leaves a hole; the echo of what follows has its delay."""
    room, sound = Room(delay=0.05, response=BARE), speechlike(RATE)
    heard(room, sound, 100)
    for _ in range(30):
        room.hear(sound[:0])
    assert lag(sound, heard(room, sound, 150)) == pytest.approx(0.05 * RATE, abs=0.02)


def test_a_reverberation_decays_as_it_should() -> None:
    response = reverberation(0.3, direct=6.0)
    assert np.linalg.norm(response) == pytest.approx(1.0, abs=1e-4)
    assert 20 * np.log10(response[0] / np.linalg.norm(response[1:])) == pytest.approx(6.0, abs=0.01)
    early, late = (np.linalg.norm(response[at : at + 800]) for at in (800, 2_400))
    assert 20 * np.log10(early / late) == pytest.approx(60 * 0.1 / 0.3, abs=1.5)
    np.testing.assert_array_equal(response, reverberation(0.3, direct=6.0))
