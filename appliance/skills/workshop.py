"""Skills in the making: a new folder, a module from its source, and what is installed on this box."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from appliance.errors import SkillFault, StorageFault
from appliance.skills import manifest as manifests
from appliance.skills.library import SHIPPED
from appliance.skills.manifest import Manifest
from appliance.skills.signature import Keys

SDK = Path(__file__).parent / "sdk"
PATIENCE = 300.0
"""Seconds that a compiler may take."""

_ZIG = f"install it: {Path(sys.executable).name} -m pip install ziglang==0.17.1"
_ASC = "install Node.js, then: npm install -g assemblyscript@0.28.20"

MANIFEST = """abi = 1
name = "{name}"
version = "0.1.0"
title = "{title}"
description = "Says hello."
locales = ["en-US"]
module = "skill.wasm"
checksum = ""

# [grants]
# memory = 65536      # bytes that it may remember; see README.md beside the sandbox for the others

[intents.Hello]
effect = "none"       # acts: changes something; costs: cannot be undone, and is asked first
say = "say hello to Anna"
"""
INTENTS = """language: en
intents:
  Hello:
    data:
      - sentences:
          - "say hello to {name}"
          - "give me a greeting"
lists:
  name: { type: text }
"""
TESTS = """- name: it says hello
  turns:
    - { say: say hello to Anna, intent: Hello, slots: { name: anna }, reply: "Hello, anna.", deeds: [] }
    - { say: give me a greeting, reply: "Hello." }
"""


@dataclass(frozen=True, slots=True)
class Language:
    """`source` is where a skill of it has its source; `command` compiles that to {out}."""

    name: str
    source: str
    command: tuple[str, ...]
    missing: str
    """What to do where the compiler is not there."""


LANGUAGES: Mapping[str, Language] = {
    "c": Language(
        "c",
        "src/main.c",
        (
            *("{zig}", "cc", "--target=wasm32-freestanding", "-nostdlib", "-Oz", "-I", "{sdk}"),
            *("-Wl,--no-entry", "-Wl,--strip-all", "-o", "{out}", "{source}"),
        ),
        _ZIG,
    ),
    "zig": Language(
        "zig",
        "src/main.zig",
        (
            *("{zig}", "build-exe", "-target", "wasm32-freestanding", "-OReleaseSmall", "-fno-entry", "-fstrip"),
            *("--export=parley_alloc", "--export=parley_call", "--dep", "parley"),
            *("-Mroot={source}", "-Mparley={sdk}/parley.zig", "-femit-bin={out}"),
        ),
        _ZIG,
    ),
    "assemblyscript": Language(
        "assemblyscript",
        "src/main.ts",
        (
            *("asc", "{source}", "--lib", "{sdk}", "--runtime", "stub", "-Oz"),
            *("--use", "abort=", "--outFile", "{out}"),
        ),
        _ASC,
    ),
}


def create(folder: Path, language: str) -> None:
    """A skill that works. Raises SkillFault when there is something there."""
    if folder.exists():
        raise SkillFault(f"{folder} is there already", "choose another name")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", folder.name):
        raise SkillFault(f"{folder.name!r:.60} is no name", "use small letters, digits and hyphens")
    try:
        shutil.copytree(SDK / "templates" / language, folder)
        (folder / "intents").mkdir()
        title = folder.name.replace("-", " ").capitalize()
        (folder / "skill.toml").write_text(MANIFEST.format(name=folder.name, title=title))
        (folder / "intents/en.yaml").write_text(INTENTS)
        (folder / "tests.yaml").write_text(TESTS)
    except OSError as error:
        raise StorageFault(f"{folder} cannot be written: {error}", "choose another place") from error


def build(folder: Path) -> Path:
    """Compiles the source, and writes the module and its checksum. Raises SkillFault with what the compiler said."""
    path = folder / "skill.toml"
    if not path.is_file():
        raise SkillFault(f"{folder} holds no skill.toml", "name the folder of a skill")
    language, source = _language(folder)
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "skill.wasm"
        _compile(language, source, out)
        module = folder / "skill.wasm"
        try:
            shutil.copyfile(out, module)
            text, count = re.subn(
                r'(?m)^checksum = "[^"]*"', f'checksum = "{manifests.checksum(module)}"', path.read_text()
            )
            if not count:
                raise SkillFault(f"{path} has no line for the checksum", 'write checksum = ""')
            path.write_text(text)
        except OSError as error:
            raise StorageFault(f"{folder} cannot be written: {error}", "make it writable") from error
    return module


def _language(folder: Path) -> tuple[Language, Path]:
    for language in LANGUAGES.values():
        suffix = Path(language.source).suffix
        for name in (language.source, f"src/{folder.name}{suffix}"):
            if (folder / name).is_file():
                return language, folder / name
    raise SkillFault(f"{folder} holds no source", f"write one of {', '.join(one.source for one in LANGUAGES.values())}")


def _compile(language: Language, source: Path, out: Path) -> None:
    words = {"source": source, "out": out, "sdk": SDK / language.name}
    command: list[str] = []
    for word in language.command:
        command += _zig() if word == "{zig}" else [word.format(**words)]
    if shutil.which(command[0]) is None:
        raise SkillFault(f"the compiler {command[0]} is not installed", language.missing)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SkillFault(f"{source} cannot be compiled: {error}", language.missing) from error
    if done.returncode:
        told = (done.stderr or done.stdout).strip()
        if "No module named ziglang" in told:
            raise SkillFault("the compiler zig is not installed", language.missing)
        raise SkillFault(f"{source} does not compile:\n{told[:2000]}", "correct it")


def _zig() -> Sequence[str]:
    found = shutil.which("zig")
    return [found] if found else [sys.executable, "-m", "ziglang"]


def install(folder: Path, home: Path, keys: Keys) -> Manifest:
    """Checks a skill, copies it into `home` and signs it there. Raises SkillFault, StorageFault."""
    manifest = manifests.read(folder)
    if manifest.native:
        raise SkillFault(f"{folder} wants to be native, which only a part of Parley can be", "build a module")
    target, fresh = home / manifest.name, home / f".{manifest.name}.new"
    try:
        home.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(folder, fresh, symlinks=True, ignore=shutil.ignore_patterns("node_modules", ".*", "skill.sig"))
        keys.sign(fresh)
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
    except OSError as error:
        raise StorageFault(f"{target} cannot be written: {error}", "make it writable, or free space") from error
    return manifest


def remove(name: str, homes: Sequence[Path]) -> Path:
    """Takes an installed skill away. Raises SkillFault for one that is not installed, or is part of the product."""
    for home in reversed(homes):
        folder = home / name
        if (folder / "skill.toml").is_file():
            try:
                shutil.rmtree(folder)
            except OSError as error:
                raise StorageFault(f"{folder} cannot be removed: {error}", "make it writable") from error
            return folder
    if (SHIPPED / name).is_dir():
        raise SkillFault(f"{name} is part of Parley", f'leave it out: [skills] disabled = ["{name}"]')
    raise SkillFault(f"no skill {name!r:.60} is installed", "`parley skill list` shows those that are")
