"""The laws of playback. A sink that takes whenever somebody waits stands for the card."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware import mixer as mixer_module
from firmware.fault import DeviceFault
from firmware.frame import FRAME, RATE, Pcm, Wave, to_pcm, to_wave
from firmware.mixer import DUCKED, FADE, RAMP, REST, Mixer, Player
from firmware.resample import resample

RATES = st.sampled_from([8_000, 16_000, 22_050, 44_100, 48_000])


class Sink:
    """Takes `period` samples when somebody waits, and keeps them."""

    def __init__(self, rate: int = 48_000, period: int = 480, **how: float) -> None:
        self.period = period
        self.parts: list[Pcm] = []
        self.mixer = Mixer(rate)
        self.mixer.attach(rate, wait=self.take, **how)  # type: ignore[arg-type]

    def take(self, times: int = 1) -> None:
        for _ in range(times):
            self.parts.append(self.mixer.take(self.period))

    @property
    def sound(self) -> Pcm:
        return np.concatenate(self.parts)


def loud(samples: int) -> Pcm:
    return np.full(samples, 1000, np.int16)


def sine(hertz: float, seconds: float, rate: int, height: float = 8000.0) -> Pcm:
    return (height * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.int16)


def codes(samples: int) -> Pcm:
    """Samples that name their place."""
    return (np.arange(samples) % 30_000 + 1).astype(np.int16)


def pitch(sound: Pcm | Wave, rate: int) -> float:
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound)), 8 * len(sound)))
    return float(np.argmax(spectrum)) * rate / (8 * len(sound))


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns a thousand times as often."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(interval)


# --- all of it -----------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9_000), RATES, RATES, st.integers(1, 2_000), st.integers(1, 4), st.floats(0.3, 1.0))
def test_every_sample_reaches_the_sink(
    count: int, source: int, rate: int, period: int, pieces: int, capacity: float
) -> None:
    """C68: whatever the length, the rate and the period, and the last period is padded."""
    sink = Sink(rate, period)
    player = sink.mixer.player("speech", capacity=capacity)
    sound = to_wave(np.random.default_rng(count).normal(size=count).astype(np.float32) * np.float32(0.1))
    for part in np.array_split(sound, pieces):
        player.play(part, source)
    player.drain()
    expected = to_pcm(resample(sound, source, rate))
    heard = sink.sound
    np.testing.assert_allclose(heard[: len(expected)], expected, atol=1)
    assert not heard[len(expected) :].any()
    assert len(heard) % period == 0
    assert player.played == len(expected) * RATE // rate
    assert player.pending == 0


def test_two_streams_keep_their_pitch_and_their_sound() -> None:
    """C70: at once, at different rates, begun at different times; bands that do not overlap tell them apart."""
    sink = Sink()
    low, high = sine(700, 1.0, 22_050), sine(2_900, 0.8, RATE)
    low, high = (sound * (1 + 0.5 * np.sin(np.arange(len(sound)) / 900)) for sound in (low, high))  # type: ignore[assignment]
    sink.mixer.player("speech", capacity=9).play(low.astype(np.int16), 22_050)
    sink.take(7)
    music = sink.mixer.player("music", capacity=9)
    for part in np.array_split(high.astype(np.int16), 9):
        music.play(part, RATE)
    sink.take(100)
    heard = to_wave(sink.sound)
    spectrum, hertz = np.fft.rfft(heard), np.fft.rfftfreq(len(heard), 1 / 48_000)
    for own, rate, start, band, tone in (
        (low, 22_050, 0, hertz < 1_800, 700),
        (high, RATE, 7 * 480, (hertz > 1_800) & (hertz < 4_000), 2_900),
    ):
        alone = np.fft.irfft(spectrum * band, len(heard))
        want = resample(to_wave(own.astype(np.int16)), rate, 48_000)
        assert np.corrcoef(alone[start : start + len(want)], want)[0, 1] >= 0.99
        assert abs(pitch(alone[start : start + len(want)], 48_000) - tone) < 1.0


def test_the_sum_is_clipped_not_wrapped() -> None:
    sink = Sink(RATE, 160)
    for name in ("one", "two", "three"):
        sink.mixer.player(name).play(np.full(160, 30_000 if name != "three" else -30_000, np.int16), RATE)
    for name in ("four", "five"):
        sink.mixer.player(name).play(np.pad(np.full(80, -30_000, np.int16), (80, 0)), RATE)
    sink.take()
    assert set(sink.sound[:80]) == {30_000}  # the sum of all is clipped, not that of the first two
    assert set(sink.sound[80:]) == {-30_000}
    for name in ("one", "two"):
        sink.mixer.player(name).play(np.repeat(np.array([30_000, -30_000], np.int16), 80), RATE)
    sink.take()
    assert (set(sink.sound[160:240]), set(sink.sound[240:])) == ({32_767}, {-32_768})


@settings(max_examples=20, deadline=None)
@given(st.floats(0.05, 2.0), RATES, st.integers(100, 5_000))
def test_a_queue_is_bounded(capacity: float, rate: int, period: int) -> None:
    """Who plays more waits: a piece of a tenth of a second may go beyond."""
    sink = Sink(RATE, period)
    player = sink.mixer.player("speech", capacity=capacity)
    most = 0
    wait = sink.mixer.wait

    def watch() -> None:
        nonlocal most
        most = max(most, player.pending)
        wait()

    sink.mixer.wait = watch
    player.play(loud(5 * rate), rate)
    assert 0 < most <= (capacity + 0.1) * RATE + 1


# --- counting ------------------------------------------------------------------------------------------------------


def test_what_the_device_still_holds_has_not_been_heard() -> None:
    sink = Sink(RATE, FRAME, latency=3 * FRAME)
    player = sink.mixer.player("speech")
    player.play(loud(2 * FRAME), RATE)
    heard = []
    for _ in range(7):
        sink.take()
        heard.append((player.played, player.pending))
    assert heard == [(0, 320), (0, 320), (0, 320), (160, 160), (320, 0), (320, 0), (320, 0)]


def test_drain_waits_for_what_the_device_holds() -> None:
    sink = Sink(RATE, FRAME, latency=5 * FRAME)
    player = sink.mixer.player("speech")
    player.play(loud(300), RATE)
    player.drain()
    assert (player.played, player.pending) == (300, 0)
    assert len(sink.parts) == 2 + 5


def test_nobody_sees_an_empty_queue_before_the_device_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts change one after the other in the callback; at no moment between may `drain` believe it is over."""
    sink = Sink(RATE, FRAME)
    player = sink.mixer.player("speech")
    player.play(loud(FRAME), RATE)
    seen: list[int] = []
    drop = mixer_module._Line.drop

    def watched(line: mixer_module._Line, count: int) -> None:
        seen.append(player.pending)
        drop(line, count)
        seen.append(player.pending)

    monkeypatch.setattr(mixer_module._Line, "drop", watched)
    sink.take()
    assert min(seen) >= FRAME
    assert player.pending == 0


