from __future__ import annotations

import threading
from queue import Empty

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware.ring import Ring


@given(st.lists(st.integers(0, 9)), st.integers(1, 8))
def test_what_is_not_read_is_dropped_oldest_first_and_counted(bursts: list[int], capacity: int) -> None:
    """Each burst of puts is followed by one get."""
    ring: Ring[int] = Ring(capacity)
    number = 0
    waiting: list[int] = []
    expected = 0
    for burst in bursts:
        for _ in range(burst):
            ring.put(number)
            waiting = [*waiting, number][-capacity:]
            number += 1
        if not waiting:
            with pytest.raises(Empty):
                ring.get(timeout=0)
            continue
        item, lost = ring.get(timeout=0)
        assert item == waiting.pop(0)
        assert lost == item - expected
        expected = item + 1
        assert len(ring) == len(waiting)


def test_every_item_is_delivered_or_counted_across_threads() -> None:
    ring: Ring[int] = Ring(16)
    total = 20_000

    def produce() -> None:
        for number in range(total):
            ring.put(number)

    producer = threading.Thread(target=produce)
    producer.start()
    seen = missed = 0
    last = -1
    while seen + missed < total:
        item, lost = ring.get(timeout=5)
        assert item == last + 1 + lost
        last, seen, missed = item, seen + 1, missed + lost
        if item == total - 1:
            break
    producer.join()
    assert seen + missed == total
    assert ring.lost == missed
