"""The source of a listening line: frames from the basement, each with the voice detector's probability."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from appliance.events import Heard
from appliance.runtime.worker import Worker
from appliance.stream import Events
from firmware.frame import Frame


class Detector(Protocol):
    def push(self, frame: Frame) -> float: ...


def _detect(frames: Iterator[Frame], vad: Detector) -> Iterator[Heard]:
    for frame in frames:
        yield Heard(frame.at, 0, frame.samples, vad.push(frame))


async def ears(frames: Iterator[Frame], vad: Detector, worker: Worker) -> Events:
    """Waits for each frame in the worker's thread, where the detector runs too: one crossing per frame.

    The ring in front of `frames` is what drops, oldest first, when the line falls behind a real device.
    """
    async for heard in worker.iterate(_detect(frames, vad)):
        yield heard
