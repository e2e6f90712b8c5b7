"""Recognition as a stage: a draft at each pause, the transcript when the turn ends, and a failure that is told."""

from collections.abc import AsyncIterator, Iterable
from itertools import pairwise

import numpy as np
import pytest

from appliance.errors import ModelFault
from appliance.events import (
    Draft,
    Event,
    Failed,
    Heard,
    Mark,
    NoSpeech,
    Partial,
    SpeechEnded,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    Transcript,
)
from appliance.runtime.asr import Hinted, Hints, Hypothesis, Word
from appliance.runtime.model import Steps
from appliance.runtime.worker import Worker
from appliance.stream import line
from appliance.voice.hear import HearRules, hear
from firmware.frame import FRAME, RATE, Wave


class Listener:
    """Hears one word for each second of sound; records what it was given."""

    def __init__(self, *, deaf: bool = False, fails: bool = False, likeness: float = -0.1) -> None:
        self.deaf, self.fails, self.likeness = deaf, fails, likeness
        self.given: list[int] = []
        self.drafts: list[tuple[int, ...]] = []

    def transcribe(
        self, wave: Wave, *, draft: tuple[int, ...] = (), language: str = "", hints: Hints | None = None
    ) -> Steps[Hypothesis]:
        self.given.append(len(wave))
        self.drafts.append(draft)
        yield
        if self.fails:
            raise ModelFault("the recogniser is broken")
        if self.deaf:
            return Hypothesis(reason="no speech")
        words = tuple(Word(f"w{n}", 0.9) for n in range(1 + len(wave) // RATE))
        text = " ".join(word.text for word in words)
        meant = tuple(hints(text)) if hints else ()
        hinted = Hinted(" ".join(meant), (), self.likeness) if meant else None
        return Hypothesis(text=text, tokens=tuple(range(len(words))), words=words, confidence=0.9, hinted=hinted)


def speech(start: float, seconds: float, chance: float = 0.9) -> list[Event]:
    first = int(start * RATE)
    count = int(seconds * RATE) // FRAME
    return [Heard(first + n * FRAME, 1, np.zeros(FRAME, np.int16), chance) for n in range(count)]


async def source(events: Iterable[Event]) -> AsyncIterator[Event]:
    for event in events:
        yield event


async def run(listener: Listener, *events: Event, partial_ms: int = 0, hints: Hints | None = None) -> list[Event]:
    worker, aside = Worker("hear"), Worker("aside")
    try:
        stage = hear(listener, worker, aside, HearRules(partial_ms=partial_ms), hints)
        async with line(source(events), stage) as heard:
            return [event async for event in heard if not isinstance(event, Mark)]
    finally:
        worker.close()
        aside.close()


def turn(*between: Event) -> list[Event]:
    return [
        *speech(0, 0.5),
        SpeechStarted(0, 1),
        *speech(0.5, 1),
        SpeechPaused(24_000, 1),
        *speech(1.5, 0.2, 0.0),
        *between,
        SpeechEnded(24_000, 1, 27_200, "complete"),
    ]


async def test_the_draft_of_the_pause_becomes_the_transcript_without_hearing_again():
    listener = Listener()
    seen = await run(listener, *turn())
    assert [type(event) for event in seen] == [SpeechStarted, SpeechPaused, Draft, SpeechEnded, Transcript]
    assert seen[-1] == Transcript(24_000, 1, "w0 w1", 0.9)
    assert listener.given == [24_000]


@pytest.mark.parametrize(("likeness", "alternatives"), [(-0.1, ("w0", "wan")), (-3.0, ())])
async def test_what_was_expected_and_is_like_the_sound_comes_along(likeness, alternatives):
    seen = await run(Listener(likeness=likeness), *turn(), hints=lambda text: ["w0", "wan"] if "w1" in text else [])
    wanted = (" ".join(alternatives),) if alternatives else ()
    assert [event.alternatives for event in seen if isinstance(event, Draft | Transcript)] == [wanted, wanted]
    assert seen[-1].text == "w0 w1"


async def test_partials_expect_nothing():
    asked = []
    await run(
        Listener(), SpeechStarted(0, 1), *speech(0, 5), partial_ms=400, hints=lambda text: asked.append(text) or ()
    )
    assert not asked


async def test_the_sound_before_the_decision_is_heard_too():
    listener = Listener()
    await run(listener, *turn())
    assert listener.given[0] == int(1.5 * RATE)


async def test_who_goes_on_is_heard_again_with_the_words_so_far_as_draft():
    listener = Listener()
    more = [SpeechResumed(27_200, 1), *speech(1.7, 1), SpeechPaused(43_200, 1)]
    seen = await run(listener, *turn(*more))
    assert [event.text for event in seen if isinstance(event, Transcript)] == ["w0 w1 w2"]
    assert listener.drafts == [(), (0, 1)]


async def test_partials_come_while_the_user_speaks_and_are_never_retracted():
    seen = await run(Listener(), SpeechStarted(0, 1), *speech(0, 5), partial_ms=400)
    committed = [event.committed for event in seen if isinstance(event, Partial)]
    assert len(committed) == 12
    assert all(after.startswith(before) for before, after in pairwise(committed))


async def test_a_pause_does_not_wait_for_a_partial():
    events = [SpeechStarted(0, 1), *speech(0, 0.45), SpeechPaused(7_200, 1), *speech(0.45, 0.5, 0.0)]
    seen = await run(Listener(), *events, SpeechEnded(7_200, 1, 15_200, "complete"), partial_ms=400)
    assert not any(isinstance(event, Partial) for event in seen)
    assert isinstance(seen[-1], Transcript)


async def test_no_partial_is_made_of_silence():
    listener = Listener()
    await run(listener, SpeechStarted(0, 1), *speech(0, 5, 0.1), partial_ms=400)
    assert listener.given == []


async def test_sound_without_words_dissolves_the_turn():
    seen = await run(Listener(deaf=True), *turn())
    assert not any(isinstance(event, Draft | Transcript) for event in seen)
    assert seen[-1] == NoSpeech(24_000, 1, "no speech")


async def test_a_turn_that_ends_without_a_pause_is_recognised_at_its_end():
    seen = await run(Listener(), SpeechStarted(0, 1), *speech(0, 2), SpeechEnded(32_000, 1, 32_000, "cap"))
    assert isinstance(seen[-1], Transcript)


async def test_a_failure_is_told_once_and_the_next_turn_is_heard():
    listener = Listener(fails=True)
    events = [*turn(), SpeechStarted(48_000, 2), *speech(3, 1), SpeechEnded(64_000, 2, 64_000, "flush")]
    seen = await run(listener, *events)
    failures = [event for event in seen if isinstance(event, Failed)]
    assert [(failure.stage, failure.kind, failure.turn) for failure in failures] == [
        ("hear", "model", 1),
        ("hear", "model", 2),
    ]


@pytest.mark.parametrize("kind", [SpeechStarted, SpeechPaused, SpeechResumed])
async def test_what_is_not_understood_passes(kind):
    assert await run(Listener(deaf=True), kind(0, 0)) == [kind(0, 0)]
