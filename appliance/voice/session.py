"""The session: opens an answer for each turn of the user's, and closes it when the user goes on or speaks over it."""

from __future__ import annotations

import asyncio
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
    the gate, SpeechResumed leaves the scope. Words spoken over an answer end it.
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
            case Partial() if self._speaking_in_another(event):
                await self.leave()
            case Draft():
                await self._begin(Transcript(event.at, event.turn, event.text, 1.0))
            case SpeechResumed() | NoSpeech() if self._answer and not self._answer.confirmed.is_set():
                await self.leave()
            case Transcript():
                if self._answer is None or (self._answer.to.turn, self._answer.to.text) != (event.turn, event.text):
                    await self._begin(event)
                assert self._answer is not None
                self._answer.confirmed.set()
            case Failed():
                await self._excuse(event)

    def _speaking_in_another(self, event: Event) -> bool:
        return self._answer is not None and self._answer.to.turn != event.turn

    async def _begin(self, words: Transcript) -> None:
        await self.leave()
        self._answer = Answer(words)
        self._task = asyncio.create_task(self._run(self._answer))

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
