"""Attention: when the box listens. Sound goes on to endpointing while it attends, and stops here while it does not.

A wake word, a button or the API opens; the wait for a voice, the turn, its answer and the time for a follow-up question
keep open; patience that has run out, or the closed microphone, ends it. Time is counted in samples.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from appliance.errors import Fault
from appliance.events import (
    Answered,
    Attending,
    Event,
    Failed,
    Heard,
    Held,
    Muted,
    NoSpeech,
    Phrase,
    Played,
    Rang,
    SpeechStarted,
    Token,
    Transcript,
    Woken,
)
from appliance.stream import Events, Stage
from appliance.telemetry import log
from appliance.voice.address import ALONE
from appliance.voice.recent import Recent
from firmware.frame import RATE, Pcm

MEMORY = 3 * RATE
"""Samples from before the wake word was noticed that are kept."""

LEAD = 3 * RATE // 25
"""Samples in front of a wake word's estimated end from which on sound is passed. Where the order follows without a gap,
recognition is whole if the sound begins between the word's true end and 100 ms before it, and the estimate is late by
up to 120 ms. Begun 100 ms behind the end, one word of the order in five is wrong; 300 ms before it, one in thirteen:
half a word is taken for another."""

BEFORE = RATE // 2
"""Samples in front of a wake word that are verified with it."""

OVERHANG = RATE // 10
"""Samples behind a wake word's estimated end for which a voice may still be the word's, and begins no turn."""

VOICE = 0.5
"""Probability from which a frame counts as voice."""

HUSH = 3 * RATE // 10
"""Samples without voice after which nobody is about to speak."""

TAIL = 3 * RATE // 10
"""Samples for which a room still sounds after an answer."""

RUN_OUT = 2 * RATE
"""Samples of silence, at most, in which a turn may end that was being spoken when the microphone was closed."""

Call = Literal["button", "api"]

Why = Literal[
    "word", "button", "api", "always", "follow-up", "patience", "answered", "muted", "lost", "rejected", "alarm"
]
"""What `Attending.why` says. On: what opened ("alarm": something rings), or "follow-up" once an answer has been given.
Off: nobody spoke ("patience"), or nobody did after an answer ("answered"); the microphone was closed, or is away; the
recogniser did not find the wake word ("rejected"). A call while the microphone is closed or away is answered by
Attending(on=False)."""

Verify = Callable[[Woken, Pcm], Awaitable[bool]]
"""Whether the sound, int16 mono [n] at RATE, holds the wake word."""


@dataclass(frozen=True, slots=True)
class AttendRules:
    """`mode` as in the settings; seconds of waiting for a voice after a wake word (`patience_s`) and after an answer
    (`follow_up_s`); ms that a verification may take. An answer of which nothing is seen for `stall_s` has come to
    nothing: longer than any turn and any deadline."""

    mode: str = "word"
    patience_s: float = 6.0
    follow_up_s: float = 6.0
    verify_ms: int = 400
    stall_s: float = 60.0

    @property
    def patience(self) -> int:
        return round(self.patience_s * RATE)

    @property
    def follow_up(self) -> int:
        return round(self.follow_up_s * RATE)


class Attention:
    """The decisions as pure logic. `step` takes what the ears send and yields what goes on; `note` takes what comes out
    at the end of the line. After `step`, `check` is the wake word that has to be judged now, or None; the verdict goes
    to `judge`, and until then sound is kept.

    `on` says whether the box attends, and `why`.
    """

    def __init__(self, rules: AttendRules) -> None:
        self.rules = rules
        self._calls: deque[Call] = deque(maxlen=4)
        self.begin()

    def begin(self) -> None:
        """A new line: nothing has been heard yet, and nobody has called."""
        self._calls.clear()
        self.on = False
        self.why: Why | None = None
        self.check: Woken | None = None
        self._news: Why | None = None
        self._pending: Woken | None = None
        self._muted, self._live = False, True
        self._now = self._passed = self._deaf = self._since = 0
        """Samples up to which there was sound, and it was passed on; where the microphone was closed; where the pending
        word was noticed."""
        self._word = -MEMORY
        """The end of the last wake word."""
        self._voice = self._sign = self._until = self._doubted = self._dry = 0
        """Samples at which there was a voice last, and a sign from below; to which is waited; of the last echo that may
        be heard, and up to which it may be."""
        self._ends: Why = "patience"
        self._turn = self._speaking = self._asked = 0
        """The latest turn, the one that is being spoken or recognised, and the one that is being answered (0: none)."""
        self._ringing: set[int] = set()
        self._forget()

    def wake(self, word: Call = "button") -> None:
        """Opens as a wake word does, or begins the wait anew. Any thread may call it."""
        self._calls.append(word)

    async def watch(self, events: Events) -> Events:
        """The stage at the end of the line: passes everything on."""
        async for event in events:
            self.note(event)
            yield event

    # --- from the ears ------------------------------------------------------------------------------------------------

    def step(self, event: Event) -> Iterator[Event]:
        self.check = None
        match event:
            case Heard():
                yield from self._hear(event)
            case Woken(role="wake"):
                self._notice(event)
            case Muted():
                self._muted = event.on
                yield event
            case _:
                yield event

    def judge(self, confirmed: bool) -> Iterator[Event]:
        """Takes the verdict on the wake word that `step` asked about."""
        woken, self._pending = self._pending, None
        if woken is None:
            return
        if confirmed:
            yield from self._open(woken, "word")
        elif not self.on:
            yield Attending(self._now, self._turn, False, "rejected")

    @property
    def overdue(self) -> bool:
        """Whether the verdict is awaited for as long as it may take."""
        return self._pending is not None and self._now - self._since >= self.rules.verify_ms * RATE // 1000

    def sound(self, woken: Woken) -> Pcm:
        """The wake word as it was heard, and what came before: it may begin earlier than is thought. What comes behind
        is left out: a recogniser joins it to a name that it does not know."""
        frames = [heard.samples for heard in self._recent.since(woken.begin - BEFORE) if heard.at < woken.at]
        return np.concatenate([np.zeros(0, np.int16), *frames])

    def _notice(self, woken: Woken) -> None:
        """Two words that are heard in the same sound are one call."""
        if self.rules.mode == "button" or woken.begin < self._word or not self._live:
            return
        self._word, self._since = woken.at, self._now
        self._pending = self.check = woken

    def _hear(self, heard: Heard) -> Iterator[Event]:
        self._now, self._live = heard.at + len(heard.samples), heard.live
        if heard.live:
            self._deaf = self._now
            self._recent.push(heard)
        else:
            heard = replace(heard, speech=0.0)
            self._pending = None
            self._forget()
        if heard.speech >= VOICE:
            self._voice = self._now
        if heard.doubt >= 0.5:
            self._doubted = self._now
        if self.rules.mode == "always" and heard.live and not self.on:
            yield from self._attend("always")
        if self._ringing and heard.live and not self.on:
            self._wait(self.rules.patience, "patience")
            yield from self._attend("alarm")
        yield from self._answer_calls(heard)
        if self.on and heard.at >= self._passed:
            yield from self._pass(heard)

    def _answer_calls(self, heard: Heard) -> Iterator[Event]:
        while self._calls:
            word = self._calls.popleft()
            if not heard.live:
                if not self.on:
                    yield Attending(self._now, self._turn, False, "muted" if self._muted else "lost")
                continue
            at = self._pending.at if self._pending else heard.at
            self._pending = None
            yield from self._open(Woken(at, 0, word, at, 1.0, 0.0), word)

    def _open(self, woken: Woken, why: Why) -> Iterator[Event]:
        """Attends to what follows the word; the answer that is on its way counts no more."""
        yield woken
        self._asked = 0
        self._wait(self.rules.patience, "patience")
        opened = not self.on
        yield from self._attend(why)
        if not opened:
            return
        for heard in self._recent.since(woken.at - LEAD):
            if heard.at >= self._passed:
                word = why == "word" and heard.at < woken.at + OVERHANG
                yield from self._pass(replace(heard, speech=0.0) if word else heard)

    def _attend(self, why: Why) -> Iterator[Event]:
        self._news = None
        if self.rules.mode == "always":
            why = "always"
        if not self.on:
            self._sign = self._now
        if self.why != why:
            self.on, self.why = True, why
            yield Attending(self._now, self._turn, True, why)

    def _pass(self, heard: Heard) -> Iterator[Event]:
        if self._news:
            yield from self._attend(self._news)
        self._passed = heard.at + len(heard.samples)
        yield replace(heard, speech=0.0) if self._passed <= self._dry and not self._speaking else heard
        if why := self._over(heard.live):
            yield from self._close(why)

    def _over(self, live: bool) -> Why | None:
        """Why attention ends now, if it does. Who is about to speak, or speaks, is not cut short."""
        if not live and self._muted:
            return None if self._speaking and self._now - self._deaf < RUN_OUT else "muted"
        if self.rules.mode == "always" or self._ringing:
            return None
        if (self._speaking or self._asked) and self._now - self._sign < self.rules.stall_s * RATE:
            return None
        if self._now < self._until:
            return None
        if self._now - self._voice < HUSH and self._now < self._until + self.rules.patience:
            return None
        return self._ends if live else "lost"

    def _close(self, why: Why) -> Iterator[Event]:
        self.on, self.why, self._news = False, None, None
        self._speaking = self._asked = self._until = 0
        yield Attending(self._now, self._turn, False, why)

    def _wait(self, samples: int, ends: Why) -> None:
        if self._now + samples >= self._until:
            self._until, self._ends = self._now + samples, ends

    def _forget(self) -> None:
        self._recent = Recent(MEMORY + self.rules.verify_ms * RATE // 1000)

    # --- from the end of the line -------------------------------------------------------------------------------------

    def note(self, event: Event) -> None:
        self._turn = max(self._turn, event.turn)
        if isinstance(event, Rang):
            self._ring(event)
        if not self.on:
            return
        self._sign = self._now
        match event:
            case SpeechStarted():
                self._speaking = event.turn
            case Transcript():
                self._settle(event)
                self._asked = event.turn
            case NoSpeech():
                self._settle(event)
                if event.why == ALONE:
                    self._wait(self.rules.patience, "patience")
            case Failed():
                self._settle(event)
                self._wait(self.rules.patience, self._ends)
            case Token() | Phrase() | Played() | Held():
                self._wait(self.rules.patience, self._ends)
            case Answered():
                self._answered(event)

    def _ring(self, rang: Rang) -> None:
        """While something rings the user need not call the box to say "stop"."""
        self._ringing -= {rang.id}
        if rang.on:
            self._ringing.add(rang.id)

    def _settle(self, event: Event) -> None:
        if event.turn >= self._speaking:
            self._speaking = 0

    def _answered(self, event: Answered) -> None:
        """The room's tail is no turn: where an echo could be heard, a voice counts again when the room is quiet."""
        if self._doubted > self._now - TAIL:
            self._dry = self._now + TAIL
        if event.turn >= self._asked > 0:
            self._asked = 0
            if event.reason != "interrupted":
                self._until = 0
        self._wait(self.rules.follow_up, "answered")
        if self.rules.follow_up and not self._asked:
            self._news = "follow-up"


