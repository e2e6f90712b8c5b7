"""The owner of the card, in virtual time: whatever becomes of the card, time goes on and the sound comes back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware.fake import Fake, Mishap, World
from firmware.fault import DeviceFault
from firmware.frame import FRAME, RATE, Frame, Note, Pcm, Recovered, Trouble
from firmware.keeper import Keeper
from firmware.mixer import Mixer
from firmware.sound import Sound


def voice() -> Iterator[Pcm]:
    """Someone who never stops: each sample says when it was said, in units of a second."""
    for number in range(1 << 40):
        yield np.full(FRAME, 1 + number // 100 % 30_000, np.int16)


def at_once(job: Callable[[], None]) -> None:
    job()


class Box:
    """A keeper in a world of its own, and what it gave."""

    def __init__(self, *mishaps: Mishap, source: Callable[[], Iterator[Pcm]] = voice, rate: int = RATE) -> None:
        self.world = World(source(), tail=None, mishaps=mishaps)
        self.rate = rate
        self.opens: list[tuple[float, bool]] = []
        self.open_now: list[Fake] = []
        self.keeper = Keeper(self.open, Mixer(), clock=self.world.now, sleep=self.world.sleep, aside=at_once)
        self.stream = self.keeper.frames()
        self.frames: list[Frame] = []
        self.times: list[float] = []

    def open(self, at: int, mixer: Mixer, *, listen: bool = True) -> Sound:
        self.opens.append((self.world.now(), listen))
        assert all(old.closed for old in self.open_now), "the old one is closed first: there is one owner"
        fake = Closing(self.world, mixer=mixer, at=at, rate=self.rate)
        self.open_now.append(fake)
        return fake

    def run(self, seconds: float) -> None:
        end = self.world.now() + seconds
        while self.world.now() < end:
            self.frames.append(next(self.stream))
            self.times.append(self.world.now())

    def notes(self) -> list[tuple[float, Note]]:
        return [(time, note) for time, frame in zip(self.times, self.frames, strict=True) for note in frame.notes]

    def story(self) -> list[str]:
        return [f"{'+' if isinstance(note, Recovered) else '-'}{note.kind}" for _, note in self.notes()]  # type: ignore[union-attr]


class Closing(Fake):
    closed = False

    def close(self) -> None:
        self.closed = True
        super().close()


def gapless(frames: list[Frame]) -> bool:
    return all(b.at == a.at + FRAME * (1 + b.overruns) for a, b in pairwise(frames))


LASTS = 4.0
KINDS = {
    "unplugged": Mishap(3 * RATE, "unplugged", LASTS),
    "server": Mishap(3 * RATE, "server", LASTS),
    "moved": Mishap(3 * RATE, "moved"),
    "frozen": Mishap(3 * RATE, "frozen", LASTS),
    "silence": Mishap(3 * RATE, "silence", LASTS),
    "rate": Mishap(3 * RATE, "rate", LASTS),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_trouble_is_noticed_by_its_name_and_gone_from(kind: str) -> None:
    """Noticed within 2 s, back within 3 s of the card's return (a rate has to be measured first)."""
    mishap = KINDS[kind]
    box = Box(mishap)
    box.run(14)
    assert box.story() == [f"-{kind}", f"+{kind}"]
    (noticed, trouble), (back, recovered) = box.notes()
    assert isinstance(trouble, Trouble)
    assert trouble.message
    assert trouble.fix
    assert isinstance(recovered, Recovered)
    assert noticed - 3.0 <= 2.1
    assert back - (3.0 + mishap.seconds) <= (3.0 if kind != "rate" else 5.0)
    assert box.keeper.trouble is None
    assert gapless(box.frames)
    assert box.frames[-1].live
    assert box.frames[-1].samples.any()


def test_a_loudspeaker_that_takes_nothing_is_opened_again() -> None:
    box = Box(Mishap(3 * RATE, "stalled"))
    box.run(8)
    assert box.story() == ["-frozen", "+frozen"]
    assert box.notes()[0][0] - 3.0 <= 2.0
    assert len(box.opens) == 2


def test_the_card_is_found_again_ten_seconds_later_and_time_has_gone_on() -> None:
    """C63. Downstream sees frames in real time, silent and not live; the sample clock stays with the clock."""
    box = Box(Mishap(3 * RATE, "unplugged", 10.0))
    box.run(20)
    assert box.story() == ["-unplugged", "+unplugged"]
    away = [(time, frame) for time, frame in zip(box.times, box.frames, strict=True) if not frame.live]
    assert 10.0 <= away[-1][0] - away[0][0] <= 12.1
    assert not any(frame.samples.any() for _, frame in away)
    assert all(abs(frame.at / RATE - time) < 0.05 for time, frame in zip(box.times, box.frames, strict=True))
    assert all(len(frame.far) == FRAME for frame in box.frames)
    back = next(frame for frame in reversed(box.frames) if frame.notes)
    assert abs(back.samples[0] - 1 - back.at / RATE) < 1.1, "what is heard is what was said then"
    assert isinstance(recovered := back.notes[0], Recovered)
    assert 10.0 <= recovered.seconds <= 12.1


