"""The session: opens an answer for each turn of the user's, and closes it when the user goes on or speaks over it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Literal

from appliance.errors import DeviceFault, Fault
from appliance.events import (
    Answered,
    Draft,
    Event,
    Failed,
    Held,
    NoSpeech,
    Partial,
    Phrase,
    Played,
    Rang,
    SpeechResumed,
    SpeechStarted,
    Transcript,
    Woken,
)
from appliance.stream import Events, Stage
from appliance.voice.bargein import Floor, Judge, Over, Verdict
from appliance.voice.conversation import Conversation
from appliance.voice.earcon import earcon
from appliance.voice.failure import failed
from appliance.voice.mouth import Spoken
from appliance.voice.own import words
from appliance.voice.turn import Answer, Answering
from firmware.frame import RATE

DEPTH = 64
"""Events that wait for a watcher before the session waits for it."""

LATELY = RATE
"""Samples before the user began to speak from which on the box's words count as those spoken over."""

MEMORY = 400
"""Words played last that are remembered: more than a turn is long."""

AHEAD = 2
"""Words behind those that were heard whole that may have begun to sound."""

NOTICES = 16
"""Things the box has to say of itself that wait for their turn; the oldest go first."""

CERTAIN = 2
"""Words on which two recognitions agree that end an answer in mid-speech. It is silent by then: fewer can wait."""


def converse(
    answering: Answering,
    conversation: Conversation,
    floor: Floor,
    judge: Judge,
    asks: Callable[[], bool] = lambda: False,
) -> Stage:
    """Passes on what was heard, and adds what is answered.

    A Draft opens an answer behind a closed gate: it prepares the first phrase and has no effect. The Transcript opens
    the gate, SpeechResumed leaves the scope. While nothing of an answer sounds, speech alone ends it, and what follows
    belongs to the same question: the turn had been ended too early. Once it sounds, only words do, or the wake word;
    a turn over it that was a back-channel, a command to stop or the box's own voice dissolves: a NoSpeech stands in
    place of its Transcript. So every Transcript that is passed on is followed by one Answered.

    What the box has to say of itself (Rang) is said as soon as nobody speaks. While it `asks` something, a command to
    stop that nothing is being said over is an answer to that.
    """

    async def stage(events: Events) -> Events:
        session = _Session(answering, conversation, floor, judge, asks)
        listening = asyncio.create_task(session.listen(events))
        try:
            while (event := await session.out.get()) is not None:
                yield event
            await listening
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            await session.abandon()

    return stage