def attend(attention: Attention, verify: Verify | None = None) -> Stage:
    """Consumes Heard and Woken while the box does not attend; adds Attending, and a Woken for each call.

    With `verify` a wake word counts when that says so, or has not said anything in time, or fails.
    """

    async def stage(events: Events) -> Events:
        attention.begin()
        verdict: asyncio.Task[bool] | None = None
        try:
            async for event in events:
                if verdict and (verdict.done() or attention.overdue):
                    confirmed, verdict = await verdict, None
                    for found in attention.judge(confirmed):
                        yield found
                for found in attention.step(event):
                    yield found
                if (woken := attention.check) and verify:
                    _void(verdict)
                    verdict = asyncio.create_task(_verified(verify, woken, attention))
                elif woken:
                    for found in attention.judge(True):
                        yield found
            if verdict:
                for found in attention.judge(await verdict):
                    yield found
        finally:
            _void(verdict)

    return stage


async def _verified(verify: Verify, woken: Woken, attention: Attention) -> bool:
    """The verdict; without one in time the wake word counts."""
    try:
        async with asyncio.timeout(attention.rules.verify_ms / 1000):
            return await verify(woken, attention.sound(woken))
    except TimeoutError:
        return True
    except Fault as error:
        log("wake word not verified", word=woken.word, reason=str(error))
        return True


def _void(task: asyncio.Task[bool] | None) -> None:
    if task is not None:
        task.cancel()
