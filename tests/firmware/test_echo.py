"""The canceller in the simulated room: learns it, keeps it, notices when it does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware import apm, echo, speex, wav
from firmware.echo import TAIL, Backend, Clean, Echo, EchoState, Judge, usable
from firmware.fault import DeviceFault
from firmware.frame import FRAME, RATE, Pcm, Wave, to_pcm, to_wave
from firmware.room import Room, reverberation
from firmware.vad import WINDOW, Hysteresis

NOISE = 10 ** (-65 / 20)


def chatter(seconds: float, seed: int = 0) -> Pcm:
    """Noise with the spectrum and the rhythm of speech, -20 dBFS."""
    random = np.random.default_rng(seed)
    steps = random.normal(size=round(seconds * RATE))
    voiced = np.convolve(steps, np.hanning(9), "same") + 0.1 * steps
    pace = np.repeat(random.uniform(0.05, 1.0, -(-len(steps) // 1600)), 1600)[: len(steps)]
    wave = voiced * np.convolve(pace, np.hanning(400) / 200, "same")
    return to_pcm((0.1 * wave / np.sqrt(np.mean(wave**2))).astype(np.float32))


def silence(seconds: float) -> Pcm:
    return np.zeros(round(seconds * RATE), np.int16)


class Stage:
    """A canceller in a room, and what came out of it."""

    def __init__(self, backend: Backend = "webrtc", room: Room | None = None, **switches: bool) -> None:
        self.room = room or Room(delay=0.08, drift=50.0, response=reverberation(0.2))
        self.echo = Echo(backend, **switches)  # type: ignore[arg-type]
        self.states: list[EchoState] = []
        self.near: list[Pcm] = []
        self.strict: list[Pcm] = []
        self.gentle: list[Pcm] = []
        self._noise = np.random.default_rng(1)

    def play(self, far: Pcm, near: Pcm | None = None, change: Callable[[Wave], Wave] = lambda wave: wave) -> Stage:
        """`change` is what befalls the echo on its way."""
        at = 0
        while at + self.room.due <= len(far):
            piece = far[at : at + self.room.due]
            at += len(piece)
            wave = change(self.room.hear(piece)) + self._noise.normal(0, NOISE, FRAME).astype(np.float32)
            heard, spoken = len(self.near) * FRAME, np.zeros(FRAME, np.float32)
            if near is not None and heard + FRAME <= len(near):
                spoken = to_wave(near[heard : heard + FRAME])
            self.take(to_pcm(wave + spoken), piece)
        return self

    def take(self, near: Pcm, far: Pcm) -> Clean:
        clean = self.echo.push(near, far)
        self.near.append(near)
        self.strict.append(clean.strict)
        self.gentle.append(clean.gentle)
        self.states.append(self.echo.state)
        return clean

    def loss(self, which: str, begin: float, end: float) -> float:
        """dB by which the output is weaker than the microphone, between two times in seconds."""
        part = slice(round(begin * 100), round(end * 100))
        before, after = (np.concatenate(frames[part]).astype(float) for frames in (self.near, getattr(self, which)))
        return 10 * float(np.log10(np.mean(before**2) / max(np.mean(after**2), 1e-3)))


class Unaligned:
    """The far end as it is played."""

    delay = drift = None
    jumped = False

    def __init__(self) -> None:
        self._held = np.zeros(0, np.int16)

    def push(self, near: Pcm, far: Pcm) -> Pcm:
        queue = np.concatenate([self._held, far])
        self._held = queue[FRAME:]
        return np.pad(queue[:FRAME], (0, max(0, FRAME - len(queue))))


@pytest.mark.parametrize(("backend", "least"), [("webrtc", 30.0), ("speex", 20.0)])
def test_an_echo_is_cancelled(backend: Backend, least: float) -> None:
    stage = Stage(backend).play(chatter(6))
    assert stage.loss("strict", 2, 6) >= least
    assert stage.loss("gentle", 2, 6) >= 20
    state = stage.states[-1]
    assert (state.phase, state.doubt, state.clipped, state.resets) == ("converged", 0.0, 0, 0)
    assert state.erle is not None
    assert state.erle >= 20
    assert state.delay == pytest.approx(0.08, abs=0.004)


def test_doubt_lasts_until_the_echo_is_known_to_be_cancelled() -> None:
    stage = Stage().play(silence(0.5)).play(chatter(3)).play(silence(2)).play(chatter(1, seed=1))
    phases = [state.phase for state in stage.states]
    doubts = [state.doubt for state in stage.states]
    assert (phases[40], doubts[40]) == ("idle", 0.0)
    assert (phases[52], doubts[52]) == ("converging", 1.0)
    assert min(doubts[52:120]) > 0.0  # it is too early to be sure
    assert ("converged", 0.0) in zip(phases[52:260], doubts[52:260], strict=True)
    assert phases[340] == "converged"  # the room still sounds
    assert (phases[365 + TAIL], doubts[365 + TAIL]) == ("idle", 0.0)
    assert max(doubts[-99:]) < 0.5  # the room is the same


def test_what_the_filter_cannot_explain_stays_in_doubt() -> None:
    random, judge = np.random.default_rng(0), Judge()
    for _ in range(300):
        far, near = random.normal(0, 0.1, (2, FRAME)).astype(np.float32)
        judge.push(near, near, near, far)
        assert (judge.doubt, judge.erle, judge.phase) == (1.0, None, "converging")


def test_an_echo_that_nobody_hears_is_no_reason_to_doubt() -> None:
    """A headset: the far end is loud, and the microphone silent."""
    stage = Stage(room=Room(gain=-90)).play(chatter(2))
    assert (stage.states[-1].phase, stage.states[-1].doubt) == ("converged", 0.0)


def test_without_a_far_end_nothing_is_changed() -> None:
    near = chatter(1)
    stage = Stage(high_pass=False)
    for frame in near.reshape(-1, FRAME):
        clean = stage.take(frame, silence(0.01))
        np.testing.assert_array_equal(clean.strict, frame)
        np.testing.assert_array_equal(clean.gentle, frame)


@pytest.mark.parametrize("backend", ["webrtc", "speex"])
def test_a_voice_over_the_echo_is_kept(backend: Backend) -> None:
    voice = chatter(8, seed=7) // 2
    voice[: 4 * RATE] = 0
    stage = Stage(backend, high_pass=False).play(chatter(8), near=voice)
    wanted, heard = (to_wave(sound[5 * RATE : 7 * RATE]) for sound in (voice, np.concatenate(stage.gentle)))
    assert 20 * np.log10(np.linalg.norm(wanted) / np.linalg.norm(wanted - heard)) >= 12


def test_it_does_not_click_between_playing_and_not() -> None:
    """A tone in the microphone stays one while the far end begins and ends."""
    near = to_pcm(0.3 * np.sin(2 * np.pi * 300 * np.arange(6 * RATE) / RATE).astype(np.float32))
    near[: 2 * RATE] = 0
    far = np.concatenate([chatter(1.5), silence(1.5), chatter(1, seed=1), silence(1.5)])
    stage = Stage(room=Room(gain=-90), high_pass=False).play(far, near=near)
    for frames in (stage.strict, stage.gentle):
        edges = np.abs(np.diff(to_wave(np.concatenate(frames[210:])), 2))
        assert edges.max() < 3 * 0.3 * (2 * np.pi * 300 / RATE) ** 2


def delayed(begin: float, end: float) -> Stage:
    stage = Stage(room=Room(delay=begin, drift=50.0, response=reverberation(0.2))).play(chatter(4))
    stage.room.delay = end
    return stage.play(chatter(3.5, seed=1))


@pytest.mark.parametrize(("begin", "end"), [(0.0, 0.06), (0.14, 0.08), (0.34, 0.4)])
def test_another_delay_is_found_within_two_seconds(begin: float, end: float) -> None:
    stage = delayed(begin, end)
    for which in ("strict", "gentle"):
        assert stage.loss(which, 3, 4) >= 15
        assert stage.loss(which, 6, 7.4) >= 15
    assert stage.states[-1].delay == pytest.approx(max(end, 0.004), abs=0.004)


def test_the_delay_is_found_by_the_aligner(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of the test before: without it the filter never hears the far end in time."""
    monkeypatch.setattr(echo, "Aligner", Unaligned)
    assert delayed(0.34, 0.4).loss("gentle", 6, 7.4) < 5


