"""A skill that keeps failing is benched for a while, and longer each time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

FAILURES = 3
WITHIN = 60.0
FIRST = 60.0
LONGEST = 3600.0


class Breaker:
    """Seconds by `clock`. Three failures within a minute bench, whatever worked between them; behind the bench one more
    does, until it has worked again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: deque[float] = deque(maxlen=FAILURES)
        self._until = float("-inf")
        self._back_off = FIRST
        self._trial = False

    @property
    def benched(self) -> float:
        """Seconds for which it is not called; 0 for one that may be."""
        return max(0.0, self._until - self._clock())

    def worked(self) -> None:
        self._back_off, self._trial = FIRST, False

    def failed(self) -> bool:
        """Whether this was one too many."""
        now = self._clock()
        self._failed.append(now)
        many = len(self._failed) == FAILURES and now - self._failed[0] <= WITHIN
        if not many and not self._trial:
            return False
        self._until = now + self._back_off
        self._back_off, self._trial = min(2 * self._back_off, LONGEST), True
        self._failed.clear()
        return True
