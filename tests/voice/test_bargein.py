"""Barge-in: how much voice holds an answer, when it goes on, and what the words over it mean."""

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.config import BACKCHANNELS, STOP
from appliance.events import Event, Heard, Held, Partial
from appliance.stream import line
from appliance.voice.bargein import LONGEST, QUIET, Evidence, Floor, InterruptRules, Judge, Over, bargein
from firmware.frame import FRAME, RATE
from firmware.mixer import Mixer

RULES = InterruptRules(120, 500, 1500, BACKCHANNELS, STOP)
MS = RATE // 1000


class Box:
    """A floor, and the loudspeaker that its player sounds from; time passes frame by frame for both."""

    def __init__(self, seconds: float = 60.0, rules: InterruptRules = RULES) -> None:
        self.mixer = Mixer(RATE)
        self.player = self.mixer.player("speech", capacity=600)
        self.floor = Floor(self.player, rules)
        self.now = 0
        self.told: list[Held] = []
        if seconds:
            self.say(seconds)

    def say(self, seconds: float) -> None:
        self.player.play(np.arange(1, 1 + round(seconds * RATE), dtype=np.int16), RATE)

    def frame(self, speech: float, doubt: float = 0.0) -> Heard:
        heard = Heard(self.now, 0, np.zeros(FRAME, np.int16), speech, True, doubt)
        self.now += FRAME
        return heard

    def pass_(self, seconds: float, speech: float = 0.0, doubt: float = 0.0) -> np.ndarray:
        """What is put out meanwhile."""
        out = []
        for _ in range(round(seconds * 100)):
            out.append(self.mixer.take(FRAME))
            if held := self.floor.hear(self.frame(speech, doubt)):
                self.told.append(held)
        return np.concatenate(out) if out else np.zeros(0, np.int16)


# --- evidence --------------------------------------------------------------------------------------------------------


def needed(doubt: float, rules: InterruptRules = RULES) -> int:
    """Milliseconds of voice until it is certain."""
    evidence = Evidence(rules)
    return next(10 * n for n in range(1, 1000) if evidence.push(0.9, FRAME, doubt))


def test_doubt_asks_for_more_voice():
    assert needed(0.0) == 120
    assert needed(0.5) == 370
    assert needed(1.0) == 620


