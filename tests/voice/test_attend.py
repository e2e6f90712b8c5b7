"""Attention: what opens it, what keeps it open, what ends it, and what of the sound is passed on."""

import asyncio
import random
import threading
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.errors import Fault
from appliance.events import (
    Answered,
    Attending,
    Event,
    Failed,
    Heard,
    Muted,
    NoSpeech,
    Played,
    Rang,
    SoundLost,
    SpeechEnded,
    SpeechStarted,
    Transcript,
    Woken,
)
from appliance.runtime.worker import Worker
from appliance.stream import Events, line
from appliance.voice.address import ALONE
from appliance.voice.attend import (
    HUSH,
    LEAD,
    MEMORY,
    OVERHANG,
    RUN_OUT,
    TAIL,
    AttendRules,
    Attention,
    attend,
)
from appliance.voice.endpoint import EndpointRules, endpoint
from firmware.frame import FRAME, RATE

MS = RATE // 1000
RULES = AttendRules(patience_s=2.0, follow_up_s=1.0)
SOUND, SILENCE = np.full(FRAME, 100, np.int16), np.zeros(FRAME, np.int16)


def word(end: int, name: str = "okay-nabu", length: int = RATE // 2) -> Woken:
    return Woken(end, 0, name, end - length, 0.9, 0.8)


class Box:
    """Attention with a clock. Sound comes in frames; with `judged` wake words are confirmed at once."""

    def __init__(self, rules: AttendRules = RULES, judged: bool = True) -> None:
        self.attention = Attention(rules)
        self.judged = judged
        self.now = 0
        self.seen: list[Event] = []

    def feed(self, event: Event) -> None:
        self.seen += self.attention.step(event)
        if self.attention.check and self.judged:
            self.seen += self.attention.judge(True)

    def hear(self, ms: int, speech: float = 0.0, live: bool = True, doubt: float = 0.0) -> "Box":
        for _ in range(ms // 10):
            self.feed(Heard(self.now, 0, SOUND if live else SILENCE, speech, live, doubt))
            self.now += FRAME
        return self

    def wake(self, ago_ms: int = 100, name: str = "okay-nabu") -> "Box":
        self.feed(word(self.now - ago_ms * MS, name))
        return self

    def below(self, *events: Event) -> "Box":
        for event in events:
            self.attention.note(event)
        return self

    def take(self) -> list[Event]:
        seen, self.seen = self.seen, []
        return seen

    def passed(self) -> list[Heard]:
        return [event for event in self.seen if isinstance(event, Heard)]

    def changes(self) -> list[tuple[bool, str]]:
        return [(event.on, event.why) for event in self.seen if isinstance(event, Attending)]


def question(box: Box, turn: int) -> Box:
    """The user asks, and is understood."""
    box.hear(100, 0.9).below(SpeechStarted(box.now, turn)).hear(900, 0.9).hear(300)
    return box.below(SpeechEnded(box.now, turn, box.now, "complete"), Transcript(box.now, turn, "hello", 0.9))


def answer(box: Box, turn: int, ms: int = 1000) -> Box:
    for _ in range(ms // 100):
        box.hear(100).below(Played(box.now, turn, ("word",)))
    return box.below(Answered(box.now, turn, "word", "complete"))


# --- opening ---------------------------------------------------------------------------------------------------------


def test_nothing_passes_until_the_wake_word():
    box = Box().hear(5000, 0.9)
    assert box.seen == []
    assert not box.attention.on


def test_what_follows_the_wake_word_passes_from_its_end_on():
    box = Box().hear(3000, 0.9).wake(ago_ms=400).hear(1000, 0.9)
    end = 2600 * MS
    assert [type(event) for event in box.seen[:3]] == [Woken, Attending, Heard]
    assert box.changes() == [(True, "word")]
    heard = box.passed()
    assert [frame.at for frame in heard] == list(range(end - LEAD, 4000 * MS, FRAME))


def test_the_voice_that_says_the_wake_word_begins_no_turn_but_the_order_behind_it_does():
    box = Box().hear(3000, 0.9).wake(ago_ms=400).hear(1000, 0.9)
    assert all(frame.samples.any() for frame in box.passed())
    silenced = [frame.at for frame in box.passed() if frame.speech == 0.0]
    assert silenced == list(range(2600 * MS - LEAD, 2600 * MS + OVERHANG, FRAME))


def test_a_wake_word_noticed_late_costs_no_more_than_what_memory_holds():
    box = Box().hear(9000, 0.9).wake(ago_ms=8000)
    memory = MEMORY + RULES.verify_ms * MS
    assert box.now - memory - FRAME <= box.passed()[0].at <= box.now - MEMORY


def test_what_was_passed_before_attention_ended_is_not_passed_again():
    box = Box().hear(1000).wake().hear(2050).wake(ago_ms=300).hear(100)
    assert box.changes() == [(True, "word"), (False, "patience"), (True, "word")]
    assert [frame.at for frame in box.passed()] == list(range(900 * MS - LEAD, box.now, FRAME))


def test_two_words_in_one_sound_are_one_call():
    box = Box().hear(2000).wake(ago_ms=200).hear(50).wake(ago_ms=150, name="hey-jarvis")
    assert sum(isinstance(event, Woken) for event in box.seen) == 1


def test_the_word_said_again_is_passed_on_and_the_wait_begins_anew():
    box = Box().hear(2000).wake().hear(1500).wake().hear(1500)
    assert sum(isinstance(event, Woken) for event in box.seen) == 2
    assert box.changes() == [(True, "word")]
    assert box.attention.on


def test_a_button_opens_from_any_thread_and_keeps_the_word_that_was_begun_under_it():
    box = Box().hear(1000, 0.9)
    thread = threading.Thread(target=box.attention.wake)
    thread.start()
    thread.join()
    box.hear(100, 0.9)
    woken = box.seen[0]
    assert isinstance(woken, Woken)
    assert woken.word == "button"
    assert box.changes() == [(True, "button")]
    assert box.passed()[0].at == 1000 * MS - LEAD
    assert all(frame.speech == 0.9 for frame in box.passed())


def test_a_button_pressed_while_it_attends_is_passed_on():
    box = Box().hear(1000).wake().hear(1500)
    box.attention.wake("api")
    box.hear(1500)
    assert [event.word for event in box.seen if isinstance(event, Woken)] == ["okay-nabu", "api"]
    assert box.changes() == [(True, "word"), (True, "api")]


def test_a_button_pressed_while_a_word_is_verified_loses_nothing_of_what_was_said():
    box = Box(judged=False).hear(3000).wake(ago_ms=300).hear(100)
    box.attention.wake()
    box.hear(100)
    assert box.passed()[0].at == 2700 * MS - LEAD
    assert list(box.attention.judge(False)) == []
    assert box.attention.on


def test_with_a_button_only_words_do_nothing_and_the_rest_is_the_same():
    box = Box(AttendRules(mode="button", patience_s=2.0)).hear(1000).wake().hear(100)
    assert box.seen == []
    box.attention.wake()
    box.hear(10)
    assert box.attention.on


def test_always_passes_everything_and_wake_words_too():
    box = Box(AttendRules(mode="always")).hear(1000).wake().hear(60_000)
    assert [frame.at for frame in box.passed()] == list(range(0, box.now, FRAME))
    assert box.changes() == [(True, "always")]
    assert any(isinstance(event, Woken) for event in box.seen)


def test_what_is_not_its_business_passes():
    box = Box()
    lost = SoundLost(0, 0, "frozen", "message", "fix")
    box.feed(lost)
    box.feed(Muted(0, 0, True))
    assert box.seen == [lost, Muted(0, 0, True)]


# --- the wait --------------------------------------------------------------------------------------------------------


def test_patience_ends():
    box = Box().hear(1000).wake().hear(2500)
    assert box.changes() == [(True, "word"), (False, "patience")]
    assert box.passed()[-1].at + FRAME == 3000 * MS
    assert box.seen[-1] == Attending(3000 * MS, 0, False, "patience")


def test_who_begins_to_speak_as_patience_ends_is_not_cut_off():
    box = Box().hear(1000).wake().hear(1950).hear(200, 0.9).below(SpeechStarted(0, 1)).hear(5000, 0.9)
    assert box.attention.on
    assert box.passed()[-1].at + FRAME == box.now


def test_a_voice_that_is_no_turn_gains_no_more_than_the_wait_again():
    box = Box().hear(1000).wake().hear(6000, 0.9)
    assert box.seen[-1] == Attending(5000 * MS, 0, False, "patience")


def test_a_noise_does_not_prolong_the_wait():
    box = Box().hear(1000).wake().hear(1000, 0.9).below(SpeechStarted(0, 1)).hear(800)
    box.below(NoSpeech(box.now, 1, "no speech")).hear(300)
    assert box.changes()[-1] == (False, "patience")
    assert box.now == 3100 * MS


def test_the_wake_word_alone_is_waited_for_again():
    box = Box().hear(1000).wake().hear(1000, 0.9).below(SpeechStarted(0, 1)).hear(800)
    box.below(NoSpeech(box.now, 1, ALONE)).hear(1900)
    assert box.attention.on
    assert not box.hear(200).attention.on


# --- the answer ------------------------------------------------------------------------------------------------------


def test_an_answer_may_be_spoken_over_however_long_it_is():
    box = question(Box().hear(1000).wake(), 1).hear(5000)
    box.take()
    answer(box, 1, 20_000)
    assert len(box.passed()) == 2000


def test_a_follow_up_needs_no_wake_word():
    box = answer(question(Box().hear(1000).wake(), 1), 1).hear(900, 0.9)
    assert box.changes() == [(True, "word"), (True, "follow-up")]
    assert box.passed()[-1].at + FRAME == box.now
    box.hear(100).hear(HUSH // MS + 10)
    assert box.changes()[-1] == (False, "answered")


def test_a_follow_up_that_is_being_spoken_is_not_cut_off():
    box = answer(question(Box().hear(1000).wake(), 1), 1).hear(950)
    box = question(box, 2)
    assert box.attention.on
    answer(box, 2, 9000)
    assert box.changes()[-1] == (True, "follow-up")


def test_without_follow_up_an_answer_ends_attention():
    box = answer(question(Box(AttendRules(follow_up_s=0.0)).hear(1000).wake(), 1), 1).hear(50)
    assert box.changes() == [(True, "word"), (False, "answered")]


def test_the_next_question_is_waited_for_though_the_answer_before_has_ended():
    box = question(Box(AttendRules(follow_up_s=0.0)).hear(1000).wake(), 1).hear(500)
    box = question(box, 2).below(Answered(0, 1, "", "interrupted")).hear(9000)
    assert box.attention.on
    assert not answer(box, 2).hear(50).attention.on


@pytest.mark.parametrize("reason", ["complete", "interrupted", "failed"])
def test_a_wake_word_over_an_answer_is_passed_on_and_waits_its_time(reason):
    box = question(Box(AttendRules(follow_up_s=0.0)).hear(1000).wake(), 1).hear(500)
    box.take()
    box.wake().below(Answered(0, 1, "", reason)).hear(5000)
    assert isinstance(box.seen[0], Woken)
    assert box.attention.on


def test_a_failure_leaves_time_to_ask_again():
    box = Box().hear(1000).wake().hear(1500, 0.9).below(SpeechStarted(0, 1)).hear(3000)
    box.below(Failed(0, 1, "hear", "deadline", "", "")).hear(1900)
    assert box.attention.on
    box.below(Played(0, 1, ("again",))).hear(1900)
    assert box.attention.on
    assert not box.hear(300).attention.on


def test_an_answer_that_fails_cuts_nobody_short():
    box = question(Box().hear(1000).wake(), 1).hear(100, 0.9).below(SpeechStarted(0, 2))
    box.below(Failed(0, 1, "answer", "model", "", ""), Answered(0, 1, "", "failed")).hear(5000)
    assert box.attention.on


def test_an_answer_that_never_comes_is_not_waited_for_for_ever():
    box = question(Box(AttendRules(stall_s=20.0)).hear(1000).wake(), 1).hear(19_900)
    assert box.attention.on
    assert not box.hear(200).attention.on


def test_the_tail_of_an_answer_is_no_voice_where_its_echo_is_heard():
    box = question(Box().hear(1000).wake(), 1).hear(1000, 0.9, doubt=1.0).below(Answered(0, 1, "", "complete"))
    box.take()
    box.hear(TAIL // MS + 50, 0.9)
    assert [frame.at for frame in box.passed() if frame.speech == 0.0] == [
        box.passed()[0].at + step for step in range(0, TAIL, FRAME)
    ]


def test_where_no_echo_is_heard_an_answer_to_the_answer_may_come_at_once():
    box = question(Box().hear(1000).wake(), 1).hear(1000, doubt=0.1).below(Answered(0, 1, "", "complete"))
    box.take()
    assert all(frame.speech == 0.9 for frame in box.hear(500, 0.9).passed())


# --- no microphone ---------------------------------------------------------------------------------------------------


def mute(box: Box, on: bool = True) -> Box:
    box.feed(Muted(box.now, 0, on))
    return box


def test_a_muted_box_attends_to_nobody():
    box = mute(Box().hear(1000).wake().hear(500)).hear(50, live=False)
    assert box.changes() == [(True, "word"), (False, "muted")]
    box.attention.wake()
    box.hear(50, live=False)
    assert box.changes()[2:] == [(False, "muted")]
    assert not box.attention.on


def test_what_was_heard_before_the_microphone_was_closed_is_forgotten():
    box = mute(mute(Box().hear(3000, 0.9)).hear(100, live=False), False).hear(100).wake(ago_ms=1000)
    assert [frame.at for frame in box.passed()] == list(range(3100 * MS, box.now, FRAME))


def test_a_turn_that_is_being_spoken_ends_by_silence_when_the_microphone_is_closed():
    box = mute(Box().hear(1000).wake().hear(500, 0.9).below(SpeechStarted(0, 1))).hear(1200, 0.9, live=False)
    assert box.attention.on
    assert all(frame.speech == 0.0 for frame in box.passed() if not frame.live)
    box.below(Transcript(0, 1, "hello", 0.9)).hear(10, live=False)
    assert box.changes()[-1] == (False, "muted")


def test_a_turn_that_does_not_end_by_silence_is_left():
    box = mute(Box().hear(1000).wake().hear(500, 0.9).below(SpeechStarted(0, 1))).hear(5000, live=False)
    assert box.seen[-1] == Attending(1500 * MS + RUN_OUT, 1, False, "muted")


def test_a_card_that_goes_away_and_comes_back_costs_nothing():
    box = Box().hear(1000).wake().hear(500).hear(500, 0.9, live=False).hear(300, 0.9)
    assert [frame.at for frame in box.passed()][-1] + FRAME == box.now
    assert box.changes() == [(True, "word")]


def test_a_card_that_stays_away_ends_the_wait():
    box = Box().hear(1000).wake().hear(5000, live=False)
    assert box.changes() == [(True, "word"), (False, "lost")]
    box.attention.wake()
    assert box.hear(20, live=False).changes()[2:] == [(False, "lost")]


def test_a_turn_that_was_left_is_not_waited_for_in_the_next():
    box = mute(Box().hear(1000).wake().hear(500, 0.9).below(SpeechStarted(0, 1))).hear(3000, live=False)
    mute(box, False).hear(1000).wake().hear(2100)
    assert box.changes()[2:] == [(True, "word"), (False, "patience")]


def test_always_is_silent_while_muted_and_hears_again_afterwards():
    box = mute(mute(Box(AttendRules(mode="always")).hear(100)).hear(100, live=False), False).hear(100)
    assert box.changes() == [(True, "always"), (False, "muted"), (True, "always")]
    assert [frame.at for frame in box.passed() if frame.live] == [
        at for at in range(0, box.now, FRAME) if not 100 * MS <= at < 200 * MS
    ]


def test_a_wake_word_that_comes_after_the_microphone_was_closed_is_none():
    box = mute(Box().hear(1000)).hear(10, live=False).wake().hear(10, live=False)
    assert box.changes() == []


def test_a_word_that_is_being_verified_does_not_outlive_the_microphone():
    box = mute(Box(judged=False).hear(1000).wake()).hear(10, live=False)
    assert list(box.attention.judge(True)) == []
    assert not box.attention.on


# --- it always comes back --------------------------------------------------------------------------------------------


def test_after_two_hundred_turns_with_every_mishap_it_wakes_as_at_first():
    dice, box = random.Random(3), Box(AttendRules(patience_s=2.0, follow_up_s=1.0, stall_s=6.0))
    for turn in range(1, 201):
        box.hear(500).wake()
        assert box.attention.on, turn
        match dice.randrange(9):
            case 0:
                answer(question(box, turn), turn)
            case 1:
                question(box, turn).below(Answered(0, turn, "", "interrupted"))
            case 2:
                question(box, turn).below(Failed(0, turn, "answer", "model", "", ""), Answered(0, turn, "", "failed"))
            case 3:
                box.hear(500, 0.9).below(SpeechStarted(0, turn), Failed(0, turn, "hear", "deadline", "", ""))
            case 4:
                box.hear(500, 0.9).below(SpeechStarted(0, turn), NoSpeech(0, turn, "phrase"))
            case 5:
                mute(mute(question(box, turn)).hear(300, live=False), False)
            case 6:
                question(box, turn).hear(3000, live=False)
            case 7:
                mute(box.hear(500, 0.9).below(SpeechStarted(0, turn))).hear(4000, live=False)
                mute(box, False)
            case 8:
                question(box, turn)  # and nothing ever comes of it
        box.hear(9_000)
        assert not box.attention.on, turn
        box.take()


ANY = st.one_of(
    st.tuples(st.just("hear"), st.integers(1, 120), st.sampled_from([0.0, 0.9]), st.booleans()),
    st.tuples(st.just("wake"), st.integers(0, 400)),
    st.tuples(st.just("call"), st.sampled_from(["button", "api"])),
    st.tuples(st.just("mute"), st.booleans()),
    st.tuples(st.just("judge"), st.booleans()),
    st.tuples(
        st.just("below"),
        st.sampled_from(["started", "words", "nothing", "alone", "failed", "played", "complete", "interrupted"]),
        st.integers(1, 5),
    ),
)


def play(box: Box, script: Iterable[tuple]) -> None:  # type: ignore[type-arg]
    muted = False
    for what, *more in script:
        match what:
            case "hear":
                frames, speech, live = more
                box.hear(frames * 10, speech, live and not muted)
            case "wake":
                box.wake(min(more[0], box.now // MS))
            case "call":
                box.attention.wake(more[0])
            case "mute":
                muted = more[0]
                mute(box, muted)
            case "judge":
                box.seen += box.attention.judge(more[0])
            case "below":
                kind, turn = more
                box.below(below(kind, turn))
    if muted:
        mute(box, False)


def below(kind: str, turn: int) -> Event:
    return {
        "started": SpeechStarted(0, turn),
        "words": Transcript(0, turn, "hello", 0.9),
        "nothing": NoSpeech(0, turn, "no speech"),
        "alone": NoSpeech(0, turn, ALONE),
        "failed": Failed(0, turn, "hear", "deadline", "", ""),
        "played": Played(0, turn, ("word",)),
        "complete": Answered(0, turn, "", "complete"),
        "interrupted": Answered(0, turn, "", "interrupted"),
    }[kind]


@pytest.mark.parametrize("mode", ["word", "button", "always"])
@given(script=st.lists(ANY, max_size=40), judged=st.booleans())
@settings(max_examples=60, deadline=None)
def test_whatever_happens_sound_passes_once_in_order_and_only_while_it_attends(mode, script, judged):
    rules = AttendRules(mode=mode, patience_s=1.0, follow_up_s=0.5, stall_s=5.0)
    box = Box(rules, judged)
    play(box, script)
    on, last, opened = False, -1, False
    for event in box.seen:
        if isinstance(event, Attending):
            on = event.on
        if isinstance(event, Heard):
            assert on
            assert event.at >= last
            assert last < 0 or opened or event.at == last
            last, opened = event.at + FRAME, False
        opened = opened or isinstance(event, Attending)
    assert on == box.attention.on
    # and then it comes to rest, and wakes again
    box.below(*(below("complete", turn) for turn in range(1, 6)))
    box.hear(8_000)
    assert box.attention.on == (mode == "always")
    box.take()
    box.attention.wake()
    box.hear(10)
    assert box.attention.on
    assert isinstance(box.seen[0], Woken)


def test_a_new_line_begins_with_a_clock_of_its_own_and_knows_of_no_call():
    box = Box().hear(5000).wake().hear(100)
    box.attention.wake()
    box.attention.begin()
    box.now = 0
    box.take()
    assert not box.hear(1000).attention.on
    box.wake().hear(100)
    assert box.passed()[-1].at + FRAME == box.now


# --- the stage -------------------------------------------------------------------------------------------------------


def sound(ms: int, at: int = 0, speech: float = 0.0, live: bool = True) -> Iterator[Heard]:
    for start in range(at, at + ms * MS, FRAME):
        yield Heard(start, 0, SOUND, speech, live)


async def run(given: Iterable[Event], verify=None, rules: AttendRules = RULES, *behind, attention=None) -> list[Event]:
    async def source() -> Events:
        for event in given:
            yield event
            await asyncio.sleep(0)

    attention = attention or Attention(rules)
    async with line(source(), attend(attention, verify), *behind, attention.watch) as events:
        return [event async for event in events]


def ats(events: Iterable[Event]) -> list[int]:
    return [event.at for event in events if isinstance(event, Heard)]


def called(then_ms: int = 1000) -> list[Event]:
    return [*sound(1000), word(800 * MS), *sound(then_ms, 1000 * MS, 0.9)]


async def test_a_word_that_is_confirmed_opens_and_nothing_that_was_said_meanwhile_is_lost():
    given: list[np.ndarray] = []

    async def verify(woken: Woken, heard: np.ndarray) -> bool:
        given.append(heard)
        await asyncio.sleep(0.002)
        return True

    seen = await run(called(), verify)
    assert ats(seen) == list(range(800 * MS - LEAD, 2000 * MS, FRAME))
    assert len(given[0]) == 800 * MS


async def test_a_word_that_is_rejected_opens_nothing_and_says_so():
    async def verify(woken: Woken, heard: np.ndarray) -> bool:
        return False

    seen = await run(called(), verify)
    assert [(type(event), event.why) for event in seen] == [(Attending, "rejected")]
    assert not seen[0].on


async def test_a_verdict_that_is_late_is_not_waited_for():
    async def verify(woken: Woken, heard: np.ndarray) -> bool:
        await asyncio.sleep(60)
        return False

    seen = await run(called(), verify, AttendRules(verify_ms=50))
    assert ats(seen) == list(range(800 * MS - LEAD, 2000 * MS, FRAME))


async def test_sound_that_comes_faster_than_the_verdict_waits_for_it():
    async def verify(woken: Woken, heard: np.ndarray) -> bool:
        await asyncio.sleep(0.3)
        return True

    assert ats(await run(called(9000), verify))[0] == 800 * MS - LEAD


async def test_a_second_line_hears_as_the_first_did():
    attention = Attention(RULES)
    first, second = [await run(called(), attention=attention) for _ in range(2)]
    assert ats(first) == ats(second)


async def test_a_verification_that_fails_costs_nobody_his_turn():
    async def verify(woken: Woken, heard: np.ndarray) -> bool:
        raise Fault("broken")

    assert ats(await run(called(), verify))


async def test_a_word_that_is_rejected_while_it_attends_reaches_nobody():
    async def verify(woken: Woken, heard: np.ndarray) -> bool:
        return False

    attention = Attention(RULES)
    given = [*sound(500), word(400 * MS), *sound(500, 500 * MS)]

    async def pressed() -> Events:
        for event in given:
            if event.at == 100 * MS:
                attention.wake()
            yield event
            await asyncio.sleep(0)

    async with line(pressed(), attend(attention, verify), attention.watch) as events:
        seen = [event async for event in events]
    assert [event.word for event in seen if isinstance(event, Woken)] == ["button"]
    assert ats(seen)[-1] == 990 * MS


async def test_a_sound_that_ends_while_a_word_is_verified_is_not_lost():
    async def verify(woken: Woken, heard: np.ndarray) -> bool:
        await asyncio.sleep(0.01)
        return True

    assert ats(await run(called(50), verify))[-1] == 1040 * MS


class Finished:
    def probability(self, wave: np.ndarray) -> float:
        return 0.9


async def turns(given: Iterable[Event], rules: AttendRules = RULES, model=None) -> list[Event]:
    worker = Worker("turn end")
    try:
        return await run(given, None, rules, endpoint(EndpointRules(), model or Finished(), worker))
    finally:
        worker.close()


class Unfinished:
    def probability(self, wave: np.ndarray) -> float:
        return 0.0


async def test_no_turn_hangs_when_the_microphone_is_closed():
    given = [*called(), Muted(2000 * MS, 0, True), *sound(6000, 2000 * MS, 0.9, live=False)]
    seen = await turns(given, model=Unfinished())
    ended = next(event for event in seen if isinstance(event, SpeechEnded))
    assert ended.at == 2000 * MS
    assert ended.reason == "hold"
    off = [event for event in seen if isinstance(event, Attending)][-1]
    assert (off.on, off.why) == (False, "muted")


async def test_the_first_sample_of_an_order_right_behind_the_word_is_in_the_turn():
    seen = await turns(called())
    started = next(event for event in seen if isinstance(event, SpeechStarted))
    assert started.at <= 800 * MS
    first = ats(seen)[0]
    assert first <= 800 * MS


async def test_a_stop_word_is_passed_on_and_opens_nothing() -> None:
    attention = Attention(AttendRules())
    stop = Woken(1600, 0, "halt", 800, 1.0, 0.5, "stop")
    assert list(attention.step(stop)) == [stop]
    assert attention.check is None
    assert not attention.on


# --- something rings -------------------------------------------------------------------------------------------------


def test_while_something_rings_the_box_need_not_be_called():
    ringing, over = Rang(0, 0, 1, "timer", "tea"), Rang(0, 0, 1, "timer", "tea", False)
    box = Box().hear(100).below(ringing).hear(30_000)
    assert box.changes() == [(True, "alarm")]
    box.below(over).hear(10_000)
    assert box.changes()[-1][0] is False


def test_nothing_opens_a_closed_microphone():
    box = mute(Box()).below(Rang(0, 0, 1, "timer", "tea")).hear(1000, 0.9, live=False)
    assert not box.attention.on
