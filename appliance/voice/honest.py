"""No claim without a result: a sentence that says something was done is spoken only if a tool's result in this turn
says so too.

A small language model says "I have set a timer" as readily as anything else, so of deeds, and of what only a look can
tell, it is not believed at all: those are said by skills, whose host writes down what was really done (Did). A skill's
word counts where something was done and nothing failed. A document is quoted, and claims nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from appliance.events import Did, Event, Phrase, Transcript
from appliance.stream import Events, Stage
from appliance.voice.claims import asks_for_a_deed, denies, kind

TRUTH = "I can't do that myself yet."
"""In place of a deed that a model claims."""
UNKNOWN = "I don't know that."
"""In place of what a model cannot know."""
FAILED = "Sorry, that didn't work."
"""In place of a deed that a skill claims."""

_QUOTED = re.compile(r"[\"“][^\"“”]*[\"”]")
"""What a skill repeats of the user's own words."""
_SENTENCES = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+")


def claims_a_deed(text: str) -> bool:
    """Whether a sentence says that something was done, is being done or will be."""
    return any(kind(sentence) in ("deed", "outcome", "syntax") for sentence in _SENTENCES.split(text))


@dataclass(slots=True)
class _Turn:
    """What is known of the turn, and the sentence that is being said, which may come in several phrases."""

    number: int
    commanded: bool
    deeds: list[Did] = field(default_factory=list)
    begun: str = ""
    over: bool = False

    def truth(self, phrase: Phrase) -> str:
        """What is said in place of the phrase; "" if it may be said."""
        text = f"{self.begun} {phrase.text.strip()}".strip()
        sentences = _SENTENCES.split(text)
        self.begun = "" if re.search(r"[.!?…][\"'”’)]*$", text) else sentences[-1]
        if phrase.by == "skill":
            sentences = _SENTENCES.split(_QUOTED.sub('""', text))
        for sentence in sentences:
            if truth := self._of(kind(sentence), phrase.by):
                return truth
            if self.commanded and phrase.by == "model" and not denies(sentence):
                return TRUTH
        return ""

    def _of(self, claim: str, by: str) -> str:
        if not claim or by in ("pack", "memory"):
            return ""
        if by == "model":
            return UNKNOWN if claim == "state" else TRUTH
        failed = any(not deed.ok for deed in self.deeds)
        done = any(deed.ok for deed in self.deeds)
        if claim == "state":
            return FAILED if failed and not done else ""
        return "" if done else FAILED


def honest(asked: str = "") -> Stage:
    """Replaces the first Phrase of an answer that claims what no result supports by the truth, and drops what that
    answer says after it. Where the words `asked` want something done and no skill did it, whatever a model says to that
    is a claim, unless it is a question or a denial."""
    commanded = asks_for_a_deed(asked)

    async def stage(events: Events) -> Events:
        turn = _Turn(-1, commanded)
        async for event in events:
            if event.turn != turn.number or isinstance(event, Transcript):
                turn = _Turn(event.turn, commanded)
            for found in _judged(turn, event):
                yield found

    return stage


def _judged(turn: _Turn, event: Event) -> list[Event]:
    if isinstance(event, Did):
        turn.deeds.append(event)
    if not isinstance(event, Phrase):
        return [event]
    if turn.over:
        return []
    if truth := turn.truth(event):
        turn.over = True
        return [replace(event, text=f" {truth}", spoken=truth)]
    return [event]
