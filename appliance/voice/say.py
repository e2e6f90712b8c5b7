"""Synthesis: phrases to sound, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from appliance.events import Phrase, Speech
from appliance.runtime.tts import Chunk
from appliance.runtime.worker import Worker
from appliance.stream import Events, Stage
from appliance.voice.deadline import mark, within


class Speaker(Protocol):
    rate: int

    def say(self, text: str, spoken: str) -> Iterator[Chunk]: ...


def say(speaker: Speaker, worker: Worker, deadline_s: float) -> Stage:
    """Consumes Phrase; adds Speech. `deadline_s` bounds the wait for each chunk."""

    async def stage(events: Events) -> Events:
        first = True
        async for event in events:
            if not isinstance(event, Phrase):
                yield event
                continue
            yield event
            chunks = worker.iterate(speaker.say(event.text, event.spoken))
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
