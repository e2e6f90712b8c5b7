"""The session: one answer per turn, none of it heard once its scope is left; held for a voice, ended by words."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.config import BACKCHANNELS, STOP
from appliance.errors import DeadlineFault, DeviceFault, ModelFault
from appliance.events import (
    Answered,
    Draft,
    Event,
    Failed,
    Heard,
    Held,
    Muted,
    NoSpeech,
    Partial,
    Phrase,
    Played,
    Rang,
    SoundLost,
    Speech,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    Transcript,
    Woken,
)
from appliance.stream import Events, Stage, line
from appliance.voice.bargein import Floor, InterruptRules, Judge, bargein
from appliance.voice.conversation import Conversation
from appliance.voice.failure import CUES, failed
from appliance.voice.mouth import Ledger, Spoken
from appliance.voice.session import converse
from appliance.voice.turn import Answer, Answering
from firmware.frame import FRAME, RATE
from firmware.mixer import Mixer

RULES = InterruptRules(120, 500, 1500, BACKCHANNELS, STOP)


class Voice:
    """Stages that answer with one phrase for each word of the reply, and record what was asked and played."""

    def __init__(self, reply: str = " one two three", pace: float = 0.0, fails: Exception | None = None) -> None:
        self.reply = reply.split()
        self.pace = pace
        self.fails = fails
        self.asked: list[str] = []
        self.prepared: list[str] = []
        self.played: list[str] = []

    async def write(self, events: Events) -> Events:
        async for event in events:
            if not isinstance(event, Transcript):
                yield event
                continue
            self.asked.append(event.text)
            if self.fails:
                raise self.fails
            for word in self.reply:
                yield Phrase(event.at, event.turn, f" {word}", word)

    async def say(self, events: Events) -> Events:
        async for event in events:
            yield event
            if isinstance(event, Phrase):
                self.prepared.append(event.spoken)
                words = ((event.text, 10),)
                yield Speech(event.at, event.turn, np.zeros(10, np.float32), 16_000, words, True)

    def mouth(self, spoken: Spoken) -> Stage:
        async def stage(events: Events) -> Events:
            async for event in events:
                if isinstance(event, Speech):
                    await asyncio.sleep(self.pace)
                    words = tuple(text for text, _ in event.words)
                    spoken.phrases.extend(words)
                    self.played.extend(words)
                    yield Played(event.at, event.turn, words)
                else:
                    yield event

        return stage

    @property
    def answering(self) -> Answering:
        return Answering(lambda answer: (self.write,), (self.say,), self.mouth)


class Box(Voice):
    """The same with a loudspeaker that takes a frame for each frame that is heard, and of each word 100 ms."""

    def __init__(self, reply: str, fails: Exception | None = None) -> None:
        super().__init__(reply, fails=fails)
        self.mixer = Mixer(RATE)
        self.player = self.mixer.player("speech", capacity=600)
        self.floor = Floor(self.player, RULES)
        self.out: list[np.ndarray] = []
        self.now = 0
        self.alone = False
        """Whether nobody listens any more: then the one who waits for the loudspeaker moves the clock."""

    async def say(self, events: Events) -> Events:
        async for event in events:
            yield event
            if isinstance(event, Phrase):
                self.prepared.append(event.spoken)
                for word in event.spoken.split():
                    sound = np.full(RATE // 10, 0.1, np.float32)
                    yield Speech(
                        event.at, event.turn, sound, RATE, ((word, len(sound)),), word == event.spoken.split()[-1]
                    )

    def mouth(self, spoken: Spoken) -> Stage:
        async def stage(events: Events) -> Events:
            ledger, drained = Ledger(spoken, self.player.played + self.player.pending), False
            try:
                async for event in events:
                    if isinstance(event, Phrase):
                        ledger.phrase(event.text)
                    if isinstance(event, Speech):
                        ledger.queue(event)
                        self.player.play(event.samples, event.rate)
                    else:
                        yield event
                while self.player.pending:
                    await asyncio.sleep(0)
                    if self.alone:
                        self.out.append(self.mixer.take(FRAME))
                    if words := ledger.heard(self.player.played):
                        self.played.extend(words)
                        yield Played(0, 0, words)
                drained = True
            finally:
                if not drained:
                    self.player.flush()
                ledger.heard(self.player.played)

        return stage

    def heard(self, seconds: float, speech: float = 0.0, doubt: float = 0.0) -> Iterable[Event]:
        """Frames to come."""
        for _ in range(round(100 * seconds)):
            yield Heard(self.now, 0, np.zeros(FRAME, np.int16), speech, True, doubt)
            self.now += FRAME

    @property
    def put_out(self) -> np.ndarray:
        return np.concatenate(self.out)


async def script(steps: Iterable[Event | float]) -> AsyncIterator[Event]:
    for step in steps:
        if isinstance(step, float):
            await asyncio.sleep(step)
        else:
            yield step
            await asyncio.sleep(0)


def conversing(voice: "Voice | Box", conversation: Conversation) -> Stage:
    player = voice.player if isinstance(voice, Box) else Mixer(RATE).player("speech")
    floor = voice.floor if isinstance(voice, Box) else Floor(player, RULES)
    return converse(voice.answering, conversation, floor, Judge(RULES))


async def run(voice: "Voice | Box", *steps: Event | float) -> tuple[list[Event], Conversation]:
    async def source() -> AsyncIterator[Event]:
        async for event in script(steps):
            if isinstance(voice, Box) and isinstance(event, Heard):
                voice.out.append(voice.mixer.take(FRAME))
            yield event
        if isinstance(voice, Box):
            voice.alone = True

    conversation = Conversation()
    stages = (bargein(voice.floor),) if isinstance(voice, Box) else ()
    async with asyncio.timeout(30), line(source(), *stages, conversing(voice, conversation)) as events:
        seen = [event async for event in events if not isinstance(event, Heard)]
    assert len(asyncio.all_tasks()) == 1
    return seen, conversation


def texts(conversation: Conversation) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in conversation.messages]


async def test_a_turn_is_answered_and_remembered():
    voice = Voice()
    seen, conversation = await run(voice, SpeechStarted(0, 1), Draft(9, 1, "hello"), Transcript(9, 1, "hello", 0.9))
    assert voice.asked == ["hello"]
    assert seen[-1] == Answered(9, 1, "one two three", "complete")
    assert texts(conversation) == [("user", "hello"), ("assistant", "one two three")]


async def test_a_draft_has_no_effect_until_the_turn_is_confirmed():
    voice = Voice()
    seen, conversation = await run(voice, SpeechStarted(0, 1), Draft(9, 1, "hello"), 0.05, SpeechResumed(12, 1))
    assert voice.prepared
    assert voice.played == []
    assert [type(event) for event in seen] == [SpeechStarted, Draft, SpeechResumed]
    assert conversation.messages == []


async def test_the_draft_that_proves_right_is_not_answered_twice():
    voice = Voice()
    await run(voice, Draft(9, 1, "hello"), 0.02, Transcript(9, 1, "hello", 0.9))
    assert voice.asked == ["hello"]


async def test_a_transcript_that_differs_from_its_draft_is_what_is_answered():
    voice = Voice()
    seen, _ = await run(voice, Draft(9, 1, "hello"), 0.02, SpeechResumed(12, 1), Transcript(30, 1, "hello there", 0.9))
    assert voice.asked == ["hello", "hello there"]
    assert sum(isinstance(event, Answered) for event in seen) == 1


async def test_words_over_an_answer_end_it_and_only_what_was_played_is_remembered():
    voice = Voice(reply="one two three four five six", pace=0.05)
    seen, conversation = await run(
        voice,
        Transcript(9, 1, "count", 0.9),
        0.13,
        SpeechStarted(40, 2),
        Partial(50, 2, "no that's", "not it"),
        0.2,
    )
    answered = next(event for event in seen if isinstance(event, Answered))
    assert answered.reason == "interrupted"
    assert answered.said == "one two"
    assert voice.played == [" one", " two"]
    assert texts(conversation) == [("user", "count"), ("assistant", "one two")]


async def test_nothing_of_an_old_turn_is_heard_in_a_new_one():
    voice = Voice(reply="old old old old old", pace=0.03)
    steps = [Transcript(9, 1, "first", 0.9), 0.04, Draft(60, 2, "second"), Transcript(60, 2, "second", 0.9)]
    seen, _ = await run(voice, *steps)
    turns = [event.turn for event in seen if isinstance(event, Played)]
    assert turns == sorted(turns)
    assert turns.count(2) == 5


async def test_what_follows_before_the_answer_was_heard_belongs_to_the_same_question():
    voice = Voice(pace=0.3)
    steps = [Transcript(9, 1, "Hello,", 0.9), 0.02, SpeechStarted(50, 2), Draft(90, 2, "how are you?")]
    seen, conversation = await run(voice, *steps, Transcript(90, 2, "how are you?", 0.9))
    assert voice.asked == ["Hello,", "Hello, how are you?"]
    assert texts(conversation)[0] == ("user", "Hello, how are you?")
    assert [(event.turn, event.reason) for event in seen if isinstance(event, Answered)] == [
        (1, "interrupted"),
        (2, "complete"),
    ]


async def test_an_answer_does_not_begin_under_the_users_voice():
    voice = Voice(pace=0.05)
    given = [Transcript(9, 1, "Hello,", 0.9), 0.02, SpeechStarted(50, 2), 0.3, Transcript(90, 2, "how are you?", 0.9)]
    await run(voice, *given)
    assert voice.played == [" one", " two", " three"]


async def test_a_cough_before_the_answer_was_heard_does_not_cost_the_answer():
    voice = Voice(pace=0.1)
    steps = [Transcript(9, 1, "hello", 0.9), 0.02, SpeechStarted(50, 2), NoSpeech(70, 2, "no speech")]
    seen, conversation = await run(voice, *steps)
    assert isinstance(seen[-1], Answered)
    assert seen[-1].said == "one two three"
    assert texts(conversation) == [("user", "hello"), ("assistant", "one two three")]


async def test_a_turn_without_words_makes_no_answer():
    voice = Voice()
    seen, conversation = await run(voice, SpeechStarted(0, 1), NoSpeech(9, 1, "no speech"))
    assert voice.asked == []
    assert not any(isinstance(event, Answered) for event in seen)
    assert conversation.messages == []


async def test_a_draft_of_a_turn_that_dissolves_is_given_up():
    given_up = asyncio.Event()

    class Endless(Voice):
        async def write(self, events: Events) -> Events:
            try:
                async for event in super().write(events):
                    yield event
            finally:
                given_up.set()

    async def source() -> AsyncIterator[Event]:
        yield Draft(9, 1, "hello")
        await asyncio.sleep(0.02)
        yield NoSpeech(9, 1, "no speech")
        await asyncio.wait_for(given_up.wait(), 5)

    voice = Endless(reply="word " * 500)
    async with line(source(), conversing(voice, Conversation())) as events:
        assert [type(event) async for event in events] == [Draft, NoSpeech]


async def test_an_answer_without_words_to_a_draft_has_no_effect_either():
    seen, conversation = await run(Voice(reply=""), Draft(9, 1, "hello"), 0.02, SpeechResumed(12, 1))
    assert [type(event) for event in seen] == [Draft, SpeechResumed]
    assert conversation.messages == []


@pytest.mark.parametrize("fault", [DeadlineFault("think", 1.0), ModelFault("broken")])
async def test_a_failing_stage_is_named_told_and_the_next_turn_is_answered(fault):
    voice = Voice(fails=fault)
    kind, cue = CUES[type(fault)]
    steps = [Transcript(9, 1, "hello", 0.9), 0.05]
    seen, _ = await run(voice, *steps)
    failure = next(event for event in seen if isinstance(event, Failed))
    assert failure.kind == kind
    assert voice.played == [cue]
    assert isinstance(seen[-1], Answered)
    assert seen[-1].reason == "failed"


async def test_a_failed_speculation_is_silent():
    voice = Voice(fails=ModelFault("broken"))
    seen, _ = await run(voice, Draft(9, 1, "hello"), 0.05, SpeechResumed(12, 1))
    assert not any(isinstance(event, Failed) for event in seen)
    assert voice.played == []


async def test_a_watcher_that_leaves_in_mid_answer_leaves_nothing_behind():
    voice = Voice(reply="word " * 500, pace=0.001)
    async with line(script([Transcript(9, 1, "go", 0.9), 10.0]), conversing(voice, Conversation())) as events:
        async for event in events:
            if isinstance(event, Played):
                break
    assert len(asyncio.all_tasks()) == 1


# --- over an answer that is heard ------------------------------------------------------------------------------------

COUNT = " one two three four five six seven eight"
ASK = Transcript(0, 1, "count", 0.9)
WORD = RATE // 10
"""Samples of each word."""


def answers(seen: list[Event]) -> list[tuple[int, str, str]]:
    return [(event.turn, event.said, event.reason) for event in seen if isinstance(event, Answered)]


def holds(seen: list[Event]) -> list[tuple[int, bool]]:
    return [(event.turn, event.on) for event in seen if isinstance(event, Held)]


def whys(seen: list[Event]) -> list[str]:
    return [event.why for event in seen if isinstance(event, NoSpeech)]


def over(box: Box, *said: Event, voice: float = 0.3, doubt: float = 0.0) -> list[Event]:
    """The question, 250 ms of the answer, a voice over it, what is made out of it, and 2 s of silence."""
    steps: list[Event] = [ASK, *box.heard(0.25)]
    began = SpeechStarted(box.now, 2)
    steps += [*box.heard(0.1, 0.9, doubt), began, *box.heard(voice - 0.1, 0.9, doubt)]
    return [*steps, *box.heard(0.2), *said, *box.heard(2.0)]


async def test_a_cough_over_an_answer_only_delays_it():
    box = Box(COUNT)
    seen, conversation = await run(box, *over(box, NoSpeech(0, 2, "no speech")))
    assert box.asked == ["count"]
    assert holds(seen) == [(1, True), (1, False)]
    assert answers(seen) == [(1, COUNT.strip(), "complete")]
    assert texts(conversation) == [("user", "count"), ("assistant", COUNT.strip())]
    sounding = np.flatnonzero(box.put_out)
    assert len(sounding) >= 8 * WORD
    assert sounding[-1] - sounding[0] - 8 * WORD <= 0.5 * RATE


async def test_a_back_channel_is_no_turn():
    box = Box(COUNT)
    heard = [Partial(0, 2, "uh huh", ""), Draft(0, 2, "Uh-huh."), Transcript(0, 2, "Uh-huh.", 0.9)]
    seen, conversation = await run(box, *over(box, *heard))
    assert box.asked == ["count"]
    assert whys(seen) == ["back-channel"]
    assert [event.turn for event in seen if isinstance(event, Transcript)] == [1]
    assert answers(seen) == [(1, COUNT.strip(), "complete")]
    assert len(conversation.messages) == 2


async def test_a_back_channel_that_is_understood_late_is_no_turn():
    box = Box(" one two three")
    seen, conversation = await run(box, *over(box), Transcript(0, 2, "Okay.", 0.9))
    assert box.asked == ["count"]
    assert whys(seen) == ["back-channel"]
    assert len(conversation.messages) == 2


@pytest.mark.parametrize("question", [" shall I go on with it now?", ' you said "shall I go on now?"'])
async def test_yes_to_a_question_is_an_answer(question):
    box = Box(question)
    box.reply = [" ".join(box.reply)]
    seen, _ = await run(box, *over(box, Draft(0, 2, "Yes."), Transcript(0, 2, "Yes.", 0.9)))
    assert box.asked == ["count", "Yes."]
    assert [(turn, reason) for turn, _, reason in answers(seen)] == [(1, "interrupted"), (2, "complete")]


async def test_yes_to_the_end_of_a_question_is_an_answer():
    box = Box(" go on?")
    box.reply = [" ".join(box.reply)]
    seen, _ = await run(box, *over(box, Draft(0, 2, "Yes."), *box.heard(0.5), Transcript(0, 2, "Yes.", 0.9)))
    assert box.asked == ["count", "Yes."]
    assert [(turn, reason) for turn, _, reason in answers(seen)] == [(1, "complete"), (2, "complete")]


async def test_words_over_an_answer_are_answered_and_the_rest_is_never_heard():
    box = Box(COUNT)
    words = [Draft(0, 2, "No, wait."), Transcript(0, 2, "No, wait.", 0.9)]
    seen, conversation = await run(box, *over(box, *words))
    assert box.asked == ["count", "No, wait."]
    assert holds(seen) == [(1, True), (1, False)]
    (_, said, reason), (_, second, _) = answers(seen)
    assert reason == "interrupted"
    assert said in ("one two three", "one two")
    assert second == COUNT.strip()
    assert texts(conversation)[1] == ("assistant", said)
    assert not box.player.held


@pytest.mark.parametrize(
    ("committed", "tail", "left"), [("no wait", "a", True), ("no", "wait a", False), ("", "no", False)]
)
async def test_words_that_may_still_change_do_not_end_an_answer(committed, tail, left):
    box = Box(COUNT)
    seen, _ = await run(box, *over(box, Partial(0, 2, committed, tail), NoSpeech(0, 2, "no speech")))
    assert [reason for _, _, reason in answers(seen)] == ["interrupted" if left else "complete"]


async def test_the_answer_to_an_interruption_can_be_interrupted_at_once():
    box = Box(COUNT)
    words = [Draft(0, 2, "No, wait."), Transcript(0, 2, "No, wait.", 0.9)]
    seen, _ = await run(box, *over(box, *words, *box.heard(0.3), *box.heard(0.2, 0.9)))
    assert holds(seen) == [(1, True), (1, False), (2, True), (2, False)]


async def test_a_hold_that_was_over_before_word_of_it_came_is_not_told():
    seen, _ = await run(Voice(pace=0.02), Transcript(9, 1, "hello", 0.9), 0.03, Held(20, 0, True), Held(30, 0, False))
    assert holds(seen) == []


async def test_stop_ends_the_answer_as_soon_as_it_is_heard_and_nothing_is_said():
    box = Box(COUNT)
    heard = [Draft(0, 2, "Stop."), *box.heard(0), Transcript(0, 2, "Stop!", 0.9)]
    then = [Transcript(0, 3, "and now?", 0.9)]
    seen, conversation = await run(box, *over(box, *heard), *then)
    assert box.asked == ["count", "and now?"]
    assert answers(seen)[0][2] == "interrupted"
    ended = next(n for n, event in enumerate(seen) if isinstance(event, Answered))
    assert ended < next(n for n, event in enumerate(seen) if isinstance(event, NoSpeech))
    assert whys(seen) == ["stop"]
    assert texts(conversation)[0] == ("user", "count")
    assert ("user", "Stop!") not in texts(conversation)


async def test_stop_while_nothing_is_said_is_silently_done():
    voice = Voice()
    seen, conversation = await run(voice, SpeechStarted(0, 1), Draft(9, 1, "Stop."), Transcript(9, 1, "Stop.", 0.9))
    assert voice.asked == []
    assert whys(seen) == ["stop"]
    assert answers(seen) == []
    assert conversation.messages == []


@pytest.mark.parametrize("ends", [Transcript(60, 2, "Stop.", 0.9), Woken(60, 0, "okay-nabu", 40, 0.9, 0.5)])
async def test_a_question_that_was_given_up_before_its_answer_is_not_joined_to_the_next(ends):
    voice = Voice(pace=0.05)
    given = [Transcript(9, 1, "first", 0.9), 0.02, SpeechStarted(50, 2), ends, Transcript(99, 3, "second", 0.9)]
    seen, conversation = await run(voice, *given)
    assert voice.asked == ["first", "second"]
    assert [(turn, reason) for turn, _, reason in answers(seen)] == [(1, "interrupted"), (3, "complete")]
    assert texts(conversation)[0] == ("user", "first")


async def test_the_wake_word_ends_an_answer_at_once():
    box = Box(COUNT)
    steps = [ASK, *box.heard(0.35), Woken(box.now, 0, "okay-nabu", 0, 0.9, 0.5), *box.heard(1.0)]
    seen, _ = await run(box, *steps)
    assert [reason for _, _, reason in answers(seen)] == ["interrupted"]
    assert np.count_nonzero(box.put_out) < 0.6 * RATE


async def test_what_the_basement_tells_passes_through():
    box = Box(COUNT)
    told = [Muted(0, 0, True), SoundLost(0, 0, "unplugged", "it is gone", "plug it in")]
    seen, _ = await run(box, *over(box, *told))
    assert [event for event in seen if isinstance(event, Muted | SoundLost)] == told
    assert [reason for _, _, reason in answers(seen)] == ["complete"]


async def test_the_answers_own_words_are_no_turn():
    box = Box(COUNT)
    echo = [Partial(0, 2, "one two", ""), Draft(0, 2, "one two."), Transcript(0, 2, "One, two.", 0.9)]
    seen, _ = await run(box, *over(box, *echo, *box.heard(0.1), *box.heard(0.2, 0.9)))
    assert box.asked == ["count"]
    assert whys(seen) == ["own voice"]
    assert holds(seen) == [(1, True), (1, False)]
    assert answers(seen) == [(1, COUNT.strip(), "complete")]


async def test_the_word_that_was_cut_by_the_hold_is_the_answers_too():
    box = Box(COUNT)
    seen, _ = await run(box, *over(box, Transcript(0, 2, "two three four", 0.9)))
    assert box.played[:3] == ["one", "two", "three"]
    assert whys(seen) == ["own voice"]


@pytest.mark.parametrize(("doubt", "asked"), [(0.1, ["count"]), (0.0, ["count", "Two?"])])
async def test_a_single_word_of_the_answer_is_an_echo_only_in_doubt(doubt, asked):
    box = Box(COUNT)
    await run(box, *over(box, Transcript(0, 2, "Two?", 0.9), doubt=doubt))
    assert box.asked == asked


async def test_words_that_the_answer_held_long_ago_are_the_users():
    box = Box(" two four" + 20 * " six")
    steps = [ASK, *box.heard(1.8), *box.heard(0.15, 0.9), SpeechStarted(box.now - FRAME, 2), *box.heard(0.15, 0.9)]
    await run(box, *steps, Draft(0, 2, "two four"), Transcript(0, 2, "two four", 0.9), *box.heard(1.0))
    assert box.asked == ["count", "two four"]


async def test_an_echo_as_the_first_word_begins_does_not_cost_the_answer():
    box = Box(COUNT)
    steps = [ASK, *box.heard(0.1), SpeechStarted(box.now, 2), *box.heard(0.3, 0.9, 1.0)]
    seen, _ = await run(box, *steps, NoSpeech(0, 2, "no speech"), *box.heard(2.0))
    assert holds(seen) == []
    assert answers(seen) == [(1, COUNT.strip(), "complete")]


async def test_a_failure_to_hear_what_was_said_over_an_answer_is_told():
    box = Box(COUNT)
    failure = failed(0, 2, "hear", DeadlineFault("hear", 1.0))
    seen, _ = await run(box, *over(box, failure))
    assert [reason for _, _, reason in answers(seen)] == ["interrupted"]
    assert "".join(box.played).endswith(failure.cue.split()[-1])


async def test_a_cue_is_interrupted_like_an_answer():
    box = Box(COUNT)
    failure = failed(0, 1, "hear", DeadlineFault("hear", 1.0))
    steps = [failure, *box.heard(0.25), SpeechStarted(box.now, 2), *box.heard(0.3, 0.9)]
    seen, _ = await run(box, *steps, Draft(0, 2, "Go on then."), Transcript(0, 2, "Go on then.", 0.9), *box.heard(1.0))
    assert answers(seen) == [(2, COUNT.strip(), "complete")]
    assert failure.cue.split()[-1] not in box.played


async def test_a_loudspeaker_that_is_gone_is_asked_no_more_than_once_for_a_cue():
    voice, tried = Voice(), []

    def broken(spoken: Spoken) -> Stage:
        async def stage(events: Events) -> Events:
            async for event in events:
                if isinstance(event, Speech):
                    tried.append(event)
                    raise DeviceFault("the loudspeaker has stopped taking sound")
                yield event

        return stage

    voice.mouth = broken
    seen, _ = await run(voice, Transcript(9, 1, "hello", 0.9), 0.05)
    assert len(tried) == 2
    assert [reason for _, _, reason in answers(seen)] == ["failed"]


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("length", range(28, 36))
async def test_an_answer_that_ends_as_it_is_stopped_is_reported_once(length, before):
    """The watcher is so slow that the report itself has to wait, at one of these lengths."""
    voice, conversation = Voice(reply="word " * length), Conversation()
    steps = [*before * [SpeechPaused(5, 1)], Transcript(9, 1, "go", 0.9), 0.05, Transcript(50, 2, "Stop.", 0.9)]
    async with line(script(steps), conversing(voice, conversation), depth=1) as events:
        await asyncio.sleep(0.1)
        seen = [event async for event in events]
    assert len(answers(seen)) == 1
    assert len(conversation.messages) == 2


# --- nothing is stuck ------------------------------------------------------------------------------------------------

TEXTS = ["uh-huh", "stop", "yes", "what about tomorrow", "one two three", "three four", ""]


@st.composite
def turns(draw: st.DrawFn) -> list[tuple[str, int, str, float]]:
    """(what, turn, text, number) in any order that a listening line may bring, and in some that it may not."""
    what = ["started", "partial", "paused", "resumed", "draft", "transcript", "nospeech", "failed", "woken", "muted"]
    steps, turn = [], 1
    for kind in draw(st.lists(st.sampled_from([*what, "voice", "voice", "silence", "silence"]), max_size=40)):
        steps.append((kind, turn, draw(st.sampled_from(TEXTS)), draw(st.sampled_from([0.05, 0.2, 0.6]))))
        turn += kind in ("transcript", "nospeech", "failed")
    return steps


def event(kind: str, turn: int, text: str, box: Box) -> Event:
    now = box.now
    match kind:
        case "started":
            return SpeechStarted(now, turn)
        case "partial":
            return Partial(now, turn, text, "")
        case "paused":
            return SpeechPaused(now, turn)
        case "resumed":
            return SpeechResumed(now, turn)
        case "draft":
            return Draft(now, turn, text or "what")
        case "transcript":
            return Transcript(now, turn, text or "what", 0.9)
        case "nospeech":
            return NoSpeech(now, turn, "no speech")
        case "failed":
            return failed(now, turn, "hear", DeadlineFault("hear", 1.0))
        case "woken":
            return Woken(now, 0, "okay-nabu", now, 0.9, 0.5)
        case _:
            return Muted(now, 0, True)


@given(turns(), st.sampled_from(["one two three four five", "is it three?", ""]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_whatever_comes_it_ends_idle_with_one_answer_per_turn(steps, reply, broken):
    box = Box(reply, fails=ModelFault("broken") if broken else None)

    def given_steps() -> Iterable[Event]:
        for kind, turn, text, number in steps:
            if kind in ("voice", "silence"):
                yield from box.heard(number, 0.9 if kind == "voice" else 0.0, doubt=0.2)
            else:
                yield event(kind, turn, text, box)

    seen, conversation = asyncio.run(run(box, *given_steps()))
    assert not box.player.held
    assert box.player.pending == 0
    reported = [turn for turn, _, _ in answers(seen)]
    assert len(reported) == len(set(reported))
    confirmed = {event.turn for event in seen if isinstance(event, Transcript)}
    assert confirmed <= set(reported)
    ended = [event.turn for event in seen if isinstance(event, Transcript | NoSpeech)]
    assert ended == [turn for kind, turn, _, _ in steps if kind in ("transcript", "nospeech")]
    on = False
    for moment in seen:
        if isinstance(moment, Held):
            assert moment.on != on
            on = moment.on
    assert not on
    assert sum(message.role == "user" for message in conversation.messages) <= len(reported)


# --- what the box has to say of itself ----------------------------------------------------------------------------


def rang(id: int = 1, text: str = "Your tea timer is done.", *, on: bool = True) -> Rang:
    return Rang(5, 0, id, "timer", text, on)


async def test_a_timer_is_told_when_nobody_speaks():
    voice = Voice()
    await run(voice, rang(), 0.05)
    assert voice.prepared == ["Your tea timer is done."]


async def test_a_timer_waits_for_the_users_turn_and_its_answer():
    voice = Voice()
    await run(voice, SpeechStarted(0, 1), rang(), 0.02, Draft(9, 1, "hello"), Transcript(9, 1, "hello", 0.9), 0.1)
    assert voice.prepared == ["one", "two", "three", "Your tea timer is done."]


async def test_two_that_are_due_together_are_both_told():
    voice = Voice()
    await run(voice, rang(1, "one is done"), rang(2, "two is done"), 0.1)
    assert voice.prepared == ["one is done", "two is done"]


async def test_what_was_switched_off_is_not_told_any_more():
    voice = Voice()
    await run(voice, SpeechStarted(0, 1), rang(), rang(on=False), NoSpeech(9, 1, "no speech"), 0.05)
    assert voice.prepared == []


async def test_what_was_done_is_not_done_again_when_the_user_goes_on():
    """The answer is left before anything of it is heard: its words are joined to the next only if nothing was done."""

    class Doer(Voice):
        @property
        def answering(self) -> Answering:
            def write(answer: Answer) -> tuple[Stage, ...]:
                answer.acted = True
                return (self.write,)

            return Answering(write, (self.say,), self.mouth)

    voice = Doer(pace=0.3)
    steps = [Transcript(9, 1, "Set a timer", 0.9), 0.02, SpeechStarted(50, 2), Draft(90, 2, "please")]
    await run(voice, *steps, Transcript(90, 2, "please", 0.9))
    assert voice.asked == ["Set a timer", "please"]
