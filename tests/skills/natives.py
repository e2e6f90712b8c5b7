"""A box with the native skills, spoken to through the real recogniser, dialogue and store, with clocks of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from zoneinfo import ZoneInfo

from appliance.errors import NetworkFault, SkillFault
from appliance.skills.dialogue import Dialogue, Outcome
from appliance.skills.host import read_data
from appliance.skills.intents.recognise import Intents
from appliance.skills.intents.templates import load
from appliance.skills.library import SHIPPED
from appliance.skills.manifest import Manifest, read
from appliance.skills.native import natives
from appliance.skills.native.knobs import Knob, Knobs
from appliance.skills.skill import Alarm, Call, Memory, Reply, Services
from appliance.store.alarms import Alarms, Clocks
from appliance.store.cells import Cells
from appliance.voice.honest import claims_a_deed

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 12, 1, 12, 0, tzinfo=BERLIN)
"""A Tuesday."""


@cache
def shipped() -> tuple[Mapping[str, Manifest], Intents, tuple[SkillFault, ...]]:
    """What is shipped: manifests by skill, and the sentences of all of them, compiled once."""
    manifests = {folder.name: read(folder) for folder in sorted(SHIPPED.iterdir()) if (folder / "skill.toml").exists()}
    grammars, faults = {}, list[SkillFault]()
    for name, manifest in manifests.items():
        grammars[name], found = load(manifest.folder / "intents/en.yaml", partial(read_data, manifest))
        faults += found
    intents, claims = Intents.compile(grammars)
    return manifests, intents, (*faults, *claims)


class NoNetwork:
    def publish(self, topic: str, payload: str, *, deadline_s: float) -> None:
        raise NetworkFault("there is no network", "look after the network")

    def last(self, topic: str) -> str | None:
        return None

    def fetch(self, method: str, url: str, body: str, *, deadline_s: float, limit: int) -> tuple[int, str]:
        raise NetworkFault("there is no network", "look after the network")


class Talking:
    """A `Box` of which all is known."""

    def __init__(self) -> None:
        self.said = ""
        self.stopped = 0

    def last_said(self) -> str:
        return self.said

    def stop(self) -> bool:
        self.stopped += 1
        return self.stopped == 1

    def examples(self) -> Mapping[str, Sequence[str]]:
        manifests, _, _ = shipped()
        return {
            manifest.title: [rule.say for rule in manifest.intents.values() if rule.say]
            for manifest in manifests.values()
        }


class SpokenTo:
    def __init__(self, folder: Path, now: datetime = NOON) -> None:
        self.wall, self.steady = now.timestamp(), 1000.0
        self.zone = now.tzinfo
        assert self.zone
        clocks = Clocks(lambda: self.wall, lambda: self.steady, lambda: "boot")
        self.alarms = Alarms(folder / "alarms.db", Alarm, self.zone, clocks)
        self.cells = Cells(folder / "cells.db")
        self.turned: dict[str, object] = {"volume": 40, "mute": False, "rate": 1.0}
        knobs = {
            "volume": self._knob("volume", 0, 100),
            "mute": self._knob("mute"),
            "rate": self._knob("rate", 0.5, 2),
        }
        memory: Memory = self.cells.space("box", 1000)
        self.controls = Knobs(knobs, memory)
        self.services = Services(lambda name: memory, self.alarms, NoNetwork(), self.controls, self.now)
        self.box = Talking()
        manifests, self.intents, _ = shipped()
        self.skills = {name: made(manifests[name], self.services) for name, made in natives(self.box).items()}
        self.dialogue = Dialogue(lambda: self.skills, lambda: self.intents, now=self.now, clock=lambda: self.steady)
        self.last: Outcome | None = None

    def _knob(self, name: str, low: float | None = None, high: float | None = None) -> Knob:
        return Knob(lambda: self.turned[name], lambda value: self.turned.update({name: value}), low, high)  # type: ignore[arg-type,return-value]

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.wall, self.zone)

    def passes(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds
        self.alarms.look()

    def understood(self, text: str) -> tuple[str, dict[str, object]]:
        """The intent ("alarms.SetTimer") and the values that the words are taken for."""
        readings = self.intents.readings(text, now=self.now())
        if not readings or readings[0].score < 0.8:
            return "", {}
        (match,) = readings[0].matches
        return f"{match.skill}.{match.intent}", dict(match.values)

    async def says(self, text: str) -> str:
        """The answer. What claims a deed must rest on one."""
        plan = self.dialogue.plan([text])
        assert plan is not None, text
        self.last = await self.dialogue.perform(plan)
        self.dialogue.commit(self.last)
        if not any(deed.ok for deed in self.last.deeds):
            assert not claims_a_deed(self.last.says), self.last.says
        return self.last.says

    async def call(self, skill: str, name: str, text: str = "", /, **arguments: object) -> Reply:
        return await self.skills[skill].call(Call(name, arguments, text))  # type: ignore[arg-type]

    def names(self) -> list[str]:
        return [alarm.name for alarm in self.alarms.all()]


__all__ = ["BERLIN", "NOON", "SpokenTo", "shipped"]
