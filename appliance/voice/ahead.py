"""Reading ahead: while nobody speaks, the language model reads what the next prompt begins with."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from appliance.events import Answered, SpeechStarted, Woken
from appliance.runtime.model import Steps
from appliance.runtime.worker import Worker
from appliance.stream import Events, Stage
from appliance.voice.conversation import Message
from appliance.voice.prompt import Prompt


class Reader(Protocol):
    def read(self, messages: Sequence[Message]) -> Steps[None]:
        """Makes the cache hold these messages, in bounded steps."""
        ...


def ahead(reader: Reader, prompt: Prompt, worker: Worker) -> Stage:
    """Passes everything on. Behind an answer what changed by it is read, a step at a time, until somebody speaks."""

    async def stage(events: Events) -> Events:
        reading: asyncio.Task[None] | None = None
        try:
            async for event in events:
                if isinstance(event, SpeechStarted | Woken | Answered):
                    await _end(reading)
                    reading = None
                yield event
                if isinstance(event, Answered):
                    reading = asyncio.create_task(worker.finish(reader.read(prompt.so_far())))
        finally:
            await _end(reading)

    return stage


async def _end(reading: asyncio.Task[None] | None) -> None:
    """What it has read by then is kept."""
    if reading:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
