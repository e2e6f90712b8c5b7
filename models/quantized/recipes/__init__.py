"""One module per model family, named by a manifest's `recipe`.

Each offers

    build(card, sources, out, progress)   writes the artefacts into the folder `out`; the same inputs give the same bytes
    verify(built) -> list[Check]          runs the built model on the manifest's golden inputs

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
