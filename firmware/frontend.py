"""The one loop of the basement: the card's frames in, clean near-end frames out, with what was noticed on the way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from firmware.echo import Echo
from firmware.frame import FRAME, NOTHING, RATE, Frame, Muting, Note
from firmware.sound import Sound
from firmware.wake import Wake

TICK = 25
"""Frames between two looks at what the user may have changed."""

ECHO_TAIL = 3 * RATE // 10
"""Samples for which a room still sounds after the loudspeaker has stopped."""


class Frontend:
    """A `Sound` in front of a card: its frames are echo-cancelled, carry the canceller's doubt, and note wake words.

    A frame behind which no microphone stands (muted, or the card is away) passes as it is: no model runs on it.
    `cancel` makes the canceller for a card, given why the card itself takes its echo away ("" where it does not). With
    `half` the box is deaf while it plays; it is too while its canceller has gone astray, and `deaf` says so.
    `tick` is called four times a second from the loop's thread, `shut` closes and opens the card's microphone.
    """

    def __init__(
        self,
        sound: Sound,
        cancel: Callable[[str], Echo],
        wake: Wake,
        *,
        half: bool = False,
        tick: Callable[[], None] = lambda: None,
        shut: Callable[[bool], None] = lambda on: None,
    ) -> None:
        self.mixer = sound.mixer
        self.echo, self.wake = cancel(""), wake
        self.half = half
        self.heard = self.overruns = 0
        self.muted = self.deaf = False
        self._sound, self._cancel = sound, cancel
        self._tick, self._shut = tick, shut
        self._notes: deque[Note] = deque()
        self._reason = ""
        self._renew = False
        self._until = 0

    def mute(self, on: bool) -> None:
        """Closes the microphone before any model sees its sound, or opens it again. Any thread may call it."""
        if on == self.muted:
            return
        self.muted = on
        self._shut(on)
        self._notes.append(Muting(on))

    def opened(self, reason: str) -> None:
        """Another card is open, whose echo goes away by itself because of `reason`. Any thread may call it."""
        self._reason, self._renew = reason, True

    def frames(self) -> Iterator[Frame]:
        live = True
        for number, frame in enumerate(self._sound.frames()):
            if number % TICK == 0:
                self._tick()
            if self._renew:
                self._renew = False
                self.echo.close()
                self.echo = self._cancel(self._reason)
            self.overruns += frame.overruns
            if frame.live and self.muted:  # the card has not closed it yet
                frame = replace(frame, samples=np.zeros_like(frame.samples), live=False)
            if live and not frame.live:
                self.wake.reset()
            live = frame.live
            yield self._clean(frame) if live else replace(frame, far=NOTHING, notes=self._noted(frame))

    def close(self) -> None:
        self._sound.close()
        self.echo.close()

    def _clean(self, frame: Frame) -> Frame:
        if frame.overruns:
            self.echo.skip(frame.overruns * FRAME)
        clean = self.echo.push(frame.samples, frame.far)
        state = self.echo.state
        gentle, strict = clean.gentle, clean.strict
        if self._covered(frame.at, astray=state.phase == "diverged"):
            gentle = strict = np.zeros_like(gentle)
        woke = self.wake.push(gentle, frame.at, far=frame.far, strict=strict)
        self.heard += 1
        # A virtual card may hand on an echo before it is known what was played.
        unaware = state.phase == "idle" and state.backend != "off" and self.mixer.pending > 0
        return Frame(
            frame.at,
            gentle,
            frame.overruns,
            strict=strict,
            doubt=1.0 if unaware else state.doubt,
            notes=(*self._noted(frame), *woke),
        )

    def _covered(self, at: int, *, astray: bool) -> bool:
        """Whether the box is deaf in this frame: without a canceller that works it would answer itself."""
        self.deaf = self.half or astray
        if self.mixer.pending:
            self._until = at + FRAME + ECHO_TAIL
        return self.deaf and at < self._until

    def _noted(self, frame: Frame) -> tuple[Note, ...]:
        """What the card noticed, and what the user changed since the last frame."""
        own = [self._notes.popleft() for _ in range(len(self._notes))]
        return (*frame.notes, *own)
