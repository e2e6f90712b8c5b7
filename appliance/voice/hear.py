"""Recognition: partial transcripts while the user speaks, a draft at each pause, the transcript when the turn ends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from appliance.errors import Fault
from appliance.events import (
    Draft,
    Event,
    Heard,
    NoSpeech,
    Partial,
    SpeechEnded,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    Transcript,
)
from appliance.runtime.asr import Agreement, Hints, Hypothesis
from appliance.runtime.model import Steps
from appliance.runtime.worker import Worker
from appliance.stream import Events, Stage
from appliance.voice.deadline import mark, within
from appliance.voice.failure import failed
from appliance.voice.recent import Recent
from firmware.frame import RATE, Pcm, Wave, to_wave


class Recogniser(Protocol):
    def transcribe(
        self, wave: Wave, *, draft: tuple[int, ...] = (), language: str = "", hints: Hints | None = None
    ) -> Steps[Hypothesis]: ...


@dataclass(frozen=True, slots=True)
class HearRules:
    """`partial_ms` of new speech between two partial transcripts (0: none), `language` of the speech (empty: detected),
    `deadline_s` for one recognition."""

    partial_ms: int = 400
    language: str = ""
    deadline_s: float = 10.0


WISHED = -1.5
"""Likeness (nats per token) below which words were wished, not heard: of 110 orders none came below -1.2."""

PATIENCE = RATE // 5
"""Samples of further sound after which a partial transcript is waited for: until then the speech goes on without it."""


@dataclass(slots=True)
class _Listening:
    """What is known of the turn that is being spoken."""

    turn: int
    frames: list[Pcm]
    size: int
    heard_at_partial: int = 0
    agreement: Agreement = field(default_factory=Agreement)
    hypothesis: Hypothesis | None = None
    current: bool = False
    """Whether `hypothesis` covers all the speech so far."""
    guess: asyncio.Task[Hypothesis] | None = None
    """The partial recognition that is under way."""

    def add(self, samples: Pcm) -> None:
        self.frames.append(samples)
        self.size += len(samples)

    @property
    def alternatives(self) -> tuple[str, ...]:
        """What the words may have been, to one who expects them."""
        hinted = self.hypothesis and self.hypothesis.hinted
        return (hinted.text,) if hinted and hinted.likeness >= WISHED else ()

    @property
    def wave(self) -> Wave:
        return to_wave(np.concatenate(self.frames))

    def give_up(self) -> None:
        """Abandons the partial recognition; what it finds or fails at is of no interest any more."""
        if self.guess:
            self.guess.add_done_callback(lambda task: task.cancelled() or task.exception())
            self.guess.cancel()
            self.guess = None


def hear(recogniser: Recogniser, worker: Worker, aside: Worker, rules: HearRules, hints: Hints | None = None) -> Stage:
    """Consumes Heard; adds Partial, Draft, Transcript and NoSpeech, and Failed where recognition failed.

    The previous hypothesis is the draft of the next recognition, so that words heard before are verified in one pass.
    Partial transcripts are made `aside` and given up at a pause, which is not to wait for them; `hints` are for what is
    made at a pause.
    """

    async def recognise(turn: _Listening, thread: Worker, hints: Hints | None = None) -> Hypothesis:
        draft = turn.hypothesis.tokens if turn.hypothesis else ()
        steps = recogniser.transcribe(turn.wave, draft=draft, language=rules.language, hints=hints)
        async with within("hear", rules.deadline_s):
            return await thread.finish(steps)

    async def partial(turn: _Listening, at: int) -> Events:
        assert turn.guess is not None
        turn.hypothesis, turn.guess = await turn.guess, None
        committed, tail = turn.agreement.update(turn.hypothesis)
        if committed or tail:
            yield Partial(at, turn.turn, committed, tail)

    async def draft(turn: _Listening, at: int) -> Events:
        yield mark(at, turn.turn, "hear", "start")
        turn.hypothesis = hypothesis = await recognise(turn, worker, hints)
        turn.current = True
        yield mark(at, turn.turn, "hear", "words")
        if hypothesis.text:
            yield Draft(at, turn.turn, hypothesis.text, turn.alternatives)

    async def transcript(turn: _Listening, event: SpeechEnded) -> Events:
        if not turn.current:
            async for made in draft(turn, event.at):
                yield made
        found = turn.hypothesis
        assert found is not None
        if found.text:
            yield Transcript(event.at, turn.turn, found.text, found.confidence, turn.alternatives)
        else:
            yield NoSpeech(event.at, turn.turn, found.reason)

    def react(turn: _Listening, event: Event) -> Events | None:
        match event:
            case SpeechPaused():
                return draft(turn, event.at)
            case SpeechEnded():
                return transcript(turn, event)
            case Heard() if turn.guess:
                if turn.size - turn.heard_at_partial >= PATIENCE:
                    return partial(turn, event.at)
            case Heard() if rules.partial_ms and event.speech >= 0.5 and not turn.current:
                if turn.size - turn.heard_at_partial >= rules.partial_ms * RATE // 1000:
                    turn.heard_at_partial = turn.size
                    turn.guess = asyncio.create_task(recognise(turn, aside))
        return None

    async def stage(events: Events) -> Events:
        recent = Recent(2 * RATE)
        turn: _Listening | None = None
        try:
            async for event in events:
                match event:
                    case Heard():
                        recent.push(event)
                        if turn:
                            turn.add(event.samples)
                    case SpeechStarted():
                        frames = [heard.samples for heard in recent.since(event.at)]
                        turn = _Listening(event.turn, frames, sum(map(len, frames)))
                    case SpeechPaused() | SpeechEnded() if turn:
                        turn.give_up()
                    case SpeechResumed() if turn:
                        turn.current = False
                if not isinstance(event, Heard):
                    yield event
                if not turn:
                    continue
                work = react(turn, event)
                if work is not None:
                    try:
                        async for made in work:
                            yield made
                    except Fault as error:
                        yield failed(event.at, turn.turn, "hear", error)
                        turn = None
                if isinstance(event, SpeechEnded):
                    turn = None
        finally:
            if turn:
                turn.give_up()

    return stage
