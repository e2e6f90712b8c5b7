"""What the documents can answer, between what skills can do and what the language model is left with."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from appliance.events import Cited, Token, Transcript
from appliance.runtime.worker import Worker
from appliance.store.knowledge import Answer, Knowledge, Refusal
from appliance.store.knowquestion import is_question
from appliance.store.knowwords import plain
from appliance.stream import Events, Stage
from appliance.voice.deadline import mark, within
from appliance.voice.turn import Answer as Answering

UNKNOWN = "I have nothing about that in my documents."
EXPIRED = "What my documents say about that was valid until {}."
UNSOURCED = "I have not quoted a document yet."

_SOURCE = re.compile(
    r"^(?:and |so |but )?(?:where (?:does|did|do) (?:that|this|it|you) "
    r"(?:come from|get that|read that|find that|know that)(?: from)?"
    r"|where (?:have you got|did you get|did you find|do you get|do you have) (?:that|this|it)(?: from)?"
    r"|(?:what(?: i)?s|what is|which is|tell me|name) (?:the|your) source(?: of (?:that|this))?"
    r"|how do you know(?: that| this)?|who says (?:so|that)|says who"
    r"|(?:which|what) (?:document|page|file) (?:is|was) (?:that|this|it)(?: from| in)?"
    r"|where (?:does|is) (?:that|this|it) (?:written|stand|from)(?: down)?)$"
)
_CHAT = re.compile(
    r"^(?:hello|hi|hey|good (?:morning|evening|afternoon|night)|thanks?|thank you|sorry|bye|goodbye|okay)(?: \w+){0,3}$"
    r"|\b(?:joke|riddle|poem|story|rhyme|sing|whats up)\b|\bhow (?:are you|do you feel|old are you|is it going)\b"
    r"|\b(?:are|were) you (?:a |an |really )*(?:there|real|alive|human|person|robot|machine|computer|ready|listening"
    r"|happy|sad|okay|tired|sure|ai|awake|stupid|clever)\b"
    r"|\bwho (?:are|made|built|created|programmed|trained) you\b|\bwhat are you$"
    r"|\byour (?:name|age|favou?rite)\b"
    r"|\bdo you (?:like|love|think|feel|dream|hear|understand|sleep|remember|believe|hate|know me)\b"
    r"|\bcan you (?:hear|talk|speak|understand|sing|help|dance|think|repeat)\b"
    r"|\bwhat (?:can|do|would) you (?:do|think|mean|say|like)\b|\b(?:say|repeat) that\b"
    r"|\bwhat did (?:you|i) (?:just )?(?:say|ask)\b|\bwhat was that\b|\bdid you (?:hear|understand|get)\b"
    r"|\blets talk\b|\btalk to me\b"
)
_REQUEST = re.compile(r"^(?:please )?(?:can|could|will|would) you\b")
"""Somebody wants something done: if the documents do not say it, that is no answer."""
_ELLIPTIC = re.compile(r"^(?:and )?(?:the |your )?\w+(?: \w+){0,2} (?:of|for|on|in|with) \w+|^(?:and )?step \w+")
"""A question without its verb: "price of the green tea"."""


class Recall:
    """Answers out of the packs, and remembers where the last answer stands. `now` is aware, in the box's time zone."""

    def __init__(
        self, knowledge: Knowledge, worker: Worker, now: Callable[[], datetime], deadline_s: float = 5.0
    ) -> None:
        self._knowledge, self._worker, self._now, self._deadline = knowledge, worker, now, deadline_s
        self._cited: Cited | None = None

    @property
    def cited(self) -> Cited | None:
        """What the last answer rests on."""
        return self._cited

    @property
    def source(self) -> str:
        """Where the last answer stands, as a sentence."""
        return UNSOURCED if self._cited is None else _source(self._cited)

    def stage(self, answer: Answering) -> Stage:
        """Consumes a Transcript that the packs answer, or that asks for a fact which is not in them; adds Cited and
        Token. Another is passed on, as is everything where there are no packs. What is cited is remembered once the
        turn is confirmed."""

        async def stage(events: Events) -> Events:
            cited: Cited | None = None
            async for event in events:
                if not isinstance(event, Transcript):
                    yield event
                    continue
                async for found in self._answer(event):
                    yield found
                    if isinstance(found, Cited):
                        cited = found
                if cited is not None:
                    await answer.confirmed.wait()
                    self._cited = cited

        return stage

    async def _answer(self, event: Transcript) -> Events:
        at, turn = event.at, event.turn
        if asks_for_source(event.text) and self._cited is not None:
            known = self._cited
            yield Cited(at, turn, known.pack, known.source, known.line, known.text)
            yield Token(at, turn, _source(known), by="pack")
            return
        if not self._knowledge.packs or is_chat(event.text):
            yield event
            return
        yield mark(at, turn, "recall", "start")
        async with within("recall", self._deadline):
            found = await self._worker.call(self._best, event)
        yield mark(at, turn, "recall", "done")
        match found:
            case Answer():
                yield Cited(at, turn, found.pack, found.source, found.line, found.passage)
                yield Token(at, turn, found.text, by="pack")
            case Refusal() if is_question(event.text) and not _REQUEST.match(_words(event.text)):
                said = UNKNOWN if found.expired is None else EXPIRED.format(found.expired)
                yield Token(at, turn, said, by="pack")
            case _:
                yield event

    def _best(self, event: Transcript) -> Answer | Refusal | None:
        """Of the ways to hear it, the first that is answered. What only tells something is not asked."""
        now = self._now()
        if not is_question(event.text) and not _ELLIPTIC.match(_words(event.text)):
            return None
        first = self._knowledge.ask(event.text, now)
        if isinstance(first, Answer):
            return first
        for text in event.alternatives:
            if is_question(text) and isinstance(found := self._knowledge.ask(text, now), Answer):
                return found
        return first


def asks_for_source(text: str) -> bool:
    return bool(_SOURCE.match(_words(text)))


def is_chat(text: str) -> bool:
    """Whether the words are small talk, or about the assistant itself, rather than for a fact."""
    return bool(_CHAT.search(_words(text)))


def _words(text: str) -> str:
    return " ".join(re.sub(r"[^\w\s]", " ", plain(text).replace("'", "").replace("\u2019", "")).split())


def _source(cited: Cited) -> str:
    return f"From line {cited.line} of {cited.source}, in the documents called {cited.pack}."
