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
from appliance.voice.turn import Answering
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
        return Answering((self.write,), (self.say,), self.mouth)


class Box(Voice):
    """The same with a loudspeaker that takes a frame for each frame that is heard, and of each word 100 ms."""

    def __init__(self, reply: str, fails: Exception | None = None) -> None:
        super().__init__(reply, fails=fails)
        self.mixer = Mixer(RATE)
        self.player = self.mixer.player("speech", capacity=600)
        self.floor = Floor(self.player, RULES)
        self.out: list[np.ndarray] = []
        self.now = 0

    async def say(self, events: Events) -> Events:
        async for event in events:
            yield event
            if isinstance(event, Phrase):
                self.prepared.append(event.spoken)
                for word in event.spoken.split():
                    sound = np.full(RATE // 10, 0.1, np.float32)
                    yield Speech(event.at, event.turn, sound, RATE, ((word, len(sound)),), word == event.spoken.split()[-1])

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
        for _ in range(round(100 * seconds)):
            self.out.append(self.mixer.take(FRAME))
            yield Heard(self.now, 0, np.zeros(FRAME, np.int16), speech, True, doubt)
            self.now += FRAME


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
    conversation = Conversation()
    stages = (bargein(voice.floor),) if isinstance(voice, Box) else ()
    async with line(script(steps), *stages, conversing(voice, conversation)) as events:
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
