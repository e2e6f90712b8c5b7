"""A folder of documents as passages: each with its file and line, the headings above it, and the fields found in it.

A document that cannot be read is a fault, and so is a row of a table that is broken; the rest is used. Nothing of a
document is ever carried out: it is text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from pathlib import Path

from appliance.errors import KnowledgeFault
from appliance.store.knowblocks import Block, Heading, Prose, Table, html_blocks, markdown_blocks, text_blocks
from appliance.store.knowtables import csv_table, entities

READERS = {
    ".md": markdown_blocks,
    ".markdown": markdown_blocks,
    ".txt": text_blocks,
    ".html": html_blocks,
    ".htm": html_blocks,
}
TABLES = {".csv": ",", ".tsv": "\t"}
SYNONYMS = "synonyms.txt"
DATES = ("valid_from", "valid_until", "updated")
DEEPEST = 8
"""Folders in folders."""
DOCUMENTS = 2_000
PASSAGES = 20_000
"""Of one document. Both bound the memory and the time that a pack can take."""
CLAUSE = 600
"""Characters of a passage of prose; what is longer is cut at a sentence."""

_ODD_BREAKS = re.compile("[\\x0b\\x0c\\x1c-\\x1e\\x85\\u2028\\u2029]")
"""What Python takes for the end of a line and an editor does not: the lines of the faults would be wrong."""
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_DEFINITION = re.compile(r"^([^\W\d][^:.?!;|]{1,48}):[ \t]+(\S.{0,200})$")
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[^\W\d_a-z]|\d)")
_ABBREVIATED = re.compile(r"(?<!\d )\b(?:[A-Z]|Mr|Mrs|Ms|Dr|St|No|approx|ca|e\.g|i\.e|incl|max|min|vs)\.$")
_INSTRUCTION = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instruction|prompt|rule|previous|above|told)"
    r"|\bsystem prompt\b|\byou are (?:now|no longer)\b|\bas an ai\b|<\|?\w*(?:im_start|system|assistant)\w*\|?>"
    r"|\b(?:assistant|ai|model|bot)\b[:,]? (?:must|should|has to|please)? ?\b(?:say|answer|reply|respond|call|open)\b"
    r"|\b(?:say|answer|reply|respond)\b.{0,20}\bto (?:the user|every question)\b",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Field:
    """`value` of `attribute`, as written; `unit` is what the column's heading says of it ("Price (EUR)")."""

    attribute: str
    value: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """A row of a table, a definition, an item of a list or a piece of prose, as written. `line` is its first, from 1.
    `file` is relative to the pack; `headings` stand above it, the outermost first; `entity` is what its `fields` belong
    to ("" where the headings say it). `step` numbers the items of a list. The dates are inclusive."""

    file: str
    line: int
    text: str
    headings: tuple[str, ...] = ()
    entity: str = ""
    fields: tuple[Field, ...] = ()
    step: int = 0
    valid_from: date | None = None
    valid_until: date | None = None
    updated: date | None = None

    @property
    def sentences(self) -> tuple[str, ...]:
        return () if self.fields and self.entity else sentences(self.text)


@dataclass(frozen=True, slots=True)
class Document:
    """What one file holds, and what of it could not be read. `digest` is the SHA-256 of its content."""

    file: str
    digest: str
    passages: tuple[Passage, ...]
    faults: tuple[KnowledgeFault, ...]


@dataclass(frozen=True, slots=True)
class Dates:
    valid_from: date | None = None
    valid_until: date | None = None
    updated: date | None = None