def test_an_underrun_plays_silence_is_counted_once_and_the_rest_follows() -> None:
    """C40: eight seconds without a word in the middle of the answer."""
    sink = Sink(RATE, FRAME)
    player = sink.mixer.player("speech", capacity=9)
    player.play(loud(250), RATE)
    sink.take(800)
    assert player.underruns == 1
    player.play(np.full(250, 2_000, np.int16), RATE)
    player.drain()
    sink.take(50)
    assert (player.underruns, player.played, player.pending) == (1, 500, 0)
    assert np.count_nonzero(sink.sound == 1_000) == np.count_nonzero(sink.sound == 2_000) == 250
    player.play(loud(100), RATE)  # the next answer
    player.drain()
    sink.take(10)
    assert sink.mixer.underruns == 1
    player.play(loud(100), RATE)  # and one that has a gap, too
    sink.take(10)
    assert sink.mixer.underruns == 2


def test_an_answer_that_begins_is_no_underrun() -> None:
    """The device may take at any moment of a `play`, also of the first one behind an answer that was drained."""
    sink = Sink(RATE, 50)
    player = sink.mixer.player("speech")

    class Nosy(deque[Pcm]):
        def append(self, piece: Pcm) -> None:
            sink.take()
            super().append(piece)
            sink.take()

    for _ in range(2):
        player._line.queue = Nosy(player._line.queue)
        player.play(loud(500), RATE)
        player._line.queue = deque(player._line.queue)
        player.drain()
    assert player.underruns == 0
    assert player.played == 1_000


