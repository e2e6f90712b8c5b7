"""What the box does for a skill: the host functions, each within its grant, and the deeds that are written down here.

Nothing here is taken from the guest on trust: requests and replies are strict JSON, texts are cleaned and bounded, and
an act begins only while somebody still waits for the call.
"""

from __future__ import annotations

import json
import logging
import math
import time
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, get_args, get_type_hints

from appliance.config import config_home
from appliance.errors import Fault, SkillFault
from appliance.skills import grants
from appliance.skills.manifest import Manifest
from appliance.skills.skill import Alarm, Call, Deed, Json, Memory, Services
from appliance.telemetry import Seldom

HOST = 0.8
"""Share of a call's deadline that one host function may take."""
DEPTH = 40
"""Levels of JSON."""
SPOKEN = 2_000
"""Characters of a reply that are spoken."""
ANSWER = 256 * 1024
"""Bytes that a host function answers."""
TEXT = 32 * 1024
"""Characters of one text that is kept or sent."""
DATA = 1024 * 1024
"""Bytes of a data file."""
SAYS = 4
"""Sentences that one call may say before its reply."""
KINDS = get_args(get_type_hints(Alarm)["kind"])
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH")

IMPORTS: Mapping[str, str] = {
    "say": "say",
    "log": "log",
    "clock": "clock",
    **dict.fromkeys(("memory_read", "memory_write", "memory_delete", "memory_keys"), "memory"),
    "data_read": "data",
    **dict.fromkeys(("alarm_set", "alarm_list", "alarm_cancel"), "alarms"),
    "http_fetch": "http",
    "mqtt_publish": "publish",
    "mqtt_last": "read",
    **dict.fromkeys(("control_get", "control_set"), "controls"),
}
"""The host functions, and the grant that each needs."""
ACTS: Mapping[str, str] = {
    "memory_write": "memory.write",
    "memory_delete": "memory.delete",
    "alarm_set": "alarm.set",
    "alarm_cancel": "alarm.cancel",
    "http_fetch": "http.fetch",
    "mqtt_publish": "mqtt.publish",
    "control_set": "control.set",
}
"""Those that change something, and what their deed is called. A fetch with GET is none."""


class Refused(Exception):
    """What a host function answers instead of doing it."""


