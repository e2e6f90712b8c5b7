"""Markdown, HTML and plain text as the same few blocks, each with the line it begins at. The door to markdown-it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from markdown_it.token import Token

CHUNK = 65_536
"""Characters of Markdown that are parsed at a time: the tokens of a whole large document would not fit."""
ITEMS_DEEP = 50
"""Elements of HTML inside one another; deeper ones are read as if they lay at this depth."""


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph, or an item of a list; `step` is its number in one that is numbered, else 0."""

    text: str
    line: int
    step: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """`rows` are (line, cells), as many cells as the header has."""

    header: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]


Block = Heading | Prose | Table


# --- Markdown ----------------------------------------------------------------------------------------------------


def markdown_blocks(text: str) -> Iterator[Block]:
    parser = MarkdownIt("commonmark", {"maxNesting": 20}).enable("table")
    for line, chunk in _chunks(text):
        yield from _markdown(parser.parse(chunk), line)


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    """Pieces with their first line (from 0), cut before a heading or at an empty line where one is near, else at a
    line. A line without an end is cut as well: to parse it costs more than its length."""
    first, size, held = 0, 0, list[str]()
    for number, line in enumerate(text.splitlines()):
        if held and (size > 2 * CHUNK or (size > CHUNK and (not line or line.startswith("#")))):
            yield first, "\n".join(held)
            first, size, held = number, 0, []
        for start in range(0, max(1, len(line)), CHUNK):
            held.append(line[start : start + CHUNK])
            if start:
                yield first, "\n".join(held)
                first, size, held = number, 0, []
        size += len(line) + 1
    yield first, "\n".join(held)


def _markdown(tokens: list[Token], first: int) -> Iterator[Block]:
    lists: list[list[int]] = []
    """Of each open list: the number of its present item, and its step; 0 and 0 without numbers."""
    header: list[str] = []
    rows: list[tuple[int, tuple[str, ...]]] = []
    cells: list[str] = []
    line, level, inside = first + 1, 0, ""
    for token in tokens:
        if token.map:
            line = first + token.map[0] + 1
        match token.type:
            case "heading_open":
                level, inside = int(token.tag[1:]), "heading"
            case "ordered_list_open":
                lists.append([int(token.attrs.get("start", 1)) - 1, 1])
            case "bullet_list_open":
                lists.append([0, 0])
            case "ordered_list_close" | "bullet_list_close":
                lists.pop()
            case "list_item_open":
                lists[-1][0] += lists[-1][1]
            case "table_open":
                header, rows, inside = [], [], "table"
            case "tr_open":
                cells = []
            case "tr_close" if header:
                rows.append((line, (*cells, *[""] * (len(header) - len(cells)))))
            case "tr_close":
                header = cells
            case "table_close":
                yield Table(tuple(header), tuple(rows))
                inside = ""
            case "inline":
                words = _plain(token)
                if inside == "heading":
                    yield Heading(level, words, line)
                    inside = ""
                elif inside == "table":
                    cells.append(words)
                elif words:
                    yield Prose(words, line, lists[-1][0] if lists else 0)
            case "fence" | "code_block":
                yield Prose(token.content, line)


def _plain(token: Token) -> str:
    """The words without their marks."""
    parts = (
        "\n" if child.type in ("softbreak", "hardbreak") else "" if child.type == "html_inline" else child.content
        for child in token.children or ()
    )
    return "".join(parts).strip()


# --- HTML --------------------------------------------------------------------------------------------------------

_HIDDEN = {"script", "style", "template", "noscript", "svg", "head", "title"}
_BLOCKS = {"p", "div", "li", "dt", "dd", "section", "article", "blockquote", "pre", "td", "th", "caption", "figcaption"}
_BLOCKS |= {"tr", "table", "ul", "ol", "dl", "body", "main", "header", "footer", "nav", "address"}


