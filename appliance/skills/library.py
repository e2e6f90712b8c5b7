"""The skills that are there: loaded, reloaded and removed while the box runs.

A folder that has changed is read anew; what cannot be used is a fault that is told, and a skill that worked before goes
on as it was. A call that runs ends on the skill it began on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from appliance.errors import SkillFault
from appliance.skills import manifest as manifests
from appliance.skills.dialogue import Able
from appliance.skills.host import own_data, read_data
from appliance.skills.intents.recognise import Intents
from appliance.skills.intents.templates import Grammar, load
from appliance.skills.manifest import Manifest
from appliance.skills.sandbox import Sandboxed
from appliance.skills.signature import Keys
from appliance.skills.skill import Services
from appliance.telemetry import log

SHIPPED = Path(__file__).parent / "shipped"
"""What the product brings along: signed by being part of it, and the only place of native skills."""
SECONDS = 2.0
"""Between two looks at the folders."""


class AnySkill(Able, Protocol):
    """A skill of the library: one in the sandbox, or a native one."""

    def close(self) -> None: ...


Native = Mapping[str, Callable[[Manifest, Services], AnySkill]]
"""Skills in Python, by the name that their manifest gives as `native`."""


@dataclass(frozen=True, slots=True)
class _Entry:
    state: tuple[object, ...]
    skill: AnySkill | None
    grammar: Grammar
    faults: tuple[SkillFault, ...]


class Library:
    """`folders` hold a folder for each skill; a later one replaces a skill of the same name. Without `keys` no skill
    need be signed. `load` before use; `poll` looks again, at most every two seconds."""

    def __init__(
        self,
        services: Services,
        folders: Sequence[Path] = (),
        *,
        native: Native | None = None,
        keys: Keys | None = None,
        disabled: Iterable[str] = (),
        locale: str = "en-US",
        shipped: Path = SHIPPED,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._services, self._native, self._keys = services, dict(native or {}), keys
        self._folders = (shipped, *folders)
        self._shipped, self._disabled, self._locale, self._clock = shipped, frozenset(disabled), locale, clock
        self._entries: dict[Path, _Entry] = {}
        self._looked = float("-inf")
        self.skills: Mapping[str, AnySkill] = {}
        """Those that can be called, by name."""
        self.intents = Intents.compile({})[0]
        """What they understand."""
        self.faults: tuple[SkillFault, ...] = ()
        self.generation = 0
        """Grows whenever a skill came, went or changed."""

    def load(self) -> None:
        """Looks at every folder now."""
        self._looked = self._clock()
        found = self._found()
        changed = set(self._entries) - set(found)
        entries: dict[Path, _Entry] = {}
        for folder, state in found.items():
            known = self._entries.get(folder)
            if known and known.state == state:
                entries[folder] = known
            else:
                entries[folder] = self._read(folder, state, known)
                changed.add(folder)
        if changed or not self.generation:
            self._take(entries)

    def poll(self) -> bool:
        """Whether something has changed; to be asked often."""
        if self._clock() - self._looked < SECONDS:
            return False
        before = self.generation
        self.load()
        return self.generation != before

    def quota(self, name: str) -> int:
        """Bytes that a skill may remember."""
        skill = self.skills.get(name)
        return skill.manifest.grants.memory if skill else 0

    # --- reading -----------------------------------------------------------------------------------------------------

    def _found(self) -> dict[Path, tuple[object, ...]]:
        """The folders of skills, and what tells whether they have changed."""
        found: dict[Path, tuple[object, ...]] = {}
        for folder in self._folders:
            try:
                children = sorted(child for child in folder.iterdir() if (child / "skill.toml").is_file())
            except OSError:
                continue
            for child in children:
                if child.name not in self._disabled and not child.name.startswith("."):
                    found[child] = _state(child)
        return found

    def _read(self, folder: Path, state: tuple[object, ...], known: _Entry | None) -> _Entry:
        """The skill as it is now; where that cannot be used, as it was."""
        try:
            manifest = manifests.read(folder)
            if manifest.name in self._disabled:
                return _Entry(state, None, Grammar(), ())
            if folder.name != manifest.name:
                raise SkillFault(f"{folder} holds the skill {manifest.name}", f"call the folder {manifest.name}")
            ours = folder.parent == self._shipped
            if not ours and self._keys:
                self._keys.check(folder)
            grammar, faults = self._grammar(manifest)
            _check_names(manifest, grammar)
            return _Entry(state, self._made(manifest, ours=ours), grammar, tuple(faults))
        except SkillFault as fault:
            if known and known.skill:
                log("skill kept as it was", level=logging.WARNING, skill=known.skill.name, reason=str(fault))
                return _Entry(state, known.skill, known.grammar, (fault,))
            return _Entry(state, None, Grammar(), (fault,))

    def _made(self, manifest: Manifest, *, ours: bool) -> AnySkill:
        if not manifest.native:
            return Sandboxed(manifest, self._services)
        if not ours:
            raise SkillFault(
                f"{manifest.folder} wants to be native, which only a part of Parley can be", "build a module"
            )
        made = self._native.get(manifest.native)
        if made is None:
            raise SkillFault(f"there is no native skill {manifest.native}", f"known are {', '.join(self._native)}")
        return made(manifest, self._services)

    def _grammar(self, manifest: Manifest) -> tuple[Grammar, list[SkillFault]]:
        path = manifest.folder / "intents" / f"{self._locale.partition('-')[0]}.yaml"
        if not path.exists():
            return Grammar(), []
        return load(path, lambda name: read_data(manifest, name))

    # --- taking over -------------------------------------------------------------------------------------------------

    def _take(self, entries: dict[Path, _Entry]) -> None:
        skills: dict[str, AnySkill] = {}
        grammars: dict[str, Grammar] = {}
        faults: list[SkillFault] = []
        for folder in self._folders:  # a later folder replaces an earlier one's skill
            for path, entry in entries.items():
                if path.parent == folder:
                    faults += entry.faults
                    if entry.skill:
                        skills[entry.skill.name], grammars[entry.skill.name] = entry.skill, entry.grammar
        self.intents, claims = Intents.compile(grammars)
        kept = set(map(id, skills.values()))
        for entry in self._entries.values():
            if entry.skill and id(entry.skill) not in kept:
                entry.skill.close()
        told = {str(fault) for fault in self.faults}
        self._entries, self.skills, self.faults = entries, skills, (*faults, *claims)
        self.generation += 1
        for fault in self.faults:
            if str(fault) not in told:
                log("skill", level=logging.WARNING, message=fault.message, fix=fault.fix)


def _state(folder: Path) -> tuple[object, ...]:
    """Changes when a file of the folder does, or one of the user's own that is read in its place."""
    found: list[tuple[str, int, int, int]] = []
    try:
        files = [path for path in sorted(folder.rglob("*")) if "src" not in path.relative_to(folder).parts]
        for path in (*files, *sorted(own_data(folder.name).glob("*"))):
            if path.is_file():
                info = path.stat()
                found.append((str(path), info.st_mtime_ns, info.st_size, info.st_ino))
    except OSError:
        return ()
    return tuple(found)


def _check_names(manifest: Manifest, grammar: Grammar) -> None:
    """Every intent that sentences name is in the manifest: its effect must be known before it is called."""
    unknown = sorted({template.intent for template in grammar.templates} - set(manifest.intents))
    if unknown:
        raise SkillFault(
            f"{manifest.folder / 'skill.toml'} does not know the intent {unknown[0]}, which sentences are written for",
            f"write [intents.{unknown[0]}] with its effect",
        )
