"""The watchdog of a sound card, in two halves without clock or thread of their own: what the card shows of itself, and
what its frames show. Each trouble is noticed within 2 s and has a name of its own."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from firmware.frame import FRAME, RATE, Frame, Trouble

LATE = 1.5
"""Seconds without any sound after which a card is frozen. As long lasts the exact silence that is a trouble, and the
time for which a loudspeaker may take nothing."""

FIRST = 3.0
"""Seconds that a card has for its first sound: the monitor of a sink that sleeps needs 2.1, a headset that changes its
profile about as long."""

DEAD = 0.3
"""Seconds that streams have been dead before that is said: by then it is known whether the server is what died."""

STEP = 0.25
"""Seconds that count between two looks: if it was longer, it is the looking that stopped."""

TOLERANCE = 0.02
"""By how much of itself a rate may be wrong; clocks of sound cards are off by less than a thousandth."""

BIN = 0.4
BINS = 4
"""The rate is measured in four bins of 0.4 s."""

WAITED = 0.001
"""Seconds after which a frame was waited for: one that lay ready says nothing about the time of its arrival."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a card shows at `now`, in monotonic seconds: `heard` samples have come from it, its streams are `alive` or
    have ended, its sound `server` answers, which records for us at `place`: "" is nowhere, None is not known."""

    now: float
    heard: int
    alive: bool = True
    server: bool = True
    place: str | None = None


class Lookout:
    """Watches a card by its readings; whoever waits for its sound steps it ten times a second."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._heard = 0
        self._late = self._dead = 0.0
        self._place = ""

    def step(self, reading: Reading) -> Trouble | None:
        passed, self._now = min(reading.now - self._now, STEP), reading.now
        self._late = self._late + passed if reading.heard == self._heard else 0.0
        self._dead = 0.0 if reading.alive else self._dead + passed
        self._heard = reading.heard
        if not reading.server:
            return Trouble("server", "the sound server is gone", "start it again; it is found when it is back")
        if self._place and reading.place is not None and reading.place != self._place:
            return self._elsewhere(reading.place)
        self._place = self._place or reading.place or ""
        if self._dead >= DEAD:
            return UNPLUGGED
        if self._late >= (LATE if self._heard else FIRST):
            return Trouble(
                "frozen",
                f"the sound card has sent nothing for {self._late:.1f} s",
                "it is opened again; if that does not help, check the cable and the sound server",
            )
        return None

    def _elsewhere(self, place: str) -> Trouble:
        if not place:
            return UNPLUGGED
        return Trouble(
            "moved",
            f"the sound server records from {place} instead of {self._place}",
            "plug the microphone in again, or choose another: `parley doctor` lists them",
        )


UNPLUGGED = Trouble(
    "unplugged", "the sound card is gone", "plug it in again, or choose another: `parley doctor` lists them"
)
SILENT = Trouble(
    "silence",
    f"the microphone has sent nothing but zeros for {LATE} s",
    "see whether a switch, or the mixer (pavucontrol, alsamixer), mutes it",
)
STALLED = Trouble(
    "frozen",
    f"the loudspeaker has taken nothing for {LATE} s",
    "it is opened again; if that does not help, check the cable and the sound server",
)


class Watch:
    """Watches a card by its frames: exact digital silence, a wrong rate, a loudspeaker that takes nothing.

    `step` is called for each; it says a trouble again for as long as it lasts.
    """

    def __init__(self) -> None:
        self._zeros = 0
        self._clock = -1
        self._now = 0.0
        self._stalled = 0.0
        self._pace = _Pace()

    def step(self, frame: Frame, clock: int, before: float, now: float) -> Trouble | None:
        """`clock` is the mixer's; `before` and `now` are when the wait for the frame began and ended, in seconds."""
        self._stalled = self._stalled + min(now - self._now, STEP) if clock == self._clock else 0.0
        self._clock, self._now = clock, now
        if self._stalled >= LATE:
            return STALLED
        if not frame.live:
            return None
        self._zeros = 0 if frame.samples.any() else self._zeros + FRAME
        if self._zeros >= LATE * RATE:
            return SILENT
        if now - before < WAITED:
            return None
        return self._pace.step(frame.at / RATE, now)


class _Pace:
    """Measures how fast sound comes.

    Sound is never early, but often late: on a busy box, or because a server hands it on in lumps. So each bin keeps the
    least delay of what came in it. A wrong rate moves that delay by as much from each bin to the next; sound that was
    held up or lost moves it once.
    """

    def __init__(self) -> None:
        self._start: float | None = None
        self._bin = -1
        self._least = np.inf
        self._bins: deque[float] = deque(maxlen=BINS)

    def step(self, sound: float, now: float) -> Trouble | None:
        """`sound` seconds have come by `now`."""
        if self._start is None:
            self._start = now
        number = int((now - self._start) / BIN)
        trouble = None
        if number == self._bin + 1 and number:
            self._bins.append(self._least)
            trouble = self._judge()
        elif number != self._bin:  # nothing came in between
            self._bins.clear()
        if number != self._bin:
            self._bin, self._least = number, np.inf
        self._least = min(self._least, now - sound)
        return trouble

    def _judge(self) -> Trouble | None:
        if len(self._bins) < BINS:
            return None
        late = np.diff(self._bins) / BIN
        if (np.abs(late) <= TOLERANCE).any() or abs(np.sign(late).sum()) < len(late):
            return None
        wrong = float(np.median(late))
        self._bins.clear()
        return Trouble(
            "rate",
            f"the microphone sends {RATE * (1 - wrong):.0f} samples in a second that should be {RATE}",
            "it is opened again; if that does not help, set another rate in the sound server",
        )
