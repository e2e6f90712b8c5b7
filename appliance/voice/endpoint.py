"""Endpointing: when the user's turn begins, when it may have ended, and when it has.

Three signals decide, cheapest first: voice detection with hysteresis says that there is silence; smart-turn, asked at
the first check and again as the silence grows, says whether the words sound finished; a hold ends what never sounds
finished, and a cap what never pauses. Time is counted in samples.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from appliance.events import Attending, Event, Heard, Mark, SpeechEnded, SpeechPaused, SpeechResumed, SpeechStarted
from appliance.runtime.turnend import SPAN
from appliance.runtime.worker import Worker
from appliance.stream import Events, Stage
from appliance.voice.deadline import mark
from appliance.voice.recent import Arrivals, Recent
from firmware.frame import RATE, Wave
from firmware.vad import Hysteresis


class TurnEnd(Protocol):
    def probability(self, wave: Wave) -> float: ...


@dataclass(frozen=True, slots=True)
class EndpointRules:
    """Milliseconds of silence, but for `cap_s` (seconds of speech) and the probability thresholds."""

    start_threshold: float = 0.5
    stop_threshold: float = 0.35
    min_speech_ms: int = 90
    preroll_ms: int = 300
    pause_ms: int = 40
    check_ms: int = 200
    recheck_ms: int = 200
    hold_ms: int = 1200
    complete_threshold: float = 0.5
    cap_s: float = 30.0

    @property
    def checks(self) -> tuple[int, ...]:
        """The silences, in samples, at which the end-of-turn model is asked."""
        return tuple(ms * RATE // 1000 for ms in range(self.check_ms, self.hold_ms, self.recheck_ms))

    def threshold(self, silence: int) -> float:
        """How finished the words must sound: what was doubtful at the first check is believed as the silence grows."""
        first, hold = self.check_ms * RATE // 1000, self.hold_ms * RATE // 1000
        waited = (silence - first) / max(1, hold - first)
        return self.complete_threshold * (1.0 - min(1.0, max(0.0, waited)))


class Endpointer:
    """The decisions as pure logic: fed with probabilities and sample counts, it says which events follow.

    `step` yields the events of one frame. After it, `check` is the silence (samples) at which the end-of-turn model has
    to be asked now, or 0; its answer goes to `judge`.
    """

    def __init__(self, rules: EndpointRules) -> None:
        self._rules = rules
        self._hysteresis = Hysteresis(
            start=rules.start_threshold, stop=rules.stop_threshold, min_speech=rules.min_speech_ms * RATE // 1000
        )
        self.turn = 0
        self._open = False
        self._paused = False
        self._started = 0
        self._now = 0
        self._due: list[int] = []
        self.check = 0

    def step(self, heard: Heard) -> Iterator[Event]:
        self._now = heard.at + len(heard.samples)
        self.check = 0
        begun = self._hysteresis.step(heard.speech, len(heard.samples))
        if not self._open:
            if not begun:
                return
            self._open, self._paused = True, False
            self.turn += 1
            preroll = self._rules.preroll_ms * RATE // 1000
            self._started = max(0, self._now - self._hysteresis.speech - preroll)
            yield SpeechStarted(self._started, self.turn)
        silence = self._hysteresis.silence
        if self._paused and silence == 0:
            self._paused = False
            yield SpeechResumed(self._now, self.turn)
        if not self._paused and silence >= self._rules.pause_ms * RATE // 1000:
            self._paused = True
            self._due = list(self._rules.checks)
            yield SpeechPaused(self._now - silence, self.turn)
        if self._now - self._started >= self._rules.cap_s * RATE:
            yield self._end("cap")
        elif silence >= self._rules.hold_ms * RATE // 1000:
            yield self._end("hold")
        elif self._paused and self._due and silence >= self._due[0]:
            self.check = self._due.pop(0)

    def judge(self, probability: float) -> Iterator[Event]:
        """Takes the end-of-turn model's answer to the check that `step` asked for."""
        if self._open and probability >= self._rules.threshold(self.check):
            yield self._end("complete")

    def flush(self) -> Iterator[Event]:
        """The sound has ended, or goes on elsewhere: an open turn ends with it."""
        if self._open:
            yield self._end("flush")
        self._hysteresis.reset()

    def _end(self, reason: Literal["complete", "hold", "cap", "flush"]) -> Event:
        self._open = False
        end = self._now - self._hysteresis.silence
        self._hysteresis.reset()
        return SpeechEnded(end, self.turn, self._now, reason)


def endpoint(rules: EndpointRules, model: TurnEnd, worker: Worker) -> Stage:
    """Consumes nothing of Heard but its meaning: frames go on to recognition, with the turn's events among them.

    The end-of-turn model is asked as soon as there is a pause, on the sound so far and the silence that would follow
    until the first check: its answer is there when the check is due, and void if the user goes on before. No sound
    comes while the box does not attend: an open turn ends with its attention.
    """

    async def stage(events: Events) -> Events:
        logic, recent, arrivals = Endpointer(rules), Recent(SPAN), Arrivals()
        early: asyncio.Task[float] | None = None
        try:
            async for event in events:
                if isinstance(event, Attending) and not event.on:
                    _void(early)
                    recent, early = Recent(SPAN), None
                    for found in logic.flush():
                        yield found
                if not isinstance(event, Heard):
                    yield event
                    continue
                recent.push(event)
                arrivals.push(event)
                yield replace(event, turn=logic.turn)
                for found in logic.step(event):
                    yield found
                    match found:
                        case SpeechPaused():
                            yield Mark(found.at, found.turn, "endpoint", "speech end", arrivals.wall(found.at))
                            pad = rules.check_ms * RATE // 1000 - (event.at + len(event.samples) - found.at)
                            early = asyncio.create_task(worker.call(model.probability, recent.wave(max(0, pad))))
                        case SpeechResumed():
                            _void(early)
                            early = None
                        case SpeechEnded():
                            yield mark(found.decided, found.turn, "endpoint", "decided")
                if logic.check:
                    if early is not None:
                        probability, early = await early, None
                    else:
                        probability = await worker.call(model.probability, recent.wave())
                    for found in logic.judge(probability):
                        yield found
                        yield mark(event.at, found.turn, "endpoint", "decided")
            for found in logic.flush():
                yield found
        finally:
            _void(early)

    return stage


def _void(task: asyncio.Task[float] | None) -> None:
    if task is not None:
        task.cancel()
