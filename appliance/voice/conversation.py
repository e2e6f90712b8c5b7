"""What has been said, as both sides heard it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    text: str


@dataclass(slots=True)
class Conversation:
    """The messages of a conversation, oldest first. An assistant message holds the words that were really played: what
    was cut off was not said, and an answer of which nothing was heard does not exist."""

    messages: list[Message] = field(default_factory=list)

    def add(self, asked: str, said: str) -> None:
        self.messages.append(Message("user", asked))
        if said:
            self.messages.append(Message("assistant", said))
