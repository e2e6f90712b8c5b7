from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware import wav
from firmware.fake import Fake, Mishap, World, mix
from firmware.fault import DeviceFault
from firmware.frame import FRAME, RATE, Frame, Pcm, to_wave
from firmware.mixer import Mixer
from firmware.room import Room
from firmware.sound import Sound

Kind = Literal["unplugged", "server", "moved", "frozen", "silence", "rate", "stalled", "overrun"]


def loud(samples: int) -> Pcm:
    return np.full(samples, 1000, np.int16)


def sine(hertz: float, seconds: float, height: float) -> Pcm:
    return (height * np.sin(2 * np.pi * hertz * np.arange(round(seconds * RATE)) / RATE)).astype(np.int16)


def noise(samples: int, deviation: float) -> Pcm:
    """Nothing above 6 kHz, which a loudspeaker's resampler would take away."""
    spectrum = np.fft.rfft(np.random.default_rng(samples).normal(size=samples) * deviation)
    spectrum[np.fft.rfftfreq(samples, 1 / RATE) > 6_000] = 0
    return np.fft.irfft(spectrum, samples).astype(np.int16)


def codes(seconds: float) -> Pcm:
    """Samples that name their place, and stay over 100."""
    return (np.arange(round(seconds * RATE)) // 16 % 30_000 + 100).astype(np.int16)


def near_of(frames: Iterable[Frame]) -> Pcm:
    return np.concatenate([frame.samples for frame in frames])


def far_of(frames: Iterable[Frame]) -> Pcm:
    return np.concatenate([frame.far for frame in frames])


def test_it_hears_a_recording_and_silence_behind_it(tmp_path: Path) -> None:
    wav.write(tmp_path / "a.wav", loud(RATE + 5))
    fake: Sound = Fake(tmp_path / "a.wav", tail=0.5)
    frames = list(fake.frames())
    assert [frame.at for frame in frames] == list(range(0, len(frames) * FRAME, FRAME))
    sound = np.concatenate([frame.samples for frame in frames])
    assert (sound[: RATE + 5] == 1000).all()
    assert not sound[RATE + 5 :].any()
    assert len(frames) == 101 + 50


@pytest.mark.parametrize("rate", [16_000, 44_100, 48_000])
@pytest.mark.parametrize("source", [16_000, 22_050])
@pytest.mark.parametrize("count", [1, 159, 12_345])
def test_every_sample_is_played(rate: int, source: int, count: int) -> None:
    """C68: whatever the length, all of it reaches the loudspeaker, and is counted."""
    fake = Fake(np.zeros(0, np.int16), rate=rate)
    for part in np.array_split(loud(count), 3):
        fake.player.play(part, source)
    fake.player.drain()
    expected = -(-count * rate // source)
    assert np.count_nonzero(fake.output()) in range(expected - rate // 1000, expected + 1)
    assert fake.player.played == expected * RATE // rate
    assert fake.player.pending == 0


def test_playing_advances_with_listening() -> None:
    """Equal on every run: a captured frame is a played frame."""
    fake = Fake(np.zeros(RATE, np.int16))
    fake.player.play(loud(RATE // 2), RATE)
    for number, _frame in enumerate(fake.frames(), 1):
        assert fake.player.played == min(number * FRAME, RATE // 2)
    assert np.flatnonzero(fake.output())[-1] == RATE // 2 - 1


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 90), st.sampled_from([16_000, 22_050, 48_000]))
def test_nothing_is_played_after_a_flush(at: int, rate: int) -> None:
    fake = Fake(np.zeros(RATE, np.int16), rate=48_000)
    fake.player.play(loud(2 * rate), rate)
    for number, _frame in enumerate(fake.frames()):
        if number == at:
            fake.player.flush()
            decided = fake.now
            assert fake.player.pending == 0
    assert not fake.output()[decided * 3 + 240 :].any()  # 5 ms fade away
    assert fake.player.played == decided


def test_the_rate_may_change_between_phrases() -> None:
    fake = Fake(np.zeros(0, np.int16))
    for rate in (RATE, 22_050, 8_000):
        fake.player.play(loud(rate // 2), rate)
    fake.player.drain()
    assert fake.player.played == 3 * RATE // 2


def test_a_listener_may_answer_what_is_played() -> None:
    """The near end looks at the loudspeaker: it speaks once a tenth of a second of the answer has been heard."""

    def user() -> Iterator[Pcm]:
        while fake.player.played < RATE // 10:
            yield np.zeros(FRAME, np.int16)
        yield loud(FRAME)

    fake = Fake(user(), tail=0.0)
    fake.player.play(loud(RATE), RATE)
    frames = list(fake.frames())
    assert frames[-1].at == RATE // 10
    assert frames[-1].samples.any()


def test_the_room_is_heard() -> None:
    held: list[Pcm] = [np.zeros(FRAME, np.int16)] * 3

    def room(played: Pcm) -> Pcm:
        held.append(played // 2)
        return held.pop(0)

    fake = Fake(loud(RATE), room=room)
    fake.player.play(loud(FRAME), RATE)
    sound = np.concatenate([frame.samples for frame in fake.frames()])
    assert np.flatnonzero(sound > 1000).tolist() == list(range(3 * FRAME, 4 * FRAME))


def test_the_room_has_its_delay_at_every_rate_of_the_loudspeaker() -> None:
    for rate in (16_000, 44_100, 48_000):
        fake = Fake(rate=rate, tail=2.0, room=Room(delay=0.1, gain=-6.0, response=np.ones(1, np.float32)))
        sound = noise(RATE, 3_000)
        fake.player.play(sound, RATE)
        frames = list(fake.frames())
        far, near = far_of(frames), near_of(frames)
        assert len(far) == pytest.approx(len(near), abs=50)
        half = to_wave(far[:RATE]) * np.float32(10 ** (-6 / 20))
        np.testing.assert_allclose(to_wave(near[1_600 : 1_600 + RATE]), half, atol=3e-4)
        assert not near[:1_580].any()


@pytest.mark.parametrize("rate", [16_000, 44_100, 48_000])
@pytest.mark.parametrize("drift", [-500.0, 250.0])
def test_a_drift_moves_what_the_loudspeaker_takes(rate: int, drift: float) -> None:
    """In a minute the loudspeaker takes so much more, and `far` carries all of it."""
    fake = Fake(tail=60.0, rate=rate, room=Room(drift=drift))
    frames = list(fake.frames())
    near, far = len(frames) * FRAME, sum(len(frame.far) for frame in frames)
    assert far - near == pytest.approx(near * drift * 1e-6, abs=50)
    assert fake.mixer.clock == pytest.approx(near * (1 + drift * 1e-6) * rate / RATE, abs=2)


def test_noise_has_its_level() -> None:
    near = to_wave(near_of(Fake(tail=5.0, noise=-50.0).frames()))
    assert 20 * np.log10(near.std()) == pytest.approx(-50, abs=0.2)
    assert abs(near.mean()) < 1e-4


def test_the_converter_amplifies_and_clips() -> None:
    sound = sine(440, 1.0, 10_000)
    assert np.abs(near_of(Fake(sound, preamp=6.0).frames())).max() == pytest.approx(10_000 * 10**0.3, abs=2)
    clipped = near_of(Fake(sound, preamp=6.0, clip=0.25).frames())[:RATE]
    assert (clipped.max(), clipped.min()) == (8_192, -8_192)
    assert np.mean(np.abs(clipped) == 8_192) > 0.5
    loudest = near_of(Fake(sine(440, 1.0, 30_000), preamp=20.0).frames())
    assert (loudest.max(), loudest.min()) == (32_767, -32_768)


def test_talkers_are_added() -> None:
    one, other = sine(300, 1.0, 8_000), sine(900, 0.505, 8_000)
    both = near_of(Fake(mix(one, (other, -6.0)), tail=0.0).frames())
    want = one.astype(float)
    want[: len(other)] += other * 10**-0.3
    np.testing.assert_allclose(both, want, atol=1)


def test_what_goes_lost_is_counted() -> None:
    fake = Fake(loud(RATE), mishaps=[Mishap(320, "overrun", frames=3)])
    frames = list(fake.frames())
    assert [(frame.at, frame.overruns) for frame in frames[:4]] == [(0, 0), (160, 0), (800, 3), (960, 0)]
    assert [len(frame.far) for frame in frames[:4]] == [160, 160, 640, 160], "the loudspeaker went on"


@pytest.mark.parametrize(
    ("kind", "noticed", "words"),
    [
        ("unplugged", 0.5, "the microphone is gone"),
        ("server", 0.5, "the sound server is gone"),
        ("moved", 0.5, "another microphone"),
        ("frozen", 2.0, "went silent after 0.5 s"),
    ],
)
def test_what_ends_a_device(kind: Kind, noticed: float, words: str) -> None:
    fake = Fake(loud(RATE), mishaps=[Mishap(RATE // 2, kind)])
    heard: list[Frame] = []
    with pytest.raises(DeviceFault, match=words) as caught:
        heard.extend(fake.frames())
    assert caught.value.kind == kind
    assert len(heard) == 50
    assert fake.world.now() == pytest.approx(noticed)
    fake.player.play(loud(100), RATE)
    with pytest.raises(DeviceFault, match="the loudspeaker is gone"):
        fake.player.drain()


def test_a_device_that_comes_back() -> None:
    """Ten seconds without a card: the clock goes on, and so does whoever speaks; the next card has another index."""
    world = World(codes(30), tail=0.0, mishaps=[Mishap(5 * RATE, "unplugged", seconds=10.0)])
    mixer = Mixer(RATE)
    player = mixer.player("speech", capacity=30)
    player.play(loud(7 * RATE), RATE)
    heard, refused, at = [], 0, 0
    while True:
        try:
            fake = Fake(world, mixer=mixer, at=at)
            for frame in fake.frames():
                heard.append(frame)
                at = frame.at + FRAME
            break
        except DeviceFault as fault:
            refused += fault.kind == "unplugged"
            fake.close()
            world.sleep(0.3)
            at += round(0.3 * RATE)
    assert refused == 34
    assert (fake.index, world.now()) == (2, pytest.approx(30.0, abs=0.02))
    assert at == pytest.approx(30 * RATE, abs=2 * FRAME)
    for frame in heard[::100]:  # what was said at that time
        assert frame.samples[0] == pytest.approx(codes(30)[frame.at], abs=2)
    assert (player.played, player.pending) == (7 * RATE, 0), "what was queued is played by the next card"


def test_a_card_that_is_opened_again_works_again() -> None:
    for kind in ("frozen", "silence", "rate", "stalled"):
        world = World(loud(5 * RATE), mishaps=[Mishap(RATE, kind)])  # type: ignore[arg-type]
        first = Fake(world)
        with suppress(DeviceFault):
            for frame in first.frames():
                if frame.at == 2 * RATE:
                    break
        first.close()
        second = Fake(world, mixer=first.mixer)
        before, clock = world.now(), second.mixer.clock
        frame = next(iter(second.frames()))
        assert (frame.samples == 1000).all(), kind
        assert world.now() - before == pytest.approx(0.01), kind
        assert second.mixer.clock == clock + FRAME, kind


def test_what_passes_by_itself() -> None:
    def held(kind: Kind, **how: float) -> tuple[Fake, list[Frame]]:
        fake = Fake(loud(3 * RATE), tail=0.0, mishaps=[Mishap(RATE, kind, seconds=1.0, **how)])  # type: ignore[arg-type]
        return fake, list(fake.frames())

    _, frames = held("silence")
    sound = near_of(frames)
    assert not sound[RATE : 2 * RATE].any()
    assert (np.delete(sound, np.s_[RATE : 2 * RATE]) == 1000).all()
    fake, frames = held("frozen")
    assert len(frames) == 200
    assert fake.world.now() == pytest.approx(3.0)
    fake, frames = held("stalled")
    assert len(frames) == 300
    assert fake.mixer.clock == 2 * RATE
    assert [len(frame.far) for frame in frames[99:102]] == [160, 0, 0]
    fake, frames = held("rate", speed=0.5)
    assert len(frames) == 300
    assert fake.world.now() == pytest.approx(3.5)
    fake, frames = held("rate", speed=2.0)
    assert fake.world.now() == pytest.approx(2.0)


def test_a_card_that_is_ill_for_longer_stays_ill() -> None:
    world = World(loud(9 * RATE), mishaps=[Mishap(0, "silence", seconds=3.0)])
    next(iter(Fake(world).frames()))
    world.sleep(1.0)
    assert not next(iter(Fake(world).frames())).samples.any()
    world.sleep(2.0)
    assert next(iter(Fake(world).frames())).samples.any()


def test_a_microphone_that_is_closed() -> None:
    fake = Fake(loud(RATE), listen=False, room=Room())
    fake.player.play(loud(RATE), RATE)
    frames = list(fake.frames())
    assert not near_of(frames).any()
    assert far_of(frames)[:RATE].all()
    assert not any(frame.live for frame in frames)


@pytest.mark.parametrize("rate", [16_000, 48_000])
def test_a_sink_that_sleeps_swallows_the_first_word_unless_there_is_a_lead_in(rate: int) -> None:
    """C67: 800 ms after each rest; the microphone does not wait for any of it."""
    word = np.repeat(codes(0.5), rate // RATE)
    for lead_in, heard in ((0.0, 0), (0.8, RATE // 2)):
        fake = Fake(codes(8), tail=0.0, rate=rate, swallowed=0.8, lead_in=lead_in, room=Room(delay=0.05))
        for frame in fake.frames():
            if frame.at in (0, 5 * RATE):
                fake.player.play(word, rate)
            assert len(frame.samples) == FRAME
        assert frame.at == 8 * RATE - FRAME
        assert fake.player.played == 2 * (RATE // 2)
        assert fake.player.underruns in (0, 2)
        out = fake.output()
        for start in (0, 5 * rate):
            put_out = np.count_nonzero(np.abs(out[start : start + 3 * rate].astype(int)) > 1)
            assert put_out == heard * rate // RATE, lead_in


def test_a_sink_that_sleeps_is_heard_as_little_in_the_room() -> None:
    fake = Fake(tail=2.0, rate=48_000, swallowed=0.3, room=Room(delay=0.05, response=np.ones(1, np.float32)))
    fake.player.play(loud(RATE), RATE)
    near = near_of(fake.frames())
    assert np.flatnonzero(np.abs(near) > 300)[0] == pytest.approx((0.3 + 0.05) * RATE, abs=60)


def test_nothing_is_remembered_of_silence() -> None:
    """A day of it costs neither memory nor filters."""
    room = Room(drift=50.0)
    fake = Fake(tail=None, rate=48_000, room=room)
    pushed: list[int] = []
    push = room._filter.push
    room._filter.push = lambda wave: pushed.append(len(wave)) or push(wave)  # type: ignore[method-assign,func-returns-value]
    for number, _ in enumerate(fake.frames()):
        if number == 6_000:
            break
    assert pushed == []
    assert fake._sink._pieces == []
    assert len(fake.output()) == pytest.approx(6_001 * 480 * (1 + 50e-6), abs=2)


def test_it_keeps_a_time_of_its_own() -> None:
    """The World is a clock for whoever watches the frames."""
    world = World(tail=1.0)
    times = [world.now() for _ in Fake(world).frames()]
    np.testing.assert_allclose(times, np.arange(1, 101) / 100)
    world.sleep(2.5)
    assert world.now() == pytest.approx(3.5)


def test_what_cannot_be_played_frame_by_frame() -> None:
    for rate, room in ((8_000, None), (22_051, None), (48_000, lambda played: played)):
        with pytest.raises(ValueError, match="frame by frame"):
            Fake(rate=rate, room=room)


def test_close_ends_an_endless_silence() -> None:
    fake = Fake(np.zeros(0, np.int16), tail=None)
    for number, _frame in enumerate(fake.frames()):
        if number == 500:
            fake.close()
    assert number == 500


def test_paced_time_sleeps_to_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("firmware.fake.time.sleep", slept.append)
    monkeypatch.setattr("firmware.fake.time.monotonic", lambda: 50.0)
    list(Fake(loud(RATE // 10), tail=0.0, pace=2.0).frames())
    assert slept == pytest.approx([0.005 * number for number in range(10)])


def test_the_same_loop_twice_gives_the_same_sound() -> None:
    def once() -> tuple[Pcm, Pcm, Pcm]:
        fake = Fake(
            mix(loud(2 * RATE), (codes(1), -20.0)),
            rate=48_000,
            room=Room(delay=0.08, drift=120.0, soft=2.0),
            noise=-60.0,
            preamp=3.0,
            mishaps=[Mishap(RATE // 3, "overrun", frames=2), Mishap(RATE, "silence", seconds=0.1)],
        )
        frames = []
        for frame in fake.frames():
            frames.append(frame)
            if frame.at % 3200 == 0:
                fake.player.play(np.arange(frame.at % 977, dtype=np.int16), 22_050)
            if frame.at == RATE:
                fake.player.hold()
            if frame.at == RATE + 1_600:
                fake.player.resume()
        return near_of(frames), far_of(frames), fake.output()

    first, second = once(), once()
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.any()
