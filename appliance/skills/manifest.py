"""What a skill declares about itself: skill.toml, read once, checked once, frozen."""

from __future__ import annotations

import difflib
import hashlib
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

import jsonschema

from appliance.errors import SkillFault
from appliance.skills import grants
from appliance.skills.skill import Effect, Json

ABI = 1
LARGEST = 1024 * 1024
"""Bytes of a module at most: to compile one made to be hard takes 5 s and 200 MB per MB."""
MEMORY = 64 * 1024 * 1024
"""Bytes that a skill may be granted to remember."""
CONTROLS = ("volume", "mute", "rate")
"""The box's knobs."""


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


# --- reading ---------------------------------------------------------------------------------------------------------

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,59}")
_KEYS = {
    *("abi", "name", "version", "title", "description", "locales", "licence", "module", "native", "checksum"),
    *("grants", "limits", "intents", "tools"),
}
_GRANTED: Mapping[str, tuple[Callable[[str], object], str]] = {
    "http": (grants.place, 'write host names: "api.example.com" or "10.0.0.7:8080"'),
    "publish": (grants.topics, 'write MQTT filters: "home/+/set" or "home/#"'),
    "read": (grants.topics, 'write MQTT filters: "home/+/state" or "home/#"'),
    "controls": (CONTROLS.__contains__, f"known are {', '.join(CONTROLS)}"),
}
_BOUNDS = {
    "fuel": (1_000, 10_000_000_000),
    "deadline_ms": (1, 10_000),
    "memory_mb": (1, 256),
    "table": (0, 1_000_000),
    "output_kb": (1, 1_024),
    "acts": (0, 1_000),
}


def read(folder: Path) -> Manifest:
    """The manifest of a skill's folder; its module is there, and is the one whose checksum it names. Raises SkillFault,
    which names file, key and line."""
    path = folder / "skill.toml"
    try:
        text = path.read_text(encoding="utf-8")
        found = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise SkillFault(f"{path} cannot be read: {error}", "write a skill.toml, or correct that line") from error
    manifest = _Reader(path, text).manifest(folder, found)
    if manifest.module:
        content(manifest)
    return manifest


def checksum(path: Path) -> str:
    """Of a module, as a manifest names it. Raises SkillFault."""
    return _sum(_module(path))


def content(manifest: Manifest) -> bytes:
    """The module, which is still the one whose checksum the manifest names. Raises SkillFault."""
    path = manifest.folder / manifest.module
    found = _module(path)
    if _sum(found) != manifest.checksum:
        raise SkillFault(
            f"{path} is not the module that skill.toml names: it is {_sum(found)}, not {manifest.checksum or 'given'}",
            "build it with `parley skill build`",
        )
    return found


