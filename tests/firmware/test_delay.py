from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import pytest
from conftest import SHARED
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware import wav
from firmware.delay import HELD, LEAD, Aligner, _Timeline, likeness
from firmware.frame import FRAME, RATE, Pcm, Wave, to_pcm, to_wave
from firmware.room import Room

PURE = np.ones(1, np.float32)


def babble(seconds: float, seed: int = 0) -> Wave:
    """Coloured noise in syllables and pauses, at the level of speech."""
    random = np.random.default_rng(seed)
    count = round(seconds * RATE)
    noise = np.convolve(random.normal(size=count), 0.8 ** np.arange(12), "same")
    loud = np.repeat(random.uniform(0.05, 1.0, count // 2400 + 1) * (random.random(count // 2400 + 1) < 0.75), 2400)
    return (0.08 * noise * loud[:count]).astype(np.float32)


def tone(seconds: float, hertz: float) -> Wave:
    return (0.2 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * RATE)) / RATE)).astype(np.float32)


@dataclass
class Call:
    """What an aligner makes of a room, frame by frame."""

    aligner: Aligner
    delays: list[float | None] = field(default_factory=list)
    jumps: list[float] = field(default_factory=list)
    aligned: list[Pcm] = field(default_factory=list)

    def take(self, near: Pcm, far: Pcm) -> None:
        self.aligned.append(self.aligner.push(near, far))
        self.delays.append(self.aligner.delay)
        if self.aligner.jumped:
            self.jumps.append(len(self.delays) * FRAME / RATE)


def echoes(
    room: Room, far: Wave, near: Wave | None = None, jump: tuple[float, float] | None = None
) -> Iterator[tuple[Pcm, Pcm]]:
    """Microphone and loudspeaker, a frame at a time; at second jump[0] the delay becomes jump[1]."""
    played = to_pcm(far)
    at = frame = 0
    while at + room.due <= len(played):
        if jump and frame == round(jump[0] * RATE / FRAME):
            room.delay = jump[1]
        piece = played[at : at + room.due]
        at += len(piece)
        heard = to_wave(room.push(piece))
        if near is not None:
            heard = heard + near[frame * FRAME : (frame + 1) * FRAME]
        frame += 1
        yield to_pcm(heard), piece


def call(room: Room, far: Wave, near: Wave | None = None, jump: tuple[float, float] | None = None) -> Call:
    made = Call(Aligner())
    for heard, played in echoes(room, far, near, jump):
        made.take(heard, played)
    return made


@pytest.mark.parametrize(
    ("delay", "gain", "drift", "soft"),
    [(0.012, 0, 0, 0), (0.03, 6, 50, 3), (0.08, -12, -200, 0), (0.2, -6, 150, 0), (0.4, 0, 200, 3)],
)
def test_delay_and_drift_are_found_while_both_talk(delay: float, gain: float, drift: float, soft: float) -> None:
    far = babble(7)
    near = babble(8, seed=1) * np.float32(10 ** (gain / 20))
    made = call(Room(delay=delay, gain=gain, drift=drift, soft=soft), far, near)
    first = next(place for place, known in enumerate(made.delays) if known is not None)
    assert first * FRAME / RATE < delay + 0.6
    assert made.delays[-1] == pytest.approx(delay, abs=0.00025)
    assert made.aligner.drift == pytest.approx(drift, abs=5)
    assert made.aligner.sure > 0.5
    assert len(made.jumps) == 1


@pytest.mark.parametrize("drift", [0, 150, -200])
def test_the_far_end_leads_its_echo_by_a_constant(drift: float) -> None:
    """What is left when it is taken away as it is, without any filter."""
    frames = list(echoes(Room(delay=0.1, drift=drift, response=PURE), babble(8)))
    made = Call(Aligner())
    for heard, played in frames:
        made.take(heard, played)
    echo = to_wave(np.concatenate([heard for heard, _ in frames]))[5 * RATE :]
    aligned = to_wave(np.concatenate(made.aligned))[5 * RATE - LEAD : -LEAD]
    assert np.std(echo - aligned) < 0.02 * np.std(echo)


@pytest.mark.parametrize(("before", "after"), [(0.05, 0.17), (0.2, 0.08), (0.1, 0.16)])
def test_a_jump_is_followed_within_a_second(before: float, after: float) -> None:
    far, near = babble(6.5, seed=3), babble(7, seed=4) * np.float32(0.5)
    made = call(Room(delay=before, gain=-6, drift=100), far, near, jump=(3.0, after))
    assert len(made.jumps) == 2
    assert 3.0 < made.jumps[1] < 4.0 + after
    assert made.delays[-1] == pytest.approx(after, abs=0.00025)


