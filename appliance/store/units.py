"""What memory is made of: turns as they were, and units, which are what a turn said that may matter again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

Kind = Literal["fact", "preference", "task", "decision", "emotion", "entity", "summary"]
KINDS: tuple[Kind, ...] = ("fact", "preference", "task", "decision", "emotion", "entity", "summary")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Turn:
    """`asked` is what was heard, `said` what was really played of the answer, which ended for `reason`; `by` names who
    wrote it (model, skill, pack, memory). `intent` ("kiosk.Order"), `slots` and `deeds` ("mqtt.publish") are what it
    was taken for, and what was done. `person` is whose profile it belongs to, "" everybody's. `at` is the wall clock's,
    `lived` the box's own age in seconds (see `decay.elapsed`)."""

    asked: str
    said: str = ""
    reason: str = "complete"
    by: str = "model"
    intent: str = ""
    slots: Mapping[str, object] = field(default_factory=dict)
    deeds: tuple[str, ...] = ()
    person: str = ""
    id: int = 0
    conversation: int = 0
    at: datetime = EPOCH
    lived: float = 0.0


@dataclass(frozen=True, slots=True)
class Unit:
    """`text` is a clause of the user's. Where it is known what it says, that is `subject`, `attribute` and `value`
    ("my daughter", "name", "Mia"); `slot` is then what another unit with the same takes the place of.

    It is valid from `born` to `ended` (lived seconds; None: still); `successor` took its place. `uses` are the latest
    times at which it was said again or answered with, `used` how many there were. `turn` is where it was said; a
    summary has none of its own and is linked to many. `archived`: found by its words only."""

    kind: Kind
    text: str
    subject: str = ""
    attribute: str = ""
    value: str = ""
    slot: str = ""
    person: str = ""
    importance: float = 0.5
    id: int = 0
    turn: int = 0
    said: datetime = EPOCH
    born: float = 0.0
    uses: tuple[float, ...] = ()
    used: int = 0
    ended: float | None = None
    successor: int = 0
    archived: bool = False

    @property
    def current(self) -> bool:
        return self.ended is None