def test_a_loudspeaker_that_takes_nothing_is_given_up() -> None:
    mixer = Mixer(RATE)
    mixer.attach(RATE, patience=0.05)
    player = mixer.player("speech", capacity=0.1)
    with pytest.raises(DeviceFault, match="stopped taking sound"):
        player.play(loud(RATE), RATE)
    with pytest.raises(DeviceFault, match="stopped taking sound"):
        player.drain()


# --- stopping and going on -----------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.integers(240, 2_000), st.integers(1, 20))
def test_after_a_flush_at_most_a_fade_is_written(period: int, takes: int) -> None:
    """C31: less than one device period, without a click."""
    sink = Sink(48_000, period)
    player = sink.mixer.player("speech", capacity=9)
    player.play(sine(50, 2.0, 48_000), 48_000)
    sink.take(takes)
    played = player.played
    player.flush()
    sink.take(5)
    sound = sink.sound
    assert not sound[takes * period + 240 :].any()
    assert np.abs(np.diff(sound.astype(int))).max() < 100
    assert (player.played, player.pending) == (played, 0)


def test_a_new_line_may_follow_a_flush_at_once() -> None:
    sink = Sink(RATE, FRAME)
    player = sink.mixer.player("speech")
    player.play(loud(RATE), RATE)
    player.flush()
    player.play(codes(500), RATE)
    player.drain()
    assert sink.sound[:500].tolist() == codes(500).tolist()
    assert player.played == 500


def test_late_sound_of_a_flushed_line_is_never_heard() -> None:
    """Who waits for room in the queue returns at the flush, and what it had left is gone."""
    waiting = threading.Event()
    mixer = Mixer(RATE)
    mixer.attach(RATE, wait=waiting.set)
    player = mixer.player("speech", capacity=0.2)
    late = threading.Thread(target=player.play, args=(loud(5 * RATE), RATE))
    late.start()
    assert waiting.wait(5)
    player.flush()
    late.join(5)
    assert not late.is_alive()
    assert not mixer.take(10 * RATE).any()
    assert player.pending == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(240, 1_500), st.lists(st.integers(1, 6), min_size=2, max_size=7))
def test_a_held_player_goes_on_at_the_very_sample(period: int, spans: list[int]) -> None:
    """C36: by turns it plays and is held for some periods; between the fades all that was queued is heard, once."""
    sink = Sink(48_000, period)
    player = sink.mixer.player("speech", capacity=9)
    source = sine(50, 3.0, 48_000)
    player.play(source, 48_000)
    at = 0
    for number, takes in enumerate(spans):
        if number % 2:
            player.hold()
            assert player.held
        else:
            player.resume()
        before, start = player.played, len(sink.parts)
        sink.take(takes)
        heard = np.concatenate(sink.parts[start:])
        if number % 2:
            assert not heard[240:].any(), "held"
            assert player.played == before
        else:
            faded = 240 if number else 0
            np.testing.assert_array_equal(heard[faded:], source[at + faded : at + len(heard)])
            at += len(heard)
    assert np.abs(np.diff(sink.sound.astype(int))).max() < 60 + 8_000 * 1.1 / (FADE * 48_000), "no click"
    player.resume()
    player.drain()
    assert player.played == len(source) * RATE // 48_000
    assert player.underruns == 0


def test_what_is_held_before_it_began_is_not_heard_at_all() -> None:
    sink = Sink(RATE, FRAME)
    player = sink.mixer.player("speech")
    player.hold()
    player.play(codes(300), RATE)
    sink.take(3)
    assert not sink.sound.any()
    assert player.underruns == 0
    player.resume()
    player.drain()
    assert sink.sound[3 * FRAME :][:300].tolist() == codes(300).tolist()


