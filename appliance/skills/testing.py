"""A skill spoken to without a microphone: its tests.yaml through the real recogniser, dialogue and sandbox, with
services that live in memory.

    - name: milk on the list
      turns:
        - say: add milk to my shopping list
          intent: Add                # or Ask, Confirm... for what the dialogue asks
          slots: { item: milk }
          reply: added milk          # in what is said, whatever the case; a list: all of them
          deeds: [memory.write]      # "!memory.write": it failed
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from appliance.errors import Fault, NetworkFault, SkillFault
from appliance.skills.dialogue import Dialogue, Outcome, Plan
from appliance.skills.intents.templates import read_yaml
from appliance.skills.library import Library, Native
from appliance.skills.skill import Alarm, Json, Services

NOW = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)


class Memory(dict[str, str]):
    def read(self, key: str) -> str | None:
        return self.get(key)

    def write(self, key: str, text: str) -> None:
        self[key] = text

    def delete(self, key: str) -> bool:
        return self.pop(key, None) is not None

    def keys(self, prefix: str = "") -> list[str]:  # type: ignore[override]
        return sorted(key for key in self if key.startswith(prefix))


class Alarms:
    """On a clock that stands still."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now
        self._alarms: dict[int, Alarm] = {}
        self._next = itertools.count(1)

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
        when = due or self.now + timedelta(seconds=seconds)
        alarm = Alarm(next(self._next), kind, name, when, seconds, text, tuple(repeat))
        self._alarms[alarm.id] = alarm
        return alarm

    def all(self) -> list[Alarm]:
        return list(self._alarms.values())

    def cancel(self, id: int) -> bool:
        return self._alarms.pop(id, None) is not None

    def pause(self, id: int) -> bool:
        return self._change(id, paused=60.0)

    def resume(self, id: int) -> bool:
        return self._change(id, paused=None)

    def extend(self, id: int, seconds: float) -> bool:
        return id in self._alarms and self._change(id, due=self._alarms[id].due + timedelta(seconds=seconds))

    def rename(self, id: int, name: str) -> bool:
        return self._change(id, name=name)

    def dismiss(self) -> int:
        return 0

    def snooze(self, seconds: float) -> int:
        return 0

    def _change(self, id: int, **changes: Any) -> bool:
        if id in self._alarms:
            self._alarms[id] = replace(self._alarms[id], **changes)
        return id in self._alarms


class Network:
    """Keeps what is published, and hears it on the same topic; with `away` nobody answers."""

    def __init__(self) -> None:
        self.away = False
        self.published: list[tuple[str, str]] = []
        self.heard: dict[str, str] = {}

    def publish(self, topic: str, payload: str, *, deadline_s: float) -> None:
        if self.away:
            raise NetworkFault("the broker does not answer")
        self.published.append((topic, payload))

    def last(self, topic: str) -> str | None:
        return self.heard.get(topic)

    def fetch(self, method: str, url: str, body: str, *, deadline_s: float, limit: int) -> tuple[int, str]:
        raise NetworkFault("there is no network in a test")


class Controls:
    def __init__(self) -> None:
        self.values: dict[str, Json] = {"volume": 50, "mute": False, "rate": 1.0}

    def get(self, name: str) -> Json:
        if name not in self.values:
            raise Fault(f"there is no control {name}")
        return self.values[name]

    def set(self, name: str, value: Json) -> None:
        self.get(name)
        self.values[name] = value


@dataclass(slots=True)
class Bench:
    """Everything that a skill under test may be granted."""

    memory: dict[str, Memory] = field(default_factory=dict)
    alarms: Alarms = field(default_factory=Alarms)
    network: Network = field(default_factory=Network)
    controls: Controls = field(default_factory=Controls)

    @property
    def services(self) -> Services:
        """The clock begins at NOW, and goes on: a skill may wait."""
        started = time.monotonic()
        return Services(
            memory=lambda name: self.memory.setdefault(name, Memory()),
            alarms=self.alarms,
            network=self.network,
            controls=self.controls,
            now=lambda: NOW + timedelta(seconds=time.monotonic() - started),
        )


@dataclass(frozen=True, slots=True)
class Said:
    """One turn of a test: what was said and answered, and what was not as it should be."""

    say: str
    reply: str
    wrong: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    name: str
    turns: tuple[Said, ...]

    @property
    def right(self) -> bool:
        return not any(turn.wrong for turn in self.turns)


def run_tests(folder: Path, native: Native | None = None) -> Iterator[Verdict]:
    """Each test of the skill's tests.yaml, with the skill alone. Raises SkillFault where there are none, or the skill
    cannot be loaded."""
    path = folder / "tests.yaml"
    tests = read_yaml(path)
    if not isinstance(tests, list) or not tests:
        raise SkillFault(f"{path} holds no tests", "write a list of tests, each with name and turns")
    for number, test in enumerate(tests, start=1):
        turns = test.get("turns") if isinstance(test, Mapping) else None
        if not isinstance(turns, list):
            raise SkillFault(f"{path}, test {number}: it has no turns", "write turns, each with what is said")
        yield asyncio.run(_test(folder, str(test.get("name") or f"test {number}"), turns, native))


async def _test(folder: Path, name: str, turns: Sequence[Any], native: Native | None) -> Verdict:
    bench = Bench()
    others = {path.name for path in folder.parent.iterdir() if path != folder}
    library = Library(bench.services, disabled=others, native=native, shipped=folder.parent)
    library.load()
    if folder.name not in library.skills:
        raise library.faults[0] if library.faults else SkillFault(f"{folder} holds no skill", "write skill.toml")
    dialogue = Dialogue(lambda: library.skills, lambda: library.intents, now=lambda: NOW)
    said = []
    for turn in turns:
        if not isinstance(turn, Mapping) or not isinstance(turn.get("say"), str):
            raise SkillFault(f"{folder / 'tests.yaml'}, {name}: a turn says nothing", "write say: and the words")
        bench.network.away = bool(turn.get("offline", False))
        bench.network.heard |= {str(topic): str(text) for topic, text in (turn.get("heard") or {}).items()}
        plan = dialogue.plan([turn["say"]])
        outcome = await dialogue.perform(plan) if plan else None
        if outcome:
            dialogue.commit(outcome)
        said.append(Said(turn["say"], outcome.says if outcome else "", tuple(_wrong(turn, plan, outcome))))
    return Verdict(name, tuple(said))


def _wrong(turn: Mapping[str, Any], plan: Plan | None, outcome: Outcome | None) -> Iterator[str]:
    if plan is None or outcome is None:
        if turn.get("intent") != "none":
            yield "it was not understood"
        return
    does = plan.does[-1] if plan.does else plan.question.command if plan.question else None
    if "intent" in turn and (does is None or does.name != turn["intent"]):
        yield f"it was taken for {does.name if does else 'nothing'}, not {turn['intent']}"
    for name, value in (turn.get("slots") or {}).items():
        found = does.values.get(name) if does else None
        if found != value:
            yield f"{name} is {found!r}, not {value!r}"
    wanted = turn.get("reply", [])
    for text in [wanted] if isinstance(wanted, str) else wanted:
        if text.lower() not in outcome.says.lower():
            yield f"{text!r} is not in the reply"
    if "deeds" in turn:
        deeds = [("" if deed.ok else "!") + deed.what for deed in outcome.deeds]
        if deeds != list(turn["deeds"]):
            yield f"what was done is {deeds}, not {turn['deeds']}"
