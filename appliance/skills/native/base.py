"""What the native skills have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from appliance.errors import SkillFault
from appliance.skills.manifest import Manifest
from appliance.skills.skill import Call, Reply, Services

Answer = Callable[[Call], Reply]


class Native:
    """A skill in Python: `answers` by the name of an intent or tool. They may wait for the disk, so each runs in a
    thread, and is finished even if nobody waits for it any more."""

    def __init__(self, manifest: Manifest, services: Services) -> None:
        self.manifest = manifest
        self.services = services

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def answers(self) -> Mapping[str, Answer]:
        raise NotImplementedError

    async def call(self, call: Call) -> Reply:
        answer = self.answers.get(call.name)
        if answer is None:
            raise SkillFault(f"{self.name} has no {call.name!r}", f"known are: {', '.join(self.answers)}")
        return await asyncio.to_thread(answer, call)

    def close(self) -> None:
        """Nothing is held."""


def text(call: Call, name: str) -> str:
    """An argument as text, "" where there is none."""
    value = call.arguments.get(name)
    return "" if value is None else str(value).strip()


def number(call: Call, name: str) -> float | None:
    value = call.arguments.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def days(call: Call, name: str) -> tuple[str, ...]:
    """Weekdays ("mon"...) that a list or one of them names."""
    value = call.arguments.get(name)
    found = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
    return tuple(str(day) for day in found)
