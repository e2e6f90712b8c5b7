"""Tables: what a CSV holds row by row, also where one is broken, and which columns name what a row is about."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from appliance.errors import KnowledgeFault
from appliance.store.knowblocks import Table

COLUMNS = 100
FAULTS = 20
"""Rows that are named one by one; of more only their number is told."""
CELL = 2_000
"""Characters of a cell: a longer one is a quote that was never closed."""

_QUANTITY = re.compile(r"^[^\w]*[\d.,]+\s*\S{0,6}$")


def csv_table(text: str, delimiter: str, path: Path, faults: list[KnowledgeFault]) -> Table | None:
    """The rows that are whole. One whose quote is not closed, or that has more cells than the header, is a fault; the
    next line begins anew."""
    lines = text.splitlines()
    first = lines[0] if lines else ""
    if delimiter == "," and first.count(";") > first.count(","):
        delimiter = ";"
    header: tuple[str, ...] = ()
    rows: list[tuple[int, tuple[str, ...]]] = []
    broken: list[KnowledgeFault] = []
    number = 0
    while number < len(lines):
        line = number + 1
        cells, used = _row(lines, number, delimiter)
        number += used
        if cells is not None and not any(cells):
            continue
        if cells is None:
            broken.append(KnowledgeFault(f"{path}:{line}: a quote is not closed", "close it, or double it"))
        elif not header:
            if len(cells) > COLUMNS:
                faults.append(KnowledgeFault(f"{path}:{line}: more than {COLUMNS} columns", "split the table"))
                return None
            header = cells
        elif len(cells) > len(header):
            message = f"{path}:{line}: {len(cells)} cells under {len(header)} headings"
            broken.append(KnowledgeFault(message, "put a cell that holds a comma in quotes"))
        else:
            rows.append((line, (*cells, *[""] * (len(header) - len(cells)))))
    faults += broken[:FAULTS]
    if len(broken) > FAULTS:
        faults.append(KnowledgeFault(f"{path}: {len(broken) - FAULTS} more broken rows", "correct the first ones"))
    return Table(header, tuple(rows)) if header else None


def _row(lines: list[str], number: int, delimiter: str) -> tuple[tuple[str, ...] | None, int]:
    """The cells of the row that begins at a line, None for a broken one, and how many lines it takes. A cell in quotes
    may go over some lines; a quote that none of them closes takes its own line only."""
    text = lines[number]
    for used in range(1, 21):
        try:
            cells = next(csv.reader([text], delimiter=delimiter, strict=True), [])
            return tuple(" ".join(cell.split()) for cell in cells), used
        except csv.Error:
            more = number + used
            if more >= len(lines) or len(text) > CELL or '"' not in text:
                break
            text = f"{text}\n{lines[more]}"
    return None, 1


def entities(table: Table) -> tuple[frozenset[int], list[str]]:
    """The columns that name what a row is about, and that name for each row: the first column, and as many text columns
    behind it as it takes to tell the rows apart ("Latte", "small" -> "small latte")."""
    width = len(table.header)
    keys = [0] if width > 1 else []
    names = [tuple(row[key] for key in keys) for _, row in table.rows]
    while keys and len(set(names)) < len(names) and (more := keys[-1] + 1) < width - 1:
        if any(_QUANTITY.match(row[more]) for _, row in table.rows):
            break
        keys.append(more)
        names = [tuple(row[key] for key in keys) for _, row in table.rows]
    return frozenset(keys), [_name(name) for name in names]


def _name(parts: tuple[str, ...]) -> str:
    """A single small word goes in front, as an adjective does."""
    if not parts:
        return ""
    name = parts[0]
    for part in filter(None, parts[1:]):
        name = f"{part} {lowered(name)}" if part.islower() and " " not in part else f"{name}, {part}"
    return name


def lowered(name: str) -> str:
    """Without a capital that only begins a cell; codes and short names keep theirs."""
    head = name.split(" ", 1)[0]
    return name if any(c.isupper() or c.isdigit() for c in head[1:]) or len(head) < 2 else name[0].lower() + name[1:]
