"""The source of a listening line: frames from the basement, each with the voice detector's probability."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from appliance.events import Event, Heard, Muted, SoundBack, SoundLost, Woken
from appliance.runtime.worker import Worker
from appliance.stream import Events
from firmware.frame import Frame, Muting, Note, Recovered, Trouble, Woke


class Detector(Protocol):
    def push(self, frame: Frame) -> float: ...

    def reset(self) -> None: ...


def _detect(frames: Iterator[Frame], vad: Detector) -> Iterator[Event]:
    """What the basement noticed comes in front of the frame that it was noticed in. Sound behind which no microphone
    stands is not shown to the detector."""
    live = True
    for frame in frames:
        yield from (_event(note, frame.at) for note in frame.notes)
        if live and not frame.live:
            vad.reset()
        live = frame.live
        yield Heard(frame.at, 0, frame.samples, vad.push(frame) if live else 0.0, live, frame.doubt)


def _event(note: Note, at: int) -> Event:
    match note:
        case Woke():
            return Woken(note.end, 0, note.word, note.begin, note.score, note.threshold, note.role)
        case Trouble():
            return SoundLost(at, 0, note.kind, note.message, note.fix)
        case Recovered():
            return SoundBack(at, 0, note.kind, note.seconds)
        case Muting():
            return Muted(at, 0, note.on)


async def ears(frames: Iterator[Frame], vad: Detector, worker: Worker) -> Events:
    """Waits for each frame in the worker's thread, where the detector runs too: one crossing per frame.

    The ring in front of `frames` is what drops, oldest first, when the line falls behind a real device.
    """
    async for event in worker.iterate(_detect(frames, vad)):
        yield event
