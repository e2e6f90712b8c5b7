"""Sound in and out: the interface of every device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from firmware.fault import DeviceFault
from firmware.frame import Frame
from firmware.mixer import Mixer

PATIENCE = 2.0
"""Seconds without any sound after which a microphone is given up."""


def gone(what: str) -> DeviceFault:
    return DeviceFault(f"the {what} is gone", "plug it in again, or choose another: `parley doctor` lists them")


def silent(seconds: float) -> DeviceFault:
    return DeviceFault(
        f"the microphone went silent after {seconds:.1f} s: it sends no sound any more",
        "it is opened again; if that does not help, check the cable and the sound server",
    )


class Sound(Protocol):
    """A microphone and a loudspeaker. Any thread may call any method; each raises DeviceFault when the device is
    gone."""

    mixer: Mixer
    """What the loudspeaker takes."""

    def frames(self) -> Iterator[Frame]:
        """The microphone, frame by frame, with what the loudspeaker took meanwhile; waits for each."""

    def close(self) -> None:
        """Ends `frames` and frees the device."""
