from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware import wav
from firmware.fake import Fake, Mishap
from firmware.fault import DeviceFault
from firmware.frame import FRAME, RATE, Frame, Pcm
from firmware.sound import Sound


def loud(samples: int) -> Pcm:
    return np.full(samples, 1000, np.int16)


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


def test_mishaps() -> None:
    fake = Fake(loud(RATE), mishaps=[Mishap(320, "overrun", frames=3)])
    frames = list(fake.frames())
    assert [(frame.at, frame.overruns) for frame in frames[:4]] == [(0, 0), (160, 0), (800, 3), (960, 0)]
    for kind, words in (("unplugged", "the microphone is gone"), ("frozen", "went silent after 0.5 s")):
        fake = Fake(loud(RATE), mishaps=[Mishap(RATE // 2, kind)])  # type: ignore[arg-type]
        heard: list[Frame] = []
        with pytest.raises(DeviceFault, match=words):
            heard.extend(fake.frames())
        assert len(heard) == 50
        if kind == "unplugged":
            fake.player.play(loud(100), RATE)
            with pytest.raises(DeviceFault, match="the loudspeaker is gone"):
                fake.player.drain()


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
    def once() -> Pcm:
        fake = Fake(loud(RATE), rate=48_000)
        for frame in fake.frames():
            if frame.at % 3200 == 0:
                fake.player.play(np.arange(frame.at % 977, dtype=np.int16), 22_050)
        return fake.output()

    np.testing.assert_array_equal(once(), once())
