"""One answer: a line of stages inside one scope. To interrupt the assistant is to leave the scope."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from appliance.events import Event, Transcript
from appliance.stream import Events, Stage, line
from appliance.voice.mouth import Spoken


async def once(*given: Event) -> Events:
    """A source of just these events."""
    for event in given:
        yield event


def gate(confirmed: asyncio.Event) -> Stage:
    """Holds everything back until the turn is confirmed. Behind it nothing of a speculative answer is seen or heard;
    before it the bounded queues let just the first phrases be prepared."""

    async def stage(events: Events) -> Events:
        async for event in events:
            await confirmed.wait()
            yield event

    return stage


@dataclass(slots=True)
class Answer:
    """An answer on its way: to which words, whether the turn is confirmed, and what of it has really been played."""

    to: Transcript
    confirmed: asyncio.Event = field(default_factory=asyncio.Event)
    spoken: Spoken = field(default_factory=Spoken)
    over: bool = False
    """Whether it has come to its end: remembered, and about to be reported."""
    acted: bool = False
    """Whether something was done in it that is not to be done again."""
    kept: int = 0
    """The turn's number in memory, if it is there before its end."""


Mouth = Callable[[Spoken], Stage]
"""Makes the last stage, which keeps the account of what has been heard."""


Writing = Callable[[Answer], tuple[Stage, ...]]
"""Makes the stages that turn the words of one answer's Transcript into its phrases."""


@dataclass(frozen=True, slots=True)
class Answering:
    """What an answer is made of: the stages that write and voice it, and the mouth."""

    write: Writing
    voice: tuple[Stage, ...]
    mouth: Mouth

    def open(self, answer: Answer) -> AbstractAsyncContextManager[Events]:
        """The scope of one whole answer."""
        stages = (*self.write(answer), *self.voice, gate(answer.confirmed), self.mouth(answer.spoken))
        return line(once(answer.to), *stages)

    def utter(self, event: Event, spoken: Spoken) -> AbstractAsyncContextManager[Events]:
        """The scope of a single Phrase or Speech that no model has written: a cue."""
        return line(once(event), *self.voice, self.mouth(spoken))
