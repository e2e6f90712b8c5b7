"""parley memory show | search | edit | forget | export | gone | check: what the box remembers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from appliance.commands.console import command, print_json, print_json_line, print_table
from appliance.config import Config, state_home
from appliance.errors import ConfigFault, StorageFault

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from appliance.store.memory import Memory
    from appliance.store.units import Unit


def add(commands: Any, everywhere: argparse.ArgumentParser) -> None:
    group = commands.add_parser("memory", help="what the box remembers", parents=[everywhere])
    actions = group.add_subparsers(dest="action", metavar="ACTION", required=True)
    shown = command(actions, everywhere, "show", show, "show what is remembered", machine=True)
    shown.add_argument("--past", action="store_true", help="what holds no longer, too")
    found = command(actions, everywhere, "search", search, "show what comes to mind to a text", machine=True)
    found.add_argument("text", metavar="TEXT")
    edited = command(actions, everywhere, "edit", edit, "put a correction in a memory's place", machine=True)
    edited.add_argument("id", type=int, metavar="ID", help="its number, as `parley memory show` tells")
    edited.add_argument("text", metavar="TEXT", help="what is right")
    gone = command(actions, everywhere, "forget", forget, "delete memories and every trace of them", machine=True)
    gone.add_argument("id", type=int, nargs="*", metavar="ID", help="their numbers")
    gone.add_argument("--about", metavar="TEXT", help="everything in which these words stand")
    gone.add_argument("--everything", action="store_true", help="all of this person's, and what is everybody's")
    command(actions, everywhere, "export", export, "write every memory and turn as JSON lines")
    command(actions, everywhere, "gone", deleted, "show what was deleted, when and why", machine=True)
    command(actions, everywhere, "check", check, "read the database through, and copy it", machine=True)
    for action in actions.choices.values():
        action.add_argument("--person", metavar="NAME", help="whose profile (memory.person)")


@contextmanager
def opened(args: argparse.Namespace, config: Config) -> Iterator[Memory]:
    """What the daemon writes, too: both may be open at once. Raises StorageFault where it cannot be read."""
    from appliance.commands.shelf import open_shelf
    from appliance.compose import Engines, memory_rules
    from appliance.store.memory import Memory
    from appliance.voice.writer import forget_prefixes

    engines = Engines(config, open_shelf(config))

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return engines.embedder.embed(texts)

    rules = memory_rules(config)
    if rules.mode != "keep":
        raise ConfigFault(f"memory.mode is {rules.mode}: nothing is on the disk", 'set memory.mode = "keep"')
    person = rules.person if args.person is None else args.person
    prefixes = state_home() / "prefixes"
    memory = Memory(
        state_home(), embed, replace(rules, person=person.lower()), forgotten=lambda: forget_prefixes(prefixes)
    )
    try:
        if not memory.health.ok:
            raise StorageFault(memory.health.problem, memory.health.fix)
        yield memory
    finally:
        memory.close()


def _row(unit: Unit) -> list[str]:
    known = f"{unit.subject}: {unit.attribute} = {unit.value}" if unit.attribute else ""
    return [str(unit.id), unit.kind, unit.text, known, f"{unit.said:%Y-%m-%d}", "" if unit.current else "past"]


def _print(units: Sequence[Unit]) -> None:
    from appliance.commands.console import escape

    if units:
        print_table(
            ["ID", "KIND", "TEXT", "MEANS", "SAID", ""], [[escape(cell) for cell in _row(unit)] for unit in units]
        )
    else:
        print("nothing is remembered")


def _as_dict(unit: Unit) -> dict[str, Any]:
    names = ("id", "kind", "text", "subject", "attribute", "value", "person", "importance", "used", "current", "turn")
    return {**{name: getattr(unit, name) for name in names}, "said": unit.said.isoformat()}


def show(args: argparse.Namespace, config: Config) -> int:
    with opened(args, config) as memory:
        units = memory.units(past=args.past)
    if args.json:
        print_json([_as_dict(unit) for unit in units])
    else:
        _print(units)
    return 0


def search(args: argparse.Namespace, config: Config) -> int:
    with opened(args, config) as memory:
        found = memory.find(args.text)
    if args.json:
        print_json(
            [
                {**_as_dict(one.unit), "score": round(one.score, 4), "relevance": round(one.relevance, 4)}
                for one in found
            ]
        )
    else:
        _print([one.unit for one in found])
    return 0


def edit(args: argparse.Namespace, config: Config) -> int:
    with opened(args, config) as memory:
        unit = memory.edit(args.id, args.text)
    if args.json:
        print_json(_as_dict(unit))
    else:
        _print([unit])
    return 0


def forget(args: argparse.Namespace, config: Config) -> int:
    wishes = [bool(args.id), args.about is not None, args.everything]
    if sum(wishes) != 1:
        raise ConfigFault("nothing is named to be forgotten, or too much", "give numbers, or --about, or --everything")
    with opened(args, config) as memory:
        if args.everything:
            count = memory.forget_everything()
        elif args.about is not None:
            count = memory.forget_about(args.about)
        else:
            count = memory.forget(args.id)
    if args.json:
        print_json({"forgotten": count})
    else:
        print(f"forgotten: {count}" if count else "nothing of that is remembered")
    return 0


def export(args: argparse.Namespace, config: Config) -> int:
    with opened(args, config) as memory:
        for value in memory.export():
            print_json_line(value)
    return 0


def deleted(args: argparse.Namespace, config: Config) -> int:
    with opened(args, config) as memory:
        rows = memory.gone()
    if args.json:
        print_json(rows)
    else:
        print_table(
            ["WHEN", "WHAT", "WHY"], [[str(r["at"])[:19], f"{r['count']} {r['what']}", str(r["why"])] for r in rows]
        )
    return 0


def check(args: argparse.Namespace, config: Config) -> int:
    """Opening reads it through."""
    from dataclasses import asdict

    with opened(args, config) as memory:
        tidied, health = memory.tidy(), memory.health
    values = {**asdict(tidied), "quarantined": health.quarantined}
    if args.json:
        print_json(values)
    else:
        print(f"sound, {tidied.bytes / 1024:.0f} kB")
        if health.quarantined:
            print(f"a damaged file was moved to {health.quarantined}")
    return 0
