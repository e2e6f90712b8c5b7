"""The prompt of a turn: sections, each under a budget of tokens, the most stable first.

What stands in front and does not change is not read again: what is remembered with the opening, then the conversation,
then what is going on, then the question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from appliance.voice.conversation import Conversation, Message

Count = Callable[[Sequence[Message]], int]
"""Tokens that messages take in a prompt."""

KNOWN = "The user said earlier:"


@dataclass(frozen=True, slots=True)
class PromptRules:
    """`opening` is the stable first part of every prompt. `history_tokens` bounds what is quoted of the conversation,
    `memory_tokens` what is remembered, `now_tokens` what is going on."""

    opening: tuple[Message, ...]
    history_tokens: int = 400
    memory_tokens: int = 60
    now_tokens: int = 0


def _nothing() -> Sequence[str]:
    return ()


class Prompt:
    """Of one conversation. `known` gives what is remembered, most important first, `going_on` what is going on now,
    both as lines."""

    def __init__(
        self,
        rules: PromptRules,
        conversation: Conversation,
        count: Count,
        known: Callable[[], Sequence[str]] = _nothing,
        going_on: Callable[[], Sequence[str]] = _nothing,
    ) -> None:
        self._rules, self._conversation, self._count = rules, conversation, count
        self._known, self._going_on = known, going_on

    @property
    def opening(self) -> list[Message]:
        return list(self._rules.opening)

    def standing(self) -> list[Message]:
        """What every prompt begins with, until something new is to be remembered. What is known stands in the system
        message, in front of the examples: behind them, a small model took it for what to talk about (LOG)."""
        known = self._fitting(KNOWN, self._known(), self._rules.memory_tokens)
        if not known:
            return self.opening
        first, *rest = self._rules.opening or (Message("system", ""),)
        if first.role != "system":
            return [Message("system", known), first, *rest]
        return [Message("system", f"{first.text} {known}".strip()), *rest]

    def so_far(self) -> list[Message]:
        """What the next prompt begins with."""
        return [*self.standing(), *self._history()]

    def messages(self, asked: str) -> list[Message]:
        """The messages of one turn."""
        now = self._fitting("", self._going_on(), self._rules.now_tokens)
        return [*self.so_far(), *([Message("system", now)] if now else []), Message("user", asked)]

    def _fitting(self, head: str, lines: Sequence[str], budget: int) -> str:
        """As many lines as the budget holds, the first first; "" for none."""
        text = ""
        for line in lines:
            longer = f"{text or head} {line}".strip()
            if self._count([Message("system", longer)]) > budget:
                break
            text = longer
        return text

    def _history(self) -> list[Message]:
        """As much of the latest conversation as the budget holds. When it is full the older half goes at once, in whole
        exchanges: a window that moved with every turn would have all of it read again with every turn."""
        told, budget = self._conversation, self._rules.history_tokens
        if self._count(told.messages[told.quoted :]) > budget:
            costs = [self._count([message]) for message in told.messages[told.quoted :]]
            begin, left = told.quoted, sum(costs)
            while begin < len(told.messages) and (left > budget // 2 or told.messages[begin].role != "user"):
                left -= costs[begin - told.quoted]
                begin += 1
            told.quoted = begin
        return told.messages[told.quoted :]
