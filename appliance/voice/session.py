"""The session: opens an answer for each turn of the user's, and closes it when the user goes on or speaks over it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Literal

from appliance.errors import Fault
from appliance.events import (
    Answered,
    Draft,
    Event,
    Failed,
    NoSpeech,
    Partial,
    Phrase,
    SpeechResumed,
    SpeechStarted,
    Transcript,
)
from appliance.stream import Events, Stage
from appliance.voice.conversation import Conversation
from appliance.voice.earcon import earcon
from appliance.voice.failure import failed
from appliance.voice.turn import Answer, Answering

DEPTH = 64
"""Events that wait for a watcher before the session waits for it."""


def converse(answering: Answering, conversation: Conversation) -> Stage:
    """Passes on what was heard, and adds what is answered.

    A Draft opens an answer behind a closed gate: it prepares the first phrase and has no effect. The Transcript opens
    the gate, SpeechResumed leaves the scope. Words spoken over an answer end it; while nothing of it has been heard,
    speech alone does, and what follows belongs to the same question: the turn had been ended too early.
    """

    async def stage(events: Events) -> Events:
        session = _Session(answering, conversation)
        listening = asyncio.create_task(session.listen(events))
        try:
            while (event := await session.out.get()) is not None:
                yield event
            await listening
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            await session.silence()

    return stage


class _Session:
    def __init__(self, answering: Answering, conversation: Conversation) -> None:
        self._answering = answering
        self._conversation = conversation
        self._answer: Answer | None = None
        self._task: asyncio.Task[None] | None = None
        self._unheard = ""
        """The words of a turn whose answer was left before anything of it was heard."""
        self.out: asyncio.Queue[Event | None] = asyncio.Queue(DEPTH)

    async def listen(self, events: Events) -> None:
        try:
            async for event in events:
                await self.out.put(event)
                await self._react(event)
            if self._task and self._answer and self._answer.confirmed.is_set():
                await self._task
        except Exception:
            await self.out.put(None)
            raise
        await self.out.put(None)

    async def _react(self, event: Event) -> None:
        match event:
            case Partial() if self._answer and self._answer.to.turn != event.turn:
                await self.leave()
            case SpeechStarted() if self._answer and not self._answer.spoken.text:
                await self.leave()
            case Draft():
                await self._prepare(Transcript(event.at, event.turn, event.text, 1.0))
            case SpeechResumed() if self._answer and not self._answer.confirmed.is_set():
                await self.leave()
            case Transcript():
                await self._confirm(event)
            case NoSpeech() if self._unheard:
                await self._confirm(Transcript(event.at, event.turn, "", 1.0))
            case Failed():
                await self._excuse(event)

    async def _prepare(self, words: Transcript) -> None:
        """Begins to answer the words, unless that is being done."""
        asked = replace(words, text=f"{self._unheard} {words.text}".strip())
        if self._answer and (self._answer.to.turn, self._answer.to.text) == (asked.turn, asked.text):
            return
        await self.leave()
        self._answer = Answer(asked)
        self._task = asyncio.create_task(self._run(self._answer))

    async def _confirm(self, words: Transcript) -> None:
        await self._prepare(words)
        assert self._answer is not None
        self._unheard = ""
        self._answer.confirmed.set()

    async def _run(self, answer: Answer) -> None:
        at, turn = answer.to.at, answer.to.turn
        try:
            async with self._answering.open(answer) as events:
                async for event in events:
                    await self.out.put(event)
        except Fault as error:
            await answer.confirmed.wait()
            failure = failed(at, turn, "answer", error)
            await self.out.put(failure)
            await self._excuse(failure)
            await self._close(answer, "failed")
        else:
            await self._close(answer, "complete")

    async def leave(self) -> None:
        """Ends the answer that is on its way, if any: nothing of it is heard afterwards."""
        answer = await self.silence()
        if answer is not None:
            await self._close(answer, "interrupted")

    async def silence(self) -> Answer | None:
        """Leaves the scope of the answer that is on its way; returns it if it had been confirmed."""
        task, answer = self._task, self._answer
        self._task = self._answer = None
        if task is None or answer is None or task.done():
            return None
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return answer if answer.confirmed.is_set() else None

    async def _close(self, answer: Answer, reason: Literal["complete", "interrupted", "failed"]) -> None:
        if reason == "interrupted" and not answer.spoken.text:
            self._unheard = answer.to.text
        else:
            self._conversation.add(answer.to.text, answer.spoken.text)
        await self.out.put(Answered(answer.to.at, answer.to.turn, answer.spoken.text, reason))

    async def _excuse(self, failure: Failed) -> None:
        """Says what went wrong; where the voice itself fails, a sound says that something did."""
        phrase = Phrase(failure.at, failure.turn, failure.cue, failure.cue)
        for cue in (phrase, earcon(failure)):
            try:
                async with self._answering.utter(cue) as events:
                    async for event in events:
                        await self.out.put(event)
                return
            except Fault:
                continue