def test_a_frozen_card_costs_no_time() -> None:
    """The frames that it did not send are caught up with: nobody downstream is late for ever."""
    box = Box(Mishap(3 * RATE, "frozen"))
    box.run(8)
    assert gapless(box.frames)
    assert abs(box.frames[-1].at / RATE - box.world.now()) < 0.05


def test_no_card_at_the_start_is_no_end() -> None:
    box = Box(Mishap(0, "unplugged", 5.0))
    box.world.strike()
    box.run(0.1)
    assert box.keeper.trouble is not None
    assert box.keeper.sound is None
    box.run(10)
    assert box.story() == ["-unplugged", "+unplugged"]
    assert [round(b - a, 1) for (a, _), (b, _) in pairwise(box.opens)][:4] == [0.2, 0.5, 1.0, 1.0]


@pytest.mark.parametrize("kind", ["missing", "refused"])
def test_what_the_opener_says_is_said(kind: str) -> None:
    faults = [DeviceFault("no", "yes", kind)] * 3  # type: ignore[arg-type]
    box = Box()

    def open(at: int, mixer: Mixer, *, listen: bool = True) -> Sound:
        if faults:
            raise faults.pop()
        return box.open(at, mixer)

    box.keeper._open = open
    box.run(5)
    assert next(note for _, note in box.notes()) == Trouble(kind, "no", "yes")  # type: ignore[arg-type]
    assert box.story() == [f"-{kind}", f"+{kind}"]


def test_a_source_that_is_silent_for_a_reason_is_left_alone() -> None:
    """Opened again three times soon, then once a minute; its frames stay live, and the first sound is heard."""

    def pausing() -> Iterator[Pcm]:
        yield from (np.full(FRAME, 7, np.int16) for _ in range(100))
        yield from (np.zeros(FRAME, np.int16) for _ in range(140 * 100))
        yield from voice()

    box = Box(source=pausing)
    box.run(150)
    reopened = [time for time, _ in box.opens[1:]]
    assert len(reopened) == 5
    assert reopened[2] < 12
    assert all(b - a > 59.9 for a, b in pairwise(reopened[2:]))
    assert box.story() == ["-silence", "+silence"]
    assert sum(not frame.live for frame in box.frames) < 20


def test_two_hundred_troubles_leave_nothing_behind() -> None:
    kinds = ["unplugged", "server", "moved", "frozen", "stalled"]
    threads = threading.active_count()
    mishaps = [Mishap((2 + 5 * n) * RATE, kinds[n % 5], n // 5 % 2 * 0.5) for n in range(200)]  # type: ignore[arg-type]
    box = Box(*mishaps)
    box.run(5 * 200 + 5)
    story = box.story()
    assert all(a[1:] == b[1:] and (a[0], b[0]) == ("-", "+") for a, b in zip(story[::2], story[1::2], strict=True))
    assert len(story) == 2 * 160, "a stall of half a second is none"
    assert gapless(box.frames)
    assert box.keeper.trouble is None
    assert box.frames[-1].live
    assert [fake.closed for fake in box.open_now] == [True] * (len(box.open_now) - 1) + [False]
    assert threading.active_count() == threads
    for back, note in box.notes():
        if isinstance(note, Recovered):
            begin, lasted = max((m.at / RATE, m.seconds) for m in mishaps if m.at / RATE <= back)
            assert back - begin - lasted <= 5.0, "noticed in 2 s, back in 3"


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 8), st.sampled_from([*KINDS, "stalled", "overrun"]), st.floats(0, 4)), max_size=6),
    st.lists(st.tuples(st.floats(0, 10), st.booleans()), max_size=4),
)
def test_whatever_happens_time_is_counted_once(
    what: list[tuple[float, str, float]], mutes: list[tuple[float, bool]]
) -> None:
    box = Box(*(Mishap(round(at * RATE), kind, lasts, frames=3) for at, kind, lasts in what))  # type: ignore[arg-type]
    for at, on in sorted(mutes):
        box.run(max(0.0, at - box.world.now()))
        box.keeper.mute(on)
    box.keeper.mute(False)
    box.run(16)
    assert gapless(box.frames)
    assert box.frames[-1].live
    assert box.keeper.trouble is None


def test_muting_closes_the_microphone_and_only_it() -> None:
    """C22: from the call on nothing of the room is in any frame or tap; the loudspeaker goes on playing."""
    box = Box()
    tap = box.keeper.tap("recorder", 10_000)
    player = box.keeper.mixer.player("speech", capacity=60.0)
    box.run(1)
    box.keeper.mute(True)
    seen = len(box.frames)
    player.play(np.full(RATE, 500, np.int16), RATE)
    box.run(3)
    assert player.played == RATE
    assert [listen for _, listen in box.opens] == [True, False]
    box.keeper.mute(False)
    unmuted = len(box.frames)
    box.run(1)
    muted = box.frames[seen:unmuted]
    assert not any(frame.live or frame.samples.any() for frame in muted)
    assert box.frames[-1].live
    assert [listen for _, listen in box.opens] == [True, False, True]
    assert not box.notes()
    box.keeper.close()
    tapped = list(tap)
    assert [frame.at for frame in tapped] == [frame.at for frame in box.frames]
    assert not any(frame.samples.any() for frame in tapped[seen:unmuted])


