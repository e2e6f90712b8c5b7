"""The source of a listening line: frames from the basement, each with the voice detector's probability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np

from appliance.events import Heard
from appliance.runtime.worker import Worker
from appliance.stream import Events
from firmware.frame import RATE, Frame
from firmware.sound import Sound

ECHO_TAIL = 3 * RATE // 10
"""Samples for which a room still sounds after the loudspeaker has stopped."""


class Detector(Protocol):
    def push(self, frame: Frame) -> float: ...


def half_duplex(frames: Iterator[Frame], sound: Sound) -> Iterator[Frame]:
    """Silence for as long as the loudspeaker plays and the room still sounds: without echo cancellation the box would
    answer itself. What is said over it is not heard."""
    until = 0
    for frame in frames:
        if sound.mixer.pending:
            until = frame.at + len(frame.samples) + ECHO_TAIL
        yield replace(frame, samples=np.zeros_like(frame.samples)) if frame.at < until else frame


def _detect(frames: Iterator[Frame], vad: Detector) -> Iterator[Heard]:
    for frame in frames:
        yield Heard(frame.at, 0, frame.samples, vad.push(frame), frame.live, frame.doubt)


async def ears(frames: Iterator[Frame], vad: Detector, worker: Worker) -> Events:
    """Waits for each frame in the worker's thread, where the detector runs too: one crossing per frame.

    The ring in front of `frames` is what drops, oldest first, when the line falls behind a real device.
    """
    async for heard in worker.iterate(_detect(frames, vad)):
        yield heard
