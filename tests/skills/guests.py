"""Modules for the tests of the sandbox: one that works, and one for each way to misbehave."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import wasmtime

from appliance.skills.skill import Services

REPLY = "{\\22say\\22: \\22Hello.\\22}"
BASE = """(module
  {imports}
  (memory (export "memory") 1 {most})
  (table (export "table") 1 funcref)
  (global $next (mut i32) (i32.const 4096))
  (data (i32.const 16) "{reply}")
  {more}
  (func (export "parley_alloc") (param $n i32) (result i32)
    {alloc})
  (func $call (export "parley_call") (param $at i32) (param $n i32) (result i64)
    {body}))"""
ALLOC = """(local $at i32) (local.set $at (global.get $next))
    (global.set $next (i32.add (global.get $next) (local.get $n))) (local.get $at)"""


def packed(place: int, size: int) -> str:
    return f"(i64.const {place << 32 | size})"


def wat(
    reply: str = REPLY, body: str = "", *, imports: str = "", more: str = "", alloc: str = ALLOC, most: str = ""
) -> str:
    size = len(re.sub(r"\\(?:[0-9a-f]{2}|\\)", "x", reply))
    return BASE.format(reply=reply, body=body or packed(16, size), imports=imports, more=more, alloc=alloc, most=most)


def asks(name: str, request: str, *then: tuple[str, str], before: str = "", alloc: str = ALLOC) -> str:
    """Calls host functions, each with its request, and replies with what the last one answered, in `data`. `before`
    runs first; "$host" is the first function, and its request is at 512."""
    calls = [(name, request), *then]
    imports, texts, body = "", "", ""
    for number, (function, asked) in enumerate(calls):
        called, place = "$host" if number == 0 else f"$host{number}", 512 + 256 * number
        imports += f'(import "parley" "{function}" (func {called} (param i32 i32) (result i64)))'
        texts += '(data (i32.const {}) "{}")'.format(place, asked.replace('"', "\\22"))
        body += f"(local.set $r (call {called} (i32.const {place}) (i32.const {len(asked)})))\n"
    return wat(
        imports=imports,
        alloc=alloc,
        more=f"""{texts} (data (i32.const 2048) "{{\\22data\\22: ") (data (i32.const 2100) "}}")
  (global $busy (mut i32) (i32.const 0))""",
        body=f"""(local $r i64) (local $to i32) (local $from i32) (local $size i32)
    {before} {body}
    (local.set $size (i32.wrap_i64 (local.get $r)))
    (local.set $from (i32.wrap_i64 (i64.shr_u (local.get $r) (i64.const 32))))
    (local.set $to (i32.const 40000))
    (memory.copy (local.get $to) (i32.const 2048) (i32.const 9))
    (memory.copy (i32.add (local.get $to) (i32.const 9)) (local.get $from) (local.get $size))
    (memory.copy (i32.add (local.get $to) (i32.add (local.get $size) (i32.const 9))) (i32.const 2100) (i32.const 1))
    (i64.or
      (i64.shl (i64.extend_i32_u (local.get $to)) (i64.const 32))
      (i64.extend_i32_u (i32.add (local.get $size) (i32.const 10))))""",
    )


def until_refused(grow: str) -> str:
    return f"(loop $again (br_if $again (i32.ne {grow} (i32.const -1)))) (unreachable)"


LOOP = "(loop $again (br $again)) (unreachable)"
FAULTS = {
    "loops": wat(body=LOOP),
    "traps": wat(body="(unreachable)"),
    "recurses": wat(body="(call $call (local.get $at) (local.get $n))"),
    "reaches out": wat(body="(drop (i32.load (i32.const 0x7fffffff)))" + packed(16, 2)),
    "allocates": wat(body=until_refused("(memory.grow (i32.const 16))")),
    "grows tables": wat(body=until_refused("(table.grow 0 (ref.null func) (i32.const 5000))")),
    "floods": wat(body=packed(0, 65_536)),
    "points outside": wat(body=packed(70_000, 10)),
    "points far outside": wat(body="(i64.const -1)"),
    "allocates nowhere": wat(alloc="(i32.const -8)"),
    "never allocates": wat(alloc="(loop $again (br $again)) (unreachable)"),
    "no text": wat(reply="\\ff\\fe\\ff", body=packed(16, 3)),
    "no JSON": wat(reply="{\\22say\\22:"),
    "no object": wat(reply="[1, 2]"),
    "not a number": wat(reply="{\\22data\\22: NaN}"),
    "wrong kinds": wat(reply="{\\22say\\22: 7}"),
    "too deep": wat(reply="{\\22data\\22: " + "[" * 100 + "]" * 100 + "}"),
    "too large": wat(reply="{\\22data\\22: 1e999}"),
    "half a character": wat(reply="{\\22data\\22: \\22\\\\ud800\\22}"),
    "suggests nothing": wat(reply="{\\22suggestions\\22: [7]}"),
    "starts at once": wat(more="(func $start (loop $again (br $again))) (start $start)"),
    "starts for ever": wat(more='(func (export "_initialize") (loop $again (br $again)))'),
}


def folder(
    root: Path, name: str, text: str, *, manifest: str = "", intents: str = "[intents.Do]\neffect = 'acts'"
) -> Path:
    """A skill of one module; its intent may act."""
    place = root / name
    place.mkdir(parents=True, exist_ok=True)
    module = wasmtime.wat2wasm(text)
    (place / "skill.wasm").write_bytes(module)
    (place / "skill.toml").write_text(
        f"""abi = 1
name = "{name}"
version = "1.0.0"
title = "{name.title()}"
module = "skill.wasm"
checksum = "sha256:{hashlib.sha256(module).hexdigest()}"
{manifest}
{intents}
"""
    )
    return place


class Memory(dict[str, str]):
    def read(self, key: str) -> str | None:
        return self.get(key)

    def write(self, key: str, text: str) -> None:
        self[key] = text

    def delete(self, key: str) -> bool:
        return self.pop(key, None) is not None

    def keys(self, prefix: str = "") -> list[str]:  # type: ignore[override]
        return [key for key in self if key.startswith(prefix)]


class Network:
    """`does` is called by whoever publishes."""

    def __init__(self, does: Callable[[], None] = lambda: None) -> None:
        self.does = does
        self.published: list[tuple[str, str]] = []

    def publish(self, topic: str, payload: str, *, deadline_s: float) -> None:
        self.does()
        self.published.append((topic, payload))

    def last(self, topic: str) -> str | None:
        return f"last of {topic}"

    def fetch(self, method: str, url: str, body: str, *, deadline_s: float, limit: int) -> tuple[int, str]:
        return 200, f"{method} {url}"


class Controls:
    def __init__(self) -> None:
        self.values: dict[str, Any] = {"volume": 50}

    def get(self, name: str) -> Any:
        return self.values[name]

    def set(self, name: str, value: Any) -> None:
        self.values[name] = value


def services(memory: Memory | None = None, network: Network | None = None) -> Services:
    kept = Memory() if memory is None else memory
    return Services(
        memory=lambda name: kept,
        alarms=None,  # type: ignore[arg-type]
        network=network or Network(),
        controls=Controls(),
        now=lambda: datetime(2026, 12, 1, tzinfo=UTC),
    )
