"""Playback: speech to the loudspeaker, and an account of what of it has really been heard."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from appliance.events import Phrase, Played, Speech
from appliance.runtime.worker import Worker
from appliance.stream import Events, Stage
from appliance.voice.deadline import mark, within
from firmware.frame import RATE
from firmware.mixer import Player

TICK = 0.05
"""Seconds between two looks at what has been played."""

SLACK = 5.0
"""Seconds that playing may take beyond the length of what is played."""


@dataclass(slots=True)
class Spoken:
    """What was said of an answer: phrases that were heard to their end, and the words of the one that was not."""

    phrases: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(["".join(self.phrases).strip(), *self.words]).strip()

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
        self._due: deque[tuple[float, str, bool]] = deque()

    def phrase(self, text: str) -> None:
        self._phrase = text

    def queue(self, speech: Speech) -> None:
        scale = RATE / speech.rate
        for word, until in speech.words:
            self._due.append((self._queued + until * scale, word, False))
        self._queued += len(speech.samples) * scale
        if speech.last:
            self._due.append((self._queued, self._phrase, True))

    def heard(self, played: int) -> tuple[str, ...]:
        """The words that have been heard whole since the last look, at a count of `played`."""
        words = []
        while self._due and self._due[0][0] <= played + 1:  # resampling may round one sample away
            _, text, ends = self._due.popleft()
            if ends:
                self._spoken.end(text)
            else:
                self._spoken.hear(text)
                words.append(text)
        return tuple(words)


def mouth(player: Player, worker: Worker, spoken: Spoken) -> Stage:
    """Consumes Speech; adds Played. However the stage is left, nothing more is heard behind it: what was not played by
    then is flushed, and `spoken` holds what was."""

    async def stage(events: Events) -> Events:
        ledger = Ledger(spoken, player.played + player.pending)
        at = turn = 0
        first, drained = True, False
        try:
            async for event in events:
                at, turn = event.at, event.turn
                if isinstance(event, Phrase):
                    ledger.phrase(event.text)
                if not isinstance(event, Speech):
                    yield event
                    continue
                ledger.queue(event)
                async with within("mouth", len(event.samples) / event.rate + SLACK):
                    await worker.call(player.play, event.samples, event.rate)
                if first:
                    yield mark(at, turn, "mouth", "first sound")
                    first = False
                if words := ledger.heard(player.played):
                    yield Played(at, turn, words)
            async with within("mouth", player.pending / RATE + SLACK):
                drain = asyncio.ensure_future(worker.call(player.drain))
                while not drain.done():
                    await asyncio.wait([drain], timeout=TICK)
                    if words := ledger.heard(player.played):
                        yield Played(at, turn, words)
                await drain
            drained = True
        finally:
            if not drained:
                player.flush()
            ledger.heard(player.played)

    return stage
