"""parley models list | build | verify | rm"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from appliance.commands.console import command, console, escape, print_json, print_table, progress_bars
from appliance.config import Config

if TYPE_CHECKING:
    from models.quantized.verify import Verdict

STATES = {"built": "[green]built[/]", "missing": "[dim]missing[/]"}


def add(commands: Any, everywhere: argparse.ArgumentParser) -> None:
    group = commands.add_parser("models", help="list, build, verify or remove models", parents=[everywhere])
    actions = group.add_subparsers(dest="action", metavar="ACTION", required=True)
    command(actions, everywhere, "list", list_models, "list every model that has a manifest", machine=True)
    build = command(actions, everywhere, "build", build_models, "fetch, convert, quantise and verify models")
    build.add_argument("ids", nargs="*", metavar="MODEL", help="the models; default: all that are not optional")
    build.add_argument("--force", action="store_true", help="build again what is there and whole")
    build.add_argument("--quiet", action="store_true", help="show no progress")
    verify = command(actions, everywhere, "verify", verify_models, "check built files and golden outputs", machine=True)
    verify.add_argument("ids", nargs="*", metavar="MODEL", help="the models; default: all that are built")
    verify.add_argument("--upstream", action="store_true", help="compare the sources with the originals too (network)")
    remove = command(actions, everywhere, "rm", remove_models, "remove built models")
    remove.add_argument("ids", nargs="+", metavar="MODEL", help="the models")
    remove.add_argument("--sources", action="store_true", help="remove what they were built from too")


def list_models(args: argparse.Namespace, config: Config) -> int:
    from appliance.commands.shelf import open_shelf
    from models.quantized.build import listing

    shelf = open_shelf(config)
    entries = listing(shelf)
    if args.json:
        print_json(
            {
                "models": [
                    {
                        "id": entry.card.id,
                        "kind": entry.card.kind,
                        "summary": entry.card.summary,
                        "language": list(entry.card.language),
                        "licence": entry.card.licence,
                        "rungs": list(entry.card.rungs),
                        "optional": entry.card.optional,
                        "state": entry.state,
                        "bytes": entry.size,
                    }
                    for entry in entries
                ],
                "faults": [str(fault) for fault in shelf.faults()],
            }
        )
        return 0
    rows = []
    for entry in entries:
        state = STATES.get(entry.state, f"[red]{escape(entry.state)}[/]")
        state += " [dim](optional)[/]" if entry.card.optional and not entry.size else ""
        size = f"{entry.size / 1e6:.0f} MB" if entry.size else ""
        card = entry.card
        rows.append((card.id, card.kind, state, size, escape(card.licence), escape(card.summary)))
    print_table(("model", "kind", "state", "size", "licence", "what it is"), rows)
    for fault in shelf.faults():
        console(stderr=True).print(f"[red]broken manifest:[/] {escape(str(fault))}")
    return 0


def build_models(args: argparse.Namespace, config: Config) -> int:
    from appliance.commands.shelf import open_shelf
    from models.quantized.build import build_many

    shelf = open_shelf(config)
    with progress_bars(args.quiet) as report:
        build_many(shelf, args.ids, without_haste(report), force=args.force)
    for fault in shelf.faults():
        console(stderr=True).print(f"[red]broken manifest:[/] {escape(str(fault))}")
    return 0


def without_haste(report: Callable[[str, str, float], None]) -> Callable[[str, str, float], None]:
    """Models that are ready at once get no bar: a second `build` says nothing."""
    seen: set[str] = set()

    def reported(model: str, phase: str, fraction: float) -> None:
        if phase == "ready" and model not in seen:
            return
        seen.add(model)
        report(model, phase, fraction)

    return reported


def verify_models(args: argparse.Namespace, config: Config) -> int:
    """Returns 1 when a model that was looked at is damaged, fails a golden check or is not the original."""
    from appliance.commands.shelf import open_shelf
    from models.quantized.verify import verify

    with progress_bars(args.json) as report:
        verdicts = verify(open_shelf(config), args.ids, report, upstream=args.upstream)
    healthy = all(verdict.passed for verdict in verdicts)
    if args.json:
        models = [asdict(verdict) | {"passed": verdict.passed} for verdict in verdicts]
        print_json({"healthy": healthy, "models": models})
    else:
        print_table(("model", "", "check", "found"), [row for verdict in verdicts for row in _verdict_rows(verdict)])
    return int(not healthy)


def _verdict_rows(verdict: Verdict) -> Iterator[tuple[str, str, str, str]]:
    def row(good: bool, check: str, found: str) -> tuple[str, str, str, str]:
        return verdict.id, "[green]ok[/]" if good else "[red]FAIL[/]", escape(check), escape(found)

    yield row(verdict.state == "built", "files", ", ".join(verdict.damaged) or verdict.state)
    for check in verdict.checks:
        bound = "at least" if check.at_least else "at most"
        yield row(check.passed, check.name, f"{check.value:.6g} ({bound} {check.limit:g})")
    for comparison in verdict.upstream:
        yield row(
            comparison.outcome != "different",
            f"original of {comparison.source}",
            f"{comparison.outcome} {comparison.note}".strip(),
        )


def remove_models(args: argparse.Namespace, config: Config) -> int:
    from appliance.commands.shelf import open_shelf
    from models.quantized.build import remove_model

    shelf = open_shelf(config)
    for id in args.ids:
        freed = remove_model(shelf, id, sources=args.sources)
        print(f"{id}: {freed / 1e6:.0f} MB set free")
    return 0