@dataclass(slots=True)
class Running:
    """One call: what it may do, and what was done for it. `until` is the time.monotonic() behind which it begins
    nothing more; `given_up` says that nobody waits for it."""

    manifest: Manifest
    services: Services
    call: Call
    seldom: Seldom
    until: float = math.inf
    given_up: bool = False
    deeds: list[Deed] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    doing: str = ""
    """The act that is being done now."""

    def do(self, name: str, given: Mapping[str, Any]) -> Json:
        """One host function. Raises Refused."""
        if self.given_up or self.left <= 0:
            raise Refused("the time of the call is over")
        what = ACTS.get(name)
        if what is None or (name == "http_fetch" and _method(given) == "GET"):
            return self._try(name, given)
        if not self._may_act:
            raise Refused(f"{self.call.name} only reads, by its manifest")
        if len(self.deeds) >= self.manifest.limits.acts:
            raise Refused("it has done enough for one call")
        self.doing = what
        try:
            value = self._try(name, given)
        except Refused as refusal:
            self.deeds.append(Deed(what, False, str(refusal)))
            raise
        finally:
            self.doing = ""
        self.deeds.append(Deed(what, True, _detail(given)))
        return value

    @property
    def left(self) -> float:
        """Seconds."""
        return self.until - time.monotonic()

    @property
    def _may_act(self) -> bool:
        rule = self.manifest.intents.get(self.call.name) or self.manifest.tools.get(self.call.name)
        return rule is not None and rule.effect != "none"

    def _try(self, name: str, given: Mapping[str, Any]) -> Json:
        function: Callable[[Mapping[str, Any]], Json] = getattr(self, f"_{name}")
        try:
            return function(given)
        except Fault as fault:
            raise Refused(fault.message) from fault
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise Refused(f"{name} was asked wrongly: {short(error)}") from error

    def _say(self, given: Mapping[str, Any]) -> Json:
        if len(self.said) >= SAYS:
            raise Refused("it has said enough before its reply")
        self.said.append(clean(_text(given, "text"), 300))
        return None

    def _log(self, given: Mapping[str, Any]) -> Json:
        self.seldom(f"skill {self.manifest.name}", level=logging.INFO, text=clean(_text(given, "text"), 300))
        return None

    def _clock(self, given: Mapping[str, Any]) -> Json:
        now = self.services.now()
        return {"now": now.isoformat(timespec="seconds"), "unix": now.timestamp()}

    # --- memory and data ---------------------------------------------------------------------------------------------

    def _memory_read(self, given: Mapping[str, Any]) -> Json:
        return self._memory.read(_key(given))

    def _memory_write(self, given: Mapping[str, Any]) -> Json:
        self._memory.write(_key(given), _text(given, "text"))
        return None

    def _memory_delete(self, given: Mapping[str, Any]) -> Json:
        return self._memory.delete(_key(given))

    def _memory_keys(self, given: Mapping[str, Any]) -> Json:
        return self._memory.keys(str(given.get("prefix") or ""))

    @property
    def _memory(self) -> Memory:
        return self.services.memory(self.manifest.name)

    def _data_read(self, given: Mapping[str, Any]) -> Json:
        return read_data(self.manifest, _text(given, "name"))

    # --- alarms ------------------------------------------------------------------------------------------------------

    def _alarm_set(self, given: Mapping[str, Any]) -> Json:
        kind, repeat = given["kind"], given.get("repeat") or []
        if kind not in KINDS or not isinstance(repeat, list):
            raise ValueError(f"kind is one of {', '.join(KINDS)}, and repeat a list of weekdays")
        alarm = self.services.alarms.add(
            kind,
            name=clean(str(given.get("name") or ""), 80),
            seconds=float(given.get("seconds") or 0),
            due=self._due(given.get("due")),
            text=clean(str(given.get("text") or ""), 300),
            repeat=tuple(map(str, repeat)),
        )
        return _alarm(alarm)

    def _due(self, given: str | None) -> datetime | None:
        """A time without an offset is the box's own."""
        if not given:
            return None
        due = datetime.fromisoformat(given)
        return due if due.tzinfo else due.replace(tzinfo=self.services.now().tzinfo)

    def _alarm_list(self, given: Mapping[str, Any]) -> Json:
        return [_alarm(alarm) for alarm in self.services.alarms.all()]

    def _alarm_cancel(self, given: Mapping[str, Any]) -> Json:
        if not self.services.alarms.cancel(int(given["id"])):
            raise Refused("there is no such alarm")
        return None

    # --- the network and the box -------------------------------------------------------------------------------------

    def _http_fetch(self, given: Mapping[str, Any]) -> Json:
        method, url, body = _method(given), _text(given, "url"), given.get("body") or ""
        if method not in METHODS or not grants.host(url, self.manifest.grants.http):
            raise Refused(f"{method:.10} {url:.100} was not granted")
        if not isinstance(body, str):
            raise ValueError("body must be a text")
        status, text = self.services.network.fetch(method, url, body, deadline_s=self._patience, limit=ANSWER // 2)
        return {"status": status, "body": text}

    def _mqtt_publish(self, given: Mapping[str, Any]) -> Json:
        topic = _text(given, "topic")
        if not grants.topic(topic, self.manifest.grants.publish):
            raise Refused(f"publishing to {topic:.100} was not granted")
        self.services.network.publish(topic, _text(given, "payload"), deadline_s=self._patience)
        return None

    def _mqtt_last(self, given: Mapping[str, Any]) -> Json:
        topic = _text(given, "topic")
        if not grants.topic(topic, self.manifest.grants.read):
            raise Refused(f"reading {topic:.100} was not granted")
        return self.services.network.last(topic)

    def _control_get(self, given: Mapping[str, Any]) -> Json:
        return self.services.controls.get(self._control(given))

    def _control_set(self, given: Mapping[str, Any]) -> Json:
        self.services.controls.set(self._control(given), given["value"])
        return None

    def _control(self, given: Mapping[str, Any]) -> str:
        name = _text(given, "name")
        if name not in self.manifest.grants.controls:
            raise Refused(f"the control {name:.40} was not granted")
        return name

    @property
    def _patience(self) -> float:
        """Seconds that the network has: never longer than the call is waited for, so that it is known what was done."""
        return max(0.001, min(HOST * self.manifest.limits.deadline_ms / 1000, self.left))


def read_data(manifest: Manifest, name: str) -> str:
    """A data file of a skill, the user's own before the skill's. Raises SkillFault."""
    if not grants.file(name):
        raise SkillFault(f"{name!r:.60} is no plain file name", "name a file of the folder data")
    for folder in (own_data(manifest.name), manifest.folder / "data"):
        path = folder / name
        try:
            if path.is_file():
                if path.stat().st_size > DATA:
                    raise SkillFault(f"{path} is larger than {DATA >> 20} MB", "make it smaller")
                return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SkillFault(f"{path} cannot be read: {error}", "make it a readable UTF-8 file") from error
    raise SkillFault(f"{manifest.name} has no data file {name}", f"put it into {manifest.folder / 'data'}")


def own_data(name: str) -> Path:
    """Where the user's own data files of a skill lie."""
    return config_home() / "skills" / name


# --- what guests write -----------------------------------------------------------------------------------------------


def parse(text: str) -> Any:
    """Strict JSON: finite numbers, text that can be written as UTF-8, no endless depth. Raises ValueError."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    def finite(digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            raise ValueError(f"{digits:.20} is too large")
        return value

    try:
        found = json.loads(text, parse_constant=refuse, parse_float=finite)
    except RecursionError:
        raise ValueError("JSON that is too deep") from None
    _check(found, DEPTH)
    return found


def _check(found: Any, depth: int) -> None:
    if depth < 0:
        raise ValueError("JSON that is too deep")
    if isinstance(found, str):
        found.encode()  # half a surrogate pair is JSON and no text
    elif isinstance(found, dict):
        for key, value in found.items():
            key.encode()
            _check(value, depth - 1)
    elif isinstance(found, list):
        for value in found:
            _check(value, depth - 1)


def clean(text: str, limit: int = SPOKEN) -> str:
    """Without control characters, terminal escapes and what is not seen."""
    kept = (" " if char in "\n\t" or unicodedata.category(char).startswith("Z") else char for char in text)
    return "".join(char for char in kept if not unicodedata.category(char).startswith("C"))[:limit]


def clean_all(found: Json) -> Json:
    """Every text in it, its lines kept."""
    if isinstance(found, str):
        return "\n".join(clean(line, len(line)) for line in found.split("\n"))
    if isinstance(found, Mapping):
        return {clean(key, len(key)): clean_all(value) for key, value in found.items()}
    if isinstance(found, list):
        return [clean_all(one) for one in found]
    return found


def short(error: Exception) -> str:
    """Its first line."""
    return clean(str(error).strip().partition("\n")[0], 160)


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or len(value) > TEXT:
        raise ValueError(f"{name} must be a text of at most {TEXT} characters")
    return value


def _key(given: Mapping[str, Any]) -> str:
    name = _text(given, "key")
    if not grants.key(name):
        raise ValueError(f"{name!r:.40} cannot be a key")
    return name


def _method(given: Mapping[str, Any]) -> str:
    return str(given.get("method") or "GET").upper()


def _alarm(alarm: Alarm) -> dict[str, Json]:
    return {
        "id": alarm.id,
        "kind": alarm.kind,
        "name": alarm.name,
        "due": alarm.due.isoformat(),
        "seconds": alarm.seconds,
        "text": alarm.text,
        "repeat": list(alarm.repeat),
        "state": alarm.state,
    }


def _detail(given: Mapping[str, Any]) -> str:
    return clean(
        " ".join(str(given[key]) for key in ("kind", "name", "key", "topic", "url", "value") if key in given), 120
    )
