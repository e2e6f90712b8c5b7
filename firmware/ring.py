"""The ring between a sound card's callback and the loop that reads it."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class Ring(Generic[T]):
    """Holds the newest `capacity` items. `put` belongs to one thread, `get` to another; `put` never waits: when the
    ring is full the oldest item goes, and is counted."""

    def __init__(self, capacity: int) -> None:
        self._items: SimpleQueue[tuple[int, T]] = SimpleQueue()
        self._capacity = capacity
        self._number = 0
        self._expected = 0
        self.lost = 0

    def put(self, item: T) -> None:
        if self._items.qsize() >= self._capacity:
            with suppress(Empty):
                self._items.get_nowait()
                self.lost += 1
        self._items.put((self._number, item))
        self._number += 1

    def get(self, timeout: float) -> tuple[T, int]:
        """The oldest item, and how many were lost in front of it. Waits `timeout` seconds; then raises queue.Empty."""
        number, item = self._items.get(timeout=timeout)
        lost, self._expected = number - self._expected, number + 1
        return item, lost

    def __len__(self) -> int:
        return self._items.qsize()
