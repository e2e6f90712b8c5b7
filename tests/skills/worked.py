"""A worked skill in the sandbox, with the services that it is granted, spoken to call by call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest

import appliance.skills
from appliance.errors import NetworkFault
from appliance.skills import manifest
from appliance.skills.dialogue import Dialogue
from appliance.skills.skill import Alarm, Call, Expecting, Json, Match, Reading, Reply, Services, Slot
from appliance.voice.claims import kind

Sandboxed = pytest.importorskip("appliance.skills.sandbox").Sandboxed
SHIPPED = Path(appliance.skills.__file__).parent / "shipped"


class Memory:
    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def read(self, key: str) -> str | None:
        return self.texts.get(key)

    def write(self, key: str, text: str) -> None:
        self.texts[key] = text

    def delete(self, key: str) -> bool:
        return self.texts.pop(key, None) is not None

    def keys(self, prefix: str = "") -> list[str]:
        return [key for key in self.texts if key.startswith(prefix)]


class Network:
    """A broker that may be away."""

    def __init__(self) -> None:
        self.away = False
        self.published: list[tuple[str, str]] = []

    def publish(self, topic: str, payload: str, *, deadline_s: float) -> None:
        if self.away:
            raise NetworkFault("the broker does not answer", "look after the network")
        self.published.append((topic, payload))

    def last(self, topic: str) -> str | None:
        return None

    def fetch(self, method: str, url: str, body: str, *, deadline_s: float, limit: int) -> tuple[int, str]:
        raise NetworkFault("there is no network", "look after the network")


class NoAlarms:
    """No worked skill here is granted alarms."""

    def add(
        self,
        kind: Literal["timer", "alarm", "reminder"],
        *,
        name: str = "",
        seconds: float = 0.0,
        due: datetime | None = None,
        text: str = "",
        repeat: Sequence[str] = (),
    ) -> Alarm:
        raise AssertionError

    def all(self) -> list[Alarm]:
        raise AssertionError

    def cancel(self, id: int) -> bool:
        raise AssertionError

    def pause(self, id: int) -> bool:
        raise AssertionError

    def resume(self, id: int) -> bool:
        raise AssertionError

    def extend(self, id: int, seconds: float) -> bool:
        raise AssertionError

    def rename(self, id: int, name: str) -> bool:
        raise AssertionError

    def dismiss(self) -> int:
        raise AssertionError

    def snooze(self, seconds: float) -> int:
        raise AssertionError


class NoControls:
    def get(self, name: str) -> Json:
        raise AssertionError

    def set(self, name: str, value: Json) -> None:
        raise AssertionError


class Scripted:
    """A recogniser that has understood what stands in the script, for a test of what comes of it."""

    def __init__(self, skill: str, script: Mapping[str, tuple[str, Mapping[str, Json]]]) -> None:
        self.skill, self.script = skill, script

    def readings(
        self,
        texts: str | Sequence[str],
        *,
        expecting: Expecting | None = None,
        now: datetime | None = None,
        limit: int = 5,
    ) -> list[Reading]:
        text = texts if isinstance(texts, str) else texts[0]
        if text in ("yes", "no", "cancel"):
            return [Reading((Match("dialogue", text, {}, 1.0, text),), 1.0, text)]
        name, values = self.script[text]
        slots = {slot: Slot(value, str(value)) for slot, value in values.items()}
        return [Reading((Match(self.skill, name, slots, 0.95, text),), 0.95, text)]


async def conversation(worked: Worked, script: Mapping[str, tuple[str, Mapping[str, Json]]], *said: str) -> list[str]:
    """What the box answers, turn by turn, through the real dialogue."""
    skill = worked.skill
    intents = Scripted(skill.name, script)
    dialogue = Dialogue(lambda: {skill.name: skill}, lambda: intents, now=lambda: worked.now)
    answers = []
    for text in said:
        plan = dialogue.plan([text])
        assert plan is not None, text
        outcome = await dialogue.perform(plan)
        dialogue.commit(outcome)
        answers.append(outcome.says)
    return answers


def sentences(text: str) -> list[str]:
    """Without what is quoted: those are somebody else's words."""
    return re.split(r"(?<=[.!?])\s+", re.sub(r'"[^"]*"', "it", text))


@dataclass
class Worked:
    """`context` is handed on from reply to reply, as a dialogue does; `new_dialogue` drops it, `restart` all but the
    memory."""

    folder: Path
    memory: Memory = field(default_factory=Memory)
    network: Network = field(default_factory=Network)
    now: datetime = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        services = Services(
            memory=lambda _: self.memory,
            alarms=NoAlarms(),
            network=self.network,
            controls=NoControls(),
            now=lambda: self.now,
        )
        self.manifest = manifest.read(self.folder)
        self.skill = Sandboxed(self.manifest, services)
        self.last = Reply()

    def new_dialogue(self) -> None:
        self.last = replace(self.last, context={}, ask=None)

    def pass_time(self, **parts: float) -> None:
        self.now += timedelta(**parts)

    async def call(self, name: str, text: str = "", /, **arguments: Json) -> Reply:
        self.last = await self.skill.call(Call(name, arguments, text, context=self.last.context))
        if not self.last.acted:
            claims = [text for text in sentences(self.last.say) if kind(text) in ("deed", "outcome")]
            assert not claims, "nothing was done"
        return self.last

    async def says(self, name: str, text: str = "", /, **arguments: Json) -> str:
        return (await self.call(name, text, **arguments)).say

    async def yes(self) -> str:
        """Yes to the question that is open."""
        ask = self.last.ask
        assert ask is not None
        assert ask.yes_no, "that was no yes-or-no question"
        return await self.says(ask.intent, "yes")
