"""The answer: prompt under a token budget, then text as the language model writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from appliance.events import Token, Transcript
from appliance.runtime.worker import Worker
from appliance.stream import Events, Stage
from appliance.voice.conversation import Conversation, Message
from appliance.voice.deadline import mark, within


class Writer(Protocol):
    """What `think` needs of a language model: prompts in messages, text out in pieces."""

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens that the messages take in a prompt."""
        ...

    def write(self, messages: Sequence[Message], budget: int, sentences: int) -> Iterator[str]:
        """Pieces of the reply, about `budget` tokens and `sentences` at most; each `next` is one bounded step, and may
        yield ""."""
        ...


@dataclass(frozen=True, slots=True)
class ThinkRules:
    """`opening` is the stable first part of every prompt; `history_tokens` bounds what is quoted of the conversation,
    `answer_tokens` and `answer_sentences` the reply; `deadline_s` bounds the wait for each piece."""

    opening: tuple[Message, ...]
    history_tokens: int = 400
    answer_tokens: int = 80
    answer_sentences: int = 1
    deadline_s: float = 10.0


def prompt(rules: ThinkRules, conversation: Conversation, asked: str, writer: Writer) -> list[Message]:
    """The messages of one turn: the opening always, then as much of the latest conversation as the budget
    holds, then the question. Whole exchanges are dropped, oldest first."""
    history = list(conversation.messages)
    while history and writer.count(history) > rules.history_tokens:
        history.pop(0)
        while history and history[0].role != "user":
            history.pop(0)
    return [*rules.opening, *history, Message("user", asked)]


def think(writer: Writer, conversation: Conversation, worker: Worker, rules: ThinkRules) -> Stage:
    """Consumes Transcript; adds Token."""

    async def stage(events: Events) -> Events:
        async for event in events:
            if not isinstance(event, Transcript):
                yield event
                continue
            yield mark(event.at, event.turn, "think", "start")
            first = True
            messages = prompt(rules, conversation, event.text, writer)
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