def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, each as written."""
    found: list[str] = []
    for part in filter(None, _SENTENCE.split(text.strip())):
        if found and _ABBREVIATED.search(found[-1]):
            found[-1] = f"{found[-1]} {part}"
        else:
            found.append(part)
    return tuple(found)


def listing(pack: Path, largest: int) -> tuple[dict[str, Path], list[KnowledgeFault]]:
    """The documents of a pack by their relative names, in order, and what is left out. `largest` is in bytes."""
    found: dict[str, Path] = {}
    faults: list[KnowledgeFault] = []
    root = pack.resolve()
    for path in _walk(pack, 0):
        name = path.relative_to(pack).as_posix()
        try:
            if path.suffix.lower() not in READERS and path.suffix.lower() not in TABLES:
                fault = KnowledgeFault(f"{path}: no document", "keep Markdown, text, CSV and HTML in a pack")
            elif not path.resolve().is_relative_to(root):
                fault = KnowledgeFault(f"{path} leads out of its pack", "put a copy of the document there")
            elif not path.is_file():
                fault = KnowledgeFault(f"{path} is no file", "remove it")
            elif (size := path.stat().st_size) > largest:
                fault = KnowledgeFault(
                    f"{path} has {size / 1e6:.1f} MB, more than knowledge.largest_mb", "split it, or raise the limit"
                )
            elif len(found) >= DOCUMENTS:
                return found, [*faults, KnowledgeFault(f"{pack} has more than {DOCUMENTS} documents", "split the pack")]
            else:
                if name != SYNONYMS:
                    found[name] = path
                continue
        except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
            fault = KnowledgeFault(f"{path} cannot be read: {error}", "correct its permissions or remove it")
        faults.append(fault)
    return found, faults


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    if depth > DEEPEST:
        return
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for path in entries:
        if path.name.startswith((".", "~")):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path, depth + 1)
        else:
            yield path


def digest(path: Path) -> str:
    """SHA-256 of a file's content. Raises KnowledgeFault."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise KnowledgeFault(f"{path} cannot be read: {error}", "correct its permissions or remove it") from error


def read(path: Path, name: str) -> Document:
    """The passages of one document. What is wrong is in `faults`, never raised."""
    try:
        content = path.read_bytes()
    except OSError as error:
        fault = KnowledgeFault(f"{path} cannot be read: {error}", "correct its permissions or remove it")
        return Document(name, "", (), (fault,))
    return parse(content, path, name)


def parse(content: bytes, path: Path, name: str) -> Document:
    """As `read`, of a content that is at hand; `path` is what the faults name."""
    key = hashlib.sha256(content).hexdigest()
    faults: list[KnowledgeFault] = []
    try:
        text = _decoded(content, path)
        dates, text, skipped = _front_matter(text, path)
    except KnowledgeFault as fault:
        return Document(name, key, (), (fault,))
    found = list(islice(_passages(_blocks(text, path, faults), path, name, dates, faults), PASSAGES + 1))
    if len(found) > PASSAGES:
        found.pop()
        line = found[-1].line + skipped
        faults.append(KnowledgeFault(f"{path}:{line}: only {PASSAGES} passages are read", "split the document"))
    if not found and not faults:
        faults.append(KnowledgeFault(f"{path} is empty", "write something into it, or remove it"))
    if skipped:
        found = [_moved(passage, skipped) for passage in found]
    return Document(name, key, tuple(found), tuple(faults))


