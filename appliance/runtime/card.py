"""Model manifests and the shelf of built models.

A manifest (TOML) says what a model is, where it comes from and what is built from it; a `Card` is one that was read and
checked. The `Shelf` finds the cards (those that ship with Parley and a drop-in folder of the user's) and what has been
built of them in the cache. The format is described in models/quantized/README.md.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from appliance.errors import ManifestFault, ModelDamaged, ModelMissing

T = TypeVar("T")

KINDS = ("asr", "lm", "tts", "vad", "turn-end", "embedding", "lexicon", "wake")
RECORD = "built.json"
"""The file beside the artefacts that says what they are: written last, so a folder without one is not a model."""

_ID = re.compile(r"[a-z0-9][a-z0-9._-]*")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_PINNED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.!+_-]*")


@dataclass(frozen=True, slots=True)
class Part:
    """One place a source can be fetched from: exactly one of `package`, `file`, `url` is set.

    `package` is a pinned requirement (`name==version`), `member` the path inside its wheel, `wheel_sha256` its digest.
    `platform` is the wheel's platform tag, where it has one: the member is the same on every box, whatever its own is.
    """

    package: str = ""
    member: str = ""
    wheel_sha256: str = ""
    platform: str = ""
    file: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """One input file of a recipe. Several parts are concatenated. `sha256` and `size` (bytes) are of the whole."""

    name: str
    sha256: str
    size: int
    parts: tuple[Part, ...]
    upstream_url: str = ""
    """Where the original lies: `models verify --upstream` shows that the re-packaged file is the same."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to run the model. `files` maps the role that an engine asks for ("encoder") to an artefact's name."""

    name: str
    precision: str
    files: Mapping[str, str]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Card:
    """A manifest that was read and checked. `artefacts` maps names to sha256 ("" where the manifest states none),
    `tensors` names the graph's inputs and outputs, `options` belong to the recipe and the engine, `golden` to the
    recipe's `verify`, `agreement` states what was measured against the reference implementation."""

    id: str
    kind: str
    summary: str
    language: tuple[str, ...]
    licence: str
    attribution: str
    recipe: str
    sources: tuple[Source, ...]
    artefacts: Mapping[str, str]
    rungs: Mapping[str, Rung]
    default_rung: str
    tensors: Mapping[str, Any]
    options: Mapping[str, Any]
    golden: Mapping[str, Any]
    agreement: Mapping[str, Any]
    optional: bool
    path: Path

    @property
    def key(self) -> str:
        """Names a build: 16 hex digits over everything in the manifest that the artefacts depend on."""
        depends = [
            self.recipe,
            {source.name: source.sha256 for source in self.sources},
            dict(self.artefacts),
            {name: asdict(rung) for name, rung in self.rungs.items()},
            self.options,
            self.tensors,
        ]
        return hashlib.sha256(json.dumps(depends, sort_keys=True, default=str).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Built:
    """A model on the shelf: its card and the folder that holds its artefacts."""

    card: Card
    folder: Path

    def file(self, role: str, rung: str | None = None) -> Path:
        """The artefact that plays `role` in `rung` (default: the card's default rung). Raises ModelMissing."""
        wanted = self.card.default_rung if rung is None else rung
        if wanted not in self.card.rungs:
            raise ModelMissing(f"{self.card.id} has no rung {wanted!r}", f"it has {_listed(self.card.rungs)}")
        files = self.card.rungs[wanted].files
        if role not in files:
            raise ModelMissing(f"rung {wanted!r} of {self.card.id} has no {role!r}", f"it has {_listed(files)}")
        return self.folder / files[role]


class Shelf:
    """Finds manifests and built models. `cache` is the model cache, `folders` are searched in order, later ones may
    replace a card of the same id. The manifests are read once, at the first question."""

    def __init__(self, cache: Path, folders: tuple[Path, ...]) -> None:
        self.cache = cache
        self.folders = folders

    def cards(self) -> dict[str, Card]:
        """Every card that could be read, by id. Broken manifests are left out: see `faults`."""
        return dict(self._read[0])

    def faults(self) -> list[ManifestFault]:
        """What is wrong with the manifests that could not be read."""
        return list(self._read[1].values())

    def card(self, id: str) -> Card:
        """Raises ManifestFault when the manifest `<id>.toml` is broken, ModelMissing when there is none."""
        cards, faults = self._read
        if id in faults:
            raise faults[id]
        if id not in cards:
            raise ModelMissing(f"there is no model {id!r}", _nearest(id, cards) or "see `parley models list`")
        return cards[id]

    def folder(self, card: Card) -> Path:
        """Where the card's artefacts lie once they are built."""
        return self.cache / "built" / f"{card.id}-{card.key}"

    def built(self, id: str) -> Built:
        """Raises ModelMissing when there is no such card or it is not built, ModelDamaged when a file is not what was
        recorded (size and name are checked here, digests by `models verify`)."""
        card = self.card(id)
        folder = self.folder(card)
        for name, entry in record(folder, card)["artefacts"].items():
            check_size(folder / name, entry["size"], id)
        return Built(card, folder)

    @cached_property
    def _read(self) -> tuple[dict[str, Card], dict[str, ManifestFault]]:
        cards: dict[str, Card] = {}
        faults: dict[str, ManifestFault] = {}
        for folder in self.folders:
            for path in sorted(folder.glob("*.toml")):
                try:
                    card = read_card(path)
                except ManifestFault as fault:
                    faults[path.stem] = fault
                else:
                    cards[card.id] = card
                    faults.pop(card.id, None)
        return cards, faults


def record(folder: Path, card: Card) -> dict[str, Any]:
    """What was written down when the model was built: `artefacts` maps names to `size` (bytes) and `sha256`, `recipe`
    is the recipe's version. Raises ModelMissing, ModelDamaged."""
    path = folder / RECORD
    fix = f"run `parley models build {card.id}`"
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ModelMissing(f"{card.id} is not built", fix) from None
    except (OSError, ValueError) as error:
        raise ModelDamaged(f"{path} cannot be read: {error}", fix) from error
    artefacts = found.get("artefacts") if isinstance(found, dict) else None
    if not isinstance(artefacts, dict) or set(artefacts) != set(card.artefacts):
        raise ModelDamaged(f"{path} does not list the artefacts of {card.id}", fix)
    for entry in artefacts.values():
        if not isinstance(entry, dict) or set(entry) != {"size", "sha256"}:
            raise ModelDamaged(f"{path} is not a record of a build", fix)
    return found  # type: ignore[no-any-return]


def check_size(path: Path, size: int, id: str) -> None:
    """Raises ModelDamaged when the file is missing or does not have `size` bytes."""
    fix = f"run `parley models build {id}`"
    try:
        actual = path.stat().st_size
    except OSError as error:
        raise ModelDamaged(f"{path} of {id} is gone: {error.strerror}", fix) from error
    if actual != size:
        raise ModelDamaged(f"{path} of {id} has {actual} bytes, built were {size}", fix)


def read_card(path: Path) -> Card:
    """Reads and checks one manifest. Raises ManifestFault, which names the file and the key."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ManifestFault(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ManifestFault(f"{path} is not valid TOML: {error}") from error
    return _card(_Table(path, "", values))


class _Table:
    """A TOML table that is read key by key. Every complaint names the file and the key, and `done` complains of the
    keys that nobody asked for."""

    def __init__(self, path: Path, where: str, values: dict[str, Any]) -> None:
        self.path = path
        self.values = values
        self._where = where
        self._asked: list[str] = []

    def fault(self, key: str, what: str, fix: str = "") -> ManifestFault:
        place = f"{self._where}.{key}" if self._where and key else self._where or key
        return ManifestFault(f"{self.path}: `{place}` {what}", fix)

    def take(self, key: str, kind: type[T], name: str, default: T | None = None) -> T:
        self._asked.append(key)
        value = self.values.get(key, default)
        if value is None:
            raise self.fault(key, "is missing", f"add {key} = ({name})")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.fault(key, f"must be {name}, not {value!r:.60}")
        return value

    def text(self, key: str, default: str | None = None, form: re.Pattern[str] | None = None, name: str = "") -> str:
        value = self.take(key, str, "a string", default)
        if form is not None and value != default and not form.fullmatch(value):
            raise self.fault(key, f"must be {name}, not {value!r:.80}")
        if default is None and not value.strip():
            raise self.fault(key, "must not be empty")
        return value

    def chosen(self, key: str, among: Iterable[str]) -> str:
        value = self.text(key)
        names = list(among)
        if value not in names:
            raise self.fault(key, f"is {value!r:.60}", _nearest(value, names) or f"it may be {_listed(names)}")
        return value

    def table(self, key: str) -> dict[str, Any]:
        return self.take(key, dict, "a table", {})

    def tables(self, key: str) -> list[_Table]:
        found = self.take(key, list, f"a list of tables, [[{key}]]", [])
        return [self._sub(f"{key}[{number}]", values) for number, values in enumerate(found)]

    def named(self, key: str) -> dict[str, _Table]:
        return {name: self._sub(f"{key}.{name}", values) for name, values in self.table(key).items()}

    def rest(self) -> dict[str, Any]:
        """What nobody has asked for yet, for tables that are open."""
        return {key: value for key, value in self.values.items() if key not in self._asked}

    def done(self) -> None:
        for key in self.rest():
            near = _nearest(key, self._asked)
            raise self.fault(key, "is not known here", near or f"known are {_listed(self._asked)}")

    def _sub(self, where: str, values: object) -> _Table:
        full = f"{self._where}.{where}" if self._where else where
        if not isinstance(values, dict):
            raise ManifestFault(f"{self.path}: `{full}` must be a table, not {values!r:.60}")
        return _Table(self.path, full, values)


def _card(table: _Table) -> Card:
    id = table.text("id", form=_ID, name="lower-case letters, digits, '.', '_' and '-'")
    artefacts = _artefacts(table)
    rungs = {name: _rung(name, sub, artefacts) for name, sub in table.named("rung").items()}
    if not rungs:
        raise table.fault("rung", "is missing", "state at least one way to run the model as [rung.NAME]")
    language = table.take("language", list, "a list of language codes", [])
    if not all(isinstance(code, str) for code in language):
        raise table.fault("language", "must be a list of strings")
    card = Card(
        id=id,
        kind=table.chosen("kind", KINDS),
        summary=table.text("summary"),
        language=tuple(language),
        licence=table.text("licence"),
        attribution=table.text("attribution", ""),
        recipe=table.text("recipe", form=re.compile(r"[a-z][a-z0-9_]*"), name="the name of a recipe"),
        sources=_sources(table),
        artefacts=artefacts,
        rungs=rungs,
        default_rung=table.chosen("default_rung", rungs),
        tensors=table.table("tensors"),
        options=table.table("options"),
        golden=table.table("golden"),
        agreement=table.table("agreement"),
        optional=table.take("optional", bool, "true or false", False),
        path=table.path,
    )
    table.done()
    return card


def _artefacts(table: _Table) -> dict[str, str]:
    artefacts: dict[str, str] = {}
    for sub in table.tables("artefact"):
        name = sub.text("name", form=_FILE_NAME, name="a plain file name")
        if name in artefacts or name == RECORD:
            raise sub.fault("name", f"{name!r} is taken")
        artefacts[name] = sub.text("sha256", "", _DIGEST, "64 hex digits")
        sub.done()
    if not artefacts:
        raise table.fault("artefact", "is missing", "list every file that the recipe builds as [[artefact]]")
    return artefacts


def _rung(name: str, table: _Table, artefacts: Mapping[str, str]) -> Rung:
    precision = table.text("precision")
    files = table.table("files")
    for role, artefact in files.items():
        if not isinstance(artefact, str) or artefact not in artefacts:
            known = _nearest(str(artefact), artefacts) or f"listed are {_listed(artefacts)}"
            raise table.fault(f"files.{role}", f"is {artefact!r:.60}, which is no [[artefact]]", known)
    if not files:
        raise table.fault("files", "is missing", "map each role that the engine asks for to an artefact")
    return Rung(name, precision, files, table.rest())


def _sources(table: _Table) -> tuple[Source, ...]:
    sources: dict[str, Source] = {}
    for sub in table.tables("source"):
        name = sub.text("name", form=_FILE_NAME, name="a plain name")
        if name in sources:
            raise sub.fault("name", f"{name!r} is taken")
        digest = sub.text("sha256", form=_DIGEST, name="64 hex digits")
        size = sub.take("size", int, "a number of bytes")
        if size < 0:
            raise sub.fault("size", f"must be a number of bytes, not {size}")
        upstream = sub.text("upstream_url", "", re.compile(r"https?://\S+"), "an http(s) address")
        listed = sub.tables("part")
        parts = tuple(map(_part, listed or [sub]))
        for read in (*listed, sub):
            read.done()
        sources[name] = Source(name, digest, size, parts, upstream)
    if not sources:
        raise table.fault("source", "is missing", "say where the model comes from as [[source]]")
    return tuple(sources.values())


def _part(table: _Table) -> Part:
    part = Part(
        package=table.text("package", "", _PINNED, "a pinned package, name==version"),
        member=table.text("member", ""),
        wheel_sha256=table.text("wheel_sha256", "", _DIGEST, "64 hex digits"),
        platform=table.text("platform", "", re.compile(r"[a-z0-9_]+"), "a platform tag, as in a wheel's name"),
        file=table.text("file", ""),
        url=table.text("url", "", re.compile(r"https?://\S+"), "an http(s) address"),
    )
    if sum(map(bool, (part.package, part.file, part.url))) != 1:
        raise table.fault("", "must have exactly one of `package`, `file` and `url`")
    if bool(part.package) != bool(part.member):
        raise table.fault("member", "goes with `package`: both or neither", "name the path inside the wheel")
    for key in ("wheel_sha256", "platform"):
        if getattr(part, key) and not part.package:
            raise table.fault(key, "goes with `package`")
    return part


def _nearest(word: str, among: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(among), 1)
    return f"did you mean {close[0]!r}?" if close else ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
