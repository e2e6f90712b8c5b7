"""The one loop of the basement: the card's frames in, clean near-end frames out, with what was noticed on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from firmware.echo import Echo
from firmware.frame import FRAME, NOTHING, Frame, Muting, Note
from firmware.sound import Sound
from firmware.wake import Wake

TICK = 25
"""Frames between two looks at what the user may have changed."""


class Card(Sound, Protocol):
    """A Sound whose microphone can be closed while its loudspeaker goes on."""

    def mute(self, on: bool) -> None: ...


class Frontend:
    """A `Sound` in front of a card: its frames are echo-cancelled, carry the canceller's doubt, and note wake words.

    A frame behind which no microphone stands (muted, or the card is away) passes as it is: no model runs on it.
    `tick` is called four times a second from the loop's thread.
    """

    def __init__(self, card: Card, echo: Echo, wake: Wake, *, tick: Callable[[], None] = lambda: None) -> None:
        self.mixer = card.mixer
        self.echo, self.wake = echo, wake
        self.heard = 0
        self.overruns = 0
        self._card = card
        self._tick = tick
        self._muted = False
        self._notes: list[Note] = []

    @property
    def muted(self) -> bool:
        return self._muted

    def mute(self, on: bool) -> None:
        """Closes the microphone before any model sees its sound, or opens it again. Any thread may call it."""
        if on == self._muted:
            return
        self._muted = on
        self._card.mute(on)
        self._notes.append(Muting(on))

    def frames(self) -> Iterator[Frame]:
        live = True
        for number, frame in enumerate(self._card.frames()):
            if number % TICK == 0:
                self._tick()
            self.overruns += frame.overruns
            if frame.live and self._muted:  # the card has not closed it yet
                frame = replace(frame, samples=frame.samples * 0, live=False)
            if live and not frame.live:
                self.wake.reset()
            live = frame.live
            yield self._clean(frame) if live else replace(frame, far=NOTHING, notes=self._noted(frame))

    def close(self) -> None:
        self._card.close()
        self.echo.close()

    def _clean(self, frame: Frame) -> Frame:
        if frame.overruns:
            self.echo.skip(frame.overruns * FRAME)
        clean = self.echo.push(frame.samples, frame.far)
        doubt = self.echo.state.doubt
        woke = self.wake.push(clean.strict, frame.at, far=frame.far, doubt=doubt)
        self.heard += 1
        return Frame(
            frame.at,
            clean.gentle,
            frame.overruns,
            strict=clean.strict,
            doubt=doubt,
            notes=(*self._noted(frame), *woke),
        )

    def _noted(self, frame: Frame) -> tuple[Note, ...]:
        """What the card noticed, and what the user changed since the last frame."""
        own, self._notes = self._notes, []
        return (*frame.notes, *own)