class _Html(HTMLParser):
    """Reads tags as they come and never counts on their being closed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[Block] = []
        self._words: list[str] = []
        self._line = 1
        self._hidden = ""
        self._heading = 0
        self._term = ""
        self._lists: list[int] = []
        self._step = 0
        self._rows: list[tuple[int, list[str], bool]] | None = None
        self._cell = False
        self._in = "p"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._hidden:
            return
        if tag in _HIDDEN:
            self._hidden = tag
            return
        if tag == "br":
            self._words.append("\n")
        if tag not in _BLOCKS and not re.fullmatch("h[1-6]", tag):
            return
        self.flush()
        self._in = tag
        match tag:
            case "ol" | "ul":
                if len(self._lists) < ITEMS_DEEP:
                    self._lists.append(0 if tag == "ol" else -1)
            case "li" if self._lists and self._lists[-1] >= 0:
                self._lists[-1] += 1
                self._step = self._lists[-1]
            case "table":
                self._end_table()
                self._rows = []
            case "tr" if self._rows is not None:
                self._rows.append((self.getpos()[0], [], False))
            case "td" | "th" if self._rows:
                line, cells, heads = self._rows[-1]
                self._rows[-1] = (line, cells, heads or tag == "th")
                self._cell = True
            case _ if tag[0] == "h" and tag[1:].isdecimal():
                self._heading = int(tag[1:])

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            self._hidden = "" if tag == self._hidden else self._hidden
            return
        if tag in _BLOCKS or re.fullmatch("h[1-6]", tag):
            self.flush()
        match tag:
            case "ol" | "ul" if self._lists:
                self._lists.pop()
            case "li":
                self._step = 0
            case "table":
                self._end_table()

    def handle_data(self, data: str) -> None:
        if not self._hidden and (data.strip() or self._words):
            if not self._words:
                self._line = self.getpos()[0] + data[: len(data) - len(data.lstrip())].count("\n")
            self._words.append(data)

    def flush(self) -> None:
        lines = "".join(self._words).split("\n")
        text = (
            "\n".join(" ".join(line.split()) for line in lines).strip()
            if self._in == "pre"
            else " ".join(" ".join(lines).split())
        )
        self._words = []
        if self._cell and self._rows:
            self._rows[-1][1].append(text)
            self._cell = False
        elif self._heading:
            if text:
                self.found.append(Heading(self._heading, text, self._line))
            self._heading = 0
        elif text and self._in == "dt":
            self._term = text
        elif text and self._in == "dd" and self._term:
            self.found.append(Prose(f"{self._term.rstrip(':')}: {text}", self._line))
            self._term = ""
        elif text:
            self.found.append(Prose(text, self._line, self._step))
        self._in = "p"

    def _end_table(self) -> None:
        rows, self._rows = self._rows, None
        rows = [row for row in rows or () if row[1]]
        if not rows:
            return
        width = max(len(cells) for _, cells, _ in rows)
        full = [(line, (*cells, *[""] * (width - len(cells)))) for line, cells, _ in rows]
        if rows[0][2] and len(rows) > 1:
            self.found.append(Table(full[0][1], tuple(full[1:])))
        else:
            for line, cells in full:
                self.found.append(Prose(": ".join(filter(None, cells)), line))

    def done(self) -> None:
        self.flush()
        self._end_table()


def html_blocks(text: str) -> Iterator[Block]:
    parser = _Html()
    for start in range(0, len(text), CHUNK):
        parser.feed(text[start : start + CHUNK])
        yield from parser.found
        parser.found = []
    parser.close()
    parser.done()
    yield from parser.found


# --- plain text --------------------------------------------------------------------------------------------------

_UNDER = re.compile(r"^(=+|-+|~+)$")
_NUMBERED = re.compile(r"^(\d{1,3})[.)]\s+(.*)$")
_BULLET = re.compile(r"^[-*+\u2022]\s+(.*)$")


def text_blocks(text: str) -> Iterator[Block]:
    """A heading is underlined, or written in capitals between empty lines; an item has a number or a mark."""
    lines = [line.rstrip() for line in text.splitlines()]
    held: list[str] = []
    begin, step = 1, 0
    for index, line in enumerate(lines):
        words, after = line.strip(), lines[index + 1].strip() if index + 1 < len(lines) else ""
        numbered, bullet = _NUMBERED.match(words), _BULLET.match(words)
        under = bool(words and len(words) <= 100 and not held and _UNDER.match(after))
        shouted = bool(words and not held and not after and words == words.upper() and re.search("[A-Z]{3}", words))
        if under or shouted or numbered or bullet or not words or (_UNDER.match(words) and not held):
            if held:
                yield Prose("\n".join(held), begin, step)
            held, step = [], 0
        if under or shouted:
            level = 2 if under and after[0] == "-" else 1
            yield Heading(level, words.capitalize() if shouted else words, index + 1)
        elif numbered or bullet:
            item = numbered or bullet
            assert item is not None
            begin, step, held = index + 1, int(numbered[1]) if numbered else 0, [item[item.re.groups]]
        elif words and not (_UNDER.match(words) and not held):
            begin = begin if held else index + 1
            held.append(words)
    if held:
        yield Prose("\n".join(held), begin, step)
