"""What a skill declares about itself: skill.toml, read once, checked once, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from appliance.skills.skill import Effect, Json

ABI = 1


@dataclass(frozen=True, slots=True)
class Grants:
    """What the host may do for the skill; what is not named is refused.

    `say`: speak at once, before the reply; `ask`: keep the dialogue open; `memory`: bytes of a space of its own (0:
    none); `alarms`, `clock`, `log`, `data` (files of its own folder): yes or no; `http`: host names; `publish`, `read`:
    MQTT topic filters; `controls`: names of the box's knobs.
    """

    say: bool = False
    ask: bool = False
    memory: int = 0
    alarms: bool = False
    clock: bool = False
    log: bool = False
    data: bool = False
    http: tuple[str, ...] = ()
    publish: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """`fuel` instructions, `deadline_ms` of wall time, `memory_mb` of linear memory, `table` elements, `output_kb` of
    reply, `acts` that one call may have carried out."""

    fuel: int = 50_000_000
    deadline_ms: int = 500
    memory_mb: int = 16
    table: int = 10_000
    output_kb: int = 64
    acts: int = 16


@dataclass(frozen=True, slots=True)
class SlotRule:
    """`ask` is the question that fills the slot when it is `required` and missing."""

    required: bool = False
    ask: str = ""
    default: Json = None


@dataclass(frozen=True, slots=True)
class IntentRule:
    """`confirm` is the question asked first, with {slot} places; an intent that costs has one. `follows` names slots
    that stay valid in the next question ("and tomorrow?")."""

    effect: Effect = "none"
    confirm: str = ""
    slots: Mapping[str, SlotRule] = field(default_factory=dict)
    follows: tuple[str, ...] = ()
    say: str = ""
    """An example sentence, for help and for what the user can say next."""


@dataclass(frozen=True, slots=True)
class Tool:
    """What a language model may call. `parameters` is a JSON schema (an object); `say` puts a call into words for the
    user to confirm, with {parameter} places."""

    name: str
    description: str
    effect: Effect
    parameters: Mapping[str, Json]
    say: str = ""
    examples: tuple[tuple[str, Mapping[str, Json]], ...] = ()
    """Requests and the arguments they mean."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """`module` is the WebAssembly file, or "" for a `native` skill, which only the product itself ships."""

    folder: Path
    name: str
    version: str
    title: str
    description: str = ""
    locales: tuple[str, ...] = ("en-US",)
    module: str = ""
    native: str = ""
    checksum: str = ""
    grants: Grants = field(default_factory=Grants)
    limits: Limits = field(default_factory=Limits)
    intents: Mapping[str, IntentRule] = field(default_factory=dict)
    tools: Mapping[str, Tool] = field(default_factory=dict)
