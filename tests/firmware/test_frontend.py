"""The one loop: what reaches the models, what passes them by, and what is said of it."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from firmware.echo import Clean, Echo, EchoState
from firmware.fake import Fake
from firmware.frame import FRAME, RATE, Frame, Muting, Pcm, Trouble
from firmware.frontend import ECHO_TAIL, TICK, Frontend
from firmware.mixer import Mixer
from firmware.wake import Wake


def loud(samples: int) -> Pcm:
    return np.full(samples, 500, np.int16)


class Cancel:
    """A canceller that marks what went through it, and remembers why it was made."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        self.pushed: list[int] = []
        self.skipped = 0
        self.closed = False
        self.state = EchoState("webrtc")

    def push(self, near: Pcm, far: Pcm) -> Clean:
        self.pushed.append(int(np.abs(near).max()))
        return Clean(strict=near // 2, gentle=near)

    def skip(self, near_samples: int) -> None:
        self.skipped += near_samples

    def close(self) -> None:
        self.closed = True


def front_of(sound: Fake, **given: object) -> tuple[Frontend, list[Cancel]]:
    made: list[Cancel] = []

    def cancel(reason: str) -> Cancel:
        made.append(Cancel(reason))
        return made[-1]

    return Frontend(sound, cancel, Wake([]), **given), made  # type: ignore[arg-type]


def through(front: Frontend, at: dict[int, Callable[[], object]]) -> Iterator[Frame]:
    """The frames; `at` says what is done in front of which."""
    frames = front.frames()
    for number in range(10_000):
        at.get(number, lambda: None)()
        frame = next(frames, None)
        if frame is None:
            return
        yield frame


def test_a_frame_holds_what_is_recognised_and_what_shows_a_voice() -> None:
    front, (cancel,) = front_of(Fake(loud(FRAME), tail=0.0))
    cancel.state = EchoState("webrtc", doubt=0.4)
    (frame,) = front.frames()
    assert frame.strict is not None
    assert (frame.samples.max(), frame.strict.max(), frame.doubt, frame.live) == (500, 250, 0.4, True)


def test_half_duplex_is_deaf_while_it_plays_and_hears_when_the_room_is_quiet() -> None:
    sound = Fake(loud(2 * RATE), tail=0.0)
    front, _ = front_of(sound, half=True)
    begin = {50: lambda: sound.player.play(loud(RATE // 4), RATE)}
    heard = [bool(frame.samples.any()) for frame in through(front, begin)]
    deaf = [number * FRAME for number, hears in enumerate(heard) if not hears]
    assert abs(len(deaf) * FRAME - (RATE // 4 + ECHO_TAIL)) <= 2 * FRAME
    assert deaf == list(range(deaf[0], deaf[-1] + 1, FRAME))
    assert heard[-1]


def test_a_canceller_gone_astray_makes_the_box_deaf_while_it_plays_and_it_says_so() -> None:
    """C05: half duplex is a declared fallback, not a cure."""
    sound = Fake(loud(2 * RATE), tail=0.0)
    front, (cancel,) = front_of(sound)
    sound.player.play(loud(RATE), RATE)
    astray, well = EchoState("webrtc", phase="diverged"), EchoState("webrtc", phase="converged")
    steps = {20: lambda: setattr(cancel, "state", astray), 40: lambda: setattr(cancel, "state", well)}
    told = [(bool(frame.samples.any()), front.deaf) for frame in through(front, steps)]
    assert told[:20] == [(True, False)] * 20
    assert told[20:40] == [(False, True)] * 20
    assert told[40:] == [(True, False)] * (len(told) - 40)


def test_what_plays_is_in_doubt_before_the_canceller_has_seen_it() -> None:
    sound = Fake(loud(RATE), tail=0.0)
    front, (cancel,) = front_of(sound)
    doubts = [frame.doubt for frame in through(front, {50: lambda: sound.player.play(loud(RATE // 5), RATE)})]
    assert doubts == [0.0] * 50 + [1.0] * 19 + [0.0] * 31  # the last one has been heard
    cancel.state = EchoState("off")
    sound.player.play(loud(RATE // 5), RATE)
    assert not any(frame.doubt for frame in through(front, {}))


def test_muted_is_silence_that_no_model_has_seen() -> None:
    """C22: the canceller, the wake words and their count stand still, whether or not the card is closed yet."""
    shut: list[bool] = []
    sound = Fake(loud(RATE), tail=0.0)
    front, (cancel,) = front_of(sound, shut=shut.append)
    steps = {30: lambda: front.mute(True), 31: lambda: front.mute(True), 60: lambda: front.mute(False)}
    frames = list(through(front, steps))
    assert shut == [True, False]
    assert [number for number, frame in enumerate(frames) if not frame.live] == list(range(30, 60))
    assert not np.concatenate([frame.samples for frame in frames[30:60]]).any()
    assert len(cancel.pushed) == front.heard == 70
    notes = [(number, note) for number, frame in enumerate(frames) for note in frame.notes]
    assert notes == [(30, Muting(True)), (60, Muting(False))]


def test_another_card_gets_another_canceller_that_knows_what_the_card_does() -> None:
    """C74: where the card takes its echo away, ours must not."""
    front, made = front_of(Fake(loud(RATE), tail=0.0))
    frames = through(front, {10: lambda: front.opened("it is a speakerphone")})
    list(frames)
    assert [cancel.reason for cancel in made] == ["", "it is a speakerphone"]
    assert made[0].closed
    assert (len(made[0].pushed), len(made[1].pushed)) == (10, 90)


def test_lost_frames_are_told_to_the_canceller() -> None:
    class Losing(Fake):
        def frames(self) -> Iterator[Frame]:
            for frame in super().frames():
                yield replace(frame, overruns=3) if frame.at == 5 * FRAME else frame

    front, (cancel,) = front_of(Losing(loud(RATE), tail=0.0))
    list(front.frames())
    assert (cancel.skipped, front.overruns) == (3 * FRAME, 3)


def test_what_the_card_noticed_passes_and_time_goes_on_without_it() -> None:
    trouble = Trouble("unplugged", "gone", "plug it in")

    class Away:
        mixer = Mixer(RATE)

        def frames(self) -> Iterator[Frame]:
            for number in range(3):
                notes = (trouble,) if number == 1 else ()
                yield Frame(number * FRAME, loud(FRAME) * (number != 1), live=number != 1, notes=notes)

        def close(self) -> None: ...

    front, (cancel,) = front_of(Away())  # type: ignore[arg-type]
    frames = list(front.frames())
    assert [(frame.at, frame.live, frame.notes) for frame in frames] == [
        (0, True, ()),
        (FRAME, False, (trouble,)),
        (2 * FRAME, True, ()),
    ]
    assert cancel.pushed == [500, 500]


def test_controls_are_looked_at_a_few_times_in_a_second() -> None:
    ticks: list[int] = []
    front, _ = front_of(Fake(loud(RATE), tail=0.0), tick=lambda: ticks.append(1))
    list(front.frames())
    assert len(ticks) == RATE // FRAME // TICK


@pytest.mark.parametrize("backend", ["webrtc", "speex", "off"])
def test_real_cancellers_leave_a_lone_voice_as_it_is(backend: str) -> None:
    """Nothing is played: nothing is taken away."""
    voice = (3000 * np.sin(np.arange(RATE) * 0.2) * np.linspace(0, 1, RATE)).astype(np.int16)
    sound = Fake(voice, tail=0.0)
    front = Frontend(sound, lambda reason: Echo(backend, high_pass=False), Wake([]))  # type: ignore[arg-type]
    frames = list(front.frames())
    front.close()
    np.testing.assert_array_equal(np.concatenate([frame.samples for frame in frames]), voice)
    assert all(frame.doubt == 0.0 for frame in frames)
