"""The door to wasmtime: other people's code, which cannot break the box.

Each call has an instance of its own, so nothing stays behind; it may use so much fuel, time, memory and table, and
reach only what its manifest was granted. It runs in a thread of low priority; who waits for it does so until its
deadline and no longer, whatever it does. What the host functions do is in `host.py`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import wasmtime

from appliance.config import cache_home
from appliance.errors import SkillFault
from appliance.skills.breaker import Breaker
from appliance.skills.host import ANSWER, IMPORTS, Refused, Running, clean, clean_all, parse, short
from appliance.skills.manifest import Manifest
from appliance.skills.manifest import content as content_of
from appliance.skills.skill import Ask, Call, Deed, Json, Reply, Services
from appliance.telemetry import Seldom, log

TICK = 0.01
"""Seconds between two looks at the deadlines of what runs."""
MARGIN = 0.25
"""Seconds beyond its deadline for which a call is waited for: to be stopped, a guest has to be running."""
STACK = 256 * 1024
"""Bytes of stack."""
WAITING = 8
"""Calls of one skill that may wait for another of it."""
THREADS = 16
"""Calls that run at once, of all skills: one that blocks has one thread, and no more."""
REQUEST = 64 * 1024
"""Bytes that a guest may give a host function."""
QUICK = 64
"""Host functions that one call may use at full speed."""
PAUSE = 0.001
"""Seconds before each further one: they run in Python, one at a time with everything else of the box."""
NICE = 10
KEPT = 64
"""Compiled modules in the cache at most."""

_I32, _I64 = wasmtime.ValType.i32(), wasmtime.ValType.i64()
_HOST = wasmtime.FuncType([_I32, _I32], [_I64])
_ALLOC = wasmtime.FuncType([_I32], [_I32])
_START = wasmtime.FuncType([], [])


class _Engine:
    """One for all skills: compiled code, and a clock that runs only while a guest does."""

    def __init__(self) -> None:
        config = wasmtime.Config()
        config.consume_fuel = True
        config.epoch_interruption = True
        config.max_wasm_stack = STACK
        config.wasm_threads = False
        config.wasm_memory64 = False
        config.parallel_compilation = False  # the other cores are for the voice
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
        self._last: asyncio.Future[Reply] | None = None
        self._seldom = Seldom(10.0)
        path = manifest.folder / manifest.module
        try:
            self._module = _compiled(content_of(manifest))
        except wasmtime.WasmtimeError as error:
            raise SkillFault(f"{path} is no module that can be used: {short(error)}", "build it again") from error
        _check(self._module, manifest)
        self._linker = wasmtime.Linker(ENGINE.engine)
        for name in IMPORTS:
            self._linker.define_func("parley", name, _HOST, _host(name), access_caller=True)

    def close(self) -> None:
        """A call that runs ends by itself."""

    async def call(self, call: Call) -> Reply:
        """Within its deadline and MARGIN, the time that it waits for another call of the skill included."""
        if left := self._breaker.benched:
            raise SkillFault(f"{self.name} failed too often and is left alone for {left:.0f} s", "see the log for why")
        if self._waiting >= WAITING:
            raise self._busy()
        until = asyncio.get_running_loop().time() + self._limit + MARGIN
        self._waiting += 1
        try:
            try:
                async with asyncio.timeout_at(until):
                    await self._turn.acquire()
            except TimeoutError:
                raise self._busy() from None
            try:
                return await self._run(call, until)
            finally:
                self._turn.release()
        finally:
            self._waiting -= 1

    @property
    def _limit(self) -> float:
        """Seconds."""
        return self.manifest.limits.deadline_ms / 1000

    def _busy(self) -> SkillFault:
        return SkillFault(f"{self.name} is busy", "ask again in a moment")

    async def _run(self, call: Call, until: float) -> Reply:
        if self._last and not self._last.done():  # given up, and still in a host function: a second one would block too
            raise self._busy()
        running = Running(self.manifest, self._services, call, self._seldom)
        work = asyncio.get_running_loop().run_in_executor(ENGINE.pool, self._inside, running)
        self._last = work
        try:
            async with asyncio.timeout_at(until):
                reply = await asyncio.shield(work)
        except TimeoutError:
            known = self._give_up(running, work)
            raise self._failed(SkillFault(f"{self.name} did not answer within {self._limit:.1f} s"), known) from None
        except SkillFault as fault:
            raise self._failed(fault, tuple(running.deeds)) from None
        except asyncio.CancelledError:
            self._give_up(running, work)
            raise
        self._breaker.worked()
        return reply

    def _give_up(self, running: Running, work: asyncio.Future[Reply]) -> tuple[Deed, ...]:
        """What was done so far; what is being done is not known to be. What comes of it later is told in the log."""
        running.given_up = True
        known, doing = tuple(running.deeds), running.doing

        def ended(work: asyncio.Future[Reply]) -> None:
            if not work.cancelled():
                work.exception()
            if late := running.deeds[len(known) :]:
                told = [f"{deed.what} {'done' if deed.ok else 'failed'}: {deed.detail}" for deed in late]
                log("skill acted late", level=logging.WARNING, skill=self.name, deeds=told)

        work.add_done_callback(ended)
        return (*known, Deed(doing, False, "it had not ended in time")) if doing else known

    def _failed(self, fault: SkillFault, deeds: tuple[Deed, ...]) -> SkillFault:
        fault.deeds = deeds
        self._seldom("skill failed", skill=self.name, reason=str(fault))
        if self._breaker.failed():
            seconds = round(self._breaker.benched)
            log("skill benched", level=logging.WARNING, skill=self.name, seconds=seconds, reason=str(fault))
        return fault

    # --- in its thread -----------------------------------------------------------------------------------------------

    def _inside(self, running: Running) -> Reply:
        if running.given_up:  # while it waited for a thread
            raise SkillFault(f"{self.name} had no thread in time")
        limits = self.manifest.limits
        running.until = time.monotonic() + self._limit
        store = wasmtime.Store(ENGINE.engine)
        store.set_limits(
            memory_size=limits.memory_mb << 20, table_elements=limits.table, instances=1, tables=4, memories=1
        )
        store.set_fuel(limits.fuel)
        store.set_epoch_deadline(max(1, round(self._limit / TICK)))
        _here.running, _here.inside, _here.used = running, False, 0
        try:
            with ENGINE:
                instance = self._linker.instantiate(store, self._module)
                exports = instance.exports(store)
                if isinstance(start := exports.get("_initialize"), wasmtime.Func):
                    start(store)
                memory, alloc = exports["memory"], exports["parley_alloc"]
                entry: Any = exports["parley_call"]
                asked = json.dumps(_as_json(running.call), ensure_ascii=False).encode("utf-8", "replace")
                place = _put(store, memory, alloc, asked)
                packed = int(entry(store, place, len(asked)))
                text = _get(store, memory, packed, limits.output_kb * 1024)
        except (wasmtime.WasmtimeError, wasmtime.Trap) as error:
            raise SkillFault(f"{self.name} was stopped: {_why(error)}", "see the skill's limits") from None
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            raise SkillFault(f"{self.name} answered nonsense: {short(error)}") from None
        finally:
            _here.running = None
        return _reply(self.manifest, text, running)


_here = threading.local()


def _compiled(content: bytes) -> wasmtime.Module:
    """Compiling takes many times as long as loading what was compiled. Raises WasmtimeError.

    What is kept is machine code, so only a file that this user wrote, nobody else can write, and that is whole is
    believed; wasmtime itself refuses what another version or another processor compiled.
    """
    name = f"{hashlib.sha256(content).hexdigest()}-{version('wasmtime')}.cwasm"
    path = cache_home() / "skills" / name
    with suppress(OSError, wasmtime.WasmtimeError):
        info, kept = path.stat(), path.read_bytes()
        ours = info.st_uid == os.getuid() and not info.st_mode & 0o022
        if ours and hashlib.sha256(kept[32:]).digest() == kept[:32]:
            return wasmtime.Module.deserialize(ENGINE.engine, kept[32:])
    module = wasmtime.Module(ENGINE.engine, content)
    with suppress(OSError):  # it is a cache: without it the next start is slower
        _keep(path, bytes(module.serialize()))
    return module


def _keep(path: Path, code: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(hashlib.sha256(code).digest() + code)
    part.chmod(0o600)
    part.replace(path)
    kept = sorted(path.parent.glob("*.cwasm"), key=lambda one: one.stat().st_mtime)
    for old in kept[:-KEPT]:
        old.unlink(missing_ok=True)


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
        if not _same(wanted.type, _HOST):
            raise SkillFault(f"{path} imports {wanted.name} with another type", f"it is {_written(_HOST)}")
    exports = {export.name: export.type for export in module.exports}
    if not isinstance(exports.get("memory"), wasmtime.MemoryType):
        raise SkillFault(f"{path} does not export memory", "see the ABI")
    for name, kind in (("parley_alloc", _ALLOC), ("parley_call", _HOST), ("_initialize", _START)):
        found = exports.get(name)
        if not (name == "_initialize" and found is None) and not _same(found, kind):
            raise SkillFault(f"{path} does not export {name} as {_written(kind)}", "see the ABI")


def _same(found: object, kind: wasmtime.FuncType) -> bool:
    return isinstance(found, wasmtime.FuncType) and _written(found) == _written(kind)


def _written(kind: wasmtime.FuncType) -> str:
    return f"({', '.join(map(str, kind.params))}) -> ({', '.join(map(str, kind.results))})"


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


def _reply(manifest: Manifest, text: str, running: Running) -> Reply:
    try:
        found = parse(text)
        if not isinstance(found, dict):
            raise ValueError("no object")
        say, context, suggestions = (
            _part(found, "say", str),
            _part(found, "context", dict),
            _part(found, "suggestions", list),
        )
        if not all(isinstance(one, str) for one in suggestions):
            raise ValueError("suggestions that are no texts")
        ask = _ask(manifest, found.get("ask"))
    except ValueError as error:
        raise SkillFault(f"{manifest.name} answered nonsense: {short(error)}") from None
    return Reply(
        say=clean(" ".join(filter(None, (*running.said, say)))),
        ask=ask,
        context=context,
        data=clean_all(found.get("data")),
        suggestions=tuple(clean(one, 100) for one in suggestions[:8]),
        deeds=tuple(running.deeds),
        failed=bool(found.get("failed")),
    )


def _part(found: dict[str, Any], name: str, kind: type) -> Any:
    value = found.get(name)
    if value is not None and not isinstance(value, kind):
        raise ValueError(f"{name} of the wrong kind")
    return value or kind()


def _ask(manifest: Manifest, found: Any) -> Ask | None:
    if found is None or not manifest.grants.ask:
        return None
    intent = found.get("intent") if isinstance(found, dict) else None
    if not isinstance(intent, str) or intent not in manifest.intents:
        raise ValueError("ask names no intent of the manifest")
    return Ask(intent, clean(str(found.get("slot") or ""), 60), bool(found.get("yes_no")))


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
    return short(error)


def _host(name: str) -> Callable[..., int]:
    """The function that the guest sees."""

    def function(caller: wasmtime.Caller, place: int, size: int) -> int:
        if _here.inside:  # parley_alloc called the host, which calls parley_alloc...
            raise ValueError(f"it calls {name} while the box calls parley_alloc")
        running: Running = _here.running
        _here.used += 1
        if _here.used > QUICK:
            time.sleep(PAUSE)
        memory, alloc = caller["memory"], caller["parley_alloc"]
        try:
            given = parse(_get(caller, memory, (place & 0xFFFFFFFF) << 32 | size & 0xFFFFFFFF, REQUEST) or "{}")
            if not isinstance(given, dict):
                raise Refused(f"{name} takes an object")
            answer: dict[str, Json] = {"ok": True, "value": running.do(name, given)}
        except (Refused, ValueError) as error:
            answer = {"ok": False, "error": short(error)}
        text = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
        if len(text) > ANSWER:
            text = b'{"ok": false, "error": "the answer is too large"}'
        _here.inside = True
        try:
            return _put(caller, memory, alloc, text) << 32 | len(text)
        finally:
            _here.inside = False

    return function
