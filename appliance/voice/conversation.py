"""What has been said, as both sides heard it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Role = Literal["system", "user", "assistant"]

MOST = 1_000
"""Messages that are held; memory keeps the rest."""


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    text: str


@dataclass(slots=True)
class Conversation:
    """The messages of a conversation, oldest first. An assistant message holds the words that were really played: what
    was cut off was not said, and an answer of which nothing was heard does not exist. `quoted` is the first message
    that prompts hold."""

    messages: list[Message] = field(default_factory=list)
    quoted: int = 0

    def add(self, asked: str, said: str) -> None:
        self.messages.append(Message("user", asked))
        if said:
            self.messages.append(Message("assistant", said))
        if (over := len(self.messages) - MOST) > 0:
            del self.messages[:over]
            self.quoted = max(0, self.quoted - over)

    def clear(self) -> None:
        self.messages.clear()
        self.quoted = 0
