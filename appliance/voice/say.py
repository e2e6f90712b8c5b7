"""Synthesis: phrases to sound, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from appliance.events import Phrase, Speech
from appliance.runtime.phonemes import Phonemise
from appliance.runtime.tts import Chunk, Voice
from appliance.runtime.worker import Worker
from appliance.stream import Events, Stage
from appliance.voice.deadline import mark, within


@dataclass(slots=True)
class Speaker:
    """A voice, and what it needs to read text. `tempo` is the speed of speech, 1 being the voice's own; it may be
    changed, and counts from the next phrase on."""

    voice: Voice
    phonemise: Phonemise
    tempo: float = 1.0
    seed: int = 0

    @property
    def rate(self) -> int:
        """Samples per second."""
        return self.voice.rate

    def say(self, spoken: str) -> Iterator[Chunk]:
        """Of text for the ear. Each `next` is one bounded piece of work."""
        yield from self.voice.speak(self.phonemise(spoken), rate=self.tempo, seed=self.seed)


def say(speaker: Speaker, worker: Worker, deadline_s: float) -> Stage:
    """Consumes Phrase; adds Speech. `deadline_s` bounds the wait for each chunk."""

    async def stage(events: Events) -> Events:
        first = True
        async for event in events:
            if not isinstance(event, Phrase):
                yield event
                continue
            yield event
            if first:
                yield mark(event.at, event.turn, "say", "start")
            chunks = worker.iterate(speaker.say(event.spoken))
            try:
                while True:
                    async with within("say", deadline_s):
                        chunk = await anext(chunks, None)
                    if chunk is None:
                        break
                    if first:
                        yield mark(event.at, event.turn, "say", "first sound")
                        first = False
                    yield Speech(event.at, event.turn, chunk.samples, speaker.rate, chunk.words, chunk.last)
            finally:
                await chunks.aclose()

    return stage