def test_the_fade_reaches_over_short_pieces() -> None:
    sink = Sink(48_000, 480)
    player = sink.mixer.player("speech")
    for part in np.array_split(sine(50, 0.5, 48_000), 2_400):  # 10 samples each
        player.play(part, 48_000)
    sink.take(5)
    player.hold()
    sink.take(2)
    assert np.abs(np.diff(sink.sound.astype(int))).max() < 100


def test_drain_waits_through_a_hold() -> None:
    mixer = Mixer(RATE)
    looked = threading.Semaphore(0)

    def wait() -> None:
        looked.release()
        time.sleep(0.0005)

    mixer.attach(RATE, patience=0.05, wait=wait)
    player = mixer.player("speech")
    player.play(loud(FRAME), RATE)
    player.hold()
    drain = threading.Thread(target=player.drain)
    drain.start()
    for _ in range(300):  # more than its patience, but the device takes
        mixer.take(FRAME)
        assert looked.acquire(timeout=5)
    assert drain.is_alive()
    player.resume()
    mixer.take(FRAME)
    drain.join(5)
    assert not drain.is_alive()
    assert player.played == FRAME


def test_a_flush_ends_a_hold() -> None:
    sink = Sink(RATE, FRAME)
    player = sink.mixer.player("speech")
    player.play(loud(RATE // 2), RATE)
    sink.take(2)
    player.hold()
    sink.take(2)
    player.flush()
    assert not player.held
    player.play(codes(300), RATE)
    player.drain()
    assert sink.sound[4 * FRAME :][:300].tolist() == codes(300).tolist(), "from its first sample, and nothing before"


def test_a_hold_is_no_underrun() -> None:
    sink = Sink(RATE, FRAME)
    player = sink.mixer.player("speech")
    player.play(loud(FRAME), RATE)
    sink.take()
    player.hold()
    sink.take(100)
    assert player.underruns == 0


def test_an_alarm_is_none_of_the_speakers_business() -> None:
    """C73: what is done to one player changes nothing of another."""
    sink = Sink(RATE, FRAME)
    alarm, speech = sink.mixer.player("alarm"), sink.mixer.player("speech")
    speech.play(codes(900), RATE)
    alarm.play(sine(900, 0.9, RATE), RATE)
    alarm.hold()
    sink.take(3)
    alarm.resume()
    alarm.flush()
    alarm.hold()
    speech.drain()
    assert (speech.played, speech.pending, speech.held, speech.underruns) == (900, 0, False, 0)
    assert sink.sound[:900].tolist() == codes(900).tolist()
    assert sink.mixer.player("speech") is speech


# --- giving way ----------------------------------------------------------------------------------------------------


def ducking() -> tuple[Sink, Player, Player]:
    sink = Sink(RATE, FRAME)
    music, speech = sink.mixer.player("music", ducks=True, capacity=9), sink.mixer.player("speech", capacity=9)
    music.play(np.full(8 * RATE, 10_000, np.int16), RATE)
    return sink, music, speech


def test_ducking_ramps_down_and_up_without_a_click() -> None:
    sink, _, _ = ducking()
    sink.take(5)
    with sink.mixer.duck():
        sink.take(20)
    sink.take(20)
    sound = sink.sound.astype(int)
    low = round(10_000 * 10 ** (DUCKED / 20))
    ramp = round(RAMP * RATE)
    assert set(sound[: 5 * FRAME]) == {10_000}
    assert set(sound[5 * FRAME + ramp : 25 * FRAME]) == {low}
    assert set(sound[25 * FRAME + ramp :]) == {10_000}
    assert np.abs(np.diff(sound)).max() <= (10_000 - low) / ramp + 1


def test_ducking_is_counted_and_ends_with_an_error() -> None:
    sink, _, _ = ducking()
    with sink.mixer.duck():
        with pytest.raises(ValueError, match="inner"), sink.mixer.duck():
            raise ValueError("inner")
        sink.take(20)
        assert sink.parts[-1].max() < 2_000, "the outer one still asks for it"
    sink.take(20)
    assert sink.parts[-1].min() == 10_000


def test_only_those_give_way_that_should() -> None:
    sink, music, speech = ducking()
    music.flush()
    speech.play(np.full(RATE, 10_000, np.int16), RATE)
    with sink.mixer.duck():
        sink.take(20)
    assert set(sink.sound) == {10_000}


# --- sinks that sleep, devices that change -------------------------------------------------------------------------


def test_a_lead_in_follows_a_rest_only() -> None:
    """C67: it is not counted as played, does not part two phrases, and wakes a sink that sleeps on zeros."""
    sink = Sink(RATE, FRAME, lead_in=0.8)
    player = sink.mixer.player("speech")
    lead = round(0.8 * RATE)
    player.play(loud(300), RATE)
    sink.take(80)
    assert player.played == 0
    assert player.pending == 300
    sink.take(2)
    assert player.played == 300
    assert np.flatnonzero(np.abs(sink.sound) > 1).tolist() == list(range(lead, lead + 300))
    assert set(np.abs(sink.sound[:lead])) == {1}
    sink.take(round((REST - 0.1) * 100))
    player.play(loud(300), RATE)  # the next phrase, a little before the sink may sleep
    start = len(sink.parts)
    sink.take(2)
    assert np.concatenate(sink.parts[start:])[:300].tolist() == [1_000] * 300
    player.drain()
    sink.take(round((REST + 0.1) * 100))
    player.play(loud(100), RATE)
    start = len(sink.parts)
    player.drain()
    assert np.flatnonzero(np.concatenate(sink.parts[start:]) == 1_000)[0] == lead


@pytest.mark.parametrize("period", [1, 7, 160])
def test_the_lead_in_may_change_while_the_loudspeaker_takes(period: int) -> None:
    """What kind of sink it is may be known after the sound began: an answer that is being heard is not parted."""
    sink = Sink(RATE, period, lead_in=0.2)
    player = sink.mixer.player("speech")
    player.play(codes(RATE // 2), RATE)
    sink.take(RATE // 20 // period)
    sink.mixer.lead_in(0.1)
    sink.take(RATE // 10 // period)
    sink.mixer.lead_in(0.8)
    player.drain()
    sound = sink.sound
    first = int(np.flatnonzero(sound > 1)[0]) - 1
    assert sound[first : first + RATE // 2].tolist() == codes(RATE // 2).tolist()


def test_a_held_player_wakes_no_sink() -> None:
    sink = Sink(RATE, FRAME, lead_in=0.8)
    player = sink.mixer.player("speech")
    player.play(loud(300), RATE)
    player.hold()
    sink.take(50)
    assert not sink.sound.any()


@settings(max_examples=20, deadline=None)
@given(st.integers(8_000, 20_000), RATES, RATES, RATES, st.integers(0, 40), st.integers(0, 3))
def test_a_device_of_another_rate_goes_on_with_the_answer(
    count: int, source: int, first: int, second: int, takes: int, late: int
) -> None:
    """Nothing that is queued is lost, the pitch is kept, and what has been played only grows."""
    sink = Sink(first, first // 100)
    player = sink.mixer.player("speech", capacity=99)
    parts = np.array_split(sine(300, count / source, source), 4)
    for part in parts[: 4 - late]:
        player.play(part, source)
    sink.take(takes)
    before = player.played
    sink.mixer.attach(second, wait=sink.take)
    assert player.played == pytest.approx(before, abs=1)
    sink.period = second // 100
    start = len(sink.parts)
    for part in parts[4 - late :]:
        player.play(part, source)
    player.drain()
    assert player.played == pytest.approx(count * RATE / source, abs=4)
    assert player.pending == 0
    rest = np.concatenate([np.zeros(0, np.int16), *sink.parts[start:]])
    if np.count_nonzero(rest) > second // 4:
        assert pitch(rest, second) == pytest.approx(300, abs=3)


def test_the_counts_go_on_from_device_to_device() -> None:
    sink = Sink()
    player = sink.mixer.player("speech")
    for number, rate in enumerate((48_000, 16_000, 44_100, 44_100), 1):
        sink.mixer.attach(rate, wait=sink.take)
        sink.period = rate // 100
        assert player.played == pytest.approx(1_600 * (number - 1), abs=number)
        player.play(loud(1_600), RATE)
        player.drain()
        assert (player.played, player.pending) == (pytest.approx(1_600 * number, abs=number), 0)


def test_who_waits_for_room_goes_on_at_the_new_rate() -> None:
    waiting = threading.Event()
    mixer = Mixer(48_000)
    mixer.attach(48_000, wait=waiting.set)
    player = mixer.player("speech", capacity=0.2)
    late = threading.Thread(target=player.play, args=(sine(300, 3.0, RATE), RATE))
    late.start()
    assert waiting.wait(5)
    heard = []
    mixer.attach(RATE, wait=lambda: heard.append(mixer.take(FRAME)))
    late.join(20)
    assert not late.is_alive()
    player.drain()
    sound = np.concatenate(heard)
    assert player.played == pytest.approx(3 * RATE, abs=3)
    assert pitch(sound, RATE) == pytest.approx(300, abs=1)
    assert np.flatnonzero(np.abs(sound) > 100)[-1] == pytest.approx(3 * RATE, abs=10)


# --- threads -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("hasty")
def test_what_is_played_while_the_device_takes_is_whole_and_in_order() -> None:
    mixer = Mixer(RATE)
    mixer.attach(RATE, wait=lambda: time.sleep(0.0001))
    player = mixer.player("speech", capacity=0.15)
    whole = codes(60_000)
    played, done = [], threading.Event()

    def speak() -> None:
        for part in np.array_split(whole, 77):
            player.play(part, RATE)
        player.drain()
        done.set()

    talking = threading.Thread(target=speak)
    talking.start()
    heard = []
    while not done.is_set():
        heard.append(mixer.take(97))
        played.append(player.played)
    talking.join()
    sound = np.concatenate(heard)
    np.testing.assert_array_equal(sound[sound != 0], whole)
    assert played == sorted(played)
    assert (player.played, player.pending) == (60_000, 0)


@pytest.mark.usefixtures("hasty")
def test_play_hold_flush_and_duck_at_once() -> None:
    """Three threads do as they like; the callback never fails, the counts stay true, and afterwards all is well."""
    mixer = Mixer(RATE)
    mixer.attach(RATE, wait=lambda: time.sleep(0.0001))
    player, failures, over = mixer.player("speech", capacity=0.1, ducks=True), [], threading.Event()

    def guarded(act: object, seed: int) -> None:
        choice = np.random.default_rng(seed)
        try:
            while not over.is_set():
                act(choice)  # type: ignore[operator]
        except Exception as error:  # noqa: BLE001 - the test reports whatever it was
            failures.append(error)

    def speak(choice: np.random.Generator) -> None:
        player.play(loud(int(choice.integers(1, 4_000))), int(choice.choice([8_000, 16_000])))
        if choice.random() < 0.3:
            player.drain()

    def interrupt(choice: np.random.Generator) -> None:
        [player.flush, player.hold, player.resume, player.resume][choice.integers(4)]()
        time.sleep(0.0002)

    def duck(choice: np.random.Generator) -> None:
        with mixer.duck():
            time.sleep(0.0003)

    workers = [
        threading.Thread(target=guarded, args=(act, number))
        for number, act in enumerate([speak, interrupt, duck, duck])
    ]
    for worker in workers:
        worker.start()
    heard = 0
    for number in range(4_000):
        sound = mixer.take(160)
        assert player.played >= heard
        heard = player.played
        assert sound.min() >= 0
        assert sound.max() <= 2_000, "a fade on top of a new line at most"
        if number % 50 == 0:
            time.sleep(0.0005)
    over.set()
    for worker in workers:
        while worker.is_alive():
            player.flush()
            mixer.take(160)
            worker.join(0.001)
    assert failures == []
    player.flush()
    for _ in range(6):
        mixer.take(160)
    assert player.pending == 0
    before = player.played
    player.play(codes(1_000), RATE)
    sound = mixer.take(2_000)
    assert sound[:1_000].tolist() == codes(1_000).tolist(), "neither ducked nor held"
    assert player.played == before + 1_000
