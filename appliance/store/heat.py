"""What matters now: each thing that is spoken of is hot for a while.

Kept up to date by a step per turn; nothing is recomputed. It goes to recognition (words to expect), to the precision
controller (words that must be right) and to the doors (what a screen shows)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Why = Literal["entity", "task", "emotion", "number"]

COOLING = 0.8
"""What is left of heat after a turn; behind ten turns a tenth."""
COLD = 0.05
MOST = 64


@dataclass(frozen=True, slots=True)
class Hot:
    """`heat` in (0, 1]; `why` it is hot. `critical`: it must be heard, written and spoken right."""

    word: str
    heat: float
    why: Why
    critical: bool


class HeatMap:
    """Not to be used from two threads at once."""

    def __init__(self) -> None:
        self._heat: dict[str, tuple[str, float, Why, bool]] = {}

    def turn(self, spoken: Iterable[Hot]) -> None:
        """One turn: all that was hot cools, what was spoken of is heated."""
        cooled = {key: (word, heat * COOLING, why, crit) for key, (word, heat, why, crit) in self._heat.items()}
        for hot in spoken:
            key = hot.word.lower()
            before = cooled.get(key, (hot.word, 0.0, hot.why, hot.critical))
            heat = 1.0 - (1.0 - before[1]) * (1.0 - hot.heat)
            cooled[key] = (hot.word, heat, hot.why, hot.critical or before[3])
        warm = sorted(((key, entry) for key, entry in cooled.items() if entry[1] >= COLD), key=lambda e: -e[1][1])
        self._heat = dict(warm[:MOST])

    def hottest(self, count: int = 16) -> list[Hot]:
        return [Hot(*entry) for entry in list(self._heat.values())[:count]]

    def words(self, count: int = 16) -> list[str]:
        return [hot.word for hot in self.hottest(count)]

    def critical(self) -> list[str]:
        return [hot.word for hot in self.hottest(MOST) if hot.critical]

    def forget(self, words: Iterable[str]) -> None:
        """Of these words, or of those that hold them, nothing is hot any more."""
        gone = [word.lower() for word in words if word]
        self._heat = {
            key: entry for key, entry in self._heat.items() if not any(word in key or key in word for word in gone)
        }

    def clear(self) -> None:
        self._heat = {}
