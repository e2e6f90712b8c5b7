"""Memory in a conversation: what the user tells is noted, what the user asks of it is answered, every turn is kept."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass, field

from appliance.events import Answered, Cited, Did, Event, Kept, Phrase, Recalled, Token, Transcript, Understood
from appliance.runtime.worker import Worker
from appliance.store import keeping
from appliance.store.asked import asked, is_personal, said_back, unknown
from appliance.store.finding import Recollection
from appliance.store.memory import Memory
from appliance.store.tellparts import SURE, TELLING
from appliance.store.told import Told
from appliance.store.units import Turn, Unit
from appliance.stream import Events, Stage
from appliance.voice.deadline import mark, within
from appliance.voice.turn import Answer

DURABLE = 8.0
"""Seconds that an acknowledgement waits for a disk that works."""
LOOK = 0.25
"""Seconds between two looks whether it does."""
SOON = 2.0
"""Seconds that a turn which is over is waited for, to tell that it is kept."""
UNSAFE = "I'll remember it as long as I'm running: my disk is failing."
SORRY = "I'm sorry to hear that. I've noted it."
NOTED, NOD = "Noted.", "Okay."
FORGETS, WISHED = "memory.Forget", "(something was to be forgotten)"
PRIVATE = "I'm in private mode: I won't keep that."


def remember(memory: Memory, worker: Worker, answer: Answer, *, documents: bool, deadline_s: float) -> Stage:
    """Consumes a Transcript that tells what is to be noted, or asks for what the user has told; adds Kept or Recalled,
    and Token. Another is passed on. Nothing is noted before the turn is confirmed, and it is on the disk when that is
    said. `documents`: there are some, which may know what the user has not told."""

    async def stage(events: Events) -> Events:
        async for event in events:
            if not isinstance(event, Transcript):
                yield event
                continue
            at, turn = event.at, event.turn
            meant = memory.understood(event.text)
            if meant.units and (_to_note(meant) or _in_passing(meant) or memory.finishes(meant)):
                async for found in _note(memory, answer, event, _to_note(meant)):
                    yield found
                continue
            if not any(map(_asks, (event.text, *event.alternatives))):
                yield event
                continue
            yield mark(at, turn, "remember", "start")
            async with within("remember", deadline_s):
                known = await worker.call(_recalled, memory, event)
            yield mark(at, turn, "remember", "done")
            if known:
                yield Recalled(
                    at, turn, tuple(u.id for u in known.units if u.id), " ".join(u.text for u in known.units)
                )
                yield Token(at, turn, known.text, by="memory")
            elif (wanted := asked(event.text)) and wanted.sure and not (documents and not wanted.attributes):
                yield Token(at, turn, unknown(wanted), by="memory")
            else:
                yield event

    return stage


def _asks(text: str) -> bool:
    """Whether memory may know the answer: about the user, or about something that has been told."""
    wanted = asked(text)
    return wanted is not None and (wanted.sure or bool(wanted.owner or wanted.about) or is_personal(text))


def _recalled(memory: Memory, event: Transcript) -> Recollection | None:
    """Of the ways to hear it, the first that is answered."""
    for text in (event.text, *event.alternatives):
        if known := memory.answer(text):
            return known
    return None


# --- noting ------------------------------------------------------------------------------------------------------


def _to_note(found: Told) -> list[Unit]:
    """What is said about the words at once: what is to last, and what they are known to mean. The rest of what they
    tell is kept without a word."""
    return [unit for unit in found.units if unit.slot or unit.importance >= min(SURE, TELLING)]


def _in_passing(found: Told) -> bool:
    """Whether all that they tell are plain statements: a nod answers them, better than a small model does."""
    return bool(found.units) and all(unit.kind == "fact" for unit in found.units)


async def _note(memory: Memory, answer: Answer, event: Transcript, noted: list[Unit]) -> Events:
    await answer.confirmed.wait()
    if memory.private:
        yield Token(event.at, event.turn, PRIVATE, by="memory")
        return
    writing, waited = memory.keep(Turn(event.text, by="memory")), 0.0
    while (kept := await _in_time(writing, LOOK)) is None and memory.health.ok and waited < DURABLE:
        waited += LOOK  # a slow disk is not a failing one
    if kept is None:
        yield Token(event.at, event.turn, UNSAFE, by="memory")
        return
    answer.acted, answer.kept = True, kept.turn
    units = _to_note(Told(kept.units)) or noted
    yield Kept(event.at, event.turn, kept.turn, tuple(unit.text for unit in kept.units))
    yield Token(event.at, event.turn, _acknowledged(units), by="memory")


def _acknowledged(units: list[Unit]) -> str:
    if not units:
        return NOD
    if all(unit.attribute == "complaint" for unit in units):
        return SORRY
    return f"{NOTED} {' '.join(dict.fromkeys(said_back(unit.text) for unit in units))}"


async def _in_time(future: Future[keeping.Kept], seconds: float) -> keeping.Kept | None:
    try:
        async with asyncio.timeout(seconds):
            return await asyncio.shield(asyncio.wrap_future(future))
    except TimeoutError:
        return None


# --- keeping -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Record:
    """What was seen of one turn."""

    intent: str = ""
    slots: dict[str, object] = field(default_factory=dict)
    deeds: list[str] = field(default_factory=list)
    cites: tuple[int, ...] = ()
    by: str = "model"
    kept: int = 0

    def see(self, event: Event) -> None:
        match event:
            case Understood():
                self.intent = f"{event.skill}.{event.intent}"
                self.slots |= event.slots
            case Did(ok=True):
                self.deeds.append(f"{event.what} {event.detail}".strip())
            case Recalled():
                self.cites = event.ids
            case Kept():
                self.kept = event.id
            case Phrase() | Cited():
                self.by = event.by if isinstance(event, Phrase) else "pack"

    def turn(self, asked: str, said: str, reason: str) -> Turn:
        """A wish to forget something would hold it for ever if it were kept word for word."""
        if self.intent.startswith(FORGETS):
            return Turn(WISHED, said, reason, self.by, self.intent, {}, tuple(self.deeds))
        return Turn(asked, said, reason, self.by, self.intent, self.slots, tuple(self.deeds))


async def keep_one(memory: Memory, record: Record, asked: str, said: str) -> Kept | None:
    """Of a turn that is over: on the disk when this returns, if the disk works."""
    if record.kept:
        memory.heard(record.kept, said, "complete")
        return None
    kept = await _in_time(memory.keep(record.turn(asked, said, "complete"), cites=record.cites), SOON)
    return Kept(0, 1, kept.turn, tuple(unit.text for unit in kept.units)) if kept and kept.turn else None


def keep(memory: Memory) -> Stage:
    """Passes everything on, and hands each turn to memory when it is over: Kept tells that it is on the disk. What was
    interrupted before anything of its answer was heard is a part of the next question, unless that begins anew."""

    async def stage(events: Events) -> Events:
        records: dict[int, Record] = {}
        unheard: Turn | None = None
        async for event in events:
            yield event
            if not isinstance(event, Answered):
                if isinstance(event, Understood | Did | Recalled | Kept | Phrase | Cited):
                    records.setdefault(event.turn, Record()).see(event)
                continue
            record = records.pop(event.turn, Record())
            records = {number: one for number, one in records.items() if number > event.turn}
            turn = record.turn(event.asked, event.said, event.reason)
            if unheard and not turn.asked.startswith(unheard.asked):
                memory.keep(unheard)
            unheard = None
            if record.kept:
                memory.heard(record.kept, event.said, event.reason)
            elif event.reason == "interrupted" and not event.said and not turn.deeds:
                unheard = turn
            else:
                kept = await _in_time(memory.keep(turn, cites=record.cites), SOON if memory.health.ok else 0.0)
                if kept and kept.turn:
                    yield Kept(event.at, event.turn, kept.turn, tuple(unit.text for unit in kept.units))
        if unheard:
            memory.keep(unheard)

    return stage