def test_what_is_being_heard_while_it_is_muted_is_not_passed_on() -> None:
    """The call comes from another thread while this one waits for the frame."""

    def overheard() -> Iterator[Pcm]:
        for number, frame in enumerate(voice()):
            if number == 100:
                box.keeper.mute(True)
            yield frame

    box = Box(source=overheard)
    box.run(2)
    heard = [frame for frame in box.frames if frame.live]
    assert len(heard) == 100
    assert not any(frame.samples.any() for frame in box.frames[100:])


def test_a_card_that_takes_long_to_open_costs_no_time() -> None:
    box = Box(Mishap(3 * RATE, "moved"))

    def open(at: int, mixer: Mixer, *, listen: bool = True) -> Sound:
        box.world.sleep(1.0)
        return box.open(at, mixer)

    box.keeper._open = open
    box.run(8)
    assert gapless(box.frames)
    assert abs(box.frames[-1].at / RATE - box.world.now()) < 0.05


def test_what_a_card_loses_before_its_first_frame_is_no_loss_of_ours() -> None:
    box = Box(Mishap(0, "overrun", frames=3))
    box.run(1)
    assert gapless(box.frames)
    assert box.keeper.overruns == 0


def test_muted_from_the_start_it_never_listens() -> None:
    box = Box()
    box.keeper.mute(True)
    box.run(1)
    assert [listen for _, listen in box.opens] == [False]
    assert not any(frame.live for frame in box.frames)


def test_an_answer_goes_on_where_it_was() -> None:
    """The mixer outlives the card, whose successor may run at another rate."""
    box = Box(Mishap(3 * RATE, "unplugged", 1.0))
    player = box.keeper.mixer.player("speech", capacity=60.0)
    box.run(2)
    player.play(np.full(4 * RATE, 500, np.int16), RATE)
    box.run(1.5)
    box.rate = 48_000
    played = player.played
    assert 0.9 * RATE < played < 1.1 * RATE
    box.run(0.2)
    assert player.played == played
    box.run(6)
    assert abs(player.played - 4 * RATE) <= 2
    sounds = [fake.output() for fake in box.open_now]
    assert sum(np.count_nonzero(sound) / rate for sound, rate in zip(sounds, (RATE, 48_000), strict=True)) == (
        pytest.approx(4.0, abs=0.02)
    )


def test_taps_drop_the_oldest_and_count_them() -> None:
    box = Box()
    slow, gone = box.keeper.tap("slow", 10), box.keeper.tap("gone", 10)
    box.run(0.5)
    gone.close()
    second = box.keeper.tap("second", 100)
    box.run(0.5)
    box.keeper.close()
    assert [frame.at for frame in slow] == [frame.at for frame in box.frames[-10:]]
    assert slow.lost == len(box.frames) - 10
    assert len(list(second)) < 52
    assert list(second) == []


def test_a_recording_ends_it() -> None:
    world = World(np.ones(RATE, np.int16), tail=0.0)
    keeper = Keeper(
        lambda at, mixer: Fake(world, at=at, mixer=mixer),  # type: ignore[arg-type]
        Mixer(),
        clock=world.now,
        sleep=world.sleep,
        aside=at_once,
    )
    assert len(list(keeper.frames())) == 100


def test_a_card_that_opens_slowly_stops_nobody() -> None:
    """The real threads: while it is being opened, frames go on; closed meanwhile, it is closed when it is open."""
    gate, made = threading.Event(), threading.Event()
    cards: list[Closing] = []

    def open(at: int, mixer: Mixer, *, listen: bool = True) -> Sound:
        made.set()
        assert gate.wait(10)
        cards.append(Closing(World(voice(), tail=None), at=at, mixer=mixer))
        return cards[-1]

    keeper = Keeper(open, Mixer())
    frames = keeper.frames()
    silent = [next(frames) for _ in range(5)]
    assert made.wait(10)
    assert not any(frame.live for frame in silent)
    gate.set()
    assert any(next(frames).live for _ in range(1000))
    keeper.close()
    assert cards[0].closed
    assert list(frames) == []

    gate.clear()
    keeper = Keeper(open, Mixer())
    next(keeper.frames())
    closing = threading.Thread(target=keeper.close)
    closing.start()
    gate.set()
    closing.join(10)
    assert all(card.closed for card in cards)
    assert not [thread for thread in threading.enumerate() if thread.name == "sound card" and not thread.join(10)]  # type: ignore[func-returns-value]