def test_without_an_echo_there_is_no_delay() -> None:
    room = Room()
    room.muffled = True
    made = call(room, babble(8), babble(9, seed=5))
    assert made.aligner.delay is None
    assert made.aligner.drift is None
    assert made.aligner.sure < 0.2


@pytest.mark.parametrize("lost", ["echo", "far end", "microphone"])
def test_silence_changes_nothing(lost: str) -> None:
    made = call(Room(delay=0.1), babble(2.5))
    before = made.aligner.delay
    near, far = to_pcm(babble(4, seed=6)), to_pcm(babble(4, seed=7))
    silence = np.zeros(FRAME, np.int16)
    for at in range(0, len(near), FRAME):
        heard = silence if lost == "microphone" else near[at : at + FRAME]
        made.take(heard, silence if lost == "far end" else far[at : at + FRAME])
    assert made.aligner.delay == pytest.approx(before, abs=1e-4)
    assert len(made.jumps) == 1


@pytest.mark.parametrize("sound", ["tone", "hum", "clicks", "beeps"])
def test_what_repeats_itself_does_not_mislead(sound: str) -> None:
    hum = sum((tone(5, 50 * number) / number for number in range(1, 9)), start=np.zeros(5 * RATE, np.float32))
    clicks = np.zeros(5 * RATE, np.float32)
    clicks[::4800] = 0.8
    beeps = tone(5, 880) * (np.arange(5 * RATE) % 4800 < 2400)
    steady = {"tone": tone(5, 440), "hum": hum, "clicks": clicks, "beeps": beeps}[sound]
    noise = np.random.default_rng(8).normal(0, 1e-3, 14 * RATE).astype(np.float32)
    made = call(Room(delay=0.1), np.concatenate([babble(2), steady]), noise)
    assert made.delays[-1] == pytest.approx(0.1, abs=0.0005)
    assert len(made.jumps) == 1


def test_a_tone_that_is_read_with_drift_stays_pure() -> None:
    """The position moves on from sample to sample, without steps where frames meet."""
    room = Room(delay=0.05, drift=200, response=PURE)
    made = call(room, np.concatenate([babble(3), tone(3, 4000)]))
    spectrum = np.abs(np.fft.rfft(to_wave(np.concatenate(made.aligned))[-2 * RATE : -RATE] * np.blackman(RATE))) ** 2
    peak = int(np.argmax(spectrum))
    assert 4000 <= peak <= 4002
    assert spectrum.sum() - spectrum[peak - 8 : peak + 9].sum() < 10**-4.5 * spectrum.sum()


def test_lost_frames_are_accounted_for() -> None:
    made = Call(Aligner())
    frames = echoes(Room(delay=0.15, drift=100), babble(7))
    for heard, played in islice(frames, 400):
        made.take(heard, played)
    lost = list(islice(frames, 25))
    made.aligner.skip(25 * FRAME)
    late = np.concatenate([played for _, played in lost])
    for heard, played in frames:
        made.take(heard, np.concatenate([late, played]))
        late = late[:0]
    assert len(made.jumps) == 1
    assert made.delays[-1] == pytest.approx(0.15, abs=0.00025)


@pytest.mark.parametrize("seconds", [-0.7, -0.1, 0.08, 2.0])
def test_a_far_end_that_stalls_or_bursts_is_found_again(seconds: float) -> None:
    """So much of it never comes, or silence comes that was never played."""
    made = Call(Aligner())
    frames = echoes(Room(delay=0.15), babble(8))
    for heard, played in islice(frames, 200):
        made.take(heard, played)
    if seconds < 0:
        made.take(np.zeros(FRAME, np.int16), np.zeros(round(-seconds * RATE), np.int16))
    for heard, _ in islice(frames, round(max(0.0, seconds) * RATE / FRAME)):
        made.take(heard, np.zeros(0, np.int16))
    for heard, played in frames:
        made.take(heard, played)
    assert made.delays[-1] == pytest.approx(0.15, abs=0.02)
    assert made.aligner.sure > 0.9
    assert len(made.jumps) == 2


