"""The contract, on one screen, between what understands (intents), what decides (dialogue), what acts (skills), and the
turn that tells the user about it.

    words -> Intents.readings -> Reading(Match...) -> Dialogue.plan -> skill.call(Call) -> Reply(say, deeds)

A skill never speaks for what was done: `Reply.deeds` are written by the host, one for each act that it carried out or
failed to carry out, and a claim without a successful deed is not spoken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]

Effect = Literal["none", "acts", "costs"]
"""none: only reads, so it may run before the turn is confirmed; acts: changes what can be undone; costs: costs
something or cannot be undone, so the user is asked first."""


# --- what was understood -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slot:
    """`value` is canonical (the list's `out`, a number, seconds, an ISO date), `text` the words it was found in,
    `score` in [0, 1] how alike they are (1: the same words)."""

    value: Json
    text: str
    score: float = 1.0


@dataclass(frozen=True, slots=True)
class Match:
    """One intent in one stretch of words. `text` is the stretch in the template's own words: what was meant."""

    skill: str
    intent: str
    slots: Mapping[str, Slot]
    score: float
    text: str = ""

    @property
    def values(self) -> dict[str, Json]:
        return {name: slot.value for name, slot in self.slots.items()}


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to understand an utterance: its commands in the order they were said, and the calibrated probability
    that all of it is meant. `text` is the utterance with what was misheard put right, to be compared with the sound."""

    matches: tuple[Match, ...]
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class Expecting:
    """What the box has just asked for: an answer may be the bare value of `slot`, or yes or no (`yes_no`)."""

    skill: str
    intent: str
    slot: str = ""
    yes_no: bool = False


# --- what is done ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """What a skill is asked: `name` of an intent or a tool of its manifest, `arguments` by slot or parameter name.
    `text` are the user's words, which are data; `context` is what the skill left in its last Reply of this dialogue."""

    name: str
    arguments: Mapping[str, Json]
    text: str = ""
    locale: str = "en-US"
    context: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deed:
    """What the host did for a skill, or failed to do: `what` is "timer.set", "memory.write", "mqtt.publish",
    "http.fetch", "device.set"..., `detail` for the log and for an honest sentence."""

    what: str
    ok: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """The dialogue stays open: the next words may answer with `slot` of `intent`, or with yes or no."""

    intent: str
    slot: str = ""
    yes_no: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """`say` is for the user; `data` is a tool's result; `context` is handed back with the next call of this dialogue;
    `suggestions` are what the user can say next. `failed` says that the skill could not do it (`say` tells why)."""

    say: str = ""
    ask: Ask | None = None
    context: Mapping[str, Json] = field(default_factory=dict)
    data: Json = None
    suggestions: tuple[str, ...] = ()
    deeds: tuple[Deed, ...] = ()
    failed: bool = False

    @property
    def acted(self) -> bool:
        return any(deed.ok for deed in self.deeds)


# --- what the box gives to skills --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Alarm:
    """A timer, an alarm or a reminder. `due` is aware (UTC); `seconds` is the length of a timer, 0 for the others;
    `repeat` names weekdays ("mon"...) on which an alarm comes again, `text` what a reminder says."""

    id: int
    kind: Literal["timer", "alarm", "reminder"]
    name: str
    due: datetime
    seconds: float = 0.0
    text: str = ""
    repeat: tuple[str, ...] = ()
    paused: float | None = None
    """Seconds left of a timer that is paused."""
    state: Literal["waiting", "ringing"] = "waiting"


class Memory(Protocol):
    """One skill's own space: keys and texts that survive a power cut. Raises StorageFault; SkillFault when full."""

    def read(self, key: str) -> str | None: ...
    def write(self, key: str, text: str) -> None: ...
    def delete(self, key: str) -> bool: ...
    def keys(self, prefix: str = "") -> list[str]: ...


class Alarms(Protocol):
    """Timers, alarms and reminders, kept over a power cut. Every call returns when it is on the disk. Raises
    StorageFault."""

    def add(
        self,
        kind: Literal["timer", "alarm", "reminder"],
        *,
        name: str = "",
        seconds: float = 0.0,
        due: datetime | None = None,
        text: str = "",
        repeat: Sequence[str] = (),
    ) -> Alarm: ...
    def all(self) -> list[Alarm]: ...
    def cancel(self, id: int) -> bool: ...
    def pause(self, id: int) -> bool: ...
    def resume(self, id: int) -> bool: ...
    def extend(self, id: int, seconds: float) -> bool: ...
    def rename(self, id: int, name: str) -> bool: ...
    def dismiss(self) -> int:
        """Ends what rings now; how many."""
        ...

    def snooze(self, seconds: float) -> int: ...


class Network(Protocol):
    """Each call has a deadline and raises NetworkFault."""

    def publish(self, topic: str, payload: str, *, deadline_s: float) -> None:
        """Returns once the broker has taken it (QoS 1)."""
        ...

    def last(self, topic: str) -> str | None:
        """The latest payload on a topic that somebody's grant names; None: nothing was heard."""
        ...

    def fetch(self, method: str, url: str, body: str, *, deadline_s: float, limit: int) -> tuple[int, str]:
        """Status and body, of `limit` bytes at most."""
        ...


class Controls(Protocol):
    """The box's own knobs: "volume" (0-100), "mute" (bool), "rate" (speech, 0.5-2). Raises Fault for others."""

    def get(self, name: str) -> Json: ...
    def set(self, name: str, value: Json) -> None: ...


@dataclass(frozen=True, slots=True)
class Services:
    """Everything of the box that a skill may be granted."""

    memory: Callable[[str], Memory]
    """By skill name."""
    alarms: Alarms
    network: Network
    controls: Controls
    now: Callable[[], datetime]
    """Aware, in the box's time zone."""