def _decoded(content: bytes, path: Path) -> str:
    if b"\0" in content[:65_536] and content[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        raise KnowledgeFault(f"{path} is binary", "keep Markdown, text, CSV and HTML in a pack")
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return _ODD_BREAKS.sub(" ", content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n"))
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise KnowledgeFault(
            f"{path}:{line}: not {encoding.removesuffix('-sig').upper()}", "save it as UTF-8"
        ) from None


def _front_matter(text: str, path: Path) -> tuple[Dates, str, int]:
    """The dates before the text, the text behind them, and how many lines they take. Other keys are left alone."""
    match = _FRONT.match(text)
    if match is None:
        return Dates(), text, 0
    found: dict[str, date] = {}
    for number, line in enumerate(match[1].splitlines(), start=2):
        key, _, value = (part.strip() for part in line.partition(":"))
        if key in DATES:
            found[key] = _date(value, f"{path}:{number}: {key}")
    return Dates(**found), text[match.end() :], match[0].count("\n")


def _date(value: str, where: str) -> date:
    try:
        return date.fromisoformat(value.strip("\"' "))
    except ValueError:
        raise KnowledgeFault(f"{where} is no date: {value[:40]!r}", "write it like 2026-12-31") from None


def _blocks(text: str, path: Path, faults: list[KnowledgeFault]) -> Iterator[Block]:
    suffix = path.suffix.lower()
    if suffix in TABLES:
        yield Heading(1, path.stem.replace("_", " ").replace("-", " "), 1)
        table = csv_table(text, TABLES[suffix], path, faults)
        if table is not None:
            yield table
    else:
        yield from READERS[suffix](text)


def _passages(
    blocks: Iterator[Block], path: Path, name: str, dates: Dates, faults: list[KnowledgeFault]
) -> Iterator[Passage]:
    headings: list[tuple[int, str]] = []
    for block in blocks:
        above = tuple(text for _, text in headings)
        match block:
            case Heading():
                headings = [known for known in headings if known[0] < block.level] + [(block.level, block.text)]
                found: Iterator[Passage] = iter(())
            case Table():
                found = _rows(block, path, name, above, dates, faults)
            case Prose():
                found = _prose(block, name, above, dates)
        for passage in found:
            if _INSTRUCTION.search(passage.text):
                where = f"{path}:{passage.line}"
                fault = KnowledgeFault(
                    f"{where}: left out, it reads as an order to the assistant", "reword or remove it"
                )
                faults.append(fault)
            else:
                yield passage


def _rows(
    table: Table, path: Path, name: str, above: tuple[str, ...], dates: Dates, faults: list[KnowledgeFault]
) -> Iterator[Passage]:
    columns = [_column(cell) for cell in table.header]
    keys, named = entities(table)
    for (line, row), entity in zip(table.rows, named, strict=True):
        try:
            own = {
                key: _date(cell, f"{path}:{line}: {key}")
                for (key, _), cell in zip(columns, row, strict=False)
                if key in DATES and cell
            }
        except KnowledgeFault as fault:
            faults.append(fault)
            continue
        cells = [
            Field(attribute, cell, unit)
            for number, ((attribute, unit), cell) in enumerate(zip(columns, row, strict=False))
            if cell and attribute not in DATES and number not in keys
        ]
        text = "; ".join(f"{head}: {cell}" for head, cell in zip(table.header, row, strict=False) if cell)
        step = _step(columns, row)
        when = Dates(**{key: own.get(key, getattr(dates, key)) for key in DATES})
        if text:
            yield Passage(
                name, line, text, above, entity, tuple(cells), step, when.valid_from, when.valid_until, when.updated
            )


def _column(cell: str) -> tuple[str, str]:
    """ "Price (EUR)" -> ("Price", "EUR"); "torque_nm" -> ("torque", "nm")."""
    match = re.fullmatch(r"(.+?)\s*[(\[](.{1,12})[)\]]", cell)
    if match:
        return match[1], match[2]
    if cell.lower() in DATES:
        return cell.lower(), ""
    head, _, last = cell.rpartition("_")
    if head and last.lower() in ("eur", "usd", "gbp", "nm", "bar", "mm", "cm", "kg", "km", "ml", "min", "kcal"):
        return head.replace("_", " "), last
    return cell.replace("_", " "), ""


def _step(columns: Sequence[tuple[str, str]], row: Sequence[str]) -> int:
    if columns and columns[0][0].lower() in ("step", "no", "no.", "nr") and row[0].isdecimal() and len(row[0]) < 5:
        return int(row[0])
    return 0


def _prose(block: Prose, name: str, above: tuple[str, ...], dates: Dates) -> Iterator[Passage]:
    when = (dates.valid_from, dates.valid_until, dates.updated)
    for line, text in _pieces(block):
        match = _DEFINITION.match(text)
        if match and not match[2].startswith("//"):
            known = (Field(match[1].strip(), match[2].strip()),)
            yield Passage(name, line, text, above, "", known, block.step, *when)
        else:
            yield Passage(name, line, text, above, "", (), block.step, *when)


def _pieces(block: Prose) -> Iterator[tuple[int, str]]:
    """Definitions stand alone, a line each; other lines are joined, and cut into pieces of some sentences."""
    line, pending = block.line, ""
    for number, text in enumerate(block.text.splitlines(), start=block.line):
        text = " ".join(text.split())
        if _DEFINITION.match(text):
            if pending:
                yield from _cut(line, pending)
            yield number, text
            line, pending = number + 1, ""
        elif text:
            line = line if pending else number
            pending = f"{pending} {text}".strip()
            if len(pending) > 4 * CLAUSE:
                yield from _cut(line, pending)
                pending = ""
    if pending:
        yield from _cut(line, pending)


def _cut(line: int, text: str) -> Iterator[tuple[int, str]]:
    piece = ""
    for sentence in sentences(text):
        for part in (sentence[start : start + CLAUSE] for start in range(0, len(sentence), CLAUSE)):
            if piece and len(piece) + len(part) > CLAUSE:
                yield line, piece
                piece = ""
            piece = f"{piece} {part}".strip()
    if piece:
        yield line, piece


def _moved(passage: Passage, lines: int) -> Passage:
    from dataclasses import replace

    return replace(passage, line=passage.line + lines)
