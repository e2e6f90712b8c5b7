"""The one owner of the sound card: opens it, watches it, and opens it again. Everybody else gets a tap."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from queue import Empty
from typing import Protocol

import numpy as np

from firmware.fault import DeviceFault
from firmware.frame import FRAME, RATE, Frame, Note, Recovered, Trouble
from firmware.mixer import Mixer
from firmware.ring import Ring
from firmware.sound import Sound
from firmware.watch import Watch

BACKOFF = (0.2, 0.5, 1.0, 1.0, 2.0)
"""Seconds in front of each try to open the card; the last one is repeated. A card that returns is heard within 3 s."""

STABLE = 5 * RATE
"""Samples without trouble after which the next one is tried at once again."""

SOFT = ("silence", "rate")
"""Troubles with which the card goes on: its frames are passed on, and opening it again may help or not."""

HASTY, SELDOM = 3, 60.0
"""For them it is opened again three times soon and then once a minute: a source may be silent for a reason."""

CALM = 600 * RATE
"""Samples without trouble after which that begins anew."""

PROOF = round(2.5 * RATE)
"""Samples without trouble after which a wrong rate is right again."""

SLACK = 0.25
"""Seconds by which the count of samples may differ from the clock before the clock gives way: a card that starts sends
a little at once, and its own clock is never quite right."""

PATIENCE = 2.0
"""Seconds that `close` waits for a card that does not close."""

Aside = Callable[[Callable[[], None]], object]


class Opener(Protocol):
    """Opens the card; `listen` is False where only its loudspeaker is wanted. Raises DeviceFault."""

    def __call__(self, at: int, mixer: Mixer, *, listen: bool = True) -> Sound: ...


def _in_thread(job: Callable[[], None]) -> None:
    threading.Thread(target=job, name="sound card", daemon=True).start()


class Keeper:
    """A `Sound` that never fails: `frames` goes on in real time whatever becomes of the card.

    A trouble is noted in a frame at once. Frames while the card is away are silent and not live; `at` counts them, so
    that it stays with the clock. The frame with which the sound is back notes Recovered. `trouble` is what is wrong
    now, `sound` the card that is open, `opened` how often one was. The mixer outlives the cards: what is said while one
    is away goes on when it is back in time.

    `frames` belongs to one thread; the rest may be called from any. `clock` and `sleep` are the time that passes;
    `aside` runs what may take seconds, which is opening and closing.
    """

    def __init__(
        self,
        open: Opener,
        mixer: Mixer,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        aside: Aside = _in_thread,
    ) -> None:
        self.mixer = mixer
        self.trouble: Trouble | None = None
        self.sound: Sound | None = None
        self.opened = 0
        self.overruns = 0
        self.taps: dict[str, Tap] = {}
        self._open, self._clock, self._sleep, self._aside = open, clock, sleep, aside
        self._lock = threading.Lock()
        self._closed = False
        self._muted = self._deaf = False
        self._attempt: _Attempt | None = None
        self._frames: Iterator[Frame] | None = None
        self._watch = Watch()
        self._at = self._shift = 0
        self._beat = self._due = self._since = clock()
        self._tries = self._hasty = self._good = 0
        self._reopen: float | None = None
        self._reopened = -SELDOM

    def frames(self) -> Iterator[Frame]:
        """Ends when it is closed, or the sound itself ends (a recording)."""
        if self._frames is None:
            self._beat = self._clock()
        while not self._closed:
            frame = self._away() if self._frames is None or self._leaves() else self._live(self._frames)
            if frame is None:
                return
            self.overruns += frame.overruns
            for tap in self.taps.values():
                tap.put(frame)
            yield frame

    def mute(self, on: bool) -> None:
        """Closes the microphone, or opens it again; the loudspeaker goes on. Frames are silent and not live at once,
        and the card is opened again without a microphone as soon as `frames` goes on."""
        self._muted = on

    def tap(self, name: str, depth: int) -> Tap:
        """All frames from now on, as they are; the newest `depth` wait. A second tap of a name replaces the first."""
        tap = Tap(depth)
        with self._lock:
            if name in self.taps:
                self.taps[name].close()
            self.taps = {**{key: old for key, old in self.taps.items() if not old.closed}, name: tap}
        return tap

    def close(self) -> None:
        with self._lock:
            self._closed = True
            sound, self.sound = self.sound, None
            attempt = self._attempt
        for tap in self.taps.values():
            tap.close()
        if attempt is not None:
            attempt.cancel()
            attempt.done.wait(PATIENCE)
        if sound is not None:
            closing = _Attempt(sound, None)
            self._aside(closing.run)
            closing.done.wait(PATIENCE)

    # --- while the card works ------------------------------------------------------------------------------------

    def _live(self, frames: Iterator[Frame]) -> Frame | None:
        before = self._clock()
        try:
            frame = next(frames, None)
        except DeviceFault as fault:
            return self._silent(self._lose(_trouble(fault)))
        return self._pass(frame, before) if frame is not None else None

    def _pass(self, frame: Frame, before: float) -> Frame:
        """A frame of the card's, with what it shows of the card; `before` is when the wait for it began."""
        now = self._clock()
        if self._muted or self._deaf:
            frame = replace(frame, samples=np.zeros_like(frame.samples), live=False)
        trouble = self._watch.step(frame, self.mixer.clock, before, now)
        at = frame.at + self._shift
        due = self._beat + (at + FRAME - self._at) / RATE
        self._at, self._beat = at + FRAME, min(max(due, now - SLACK), now + SLACK)
        notes = self._judge(trouble, frame, now)
        return replace(frame, at=at, notes=(*frame.notes, *notes)) if self._shift or notes else frame

    def _judge(self, trouble: Trouble | None, frame: Frame, now: float) -> tuple[Note, ...]:
        """What of it is news."""
        self._good = 0 if trouble else self._good + FRAME
        if trouble is None:
            self._tries = 0 if self._good >= STABLE else self._tries
            self._hasty = 0 if self._good >= CALM else self._hasty
            if self.trouble is None or not self._is_over(self.trouble, frame):
                return ()
            over, self.trouble, self._reopen = self.trouble, None, None
            return (Recovered(over.kind, now - self._since),)
        if trouble.kind not in SOFT:
            return self._lose(trouble)
        notes = self._report(trouble)
        if self._reopen is None:
            soon = now + BACKOFF[min(self._hasty, len(BACKOFF) - 1)]
            self._reopen = soon if self._hasty < HASTY else max(soon, self._reopened + SELDOM)
        return notes

    def _is_over(self, trouble: Trouble, frame: Frame) -> bool:
        match trouble.kind:
            case "silence":
                return bool(frame.samples.any())
            case "rate":
                return self._good >= PROOF
        return True

    def _leaves(self) -> bool:
        """Whether the card is to be opened again though it works."""
        if self._muted == self._deaf:
            if self._reopen is None or self._clock() < self._reopen:
                return False
            self._hasty += 1
            self._reopened = self._clock()
        self._leave(0.0)
        return True

    # --- while it does not ---------------------------------------------------------------------------------------

    def _away(self) -> Frame | None:
        """A silent frame in its time, or the first one of the card once it is open."""
        notes: tuple[Note, ...] = ()
        if self._attempt is None and self._clock() >= self._due:
            self._try()
        attempt = self._attempt
        if attempt is not None and attempt.done.is_set():
            if attempt.fault is not None:
                self._attempt = None
                notes = self._lose(_trouble(attempt.fault))
            elif self._clock() < self._beat + 2 * FRAME / RATE:  # every sample in front of it has been counted
                return self._adopt(attempt)
        return self._silent(notes)

    def _silent(self, notes: tuple[Note, ...]) -> Frame:
        end = self._beat + FRAME / RATE
        if not notes and (wait := end - self._clock()) > 0:
            self._sleep(wait)
        frame = Frame(self._at, np.zeros(FRAME, np.int16), far=np.zeros(FRAME, np.int16), live=False, notes=notes)
        self._at, self._beat = self._at + FRAME, end
        return frame

    def _try(self) -> None:
        with self._lock:
            if self._closed:
                return
            old, self.sound = self.sound, None
            deaf = self._muted
            self._attempt = _Attempt(old, lambda: self._opened(deaf), deaf)
        self._aside(self._attempt.run)

    def _opened(self, deaf: bool) -> Sound:
        return self._open(self._at, self.mixer, listen=False) if deaf else self._open(self._at, self.mixer)

    def _adopt(self, attempt: _Attempt) -> Frame | None:
        with self._lock:
            self._attempt = None
            self.sound, self._frames, self._deaf = attempt.sound, attempt.frames, attempt.deaf
        if self._closed:
            self.close()
        if attempt.first is None:
            return None
        self.opened += 1
        self._watch, self._shift = Watch(), self._at - attempt.first.at
        return self._pass(replace(attempt.first, overruns=0), self._clock())

    def _lose(self, trouble: Trouble) -> tuple[Note, ...]:
        notes = self._report(trouble)
        self._leave(BACKOFF[min(self._tries, len(BACKOFF) - 1)])
        self._tries += 1
        return notes

    def _leave(self, delay: float) -> None:
        self._frames = self._reopen = None
        self._due = self._clock() + delay

    def _report(self, trouble: Trouble) -> tuple[Note, ...]:
        """One note for each outage, and another where a card goes away that had only been in doubt."""
        if self.trouble is None:
            self._since = self._beat
        elif self.trouble.kind not in SOFT or trouble.kind in SOFT:
            return ()
        self.trouble = trouble
        return (trouble,)


