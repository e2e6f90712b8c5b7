"""The door to wasmtime: other people's code, which cannot break the box.

Each call has an instance of its own, so nothing stays behind; it may use so much fuel, time, memory and table, and
reach only what its manifest was granted. It runs in a thread of low priority; who waits for it does so until its
deadline and no longer, whatever it does. What a host function did is written down here, and not taken from the guest.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import time
import unicodedata
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import Any

import wasmtime

from appliance.config import config_home
from appliance.errors import Fault, SkillFault
from appliance.skills import grants
from appliance.skills.breaker import Breaker
from appliance.skills.manifest import Grants, Manifest, checksum
from appliance.skills.skill import Alarm, Ask, Call, Deed, Json, Memory, Reply, Services
from appliance.telemetry import Seldom

TICK = 0.01
"""Seconds between two looks at the deadlines of what runs."""
MARGIN = 0.25
"""Seconds beyond its deadline for which a call is waited for: to be stopped, a guest has to be running."""
HOST = 0.8
"""Share of a call's deadline that one host function may take."""
STACK = 256 * 1024
"""Bytes of stack."""
WAITING = 8
"""Calls of one skill that may wait for another of it."""
THREADS = 4
"""Calls that run at once, of all skills."""
REQUEST = 64 * 1024
"""Bytes that a guest may give a host function."""
ANSWER = 256 * 1024
"""Bytes that a host function answers."""
SPOKEN = 2_000
"""Characters of a reply that are spoken."""
DATA = 1024 * 1024
"""Bytes of a data file."""
NICE = 10

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
ACTS = {
    "memory_write": "memory.write",
    "memory_delete": "memory.delete",
    "alarm_set": "alarm.set",
    "alarm_cancel": "alarm.cancel",
    "http_fetch": "http.fetch",
    "mqtt_publish": "mqtt.publish",
    "control_set": "control.set",
}
"""Those that change something, and what their deed is called. A fetch with GET is none."""

_TYPE = wasmtime.FuncType([wasmtime.ValType.i32(), wasmtime.ValType.i32()], [wasmtime.ValType.i64()])


class _Refused(Exception):
    """What a host function answers instead of doing it."""


