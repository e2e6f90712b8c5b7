"""What commands share: how they are declared, and how they write to the terminal. The door to rich."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from appliance.config import Config

if TYPE_CHECKING:
    from rich.console import Console

    from appliance.telemetry import Waterfall

Subparsers = "argparse._SubParsersAction[argparse.ArgumentParser]"
Run = Callable[[argparse.Namespace, Config], int]


def command(
    commands: Any, everywhere: argparse.ArgumentParser, name: str, run: Run, summary: str, *, machine: bool = False
) -> argparse.ArgumentParser:
    """Declares a command. `machine` adds --json, for commands whose output a program may want to read."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=summary[0].upper() + summary[1:] + ".", parents=[everywhere]
    )
    parser.set_defaults(run=run)
    if machine:
        parser.add_argument("--json", action="store_true", help="write JSON to stdout, for programs")
    return parser


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=None if isinstance(value, str) else 2, default=str))


def print_json_line(value: Any) -> None:
    """One object of a stream, flushed so that a reader sees it now."""
    print(json.dumps(value, ensure_ascii=False, default=str), flush=True)


def console(*, stderr: bool = False) -> Console:
    """A pipe or a file has no width: there nothing is wrapped."""
    from rich.console import Console

    width = None if (sys.stderr if stderr else sys.stdout).isatty() else 1_000
    return Console(stderr=stderr, highlight=False, width=width)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A plain table; the cells may carry rich's markup."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console().print(table)


def escape(text: str) -> str:
    from rich.markup import escape as escape_markup

    return escape_markup(text)


@contextmanager
def progress_bars(quiet: bool = False) -> Iterator[Callable[[str, str, float], None]]:
    """Yields `report(task, note, fraction)`: one bar per task, on stderr; nothing when quiet."""
    if quiet:
        yield lambda task, note, fraction: None
        return
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description:24}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %")
    err = console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), TextColumn("{task.fields[note]}"), console=err) as progress:
        tasks: dict[str, TaskID] = {}

        def report(task: str, note: str, fraction: float) -> None:
            if task not in tasks:
                tasks[task] = progress.add_task(task, total=1.0, note="")
                if not err.is_terminal:
                    err.print(f"{task} ...")
            progress.update(tasks[task], completed=fraction, note=note)

        yield report


@contextmanager
def live_text() -> Iterator[tuple[Callable[[str], None], Callable[[str], None]]]:
    """Yields `update`, which shows a text (with markup) in place of the last, and `keep`, which prints one for good and
    begins anew. Without a terminal only what is kept is printed."""
    out = console()
    if not out.is_terminal:
        yield lambda text: None, out.print
        return
    from rich.live import Live
    from rich.text import Text

    with Live(console=out, refresh_per_second=20, transient=True) as live:

        def keep(text: str) -> None:
            live.update(Text(""))
            live.console.print(text)

        yield lambda text: live.update(Text.from_markup(text)), keep


def waterfall_lines(waterfall: Waterfall, width: int = 40) -> Iterator[str]:
    """One line per mark: name, bar, milliseconds since the end of speech."""
    last = max(waterfall.total, 1.0)
    first = min((min(point.since, 0.0) for point in waterfall.points), default=0.0)
    scale = width / (last - first)
    for point in waterfall.points:
        before = round((point.since - first) * scale)
        length = max(1, round((point.ms - first) * scale) - before)
        bar = " " * min(before, width - 1) + "█" * length
        yield f"{point.label:22} {bar[:width]:{width}} {point.ms:8.1f} ms"