class Tap:
    """The frames of the card for somebody else, in a thread of theirs: the newest `depth`, `lost` is how many older
    ones went. Iterating waits for each, and ends when it, or the card's owner, is closed."""

    def __init__(self, depth: int) -> None:
        self.closed = False
        self._ring: Ring[Frame] = Ring(depth)

    @property
    def lost(self) -> int:
        return self._ring.lost

    def __iter__(self) -> Iterator[Frame]:
        while True:
            try:
                frame, _ = self._ring.get(timeout=0.1)
            except Empty:
                if self.closed:
                    return
            else:
                yield frame

    def put(self, frame: Frame) -> None:
        """Only the owner calls this; it never waits."""
        if not self.closed:
            self._ring.put(frame)

    def close(self) -> None:
        self.closed = True


class _Attempt:
    """Closes the card that was open, opens it again and waits for its first frame. Then it is `done`, with a `fault` or
    without."""

    def __init__(self, old: Sound | None, open: Callable[[], Sound] | None, deaf: bool = False) -> None:
        self.deaf = deaf
        self.done = threading.Event()
        self.fault: DeviceFault | None = None
        self.sound: Sound | None = None
        self.frames: Iterator[Frame] | None = None
        self.first: Frame | None = None
        self._old, self._open = old, open
        self._lock = threading.Lock()
        self._cancelled = False

    def run(self) -> None:
        sound = None
        try:
            if self._old is not None:
                self._old.close()
            if self._open is not None:
                sound = self._open()
                self.frames = sound.frames()
                self.first = next(self.frames, None)
                self.sound, sound = sound, None
        except DeviceFault as fault:
            self.fault = fault
        finally:
            if sound is not None:
                sound.close()
            if self.sound is None and self.fault is None:
                self.fault = DeviceFault("the sound card cannot be opened", "see the log", "refused")
            with self._lock:
                self.done.set()
                cancelled = self._cancelled
            if cancelled:
                self._drop()

    def cancel(self) -> None:
        """Nobody wants it any more: it is closed as soon as it is open."""
        with self._lock:
            self._cancelled = True
            done = self.done.is_set()
        if done:
            self._drop()

    def _drop(self) -> None:
        if self.sound is not None:
            self.sound.close()


def _trouble(fault: DeviceFault) -> Trouble:
    return Trouble(fault.kind or "unplugged", fault.message, fault.fix)