class _Engine:
    """One for all skills: compiled code, and a clock that runs only while a guest does."""

    def __init__(self) -> None:
        config = wasmtime.Config()
        config.consume_fuel = True
        config.epoch_interruption = True
        config.max_wasm_stack = STACK
        config.wasm_threads = False
        config.wasm_memory64 = False
        self.engine = wasmtime.Engine(config)
        self._running = 0
        self._wake = threading.Condition()
        self._pool: ThreadPoolExecutor | None = None
        self._ticker: threading.Thread | None = None

    @property
    def pool(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(THREADS, "skill", initializer=_yield_to_others)
        return self._pool

    def __enter__(self) -> None:
        with self._wake:
            self._running += 1
            if self._ticker is None:
                self._ticker = threading.Thread(target=self._tick, name="skill clock", daemon=True)
                self._ticker.start()
            self._wake.notify()

    def __exit__(self, *error: object) -> None:
        with self._wake:
            self._running -= 1

    def _tick(self) -> None:
        while True:
            with self._wake:
                while not self._running:
                    self._wake.wait()
            time.sleep(TICK)
            self.engine.increment_epoch()


ENGINE = _Engine()


def _yield_to_others() -> None:
    """The voice comes first."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


class Sandboxed:
    """A skill in WebAssembly. Raises SkillFault when its module cannot be used, or wants what it was not granted."""

    def __init__(self, manifest: Manifest, services: Services, *, breaker: Breaker | None = None) -> None:
        self.manifest, self.name = manifest, manifest.name
        self._services = services
        self._breaker = breaker or Breaker()
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._seldom = Seldom(10.0)
        path = manifest.folder / manifest.module
        checksum(path)
        try:
            self._module = wasmtime.Module(ENGINE.engine, path.read_bytes())
        except (wasmtime.WasmtimeError, OSError) as error:
            raise SkillFault(f"{path} is no module that can be used: {_short(error)}", "build it again") from error
        _check(self._module, manifest)
        self._linker = wasmtime.Linker(ENGINE.engine)
        for name in IMPORTS:
            self._linker.define_func("parley", name, _TYPE, _host(name), access_caller=True)

    def close(self) -> None:
        """A call that runs ends by itself."""

    async def call(self, call: Call) -> Reply:
        if left := self._breaker.benched:
            raise SkillFault(f"{self.name} failed too often and is left alone for {left:.0f} s", "see the log for why")
        if self._waiting >= WAITING:
            raise SkillFault(f"{self.name} is busy", "ask again in a moment")
        self._waiting += 1
        try:
            async with self._turn:
                return await self._run(call)
        finally:
            self._waiting -= 1

    async def _run(self, call: Call) -> Reply:
        running = _Running(self.manifest, self._services, call, self._seldom)
        limit = self.manifest.limits.deadline_ms / 1000
        work = asyncio.get_running_loop().run_in_executor(ENGINE.pool, self._inside, running)
        try:
            async with asyncio.timeout(limit + MARGIN):
                reply = await asyncio.shield(work)
        except TimeoutError:
            running.given_up = True
            work.add_done_callback(_forget)
            raise self._failed(running, SkillFault(f"{self.name} did not answer within {limit:.1f} s")) from None
        except SkillFault as fault:
            raise self._failed(running, fault) from None
        except asyncio.CancelledError:
            running.given_up = True
            work.add_done_callback(_forget)
            raise
        self._breaker.worked()
        return reply

    def _failed(self, running: _Running, fault: SkillFault) -> SkillFault:
        fault.deeds = tuple(running.deeds)
        benched = self._breaker.failed()
        self._seldom("skill failed", level=logging.WARNING, skill=self.name, reason=str(fault), benched=benched)
        return fault

    # --- in its thread -----------------------------------------------------------------------------------------------

    def _inside(self, running: _Running) -> Reply:
        limits = self.manifest.limits
        store = wasmtime.Store(ENGINE.engine)
        store.set_limits(
            memory_size=limits.memory_mb << 20, table_elements=limits.table, instances=1, tables=4, memories=1
        )
        store.set_fuel(limits.fuel)
        store.set_epoch_deadline(max(1, round(limits.deadline_ms / 1000 / TICK)))
        _here.running = running
        try:
            with ENGINE:
                instance = self._linker.instantiate(store, self._module)
                exports = instance.exports(store)
                if isinstance(start := exports.get("_initialize"), wasmtime.Func):
                    start(store)
                memory, alloc = exports["memory"], exports["parley_alloc"]
                entry: Any = exports["parley_call"]
                asked = json.dumps(_as_json(running.call), ensure_ascii=False).encode()
                place = _put(store, memory, alloc, asked)
                packed = int(entry(store, place, len(asked)))
                text = _get(store, memory, packed, limits.output_kb * 1024)
        except (wasmtime.WasmtimeError, wasmtime.Trap) as error:
            raise SkillFault(f"{self.name} was stopped: {_why(error)}", "see the skill's limits") from None
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            raise SkillFault(f"{self.name} answered nonsense: {_short(error)}") from None
        finally:
            _here.running = None
        return _reply(self.name, self.manifest.grants, text, running)


_here = threading.local()


def _forget(work: asyncio.Future[Reply]) -> None:
    if not work.cancelled():
        work.exception()


def _check(module: wasmtime.Module, manifest: Manifest) -> None:
    """The module exports what is called, and imports nothing that was not granted."""
    path = manifest.folder / manifest.module
    for wanted in module.imports:
        grant = IMPORTS.get(wanted.name or "") if wanted.module == "parley" else None
        if grant is None or not isinstance(wanted.type, wasmtime.FuncType):
            raise SkillFault(
                f"{path} imports {wanted.module}.{wanted.name}, which the box does not have", "see the ABI"
            )
        if not getattr(manifest.grants, grant):
            raise SkillFault(
                f"{path} imports {wanted.name}, and was not granted {grant}",
                f"grant {grant} in skill.toml, or do without",
            )
        if str(wanted.type.params) != str(_TYPE.params) or str(wanted.type.results) != str(_TYPE.results):
            raise SkillFault(f"{path} imports {wanted.name} with another type", "it takes (i32, i32) and gives i64")
    exports = {export.name: export.type for export in module.exports}
    for name, kind in (
        ("memory", wasmtime.MemoryType),
        ("parley_alloc", wasmtime.FuncType),
        ("parley_call", wasmtime.FuncType),
    ):
        if not isinstance(exports.get(name), kind):
            raise SkillFault(f"{path} does not export {name}", "see the ABI")


# --- memory of the guest -----------------------------------------------------------------------------------------


def _put(store: Any, memory: Any, alloc: Any, data: bytes) -> int:
    place = int(alloc(store, len(data))) & 0xFFFFFFFF
    if place + len(data) > memory.data_len(store):
        raise ValueError(f"parley_alloc gave a place outside of memory ({place})")
    memory.write(store, data, place)
    return place


def _get(store: Any, memory: Any, packed: int, limit: int) -> str:
    packed &= 0xFFFFFFFFFFFFFFFF
    place, size = packed >> 32, packed & 0xFFFFFFFF
    if size > limit:
        raise ValueError(f"{size} bytes, of {limit} that are allowed")
    if place + size > memory.data_len(store):
        raise ValueError("a text outside of its memory")
    return bytes(memory.read(store, place, place + size)).decode("utf-8")


# --- a call and its reply -----------------------------------------------------------------------------------------


def _as_json(call: Call) -> dict[str, Json]:
    return {
        "name": call.name,
        "arguments": dict(call.arguments),
        "text": call.text,
        "locale": call.locale,
        "context": dict(call.context),
    }


def parse(text: str) -> Any:
    """Strict JSON: no NaN, no endless depth. Raises ValueError."""
    depth = deepest = 0
    for char in text:
        depth += (char in "[{") - (char in "]}")
        deepest = max(deepest, depth)
    if deepest > 40:
        raise ValueError("JSON that is too deep")

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def clean(text: str, limit: int = SPOKEN) -> str:
    """Without control characters, terminal escapes and what is not seen."""
    kept = (" " if char in "\n\t" or unicodedata.category(char).startswith("Z") else char for char in text)
    return "".join(char for char in kept if not unicodedata.category(char).startswith("C"))[:limit]


def _reply(name: str, granted: Grants, text: str, running: _Running) -> Reply:
    try:
        found = parse(text)
        if not isinstance(found, dict):
            raise ValueError("no object")
        ask = found.get("ask")
        context = found.get("context") or {}
        suggestions = found.get("suggestions") or []
        if not isinstance(context, dict) or not isinstance(suggestions, list):
            raise ValueError("context or suggestions of the wrong kind")
        say = found.get("say") or ""
        if not isinstance(say, str):
            raise ValueError("say is no text")
        wanted = None
        if ask is not None and granted.ask:
            if not isinstance(ask, dict) or not isinstance(ask.get("intent"), str):
                raise ValueError("ask names no intent")
            wanted = Ask(ask["intent"], str(ask.get("slot") or ""), bool(ask.get("yes_no")))
    except (ValueError, RecursionError) as error:
        raise SkillFault(f"{name} answered nonsense: {_short(error)}") from None
    return Reply(
        say=clean(" ".join(filter(None, (*running.said, say)))),
        ask=wanted,
        context=context,
        data=found.get("data"),
        suggestions=tuple(clean(str(one), 100) for one in suggestions[:8]),
        deeds=tuple(running.deeds),
        failed=bool(found.get("failed")),
    )


def _why(error: Exception) -> str:
    text = str(error)
    for sign, why in (
        ("all fuel consumed", "it used up its fuel"),
        ("interrupt", "it took too long"),
        ("out of bounds", "it reached outside of its memory"),
        ("call stack exhausted", "it called itself too deep"),
        ("unreachable", "it gave up"),
    ):
        if sign in text:
            return why
    return _short(error)


def _short(error: Exception) -> str:
    return clean(str(error).strip().partition("\n")[0], 160)


# --- host functions -----------------------------------------------------------------------------------------


class _Running:
    """One call: what it may do, and what was done for it."""

    def __init__(self, manifest: Manifest, services: Services, call: Call, seldom: Seldom) -> None:
        self.manifest, self.services, self.call, self.seldom = manifest, services, call, seldom
        self.deeds: list[Deed] = []
        self.said: list[str] = []
        self.given_up = False
        rule = manifest.intents.get(call.name) or manifest.tools.get(call.name)
        self.acts = rule is not None and rule.effect != "none"

    def do(self, name: str, given: Mapping[str, Any]) -> Json:
        """Raises _Refused."""
        what = ACTS.get(name)
        if name == "http_fetch" and str(given.get("method", "GET")).upper() == "GET":
            what = None
        if self.given_up:
            raise _Refused("the call was given up")
        if what is None:
            return self._try(name, given)
        if not self.acts:
            raise _Refused(f"{self.call.name} only reads, by its manifest")
        if len(self.deeds) >= self.manifest.limits.acts:
            raise _Refused("it has done enough for one call")
        try:
            value = self._try(name, given)
        except _Refused as refusal:
            self.deeds.append(Deed(what, False, str(refusal)))
            raise
        self.deeds.append(Deed(what, True, _detail(name, given)))
        return value

    def _try(self, name: str, given: Mapping[str, Any]) -> Json:
        function: Callable[[Mapping[str, Any]], Json] = getattr(self, f"_{name}")
        try:
            return function(given)
        except Fault as fault:
            raise _Refused(fault.message) from fault
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise _Refused(f"{name} was asked wrongly: {_short(error)}") from error

    def _say(self, given: Mapping[str, Any]) -> Json:
        if len(self.said) < 4:
            self.said.append(clean(_text(given, "text"), 300))
        return None

    def _log(self, given: Mapping[str, Any]) -> Json:
        self.seldom(f"skill {self.manifest.name}", level=logging.INFO, text=clean(_text(given, "text"), 300))
        return None

    def _clock(self, given: Mapping[str, Any]) -> Json:
        now = self.services.now()
        return {"now": now.isoformat(timespec="seconds"), "unix": now.timestamp()}

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

    def _alarm_set(self, given: Mapping[str, Any]) -> Json:
        due = given.get("due")
        alarm = self.services.alarms.add(
            given["kind"],
            name=clean(str(given.get("name") or ""), 80),
            seconds=float(given.get("seconds") or 0),
            due=datetime.fromisoformat(due) if due else None,
            text=clean(str(given.get("text") or ""), 300),
            repeat=tuple(given.get("repeat") or ()),
        )
        return _alarm(alarm)

    def _alarm_list(self, given: Mapping[str, Any]) -> Json:
        return [_alarm(alarm) for alarm in self.services.alarms.all()]

    def _alarm_cancel(self, given: Mapping[str, Any]) -> Json:
        if not self.services.alarms.cancel(int(given["id"])):
            raise _Refused("there is no such alarm")
        return None

    def _http_fetch(self, given: Mapping[str, Any]) -> Json:
        method, url = str(given.get("method") or "GET").upper(), _text(given, "url")
        if method not in ("GET", "POST", "PUT", "DELETE", "PATCH") or not grants.host(url, self.manifest.grants.http):
            raise _Refused(f"{method} {url:.100} was not granted")
        body = str(given.get("body") or "")
        status, text = self.services.network.fetch(method, url, body, deadline_s=self._seconds, limit=ANSWER // 2)
        return {"status": status, "body": text}

    def _mqtt_publish(self, given: Mapping[str, Any]) -> Json:
        topic = _text(given, "topic")
        if not grants.topic(topic, self.manifest.grants.publish):
            raise _Refused(f"publishing to {topic:.100} was not granted")
        self.services.network.publish(topic, _text(given, "payload"), deadline_s=self._seconds)
        return None

    def _mqtt_last(self, given: Mapping[str, Any]) -> Json:
        topic = _text(given, "topic")
        if not grants.topic(topic, self.manifest.grants.read):
            raise _Refused(f"reading {topic:.100} was not granted")
        return self.services.network.last(topic)

    def _control_get(self, given: Mapping[str, Any]) -> Json:
        return self.services.controls.get(self._control(given))

    def _control_set(self, given: Mapping[str, Any]) -> Json:
        self.services.controls.set(self._control(given), given["value"])
        return None

    def _control(self, given: Mapping[str, Any]) -> str:
        name = _text(given, "name")
        if name not in self.manifest.grants.controls:
            raise _Refused(f"the control {name:.40} was not granted")
        return name

    @property
    def _seconds(self) -> float:
        return HOST * self.manifest.limits.deadline_ms / 1000


def read_data(manifest: Manifest, name: str) -> str:
    """A data file of a skill, the user's own before the skill's. Raises SkillFault."""
    if not grants.file(name):
        raise SkillFault(f"{name!r:.60} is no plain file name", "name a file of the folder data")
    for folder in (config_home() / "skills" / manifest.name, manifest.folder / "data"):
        path = folder / name
        try:
            if path.is_file():
                if path.stat().st_size > DATA:
                    raise SkillFault(f"{path} is larger than {DATA >> 20} MB", "make it smaller")
                return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SkillFault(f"{path} cannot be read: {error}", "make it a readable UTF-8 file") from error
    raise SkillFault(f"{manifest.name} has no data file {name}", f"put it into {manifest.folder / 'data'}")


def _host(name: str) -> Callable[..., int]:
    """The function that the guest sees."""

    def function(caller: wasmtime.Caller, place: int, size: int) -> int:
        running: _Running = _here.running
        memory, alloc = caller["memory"], caller["parley_alloc"]
        try:
            given = parse(_get(caller, memory, (place & 0xFFFFFFFF) << 32 | size & 0xFFFFFFFF, REQUEST) or "{}")
            if not isinstance(given, dict):
                raise _Refused(f"{name} takes an object")
            answer: dict[str, Json] = {"ok": True, "value": running.do(name, given)}
        except (_Refused, ValueError, RecursionError) as error:
            answer = {"ok": False, "error": _short(error)}
        text = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
        if len(text) > ANSWER:
            text = b'{"ok": false, "error": "the answer is too large"}'
        return _put(caller, memory, alloc, text) << 32 | len(text)

    return function


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


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text")
    return value


def _key(given: Mapping[str, Any]) -> str:
    name = _text(given, "key")
    if not grants.key(name):
        raise ValueError(f"{name!r:.40} cannot be a key")
    return name


def _detail(name: str, given: Mapping[str, Any]) -> str:
    return clean(
        " ".join(str(given[key]) for key in ("kind", "name", "key", "topic", "url", "value") if key in given), 120
    )
