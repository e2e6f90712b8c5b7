"""parley skill list | new | build | test | install | remove"""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appliance.commands.console import command, console, escape, print_json, print_table
from appliance.config import Config, config_home, state_home

if TYPE_CHECKING:
    from appliance.skills.manifest import Grants
    from appliance.skills.signature import Keys

LANGUAGES = ("assemblyscript", "c", "zig")


def add(commands: Any, everywhere: argparse.ArgumentParser) -> None:
    group = commands.add_parser("skill", help="what the box can do: list, make, test and install", parents=[everywhere])
    actions = group.add_subparsers(dest="action", metavar="ACTION", required=True)
    command(actions, everywhere, "list", show, "show every skill, and what keeps one from loading", machine=True)
    new = command(actions, everywhere, "new", create, "make the folder of a new skill that works")
    new.add_argument("folder", type=Path, metavar="FOLDER", help="its last part is the skill's name")
    new.add_argument("--language", choices=LANGUAGES, default="c")
    for name, run, help in (
        ("build", build, "compile a skill's source, and write the module and its checksum"),
        ("test", test, "say the sentences of a skill's tests.yaml to it"),
        ("install", install, "check a skill, sign it with this box's key, and put it where the daemon finds it"),
    ):
        one = command(actions, everywhere, name, run, help)
        one.add_argument("folder", type=Path, metavar="FOLDER", nargs="?", default=Path(), help="default: this one")
    gone = command(actions, everywhere, "remove", remove, "take an installed skill away")
    gone.add_argument("name", metavar="SKILL")


def keys() -> Keys:
    from appliance.skills.signature import Keys

    return Keys(state_home() / "keys", (config_home() / "keys", Path("/etc/parley/keys")))


def show(args: argparse.Namespace, config: Config) -> int:
    from appliance.skills.library import Library
    from appliance.skills.native import NATIVE
    from appliance.skills.testing import Bench

    skills = config.skills
    library = Library(
        Bench().services,
        skills.folders,
        native=NATIVE,
        keys=keys(),
        disabled=skills.disabled,
        locale=skills.locale,
    )
    library.load()
    manifests = [skill.manifest for _, skill in sorted(library.skills.items())]
    if args.json:
        found = [
            {
                "name": one.name,
                "version": one.version,
                "title": one.title,
                "folder": str(one.folder),
                "native": bool(one.native),
                "intents": {name: rule.effect for name, rule in one.intents.items()},
                "tools": {name: tool.effect for name, tool in one.tools.items()},
                "grants": _granted(one.grants),
            }
            for one in manifests
        ]
        print_json({"skills": found, "faults": [str(fault) for fault in library.faults]})
        return 0
    rows = [
        (one.name, one.version, escape(one.title), ", ".join(_granted(one.grants)), escape(str(one.folder)))
        for one in manifests
    ]
    print_table(("skill", "version", "title", "grants", "folder"), rows)
    for fault in library.faults:
        console(stderr=True).print(f"[red]not loaded:[/] {escape(str(fault))}")
    return 0


def _granted(grants: Grants) -> dict[str, Any]:
    values = {one.name: getattr(grants, one.name) for one in fields(grants)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items() if value}


def create(args: argparse.Namespace, config: Config) -> int:
    from appliance.skills.workshop import create as make

    make(args.folder, args.language)
    print(f"made {args.folder}: `parley skill build {args.folder}`, then test and install it")
    return 0


def build(args: argparse.Namespace, config: Config) -> int:
    from appliance.skills.workshop import build as compile

    module = compile(args.folder.resolve())
    print(f"built {module} ({module.stat().st_size} bytes)")
    return 0


def test(args: argparse.Namespace, config: Config) -> int:
    from appliance.skills.native import NATIVE
    from appliance.skills.testing import run_tests

    failed = 0
    for verdict in run_tests(args.folder.resolve(), NATIVE):
        print(f"{'ok    ' if verdict.right else 'FAILED'} {verdict.name}")
        failed += not verdict.right
        for turn in verdict.turns:
            for wrong in turn.wrong:
                print(f"         {turn.say!r}: {wrong}\n           it said: {turn.reply}")
    return 1 if failed else 0


def install(args: argparse.Namespace, config: Config) -> int:
    from appliance.skills.workshop import install as put

    manifest = put(args.folder.resolve(), config.skills.folders[-1], keys())
    granted = ", ".join(f"{name} = {value}" for name, value in _granted(manifest.grants).items()) or "nothing"
    print(f"installed {manifest.name} {manifest.version}; it is granted {granted}")
    return 0


def remove(args: argparse.Namespace, config: Config) -> int:
    from appliance.skills.workshop import remove as take

    print(f"removed {take(args.name, config.skills.folders)}")
    return 0