def test_blips_do_not_add_up():
    evidence = Evidence(RULES)
    assert not any(evidence.push(0.9 * (n // 8 % 2), FRAME, 0.0) for n in range(1000))


@given(st.lists(st.floats(0, 1), max_size=60), st.floats(0, 1), st.floats(0, 1))
def test_more_doubt_is_never_sooner(probabilities, low, high):
    def sure(doubt: float) -> list[bool]:
        evidence = Evidence(RULES)
        return [evidence.push(probability, FRAME, doubt) for probability in probabilities]

    low, high = sorted((low, high))
    first = [[*sure(doubt), True].index(True) for doubt in (low, high)]
    assert first == sorted(first)


# --- the floor -------------------------------------------------------------------------------------------------------


def test_a_voice_over_an_answer_holds_it_and_it_goes_on_at_the_same_sample():
    box = Box(seconds=1.5)
    before = np.concatenate([box.pass_(0.5), box.pass_(0.12, speech=0.9)])
    assert box.player.held
    assert np.count_nonzero(box.pass_(0.18, speech=0.9)) <= FRAME  # the fade
    assert not box.pass_(1.2).any()
    after = box.pass_(1.5)
    assert [held.on for held in box.told] == [True, False]
    assert box.told[1].at - box.told[0].at == RULES.decide_ms * MS
    whole = np.arange(1, 1 + round(1.5 * RATE), dtype=np.int16)
    start = np.flatnonzero(after)[0] - 1  # the first sample is faded to nothing
    rest = after[start : start + len(whole) - len(before)]
    faded = 5 * MS
    np.testing.assert_array_equal(before, whole[: len(before)])
    np.testing.assert_array_equal(rest[faded:], whole[len(before) + faded :])
    assert not after[start + len(rest) :].any()


def test_no_more_than_one_frame_is_put_out_after_the_decision():
    box = Box()
    while not box.told:
        box.pass_(0.01, speech=0.9)
    assert np.count_nonzero(box.pass_(1.0, speech=0.9)) <= FRAME


def test_a_voice_while_nothing_sounds_holds_nothing():
    box = Box(seconds=0)
    box.pass_(2.0, speech=0.9)
    assert not box.told


def test_an_answer_that_begins_under_a_voice_is_held():
    box = Box(seconds=0)
    box.pass_(1.0, speech=0.9)
    box.say(1.0)
    assert np.count_nonzero(box.pass_(1.0, speech=0.9)) <= 2 * FRAME


def test_an_answer_stays_held_while_the_voice_goes_on_and_no_longer_than_a_turn():
    box = Box()
    box.pass_(10.0, speech=0.9)
    assert box.player.held
    box.pass_((QUIET + FRAME) / RATE)
    assert not box.player.held
    box.pass_(LONGEST / RATE + 0.2, speech=0.9)
    assert [held.on for held in box.told] == [True, False, True, False]


def test_a_voice_that_never_ends_does_not_hold_twice():
    box = Box()
    box.pass_(2 * LONGEST / RATE, speech=0.9)
    assert [held.on for held in box.told] == [True, False]


def test_what_was_nothing_lets_the_answer_go_on_as_soon_as_it_is_quiet():
    box = Box()
    box.pass_(0.3, speech=0.9)
    box.floor.settle(box.told[0].at)
    box.pass_(0.1)
    assert box.player.held
    box.pass_(0.1)
    assert not box.player.held


def test_an_answer_that_was_held_by_its_own_echo_does_not_stutter():
    box = Box(seconds=3.0)
    box.pass_(0.3, speech=0.9)
    box.floor.settle(box.told[0].at, echo=True)
    box.pass_(0.3)
    box.pass_(3.0, speech=0.9)
    assert [held.on for held in box.told] == [True, False]
    assert box.player.pending == 0
    box.pass_(0.3)
    box.say(1.0)
    box.pass_(0.3, speech=0.9)
    assert box.player.held


def test_a_verdict_on_an_older_hold_does_not_end_this_one():
    box = Box()
    box.pass_(0.3, speech=0.9)
    box.floor.settle(box.told[0].at - 1)
    box.pass_(0.5)
    assert box.player.held


def test_what_comes_after_an_answer_that_was_left_is_not_held_by_the_same_voice():
    box = Box()
    box.pass_(0.3, speech=0.9)
    box.player.flush()
    box.floor.left()
    box.say(1.0)
    box.pass_(0.5, speech=0.9)
    assert [held.on for held in box.told] == [True]
    box.pass_(0.3)
    box.pass_(0.3, speech=0.9)
    assert len(box.told) == 2


def test_the_floor_knows_when_an_answer_and_its_echo_were_heard():
    box = Box(seconds=1.0)
    box.pass_(0.5, doubt=0.3)
    box.pass_(1.0)
    assert box.floor.sounded(RATE // 2)
    assert not box.floor.sounded(RATE + FRAME)
    assert box.floor.doubted(RATE // 4)
    assert not box.floor.doubted(RATE // 2)


async def test_the_hold_does_not_wait_for_those_behind_it_and_ends_with_the_sound():
    box = Box()

    async def source():
        for _ in range(100):
            yield box.frame(0.9)
            await asyncio.sleep(0)
        yield Partial(0, 1, "", "so")

    async with line(source(), bargein(box.floor), depth=1) as events:
        first: Event = await anext(events)
        for _ in range(50):
            await asyncio.sleep(0)
        assert not box.player.held  # twelve frames have not come through: nobody takes them
        seen = [first, *[event async for event in events]]
    assert not box.player.held
    assert [event.on for event in seen if isinstance(event, Held)] == [True, False]
    assert sum(isinstance(event, Heard) for event in seen) == 100
    assert sum(isinstance(event, Partial) for event in seen) == 1


# --- words -----------------------------------------------------------------------------------------------------------

judge = Judge(RULES)
OVER = Over(["the", "shop", "is", "open", "until", "eight"])


@pytest.mark.parametrize(
    "text",
    [
        "Uh-huh.",
        "Mhm.",
        "mm-hmm",
        "Yeah.",
        "Yeah, yeah.",
        "Okay.",
        "Hmmmm...",
        "Ha ha ha!",
        "Hahaha.",
        "Uh, okay, right.",
    ],
)
def test_a_listener_does_not_want_the_floor(text):
    assert judge(text, OVER) == "back-channel"
    assert judge(text, None) == "words"


@pytest.mark.parametrize(
    "text",
    ["No wait.", "What about tomorrow?", "Yes, but when?", "Okay so what now?", "Until nine?", "Right here.", "Um mum"],
)
def test_other_words_want_it(text):
    assert judge(text, OVER) == "words"


@pytest.mark.parametrize(
    "text",
    ["Stop!", "Stop, stop, stop.", "That’s enough.", "стоп", "Arrête !", "STOPP", "Halt.", "Be quiet, please stop."],
)
def test_a_stop_is_a_stop_everywhere(text):
    for over in (None, OVER, Over((), asked=True)):
        assert judge(text, over) == "stop"


def test_okay_stop_over_an_answer_is_a_stop_and_yes_cancel_is_an_answer():
    assert judge("Okay, stop.", OVER) == "stop"
    assert judge("Yes, cancel.", Over(["shall", "i", "cancel", "it"], asked=True)) == "words"


@pytest.mark.parametrize("text", ["Stop the timer at five.", "Don't stop.", "Is that enough?"])
def test_a_sentence_with_a_stop_word_is_no_stop(text):
    assert judge(text, OVER) == "words"


@pytest.mark.parametrize("text", ["Yes.", "Okay.", "Sure."])
def test_yes_is_an_answer_to_a_question(text):
    assert judge(text, Over(["shall", "i", "go", "on"], asked=True)) == "words"


def test_the_answers_own_words_come_first():
    said = "say stop to end it it is 5 dollars".replace("5", "five").split()
    assert judge("it is five dollars", Over(said)) == "own voice"
    assert judge("stop", Over(said, doubt=True)) == "own voice"
    assert judge("stop", Over(said)) == "stop"


def test_numbers_are_compared_as_they_are_spoken():
    spoken = Judge(RULES, lambda text: text.replace("5", "five"))
    assert spoken("It is 5 dollars.", Over(["it", "is", "five", "dollars"])) == "own voice"
    assert judge("It is 5 dollars.", Over(["so", "it", "is", "five", "dollars"])) == "words"


def test_no_list_is_no_back_channel():
    bare = Judge(InterruptRules())
    assert bare("uh-huh", OVER) == "words"
    assert bare("stop", OVER) == "words"
    assert bare("", OVER) == "words"
