"""parley knowledge list | check | ask: the documents that answers are taken from."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from appliance.commands.console import command, print_json, print_table
from appliance.config import Config, cache_home
from appliance.errors import KnowledgeFault

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from appliance.store.knowledge import Knowledge


def add(commands: Any, everywhere: argparse.ArgumentParser) -> None:
    group = commands.add_parser("knowledge", help="the documents that answers are taken from", parents=[everywhere])
    actions = group.add_subparsers(dest="action", metavar="ACTION", required=True)
    command(actions, everywhere, "list", show, "show the packs and where they lie", machine=True)
    command(actions, everywhere, "check", check, "read every document and say what is wrong with it", machine=True)
    asked = command(actions, everywhere, "ask", ask, "show what the documents say to a question", machine=True)
    asked.add_argument("question", metavar="QUESTION")


@contextmanager
def opened(config: Config) -> Iterator[Knowledge]:
    """What the folders of the settings hold, read afresh."""
    from appliance.commands.shelf import open_shelf
    from appliance.compose import Engines
    from appliance.store.knowledge import Knowledge

    engines = Engines(config, open_shelf(config))

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return engines.embedder.embed(texts)  # opened when there is something to read, and not before

    knowledge = Knowledge(
        config.knowledge.folders,
        cache_home() / "knowledge.db",
        embed,
        largest_mb=config.knowledge.largest_mb,
        model=config.models.embedding,
    )
    try:
        knowledge.refresh()
        yield knowledge
    finally:
        knowledge.close()


def show(args: argparse.Namespace, config: Config) -> int:
    with opened(config) as knowledge:
        if args.json:
            print_json([asdict(pack) for pack in knowledge.packs])
        elif knowledge.packs:
            rows = [(pack.name, str(pack.documents), str(pack.passages), str(pack.folder)) for pack in knowledge.packs]
            print_table(("pack", "documents", "passages", "folder"), rows)
        else:
            print(f"no packs; make a folder with documents in {config.knowledge.folders[-1]}")
    return 0


def check(args: argparse.Namespace, config: Config) -> int:
    with opened(config) as knowledge:
        if args.json:
            print_json([{"message": fault.message, "fix": fault.fix} for fault in knowledge.faults])
        for fault in () if args.json else knowledge.faults:
            print(f"{fault.message}\n  fix: {fault.fix}")
        if not args.json and not knowledge.faults:
            print(f"{sum(pack.documents for pack in knowledge.packs)} documents, nothing wrong")
        return KnowledgeFault.code if knowledge.faults else 0


def ask(args: argparse.Namespace, config: Config) -> int:
    """1 where the documents do not say it."""
    from appliance.store.knowledge import Answer

    with opened(config) as knowledge:
        found = knowledge.ask(args.question, datetime.now().astimezone())
    if args.json:
        print_json(asdict(found) if found else None)
    elif isinstance(found, Answer):
        print(f"{found.text}\n  {found.pack}/{found.source}:{found.line}: {found.passage}")
    else:
        print(f"not answered: {found.why if found else 'no packs, or no question'}", file=sys.stderr)
    return 0 if isinstance(found, Answer) else 1
