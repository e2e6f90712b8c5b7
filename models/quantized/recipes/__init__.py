"""One module per model family, named by a manifest's `recipe`.

Each offers

    build(card, sources, out, progress)   writes the artefacts into the folder `out`, the same bytes for the same inputs
    verify(built) -> list[Check]          runs the built model on the manifest's golden inputs
    VERSION = 1                           (may be left out) raised when the artefacts of the same manifest change
    EXACT = True                          (may be left out) False when the bytes depend on the CPU, as they do where
                                          numpy's matrix products, sums or exponentials end up in them: a build then has
                                          to pass its golden checks, and need not have the manifest's digests

`sources` maps a source's name to its file, `progress(note, fraction)` reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Progress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Check:
    """One golden comparison: `value` must not exceed `limit` (or, with `at_least`, not be below it)."""

    name: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def passed(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        return (
            f"{self.name} is {self.value:.6g}, {'at least' if self.at_least else 'at most'} {self.limit:.6g} is right"
        )