@pytest.mark.parametrize("period", [0.03, 0.1])
def test_a_card_that_takes_periods(period: float) -> None:
    """All of a period is taken at its beginning; the delay is then counted from half a period later."""
    far = to_pcm(babble(7))
    size = round(period * RATE)
    made = Call(Aligner())
    for place, (heard, _) in enumerate(echoes(Room(delay=0.12), to_wave(far))):
        taken = -(-place * FRAME // size) * size
        coming = -(-(place + 1) * FRAME // size) * size
        made.take(heard, far[taken:coming])
    assert len(made.jumps) == 1
    assert made.delays[-1] == pytest.approx(0.12 + period / 2, abs=0.012)
    assert made.aligner.drift == pytest.approx(0, abs=5)


def test_a_reference_channel_has_no_delay() -> None:
    sound = to_pcm(babble(4))
    made = Call(Aligner())
    for at in range(0, len(sound), FRAME):
        made.take(sound[at : at + FRAME], sound[at : at + FRAME])
    assert made.delays[-1] == pytest.approx(0, abs=1e-5)
    assert made.aligner.lead == 0
    error = to_wave(np.concatenate(made.aligned)) - to_wave(sound)
    assert np.std(error[2 * RATE :]) < 0.01 * np.std(to_wave(sound))


def test_likeness_tells_a_loopback_from_a_microphone() -> None:
    far = babble(4)
    loop = np.concatenate([heard for heard, _ in echoes(Room(delay=0.02, gain=-9, response=PURE), far)])
    room = np.concatenate([heard for heard, _ in echoes(Room(delay=0.02), far)])
    assert likeness(loop, to_pcm(far)) > 0.99
    assert 0.5 < likeness(room, to_pcm(far)) < 0.95
    assert likeness(to_pcm(babble(4, seed=11)), to_pcm(far)) == 0
    assert likeness(np.zeros(4 * RATE, np.int16), to_pcm(far)) == 0
    assert likeness(loop[:100], to_pcm(far)) == 0


def test_reset_forgets() -> None:
    made = call(Room(delay=0.2, drift=100), babble(4))
    made.aligner.reset()
    assert made.aligner.delay is None
    assert made.aligner.drift is None
    assert made.aligner.sure == 0


def test_two_hours_at_150_ppm_lose_nothing() -> None:
    """The clocks are a second apart by then, and positions beyond what float32 can count."""
    made = Call(Aligner())
    frames = echoes(Room(delay=0.1, drift=150), babble(9))
    for heard, played in islice(frames, 600):
        made.take(heard, played)
    aligner = made.aligner
    drift = aligner.drift
    assert drift is not None
    pause = 2 * 3600 * RATE
    aligner.skip(pause)
    aligner._far.end += round(pause * (1 + drift * 1e-6))
    for heard, played in frames:
        made.take(heard, played)
    assert len(made.jumps) == 1
    assert made.delays[-1] == pytest.approx(0.1, abs=0.0003)
    assert len(aligner._far._held) == 2 * HELD


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3 * HELD // 2), st.integers(0, 4000)), min_size=1, max_size=40), st.integers(0, 9)
)
def test_any_pieces_give_frames(pieces: list[tuple[int, int]], seed: int) -> None:
    random = np.random.default_rng(seed)
    aligner = Aligner()
    for far, lost in pieces:
        aligner.skip(lost)
        near, played = (random.integers(-32768, 32768, count).astype(np.int16) for count in (FRAME, far))
        aligned = aligner.push(near, played)
        assert aligned.shape == (FRAME,)
        assert aligned.dtype == np.int16
        assert 0 <= aligner.sure <= 1


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 2 * HELD), min_size=1, max_size=20), st.integers(-HELD, 200), st.integers(1, 2000))
def test_what_was_not_written_or_is_forgotten_is_silence(sizes: list[int], first: int, samples: int) -> None:
    timeline = _Timeline()
    for size in sizes:
        timeline.push(np.arange(timeline.end, timeline.end + size, dtype=np.float32) + 1)
    numbers = np.arange(timeline.end + first, timeline.end + first + samples)
    there = (numbers >= max(0, timeline.end - HELD)) & (numbers < timeline.end)
    assert np.array_equal(timeline.read(timeline.end + first, samples), np.where(there, numbers + 1, 0))


@pytest.mark.shared
@pytest.mark.parametrize("room", [1, 2, 3, 4])
def test_recorded_rooms_while_people_talk(room: int) -> None:
    audio = SHARED / "audio"
    response = to_wave(wav.read(audio / f"rir/speechbrain_rir{room}.wav").samples)
    far = to_wave(wav.read(audio / "misc/lhotse_libri-1088-134315-0000.flac").samples)[: 10 * RATE]
    near = to_wave(wav.read(audio / "misc/jfk.flac").samples)
    near = near * np.float32(np.std(far) / np.std(near) / 2)
    direct = int(np.argmax(np.abs(response))) / RATE
    made = call(Room(delay=0.06, gain=-6, drift=-100, response=response / np.linalg.norm(response)), far, near)
    assert made.delays[-1] == pytest.approx(0.06 + direct, abs=0.0005)
    assert made.aligner.drift == pytest.approx(-100, abs=5)
    assert len(made.jumps) == 1