class _Session:
    def __init__(
        self,
        answering: Answering,
        conversation: Conversation,
        floor: Floor,
        judge: Judge,
        asks: Callable[[], bool],
    ) -> None:
        self._answering = answering
        self._conversation = conversation
        self._floor = floor
        self._judge = judge
        self._asks = asks
        self._answer: Answer | None = None
        self._task: asyncio.Task[None] | None = None
        """What is being said or prepared: the answer, or the cue of a failure."""
        self._unheard = ""
        """The words of a turn whose answer was left before anything of it was heard, or done."""
        self._began = SpeechStarted(0, 0)
        self._took = 0
        """The turn whose words ended an answer: it is no back-channel any more."""
        self._hold = -1
        """The sample at which the answer was held, as far as events have told."""
        self._spoken = Spoken()
        """What is said, or was said last."""
        self._said: deque[tuple[int, str]] = deque(maxlen=MEMORY)
        """The words played lately, with the sample behind which they were."""
        self._notices: deque[Rang] = deque(maxlen=NOTICES)
        self._speaks = False
        """Whether the user is in the middle of a turn."""
        self.out: asyncio.Queue[Event | None] = asyncio.Queue(DEPTH)

    async def listen(self, events: Events) -> None:
        try:
            async for event in events:
                await self._react(event)
            if self._task and (self._answer is None or self._answer.confirmed.is_set()):
                await self._task
        except Exception:
            await self.out.put(None)
            raise
        await self.out.put(None)

    async def _react(self, event: Event) -> None:
        """Passes the event on, or what becomes of it, and does what follows from it."""
        match event:
            case SpeechStarted():
                self._speaks = True
            case Transcript() | NoSpeech() | Failed():
                self._speaks = False
            case Rang():
                self._note(event)
        match event:
            case Transcript():
                await self._finish(event)
            case NoSpeech():
                await self._dissolve(event)
            case Held():
                await self._held(event)
            case _:
                await self.out.put(event)
                await self._follow(event)

    async def _follow(self, event: Event) -> None:
        match event:
            case SpeechStarted():
                self._began = event
                if self._answer and not self._sounds:
                    await self.leave()
            case SpeechResumed() if self._answer and not self._answer.confirmed.is_set():
                await self.leave()
            case Partial() if self._saying and len(words(event.committed)) >= CERTAIN:
                await self._take(event.turn, event.committed)
            case Draft():
                if await self._take(event.turn, event.text) == "words":
                    await self._prepare(Transcript(event.at, event.turn, event.text, 1.0, event.alternatives))
            case Woken():
                await self.leave()
                self._forget()
            case Failed():
                await self.leave()
                self._task = self._begin(self._excuse(event))

    async def _held(self, event: Held) -> None:
        """Passed on as an event of the answer's turn; a hold that was over before word of it came is passed over."""
        if event.on and self._floor.held != event.at:
            return
        if event.on or self._hold >= 0:
            self._hold = event.at if event.on else -1
            await self.out.put(replace(event, turn=self._answer.to.turn if self._answer else 0))

    # --- what the user said -------------------------------------------------------------------------------------------

    async def _take(self, turn: int, text: str) -> Verdict:
        """What the words of a turn that is not over are; what is said to another turn is left for them."""
        verdict = self._verdict(turn, text)
        if verdict == "words":
            self._took = turn
        if verdict in ("words", "stop") and not self._answers(turn):
            await self.leave()
        return verdict

    async def _finish(self, event: Transcript) -> None:
        """A turn has ended: it is answered, or it dissolves."""
        verdict = self._verdict(event.turn, event.text)
        if verdict == "words":
            await self.out.put(event)
            await self._confirm(event)
            return
        if verdict == "stop":
            await self.leave()
            self._forget()
        await self._dissolve(NoSpeech(event.at, event.turn, verdict))

    async def _dissolve(self, event: NoSpeech) -> None:
        """A turn was nothing: what it held goes on, or the question is answered that it seemed to continue."""
        await self.out.put(event)
        self._floor.settle(self._hold, echo=event.why == "own voice")
        if self._unheard:
            await self._confirm(Transcript(event.at, event.turn, "", 1.0))
        elif self._answers(event.turn):
            await self.leave()
        self._announce()

    def _verdict(self, turn: int, text: str) -> Verdict:
        began = self._began.at if self._began.turn == turn else self._floor.now
        over = None
        if turn != self._took and (self._floor.sounded(began) or (self._sounds and not self._answers(turn))):
            said = [*(word for until, word in self._said if until > began - LATELY), *self._spoken.ahead(AHEAD)]
            asked = self._spoken.phrase.rstrip(" \"'”’)").endswith("?")
            over = Over(said, self._floor.doubted(began), asked)
        verdict = self._judge(text, over)
        return "words" if verdict == "stop" and not self._saying and self._asks() else verdict

    @property
    def _saying(self) -> bool:
        """Whether something is being said, or prepared."""
        return self._task is not None and not self._task.done()

    @property
    def _sounds(self) -> bool:
        """Whether it is heard."""
        return self._saying and bool(self._spoken.phrase)

    def _answers(self, turn: int) -> bool:
        return self._answer is not None and self._answer.to.turn == turn

    # --- what the box says --------------------------------------------------------------------------------------------

    async def _prepare(self, words: Transcript) -> None:
        """Begins to answer the words, unless that is being done."""
        text, *others = (f"{self._unheard} {text}".strip() for text in (words.text, *words.alternatives))
        asked = replace(words, text=text, alternatives=tuple(others))
        if self._answer and (self._answer.to.turn, self._answer.to.text) == (asked.turn, asked.text):
            return
        await self.leave()
        self._answer = Answer(asked)
        self._spoken = self._answer.spoken
        self._task = self._begin(self._run(self._answer))

    async def _confirm(self, words: Transcript) -> None:
        await self._prepare(words)
        assert self._answer is not None
        self._unheard = ""
        self._answer.confirmed.set()

    async def _run(self, answer: Answer) -> None:
        at, turn = answer.to.at, answer.to.turn
        try:
            async with self._answering.open(answer) as events:
                await self._tell(events)
            await answer.confirmed.wait()
        except Fault as error:
            await answer.confirmed.wait()
            failure = failed(at, turn, "answer", error)
            await self.out.put(failure)
            await self._excuse(failure)
            await self._close(answer, "failed")
        else:
            await self._close(answer, "complete")

    async def _tell(self, events: Events) -> None:
        async for event in events:
            if isinstance(event, Played):
                self._said.extend((self._floor.now, word) for word in event.words)
            await self.out.put(event)

    async def leave(self) -> None:
        """Ends what is being said or prepared, if anything: nothing of it is heard afterwards."""
        task, answer = self._task, self._answer
        self._task = self._answer = None
        if task is None:
            return
        if task.done() or (answer and answer.over):
            await task
            return
        await _end(task)
        self._floor.left()
        if answer and answer.confirmed.is_set():
            await self._close(answer, "interrupted")
        if self._hold >= 0:
            self._hold = -1
            await self.out.put(Held(self._floor.now, answer.to.turn if answer else 0, False))

    async def abandon(self) -> None:
        """Leaves without a word: nobody listens any more."""
        if self._task:
            await _end(self._task)

    def _forget(self) -> None:
        """A question that the user has given up is not joined to the next."""
        if self._unheard:
            self._conversation.add(self._unheard, "")
            self._unheard = ""

    async def _close(self, answer: Answer, reason: Literal["complete", "interrupted", "failed"]) -> None:
        answer.over = True
        if reason == "interrupted" and not answer.spoken.text and not answer.acted:
            self._unheard = answer.to.text
        else:
            self._conversation.add(answer.to.text, answer.spoken.text)
        await self.out.put(Answered(answer.to.at, answer.to.turn, answer.spoken.text, reason, answer.to.text))

    async def _excuse(self, failure: Failed) -> None:
        """Says what went wrong; where the voice itself fails, a sound says that something did. Where the loudspeaker
        fails nothing does."""
        phrase = Phrase(failure.at, failure.turn, failure.cue, failure.cue)
        for cue in (phrase, earcon(failure)):
            self._spoken = Spoken()
            try:
                async with self._answering.utter(cue, self._spoken) as events:
                    await self._tell(events)
                return
            except DeviceFault:
                return
            except Fault:
                continue

    # --- what the box has to say of itself ---------------------------------------------------------------------------

    def _note(self, rang: Rang) -> None:
        """What is over need not be said any more."""
        self._notices = deque((due for due in self._notices if due.id != rang.id), NOTICES)
        if rang.on and rang.text:
            self._notices.append(rang)
            self._announce()

    def _announce(self) -> None:
        """Says the next notice, unless somebody speaks: then this is asked again when nobody does."""
        if self._notices and not self._speaks and not self._saying:
            rang = self._notices.popleft()
            self._answer = None
            self._spoken = Spoken()
            self._task = self._begin(self._notify(rang))

    async def _notify(self, rang: Rang) -> None:
        phrase = Phrase(rang.at, rang.turn, rang.text, self._judge.for_the_ear(rang.text), by="skill")
        try:
            async with self._answering.utter(phrase, self._spoken) as events:
                await self._tell(events)
        except Fault as error:
            await self.out.put(failed(rang.at, rang.turn, "say", error))

    def _begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Says something; notices are looked at when it is over."""
        task = asyncio.create_task(work)

        def over(task: asyncio.Task[None]) -> None:
            if not task.cancelled():
                self._announce()

        task.add_done_callback(over)
        return task


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