def test_the_room_is_known_again_as_soon_as_the_delay_is() -> None:
    stage = delayed(0.03, 0.15)
    found = next(number for number, state in enumerate(stage.states) if (state.delay or 0) > 0.1) / 100
    assert found < 6
    assert stage.loss("strict", found, found + 0.2) >= 20
    assert stage.loss("gentle", found, found + 0.2) >= 10


@pytest.mark.parametrize("backend", ["webrtc", "speex"])
def test_clipping_teaches_nothing(backend: Backend) -> None:
    """Two seconds in which the loudspeaker drives the microphone over full scale."""
    stage = Stage(backend, Room(delay=0.05, gain=20.0, response=reverberation(0.2))).play(chatter(2) // 16)
    room = stage.echo._filter._room.copy()
    stage.play(chatter(2, seed=1))
    clipped = sum(int(np.count_nonzero(np.abs(frame.astype(int)) >= 32_700)) for frame in stage.near)
    assert clipped > 0.05 * 2 * RATE
    assert stage.states[-1].clipped == clipped
    assert np.linalg.norm(stage.echo._filter._room - room) < 0.2 * np.linalg.norm(room)
    stage.play(chatter(2, seed=2) // 16)
    for which in ("strict", "gentle"):
        assert stage.loss(which, 5, 5.9) >= 15


def test_a_filter_that_makes_matters_worse_is_forgotten() -> None:
    stage = Stage().play(chatter(3))
    stage.echo._filter._room *= -3
    stage.echo._filter._unsure[:] = 1e-9  # and would take long to learn otherwise
    stage.play(chatter(3, seed=1))
    phases = [state.phase for state in stage.states[300:]]
    assert "diverged" in phases
    assert phases[-1] == "converged"
    assert stage.states[-1].resets == 1
    assert stage.loss("gentle", 5, 5.9) >= 20


def test_lost_frames_leave_the_room_known() -> None:
    stage = Stage().play(chatter(3))
    far, lost = chatter(2, seed=1), np.zeros(0, np.int16)
    for number in range(190):
        piece, far = far[: stage.room.due], far[stage.room.due :]
        heard = to_pcm(stage.room.hear(piece))
        if 20 <= number < 27:
            lost = np.concatenate([lost, piece])
            continue
        if len(lost):
            stage.echo.skip(7 * FRAME)
        stage.take(heard, np.concatenate([lost, piece]))
        lost = lost[:0]
    assert stage.loss("gentle", 3.5, 4.8) >= 20
    assert stage.states[-1].resets == 0


def test_music_is_a_far_end_like_any_other() -> None:
    time = np.arange(6 * RATE) / RATE
    random = np.random.default_rng(3)
    notes = np.repeat(110 * 2 ** (random.integers(0, 24, 24) / 12), RATE // 4)
    phase = 2 * np.pi * np.cumsum(notes) / RATE
    wave = sum(np.sin(harmonic * phase) / harmonic for harmonic in range(1, 12)) * np.exp(-4 * (time % 0.25))
    drum = random.normal(size=len(time)) * np.exp(-60 * (time % 0.5))
    stage = Stage().play(to_pcm((0.1 * wave + 0.2 * drum).astype(np.float32)))
    assert stage.loss("strict", 3, 6) >= 15


@pytest.mark.models("silero-vad")
@pytest.mark.shared
@pytest.mark.parametrize("gain", [-6.0, 0.0, 6.0])
def test_own_speech_starts_nothing(gain, shelf, shared_audio) -> None:  # type: ignore[no-untyped-def]
    """C01: the strict frames of a reader in the loudspeaker hold no voice, from the first one on."""
    from appliance.compose import Engines
    from appliance.config import Config

    path = next(recording.path for recording in shared_audio if "LJ001-0001" in str(recording.path))
    room = Room(delay=0.06, gain=gain, drift=50.0, soft=2.0, response=reverberation(0.3))
    stage = Stage(room=room).play(wav.read(path).samples)
    edges, hysteresis = [], Hysteresis()
    with Engines(Config(), shelf).detector() as vad:
        for frame in stage.strict:
            for probability in vad.windows(frame):
                if edge := hysteresis.step(probability, WINDOW):
                    edges.append(edge)
    assert not edges
    assert stage.states[-1].phase == "converged"


def test_what_is_missing_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise DeviceFault("not there", "install it")

    assert usable("webrtc") == ("webrtc", None)
    monkeypatch.setattr(apm, "check", missing)
    backend, why = usable("webrtc")
    assert backend == "speex"
    assert why
    assert why.fix == "install it"
    assert usable("speex") == ("speex", None)
    monkeypatch.setattr(speex, "check", missing)
    assert usable("webrtc")[0] == usable("speex")[0] == "off"
    assert usable("off") == ("off", None)


def test_off_cancels_nothing_and_doubts_nothing() -> None:
    stage = Stage("off", high_pass=False).play(chatter(1))
    np.testing.assert_array_equal(stage.near, stage.gentle)
    np.testing.assert_array_equal(stage.near, stage.strict)
    assert {(state.phase, state.doubt) for state in stage.states} == {("idle", 0.0)}


@pytest.mark.parametrize("backend", ["webrtc", "speex", "off"])
def test_steady_noise_is_suppressed_where_that_is_wanted(backend: Backend) -> None:
    noise = to_pcm(np.random.default_rng(0).normal(0, 0.02, 3 * RATE).astype(np.float32))
    stage = Stage(backend, room=Room(gain=-90), noise_suppression=True).play(silence(3), near=noise)
    assert stage.loss("gentle", 2, 2.9) >= 6
    assert stage.loss("strict", 2, 2.9) >= 6


@given(
    st.sampled_from(["webrtc", "speex", "off"]),
    st.lists(st.tuples(st.integers(0, 500), st.sampled_from([0, 30, 32_767])), max_size=40),
    st.integers(0, 5),
)
@settings(max_examples=25, deadline=None)
def test_any_sound_gives_frames(backend: Backend, pieces: list[tuple[int, int]], seed: int) -> None:
    """However the far end comes, and however loud it all is."""
    random = np.random.default_rng(seed)
    canceller = Echo(backend, gain_control=True)
    for length, loudness in pieces:
        far = random.integers(-loudness, loudness + 1, length).astype(np.int16)
        near = random.integers(-loudness - 1, loudness + 1, FRAME).astype(np.int16)
        if length == 0:
            canceller.skip(FRAME)
        clean = canceller.push(near, far)
        for frame in (clean.strict, clean.gentle):
            assert frame.dtype == np.int16
            assert frame.shape == (FRAME,)
        assert 0 <= canceller.state.doubt <= 1
    canceller.close()


def test_an_echo_that_is_weak_but_not_gone_is_doubtful_unless_the_room_is_as_loud() -> None:
    random = np.random.default_rng(0)
    frames = random.normal(0, 0.3, (2, FRAME)).astype(np.float32)
    quiet, noisy = Judge(), Judge()
    for _ in range(700):
        quiet.rest(0.0001 * frames[1])
        noisy.rest(0.01 * frames[1])
    for _ in range(Judge.SURE):
        for judge in (quiet, noisy):
            judge.push(frames[0], 0.03 * frames[1], 0.013 * frames[1], frames[0])  # 27 dB, at -48 dBFS
    assert (quiet.phase, noisy.phase) == ("converged", "converged")
    assert quiet.doubt > 0.8
    assert noisy.doubt == 0.0


def test_a_voice_does_not_spoil_what_is_measured() -> None:
    """Frames that the filter does not explain are no measure of it."""
    random, judge = np.random.default_rng(0), Judge()
    frames = random.normal(0, 0.1, (4, FRAME)).astype(np.float32)
    for _ in range(Judge.SURE):
        judge.push(frames[0], 0.1 * frames[1], 0.009 * frames[1], frames[0])
    before = judge.erle
    assert before == pytest.approx(41, abs=2)
    for _ in range(100):
        judge.push(frames[0] + frames[2], frames[2], frames[2], frames[0])
    assert judge.erle == before
    assert judge.doubt == 0.0
    for _ in range(60):
        judge.push(frames[0] + frames[2], frames[2], frames[2], frames[0])
    assert judge.doubt == 1.0  # for too long: it may be no voice
