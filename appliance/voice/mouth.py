"""Playback: speech to the loudspeaker, and an account of what of it has really been heard."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Literal

from appliance.errors import DeadlineFault
from appliance.events import Event, Phrase, Played, Speech
from appliance.runtime.worker import Worker
from appliance.stream import Events, Stage
from appliance.voice.deadline import mark
from firmware.frame import RATE
from firmware.mixer import Player

TICK = 0.05
"""Seconds between two looks at what has been played."""

SLACK = 5.0
"""Seconds that playing may take beyond the length of what is played."""

HELD = 40.0
"""Seconds for which it may be held meanwhile: more than the longest turn that is spoken over it."""


@dataclass(slots=True)
class Spoken:
    """What was said of an answer: phrases that were heard to their end, and the words of the one that was not."""

    phrases: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    phrase: str = ""
    """The phrase that sounds now, or sounded last; empty before the first sound."""

    @property
    def text(self) -> str:
        return " ".join(["".join(self.phrases).strip(), *self.words]).strip()

    def ahead(self, count: int) -> list[str]:
        """The next words of the phrase that sounds: the first of them may have begun. What is written as a figure
        counts as one word, however many are spoken."""
        return self.phrase.split()[len(self.words) :][:count]

    def begin(self, phrase: str) -> None:
        self.phrase = phrase

    def hear(self, word: str) -> None:
        self.words.append(word)

    def end(self, phrase: str) -> None:
        self.phrases.append(phrase)
        self.words.clear()


class Ledger:
    """Places words on the loudspeaker's count of samples (at RATE), and crosses them off as they are played."""

    def __init__(self, spoken: Spoken, played: int) -> None:
        self._spoken = spoken
        self._queued = float(played)
        self._phrase = ""
        self._due: deque[tuple[float, Literal["begin", "word", "end"], str]] = deque()

    def phrase(self, text: str) -> None:
        self._phrase = text

    def queue(self, speech: Speech) -> None:
        scale = RATE / speech.rate
        self._due.append((self._queued + 2, "begin", self._phrase))
        self._due.extend((self._queued + until * scale, "word", word) for word, until in speech.words)
        self._queued += len(speech.samples) * scale
        if speech.last:
            self._due.append((self._queued, "end", self._phrase))

    def heard(self, played: int) -> tuple[str, ...]:
        """The words that have been heard whole since the last look, at a count of `played`."""
        words = []
        while self._due and self._due[0][0] <= played + 1:  # resampling may round one sample away
            _, what, text = self._due.popleft()
            match what:
                case "begin":
                    self._spoken.begin(text)
                case "word":
                    self._spoken.hear(text)
                    words.append(text)
                case "end":
                    self._spoken.end(text)
        return tuple(words)


class Patience:
    """How long playing may still take, in seconds. Time for which the player is held counts apart."""

    def __init__(self, player: Player, seconds: float) -> None:
        self._player = player
        self._seconds = self._left = seconds
        self._held = HELD

    def spend(self, seconds: float) -> None:
        """Raises DeadlineFault when nothing is left."""
        if self._player.held:
            self._held -= seconds
        else:
            self._left -= seconds
        if min(self._left, self._held) < 0:
            raise DeadlineFault("mouth", self._seconds)


def mouth(player: Player, worker: Worker, spoken: Spoken) -> Stage:
    """Consumes Speech; adds Played. However the stage is left, nothing more is heard behind it: what was not played by
    then is flushed, and `spoken` holds what was."""

    async def stage(events: Events) -> Events:
        ledger = Ledger(spoken, player.played + player.pending)
        at = turn = 0
        first, drained = True, False

        async def during(work: Awaitable[None], seconds: float) -> AsyncGenerator[Event, None]:
            """What is heard while the work goes on, which may take `seconds`."""
            patience, task = Patience(player, seconds), asyncio.ensure_future(work)
            try:
                while not task.done():
                    before = time.monotonic()
                    await asyncio.wait([task], timeout=TICK)
                    if words := ledger.heard(player.played):
                        yield Played(at, turn, words)
                    patience.spend(time.monotonic() - before)
                await task
            finally:
                task.cancel()

        try:
            async for event in events:
                at, turn = event.at, event.turn
                if isinstance(event, Phrase):
                    ledger.phrase(event.text)
                if not isinstance(event, Speech):
                    yield event
                    continue
                ledger.queue(event)
                work = worker.call(player.play, event.samples, event.rate)
                async with aclosing(during(work, len(event.samples) / event.rate + SLACK)) as heard:
                    async for played in heard:
                        yield played
                if first:
                    yield mark(at, turn, "mouth", "first sound")
                    first = False
            async with aclosing(during(worker.call(player.drain), player.pending / RATE + SLACK)) as heard:
                async for played in heard:
                    yield played
            drained = True
        finally:
            if not drained:
                player.flush()
            ledger.heard(player.played)

    return stage
