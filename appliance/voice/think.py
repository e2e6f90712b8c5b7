"""The answer, as the language model writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from appliance.events import Token, Transcript
from appliance.runtime.worker import Worker
from appliance.stream import Events, Stage
from appliance.voice.conversation import Message
from appliance.voice.deadline import mark, within
from appliance.voice.prompt import Prompt


class Writer(Protocol):
    """What `think` needs of a language model: prompts in messages, text out in pieces."""

    def write(self, messages: Sequence[Message], budget: int, sentences: int) -> Iterator[str]:
        """Pieces of the reply, about `budget` tokens and `sentences` at most; each `next` is one bounded step, and may
        yield ""."""
        ...


@dataclass(frozen=True, slots=True)
class ThinkRules:
    """`answer_tokens` and `answer_sentences` bound the reply, `deadline_s` the wait for each piece."""

    answer_tokens: int = 80
    answer_sentences: int = 1
    deadline_s: float = 10.0


def think(writer: Writer, prompt: Prompt, worker: Worker, rules: ThinkRules) -> Stage:
    """Consumes Transcript; adds Token."""

    async def stage(events: Events) -> Events:
        async for event in events:
            if not isinstance(event, Transcript):
                yield event
                continue
            yield mark(event.at, event.turn, "think", "start")
            first = True
            messages = prompt.messages(event.text)
            pieces = worker.iterate(writer.write(messages, rules.answer_tokens, rules.answer_sentences))
            try:
                while True:
                    async with within("think", rules.deadline_s):
                        piece = await anext(pieces, None)
                    if piece is None:
                        break
                    if piece and first:
                        yield mark(event.at, event.turn, "think", "first token")
                        first = False
                    if piece:
                        yield Token(event.at, event.turn, piece)
            finally:
                await pieces.aclose()

    return stage