def _module(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            found = file.read(LARGEST + 1)
    except OSError as error:
        raise SkillFault(f"{path} cannot be read: {error}", "build it with `parley skill build`") from error
    if len(found) > LARGEST:
        raise SkillFault(f"{path} is larger than {LARGEST >> 20} MB", "build a smaller module")
    return found


def _sum(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


class _Reader:
    def __init__(self, path: Path, text: str) -> None:
        self._path, self._lines = path, text.splitlines()

    def manifest(self, folder: Path, found: Mapping[str, Any]) -> Manifest:
        self._known("", found, _KEYS)
        if found.get("abi") != ABI:
            raise self._fault("abi", f"abi is {found.get('abi')!r}", f"write abi = {ABI}")
        name = self._text(found, "name")
        if not _NAME.fullmatch(name):
            raise self._fault("name", f"{name!r:.60} is no name", "use small letters, digits and hyphens")
        module, native = self._text(found, "module", ""), self._text(found, "native", "")
        if bool(module) == bool(native):
            raise self._fault("module", "a skill has either a module or a native part", "write module or native")
        if module and (Path(module).name != module or not module.endswith(".wasm")):
            raise self._fault("module", f"{module!r:.60} is no module of this folder", 'write module = "skill.wasm"')
        return Manifest(
            folder=folder,
            name=name,
            version=self._text(found, "version"),
            title=self._text(found, "title"),
            description=self._text(found, "description", ""),
            locales=self._texts(found, "locales", ("en-US",)),
            module=module,
            native=native,
            checksum=self._text(found, "checksum", ""),
            grants=self._grants(found.get("grants", {})),
            limits=self._limits(found.get("limits", {})),
            intents={key: self._intent(key, one) for key, one in self._table(found, "intents").items()},
            tools={key: self._tool(key, one) for key, one in self._table(found, "tools").items()},
        )

    # --- parts -------------------------------------------------------------------------------------------------------

    def _grants(self, given: Any) -> Grants:
        wanted = {one.name: one for one in fields(Grants)}
        self._known("grants.", self._is_table("grants", given), wanted)
        values: dict[str, Any] = {}
        for key, value in given.items():
            kind = type(wanted[key].default)
            if kind is tuple:
                values[key] = self._texts(given, key, (), "grants.")
            elif type(value) is not kind:
                raise self._fault(key, f"grants.{key} is {value!r:.40}", f"it must be {_kind(kind)}")
            else:
                values[key] = value
        if not 0 <= values.get("memory", 0) <= MEMORY:
            raise self._fault("memory", "grants.memory is out of range", f"write bytes, at most {MEMORY}")
        for key, (check, fix) in _GRANTED.items():
            for one in values.get(key, ()):
                if not check(one):
                    raise self._fault(key, f"grants.{key} names {one!r:.60}", fix)
        return Grants(**values)

    def _limits(self, given: Any) -> Limits:
        self._known("limits.", self._is_table("limits", given), {one.name for one in fields(Limits)})
        for key, value in given.items():
            low, high = _BOUNDS[key]
            if type(value) is not int or not low <= value <= high:
                raise self._fault(key, f"limits.{key} is {value!r:.40}", f"write a number from {low} to {high}")
        return Limits(**given)

    def _intent(self, name: str, given: Any) -> IntentRule:
        where = f"intents.{name}."
        self._identifier(name)
        self._known(where, self._is_table(where, given), {one.name for one in fields(IntentRule)})
        effect, confirm = self._effect(given, where, "none"), self._text(given, "confirm", "", where)
        if effect == "costs" and not confirm:
            raise self._fault(name, f"{where}effect is costs, and nothing is asked first", "write confirm")
        slots = {}
        for slot, rule in self._is_table(f"{where}slots", given.get("slots", {})).items():
            inside = f"{where}slots.{slot}."
            self._known(inside, self._is_table(inside, rule), {one.name for one in fields(SlotRule)})
            required = rule.get("required", False)
            if type(required) is not bool:
                raise self._fault("required", f"{inside}required is {required!r:.40}", "write true or false")
            slots[slot] = SlotRule(required, self._text(rule, "ask", "", inside), rule.get("default"))
        follows = self._texts(given, "follows", (), where)
        return IntentRule(effect, confirm, slots, follows, self._text(given, "say", "", where))

    def _tool(self, name: str, given: Any) -> Tool:
        where = f"tools.{name}."
        self._identifier(name)
        known = {one.name for one in fields(Tool)} - {"name"}
        self._known(where, self._is_table(where, given), known)
        parameters = self._is_table(f"{where}parameters", given.get("parameters", {}))
        schema = {"type": "object", **parameters}
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            raise self._fault(
                "parameters", f"{where}parameters is no schema: {error.message}", "write a JSON schema"
            ) from error
        if schema["type"] != "object":
            raise self._fault("parameters", f"{where}parameters describes no object", 'write type = "object"')
        effect = self._effect(given, where, "")
        say = self._text(given, "say", "", where)
        if effect != "none" and not say:
            raise self._fault(name, f"{where}say is missing: the user has to be asked", "write say")
        examples = []
        for one in given.get("examples", ()):
            if not isinstance(one, Mapping) or not isinstance(one.get("request"), str):
                raise self._fault("examples", f"{where}examples holds no request", "write request and arguments")
            examples.append((one["request"], one.get("arguments", {})))
        return Tool(name, self._text(given, "description", None, where), effect, schema, say, tuple(examples))

    # --- values ------------------------------------------------------------------------------------------------------

    def _effect(self, given: Mapping[str, Any], where: str, default: str) -> Effect:
        effect = given.get("effect", default)
        if effect not in get_args(Effect):
            raise self._fault(
                "effect", f"{where}effect is {effect!r:.40}", f"write one of {', '.join(get_args(Effect))}"
            )
        return effect  # type: ignore[no-any-return]

    def _text(self, given: Mapping[str, Any], key: str, default: str | None = None, where: str = "") -> str:
        value = given.get(key, default)
        if not isinstance(value, str) or (default is None and not value.strip()) or len(value) > 2_000:
            raise self._fault(key, f"{where}{key} is {value!r:.60}", "write a text")
        return value

    def _texts(self, given: Mapping[str, Any], key: str, default: tuple[str, ...], where: str = "") -> tuple[str, ...]:
        value = given.get(key, list(default))
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise self._fault(key, f"{where}{key} is {value!r:.60}", 'write a list of texts: ["..."]')
        return tuple(value)

    def _table(self, given: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        return self._is_table(key, given.get(key, {}))

    def _is_table(self, where: str, given: Any) -> Mapping[str, Any]:
        if not isinstance(given, Mapping):
            raise self._fault(where, f"{where.rstrip('.')} is {given!r:.40}", "write it as a table")
        return given

    def _identifier(self, name: str) -> None:
        if not _IDENTIFIER.fullmatch(name):
            raise self._fault(name, f"{name!r:.60} is no name of an intent or a tool", "use letters, digits and _")

    def _known(self, where: str, given: Mapping[str, Any], known: Any) -> None:
        for key in given:
            if key not in known:
                close = difflib.get_close_matches(key, list(known), n=1)
                fix = f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(known))}"
                raise self._fault(key, f"there is no {where}{key}", fix)

    def _fault(self, key: str, what: str, fix: str) -> SkillFault:
        last = key.rstrip(".").rpartition(".")[2]
        pattern = re.compile(rf"^\s*(?:\[[^\]]*\b{re.escape(last)}\b[^\]]*\]|{re.escape(last)}\s*=)")
        line = next((number for number, text in enumerate(self._lines, start=1) if pattern.match(text)), 0)
        return SkillFault(f"{self._path}{f', line {line}' if line else ''}: {what}", fix)


def _kind(kind: type) -> str:
    return {bool: "true or false", int: "a whole number"}.get(kind, kind.__name__)
